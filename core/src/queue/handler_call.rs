//! Handler calls and their replies: how a command encodes a call, and where the reply is written.
//!
//! A *reply line* is a cache line in memory of the calling rank. It is used again for later calls. Each use has a
//! *sequence number*. The line holds the reply as soon as it holds that number, so no rank has to clear the line in
//! between. The sequence number is sent in the low bits of the line's address, which are zero otherwise.

use super::inline_data::Inline;
use super::ring::{LINE_WORDS, RingLine};
use crate::base::Rank;
use crate::fabric::Poison;
use crate::segment::GlobalAddress;

/// Most handlers of a job.
pub const HANDLERS_MAX: usize = 255;
/// The number of a call that runs no handler: it asks for the first failure of an earlier call of the same rank.
pub const FLUSH: u8 = 255;
const _: () = assert!(HANDLERS_MAX <= FLUSH as usize);
/// The number of sequence numbers of a reply line, which must fit into the low bits of the line's address.
pub const SEQUENCES: u64 = size_of::<RingLine>() as u64;

/// A call of a handler.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call {
    /// In a command queue, the rank to call; in a call queue, the rank that called.
    pub peer: Rank,
    /// The number of the handler.
    pub handler: u8,
    /// Its arguments.
    pub args: Args,
    /// Where the reply is written.
    pub reply: ReplyAddress,
}

/// The arguments of a handler.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Args {
    /// Bytes that the command carries.
    Inline(Inline),
    /// Bytes that are fetched before the handler runs.
    At {
        /// The address of the bytes.
        from: GlobalAddress,
        /// Number of bytes: at least 1, and less than 2^40.
        len: u64,
    },
    /// Bytes that are fetched, and then given back, before the handler runs.
    InBlock(BlockBytes),
}

/// Bytes in a block of the memory of the rank that wrote them. Another rank reads them and then gives the block back:
/// it writes the block's first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockBytes {
    /// The first line of the block, and the sequence number of the block's use.
    pub header: ReplyAddress,
    /// Number of bytes.
    pub len: u64,
}

impl BlockBytes {
    /// Bytes of a block before the values.
    pub const HEADER: u64 = size_of::<RingLine>() as u64;

    /// The address of the bytes.
    pub fn address(&self) -> GlobalAddress {
        self.header.line().add(BlockBytes::HEADER)
    }
}

impl Args {
    /// `len` bytes at `from`.
    pub fn at(from: GlobalAddress, len: u64) -> Args {
        if len == 0 { Args::Inline(Inline::EMPTY) } else { Args::At { from, len } }
    }

    /// Number of bytes that the handler gets.
    pub fn len(&self) -> u64 {
        match self {
            Args::Inline(bytes) => bytes.len() as u64,
            Args::At { len, .. } | Args::InBlock(BlockBytes { len, .. }) => *len,
        }
    }

    /// Returns true if the handler gets no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The address of a reply line and the sequence number of its use, in one word. `NONE` if the caller wants no reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyAddress(u64);

impl ReplyAddress {
    /// The caller wants no reply.
    pub const NONE: ReplyAddress = ReplyAddress(0);

    /// Use number `sequence` of the line at `line`.
    pub fn new(line: GlobalAddress, sequence: u64) -> ReplyAddress {
        debug_assert!(line.bits().is_multiple_of(SEQUENCES) && sequence < SEQUENCES);
        ReplyAddress(line.bits() | sequence)
    }

    /// Returns true if the caller wants no reply.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Address of the line.
    #[inline]
    pub fn line(self) -> GlobalAddress {
        GlobalAddress::from_bits(self.0 / SEQUENCES * SEQUENCES)
    }

    /// Sequence number of the use.
    #[inline]
    pub fn sequence(self) -> u64 {
        self.0 % SEQUENCES
    }

