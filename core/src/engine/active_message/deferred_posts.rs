//! Posts of calls and commands of handlers, and of replies, now or as soon as there is room.

use super::active_messages::ActiveMessages;
use super::deferred_list::{DeferredList, DeferredPost};
use crate::base::{Cause, Rank};
use crate::engine::command_queue::QueueName;
use crate::engine::worker::Worker;
use crate::fabric::{CommandWrite, Poison, Refused};
use crate::queue::command::Effect;
use crate::queue::encoding::EncodedCommand;

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
                    Err(cause) => self.fail_call(calls, self.rank(), &command.effects(), &cause),
                }
                true
            });
        }
        posted | calls.unsent.process(|write| self.try_send_reply(&write))
    }

    /// Sends a reply through the fabric, now or as soon as the fabric has room.
    pub(super) fn send_reply(&self, calls: &ActiveMessages, write: CommandWrite) {
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

    /// Reports the failure of a call that `from` posted: poisons the signals of its effects, or, if it has none, the
    /// failure signal of `from`.
    pub(super) fn fail_call(
        &self,
        calls: &ActiveMessages,
        from: Rank,
        effects: &[Option<Effect>; 2],
        cause: &Cause,
    ) {
        let poison = Poison::of(cause, self.rank());
        if effects.iter().any(Option::is_some) {
            self.perform_effects(None, effects, Some(&poison));
        } else {
            self.poison_signal(from, calls.failures, poison);
        }
    }
}
