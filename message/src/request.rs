//! Messages that a rank begins and asks for later.

use crate::blocking::until_ns;
use crate::buffer::MessageBuffer;
use crate::call_info::CallInfo;
use crate::context::{Context, PostedRecv, Received};
use crate::progress::operation::MessageOp;
use crate::progress::waker_thread;
use crate::protocol::receiver::RecvProtocol;
use crate::protocol::sender::SendProtocol;
use crate::protocol::state_machine::{Outcome, ProtocolState, StepResult};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data, SHORT_MAX};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{BufferView, RevocableBuffer};
use tasuki_core::segment::GlobalAddress;

/// A send that was begun. Dropping it lets it end by itself.
#[derive(Debug)]
pub struct PendingSend {
    context: Arc<Context>,
    call: CallInfo,
    bank: Arc<SlotBank>,
    block: SlotIndex,
    /// None if it ended at once.
    operation: Option<Arc<MessageOp>>,
    begun_ns: u64,
    waited: bool,
}

/// A receive that was begun. Dropping it takes it back: what is sent after that is for the next receive on the slot. If
/// its message is on its way, dropping waits for it, and the message goes with it.
#[derive(Debug)]
pub struct PendingRecv {
    context: Arc<Context>,
    call: CallInfo,
    bank: Arc<SlotBank>,
    block: SlotIndex,
    kind: RecvKind,
    /// WaitProbes for a short message for a task that awaits it.
    watch: Mutex<Option<Arc<MessageOp>>>,
    waited: bool,
}

#[derive(Debug)]
enum RecvKind {
    /// Its message comes into the slot's line.
    Short {
        number: AtomicU32,
        room: usize,
    },
    Long(Arc<MessageOp>),
}

impl Context {
    /// Begins a send of bytes that go at once, and so need not be lent. None: nothing was done, since they do not.
    pub fn send_at_once(self: &Arc<Self>, bytes: &[u8], to: Rank, slot: u32) -> Result<Option<PendingSend>> {
        let call = self.to("isend", to, slot);
        let (bank, block) = self.bank(call)?;
        let state = bank.state(block);
        let went = state.sending.is_idle() && bank.send_short(block, bytes);
        self.occupy_send(&bank, block, call)?;
        if went || self.send_by_ring(BufferView::of(bytes), &bank, block) {
            return Ok(Some(self.pending_send(call, (bank, block), None)));
        }
        state.sending.set_idle();
        Ok(None)
    }

    /// Begins a send.
    pub fn begin_send(self: &Arc<Self>, from: MessageBuffer, to: Rank, slot: u32) -> Result<PendingSend> {
        let call = self.to("isend", to, slot);
        let (bank, block) = self.bank(call)?;
        self.occupy_send(&bank, block, call)?;
        let operation = self.start_send(SendProtocol::new(from), &bank, block);
        Ok(self.pending_send(call, (bank, block), operation))
    }

    fn pending_send(
        self: &Arc<Self>,
        call: CallInfo,
        (bank, block): (Arc<SlotBank>, SlotIndex),
        operation: Option<Arc<MessageOp>>,
    ) -> PendingSend {
        let begun_ns = if operation.is_some() { self.worker.platform().now_ns() } else { 0 };
        PendingSend { context: self.clone(), call, bank, block, operation, begun_ns, waited: false }
    }

    /// Sends as much as can be sent at once. What waiting calls move on after that; none if it has all gone.
    fn start_send(
        &self,
        sending: SendProtocol,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
    ) -> Option<Arc<MessageOp>> {
        let (mut way, behind) = (ProtocolState::Send(sending), self.last_buffered(bank, block));
        if behind.is_none()
            && matches!(way.step(&self.worker, bank, block, &self.progress.rings), StepResult::Ended)
        {
            let failed = matches!(way.end(), Some(Outcome::Failed(_)));
            return failed.then(|| MessageOp::ended(&self.progress.rings, bank, block, way));
        }
        let operation = MessageOp::new(&self.progress.rings, bank, block, way, behind);
        self.progress.add(&operation);
        self.worker.notify_own_helper();
        self.worker.progress();
        Some(operation)
    }

