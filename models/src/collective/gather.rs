//! Gathers: up a binomial tree to the root; to all members by Bruck's algorithm.
//!
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems" (1997).

use super::communicator::Communicator;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};

impl Communicator {
    /// All members' values in their order, on the root; as many from each.
    pub fn gather<T: Pod>(&self, values: &[T], root: Rank) -> Result<Option<Vec<T>>> {
        let call = format!("gather({} bytes to rank {root})", size_of_val(values));
        let _held = self.begin(&|| call.clone())?;
        self.check_root(root, &|| call.clone())?;
        self.gather_steps(values, root).map_err(|error| self.step_failed(error, &|| call.clone()))
    }

    fn gather_steps<T: Pod>(&self, values: &[T], root: Rank) -> Result<Option<Vec<T>>> {
        let (size, count) = (self.size(), values.len());
        let place = (self.rank().index() + size - root.index()) % size;
        // The values of the members from this one on, as many as its part of the tree has.
        let mut part = values.to_vec();
        let mut step = 1;
        while step < size {
            if place & step != 0 {
                self.link.send(bytemuck::cast_slice(&part), self.after(root, place - step))?;
                return Ok(None);
            }
            if place + step < size {
                let (have, more) = (part.len(), step.min(size - place - step) * count);
                part.resize(have + more, T::zeroed());
                let into = bytemuck::cast_slice_mut(&mut part[have..]);
                self.link.recv(into, self.after(root, place + step))?;
            }
            step *= 2;
        }
        part.rotate_right(root.index() * count); // the root's own came first
        Ok(Some(part))
    }

    /// All members' values in their order, on all members; as many from each.
    pub fn allgather<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let call = || format!("allgather({} bytes)", size_of_val(values));
        let _held = self.begin(&call)?;
        self.allgather_steps(values).map_err(|error| self.step_failed(error, &call))
    }

    fn allgather_steps<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let (size, count) = (self.size(), values.len());
        let mut all = values.to_vec(); // of this member and those after it
        all.reserve_exact(count * (size - 1));
        let mut step = 1;
        while step < size {
            let (have, more) = (all.len(), step.min(size - step) * count);
            all.resize(have + more, T::zeroed());
            let (out, into) = all.split_at_mut(have);
            let (to, from) = (self.after(self.rank(), size - step), self.after(self.rank(), step));
            let (out, into) = (bytemuck::cast_slice(&out[..more]), bytemuck::cast_slice_mut(into));
            self.link.exchange(out, to, into, from)?;
            step *= 2;
        }
        all.rotate_right(self.rank().index() * count);
        Ok(all)
    }
}
