//! The counters of a receive queue, in a table in the arena of any rank.
//!
//! | bytes of the counters | hold |
//! |---|---|
//! | 0-7 | tickets drawn |
//! | 64-71 | tickets consumed |
//! | 72-79 | the key of the queue; 0 if the place is free, 1 if the queue was dropped |
//! | 80-87 | how many senders have it open |
//! | 88-95 | of a message limit: the address of the counters of its next share; 0 in the last one |
//!
//! A sender adds itself to the senders before it compares the key. The owner that drops the queue changes the key
//! before it reads the number of senders, and frees nothing while there are any. So a sender that has found the right
//! key may use counters and lines until it is dropped; and one whose queue is gone gets an error.

use crate::receive_queue::tickets::TicketMemory;
use crate::slot::arena::{at, atomic8};
use tasuki_core::base::error_hint::RECEIVE_QUEUES;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::AtomicKind;
use tasuki_core::segment::GlobalAddress;

/// Offset of the table of counters in the arena.
const COUNTERS: u64 = 32 << 10;
/// Bytes of an entry: two cache lines, since senders write one and the receiver the other.
const ENTRY: u64 = 128;
/// How many shares of receive queues have their counters on one rank.
const ENTRIES_MAX: u64 = 128;

const DRAWN: u64 = 0;
const CONSUMED: u64 = 64;
const KEY: u64 = 72;
const SENDERS: u64 = 80;
const NEXT: u64 = 88;

const FREE: u64 = 0;
const DROPPED: u64 = 1;
/// The first number that is a key.
pub(crate) const KEYS_FROM: u64 = 2;

/// The counters of a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters<'m> {
    pub(crate) worker: &'m Worker,
    pub(crate) at: GlobalAddress,
}

impl Counters<'_> {
    fn add(&self, word: u64, amount: u64) -> Result<u64> {
        self.worker.atomic(self.at.add(word), atomic8(AtomicKind::Add, amount))
    }

    fn read(&self, word: u64) -> Result<u64> {
        self.worker.atomic(self.at.add(word), atomic8(AtomicKind::Load, 0))
    }

    /// Draws so many tickets, if that ticket is the next one.
    pub(crate) fn draw_exactly(&self, ticket: u64, count: u64) -> Result<bool> {
        let kind = AtomicKind::Cas { expected: ticket };
        Ok(self.worker.atomic(self.at.add(DRAWN), atomic8(kind, ticket.wrapping_add(count)))? == ticket)
    }

    /// Returns the number of tickets drawn.
    pub(crate) fn drawn(&self) -> Result<u64> {
        self.read(DRAWN)
    }

    /// Returns true if the queue was dropped, or is not the one of that key.
    pub(crate) fn is_closed(&self, key: u64) -> Result<bool> {
        Ok(self.read(KEY)? != key)
    }

    /// Returns true if there is a key.
    pub(crate) fn has_key(&self) -> Result<bool> {
        Ok(self.read(KEY)? != FREE)
    }

    /// Sets the key if there is none. Returns the key.
    pub(crate) fn key_or(&self, key: u64) -> Result<u64> {
        let found = self.worker.atomic(self.at.add(KEY), atomic8(AtomicKind::Cas { expected: FREE }, key))?;
        Ok(if found == FREE { key } else { found })
    }

    /// Adds this sender. Error: there is no such queue any more.
    pub(crate) fn open(&self, key: u64, receiver: Rank) -> Result<()> {
        self.add(SENDERS, 1)?;
        if self.is_closed(key)? {
            self.close()?;
            return Err(Cause::QueueClosed { peer: receiver }.into());
        }
        Ok(())
    }

    /// Removes this sender.
    pub(crate) fn close(&self) -> Result<()> {
        self.add(SENDERS, 1_u64.wrapping_neg()).map(drop)
    }

    /// Returns the number of senders.
    pub(crate) fn senders(&self) -> Result<u64> {
        self.read(SENDERS)
    }

    /// Lets senders know that the queue was dropped.
    pub(crate) fn mark_dropped(&self) -> Result<()> {
        self.worker.atomic(self.at.add(KEY), atomic8(AtomicKind::Swap, DROPPED)).map(drop)
    }

    /// Frees the place for another queue. No sender has it open.
    pub(crate) fn free(&self) -> Result<()> {
        self.worker.atomic(self.at.add(KEY), atomic8(AtomicKind::Swap, FREE)).map(drop)
    }

    /// Sets the counters of the next share, before anybody knows this one.
    pub(crate) fn set_next(&self, next: Option<GlobalAddress>) -> Result<()> {
        let bits = next.map_or(0, |next| next.bits());
        self.worker.atomic(self.at.add(NEXT), atomic8(AtomicKind::Swap, bits)).map(drop)
    }

    /// Returns the counters of the next share.
    pub(crate) fn next(&self) -> Result<Option<GlobalAddress>> {
        let bits = self.read(NEXT)?;
        Ok((bits != 0).then(|| GlobalAddress::from_bits(bits)))
    }

    /// The address of the number of tickets consumed.
    pub(crate) fn consumed_at(&self) -> GlobalAddress {
        self.at.add(CONSUMED)
    }
}

impl TicketMemory for Counters<'_> {
    type Error = Error;

    #[inline]
    fn draw(&self, count: u64) -> Result<u64> {
        self.add(DRAWN, count)
    }

    #[inline]
    fn consumed(&self) -> Result<u64> {
        self.read(CONSUMED) // SYNC queue-consumed
    }

    #[inline]
    fn consume(&self, count: u64) -> Result<()> {
        self.add(CONSUMED, count).map(drop) // SYNC queue-consumed
    }
}

/// Takes a free entry of a rank's table of counters.
pub(crate) fn take(worker: &Worker, home: Rank, key: u64, first_ticket: u64) -> Result<GlobalAddress> {
    for entry in 0..ENTRIES_MAX {
        let place = at(home, COUNTERS + entry * ENTRY);
        let taken = worker.atomic(place.add(KEY), atomic8(AtomicKind::Cas { expected: FREE }, key))?;
        if taken == FREE {
            for word in [DRAWN, CONSUMED] {
                worker.atomic(place.add(word), atomic8(AtomicKind::Swap, first_ticket))?;
            }
            return Ok(place);
        }
    }
    Err(Cause::Full { what: RECEIVE_QUEUES, capacity: ENTRIES_MAX as usize }.into())
}
