//! Chooses ordinary or non-temporal stores, whichever is faster, for copies of bytes that another processor reads next.
//!
//! An ordinary store first fetches its cache line from the processor that read it last. If the two
//! processors share a cache, this costs 1 to 2 ns a line. If they do not, it costs 20 to 40 ns:
//! three times the cost of a non-temporal store and a read from memory. Only measuring tells which
//! case it is: processors of a virtual machine share a cache at one moment and not at the next. So
//! the policy times an ordinary copy now and then.
#![allow(unsafe_code)]
//! Unsafe: passes its caller's promise on to the two kinds of copy.

use crate::base::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::os::{clock, copy};

/// Copies of fewer bytes always use ordinary stores: there is too little to gain.
pub const SHORT: usize = 2048;
/// Nanoseconds of an ordinary copy per cache line above which non-temporal stores are tried. Measured from 4 KiB on: 1
/// to 7 if the processors share a cache, 15 to 37 if they do not, and about 10 if the line is in memory.
const SLOW_NS: u64 = 12;
/// Bytes of a cache line.
const LINE: u64 = copy::LINE as u64;
/// Non-temporal stores cost the reader more, which the writer does not see. So they are used only
/// if they take less than this fraction, two fifths, of the time of ordinary stores. Where a cache
/// is shared, 4 KiB take about half.
const MARGIN: (u64, u64) = (2, 5);
/// Ordinary copies between two timed ones. The period of seven is odd, because calls often alternate in twos and fours.
/// After non-temporal copies, as many ordinary ones bring the lines back into the caches before the next timed copy.
const ORDINARY_COPIES: u32 = 6;
/// Copies without timing after a trial of non-temporal stores; then the policy measures again.
const COPIES_AFTER_TRIAL: u32 = 500;

/// The upper bits of the state hold the mode; the lower bits count the copies until the next timed one.
const MODE: u32 = 3 << 30;
/// Ordinary stores.
const ORDINARY: u32 = 0;
/// Ordinary stores; the last timed copy was slow.
const SUSPECTED_SLOW: u32 = 1 << 30;
/// The next timed copy tries non-temporal stores.
const TRIAL: u32 = 2 << 30;
/// Non-temporal stores.
const NON_TEMPORAL: u32 = 3 << 30;

/// The kind of stores that the copies of a rank use. Concurrent threads can at most lose a count.
#[derive(Default, Debug)]
pub struct StorePolicy {
    state: AtomicU32,
    /// The time per byte of the last slow ordinary copy, in 1/1024 ns.
    slow: AtomicU64,
}

impl StorePolicy {
    /// Returns true if copies use non-temporal stores, because the reader shares no cache with the writer.
    #[inline(always)]
    pub fn is_non_temporal(&self) -> bool {
        self.state.load(Relaxed) & MODE == NON_TEMPORAL
    }

    /// Copies `len` bytes to memory that another processor reads next. The caller must call
    /// [`copy::fence_after_copy`] before it raises the signal that publishes them.
    ///
    /// # Safety
    /// As for [`copy::copy`].
    #[inline(always)]
    pub unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: both copies need what this function's caller promises: ranges that are mapped during the call, and no
        // references to plain data in them.
        unsafe { if len < SHORT { copy::copy(from, to, len) } else { self.copy_long(from, to, len) } }
    }

    /// # Safety
    /// As for [`copy::copy`].
    #[inline(never)]
    unsafe fn copy_long(&self, from: *const u8, to: *mut u8, len: usize) {
        let state = self.state.load(Relaxed);
        let (mode, is_timed) = (state & MODE, state & !MODE == 0);
        if is_timed {
            let begin = clock::now_ns();
            // SAFETY: the caller promises mapped ranges without references to plain data, as `copy_with` needs.
            unsafe { copy_with(mode == TRIAL, from, to, len) };
            self.record(mode, clock::now_ns().saturating_sub(begin), len as u64);
        } else {
            self.state.store(next_state(state), Relaxed);
            // SAFETY: the caller promises mapped ranges without references to plain data, as `copy_with` needs.
            unsafe { copy_with(mode == NON_TEMPORAL, from, to, len) };
        }
    }

    /// Records the time of a copy in `mode`. One copy can be slow for another reason, for example because its thread
    /// was preempted. So two slow copies in a row are needed before a trial.
    fn record(&self, mode: u32, time_ns: u64, len: u64) {
        let rate = (time_ns << 10) / len;
        let is_slow = rate * LINE > SLOW_NS << 10;
        let next = match mode {
            TRIAL if MARGIN.1 * rate < MARGIN.0 * self.slow.load(Relaxed) => {
                NON_TEMPORAL | COPIES_AFTER_TRIAL
            }
            TRIAL => ORDINARY | COPIES_AFTER_TRIAL,
            ORDINARY if is_slow => SUSPECTED_SLOW,
            SUSPECTED_SLOW if is_slow => {
                self.slow.store(rate, Relaxed);
                TRIAL
            }
            _ => ORDINARY | ORDINARY_COPIES,
        };
        self.state.store(next, Relaxed);
    }
}

