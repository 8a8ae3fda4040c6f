//! The function that copies bytes between shared memory ranges.
#![allow(unsafe_code)]
//! Unsafe: raw copies between ranges that callers promise to be mapped. A peer may write either range at the same
//! time. So the copy is not a Rust memory access: it is one block of assembler, specified as a relaxed atomic copy
//! of each byte (if a byte is written concurrently, the copy has its old or its new value). Under miri and loom the
//! copy is a loop over atomic bytes.
//!
//! The assembler calls the C library's `memmove`, which is tuned for each processor. A function that is called from
//! assembler is outside Rust's memory model, as the instructions themselves would be.

/// Copies `len` bytes from `from` to `to`; the ranges may overlap. Costs a call of 2 ns and the bytes.
///
/// # Safety
/// Both ranges must be mapped, readable and writable, during the call. No reference to plain data in `to` may exist,
/// and no mutable reference to plain data in `from`.
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // The most frequent sizes are worth a branch each: one word needs no call.
    // SAFETY: the caller promises mapped ranges without references to plain data. Words are accessed only where both
    // addresses are aligned, and `stream` and the descending pieces get only ranges that do not overlap.
    unsafe {
        match len {
            8 if (from as usize | to as usize) & 7 == 0 => word::<u64>(from, to),
            4 if (from as usize | to as usize) & 3 == 0 => word::<u32>(from, to),
            HUGE.. if are_disjoint(from, to, len) => stream(from, to, len),
            LONG.. if is_slow(from, to, len) => in_descending_pieces(from, to, len),
            _ => by_memmove(from, to, len),
        }
    }
}

/// Copies `count` blocks of `block` bytes. Blocks begin at the addresses given, and at multiples of the strides given with
/// them from there on. No block that is written overlaps with another block.
///
/// # Safety
/// As for [`copy`], for all blocks.
pub unsafe fn blocks(
    (from, from_stride): (*const u8, usize),
    (to, to_stride): (*mut u8, usize),
    block: usize,
    count: usize,
) {
    let are_aligned = |mask: usize| (from as usize | to as usize | from_stride | to_stride) & mask == 0;
    // SAFETY: `number` is less than `count`, so the block lies in the memory that the caller promises to be mapped. Words
    // are aligned, since the first ones and both strides are.
    unsafe {
        match block {
            _ if block == from_stride && block == to_stride => copy(from, to, block * count),
            8 if are_aligned(7) => (0..count).for_each(|number| {
                word::<u64>(from.add(number * from_stride), to.add(number * to_stride));
            }),
            4 if are_aligned(3) => (0..count).for_each(|number| {
                word::<u32>(from.add(number * from_stride), to.add(number * to_stride));
            }),
            _ => (0..count).for_each(|number| {
                copy(from.add(number * from_stride), to.add(number * to_stride), block);
            }),
        }
    }
}

/// Copies of at least this many bytes are checked for 4 KiB aliasing (see `is_slow`).
const LONG: usize = 1024;

/// Copies of at least this many bytes use non-temporal stores: the caches would evict the bytes before anybody reads
/// them. With such stores, 4 to 64 MiB of uncached bytes are copied at 15 to 16 GB/s instead of 10 to 11.
pub(crate) const HUGE: usize = 8 << 20;

/// Bytes of one piece. The C library reads this many bytes before it writes any of them.
const PIECE: usize = 256;

/// If the destination is fewer than this many bytes above the source, modulo 4 KiB, the processor takes the ranges for
/// overlapping.
const ALIASED: usize = 1024;

/// Returns true if a copy in ascending order would be slow because of 4 KiB aliasing: AMD's processors compare only the
/// lower twelve bits of the addresses when they check if a load depends on an earlier store. Measured between two
/// processors with 64 KiB: 1 GB/s if the destination is 4 bytes above the source, 17 GB/s if it is 64 to 640 above,
/// 33 GB/s otherwise; in descending pieces 25 to 33 GB/s everywhere. Returns false for ranges that really overlap:
/// the C library copies those.
#[inline]
fn is_slow(from: *const u8, to: *mut u8, len: usize) -> bool {
    (1..ALIASED).contains(&((to as usize).wrapping_sub(from as usize) % 4096)) && are_disjoint(from, to, len)
}

/// Returns true if the two ranges have no byte in common.
#[inline]
pub(in crate::os) fn are_disjoint(from: *const u8, to: *mut u8, len: usize) -> bool {
    let distance = (to as usize).wrapping_sub(from as usize);
    distance >= len && distance.wrapping_neg() >= len
}

