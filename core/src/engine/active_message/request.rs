//! The calling side: posts a call into the call queue of the rank that runs it, and waits for its reply.

use super::active_messages::ActiveMessages;
use super::reply_lines::{REPLY_LINES, ReplyLines, ReplyTicket};
use crate::base::{Cause, Rank, Result};
use crate::engine::wait::condition::{Condition, WaitEvent};
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::node::node_state::RankStage;
use crate::queue::command::{Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::queue::handler_call::{Args, Call, Reply, ReplyAddress};
use crate::queue::inline_data::Inline;
use std::sync::Arc;

/// A call whose reply has not been read.
#[derive(Debug)]
pub struct PendingCall<'m> {
    reply_lines: &'m Arc<ReplyLines>,
    ticket: ReplyTicket,
    to: Rank,
    /// True if the reply line was released.
    is_released: bool,
}

impl PendingCall<'_> {
    /// Returns true if the reply has arrived.
    #[inline]
    pub fn has_arrived(&self) -> bool {
        self.reply_lines.has_arrived(self.ticket)
    }

    /// The condition that the reply has arrived.
    pub fn arrival(&self) -> Condition {
        Condition::Event(Arc::new(ReplyEvent {
            reply_lines: self.reply_lines.clone(),
            ticket: self.ticket,
            from: self.to,
        }))
    }

    /// The rank that sends the reply.
    pub fn to(&self) -> Rank {
        self.to
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.is_released {
            self.reply_lines.abandon(self.ticket);
        }
    }
}

/// The arrival of a reply, as an event for which a thread sleeps.
#[derive(Debug)]
struct ReplyEvent {
    reply_lines: Arc<ReplyLines>,
    ticket: ReplyTicket,
    from: Rank,
}

impl WaitEvent for ReplyEvent {
    fn happened(&self) -> bool {
        self.reply_lines.has_arrived(self.ticket)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        // A rank that leaves first runs the calls that it has accepted.
        Some((self.from, RankStage::Left))
    }

    fn call(&self) -> String {
        format!("reply of rank {}", self.from)
    }
}

impl Worker {
    /// Calls a handler without a reply. The effects happen when it has run. A failure poisons their signals. Without
    /// effects, [`Worker::call_failure`] returns it.
    pub fn call(&self, to: Rank, handler: u8, args: Args, effects: [Option<Effect>; 2]) -> Result<(), Cause> {
        let calls = self.calls_to(to)?;
        let level = calls.table.check(handler, args.len())?.depth;
        self.write_call(calls, to, level, handler, args, ReplyAddress::NONE, effects)
    }

    /// Calls a handler that sends a reply.
    ///
    /// Errors: as many calls of this rank as there are reply lines wait for replies; the queue of the called rank is
    /// full; there is no such handler, or it takes another number of bytes.
    #[inline]
    pub fn call_with_reply(&self, to: Rank, handler: u8, args: Args) -> Result<PendingCall<'_>, Cause> {
        let calls = self.calls_to(to)?;
        let level = calls.table.check(handler, args.len())?.depth;
        let ticket = calls.reply_lines.take().ok_or(Cause::Full {
            what: "the list of replies that this rank waits for",
            capacity: REPLY_LINES,
        })?;
        let place = calls.reply_lines.place(ticket);
        match self.write_call(calls, to, level, handler, args, place, [None, None]) {
            Ok(()) => {
                calls.reply_lines.expect(ticket);
                Ok(PendingCall { reply_lines: &calls.reply_lines, ticket, to, is_released: false })
            }
            Err(cause) => {
                calls.reply_lines.release(ticket);
                Err(cause)
            }
        }
    }

    /// Waits for a reply and returns it. `call` names the wait in errors and reports.
    #[inline]
    pub fn wait_reply(&self, pending: PendingCall<'_>, call: &dyn Fn() -> String) -> Result<Inline> {
        let spins = self.spins(Some(pending.to));
        if !self.wait_and_poll(spins, &|| pending.has_arrived()) {
            self.wait(&pending.arrival(), None, call)?;
        }
        self.read_reply(pending).map_err(|cause| self.fault(cause, call))
    }

    /// Takes the reply, which has arrived.
    fn read_reply(&self, mut pending: PendingCall<'_>) -> Result<Inline, Cause> {
        let reply = pending.reply_lines.read(pending.ticket);
        pending.reply_lines.release(pending.ticket);
        pending.is_released = true;
        match reply {
            Some(Reply::Value(value)) => Ok(value),
            Some(Reply::ErrorMessage(text)) => {
                Err(Cause::Program(format!("on rank {}: {}", pending.to, error_text(&text))))
            }
            Some(Reply::Failed(poison)) => Err(poison.cause()),
            None => Err(Cause::Bug("a reply line that encodes no reply".into())),
        }
    }

    /// The handlers of rank `to`, which are the same as those of this rank.
    #[inline]
    fn calls_to(&self, to: Rank) -> Result<&ActiveMessages, Cause> {
        self.check_rank(to)?;
        let none = || Cause::Argument("the job was started without handlers (tasuki::main_with)".into());
        self.calls().ok_or_else(none)
    }

    #[inline]
    #[allow(clippy::too_many_arguments)] // the parts of a call
    fn write_call(
        &self,
        calls: &ActiveMessages,
        to: Rank,
        level: usize,
        handler: u8,
        args: Args,
        reply: ReplyAddress,
        effects: [Option<Effect>; 2],
    ) -> Result<(), Cause> {
        let call = Call { peer: self.rank(), handler, args, reply };
        let command = EncodedCommand::of_call(call, &effects)?;
        self.post_call(calls.call_queue(to, level), &command)
    }

    /// Posts a call that has fired in a command queue to the call queue of its rank. Returns false if there is no room
    /// now.
    pub(in crate::engine) fn post_forwarded(
        &self,
        from: Rank,
        command: &Command,
        call: &Call,
    ) -> Result<bool, Poison> {
        let posted = self.calls_to(call.peer).and_then(|calls| {
            let level = calls.table.check(call.handler, call.args.len())?.depth;
            let forwarded = EncodedCommand::of_call(Call { peer: from, ..*call }, &command.effects)?;
            self.post_call(calls.call_queue(call.peer, level), &forwarded)
        });
        match posted {
            Ok(()) => Ok(true),
            Err(Cause::Full { .. }) => Ok(false),
            Err(cause) => Err(Poison::of(&cause, self.rank())),
        }
    }
}

/// The error message of a handler, with "..." if it may have been cut.
fn error_text(text: &Inline) -> String {
    let whole = text.len() == crate::queue::inline_data::INLINE_BYTES;
    format!(
        "{}{}",
        String::from_utf8_lossy(text.bytes()).trim_end_matches('\u{fffd}'),
        if whole { "..." } else { "" }
    )
}
