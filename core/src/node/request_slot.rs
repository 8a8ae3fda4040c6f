//! A request to the owner of some memory: one slot, used by one asker after another, answered by the owner.
//!
//! ```text
//! FREE --claim (asker, CAS)--> CLAIMED --post (asker)--> POSTED --answer (owner)--> DONE
//!   ^                             ^                                                   |
//!   +---------- release (asker) --|-------------------- claim_again (asker) ----------+
//! ```
//!
//! Fields and buffer belong to the asker while CLAIMED and DONE, to the owner while POSTED. A slot is posted before
//! the owner's count of requests is raised, so an owner that has seen the count finds the slot; the asker then wakes
//! the owner as a raised signal would.

use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const POSTED: u32 = 2;
const DONE: u32 = 3;

/// What is asked, in words that both sides understand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnerRequest {
    /// Who asks, to be woken.
    pub asker: u32,
    /// What is to be done, by numbers of the fabric's.
    pub kind: u32,
    /// Width of a word that is to be changed.
    pub width: u32,
    /// Where, as an offset in the owner's range.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
    /// With which value.
    pub operand: u64,
    /// Compared with which value.
    pub expected: u64,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnerReply {
    /// How it ended, by numbers of the fabric's.
    pub status: u32,
    /// What the word was.
    pub value: u64,
}

/// One slot in the owner's memory. Two lines of its own.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RequestSlot {
    state: AtomicU32,
    asker: AtomicU32,
    kind: AtomicU32,
    width: AtomicU32,
    offset: AtomicU64,
    len: AtomicU64,
    operand: AtomicU64,
    expected: AtomicU64,
    value: AtomicU64,
    status: AtomicU32,
}

/// How many requests were ever posted to a rank.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct PostedCount(AtomicU64);

impl Default for PostedCount {
    fn default() -> PostedCount {
        PostedCount(AtomicU64::new(0))
    }
}

impl PostedCount {
    /// How many there were. Whoever sees the count sees the slots that it counts as POSTED.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire) // SYNC slot-count
    }
}

impl Default for RequestSlot {
    fn default() -> RequestSlot {
        let (word, long) = (|| AtomicU32::new(0), || AtomicU64::new(0));
        RequestSlot {
            state: AtomicU32::new(FREE),
            asker: word(),
            kind: word(),
            width: word(),
            offset: long(),
            len: long(),
            operand: long(),
            expected: long(),
            value: long(),
            status: word(),
        }
    }
}

impl RequestSlot {
    /// Takes the slot if it is free. One asker gets it.
    pub fn claim(&self) -> bool {
        if planted("request_claim_by_store") {
            let is_free = self.state.load(Ordering::Acquire) == FREE;
            self.state.store(CLAIMED, Ordering::Relaxed);
            return is_free;
        }
        self.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Hands a claimed slot to the owner. The asker must then wake the owner.
    pub fn post(&self, question: OwnerRequest, posted: &PostedCount) {
        self.asker.store(question.asker, Ordering::Relaxed);
        self.kind.store(question.kind, Ordering::Relaxed);
        self.width.store(question.width, Ordering::Relaxed);
        self.offset.store(question.offset, Ordering::Relaxed);
        self.len.store(question.len, Ordering::Relaxed);
        self.operand.store(question.operand, Ordering::Relaxed);
        self.expected.store(question.expected, Ordering::Relaxed);
        if planted("request_count_first") {
            posted.0.fetch_add(1, Ordering::SeqCst);
            return self.state.store(POSTED, Ordering::Release);
        }
        self.state.store(POSTED, Ordering::Release); // SYNC slot-posted
        posted.0.fetch_add(1, Ordering::SeqCst); // SYNC slot-count
    }

    /// The owner's look: what is asked, if something is.
    pub fn question(&self) -> Option<OwnerRequest> {
        let order = relaxed_if_planted("request_question_relaxed", Ordering::Acquire); // SYNC slot-posted
        (self.state.load(order) == POSTED).then(|| OwnerRequest {
            asker: self.asker.load(Ordering::Relaxed),
            kind: self.kind.load(Ordering::Relaxed),
            width: self.width.load(Ordering::Relaxed),
            offset: self.offset.load(Ordering::Relaxed),
            len: self.len.load(Ordering::Relaxed),
            operand: self.operand.load(Ordering::Relaxed),
            expected: self.expected.load(Ordering::Relaxed),
        })
    }

    /// The owner's answer. The owner must then wake the asker.
    pub fn answer(&self, reply: OwnerReply) {
        self.status.store(reply.status, Ordering::Relaxed);
        self.value.store(reply.value, Ordering::Relaxed);
        let order = relaxed_if_planted("request_answer_relaxed", Ordering::Release); // SYNC slot-done
        self.state.store(DONE, order);
    }

    /// The asker's look: the answer, if it is there.
    pub fn reply(&self) -> Option<OwnerReply> {
        let done = self.state.load(Ordering::Acquire) == DONE; // SYNC slot-done
        done.then(|| OwnerReply {
            status: self.status.load(Ordering::Relaxed),
            value: self.value.load(Ordering::Relaxed),
        })
    }

    /// The asker keeps an answered slot for its next question.
    pub fn claim_again(&self) {
        self.state.store(CLAIMED, Ordering::Relaxed);
    }

    /// The asker gives an answered slot back.
    pub fn release(&self) {
        self.state.store(FREE, Ordering::Release);
    }
}
