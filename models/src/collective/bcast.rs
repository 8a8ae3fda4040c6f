//! Broadcast along a binomial tree: in each round everybody who has the values gives them to one who has not.

use super::communicator::Communicator;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};

impl Communicator {
    /// The root's values become everybody's.
    pub fn bcast<T: Pod>(&self, values: &mut [T], root: Rank) -> Result<()> {
        let call = || format!("bcast({} bytes from rank {root})", size_of_val(values));
        let _held = self.begin(&call)?;
        self.check_root(root, &call)?;
        let call = format!("bcast({} bytes from rank {root})", size_of_val(values));
        self.bcast_steps(bytemuck::cast_slice_mut(values), root)
            .map_err(|error| self.step_failed(error, &|| call.clone()))
    }

    pub(super) fn bcast_steps(&self, bytes: &mut [u8], root: Rank) -> Result<()> {
        let size = self.size();
        let place = (self.rank().index() + size - root.index()) % size;
        // The round in which this member is told: that of its lowest bit. It tells in all rounds before that one.
        let told = if place == 0 { size.next_power_of_two() } else { 1 << place.trailing_zeros() };
        if place > 0 {
            self.link.recv(bytes, self.after(root, place - told))?;
        }
        let mut step = told / 2;
        while step > 0 {
            if place + step < size {
                self.link.send(bytes, self.after(root, place + step))?;
            }
            step /= 2;
        }
        Ok(())
    }
}
