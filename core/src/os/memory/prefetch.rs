//! Telling the processor which lines it will need soon.
#![allow(unsafe_code)]
//! Unsafe: an instruction that is a hint: it changes nothing, and never faults, whatever the address.

macro_rules! hint {
    ($x86_64:literal, $aarch64:literal, $address:ident) => {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a hint.
        unsafe {
            std::arch::asm!($x86_64, in(reg) $address, options(nostack, preserves_flags, readonly));
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: a hint.
        unsafe {
            std::arch::asm!($aarch64, in(reg) $address, options(nostack, preserves_flags, readonly));
        }
        #[cfg(miri)]
        let _ = $address;
    };
}

/// The line at that address will be read: it is fetched while other work goes on.
#[inline(always)]
pub fn for_reading(address: *const u8) {
    hint!("prefetcht0 [{}]", "prfm pldl1keep, [{}]", address);
}

/// The line at that address will be written: it is fetched, and taken from whoever has it, while other work goes on.
#[inline(always)]
pub fn for_writing(address: *const u8) {
    hint!("prefetchw [{}]", "prfm pstl1keep, [{}]", address);
}
