//! Ends the wait for a start of a plan when a member has left without making that start, or makes it with another tag.
//!
//! A queue of a plan waits for a signal without knowing which member raises it. And a member that leaves stays until
//! all members that have plans with it leave. So if a member left after fewer starts than others, they and the member
//! would wait for ever. Therefore a member that leaves publishes the number of starts of each plan: it raises a signal
//! of the plan at the next member. It raises the signal once more if its last start could not complete.
//!
//! A member that has waited long for a start reads these signals of all members, or only its own signal if it does not
//! reach the others. If a member that has left made fewer starts, the wait cannot complete and ends with an error. The
//! member that waited then leaves in turn, and publishes its own number to the next member.
//!
//! The cost is one raise for each existing plan when a member leaves.
//!
//! *Tags.* The commands of a queue carry no tags, unlike the steps of an execution. So where members read each other's
//! words, a member stores the tags of its last starts beside the signal that it raises when it leaves. A member compares
//! them with those of the others when a start has ended, and in long waits. Only starts of chunked plans have tags, for
//! the number of values that the program has passed. What a member stores before a start is visible to all that receive
//! anything in that start. The cost is one store and a load for each member in each such start.

use crate::failure::monitor::{FailureMonitor, MonitorProbe};
use crate::group::Group;
use crate::plan::setup::layout::PlanAddress;
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{WaitProbe, Worker};
use tasuki_core::fabric::{DirectCell, Fabric, SignalCell, SignalLine};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;
use tasuki_schedule::selection::MEMBERS_MAX;

/// What one member publishes about its starts of a plan, and reads about those of others.
#[derive(Debug)]
pub(crate) struct DepartedMembers {
    monitor: MonitorProbe,
    /// Number of starts that it has made.
    made: Arc<AtomicU64>,
    fabric: Arc<dyn Fabric>,
    /// The signal at the next member that this member raises to publish.
    next: GlobalAddress,
    /// The line of that signal, where this member stores its tags. None: members do not read each other's words.
    tags: Option<DirectCell>,
    /// The signals that this member can read, its own included.
    signals: Box<[DepartureSignal]>,
}

/// A signal by which a member publishes its number of starts.
#[derive(Debug)]
struct DepartureSignal {
    cell: SignalCell,
    /// Its initial counter.
    initial: u64,
    by: Rank,
}

impl DepartureSignal {
    /// Returns the number of starts that the member has completed. None: it has not left and may make more.
    fn starts(&self, fabric: &dyn Fabric) -> Option<u64> {
        published_starts(self.cell.read(fabric).wrapping_sub(self.initial))
    }
}

/// Returns the amount that a member adds to the signal when it leaves after `starts` starts. It adds one more if its
/// last start cannot complete.
fn raised_by(starts: u64) -> u64 {
    2 * (starts + 1)
}

/// Returns the number of complete starts, given the amount that was added to the signal. None if nothing was
/// published.
fn published_starts(raised: u64) -> Option<u64> {
    (raised / 2).checked_sub(1).map(|starts| starts.saturating_sub(raised % 2))
}

impl DepartedMembers {
    /// Makes the record for a plan whose addresses all members have. No member has left, because all make the plan.
    pub(crate) fn new(
        group: &Group,
        monitor: &Arc<FailureMonitor>,
        made: Arc<AtomicU64>,
        address_of: impl Fn(Rank) -> PlanAddress,
    ) -> Result<DepartedMembers, Cause> {
        let (worker, me, size) = (group.worker(), group.place(), group.size());
        let fabric = worker.shared_fabric().clone();
        let place = |member: Rank| {
            Ok(GlobalAddress::new(group.rank_of(member)?, signal_offset(address_of(member).starts)))
        };
        let signals = |member: Rank, cell: SignalCell| {
            Ok(DepartureSignal {
                initial: cell.read(&*fabric),
                cell,
                by: group.rank_of(group.after(member, size - 1))?,
            })
        };
        let mut all = vec![signals(me, fabric.own_signal(address_of(me).starts)?)?];
        if let SignalCell::Direct(own) = &all[0].cell {
            own.clear_tags(); // of an earlier plan; no member stores tags before all members have the plan
        }
        let are_in_reach = size <= MEMBERS_MAX && worker.reaches_words();
        for member in Rank::all(size).filter(|&member| are_in_reach && member != me) {
            if let SignalLine::Direct(line) = fabric.line(place(member)?)? {
                all.push(signals(member, SignalCell::Direct(line.cell()))?);
            }
        }
        let monitor = MonitorProbe { monitor: Arc::downgrade(monitor), reads_words: are_in_reach };
        let next = place(group.after(me, 1))?;
        let tags = match fabric.line(next)? {
            SignalLine::Direct(line) if are_in_reach => Some(line.cell()),
            _ => None,
        };
        Ok(DepartedMembers { monitor, made, next, tags, signals: all.into(), fabric })
    }

    /// Stores the tag of the next start.
    pub(crate) fn store_tag(&self, tag: u32) {
        let next = self.made.load(Ordering::Relaxed) as u32 + 1;
        self.tags.iter().for_each(|line| line.store_tag(next, tag));
    }

    /// Returns an error if a member has made one of the last starts with another tag than this one.
    pub(crate) fn find_other_tag(&self) -> Option<Cause> {
        let own = self.tags.as_ref()?.tags();
        let is_other = |signals: &&DepartureSignal| match &signals.cell {
            SignalCell::Direct(cell) => own.differ_from(cell.tags()),
            SignalCell::Via(_) => false,
        };
        let DepartureSignal { by, .. } = self.signals.iter().find(is_other)?;
        let text = format!(
            "rank {by} has passed another number of values to this chunked plan than this rank: members pass the same \
             number of values for each block"
        );
        Some(Cause::mismatch(None, text))
    }

    /// Publishes that this member leaves after `starts` starts.
    pub(crate) fn publish(&self, worker: &Worker, starts: u64) -> Result<()> {
        worker.raise(self.next, raised_by(starts))
    }

    /// Publishes, after [`publish`](Self::publish), that this member cannot complete its last start.
    pub(crate) fn publish_one_less(&self, worker: &Worker) -> Result<()> {
        worker.raise(self.next, 1)
    }
}

impl WaitProbe for DepartedMembers {
    fn failure(&self, about: u32) -> Option<Cause> {
        self.monitor.failure(about)
    }

    fn probe_error(&self, about: u32) -> Option<Cause> {
        if let Some(cause) = self.monitor.probe_error(about).or_else(|| self.find_other_tag()) {
            return Some(cause);
        }
        let made = self.made.load(Ordering::Relaxed);
        let is_short =
            |signals: &&DepartureSignal| signals.starts(&*self.fabric).is_some_and(|starts| starts < made);
        self.signals.iter().find(is_short).map(|signals| Cause::PeerLeft { peer: signals.by })
    }

    fn wait_ended(&self) {
        self.monitor.wait_ended();
    }

    fn is_urgent(&self) -> bool {
        true // the other member may have left before the wait began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_starts_are_decoded() {
        assert_eq!(published_starts(0), None, "nothing was published");
        for starts in [0, 1, 7] {
            assert_eq!(published_starts(raised_by(starts)), Some(starts));
            assert_eq!(published_starts(raised_by(starts) + 1), Some(starts.saturating_sub(1)));
        }
    }
}
