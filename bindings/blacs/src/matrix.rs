//! Matrices in memory, stored by columns: general ones and trapezoids.
//!
//! A general matrix is sent from where it is, and received there. A trapezoid, whose columns differ in length, is packed.
//!
//! Unsafe: matrices are pointers of the program, which it vouches for until the call has ended.
#![allow(unsafe_code)]

use crate::element::Element;
use crate::grid::Grid;
use crate::library::{fail, or_fail};
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ops::Range;
use tasuki::Rank;
use tasuki::bindings::{BufferView, StrideLayout, StridedView, TypedSlot};
use tasuki::bytemuck::{cast_slice, cast_slice_mut};

/// Which elements of a matrix count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    All,
    /// The upper or lower trapezoid, with the diagonal or without.
    Trapezoid {
        is_upper: bool,
        with_diagonal: bool,
    },
}

impl Form {
    /// The form of a trapezoid. `uplo`: U is upper, all else lower; `diag`: U is without the diagonal.
    pub(crate) fn trapezoid(uplo: u8, diag: u8) -> Form {
        Form::Trapezoid {
            is_upper: uplo.eq_ignore_ascii_case(&b'u'),
            with_diagonal: !diag.eq_ignore_ascii_case(&b'u'),
        }
    }
}

/// A matrix of a program.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    at: *mut T,
    rows: usize,
    columns: usize,
    lda: usize,
    form: Form,
    of: PhantomData<T>,
}

impl<T: Element> Matrix<T> {
    /// A matrix of `m` rows and `n` columns; ends the job if these are negative.
    pub(crate) fn new(context: c_int, at: *const T, [m, n, lda]: [c_int; 3], form: Form) -> Matrix<T> {
        let number = |value: c_int, name: &str| {
            usize::try_from(value).unwrap_or_else(|_| fail(context, format_args!("Illegal {name}, {value}")))
        };
        let (rows, columns) = (number(m, "number of rows (M)"), number(n, "number of columns (N)"));
        let lda = usize::try_from(lda).unwrap_or(0).max(rows); // as NetLib does
        if rows != 0 && columns != 0 && at.is_null() {
            fail(context, "the matrix is null");
        }
        Matrix { at: at.cast_mut(), rows, columns, lda, form, of: PhantomData }
    }

    pub(crate) fn count(&self) -> usize {
        match self.form {
            Form::All => self.rows * self.columns,
            Form::Trapezoid { .. } => (0..self.columns).map(|column| self.rows_of(column).len()).sum(),
        }
    }

    /// The rows of a column that count.
    fn rows_of(&self, column: usize) -> Range<usize> {
        let (m, n) = (self.rows, self.columns);
        match self.form {
            Form::All => 0..m,
            Form::Trapezoid { is_upper: true, with_diagonal } => {
                // The diagonal is i = j + max(m - n, 0).
                let end = column + m.saturating_sub(n) + usize::from(with_diagonal);
                0..end.min(m)
            }
            Form::Trapezoid { is_upper: false, with_diagonal } => {
                // The diagonal is j = i + max(n - m, 0).
                let begin = (column + usize::from(!with_diagonal)).saturating_sub(n.saturating_sub(m));
                begin.min(m)..m
            }
        }
    }

    /// The bytes from the first element to the last, and how the columns lie in them. `None`: it is a trapezoid.
    fn columns(&self) -> Option<StrideLayout> {
        let size = size_of::<T>();
        match self.form {
            Form::All => StrideLayout::new(self.columns, self.rows * size, self.lda * size),
            Form::Trapezoid { .. } => None,
        }
    }

    /// # Safety
    /// The program promises that the elements are there, and that nobody else uses them meanwhile.
    unsafe fn span<'b>(&self, bytes: usize) -> &'b mut [u8] {
        match bytes {
            0 => &mut [],
            // SAFETY: the caller promises it.
            _ => unsafe { std::slice::from_raw_parts_mut(self.at.cast(), bytes) },
        }
    }

    /// Copies the elements that count, column by column.
    ///
    /// # Safety
    /// The elements are there, and nobody changes them meanwhile.
    pub(crate) unsafe fn packed(&self) -> Vec<T> {
        let mut values = Vec::with_capacity(self.count());
        for column in 0..self.columns {
            let rows = self.rows_of(column);
            if !rows.is_empty() {
                // SAFETY: the caller promises it.
                let part = unsafe { self.at.add(column * self.lda + rows.start) };
                // SAFETY: the same.
                values.extend_from_slice(unsafe { std::slice::from_raw_parts(part, rows.len()) });
            }
        }
        values
    }

