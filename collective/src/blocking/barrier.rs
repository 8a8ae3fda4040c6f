//! Barrier by dissemination: in each round a member sends to up to seven members and receives from up to seven, at
//! distances that grow by a factor of eight. After ceil(log8 P) rounds each member knows that all have arrived.
//!
//! Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988); with several partners a
//! round: Hoefler, Mehlan, Mietke, Rehm, "Fast barrier synchronization for InfiniBand" (2006).

use crate::cached::schedule_cache::CallKind;
use crate::communicator::{Communicator, RADIX};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::executor::CallBuffers;
use tasuki_schedule::shape::CollectiveKind;

impl Communicator {
    /// Returns when all members have called it. What any member wrote before is visible to all members afterwards.
    pub fn barrier(&self) -> Result<()> {
        let kind = CallKind::of::<u8>(CollectiveKind::Barrier, Rank(0), 0);
        let call = || self.call(&kind);
        self.begin(Some(&kind), &call)?.run(|| {
            self.worker().settle(&call)?; // unfinished puts could arrive after the notification
            if self.try_cached(&kind, CallBuffers::nothing(), &call)? {
                return Ok(());
            }
            if let Some(turn) = self.fabric_collectives(&call)? {
                return turn.barrier();
            }
            let mut step = 1;
            while step < self.size() {
                self.notify_and_wait(step).map_err(|error| self.step_failed(error, &call))?;
                step *= RADIX;
            }
            Ok(())
        })
    }

    /// Runs one round, with the members at 1 to 7 times `step` places.
    fn notify_and_wait(&self, step: usize) -> Result<()> {
        for steps in self.partners(step) {
            let before = self.after(self.rank(), self.size() - steps);
            self.channel.expect(before)?;
            self.channel.send(&[], self.after(self.rank(), steps))?;
        }
        let of = |steps| self.after(self.rank(), self.size() - steps);
        let bit = |steps| 1_u32 << (steps / step);
        let is_near = |&steps: &usize| self.channel.shares_processor(of(steps));
        let near = self.partners(step).filter(is_near).fold(0, |near, steps| near | bit(steps));
        // Receive first from members that share this processor: spinning for the others would keep them from running.
        for first in [true, false] {
            let mut partners = self.partners(step).filter(|&steps| (near & bit(steps) != 0) == first);
            partners.try_for_each(|steps| self.channel.recv(&mut [], of(steps)))?;
        }
        Ok(())
    }
}
