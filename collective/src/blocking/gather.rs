//! Gather up a tree to the root; allgather by Bruck's algorithm, with several partners a round.
//!
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems" (1997).

use crate::blocking::channel::ONE_LINE_MAX;
use crate::blocking::knomial_tree::KnomialTree;
use crate::cached::schedule_cache::CallKind;
use crate::communicator::{Communicator, RADIX};
use bytemuck::Pod;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::executor::CallBuffers;

use tasuki_schedule::shape::CollectiveKind;

/// From this many bytes of a member's values on, copying them once more takes longer than a message to each member.
const STRAIGHT_MIN: usize = 4 << 10;

impl Communicator {
    /// Gathers the values of all members on this member, the root, into `all` in the order of members. All members
    /// give equal numbers of values.
    pub fn gather_here<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        let root = self.rank();
        let kind = CallKind::of::<T>(CollectiveKind::Gather, root, values.len());
        let call = || self.call(&kind);
        self.check_room(all.len(), values.len(), &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            self.place_own(values, all);
            if self.try_cached(&kind, CallBuffers::moved(bytemuck::cast_slice_mut(all), false), &call)? {
                return Ok(());
            }
            let gathered = self.gather_steps(values, root).map_err(|error| self.step_failed(error, &call))?;
            gathered.iter().for_each(|gathered| all.copy_from_slice(gathered));
            Ok(())
        })
    }

    /// Sends this member's `values` to another member, the root.
    pub fn gather_to<T: Pod>(&self, values: &[T], root: Rank) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Gather, root, values.len());
        let call = || self.call(&kind);
        self.check_root(root, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached(&kind, CallBuffers::read(bytemuck::cast_slice(values)), &call)? {
                return Ok(());
            }
            self.gather_steps(values, root).map_err(|error| self.step_failed(error, &call)).map(drop)
        })
    }

    /// Returns an error unless `room` is `count` values for each member.
    pub(crate) fn check_room(&self, room: usize, count: usize, call: &dyn Fn() -> String) -> Result<()> {
        let wanted = self.size() * count;
        if room == wanted {
            return Ok(());
        }
        let size = self.size();
        let text = format!("{count} values for each of {size} members are {wanted}, not {room}");
        Err(self.worker().fault(Cause::Argument(text), call))
    }

    pub(crate) fn place_own<T: Pod>(&self, values: &[T], all: &mut [T]) {
        all[self.rank().index() * values.len()..][..values.len()].copy_from_slice(values);
    }

    fn gather_steps<T: Pod>(&self, values: &[T], root: Rank) -> Result<Option<Vec<T>>> {
        let (size, count, tree) = (self.size(), values.len(), KnomialTree { size: self.size() });
        let place = (self.rank().index() + size - root.index()) % size;
        // The values of the members in this place's subtree, this member's first.
        let mut part = vec![T::zeroed(); tree.below(place) * count];
        part[..count].copy_from_slice(values);
        for child in tree.children(place) {
            let into = &mut part[(child - place) * count..][..tree.below(child) * count];
            self.channel.recv(bytemuck::cast_slice_mut(into), self.after(root, child))?;
        }
        if let Some(parent) = tree.parent(place) {
            self.channel.send(bytemuck::cast_slice(&part), self.after(root, parent))?;
            return Ok(None);
        }
        part.rotate_right(root.index() * count); // the root's values came first
        Ok(Some(part))
    }

    /// Gathers the values of all members on all members, into `all` in the order of members. All members give equal
    /// numbers of values.
    pub fn allgather<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Allgather, Rank(0), values.len());
        let call = || self.call(&kind);
        self.check_room(all.len(), values.len(), &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            self.place_own(values, all);
            if self.try_cached(&kind, CallBuffers::moved(bytemuck::cast_slice_mut(all), false), &call)? {
                return Ok(());
            }
            self.allgather_by_messages(values, all).map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Like [`allgather`](Self::allgather) by messages, inside a call that has already begun.
    pub(crate) fn allgather_steps<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); self.size() * values.len()];
        self.allgather_by_messages(values, &mut all)?;
        Ok(all)
    }

    fn allgather_by_messages<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        let (size, count) = (self.size(), values.len());
        let is_one_round = size <= RADIX && size_of_val(values) > ONE_LINE_MAX;
        if is_one_round || size_of_val(values) >= STRAIGHT_MIN {
            let values = bytemuck::cast_slice(values);
            return self.exchange_with_each(|_| values, bytemuck::cast_slice_mut(all));
        }
        all[..count].copy_from_slice(values); // in the order of members from this one on; rotated below
        let mut step = 1;
        while step < size {
            self.swap_parts(all, step, count)?;
            step *= RADIX;
        }
        all.rotate_right(self.rank().index() * count);
        Ok(())
    }

    /// Runs a round: sends the values of `step` members to the members at 1 to 7 times `step` places before this one,
    /// and receives as many from the members after it. Long parts go one at a time.
    fn swap_parts<T: Pod>(&self, all: &mut [T], step: usize, count: usize) -> Result<()> {
        let (size, me) = (self.size(), self.rank());
        let (have, into) = all.split_at_mut(step * count);
        let have: &[u8] = bytemuck::cast_slice(have);
        let bytes = count * size_of::<T>();
        let part = |at: usize| step.min(size - at) * bytes;
        let mut into: &mut [u8] = bytemuck::cast_slice_mut(into);
        if part(step) > ONE_LINE_MAX {
            for at in self.partners(step) {
                let (here, rest) = into.split_at_mut(part(at));
                self.channel.exchange(
                    &have[..part(at)],
                    self.after(me, size - at),
                    here,
                    self.after(me, at),
                )?;
                into = rest;
            }
            return Ok(());
        }
        for at in self.partners(step) {
            self.channel.expect(self.after(me, at))?;
            self.channel.send(&have[..part(at)], self.after(me, size - at))?;
        }
        for at in self.partners(step) {
            let (here, rest) = into.split_at_mut(part(at));
            self.channel.recv(here, self.after(me, at))?;
            into = rest;
        }
        Ok(())
    }
}
