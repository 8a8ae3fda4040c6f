//! Reductions. Reduce goes up a tree to the first member, and from there to the root. Allreduce has three algorithms:
//! few values of few members are sent by each to all; few values of more members go by recursive doubling; many
//! values are reduced to the first member and then broadcast.
//!
//! Values are always combined in the order of their members, lower first, and in the same grouping on every member.
//! So the result is equal to the bit everywhere, and operations that do not commute are correct.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).

use crate::blocking::channel::ONE_LINE_MAX;
use crate::blocking::knomial_tree::KnomialTree;
use crate::cached::schedule_cache::CallKind;
use crate::communicator::{Communicator, RADIX};
use bytemuck::Pod;
use smallvec::SmallVec;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::executor::{CallBuffers, CombineWith};
use tasuki_core::queue::reduction::Reduction;

use tasuki_schedule::shape::CollectiveKind;

/// An operation that combines values.
pub trait ValueCombiner<T> {
    /// Combines `left` with `right`, element by element, into `left`.
    fn combine(&self, left: &mut [T], right: &[T]);
    /// Returns the built-in reduction that does the same, if there is one.
    fn known(&self) -> Option<Reduction>;
}

/// Reference to an operation that combines values.
pub type CombinerRef<'c, T> = &'c dyn ValueCombiner<T>;

/// An operation on values that are given as bytes.
pub(crate) struct ByteCombiner<F> {
    by: F,
    known: Option<Reduction>,
}

impl<F: Fn(&mut [u8], &[u8])> ByteCombiner<F> {
    pub(crate) fn how(&self) -> CombineWith<'_> {
        self.known.map_or(CombineWith::By(&self.by), CombineWith::Known)
    }
}

/// Values that are kept on the stack if they are few.
type FewValues<T> = SmallVec<[T; 6]>;

impl Communicator {
    /// Combines all members' values on this member, the root. `values` become the result.
    pub fn reduce_here<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let root = self.rank();
        let kind = CallKind::of::<T>(CollectiveKind::Reduce, root, values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, combine, &call)? {
                return Ok(());
            }
            self.reduce_steps(values, combine, root).map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Combines all members' values on another member, the root.
    pub fn reduce_to<T: Pod>(&self, values: &[T], combine: CombinerRef<'_, T>, root: Rank) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Reduce, root, values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.check_root(root, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached(&kind, CallBuffers::read(bytemuck::cast_slice(values)), &call)? {
                return Ok(());
            }
            let done = match self.size() <= RADIX {
                true => self.channel.send(bytemuck::cast_slice(values), root),
                false => self.reduce_steps(&mut values.to_vec(), combine, root),
            };
            done.map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Combines all members' values. `values` become the result on every member.
    pub fn allreduce<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let kind =
            CallKind::of::<T>(CollectiveKind::Allreduce, Rank(0), values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, combine, &call)? {
                return Ok(());
            }
            let done = if size_of_val(values) <= ONE_LINE_MAX {
                if self.size() <= RADIX {
                    self.send_to_all(values, combine)
                } else {
                    self.double(values, combine)
                }
            } else {
                let first = Rank(0);
                self.reduce_steps(values, combine, first)
                    .and_then(|()| self.bcast_steps(bytemuck::cast_slice_mut(values), first))
            };
            done.map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Runs a reduction of `values`, which become the result, by its cached steps, if there are any.
    #[inline]
    pub(crate) fn try_cached_reduction<T: Pod>(
        &self,
        kind: &CallKind,
        values: &mut [T],
        combine: CombinerRef<'_, T>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        let byte_combiner = byte_combiner(combine);
        let values = bytemuck::cast_slice_mut(values);
        self.try_cached(kind, CallBuffers::combined(values, size_of::<T>(), byte_combiner.how()), call)
    }

