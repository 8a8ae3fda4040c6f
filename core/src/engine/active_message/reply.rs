//! The lines on which a rank waits for answers: taken for a call, given back when the answer was read.
#![allow(unsafe_code)]
//! Unsafe: lines in job memory of this rank that is freed by nobody while the machine lives, and lines of others that
//! the fabric has just named.

use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::base::{Cause, Error, Result, planted, relaxed_if_planted};
use crate::engine::worker::Worker;
use crate::os::prefetch;
use crate::queue::handler_call::{Reply, ReplyAddress, TURNS};
use crate::queue::ring::{LINE_WORDS, RingLine};
use crate::segment::GlobalAddress;
use std::ptr::NonNull;
use std::slice;

/// ActiveMessages of a rank that may wait for their answers at once; a model needs no more than one.
pub(super) const ANSWERS: usize = if cfg!(loom) { 1 } else { 256 };
const WORDS: usize = ANSWERS.div_ceil(64);
const ALL_OF_A_WORD: u64 = if cfg!(loom) { 1 } else { u64::MAX };

/// The answer lines of a rank.
#[derive(Debug)]
pub(super) struct ReplyLines {
    lines: NonNull<RingLine>,
    at: GlobalAddress,
    /// A bit for each line that nobody has.
    free: [AtomicU64; WORDS],
    /// A bit for each line whose answer nobody waits for any more, and that has not come yet.
    abandoned: [AtomicU64; WORDS],
    /// Of each line the turn in which it is, or last was.
    turns: [AtomicU32; ANSWERS],
}

// SAFETY: a pointer to shared memory made of atomics that stays mapped while the machine lives.
unsafe impl Send for ReplyLines {}
// SAFETY: as above.
unsafe impl Sync for ReplyLines {}

/// A line that was taken for one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReplyTicket {
    line: u16,
    turn: u8,
}

impl ReplyTicket {
    fn bit(self) -> (usize, u64) {
        (usize::from(self.line) / 64, 1 << (self.line % 64))
    }
}

impl ReplyLines {
    /// Bytes of the lines.
    pub(super) const BYTES: u64 = (ANSWERS * size_of::<RingLine>()) as u64;

