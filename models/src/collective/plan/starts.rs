//! Who waits for a start of a plan finds out that a member has left without it.
//!
//! Programs wait for signals, whoever raises them, and a member that leaves stays until all have left that have plans
//! with it. So others would wait for ever for one that leaves without having started what they have started, and it for
//! them. Each member says, when it leaves, to the one after it how many starts it has come through, of all plans
//! together. Who waits long for a start, and has made more starts than the member before it, waits in vain: it ends its
//! wait with an error, leaves in turn, and says so to the one after it.
//!
//! Costs one line written for each member that leaves.

use super::Plans;
use super::quarantine::Quarantine;
use crate::collective::outgoing::Outgoing;
use bytemuck::{Pod, Zeroable};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{Machine, Watch};
use tasuki_core::fabric::{Fabric, SignalCell};
use tasuki_core::segment::GlobalAddress;

/// What a member says when it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct Notice {
    /// How many plans were made.
    plans: u64,
    /// Starts of those that are there, which it has come through.
    starts: u64,
}

/// What one member says of its starts, and hears of those of the member before it.
#[derive(Debug)]
pub(super) struct Starts {
    /// Not kept alive: they have the machine, which has the watches.
    plans: Weak<Mutex<Quarantine>>,
    fabric: Arc<dyn Fabric>,
    /// The line of the next member.
    next: Outgoing,
    /// The own line, and who writes it.
    heard: SignalCell,
    by: Rank,
}

impl Starts {
    /// Of a member whose line is signal `own`, written by rank `by`, and that writes the one at `next`. Nobody has
    /// written them yet.
    pub(super) fn new(
        machine: &Machine,
        plans: &Plans,
        (own, by): (u32, Rank),
        next: GlobalAddress,
    ) -> Result<Starts, Cause> {
        let fabric = machine.shared_fabric().clone();
        let heard = fabric.own_signal(own)?;
        Ok(Starts { plans: Arc::downgrade(plans), next: Outgoing::new(next, 0), heard, by, fabric })
    }

    /// This member leaves: it has come through all that it has started, but for so many starts.
    pub(super) fn say(&self, machine: &Machine, failed: u64) -> Result<()> {
        let Some(ours) = self.ours() else { return Ok(()) };
        let notice = Notice { starts: ours.starts - failed.min(ours.starts), ..ours };
        while !self.next.write(&*self.fabric, &notice) {
            machine.relax("leave()")?;
        }
        Ok(())
    }

    /// None: the plans are gone with their communicator.
    fn ours(&self) -> Option<Notice> {
        let plans = self.plans.upgrade()?;
        let (plans, starts) = plans.lock().unwrap_or_else(PoisonError::into_inner).starts();
        Some(Notice { plans, starts })
    }
}

impl Watch for Starts {
    fn complaint(&self) -> Option<Cause> {
        if self.heard.read(&*self.fabric) == 0 {
            return None;
        }
        let (theirs, ours): (Notice, _) = (self.heard.read_payload(&*self.fabric, 1)?, self.ours()?);
        let is_short = theirs.plans == ours.plans && theirs.starts < ours.starts;
        is_short.then_some(Cause::PeerLeft { peer: self.by })
    }

    fn is_urgent(&self) -> bool {
        true // the other may have left before the wait
    }
}
