//! The one bulk copy of shared memory.
#![allow(unsafe_code)]
//! Unsafe: raw copies between ranges that callers promise to be mapped. A peer may write either range meanwhile,
//! so the copy is no Rust memory access: it is one block of assembler, specified as a relaxed atomic copy byte by
//! byte (of a byte that is written meanwhile, either value arrives). Under miri and loom it is exactly that, a loop
//! over atomic bytes.
//!
//! The assembler calls the C library's `memmove`, which is tuned for each processor and needs nobody's headers;
//! what is behind a call from assembler is outside Rust's memory model as the instructions themselves would be.

/// Copies `len` bytes from `from` to `to`; the ranges may overlap. Costs a call of 2 ns and the bytes.
///
/// # Safety
/// Both ranges must be mapped, readable and writable, for the length of the call. Nobody may hold a reference to
/// plain data in `to`, nor a mutable one to plain data in `from`.
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // The commonest sizes are worth a branch each: one word needs no call.
    // SAFETY: the ranges are valid by the caller's promise, and aligned where a word is touched.
    unsafe {
        match len {
            8 if (from as usize | to as usize) & 7 == 0 => word::<u64>(from, to),
            4 if (from as usize | to as usize) & 3 == 0 => word::<u32>(from, to),
            HUGE.. if are_apart(from, to, len) => stream(from, to, len),
            LONG.. if is_slow(from, to, len) => in_descending_pieces(from, to, len),
            _ => bulk(from, to, len),
        }
    }
}

/// From so many bytes on it matters how two ranges lie in their pages.
const LONG: usize = 1024;

/// So many bytes leave the caches before anybody reads them. Copied past them, 4 to 64 MiB that lie in no cache move at
/// 15 to 16 GB/s instead of 10 to 11.
pub(crate) const HUGE: usize = 8 << 20;

/// So many bytes the C library reads whole before it writes any.
const PIECE: usize = 256;

/// A destination up to so many bytes behind its source, counted within a page, is taken for an overlap.
const BEHIND: usize = 1024;

/// Whether a copy in ascending order would crawl: AMD's processors compare the lower twelve bits of an address only
/// when they look whether a read needs what was just written. Measured between two processors, 64 KiB: 1 GB/s where
/// the destination is 4 bytes behind, 17 where it is 64 to 640, 33 otherwise; 25 to 33 anywhere in descending pieces.
/// Ranges that do overlap are left to the C library.
#[inline]
fn is_slow(from: *const u8, to: *mut u8, len: usize) -> bool {
    (1..BEHIND).contains(&((to as usize).wrapping_sub(from as usize) % 4096)) && are_apart(from, to, len)
}

/// Whether two ranges have no byte in common.
#[inline]
pub(in crate::os) fn are_apart(from: *const u8, to: *mut u8, len: usize) -> bool {
    let apart = (to as usize).wrapping_sub(from as usize);
    apart >= len && apart.wrapping_neg() >= len
}

/// Ranges that do not overlap, from their ends to their beginnings.
///
/// # Safety
/// As for [`copy`].
#[inline(never)]
unsafe fn in_descending_pieces(from: *const u8, to: *mut u8, len: usize) {
    let mut end = len;
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        // SAFETY: a part of both ranges.
        unsafe { bulk(from.add(start), to.add(start), end - start) };
        end = start;
    }
}

/// One aligned word, in one piece.
///
/// # Safety
/// As for [`copy`], and both addresses are multiples of the word's size.
#[inline]
unsafe fn word<T>(from: *const u8, to: *mut u8) {
    // SAFETY: aligned and mapped by the caller's check. Volatile accesses of one word are single instructions.
    unsafe { to.cast::<T>().write_volatile(from.cast::<T>().read_volatile()) }
}

/// Any number of bytes.
///
/// # Safety
/// As for [`copy`].
#[cfg(all(not(miri), not(loom), target_arch = "x86_64"))]
#[inline]
unsafe fn bulk(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: memmove reads and writes just the two ranges; a C call may change just the registers listed.
    unsafe {
        std::arch::asm!(
            "call {memmove}",
            memmove = in(reg) libc::memmove as *const (),
            inout("rdi") to => _,
            inout("rsi") from => _,
            inout("rdx") len => _,
            clobber_abi("C"),
        );
    }
}

/// Any number of bytes.
///
/// # Safety
/// As for [`copy`].
#[cfg(all(not(miri), not(loom), target_arch = "aarch64"))]
#[inline]
unsafe fn bulk(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: as on x86_64.
    unsafe {
        std::arch::asm!(
            "blr {memmove}",
            memmove = in(reg) libc::memmove as *const (),
            inout("x0") to => _,
            inout("x1") from => _,
            inout("x2") len => _,
            clobber_abi("C"),
        );
    }
}

/// Any number of bytes.
///
/// # Safety
/// As for [`copy`].
#[cfg(any(miri, loom))]
unsafe fn bulk(from: *const u8, to: *mut u8, len: usize) {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    let one = |i: usize| {
        // SAFETY: i < len, and both ranges are mapped by the caller's promise.
        unsafe {
            (*to.add(i).cast::<AtomicU8>()).store((*from.add(i).cast::<AtomicU8>()).load(Relaxed), Relaxed)
        }
    };
    if (from as usize) < to as usize { (0..len).rev().for_each(one) } else { (0..len).for_each(one) }
}

