//! The driver of compiled steps in a repeating queue, for the queue's own rank.
//!
//! The code in `command_queue/run` decodes each command, looks up the queue, the memory and the signals that the
//! command names, and records commands in flight. For a repeating queue of its own, a rank has resolved all this when
//! it made the queue. It takes the lease like any other rank, and updates the queue's position and counts like any
//! other, so any rank can go on from there. It leaves the rest, such as a long copy or a poisoned signal, to that code.

use crate::base::Cause;
use crate::base::sync::Ordering;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::repeating::RepeatingQueue;
use crate::engine::command_queue::run::ready_list::ReadyList;
use crate::engine::command_queue::run::short_action::{INLINE_COPY_MAX, INLINE_REDUCE_MAX};
use crate::engine::executor::{
    CallBuffers, Driver, Operand, ResolvedAction, ResolvedStep, ResolvedWait, StepAction, StepSpec,
};
use crate::engine::worker::Worker;
use crate::fabric::{DirectCell, NOBODY, Poison, SignalCell};
use crate::queue::command::Effect;
use crate::queue::encoding::EncodedCommand;
use crate::queue::layout::Queue;
use crate::queue::reduction::{ReduceOperation, Reduction};

/// The resolved steps of a repeating queue, in order. Each is a command of the queue.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct QueueSteps {
    /// The signal that counts starts.
    starts: DirectCell,
    steps: Box<[ResolvedStep<QueueEffects>]>,
    /// For each line of the ring, the index of the step whose command is there.
    at_line: Box<[u32]>,
    per_start: usize,
    /// How steps combine values, if they do that without the help of a command.
    how: Option<Reduction>,
    /// Number of bytes that a start copies or combines.
    moved: u64,
}

impl QueueSteps {
    /// Returns how many commands the starts have released.
    #[inline]
    fn released(&self, queue: &Queue, order: Ordering) -> u64 {
        self.starts.counter().load(order).wrapping_mul(queue.per_credit())
    }

    /// Returns the next step and its pass, if a start has released it.
    #[inline]
    fn next(&self, queue: &Queue, order: Ordering) -> Option<(&ResolvedStep<QueueEffects>, u64)> {
        if self.released(queue, order) == queue.commands() {
            return None;
        }
        let (line, pass) = queue.place_of(queue.reader().read());
        Some((&self.steps[self.at_line[line as usize] as usize], pass))
    }
}

/// What the holder of the lease does when the action of a step is done.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct QueueEffects {
    /// Lines of the command.
    lines: u64,
    /// A rank that raises the awaited signal leaves the step to this rank.
    is_left_to_owner: bool,
    raises: [Option<Effect>; 2],
}

/// The driver of the holder of the lease.
struct QueueDriver<'d> {
    worker: &'d Worker,
    resolved: &'d ResolvedQueue<'d>,
    ready: &'d mut ReadyList,
    position: u64,
    /// The next step must be run as a command.
    needs_command: bool,
}

impl Driver for QueueDriver<'_> {
    type Effects = QueueEffects;

    #[inline(always)]
    fn is_over(&mut self, wait: &ResolvedWait, pass: u64) -> bool {
        let is_over = wait.is_over_now(pass);
        if is_over && wait.cell.control().armed_hint() != NOBODY {
            wait.cell.control().disarm(self.resolved.number);
        }
        self.needs_command = !is_over && is_poisoned(wait.cell);
        is_over
    }

    fn run_special(&mut self, _: &ResolvedAction) -> bool {
        self.needs_command = true;
        false
    }

    #[inline(always)]
    fn complete(&mut self, effects: &QueueEffects, _: u64) {
        let queue = &self.resolved.queue;
        self.position = queue.behind(self.position, effects.lines);
        queue.reader().set_read(self.position);
        queue.count_command();
        for &effect in effects.raises.iter().flatten() {
            if let Err(cause) = self.worker.perform_effect(effect, None, self.ready) {
                queue.count_failure(Poison::of(&cause, self.worker.rank()).words());
            }
        }
    }
}

fn is_poisoned(cell: DirectCell) -> bool {
    cell.control().poison_and_value().is_some()
}

impl QueueSteps {
    /// Returns the number of bytes that a start copies or combines.
    #[inline]
    pub(in crate::engine::command_queue) fn moved(&self) -> u64 {
        self.moved
    }

    /// Counts one more start. Only the queue's rank starts it, one start after the other.
    #[inline]
    pub(in crate::engine::command_queue) fn start(&self) {
        let count = self.starts.counter().load(Ordering::Relaxed);
        // The lease holder sees the new count, or finds the mark that the starting thread leaves (SYNC lease).
        self.starts.counter().store(count.wrapping_add(1), Ordering::Release);
    }
}

impl Worker {
    /// Resolves the steps of a repeating queue, each with its command. Returns `None` if the rank does not reach
    /// signals by loads and stores, or if it records a trace.
    pub(in crate::engine::command_queue) fn resolve_queue(
        &self,
        steps: &[StepSpec],
        commands: &[EncodedCommand],
        how: Option<Reduction>,
        (starts, per_start): (u32, u32),
    ) -> Result<Option<QueueSteps>, Cause> {
        let SignalCell::Direct(starts) = self.fabric().own_signal(starts)? else { return Ok(None) };
        if !self.reaches_words() || self.recorder().is_some() {
            return Ok(None); // the code that runs commands records events for the trace
        }
        let mut at_line = Vec::new();
        let mut found = Vec::with_capacity(steps.len());
        for (spec, command) in steps.iter().zip(commands) {
            at_line.extend((0..command.line_count()).map(|_| found.len() as u32));
            found.push(self.resolve_queue_step(spec, command, how)?);
        }
        let moved: u64 = steps.iter().map(StepSpec::moved).sum();
        let moved = moved * u64::from(per_start) / (steps.len() as u64).max(1);
        let how = how.filter(|how| how.operator().is_none());
        let (steps, at_line, per_start) = (found.into(), at_line.into(), per_start as usize);
        Ok(Some(QueueSteps { starts, steps, at_line, per_start, how, moved }))
    }

