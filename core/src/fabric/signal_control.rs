//! The second line of a signal: which command queues wait for it, and whether it is poisoned.
//!
//! A signal is *armed* while commands wait for it. A rank that raises the signal checks afterwards whether it is
//! armed; a rank that arms it checks the counter afterwards. Both execute a full fence in between, so at least one of
//! the two sees the other (`SYNC armed`).
//!
//! A signal is poisoned at most once: the first failure counts (`SYNC poison`). Poisoning is ordered among the raises
//! like an effect. It subtracts so much from the counter that no threshold above the value reached so far can ever be
//! met, however often the signal is raised later. So a non-negative counter that meets a threshold proves that the
//! threshold was reached, and the reader need not check for poison ([`certainly_reached`]). In all other cases the
//! reader looks here, where the value at the time of poisoning is stored. For a signal that was raised 2^62 times
//! this holds for thresholds less than 2^61 away.

use super::Poison;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::{planted, relaxed_if_planted};

/// No command waits.
pub const NOBODY: u32 = 0;
/// Commands of several queues wait.
pub const SEVERAL: u32 = u32::MAX;
/// Set in the mark of a single queue if some of its waiting commands must be run by a certain rank.
pub const BOUND: u32 = 1 << 31;

/// What poisoning subtracts from a signal's counter. Thresholds are compared across half the number range.
const POISON_OFFSET: u64 = 1 << 62;

/// The states of a signal: sound; a rank is about to poison it; the subtraction may have happened; poisoned.
const SOUND: u32 = 0;
const CLAIMED: u32 = 1;
const SUBTRACTING: u32 = 2;
const POISONED: u32 = 3;

/// Returns true if a counter has reached a threshold. The comparison works across a wrap.
#[inline(always)]
pub fn reached(value: u64, threshold: u64) -> bool {
    value.wrapping_sub(threshold) as i64 >= 0
}

/// Returns true if a counter proves that a threshold was reached. False does not mean that it was not: see
/// [`SignalControl::check_threshold`].
#[inline(always)]
pub fn certainly_reached(value: u64, threshold: u64) -> bool {
    (value as i64 >= 0) & reached(value, threshold)
}

/// The control words. They have a cache line of their own: the counter's line moves with each raise, this one hardly
/// ever.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct SignalControl {
    /// [`NOBODY`]; or 1 plus the number of the only queue whose commands wait, possibly with [`BOUND`]; or
    /// [`SEVERAL`]. The queue belongs to the signal's rank. Written by the holder of that queue's lease.
    armed: AtomicU32,
    /// One of the four states above. Goes through them in order.
    state: AtomicU32,
    /// The poison. Written by the rank that moved the state to `CLAIMED`.
    poison: [AtomicU64; 3],
    /// The counter just before the subtraction. Until the state is `POISONED`, only an approximation.
    value_at_poison: AtomicU64,
}

impl Default for SignalControl {
    fn default() -> SignalControl {
        let word = || AtomicU64::new(0);
        SignalControl {
            armed: AtomicU32::new(NOBODY),
            state: AtomicU32::new(SOUND),
            poison: [word(), word(), word()],
            value_at_poison: word(),
        }
    }
}

impl SignalControl {
    /// Called by a rank that has raised the signal, after the raise. Returns which queue's commands wait.
    #[inline(always)]
    pub fn armed_after_raise(&self) -> u32 {
        // On x86_64 the addition was a full fence.
        #[cfg(any(not(target_arch = "x86_64"), loom))]
        if !planted("queue_raiser_fence") {
            fence(Ordering::SeqCst); // SYNC armed
        }
        self.armed.load(Ordering::Relaxed)
    }

    /// Returns which queue's commands wait, without a fence. Before a raise this is only a hint.
    #[inline(always)]
    pub fn armed_hint(&self) -> u32 {
        self.armed.load(Ordering::Relaxed)
    }

    /// Records that commands of that queue wait. The caller must look at the counter again afterwards.
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

    /// Like [`SignalControl::arm`], for a queue that has just been resumed and may still be armed. A caller that
    /// reads the counter afterwards sees the raise of every rank that did not see the mark.
    pub fn keep_armed(&self, queue: u32) {
        let mark = self.armed_hint();
        if mark != queue + 1 && mark != SEVERAL {
            self.arm(queue, false);
        } else if !planted("queue_start_fence") {
            fence(Ordering::SeqCst); // SYNC armed
        }
    }

