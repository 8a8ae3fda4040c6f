//! Who waits for a start of a plan finds out that a member has left without it.
//!
//! Programs wait for signals, whoever raises them, and a member that leaves stays until all have left that have plans
//! with it. So others would wait for ever for one that leaves without having started what they have started, and it for
//! them. Each member says, when it leaves, in a line of the one after it how many starts it has made, of all plans
//! together; and again, if it has not come through some. Who waits long for a start looks at the lines of all members,
//! or where they are out of reach at its own: if it has made more starts it waits in vain, ends its wait with an error,
//! leaves in turn, and says so to the one after it.
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
    /// Starts of those that are there, without those that it cannot come through.
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
    /// Lines in reach, the own one among them, and who writes them.
    heard: Box<[(SignalCell, Rank)]>,
}

impl Starts {
    /// Of a member that writes the line at `next`, and has those in reach. Nobody has written them yet.
    pub(super) fn new(
        machine: &Machine,
        plans: &Plans,
        heard: Box<[(SignalCell, Rank)]>,
        next: GlobalAddress,
    ) -> Starts {
        let fabric = machine.shared_fabric().clone();
        Starts { plans: Arc::downgrade(plans), next: Outgoing::new(next, 0), heard, fabric }
    }

    /// This member leaves, and cannot come through so many of the starts that it has made.
    pub(super) fn say(&self, machine: &Machine, failed: u64) -> Result<()> {
        let Some(ours) = self.ours() else { return Ok(()) };
        let notice = Notice { starts: ours.starts - failed.min(ours.starts), ..ours };
        while !self.next.write(&*self.fabric, &notice) {
            machine.relax("leave()")?;
        }
        Ok(())
    }

    fn read(&self, line: &SignalCell) -> Option<Notice> {
        let count = line.read(&*self.fabric);
        if count == 0 { None } else { line.read_payload(&*self.fabric, count) }
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
        let ours = self.ours()?;
        let is_short = |theirs: Notice| theirs.plans == ours.plans && theirs.starts < ours.starts;
        let (_, peer) = self.heard.iter().find(|(line, _)| self.read(line).is_some_and(is_short))?;
        Some(Cause::PeerLeft { peer: *peer })
    }

    fn is_urgent(&self) -> bool {
        true // the other may have left before the wait
    }
}