/// The same past the caches: lines that another processor has are not fetched before they are written, nor kept. The
/// ranges must not overlap. What is stored after it is stored after all of its bytes.
///
/// # Safety
/// As for [`copy`].
pub unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE * LINE;
    let tail = head + lines;
    // SAFETY: parts of both ranges; the middle one begins at a line, and consists of whole ones.
    unsafe {
        copy(from, to, head);
        whole_lines(from.add(head), to.add(head), lines);
        copy(from.add(tail), to.add(tail), len - tail);
    }
}

/// Bytes of a line of the caches.
pub(crate) const LINE: usize = 64;

/// Whole lines.
///
/// # Safety
/// As for [`copy`]; `to` and `len` are multiples of a line.
#[cfg(all(not(miri), not(loom), target_arch = "x86_64"))]
unsafe fn whole_lines(from: *const u8, to: *mut u8, len: usize) {
    if len == 0 {
        return;
    }
    // SAFETY: reads and writes just the two ranges, and the registers listed; the fence is no memory access.
    unsafe {
        std::arch::asm!(
            "2:",
            "movdqu {a}, [{from} + {at}]",
            "movdqu {b}, [{from} + {at} + 16]",
            "movdqu {c}, [{from} + {at} + 32]",
            "movdqu {d}, [{from} + {at} + 48]",
            "movntdq [{to} + {at}], {a}",
            "movntdq [{to} + {at} + 16], {b}",
            "movntdq [{to} + {at} + 32], {c}",
            "movntdq [{to} + {at} + 48], {d}",
            "add {at}, 64",
            "jnz 2b",
            "sfence",
            from = in(reg) from.add(len),
            to = in(reg) to.add(len),
            at = inout(reg) (len as isize).wrapping_neg() => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// Whole lines, where there is no such way.
///
/// # Safety
/// As for [`copy`].
#[cfg(any(miri, loom, not(target_arch = "x86_64")))]
unsafe fn whole_lines(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy(from, to, len) }
}

/// Orders what went before, copies past the caches included, before a later store of a signal. x86's ordinary
/// release does not order such copies; the C library may use them above some megabytes and fences them itself
/// today, which nothing promises.
#[inline]
pub fn fence_after_bulk(len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= STREAMED {
        // SAFETY: sfence exists on every x86_64.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = len;
}

/// Below this no C library copies past the caches.
#[cfg(target_arch = "x86_64")]
const STREAMED: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_small_size_and_offset_arrives_and_nothing_else_changes() {
        for len in (0..70).chain([127, 128, 129, 4095, 4096, 4097]) {
            for (a, b) in [(0, 0), (1, 0), (0, 3), (5, 7)] {
                let source: Vec<u8> = (0..len + 16).map(|i| i as u8 ^ 0x5a).collect();
                let mut target = vec![0xee_u8; len + 32];
                // SAFETY: both ranges lie inside the two vectors.
                unsafe { copy(source.as_ptr().add(a), target.as_mut_ptr().add(8 + b), len) };
                assert!(target[..8 + b].iter().chain(&target[8 + b + len..]).all(|&byte| byte == 0xee));
                assert_eq!(&target[8 + b..8 + b + len], &source[a..a + len]);
            }
        }
    }

    #[test]
    fn streamed_bytes_arrive_and_nothing_else_changes() {
        for len in [0, 1, 63, 64, 65, 127, 128, 200, 1000, 4096, 10_000] {
            for (a, b) in [(0, 0), (1, 0), (0, 3), (5, 61), (63, 64)] {
                let source: Vec<u8> = (0..len + 64).map(|i| (i * 7) as u8 ^ 0x5a).collect();
                let mut target = vec![0xee_u8; len + 128];
                // SAFETY: both ranges lie inside the two vectors.
                unsafe { stream(source.as_ptr().add(a), target.as_mut_ptr().add(8 + b), len) };
                assert!(target[..8 + b].iter().chain(&target[8 + b + len..]).all(|&byte| byte == 0xee));
                assert_eq!(&target[8 + b..8 + b + len], &source[a..a + len]);
            }
        }
    }

    #[test]
    fn ranges_that_lie_alike_in_their_pages_arrive_whole() {
        let all: Vec<u8> =
            (0..64 << 10).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        for len in [LONG, LONG + 1, 3 * LONG - 1, 8192, 16_000] {
            for behind in [0, 1, 63, BEHIND - 1, BEHIND, 4095] {
                let (mut ours, to) = (all.clone(), 16_384 + behind);
                // SAFETY: both ranges lie inside the vector.
                unsafe { copy(ours.as_ptr(), ours.as_mut_ptr().add(to), len) };
                assert_eq!(
                    is_slow(ours.as_ptr(), ours.as_mut_ptr().wrapping_add(to), len),
                    (1..BEHIND).contains(&behind)
                );
                assert_eq!(&ours[to..to + len], &all[..len]);
                assert!(ours[..to] == all[..to] && ours[to + len..] == all[to + len..]);
            }
        }
        let mut overlapping = all.clone();
        // SAFETY: both ranges lie inside the vector.
        unsafe { copy(overlapping.as_ptr(), overlapping.as_mut_ptr().add(4096), 8192) };
        assert_eq!(&overlapping[4096..12_288], &all[..8192]);
    }

    #[test]
    fn overlapping_ranges_move_both_ways() {
        let base: Vec<u8> = (0..200).collect();
        for (from, to) in [(0, 9), (9, 0), (3, 3)] {
            let (mut ours, mut std) = (base.clone(), base.clone());
            // SAFETY: both ranges lie inside the vector.
            unsafe { copy(ours.as_ptr().add(from), ours.as_mut_ptr().add(to), 150) };
            std.copy_within(from..from + 150, to);
            assert_eq!(ours, std);
        }
    }
}
