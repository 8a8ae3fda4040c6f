//! The calling side: posts a call into the call queue of the rank that runs it, and waits for its reply.

use super::active_messages::ActiveMessages;
use super::block_pool::{ARGUMENTS_MAX, Purpose};
use super::reply_lines::{REPLY_LINES, ReplyLines, ReplyTicket};
use crate::base::error_hint::REPLIES;
use crate::base::{Cause, Rank, Result};
use crate::engine::wait::condition::{Condition, WaitEvent};
use crate::engine::wait::deadline::in_one_call;
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::node::node_state::RankStage;
use crate::queue::command::{Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::queue::handler_call::{Args, BlockBytes, Call, Reply, ReplyAddress};
use crate::queue::inline_data::Inline;
use std::sync::Arc;

/// What a call does if there is no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// It fails.
    Fail,
    /// It runs handlers and makes progress until there is room.
    Wait,
}

/// A call whose reply has not been read.
#[derive(Debug)]
pub struct PendingCall<'m> {
    worker: &'m Worker,
    calls: &'m ActiveMessages,
    ticket: ReplyTicket,
    to: Rank,
    /// True if the reply line was released.
    is_released: bool,
}

impl PendingCall<'_> {
    /// Returns true if the reply has arrived.
    #[inline]
    pub fn has_arrived(&self) -> bool {
        self.calls.reply_lines.has_arrived(self.ticket)
    }

    /// The condition that the reply has arrived.
    pub fn arrival(&self) -> Condition {
        Condition::Event(Arc::new(ReplyEvent {
            reply_lines: self.calls.reply_lines.clone(),
            ticket: self.ticket,
            from: self.to,
        }))
    }

    /// The rank that sends the reply.
    pub fn to(&self) -> Rank {
        self.to
    }

    /// Takes the reply, which has arrived.
    #[inline]
    fn take(&mut self) -> Option<Reply> {
        let reply = self.calls.reply_lines.read(self.ticket);
        self.calls.reply_lines.release(self.ticket);
        self.is_released = true;
        reply
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if self.is_released || self.worker.fork_guard().is_forked() {
            // In a forked child the line and the block are the parent's.
        } else if self.has_arrived() {
            let unread = self.take();
            unread.into_iter().for_each(|reply| self.worker.discard(self.calls, reply));
        } else {
            self.calls.reply_lines.abandon(self.ticket);
        }
    }
}

/// The value of a reply.
#[derive(Debug)]
pub enum ReplyValue<'m> {
    /// The bytes.
    Short(Inline),
    /// Bytes that are still at the rank that sent the reply.
    Long(LongReply<'m>),
}

/// Bytes of a reply at the rank that sent it. That rank can use their memory again when this is dropped.
#[derive(Debug)]
pub struct LongReply<'m> {
    worker: &'m Worker,
    calls: &'m ActiveMessages,
    value: BlockBytes,
}

impl ReplyValue<'_> {
    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            ReplyValue::Short(bytes) => bytes.len(),
            ReplyValue::Long(long) => long.value.len as usize,
        }
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the bytes to `into`, which has [`ReplyValue::len`] bytes.
    #[inline]
    pub fn read(self, into: &mut [u8]) -> Result<()> {
        match self {
            ReplyValue::Short(bytes) => into.copy_from_slice(bytes.bytes()),
            ReplyValue::Long(long) => long.worker.get(long.value.address(), into)?,
        }
        Ok(())
    }
}

