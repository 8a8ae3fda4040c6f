//! Bytes that a command carries in its own lines.

/// Most inline bytes of a command.
pub const INLINE_BYTES: usize = 48;

/// Up to 48 bytes. Unused bytes are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inline {
    words: [u64; INLINE_BYTES / 8],
    len: u8,
}

impl Inline {
    /// No bytes.
    pub const EMPTY: Inline = Inline { words: [0; INLINE_BYTES / 8], len: 0 };

    /// A copy of `bytes`; `None` if there are too many.
    pub fn of(bytes: &[u8]) -> Option<Inline> {
        let mut inline = Inline::EMPTY;
        inline.set(bytes).then_some(inline)
    }

    /// Stores `bytes` in an empty value. Returns false if there are too many.
    #[inline(always)]
    pub fn set(&mut self, bytes: &[u8]) -> bool {
        let room = bytemuck::cast_slice_mut::<u64, u8>(&mut self.words).get_mut(..bytes.len());
        room.map(|room| room.copy_from_slice(bytes)).is_some_and(|()| {
            self.len = bytes.len() as u8;
            true
        })
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len()]
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes as words, with zeros at the end.
    pub fn words(&self) -> &[u64; INLINE_BYTES / 8] {
        &self.words
    }

    /// The first `len` bytes of `words`, or all of them if `words` is shorter.
    pub fn from_words(words: &[u64], len: usize) -> Inline {
        let mut all = [0; INLINE_BYTES / 8];
        all[..words.len()].copy_from_slice(words);
        Inline { words: all, len: len.min(8 * words.len()) as u8 }
    }
}
