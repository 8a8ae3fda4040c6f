//! The spool of a rank, as its program sees it.

use super::context::Context;
use super::pump::Pump;
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::Rank;
use tasuki_core::base::Result;
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event};

impl Context {
    /// Lets sends whose receive has not been posted after so long copy their message and return; never, if that is
    /// none. `capacity`: bytes of all such messages. Waits until the spool is empty.
    pub fn set_spool(&self, capacity: u64, after: Option<Duration>) -> Result<()> {
        let empty = Arc::new(Emptied { pump: self.pump.clone() });
        while self.pump.spooled() > 0 {
            let condition = Condition::Event(empty.clone());
            self.machine.wait(&condition, None, &|| "set_spool: waiting until it is empty".to_string())?;
            self.machine.progress();
        }
        self.pump.spool.set(capacity, after);
        Ok(())
    }

    /// Sends what is in the spool and whose receive is posted now: how many messages went, and how many remain.
    pub fn check_spool(&self) -> Result<(usize, usize)> {
        self.machine.check().map_err(|cause| self.machine.fault(cause, || "check_spool".into()))?;
        let before = self.pump.spooled();
        self.machine.progress();
        self.pump.advance_all(&self.machine);
        let after = self.pump.spooled();
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
    pump: Arc<Pump>,
}

impl Event for Emptied {
    fn happened(&self) -> bool {
        use tasuki_core::engine::Agent;
        self.pump.has_work() || self.pump.spooled() == 0
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        None
    }
}
