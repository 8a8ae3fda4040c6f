//! Messages that a rank begins and asks for later.

use super::alarm;
use super::blocking::until_ns;
use super::call::Call;
use super::context::{Context, Posted, Received};
use super::operation::Operation;
use super::page::{Block, Page};
use super::place::Place;
use super::receiving::Receiving;
use super::sending::Sending;
use super::way::{End, Progress, Way};
use super::words::{self, Data, SHORT_MAX};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{Loan, View};
use tasuki_core::segment::GlobalAddress;

/// A send that was begun. Dropping it lets it end by itself.
#[derive(Debug)]
pub struct Outgoing {
    context: Arc<Context>,
    call: Call,
    page: Arc<Page>,
    block: Block,
    /// None if it ended at once.
    operation: Option<Arc<Operation>>,
    begun_ns: u64,
    waited: bool,
}

/// A receive that was begun. Dropping it takes it back: what is sent after that is for the next receive on the slot. If
/// its message is on its way, dropping waits for it, and the message goes with it.
#[derive(Debug)]
pub struct Incoming {
    context: Arc<Context>,
    call: Call,
    page: Arc<Page>,
    block: Block,
    kind: Kind,
    /// Watches for a short message for a task that awaits it.
    watch: Mutex<Option<Arc<Operation>>>,
    waited: bool,
}

#[derive(Debug)]
enum Kind {
    /// Its message comes into the slot's line.
    Short {
        number: AtomicU32,
        room: usize,
    },
    Long(Arc<Operation>),
}

impl Context {
    /// Begins a send of bytes that go at once, and so need not be lent. None: nothing was done, since they do not.
    pub fn send_at_once(self: &Arc<Self>, bytes: &[u8], to: Rank, slot: u32) -> Result<Option<Outgoing>> {
        let call = self.to("isend", to, slot);
        let (page, block) = self.page(call)?;
        let state = page.state(block);
        let went = state.sending.is_idle() && page.send_short(block, bytes);
        self.occupy_send(&page, block, call)?;
        if went || self.send_straight(View::of(bytes), &page, block) {
            return Ok(Some(self.outgoing(call, (page, block), None)));
        }
        state.sending.set_idle();
        Ok(None)
    }

    /// Begins a send.
    pub fn begin_send(self: &Arc<Self>, from: Place, to: Rank, slot: u32) -> Result<Outgoing> {
        let call = self.to("isend", to, slot);
        let (page, block) = self.page(call)?;
        self.occupy_send(&page, block, call)?;
        let operation = self.start_send(Sending::new(from), &page, block);
        Ok(self.outgoing(call, (page, block), operation))
    }

    fn outgoing(
        self: &Arc<Self>,
        call: Call,
        (page, block): (Arc<Page>, Block),
        operation: Option<Arc<Operation>>,
    ) -> Outgoing {
        let begun_ns = if operation.is_some() { self.machine.host().now_ns() } else { 0 };
        Outgoing { context: self.clone(), call, page, block, operation, begun_ns, waited: false }
    }

    /// Sends as much as can be sent at once. What waiting calls move on after that; none if it has all gone.
    fn start_send(&self, sending: Sending, page: &Arc<Page>, block: Block) -> Option<Arc<Operation>> {
        let (mut way, behind) = (Way::Send(sending), self.last_spooled(page, block));
        if behind.is_none()
            && matches!(way.step(&self.machine, page, block, &self.pump.rings), Progress::Ended)
        {
            let failed = matches!(way.end(), Some(End::Failed(_)));
            return failed.then(|| Operation::ended(&self.pump.rings, page, block, way));
        }
        let operation = Operation::new(&self.pump.rings, page, block, way, behind);
        self.pump.add(&operation);
        self.machine.rouse_own_helper();
        self.machine.progress();
        Some(operation)
    }

    /// Begins a receive. One of at most [`SHORT_MAX`] bytes on a slot needs no place: [`Incoming::take`] gives the
    /// bytes.
    pub fn begin_recv(
        self: &Arc<Self>,
        room: usize,
        into: impl FnOnce() -> Place,
        from: Rank,
        slot: u32,
    ) -> Result<Incoming> {
        if room > SHORT_MAX || slot == Call::ANY {
            return self.begin_long_recv(into(), from, slot);
        }
        let call = self.from("irecv", from, slot);
        let (page, block) = self.page(call)?;
        let number = AtomicU32::new(self.post(room, from, slot)?.number());
        let kind = Kind::Short { number, room };
        Ok(Incoming::new(self, call, (page, block), kind))
    }

