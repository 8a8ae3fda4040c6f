//! The encoding of the words of a slot.
//!
//! A slot at a rank consists of two lines. The peer writes both, with two exceptions in the second: the rank itself may
//! change the claim by compare-and-swap, and in a split copy both ranks count parts in the last payload word.
//!
//! | line | word | holds | called below |
//! |---|---|---|---|
//! | 0 | main, with payload | the peer's message to this rank | data |
//! | 0 | side | the receive that the peer has posted for this rank's messages | posting |
//! | 1 | main, with payload | address and size of a posted receive that is not short; its claim | claim |
//! | 1 | side | up to which message the peer has promised to send even if it leaves | promise |
//!
//! Messages of a slot are numbered from 1 in each direction. The upper half of every word is the number of the
//! message it is about. Nothing is ever reset: a posting is valid for the next message to be sent and no other, and a
//! word about an earlier message means nothing. While the number stays, the lower half only grows.
//!
//! ```text
//! posting   number:32 | version:19 size:6     | kind:7      a receive. kind: short, staged or long, and the class of its
//!                                                           type. size: the bytes of a short one; log2 of the bytes
//!                                                           of a staged one, rounded down. Or a withdrawal
//! claim     number:32 | 0:2 version:24        | state:6     who has a receive that is not short, or
//!           number:32 | 0:1 1:1 slot:24       | state:6     the slot of the message that has it, or
//!           number:32 | 1:1 chunks:25         | state:6     how much of its message the receiver has taken
//! size      version:19 | bytes:45                          of that receive, in the claim's payload
//! data      number:32 | tag:20 length:6       | kind:6      a short message (tag: the kind of its values; to a receive
//!                                                           of any slot: its slot), or
//!           number:32 | chunks:26             | kind:6      a long one, staged, split, or in place, or
//!           number:32 | version:26            | kind:6      a message that did not fit in the receive, or
//!           number:32 | all ones              | kind:6      one that failed after its receive was claimed
//! ```

use tasuki_core::base::{KindClass, ValueKind};

/// Most bytes of a short message, which travels in the slot's line.
pub const SHORT_MAX: usize = 48;

/// Encodes the promise that this rank sends all messages up to that number.
pub(crate) fn promise(number: u32) -> u64 {
    numbered(number, 1)
}

/// Encodes the promise of a leaving rank to a receive of any slot: that a message will come, or that none will.
pub(crate) fn promise_of_any(is_something: bool) -> u64 {
    promise(if is_something { 1 } else { 2 })
}

/// Returns true if a message was promised to a receive of any slot.
pub(crate) fn is_any_promised(promise: u64) -> bool {
    number(promise) == 1
}

/// Returns true if the message of that number was promised.
pub(crate) fn is_promised(promise: u64, number: u32) -> bool {
    promise != 0 && self::number(promise).wrapping_sub(number) as i32 >= 0
}

/// The kind of a posted receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Posting {
    /// There is no receive for this message.
    None,
    /// A receive of at most 48 bytes. The message goes into the receiver's line.
    Short { room: usize, class: KindClass },
    /// A receive of at least `least` bytes, which the receiver copies out of the sender's ring. The exact size is in
    /// the slot's second line, under this version. No other rank accesses the receiver's memory, so the sender need
    /// not claim it.
    Staged { least: u64, version: u32, class: KindClass },
    /// A receive of more than 48 bytes, which the sender must claim. Its address and size are in the slot's second
    /// line, under this version.
    Long { version: u32, class: KindClass },
    /// A short or staged receive that was withdrawn.
    Withdrawn,
}

// A posting's kind is one of the first three, plus the class of its type.
const SHORT: u64 = 1;
const POSTING_STAGED: u64 = SHORT + KindClass::COUNT;
const LONG: u64 = POSTING_STAGED + KindClass::COUNT;
const WITHDRAWN: u64 = LONG + KindClass::COUNT;
const _: () = assert!(WITHDRAWN <= POSTING_KIND);
const POSTING_KIND: u64 = 127;
const SIZE_AT: u32 = 7;
const SIZE_MASK: u64 = 63;
const VERSION_AT: u32 = 13;
/// The kind of a claim or data word.
const KIND: u64 = 63;
const VERSION_MASK: u32 = (1 << 19) - 1;

