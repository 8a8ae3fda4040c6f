//! Message limits: at most so many messages are under way to a receiver at a time, whichever way they go.
//!
//! A limit is the two counters of a [receive queue](crate::receive_queue) without buffers: `drawn` counts the permits that
//! senders have got, and `consumed` those that the receiver has released. A sender draws a number of permits by one atomic
//! operation, a compare-and-swap of `drawn`, and only when the receiver has released enough. The paper draws a ticket
//! first and then waits for its turn. But a sender that gives up, or dies, would keep its turn, and hold up all later
//! ones until somebody takes it back. The price is that permits go to whoever asks at the right moment.
//!
//! A limit may have several shares, each with two counters on a rank of its own. A sender draws from the share of its
//! part of the job, and borrows from the next ones if that has no permit. All permits are alike, so the receiver
//! releases each to any share that lacks one; how many are out in all shares never exceeds the limit.
//!
//! Source: the paper named in [`receive_queue`](crate::receive_queue), the scheme that limits the number of messages.

use crate::deferred_free::DeferredFree;
use crate::progress::engine::ProgressEngine;
use crate::receive_queue::counters::{self, Counters};
use crate::receive_queue::drawn_message::RoomPause;
use crate::receive_queue::memory::{DroppedQueue, QueueShare, SHARES_MAX, new_key};
use crate::receive_queue::sender::own_share;
use crate::receive_queue::tickets::TicketMemory;
use bytemuck::{Pod, Zeroable};
use smallvec::SmallVec;
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
    /// The counters of the first share.
    counters: u64,
    key: u64,
    messages: u32,
    receiver: u32,
}

impl MessageLimitAddress {
    /// The rank that receives.
    pub fn rank(&self) -> Rank {
        Rank::from_word(self.receiver)
    }

    /// Opens the limit, and reads where its shares are. Whoever gets them closes the first one.
    fn open(&self, worker: &Worker) -> Result<Vec<QueueShare>> {
        if self.key < counters::KEYS_FROM || self.messages == 0 {
            return Err(Cause::QueueClosed { peer: self.rank() }.into());
        }
        let first = Counters { worker, at: GlobalAddress::from_bits(self.counters) };
        first.open(self.key, self.rank())?;
        let (mut places, mut last) = (vec![first.at], first);
        let places = loop {
            match last.next() {
                Ok(None) => break Ok(places),
                Ok(Some(at)) => {
                    places.push(at);
                    last = Counters { worker, at };
                }
                Err(error) => break Err(error),
            }
        };
        places.map(|places| shares_of(self.messages, &places)).inspect_err(|_| drop(first.close()))
    }
}

/// Divides the permits among shares with those counters, as evenly as possible.
fn shares_of(messages: u32, places: &[GlobalAddress]) -> Vec<QueueShare> {
    let (messages, shares) = (u64::from(messages), places.len() as u64);
    let slots = |share: u64| messages / shares + u64::from(share < messages % shares);
    let share = |(number, &counters)| QueueShare { counters, first: 0, slots: slots(number) };
    (0..).zip(places).map(share).collect()
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
    shares: Vec<QueueShare>,
}

impl MessageLimit {
    /// Makes a limit with counters on those ranks.
    pub(crate) fn new(
        worker: &Arc<Worker>,
        progress: &ProgressEngine,
        messages: usize,
        homes: &[Rank],
    ) -> Result<MessageLimit> {
        let (worker, dropped) = (worker.clone(), progress.receive_queues.clone());
        let receiver = worker.rank().to_word();
        let messages = match u32::try_from(messages) {
            Ok(number) if !homes.is_empty() && homes.len() <= messages.min(SHARES_MAX) => number,
            _ => {
                let text = format!(
                    "a limit of {messages} messages with counters on {} ranks: it is 1 to 4,294,967,295 messages, and \
                     has counters on 1 to {SHARES_MAX} ranks, each for one message at least",
                    homes.len()
                );
                return Err(Cause::Argument(text).into());
            }
        };
        homes.iter().try_for_each(|&rank| worker.check_rank(rank))?;
        dropped.sweep(&worker)?;
        let key = new_key(&worker);
        let address = MessageLimitAddress { counters: 0, key, messages, receiver };
        // From here on, dropping it frees the places that were taken.
        let mut limit = MessageLimit { worker, dropped, address, shares: Vec::new() };
        let mut next = None;
        // From the last to the first, so that each knows the next one.
        for &home in homes.iter().rev() {
            let at = counters::take(&limit.worker, home, key, 0)?;
            limit.shares.insert(0, QueueShare { counters: at, first: 0, slots: 0 });
            limit.shares[0].counters(&limit.worker).set_next(next.replace(at))?;
        }
        let places: Vec<GlobalAddress> = limit.shares.iter().map(|share| share.counters).collect();
        limit.address.counters = places[0].bits();
        limit.shares = shares_of(messages, &places);
        Ok(limit)
    }

    /// The address by which senders open the limit.
    pub fn address(&self) -> MessageLimitAddress {
        self.address
    }

    /// Lets so many other messages come: the receiver has dealt with as many.
    pub fn release(&self, count: u64) -> Result<()> {
        let mut out = SmallVec::<[_; 8]>::new();
        for share in &self.shares {
            let counters = share.counters(&self.worker);
            let consumed = counters.consumed()?;
            out.push((counters.drawn()?.wrapping_sub(consumed), counters));
        }
        let all = out.iter().map(|&(count, _)| count).sum::<u64>();
        if count > all {
            let text = format!("{count} messages released, and senders have permits for {all}");
            let call = || format!("release(the {})", self.address);
            return Err(self.worker.fault(Cause::Argument(text), call));
        }
        // To the share that lacks most first: its senders need not borrow then.
        out.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
        let mut left = count;
        for (lacks, counters) in out {
            let part = lacks.min(left);
            if part > 0 {
                counters.consume(part)?;
                left -= part;
            }
        }
        Ok(())
    }
}

