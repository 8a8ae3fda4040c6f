//! A program as its own rank runs it: every address found beforehand.
#![allow(unsafe_code)]
//! Unsafe: copies between places of job memory that the fabric named when the program was made; what is freed stays
//! mapped while the fabric lives, and the machine keeps that.
//!
//! Whoever runs a queue reads a command out of its lines, looks for the queue, the memory and the signals that it
//! names, and books what is under way. A rank that runs a program of its own knows all that. It takes the lease as
//! anybody does, and leaves the books as anybody would: whoever comes next, wherever, goes on from there. What it
//! cannot do so, a long copy, a poisoned signal, it leaves to the common way.

use crate::base::Cause;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::repeating::RepeatingQueue;
use crate::engine::command_queue::run::inline::INLINE_REDUCE_MAX;
use crate::engine::command_queue::run::ready_list::ReadyList;
use crate::engine::worker::Worker;
use crate::fabric::{DirectCell, NOBODY, Poison, SignalCell, certainly_reached};
use crate::os::copy;
use crate::queue::command::{Action, Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::queue::reduction::Reduction;
use crate::segment::GlobalAddress;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// Most bytes that are copied so: longer copies others may help with.
const SHORT: u64 = 8 * 1024;

/// The commands of a program in their order.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct CompiledCommands {
    /// The signal that counts starts.
    starts: DirectCell,
    steps: Box<[CompiledStep]>,
    /// Which of them begins at each line.
    at_line: Box<[u32]>,
    /// Bytes that are moved or combined in a start.
    moved: u64,
}

#[derive(Debug)]
struct CompiledStep {
    lines: u64,
    wait: Option<CompiledWait>,
    /// Whoever raises what it waits for leaves it to this rank.
    is_left_to_owner: bool,
    action: CompiledAction,
    effects: [Option<Effect>; 2],
}

/// What a step waits for: a threshold that grows with each pass.
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
        /// To another rank's memory.
        is_outward: bool,
    },
    Reduce {
        from: NonNull<u8>,
        to: NonNull<u8>,
        len: usize,
        how: Reduction,
    },
    /// Something for the common way.
    Other,
}

// SAFETY: pointers to shared memory that is mapped while the machine lives.
unsafe impl Send for CompiledAction {}
// SAFETY: as above.
unsafe impl Sync for CompiledAction {}

impl CompiledWait {
    #[inline(always)]
    fn is_over(&self, pass: u64) -> bool {
        let threshold = self.first.wrapping_add(pass.wrapping_mul(self.more));
        certainly_reached(self.cell.counter().load(Ordering::Acquire), threshold) // SYNC signal-raise
    }
}

/// Bytes that a command moves or combines.
fn moved_by(encoded: &EncodedCommand) -> u64 {
    match Command::decode(encoded).map(|command| command.action) {
        Some(Action::Copy { len, .. } | Action::Reduce { len, .. }) => len,
        _ => 0,
    }
}

impl CompiledCommands {
    /// Bytes that are moved or combined in a start.
    #[inline]
    pub(in crate::engine::command_queue) fn moved(&self) -> u64 {
        self.moved
    }

    /// One more start. Only the program's rank starts it, one start after the other.
    #[inline]
    pub(in crate::engine::command_queue) fn start(&self) {
        let count = self.starts.counter().load(Ordering::Relaxed);
        // Whoever has the lease sees it, or is called by who starts it (SYNC lease).
        self.starts.counter().store(count.wrapping_add(1), Ordering::Release);
    }
}

impl Worker {
    /// The program of those commands as its own rank runs it, where it reaches all that they name by loads and stores.
    pub(in crate::engine::command_queue) fn compile_commands(
        &self,
        commands: &[EncodedCommand],
        starts: u32,
        per_start: u32,
    ) -> Result<Option<CompiledCommands>, Cause> {
        let SignalCell::Direct(starts) = self.fabric().own_signal(starts)? else { return Ok(None) };
        if !self.reaches_words() || self.recorder().is_some() {
            return Ok(None); // a trace tells of all that happens
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

    /// Runs what can be run of a program of this rank's own, unless somebody else is at it. Whether anything was run:
    /// whoever asks asks again.
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

    /// The same, but whoever else is at it goes on then.
    #[inline]
    pub(in crate::engine::command_queue) fn run_or_mark_lease(
        &self,
        repeating: &RepeatingQueue,
        compiled: &CompiledCommands,
    ) -> bool {
        let resolved = self.resolved(repeating.local());
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

    /// Whether the next step may be run now.
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

    /// Whoever raises what the next step waits for looks at the program from now on, unless that is left to its rank.
    /// Whether it has been raised meanwhile.
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

    /// Runs steps until one has to wait, under the lease. False: there is something for the common way.
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
                // SAFETY: places of so many bytes in memory of the job that stay mapped.
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
            // SAFETY: places of so many bytes in memory of the job that stay mapped.
            CompiledAction::Reduce { from, to, len, how } => unsafe {
                self.reduce_between(from, to, len, how)
            },
            CompiledAction::Other => false,
        }
    }
}
