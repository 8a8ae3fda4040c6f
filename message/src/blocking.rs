//! Blocking sends and receives that did not end at once.

use crate::buffer::MessageBuffer;
use crate::call_info::CallInfo;
use crate::context::{Context, Received};
use crate::progress::operation::MessageOp;
use crate::protocol::receiver::RecvProtocol;
use crate::protocol::ring_fast_path::FastPath;
use crate::protocol::sender::SendProtocol;
use crate::protocol::state_machine::{Outcome, ProtocolState};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data, SHORT_MAX};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::node_state::Stage;
use tasuki_core::engine::{BufferView, Condition, RevocableBuffer, WaitEvent};
use tasuki_core::segment::GlobalAddress;

impl Context {
    #[cold]
    #[inline(never)]
    pub(crate) fn send_slowly(&self, bytes: &[u8], to: Rank, slot: u32) -> Result<()> {
        let call = self.to("send", to, slot);
        let (bank, block) = self.bank(call)?;
        if bytes.len() <= SHORT_MAX {
            let mut looks = self.worker.spins(Some(bank.peer));
            while looks > 0 && !bank.is_awaited(block) {
                looks -= 1;
                std::hint::spin_loop();
            }
            if bank.send_short(block, bytes) {
                return Ok(());
            }
        }
        self.occupy_send(&bank, block, call)?;
        let bytes = BufferView::of(bytes);
        if self.send_by_ring(bytes, &bank, block) {
            bank.state(block).sending.set_idle();
            return Ok(());
        }
        RevocableBuffer::lend(bytes, &|| self.worker.pause(), |loan| {
            self.send_place(SendProtocol::new(MessageBuffer::Own(loan.clone())), &bank, block, call)
        })
    }

    /// Sends job memory of this rank's, blocking.
    pub fn send_job(&self, from: GlobalAddress, len: u64, to: Rank, slot: u32) -> Result<()> {
        if let Some(bytes) = self.short_job(&mut [0; SHORT_MAX], from, len)? {
            return self.send(bytes, to, slot);
        }
        let call = self.to("send", to, slot);
        let (bank, block) = self.bank(call)?;
        self.check_job(from, len, call)?;
        self.occupy_send(&bank, block, call)?;
        self.send_place(SendProtocol::new(MessageBuffer::Job(from, len)), &bank, block, call)
    }

