//! Values in blocks at equal distances: columns and submatrices.

use crate::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use tasuki_core::engine::{BufferView, StrideLayout, StridedView};

/// Values to send or to put that lie in blocks at equal distances, as the columns and submatrices of a matrix that is
/// stored row by row (MPI_Type_vector).
///
/// A message of strided values is a message of `blocks * block_len` values like any other: the receiver may receive
/// them into contiguous values, or into blocks of another shape. Values that are not contiguous are packed into the
/// ring through which the message travels, chunk by chunk, or into the cache line of a short message; no other copy is
/// made. Values that are contiguous are not packed.
///
/// | call | takes |
/// |---|---|
/// | [`send`](crate::Communicator::send), [`sendrecv`](crate::Communicator::sendrecv), [`Job::put`](crate::Job::put), [`Job::put_strided`](crate::Job::put_strided) | `&Strided` |
/// | [`Scope::send`](crate::Scope::send) | `Strided` by value, or a reference to one that was made before the scope |
/// | `neighbor_alltoall` ([`NeighborBuffers`](crate::collective::NeighborBuffers)) | an array or a slice of `Strided` values, one for each neighbour |
///
/// No other call takes it: not `isend` and `iput`, which own their values, nor
/// [`send_any`](crate::Communicator::send_any), receive queues, the other collective calls,
/// [`put_signal`](crate::Job::put_signal) and channels. For those, pass [`to_vec`](Strided::to_vec).
///
/// ```
/// use tasuki::message::{Strided, StridedMut};
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let mut matrix = [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]; // three rows
///     if job.rank() == 0 {
///         job.world().send(&Strided::column(&matrix, 4, 1), Rank(1), Slot(0))?;
///     } else {
///         let got = job.world().recv(&mut StridedMut::column(&mut matrix, 4, 3), Rank(0), Slot(0))?;
///         assert_eq!(got.count, 3);
///         assert_eq!(matrix, [0, 1, 2, 1, 10, 11, 12, 11, 20, 21, 22, 21]);
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct Strided<'a, T> {
    blocks: StridedView<'a>,
    of: PhantomData<&'a [T]>,
}

/// Values to fill that lie in blocks at equal distances, as [`Strided`] values do. What lies between the blocks is
/// neither read nor written.
///
/// [`recv`](crate::Communicator::recv), [`sendrecv`](crate::Communicator::sendrecv),
/// [`Scope::recv`](crate::Scope::recv), [`Job::get`](crate::Job::get) and [`Job::get_strided`](crate::Job::get_strided)
/// take it by mutable reference, like other values, and exchanges with neighbours take arrays and slices of it. A
/// message of fewer values fills the first ones. A `StridedMut` itself cannot be sent: sends take
/// [`as_strided`](StridedMut::as_strided).
///
/// ```
/// use tasuki::message::StridedMut;
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let mut matrix = [0; 12];
///     if job.rank() == 0 {
///         job.world().send(&[1, 2, 3, 4], Rank(1), Slot(0))?;
///     } else {
///         job.world().recv(&mut StridedMut::submatrix(&mut matrix, 4, 0..2, 1..3), Rank(0), Slot(0))?;
///         assert_eq!(matrix, [0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0]);
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct StridedMut<'a, T> {
    blocks: StridedView<'a>,
    of: PhantomData<&'a mut [T]>,
}

