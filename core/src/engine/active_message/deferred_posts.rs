//! What a rank has to post and finds no room for yet: calls and commands of its handlers, and answers.

use super::ActiveMessages;
use crate::base::{Cause, Rank};
use crate::engine::command_queue::QueueName;
use crate::engine::sync::work_queue::WorkQueue;
use crate::engine::worker::Worker;
use crate::fabric::{CommandWrite, Poison, Refused};
use crate::queue::command::Effect;
use crate::queue::encoding::EncodedCommand;

/// Entries of a list. Handlers are run while there is room for all that one may post, and for its answer.
const ENTRIES: usize = 256;
const _: () = assert!(ENTRIES >= 2 * super::handler_table::EACH_MAX);

/// A post that waits for room.
pub(super) type DeferredPost = (QueueName, EncodedCommand);

/// Whether so many more may wait for room.
#[inline]
pub(super) fn has_room<T>(list: &WorkQueue<T>, count: usize) -> bool {
    list.len() + count <= ENTRIES
}

fn enter<T>(list: &WorkQueue<T>, entry: T) {
    list.push(entry);
    debug_assert!(list.len() <= ENTRIES, "room was asked for before");
}

impl Worker {
    /// Posts what a handler wants posted, now or when there is room.
    pub(super) fn follow(
        &self,
        following: &WorkQueue<DeferredPost>,
        to: QueueName,
        command: &EncodedCommand,
    ) -> Result<(), Cause> {
        if following.is_empty() {
            match self.post_commands(to, std::iter::once(command)) {
                Err(Cause::Full { .. }) => {}
                other => return other.map(drop),
            }
        }
        enter(following, (to, *command));
        Ok(())
    }

    /// Posts what waited for room. Whether something went.
    pub(super) fn post_following(&self, calls: &ActiveMessages) -> bool {
        let lists = calls.levels.iter().map(|level| &level.following).chain([&calls.commands_following]);
        let mut posted = false;
        for following in lists {
            posted |= following.process(|(to, command)| {
                match self.post_commands(to, std::iter::once(&command)) {
                    Err(Cause::Full { .. }) => return false,
                    Ok(_) => {}
                    Err(cause) => self.fail_call(calls, self.rank(), &command.effects(), &cause),
                }
                true
            });
        }
        posted | calls.unsent.process(|write| self.was_sent(&write))
    }

    /// Sends an answer by the fabric, now or when it has room.
    pub(super) fn send_reply(&self, calls: &ActiveMessages, write: CommandWrite) {
        if !calls.unsent.is_empty() || !self.was_sent(&write) {
            enter(&calls.unsent, write);
        }
    }

    /// False: it may be tried again.
    fn was_sent(&self, write: &CommandWrite) -> bool {
        match self.fabric().write_command(write) {
            Ok(()) => true,
            Err(Refused::Again | Refused::Relay) => false,
            Err(Refused::Never(cause)) => {
                let to = write.places[0].rank();
                self.log().say(
                    crate::base::log::Level::Warn,
                    format_args!("an answer for rank {to} was lost: {cause}"),
                );
                true
            }
        }
    }

    /// A call that `from` posted failed: whoever waits for its effects is told, or else `from`.
    pub(super) fn fail_call(
        &self,
        calls: &ActiveMessages,
        from: Rank,
        effects: &[Option<Effect>; 2],
        cause: &Cause,
    ) {
        let poison = Poison::of(cause, self.rank());
        if effects.iter().any(Option::is_some) {
            self.let_happen(None, effects, Some(&poison));
        } else {
            self.poison_signal(from, calls.failures, poison);
        }
    }
}
