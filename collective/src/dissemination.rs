//! The stages of fuzzy barriers: the partners of a member in each stage, and the signals that count its stages. Members
//! with plans also leave by one instance of such stages.

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
        Ok(Dissemination { first, all: (0..count).map(stage).collect::<Result<_, Cause>>()? })
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
}
