//! A barrier: in a round each member tells several others and hears of as many, ever further away; after
//! ceil(log8 P) rounds each has heard of all.
//!
//! Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988); with several partners a round:
//! Hoefler, Mehlan, Mietke, Rehm, "Fast barrier synchronization for InfiniBand" (2006).

use super::communicator::{Communicator, RADIX};
use super::habit::Kind;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::walk::Lent;
use tasuki_schedule::shape::Operation;

impl Communicator {
    /// Returns when all members have called it; what any did before is visible to all after.
    pub fn barrier(&self) -> Result<()> {
        let call = || "barrier()".to_string();
        let kind = Kind::of::<u8>(Operation::Barrier, Rank(0), 0);
        let _held = self.begin(Some(&kind), &call)?;
        self.machine().settle(&call)?; // what was sent before may arrive later than what says that it was
        if self.walks(&kind, Lent::nothing(), &call)? {
            return Ok(());
        }
        if let Some(turn) = self.offered(&kind, &call)? {
            return turn.barrier();
        }
        let mut step = 1;
        while step < self.size() {
            self.tell_and_hear(step).map_err(|error| self.step_failed(error, &call))?;
            step *= RADIX;
        }
        Ok(())
    }

    /// One round, with the members 1 to 7 steps away.
    fn tell_and_hear(&self, step: usize) -> Result<()> {
        for steps in self.partners(step) {
            let before = self.after(self.rank(), self.size() - steps);
            self.link.expect(before)?;
            self.link.send(&[], self.after(self.rank(), steps))?;
        }
        let of = |steps| self.after(self.rank(), self.size() - steps);
        let bit = |steps| 1_u32 << (steps / step);
        let is_near = |&steps: &usize| self.link.shares_processor(of(steps));
        let near = self.partners(step).filter(is_near).fold(0, |near, steps| near | bit(steps));
        // Those first that need this very processor: to look for the others meanwhile would keep it from them.
        for first in [true, false] {
            let mut partners = self.partners(step).filter(|&steps| (near & bit(steps) != 0) == first);
            partners.try_for_each(|steps| self.link.recv(&mut [], of(steps)))?;
        }
        Ok(())
    }
}
