//! Copies of bytes that another processor reads next: through the caches, or past them, whichever is quicker there.
//!
//! A line that is written through the caches is fetched first, from the processor that read it last. Where that is near
//! this costs a nanosecond or two a line; where it is far 20 to 40, three times what writing past the caches costs and
//! reading from memory. Only a look tells which: processors of a virtual machine are near at one moment and far at the
//! next. So a copy through the caches is timed now and then.
#![allow(unsafe_code)]
//! Unsafe: hands its caller's promise on to the two kinds of copy.

use super::{clock, copy};
use std::sync::atomic::{AtomicU32, Ordering};

/// Fewer bytes always go through the caches: there is too little to gain.
pub const SHORT: usize = 2048;
/// Nanoseconds for a line through the caches from which on the way past them is the quicker one. Measured from 4 KiB
/// on: 1 to 7 where processors share a cache, 15 to 37 where they do not.
const FAR_NS: u64 = 9;
/// Bytes of a line.
const LINE: u64 = 64;
/// Copies after a timed one that are not, on either way. A timed one goes through the caches.
const UNTIMED_THROUGH: u32 = 7;
const UNTIMED_PAST: u32 = 255;
/// Parts of the state's word: below them the copies until the next is timed.
const PAST: u32 = 1 << 31;
const DOUBTED: u32 = 1 << 30;
const LEFT: u32 = DOUBTED - 1;

/// Which way such copies of a rank go. Threads that meet here lose a count at most.
#[derive(Default, Debug)]
pub struct Outward(AtomicU32);

impl Outward {
    /// Whether the way past the caches is the quicker one.
    #[inline]
    pub fn is_past_caches(&self) -> bool {
        self.0.load(Ordering::Relaxed) & PAST != 0
    }

    /// Copies `len` bytes to memory that another processor reads next. Before a signal tells of them comes
    /// [`copy::fence_after_bulk`].
    ///
    /// # Safety
    /// As for [`copy::copy`]; the ranges must not overlap.
    #[inline(always)]
    pub unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { if len < SHORT { copy::copy(from, to, len) } else { self.copy_long(from, to, len) } }
    }

    /// # Safety
    /// As for [`Outward::copy`].
    #[inline(never)]
    unsafe fn copy_long(&self, from: *const u8, to: *mut u8, len: usize) {
        let state = self.0.load(Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe {
            if state & LEFT == 0 {
                let begin = clock::now_ns();
                copy::copy(from, to, len);
                let took = clock::now_ns().wrapping_sub(begin);
                self.0.store(after_timed(state, took, len as u64), Ordering::Relaxed);
                return;
            }
            self.0.store(state - 1, Ordering::Relaxed);
            if state & PAST == 0 { copy::copy(from, to, len) } else { copy::stream(from, to, len) }
        }
    }
}

/// The state after a copy through the caches took so long. One that was slow for another reason, as that its processor
/// was taken away, is followed by one that is not: so two are asked before the way changes.
fn after_timed(state: u32, took_ns: u64, len: u64) -> u32 {
    match took_ns > len / LINE * FAR_NS {
        false => UNTIMED_THROUGH,
        true if state & (PAST | DOUBTED) == 0 => DOUBTED,
        true => PAST | UNTIMED_PAST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 64 * LINE;
    const NEAR: u64 = 64 * FAR_NS;
    const FAR: u64 = NEAR + 1;

    #[test]
    fn two_slow_copies_lead_past_the_caches_and_a_quick_one_back() {
        let first = after_timed(0, FAR, LEN);
        assert_eq!(first & (PAST | LEFT), 0, "one is no proof, and the next is timed at once");
        assert_eq!(after_timed(first, NEAR, LEN), UNTIMED_THROUGH);
        let second = after_timed(first, FAR, LEN);
        assert_eq!(second, PAST | UNTIMED_PAST);
        let later = second & !LEFT;
        assert_eq!((after_timed(later, FAR, LEN), after_timed(later, NEAR, LEN)), (second, UNTIMED_THROUGH));
    }

    #[test]
    fn bytes_arrive_on_either_way() {
        for state in [0, 1, PAST, PAST | 1] {
            for len in [0, 8, SHORT - 1, SHORT, 3 * SHORT + 5] {
                let source: Vec<u8> = (0..len).map(|at| (at * 7) as u8 ^ 0x5a).collect();
                let mut target = vec![0xee; len + 8];
                let outward = Outward(AtomicU32::new(state));
                // SAFETY: both ranges lie inside the two vectors.
                unsafe { outward.copy(source.as_ptr(), target.as_mut_ptr().wrapping_add(3), len) };
                assert!(target[..3].iter().chain(&target[3 + len..]).all(|&byte| byte == 0xee));
                assert_eq!(target[3..3 + len], source);
            }
        }
    }
}
