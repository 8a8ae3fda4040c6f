//! Posting and cancelling commands.

use super::local_queue::LocalQueue;
use super::lookup::ResolvedQueue;
use super::queue_name::QueueName;
use crate::base::sync::{Ordering, fence};
use crate::base::{Cause, Rank, error_hint};
use crate::engine::worker::Worker;
use crate::node::park::WakeMode;
use crate::os::prefetch;
use crate::queue::command::{Action, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::queue::handler_call::ReceivedCall;
use crate::queue::layout::{CALLS, Queue};
use crate::queue::ring::RingWriters;
use crate::segment::GlobalAddress;

impl Worker {
    /// Posts commands to a queue of this rank: all of them, at consecutive positions, or none. Returns the position of
    /// the first.
    ///
    /// Errors: the queue is full; a command is wrong in itself; the queue repeats.
    #[inline]
    pub fn post_own<'c>(
        &self,
        local: &LocalQueue,
        commands: impl Iterator<Item = &'c EncodedCommand> + Clone,
    ) -> Result<u64, Cause> {
        self.check()?;
        let resolved = self.commands().resolved(local);
        let lines = self.check_all(commands.clone(), resolved.queue.credit().is_some())?;
        if !self.commands().coherent {
            return self.post_remotely(local.name(), &local.info(), lines, commands);
        }
        let first = write_commands(&resolved, lines, commands.clone())?;
        self.notify_posted(&resolved, first, commands, || {
            self.run_queue_and_ready(&self.commands().resolved(local));
        });
        Ok(first)
    }

    /// Posts commands to a queue of any rank, like [`Worker::post_own`].
    ///
    /// Errors: those of [`Worker::post_own`]; no queue has that name any more.
    #[inline]
    pub fn post_commands<'c>(
        &self,
        name: QueueName,
        commands: impl Iterator<Item = &'c EncodedCommand> + Clone,
    ) -> Result<u64, Cause> {
        self.check()?;
        self.check_operand(name.address())?;
        if !self.commands().reach(name) {
            let info = self.remote_info(name)?;
            let lines = self.check_all(commands.clone(), info.credit.is_some())?;
            return self.post_remotely(name, &info, lines, commands);
        }
        let resolved = self.resolve_name(name)?;
        let lines = self.check_all(commands.clone(), resolved.queue.credit().is_some())?;
        let first = write_commands(&resolved, lines, commands.clone())?;
        self.notify_posted(&resolved, first, commands, || self.run_queue_at(name.address()));
        Ok(first)
    }

    /// Posts a call, whose handler was checked, to the call queue of a rank.
    #[inline]
    pub(in crate::engine) fn post_call(&self, name: QueueName, call: &EncodedCommand) -> Result<(), Cause> {
        self.check()?;
        if !self.operands_exist(call) {
            self.check_slowly(call, false)?;
        }
        let (lines, call) = (call.line_count(), std::iter::once(call));
        if !self.commands().reach(name) {
            return self.post_remotely(name, &self.remote_info(name)?, lines, call).map(drop);
        }
        let resolved = self.resolve_name(name)?;
        let first = write_commands(&resolved, lines, call.clone())?;
        self.notify_posted(&resolved, first, call, || {});
        Ok(())
    }

    /// Finds the queue with that name, which this process can map.
    #[inline(always)]
    fn resolve_name(&self, name: QueueName) -> Result<ResolvedQueue<'_>, Cause> {
        match self.commands().queue_at(name.address()) {
            Some(resolved) if resolved.generation == name.generation() => Ok(resolved),
            _ => Err(Cause::Stale { address: name.address().bits() }),
        }
    }

    /// Called after commands have been written: makes sure that a rank runs the queue, and records the posts if the
    /// rank is traced.
    #[inline(always)]
    fn notify_posted<'c>(
        &self,
        resolved: &ResolvedQueue<'_>,
        first: u64,
        commands: impl Iterator<Item = &'c EncodedCommand>,
        run: impl FnOnce(),
    ) {
        let begin = self.recorder().map(|recorder| (recorder, self.platform().observer_now_ns()));
        if !self.leave_to_owner(resolved) {
            run();
        }
        if let Some((recorder, begin)) = begin {
            self.record_posts(recorder, begin, resolved.id(), first, commands);
        }
    }

    /// Called after commands have been written. Returns true if the owner will read them; it is woken for calls.
    /// Returns false if the owner does not poll, so that this thread has to run the queue.
    #[inline(always)]
    fn leave_to_owner(&self, resolved: &ResolvedQueue<'_>) -> bool {
        RingWriters::fence_after_reserve();
        if self.node_state().wake_mode() == WakeMode::Fence {
            fence(Ordering::SeqCst); // SYNC serving
        } else {
            crate::base::sync::compiler_fence(Ordering::SeqCst);
        }
        let poll_state = &resolved.directory().poll_state;
        if !resolved.takes_calls() {
            return poll_state.is_polled();
        }
        if !poll_state.has_own_thread() {
            self.node_state().rank_state(resolved.owner).wake();
        }
        true
    }

    /// Runs the queue that begins at `at`.
    #[inline(never)]
    fn run_queue_at(&self, at: GlobalAddress) {
        if let Some(resolved) = self.commands().queue_at(at) {
            self.run_queue_and_ready(&resolved);
        }
    }

    /// Checks commands and returns the number of lines that they take.
    #[inline(always)]
    fn check_all<'c>(
        &self,
        commands: impl Iterator<Item = &'c EncodedCommand>,
        in_session: bool,
    ) -> Result<u64, Cause> {
        let mut lines = 0;
        for command in commands {
            self.check_command(command, in_session)?;
            lines += command.line_count();
        }
        Ok(lines)
    }

    /// Checks a command without reading its operands.
    #[inline(always)]
    pub(in crate::engine) fn check_command(
        &self,
        command: &EncodedCommand,
        in_session: bool,
    ) -> Result<(), Cause> {
        let is_plain = !(command.is_call() || in_session && command.is_triggered());
        if is_plain && self.operands_exist(command) { Ok(()) } else { self.check_slowly(command, in_session) }
    }

    /// Returns true if the ranks of all its operands and effects exist and no operand is null.
    #[inline(always)]
    fn operands_exist(&self, command: &EncodedCommand) -> bool {
        let size = self.size();
        let is_there = |at: GlobalAddress| !at.is_null() & (at.rank().0 < size);
        command.all_operands(is_there) && command.all_effect_signals(is_there)
    }

    /// Checks a call; for other commands, finds the error.
    #[inline(never)]
    fn check_slowly(&self, command: &EncodedCommand, in_session: bool) -> Result<(), Cause> {
        if in_session && command.is_triggered() {
            let text = "a command of a session queue has no trigger: the queue's credit releases it";
            return Err(Cause::Argument(text.into()));
        }
        let mut outcome = Ok(());
        command.all_operands(|at| {
            outcome = self.check_operand(at);
            outcome.is_ok()
        });
        outcome?;
        for Effect { signal, .. } in command.effects().into_iter().flatten() {
            self.check_rank(signal.rank())?;
        }
        let Some(ReceivedCall { peer, handler, len, .. }) = command.call() else { return Ok(()) };
        self.check_rank(peer)?;
        self.handler_table().check(handler, len).map(drop)
    }

    #[inline(always)]
    fn check_operand(&self, at: GlobalAddress) -> Result<(), Cause> {
        if at.is_null() { Err(Cause::NullAddress) } else { self.check_rank(at.rank()) }
    }

    /// Cancels a command. Returns true if it will never fire, and false if it has fired or fires now, once. Waits for
    /// the thread that runs the queue at the moment.
    ///
    /// Errors: the queue repeats.
    pub fn cancel(&self, local: &LocalQueue, position: u64) -> Result<bool, Cause> {
        let resolved = self.commands().resolved(local);
        let queue = &resolved.queue;
        if queue.cycle().is_some() {
            return Err(Cause::Argument("the commands of a repeating queue cannot be cancelled".into()));
        }
        loop {
            let taken = queue.lease().acquire_or_mark(self.rank().to_word());
            let outcome = if taken { self.cancel_now(&resolved, position) } else { None };
            if taken {
                while !queue.lease().release() {} // the queue is run for those marks below
                self.run_queue_and_ready(&resolved);
            }
            if let Some(cancelled) = outcome {
                return Ok(cancelled);
            }
            self.check()?;
            self.pause();
        }
    }

    /// Cancels a command, under the lease. `None`: its line is not written yet.
    fn cancel_now(&self, resolved: &ResolvedQueue<'_>, position: u64) -> Option<bool> {
        let queue = &resolved.queue;
        if let Some((signal, was_last)) = queue.triggered().remove(position) {
            if was_last {
                resolved.disarm(signal);
            }
            return Some(true);
        }
        if position < queue.reader().read() {
            return Some(false);
        }
        // It was not read: it is overwritten by a command that does nothing.
        let encoded = resolved.encoded_at(position)?;
        let mut nothing = EncodedCommand::of(&Action::Nothing);
        nothing.set_line_count(encoded.line_count());
        queue.line(position).write(position, &nothing.words[0]);
        Some(true)
    }

    /// Makes a session queue of this rank repeat: after the last command that was posted up to now it starts again from
    /// the first. No more commands can be posted.
    ///
    /// Errors: it is no session queue; it has no commands; a command has run already.
    pub fn repeat(&self, local: &LocalQueue) -> Result<(), Cause> {
        let queue = local.queue();
        let refuse = |text: &str| Err(Cause::Argument(text.into()));
        if queue.credit().is_none() {
            return refuse("only a session queue can repeat: make it with Queue::session");
        }
        let lines = self.reserved_in(local)?;
        if lines == 0 {
            return refuse("the queue has no commands: post all of them before you make it repeat");
        }
        if queue.reader().read() > 0 || lines > queue.capacity() {
            return refuse(
                "one of its commands has run already: make it repeat before its credit is first raised",
            );
        }
        queue.set_cycle(self.close(local)?);
        let resolved = self.commands().resolved(local);
        if !self.reaches_words() {
            resolved
                .head_signals()
                .for_each(|signal| resolved.signal_control(signal).arm(resolved.number, false));
        }
        Ok(())
    }
}