    /// Begins a receive. One of at most [`SHORT_MAX`] bytes on a slot needs no place: [`PendingRecv::take`] gives the
    /// bytes.
    pub fn begin_recv(
        self: &Arc<Self>,
        room: usize,
        into: impl FnOnce() -> MessageBuffer,
        from: Rank,
        slot: u32,
    ) -> Result<PendingRecv> {
        if room > SHORT_MAX || slot == CallInfo::ANY {
            return self.begin_long_recv(into(), from, slot);
        }
        let call = self.from("irecv", from, slot);
        let (bank, block) = self.bank(call)?;
        let number = AtomicU32::new(self.post(room, from, slot)?.number());
        let kind = RecvKind::Short { number, room };
        Ok(PendingRecv::new(self, call, (bank, block), kind))
    }

    /// Begins a receive whose message does not stay in the slot's line.
    fn begin_long_recv(self: &Arc<Self>, into: MessageBuffer, from: Rank, slot: u32) -> Result<PendingRecv> {
        let call = self.from("irecv", from, slot);
        let (bank, block) = self.bank(call)?;
        self.occupy_receive(&bank, block, None, call)?;
        let receiving =
            self.receiving(into, &bank, block, call).inspect_err(|_| self.suspect(&bank, block))?;
        let operation = self.start_receive(receiving, &bank, block);
        let incoming = PendingRecv::new(self, call, (bank, block), RecvKind::Long(operation.clone()));
        if !operation.is_over() {
            self.progress.add(&operation); // there is somebody who takes it back, if this call does not return
            self.worker.notify_own_helper();
        }
        Ok(incoming)
    }

    /// Begins a send of job memory of this rank's.
    pub fn begin_send_job(
        self: &Arc<Self>,
        from: GlobalAddress,
        len: u64,
        to: Rank,
        slot: u32,
    ) -> Result<PendingSend> {
        if let Some(bytes) = self.short_job(&mut [0; SHORT_MAX], from, len)? {
            return match self.send_at_once(bytes, to, slot)? {
                Some(sent) => Ok(sent),
                None => self.begin_send(MessageBuffer::Own(RevocableBuffer::of(bytes.to_vec())), to, slot),
            };
        }
        self.check_job(from, len, self.to("isend", to, slot))?;
        self.begin_send(MessageBuffer::Job(from, len), to, slot)
    }

    /// Begins a receive into job memory of this rank's.
    pub fn begin_recv_job(
        self: &Arc<Self>,
        into: GlobalAddress,
        len: u64,
        from: Rank,
        slot: u32,
    ) -> Result<PendingRecv> {
        self.check_job(into, len, self.from("irecv", from, slot))?;
        self.begin_long_recv(MessageBuffer::Job(into, len), from, slot)
    }

    /// Posts a receive. What waiting calls are to move on after that, if it has not ended.
    fn start_receive(
        &self,
        receiving: RecvProtocol,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
    ) -> Arc<MessageOp> {
        let mut way = ProtocolState::Receive(receiving);
        match way.step(&self.worker, bank, block, &self.progress.rings) {
            StepResult::Ended => MessageOp::ended(&self.progress.rings, bank, block, way),
            StepResult::Waits { .. } => MessageOp::new(&self.progress.rings, bank, block, way, None),
        }
    }

    /// Whether a message that waits for its receive went into the spool because its time is over; otherwise whoever
    /// awaits it is woken then.
    fn buffer_when_late(&self, operation: &Arc<MessageOp>, begun_ns: u64, call: CallInfo) -> Result<bool> {
        let Some(after) = self.buffers_after() else { return Ok(false) };
        let at_ns = until_ns(begun_ns, after);
        operation.buffer_at_ns().store(at_ns, Relaxed);
        if self.worker.platform().now_ns() < at_ns {
            return Ok(false);
        }
        operation.buffer_at_ns().store(u64::MAX, Relaxed);
        self.progress.remove(&self.worker, operation);
        if operation.is_over() {
            return Ok(false);
        }
        if !operation.is_unmatched_send(&self.worker) {
            self.progress.add(operation);
            return Ok(false);
        }
        self.buffered(operation, call).map(|()| true)
    }

    /// Whether an operation is over, or cannot end well; otherwise its waker will be woken then.
    fn poll(&self, operation: &Arc<MessageOp>, waker: &Waker) -> Result<bool> {
        if self.look(operation, waker) {
            return Ok(true);
        }
        self.ensure_progress(waker).map(|()| false)
    }

    /// The same for one whose end any waiting call of the rank tells of, if there is one.
    fn look(&self, operation: &Arc<MessageOp>, waker: &Waker) -> bool {
        self.worker.progress();
        operation.set_waker(Some(waker)); // before the look: whoever ends it after that sees the waker
        let over = operation.is_over() || operation.is_hopeless(&self.worker) || self.worker.check().is_err();
        if over {
            operation.set_waker(None);
        }
        over
    }

