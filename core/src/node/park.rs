//! How a rank that waits goes to sleep, and how whoever raises its signal finds that out.
//!
//! Each rank has one park line `{state, futex}` in memory of its node. The *writer* stores the signal and then looks
//! at the state; the *sleeper* writes the state and then looks at its signals again. One of the two must see the
//! other. That needs a full fence on each side, or, where processors are not shared, no fence at the writer and a
//! rare one that the sleeper executes on all processors (membarrier):
//!
//! | mode | writer | sleeper, dozing (bounded by 100 us) | sleeper, asleep (unbounded) |
//! |---|---|---|---|
//! | FENCE | fence, load | fence, look | fence, look |
//! | BARRIER | load | fence, look: a wake-up lost here costs the bound | membarrier, look |
//!
//! Why no wake-up of an ASLEEP rank is lost in BARRIER mode: a writer whose load came before the barrier on its
//! processor had stored before it too, so the second look sees the store; one whose load comes after sees ASLEEP.

use crate::base::planted;
use crate::base::sync::{AtomicU32, Ordering, compiler_fence, fence};

/// Nobody sleeps: the writer need not wake.
pub const AWAKE: u32 = 0;
/// Asleep for a moment, after a fence of its own only.
pub const DROWSY: u32 = 1;
/// Asleep until woken, after a fence on all processors.
pub const ASLEEP: u32 = 2;

/// How sleepers of a node are found. Fixed when the job starts, one for all ranks of the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeMode {
    /// Each writer executes a full fence between its store and its look. Right everywhere; the choice when there
    /// are more ranks than processors, or when a rank may not use membarrier.
    Fence,
    /// Writers only store and load; the sleeper pays with a membarrier.
    Barrier,
}

/// The words by which a rank of the node is found asleep and woken. On a line of its own: writers load it with each
/// signal they raise, and it changes only when somebody sleeps.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ParkLine {
    /// AWAKE, DROWSY or ASLEEP. Written by the rank's parker; set back to AWAKE by whoever wakes it.
    state: AtomicU32,
    /// What the sleeper sleeps on: grows by one with each wake-up.
    futex: AtomicU32,
    /// One more than the number of the processor on which the rank last waited; 0: not known. A hint: nothing hangs on
    /// it but how long others look before they offer their own processor.
    processor: AtomicU32,
}

/// What a sleeper found before it slept; sleeping on it ends when somebody wakes the rank after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch(pub u32);

impl Default for ParkLine {
    fn default() -> ParkLine {
        ParkLine { state: AtomicU32::new(AWAKE), futex: AtomicU32::new(0), processor: AtomicU32::new(0) }
    }
}

impl ParkLine {
    /// The writer's part, after it has stored a signal of this rank: true if it must wake the futex.
    #[inline]
    pub fn needs_wake(&self, mode: WakeMode) -> bool {
        match mode {
            // SYNC park-look: pairs with the sleeper's fence in `begin_sleep`.
            WakeMode::Fence if planted("park_writer_fence") => {}
            WakeMode::Fence => fence(Ordering::SeqCst),
            WakeMode::Barrier => compiler_fence(Ordering::SeqCst),
        }
        self.state.load(Ordering::Relaxed) != AWAKE && self.rouse()
    }

    /// The same after the signal was raised by a read-modify-write, which on x86_64 is a full fence itself.
    #[inline]
    pub fn needs_wake_after_add(&self, mode: WakeMode) -> bool {
        let fenced = cfg!(all(target_arch = "x86_64", not(loom)));
        self.needs_wake(if fenced { WakeMode::Barrier } else { mode })
    }

    /// Marks the rank awake and moves its futex on. True for the one caller that did it and must wake the sleeper.
    #[cold]
    pub fn rouse(&self) -> bool {
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

    /// The sleeper's part: says how it is going to sleep, so that writers see it. It must look at all its
    /// conditions again after `barrier` (which this calls) and before it sleeps on the epoch.
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

    /// A helper's part in one: nobody counts on it any more, it lies down, and looks once more whether there is `work`;
    /// what it is to sleep on. `None`: there is, and it is up again.
    pub fn settle<S>(
        &self,
        rest: impl FnOnce(),
        begin_sleep: impl FnOnce(&ParkLine) -> S,
        work: impl FnOnce() -> bool,
    ) -> Option<S> {
        let (found, sleep);
        if planted("helper_looks_first") {
            found = work();
            rest();
            sleep = begin_sleep(self);
        } else {
            rest();
            sleep = begin_sleep(self);
            found = work(); // SYNC park-look, and serving
        }
        if found {
            self.end_sleep();
        }
        (!found).then_some(sleep)
    }

    /// The sleeper is up again, for whatever reason.
    pub fn end_sleep(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// The rank waits on that processor. Stores only what is new: others have the line at hand.
    pub fn note_processor(&self, processor: Option<u32>) {
        let number = processor.map_or(0, |processor| processor + 1);
        if self.processor.load(Ordering::Relaxed) != number {
            self.processor.store(number, Ordering::Relaxed);
        }
    }

    /// Whether it waited last on the processor on which the other did; `None` where that is not known.
    pub fn is_beside(&self, other: &ParkLine) -> Option<bool> {
        let processors = [self, other].map(|line| line.processor.load(Ordering::Relaxed));
        (!processors.contains(&0)).then(|| processors[0] == processors[1])
    }

    /// Whether the rank sleeps, for `tasuki ps`.
    pub fn is_down(&self) -> bool {
        self.state.load(Ordering::Relaxed) != AWAKE
    }

    /// The word to sleep on.
    #[cfg(not(loom))]
    pub fn futex(&self) -> &AtomicU32 {
        &self.futex
    }

    /// Whether a sleeper on `epoch` would be kept asleep. Models the futex where there is none.
    #[cfg(loom)]
    pub fn keeps_asleep(&self, epoch: Epoch) -> bool {
        self.futex.load(Ordering::Acquire) == epoch.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_shares_a_processor_is_known_when_both_said_so() {
        let (one, other) = (ParkLine::default(), ParkLine::default());
        assert_eq!(one.is_beside(&other), None);
        one.note_processor(Some(0));
        assert_eq!((one.is_beside(&other), other.is_beside(&one)), (None, None));
        other.note_processor(Some(0));
        assert_eq!(one.is_beside(&other), Some(true));
        other.note_processor(Some(1));
        assert_eq!(one.is_beside(&other), Some(false));
        other.note_processor(None);
        assert_eq!(one.is_beside(&other), None);
    }
}