    /// Combines values up a tree to the first member, so that neighbours are combined first, and sends the result
    /// from there to the root. If the members are few, each sends its values to the root directly.
    pub(crate) fn reduce_steps<T: Pod>(
        &self,
        values: &mut [T],
        combine: CombinerRef<'_, T>,
        root: Rank,
    ) -> Result<()> {
        let (place, first, tree) = (self.rank().index(), Rank(0), KnomialTree { size: self.size() });
        if self.size() <= RADIX {
            return self.combine_at(values, combine, root);
        }
        let mut sum = values.to_vec();
        let mut part = values.to_vec();
        for child in tree.children(place) {
            self.channel.recv(bytemuck::cast_slice_mut(&mut part), Rank(child as u32))?;
            combine.combine(&mut sum, &part);
        }
        if let Some(parent) = tree.parent(place) {
            self.channel.send(bytemuck::cast_slice(&sum), Rank(parent as u32))?;
        }
        if root != first && self.rank() == first {
            self.channel.send(bytemuck::cast_slice(&sum), root)?;
        } else if root != first && self.rank() == root {
            self.channel.recv(bytemuck::cast_slice_mut(&mut sum), first)?;
        }
        if self.rank() == root {
            values.copy_from_slice(&sum);
        }
        Ok(())
    }

    /// The root receives from all members and combines; the others send to it.
    fn combine_at<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>, root: Rank) -> Result<()> {
        if self.rank() != root {
            return self.channel.send(bytemuck::cast_slice(values), root);
        }
        self.combine_all(values, combine)
    }

    /// Combines the values received from all others with this member's own, in the order of the members.
    fn combine_all<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let mut part = FewValues::from_slice(values);
        let (mut own, sum) = (part.clone(), values);
        for member in (0..self.size()).map(|place| Rank(place as u32)) {
            let next = if member == self.rank() {
                &mut own
            } else {
                self.channel.recv(bytemuck::cast_slice_mut(&mut part), member)?;
                &mut part
            };
            if member == Rank(0) { sum.copy_from_slice(next) } else { combine.combine(sum, next) }
        }
        Ok(())
    }

    /// Each member sends its values to all others and combines all values itself.
    fn send_to_all<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        for steps in 1..self.size() {
            self.channel.expect(self.after(self.rank(), self.size() - steps))?;
            self.channel.send(bytemuck::cast_slice(values), self.after(self.rank(), steps))?;
        }
        self.combine_all(values, combine)
    }

    /// Recursive doubling. If the number of members is no power of two, each of the first pairs acts as one member.
    fn double<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let (place, size) = (self.rank().index(), self.size());
        let whole = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
        let pairs = size - whole;
        let mut part = values.to_vec();
        if place < 2 * pairs {
            let partner = Rank((place ^ 1) as u32);
            if place % 2 == 0 {
                self.channel.send(bytemuck::cast_slice(values), partner)?;
                return self.channel.recv(bytemuck::cast_slice_mut(values), partner);
            }
            self.channel.recv(bytemuck::cast_slice_mut(&mut part), partner)?;
            combine_in_order(values, &mut part, false, combine);
        }
        // Convert a place to the number among the members that take part in the rounds, and back.
        let among = |place: usize| if place < 2 * pairs { place / 2 } else { place - pairs };
        let place_of = |among: usize| if among < pairs { 2 * among + 1 } else { among + pairs };
        let mine = among(place);
        let mut step = 1;
        while step < whole {
            let partner = Rank(place_of(mine ^ step) as u32);
            let out = bytemuck::cast_slice(values);
            self.channel.exchange(out, partner, bytemuck::cast_slice_mut(&mut part), partner)?;
            combine_in_order(values, &mut part, mine & step == 0, combine);
            step *= 2;
        }
        if place < 2 * pairs {
            self.channel.send(bytemuck::cast_slice(values), Rank((place ^ 1) as u32))?;
        }
        Ok(())
    }
}

/// Returns the operation on bytes. The bytes must be aligned for values of this type.
fn byte_combiner<T: Pod>(combine: CombinerRef<'_, T>) -> ByteCombiner<impl Fn(&mut [u8], &[u8])> {
    let by = |left: &mut [u8], right: &[u8]| {
        combine.combine(bytemuck::cast_slice_mut(left), bytemuck::cast_slice(right));
    };
    ByteCombiner { by, known: combine.known() }
}

/// Combines this member's values with those of others, which come after them if `own_first`, else before.
pub(crate) fn combine_in_order<T: Pod>(
    own: &mut [T],
    part: &mut [T],
    own_first: bool,
    combine: CombinerRef<'_, T>,
) {
    if own_first {
        combine.combine(own, part);
    } else {
        combine.combine(part, own);
        own.copy_from_slice(part);
    }
}
