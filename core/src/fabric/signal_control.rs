//! The second line of a signal: who waits for it besides threads, and whether it is poisoned.
//!
//! A signal that commands wait for is *armed*. Whoever raises it looks at that after the raise; whoever arms it looks
//! at the counter after arming. Both have a full fence in between, so one of the two sees the other (`SYNC armed`).
//!
//! Poison is written once: the first failure counts (`SYNC poison`). It happens at a point among the raises, as an
//! effect does: the counter *falls* by so much that no threshold above what it had reached can be met any more, however
//! often the signal is raised after that. So whoever finds a threshold met by a counter that is not negative need not
//! ask whether the signal is sound ([`plainly_reached`]); whoever does not looks here, where it says how far the signal
//! had come. Of a signal that had been raised 2^62 times that holds for thresholds less than 2^61 away.

use super::Poison;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::{planted, relaxed_if_planted};

/// No command waits.
pub const NOBODY: u32 = 0;
/// Commands of several queues wait.
pub const SEVERAL: u32 = u32::MAX;
/// Set in the mark of one queue, of whose commands some must be run by a certain rank.
pub const BOUND: u32 = 1 << 31;

/// By how much the counter of a signal falls when it is poisoned: thresholds are compared across half the numbers.
const FALL: u64 = 1 << 62;

/// A signal's state: sound; somebody is about to poison it; its counter may have fallen; poisoned.
const SOUND: u32 = 0;
const CLAIMED: u32 = 1;
const FALLING: u32 = 2;
const POISONED: u32 = 3;

/// Whether a counter has reached a threshold, also across its wrap.
#[inline(always)]
pub fn reached(value: u64, threshold: u64) -> bool {
    value.wrapping_sub(threshold) as i64 >= 0
}

/// Whether a counter that cannot have fallen has reached a threshold. False says nothing: see [`SignalControl::verdict`].
#[inline(always)]
pub fn plainly_reached(value: u64, threshold: u64) -> bool {
    (value as i64 >= 0) & reached(value, threshold)
}

/// The words. On a line of their own: the counter's line moves with each raise, this one hardly ever.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct SignalControl {
    /// [`NOBODY`], one more than the number of the one queue of the signal's rank whose commands wait, perhaps with
    /// [`BOUND`], or [`SEVERAL`]. Written by whoever holds the lease of such a queue.
    armed: AtomicU32,
    /// One of those four, each after the one before.
    state: AtomicU32,
    /// The poison, written by whoever claimed it.
    poison: [AtomicU64; 3],
    /// How far the signal had come when its counter fell; until it is poisoned, about that.
    stood: AtomicU64,
}

impl Default for SignalControl {
    fn default() -> SignalControl {
        let word = || AtomicU64::new(0);
        SignalControl {
            armed: AtomicU32::new(NOBODY),
            state: AtomicU32::new(SOUND),
            poison: [word(), word(), word()],
            stood: word(),
        }
    }
}

impl SignalControl {
    /// The raiser's look, after the raise. Which queue's commands wait.
    #[inline(always)]
    pub fn look_after_add(&self) -> u32 {
        // On x86_64 the addition was a full fence.
        #[cfg(any(not(target_arch = "x86_64"), loom))]
        if !planted("queue_raiser_fence") {
            fence(Ordering::SeqCst); // SYNC armed
        }
        self.armed.load(Ordering::Relaxed)
    }

    /// Who waits, for a raise that has not happened: a guess.
    #[inline(always)]
    pub fn glance(&self) -> u32 {
        self.armed.load(Ordering::Relaxed)
    }

    /// Commands of that queue wait from now on. Whoever calls it must look at the counter again after it.
    pub fn arm(&self, queue: u32, bound: bool) {
        let mark = (queue + 1) | if bound { BOUND } else { 0 };
        let mut now = self.armed.load(Ordering::Relaxed);
        loop {
            let new = match now {
                NOBODY => mark,
                SEVERAL => break,
                _ if now & !BOUND == queue + 1 => now | mark,
                _ => SEVERAL,
            };
            match self.armed.compare_exchange(now, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => now = other,
            }
        }
        if !planted("queue_number_fence") {
            fence(Ordering::SeqCst); // SYNC armed
        }
    }

    /// The same, where they may have waited before, for a queue that was just let go on: whoever raised the counter and
    /// did not see that is seen to have raised it by who looks at the counter after this.
    pub fn keep_armed(&self, queue: u32) {
        let mark = self.glance();
        if mark != queue + 1 && mark != SEVERAL {
            self.arm(queue, false);
        } else if !planted("queue_start_fence") {
            fence(Ordering::SeqCst); // SYNC armed
        }
    }