fn numbered(number: u32, low: u64) -> u64 {
    u64::from(number) << 32 | low
}

/// Returns the number of the message that a word is about.
#[inline(always)]
pub(crate) fn number(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Reduces a version to the bits that fit into the words.
pub(crate) fn version(version: u32) -> u32 {
    version & VERSION_MASK
}

/// Returns true if a word is about a later message.
pub(crate) fn is_later(word: u64, number: u32) -> bool {
    self::number(word).wrapping_sub(number) as i32 > 0
}

/// Encodes the posting of a receive of at most 48 bytes, of that type.
#[inline(always)]
pub(crate) fn short_posting(number: u32, version: u32, room: usize, of: ValueKind) -> u64 {
    let kind = SHORT + of.class().bits();
    numbered(number, u64::from(version & VERSION_MASK) << VERSION_AT | (room as u64) << SIZE_AT | kind)
}

/// Encodes the posting of a longer receive, of `room` bytes, whose message is to be staged.
pub(crate) fn staged_posting(number: u32, version: u32, room: u64, of: ValueKind) -> u64 {
    let (power, kind) = (u64::from(room.max(1).ilog2()), POSTING_STAGED + of.class().bits());
    numbered(number, u64::from(version & VERSION_MASK) << VERSION_AT | power << SIZE_AT | kind)
}

/// Encodes the posting of a longer receive that must be claimed.
pub(crate) fn long_posting(number: u32, version: u32, of: ValueKind) -> u64 {
    numbered(number, u64::from(version & VERSION_MASK) << VERSION_AT | (LONG + of.class().bits()))
}

/// Encodes the withdrawal of the last posted receive, which was short or staged. A withdrawal has a version of its own,
/// like a posting.
pub(crate) fn withdrawn_posting(number: u32, version: u32) -> u64 {
    numbered(number, u64::from(version & VERSION_MASK) << VERSION_AT | WITHDRAWN)
}

/// Returns true if a posting is a short receive for the message of that number with room for `len` bytes, of a type of
/// the same class. Bytes take the slow path unless both sides have bytes.
#[inline(always)]
pub(crate) fn accepts_short(posting: u64, number: u32, len: usize, of: ValueKind) -> bool {
    let wanted = numbered(number, SHORT + of.class().bits());
    posting & (u64::from(u32::MAX) << 32 | POSTING_KIND) == wanted
        && len as u64 <= posting >> SIZE_AT & SIZE_MASK
}

/// Decodes a posting for the message of that number.
pub(crate) fn read_posting(word: u64, about: u32) -> Posting {
    if number(word) != about {
        return Posting::None;
    }
    let (version, size) = (posting_version(word), word >> SIZE_AT & SIZE_MASK);
    let kind = word & POSTING_KIND;
    let class = |first| KindClass::from_bits(kind - first);
    match kind {
        SHORT..POSTING_STAGED => Posting::Short { room: size as usize, class: class(SHORT) },
        POSTING_STAGED..LONG => Posting::Staged { least: 1 << size, version, class: class(POSTING_STAGED) },
        LONG..WITHDRAWN => Posting::Long { version, class: class(LONG) },
        WITHDRAWN => Posting::Withdrawn,
        _ => Posting::None,
    }
}

/// Returns the version in a posting.
pub(crate) fn posting_version(word: u64) -> u32 {
    (word >> VERSION_AT) as u32 & VERSION_MASK
}

/// Which rank controls a receive that is not short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    /// The receiver has posted the receive.
    Posted = 1,
    /// The sender has claimed the receive, and the receiver waits for the message.
    Claimed = 2,
    /// The receiver has withdrawn the receive.
    Withdrawn = 3,
}

/// The bit of a claim word that holds a slot. So it is larger than those that hold a version.
const CLAIMED_BIT: u64 = 1 << 30;

/// Encodes the claim word of a receive that a message of that slot has claimed.
pub(crate) fn claimed(number: u32, slot: u32) -> u64 {
    numbered(number, CLAIMED_BIT | u64::from(slot) << 6 | Claim::Claimed as u64)
}