/// Returns the state after a copy that was not timed.
#[inline]
fn next_state(state: u32) -> u32 {
    if state == NON_TEMPORAL | 1 { SUSPECTED_SLOW | ORDINARY_COPIES } else { state - 1 }
}

/// # Safety
/// As for [`copy::copy`].
#[inline(always)]
unsafe fn copy_with(is_non_temporal: bool, from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller promises mapped ranges without references to plain data; `stream` gets only ranges that do
    // not overlap.
    unsafe {
        if is_non_temporal && copy::are_disjoint(from, to, len) {
            copy::stream(from, to, len);
        } else {
            copy::copy(from, to, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 64 * LINE;
    const FAST: u64 = 64 * SLOW_NS;

    /// Simulates `number` copies: an ordinary one takes `ordinary` ns, a non-temporal one `non_temporal` ns. Returns
    /// how many were non-temporal.
    fn simulate(policy: &StorePolicy, number: u32, ordinary: u64, non_temporal: u64) -> u32 {
        let one = || {
            let state = policy.state.load(Relaxed);
            let (mode, is_timed) = (state & MODE, state & !MODE == 0);
            let is_non_temporal = mode == NON_TEMPORAL || is_timed && mode == TRIAL;
            match is_timed {
                true => policy.record(mode, if is_non_temporal { non_temporal } else { ordinary }, LEN),
                false => policy.state.store(next_state(state), Relaxed),
            }
            u32::from(is_non_temporal)
        };
        (0..number).map(|_| one()).sum()
    }

    #[test]
    fn the_policy_uses_the_faster_stores_and_adapts_to_changes() {
        let policy = StorePolicy::default();
        assert_eq!(simulate(&policy, 1000, FAST, 1), 0, "fast enough: nothing is tried");
        assert!(simulate(&policy, 1000, 3 * FAST, FAST) >= 1000 - 2 - 3 * 8);
        assert!(simulate(&policy, 1000, FAST, 1) <= COPIES_AFTER_TRIAL);
        let trials = simulate(&policy, 10_000, 3 * FAST, 2 * FAST);
        assert!(trials <= 10_000 / COPIES_AFTER_TRIAL + 1, "the gain is too small");
    }

    #[test]
    fn one_slow_copy_starts_no_trial() {
        let policy = StorePolicy::default();
        assert_eq!(simulate(&policy, 1, 100 * FAST, 1) + simulate(&policy, 1000, FAST, 1), 0);
    }

    #[test]
    fn both_kinds_of_stores_change_only_the_destination() {
        for state in [ORDINARY, ORDINARY | 1, TRIAL, NON_TEMPORAL | 1] {
            for len in [0, 8, SHORT - 1, SHORT, 3 * SHORT + 5] {
                let source: Vec<u8> = (0..len).map(|at| (at * 7) as u8 ^ 0x5a).collect();
                let mut target = vec![0xee; len + 8];
                let policy = StorePolicy { state: state.into(), ..StorePolicy::default() };
                // SAFETY: both ranges lie inside the two vectors.
                unsafe { policy.copy(source.as_ptr(), target.as_mut_ptr().add(3), len) };
                assert!(target[..3].iter().chain(&target[3 + len..]).all(|&byte| byte == 0xee));
                assert_eq!(target[3..3 + len], source);
            }
        }
    }
}
