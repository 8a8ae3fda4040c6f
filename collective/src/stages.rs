//! The stages of a fuzzy barrier: whom a member tells, who tells it, and what says how far that has come.

use super::communicator::Communicator;
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::board::Stage as LifeStage;
use tasuki_core::engine::{Event, Machine};
use tasuki_core::fabric::reached;
use tasuki_core::fabric::{Fabric, SignalCell};
use tasuki_core::queue::command::{Command, Deed, Effect, Trigger};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// The first stage that has a token: before it one trigger, or two, say all.
const FIRST_TOKEN: usize = 2;

/// One stage, as one member has it.
#[derive(Debug)]
struct Stage {
    /// How often it was told.
    cell: SignalCell,
    /// Who tells it.
    from: Rank,
    /// What it raises to tell.
    to: GlobalAddress,
}

/// All stages, as one member has them. Its signals lie one behind the other: one a stage, then the tokens.
#[derive(Debug)]
pub(super) struct Stages {
    first: u32,
    all: Box<[Stage]>,
}

/// That an instance is over.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) stages: Arc<Stages>,
    pub(super) fabric: Arc<dyn Fabric>,
    pub(super) instance: u64,
}

impl Stages {
    /// How many there are for so many members.
    pub(super) fn count(members: usize) -> u32 {
        members.next_power_of_two().trailing_zeros()
    }

    /// How many signals they take.
    pub(super) fn signals(stages: u32) -> u32 {
        stages + stages.saturating_sub(FIRST_TOKEN as u32 + 1)
    }

    /// How many lines of a queue the commands of one instance take: one with one trigger and one effect, else two.
    pub(super) fn lines(stages: u32) -> u64 {
        2 * u64::from(stages) - 2
    }

    /// So many, whose signals begin at `first`. Of each `neighbours` says whom to tell, and who tells it.
    pub(super) fn new(
        machine: &Machine,
        first: u32,
        count: u32,
        neighbours: impl Fn(u32) -> Result<(GlobalAddress, Rank), Cause>,
    ) -> Result<Stages, Cause> {
        let stage = |stage: u32| {
            let (to, from) = neighbours(stage)?;
            Ok(Stage { cell: machine.fabric().own_signal(first + stage)?, from, to })
        };
        Ok(Stages { first, all: (0..count).map(stage).collect::<Result<_, Cause>>()? })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether all have been told of that instance.
    #[inline]
    pub(super) fn have_reached(&self, machine: &Machine, instance: u64) -> bool {
        self.unmet(machine.fabric(), instance).is_none()
    }

    /// A member that has not told of that instance yet.
    #[inline]
    pub(super) fn missing(&self, machine: &Machine, instance: u64) -> Option<Rank> {
        self.unmet(machine.fabric(), instance).map(|stage| stage.from)
    }

    #[inline]
    fn unmet(&self, fabric: &dyn Fabric, instance: u64) -> Option<&Stage> {
        self.all.iter().find(|stage| !reached(stage.cell.read(fabric), instance))
    }

    /// The number of a stage's token, if it has one: the last stage needs none, for nothing follows it.
    fn token(&self, stage: usize) -> Option<u32> {
        let has_token = stage >= FIRST_TOKEN && stage + 1 < self.len();
        has_token.then(|| self.first + (self.len() + stage - FIRST_TOKEN) as u32)
    }

    /// Whether a stage was told of the first instance.
    pub(super) fn has_heard(&self, fabric: &dyn Fabric, stage: usize) -> bool {
        reached(self.all[stage].cell.read(fabric), 1)
    }

    /// A member that has not told of the first instance.
    pub(super) fn not_heard(&self, fabric: &dyn Fabric) -> Option<Rank> {
        self.unmet(fabric, 1).map(|stage| stage.from)
    }

    /// Tells of an instance in one stage.
    pub(super) fn tell_in(&self, machine: &Machine, stage: usize) -> Result<()> {
        machine.raise(self.all[stage].to, 1)
    }

    /// Tells of an instance that this member has started as far as it knows of others now. How many stages it told.
    #[inline]
    pub(crate) fn tell(&self, machine: &Machine, instance: u64) -> Result<usize> {
        for (at, stage) in self.all.iter().enumerate() {
            machine.raise(stage.to, 1)?;
            if let Some(token) = self.token(at) {
                machine.raise(GlobalAddress::new(machine.rank(), signal_offset(token)), 1)?;
            }
            if at + 1 < self.len() && !reached(stage.cell.read(machine.fabric()), instance) {
                return Ok(at + 1);
            }
        }
        Ok(self.len())
    }

    /// What tells of an instance in `stage`, where the member itself has told all stages before `from`.
    pub(super) fn command(&self, me: Rank, stage: usize, from: usize, instance: u64) -> Command {
        let trigger = |signal: u32| Some(Trigger { signal, threshold: instance });
        let told = |stage: usize| trigger(self.first + stage as u32 - 1);
        // Of the stage before, if that is a command as well: that it has fired, which two triggers say by themselves
        // where it has but one.
        let before = match stage - from {
            0 => None,
            1 => told(stage - 1),
            _ => self.token(stage - 1).and_then(trigger),
        };
        let effect = |signal: GlobalAddress| Effect { signal, amount: 1 };
        let token = self.token(stage).map(|token| GlobalAddress::new(me, signal_offset(token)));
        Command {
            trigger: told(stage),
            also: before,
            effects: [Some(effect(self.all[stage].to)), token.map(effect)],
            ..Command::new(Deed::Nothing)
        }
    }
}

impl Communicator {
    /// Whom this member tells in a stage, at a signal of all of which it knows the `first`, and who tells it.
    pub(super) fn neighbours(
        &self,
        stage: u32,
        first: impl Fn(Rank) -> u32,
    ) -> Result<(GlobalAddress, Rank), Cause> {
        let rank_of = |member: Rank| {
            self.messages().rank_of(member).ok_or(Cause::NoSuchRank { rank: member, size: self.size() })
        };
        let step = 1 << stage;
        let (to, from) = (self.after(self.rank(), step), self.after(self.rank(), self.size() - step));
        Ok((GlobalAddress::new(rank_of(to)?, signal_offset(first(to) + stage)), rank_of(from)?))
    }
}

impl Event for Arrival {
    fn happened(&self) -> bool {
        self.stages.unmet(&*self.fabric, self.instance).is_none()
    }

    fn hopeless_from(&self) -> Option<(Rank, LifeStage)> {
        // Who is leaving still tells what it has started.
        let unmet = self.stages.unmet(&*self.fabric, self.instance)?;
        Some((unmet.from, LifeStage::Left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_stages_as_doublings() {
        let counts = [1, 2, 3, 4, 5, 8, 9, 16, 17].map(Stages::count);
        assert_eq!(counts, [0, 1, 2, 2, 3, 3, 4, 4, 5]);
        assert_eq!([1, 2, 3, 4, 5, 6].map(Stages::signals), [1, 2, 3, 5, 7, 9]);
    }
}