/// Decodes the slot of the message that has claimed the receive; `None` if the word does not say so.
pub(crate) fn read_claimed(word: u64, about: u32) -> Option<u32> {
    let slot = (word >> 6) as u32 & ((1 << 24) - 1);
    (word == claimed(about, slot)).then_some(slot)
}

/// Encodes the claim word of a version of a posting.
pub(crate) fn claim(number: u32, version: u32, state: Claim) -> u64 {
    numbered(number, u64::from(version) << 6 | state as u64)
}

/// Bits of the byte count in a size word.
const SIZE_BITS: u32 = 45;

/// Encodes the size of a receive of that version. The word includes the version because no rank can read the size and
/// the claim at once: between the two reads, the receive may have been withdrawn and another receive described.
pub(crate) fn size(version: u32, bytes: u64) -> u64 {
    u64::from(version & VERSION_MASK) << SIZE_BITS | bytes.min((1 << SIZE_BITS) - 1)
}

/// Decodes the number of bytes in a size word; `None` if the word belongs to another version.
pub(crate) fn read_size(word: u64, version: u32) -> Option<u64> {
    (word >> SIZE_BITS == u64::from(version)).then_some(word & ((1 << SIZE_BITS) - 1))
}

const TAKEN: u64 = 4;
const TAKEN_BIT: u64 = 1 << 31;
/// The largest number of taken chunks that a claim word can hold.
pub(crate) const CHUNKS_MAX: u32 = (1 << 25) - 1;

/// Encodes how many chunks of a message the receiver has taken. It is written to the second line, which a rank that
/// waits for a message does not read. So the line stays in the writer's cache, and the write is cheap.
pub(crate) fn taken(number: u32, chunks: u32) -> u64 {
    numbered(number, TAKEN_BIT | u64::from(chunks) << 6 | TAKEN)
}

/// Decodes how many of the message's `chunks` were taken. If the word is about a later message, all of them were.
pub(crate) fn read_taken(word: u64, about: u32, chunks: u32) -> u32 {
    if is_later(word, about) {
        chunks
    } else if number(word) == about && word & KIND == TAKEN {
        (word >> 6) as u32 & CHUNKS_MAX
    } else {
        0
    }
}

/// What the data word in the receiver's line says about a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Data {
    /// The word says nothing about this message.
    None,
    /// The message is in the payload. `tag`: the kind of its values; in the line of receives of any slot, its slot.
    Short { tag: u32, len: usize },
    /// The sender has copied that many chunks into its ring.
    Staged { chunks: u32 },
    /// The message is a split copy: the payload has the source's address, and the receiver may copy parts.
    SplitCopy,
    /// The message is at the address in the posting.
    InPlace,
    /// The message did not fit in the receive posted under that version: it was too long, or had values of another
    /// type.
    Unfit { version: u32 },
    /// The sender had claimed the receive and then failed.
    Failed,
}

const DATA_SHORT: u64 = 1;
const DATA_STAGED: u64 = 2;
const IN_PLACE: u64 = 3;
const UNFIT: u64 = 4;
const SPLIT_COPY: u64 = 5;
const FAILED: u64 = 6;

/// Encodes the data word of a short message. `tag`: the kind of its values, or its slot ([`Data::Short`]).
#[inline(always)]
pub(crate) fn short_data(number: u32, tag: u32, len: usize) -> u64 {
    numbered(number, u64::from(tag) << 12 | (len as u64) << 6 | DATA_SHORT)
}

/// Encodes the data word of a long message, `chunks` chunks of which are staged.
pub(crate) fn staged_data(number: u32, chunks: u32) -> u64 {
    numbered(number, u64::from(chunks) << 6 | DATA_STAGED)
}

/// Encodes the data word of a split copy.
pub(crate) fn split_copy_data(number: u32) -> u64 {
    numbered(number, SPLIT_COPY)
}

/// Encodes the data word of a long message that has arrived in place.
pub(crate) fn in_place_data(number: u32) -> u64 {
    numbered(number, u64::from(u32::MAX >> 6) << 6 | IN_PLACE)
}

/// Encodes the data word of a message that did not fit.
pub(crate) fn unfit_data(number: u32, version: u32) -> u64 {
    numbered(number, u64::from(version) << 6 | UNFIT)
}

/// Encodes the data word of a message that failed after its receive was claimed.
pub(crate) fn failed_data(number: u32) -> u64 {
    numbered(number, u64::from(u32::MAX >> 6) << 6 | FAILED)
}