impl Drop for MessageLimit {
    fn drop(&mut self) {
        let dropped = |share: &QueueShare| share.counters(&self.worker).mark_dropped();
        // Fails only if the job is over, which frees everything.
        if !self.worker.fork_guard().is_forked() && self.shares.iter().try_for_each(dropped).is_ok() {
            let shares = std::mem::take(&mut self.shares);
            let limit = DroppedQueue { shares, units: Vec::new(), local: None, bytes: 0 };
            let _ = self.dropped.free(&self.worker, [limit]);
        }
    }
}

/// A limit, as a sender has it open.
#[derive(Debug)]
struct LimitAccess {
    worker: Arc<Worker>,
    address: MessageLimitAddress,
    /// The first one is that of the limit.
    shares: Vec<QueueShare>,
    /// The number of the share that is asked first.
    own: usize,
}

impl LimitAccess {
    /// All shares, the own one first.
    fn shares(&self) -> impl Iterator<Item = (usize, &QueueShare)> {
        let count = self.shares.len();
        (0..count).map(move |ahead| (self.own + ahead) % count).map(|number| (number, &self.shares[number]))
    }

    fn call(&self, name: &str) -> String {
        format!("{name}({})", self.address)
    }

    /// Draws permits from a share that has as many. Otherwise returns what was seen of the shares.
    fn try_draw(&self, count: u64) -> Result<Option<NoPermits>> {
        let mut seen = NoPermits { drawn: Vec::new(), least: u64::MAX };
        for (number, share) in self.shares() {
            let counters = share.counters(&self.worker);
            loop {
                let drawn = counters.drawn()?; // before `consumed`, which only grows
                match missing(share, drawn, count, counters.consumed()?) {
                    0 if counters.draw_exactly(drawn, count)? => return Ok(None),
                    0 => {} // another sender came first
                    missing => {
                        seen.drawn.resize(self.shares.len(), 0);
                        seen.drawn[number] = drawn;
                        seen.least = seen.least.min(missing);
                        break;
                    }
                }
            }
        }
        Ok(Some(seen))
    }

    /// Returns the largest number of permits that can be drawn together.
    fn most_together(&self) -> u64 {
        self.shares.iter().map(|share| share.slots).max().unwrap_or(0)
    }

    fn check_open(&self, name: &str) -> Result<()> {
        let first = self.shares[0].counters(&self.worker);
        match first.is_closed(self.address.key)? {
            true => {
                let cause = Cause::QueueClosed { peer: self.address.rank() };
                Err(self.worker.fault(cause, || self.call(name)))
            }
            false => Ok(()),
        }
    }
}

/// What a sender has seen that found no permits.
struct NoPermits {
    /// How many permits were drawn of each share.
    drawn: Vec<u64>,
    /// How many must be released before as many can be drawn, at least.
    least: u64,
}

/// Returns how many permits of a share must be released before so many can be drawn.
fn missing(share: &QueueShare, drawn: u64, count: u64, consumed: u64) -> u64 {
    let out = drawn.wrapping_sub(consumed).cast_signed(); // below 0 if others have drawn meanwhile
    match count <= share.slots {
        true => (out + count.cast_signed() - share.slots.cast_signed()).max(0) as u64,
        false => u64::MAX, // it never has as many
    }
}

impl Drop for LimitAccess {
    fn drop(&mut self) {
        if !self.worker.fork_guard().is_forked() {
            let _ = self.shares[0].counters(&self.worker).close(); // fails only if the job is over
        }
    }
}

/// Gets permits to send messages to a rank that has a limit. Made for one thread.
#[derive(Debug)]
pub struct MessagePermits(Arc<LimitAccess>);

impl MessagePermits {
    pub(crate) fn open(worker: &Arc<Worker>, address: MessageLimitAddress) -> Result<MessagePermits> {
        worker.check_rank(address.rank())?;
        let shares = address.open(worker)?;
        // From here on, dropping it closes the limit.
        let own = own_share(worker, shares.len());
        Ok(MessagePermits(Arc::new(LimitAccess { worker: worker.clone(), address, shares, own })))
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
        if count > access.most_together() {
            let text = format!("{count} messages at a time, and the limit is {}", access.most_together());
            return Err(worker.fault(Cause::Argument(text), || access.call("acquire")));
        }
        let (deadline, mut pause) = (worker.call_deadline(), RoomPause::new());
        while let Some(NoPermits { drawn, least }) = access.try_draw(count)? {
            access.check_open("acquire")?;
            pause.set_next(least, 1);
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
            None => Ok(true),
            Some(_) => access.check_open("try_acquire").map(|()| false),
        }
    }
}

/// Waits until so many permits are there, unless other senders draw some.
#[derive(Debug)]
struct Released {
    access: Arc<LimitAccess>,
    drawn: Vec<u64>,
    count: u64,
}

impl WaitEvent for Released {
    fn happened(&self) -> bool {
        // Where the counter cannot be read at once, the wait ends after a pause.
        let worker = &self.access.worker;
        let is_there = |(number, share): (usize, &QueueShare)| {
            let consumed = worker.peek_word(share.counters(worker).consumed_at());
            consumed.is_some_and(|consumed| missing(share, self.drawn[number], self.count, consumed) == 0)
        };
        self.access.shares().any(is_there)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.access.address.rank(), RankStage::Leaving))
    }

    fn call(&self) -> String {
        self.access.call("acquire")
    }
}