/// Number of lines ahead of a post at which a ring line is prefetched from the processor that read it last. The
/// prefetch takes as long as a few posts, and the reader does not read that far ahead.
const PREFETCH_LINES: u64 = 8;

/// Reserves `lines` positions and writes the commands there. Returns the position of the first.
#[inline(always)]
fn write_commands<'c>(
    resolved: &ResolvedQueue<'_>,
    lines: u64,
    commands: impl Iterator<Item = &'c EncodedCommand>,
) -> Result<u64, Cause> {
    let queue = &resolved.queue;
    let Some(first) = queue.writers().reserve(lines, queue.capacity(), queue.reader()) else {
        return Err(match queue.writers().is_closed() {
            true => closed(resolved.number, resolved.owner, queue.cycle().is_some()),
            false => full(resolved.number, queue.capacity(), lines),
        });
    };
    if !queue.is_there() {
        // The queue was dropped after it was found, and its memory freed: the reserved positions mean nothing.
        return Err(closed(resolved.number, resolved.owner, false));
    }
    let mut position = first;
    for command in commands {
        position += write(queue, position, command);
    }
    Ok(first)
}

/// Writes a command at a reserved position and returns its number of lines. The first line is written last, so that a
/// reader which sees it sees both.
#[inline]
fn write(queue: &Queue<'_>, position: u64, encoded: &EncodedCommand) -> u64 {
    let count = encoded.line_count();
    prefetch::for_writing(std::ptr::from_ref(queue.line(position + PREFETCH_LINES)).cast());
    if count == 2 {
        queue.line(position + 1).write(position + 1, &encoded.words[1]);
    }
    queue.line(position).write(position, &encoded.words[0]);
    count
}

/// The error for a queue that has no room for commands of `lines` lines.
#[cold]
pub(super) fn full(number: u32, capacity: u64, lines: u64) -> Cause {
    if lines > capacity {
        return Cause::Argument(format!(
            "the queue has {capacity} lines, and this takes {lines}: a command takes one line, or two if it does not fit \
             in one, and post_many needs room for all of its commands at once"
        ));
    }
    let what = if number == CALLS { error_hint::QUEUE_OF_CALLS } else { error_hint::COMMAND_QUEUE };
    Cause::Full { what, capacity: capacity as usize }
}

/// The error for a queue that accepts no more commands.
#[cold]
pub(super) fn closed(number: u32, owner: Rank, repeats: bool) -> Cause {
    match number {
        CALLS => Cause::PeerLeft { peer: owner },
        _ if repeats => Cause::QueueRepeats,
        _ => Cause::QueueDropped,
    }
}
