//! Calling: a call is posted into the queue of the rank that runs it, and its answer waited for.

use super::ActiveMessages;
use super::reply::{ReplyLines, ReplyTicket};
use crate::base::{Cause, Rank, Result};
use crate::engine::wait::{Condition, WaitEvent};
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::node::node_state::Stage;
use crate::queue::command::{Action, Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::queue::handler_call::{Args, Call, Reply, ReplyAddress};
use crate::queue::inline_data::Inline;
use std::sync::Arc;

/// A call whose answer has not been read.
#[derive(Debug)]
pub struct PendingCall<'m> {
    answers: &'m Arc<ReplyLines>,
    ticket: ReplyTicket,
    to: Rank,
    /// Whether the line was given back.
    is_over: bool,
}

impl PendingCall<'_> {
    /// Whether the answer has come.
    #[inline]
    pub fn has_come(&self) -> bool {
        self.answers.has_come(self.ticket)
    }

    /// Who is to answer.
    pub fn to(&self) -> Rank {
        self.to
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.answers.abandon(self.ticket);
        }
    }
}

/// An answer that a thread sleeps for.
#[derive(Debug)]
struct ReplyEvent {
    answers: Arc<ReplyLines>,
    ticket: ReplyTicket,
    from: Rank,
}

impl WaitEvent for ReplyEvent {
    fn happened(&self) -> bool {
        self.answers.has_come(self.ticket)
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        // A rank that leaves runs before what it has taken.
        Some((self.from, Stage::Left))
    }
}

impl Worker {
    /// ActiveMessages a handler. Its effects happen when it has run; a failure poisons them, or, where there are none, is kept
    /// for [`Worker::call_failure`].
    pub fn call(&self, to: Rank, handler: u8, args: Args, effects: [Option<Effect>; 2]) -> Result<(), Cause> {
        let calls = self.calls_to(to)?;
        let level = calls.table.check(handler, args.len())?.depth;
        self.write_call(calls, to, level, handler, args, ReplyAddress::NONE, effects)
    }

    /// ActiveMessages a handler and asks for its answer.
    #[inline]
    pub fn call_with_reply(&self, to: Rank, handler: u8, args: Args) -> Result<PendingCall<'_>, Cause> {
        let calls = self.calls_to(to)?;
        let level = calls.table.check(handler, args.len())?.depth;
        let ticket = calls.answers.take().ok_or(Cause::Full {
            what: "the list of answers that this rank waits for",
            capacity: super::reply::ANSWERS,
        })?;
        let place = calls.answers.place(ticket);
        match self.write_call(calls, to, level, handler, args, place, [None, None]) {
            Ok(()) => {
                calls.answers.expect(ticket);
                Ok(PendingCall { answers: &calls.answers, ticket, to, is_over: false })
            }
            Err(cause) => {
                calls.answers.give_back(ticket);
                Err(cause)
            }
        }
    }

    /// Waits for an answer. `call` names the wait where it is told.
    #[inline]
    pub fn wait_reply(&self, asked: PendingCall<'_>, call: &dyn Fn() -> String) -> Result<Inline> {
        let spins = self.spins(Some(asked.to));
        if !self.wait_and_poll(spins, &|| asked.has_come()) {
            let coming = ReplyEvent { answers: asked.answers.clone(), ticket: asked.ticket, from: asked.to };
            self.wait(&Condition::Event(Arc::new(coming)), None, call)?;
        }
        self.read_reply(asked).map_err(|cause| self.fault(cause, call))
    }

    /// The answer, which has come.
    fn read_reply(&self, mut asked: PendingCall<'_>) -> Result<Inline, Cause> {
        let answer = asked.answers.read(asked.ticket);
        asked.answers.give_back(asked.ticket);
        asked.is_over = true;
        match answer {
            Some(Reply::Value(value)) => Ok(value),
            Some(Reply::Said(text)) => Err(Cause::Program(format!("on rank {}: {}", asked.to, shown(&text)))),
            Some(Reply::Failed(poison)) => Err(poison.cause()),
            None => Err(Cause::Bug("an answer that nobody can have written".into())),
        }
    }

    /// This rank's handlers, which are those of `to`, too.
    #[inline]
    fn calls_to(&self, to: Rank) -> Result<&ActiveMessages, Cause> {
        self.check_rank(to)?;
        let none = || Cause::Argument("the job was started without handlers (tasuki::main_with)".into());
        self.calls().ok_or_else(none)
    }

    #[inline]
    #[allow(clippy::too_many_arguments)] // the parts of a call, named once
    fn write_call(
        &self,
        calls: &ActiveMessages,
        to: Rank,
        level: usize,
        handler: u8,
        args: Args,
        answer: ReplyAddress,
        effects: [Option<Effect>; 2],
    ) -> Result<(), Cause> {
        let call = Call { peer: self.rank(), handler, args, answer };
        let command = written(call, &effects)?;
        self.post_call(self.call_queue(calls, to, level), &command)
    }

    /// A call that has fired in a queue of commands goes on to its own. False: there is no room for it now.
    pub(in crate::engine) fn forward(
        &self,
        from: Rank,
        command: &Command,
        call: &Call,
    ) -> Result<bool, Poison> {
        let posted = self.calls_to(call.peer).and_then(|calls| {
            let level = calls.table.check(call.handler, call.args.len())?.depth;
            let onward = written(Call { peer: from, ..*call }, &command.effects)?;
            self.post_call(self.call_queue(calls, call.peer, level), &onward)
        });
        match posted {
            Ok(()) => Ok(true),
            Err(Cause::Full { .. }) => Ok(false),
            Err(cause) => Err(Poison::of(&cause, self.rank())),
        }
    }
}

/// A call as it is posted.
#[inline]
pub(super) fn written(call: Call, effects: &[Option<Effect>; 2]) -> Result<EncodedCommand, Cause> {
    let deed = Action::Call(call);
    deed.check()?;
    let mut lines = EncodedCommand::of(&deed);
    effects.iter().flatten().try_for_each(|effect| lines.then(*effect))?;
    Ok(lines)
}

/// The beginning of what a handler said.
fn shown(text: &Inline) -> String {
    let whole = text.len() == crate::queue::inline_data::INLINE_BYTES;
    format!(
        "{}{}",
        String::from_utf8_lossy(text.bytes()).trim_end_matches('\u{fffd}'),
        if whole { "..." } else { "" }
    )
}