impl<'a, T: Pod> Strided<'a, T> {
    /// The first `block_len` values of each of `blocks` parts of `stride` values: count, blocklength and stride of
    /// MPI_Type_vector, in that order.
    ///
    /// ```
    /// use tasuki::message::Strided;
    /// let values = [0, 1, 2, 3, 4, 5, 6, 7, 8];
    /// let pairs = Strided::new(&values[1..], 3, 2, 3);      // the last part may be shorter
    /// assert_eq!((pairs.len(), pairs.to_vec()), (6, vec![1, 2, 4, 5, 7, 8]));
    /// ```
    ///
    /// Panics: a block ends behind `values`.
    #[track_caller]
    pub fn new(values: &'a [T], blocks: usize, block_len: usize, stride: usize) -> Strided<'a, T> {
        BlockPlace { first: 0, blocks, block_len, stride }.of(values)
    }

    /// A column of a matrix whose rows have `row_len` values.
    ///
    /// ```
    /// use tasuki::message::Strided;
    /// assert_eq!(Strided::column(&[0, 1, 2, 10, 11, 12], 3, 1).to_vec(), [1, 11]);
    /// ```
    ///
    /// Panics: there is no such column; the values are no whole number of rows.
    #[track_caller]
    pub fn column(matrix: &'a [T], row_len: usize, column: usize) -> Strided<'a, T> {
        Strided::submatrix(matrix, row_len, .., column..=column)
    }

    /// Some rows and columns of a matrix whose rows have `row_len` values, row by row.
    ///
    /// ```
    /// use tasuki::message::Strided;
    /// let matrix = [0, 1, 2, 10, 11, 12, 20, 21, 22];
    /// assert_eq!(Strided::submatrix(&matrix, 3, 1.., ..2).to_vec(), [10, 11, 20, 21]);
    /// ```
    ///
    /// Panics: there are no such rows or columns; the values are no whole number of rows.
    #[track_caller]
    pub fn submatrix(
        matrix: &'a [T],
        row_len: usize,
        rows: impl RangeBounds<usize>,
        columns: impl RangeBounds<usize>,
    ) -> Strided<'a, T> {
        let matrix_rows = rows_of(matrix.len(), row_len);
        Rectangle::new((rows, matrix_rows), (columns, row_len)).place(row_len).of(matrix)
    }

    /// The values, one behind the other.
    ///
    /// ```
    /// use tasuki::message::Strided;
    /// let matrix = [1, 2, 3, 4, 5, 6]; // two rows of three values
    /// assert_eq!(Strided::column(&matrix, 3, 1).to_vec(), [2, 5]);
    /// ```
    pub fn to_vec(&self) -> Vec<T> {
        let mut values = vec![T::zeroed(); self.len()];
        self.blocks.read(0, bytemuck::cast_slice_mut(&mut values));
        values
    }
}

impl<'a, T: Pod> StridedMut<'a, T> {
    /// The first `block_len` values of each of `blocks` parts of `stride` values, to fill: count, blocklength and
    /// stride of MPI_Type_vector, in that order.
    ///
    /// ```
    /// use tasuki::message::StridedMut;
    /// let mut values = [0; 8];
    /// StridedMut::new(&mut values, 3, 2, 3).copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    /// assert_eq!(values, [1, 2, 0, 3, 4, 0, 5, 6]);
    /// ```
    ///
    /// Panics: a block ends behind `values`; blocks overlap, because `stride` is less than `block_len`.
    #[track_caller]
    pub fn new(values: &'a mut [T], blocks: usize, block_len: usize, stride: usize) -> StridedMut<'a, T> {
        assert!(
            blocks <= 1 || stride >= block_len,
            "blocks of {block_len} values at distances of {stride} overlap: a StridedMut needs a stride of at least the \
             block length"
        );
        BlockPlace { first: 0, blocks, block_len, stride }.of_mut(values)
    }

    /// A column of a matrix whose rows have `row_len` values, to fill. Panics: see [`Strided::column`].
    ///
    /// ```
    /// use tasuki::message::StridedMut;
    /// let mut matrix = [0; 6]; // two rows of three values
    /// StridedMut::column(&mut matrix, 3, 1).copy_from_slice(&[7, 8]);
    /// assert_eq!(matrix, [0, 7, 0, 0, 8, 0]);
    /// ```
    #[track_caller]
    pub fn column(matrix: &'a mut [T], row_len: usize, column: usize) -> StridedMut<'a, T> {
        StridedMut::submatrix(matrix, row_len, .., column..=column)
    }

    /// Some rows and columns of a matrix whose rows have `row_len` values, to fill row by row. Panics: see
    /// [`Strided::submatrix`].
    ///
    /// ```
    /// use tasuki::message::StridedMut;
    /// let mut matrix = [0; 9]; // three rows of three values
    /// StridedMut::submatrix(&mut matrix, 3, 1.., ..2).copy_from_slice(&[1, 2, 3, 4]);
    /// assert_eq!(matrix, [0, 0, 0, 1, 2, 0, 3, 4, 0]);
    /// ```
    #[track_caller]
    pub fn submatrix(
        matrix: &'a mut [T],
        row_len: usize,
        rows: impl RangeBounds<usize>,
        columns: impl RangeBounds<usize>,
    ) -> StridedMut<'a, T> {
        let matrix_rows = rows_of(matrix.len(), row_len);
        Rectangle::new((rows, matrix_rows), (columns, row_len)).place(row_len).of_mut(matrix)
    }

    /// Several submatrices of one matrix, each given by its rows and columns: some to read, and some to fill. So the
    /// edges of a matrix can be sent while its halos are received.
    ///
    /// ```
    /// use tasuki::message::StridedMut;
    /// let mut matrix = [0, 1, 2, 3, 10, 11, 12, 13];
    /// let (edges, mut halos) =
    ///     StridedMut::submatrices(&mut matrix, 4, [[0..2, 1..2], [0..2, 2..3]], [[0..2, 3..4], [0..2, 0..1]]);
    /// for (edge, halo) in edges.iter().zip(&mut halos) {
    ///     halo.copy_from_slice(&edge.to_vec());
    /// }
    /// assert_eq!(matrix, [2, 1, 2, 1, 12, 11, 12, 11]);
    /// ```
    ///
    /// Panics: a submatrix to fill has a value in common with another submatrix; and like [`Strided::submatrix`].
    #[track_caller]
    pub fn submatrices<const READ: usize, const FILLED: usize>(
        matrix: &'a mut [T],
        row_len: usize,
        read: [[Range<usize>; 2]; READ],
        filled: [[Range<usize>; 2]; FILLED],
    ) -> ([Strided<'a, T>; READ], [StridedMut<'a, T>; FILLED]) {
        let matrix_rows = rows_of(matrix.len(), row_len);
        let rectangle =
            |[rows, columns]: [Range<usize>; 2]| Rectangle::new((rows, matrix_rows), (columns, row_len));
        let (read, filled) = (read.map(rectangle), filled.map(rectangle));
        for (number, one) in filled.iter().enumerate() {
            let mut others = read.iter().chain(&filled[..number]);
            if let Some(other) = others.find(|other| one.overlaps(other)) {
                panic!("{one}, to fill, and {other} have values in common");
            }
        }
        // Each value belongs to one submatrix to fill, or to any number of those that are only read.
        let bytes = BufferView::of_mut(bytemuck::cast_slice_mut(matrix));
        let read = read.map(|one| Strided { blocks: one.place(row_len).view::<T>(bytes), of: PhantomData });
        let fill =
            |one: Rectangle| StridedMut { blocks: one.place(row_len).view::<T>(bytes), of: PhantomData };
        (read, filled.map(fill))
    }

    /// The edges and the halos of a tile: of a matrix whose outermost `halo` rows and columns at each side are copies
    /// of the neighbours' edges. The order is that of the blocks of a [`Cartesian`](crate::Cartesian) grid of tiles:
    /// above, below, left, right. Corners belong to none of them.
    ///
    /// ```
    /// use tasuki::{Cartesian, message::StridedMut};
    /// tasuki::local(1, |job| {
    ///     let torus = Cartesian::new(job.world(), [1, 1], [true, true])?;
    ///     let mut tile = [
    ///         0, 0, 0, 0, //
    ///         0, 1, 2, 0, //
    ///         0, 3, 4, 0, //
    ///         0, 0, 0, 0,
    ///     ];
    ///     let (edges, mut halos) = StridedMut::edges_and_halos(&mut tile, 4, 1);
    ///     torus.neighbor_alltoall((&edges, &mut halos))?;
    ///     assert_eq!(tile, [
    ///         0, 3, 4, 0, //
    ///         2, 1, 2, 1, //
    ///         4, 3, 4, 3, //
    ///         0, 1, 2, 0,
    ///     ]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Panics: the tile has fewer than `halo` rows or columns inside of the halos; the values are no whole number of
    /// rows.
    #[track_caller]
    pub fn edges_and_halos(
        tile: &'a mut [T],
        row_len: usize,
        halo: usize,
    ) -> ([Strided<'a, T>; 4], [StridedMut<'a, T>; 4]) {
        // Begins of both halos and of both edges.
        let begins = |all: usize| {
            let end = all.checked_sub(2 * halo).filter(|&inside| inside >= halo);
            let Some(end) = end else { panic!("no edges inside of halos of {halo} beside {all} values") };
            ([0, end + halo], [halo, end], halo..halo + end)
        };
        let (row_halos, row_edges, rows) = begins(rows_of(tile.len(), row_len));
        let (column_halos, column_edges, columns) = begins(row_len);
        let lines = |[above, below]: [usize; 2], [left, right]: [usize; 2]| {
            let in_rows = |first| [first..first + halo, columns.clone()];
            let in_columns = |first| [rows.clone(), first..first + halo];
            [in_rows(above), in_rows(below), in_columns(left), in_columns(right)]
        };
        let (edges, halos) = (lines(row_edges, column_edges), lines(row_halos, column_halos));
        StridedMut::submatrices(tile, row_len, edges, halos)
    }

    /// The values, for sends, which take [`Strided`] values.
    ///
    /// ```
    /// use tasuki::message::StridedMut;
    /// let mut values = [1, 2, 3, 4];
    /// let odd = StridedMut::column(&mut values, 2, 0);
    /// assert_eq!(odd.as_strided().to_vec(), [1, 3]);
    /// ```
    pub fn as_strided(&self) -> Strided<'_, T> {
        Strided { blocks: self.blocks, of: PhantomData }
    }