    /// Sets the elements that count.
    ///
    /// # Safety
    /// The elements are there, and nobody else uses them meanwhile.
    pub(crate) unsafe fn unpack(&self, mut values: &[T]) {
        for column in 0..self.columns {
            let rows = self.rows_of(column);
            let (part, rest) = values.split_at(rows.len());
            if !part.is_empty() {
                // SAFETY: the caller promises it.
                unsafe {
                    let into = self.at.add(column * self.lda + rows.start);
                    into.copy_from_nonoverlapping(part.as_ptr(), part.len());
                }
            }
            values = rest;
        }
    }

    /// Sends the elements that count to some processes, one after the other.
    ///
    /// # Safety
    /// The elements are there, and nobody changes them meanwhile.
    pub(crate) unsafe fn send(&self, grid: &Grid, slot: TypedSlot, to: impl IntoIterator<Item = Rank>) {
        let context = &grid.context;
        let mut to = to.into_iter();
        match self.columns() {
            Some(layout) => to.try_for_each(|rank| {
                // SAFETY: the caller promises it.
                let bytes = BufferView::of(unsafe { self.span(layout.span()) });
                context.send_strided(StridedView::new(bytes, layout), rank, slot)
            }),
            None => {
                // SAFETY: the caller promises it.
                let values = unsafe { self.packed() };
                to.try_for_each(|rank| context.send(cast_slice(&values), rank, slot))
            }
        }
        .unwrap_or_else(|error| fail(grid.number(), error));
    }

    /// Receives the elements that count from a process.
    ///
    /// # Safety
    /// The elements are there, and nobody else uses them meanwhile.
    pub(crate) unsafe fn recv(&self, grid: &Grid, slot: TypedSlot, from: Rank) {
        let got = match self.columns() {
            Some(layout) => {
                // SAFETY: the caller promises it.
                let bytes = BufferView::of_mut(unsafe { self.span(layout.span()) });
                grid.context.recv_strided(StridedView::new(bytes, layout), from, slot)
            }
            None => {
                let mut values = vec![T::zeroed(); self.count()];
                let got = grid.context.recv(cast_slice_mut(&mut values), from, slot);
                // SAFETY: the caller promises it.
                unsafe { self.unpack(&values) };
                got
            }
        };
        let (got, expected) = (or_fail(grid.number(), got).len as usize / size_of::<T>(), self.count());
        if got != expected {
            let text =
                format!("a message of rank {from} has {got} elements, and its receive expects {expected}");
            fail(grid.number(), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trapezoids_have_the_elements_that_blacs_names() {
        for (m, n) in (0..8_usize).flat_map(|m| (0..8_usize).map(move |n| (m, n))) {
            for (is_upper, with_diagonal) in [(true, true), (true, false), (false, true), (false, false)] {
                let form = Form::Trapezoid { is_upper, with_diagonal };
                let matrix = Matrix::<i32> {
                    at: std::ptr::null_mut(),
                    rows: m,
                    columns: n,
                    lda: m,
                    form,
                    of: PhantomData,
                };
                let counts = |i: usize, j: usize| match (is_upper, m <= n) {
                    _ if !with_diagonal && is_upper && i == j + m.saturating_sub(n) => false,
                    _ if !with_diagonal && !is_upper && j == i + n.saturating_sub(m) => false,
                    (true, true) => i <= j,
                    (true, false) => i <= j + (m - n),
                    (false, true) => j <= i + (n - m),
                    (false, false) => j <= i,
                };
                for j in 0..n {
                    let expected: Vec<usize> = (0..m).filter(|&i| counts(i, j)).collect();
                    let rows: Vec<usize> = matrix.rows_of(j).collect();
                    assert_eq!(rows, expected, "{m} x {n}, {form:?}, column {j}");
                }
                let k = m.min(n);
                let all = k * (k + 1) / 2 - if with_diagonal { 0 } else { k } + m.abs_diff(n) * k;
                assert_eq!(matrix.count(), all);
            }
        }
    }
}
