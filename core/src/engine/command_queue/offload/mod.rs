//! CommandQueues that travel: where queues are out of reach of other ranks' processors, the owner of a queue posts what
//! another rank is to run into that rank's inbox, and waits for a signal of its own that this raises.
//!
//! Triggers, effects, the order of streams, and failures stay with the owner of the queue: for it the command is under
//! way. Only the deed travels, as a command for anybody with one effect, to add 1 to a *return signal*. If the deed
//! fails, that is poisoned, and then used no more.

mod forward;
pub(super) mod inbox;

use crate::base::{Cause, Rank};
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::run::Failure;
use crate::engine::trace::CommandId;
use crate::engine::worker::Worker;
use crate::fabric::reached;
use crate::fabric::{Poison, SignalCell};
use crate::queue::command::{Action, Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::segment::GlobalAddress;
use crate::segment::layout::signal_offset;

/// A signal by which one command at a time tells that it has ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::command_queue) struct ReturnSignal {
    signal: u32,
    /// EventKind it counts when the next one has ended well.
    count: u64,
}

/// A command that another rank runs for this one.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::command_queue) struct OffloadedCommand {
    place: CommandId,
    by: ReturnSignal,
}

impl Worker {
    /// To which rank a command travels that was taken for this one, if it does.
    #[inline]
    pub(in crate::engine::command_queue) fn offload_target(&self, command: &Command) -> Option<Rank> {
        if self.commands().direct { None } else { self.travels_far(command) }
    }

    /// One that only a certain rank may run goes there. A copy between two others, which would pass through this
    /// rank's memory, goes to the owner of its source, unless the fabric carries it straight from one to the other.
    fn travels_far(&self, command: &Command) -> Option<Rank> {
        let me = self.rank();
        let to = match (command.runner(), command.deed) {
            (Some(rank), _) => rank,
            (None, Action::Copy { from, to, len }) if to.rank() != me && len > 0 => from.rank(),
            _ => return None,
        };
        let stays = command.runner().is_none() && self.fabric().capabilities().third_party;
        (to != me && !stays).then_some(to)
    }

    /// Sends a command that was taken for this rank to where it is run. False: there is no room for it now.
    pub(in crate::engine::command_queue) fn offload(
        &self,
        named: &ResolvedQueue<'_>,
        place: CommandId,
        command: &Command,
    ) -> bool {
        let sent = self.offload_target(command).map(|to| self.post_into_inbox(to, place, command));
        match sent {
            Some(Ok(())) => {}
            Some(Err(Cause::Full { .. })) => return false,
            // Nobody is there any more, or not yet: this rank does what it can from here.
            None | Some(Err(Cause::QueueDropped | Cause::PeerLeft { .. } | Cause::Stale { .. })) => {
                self.begin_course(named, place.number, command);
                self.run_queue_and_ready(named);
            }
            Some(Err(cause)) => {
                self.end_flight(named, place.number, Some(self.failed(command, &cause)));
                self.run_queue_and_ready(named);
            }
        }
        true
    }

    fn post_into_inbox(&self, to: Rank, place: CommandId, command: &Command) -> Result<(), Cause> {
        let inbox = self.inbox_of(to).ok_or(Cause::QueueDropped)?;
        let by = self.take_return()?;
        let mut deed = EncodedCommand::of(&command.deed);
        let posted = deed
            .then(Effect { signal: self.address_of(by), amount: 1 })
            .and_then(|()| self.post_commands(inbox, std::iter::once(&deed)));
        match posted {
            Ok(_) => self.commands().away.push(OffloadedCommand { place, by }),
            Err(_) => self.commands().returns.push(by),
        }
        posted.map(drop)
    }

    fn take_return(&self) -> Result<ReturnSignal, Cause> {
        if let Some(free) = self.commands().returns.pop() {
            return Ok(free);
        }
        let made = self.registry().untouched_signals(1).map_err(|error| error.cause().clone())?;
        let one = ReturnSignal { signal: made, count: 1 };
        // So that whoever raises it wakes this rank's helper.
        if let (Some(number), Some(arming)) =
            (self.inbox_number(), self.signal_control_at(self.address_of(one)))
        {
            arming.arm(number, false);
        }
        Ok(one)
    }

    fn address_of(&self, one: ReturnSignal) -> GlobalAddress {
        GlobalAddress::new(self.rank(), signal_offset(one.signal))
    }

    /// How a command ended that another rank runs, if it has.
    fn returned(&self, one: OffloadedCommand) -> Option<Failure> {
        let address = self.address_of(one.by);
        if reached(SignalCell::Via(address).read(self.fabric()), one.by.count) {
            return Some(None);
        }
        let poison = self.signal_control_at(address).and_then(|arming| arming.poisoned());
        poison.or_else(|| Some(Poison::of(&self.check().err()?, self.rank()))).map(Some)
    }

    /// Whether a command has come back that another rank ran.
    pub(in crate::engine::command_queue) fn have_offloaded_ended(&self) -> bool {
        let away = &self.commands().away;
        !away.is_empty() && away.snapshot().into_iter().any(|one| self.returned(one).is_some())
    }

    /// Ends what other ranks have run.
    pub(in crate::engine::command_queue) fn collect_offloaded(&self) {
        let away = &self.commands().away;
        if away.is_empty() {
            return;
        }
        for one in away.take_all() {
            let Some(failure) = self.returned(one) else {
                away.push(one);
                continue;
            };
            if failure.is_none() {
                let count = one.by.count + 1;
                self.commands().returns.push(ReturnSignal { count, ..one.by });
            }
            if let Some(named) = self.find_named(one.place.queue) {
                self.end_flight(&named, one.place.number, failure);
                self.run_queue_and_ready(&named);
            }
        }
    }
}
