//! Prefetch instructions for cache lines.
#![allow(unsafe_code)]
//! Unsafe: one instruction that is a hint. It changes no memory and never faults, whatever the address.

macro_rules! hint {
    ($x86_64:literal, $aarch64:literal, $address:ident) => {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch changes nothing and never faults.
        unsafe {
            std::arch::asm!($x86_64, in(reg) $address, options(nostack, preserves_flags, readonly));
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: a prefetch changes nothing and never faults.
        unsafe {
            std::arch::asm!($aarch64, in(reg) $address, options(nostack, preserves_flags, readonly));
        }
        #[cfg(miri)]
        let _ = $address;
    };
}

/// Prefetches the cache line at `address` for a later read. Does not wait for it.
#[inline(always)]
pub fn for_reading(address: *const u8) {
    hint!("prefetcht0 [{}]", "prfm pldl1keep, [{}]", address);
}

/// Prefetches the cache line at `address` for a later write: other processors lose their copies. Does not wait for it.
#[inline(always)]
pub fn for_writing(address: *const u8) {
    hint!("prefetchw [{}]", "prfm pstl1keep, [{}]", address);
}