    /// Sees to it that messages which wake somebody go on though no call of the program's waits.
    pub fn ensure_progress(&self, waker: &Waker) -> Result<()> {
        if self.worker.platform().lets_threads_sleep() {
            return waker_thread::start(&self.worker, &self.progress);
        }
        self.worker.relax("await")?;
        waker.wake_by_ref();
        Ok(())
    }
}

impl PendingSend {
    /// To whom, on which slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.call.peer, self.call.slot)
    }

    /// Whether it has been waited for: not after a wait that found the spool full.
    pub fn is_over(&self) -> bool {
        self.waited
    }

    /// Whether it has ended. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.context.worker.progress();
        self.operation.as_ref().is_none_or(|operation| operation.is_over())
    }

    /// Ready when the bytes may be used again; otherwise `waker` is woken when they may.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Result<()>> {
        let Some(operation) = self.operation.clone() else { return Poll::Ready(self.finish()) };
        match self.context.buffer_when_late(&operation, self.begun_ns, self.call) {
            Ok(false) => {}
            buffered => return Poll::Ready(self.finished(buffered.map(drop))),
        }
        match self.context.poll(&operation, waker) {
            Ok(true) => Poll::Ready(self.finish()),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The same where waiting calls of the rank are enough to move it on; what is waited for goes into `awaited`.
    pub fn look(&mut self, waker: &Waker, awaited: &mut Option<Arc<MessageOp>>) -> Poll<Result<()>> {
        let Some(operation) = self.operation.clone() else { return Poll::Ready(self.finish()) };
        if self.context.look(&operation, waker) {
            return Poll::Ready(self.finish());
        }
        *awaited = Some(operation);
        Poll::Pending
    }

    /// Takes it back if nobody knows of it yet; otherwise waits until the bytes may be used again. Never waits in a
    /// panic: the rank is lost then.
    pub fn cancel(mut self) {
        self.waited = true;
        if let Some(operation) = &self.operation {
            let _bound = self.context.bind(operation);
            self.context.progress.remove(&self.context.worker, operation);
            let is_known = || !operation.is_unmatched_send(&self.context.worker);
            if !operation.is_over() && !std::thread::panicking() && is_known() {
                let _ = self.context.finish(operation, None, self.call); // nobody asks how it went
            }
        }
        self.bank.state(self.block).sending.set_idle();
    }

    /// Waits until the bytes may be used again.
    pub fn wait(mut self) -> Result<()> {
        self.finish()
    }

    /// The same without giving the request away; once, unless the spool was full.
    pub fn finish(&mut self) -> Result<()> {
        let sent = match &self.operation {
            None => Ok(()),
            Some(operation) => {
                let host = self.context.worker.platform();
                let waited = std::time::Duration::from_nanos(host.now_ns().saturating_sub(self.begun_ns));
                let after = self.context.buffers_after().map(|after| after.saturating_sub(waited));
                self.context.finish_send(operation, after, self.call)
            }
        };
        self.finished(sent)
    }

    /// What follows how it went. A message that found the spool full still waits for its receive.
    fn finished(&mut self, sent: Result<()>) -> Result<()> {
        let is_under_way =
            |error: &Error| matches!(error.cause(), Cause::SpoolFull { .. } | Cause::Full { .. });
        match &self.operation {
            Some(operation) if sent.as_ref().is_err_and(is_under_way) => self.context.progress.add(operation),
            _ => {
                self.waited = true;
                self.bank.state(self.block).sending.set_idle();
            }
        }
        sent
    }
}

impl Drop for PendingSend {
    fn drop(&mut self) {
        if self.waited || self.context.worker.life().is_forked() {
            return;
        }
        match &self.operation {
            Some(operation) => {
                operation.set_waker(None);
                operation.detach();
            }
            None => self.bank.state(self.block).sending.set_idle(),
        }
    }
}

impl PendingRecv {
    fn new(
        context: &Arc<Context>,
        call: CallInfo,
        (bank, block): (Arc<SlotBank>, SlotIndex),
        kind: RecvKind,
    ) -> PendingRecv {
        PendingRecv {
            context: context.clone(),
            call,
            bank,
            block,
            kind,
            watch: Mutex::default(),
            waited: false,
        }
    }