    /// The lines at `at`, which is at `place` in this process.
    ///
    /// # Safety
    /// [`ReplyLines::BYTES`] there are zero, aligned to a line, and mapped for as long as this is used.
    pub(super) unsafe fn new(at: GlobalAddress, place: NonNull<u8>) -> ReplyLines {
        ReplyLines {
            lines: place.cast(),
            at,
            free: std::array::from_fn(|_| AtomicU64::new(ALL_OF_A_WORD)),
            abandoned: std::array::from_fn(|_| AtomicU64::new(0)),
            turns: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    fn line(&self, ticket: ReplyTicket) -> &RingLine {
        // SAFETY: the promise of `new`; lines are made of atomics.
        let lines = unsafe { slice::from_raw_parts(self.lines.as_ptr(), ANSWERS) };
        &lines[usize::from(ticket.line)]
    }

    /// A line; `None` if all are taken.
    #[inline]
    pub(super) fn take(&self) -> Option<ReplyTicket> {
        self.take_free().or_else(|| {
            self.sweep();
            self.take_free()
        })
    }

    #[inline]
    fn take_free(&self) -> Option<ReplyTicket> {
        for (word, bits) in self.free.iter().enumerate() {
            let mut now = bits.load(Ordering::Relaxed);
            while now != 0 {
                let bit = now & now.wrapping_neg();
                // SYNC answer-line: whoever had the line before has done with it.
                match bits.compare_exchange_weak(now, now & !bit, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => {
                        let line = (word * 64) as u16 + bit.trailing_zeros() as u16;
                        let before = self.turns[usize::from(line)].load(Ordering::Relaxed);
                        return Some(ReplyTicket { line, turn: ((before + 1) % TURNS as u32) as u8 });
                    }
                    Err(other) => now = other,
                }
            }
        }
        None
    }

    /// Gives abandoned lines back whose answers have come.
    #[cold]
    fn sweep(&self) {
        for line in 0..ANSWERS as u16 {
            let turn = self.turns[usize::from(line)].load(Ordering::Relaxed);
            let ticket = ReplyTicket { line, turn: turn as u8 };
            let (word, bit) = ticket.bit();
            let was_set = || self.abandoned[word].fetch_and(!bit, Ordering::Acquire) & bit != 0; // SYNC answer-line
            let is_ours = || was_set() || planted("reply_swept_twice");
            let has_come = || planted("reply_not_come") || self.has_come(ticket);
            if self.abandoned[word].load(Ordering::Relaxed) & bit != 0 && is_ours() {
                if has_come() { self.give_back(ticket) } else { self.abandon(ticket) }
            }
        }
    }

    /// Where the answer is to go.
    #[inline]
    pub(super) fn place(&self, ticket: ReplyTicket) -> ReplyAddress {
        let at = self.at.add(u64::from(ticket.line) * size_of::<RingLine>() as u64);
        ReplyAddress::new(at, u64::from(ticket.turn))
    }

    /// The call has been posted: an answer will come.
    #[inline]
    pub(super) fn expect(&self, ticket: ReplyTicket) {
        self.turns[usize::from(ticket.line)].store(u32::from(ticket.turn), Ordering::Relaxed);
    }

    /// Whether the answer has come.
    #[inline(always)]
    pub(super) fn has_come(&self, ticket: ReplyTicket) -> bool {
        self.line(ticket).holds(u64::from(ticket.turn)) // SYNC ring-posted
    }

    /// The answer, which has come.
    #[inline]
    pub(super) fn read(&self, ticket: ReplyTicket) -> Option<Reply> {
        Reply::from_words(&self.line(ticket).read())
    }

    /// The line may be used again: its answer was read, or none will come.
    #[inline]
    pub(super) fn give_back(&self, ticket: ReplyTicket) {
        let (word, bit) = ticket.bit();
        let order = relaxed_if_planted("reply_back_relaxed", Ordering::Release); // SYNC answer-line
        self.free[word].fetch_or(bit, order);
    }

    /// Nobody waits for the answer any more: the line is used again when it has come.
    pub(super) fn abandon(&self, ticket: ReplyTicket) {
        let (word, bit) = ticket.bit();
        self.abandoned[word].fetch_or(bit, Ordering::Release); // SYNC answer-line
    }
}

impl Worker {
    /// Lays the rank's answer lines out, in memory that goes with the job.
    pub(super) fn make_reply_lines(&self) -> Result<ReplyLines> {
        let at = GlobalAddress::new(self.rank(), self.registry().allocate_local(ReplyLines::BYTES)?);
        let place = self.own_place(at, ReplyLines::BYTES).map_err(Error::new)?;
        let place = NonNull::new(place).ok_or_else(|| Error::new(Cause::NullAddress))?;
        // SAFETY: just allocated, zero, of that size, aligned to a granule, never freed.
        Ok(unsafe { ReplyLines::new(at, place) })
    }

    /// An answer will be written there: its line is taken from who waits for it while the handler runs. By that calls
    /// are 8 % faster: 188 ns there and back, 205 before (in turns, hand-over 35).
    #[inline(always)]
    pub(super) fn fetch_reply_line(&self, place: ReplyAddress) {
        if !place.is_none()
            && let Some(line) = self.reply_line(place)
        {
            prefetch::for_writing(line.as_ptr());
        }
    }

    /// Where an answer is written, if that is in reach.
    #[inline(always)]
    fn reply_line(&self, place: ReplyAddress) -> Option<NonNull<u8>> {
        if self.reaches_words() {
            self.fabric().mapped(place.line(), size_of::<RingLine>() as u64)
        } else {
            None
        }
    }

    /// Writes an answer where it is waited for, and wakes whoever does. False if the line is out of reach.
    #[inline(always)]
    pub(super) fn write_reply(&self, place: ReplyAddress, words: &[u64; LINE_WORDS]) -> bool {
        let Some(line) = self.reply_line(place) else { return false };
        // SAFETY: just found, and aligned, as the place of an answer is; a line is made of atomics.
        unsafe { line.cast::<RingLine>().as_ref() }.write(place.turn(), words);
        self.wake_sleepers(place.line().rank());
        true
    }
}

/// Reply lines as models use them, without a machine.
#[cfg(loom)]
#[derive(Debug)]
pub struct TestReplyLines {
    answers: ReplyLines,
    _lines: Vec<RingLine>,
}

/// A line that a model has taken.
#[cfg(loom)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TestReplyLine(ReplyTicket);

#[cfg(loom)]
impl TestReplyLines {
    /// EncodedCommand of a rank, as if they were there.
    pub fn new(at: GlobalAddress) -> TestReplyLines {
        let lines: Vec<RingLine> = (0..ANSWERS).map(|_| RingLine::default()).collect();
        let place = NonNull::from(&lines[0]).cast();
        // SAFETY: the lines are kept beside, and do not move with the list.
        TestReplyLines { answers: unsafe { ReplyLines::new(at, place) }, _lines: lines }
    }

    /// A line; `None` if all are taken.
    pub fn take(&self) -> Option<TestReplyLine> {
        self.answers.take().map(TestReplyLine)
    }

    /// The call has been posted.
    pub fn expect(&self, line: TestReplyLine) {
        self.answers.expect(line.0);
    }

    /// Writes an answer, as the rank that was asked does.
    pub fn answer(&self, line: TestReplyLine, answer: &Reply) {
        self.answers.line(line.0).write(u64::from(line.0.turn), &answer.words());
    }

    /// Whether the answer has come.
    pub fn has_come(&self, line: TestReplyLine) -> bool {
        self.answers.has_come(line.0)
    }

    /// The answer, which has come.
    pub fn read(&self, line: TestReplyLine) -> Option<Reply> {
        self.answers.read(line.0)
    }

    /// The line may be used again.
    pub fn give_back(&self, line: TestReplyLine) {
        self.answers.give_back(line.0);
    }

    /// Nobody waits for the answer any more.
    pub fn abandon(&self, line: TestReplyLine) {
        self.answers.abandon(line.0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::Rank;
    use crate::queue::inline_data::Inline;

    fn answers() -> (Vec<RingLine>, ReplyLines) {
        let lines: Vec<RingLine> = (0..ANSWERS).map(|_| RingLine::default()).collect();
        let place = NonNull::from(&lines[0]).cast();
        // SAFETY: the lines are kept beside.
        let answers = unsafe { ReplyLines::new(GlobalAddress::new(Rank(0), 1 << 30), place) };
        (lines, answers)
    }

    fn tell(answers: &ReplyLines, ticket: ReplyTicket) {
        let answer = Reply::Value(Inline::from_words(&[1], 1));
        answers.line(ticket).write(u64::from(ticket.turn), &answer.words());
    }

    #[test]
    fn no_turn_is_taken_for_another() {
        let (_lines, answers) = answers();
        for round in 0..200 {
            let ticket = answers.take().unwrap();
            assert!(!answers.has_come(ticket), "round {round}");
            if round % 3 == 0 {
                answers.give_back(ticket); // it could not be posted
                continue;
            }
            answers.expect(ticket);
            tell(&answers, ticket);
            assert!(answers.has_come(ticket) && answers.read(ticket).is_some());
            answers.give_back(ticket);
        }
    }

    #[test]
    fn abandoned_lines_come_back_when_their_answers_have_come() {
        let (_lines, answers) = answers();
        let tickets: Vec<ReplyTicket> = std::iter::from_fn(|| answers.take()).collect();
        assert_eq!(tickets.len(), ANSWERS);
        tickets.iter().for_each(|&ticket| answers.expect(ticket));
        tickets[..2].iter().for_each(|&ticket| answers.abandon(ticket));
        assert_eq!(answers.take(), None);
        tell(&answers, tickets[1]);
        let again = answers.take().unwrap();
        assert_eq!((again.line, again.turn), (tickets[1].line, tickets[1].turn + 1));
        assert_eq!(answers.take(), None);
    }
}