/// Returns the length of a short message, if the data word is for the message of that number and its values are of the
/// same type. Bytes take the slow path unless both sides have bytes.
#[inline(always)]
pub(crate) fn short_len(data: u64, number: u32, of: ValueKind) -> Option<usize> {
    const TAG: u64 = ((1 << ValueKind::BITS) - 1) << 12;
    let wanted = numbered(number, u64::from(of.bits()) << 12 | DATA_SHORT);
    let is_it = data & (u64::from(u32::MAX) << 32 | TAG | KIND) == wanted;
    is_it.then_some((data >> 6 & KIND) as usize)
}

/// Decodes a data word for the message of that number.
pub(crate) fn read_data(word: u64, about: u32) -> Data {
    if number(word) != about {
        return Data::None;
    }
    let upper = (word >> 6) as u32 & ((1 << 26) - 1);
    match word & KIND {
        DATA_SHORT => Data::Short { tag: upper >> 6, len: (upper & 63) as usize },
        DATA_STAGED => Data::Staged { chunks: upper },
        SPLIT_COPY => Data::SplitCopy,
        IN_PLACE => Data::InPlace,
        UNFIT => Data::Unfit { version: upper },
        FAILED => Data::Failed,
        _ => Data::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: ValueKind = ValueKind::BYTES;

    #[test]
    fn words_round_trip() {
        assert_eq!(
            read_posting(short_posting(7, 3, 48, BYTES), 7),
            Posting::Short { room: 48, class: BYTES.class() }
        );
        assert_eq!(read_posting(short_posting(7, 3, 48, BYTES), 6), Posting::None);
        assert_eq!(
            read_posting(long_posting(u32::MAX, 9, BYTES), u32::MAX),
            Posting::Long { version: 9, class: BYTES.class() }
        );
        for (room, least) in [(0, 1), (4095, 2048), (4096, 4096), (4097, 4096), (u64::MAX, 1 << 63)] {
            let posting = staged_posting(7, 3, room, BYTES);
            assert_eq!(read_posting(posting, 7), Posting::Staged { least, version: 3, class: BYTES.class() });
            assert_eq!(posting_version(posting), 3);
        }
        assert_eq!(read_taken(taken(7, 1 << 20), 7, 1 << 21), 1 << 20);
        assert_eq!(read_taken(taken(7, 1), 6, 9), 9, "a later message");
        assert_eq!(read_taken(taken(7, 1), 8, 9), 0);
        assert_eq!(read_taken(claimed(7, 3), 7, 9), 0);
        assert_eq!(read_claimed(claimed(7, (1 << 20) - 1), 7), Some((1 << 20) - 1));
        assert_eq!(read_claimed(claimed(7, 3), 8), None);
        assert_eq!(read_claimed(claim(7, 3, Claim::Posted), 7), None);
        assert_eq!(read_posting(0, 0), Posting::None);
        assert_eq!(
            read_data(short_data(1, (1 << 20) - 1, 48), 1),
            Data::Short { tag: (1 << 20) - 1, len: 48 }
        );
        assert_eq!(read_data(staged_data(1, 77), 1), Data::Staged { chunks: 77 });
        assert_eq!(read_data(in_place_data(1), 1), Data::InPlace);
        assert_eq!(read_data(split_copy_data(1), 1), Data::SplitCopy);
        assert_eq!(read_data(unfit_data(1, 5), 1), Data::Unfit { version: 5 });
        assert_eq!(read_data(failed_data(1), 1), Data::Failed);
        assert_eq!(read_posting(withdrawn_posting(7, 4), 7), Posting::Withdrawn);
        assert_eq!(read_data(short_data(1, 0, 0), 2), Data::None);
    }

    #[test]
    fn size_is_readable_only_with_its_version() {
        assert_eq!(read_size(size(VERSION_MASK, 5600), VERSION_MASK), Some(5600));
        assert_eq!(read_size(size(3, 5600), 4), None);
        assert_eq!(read_size(size(0, u64::MAX), 0), Some((1 << SIZE_BITS) - 1));
    }

    #[test]
    fn short_words_match_number_and_kind() {
        let posted = short_posting(9, 2, 8, BYTES);
        assert!(accepts_short(posted, 9, 8, BYTES) && accepts_short(posted, 9, 0, BYTES));
        assert!(!accepts_short(posted, 9, 9, BYTES) && !accepts_short(posted, 10, 8, BYTES));
        assert!(!accepts_short(long_posting(9, 2, BYTES), 9, 8, BYTES));
        assert!(!accepts_short(staged_posting(9, 2, 1 << 20, BYTES), 9, 8, BYTES));
        assert_eq!(short_len(short_data(9, 0, 8), 9, BYTES), Some(8));
        assert_eq!(short_len(short_data(9, 5, 8), 8, BYTES), None);
        assert_eq!(short_len(staged_data(9, 5), 9, BYTES), None);
    }

    #[test]
    fn words_with_one_number_only_grow() {
        let grows = |words: &[u64]| words.is_sorted();
        let second = [
            short_posting(4, 1, 48, BYTES),
            short_posting(4, 2, 0, BYTES),
            long_posting(4, 3, BYTES),
            staged_posting(4, 4, 99, BYTES),
        ];
        assert!(grows(&second) && second[3] < short_posting(5, 0, 0, BYTES));
        let state = |version, state| claim(4, version, state);
        assert!(grows(&[state(1, Claim::Posted), state(1, Claim::Withdrawn)]));
        assert!(state(VERSION_MASK, Claim::Withdrawn) < claimed(4, 0) && claimed(4, 1 << 20) < taken(4, 1));
        assert!(state(1, Claim::Withdrawn) < state(2, Claim::Posted));
        let taken = [state(VERSION_MASK, Claim::Withdrawn), taken(4, 1), taken(4, 2)];
        assert!(grows(&taken) && taken[2] < claim(5, 0, Claim::Posted));
        assert!(grows(&[staged_data(4, 1), staged_data(4, 2), in_place_data(4), short_data(5, 0, 0)]));
        assert!(grows(&[split_copy_data(4), in_place_data(4), failed_data(4), short_data(5, 0, 0)]));
        assert!(grows(&[
            staged_posting(4, 4, 99, BYTES),
            withdrawn_posting(4, 5),
            staged_posting(4, 6, 49, BYTES)
        ]));
    }

    #[test]
    fn postings_have_room_for_all_classes() {
        let version = 2;
        let kinds: Vec<ValueKind> = (0..KindClass::COUNT as u32).map(ValueKind::from_bits).collect();
        for (kind, class) in kinds.into_iter().map(|kind| (kind, kind.class())) {
            let short = read_posting(short_posting(u32::MAX, version, 48, kind), u32::MAX);
            assert_eq!(short, Posting::Short { room: 48, class });
            let staged = read_posting(staged_posting(u32::MAX, version, 1 << 40, kind), u32::MAX);
            assert_eq!(staged, Posting::Staged { least: 1 << 40, version, class });
            let long = read_posting(long_posting(u32::MAX, version, kind), u32::MAX);
            assert_eq!(long, Posting::Long { version, class });
        }
        assert_eq!(read_posting(withdrawn_posting(u32::MAX, version), u32::MAX), Posting::Withdrawn);
    }

    #[test]
    fn words_keep_types_apart() {
        struct Point;
        let kinds = [BYTES, ValueKind::of::<f64>(), ValueKind::of::<u64>(), ValueKind::of::<Point>()];
        for one in kinds {
            let class = one.class();
            assert_eq!(read_posting(short_posting(7, 3, 8, one), 7), Posting::Short { room: 8, class });
            assert_eq!(read_posting(long_posting(7, 3, one), 7), Posting::Long { version: 3, class });
            let staged = read_posting(staged_posting(7, 3, 64, one), 7);
            assert_eq!(staged, Posting::Staged { least: 64, version: 3, class });
            for other in kinds {
                assert_eq!(accepts_short(short_posting(7, 3, 8, one), 7, 8, other), one == other);
                let len = short_len(short_data(7, one.bits(), 8), 7, other);
                assert_eq!(len, (one == other).then_some(8));
            }
            assert!(!accepts_short(staged_posting(7, 3, 64, one), 7, 8, one));
            assert!(!accepts_short(long_posting(7, 3, one), 7, 8, one));
        }
    }
}