    /// Records that no command of that queue waits any more. `SEVERAL` stays as it is.
    pub fn disarm(&self, queue: u32) {
        for mark in [queue + 1, (queue + 1) | BOUND] {
            let _ = self.armed.compare_exchange(mark, NOBODY, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Poisons the signal with that counter. Returns false if it was poisoned before. The caller must then check
    /// which queues wait, as after a raise.
    pub fn poison(&self, counter: &AtomicU64, poison: Poison) -> bool {
        if self.state.compare_exchange(SOUND, CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        for (word, value) in self.poison.iter().zip(poison.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.value_at_poison.store(counter.load(Ordering::Relaxed), Ordering::Relaxed);
        self.state.store(SUBTRACTING, Ordering::Release); // SYNC poison-subtract
        if !planted("queue_poison_counts_on") {
            let value_at_poison = counter.fetch_sub(POISON_OFFSET, Ordering::AcqRel); // SYNC poison-subtract
            self.value_at_poison.store(value_at_poison, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("queue_poison_relaxed", Ordering::Release); // SYNC poison
        self.state.store(POISONED, order);
        fence(Ordering::SeqCst); // SYNC armed
        true
    }

    /// Makes a poisoned signal sound again. Returns what to add to its counter, to undo the subtraction. No rank may
    /// raise the signal, poison it or wait for it any more.
    pub fn cure(&self) -> Option<u64> {
        let is_poisoned = self.state.load(Ordering::Acquire) == POISONED; // SYNC poison
        is_poisoned.then(|| {
            self.state.store(SOUND, Ordering::Relaxed);
            POISON_OFFSET
        })
    }

    /// Returns the poison, if the signal is poisoned.
    #[inline]
    pub fn poisoned(&self) -> Option<Poison> {
        self.poison_and_value().map(|(poison, _)| poison)
    }

    /// Returns the poison and the value that the signal had reached before, if it is poisoned.
    #[inline]
    pub fn poison_and_value(&self) -> Option<(Poison, u64)> {
        if self.state.load(Ordering::Acquire) != POISONED {
            return None; // SYNC poison
        }
        let word = |at: usize| self.poison[at].load(Ordering::Relaxed);
        let poison = Poison::from_words([word(0), word(1), word(2)])?;
        Some((poison, self.value_at_poison.load(Ordering::Relaxed)))
    }

    /// Judges a threshold by a counter value that was loaded with acquire: reached, never reached (the poison), or
    /// `None`: not yet.
    pub fn check_threshold(&self, counter: u64, threshold: u64) -> Option<Result<(), Poison>> {
        match self.poison_and_value() {
            Some((_, value_at_poison)) if reached(value_at_poison, threshold) => Some(Ok(())),
            Some((poison, _)) => Some(Err(poison)),
            // A rank that is just poisoning the signal has not yet stored the value reached before.
            None => (self.raised_value(counter) == counter && reached(counter, threshold)).then_some(Ok(())),
        }
    }

    /// Returns how often the signal was raised, given a counter value that was loaded with acquire.
    pub fn raised_value(&self, counter: u64) -> u64 {
        if self.state.load(Ordering::Acquire) < SUBTRACTING {
            return counter; // SYNC poison-subtract
        }
        let is_subtracted = (counter.wrapping_sub(self.value_at_poison.load(Ordering::Relaxed)) as i64)
            < -((POISON_OFFSET / 2) as i64);
        if is_subtracted { counter.wrapping_add(POISON_OFFSET) } else { counter }
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

    /// Tries thresholds at any distance from a signal that was raised fewer than 2^62 times, and raises after the
    /// poison.
    #[test]
    fn poison_keeps_what_was_reached_and_nothing_else() {
        const FAR: [u64; 5] = [0, 1, 1 << 40, 1 << 62, u64::MAX / 2 - 200];
        for begin in [0, 3, 1 << 61, 1 << 62, (1 << 63) + 5, u64::MAX - 1] {
            let (counter, control) = (AtomicU64::new(begin), SignalControl::default());
            let poison = Poison::of(&Cause::NullAddress, Rank(1));
            let says = |threshold: u64| {
                let now = counter.load(Ordering::Acquire);
                if certainly_reached(now, threshold) {
                    Some(Ok(()))
                } else {
                    control.check_threshold(now, threshold)
                }
            };
            for far in FAR {
                assert_eq!(says(begin.wrapping_sub(far)), Some(Ok(())), "sound, {far} below {begin}");
                assert_eq!(says(begin.wrapping_add(far + 1)), None, "sound, {far} above {begin}");
            }
            assert!(control.poison(&counter, poison) && !control.poison(&counter, poison));
            let far = if (1 << 62..u64::MAX / 2 + 100).contains(&begin) { &FAR[..3] } else { &FAR[..] };
            for raised in [0, 100] {
                counter.fetch_add(raised, Ordering::Relaxed);
                for &far in far {
                    assert_eq!(says(begin.wrapping_sub(far)), Some(Ok(())), "{far} below {begin}");
                    assert_eq!(says(begin.wrapping_add(far + 1)), Some(Err(poison)), "{far} above {begin}");
                }
                assert_eq!(control.raised_value(counter.load(Ordering::Relaxed)), begin.wrapping_add(raised));
            }
        }
    }
}
