//! The commands of a repeating queue, compiled for the queue's own rank: all addresses are resolved beforehand.
#![allow(unsafe_code)]
//! Unsafe: copies between ranges of job memory that the fabric resolved when the queue was made. The fabric keeps
//! them mapped while it lives, also after they are freed, and the worker keeps the fabric.
//!
//! The ordinary code in `command_queue/run` decodes each command, looks up the queue, the memory and the signals that
//! the command names, and records commands in flight. For a repeating queue of its own, a rank looks all this up
//! once. It takes the lease like any other rank, and updates the queue's position and counts like any other, so any
//! rank can go on from there. It leaves the rest, such as a long copy or a poisoned signal, to the ordinary code.

use crate::base::Cause;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::repeating::RepeatingQueue;
use crate::engine::command_queue::run::ready_list::ReadyList;
use crate::engine::command_queue::run::short_action::INLINE_REDUCE_MAX;
use crate::engine::worker::Worker;
use crate::fabric::{DirectCell, NOBODY, Poison, SignalCell, certainly_reached};
use crate::os::copy;
use crate::queue::command::{Action, Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::queue::reduction::Reduction;
use crate::segment::GlobalAddress;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// Most bytes that a compiled copy moves. Other ranks may help with longer copies.
const SHORT: u64 = 8 * 1024;

/// The compiled commands of a repeating queue, in order.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct CompiledCommands {
    /// The signal that counts starts.
    starts: DirectCell,
    steps: Box<[CompiledStep]>,
    /// For each line of the ring, the index of the step whose command is there.
    at_line: Box<[u32]>,
    /// Number of bytes that a start copies or combines.
    moved: u64,
}

#[derive(Debug)]
struct CompiledStep {
    lines: u64,
    wait: Option<CompiledWait>,
    /// A rank that raises the awaited signal leaves the step to this rank.
    is_left_to_owner: bool,
    action: CompiledAction,
    effects: [Option<Effect>; 2],
}

/// The condition for which a step waits: a signal has reached a threshold that grows with each pass.
#[derive(Debug)]
struct CompiledWait {
    cell: DirectCell,
    first: u64,
    more: u64,
}

#[derive(Debug)]
enum CompiledAction {
    Nothing,
    Copy {
        from: NonNull<u8>,
        to: NonNull<u8>,
        len: usize,
        /// True if the destination is another rank's memory.
        is_outward: bool,
    },
    Reduce {
        from: NonNull<u8>,
        to: NonNull<u8>,
        len: usize,
        how: Reduction,
    },
    /// Anything else: the ordinary code runs it.
    Other,
}

// SAFETY: pointers to shared memory that stays mapped while the fabric lives.
unsafe impl Send for CompiledAction {}
// SAFETY: pointers to shared memory that stays mapped while the fabric lives.
unsafe impl Sync for CompiledAction {}

impl CompiledWait {
    #[inline(always)]
    fn is_over(&self, pass: u64) -> bool {
        let threshold = self.first.wrapping_add(pass.wrapping_mul(self.more));
        certainly_reached(self.cell.counter().load(Ordering::Acquire), threshold) // SYNC signal-raise
    }
}

/// Returns the number of bytes that a command copies or combines.
fn moved_by(encoded: &EncodedCommand) -> u64 {
    match Command::decode(encoded).map(|command| command.action) {
        Some(Action::Copy { len, .. } | Action::Reduce { len, .. }) => len,
        _ => 0,
    }
}

impl CompiledCommands {
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
    /// Compiles the commands of a repeating queue for the queue's own rank. Returns `None` if the rank does not reach
    /// signals by loads and stores, or if it records a trace.
    pub(in crate::engine::command_queue) fn compile_commands(
        &self,
        commands: &[EncodedCommand],
        starts: u32,
        per_start: u32,
    ) -> Result<Option<CompiledCommands>, Cause> {
        let SignalCell::Direct(starts) = self.fabric().own_signal(starts)? else { return Ok(None) };
        if !self.reaches_words() || self.recorder().is_some() {
            return Ok(None); // the ordinary code records events for the trace
        }
        let mut at_line = Vec::new();
        let (mut steps, mut moved) = (Vec::new(), 0);
        for encoded in commands {
            at_line.extend((0..encoded.line_count()).map(|_| steps.len() as u32));
            steps.push(self.compile_command(encoded)?);
            moved += moved_by(encoded);
        }
        let moved = moved * u64::from(per_start) / (commands.len() as u64).max(1);
        Ok(Some(CompiledCommands { starts, steps: steps.into(), at_line: at_line.into(), moved }))
    }