    fn resolve_queue_step(
        &self,
        spec: &StepSpec,
        command: &EncodedCommand,
        how: Option<Reduction>,
    ) -> Result<ResolvedStep<QueueEffects>, Cause> {
        let Some(wait) = self.find_wait(spec.wait, &[])? else {
            return Err(Cause::Bug("a signal of this rank that it does not reach".into()));
        };
        let is_short = match spec.action {
            StepAction::Nothing => true,
            StepAction::Copy(_, _, len) => len <= INLINE_COPY_MAX,
            StepAction::Combine(_, _, len, _) => {
                len <= INLINE_REDUCE_MAX
                    && how.is_some_and(|how| how.operator().is_none() && len.is_multiple_of(how.bytes()))
            }
        };
        let is_outward =
            matches!(spec.action, StepAction::Copy(_, Operand::At(to), _) if to.rank() != self.rank());
        let action = if is_short { self.find_action(spec.action, is_outward)? } else { None };
        let action = action.unwrap_or(ResolvedAction::AsCommand);
        let (lines, raises) = (command.line_count(), command.effects());
        let effects = QueueEffects { lines, is_left_to_owner: spec.is_left_to_owner, raises };
        Ok(ResolvedStep { wait, action, effects })
    }

    /// Runs the steps of a queue of this rank that need not wait, unless the lease is held. Does not mark a held
    /// lease if no command is in flight, because the caller will call again. Returns true if anything was run.
    #[inline]
    pub(in crate::engine::command_queue) fn run_unless_leased(
        &self,
        repeating: &RepeatingQueue,
        steps: &QueueSteps,
    ) -> bool {
        let queue = repeating.local().queue();
        let is_usual = queue.in_flight().is_empty();
        (!is_usual || queue.lease().snapshot().is_free()) && self.run_or_mark_lease(repeating, steps)
    }

    /// Runs the steps of a queue of this rank that need not wait. If the lease is held, marks it, so that its holder
    /// runs the queue again. Returns true if anything was run.
    #[inline]
    pub(in crate::engine::command_queue) fn run_or_mark_lease(
        &self,
        repeating: &RepeatingQueue,
        steps: &QueueSteps,
    ) -> bool {
        let resolved = self.commands().resolved(repeating.local());
        let queue = &resolved.queue;
        if queue.in_flight().is_empty() && !self.next_step_can_run(&resolved, steps) {
            return false;
        }
        if !queue.lease().acquire_or_mark(self.rank().to_word()) {
            return false;
        }
        let mut ready = ReadyList::default();
        let (mut deferred, mut moved) = (None, true);
        if !self.run_resolved(&resolved, steps, &mut ready) {
            (deferred, moved) = self.run_under_lease(&resolved, &mut ready);
        }
        self.release(&resolved, deferred, &mut ready);
        self.run_ready(ready);
        moved
    }

    /// Returns true if the next step is released by a start, and its signal has reached the threshold or is poisoned.
    #[inline]
    fn next_step_can_run(&self, resolved: &ResolvedQueue<'_>, steps: &QueueSteps) -> bool {
        let Some((step, pass)) = steps.next(&resolved.queue, Ordering::Acquire) else { return false };
        step.wait.as_ref().is_none_or(|wait| wait.is_over_now(pass) || is_poisoned(wait.cell))
    }

    /// Arms the signal for which the next step waits, so that a rank that raises it runs the queue. Does nothing if
    /// the step is left to the queue's rank. Returns true if the threshold was reached meanwhile.
    #[inline]
    pub(in crate::engine::command_queue) fn arm_next_wait(
        &self,
        repeating: &RepeatingQueue,
        steps: &QueueSteps,
    ) -> bool {
        let next = steps.next(&repeating.local().queue(), Ordering::Relaxed);
        let Some((step, pass)) = next else { return false };
        let Some(wait) = step.wait.as_ref().filter(|_| !step.effects.is_left_to_owner) else { return false };
        wait.cell.control().keep_armed(repeating.local().info().number);
        wait.is_over_now(pass)
    }

    /// Runs steps until one must wait, under the lease. Returns false if the next step must be run as a command.
    #[inline]
    fn run_resolved(&self, resolved: &ResolvedQueue<'_>, steps: &QueueSteps, ready: &mut ReadyList) -> bool {
        let queue = &resolved.queue;
        if !queue.is_there() || !queue.in_flight().is_empty() {
            return false;
        }
        let mut left = steps.released(queue, Ordering::Acquire).wrapping_sub(queue.commands());
        let operation = steps.how.map_or(ReduceOperation::Nothing, ReduceOperation::Builtin);
        let nothing = CallBuffers { operation, ..CallBuffers::nothing() };
        let position = queue.reader().read();
        let mut driver = QueueDriver { worker: self, resolved, ready, position, needs_command: false };
        while left > 0 {
            let (line, pass) = queue.place_of(driver.position);
            let at = steps.at_line[line as usize] as usize;
            // The rest of the start: in the next one, the pass may be another.
            let count = (steps.per_start - at % steps.per_start).min(left as usize);
            if self.run_steps((at, &steps.steps[at..at + count]), pass, &nothing, &mut driver).is_some() {
                return !driver.needs_command;
            }
            left -= count as u64;
        }
        true
    }
}
