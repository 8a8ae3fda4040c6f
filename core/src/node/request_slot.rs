//! Slots for requests to the owner of some memory. One requester at a time uses a slot; the owner replies in it.
//!
//! ```text
//! FREE --claim (requester, CAS)--> CLAIMED --post (requester)--> POSTED --complete (owner)--> DONE
//!   ^                                 ^                                                         |
//!   +---------- release (requester) --|---------------------- reuse (requester) ----------------+
//! ```
//!
//! Fields and buffer belong to the requester while CLAIMED and DONE, and to the owner while POSTED.
//! A requester posts the slot before it increments the owner's count of requests. So an owner that
//! has seen the count finds the slot. The requester then wakes the owner as if it had raised a
//! signal.

use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const POSTED: u32 = 2;
const DONE: u32 = 3;

/// A request to the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnerRequest {
    /// The rank that makes the request; the owner wakes it after the reply.
    pub requester: u32,
    /// The operation, by a number that the fabric defines.
    pub kind: u32,
    /// Bytes of the word of an atomic operation.
    pub width: u32,
    /// Offset of the first byte in the owner's range.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
    /// The operand of an atomic operation.
    pub operand: u64,
    /// The value that a compare-and-swap expects.
    pub expected: u64,
}

/// The owner's reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnerReply {
    /// The outcome, by a number that the fabric defines.
    pub status: u32,
    /// The word before an atomic operation.
    pub value: u64,
}

/// One slot in the owner's memory. It has two cache lines of its own.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RequestSlot {
    state: AtomicU32,
    requester: AtomicU32,
    kind: AtomicU32,
    width: AtomicU32,
    offset: AtomicU64,
    len: AtomicU64,
    operand: AtomicU64,
    expected: AtomicU64,
    value: AtomicU64,
    status: AtomicU32,
}

/// The number of requests that were ever posted to a rank.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct PostedCount(AtomicU64);

impl Default for PostedCount {
    fn default() -> PostedCount {
        PostedCount(AtomicU64::new(0))
    }
}

impl PostedCount {
    /// Returns the number. A thread that sees it also sees the slots that it counts as POSTED.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire) // SYNC slot-count
    }
}

impl Default for RequestSlot {
    fn default() -> RequestSlot {
        let (word, long) = (|| AtomicU32::new(0), || AtomicU64::new(0));
        RequestSlot {
            state: AtomicU32::new(FREE),
            requester: word(),
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
    /// Claims the slot if it is free. Returns true for the one requester that gets it.
    pub fn claim(&self) -> bool {
        if planted("request_claim_by_store") {
            let is_free = self.state.load(Ordering::Acquire) == FREE;
            self.state.store(CLAIMED, Ordering::Relaxed);
            return is_free;
        }
        self.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Posts a claimed slot to the owner. The requester must then wake the owner.
    pub fn post(&self, request: OwnerRequest, posted: &PostedCount) {
        self.requester.store(request.requester, Ordering::Relaxed);
        self.kind.store(request.kind, Ordering::Relaxed);
        self.width.store(request.width, Ordering::Relaxed);
        self.offset.store(request.offset, Ordering::Relaxed);
        self.len.store(request.len, Ordering::Relaxed);
        self.operand.store(request.operand, Ordering::Relaxed);
        self.expected.store(request.expected, Ordering::Relaxed);
        if planted("request_count_first") {
            posted.0.fetch_add(1, Ordering::SeqCst);
            return self.state.store(POSTED, Ordering::Release);
        }
        self.state.store(POSTED, Ordering::Release); // SYNC slot-posted
        posted.0.fetch_add(1, Ordering::SeqCst); // SYNC slot-count
    }

    /// Returns the request, if one is posted. For the owner.
    pub fn request(&self) -> Option<OwnerRequest> {
        let order = relaxed_if_planted("request_question_relaxed", Ordering::Acquire); // SYNC slot-posted
        (self.state.load(order) == POSTED).then(|| OwnerRequest {
            requester: self.requester.load(Ordering::Relaxed),
            kind: self.kind.load(Ordering::Relaxed),
            width: self.width.load(Ordering::Relaxed),
            offset: self.offset.load(Ordering::Relaxed),
            len: self.len.load(Ordering::Relaxed),
            operand: self.operand.load(Ordering::Relaxed),
            expected: self.expected.load(Ordering::Relaxed),
        })
    }

    /// Stores the owner's reply. The owner must then wake the requester.
    pub fn complete(&self, reply: OwnerReply) {
        self.status.store(reply.status, Ordering::Relaxed);
        self.value.store(reply.value, Ordering::Relaxed);
        let order = relaxed_if_planted("request_answer_relaxed", Ordering::Release); // SYNC slot-done
        self.state.store(DONE, order);
    }

    /// Returns the owner's reply, if it has come. For the requester.
    pub fn reply(&self) -> Option<OwnerReply> {
        let done = self.state.load(Ordering::Acquire) == DONE; // SYNC slot-done
        done.then(|| OwnerReply {
            status: self.status.load(Ordering::Relaxed),
            value: self.value.load(Ordering::Relaxed),
        })
    }

    /// Keeps a slot whose reply has come for the requester's next request.
    pub fn reuse(&self) {
        self.state.store(CLAIMED, Ordering::Relaxed);
    }

    /// Frees a slot whose reply has come. For the requester.
    pub fn release(&self) {
        self.state.store(FREE, Ordering::Release);
    }
}
