//! Compiles a part to commands: each queue of a schedule becomes a repeating queue.
//!
//! A buffer with several copies that are used in turn has another address in each start. So the commands of several
//! starts are compiled one after the other, until all buffers are back at their first copy. A command waits for a
//! threshold of a signal. The threshold grows each time the queue repeats, from the value that the signal had when
//! the plan was made.

use crate::plan::setup::layout::{PlacedPart, common_multiple};
use std::collections::BTreeMap;
use tasuki_core::base::{Cause, Result};
use tasuki_core::queue::command::{self, Class, Effect, REDUCE_BYTES_MAX};
use tasuki_core::queue::encoding::EncodedCommand;
use tasuki_core::queue::reduction::Reduction;
use tasuki_core::segment::GlobalAddress;
use tasuki_schedule::{Location, RankPart, START, Step, StepKind, StepTrigger};

/// The commands of one repeating queue.
#[derive(Debug)]
pub(crate) struct QueueCommands {
    /// The commands of all starts that are compiled.
    pub(crate) commands: Vec<EncodedCommand>,
    /// Number of commands of one start.
    pub(crate) per_start: u32,
}

/// A signal of this rank, and the threshold that the end of a start waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StartThreshold {
    /// The number of the signal.
    pub(crate) signal: u32,
    /// The threshold for the end of the first start.
    pub(crate) first: u64,
    /// The growth of the threshold with each start.
    pub(crate) per_start: u64,
}

/// Compiles the part of a rank.
pub(crate) struct PlanCompiler<'l> {
    /// The address of this rank's part.
    pub(crate) own: &'l PlacedPart,
    /// The initial counters of this rank's signals.
    pub(crate) initial: &'l [u64],
    /// How values are combined, if they are.
    pub(crate) how: Option<Reduction>,
    /// This rank's part and all parts that it refers to, by their rank in the schedule.
    pub(crate) others: &'l BTreeMap<u32, PlacedPart>,
}

