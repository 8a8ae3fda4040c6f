//! Posts of calls and commands of handlers, and of replies, now or as soon as there is room.

use super::active_messages::ActiveMessages;
use super::block_pool::BlockPool;
use super::deferred_list::{DeferredList, DeferredPost};
use crate::base::{Cause, Rank};
use crate::engine::command_queue::QueueName;
use crate::engine::worker::Worker;
use crate::fabric::{CommandWrite, Poison, Refused};
use crate::queue::command::Effect;
use crate::queue::encoding::EncodedCommand;
use crate::queue::handler_call::{BlockBytes, ReplyAddress};
use crate::queue::ring::LINE_WORDS;

impl Worker {
    /// Posts a call or command of a handler, now or as soon as there is room.
    pub(super) fn post_or_defer(
        &self,
        deferred: &DeferredList<DeferredPost>,
        to: QueueName,
        command: &EncodedCommand,
    ) -> Result<(), Cause> {
        if deferred.is_empty() {
            match self.post_commands(to, std::iter::once(command)) {
                Err(Cause::Full { .. }) => {}
                other => return other.map(drop),
            }
        }
        debug_assert!(
            deferred.has_room(1),
            "the rank has checked that there is room before it ran the handler"
        );
        deferred.push((to, *command));
        Ok(())
    }

    /// Posts the entries of the lists for which there is room now. Returns true if any was posted.
    pub(super) fn post_deferred(&self, calls: &ActiveMessages) -> bool {
        let lists = calls.levels.iter().map(|level| &level.deferred).chain([&calls.deferred_commands]);
        let mut posted = false;
        for deferred in lists {
            posted |= deferred.process(|(to, command)| {
                match self.post_commands(to, std::iter::once(&command)) {
                    Err(Cause::Full { .. }) => return false,
                    Ok(_) => {}
                    Err(cause) => {
                        take_back(&calls.block_pool, &command);
                        let handler = command.call().map_or(0, |call| call.handler);
                        self.fail_call(calls, (self.rank(), handler), &command.effects(), cause);
                    }
                }
                true
            });
        }
        posted | calls.unsent.process(|write| self.try_send_reply(&write))
    }

    /// Gives back a block of another rank, whose bytes this rank has read.
    pub(super) fn give_back(&self, calls: &ActiveMessages, header: ReplyAddress) {
        if !header.is_none() {
            self.reply(calls, header, [0; LINE_WORDS]);
        }
    }

    /// Writes or sends a reply.
    #[inline(always)]
    pub(super) fn reply(&self, calls: &ActiveMessages, place: ReplyAddress, words: [u64; LINE_WORDS]) {
        if !self.write_reply(place, &words) {
            let (places, words) = ([place.line(); 2], [words, [0; LINE_WORDS]]);
            self.send_reply(calls, CommandWrite { places, position: place.sequence(), words, lines: 1 });
        }
    }

    /// Sends a reply through the fabric, now or as soon as the fabric has room.
    fn send_reply(&self, calls: &ActiveMessages, write: CommandWrite) {
        if !calls.unsent.is_empty() || !self.try_send_reply(&write) {
            calls.unsent.push(write);
        }
    }

    /// Returns false if the write has to be tried again.
    fn try_send_reply(&self, write: &CommandWrite) -> bool {
        match self.fabric().write_command(write) {
            Ok(()) => true,
            Err(Refused::Again | Refused::Relay) => false,
            Err(Refused::Never(cause)) => {
                let to = write.places[0].rank();
                self.log().say(
                    crate::base::log::Level::Warn,
                    format_args!("a reply to rank {to} was lost: {cause}"),
                );
                true
            }
        }
    }

    /// Reports the failure of a call of the handler that `from` posted: poisons the signals of its effects, or, if it
    /// has none, records the failure for `from`.
    pub(super) fn fail_call(
        &self,
        calls: &ActiveMessages,
        (from, handler): (Rank, u8),
        effects: &[Option<Effect>; 2],
        cause: Cause,
    ) {
        if effects.iter().all(Option::is_none) {
            return calls.failed.record(from, handler, cause);
        }
        // The handler's message is not sent: a poison has no room for it.
        let (name, text) = (String::new(), String::new());
        let is_message = matches!(cause, Cause::Program(_));
        let cause = if is_message { Cause::HandlerFailed { handler, name, text } } else { cause };
        self.perform_effects(None, effects, Some(&Poison::of(&cause, self.rank())));
    }
}

/// Takes back the block that holds the arguments of a call that was not posted.
fn take_back(memory: &BlockPool, command: &EncodedCommand) {
    if let Some(call) = command.call()
        && !call.block.is_none()
    {
        memory.take_back(BlockBytes { header: call.block, len: call.len });
    }
}