    fn compile_command(&self, encoded: &EncodedCommand) -> Result<CompiledStep, Cause> {
        let count_unreadable = || Cause::Bug("a command that cannot be read".into());
        let command = Command::decode(encoded).ok_or_else(count_unreadable)?;
        let wait = match (encoded.head(0), encoded.head(1)) {
            (Some(first), Some(second)) => match self.fabric().own_signal(first.signal)? {
                SignalCell::Direct(cell) => {
                    let more = second.threshold.wrapping_sub(first.threshold);
                    Some(CompiledWait { cell, first: first.threshold, more })
                }
                SignalCell::Via(_) => return Err(count_unreadable()),
            },
            _ => None,
        };
        let action = if command.trigger.is_none() {
            self.compile_action(&command.action)
        } else {
            CompiledAction::Other
        };
        let is_left_to_owner = encoded.is_left_to_owner();
        Ok(CompiledStep {
            lines: encoded.line_count(),
            wait,
            is_left_to_owner,
            action,
            effects: command.effects,
        })
    }

    fn compile_action(&self, action: &Action) -> CompiledAction {
        let place = |at: GlobalAddress, len: u64| {
            self.fabric().mapped(at, len).or_else(|| self.fabric().map(at, len))
        };
        match *action {
            Action::Nothing | Action::Copy { len: 0, .. } => CompiledAction::Nothing,
            Action::Copy { from, to, len } if len <= SHORT => match (place(from, len), place(to, len)) {
                (Some(from), Some(place)) => {
                    let is_outward = to.rank() != self.rank();
                    CompiledAction::Copy { from, to: place, len: len as usize, is_outward }
                }
                _ => CompiledAction::Other,
            },
            Action::Reduce { from, to, len, how }
                if len <= INLINE_REDUCE_MAX && len.is_multiple_of(how.bytes()) =>
            {
                match (place(from, len), place(to, len)) {
                    (Some(from), Some(to)) if how.operator().is_none() => {
                        CompiledAction::Reduce { from, to, len: len as usize, how }
                    }
                    _ => CompiledAction::Other,
                }
            }
            _ => CompiledAction::Other,
        }
    }

    /// Runs the steps of a queue of this rank that need not wait, unless the lease is held. Does not mark a held
    /// lease if no command is in flight, because the caller will call again. Returns true if anything was run.
    #[inline]
    pub(in crate::engine::command_queue) fn run_unless_leased(
        &self,
        repeating: &RepeatingQueue,
        compiled: &CompiledCommands,
    ) -> bool {
        let queue = repeating.local().queue();
        let is_usual = queue.in_flight().is_empty();
        (!is_usual || queue.lease().snapshot().is_free()) && self.run_or_mark_lease(repeating, compiled)
    }

    /// Runs the steps of a queue of this rank that need not wait. If the lease is held, marks it, so that its holder
    /// runs the queue again. Returns true if anything was run.
    #[inline]
    pub(in crate::engine::command_queue) fn run_or_mark_lease(
        &self,
        repeating: &RepeatingQueue,
        compiled: &CompiledCommands,
    ) -> bool {
        let resolved = self.commands().resolved(repeating.local());
        let queue = &resolved.queue;
        if queue.in_flight().is_empty() && !self.next_step_can_run(&resolved, compiled) {
            return false;
        }
        if !queue.lease().acquire_or_mark(self.rank().0) {
            return false;
        }
        let mut ready = ReadyList::default();
        let (mut deferred, mut moved) = (None, true);
        if !self.run_compiled(&resolved, compiled, &mut ready) {
            (deferred, moved) = self.run_under_lease(&resolved, &mut ready);
        }
        self.release(&resolved, deferred, &mut ready);
        self.run_ready(ready);
        moved
    }

