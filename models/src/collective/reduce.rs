//! Reductions: a binomial tree towards the root; for all members, recursive doubling where the values are few, else a
//! tree and a broadcast.
//!
//! Values are always combined in the order of the members they come from, lower first, and in the same grouping on
//! every member: the result is the same to the bit everywhere, and operations that do not commute are right.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).

use super::communicator::Communicator;
use crate::message::SHORT_MAX;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};

/// Combines values: the left becomes left with right.
pub type Combine<'c, T> = &'c dyn Fn(&mut [T], &[T]);

impl Communicator {
    /// Combines all members' values; true on the root, where `values` are the result, and as they were elsewhere.
    pub fn reduce<T: Pod>(&self, values: &mut [T], combine: Combine<'_, T>, root: Rank) -> Result<()> {
        let call = format!("reduce({} bytes to rank {root})", size_of_val(values));
        let _held = self.begin(&|| call.clone())?;
        self.check_root(root, &|| call.clone())?;
        self.reduce_steps(values, combine, root).map_err(|error| self.step_failed(error, &|| call.clone()))
    }

    /// Combines all members' values; `values` are the result everywhere.
    pub fn allreduce<T: Pod>(&self, values: &mut [T], combine: Combine<'_, T>) -> Result<()> {
        let call = || format!("allreduce({} values)", size_of::<T>());
        let _held = self.begin(&call)?;
        let done = if size_of_val(values) <= SHORT_MAX {
            self.double(values, combine)
        } else {
            let first = Rank(0);
            self.reduce_steps(values, combine, first)
                .and_then(|()| self.bcast_steps(bytemuck::cast_slice_mut(values), first))
        };
        done.map_err(|error| self.step_failed(error, &call))
    }

    /// Up a binomial tree to the first member, so that neighbours are combined first, and from there to the root.
    fn reduce_steps<T: Pod>(&self, values: &mut [T], combine: Combine<'_, T>, root: Rank) -> Result<()> {
        let (place, size, first) = (self.rank().index(), self.size(), Rank(0));
        let mut sum = values.to_vec();
        let mut part = vec![T::zeroed(); values.len()];
        let mut step = 1;
        while step < size {
            if place & step != 0 {
                self.link.send(bytemuck::cast_slice(&sum), Rank((place - step) as u32))?;
                break;
            }
            if place + step < size {
                self.link.recv(bytemuck::cast_slice_mut(&mut part), Rank((place + step) as u32))?;
                combine(&mut sum, &part);
            }
            step *= 2;
        }
        if root != first && self.rank() == first {
            self.link.send(bytemuck::cast_slice(&sum), root)?;
        } else if root != first && self.rank() == root {
            self.link.recv(bytemuck::cast_slice_mut(&mut sum), first)?;
        }
        if self.rank() == root {
            values.copy_from_slice(&sum);
        }
        Ok(())
    }

    /// Recursive doubling. Where the members are no power of two, the first few pairs are one each.
    fn double<T: Pod>(&self, values: &mut [T], combine: Combine<'_, T>) -> Result<()> {
        let (place, size) = (self.rank().index(), self.size());
        let whole = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
        let pairs = size - whole;
        let mut part = values.to_vec();
        if place < 2 * pairs {
            let partner = Rank((place ^ 1) as u32);
            if place % 2 == 0 {
                self.link.send(bytemuck::cast_slice(values), partner)?;
                return self.link.recv(bytemuck::cast_slice_mut(values), partner);
            }
            self.link.recv(bytemuck::cast_slice_mut(&mut part), partner)?;
            combine_in_order(values, &mut part, false, combine);
        }
        // The place among those that go on, and back.
        let among = |place: usize| if place < 2 * pairs { place / 2 } else { place - pairs };
        let place_of = |among: usize| if among < pairs { 2 * among + 1 } else { among + pairs };
        let mine = among(place);
        let mut step = 1;
        while step < whole {
            let partner = Rank(place_of(mine ^ step) as u32);
            let out = bytemuck::cast_slice(values);
            self.link.exchange(out, partner, bytemuck::cast_slice_mut(&mut part), partner)?;
            combine_in_order(values, &mut part, mine & step == 0, combine);
            step *= 2;
        }
        if place < 2 * pairs {
            self.link.send(bytemuck::cast_slice(values), Rank((place ^ 1) as u32))?;
        }
        Ok(())
    }
}

/// Combines own values with a part of others, which come after them or before.
fn combine_in_order<T: Pod>(own: &mut [T], part: &mut [T], own_first: bool, combine: Combine<'_, T>) {
    if own_first {
        combine(own, part);
    } else {
        combine(part, own);
        own.copy_from_slice(part);
    }
}
