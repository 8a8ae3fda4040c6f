//! Compiles a part to steps, for an execution or for repeating queues.
//!
//! A buffer with several copies that are used in turn has another address in each start. So the steps of several
//! starts are compiled one after the other, until all buffers are back at their first copy. A step waits until a signal
//! has reached a count, which grows each time the steps repeat, from the value that the signal had when the plan was
//! made.

use crate::plan::compile::calls::CallForm;
use crate::plan::compile::placement::PlacedParts;
use tasuki_core::base::Cause;
use tasuki_core::engine::executor::{Operand, StepAction, StepSpec, WaitSpec};
use tasuki_core::segment::GlobalAddress;
use tasuki_schedule::{BufferKind, Location, RankPart, START, Step, StepKind, StepTrigger};

/// Compiles the part of a rank.
pub(crate) struct StepCompiler<'l> {
    pub(crate) placed: &'l PlacedParts<'l>,
    pub(crate) part: &'l RankPart,
    /// Number of starts after which the steps repeat.
    pub(crate) turns: u64,
    /// If the calling thread runs the steps: what is known of their data and of the other ranks.
    pub(crate) calls: Option<CallForm<'l>>,
}

impl StepCompiler<'_> {
    /// Compiles a step of a start.
    pub(crate) fn step(&self, step: &Step, start: u64) -> Result<StepSpec, Cause> {
        Ok(StepSpec {
            wait: self.wait(step.trigger, step.action, start)?,
            action: self.action(step.action, start)?,
            raises: self.raises(step)?,
            ..StepSpec::NOTHING
        })
    }

    /// Returns the condition of a trigger. In calls, a step does not wait for a signal that this rank itself raises:
    /// the step that raises it is complete before the next step begins.
    pub(crate) fn wait(
        &self,
        trigger: StepTrigger,
        action: StepKind,
        start: u64,
    ) -> Result<Option<WaitSpec>, Cause> {
        let signal = self.placed.own.number(trigger.signal);
        let count = self.placed.count(self.part, trigger, start, self.turns);
        let (by, flag) = match &self.calls {
            // Steps of a start run only after the signal of the start is raised.
            None if trigger.signal == START && trigger.count <= 1 => return Ok(None),
            None => (None, None),
            Some(calls) => {
                let Some(by) = calls.raiser(self.part, trigger.signal) else { return Ok(None) };
                (Some(self.placed.placed(by)?.rank), calls.flag_read_by(self, (by, trigger), action, start)?)
            }
        };
        Ok(Some(WaitSpec { signal, count, by, flag, starts_ago: trigger.lag.into() }))
    }

    fn raises(&self, step: &Step) -> Result<Vec<(GlobalAddress, u64)>, Cause> {
        let is_known = |rank: u32| self.calls.is_some() && rank as usize == self.part.rank();
        let effects = step.effects().filter(|effect| !is_known(effect.rank));
        effects
            .map(|effect| Ok((self.placed.placed(effect.rank)?.signal(effect.signal), effect.amount)))
            .collect()
    }

    fn action(&self, action: StepKind, start: u64) -> Result<StepAction, Cause> {
        Ok(match action {
            StepKind::Nothing => StepAction::Nothing,
            StepKind::Copy { from, to, bytes } => {
                StepAction::Copy(self.operand(from, start)?, self.operand(to, start)?, bytes)
            }
            StepKind::Reduce { from, to, bytes, in_front } => {
                StepAction::Combine(self.operand(from, start)?, self.operand(to, start)?, bytes, in_front)
            }
        })
    }

    fn operand(&self, place: Location, start: u64) -> Result<Operand, Cause> {
        let room = self.part.buffer_decls().get(place.buffer.index());
        match &self.calls {
            Some(calls) if room.is_some_and(|room| room.kind == BufferKind::User) => {
                calls.user_buffer(self.placed, self.part, place)
            }
            _ => Ok(Operand::At(self.placed.byte(place, start)?)),
        }
    }
}
