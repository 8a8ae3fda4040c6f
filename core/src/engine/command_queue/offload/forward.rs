//! Forwarding: commands that have fired in a command queue and are for another rank. These are handler calls, which the
//! rank that runs the queue posts to the call queue of the called rank, and commands that are offloaded.
//!
//! Calls of a queue are forwarded in order: a call that finds no room blocks the calls behind it in its queue, and
//! nothing else. If forwarding has to wait for the fabric, a thread that may wait does it.

use crate::engine::command_queue::command_queues::CommandQueues;
use crate::engine::command_queue::lookup::{Failure, ResolvedQueue};
use crate::engine::trace::CommandId;
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::queue::command::Command;

/// Time until a call that found no room at another rank is tried again, in ns.
const ROOM_NS: u64 = 20_000;

impl CommandQueues {
    /// Leaves a command that was taken for this rank to a thread that may wait for the fabric.
    pub(in crate::engine::command_queue) fn forward_later(
        &self,
        resolved: &ResolvedQueue<'_>,
        command_number: u64,
    ) {
        self.to_forward.push(resolved.place(command_number));
    }

    /// Returns true if [`Worker::forward_taken`] might find work.
    #[inline]
    pub(in crate::engine::command_queue) fn has_to_forward(&self) -> bool {
        !self.has_forwarded() && !self.forward_lock.is_locked()
    }

    /// The time at which a thread that would sleep until `until_ns` has to wake up, because no rank notifies it of
    /// room.
    pub(in crate::engine) fn until_room(&self, until_ns: u64, now_ns: u64) -> u64 {
        let waits = !self.has_forwarded() || self.local.iter().any(|(_, queue)| queue.for_room() > 0);
        if waits { until_ns.min(now_ns + ROOM_NS) } else { until_ns }
    }

    /// Returns true if no command has to be forwarded and none is being forwarded.
    #[inline]
    pub(in crate::engine) fn has_forwarded(&self) -> bool {
        self.to_forward.is_empty()
    }
}

impl Worker {
    /// Forwards a call that fires. Returns how the forwarding ended, if it could be done at once.
    pub(in crate::engine::command_queue) fn call_inline(
        &self,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
    ) -> Option<Failure> {
        let is_call = |command: &Command| command.as_call().is_some();
        if !self.reaches_words() || resolved.queue.in_flight().any_unfinished(is_call) {
            return None;
        }
        self.forward_call(resolved, command)
    }

    /// Forwards the next in-flight call. Returns how the forwarding ended; the inner `None` means that there is no
    /// room. The outer `None` means that it is no call, or that forwarding has to wait for the fabric.
    pub(in crate::engine::command_queue) fn forward_in_flight(
        &self,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
    ) -> Option<Option<Failure>> {
        let is_quick = command.as_call().is_some() && self.reaches_words();
        is_quick.then(|| self.forward_call(resolved, command))
    }

    /// Forwards the commands that were taken for this rank, as far as there is room, unless another thread of the rank
    /// is forwarding, or this thread waits inside of forwarding. Returns true if any was forwarded.
    #[inline]
    pub(in crate::engine) fn forward_taken(&self) -> bool {
        self.commands().has_to_forward() && self.forward_all()
    }

    #[cold]
    fn forward_all(&self) -> bool {
        let commands = self.commands();
        let Some(guard) = commands.forward_lock.try_lock() else { return false };
        let progressed = commands.to_forward.process(|place| self.forward_one(place));
        commands.to_forward.defer_first(); // there was no room for it: another one is tried first next time
        drop(guard);
        self.collect_offloaded(); // a command may have ended before it was entered into the list
        progressed
    }

    /// Forwards one command. Returns false if there is no room.
    fn forward_one(&self, command_id: CommandId) -> bool {
        let Some(resolved) = self.commands().find_by_id(command_id.queue) else { return true };
        let Some(command) = resolved.queue.in_flight().command(command_id.number) else { return true };
        if command.as_call().is_none() {
            return self.offload(&resolved, command_id, &command);
        }
        let Some(failure) = self.forward_call(&resolved, &command) else { return false };
        resolved.queue.in_flight().end(command_id.number, failure.map(Poison::words));
        self.run_queue_and_ready(&resolved);
        true
    }

    fn forward_call(&self, resolved: &ResolvedQueue<'_>, command: &Command) -> Option<Failure> {
        let call = command.as_call()?;
        match self.post_forwarded(resolved.owner, command, call) {
            Ok(true) => Some(None),
            Ok(false) => None,
            Err(poison) => Some(Some(poison)),
        }
    }
}