    /// Fills the values. Panics if there are not as many of them.
    ///
    /// ```
    /// use tasuki::message::StridedMut;
    /// let mut values = [0; 5];
    /// let mut ends = StridedMut::new(&mut values, 2, 1, 4);
    /// ends.copy_from_slice(&[7, 8]);
    /// assert_eq!(values, [7, 0, 0, 0, 8]);
    /// ```
    #[track_caller]
    pub fn copy_from_slice(&mut self, values: &[T]) {
        assert_eq!(self.len(), values.len(), "strided values are filled with as many values");
        self.blocks.write(0, bytemuck::cast_slice(values));
    }

    /// The same blocks, for a call that fills them.
    pub(crate) fn blocks(&mut self) -> StridedView<'_> {
        self.blocks
    }
}

impl<'a, T> Strided<'a, T> {
    /// The number of values.
    ///
    /// ```
    /// use tasuki::message::Strided;
    /// assert_eq!(Strided::submatrix(&[0; 9], 3, 1.., ..2).len(), 4);
    /// ```
    pub fn len(&self) -> usize {
        self.blocks.len() / size_of::<T>().max(1)
    }

    /// Returns true if there are no values.
    ///
    /// ```
    /// use tasuki::message::Strided;
    /// assert!(Strided::submatrix(&[0; 9], 3, 1..1, ..).is_empty());
    /// assert!(!Strided::column(&[0; 9], 3, 2).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn blocks(&self) -> StridedView<'a> {
        self.blocks
    }
}

