//! The spool of a rank, as its program sees it.

use super::context::Context;
use super::operation::Operation;
use super::pump::Pump;
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::Rank;
use tasuki_core::base::Result;
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Machine};

impl Context {
    /// Lets sends whose receive has not been posted after so long copy their message and return; never, if that is
    /// none. `capacity`: bytes of all such messages. Waits until the spool is empty. If what remains in it is for ranks
    /// that have left, that is given up, with an error.
    pub fn set_spool(&self, capacity: u64, after: Option<Duration>) -> Result<()> {
        let empty = Arc::new(Emptied { machine: self.machine.clone(), pump: self.pump.clone() });
        let call = || "set_spool: waiting until it is empty".to_string();
        loop {
            let left = self.pump.first_spooled();
            if left.is_empty() {
                break;
            }
            if left.iter().all(|message| message.is_vain(&self.machine)) {
                return Err(self.pump.give_up(&self.machine, &self.pump.spooled(), call));
            }
            let condition = Condition::Event(empty.clone());
            self.machine.wait(&condition, None, &call)?;
            self.machine.progress();
        }
        self.pump.spool.set(capacity, after);
        Ok(())
    }

    /// Sends what is in the spool and whose receive is posted now: how many messages went, and how many remain.
    pub fn check_spool(&self) -> Result<(usize, usize)> {
        self.machine.check().map_err(|cause| self.machine.fault(cause, || "check_spool".into()))?;
        let before = self.pump.spooled().len();
        self.machine.progress();
        self.pump.advance_all(&self.machine);
        let after = self.pump.spooled().len();
        Ok((before.saturating_sub(after), after))
    }

    /// Bytes in the spool.
    pub fn spool_bytes(&self) -> u64 {
        self.pump.spool.used()
    }
}

/// That the spool is empty, or something in it can go.
#[derive(Debug)]
struct Emptied {
    machine: Arc<Machine>,
    pump: Arc<Pump>,
}

impl Event for Emptied {
    fn happened(&self) -> bool {
        use tasuki_core::engine::Agent;
        let is_vain = |message: &Arc<Operation>| message.is_vain(&self.machine);
        self.pump.has_work() || self.pump.first_spooled().iter().all(is_vain)
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        None
    }
}
