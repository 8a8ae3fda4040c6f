//! Scan and exscan (prefix reductions) by doubling: before round k a member has combined its own values with those of
//! the 2^k - 1 members before it, and in the round it receives the combined values of 2^k more.
//!
//! Source: Hillis, Steele, "Data parallel algorithms" (1986).

use crate::blocking::reduce::{CombinerRef, combine_in_order};
use crate::cached::schedule_cache::CallKind;
use crate::communicator::Communicator;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};
use tasuki_schedule::shape::CollectiveKind;

impl Communicator {
    /// Combines the values of the members up to and including this one, in their order. `values` become the result.
    pub fn scan<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Scan, Rank(0), values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, combine, &call)? {
                return Ok(());
            }
            self.double_from(0, values, combine).map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Combines the values of the members before this one. `values` become the result; those of the first member
    /// stay.
    pub fn exscan<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Exscan, Rank(0), values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, combine, &call)? {
                return Ok(());
            }
            // Shift all values by one member, then scan the shifted values from the second member on.
            let shifted = self.hand_on(values, 1, 0).and_then(|before| {
                before.iter().for_each(|before| values.copy_from_slice(before));
                self.double_from(1, values, combine)
            });
            shifted.map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Scans over the members from place `first` on.
    fn double_from<T: Pod>(&self, first: usize, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let mut step = 1;
        while first + step < self.size() && self.rank().index() >= first {
            if let Some(mut before) = self.hand_on(values, step, first)? {
                combine_in_order(values, &mut before, false, combine);
            }
            step *= 2;
        }
        Ok(())
    }

    /// Sends values to the member `steps` places after this one, and receives those of the member `steps` places
    /// before it. Members before `first` and past the end do not take part.
    fn hand_on<T: Pod>(&self, values: &[T], steps: usize, first: usize) -> Result<Option<Vec<T>>> {
        let place = self.rank().index();
        let to = Some(place + steps).filter(|&to| to < self.size()).map(|to| Rank(to as u32));
        let from = place.checked_sub(steps).filter(|&from| from >= first).map(|from| Rank(from as u32));
        let mut got = vec![T::zeroed(); if from.is_some() { values.len() } else { 0 }];
        let (out, into) = (bytemuck::cast_slice(values), bytemuck::cast_slice_mut(&mut got));
        match (to, from) {
            (Some(to), Some(from)) => self.channel.exchange(out, to, into, from)?,
            (Some(to), None) => self.channel.send(out, to)?,
            (None, Some(from)) => self.channel.recv(into, from)?,
            (None, None) => {}
        }
        Ok(from.map(|_| got))
    }
}
