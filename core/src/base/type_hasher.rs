//! A hasher for the identities of types, whose result the compiler folds to a constant.

use std::hash::Hasher;

/// Mixes the words of a type's identity into a hash, which begins with the given word.
#[derive(Debug)]
pub struct TypeHasher(u64);

impl TypeHasher {
    /// Makes a hasher whose result also depends on `first`.
    #[inline(always)]
    pub const fn new(first: u64) -> TypeHasher {
        TypeHasher(first)
    }

    #[inline(always)]
    fn mix(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 = mixed ^ mixed >> 29;
    }
}

impl Hasher for TypeHasher {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.mix(u64::from(byte)));
    }

    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}
