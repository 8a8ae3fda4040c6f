//! Random bytes from the kernel.
#![allow(unsafe_code)]
//! Unsafe: getrandom fills a local array.

use crate::base::{Error, Result};

/// Returns `N` random bytes that nobody can guess, for names and keys.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    const { assert!(N <= 256, "getrandom returns up to 256 bytes at once, even if a signal arrives") };
    let mut bytes = [0; N];
    // SAFETY: the array has N bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if got == N as isize { Ok(bytes) } else { Err(Error::last_os("getrandom")) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_calls_return_different_bytes() {
        assert_ne!(super::bytes::<16>().unwrap(), super::bytes::<16>().unwrap());
    }
}