impl<T> StridedMut<'_, T> {
    /// The number of values.
    ///
    /// ```
    /// use tasuki::message::StridedMut;
    /// assert_eq!(StridedMut::column(&mut [0; 9], 3, 2).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        self.blocks.len() / size_of::<T>().max(1)
    }

    /// Returns true if there are no values.
    ///
    /// ```
    /// use tasuki::message::StridedMut;
    /// assert!(StridedMut::submatrix(&mut [0; 9], 3, .., 2..2).is_empty());
    /// assert!(!StridedMut::column(&mut [0; 9], 3, 2).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl<T> Clone for Strided<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Strided<'_, T> {}

impl<T> fmt::Debug for Strided<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Strided").field(&self.blocks.layout()).finish()
    }
}

impl<T> fmt::Debug for StridedMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StridedMut").field(&self.blocks.layout()).finish()
    }
}

/// Where blocks lie in a slice, in values.
#[derive(Clone, Copy)]
struct BlockPlace {
    first: usize,
    blocks: usize,
    block_len: usize,
    stride: usize,
}

impl BlockPlace {
    #[track_caller]
    fn of<T: Pod>(self, values: &[T]) -> Strided<'_, T> {
        Strided { blocks: self.view::<T>(BufferView::of(bytemuck::cast_slice(values))), of: PhantomData }
    }

    #[track_caller]
    fn of_mut<T: Pod>(self, values: &mut [T]) -> StridedMut<'_, T> {
        let bytes = BufferView::of_mut(bytemuck::cast_slice_mut(values));
        StridedMut { blocks: self.view::<T>(bytes), of: PhantomData }
    }

    /// Returns the blocks in the bytes of values of type `T`.
    #[track_caller]
    fn view<T>(self, bytes: BufferView<'_>) -> StridedView<'_> {
        let BlockPlace { first, blocks, block_len, stride } = self;
        let size = size_of::<T>();
        // A product that is too large is also too large for any slice.
        let [first, block, distance] = [first, block_len, stride].map(|count| count.saturating_mul(size));
        let layout = StrideLayout::new(blocks, block, distance).unwrap_or_else(|| behind(self));
        let end = first.checked_add(layout.span()).filter(|&end| end <= bytes.len());
        match end {
            Some(end) => StridedView::new(bytes.piece(first..end), layout),
            None if layout.is_empty() => StridedView::new(bytes.piece(0..0), layout),
            None => behind(self),
        }
    }
}