    /// Encodes the address and the sequence number as a word of a command.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Decodes such a word.
    pub(super) fn from_bits(bits: u64) -> ReplyAddress {
        ReplyAddress(bits)
    }
}

/// A call decoded from its lines, except for inline bytes, which stay in the lines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReceivedCall {
    /// In a command queue, the rank to call; in a call queue, the rank that called.
    pub peer: Rank,
    /// The number of the handler.
    pub handler: u8,
    /// Number of bytes that the handler gets.
    pub len: u64,
    /// Address of the bytes, if they are not inline.
    pub buffer: Option<GlobalAddress>,
    /// The first line of the block that holds these bytes, if they are in one.
    pub block: ReplyAddress,
    /// Where the reply is written.
    pub reply: ReplyAddress,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reply {
    /// The handler succeeded and returned this value.
    Value(Inline),
    /// The handler succeeded and returned a value that is too long for the line.
    LongValue(BlockBytes),
    /// The call failed with a cause of the library; the handler may not have run.
    Failed(Poison),
    /// The handler panicked or returned an error.
    ErrorMessage {
        /// The number of the handler.
        handler: u8,
        /// The message, or its beginning.
        text: Inline,
    },
    /// The handler panicked or returned an error with a message that is too long for the line.
    LongErrorMessage {
        /// The number of the handler.
        handler: u8,
        /// The message.
        text: BlockBytes,
    },
}

const VALUE: u64 = 1;
const FAILED: u64 = 2;
const ERROR_MESSAGE: u64 = 3;
const LONG_VALUE: u64 = 4;
const LONG_ERROR_MESSAGE: u64 = 5;

/// Bit offsets in the first word.
const LENGTH: u32 = 8;
const HANDLER: u32 = 16;

impl Reply {
    /// Encodes the reply as the words of a line: kind, length and handler; then the bytes, or the address and number
    /// of bytes in a block.
    pub fn words(&self) -> [u64; LINE_WORDS] {
        match self {
            Reply::Value(value) => Reply::value_words(value),
            Reply::LongValue(bytes) => block_words(LONG_VALUE, bytes),
            Reply::ErrorMessage { handler, text } => {
                tagged_words(ERROR_MESSAGE | u64::from(*handler) << HANDLER, text)
            }
            Reply::LongErrorMessage { handler, text } => {
                block_words(LONG_ERROR_MESSAGE | u64::from(*handler) << HANDLER, text)
            }
            Reply::Failed(poison) => {
                let [first, second, third] = poison.words();
                [FAILED, first, second, third, 0, 0, 0]
            }
        }
    }

    /// The words of a reply with that value.
    #[inline(always)]
    pub fn value_words(value: &Inline) -> [u64; LINE_WORDS] {
        tagged_words(VALUE, value)
    }

    /// Decodes such words; `None` if they encode no reply.
    #[inline(always)]
    pub fn from_words(words: &[u64; LINE_WORDS]) -> Option<Reply> {
        let inline = || Inline::from_words(&words[1..], usize::from((words[0] >> LENGTH) as u8));
        let bytes = || BlockBytes { header: ReplyAddress::from_bits(words[1]), len: words[2] };
        let handler = (words[0] >> HANDLER) as u8;
        match words[0] & 0xff {
            VALUE => Some(Reply::Value(inline())),
            LONG_VALUE => Some(Reply::LongValue(bytes())),
            ERROR_MESSAGE => Some(Reply::ErrorMessage { handler, text: inline() }),
            LONG_ERROR_MESSAGE => Some(Reply::LongErrorMessage { handler, text: bytes() }),
            FAILED => Poison::from_words([words[1], words[2], words[3]]).map(Reply::Failed),
            _ => None,
        }
    }
}

#[inline(always)]
fn tagged_words(kind: u64, bytes: &Inline) -> [u64; LINE_WORDS] {
    let [a, b, c, d, e, f] = *bytes.words();
    [kind | (bytes.len() as u64) << LENGTH, a, b, c, d, e, f]
}

fn block_words(kind: u64, bytes: &BlockBytes) -> [u64; LINE_WORDS] {
    [kind, bytes.header.bits(), bytes.len, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Cause;
    use crate::queue::inline_data::INLINE_BYTES;

    #[test]
    fn replies_decode_to_what_was_encoded() {
        let inline = |bytes: &[u8]| Inline::of(bytes).unwrap();
        let poison = Poison::of(&Cause::Stale { address: 77 }, Rank(3));
        let header = ReplyAddress::new(GlobalAddress::new(Rank(9), 1 << 20), 5);
        let bytes = BlockBytes { header, len: (1 << 40) - 1 };
        let replies = [
            Reply::Value(inline(&[])),
            Reply::Value(inline(&[7; INLINE_BYTES])),
            Reply::LongValue(bytes),
            Reply::ErrorMessage { handler: 254, text: inline(b"no such word") },
            Reply::LongErrorMessage { handler: 254, text: bytes },
            Reply::Failed(poison),
        ];
        for reply in replies {
            assert_eq!(Reply::from_words(&reply.words()), Some(reply));
        }
        assert_eq!(Reply::from_words(&[0; LINE_WORDS]), None);
    }

    #[test]
    fn a_reply_address_holds_line_and_sequence_number() {
        let line = GlobalAddress::new(Rank(5), 1 << 30);
        let place = ReplyAddress::new(line, 63);
        assert_eq!((place.line(), place.sequence(), place.is_none()), (line, 63, false));
        assert!(ReplyAddress::NONE.is_none());
    }
}