    /// A short message from job memory, which is read before it sets out; none if it is no short one.
    pub(crate) fn short_job<'l>(
        &self,
        line: &'l mut [u8; SHORT_MAX],
        from: GlobalAddress,
        len: u64,
    ) -> Result<Option<&'l [u8]>> {
        let Some(bytes) = line.get_mut(..len as usize) else { return Ok(None) };
        self.worker.get(from, bytes)?;
        Ok(Some(bytes))
    }

    /// That a message may come from that job memory, or go there.
    pub(crate) fn check_job(&self, at: GlobalAddress, len: u64, call: CallInfo) -> Result<()> {
        if at.rank() != self.worker.rank() {
            let text = format!(
                "the job memory given is rank {}'s: only its owner can send or receive there",
                at.rank()
            );
            return Err(self.fault(Cause::Argument(text), call));
        }
        self.worker.check_place(at, len).map_err(|cause| self.fault(cause, call))
    }

    /// Sends on a slot that was occupied.
    fn send_place(
        &self,
        sending: SendProtocol,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
        call: CallInfo,
    ) -> Result<()> {
        let mut way = ProtocolState::Send(sending);
        let behind = self.last_buffered(bank, block);
        let sent = match if behind.is_some() { None } else { self.run(&mut way, bank, block) } {
            Some(Outcome::Failed(cause)) => Err(self.fault(cause.clone(), call)),
            Some(_) => Ok(()),
            None => {
                let operation = MessageOp::new(&self.progress.rings, bank, block, way, behind);
                let _bound = self.bind(&operation);
                self.finish_send(&operation, self.buffers_after(), call)
            }
        };
        bank.state(block).sending.set_idle();
        sent
    }

    /// Moves a message on while it goes on without a long wait: how it ended, if it has. Nobody else knows of it, so no
    /// lock is needed.
    fn run<'w>(
        &self,
        way: &'w mut ProtocolState,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
    ) -> Option<&'w Outcome> {
        way.run(&self.worker, (bank, block), &self.progress.rings, self.worker.spins(Some(bank.peer)))
    }

    /// The message in the spool that a new one on the slot goes behind.
    pub(crate) fn last_buffered(&self, bank: &Arc<SlotBank>, block: SlotIndex) -> Option<Arc<MessageOp>> {
        let any = bank.state(block).buffered.load(Relaxed) > 0;
        any.then(|| self.progress.last_buffered(bank, block)).flatten()
    }

    /// Waits for the end of a send; when `limit` is over, the message goes into the spool.
    pub(crate) fn finish_send(
        &self,
        operation: &Arc<MessageOp>,
        limit: Option<Duration>,
        call: CallInfo,
    ) -> Result<()> {
        let waited = self.finish(operation, limit, call);
        if !waited.as_ref().is_err_and(Error::is_timeout) {
            return waited;
        }
        if operation.is_unmatched_send(&self.worker) {
            return self.buffered(operation, call);
        }
        self.finish(operation, None, call)
    }

    /// After how long a message that waits goes into the spool.
    pub(crate) fn buffers_after(&self) -> Option<Duration> {
        if self.buffers { self.progress.buffered.after() } else { None }
    }

    /// Copies a message that nobody knows of yet into the spool.
    pub(crate) fn buffered(&self, operation: &Arc<MessageOp>, call: CallInfo) -> Result<()> {
        let (bank, block) = (&operation.bank, operation.block);
        let bytes = operation.copied(&self.worker).map_err(|cause| self.fault(cause, call))?;
        let state = bank.state(block);
        self.progress.buffered.take(bytes.len() as u64, state).map_err(|cause| self.fault(cause, call))?;
        self.progress.add(&MessageOp::buffered(&self.progress.rings, bank, block, bytes, operation.behind()));
        self.worker.notify_own_helper();
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn recv_slowly(
        &self,
        into: &mut [u8],
        from: Rank,
        slot: u32,
        limit: Option<Duration>,
    ) -> Result<Received> {
        let call = self.from(if limit.is_some() { "recv_within" } else { "recv" }, from, slot);
        if into.len() <= SHORT_MAX && slot != CallInfo::ANY {
            let posted = self.post_slowly(into.len(), limit, call)?;
            return self.wait_short(posted.number(), into, limit, call);
        }
        let (bank, block) = self.bank(call)?;
        self.occupy_receive(&bank, block, limit, call)?;
        let into = BufferView::of_mut(into);
        let consumer = match self.receive_by_ring(into, &bank, block) {
            Some(FastPath::Done(received)) => {
                bank.state(block).receiving.set_idle();
                return Ok(received);
            }
            Some(FastPath::PostedRecv(consumer)) => Some(consumer),
            None => None,
        };
        RevocableBuffer::lend(into, &|| self.worker.pause(), |loan| {
            let into = MessageBuffer::Own(loan.clone());
            let receiving = match consumer {
                Some(consumer) => Ok(RecvProtocol::posted(into, consumer)),
                None => self.receiving(into, &bank, block, call),
            };
            self.recv_place(receiving, &bank, block, limit, call)
        })
    }

    /// Receives into job memory of this rank's, blocking.
    pub fn recv_job(&self, into: GlobalAddress, len: u64, from: Rank, slot: u32) -> Result<Received> {
        let call = self.from("recv", from, slot);
        let (bank, block) = self.bank(call)?;
        self.check_job(into, len, call)?;
        self.occupy_receive(&bank, block, None, call)?;
        let receiving = self.receiving(MessageBuffer::Job(into, len), &bank, block, call);
        self.recv_place(receiving, &bank, block, None, call)
    }

    /// Receives on a slot that was occupied.
    fn recv_place(
        &self,
        receiving: Result<RecvProtocol>,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
        limit: Option<Duration>,
        call: CallInfo,
    ) -> Result<Received> {
        let received = receiving.and_then(|receiving| {
            let mut way = ProtocolState::Receive(receiving);
            match self.run(&mut way, bank, block) {
                Some(end) => self.received(bank, end, call),
                None => {
                    let operation = MessageOp::new(&self.progress.rings, bank, block, way, None);
                    self.finish_receive(&operation, limit, call)
                }
            }
        });
        match &received {
            Ok(_) => bank.state(block).receiving.set_idle(),
            Err(_) => self.suspect(bank, block),
        }
        received
    }

    /// A receive that is no short one.
    pub(crate) fn receiving(
        &self,
        into: MessageBuffer,
        bank: &SlotBank,
        block: SlotIndex,
        call: CallInfo,
    ) -> Result<RecvProtocol> {
        let direct_from = self.worker.fabric().capabilities().direct_from;
        let registered = match &into {
            MessageBuffer::Own(loan) if loan.len() > SHORT_MAX && loan.len() as u64 >= direct_from => {
                Some(loan.register(&self.worker).map_err(|cause| self.fault(cause, call))?)
            }
            _ => None,
        };
        let to = match (&into, &registered) {
            (MessageBuffer::Job(at, _), _) => *at,
            (_, Some(registered)) => registered.address(),
            _ => GlobalAddress::NULL,
        };
        Ok(RecvProtocol::new(into, to, registered, bank, block, &self.late_matches))
    }

    /// Waits for the end of a receive. When `limit` is over, takes it back, unless its message is on its way.
    pub(crate) fn finish_receive(
        &self,
        operation: &Arc<MessageOp>,
        limit: Option<Duration>,
        call: CallInfo,
    ) -> Result<Received> {
        let _bound = self.bind(operation);
        let mut waited = self.finish(operation, limit, call);
        if let Err(error) = &waited
            && error.is_timeout()
        {
            let in_time = error.clone();
            operation.withdraw();
            waited = self.finish(operation, None, call);
            if operation.end() == Some(Outcome::Withdrawn) {
                waited = Err(in_time);
            }
        }
        waited?;
        let bug = || self.fault(Cause::Bug("a receive ended without an end".into()), call);
        self.received(&operation.bank, &operation.end().ok_or_else(bug)?, call)
    }

    /// What came of a receive that has ended.
    fn received(&self, bank: &SlotBank, end: &Outcome, call: CallInfo) -> Result<Received> {
        match end {
            Outcome::Done(done) => Ok(Received { slot: done.slot, source: bank.member, len: done.len }),
            Outcome::Failed(cause) => Err(self.fault(cause.clone(), call)),
            Outcome::Withdrawn => Err(self.fault(Cause::Bug("a receive ended withdrawn".into()), call)),
        }
    }

    /// The error of a wait that was one of several within a limit: a time-out names that.
    #[cold]
    fn in_time(&self, error: Error, limit: Option<Duration>, call: CallInfo) -> Error {
        match (error.cause(), limit) {
            (Cause::TimedOut { .. }, Some(after)) => self.fault(Cause::TimedOut { after }, call),
            _ => error,
        }
    }

    /// The operation is given up where the calling thread unwinds before the result is dropped.
    pub(crate) fn bind<'c>(&'c self, operation: &'c Arc<MessageOp>) -> Bound<'c> {
        Bound { context: self, operation }
    }

    /// Waits for the end of an operation. When this returns, the progress does not have it any more, and nobody steps it.
    pub(crate) fn finish(
        &self,
        operation: &Arc<MessageOp>,
        limit: Option<Duration>,
        call: CallInfo,
    ) -> Result<()> {
        let host = self.worker.platform();
        let until = limit.map(|limit| until_ns(host.now_ns(), limit));
        let mut waited: Result<()> = Ok(());
        loop {
            let ended_here = self.progress.run(&self.worker, operation);
            if operation.is_over() {
                if !ended_here {
                    operation.settle(&self.worker);
                }
                return match operation.end() {
                    Some(Outcome::Failed(cause)) => Err(self.fault(cause, call)),
                    _ => Ok(()),
                };
            }
            if let Err(error) = waited {
                self.progress.remove(&self.worker, operation);
                if !operation.is_over() {
                    return Err(self.in_time(error, limit, call));
                }
                waited = Ok(());
                continue;
            }
            self.progress.add(operation); // other threads may move it on while this one sleeps
            let left = until.map(|until| Duration::from_nanos(until.saturating_sub(host.now_ns())));
            let condition = Condition::Event(operation.clone());
            waited = self.worker.wait(&condition, left, &|| self.told(call));
            // A step that was possible may come to nothing, again and again: where a fabric refuses.
            if waited.is_ok() && until.is_some_and(|until| host.now_ns() >= until) {
                waited = Err(self.fault(Cause::TimedOut { after: Duration::ZERO }, call));
            }
            if waited.is_ok()
                && let Some(cause) = self.worker.end_if_over()
            {
                waited = Err(self.fault(cause, call));
            }
        }
    }

    /// Posts a short receive for the next message: that of `number` did not fit in a receive that was withdrawn since,
    /// and its sender knows.
    pub(crate) fn post_again(
        &self,
        bank: &SlotBank,
        block: SlotIndex,
        number: u32,
        room: usize,
    ) -> Result<u32> {
        let state = bank.state(block);
        state.received.store(number, Relaxed);
        state.receiving.set_idle();
        Ok(self.post(room, bank.member, bank.slot(block))?.number())
    }

    /// Waits for a short message whose receive was posted.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_short(
        &self,
        mut number: u32,
        into: &mut [u8],
        limit: Option<Duration>,
        call: CallInfo,
    ) -> Result<Received> {
        let (bank, block) = self.bank(call)?;
        let (slot, state, room) = (call.slot, bank.state(block), into.len() as u64);
        let host = self.worker.platform();
        let until = limit.map(|limit| until_ns(host.now_ns(), limit));
        let fail = |cause| {
            self.suspect(&bank, block);
            Err(self.fault(cause, call))
        };
        loop {
            if let Some(len) = bank.take_short(block, number, into) {
                return Ok(Received { slot, source: bank.member, len: len as u64 });
            }
            match encoding::read_data(bank.data(block), number) {
                Data::TooLong { version } if version == encoding::version(state.version.load(Relaxed)) => {
                    state.received.store(number, Relaxed);
                    return fail(Cause::Truncated { len: bank.data_word(block, 0), room });
                }
                Data::TooLong { .. } => number = self.post_again(&bank, block, number, into.len())?,
                Data::Failed => {
                    state.received.store(number, Relaxed);
                    return fail(Cause::NotSent { peer: bank.peer });
                }
                // It was sent to a receive that was withdrawn, and waits for one with more room.
                Data::Short { len, .. } if len as u64 > room => {
                    return fail(Cause::Truncated { len: len as u64, room });
                }
                Data::Staged { .. } => {
                    return fail(Cause::Truncated { len: bank.data_word(block, 1), room });
                }
                _ => {
                    let arrival = ShortArrival { bank: bank.clone(), block, number };
                    let condition = Condition::Event(Arc::new(arrival));
                    let left = until.map(|until| Duration::from_nanos(until.saturating_sub(host.now_ns())));
                    if let Err(error) = self.worker.wait(&condition, left, &|| self.told(call)) {
                        self.withdraw_short(&bank, block, number);
                        return Err(self.in_time(error, limit, call));
                    }
                }
            }
        }
    }
}

/// When a limit that begins now is over.
pub(crate) fn until_ns(now_ns: u64, limit: Duration) -> u64 {
    now_ns.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

/// A message that goes with a call. When that unwinds nobody moves it on any more, and it keeps nothing of what it was
/// lent: whoever lent it waits for that.
#[derive(Debug)]
pub(crate) struct Bound<'c> {
    context: &'c Context,
    operation: &'c Arc<MessageOp>,
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.context.progress.remove(&self.context.worker, self.operation);
        }
    }
}

/// That something stands in a slot about a message.
#[derive(Debug)]
pub(crate) struct ShortArrival {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) block: SlotIndex,
    pub(crate) number: u32,
}

impl WaitEvent for ShortArrival {
    fn happened(&self) -> bool {
        self.bank.is_about(self.block, self.number)
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        let promised = encoding::is_promised(self.bank.promised(self.block), self.number);
        Some((self.bank.peer, if promised { Stage::Left } else { Stage::Leaving }))
    }

    fn needs_message_of(&self) -> Option<Rank> {
        Some(self.bank.peer)
    }
}
