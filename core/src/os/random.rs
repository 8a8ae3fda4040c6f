//! Bytes that nobody can guess.
#![allow(unsafe_code)]
//! Unsafe: getrandom fills an array of our own.

use crate::base::{Error, Result};

/// Random bytes, for names and keys.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    const { assert!(N <= 256, "as many as come in one piece, whatever signal arrives") };
    let mut bytes = [0; N];
    // SAFETY: the array has N bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if got == N as isize { Ok(bytes) } else { Err(Error::last_os("getrandom")) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_draws_differ() {
        assert_ne!(super::bytes::<16>().unwrap(), super::bytes::<16>().unwrap());
    }
}