    /// From whom, on which slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.call.peer, self.call.slot)
    }

    /// Where it was begun.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Whether its message comes into the slot's line: then [`PendingRecv::take`] wants the buffer.
    pub fn is_short(&self) -> bool {
        matches!(self.kind, RecvKind::Short { .. })
    }

    /// Whether its message has come. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.context.worker.progress();
        match &self.kind {
            // What goes wrong here is told by `take`.
            RecvKind::Short { number, room } => {
                !matches!(self.renew(number, *room), Ok(true))
                    && self.bank.is_about(self.block, number.load(Relaxed))
            }
            RecvKind::Long(operation) => operation.is_over(),
        }
    }

    /// Whether the receive of a short message was posted anew: what has come did not fit in one that was withdrawn.
    fn renew(&self, number: &AtomicU32, room: usize) -> Result<bool> {
        let (bank, block, old) = (&*self.bank, self.block, number.load(Relaxed));
        let now = encoding::version(bank.state(block).version.load(Relaxed));
        match encoding::read_data(bank.data(block), old) {
            Data::TooLong { version } if version != now => {
                number.store(self.context.post_again(bank, block, old, room)?, Relaxed);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Ready with its message, which goes into `into` if the receive is a short one; otherwise `waker` is woken when
    /// there is one.
    pub fn poll(&mut self, into: &mut [u8], waker: &Waker) -> Poll<Result<Received>> {
        let polled = self.operation().and_then(|operation| self.context.poll(&operation, waker));
        match polled {
            Ok(true) => Poll::Ready(self.take(into)),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The same where waiting calls of the rank are enough to move it on; what is waited for goes into `awaited`.
    pub fn look(
        &mut self,
        into: &mut [u8],
        waker: &Waker,
        awaited: &mut Option<Arc<MessageOp>>,
    ) -> Poll<Result<Received>> {
        let operation = match self.operation() {
            Ok(operation) => operation,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if self.context.look(&operation, waker) {
            return Poll::Ready(self.take(into));
        }
        *awaited = Some(operation);
        Poll::Pending
    }

    /// Whose end says that its message is there.
    fn operation(&self) -> Result<Arc<MessageOp>> {
        let (number, room) = match &self.kind {
            RecvKind::Long(operation) => return Ok(operation.clone()),
            RecvKind::Short { number, room } => (number, *room),
        };
        if self.renew(number, room)? {
            self.forget_watch();
        }
        Ok(self.watch(number.load(Relaxed)))
    }

    /// The operation that watches for the short message of that number.
    fn watch(&self, number: u32) -> Arc<MessageOp> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || {
            let (progress, bank) = (&self.context.progress, &self.bank);
            let watch = MessageOp::new(&progress.rings, bank, self.block, ProtocolState::watch(number), None);
            progress.add(&watch);
            watch
        };
        watch.get_or_insert_with(begin).clone()
    }

    fn forget_watch(&self) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watch) = watch {
            self.context.progress.remove(&self.context.worker, &watch);
        }
    }

    /// Takes it back, or waits for its end if its message is on its way. Never waits in a panic.
    fn take_back(&self) {
        if let RecvKind::Long(operation) = &self.kind {
            operation.set_waker(None);
            operation.withdraw();
            if std::thread::panicking() {
                self.context.progress.remove(&self.context.worker, operation);
            } else {
                let _bound = self.context.bind(operation);
                let _ = self.context.finish(operation, None, self.call); // nobody asks how it went
            }
        }
        self.context.suspect(&self.bank, self.block);
    }

    /// Waits for its message, which goes into `into` if the receive is a short one.
    pub fn take(&mut self, into: &mut [u8]) -> Result<Received> {
        self.waited = true;
        match &self.kind {
            RecvKind::Short { number, .. } => {
                let posted = PostedRecv::new(&self.bank, self.block, number.load(Relaxed), into.len());
                self.context.take("irecv", posted, into)
            }
            RecvKind::Long(operation) => {
                let received = self.context.finish_receive(operation, None, self.call);
                match &received {
                    Ok(_) => operation.free_slot(),
                    Err(_) => self.context.suspect(&self.bank, self.block),
                }
                received
            }
        }
    }
}

impl Drop for PendingRecv {
    /// In a forked child nothing, as above: the receive is the rank's, which goes on.
    fn drop(&mut self) {
        if self.context.worker.life().is_forked() {
            return;
        }
        if self.watch.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.forget_watch();
        }
        if self.waited {
            return;
        }
        match &self.kind {
            RecvKind::Short { number, .. } => {
                self.context.withdraw_short(&self.bank, self.block, number.load(Relaxed));
            }
            RecvKind::Long(_) => self.take_back(),
        }
    }
}