#[cold]
#[track_caller]
fn behind(BlockPlace { blocks, block_len, stride, .. }: BlockPlace) -> ! {
    panic!("{blocks} blocks of {block_len} values at distances of {stride} end behind the values")
}

/// Returns the number of rows of so many values.
#[track_caller]
fn rows_of(values: usize, row_len: usize) -> usize {
    let is_whole = values.is_multiple_of(row_len);
    assert!(is_whole, "{values} values are no whole number of rows of {row_len} values");
    values.checked_div(row_len).unwrap_or(0)
}

/// Rows and columns of a matrix.
#[derive(Clone)]
struct Rectangle {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Rectangle {
    /// Returns these rows and columns, each given with the number that there are.
    #[track_caller]
    fn new<R: RangeBounds<usize>, C: RangeBounds<usize>>(
        (rows, all_rows): (R, usize),
        (columns, all_columns): (C, usize),
    ) -> Rectangle {
        let rectangle = Rectangle { rows: range(rows, all_rows), columns: range(columns, all_columns) };
        let is_inside = |range: &Range<usize>, all| range.start <= range.end && range.end <= all;
        assert!(
            is_inside(&rectangle.rows, all_rows) && is_inside(&rectangle.columns, all_columns),
            "{rectangle} are not inside of a matrix of {all_rows} rows and {all_columns} columns"
        );
        rectangle
    }

    fn place(&self, row_len: usize) -> BlockPlace {
        let Rectangle { rows, columns } = self;
        BlockPlace {
            first: rows.start * row_len + columns.start,
            blocks: rows.len(),
            block_len: columns.len(),
            stride: row_len,
        }
    }