    /// No command of that queue waits any more. That several queues had some is not forgotten.
    pub fn disarm(&self, queue: u32) {
        for mark in [queue + 1, (queue + 1) | BOUND] {
            let _ = self.armed.compare_exchange(mark, NOBODY, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Poisons the signal of that counter; false if it was poisoned before. Whoever does it must look who waits after
    /// that, as after a raise.
    pub fn poison(&self, counter: &AtomicU64, poison: Poison) -> bool {
        if self.state.compare_exchange(SOUND, CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        for (word, value) in self.poison.iter().zip(poison.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.stood.store(counter.load(Ordering::Relaxed), Ordering::Relaxed);
        self.state.store(FALLING, Ordering::Release); // SYNC fall
        if !planted("queue_poison_counts_on") {
            let stood = counter.fetch_sub(FALL, Ordering::AcqRel); // SYNC fall
            self.stood.store(stood, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("queue_poison_relaxed", Ordering::Release); // SYNC poison
        self.state.store(POISONED, order);
        fence(Ordering::SeqCst); // SYNC armed
        true
    }

    /// The poison, if there is any.
    #[inline]
    pub fn poisoned(&self) -> Option<Poison> {
        self.fell().map(|(poison, _)| poison)
    }

    /// The poison, if there is any, and how far the signal had come before it.
    #[inline]
    pub fn fell(&self) -> Option<(Poison, u64)> {
        if self.state.load(Ordering::Acquire) != POISONED {
            return None; // SYNC poison
        }
        let word = |at: usize| self.poison[at].load(Ordering::Relaxed);
        let poison = Poison::from_words([word(0), word(1), word(2)])?;
        Some((poison, self.stood.load(Ordering::Relaxed)))
    }

    /// What a counter, seen (acquire) at that value, says of a threshold: it was reached, it never will be, or not yet.
    pub fn verdict(&self, counter: u64, threshold: u64) -> Option<Result<(), Poison>> {
        match self.fell() {
            Some((_, stood)) if reached(stood, threshold) => Some(Ok(())),
            Some((poison, _)) => Some(Err(poison)),
            // Who is about to poison it has not said yet how far it had come.
            None => (self.height(counter) == counter && reached(counter, threshold)).then_some(Ok(())),
        }
    }

    /// How often the signal was raised, when its counter was seen (acquire) at that value.
    pub fn height(&self, counter: u64) -> u64 {
        if self.state.load(Ordering::Acquire) < FALLING {
            return counter; // SYNC fall
        }
        let fell = (counter.wrapping_sub(self.stood.load(Ordering::Relaxed)) as i64) < -((FALL / 2) as i64);
        if fell { counter.wrapping_add(FALL) } else { counter }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::{Cause, Rank};

    #[test]
    fn counters_are_compared_across_their_wrap() {
        assert!(reached(5, 5) && reached(6, 5) && !reached(4, 5));
        assert!(reached(2, u64::MAX - 2) && !reached(u64::MAX - 2, 2));
    }

    /// However far away a threshold is of a signal that was not raised 2^62 times, and however often it is raised.
    #[test]
    fn poison_keeps_what_was_reached_and_nothing_else() {
        const FAR: [u64; 5] = [0, 1, 1 << 40, 1 << 62, u64::MAX / 2 - 200];
        for begin in [0, 3, 1 << 61, 1 << 62, (1 << 63) + 5, u64::MAX - 1] {
            let (counter, arming) = (AtomicU64::new(begin), SignalControl::default());
            let poison = Poison::of(&Cause::NullAddress, Rank(1));
            let says = |threshold: u64| {
                let now = counter.load(Ordering::Acquire);
                if plainly_reached(now, threshold) { Some(Ok(())) } else { arming.verdict(now, threshold) }
            };
            for far in FAR {
                assert_eq!(says(begin.wrapping_sub(far)), Some(Ok(())), "sound, {far} below {begin}");
                assert_eq!(says(begin.wrapping_add(far + 1)), None, "sound, {far} above {begin}");
            }
            assert!(arming.poison(&counter, poison) && !arming.poison(&counter, poison));
            let far = if (1 << 62..u64::MAX / 2 + 100).contains(&begin) { &FAR[..3] } else { &FAR[..] };
            for raised in [0, 100] {
                counter.fetch_add(raised, Ordering::Relaxed);
                for &far in far {
                    assert_eq!(says(begin.wrapping_sub(far)), Some(Ok(())), "{far} below {begin}");
                    assert_eq!(says(begin.wrapping_add(far + 1)), Some(Err(poison)), "{far} above {begin}");
                }
                assert_eq!(arming.height(counter.load(Ordering::Relaxed)), begin.wrapping_add(raised));
            }
        }
    }
}
