//! Broadcast by messages along a k-nomial tree.

use crate::blocking::knomial_tree::KnomialTree;
use crate::cached::schedule_cache::CallKind;
use crate::communicator::Communicator;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::executor::CallBuffers;
use tasuki_schedule::shape::CollectiveKind;

impl Communicator {
    /// Copies the root's `values` to all members.
    pub fn bcast<T: Pod>(&self, values: &mut [T], root: Rank) -> Result<()> {
        let bytes = size_of_val(values);
        let kind = CallKind::of::<T>(CollectiveKind::Bcast, root, values.len());
        let call = || self.call(&kind);
        self.check_root(root, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            let lent = CallBuffers::moved(bytemuck::cast_slice_mut(values), self.rank() == root);
            if self.try_cached(&kind, lent, &call)? {
                return Ok(());
            }
            if let Some(turn) = self.fabric_collectives(&call)?
                && turn.takes(bytes)
            {
                return turn.bcast(bytemuck::cast_slice_mut(values), root);
            }
            self.bcast_steps(bytemuck::cast_slice_mut(values), root)
                .map_err(|error| self.step_failed(error, &call))
        })
    }

    pub(crate) fn bcast_steps(&self, bytes: &mut [u8], root: Rank) -> Result<()> {
        let tree = KnomialTree { size: self.size() };
        let place = (self.rank().index() + self.size() - root.index()) % self.size();
        if let Some(parent) = tree.parent(place) {
            self.channel.recv(bytes, self.after(root, parent))?;
        }
        // Send to the child with the largest subtree first: it takes longest.
        tree.children(place).rev().try_for_each(|child| self.channel.send(bytes, self.after(root, child)))
    }
}
