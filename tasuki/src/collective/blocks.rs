//! Blocks of different lengths, one for each member.

use crate::{Error, Pod, Result};

/// Blocks of different lengths, one behind the other: one for each member, or for each neighbour.
///
/// `&blocks` is an argument of [`alltoall`](crate::Communicator::alltoall), [`scatter`](crate::Communicator::scatter)
/// and [`neighbor_alltoall`](crate::Cartesian::neighbor_alltoall). These calls, and gathers of [`Uneven`] values,
/// return the blocks that came. Receivers learn their lengths. A result can also go to blocks that are there, whose
/// memory is used again: `(&blocks, &mut result)`, `(Uneven(&values), &mut result)`.
///
/// ```
/// use tasuki::Blocks;
/// tasuki::local(3, |job| {
///     let me = job.rank().0;
///     let out: Blocks<usize> = (0..3).map(|to| vec![me; to]).collect();     // none for rank 0, one for rank 1, two for rank 2
///     let got = job.world().alltoall(&out)?;
///     assert_eq!((got.len(), got.block(1)), (3, &vec![1; me][..]));         // what rank 1 has sent
///     assert!(got.counts().all(|count| count == me));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks<T> {
    values: Vec<T>,
    ends: Vec<usize>,
}

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks { values: Vec::new(), ends: Vec::new() }
    }
}

impl<T: Pod> Blocks<T> {
    /// Cuts values into blocks of these numbers of values. Error: they do not add up to the number of `values`.
    ///
    /// ```
    /// use tasuki::Blocks;
    /// let blocks = Blocks::new(vec![1, 2, 3], &[2, 0, 1])?;
    /// assert_eq!([blocks.block(0), blocks.block(1), blocks.block(2)], [&[1, 2][..], &[], &[3]]);
    /// assert!(Blocks::new(vec![1, 2, 3], &[2, 2]).is_err());
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn new(values: Vec<T>, counts: &[usize]) -> Result<Blocks<T>> {
        let mut end = 0_usize;
        let ends = counts.iter().map(|count| {
            end = end.saturating_add(*count);
            end
        });
        let ends = ends.collect();
        if end != values.len() {
            let text = format!("the counts add up to {end} values, but there are {}", values.len());
            return Err(Error::argument(text).in_call(|| "Blocks::new".into()));
        }
        Ok(Blocks { values, ends })
    }

    /// Cuts values into blocks that end before these values. The first block begins at value 0, each other one where
    /// the one before it ends. If the ends are wrong, because they decrease or the last one is not the number of
    /// `values`, the call to which the blocks are passed fails.
    ///
    /// ```
    /// use tasuki::Blocks;
    /// let sorted = vec![1, 4, 4, 9];
    /// let ends = [4, 8, 12].map(|limit| sorted.partition_point(|&value| value < limit));
    /// let blocks = Blocks::ending_at(sorted, &ends);
    /// assert_eq!([blocks.block(0), blocks.block(1), blocks.block(2)], [&[1][..], &[4, 4], &[9]]);
    /// ```
    pub fn ending_at(values: Vec<T>, ends: &[usize]) -> Blocks<T> {
        Blocks { values, ends: ends.to_vec() }
    }

    /// Blocks that a call returns.
    pub(crate) fn of_ends((values, ends): (Vec<T>, Vec<usize>)) -> Blocks<T> {
        Blocks { values, ends }
    }

    /// Replaces the blocks by those that `exchange` makes of the memory of their values. After an error there are none.
    pub(crate) fn refill(
        &mut self,
        exchange: impl FnOnce(Vec<T>) -> Result<(Vec<T>, Vec<usize>)>,
    ) -> Result<()> {
        let (memory, _) = std::mem::take(self).into_parts();
        *self = Blocks::of_ends(exchange(memory)?);
        Ok(())
    }

    /// The values of a block. Panics if there is no such block, or if its ends are wrong.
    ///
    /// ```
    /// use tasuki::Blocks;
    /// let blocks = Blocks::from(vec![vec![1, 2], vec![], vec![3]]);
    /// assert_eq!((blocks.block(0), blocks.block(1)), (&[1, 2][..], &[][..]));
    /// ```
    #[inline]
    pub fn block(&self, index: usize) -> &[T] {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.values[begin..self.ends[index]]
    }

