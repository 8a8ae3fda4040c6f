//! The stages of fuzzy barriers: the partners of a member in each stage, and the signals that count its stages. Members
//! with plans also leave by one instance of such stages.
//!
//! *Departures.* A member that leaves may stay for long, since others need its plans or its messages. So it tells its
//! partners how many fuzzy barriers it has started, by another signal for each stage. A wait for a later one ends with
//! an error when that member is leaving. A member that leaves while it waits for a barrier that will not complete passes
//! that on to its own partners: they wait for what it has started.

use crate::group::Group;
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{WaitEvent, Worker};
use tasuki_core::fabric::reached;
use tasuki_core::fabric::{Fabric, SignalCell};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::queue::command::{Action, Command, Effect, Trigger};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// The first stage with a token. The commands of earlier stages need no token, because one or two triggers suffice.
const FIRST_TOKEN: usize = 2;

/// One stage, as one member sees it.
#[derive(Debug)]
struct DisseminationStage {
    /// The signal that counts the notifications of this member.
    cell: SignalCell,
    /// The rank that notifies this member.
    from: Rank,
    /// The signal that this member raises to notify its partner.
    to: GlobalAddress,
}

/// All stages, as one member sees them. Its signals have consecutive numbers: first one for each stage, then the
/// tokens.
#[derive(Debug)]
pub(crate) struct Dissemination {
    first: u32,
    all: Box<[DisseminationStage]>,
    /// How this member and the one that notifies it in a stage say that they leave, for each stage. Empty: they do not.
    departures: Box<[DepartureSignals]>,
}

/// The signals of one stage by which members say how many instances they have started when they leave.
#[derive(Debug)]
struct DepartureSignals {
    /// The signal of the member that notifies this one.
    cell: SignalCell,
    from: Rank,
    /// The signal that this member raises.
    to: GlobalAddress,
}

/// A departure signal is raised by this much for each instance, and by one for each instance fewer. Among more than two
/// members, none is further ahead of the others than there are [instances under way](crate::fuzzy_barrier::FUZZY_MAX).
const DEPARTURE_STRIDE: u64 = 256;

/// Returns the amount that a member adds to departure signals when it leaves and no instance after `last` will
/// complete.
fn departure(last: u64) -> u64 {
    DEPARTURE_STRIDE * (last + 1)
}

/// Returns the last instance that will complete, given the amount that was added to a departure signal. None: nothing
/// was.
fn last_of_departure(raised: u64) -> Option<u64> {
    let last = (raised / DEPARTURE_STRIDE).checked_sub(1)?;
    Some(last.saturating_sub(raised % DEPARTURE_STRIDE))
}

/// The event that this member was notified of an instance in all stages before `until`.
#[derive(Debug)]
pub(crate) struct DisseminationArrival {
    pub(crate) stages: Arc<Dissemination>,
    pub(crate) fabric: Arc<dyn Fabric>,
    pub(crate) instance: u64,
    pub(crate) until: usize,
}

impl Dissemination {
    /// Returns the number of stages for `members` members.
    pub(crate) fn count(members: usize) -> u32 {
        members.next_power_of_two().trailing_zeros()
    }

    /// Returns the number of signals that `stages` stages need.
    pub(crate) fn signals(stages: u32) -> u32 {
        stages + stages.saturating_sub(FIRST_TOKEN as u32 + 1)
    }

    /// Returns the number of signals that `stages` stages of fuzzy barriers need: departure signals come last.
    pub(crate) fn fuzzy_signals(stages: u32) -> u32 {
        Dissemination::signals(stages) + stages
    }

    /// Returns the number of queue lines for the commands of one instance: one line for a command with one trigger
    /// and one effect, else two.
    pub(crate) fn lines(stages: u32) -> u64 {
        2 * u64::from(stages) - 2
    }

    /// Makes `count` stages whose signals begin at `first`. `neighbours` returns for each stage the signal to raise
    /// and the rank that notifies this member.
    pub(crate) fn new(
        worker: &Worker,
        first: u32,
        count: u32,
        neighbours: impl Fn(u32) -> Result<(GlobalAddress, Rank), Cause>,
    ) -> Result<Dissemination, Cause> {
        let stage = |stage: u32| {
            let (to, from) = neighbours(stage)?;
            Ok(DisseminationStage { cell: worker.fabric().own_signal(first + stage)?, from, to })
        };
        let all = (0..count).map(stage).collect::<Result<_, Cause>>()?;
        Ok(Dissemination { first, all, departures: Box::default() })
    }

    /// Makes the stages of the fuzzy barriers of a group. `first` returns the number of the first signal of each
    /// member.
    pub(crate) fn of_fuzzy_barriers(
        group: &Group,
        first: impl Fn(Rank) -> u32,
    ) -> Result<Dissemination, Cause> {
        let (worker, own, count) = (group.worker(), first(group.place()), Dissemination::count(group.size()));
        let stages = Dissemination::new(worker, own, count, |stage| group.neighbours(stage, &first))?;
        let before = Dissemination::signals(count);
        let departure = |stage: u32| {
            let (to, from) = group.neighbours(stage, |member| first(member) + before)?;
            Ok(DepartureSignals { cell: worker.fabric().own_signal(own + before + stage)?, from, to })
        };
        Ok(Dissemination { departures: (0..count).map(departure).collect::<Result<_, Cause>>()?, ..stages })
    }

    /// Tells the members that this one notifies that it leaves, and that no instance after `last` will complete.
    pub(crate) fn publish_departure(&self, worker: &Worker, last: u64) {
        self.raise_departures(worker, departure(last));
    }

