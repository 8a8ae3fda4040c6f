//! Compiles a part to the steps of repeating queues: one for each queue of the schedule.

use crate::plan::compile::placement::PlacedParts;
use crate::plan::compile::steps::StepCompiler;
use std::collections::BTreeMap;
use tasuki_core::base::Cause;
use tasuki_core::engine::executor::{StepAction, StepSpec};
use tasuki_core::queue::command::REDUCE_BYTES_MAX;
use tasuki_core::queue::reduction::Reduction;
use tasuki_schedule::{RankPart, START, Step, StepTrigger};

/// The steps of one repeating queue.
#[derive(Debug)]
pub(crate) struct QueueSteps {
    /// The steps of all starts that are compiled.
    pub(crate) steps: Vec<StepSpec>,
    /// Number of steps of one start.
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

impl PlacedParts<'_> {
    /// Compiles each queue of the part. `how` says how values are combined, if they are.
    pub(crate) fn compile_queues(
        &self,
        part: &RankPart,
        how: Option<Reduction>,
    ) -> Result<Vec<QueueSteps>, Cause> {
        let mut queues: BTreeMap<u16, Vec<&Step>> = BTreeMap::new();
        for step in part.steps() {
            queues.entry(step.queue.0).or_default().push(step);
        }
        let compiler = StepCompiler { placed: self, part, turns: self.turns(), calls: None };
        let piece = how.map_or(REDUCE_BYTES_MAX, |how| REDUCE_BYTES_MAX / how.bytes() * how.bytes());
        queues.values().map(|steps| compiler.queue_steps(steps, piece)).collect()
    }

    /// Returns the thresholds for which the end of a start waits.
    pub(crate) fn start_thresholds(&self, part: &RankPart) -> Vec<StartThreshold> {
        // This rank has raised the signal of the start itself before it waits for the end.
        let waits =
            part.finish_conditions().iter().filter(|at_end| at_end.signal != START || at_end.count > 1);
        let threshold = |&trigger: &StepTrigger| {
            let count = self.count(part, trigger, 0, 1);
            let signal = self.own.number(trigger.signal);
            StartThreshold { signal, first: count.first, per_start: count.more }
        };
        waits.map(threshold).collect()
    }
}

impl StepCompiler<'_> {
    fn queue_steps(&self, steps: &[&Step], piece: u64) -> Result<QueueSteps, Cause> {
        let left_to_owner = self.placed.left_to_owner(self.part, steps);
        let mut specs = Vec::new();
        for start in 0..self.turns {
            for (step, &is_left_to_owner) in steps.iter().zip(&left_to_owner) {
                let spec = StepSpec { is_left_to_owner, ..self.step(step, start)? };
                specs.extend(in_pieces(spec, piece));
            }
        }
        let per_start = (specs.len() as u64 / self.turns) as u32;
        Ok(QueueSteps { steps: specs, per_start })
    }
}

/// Divides a step that combines more values than one command can: the first one waits, and the last one raises signals.
fn in_pieces(mut spec: StepSpec, piece: u64) -> Vec<StepSpec> {
    let StepAction::Combine(from, to, len, in_front) = spec.action else { return vec![spec] };
    let mut pieces = Vec::new();
    let mut at = 0;
    while len - at > piece {
        let action = StepAction::Combine(from.offset_by(at), to.offset_by(at), piece, in_front);
        let (wait, is_left_to_owner) = (spec.wait.take(), spec.is_left_to_owner);
        pieces.push(StepSpec { wait, action, is_left_to_owner, ..StepSpec::NOTHING });
        at += piece;
    }
    spec.action = StepAction::Combine(from.offset_by(at), to.offset_by(at), len - at, in_front);
    pieces.push(spec);
    pieces
}