    fn overlaps(&self, other: &Rectangle) -> bool {
        let meet =
            |one: &Range<usize>, other: &Range<usize>| one.start.max(other.start) < one.end.min(other.end);
        meet(&self.rows, &other.rows) && meet(&self.columns, &other.columns)
    }
}

impl fmt::Display for Rectangle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows {:?} and columns {:?}", self.rows, self.columns)
    }
}

/// Returns the numbers in a range that may have open ends.
fn range(range: impl RangeBounds<usize>, all: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => all,
    };
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const MATRIX: [u32; 12] = [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23];

    fn panics(body: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(body)).is_err()
    }

    #[test]
    fn submatrices_have_their_values_row_by_row() {
        assert_eq!(Strided::column(&MATRIX, 4, 3).to_vec(), [3, 13, 23]);
        assert_eq!(Strided::submatrix(&MATRIX, 4, 1..=2, 1..3).to_vec(), [11, 12, 21, 22]);
        assert_eq!(Strided::submatrix(&MATRIX, 4, .., ..).to_vec(), MATRIX);
        assert_eq!(Strided::submatrix(&MATRIX, 4, 3.., 4..).len(), 0);
        assert_eq!(Strided::new(&MATRIX, 4, 2, 1).to_vec(), [0, 1, 1, 2, 2, 3, 3, 10]);
        assert!(Strided::<u32>::new(&[], 0, 5, 9).is_empty());
        assert!(Strided::<u32>::new(&[], 5, 0, 9).to_vec().is_empty());
    }

    #[test]
    fn blocks_outside_of_the_slice_are_refused() {
        assert!(panics(|| _ = Strided::new(&MATRIX, 4, 1, 4)));
        assert!(panics(|| _ = Strided::new(&MATRIX, 2, 12, 1)));
        assert!(panics(|| _ = Strided::new(&MATRIX, usize::MAX, 1, 4)));
        assert!(panics(|| _ = Strided::new(&MATRIX, 3, 1, usize::MAX / 2)));
        assert!(panics(|| _ = Strided::column(&MATRIX, 4, 4)));
        assert!(panics(|| _ = Strided::column(&MATRIX, 5, 0)));
        assert!(panics(|| _ = Strided::column(&MATRIX, 0, 0)));
        assert!(panics(|| _ = Strided::submatrix(&MATRIX, 4, 2..4, 0..1)));
        assert!(panics(|| _ = Strided::submatrix(&MATRIX, 4, 0..1, usize::MAX..=usize::MAX)));
        let reversed = Range { start: 2, end: 1 };
        assert!(panics(|| _ = Strided::submatrix(&MATRIX, 4, reversed, 0..1)));
    }

    #[test]
    fn blocks_to_fill_do_not_overlap() {
        let mut matrix = MATRIX;
        assert!(panics(|| _ = StridedMut::new(&mut matrix, 2, 3, 2)));
        StridedMut::new(&mut matrix, 1, 3, 0).copy_from_slice(&[7; 3]);
        assert_eq!(matrix[..4], [7, 7, 7, 3]);
        assert!(panics(|| _ = StridedMut::submatrices(&mut matrix, 4, [[0..3, 1..2]], [[1..2, 0..4]])));
        assert!(panics(|| _ = StridedMut::submatrices(&mut matrix, 4, [], [[0..2, 1..2], [1..3, 0..2]])));
        let (_, [mut left, mut right]) =
            StridedMut::submatrices(&mut matrix, 4, [], [[0..3, 0..1], [0..3, 3..4]]);
        left.copy_from_slice(&[1, 2, 3]);
        right.copy_from_slice(&[4, 5, 6]);
        assert_eq!((left.as_strided().to_vec(), right.len()), (vec![1, 2, 3], 3));
        assert_eq!(matrix, [1, 7, 7, 4, 2, 11, 12, 5, 3, 21, 22, 6]);
    }
}
