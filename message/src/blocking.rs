//! Blocking sends and receives that did not end at once.

use super::call::Call;
use super::context::{Context, Received};
use super::operation::Operation;
use super::page::{Block, Page};
use super::place::Place;
use super::receiving::Receiving;
use super::sending::Sending;
use super::straight::Straight;
use super::way::{End, Way};
use super::words::{self, Data, SHORT_MAX};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Loan, View};
use tasuki_core::segment::GlobalAddress;

impl Context {
    #[cold]
    #[inline(never)]
    pub(super) fn send_slowly(&self, bytes: &[u8], to: Rank, slot: u32) -> Result<()> {
        let call = self.to("send", to, slot);
        let (page, block) = self.page(call)?;
        if bytes.len() <= SHORT_MAX {
            let mut looks = self.machine.spins(Some(page.peer));
            while looks > 0 && !page.is_awaited(block) {
                looks -= 1;
                std::hint::spin_loop();
            }
            if page.send_short(block, bytes) {
                return Ok(());
            }
        }
        self.occupy_send(&page, block, call)?;
        let bytes = View::of(bytes);
        if self.send_straight(bytes, &page, block) {
            page.state(block).sending.set_idle();
            return Ok(());
        }
        Loan::lend(bytes, &|| self.machine.pause(), |loan| {
            self.send_place(Sending::new(Place::Own(loan.clone())), &page, block, call)
        })
    }

    /// Sends job memory of this rank's, blocking.
    pub fn send_job(&self, from: GlobalAddress, len: u64, to: Rank, slot: u32) -> Result<()> {
        if let Some(bytes) = self.short_job(&mut [0; SHORT_MAX], from, len)? {
            return self.send(bytes, to, slot);
        }
        let call = self.to("send", to, slot);
        let (page, block) = self.page(call)?;
        self.check_job(from, len, call)?;
        self.occupy_send(&page, block, call)?;
        self.send_place(Sending::new(Place::Job(from, len)), &page, block, call)
    }

