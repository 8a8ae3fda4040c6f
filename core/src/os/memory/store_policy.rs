//! Copies of bytes that another processor reads next: through the caches, or past them, whichever is quicker there.
//!
//! A line that is written through the caches is fetched first, from the processor that read it last. Where that is near
//! this costs a nanosecond or two a line; where it is far 20 to 40, three times what writing past the caches costs and
//! reading from memory. Only a look tells which: processors of a virtual machine are near at one moment and far at the
//! next. So a copy through the caches is timed now and then.
#![allow(unsafe_code)]
//! Unsafe: hands its caller's promise on to the two kinds of copy.

use crate::os::{clock, copy};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Fewer bytes always go through the caches: there is too little to gain.
pub const SHORT: usize = 2048;
/// Nanoseconds for a line through the caches, from which on the way past them is tried. Measured from 4 KiB on: 1 to 7
/// where processors share a cache, 15 to 37 where they do not; and about 10 where it lies in memory.
const FAR_NS: u64 = 12;
/// Bytes of a line.
const LINE: u64 = copy::LINE as u64;
/// Copies past the caches cost the reader more, which the writer does not see: they must take less than this part, two
/// fifths, of what others take. Where a cache is shared 4 KiB take about half.
const MARGIN: (u64, u64) = (2, 5);
/// Copies through the caches after which one is timed: every seventh, for calls take turns in twos and fours. As many
/// bring back what had been written past them.
const THROUGH_MORE: u32 = 6;
/// Copies past them after which some go through them again.
const PAST_MORE: u32 = 500;

/// What the upper bits of the state say; the lower ones how many copies more are not timed.
const MODE: u32 = 3 << 30;
const THROUGH: u32 = 0;
/// Through the caches; the last timed one was slow.
const DOUBTED: u32 = 1 << 30;
/// The next one goes past them for a try.
const TRYING: u32 = 2 << 30;
/// Past them.
const PAST: u32 = 3 << 30;

/// Which way the copies of a rank go. Threads that meet here lose a count at most.
#[derive(Default, Debug)]
pub struct StorePolicy {
    state: AtomicU32,
    /// What the last slow copy took, in 1/1024 ns a byte.
    slow: AtomicU64,
}

impl StorePolicy {
    /// Whether copies go past the caches: who reads them is far.
    #[inline(always)]
    pub fn is_past_caches(&self) -> bool {
        self.state.load(Relaxed) & MODE == PAST
    }

    /// Copies `len` bytes to memory that another processor reads next. Before a signal tells of them comes
    /// [`copy::fence_after_bulk`].
    ///
    /// # Safety
    /// As for [`copy::copy`].
    #[inline(always)]
    pub unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
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
            // SAFETY: the caller's promise.
            unsafe { go(mode == TRYING, from, to, len) };
            self.took(mode, clock::now_ns().saturating_sub(begin), len as u64);
        } else {
            self.state.store(after(state), Relaxed);
            // SAFETY: the caller's promise.
            unsafe { go(mode == PAST, from, to, len) };
        }
    }

    /// A copy in `mode` was timed. One that was slow for another reason, as that its processor was taken away, is
    /// followed by one that is not: so two are asked.
    fn took(&self, mode: u32, took_ns: u64, len: u64) {
        let rate = (took_ns << 10) / len;
        let is_slow = rate * LINE > FAR_NS << 10;
        let next = match mode {
            TRYING if MARGIN.1 * rate < MARGIN.0 * self.slow.load(Relaxed) => PAST | PAST_MORE,
            TRYING => THROUGH | PAST_MORE,
            THROUGH if is_slow => DOUBTED,
            DOUBTED if is_slow => {
                self.slow.store(rate, Relaxed);
                TRYING
            }
            _ => THROUGH | THROUGH_MORE,
        };
        self.state.store(next, Relaxed);
    }
}

/// The state after a copy that was not timed.
#[inline]
fn after(state: u32) -> u32 {
    if state == PAST | 1 { DOUBTED | THROUGH_MORE } else { state - 1 }
}

/// # Safety
/// As for [`copy::copy`].
#[inline(always)]
unsafe fn go(is_past: bool, from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise, and two ranges that do not overlap.
    unsafe {
        if is_past && copy::are_apart(from, to, len) {
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
    const NEAR: u64 = 64 * FAR_NS;

    /// So many copies, of which those through the caches take `through` ns and others `past`; how many went past.
    fn copies(outward: &StorePolicy, number: u32, through: u64, past: u64) -> u32 {
        let one = || {
            let state = outward.state.load(Relaxed);
            let (mode, is_timed) = (state & MODE, state & !MODE == 0);
            let is_past = mode == PAST || is_timed && mode == TRYING;
            match is_timed {
                true => outward.took(mode, if is_past { past } else { through }, LEN),
                false => outward.state.store(after(state), Relaxed),
            }
            u32::from(is_past)
        };
        (0..number).map(|_| one()).sum()
    }

    #[test]
    fn the_quicker_way_is_taken_and_a_change_is_noticed() {
        let outward = StorePolicy::default();
        assert_eq!(copies(&outward, 1000, NEAR, 1), 0, "quick enough: nothing is tried");
        assert!(copies(&outward, 1000, 3 * NEAR, NEAR) >= 1000 - 2 - 3 * 8);
        assert!(copies(&outward, 1000, NEAR, 1) <= PAST_MORE);
        assert!(copies(&outward, 10_000, 3 * NEAR, 2 * NEAR) <= 10_000 / PAST_MORE + 1, "that is no gain");
    }

    #[test]
    fn one_slow_copy_is_no_proof() {
        let outward = StorePolicy::default();
        assert_eq!(copies(&outward, 1, 100 * NEAR, 1) + copies(&outward, 1000, NEAR, 1), 0);
    }

    #[test]
    fn bytes_arrive_on_either_way() {
        for state in [THROUGH, THROUGH | 1, TRYING, PAST | 1] {
            for len in [0, 8, SHORT - 1, SHORT, 3 * SHORT + 5] {
                let source: Vec<u8> = (0..len).map(|at| (at * 7) as u8 ^ 0x5a).collect();
                let mut target = vec![0xee; len + 8];
                let outward = StorePolicy { state: state.into(), ..StorePolicy::default() };
                // SAFETY: both ranges lie inside the two vectors.
                unsafe { outward.copy(source.as_ptr(), target.as_mut_ptr().add(3), len) };
                assert!(target[..3].iter().chain(&target[3 + len..]).all(|&byte| byte == 0xee));
                assert_eq!(target[3..3 + len], source);
            }
        }
    }
}
