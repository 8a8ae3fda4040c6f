//! Blocking sends and receives that take the slow path.

use crate::buffer::MessageBuffer;
use crate::call_info::CallInfo;
use crate::context::{Context, Received};
use crate::progress::operation::MessageOp;
use crate::protocol::fit::{misfit, reported_misfit, stays};
use crate::protocol::late_match::LateMatches;
use crate::protocol::outcome::Outcome;
use crate::protocol::receiver::RecvProtocol;
use crate::protocol::ring_fast_path::FastPath;
use crate::protocol::ring_span::RingSpan;
use crate::protocol::sender::SendProtocol;
use crate::protocol::state_machine::ProtocolState;
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data, SHORT_MAX};
use crate::strided::ValueView;
use crate::typed_slot::TypedSlot;
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::sync::Ordering::Relaxed;
use tasuki_core::base::{Cause, Rank, Result, ValueKind};
use tasuki_core::engine::{
    BufferView, Condition, Deadline, Registration, StridedView, WaitEvent, in_one_call,
};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::GlobalAddress;

impl Context {
    #[cold]
    #[inline(never)]
    pub(crate) fn send_slowly(&self, bytes: &[u8], to: Rank, slot: TypedSlot) -> Result<()> {
        let call = self.to("send", to, slot);
        let (bank, index) = self.bank(call)?;
        if bytes.len() <= SHORT_MAX {
            let mut attempts = self.worker.spins(Some(bank.peer));
            while attempts > 0 && !bank.is_recv_posted(index) {
                attempts -= 1;
                std::hint::spin_loop();
            }
            if bank.send_short(index, bytes, slot.kind) {
                return Ok(());
            }
        }
        self.send_view(BufferView::of(bytes), &bank, index, call)
    }

    /// Sends blocks of the program's memory, as one message. Blocks.
    pub fn send_strided(&self, blocks: StridedView<'_>, to: Rank, slot: TypedSlot) -> Result<()> {
        if let Some(line) = [0; SHORT_MAX].get_mut(..blocks.len()) {
            blocks.read(0, line);
            return self.send(line, to, slot);
        }
        let call = self.to("send", to, slot);
        let (bank, index) = self.bank(call)?;
        match blocks.contiguous() {
            Some(bytes) => self.send_view(bytes, &bank, index, call),
            None => self.send_view(blocks, &bank, index, call),
        }
    }

    /// Sends values that did not go into the line at once.
    #[inline(always)]
    fn send_view(
        &self,
        values: impl ValueView,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        call: CallInfo,
    ) -> Result<()> {
        self.occupy_send(bank, index, call)?;
        if self.send_by_ring(values, call.kind, bank, index) {
            bank.state(index).sending.set_idle();
            return Ok(());
        }
        values.lend(&self.worker, |buffer| {
            self.send_occupied(SendProtocol::new(buffer, call.kind), bank, index, call)
        })
    }

    /// Sends from job memory of this rank. Blocks.
    pub fn send_job(&self, from: GlobalAddress, len: u64, to: Rank, slot: TypedSlot) -> Result<()> {
        if let Some(bytes) = self.short_job(&mut [0; SHORT_MAX], from, len)? {
            return self.send(bytes, to, slot);
        }
        let call = self.to("send", to, slot);
        let (bank, index) = self.bank(call)?;
        self.check_job(from, len, call)?;
        self.occupy_send(&bank, index, call)?;
        self.send_occupied(SendProtocol::new(MessageBuffer::Job(from, len), slot.kind), &bank, index, call)
    }

    /// Reads a short message from job memory into `line`; `None` if it is not short.
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

    /// Checks that a message can be sent from, or received into, this job memory.
    pub(crate) fn check_job(&self, at: GlobalAddress, len: u64, call: CallInfo) -> Result<()> {
        if at.rank() != self.worker.rank() {
            let text = format!(
                "the job memory given is rank {}'s: only its owner can send or receive there",
                at.rank()
            );
            return Err(self.fault(Cause::Argument(text), call));
        }
        self.worker.check_access(at, len).map_err(|cause| self.fault(cause, call))
    }