    /// A short message from job memory, which is read before it sets out; none if it is no short one.
    pub(super) fn short_job<'l>(
        &self,
        line: &'l mut [u8; SHORT_MAX],
        from: GlobalAddress,
        len: u64,
    ) -> Result<Option<&'l [u8]>> {
        let Some(bytes) = line.get_mut(..len as usize) else { return Ok(None) };
        self.machine.get(from, bytes)?;
        Ok(Some(bytes))
    }

    /// That a message may come from that job memory, or go there.
    pub(super) fn check_job(&self, at: GlobalAddress, len: u64, call: Call) -> Result<()> {
        if at.rank() != self.machine.rank() {
            let text = format!(
                "the job memory given is rank {}'s: only its owner can send or receive there",
                at.rank()
            );
            return Err(self.fault(Cause::Argument(text), call));
        }
        self.machine.check_place(at, len).map_err(|cause| self.fault(cause, call))
    }

    /// Sends on a slot that was occupied.
    fn send_place(&self, sending: Sending, page: &Arc<Page>, block: Block, call: Call) -> Result<()> {
        let mut way = Way::Send(sending);
        let behind = self.last_spooled(page, block);
        let sent = match if behind.is_some() { None } else { self.run(&mut way, page, block) } {
            Some(End::Failed(cause)) => Err(self.fault(cause.clone(), call)),
            Some(_) => Ok(()),
            None => {
                let operation = Operation::new(&self.pump.rings, page, block, way, behind);
                let _bound = self.bind(&operation);
                self.finish_send(&operation, self.spools_after(), call)
            }
        };
        page.state(block).sending.set_idle();
        sent
    }

    /// Moves a message on while it goes on without a long wait: how it ended, if it has. Nobody else knows of it, so no
    /// lock is needed.
    fn run<'w>(&self, way: &'w mut Way, page: &Arc<Page>, block: Block) -> Option<&'w End> {
        way.run(&self.machine, (page, block), &self.pump.rings, self.machine.spins(Some(page.peer)))
    }

    /// The message in the spool that a new one on the slot goes behind.
    pub(super) fn last_spooled(&self, page: &Arc<Page>, block: Block) -> Option<Arc<Operation>> {
        let any = page.state(block).spooled.load(Relaxed) > 0;
        any.then(|| self.pump.last_spooled(page, block)).flatten()
    }

    /// Waits for the end of a send; when `limit` is over, the message goes into the spool.
    pub(super) fn finish_send(
        &self,
        operation: &Arc<Operation>,
        limit: Option<Duration>,
        call: Call,
    ) -> Result<()> {
        let waited = self.finish(operation, limit, call);
        if !waited.as_ref().is_err_and(Error::is_timeout) {
            return waited;
        }
        if operation.is_unmatched_send(&self.machine) {
            return self.spool(operation, call);
        }
        self.finish(operation, None, call)
    }

    /// After how long a message that waits goes into the spool.
    pub(super) fn spools_after(&self) -> Option<Duration> {
        if self.spools { self.pump.spool.after() } else { None }
    }

    /// Copies a message that nobody knows of yet into the spool.
    pub(super) fn spool(&self, operation: &Arc<Operation>, call: Call) -> Result<()> {
        let (page, block) = (&operation.page, operation.block);
        let bytes = operation.copied(&self.machine).map_err(|cause| self.fault(cause, call))?;
        let state = page.state(block);
        self.pump.spool.take(bytes.len() as u64, state).map_err(|cause| self.fault(cause, call))?;
        self.pump.add(&Operation::spooled(&self.pump.rings, page, block, bytes, operation.behind()));
        self.machine.rouse_own_helper();
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn recv_slowly(
        &self,
        into: &mut [u8],
        from: Rank,
        slot: u32,
        limit: Option<Duration>,
    ) -> Result<Received> {
        let call = self.from(if limit.is_some() { "recv_within" } else { "recv" }, from, slot);
        if into.len() <= SHORT_MAX && slot != Call::ANY {
            let posted = self.post_slowly(into.len(), limit, call)?;
            return self.wait_short(posted.number(), into, limit, call);
        }
        let (page, block) = self.page(call)?;
        self.occupy_receive(&page, block, limit, call)?;
        let into = View::of_mut(into);
        let taking = match self.receive_straight(into, &page, block) {
            Some(Straight::Done(received)) => {
                page.state(block).receiving.set_idle();
                return Ok(received);
            }
            Some(Straight::Posted(taking)) => Some(taking),
            None => None,
        };
        Loan::lend(into, &|| self.machine.pause(), |loan| {
            let into = Place::Own(loan.clone());
            let receiving = match taking {
                Some(taking) => Ok(Receiving::posted(into, taking)),
                None => self.receiving(into, &page, block, call),
            };
            self.recv_place(receiving, &page, block, limit, call)
        })
    }

    /// Receives into job memory of this rank's, blocking.
    pub fn recv_job(&self, into: GlobalAddress, len: u64, from: Rank, slot: u32) -> Result<Received> {
        let call = self.from("recv", from, slot);
        let (page, block) = self.page(call)?;
        self.check_job(into, len, call)?;
        self.occupy_receive(&page, block, None, call)?;
        let receiving = self.receiving(Place::Job(into, len), &page, block, call);
        self.recv_place(receiving, &page, block, None, call)
    }

    /// Receives on a slot that was occupied.
    fn recv_place(
        &self,
        receiving: Result<Receiving>,
        page: &Arc<Page>,
        block: Block,
        limit: Option<Duration>,
        call: Call,
    ) -> Result<Received> {
        let received = receiving.and_then(|receiving| {
            let mut way = Way::Receive(receiving);
            match self.run(&mut way, page, block) {
                Some(end) => self.received(page, end, call),
                None => {
                    let operation = Operation::new(&self.pump.rings, page, block, way, None);
                    self.finish_receive(&operation, limit, call)
                }
            }
        });
        match &received {
            Ok(_) => page.state(block).receiving.set_idle(),
            Err(_) => self.suspect(page, block),
        }
        received
    }

    /// A receive that is no short one.
    pub(super) fn receiving(&self, into: Place, page: &Page, block: Block, call: Call) -> Result<Receiving> {
        let direct_from = self.machine.fabric().capabilities().direct_from;
        let registered = match &into {
            Place::Own(loan) if loan.len() > SHORT_MAX && loan.len() as u64 >= direct_from => {
                Some(loan.register(&self.machine).map_err(|cause| self.fault(cause, call))?)
            }
            _ => None,
        };
        let to = match (&into, &registered) {
            (Place::Job(at, _), _) => *at,
            (_, Some(registered)) => registered.address(),
            _ => GlobalAddress::NULL,
        };
        Ok(Receiving::new(into, to, registered, page, block, &self.strays))
    }

    /// Waits for the end of a receive. When `limit` is over, takes it back, unless its message is on its way.
    pub(super) fn finish_receive(
        &self,
        operation: &Arc<Operation>,
        limit: Option<Duration>,
        call: Call,
    ) -> Result<Received> {
        let _bound = self.bind(operation);
        let mut waited = self.finish(operation, limit, call);
        if let Err(error) = &waited
            && error.is_timeout()
        {
            let in_time = error.clone();
            operation.withdraw();
            waited = self.finish(operation, None, call);
            if operation.end() == Some(End::Withdrawn) {
                waited = Err(in_time);
            }
        }
        waited?;
        let bug = || self.fault(Cause::Bug("a receive ended without an end".into()), call);
        self.received(&operation.page, &operation.end().ok_or_else(bug)?, call)
    }

    /// What came of a receive that has ended.
    fn received(&self, page: &Page, end: &End, call: Call) -> Result<Received> {
        match end {
            End::Done(done) => Ok(Received { slot: done.slot, source: page.member, len: done.len }),
            End::Failed(cause) => Err(self.fault(cause.clone(), call)),
            End::Withdrawn => Err(self.fault(Cause::Bug("a receive ended withdrawn".into()), call)),
        }
    }

    /// The error of a wait that was one of several within a limit: a time-out names that.
    #[cold]
    fn in_time(&self, error: Error, limit: Option<Duration>, call: Call) -> Error {
        match (error.cause(), limit) {
            (Cause::TimedOut { .. }, Some(after)) => self.fault(Cause::TimedOut { after }, call),
            _ => error,
        }
    }

    /// The operation is given up where the calling thread unwinds before the result is dropped.
    pub(super) fn bind<'c>(&'c self, operation: &'c Arc<Operation>) -> Bound<'c> {
        Bound { context: self, operation }
    }

    /// Waits for the end of an operation. When this returns, the pump does not have it any more, and nobody steps it.
    pub(super) fn finish(
        &self,
        operation: &Arc<Operation>,
        limit: Option<Duration>,
        call: Call,
    ) -> Result<()> {
        let host = self.machine.host();
        let until = limit.map(|limit| until_ns(host.now_ns(), limit));
        let mut waited: Result<()> = Ok(());
        loop {
            let ended_here = self.pump.run(&self.machine, operation);
            if operation.is_over() {
                if !ended_here {
                    operation.settle(&self.machine);
                }
                return match operation.end() {
                    Some(End::Failed(cause)) => Err(self.fault(cause, call)),
                    _ => Ok(()),
                };
            }
            if let Err(error) = waited {
                self.pump.remove(&self.machine, operation);
                if !operation.is_over() {
                    return Err(self.in_time(error, limit, call));
                }
                waited = Ok(());
                continue;
            }
            self.pump.add(operation); // other threads may move it on while this one sleeps
            let left = until.map(|until| Duration::from_nanos(until.saturating_sub(host.now_ns())));
            let condition = Condition::Event(operation.clone());
            waited = self.machine.wait(&condition, left, &|| call.to_string());
            // A step that was possible may come to nothing, again and again: where a fabric refuses.
            if waited.is_ok() && until.is_some_and(|until| host.now_ns() >= until) {
                waited = Err(self.fault(Cause::TimedOut { after: Duration::ZERO }, call));
            }
            if waited.is_ok()
                && let Some(cause) = self.machine.end_if_over()
            {
                waited = Err(self.fault(cause, call));
            }
        }
    }

    /// Posts a short receive for the next message: that of `number` did not fit in a receive that was withdrawn since,
    /// and its sender knows.
    pub(super) fn post_again(&self, page: &Page, block: Block, number: u32, room: usize) -> Result<u32> {
        let state = page.state(block);
        state.received.store(number, Relaxed);
        state.receiving.set_idle();
        Ok(self.post(room, page.member, page.slot(block))?.number())
    }

    /// Waits for a short message whose receive was posted.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_short(
        &self,
        mut number: u32,
        into: &mut [u8],
        limit: Option<Duration>,
        call: Call,
    ) -> Result<Received> {
        let (page, block) = self.page(call)?;
        let (slot, state, room) = (call.slot, page.state(block), into.len() as u64);
        let host = self.machine.host();
        let until = limit.map(|limit| until_ns(host.now_ns(), limit));
        let fail = |cause| {
            self.suspect(&page, block);
            Err(self.fault(cause, call))
        };
        loop {
            if let Some(len) = page.take_short(block, number, into) {
                return Ok(Received { slot, source: page.member, len: len as u64 });
            }
            match words::read_data(page.data(block), number) {
                Data::TooLong { version } if version == words::version(state.version.load(Relaxed)) => {
                    state.received.store(number, Relaxed);
                    return fail(Cause::Truncated { len: page.data_word(block, 0), room });
                }
                Data::TooLong { .. } => number = self.post_again(&page, block, number, into.len())?,
                Data::Failed => {
                    state.received.store(number, Relaxed);
                    return fail(Cause::NotSent { peer: page.peer });
                }
                // It was sent to a receive that was withdrawn, and waits for one with more room.
                Data::Short { len, .. } if len as u64 > room => {
                    return fail(Cause::Truncated { len: len as u64, room });
                }
                Data::Staged { .. } => {
                    return fail(Cause::Truncated { len: page.data_word(block, 1), room });
                }
                _ => {
                    let arrival = Arrival { page: page.clone(), block, number };
                    let condition = Condition::Event(Arc::new(arrival));
                    let left = until.map(|until| Duration::from_nanos(until.saturating_sub(host.now_ns())));
                    if let Err(error) = self.machine.wait(&condition, left, &|| call.to_string()) {
                        self.withdraw_short(&page, block, number);
                        return Err(self.in_time(error, limit, call));
                    }
                }
            }
        }
    }
}

/// When a limit that begins now is over.
pub(super) fn until_ns(now_ns: u64, limit: Duration) -> u64 {
    now_ns.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

/// A message that goes with a call. When that unwinds nobody moves it on any more, and it keeps nothing of what it was
/// lent: whoever lent it waits for that.
#[derive(Debug)]
pub(super) struct Bound<'c> {
    context: &'c Context,
    operation: &'c Arc<Operation>,
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.context.pump.remove(&self.context.machine, self.operation);
        }
    }
}

/// That something stands in a slot about a message.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) page: Arc<Page>,
    pub(super) block: Block,
    pub(super) number: u32,
}

impl Event for Arrival {
    fn happened(&self) -> bool {
        self.page.is_about(self.block, self.number)
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        let promised = words::is_promised(self.page.promised(self.block), self.number);
        Some((self.page.peer, if promised { Stage::Left } else { Stage::Leaving }))
    }
}
