//! Offloaded commands: if other ranks cannot map a queue, its owner posts a command that another rank has to run into
//! that rank's inbox, and waits for a signal of its own that the command raises.
//!
//! Triggers, effects, the order of streams, and failures stay with the owner of the queue, where the command is in
//! flight. Only the action is offloaded. It becomes a command that any rank may run, with one effect: it adds 1 to a
//! *return signal* of the owner. If the action fails, the return signal is poisoned, and is not used again.

mod forward;
pub(super) mod inbox;
pub(super) mod offloaded_command;

use crate::base::{Cause, Error, Rank, Result};
use crate::engine::command_queue::command_queues::CommandQueues;
use crate::engine::command_queue::lookup::{Failure, ResolvedQueue};
use crate::engine::command_queue::queue_name::QueueName;
use crate::engine::trace::CommandId;
use crate::engine::worker::Worker;
use crate::fabric::reached;
use crate::fabric::{Poison, SignalCell};
use crate::queue::command::{Action, Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::segment::GlobalAddress;
use crate::segment::layout::signal_offset;
use inbox::Inbox;
use offloaded_command::{OffloadedCommand, ReturnSignal};

/// Lines of the ring of an inbox.
const INBOX_LINES: usize = 256;

impl CommandQueues {
    /// The inbox of a rank. It has the same offset as this rank's inbox.
    fn inbox_of(&self, rank: Rank) -> Option<QueueName> {
        Some(self.inbox.get()?.queue().name().on(rank))
    }

    /// Its number in this rank's directory.
    fn inbox_number(&self) -> Option<u32> {
        Some(self.inbox.get()?.queue().info().number)
    }

    /// Returns true if the first command has arrived in this rank's inbox and the inbox is not polled yet.
    #[inline]
    pub(in crate::engine) fn inbox_has_commands(&self) -> bool {
        self.inbox.get().is_some_and(Inbox::has_arrived)
    }

    /// Begins to poll the inbox like the other queues, if a command has arrived there.
    pub(in crate::engine::command_queue) fn use_inbox(&self) {
        self.inbox.get().into_iter().for_each(|inbox| inbox.begin_use(&self.local));
    }

    /// The rank to which a command, taken for this rank, is offloaded, if it is.
    #[inline]
    pub(in crate::engine::command_queue) fn offload_target(&self, command: &Command) -> Option<Rank> {
        if self.direct { None } else { self.remote_target(command) }
    }

    /// A command that only one rank may run goes there. A copy between two other ranks would pass through this rank's
    /// memory. It goes to the owner of its source, unless the fabric can copy directly from one to the other.
    fn remote_target(&self, command: &Command) -> Option<Rank> {
        let me = self.rank;
        let to = match (command.runner(), command.action) {
            (Some(rank), _) => rank,
            (None, Action::Copy { from, to, len }) if to.rank() != me && len > 0 => from.rank(),
            _ => return None,
        };
        let stays = command.runner().is_none() && self.fabric.capabilities().third_party;
        (to != me && !stays).then_some(to)
    }

    fn take_return_signal(&self) -> Result<ReturnSignal, Cause> {
        if let Some(free) = self.free_return_signals.pop() {
            return Ok(free);
        }
        let made_count =
            self.fabric.registry().untouched_signals(1).map_err(|error| error.cause().clone())?;
        let one = ReturnSignal { signal: made_count, count: 1 };
        // So that a rank which raises it wakes this rank's helper.
        if let (Some(number), Some(control)) =
            (self.inbox_number(), self.signal_control_at(self.address_of(one)))
        {
            control.arm(number, false);
        }
        Ok(one)
    }

    fn address_of(&self, one: ReturnSignal) -> GlobalAddress {
        GlobalAddress::new(self.rank, signal_offset(one.signal))
    }
}

impl Worker {
    /// Makes this rank's inbox, if it needs one. Called once, before the rank has allocated anything, so that it lies
    /// at the same offset on all ranks.
    pub fn open_inbox(&self) -> Result<()> {
        if self.commands().direct {
            return Ok(());
        }
        // It is in symmetric memory, which all ranks allocate alike. The program's allocations follow it.
        let none = || Error::new(Cause::Bug("there is no symmetric memory for the inbox".into()));
        let allocate = |bytes| self.registry().allocate_symmetric(bytes)?.ok_or_else(none);
        let queue = self.lay_out_queue(INBOX_LINES, None, &allocate).map_err(Error::new)?;
        let first = self.commands().inbox.set(Inbox::new(queue)).is_ok();
        debug_assert!(first, "a rank has one inbox");
        Ok(())
    }

    /// Called when the rank leaves: accepts no more commands, and waits until those that were accepted have run.
    pub(in crate::engine) fn close_inbox(&self) {
        let Some(inbox) = self.commands().inbox.get() else { return };
        let Ok(lines) = self.close(inbox.queue()) else { return }; // the job is over
        let queue = inbox.queue().queue();
        while (queue.reader().read() < lines || !queue.in_flight().is_empty()) && self.check().is_ok() {
            self.pause();
        }
    }

    /// Offloads a command that was taken for this rank. Returns false if there is no room for it now.
    pub(in crate::engine::command_queue) fn offload(
        &self,
        resolved: &ResolvedQueue<'_>,
        place: CommandId,
        command: &Command,
    ) -> bool {
        let sent = self.commands().offload_target(command).map(|to| self.post_into_inbox(to, place, command));
        match sent {
            Some(Ok(())) => {}
            Some(Err(Cause::Full { .. })) => return false,
            // That rank has left or has not joined yet: this rank runs the command as far as it can.
            None | Some(Err(Cause::QueueDropped | Cause::PeerLeft { .. } | Cause::Stale { .. })) => {
                self.begin_steps(resolved, place.number, command);
                self.run_queue_and_ready(resolved);
            }
            Some(Err(cause)) => {
                self.end_in_flight(resolved, place.number, Some(self.failed(command, &cause)));
                self.run_queue_and_ready(resolved);
            }
        }
        true
    }

    fn post_into_inbox(&self, to: Rank, place: CommandId, command: &Command) -> Result<(), Cause> {
        let inbox = self.commands().inbox_of(to).ok_or(Cause::QueueDropped)?;
        let by = self.commands().take_return_signal()?;
        let mut action = EncodedCommand::of(&command.action);
        let posted = action
            .then(Effect { signal: self.commands().address_of(by), amount: 1 })
            .and_then(|()| self.post_commands(inbox, std::iter::once(&action)));
        match posted {
            Ok(_) => self.commands().offloaded.push(OffloadedCommand { place, by }),
            Err(_) => self.commands().free_return_signals.push(by),
        }
        posted.map(drop)
    }

    /// How an offloaded command ended, if it has ended.
    fn offload_outcome(&self, one: OffloadedCommand) -> Option<Failure> {
        let address = self.commands().address_of(one.by);
        if reached(SignalCell::Via(address).read(self.fabric()), one.by.count) {
            return Some(None);
        }
        let poison = self.commands().signal_control_at(address).and_then(|control| control.poisoned());
        poison.or_else(|| Some(Poison::of(&self.check().err()?, self.rank()))).map(Some)
    }

    /// Returns true if an offloaded command has ended.
    pub(in crate::engine::command_queue) fn have_offloaded_ended(&self) -> bool {
        let offloaded = &self.commands().offloaded;
        !offloaded.is_empty()
            && offloaded.snapshot().into_iter().any(|one| self.offload_outcome(one).is_some())
    }

    /// Ends the in-flight commands whose offloaded actions have ended.
    pub(in crate::engine::command_queue) fn collect_offloaded(&self) {
        let offloaded = &self.commands().offloaded;
        if offloaded.is_empty() {
            return;
        }
        for one in offloaded.take_all() {
            let Some(failure) = self.offload_outcome(one) else {
                offloaded.push(one);
                continue;
            };
            if failure.is_none() {
                let count = one.by.count + 1;
                self.commands().free_return_signals.push(ReturnSignal { count, ..one.by });
            }
            if let Some(resolved) = self.commands().find_by_id(one.place.queue) {
                self.end_in_flight(&resolved, one.place.number, failure);
                self.run_queue_and_ready(&resolved);
            }
        }
    }
}
