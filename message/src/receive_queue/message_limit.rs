//! Message limits: at most so many messages are under way to a receiver at a time, whichever way they go.
//!
//! A limit is the two counters of a [receive queue](crate::receive_queue) without buffers. A sender draws a ticket `t`
//! for each message, and may send it when `t - consumed < N`. The receiver adds to `consumed` when it has dealt with
//! messages, in any order: `consumed` may pass a ticket whose message is still under way, so the difference has a sign. A
//! sender that gives up has drawn tickets that nobody uses: it consumes them when their turn comes, not before, or more
//! than `N` others could be under way.
//!
//! Source: the paper named in [`receive_queue`](crate::receive_queue), the scheme that limits the number of messages.

use crate::deferred_free::DeferredFree;
use crate::progress::engine::ProgressEngine;
use crate::progress::{Continuation, FinalizeHook};
use crate::receive_queue::counters::{self, Counters};
use crate::receive_queue::drawn_message::RoomPause;
use crate::receive_queue::memory::{DroppedQueue, QueueShare, new_key};
use crate::receive_queue::tickets::TicketMemory;
use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::sync::{Arc, Weak};
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{WaitEvent, Worker};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::GlobalAddress;

/// How long a rank waits between two looks whether the turn of tickets has come that were given up, in ns.
const LOOK_EVERY_NS: u64 = 100_000;

/// Names a message limit, so that senders find it. Plain data, which may be sent to any rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct MessageLimitAddress {
    counters: u64,
    key: u64,
    messages: u64,
}

impl MessageLimitAddress {
    /// The rank that receives.
    pub fn rank(&self) -> Rank {
        GlobalAddress::from_bits(self.counters).rank()
    }

    fn share(&self) -> QueueShare {
        QueueShare { counters: GlobalAddress::from_bits(self.counters), first: 0, slots: self.messages }
    }
}

impl fmt::Display for MessageLimitAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message limit of rank {}", self.rank())
    }
}

/// Bounds how many messages are under way to this rank.
#[derive(Debug)]
pub struct MessageLimit {
    worker: Arc<Worker>,
    dropped: Arc<DeferredFree<DroppedQueue>>,
    address: MessageLimitAddress,
}

impl MessageLimit {
    pub(crate) fn new(
        worker: &Arc<Worker>,
        progress: &ProgressEngine,
        messages: u64,
    ) -> Result<MessageLimit> {
        let (worker, dropped) = (worker.clone(), progress.receive_queues.clone());
        if messages == 0 || messages >> 32 != 0 {
            let text = format!("a limit of {messages} messages: it is 1 to 4,294,967,295");
            return Err(Cause::Argument(text).into());
        }
        dropped.sweep(&worker)?;
        let key = new_key(&worker);
        let counters = counters::take(&worker, worker.rank(), key, 0)?.bits();
        Ok(MessageLimit { worker, dropped, address: MessageLimitAddress { counters, key, messages } })
    }

    /// The address by which senders open the limit.
    pub fn address(&self) -> MessageLimitAddress {
        self.address
    }

    /// Lets so many other messages come: the receiver has dealt with as many.
    pub fn release(&self, count: u64) -> Result<()> {
        let share = self.address.share();
        let counters = share.counters(&self.worker);
        let (consumed, drawn) = (counters.consumed()?, counters.drawn()?);
        if count > drawn.wrapping_sub(consumed) {
            let text = format!(
                "{count} messages released, and senders have permits for {} at most",
                drawn.wrapping_sub(consumed)
            );
            let call = || format!("release(the {})", self.address);
            return Err(self.worker.fault(Cause::Argument(text), call));
        }
        counters.consume(count).map(drop)
    }
}

impl Drop for MessageLimit {
    fn drop(&mut self) {
        let share = self.address.share();
        // Fails only if the job is over, which frees everything.
        if !self.worker.fork_guard().is_forked() && share.counters(&self.worker).mark_dropped().is_ok() {
            let limit = DroppedQueue { shares: vec![share], units: Vec::new(), local: None, bytes: 0 };
            let _ = self.dropped.free(&self.worker, [limit]);
        }
    }
}

