//! Calls of handlers, and their answers: what a command says of them, and where the answer goes.
//!
//! An *answer line* is one line in memory of the rank that asks, used again and again. Each use has a *turn*; the line
//! holds the answer when the number of its turn stands in it, so nobody has to clear it before. A turn travels in the
//! low bits of the line's address, which are zero otherwise.

use super::inline_data::Inline;
use super::ring::{LINE_WORDS, RingLine};
use crate::base::Rank;
use crate::fabric::Poison;
use crate::segment::GlobalAddress;

/// Most bytes of a buffer that a call brings along.
pub const BUFFER_MAX: u64 = 64 * 1024;
/// Handlers that a rank may have.
pub const HANDLERS_MAX: usize = 256;
/// Turns of an answer line: the bits of an address within a line.
pub const TURNS: u64 = size_of::<RingLine>() as u64;

/// A handler is called.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call {
    /// In a queue of commands whom to call; in a queue of calls who called.
    pub peer: Rank,
    /// The number of the handler.
    pub handler: u8,
    /// What it is given.
    pub args: Args,
    /// Where its answer goes.
    pub answer: ReplyAddress,
}

/// What a handler is given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Args {
    /// Bytes that the command carries.
    Inline(Inline),
    /// Bytes that are fetched before the handler runs.
    At {
        /// Where from.
        from: GlobalAddress,
        /// How many: 1 to [`BUFFER_MAX`].
        len: u64,
    },
}

impl Args {
    /// So many bytes that lie there.
    pub fn at(from: GlobalAddress, len: u64) -> Args {
        if len == 0 { Args::Inline(Inline::EMPTY) } else { Args::At { from, len } }
    }

    /// How many bytes the handler is given.
    pub fn len(&self) -> u64 {
        match self {
            Args::Inline(bytes) => bytes.len() as u64,
            Args::At { len, .. } => *len,
        }
    }

    /// Whether it is given none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An answer line and its turn, in a word; none where nobody asked for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyAddress(u64);

impl ReplyAddress {
    /// No answer is asked for.
    pub const NONE: ReplyAddress = ReplyAddress(0);

    /// That turn of the line there.
    pub fn new(line: GlobalAddress, turn: u64) -> ReplyAddress {
        debug_assert!(line.bits().is_multiple_of(TURNS) && turn < TURNS);
        ReplyAddress(line.bits() | turn)
    }

    /// Whether no answer is asked for.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Where the line is.
    #[inline]
    pub fn line(self) -> GlobalAddress {
        GlobalAddress::from_bits(self.0 / TURNS * TURNS)
    }

    /// QueueKind use of it.
    #[inline]
    pub fn turn(self) -> u64 {
        self.0 % TURNS
    }

    /// As a word of a command.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// What such a word says.
    pub(super) fn from_bits(bits: u64) -> ReplyAddress {
        ReplyAddress(bits)
    }
}

/// What the lines of a call say of it; bytes that it carries are left there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReceivedCall {
    /// As in [`Call`].
    pub peer: Rank,
    /// The number of the handler.
    pub handler: u8,
    /// How many bytes it is given.
    pub len: u64,
    /// Where they are, if they do not travel with the call.
    pub buffer: Option<GlobalAddress>,
    /// Where its answer goes.
    pub answer: ReplyAddress,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reply {
    /// Well, with what the handler returned.
    Value(Inline),
    /// The handler did not run, or said that it failed.
    Failed(Poison),
    /// The handler panicked or returned an error, with the beginning of what it said.
    Said(Inline),
}

const VALUE: u64 = 1;
const FAILED: u64 = 2;
const SAID: u64 = 3;

impl Reply {
    /// As the words of a line: kind and length, then the bytes.
    pub fn words(&self) -> [u64; LINE_WORDS] {
        match self {
            Reply::Value(value) => Reply::value_words(value),
            Reply::Said(text) => worded(SAID, text),
            Reply::Failed(poison) => {
                let [first, second, third] = poison.words();
                [FAILED, first, second, third, 0, 0, 0]
            }
        }
    }

    /// The words of an answer of that value.
    #[inline(always)]
    pub fn value_words(value: &Inline) -> [u64; LINE_WORDS] {
        worded(VALUE, value)
    }

    /// What such words say; `None` if nobody can have written them.
    #[inline(always)]
    pub fn from_words(words: &[u64; LINE_WORDS]) -> Option<Reply> {
        let inline = || Inline::from_words(&words[1..], (words[0] >> 8) as usize);
        match words[0] & 0xff {
            VALUE => Some(Reply::Value(inline())),
            SAID => Some(Reply::Said(inline())),
            FAILED => Poison::from_words([words[1], words[2], words[3]]).map(Reply::Failed),
            _ => None,
        }
    }
}

#[inline(always)]
fn worded(kind: u64, bytes: &Inline) -> [u64; LINE_WORDS] {
    let [a, b, c, d, e, f] = *bytes.words();
    [kind | (bytes.len() as u64) << 8, a, b, c, d, e, f]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Cause;
    use crate::queue::inline_data::INLINE_BYTES;

    #[test]
    fn answers_are_read_as_they_were_written() {
        let inline = |bytes: &[u8]| Inline::of(bytes).unwrap();
        let poison = Poison::of(&Cause::Stale { address: 77 }, Rank(3));
        let answers = [
            Reply::Value(inline(&[])),
            Reply::Value(inline(&[7; INLINE_BYTES])),
            Reply::Said(inline(b"no such word")),
            Reply::Failed(poison),
        ];
        for answer in answers {
            assert_eq!(Reply::from_words(&answer.words()), Some(answer));
        }
        assert_eq!(Reply::from_words(&[0; LINE_WORDS]), None);
    }

    #[test]
    fn a_turn_travels_with_its_line() {
        let line = GlobalAddress::new(Rank(5), 1 << 30);
        let place = ReplyAddress::new(line, 63);
        assert_eq!((place.line(), place.turn(), place.is_none()), (line, 63, false));
        assert!(ReplyAddress::NONE.is_none());
    }
}
