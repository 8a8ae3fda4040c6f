//! Byte patterns: each byte's value tells where and in which round it was written.

/// The byte that fills the memory around a range that may be written.
pub(crate) const GUARD: u8 = 0xa5;

/// The byte at `index` in round `round`. Neighbouring bytes differ, and so do bytes of neighbouring
/// rounds.
pub(crate) fn byte(round: u64, index: usize) -> u8 {
    let index = index as u64;
    (round.wrapping_mul(37) ^ index.wrapping_mul(7) ^ (index >> 8).wrapping_mul(11) ^ (index >> 16)) as u8
}

/// The first `len` bytes of round `round`.
pub(crate) fn bytes(round: u64, len: usize) -> Vec<u8> {
    (0..len).map(|index| byte(round, index)).collect()
}

/// Asserts that `found` has the bytes of `round`; the message names the first and last wrong byte.
#[track_caller]
pub(crate) fn check(found: &[u8], round: u64, what: &str) {
    let wrong = (0..found.len()).filter(|&index| found[index] != byte(round, index));
    let wrong: Vec<usize> = wrong.collect();
    if let (Some(first), Some(last)) = (wrong.first(), wrong.last()) {
        let count = wrong.len();
        panic!("{what}: {count} of {} bytes are wrong, from {first} to {last}", found.len());
    }
}

/// Asserts that two memory images are equal; the message names the first difference.
#[track_caller]
pub(crate) fn check_image(found: &[u8], expected: &[u8], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(first) = (0..found.len()).find(|&index| found[index] != expected[index]) {
        let count = (0..found.len()).filter(|&index| found[index] != expected[index]).count();
        panic!(
            "{what}: {count} of {} bytes are wrong, the first at {first}: {:#x} instead of {:#x}",
            found.len(),
            found[first],
            expected[first]
        );
    }
}

/// Makes a message of `len` bytes, the first of which hold its number.
pub(crate) fn message(number: usize, len: usize) -> Vec<u8> {
    let mut message = bytes(number as u64, len);
    message[..8].copy_from_slice(&(number as u64).to_le_bytes());
    message
}

/// Checks a message, and returns its number.
pub(crate) fn number_of(bytes: &[u8]) -> usize {
    let number = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    assert!(bytes == message(number, bytes.len()), "message {number} of {} bytes is mixed", bytes.len());
    number
}
