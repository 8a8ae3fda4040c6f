//! Message limits: at most so many messages are under way to a receiver at a time, whichever way they go.
//!
//! A limit is the two counters of a [receive queue](crate::receive_queue) without buffers: `drawn` counts the permits that
//! senders have got, and `consumed` those that the receiver has released. A sender draws a number of permits by one atomic
//! operation, a compare-and-swap of `drawn`, and only when the receiver has released enough. The paper draws a ticket
//! first and then waits for its turn. But a sender that gives up, or dies, would keep its turn, and hold up all later
//! ones until somebody takes it back. The price is that permits go to whoever asks at the right moment.
//!
//! Source: the paper named in [`receive_queue`](crate::receive_queue), the scheme that limits the number of messages.

use crate::deferred_free::DeferredFree;
use crate::progress::engine::ProgressEngine;
use crate::receive_queue::counters::{self, Counters};
use crate::receive_queue::drawn_message::RoomPause;
use crate::receive_queue::memory::{DroppedQueue, QueueShare, new_key};
use crate::receive_queue::tickets::TicketMemory;
use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{WaitEvent, Worker};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::GlobalAddress;

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
                "{count} messages released, and senders have permits for {}",
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

    /// Draws permits if they are there. Otherwise returns the number of tickets drawn, and how many permits are missing.
    fn try_draw(&self, count: u64) -> Result<Result<(), (u64, u64)>> {
        loop {
            let drawn = self.counters().drawn()?; // before `consumed`, which only grows
            match self.missing(drawn, count, self.counters().consumed()?) {
                0 if self.counters().draw_exactly(drawn, count)? => return Ok(Ok(())),
                0 => {} // another sender came first
                missing => return Ok(Err((drawn, missing))),
            }
        }
    }

    /// Returns how many permits must be released before so many can be drawn.
    fn missing(&self, drawn: u64, count: u64, consumed: u64) -> u64 {
        let out = drawn.wrapping_sub(consumed) as i64; // below 0 if others have drawn meanwhile
        (out + count as i64 - self.share.slots as i64).max(0) as u64
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
pub struct MessagePermits(Arc<LimitAccess>);

impl MessagePermits {
    pub(crate) fn open(worker: &Arc<Worker>, address: MessageLimitAddress) -> Result<MessagePermits> {
        worker.check_rank(address.rank())?;
        let share = address.share();
        if address.key < counters::KEYS_FROM || address.messages == 0 {
            return Err(Cause::QueueClosed { peer: address.rank() }.into());
        }
        share.counters(worker).open(address.key, address.rank())?;
        // From here on, dropping it closes the limit.
        Ok(MessagePermits(Arc::new(LimitAccess { worker: worker.clone(), address, share })))
    }

    /// The limit.
    pub fn address(&self) -> MessageLimitAddress {
        self.0.address
    }

    /// Gets so many permits, by one atomic operation; waits for them. After an error it has got none.
    pub fn acquire(&mut self, count: u64) -> Result<()> {
        let (access, worker) = (&self.0, &self.0.worker);
        worker.check().map_err(|cause| worker.fault(cause, || access.call("acquire")))?;
        if count == 0 {
            return Ok(());
        }
        if count > access.share.slots {
            let text = format!("{count} messages at a time, and the limit is {}", access.share.slots);
            return Err(worker.fault(Cause::Argument(text), || access.call("acquire")));
        }
        let (deadline, mut pause) = (worker.call_deadline(), RoomPause::new());
        while let Err((drawn, missing)) = access.try_draw(count)? {
            access.check_open("acquire")?;
            pause.set_next(missing, 1);
            let released = Arc::new(Released { access: access.clone(), drawn, count });
            pause.0.wait(worker, released, deadline, &|| access.call("acquire"))?;
        }
        Ok(())
    }

    /// Gets a permit if there is one.
    pub fn try_acquire(&mut self) -> Result<bool> {
        let (access, worker) = (&self.0, &self.0.worker);
        worker.check().map_err(|cause| worker.fault(cause, || access.call("try_acquire")))?;
        match access.try_draw(1)? {
            Ok(()) => Ok(true),
            Err(_) => access.check_open("try_acquire").map(|()| false),
        }
    }
}

/// Waits until so many permits are there, unless other senders draw some.
#[derive(Debug)]
struct Released {
    access: Arc<LimitAccess>,
    drawn: u64,
    count: u64,
}

impl WaitEvent for Released {
    fn happened(&self) -> bool {
        // Where the counter cannot be read at once, the wait ends after a pause.
        let consumed = self.access.worker.peek_word(self.access.counters().consumed_at());
        consumed.is_some_and(|consumed| self.access.missing(self.drawn, self.count, consumed) == 0)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.access.address.rank(), RankStage::Leaving))
    }

    fn call(&self) -> String {
        self.access.call("acquire")
    }
}