impl Drop for LongReply<'_> {
    fn drop(&mut self) {
        if !self.worker.fork_guard().is_forked() {
            self.worker.give_back(self.calls, self.value.header);
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
    /// effects, [`Worker::flush_calls`] returns it.
    #[inline(always)]
    pub fn call(
        &self,
        to: Rank,
        handler: u8,
        args: &[u8],
        effects: [Option<Effect>; 2],
        when_full: WhenFull,
    ) -> Result<(), Cause> {
        match Inline::of(args) {
            Some(args) => self.until_room(when_full, || self.post(to, handler, Args::Inline(args), effects)),
            None => self.with_block(to, args, when_full, |args| self.post(to, handler, args, effects)),
        }
    }

    /// Calls a handler that sends a reply.
    ///
    /// Errors: as many calls of this rank as there are reply lines wait for replies that somebody will read; the queue
    /// of the called rank is full, unless the call waits for room; there is no such rank.
    #[inline(always)]
    pub fn call_with_reply(
        &self,
        to: Rank,
        handler: u8,
        args: &[u8],
        when_full: WhenFull,
    ) -> Result<PendingCall<'_>, Cause> {
        match Inline::of(args) {
            Some(args) => {
                self.until_room(when_full, || self.post_with_reply(to, handler, Args::Inline(args)))
            }
            None => self.with_block(to, args, when_full, |args| self.post_with_reply(to, handler, args)),
        }
    }

    /// Makes a call until there is room for it, or once.
    #[inline(always)]
    pub(super) fn until_room<T>(
        &self,
        when_full: WhenFull,
        mut call: impl FnMut() -> Result<T, Cause>,
    ) -> Result<T, Cause> {
        let mut waiting = None;
        loop {
            match call() {
                Err(full @ Cause::Full { .. }) if when_full == WhenFull::Wait => {
                    waiting.get_or_insert_with(in_one_call);
                    self.make_room(full)?;
                }
                outcome => return outcome,
            }
        }
    }

    /// Moves everything on, so that there may be room. Fails if there will be none, or when the time limit is reached.
    #[cold]
    fn make_room(&self, full: Cause) -> Result<(), Cause> {
        let is_hopeless = |calls: &ActiveMessages| !calls.reply_lines.has_abandoned();
        if matches!(full, Cause::Full { what: REPLIES, .. }) && self.calls().is_none_or(is_hopeless) {
            return Err(full);
        }
        self.progress();
        self.check()?;
        self.check_deadline()?;
        self.pause_briefly();
        Ok(())
    }

    /// Makes a call with arguments that are too long for its lines.
    #[inline(never)]
    fn with_block<T>(
        &self,
        to: Rank,
        args: &[u8],
        when_full: WhenFull,
        mut call: impl FnMut(Args) -> Result<T, Cause>,
    ) -> Result<T, Cause> {
        let calls = self.calls_to(to)?;
        self.check()?;
        let what = "the memory for arguments of calls";
        let bytes = self.until_room(when_full, || {
            let bytes = calls.block_pool.fill(Purpose::Argument, args, self.registry())?;
            bytes.ok_or(Cause::Full { what, capacity: ARGUMENTS_MAX as usize })
        })?;
        let outcome = self.until_room(when_full, || call(Args::InBlock(bytes)));
        if outcome.is_err() {
            calls.block_pool.take_back(bytes);
        }
        outcome
    }

    #[inline]
    fn post(&self, to: Rank, handler: u8, args: Args, effects: [Option<Effect>; 2]) -> Result<(), Cause> {
        let calls = self.calls_to(to)?;
        let level = calls.table.check(handler, args.len())?.depth;
        self.write_call(calls, to, level, handler, args, ReplyAddress::NONE, effects)?;
        calls.record_post(to, level);
        Ok(())
    }

    #[inline]
    fn post_with_reply(&self, to: Rank, handler: u8, args: Args) -> Result<PendingCall<'_>, Cause> {
        let calls = self.calls_to(to)?;
        let level = calls.table.check(handler, args.len())?.depth;
        self.write_call_with_reply(calls, to, level, handler, args)
    }

    #[inline]
    pub(super) fn write_call_with_reply<'m>(
        &'m self,
        calls: &'m ActiveMessages,
        to: Rank,
        level: usize,
        handler: u8,
        args: Args,
    ) -> Result<PendingCall<'m>, Cause> {
        let ticket = calls.reply_lines.take(|unread| self.discard(calls, unread));
        let ticket = ticket.ok_or(Cause::Full { what: REPLIES, capacity: REPLY_LINES })?;
        let place = calls.reply_lines.place(ticket);
        match self.write_call(calls, to, level, handler, args, place, [None, None]) {
            Ok(()) => {
                calls.reply_lines.expect(ticket);
                Ok(PendingCall { worker: self, calls, ticket, to, is_released: false })
            }
            Err(cause) => {
                calls.reply_lines.release(ticket);
                Err(cause)
            }
        }
    }

    /// Waits for a reply and returns its value. `call` names the wait in errors and reports.
    #[inline]
    pub fn wait_reply<'m>(
        &'m self,
        pending: PendingCall<'m>,
        call: &dyn Fn() -> String,
    ) -> Result<ReplyValue<'m>> {
        let spins = self.spins(Some(pending.to));
        if !self.wait_and_poll(spins, &|| pending.has_arrived()) {
            self.wait(&pending.arrival(), self.call_deadline(), call)?;
        }
        self.read_reply(pending).map_err(|cause| self.fault(cause, call))
    }

    /// Takes the reply, which has arrived.
    #[inline]
    fn read_reply<'m>(&'m self, mut pending: PendingCall<'m>) -> Result<ReplyValue<'m>, Cause> {
        let (calls, to) = (pending.calls, pending.to);
        match pending.take() {
            Some(Reply::Value(value)) => Ok(ReplyValue::Short(value)),
            Some(Reply::LongValue(value)) => Ok(ReplyValue::Long(LongReply { worker: self, calls, value })),
            Some(failed) => Err(self.failure(calls, to, failed)),
            None => Err(Cause::Bug("a reply line that encodes no reply".into())),
        }
    }

    /// Why a call failed, from a reply that says so.
    #[cold]
    fn failure(&self, calls: &ActiveMessages, rank: Rank, reply: Reply) -> Cause {
        let failed = |handler, text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            Cause::Failed { rank, cause: Cause::HandlerFailed { handler, name: String::new(), text }.into() }
        };
        match reply {
            Reply::Failed(poison) => poison.cause(),
            Reply::ErrorMessage { handler, text } => failed(handler, text.bytes()),
            Reply::LongErrorMessage { handler, text } => {
                let mut bytes = vec![0; text.len as usize];
                let read = ReplyValue::Long(LongReply { worker: self, calls, value: text }).read(&mut bytes);
                failed(handler, if read.is_ok() { &bytes } else { &[] })
            }
            Reply::Value(_) | Reply::LongValue(_) => {
                Cause::Bug("a reply that says that its call failed".into())
            }
        }
    }

    /// Gives back the memory of a reply that nobody reads.
    fn discard(&self, calls: &ActiveMessages, unread: Reply) {
        if let Reply::LongValue(value) | Reply::LongErrorMessage { text: value, .. } = unread {
            self.give_back(calls, value.header);
        }
    }

    /// Gives back the memory of replies that nobody reads and that have arrived.
    pub(super) fn release_unread_replies(&self, calls: &ActiveMessages) {
        if calls.reply_lines.has_abandoned() {
            calls.reply_lines.release_abandoned(|unread| self.discard(calls, unread));
        }
    }

    /// The handlers of rank `to`, which are the same as those of this rank.
    #[inline]
    pub(super) fn calls_to(&self, to: Rank) -> Result<&ActiveMessages, Cause> {
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
