//! Broadcast along a tree.

use super::communicator::Communicator;
use super::habit::Kind;
use super::tree::Tree;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::walk::Lent;
use tasuki_schedule::shape::Operation;

impl Communicator {
    /// The root's values become everybody's.
    pub fn bcast<T: Pod>(&self, values: &mut [T], root: Rank) -> Result<()> {
        let bytes = size_of_val(values);
        let call = || format!("bcast({bytes} bytes from rank {root})");
        let kind = Kind::of::<T>(Operation::Bcast, root, values.len());
        self.check_root(root, &call)?;
        let _held = self.begin(Some(&kind), &call)?;
        let lent = Lent::moved(bytemuck::cast_slice_mut(values), self.rank() == root);
        if self.walks(&kind, lent, &call)? {
            return Ok(());
        }
        if let Some(turn) = self.offered(&kind, &call)?
            && turn.takes(bytes)
        {
            return turn.bcast(bytemuck::cast_slice_mut(values), root);
        }
        self.bcast_steps(bytemuck::cast_slice_mut(values), root)
            .map_err(|error| self.step_failed(error, &call))
    }

    pub(super) fn bcast_steps(&self, bytes: &mut [u8], root: Rank) -> Result<()> {
        let tree = Tree { size: self.size() };
        let place = (self.rank().index() + self.size() - root.index()) % self.size();
        if let Some(parent) = tree.parent(place) {
            self.link.recv(bytes, self.after(root, parent))?;
        }
        // The largest parts first: they take longest.
        tree.children(place).rev().try_for_each(|child| self.link.send(bytes, self.after(root, child)))
    }
}