    /// Returns true if the next step is released by a start, and its signal has reached the threshold or is poisoned.
    #[inline]
    fn next_step_can_run(&self, resolved: &ResolvedQueue<'_>, compiled: &CompiledCommands) -> bool {
        let queue = &resolved.queue;
        let released = compiled.starts.counter().load(Ordering::Acquire).wrapping_mul(queue.per_credit());
        if released == queue.commands() {
            return false;
        }
        let (line, pass) = queue.place_of(queue.reader().read());
        let step = &compiled.steps[compiled.at_line[line as usize] as usize];
        step.wait.as_ref().is_none_or(|wait| wait.is_over(pass) || self.is_poisoned(wait.cell))
    }

    /// Arms the signal for which the next step waits, so that a rank that raises it runs the queue. Does nothing if
    /// the step is left to the queue's rank. Returns true if the threshold was reached meanwhile.
    #[inline]
    pub(in crate::engine::command_queue) fn arm_next_wait(
        &self,
        repeating: &RepeatingQueue,
        compiled: &CompiledCommands,
    ) -> bool {
        let queue = repeating.local().queue();
        let released = compiled.starts.counter().load(Ordering::Relaxed).wrapping_mul(queue.per_credit());
        if released == queue.commands() {
            return false;
        }
        let (line, pass) = queue.place_of(queue.reader().read());
        let step = &compiled.steps[compiled.at_line[line as usize] as usize];
        let Some(wait) = step.wait.as_ref().filter(|_| !step.is_left_to_owner) else { return false };
        wait.cell.control().keep_armed(repeating.local().info().number);
        wait.is_over(pass)
    }

    fn is_poisoned(&self, cell: DirectCell) -> bool {
        cell.control().poison_and_value().is_some()
    }

    /// Runs steps until one must wait, under the lease. Returns false if the ordinary code must go on.
    #[inline]
    fn run_compiled(
        &self,
        resolved: &ResolvedQueue<'_>,
        compiled: &CompiledCommands,
        ready: &mut ReadyList,
    ) -> bool {
        let queue = &resolved.queue;
        if !queue.is_there() || !queue.in_flight().is_empty() {
            return false;
        }
        let released = compiled.starts.counter().load(Ordering::Acquire).wrapping_mul(queue.per_credit());
        let mut position = queue.reader().read();
        let mut left = released.wrapping_sub(queue.commands());
        loop {
            if left == 0 {
                return true;
            }
            let (line, pass) = queue.place_of(position);
            let step = &compiled.steps[compiled.at_line[line as usize] as usize];
            if let Some(wait) = &step.wait {
                if !wait.is_over(pass) {
                    return !self.is_poisoned(wait.cell);
                }
                if wait.cell.control().armed_hint() != NOBODY {
                    wait.cell.control().disarm(resolved.number);
                }
            }
            if !self.run_action(&step.action) {
                return false;
            }
            position = queue.behind(position, step.lines);
            queue.reader().set_read(position);
            queue.count_command();
            left -= 1;
            for &effect in step.effects.iter().flatten() {
                if let Err(cause) = self.perform_effect(effect, None, ready) {
                    queue.count_failure(Poison::of(&cause, self.rank()).words());
                }
            }
        }
    }

    #[inline(always)]
    fn run_action(&self, action: &CompiledAction) -> bool {
        match *action {
            CompiledAction::Nothing => true,
            CompiledAction::Copy { from, to, len, is_outward } => {
                let (from, to) = (from.as_ptr(), to.as_ptr());
                // SAFETY: both ranges were resolved for `len` bytes of job memory, which stays mapped.
                unsafe {
                    if is_outward {
                        self.store_policy().copy(from, to, len)
                    } else {
                        copy::copy(from, to, len)
                    }
                };
                copy::fence_after_copy(len);
                true
            }
            // SAFETY: both ranges were resolved for `len` bytes of job memory, which stays mapped.
            CompiledAction::Reduce { from, to, len, how } => unsafe {
                self.reduce_between(from, to, len, how)
            },
            CompiledAction::Other => false,
        }
    }
}