/// Copies ranges that do not overlap, piece by piece from their ends to their beginnings.
///
/// # Safety
/// As for [`copy`].
#[inline(never)]
unsafe fn in_descending_pieces(from: *const u8, to: *mut u8, len: usize) {
    let mut end = len;
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        // SAFETY: `start..end` is a part of both ranges, which the caller keeps valid.
        unsafe { by_memmove(from.add(start), to.add(start), end - start) };
        end = start;
    }
}

/// Copies one aligned word by one load and one store.
///
/// # Safety
/// As for [`copy`]. Both addresses must be multiples of the word's size.
#[inline]
unsafe fn word<T>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller keeps both words mapped and aligned. Volatile accesses of one word are single instructions.
    unsafe { to.cast::<T>().write_volatile(from.cast::<T>().read_volatile()) }
}

/// Copies any number of bytes.
///
/// # Safety
/// As for [`copy`].
#[cfg(all(not(miri), not(loom), target_arch = "x86_64"))]
#[inline]
unsafe fn by_memmove(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: memmove reads and writes only the two ranges; a C call changes only the registers listed.
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

/// Copies any number of bytes.
///
/// # Safety
/// As for [`copy`].
#[cfg(all(not(miri), not(loom), target_arch = "aarch64"))]
#[inline]
unsafe fn by_memmove(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: memmove reads and writes only the two ranges; a C call changes only the registers listed.
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

/// Copies any number of bytes.
///
/// # Safety
/// As for [`copy`].
#[cfg(any(miri, loom))]
unsafe fn by_memmove(from: *const u8, to: *mut u8, len: usize) {
    use crate::base::sync::{Ordering::Relaxed, RealAtomicU8};
    let one = |i: usize| {
        // SAFETY: `i` is less than `len`, and the caller promises that both ranges are mapped.
        unsafe {
            (*to.add(i).cast::<RealAtomicU8>())
                .store((*from.add(i).cast::<RealAtomicU8>()).load(Relaxed), Relaxed)
        }
    };
    if (from as usize) < to as usize { (0..len).rev().for_each(one) } else { (0..len).for_each(one) }
}

/// Copies `len` bytes with non-temporal stores: the processor does not fetch the destination's cache lines before it
/// writes them, and does not keep them. The ranges must not overlap. Later stores become visible after all the bytes.
///
/// # Safety
/// As for [`copy`].
pub unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE * LINE;
    let tail = head + lines;
    // SAFETY: parts of both ranges; the middle part begins at a cache line and consists of whole lines.
    unsafe {
        copy(from, to, head);
        whole_lines(from.add(head), to.add(head), lines);
        copy(from.add(tail), to.add(tail), len - tail);
    }
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Copies whole cache lines with non-temporal stores, then fences them.
///
/// # Safety
/// As for [`copy`]. `to` and `len` must be multiples of [`LINE`].
#[cfg(all(not(miri), not(loom), target_arch = "x86_64"))]
unsafe fn whole_lines(from: *const u8, to: *mut u8, len: usize) {
    if len == 0 {
        return;
    }
    // SAFETY: reads and writes only the two ranges and the registers listed; the fence accesses no memory.
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

/// Copies whole cache lines, where there are no non-temporal stores.
///
/// # Safety
/// As for [`copy`].
#[cfg(any(miri, loom, not(target_arch = "x86_64")))]
unsafe fn whole_lines(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: `copy` needs no more than the caller promises: mapped ranges without references to plain data.
    unsafe { copy(from, to, len) }
}

/// Orders all earlier stores, non-temporal ones included, before a later store of a signal. On x86 an ordinary release
/// store does not order non-temporal stores. The C library may use them above some megabytes; it fences them itself
/// today, but does not promise to.
#[inline]
pub fn fence_after_copy(len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= STREAMED {
        // SAFETY: sfence exists on every x86_64.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = len;
}

/// No C library uses non-temporal stores for fewer bytes.
#[cfg(target_arch = "x86_64")]
const STREAMED: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_small_sizes_and_offsets_change_only_their_destination() {
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
    fn non_temporal_copies_change_only_their_destination() {
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
    fn ranges_with_4_kib_aliasing_are_copied_completely() {
        let all: Vec<u8> =
            (0..64 << 10).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        for len in [LONG, LONG + 1, 3 * LONG - 1, 8192, 16_000] {
            for above in [0, 1, 63, ALIASED - 1, ALIASED, 4095] {
                let (mut ours, to) = (all.clone(), 16_384 + above);
                // SAFETY: both ranges lie inside the vector.
                unsafe { copy(ours.as_ptr(), ours.as_mut_ptr().add(to), len) };
                assert_eq!(
                    is_slow(ours.as_ptr(), ours.as_mut_ptr().wrapping_add(to), len),
                    (1..ALIASED).contains(&above)
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
    fn overlapping_ranges_are_copied_in_both_directions() {
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