    /// Tells these members, after [`publish_departure`](Self::publish_departure), that `fewer` instances fewer will
    /// complete. Of two members the other one is where this is known from.
    pub(crate) fn publish_fewer(&self, worker: &Worker, fewer: u64) {
        if self.len() > 1 {
            self.raise_departures(worker, fewer);
        }
    }

    fn raise_departures(&self, worker: &Worker, amount: u64) {
        for signals in &self.departures {
            let _ = worker.raise(signals.to, amount); // fails if that member has gone: it waits for nothing
        }
    }

    /// Returns the last instance that will complete, and the member that has said so, if that is before `instance`.
    pub(crate) fn departed_before(&self, fabric: &dyn Fabric, instance: u64) -> Option<(u64, Rank)> {
        let last =
            |signals: &DepartureSignals| Some((last_of_departure(signals.cell.read(fabric))?, signals.from));
        self.departures
            .iter()
            .filter_map(last)
            .filter(|(last, _)| *last < instance)
            .min_by_key(|(last, _)| *last)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns true if this member was notified of `instance` in all stages.
    #[inline]
    pub(crate) fn have_reached(&self, worker: &Worker, instance: u64) -> bool {
        self.missing(worker, instance).is_none()
    }

    /// Returns a rank that has not notified this member of `instance` yet.
    #[inline]
    pub(crate) fn missing(&self, worker: &Worker, instance: u64) -> Option<Rank> {
        self.missing_before(self.len(), worker.fabric(), instance)
    }

    /// Returns a rank that has not notified this member of `instance` in one of the stages before `until`.
    #[inline]
    pub(crate) fn missing_before(&self, until: usize, fabric: &dyn Fabric, instance: u64) -> Option<Rank> {
        let unmet = self.all[..until].iter().find(|stage| !reached(stage.cell.read(fabric), instance));
        unmet.map(|stage| stage.from)
    }

    /// Returns the number of a stage's token, if it has one. The last stage needs none, because nothing follows it.
    fn token(&self, stage: usize) -> Option<u32> {
        let has_token = stage >= FIRST_TOKEN && stage + 1 < self.len();
        has_token.then(|| self.first + (self.len() + stage - FIRST_TOKEN) as u32)
    }

    /// Notifies the partner of one stage.
    pub(crate) fn notify_partner(&self, worker: &Worker, stage: usize) -> Result<()> {
        worker.raise(self.all[stage].to, 1)
    }

    /// Notifies the partners of an instance that this member has started, stage by stage, up to the first stage whose
    /// notification depends on one that has not come. Returns the number of stages in which it has notified.
    #[inline]
    pub(crate) fn notify_partners(&self, worker: &Worker, instance: u64) -> Result<usize> {
        for (at, stage) in self.all.iter().enumerate() {
            worker.raise(stage.to, 1)?;
            if let Some(token) = self.token(at) {
                worker.raise(GlobalAddress::new(worker.rank(), signal_offset(token)), 1)?;
            }
            if at + 1 < self.len() && !reached(stage.cell.read(worker.fabric()), instance) {
                return Ok(at + 1);
            }
        }
        Ok(self.len())
    }

    /// Returns the command that notifies the partner of `stage`, if the member itself has notified in all stages
    /// before `from`.
    pub(crate) fn command(&self, me: Rank, stage: usize, from: usize, instance: u64) -> Command {
        let trigger = |signal: u32| Some(Trigger { signal, threshold: instance });
        let notified = |stage: usize| trigger(self.first + stage as u32 - 1);
        // If a command notifies in the previous stage as well, this command must wait until that one has fired. If
        // that one has a single trigger, a second trigger here waits for the same signal; otherwise it waits for the
        // token of that stage.
        let before = match stage - from {
            0 => None,
            1 => notified(stage - 1),
            _ => self.token(stage - 1).and_then(trigger),
        };
        let effect = |signal: GlobalAddress| Effect { signal, amount: 1 };
        let token = self.token(stage).map(|token| GlobalAddress::new(me, signal_offset(token)));
        Command {
            trigger: notified(stage),
            second_trigger: before,
            effects: [Some(effect(self.all[stage].to)), token.map(effect)],
            ..Command::new(Action::Nothing)
        }
    }
}

impl WaitEvent for DisseminationArrival {
    fn happened(&self) -> bool {
        self.stages.missing_before(self.until, &*self.fabric, self.instance).is_none()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        if let Some((_, departed)) = self.stages.departed_before(&*self.fabric, self.instance) {
            return Some((departed, RankStage::Leaving));
        }
        // A rank that is leaving still sends the notifications of what it has started.
        let missing = self.stages.missing_before(self.until, &*self.fabric, self.instance)?;
        Some((missing, RankStage::Left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_stages_as_doublings() {
        let counts = [1, 2, 3, 4, 5, 8, 9, 16, 17].map(Dissemination::count);
        assert_eq!(counts, [0, 1, 2, 2, 3, 3, 4, 4, 5]);
        assert_eq!([1, 2, 3, 4, 5, 6].map(Dissemination::signals), [1, 2, 3, 5, 7, 9]);
    }

    #[test]
    fn departures_are_decoded() {
        assert_eq!(last_of_departure(0), None, "nothing was published");
        for last in [0, 1, 128, 1 << 40] {
            for fewer in (0..=128).filter(|fewer| *fewer <= last) {
                assert_eq!(last_of_departure(departure(last) + fewer), Some(last - fewer));
            }
        }
    }
}
