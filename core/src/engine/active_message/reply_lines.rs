//! Reply lines: the cache lines in which a rank waits for replies. A line is taken for a call and released when its
//! reply was read.
#![allow(unsafe_code)]
//! Unsafe: lines in job memory of this rank, which is not freed while the worker lives.

use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::base::{Cause, Error, Rank, Result, planted, relaxed_if_planted};
use crate::queue::handler_call::{Reply, ReplyAddress, SEQUENCES};
use crate::queue::ring::RingLine;
use crate::segment::{GlobalAddress, Registry};
use std::ptr::NonNull;
use std::slice;

/// Most calls of a rank that may wait for their replies at a time. A loom model needs only one.
pub(super) const REPLY_LINES: usize = if cfg!(loom) { 1 } else { 256 };
const WORDS: usize = REPLY_LINES.div_ceil(64);
const ALL_FREE: u64 = if cfg!(loom) { 1 } else { u64::MAX };

/// The reply lines of a rank.
#[derive(Debug)]
pub(super) struct ReplyLines {
    lines: NonNull<RingLine>,
    at: GlobalAddress,
    /// A bit for each line that is free.
    free: [AtomicU64; WORDS],
    /// A bit for each line whose reply no thread waits for any more and that may not have arrived.
    abandoned: [AtomicU64; WORDS],
    /// The sequence number of the current or last use of each line.
    sequences: [AtomicU32; REPLY_LINES],
}

// SAFETY: a pointer to shared memory made of atomics that stays mapped while the worker lives.
unsafe impl Send for ReplyLines {}
// SAFETY: a pointer to shared memory made of atomics that stays mapped while the worker lives.
unsafe impl Sync for ReplyLines {}

/// A reply line that was taken for one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReplyTicket {
    line: u16,
    sequence: u8,
}

impl ReplyTicket {
    fn bit(self) -> (usize, u64) {
        (usize::from(self.line) / 64, 1 << (self.line % 64))
    }
}

impl ReplyLines {
    /// Allocates the reply lines of a rank, for the lifetime of the job.
    pub(super) fn allocate(rank: Rank, registry: &Registry) -> Result<ReplyLines> {
        let at = GlobalAddress::new(rank, registry.allocate_local(ReplyLines::BYTES)?);
        let place = registry.own_place(at, ReplyLines::BYTES).map_err(Error::new)?;
        let place = NonNull::new(place).ok_or_else(|| Error::new(Cause::NullAddress))?;
        // SAFETY: these bytes were just allocated for the lines only; they are zero, aligned to a granule, and never
        // freed.
        Ok(unsafe { ReplyLines::new(at, place) })
    }

    /// Bytes of all lines.
    pub(super) const BYTES: u64 = (REPLY_LINES * size_of::<RingLine>()) as u64;

