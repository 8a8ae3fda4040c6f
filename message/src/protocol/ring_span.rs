//! The layout of a message in a ring: its chunks and their addresses. Both sides compute it from the message's length
//! and three words.

use crate::slot::bank::{SlotBank, SlotIndex};
use tasuki_core::base::ValueKind;
use tasuki_core::segment::GlobalAddress;

/// Bytes of a chunk, for messages of at most twice this length.
const SMALL_CHUNK: u64 = 2 << 10;
/// Bytes of the smallest chunk. A message of one chunk occupies the next power of two, so that a ring holds many such
/// messages.
const LEAST_CHUNK: u64 = 512;
/// Bytes of the smallest and the largest chunk of all other messages. From 4 KiB on the C library uses a copy
/// instruction that does not fetch the lines which it overwrites completely.
const CHUNK_MIN: u64 = 4 << 10;
const CHUNK_MAX: u64 = 32 << 10;

/// How a message is divided into chunks. Both sides compute it from the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunking {
    len: u64,
    /// Bytes of every chunk but the last.
    pub(crate) chunk: u64,
}

impl Chunking {
    /// Divides a message of `len` bytes. A chunk is a quarter of the message, so that the receiver begins early. It is
    /// not so small that announcing it costs more than copying it, nor so large that the ring holds only a few chunks.
    pub(crate) fn of(len: u64) -> Chunking {
        let chunk = if len < SMALL_CHUNK {
            len.next_power_of_two().max(LEAST_CHUNK)
        } else if len <= 2 * SMALL_CHUNK {
            SMALL_CHUNK
        } else {
            (len / 4).next_power_of_two().clamp(CHUNK_MIN, CHUNK_MAX)
        };
        Chunking { len, chunk }
    }

    /// Returns the bytes of the message.
    pub(crate) fn len(self) -> u64 {
        self.len
    }

    /// Returns the bytes that the message occupies in a ring that holds all its chunks at once.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.chunks()) * self.chunk
    }

    /// Returns the number of chunks.
    pub(crate) fn chunks(self) -> u32 {
        self.len.div_ceil(self.chunk) as u32
    }

    /// Returns a chunk's offset in the message and its length.
    pub(crate) fn part(self, chunk: u32) -> (u64, u64) {
        let start = u64::from(chunk) * self.chunk;
        (start, self.chunk.min(self.len.saturating_sub(start)))
    }
}

/// The part of a ring that a message occupies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingSpan {
    pub(crate) ring: GlobalAddress,
    pub(crate) bytes: u64,
    /// Offset of its first chunk from the start of the ring.
    pub(crate) start: u64,
    pub(crate) chunking: Chunking,
}

impl RingSpan {
    /// Returns how many of the message's chunks the ring holds.
    pub(crate) fn room(self) -> u32 {
        (self.bytes / self.chunking.chunk) as u32
    }

    /// Returns the address of a chunk.
    pub(crate) fn place(self, chunk: u32) -> GlobalAddress {
        self.ring.add((self.start + u64::from(chunk) * self.chunking.chunk) % self.bytes)
    }

    /// Returns the offset at which the message ends, for the next one.
    pub(crate) fn end(self) -> u64 {
        (self.start + self.chunking.bytes()) % self.bytes
    }

    /// Encodes the span for the receiver: the ring, the message's length, the ring's size and the start.
    pub(crate) fn words(self) -> [u64; 3] {
        [self.ring.bits(), self.chunking.len, self.bytes << 32 | self.start]
    }

    /// Reads the span of the message that a peer has staged for a slot.
    #[inline]
    pub(crate) fn at(bank: &SlotBank, index: SlotIndex) -> RingSpan {
        let word = |word| bank.data_word(index, word);
        RingSpan::of([word(0), word(1), word(3)])
    }

    /// Returns the kind and the bytes of the message that a peer has staged for a slot.
    #[inline]
    pub(crate) fn message(bank: &SlotBank, index: SlotIndex) -> (ValueKind, u64) {
        (ValueKind::from_bits(bank.data_word(index, 4) as u32), bank.data_word(index, 1))
    }

    /// Returns true if `taken` chunks should be acknowledged now, given how many were acknowledged before. True at the
    /// end, and often enough that the sender always has room.
    #[inline]
    pub(crate) fn needs_ack(self, taken: u32, acknowledged: u32) -> bool {
        let unacknowledged = taken - acknowledged;
        unacknowledged > 0 && (taken == self.chunking.chunks() || unacknowledged >= self.room() / 4)
    }

    /// Decodes a span. Words that no sender writes also give a span, and cause no division by zero.
    pub(crate) fn of([ring, len, rest]: [u64; 3]) -> RingSpan {
        let (bytes, start) = ((rest >> 32).max(CHUNK_MAX), rest & u64::from(u32::MAX));
        RingSpan { ring: GlobalAddress::from_bits(ring), bytes, start, chunking: Chunking::of(len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_one_chunk() {
        for len in [49, 512, 513, 2047, 2048, 4095, 4096, 4097, 16 << 10, 65_537, 1 << 20, (1 << 20) + 1] {
            let chunking = Chunking::of(len);
            let mut next = 0;
            for chunk in 0..chunking.chunks() {
                let (start, bytes) = chunking.part(chunk);
                assert!(start == next && bytes > 0 && bytes <= chunking.chunk, "{len}: {chunk}");
                next += bytes;
            }
            assert_eq!(next, len);
            assert!(chunking.chunk <= CHUNK_MAX); // so that a ring holds eight of the largest chunks
        }
    }
}
