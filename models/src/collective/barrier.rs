//! A barrier: in round k each member tells the one 2^k further on, and hears of the one 2^k before.
//!
//! Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988).

use super::communicator::Communicator;
use tasuki_core::base::Result;

impl Communicator {
    /// Returns when all members have called it; what any did before is visible to all after.
    pub fn barrier(&self) -> Result<()> {
        let call = || "barrier()".to_string();
        let _held = self.begin(&call)?;
        self.machine().settle(&call)?; // what was sent before may arrive later than what says that it was
        let mut step = 1;
        while step < self.size() {
            let (next, before) = (self.after(self.rank(), step), self.after(self.rank(), self.size() - step));
            let told = self.link.exchange(&[], next, &mut [], before);
            told.map_err(|error| self.step_failed(error, &call))?;
            step *= 2;
        }
        Ok(())
    }
}