    /// Sends on a slot that is already occupied.
    fn send_occupied(
        &self,
        sending: SendProtocol,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        call: CallInfo,
    ) -> Result<()> {
        let len = sending.from().len();
        let mut protocol = ProtocolState::Send(sending);
        let predecessor = self.last_buffered(bank, index);
        let sent = match if predecessor.is_some() { None } else { self.run(&mut protocol, bank, index) } {
            Some(Outcome::Failed(cause)) => Err(self.fault(cause.clone(), call)),
            Some(_) => Ok(()),
            None => {
                let operation = MessageOp::new(&self.progress.rings, bank, index, protocol, predecessor);
                let _guard = self.guard(&operation);
                self.finish_send(&operation, self.buffers_after(len), call)
            }
        };
        bank.state(index).sending.set_idle();
        sent
    }

    /// Runs a message until it would have to wait long. Returns its outcome, if it has ended. No other thread knows
    /// of it, so no lock is needed.
    fn run<'w>(
        &self,
        protocol: &'w mut ProtocolState,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
    ) -> Option<&'w Outcome> {
        protocol.run(&self.worker, (bank, index), &self.progress.rings, self.worker.spins(Some(bank.peer)))
    }

    /// Returns the last buffered message of the slot, which a new one must follow.
    pub(crate) fn last_buffered(&self, bank: &Arc<SlotBank>, index: SlotIndex) -> Option<Arc<MessageOp>> {
        let any = bank.state(index).buffered.load(Relaxed) > 0;
        any.then(|| self.progress.last_buffered(bank, index)).flatten()
    }

    /// Waits for the end of a send. After the time `buffers_after`, the message is buffered. When the limit of the call
    /// is reached, it is not sent. In both cases only if it has not met its receive: then the call waits for the
    /// transfer.
    pub(crate) fn finish_send(
        &self,
        operation: &Arc<MessageOp>,
        buffers_after: Option<Duration>,
        call: CallInfo,
    ) -> Result<()> {
        let _call = in_one_call();
        let of_call = self.worker.call_deadline();
        let mut buffers_at = buffers_after.map_or(Deadline::NEVER, |after| self.worker.deadline_after(after));
        loop {
            match self.finish(operation, of_call.or_earlier(buffers_at), call) {
                Err(timeout) if timeout.is_timeout() => {
                    // No thread steps it now. If one did until now, its look may be older than this call.
                    self.progress.step(&self.worker, operation);
                    if operation.is_over() || !operation.is_unmatched_send(&self.worker) {
                        return self.finish(operation, Deadline::NEVER, call);
                    }
                    if buffers_at.until_ns() >= of_call.until_ns() {
                        return Err(timeout);
                    }
                    if self.buffered(operation, call)? {
                        return Ok(());
                    }
                    buffers_at = Deadline::NEVER; // there is no room
                }
                outcome => return outcome,
            }
        }
    }

    /// Copies an unmatched message into the send buffer. Returns false if there is no room, and it is to wait for its
    /// receive.
    pub(crate) fn buffered(&self, operation: &Arc<MessageOp>, call: CallInfo) -> Result<bool> {
        let (bank, index) = (&operation.bank, operation.index);
        let (state, len) = (bank.state(index), operation.send_len(&self.worker));
        let taken = self.progress.buffered.take((bank.peer, bank.slot(index), len), state);
        let Some(room) = taken.map_err(|cause| self.fault(cause, call))? else { return Ok(false) };
        let bytes = operation.copied(&self.worker).map_err(|cause| {
            self.progress.buffered.free(room, state);
            self.fault(cause, call)
        })?;
        let buffered = MessageOp::buffered(
            (&self.progress.rings, bank, index),
            (bytes, call.kind),
            room,
            operation.predecessor(),
        );
        self.progress.add(&buffered);
        self.progress.ensure_buffered_leave(&self.worker);
        self.worker.notify_own_helper();
        Ok(true)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn recv_slowly(&self, into: &mut [u8], from: Rank, slot: TypedSlot) -> Result<Received> {
        let call = self.from("recv", from, slot);
        let (bank, index) = self.bank(call)?;
        let may_be_kept =
            self.occupy_receive(&bank, index, call)? && self.late_matches.kept.holds(from, slot.slot);
        if into.len() <= SHORT_MAX && slot.slot != CallInfo::ANY && !may_be_kept {
            let number = self.post_occupied(&bank, index, into.len(), call)?;
            return self.wait_short(number, into, call);
        }
        self.recv_view(BufferView::of_mut(into), may_be_kept, &bank, index, call)
    }

    /// Receives a message into blocks of the program's memory. Blocks.
    pub fn recv_strided(&self, blocks: StridedView<'_>, from: Rank, slot: TypedSlot) -> Result<Received> {
        if let Some(line) = [0; SHORT_MAX].get_mut(..blocks.len()) {
            let got = self.recv(line, from, slot)?;
            blocks.write(0, &line[..got.len as usize]);
            return Ok(got);
        }
        let call = self.from("recv", from, slot);
        let (bank, index) = self.bank(call)?;
        let may_be_kept =
            self.occupy_receive(&bank, index, call)? && self.late_matches.kept.holds(from, slot.slot);
        match blocks.contiguous() {
            Some(bytes) => self.recv_view(bytes, may_be_kept, &bank, index, call),
            None => self.recv_view(blocks, may_be_kept, &bank, index, call),
        }
    }

    /// Receives on a slot that is already occupied.
    #[inline(always)]
    fn recv_view(
        &self,
        into: impl ValueView,
        may_be_kept: bool,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        call: CallInfo,
    ) -> Result<Received> {
        let by_ring = if may_be_kept { None } else { self.receive_by_ring(into, call.kind, bank, index) };
        let consumer = match by_ring {
            Some(FastPath::Done(received)) => {
                bank.state(index).receiving.set_idle();
                return Ok(received);
            }
            Some(FastPath::ContinueSlowly(consumer)) => Some(consumer),
            None => None,
        };
        into.lend(&self.worker, |into| {
            let receiving = match consumer {
                Some(consumer) => Ok(RecvProtocol::posted(into, call.kind, consumer)),
                None => self.receiving(into, bank, index, call),
            };
            self.recv_occupied(receiving, bank, index, call)
        })
    }

    /// Receives into job memory of this rank. Blocks.
    pub fn recv_job(&self, into: GlobalAddress, len: u64, from: Rank, slot: TypedSlot) -> Result<Received> {
        let call = self.from("recv", from, slot);
        let (bank, index) = self.bank(call)?;
        self.check_job(into, len, call)?;
        self.occupy_receive(&bank, index, call)?;
        let receiving = self.receiving(MessageBuffer::Job(into, len), &bank, index, call);
        self.recv_occupied(receiving, &bank, index, call)
    }

    /// Receives on a slot that is already occupied.
    fn recv_occupied(
        &self,
        receiving: Result<RecvProtocol>,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        call: CallInfo,
    ) -> Result<Received> {
        let mut was_kept = false;
        let received = receiving.and_then(|receiving| {
            let mut protocol = ProtocolState::Receive(receiving);
            match self.run(&mut protocol, bank, index) {
                Some(end) => {
                    was_kept = is_of_kept(end);
                    self.received(bank, end, call)
                }
                None => {
                    let operation = MessageOp::new(&self.progress.rings, bank, index, protocol, None);
                    let received = self.finish_receive(&operation, call);
                    was_kept = operation.end().is_some_and(|end| is_of_kept(&end));
                    received
                }
            }
        });
        match &received {
            Ok(_) if !was_kept => bank.state(index).receiving.set_idle(),
            _ => self.suspect(bank, index),
        }
        received
    }

    /// Makes a receive that is not short.
    pub(crate) fn receiving(
        &self,
        into: MessageBuffer,
        bank: &SlotBank,
        index: SlotIndex,
        call: CallInfo,
    ) -> Result<RecvProtocol> {
        let direct_from = self.worker.fabric().capabilities().direct_from;
        let registered = match &into {
            MessageBuffer::Unregistered(buffer)
                if buffer.len() > SHORT_MAX && buffer.len() as u64 >= direct_from =>
            {
                Some(Registration::new(buffer, &self.worker).map_err(|cause| self.fault(cause, call))?)
            }
            _ => None,
        };
        let to = match (&into, &registered) {
            (MessageBuffer::Job(at, _), _) => *at,
            (_, Some(registered)) => registered.address(),
            _ => GlobalAddress::NULL,
        };
        Ok(RecvProtocol::new((into, call.kind), to, registered, bank, index, &self.late_matches))
    }

    /// Waits for the end of a receive. When the limit of the call is reached, withdraws it, unless its message is being
    /// transferred.
    pub(crate) fn finish_receive(&self, operation: &Arc<MessageOp>, call: CallInfo) -> Result<Received> {
        let _guard = self.guard(operation);
        let mut waited = self.finish(operation, self.worker.call_deadline(), call);
        if let Err(error) = &waited
            && error.is_timeout()
        {
            let timeout = error.clone();
            operation.withdraw();
            waited = self.finish(operation, Deadline::NEVER, call);
            if operation.end() == Some(Outcome::Withdrawn) {
                waited = Err(timeout);
            }
        }
        waited?;
        let bug = || self.fault(Cause::Bug("a receive ended without an end".into()), call);
        self.received(&operation.bank, &operation.end().ok_or_else(bug)?, call)
    }

    /// Converts the outcome of a receive that has ended.
    fn received(&self, bank: &SlotBank, end: &Outcome, call: CallInfo) -> Result<Received> {
        match end {
            Outcome::Done(done) => Ok(Received { slot: done.slot, source: bank.member, len: done.len }),
            Outcome::Failed(cause) => Err(self.fault(cause.clone(), call)),
            Outcome::Withdrawn => Err(self.fault(Cause::Bug("a receive ended withdrawn".into()), call)),
        }
    }

    /// Lets an operation that was just added to the progress engine look for a kept message, if there is one. One that
    /// is kept from now on is offered to it.
    pub(crate) fn look_for_kept(&self, operation: &MessageOp) {
        let has_one = || {
            let slot = (operation.index != ANY).then(|| operation.bank.slot(operation.index));
            !operation.is_send() && self.late_matches.kept.has_whole(operation.bank.member, slot)
        };
        if !self.late_matches.kept.is_empty() && has_one() {
            operation.look_for_kept(&self.late_matches);
        }
    }

    /// Returns a guard that abandons the operation if the calling thread unwinds.
    pub(crate) fn guard<'c>(&'c self, operation: &'c Arc<MessageOp>) -> OperationGuard<'c> {
        OperationGuard { context: self, operation }
    }

    /// Waits for the end of an operation. On return it is no longer in the progress engine, and no thread steps it.
    pub(crate) fn finish(
        &self,
        operation: &Arc<MessageOp>,
        deadline: Deadline,
        call: CallInfo,
    ) -> Result<()> {
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
                    return Err(error);
                }
                waited = Ok(());
                continue;
            }
            self.progress.add(operation); // other threads may step it while this one sleeps
            self.look_for_kept(operation);
            let condition = Condition::Event(operation.clone());
            waited = self.worker.wait(&condition, deadline, &|| self.call_text(call));
            // Steps may be possible and achieve nothing again and again, if the fabric refuses.
            let is_late = || deadline != Deadline::NEVER && self.worker.now_ns() >= deadline.until_ns();
            if waited.is_ok() && is_late() {
                waited = Err(self.fault(Cause::TimedOut { after: deadline.limit() }, call));
            }
            if waited.is_ok()
                && let Some(cause) = self.worker.end_if_over()
            {
                waited = Err(self.fault(cause, call));
            }
        }
    }

    /// Posts a short receive for the next message. Message `number` did not fit in a receive that was withdrawn
    /// since, and its sender knows.
    pub(crate) fn post_again(
        &self,
        bank: &SlotBank,
        index: SlotIndex,
        number: u32,
        room: usize,
        kind: ValueKind,
    ) -> Result<u32> {
        let state = bank.state(index);
        state.received.store(number, Relaxed);
        state.receiving.set_idle();
        Ok(self.post(room, bank.member, TypedSlot { slot: bank.slot(index), kind })?.number())
    }

    /// Waits for the message of a short receive that was posted.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_short(&self, mut number: u32, into: &mut [u8], call: CallInfo) -> Result<Received> {
        let _call = in_one_call();
        let (bank, index) = self.bank(call)?;
        let (slot, kind, state, room) = (call.slot, call.kind, bank.state(index), into.len() as u64);
        let fail = |cause| {
            self.suspect(&bank, index);
            Err(self.fault(cause, call))
        };
        loop {
            if let Some(len) = bank.take_short(index, number, into, kind) {
                return Ok(Received { slot, source: bank.member, len: len as u64 });
            }
            match encoding::read_data(bank.data(index), number) {
                Data::Unfit { version } if version == encoding::version(state.version.load(Relaxed)) => {
                    state.received.store(number, Relaxed);
                    return fail(reported_misfit(&bank, index, (kind, room)));
                }
                Data::Unfit { .. } => number = self.post_again(&bank, index, number, into.len(), kind)?,
                Data::Failed => {
                    state.received.store(number, Relaxed);
                    return fail(Cause::NotSent { peer: bank.peer });
                }
                Data::Short { tag, len } => {
                    let (sent, len) = (ValueKind::from_bits(tag), len as u64);
                    if let Some(cause) = misfit((sent, len), (kind, room)) {
                        if !stays(sent, kind) {
                            state.received.store(number, Relaxed);
                        }
                        return fail(cause);
                    }
                    bank.unpack(index, &mut into[..len as usize]);
                    state.received.store(number, Relaxed);
                    state.receiving.set_idle();
                    return Ok(Received { slot, source: bank.member, len });
                }
                // The message was sent to a withdrawn receive, and stays for a receive that it fits.
                Data::Staged { .. } => {
                    let message = RingSpan::message(&bank, index);
                    let too_long = Cause::Truncated { len: message.1, room };
                    return fail(misfit(message, (kind, room)).unwrap_or(too_long));
                }
                _ if self.late_matches.kept.has_whole(bank.member, Some(slot)) => {
                    // A message of this slot met a receive of any slot, which was dropped.
                    self.withdraw_short(&bank, index, number);
                    return self.recv_slowly(into, bank.member, call.typed_slot());
                }
                _ => {
                    let late_matches = self.late_matches.clone();
                    let arrival = ShortArrival { bank: bank.clone(), index, number, late_matches };
                    let condition = Condition::Event(Arc::new(arrival));
                    let deadline = self.worker.call_deadline();
                    if let Err(error) = self.worker.wait(&condition, deadline, &|| self.call_text(call)) {
                        self.withdraw_short(&bank, index, number);
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// Returns true if a receive has got a kept message.
pub(crate) fn is_of_kept(end: &Outcome) -> bool {
    matches!(end, Outcome::Done(done) if done.was_kept)
}

/// Guards a message that a call waits for. If the call unwinds, the message no longer uses the call's buffer; the owner
/// of the buffer waits for that. What a receive has got of its message is kept.
#[derive(Debug)]
pub(crate) struct OperationGuard<'c> {
    context: &'c Context,
    operation: &'c Arc<MessageOp>,
}

impl Drop for OperationGuard<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        if self.operation.is_receive() {
            self.context.abandon_receive(self.operation);
        } else {
            self.context.progress.remove(&self.context.worker, self.operation);
        }
    }
}

/// Waits until a slot holds data about a message.
#[derive(Debug)]
pub(crate) struct ShortArrival {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) index: SlotIndex,
    pub(crate) number: u32,
    pub(crate) late_matches: Arc<LateMatches>,
}

impl WaitEvent for ShortArrival {
    fn happened(&self) -> bool {
        let slot = self.bank.slot(self.index);
        self.bank.has_data(self.index, self.number)
            || self.late_matches.kept.has_whole(self.bank.member, Some(slot))
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        let promised = encoding::is_promised(self.bank.promised(self.index), self.number);
        Some((self.bank.peer, if promised { RankStage::Left } else { RankStage::Leaving }))
    }

    fn call(&self) -> String {
        let (bank, slot) = (&self.bank, self.bank.slot(self.index));
        let rank = (bank.peer != bank.member).then_some(bank.peer);
        let own = || CallInfo::from("irecv", bank.member, slot).of_member(rank).to_string();
        bank.program_call(slot).unwrap_or_else(own)
    }

    fn needs_message_of(&self) -> Option<Rank> {
        Some(self.bank.peer)
    }
}
