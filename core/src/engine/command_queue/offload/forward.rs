//! EventKind fires in a queue of commands and is for another rank: calls of handlers, which whoever runs the queue hands on
//! to the queue of calls of the rank that they are for, and commands that travel.
//!
//! Calls go one after the other: one that finds no room holds up the calls behind it in its queue, and nothing else.
//! EventKind takes its time, because the fabric is waited for, is handed on by a thread that may wait.

use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::run::Failure;
use crate::engine::trace::CommandId;
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::queue::command::Command;

/// How long to wait for room at another rank before it is asked again, in ns.
const ROOM_NS: u64 = 20_000;

impl Worker {
    /// A call fires: how it ended, if it could be handed on at once.
    pub(in crate::engine::command_queue) fn call_inline(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
    ) -> Option<Failure> {
        let is_call = |command: &Command| command.calls().is_some();
        if !self.reaches_words() || named.queue.flights().are_open(is_call) {
            return None;
        }
        self.hand_on(named, command)
    }

    /// The next call under way: how it ended, the inner none if there is no room for it. The outer is none if it is no
    /// call, or if handing it on takes its time.
    pub(in crate::engine::command_queue) fn forward_flight(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
    ) -> Option<Option<Failure>> {
        let is_quick = command.calls().is_some() && self.reaches_words();
        is_quick.then(|| self.hand_on(named, command))
    }

    /// A command that was taken for this rank is handed on by a thread that may wait for the fabric.
    pub(in crate::engine::command_queue) fn forward_later(&self, named: &ResolvedQueue<'_>, flight: u64) {
        self.commands().taken.push(named.place(flight));
    }

    /// Whether [`Worker::forward_taken`] would find something.
    #[inline]
    pub(in crate::engine::command_queue) fn has_to_forward(&self) -> bool {
        !self.has_forwarded() && !self.commands().handing_on.is_taken()
    }

    /// When a thread that would sleep until then has to look again: nobody tells it that there is room.
    pub(in crate::engine) fn until_room(&self, until_ns: u64, now_ns: u64) -> u64 {
        let waits = !self.has_forwarded() || self.commands().own.iter().any(|own| own.queue().for_room() > 0);
        if waits { until_ns.min(now_ns + ROOM_NS) } else { until_ns }
    }

    /// Whether nothing is to be handed on, nor is being.
    #[inline]
    pub(in crate::engine) fn has_forwarded(&self) -> bool {
        self.commands().taken.is_empty()
    }

    /// Hands on what was taken for this rank, as far as there is room, unless another thread of it does, or this one
    /// waits for that very thing. Whether that was of use.
    #[inline]
    pub(in crate::engine) fn forward_taken(&self) -> bool {
        self.has_to_forward() && self.forward_all()
    }

    #[cold]
    fn forward_all(&self) -> bool {
        let commands = self.commands();
        let Some(turn) = commands.handing_on.take() else { return false };
        let of_use = commands.taken.process(|place| self.forward_one(place));
        commands.taken.defer_first(); // for which there was no room
        drop(turn);
        self.collect_offloaded(); // what has come back before it was noted who is away
        of_use
    }

    /// False: there is no room.
    fn forward_one(&self, taken: CommandId) -> bool {
        let Some(named) = self.find_named(taken.queue) else { return true };
        let Some(command) = named.queue.flights().command(taken.number) else { return true };
        if command.calls().is_none() {
            return self.offload(&named, taken, &command);
        }
        let Some(failure) = self.hand_on(&named, &command) else { return false };
        named.queue.flights().end(taken.number, failure.map(Poison::words));
        self.run_queue_and_ready(&named);
        true
    }

    fn hand_on(&self, named: &ResolvedQueue<'_>, command: &Command) -> Option<Failure> {
        let call = command.calls()?;
        match self.forward(named.owner, command, call) {
            Ok(true) => Some(None),
            Ok(false) => None,
            Err(poison) => Some(Some(poison)),
        }
    }
}
