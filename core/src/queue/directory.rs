//! What others must know of a rank to run its queues, or to leave that to it.
//!
//! A rank *is served* while a thread of it waits, or a helper of the node is awake, and looks at its queues all the
//! time: whoever posts or raises then leaves the rest to that. When a rank goes *away*, to compute or to sleep, it says
//! so, executes a fence, and looks at its queues once more. Whoever posts or raises does that, executes a fence, and
//! looks whether the rank is served. One of the two sees the other (`SYNC serving`).
//!
//! A post is spared its fence: it has reserved its places by a read-modify-write before it wrote them. A rank that goes
//! away and finds places reserved and not yet written asks for a barrier on all processors, and looks once more.

#[cfg(any(not(target_arch = "x86_64"), loom))]
use crate::base::planted;
#[cfg(all(target_arch = "x86_64", not(loom)))]
use crate::base::sync::compiler_fence;
#[cfg(any(not(target_arch = "x86_64"), loom))]
use crate::base::sync::fence;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::segment::layout::QUEUES_MAX;

/// Whether a rank looks at its queues.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct PollState {
    /// How many look: threads of the rank that wait, its helper, and a helper of the node. Each adds and takes away
    /// one, those of the rank itself also [`ITSELF`].
    word: AtomicU32,
}

const ITSELF: u32 = 1 << 16;

/// Who looks at a rank's queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PollerKind {
    /// A thread of the rank, which runs its handlers, too.
    Itself,
    /// A thread of another rank of the node.
    Another,
}

impl PollerKind {
    fn weight(self) -> u32 {
        match self {
            PollerKind::Itself => ITSELF + 1,
            PollerKind::Another => 1,
        }
    }
}

impl Default for PollState {
    fn default() -> PollState {
        PollState { word: AtomicU32::new(0) }
    }
}

impl PollState {
    /// Somebody looks at the rank's queues from now on.
    pub fn begin(&self, server: PollerKind) {
        self.word.fetch_add(server.weight(), Ordering::Relaxed);
    }

    /// Who had begun looks once more after this, and then no longer. Whether no thread of the rank itself is left.
    pub fn end(&self, server: PollerKind) -> bool {
        let before = self.word.fetch_sub(server.weight(), Ordering::Relaxed);
        // On x86_64 the subtraction was a full fence.
        #[cfg(any(not(target_arch = "x86_64"), loom))]
        if !planted("queue_poll_end_fence") {
            fence(Ordering::SeqCst); // SYNC serving
        }
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        compiler_fence(Ordering::SeqCst); // SYNC serving
        before / ITSELF == 1
    }

    /// Whether somebody looks. Whoever asks has posted, or raised, and executed a full fence.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Whether the rank itself looks. Asked as [`PollState::is_on`] is.
    #[inline(always)]
    pub fn is_by_itself(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= ITSELF
    }
}

/// A note of a queue of another rank that has a command which only this rank may run.
///
/// There is room for one queue; of several it says no more than that there are some. Whoever leaves a note does so by a
/// compare-and-swap, a full fence, and then looks whether the rank is there to read it, as whoever posts does.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RemoteNotes {
    /// 0: none; else the owner and one more than the number of its queue.
    word: AtomicU64,
}

const ANY_QUEUE: u64 = u64::MAX;

/// What a note says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// That queue of that rank.
    Queue(u32, u32),
    /// More than one.
    Some,
}

impl RemoteNotes {
    /// Leaves a note of that queue.
    pub fn leave(&self, owner: u32, queue: u32) {
        let ours = u64::from(owner) << 32 | u64::from(queue + 1);
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let next = if now == 0 || now == ours { ours } else { ANY_QUEUE };
            match self.word.compare_exchange_weak(now, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return, // SYNC errand
                Err(other) => now = other,
            }
        }
    }

    /// Whether there is one.
    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Takes it.
    pub fn take(&self) -> Option<Note> {
        match self.word.swap(0, Ordering::Acquire) {
            0 => None, // SYNC errand
            ANY_QUEUE => Some(Note::Some),
            one => Some(Note::Queue((one >> 32) as u32, one as u32 - 1)),
        }
    }
}

/// The station of a rank, in its system piece.
#[repr(C)]
#[derive(Debug)]
pub struct QueueDirectory {
    /// Whether it looks at its queues.
    pub serving: PollState,
    /// What it is to do in queues of others.
    pub errand: RemoteNotes,
    /// Numbers from here on were never used. Written by the rank.
    end: AtomicU32,
    /// Where each queue begins, as an offset in the rank's range; 0: there is none. Written by the rank.
    queues: [AtomicU64; QUEUES_MAX as usize],
    /// The same of queues of calls, by level. Only for who looks on: peers know where they are.
    calls: [AtomicU64; LEVELS_MAX],
}

/// Levels of calls, and so queues of them, that a rank can have.
pub const LEVELS_MAX: usize = 17;

#[cfg(not(loom))]
const _: () = assert!(size_of::<QueueDirectory>() as u64 <= crate::segment::layout::STATION_BYTES);

impl QueueDirectory {
    /// Where the queue of that number begins; `None` where there is none.
    #[inline]
    pub fn queue(&self, number: u32) -> Option<u64> {
        let offset = self.queues.get(number as usize)?.load(Ordering::Acquire); // SYNC queue-there
        (offset != 0).then_some(offset)
    }

    /// The numbers of all queues that there are.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.end.load(Ordering::Acquire)).filter(|&number| self.queue(number).is_some()) // SYNC queue-there
    }

    /// Where the queue of calls of that level begins.
    pub fn calls(&self, level: u32) -> Option<u64> {
        let offset = self.calls.get(level as usize)?.load(Ordering::Acquire); // SYNC queue-there
        (offset != 0).then_some(offset)
    }

    /// A queue of calls lies there from now on. Only its rank.
    pub fn set_calls(&self, level: u32, offset: u64) {
        self.calls[level as usize].store(offset, Ordering::Release); // SYNC queue-there
    }

    /// A queue lies there from now on; 0: there is none any more. Only its rank.
    pub fn set_queue(&self, number: u32, offset: u64) {
        self.queues[number as usize].store(offset, Ordering::Release); // SYNC queue-there
        self.end.fetch_max(number + 1, Ordering::Release); // SYNC queue-there
    }
}