    /// Begins a receive whose message does not stay in the slot's line.
    fn begin_long_recv(self: &Arc<Self>, into: Place, from: Rank, slot: u32) -> Result<Incoming> {
        let call = self.from("irecv", from, slot);
        let (page, block) = self.page(call)?;
        self.occupy_receive(&page, block, None, call)?;
        let receiving =
            self.receiving(into, &page, block, call).inspect_err(|_| self.suspect(&page, block))?;
        let operation = self.start_receive(receiving, &page, block);
        let incoming = Incoming::new(self, call, (page, block), Kind::Long(operation.clone()));
        if !operation.is_over() {
            self.pump.add(&operation); // there is somebody who takes it back, if this call does not return
            self.machine.rouse_own_helper();
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
    ) -> Result<Outgoing> {
        if let Some(bytes) = self.short_job(&mut [0; SHORT_MAX], from, len)? {
            return match self.send_at_once(bytes, to, slot)? {
                Some(sent) => Ok(sent),
                None => self.begin_send(Place::Own(Loan::of(bytes.to_vec())), to, slot),
            };
        }
        self.check_job(from, len, self.to("isend", to, slot))?;
        self.begin_send(Place::Job(from, len), to, slot)
    }

    /// Begins a receive into job memory of this rank's.
    pub fn begin_recv_job(
        self: &Arc<Self>,
        into: GlobalAddress,
        len: u64,
        from: Rank,
        slot: u32,
    ) -> Result<Incoming> {
        self.check_job(into, len, self.from("irecv", from, slot))?;
        self.begin_long_recv(Place::Job(into, len), from, slot)
    }

    /// Posts a receive. What waiting calls are to move on after that, if it has not ended.
    fn start_receive(&self, receiving: Receiving, page: &Arc<Page>, block: Block) -> Arc<Operation> {
        let mut way = Way::Receive(receiving);
        match way.step(&self.machine, page, block, &self.pump.rings) {
            Progress::Ended => Operation::ended(&self.pump.rings, page, block, way),
            Progress::Waits { .. } => Operation::new(&self.pump.rings, page, block, way, None),
        }
    }

    /// Whether a message that waits for its receive went into the spool because its time is over; otherwise whoever
    /// awaits it is woken then.
    fn spool_when_late(&self, operation: &Arc<Operation>, begun_ns: u64, call: Call) -> Result<bool> {
        let Some(after) = self.spools_after() else { return Ok(false) };
        let at_ns = until_ns(begun_ns, after);
        operation.spool_at_ns().store(at_ns, Relaxed);
        if self.machine.host().now_ns() < at_ns {
            return Ok(false);
        }
        operation.spool_at_ns().store(u64::MAX, Relaxed);
        self.pump.remove(&self.machine, operation);
        if operation.is_over() {
            return Ok(false);
        }
        if !operation.is_unmatched_send(&self.machine) {
            self.pump.add(operation);
            return Ok(false);
        }
        self.spool(operation, call).map(|()| true)
    }

    /// Whether an operation is over, or cannot end well; otherwise its waker will be woken then.
    fn poll(&self, operation: &Arc<Operation>, waker: &Waker) -> Result<bool> {
        if self.look(operation, waker) {
            return Ok(true);
        }
        self.see_to(waker).map(|()| false)
    }

    /// The same for one whose end any waiting call of the rank tells of, if there is one.
    fn look(&self, operation: &Arc<Operation>, waker: &Waker) -> bool {
        self.machine.progress();
        operation.set_waker(Some(waker)); // before the look: whoever ends it after that sees the waker
        let over =
            operation.is_over() || operation.is_hopeless(&self.machine) || self.machine.check().is_err();
        if over {
            operation.set_waker(None);
        }
        over
    }

    /// Sees to it that messages which wake somebody go on though no call of the program's waits.
    pub fn see_to(&self, waker: &Waker) -> Result<()> {
        if self.machine.host().lets_threads_sleep() {
            return alarm::set(&self.machine, &self.pump);
        }
        self.machine.relax("await")?;
        waker.wake_by_ref();
        Ok(())
    }
}

impl Outgoing {
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
        self.context.machine.progress();
        self.operation.as_ref().is_none_or(|operation| operation.is_over())
    }