/// A limit, as a sender has it open.
#[derive(Debug)]
struct LimitAccess {
    worker: Arc<Worker>,
    address: MessageLimitAddress,
    share: QueueShare,
}

impl LimitAccess {
    fn counters(&self) -> Counters<'_> {
        self.share.counters(&self.worker)
    }

    fn call(&self, name: &str) -> String {
        format!("{name}({})", self.address)
    }

    /// Returns how many messages the receiver must deal with before the turn of a ticket comes; 0 if it has come.
    fn dealt_with_before(&self, consumed: u64, ticket: u64) -> u64 {
        let ahead = ticket.wrapping_sub(consumed) as i64;
        (ahead - self.share.slots as i64 + 1).max(0) as u64
    }

    fn check_open(&self, name: &str) -> Result<()> {
        match self.counters().is_closed(self.address.key)? {
            true => {
                let cause = Cause::QueueClosed { peer: self.address.rank() };
                Err(self.worker.fault(cause, || self.call(name)))
            }
            false => Ok(()),
        }
    }
}

impl Drop for LimitAccess {
    fn drop(&mut self) {
        if !self.worker.fork_guard().is_forked() {
            let _ = self.counters().close(); // fails only if the job is over
        }
    }
}

/// Gets permits to send messages to a rank that has a limit. Made for one thread.
#[derive(Debug)]
pub struct MessagePermits {
    access: Arc<LimitAccess>,
    progress: Arc<ProgressEngine>,
}

impl MessagePermits {
    pub(crate) fn open(
        worker: &Arc<Worker>,
        progress: &Arc<ProgressEngine>,
        address: MessageLimitAddress,
    ) -> Result<MessagePermits> {
        worker.check_rank(address.rank())?;
        let share = address.share();
        if address.key < counters::KEYS_FROM || address.messages == 0 {
            return Err(Cause::QueueClosed { peer: address.rank() }.into());
        }
        share.counters(worker).open(address.key, address.rank())?;
        // From here on, dropping it closes the limit.
        let access = Arc::new(LimitAccess { worker: worker.clone(), address, share });
        Ok(MessagePermits { access, progress: progress.clone() })
    }

    /// The limit.
    pub fn address(&self) -> MessageLimitAddress {
        self.access.address
    }

    /// Gets so many permits, by one atomic operation; waits for them. After an error it has got none.
    pub fn acquire(&mut self, count: u64) -> Result<()> {
        let MessagePermits { access, progress } = self;
        let worker = &access.worker;
        worker.check().map_err(|cause| worker.fault(cause, || access.call("acquire")))?;
        if count == 0 {
            return Ok(());
        }
        if count > access.share.slots {
            let text = format!("{count} messages at a time, and the limit is {}", access.share.slots);
            return Err(worker.fault(Cause::Argument(text), || access.call("acquire")));
        }
        let last = access.counters().draw_many(count)?.wrapping_add(count - 1);
        let waited = wait_for_turn(access, last);
        waited.inspect_err(|_| UnusedTickets::add(access, progress, last, count))
    }

    /// Gets a permit if there is one.
    pub fn try_acquire(&mut self) -> Result<bool> {
        let access = &self.access;
        access.worker.check().map_err(|cause| access.worker.fault(cause, || access.call("try_acquire")))?;
        loop {
            let ticket = access.counters().drawn()?;
            if access.dealt_with_before(access.counters().consumed()?, ticket) > 0 {
                return access.check_open("try_acquire").map(|()| false);
            }
            if access.counters().draw_exactly(ticket)? {
                return Ok(true);
            }
        }
    }
}