    /// The blocks, in order. Panics at a block whose ends are wrong.
    ///
    /// ```
    /// use tasuki::Blocks;
    /// let blocks = Blocks::from(vec![vec![1, 2], vec![], vec![3]]);
    /// let sums: Vec<i32> = blocks.iter().map(|block| block.iter().sum()).collect();
    /// assert_eq!(sums, [3, 0, 3]);
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.len()).map(|index| self.block(index))
    }

    /// The number of blocks.
    ///
    /// ```
    /// use tasuki::Blocks;
    /// assert_eq!(Blocks::from(vec![vec![1, 2], vec![], vec![3]]).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no block.
    ///
    /// ```
    /// use tasuki::Blocks;
    /// assert!(Blocks::<f64>::default().is_empty());
    /// assert!(!Blocks::from(vec![Vec::<f64>::new()]).is_empty()); // one block without values
    /// ```
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of values of each block. Panics at a block whose ends are wrong.
    ///
    /// ```
    /// use tasuki::Blocks;
    /// let blocks = Blocks::from(vec![vec![1, 2], vec![], vec![3]]);
    /// assert!(blocks.counts().eq([2, 0, 1]));
    /// ```
    pub fn counts(&self) -> impl ExactSizeIterator<Item = usize> {
        self.iter().map(<[T]>::len)
    }

    /// All values, block after block.
    ///
    /// ```
    /// use tasuki::Blocks;
    /// assert_eq!(Blocks::from(vec![vec![1, 2], vec![], vec![3]]).values(), [1, 2, 3]);
    /// ```
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns all values, block after block.
    ///
    /// ```
    /// use tasuki::{Blocks, Uneven};
    /// tasuki::local(3, |job| {
    ///     let me = job.rank().index();
    ///     let got: Blocks<usize> = job.world().allgather(Uneven(&vec![me; me]))?;
    ///     assert_eq!(got.into_values(), [1, 2, 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }

    pub(crate) fn into_parts(self) -> (Vec<T>, Vec<usize>) {
        (self.values, self.ends)
    }
}

/// Collects one block from each item.
impl<T: Pod, B: AsRef<[T]>> FromIterator<B> for Blocks<T> {
    fn from_iter<I: IntoIterator<Item = B>>(blocks: I) -> Blocks<T> {
        let mut all = Blocks::default();
        for block in blocks {
            all.values.extend_from_slice(block.as_ref());
            all.ends.push(all.values.len());
        }
        all
    }
}

/// Takes each vector as one block.
///
/// ```
/// use tasuki::Blocks;
/// tasuki::local(2, |job| {
///     let lists: Vec<Vec<u64>> = vec![vec![], vec![7, 8]];
///     let got = job.world().alltoall(&Blocks::from(lists))?;
///     assert_eq!(got.values(), [vec![], vec![7, 8, 7, 8]][job.rank().0]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
impl<T: Pod> From<Vec<Vec<T>>> for Blocks<T> {
    fn from(blocks: Vec<Vec<T>>) -> Blocks<T> {
        blocks.into_iter().collect()
    }
}

/// Marks values whose number differs between members, in a gather (MPI_Gatherv): `Uneven(&v)`, or `Uneven(v)` in a
/// nonblocking one, or `Uneven(count)` in one that is prepared. All members mark theirs. Members pass no lengths of
/// others: receivers learn them.
///
/// ```
/// use tasuki::{Rank, Uneven};
/// tasuki::local(3, |job| {
///     let own = vec![job.rank().0; job.rank().0];                            // none, one, two values
///     let all = job.world().gather(Uneven(&own), Rank(0))?;
///     assert_eq!(all.map(|all| (all.counts().collect(), all.into_values())),
///                (job.rank() == 0).then(|| (vec![0, 1, 2], vec![1, 2, 2])));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uneven<D>(pub D);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_made_of_counts_ends_and_items() {
        let of_counts = Blocks::new(vec![1, 2, 3], &[0, 2, 1]).expect("the counts are right");
        assert_eq!(of_counts, Blocks::ending_at(vec![1, 2, 3], &[0, 2, 3]));
        assert_eq!(of_counts, [vec![], vec![1, 2], vec![3]].into_iter().collect());
        assert_eq!(of_counts.iter().collect::<Vec<_>>(), [&[][..], &[1, 2], &[3]]);
        assert_eq!((of_counts.len(), of_counts.is_empty()), (3, false));
        let error = Blocks::new(vec![1], &[usize::MAX, 2]).expect_err("the sum is beyond all numbers");
        assert!(error.to_string().contains("Blocks::new"), "{error}");
    }
}
