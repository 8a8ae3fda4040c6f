//! What other ranks must know of a rank to find its queues and to decide who runs them.
//!
//! The queues of a rank are *polled* while a thread of the rank waits or a helper of the node is awake. A rank that
//! posts a command or raises a signal then leaves the work to the poller. Before a poller computes or sleeps, it leaves
//! the poll state, executes a fence, and polls the queues once more. A rank that posts or raises executes a fence after
//! that and then reads the poll state. So at least one of the two sees what the other did (`SYNC serving`).
//!
//! A post needs no fence of its own, because it reserves its positions by a read-modify-write before it writes them. If
//! a poller that leaves finds positions that are reserved and not yet written, it executes a barrier on all processors
//! and polls once more.

#[cfg(any(not(target_arch = "x86_64"), loom))]
use crate::base::planted;
#[cfg(all(target_arch = "x86_64", not(loom)))]
use crate::base::sync::compiler_fence;
#[cfg(any(not(target_arch = "x86_64"), loom))]
use crate::base::sync::fence;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::segment::layout::QUEUES_MAX;

/// How many threads poll the queues of a rank.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct PollState {
    /// Bits 0-15: number of pollers, which are waiting threads of the rank, its helper, and a helper of the node. Bits
    /// 16-31: number of pollers that belong to the rank itself ([`OWN_RANK`]). Each poller writes this word when it
    /// begins and ends.
    word: AtomicU32,
}

const OWN_RANK: u32 = 1 << 16;

/// The rank to which a poller of a rank's queues belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PollerKind {
    /// The rank itself. Such a thread also runs handlers.
    OwnRank,
    /// Another rank of the node.
    OtherRank,
}

impl PollerKind {
    fn weight(self) -> u32 {
        match self {
            PollerKind::OwnRank => OWN_RANK + 1,
            PollerKind::OtherRank => 1,
        }
    }
}

impl Default for PollState {
    fn default() -> PollState {
        PollState { word: AtomicU32::new(0) }
    }
}

impl PollState {
    /// Registers a poller of the rank's queues.
    pub fn begin(&self, poller: PollerKind) {
        self.word.fetch_add(poller.weight(), Ordering::Relaxed);
    }

    /// Removes a poller, which must poll once more after this call. Returns true if the poller was the last thread of
    /// the rank itself.
    pub fn end(&self, poller: PollerKind) -> bool {
        let before = self.word.fetch_sub(poller.weight(), Ordering::Relaxed);
        // On x86_64 the subtraction was a full fence.
        #[cfg(any(not(target_arch = "x86_64"), loom))]
        if !planted("queue_poll_end_fence") {
            fence(Ordering::SeqCst); // SYNC serving
        }
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        compiler_fence(Ordering::SeqCst); // SYNC serving
        before / OWN_RANK == 1
    }

    /// Returns true if the queues are polled. The caller has posted or raised, and executed a full fence after that.
    #[inline(always)]
    pub fn is_polled(&self) -> bool {
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Returns true if a thread of the rank itself polls. The caller has posted or raised, and
    /// executed a full fence after that.
    #[inline(always)]
    pub fn has_own_thread(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= OWN_RANK
    }
}

/// A note that a queue of another rank has a command which only this rank may run.
///
/// It has room for one queue. If several queues leave notes, it only records that there are several. A rank leaves a
/// note by a compare-and-swap, which is a full fence, and then reads the poll state of this rank, as a poster does.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RemoteNotes {
    /// 0: no note. Else bits 32-63 hold the owner and bits 0-31 one more than the number of its queue. Written by all
    /// ranks of the node.
    word: AtomicU64,
}

const ANY_QUEUE: u64 = u64::MAX;

/// The contents of a note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// One queue: its owner and its number.
    Queue(u32, u32),
    /// More than one queue.
    Several,
}

impl RemoteNotes {
    /// Leaves a note about queue number `queue` of rank `owner`.
    pub fn leave(&self, owner: u32, queue: u32) {
        let ours = u64::from(owner) << 32 | u64::from(queue + 1);
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let next = if now == 0 || now == ours { ours } else { ANY_QUEUE };
            match self.word.compare_exchange_weak(now, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return, // SYNC remote-note
                Err(other) => now = other,
            }
        }
    }

    /// Returns true if there is a note.
    #[inline(always)]
    pub fn is_set(&self) -> bool {
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Takes the note.
    pub fn take(&self) -> Option<Note> {
        match self.word.swap(0, Ordering::Acquire) {
            0 => None, // SYNC remote-note
            ANY_QUEUE => Some(Note::Several),
            one => Some(Note::Queue((one >> 32) as u32, one as u32 - 1)),
        }
    }
}

/// The queue directory of a rank, in the system piece of its memory.
#[repr(C)]
#[derive(Debug)]
pub struct QueueDirectory {
    /// Counts the threads that poll the queues of the rank.
    pub poll_state: PollState,
    /// The note about queues of other ranks that have commands for this rank.
    pub notes: RemoteNotes,
    /// Queue numbers from this one on were never used. Written by the rank.
    end: AtomicU32,
    /// Where each queue begins, as an offset in the rank's range; 0: no queue. Written by the rank.
    queues: [AtomicU64; QUEUES_MAX as usize],
    /// Where the call queue of each level begins. Only inspection reads it: peers know the offsets. Written by the
    /// rank.
    calls: [AtomicU64; LEVELS_MAX],
}

/// Most levels of calls of a rank, which is also the most call queues of a rank.
pub const LEVELS_MAX: usize = 17;

#[cfg(not(loom))]
const _: () = assert!(size_of::<QueueDirectory>() as u64 <= crate::segment::layout::QUEUE_DIRECTORY_BYTES);

impl QueueDirectory {
    /// The offset at which the queue of that number begins; `None` if there is none.
    #[inline]
    pub fn queue(&self, number: u32) -> Option<u64> {
        let offset = self.queues.get(number as usize)?.load(Ordering::Acquire); // SYNC queue-there
        (offset != 0).then_some(offset)
    }

    /// The numbers of all queues.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.end.load(Ordering::Acquire)).filter(|&number| self.queue(number).is_some()) // SYNC queue-there
    }

    /// The offset at which the call queue of that level begins; `None` if there is none.
    pub fn calls(&self, level: u32) -> Option<u64> {
        let offset = self.calls.get(level as usize)?.load(Ordering::Acquire); // SYNC queue-there
        (offset != 0).then_some(offset)
    }

    /// Publishes the call queue of a level. Only the rank of the directory may call it.
    pub fn set_calls(&self, level: u32, offset: u64) {
        self.calls[level as usize].store(offset, Ordering::Release); // SYNC queue-there
    }

    /// Publishes a queue, or removes it if `offset` is 0. Only the rank of the directory may call it.
    pub fn set_queue(&self, number: u32, offset: u64) {
        self.queues[number as usize].store(offset, Ordering::Release); // SYNC queue-there
        self.end.fetch_max(number + 1, Ordering::Release); // SYNC queue-there
    }
}