/// Waits until the turn of a ticket has come.
fn wait_for_turn(access: &Arc<LimitAccess>, ticket: u64) -> Result<()> {
    let (worker, deadline) = (&access.worker, access.worker.call_deadline());
    let mut pause = RoomPause::new();
    loop {
        let before = access.dealt_with_before(access.counters().consumed()?, ticket);
        if before == 0 {
            return Ok(());
        }
        pause.set_next(before, 1);
        access.check_open("acquire")?;
        let turn = Arc::new(Turn { access: access.clone(), ticket });
        pause.0.wait(worker, turn, deadline, &|| access.call("acquire"))?;
    }
}

/// Waits until the turn of a ticket has come.
#[derive(Debug)]
struct Turn {
    access: Arc<LimitAccess>,
    ticket: u64,
}

impl WaitEvent for Turn {
    fn happened(&self) -> bool {
        // Where the counter cannot be read at once, the wait ends after a pause.
        let consumed = self.access.worker.peek_word(self.access.counters().consumed_at());
        consumed.is_some_and(|consumed| self.access.dealt_with_before(consumed, self.ticket) == 0)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.access.address.rank(), RankStage::Leaving))
    }

    fn call(&self) -> String {
        self.access.call("acquire")
    }
}

/// Tickets of a call that has given up. Any waiting call of the rank consumes them, at the latest when the rank leaves.
#[derive(Debug)]
struct UnusedTickets {
    access: Arc<LimitAccess>,
    progress: Weak<ProgressEngine>,
    last: u64,
    count: u64,
    is_over: AtomicBool,
    look_at_ns: AtomicU64,
}

impl UnusedTickets {
    fn add(access: &Arc<LimitAccess>, progress: &Arc<ProgressEngine>, last: u64, count: u64) {
        let (is_over, look_at_ns) = (AtomicBool::new(false), AtomicU64::new(0));
        let (access, progress_of) = (access.clone(), Arc::downgrade(progress));
        let unused =
            Arc::new(UnusedTickets { access, progress: progress_of, last, count, is_over, look_at_ns });
        unused.try_consume();
        if unused.is_under_way() {
            progress.add_continuation(unused.clone());
            // Fails only if another hook does, whose owner learns of it when the rank leaves.
            let _ = progress.add_finalize_hook(&unused.access.worker.clone(), unused);
        }
    }

    /// Consumes the tickets if their turn has come. Nobody needs them if the limit was dropped or the job is over.
    fn try_consume(&self) {
        let counters = self.access.counters();
        match counters.consumed() {
            Ok(consumed) if self.access.dealt_with_before(consumed, self.last) == 0 => {
                if !self.is_over.swap(true, Ordering::Relaxed) {
                    let _ = counters.consume(self.count); // fails only if the job is over
                }
            }
            Ok(_) if matches!(counters.is_closed(self.access.address.key), Ok(false)) => {}
            _ => self.is_over.store(true, Ordering::Relaxed),
        }
    }
}

impl Continuation for UnusedTickets {
    fn can_resume(&self) -> bool {
        self.is_under_way() && self.access.worker.now_ns() >= self.look_at_ns.load(Ordering::Relaxed)
    }

    fn again_at_ns(&self) -> u64 {
        if self.is_under_way() { self.look_at_ns.load(Ordering::Relaxed) } else { u64::MAX }
    }

    fn is_under_way(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn resume(&self) {
        self.look_at_ns.store(self.access.worker.now_ns() + LOOK_EVERY_NS, Ordering::Relaxed);
        self.try_consume();
        if !self.is_under_way()
            && let Some(progress) = self.progress.upgrade()
        {
            progress.remove_continuation(self);
        }
    }
}

impl FinalizeHook for UnusedTickets {
    fn is_finalized(&self, _worker: &Worker) -> bool {
        !self.is_under_way()
    }

    fn finalize(&self, worker: &Worker) -> Result<()> {
        if self.access.address.rank() == worker.rank() {
            return Ok(()); // nobody releases any more
        }
        // Ends with an error if the receiver has left or dropped the limit: then nobody needs the tickets.
        if self.is_under_way() && wait_for_turn(&self.access, self.last).is_ok() {
            self.try_consume();
        }
        Ok(())
    }
}