impl PlanCompiler<'_> {
    /// Compiles each queue of the part to the commands of a repeating queue.
    pub(crate) fn compile_queues(&self, part: &RankPart) -> Result<Vec<QueueCommands>, Cause> {
        let mut queues: BTreeMap<u16, Vec<&Step>> = BTreeMap::new();
        for step in part.steps() {
            queues.entry(step.queue.0).or_default().push(step);
        }
        queues.values().map(|steps| self.compile_queue(part, steps)).collect()
    }

    /// Returns the thresholds for which the end of a start waits.
    pub(crate) fn start_thresholds(&self, part: &RankPart) -> Vec<StartThreshold> {
        let mut all: Vec<StartThreshold> = Vec::new();
        for &StepTrigger { signal, count, lag } in part.finish_conditions() {
            if signal == START && count <= 1 {
                continue; // this rank has raised the signal itself before it waits for the end
            }
            let per_start = part.signal_decls()[signal.index()].per_start;
            let first = self.initial[signal.index()].wrapping_add(count);
            let first = first.wrapping_sub(u64::from(lag).wrapping_mul(per_start));
            all.push(StartThreshold { signal: self.own.number(signal), first, per_start });
        }
        all
    }

    fn compile_queue(&self, part: &RankPart, steps: &[&Step]) -> Result<QueueCommands, Cause> {
        let everybody = self.others.values();
        let turns = everybody.map(|placed| placed.layout.turns).fold(1, common_multiple);
        let mut commands = Vec::new();
        let left_to_owner = self.left_to_owner(part, steps);
        for start in 0..turns {
            for (step, &is_left) in steps.iter().zip(&left_to_owner) {
                let first = commands.len();
                self.step(part, step, (start, turns), &mut commands)?;
                if is_left {
                    commands[first..].iter_mut().for_each(EncodedCommand::leave_to_owner);
                }
            }
        }
        let per_start = (commands.len() as u64 / turns) as u32;
        Ok(QueueCommands { commands, per_start })
    }

    /// Compiles a step of one start to one command, or to several commands if one cannot combine so many values.
    fn step(
        &self,
        part: &RankPart,
        step: &Step,
        (start, turns): (u64, u64),
        commands: &mut Vec<EncodedCommand>,
    ) -> Result<(), Cause> {
        let mut actions = self.actions(step.action, start)?;
        let last = actions.pop();
        let wait = |encoded: &mut EncodedCommand| self.wait(part, step.trigger, (start, turns), encoded);
        for (at, action) in actions.iter().enumerate() {
            let mut encoded = self.encode(action)?;
            if at == 0 {
                wait(&mut encoded)?;
            }
            commands.push(encoded);
        }
        let mut encoded = self.encode(&last.unwrap_or(command::Action::Nothing))?;
        if actions.is_empty() {
            wait(&mut encoded)?;
        }
        for effect in step.effects() {
            let signal = self.placed(effect.rank)?.signal(effect.signal);
            encoded.then(Effect { signal, amount: narrow(effect.amount)? })?;
        }
        commands.push(encoded);
        Ok(())
    }

    /// Adds the trigger, whose threshold grows each time the queue repeats.
    fn wait(
        &self,
        part: &RankPart,
        trigger: StepTrigger,
        (start, turns): (u64, u64),
        encoded: &mut EncodedCommand,
    ) -> Result<(), Cause> {
        let StepTrigger { signal, count, lag } = trigger;
        if signal == START && count <= 1 {
            return Ok(()); // commands of a start run only after the signal of the start is raised
        }
        let per_start = part.signal_decls()[signal.index()].per_start;
        let starts = start.wrapping_sub(lag.into()).wrapping_mul(per_start);
        let threshold = self.initial[signal.index()].wrapping_add(starts).wrapping_add(count);
        let first = command::Trigger { signal: self.own.number(signal), threshold };
        encoded.when_each(first, narrow(turns * per_start)?)
    }

    /// Encodes an action, with the ranks that may run it.
    fn encode(&self, action: &command::Action) -> Result<EncodedCommand, Cause> {
        let mut encoded = EncodedCommand::of(action);
        if let command::Action::Reduce { to, how, .. } = action
            && how.operator().is_some()
        {
            if to.rank() != self.own.rank {
                let text = "an operation of the program can combine values only in the memory of its own rank: use a \
                            built-in operation, or a schedule in which each rank combines in its own memory";
                return Err(Cause::Argument(text.into()));
            }
            encoded.bind(Class::Destination);
        }
        Ok(encoded)
    }

    fn actions(&self, action: StepKind, start: u64) -> Result<Vec<command::Action>, Cause> {
        match action {
            StepKind::Nothing => Ok(vec![command::Action::Nothing]),
            StepKind::Copy { from, to, bytes } => {
                let (from, to) = (self.byte(from, start)?, self.byte(to, start)?);
                Ok(vec![command::Action::Copy { from, to, len: bytes }])
            }
            StepKind::Reduce { from, to, bytes, in_front } => {
                let how = self.how.ok_or_else(|| {
                    Cause::Argument(
                        "its schedule combines values, but it was prepared without an operation".into(),
                    )
                })?;
                let how = how.with_incoming_first(in_front);
                let (from, to) = (self.byte(from, start)?, self.byte(to, start)?);
                let most = REDUCE_BYTES_MAX / how.bytes() * how.bytes();
                let piece = |at: u64| command::Action::Reduce {
                    from: from.add(at),
                    to: to.add(at),
                    len: most.min(bytes - at),
                    how,
                };
                Ok((0..bytes).step_by(most as usize).map(piece).collect())
            }
        }
    }

    /// Returns the address of a location in a start.
    pub(crate) fn byte(&self, place: Location, start: u64) -> Result<GlobalAddress, Cause> {
        let Location { rank, buffer, offset } = place;
        let home = self.placed(rank)?.layout.home(buffer, rank, start);
        Ok(self.placed(home)?.byte(buffer, offset, start))
    }

    pub(crate) fn placed(&self, rank: u32) -> Result<&PlacedPart, Cause> {
        self.others.get(&rank).ok_or_else(|| {
            Cause::Bug(format!(
                "rank {} lacks the address of the part of rank {rank} of its schedule",
                self.own.rank
            ))
        })
    }
}

/// Returns the ranks whose parts a part refers to, and its own rank.
pub(crate) fn named(part: &RankPart) -> Vec<u32> {
    let mut ranks = vec![part.rank() as u32];
    for step in part.steps() {
        ranks.extend(step.effects().map(|effect| effect.rank));
        if let StepKind::Copy { from, to, .. } | StepKind::Reduce { from, to, .. } = step.action {
            ranks.extend([from, to].iter().flat_map(|place| homes(part, place)));
        }
    }
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Returns the ranks whose memory may hold a location. They differ if two ranks swap the buffer.
fn homes(part: &RankPart, place: &Location) -> [u32; 2] {
    let room = part.buffer_decls().get(place.buffer.index());
    [0, 1].map(|start| room.map_or(place.rank, |room| room.kind.home(place.rank, start).0))
}

fn narrow(amount: u64) -> Result<u32, Cause> {
    let text =
        || format!("the schedule adds {amount} to a signal at once; a command can add at most {}", u32::MAX);
    u32::try_from(amount).map_err(|_| Cause::Argument(text()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::started;

    #[test]
    fn a_rank_that_swaps_a_buffer_is_named() {
        let mut part = RankPart::new(0);
        let (data, own, stage) =
            (part.buffer("data", 8), part.scratch("own", 8, 2), part.swapped("stage", 8, 1));
        part.copy(started(), data.on(0, 0), own.on(0, 0), 8);
        assert_eq!(named(&part), [0]);
        part.copy(started(), data.on(0, 0), stage.on(0, 0), 8);
        assert_eq!(named(&part), [0, 1]);
    }
}