    /// Ready when the bytes may be used again; otherwise `waker` is woken when they may.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Result<()>> {
        let Some(operation) = self.operation.clone() else { return Poll::Ready(self.finish()) };
        match self.context.spool_when_late(&operation, self.begun_ns, self.call) {
            Ok(false) => {}
            spooled => return Poll::Ready(self.finished(spooled.map(drop))),
        }
        match self.context.poll(&operation, waker) {
            Ok(true) => Poll::Ready(self.finish()),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The same where waiting calls of the rank are enough to move it on; what is waited for goes into `awaited`.
    pub fn look(&mut self, waker: &Waker, awaited: &mut Option<Arc<Operation>>) -> Poll<Result<()>> {
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
            self.context.pump.remove(&self.context.machine, operation);
            let is_known = || !operation.is_unmatched_send(&self.context.machine);
            if !operation.is_over() && !std::thread::panicking() && is_known() {
                let _ = self.context.finish(operation, None, self.call); // nobody asks how it went
            }
        }
        self.page.state(self.block).sending.set_idle();
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
                let host = self.context.machine.host();
                let waited = std::time::Duration::from_nanos(host.now_ns().saturating_sub(self.begun_ns));
                let after = self.context.spools_after().map(|after| after.saturating_sub(waited));
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
            Some(operation) if sent.as_ref().is_err_and(is_under_way) => self.context.pump.add(operation),
            _ => {
                self.waited = true;
                self.page.state(self.block).sending.set_idle();
            }
        }
        sent
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if self.waited {
            return;
        }
        match &self.operation {
            Some(operation) => {
                operation.set_waker(None);
                operation.detach();
            }
            None => self.page.state(self.block).sending.set_idle(),
        }
    }
}

impl Incoming {
    fn new(context: &Arc<Context>, call: Call, (page, block): (Arc<Page>, Block), kind: Kind) -> Incoming {
        Incoming { context: context.clone(), call, page, block, kind, watch: Mutex::default(), waited: false }
    }

    /// From whom, on which slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.call.peer, self.call.slot)
    }

    /// Where it was begun.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Whether its message comes into the slot's line: then [`Incoming::take`] wants the buffer.
    pub fn is_short(&self) -> bool {
        matches!(self.kind, Kind::Short { .. })
    }

    /// Whether its message has come. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.context.machine.progress();
        match &self.kind {
            // What goes wrong here is told by `take`.
            Kind::Short { number, room } => {
                !matches!(self.renew(number, *room), Ok(true))
                    && self.page.is_about(self.block, number.load(Relaxed))
            }
            Kind::Long(operation) => operation.is_over(),
        }
    }

    /// Whether the receive of a short message was posted anew: what has come did not fit in one that was withdrawn.
    fn renew(&self, number: &AtomicU32, room: usize) -> Result<bool> {
        let (page, block, old) = (&*self.page, self.block, number.load(Relaxed));
        let now = words::version(page.state(block).version.load(Relaxed));
        match words::read_data(page.data(block), old) {
            Data::TooLong { version } if version != now => {
                number.store(self.context.post_again(page, block, old, room)?, Relaxed);
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
        awaited: &mut Option<Arc<Operation>>,
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
    fn operation(&self) -> Result<Arc<Operation>> {
        let (number, room) = match &self.kind {
            Kind::Long(operation) => return Ok(operation.clone()),
            Kind::Short { number, room } => (number, *room),
        };
        if self.renew(number, room)? {
            self.forget_watch();
        }
        Ok(self.watch(number.load(Relaxed)))
    }

    /// The operation that watches for the short message of that number.
    fn watch(&self, number: u32) -> Arc<Operation> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || {
            let (pump, page) = (&self.context.pump, &self.page);
            let watch = Operation::new(&pump.rings, page, self.block, Way::watch(number), None);
            pump.add(&watch);
            watch
        };
        watch.get_or_insert_with(begin).clone()
    }

    fn forget_watch(&self) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watch) = watch {
            self.context.pump.remove(&self.context.machine, &watch);
        }
    }

    /// Takes it back, or waits for its end if its message is on its way. Never waits in a panic.
    fn take_back(&self) {
        if let Kind::Long(operation) = &self.kind {
            operation.set_waker(None);
            operation.withdraw();
            if std::thread::panicking() {
                self.context.pump.remove(&self.context.machine, operation);
            } else {
                let _bound = self.context.bind(operation);
                let _ = self.context.finish(operation, None, self.call); // nobody asks how it went
            }
        }
        self.context.suspect(&self.page, self.block);
    }

    /// Waits for its message, which goes into `into` if the receive is a short one.
    pub fn take(&mut self, into: &mut [u8]) -> Result<Received> {
        self.waited = true;
        match &self.kind {
            Kind::Short { number, .. } => {
                let posted = Posted::new(&self.page, self.block, number.load(Relaxed), into.len());
                self.context.take("irecv", posted, into)
            }
            Kind::Long(operation) => {
                let received = self.context.finish_receive(operation, None, self.call);
                match &received {
                    Ok(_) => operation.free_slot(),
                    Err(_) => self.context.suspect(&self.page, self.block),
                }
                received
            }
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.watch.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.forget_watch();
        }
        if self.waited {
            return;
        }
        match &self.kind {
            Kind::Short { number, .. } => {
                self.context.withdraw_short(&self.page, self.block, number.load(Relaxed));
            }
            Kind::Long(_) => self.take_back(),
        }
    }
}
