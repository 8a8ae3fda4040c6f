//! Gathers: up a tree to the root; to all members by Bruck's algorithm, with several partners a round.
//!
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems" (1997).

use super::communicator::{Communicator, RADIX};
use super::habit::{Given, Kind};
use super::shape::Operation;
use super::tree::Tree;
use crate::message::SHORT_MAX;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};

impl Communicator {
    /// All members' values in their order, on the root; as many from each.
    pub fn gather<T: Pod>(&self, values: &[T], root: Rank) -> Result<Option<Vec<T>>> {
        let call = || format!("gather({} bytes to rank {root})", size_of_val(values));
        let _held = self.begin(&call)?;
        self.check_root(root, &call)?;
        let kind = Kind::of::<T>(Operation::Gather, root.index(), values.len());
        if let Some(mut usual) = self.usual(kind, &call)? {
            if self.rank() != root {
                return usual.walk(Given::read(bytemuck::cast_slice(values)), &call).map(|()| None);
            }
            let mut all = self.around(values);
            usual.walk(Given::moved(bytemuck::cast_slice_mut(&mut all), false), &call)?;
            return Ok(Some(all));
        }
        self.gather_steps(values, root).map_err(|error| self.step_failed(error, &call))
    }

    fn gather_steps<T: Pod>(&self, values: &[T], root: Rank) -> Result<Option<Vec<T>>> {
        let (size, count, tree) = (self.size(), values.len(), Tree { size: self.size() });
        let place = (self.rank().index() + size - root.index()) % size;
        // The values of the members from this one on, as many as its part of the tree has.
        let mut part = vec![T::zeroed(); tree.below(place) * count];
        part[..count].copy_from_slice(values);
        for child in tree.children(place) {
            let into = &mut part[(child - place) * count..][..tree.below(child) * count];
            self.link.recv(bytemuck::cast_slice_mut(into), self.after(root, child))?;
        }
        if let Some(parent) = tree.parent(place) {
            self.link.send(bytemuck::cast_slice(&part), self.after(root, parent))?;
            return Ok(None);
        }
        part.rotate_right(root.index() * count); // the root's own came first
        Ok(Some(part))
    }

    /// All members' values in their order, on all members; as many from each.
    pub fn allgather<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let call = || format!("allgather({} bytes)", size_of_val(values));
        let _held = self.begin(&call)?;
        let kind = Kind::of::<T>(Operation::Allgather, 0, values.len());
        if let Some(mut usual) = self.usual(kind, &call)? {
            let mut all = self.around(values);
            usual.walk(Given::moved(bytemuck::cast_slice_mut(&mut all), false), &call)?;
            return Ok(all);
        }
        self.allgather_steps(values).map_err(|error| self.step_failed(error, &call))
    }

    /// Room for everybody's values, with the own ones in their place.
    fn around<T: Pod>(&self, values: &[T]) -> Vec<T> {
        let mut all = vec![T::zeroed(); self.size() * values.len()];
        all[self.rank().index() * values.len()..][..values.len()].copy_from_slice(values);
        all
    }

    pub(super) fn allgather_steps<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let (size, count) = (self.size(), values.len());
        let mut all = vec![T::zeroed(); size * count]; // of this member and those after it
        all[..count].copy_from_slice(values);
        let mut step = 1;
        while step < size {
            self.swap_parts(&mut all, step, count)?;
            step *= RADIX;
        }
        all.rotate_right(self.rank().index() * count);
        Ok(all)
    }

    /// A round: gives what it has of `step` members to the members 1 to 7 steps before it, and gets as much of those
    /// after it. Long parts go one at a time.
    fn swap_parts<T: Pod>(&self, all: &mut [T], step: usize, count: usize) -> Result<()> {
        let (size, me) = (self.size(), self.rank());
        let (have, into) = all.split_at_mut(step * count);
        let have: &[u8] = bytemuck::cast_slice(have);
        let bytes = count * size_of::<T>();
        let part = |at: usize| step.min(size - at) * bytes;
        let mut into: &mut [u8] = bytemuck::cast_slice_mut(into);
        if part(step) > SHORT_MAX {
            for at in self.partners(step) {
                let (here, rest) = into.split_at_mut(part(at));
                self.link.exchange(&have[..part(at)], self.after(me, size - at), here, self.after(me, at))?;
                into = rest;
            }
            return Ok(());
        }
        for at in self.partners(step) {
            self.link.expect(self.after(me, at))?;
            self.link.send(&have[..part(at)], self.after(me, size - at))?;
        }
        for at in self.partners(step) {
            let (here, rest) = into.split_at_mut(part(at));
            self.link.recv(here, self.after(me, at))?;
            into = rest;
        }
        Ok(())
    }
}