    /// The lines at `at`, which this process has mapped at `place`.
    ///
    /// # Safety
    /// [`ReplyLines::BYTES`] at `place` are zero, aligned to a line, and mapped for as long as this value is used.
    pub(super) unsafe fn new(at: GlobalAddress, place: NonNull<u8>) -> ReplyLines {
        ReplyLines {
            lines: place.cast(),
            at,
            free: std::array::from_fn(|_| AtomicU64::new(ALL_FREE)),
            abandoned: std::array::from_fn(|_| AtomicU64::new(0)),
            sequences: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    fn line(&self, ticket: ReplyTicket) -> &RingLine {
        // SAFETY: the caller of `new` keeps `REPLY_LINES` lines mapped and aligned; lines are made of atomics.
        let lines = unsafe { slice::from_raw_parts(self.lines.as_ptr(), REPLY_LINES) };
        &lines[usize::from(ticket.line)]
    }

    /// Takes a free line; `None` if there is none. `unread` gets the replies that nobody has read.
    #[inline]
    pub(super) fn take(&self, unread: impl Fn(Reply)) -> Option<ReplyTicket> {
        self.take_free().or_else(|| {
            self.release_abandoned(unread);
            self.take_free()
        })
    }

    #[inline]
    fn take_free(&self) -> Option<ReplyTicket> {
        for (word, bits) in self.free.iter().enumerate() {
            let mut now = bits.load(Ordering::Relaxed);
            while now != 0 {
                let bit = now & now.wrapping_neg();
                // SYNC reply-line: the thread that had the line before no longer uses it.
                match bits.compare_exchange_weak(now, now & !bit, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => {
                        let line = (word * 64) as u16 + bit.trailing_zeros() as u16;
                        let before = self.sequences[usize::from(line)].load(Ordering::Relaxed);
                        return Some(ReplyTicket { line, sequence: ((before + 1) % SEQUENCES as u32) as u8 });
                    }
                    Err(other) => now = other,
                }
            }
        }
        None
    }

    /// Releases the abandoned lines whose replies have arrived. `unread` gets these replies.
    #[cold]
    pub(super) fn release_abandoned(&self, unread: impl Fn(Reply)) {
        for line in 0..REPLY_LINES as u16 {
            let (word, bit) = ReplyTicket { line, sequence: 0 }.bit();
            let was_set = || self.abandoned[word].fetch_and(!bit, Ordering::Acquire) & bit != 0; // SYNC reply-line
            let is_ours = || was_set() || planted("reply_swept_twice");
            if self.abandoned[word].load(Ordering::Relaxed) & bit != 0 && is_ours() {
                // Read only now: before, another thread may have released the line and taken it again.
                let sequence = self.sequences[usize::from(line)].load(Ordering::Relaxed);
                let ticket = ReplyTicket { line, sequence: sequence as u8 };
                if planted("reply_not_come") || self.has_arrived(ticket) {
                    self.read(ticket).into_iter().for_each(&unread);
                    self.release(ticket);
                } else {
                    self.abandon(ticket);
                }
            }
        }
    }

    /// Returns true if a line is abandoned, so that it becomes free when its reply arrives.
    pub(super) fn has_abandoned(&self) -> bool {
        self.abandoned.iter().any(|bits| bits.load(Ordering::Relaxed) != 0)
    }

    /// The address for the reply.
    #[inline]
    pub(super) fn place(&self, ticket: ReplyTicket) -> ReplyAddress {
        let at = self.at.add(u64::from(ticket.line) * size_of::<RingLine>() as u64);
        ReplyAddress::new(at, u64::from(ticket.sequence))
    }

    /// Records that the call has been posted, so that a reply will arrive.
    #[inline]
    pub(super) fn expect(&self, ticket: ReplyTicket) {
        self.sequences[usize::from(ticket.line)].store(u32::from(ticket.sequence), Ordering::Relaxed);
    }

    /// Returns true if the reply has arrived.
    #[inline(always)]
    pub(super) fn has_arrived(&self, ticket: ReplyTicket) -> bool {
        self.line(ticket).holds(u64::from(ticket.sequence)) // SYNC ring-posted
    }

    /// Decodes the reply, which has arrived.
    #[inline]
    pub(super) fn read(&self, ticket: ReplyTicket) -> Option<Reply> {
        Reply::from_words(&self.line(ticket).read())
    }

    /// Releases the line: its reply was read, or no reply will arrive.
    #[inline]
    pub(super) fn release(&self, ticket: ReplyTicket) {
        let (word, bit) = ticket.bit();
        let order = relaxed_if_planted("reply_back_relaxed", Ordering::Release); // SYNC reply-line
        self.free[word].fetch_or(bit, order);
    }

    /// Gives up waiting for the reply. The line is released after the reply has arrived.
    pub(super) fn abandon(&self, ticket: ReplyTicket) {
        let (word, bit) = ticket.bit();
        self.abandoned[word].fetch_or(bit, Ordering::Release); // SYNC reply-line
    }
}

/// Reply lines for loom models, without a worker.
#[cfg(loom)]
#[derive(Debug)]
pub struct TestReplyLines {
    reply_lines: ReplyLines,
    _lines: Vec<RingLine>,
}

/// A reply line that a model has taken.
#[cfg(loom)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TestReplyLine(ReplyTicket);

#[cfg(loom)]
impl TestReplyLines {
    /// Reply lines in private memory, as if they were at `at`.
    pub fn new(at: GlobalAddress) -> TestReplyLines {
        let lines: Vec<RingLine> = (0..REPLY_LINES).map(|_| RingLine::default()).collect();
        let place = NonNull::from(&lines[0]).cast();
        // SAFETY: `_lines` keeps the lines, which do not move when the list is moved.
        TestReplyLines { reply_lines: unsafe { ReplyLines::new(at, place) }, _lines: lines }
    }

    /// Takes a free line; `None` if there is none.
    pub fn take(&self) -> Option<TestReplyLine> {
        self.reply_lines.take(drop).map(TestReplyLine)
    }

    /// Records that the call has been posted.
    pub fn expect(&self, line: TestReplyLine) {
        self.reply_lines.expect(line.0);
    }

    /// Writes a reply, as the called rank does.
    pub fn reply(&self, line: TestReplyLine, reply: &Reply) {
        self.reply_lines.line(line.0).write(u64::from(line.0.sequence), &reply.words());
    }

    /// Returns true if the reply has arrived.
    pub fn has_arrived(&self, line: TestReplyLine) -> bool {
        self.reply_lines.has_arrived(line.0)
    }

    /// Decodes the reply, which has arrived.
    pub fn read(&self, line: TestReplyLine) -> Option<Reply> {
        self.reply_lines.read(line.0)
    }

    /// Releases the line.
    pub fn release(&self, line: TestReplyLine) {
        self.reply_lines.release(line.0);
    }

    /// Gives up waiting for the reply.
    pub fn abandon(&self, line: TestReplyLine) {
        self.reply_lines.abandon(line.0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::queue::inline_data::Inline;

    fn test_lines() -> (Vec<RingLine>, ReplyLines) {
        let lines: Vec<RingLine> = (0..REPLY_LINES).map(|_| RingLine::default()).collect();
        let place = NonNull::from(&lines[0]).cast();
        // SAFETY: the caller keeps the lines, which do not move when the list is moved.
        let reply_lines = unsafe { ReplyLines::new(GlobalAddress::new(Rank(0), 1 << 30), place) };
        (lines, reply_lines)
    }

    fn write_test_reply(reply_lines: &ReplyLines, ticket: ReplyTicket) {
        let reply = Reply::Value(Inline::from_words(&[1], 1));
        reply_lines.line(ticket).write(u64::from(ticket.sequence), &reply.words());
    }

    #[test]
    fn a_reply_of_an_earlier_use_is_not_taken_for_the_current_one() {
        let (_lines, reply_lines) = test_lines();
        for round in 0..200 {
            let ticket = reply_lines.take(drop).unwrap();
            assert!(!reply_lines.has_arrived(ticket), "round {round}");
            if round % 3 == 0 {
                reply_lines.release(ticket); // as if the call could not be posted
                continue;
            }
            reply_lines.expect(ticket);
            write_test_reply(&reply_lines, ticket);
            assert!(reply_lines.has_arrived(ticket) && reply_lines.read(ticket).is_some());
            reply_lines.release(ticket);
        }
    }

    #[test]
    fn abandoned_lines_are_released_when_their_replies_have_arrived() {
        let (_lines, reply_lines) = test_lines();
        let tickets: Vec<ReplyTicket> = std::iter::from_fn(|| reply_lines.take(drop)).collect();
        assert_eq!(tickets.len(), REPLY_LINES);
        tickets.iter().for_each(|&ticket| reply_lines.expect(ticket));
        tickets[..2].iter().for_each(|&ticket| reply_lines.abandon(ticket));
        assert_eq!(reply_lines.take(drop), None);
        write_test_reply(&reply_lines, tickets[1]);
        let again = reply_lines.take(drop).unwrap();
        assert_eq!((again.line, again.sequence), (tickets[1].line, tickets[1].sequence + 1));
        assert_eq!(reply_lines.take(drop), None);
    }
}
