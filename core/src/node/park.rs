//! The protocol by which a waiting rank goes to sleep and a rank that raises its signal wakes it.
//!
//! Each rank has one park line `{state, futex, processor}` in shared memory. The *writer* stores the signal
//! and then loads the state. The *sleeper* stores the state and then checks its signals again. At
//! least one of the two must see the other's store. This needs a full fence on each side. Where
//! each rank has its own processor, the writer can do without: then the sleeper executes a fence on
//! all processors (membarrier), which is rare:
//!
//! | mode | writer | sleeper, dozing (at most 100 us) | sleeper, asleep (until woken) |
//! |---|---|---|---|
//! | FENCE | fence, load | fence, check | fence, check |
//! | MEMBARRIER | load | fence, check: a wake-up lost here costs at most the 100 us | membarrier, check |
//!
//! A sleeper that nobody wakes reads its conditions again every 500 ms, to look for what no writer reports.
//!
//! In MEMBARRIER mode no wake-up of an ASLEEP rank is lost. If the writer's load comes before the membarrier on its
//! processor, so does its store, and the sleeper's second check sees it. If the load comes after, it sees ASLEEP.

use crate::base::planted;
use crate::base::sync::{AtomicU32, Ordering, compiler_fence, fence};

/// State of a park line: no thread sleeps, so the writer need not wake any.
pub const AWAKE: u32 = 0;
/// State of a park line: a thread sleeps for a short, limited time, after a fence on its own processor only.
pub const DOZING: u32 = 1;
/// State of a park line: a thread sleeps until it is woken, after a fence on all processors.
pub const ASLEEP: u32 = 2;

/// How writers detect sleepers. Chosen when the job starts, for all ranks of the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeMode {
    /// Each writer executes a full fence between its store and its load. Correct everywhere; chosen if there are more
    /// ranks than processors, or if a rank may not use membarrier.
    Fence,
    /// Writers only store and load; the sleeper executes a membarrier.
    Membarrier,
}

/// The words that writers use to detect and wake a sleeping rank. They have a cache line of their own, because writers
/// load it with each signal that they raise, and it changes only when a thread sleeps.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ParkLine {
    /// AWAKE, DOZING or ASLEEP. Written by the rank's parker; set back to AWAKE by the thread that wakes it.
    state: AtomicU32,
    /// The word that the parker sleeps on. It grows by one with each wake-up.
    futex: AtomicU32,
    /// 1 + the processor on which the rank last waited; 0 if not known. Only a hint: it decides how
    /// long other ranks spin before they yield their own processor.
    processor: AtomicU32,
}

/// The value of the futex word before a sleep. The sleep ends when a thread wakes the rank after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch(pub u32);

impl Default for ParkLine {
    fn default() -> ParkLine {
        ParkLine { state: AtomicU32::new(AWAKE), futex: AtomicU32::new(0), processor: AtomicU32::new(0) }
    }
}

impl ParkLine {
    /// Checks for a sleeper after a writer has stored a signal of this rank. Returns true if the writer must wake the
    /// futex.
    #[inline]
    pub fn needs_wake(&self, mode: WakeMode) -> bool {
        match mode {
            // SYNC park-look: pairs with the sleeper's fence in `begin_sleep`.
            WakeMode::Fence if planted("park_writer_fence") => {}
            WakeMode::Fence => fence(Ordering::SeqCst),
            WakeMode::Membarrier => compiler_fence(Ordering::SeqCst),
        }
        self.state.load(Ordering::Relaxed) != AWAKE && self.mark_awake()
    }

    /// Like [`ParkLine::needs_wake`], after a read-modify-write raised the signal: on x86_64 that
    /// is a full fence itself.
    #[inline]
    pub fn needs_wake_after_add(&self, mode: WakeMode) -> bool {
        let fenced = cfg!(all(target_arch = "x86_64", not(loom)));
        self.needs_wake(if fenced { WakeMode::Membarrier } else { mode })
    }

    /// Marks the rank awake and increments its futex. If several threads call this at once, it returns true in one of
    /// them, which must wake the sleeper.
    #[cold]
    pub fn mark_awake(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state != AWAKE {
            match self.state.compare_exchange_weak(state, AWAKE, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.futex.fetch_add(1, Ordering::Release);
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    /// Announces to writers that the caller is going to sleep, by the state `state` (DOZING or ASLEEP). Then calls
    /// `barrier`. After that, the caller must check all its conditions again before it sleeps on the returned epoch.
    pub fn begin_sleep(&self, state: u32, barrier: impl FnOnce()) -> Epoch {
        let epoch = Epoch(self.futex.load(Ordering::Acquire));
        self.state.store(state, Ordering::Relaxed);
        // SYNC park-look: pairs with the writer's fence in `needs_wake`, or is executed on its processor for it.
        if !planted("park_sleeper_fence") {
            fence(Ordering::SeqCst);
        }
        barrier();
        epoch
    }

    /// Lets a helper begin to sleep. Calls `suspend`, which ends the helper's polling. Then begins the sleep, and
    /// checks once more for `work`. Returns the epoch on which the helper must sleep; `None` if there is work, and then
    /// the sleep has ended.
    pub fn sleep_unless<S>(
        &self,
        suspend: impl FnOnce(),
        begin_sleep: impl FnOnce(&ParkLine) -> S,
        work: impl FnOnce() -> bool,
    ) -> Option<S> {
        let (found, sleep);
        if planted("helper_looks_first") {
            found = work();
            suspend();
            sleep = begin_sleep(self);
        } else {
            suspend();
            sleep = begin_sleep(self);
            found = work(); // SYNC park-look, SYNC serving
        }
        if found {
            self.end_sleep();
        }
        (!found).then_some(sleep)
    }

    /// Ends the sleep, whatever ended it.
    pub fn end_sleep(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Records the processor on which the rank waits. Stores only changes, because other ranks have the line in their
    /// caches.
    pub fn set_processor(&self, processor: Option<u32>) {
        let number = processor.map_or(0, |processor| processor + 1);
        if self.processor.load(Ordering::Relaxed) != number {
            self.processor.store(number, Ordering::Relaxed);
        }
    }

    /// Returns true if this rank and the other rank last waited on one processor; `None` if that is not known.
    pub fn shares_processor_with(&self, other: &ParkLine) -> Option<bool> {
        let processors = [self, other].map(|line| line.processor.load(Ordering::Relaxed));
        (!processors.contains(&0)).then(|| processors[0] == processors[1])
    }

    /// Returns true if the rank sleeps.
    pub fn is_asleep(&self) -> bool {
        self.state.load(Ordering::Relaxed) != AWAKE
    }

    /// Returns the word to sleep on.
    #[cfg(not(loom))]
    pub fn futex(&self) -> &AtomicU32 {
        &self.futex
    }

    /// Returns true if a sleeper on `epoch` would sleep on. Replaces the futex in models.
    #[cfg(loom)]
    pub fn keeps_asleep(&self, epoch: Epoch) -> bool {
        self.futex.load(Ordering::Acquire) == epoch.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn shares_processor_is_known_if_both_processors_are() {
        let (one, other) = (ParkLine::default(), ParkLine::default());
        assert_eq!(one.shares_processor_with(&other), None);
        one.set_processor(Some(0));
        assert_eq!((one.shares_processor_with(&other), other.shares_processor_with(&one)), (None, None));
        other.set_processor(Some(0));
        assert_eq!(one.shares_processor_with(&other), Some(true));
        other.set_processor(Some(1));
        assert_eq!(one.shares_processor_with(&other), Some(false));
        other.set_processor(None);
        assert_eq!(one.shares_processor_with(&other), None);
    }
}
