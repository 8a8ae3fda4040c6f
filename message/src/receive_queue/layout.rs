//! The line of a buffer: what a sender writes about a message.
//!
//! | word | holds |
//! |---|---|
//! | main | the ticket + 1 (its low 24 bits); how many tickets ago its sender drew the last one, 0 if not among these buffers (16 bits); the kind of the values (20 bits); the form (4 bits) |
//! | 0 | the slot (32 bits); the sender's rank (24 bits); the length of a message in the line (8 bits) |
//! | 1 | the context |
//! | 2-5 | the bytes of a short message; or its length, and for one that stays at its sender: where, its offer, and the signal to raise |

use tasuki_core::base::{Rank, ValueKind};
use tasuki_core::fabric::SLOT_PAYLOAD;
use tasuki_core::segment::GlobalAddress;

/// Largest message that its line holds, in bytes.
pub(crate) const INLINE_MAX: usize = (SLOT_PAYLOAD - 2) * 8;

const TICKET_AT: u32 = 40;
const BEFORE_AT: u32 = 24;
const KIND_AT: u32 = 4;
const _: () = assert!(KIND_AT + ValueKind::BITS <= BEFORE_AT);

/// Where the bytes of a message are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Nowhere: the sender has given up.
    Void,
    /// In the line.
    Line([u64; SLOT_PAYLOAD - 2], u8),
    /// In the area of the buffer.
    Area(u64),
    /// At the sender.
    Offered(Offered),
}

/// A message that stays at its sender until the receiver has fetched it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offered {
    pub(crate) len: u64,
    pub(crate) from: GlobalAddress,
    /// The state of the offer, and the number under which it was made.
    pub(crate) state: GlobalAddress,
    pub(crate) number: u32,
    /// The signal at the sender that is raised when the state has changed.
    pub(crate) signal: u32,
}

/// What a line says about a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) source: Rank,
    pub(crate) slot: u32,
    pub(crate) context: u64,
    pub(crate) kind: ValueKind,
    /// How many tickets ago its sender drew its last ticket; 0 if that was longer ago than there are buffers. Lines may
    /// be written, and arrive, in another order than their tickets were drawn.
    pub(crate) before: u16,
    pub(crate) place: Place,
}

/// The main word and the payload of a line.
pub(crate) type LineWords = (u64, [u64; SLOT_PAYLOAD]);

/// Returns true if a main word says that the message of that ticket is there.
#[inline(always)]
pub(crate) fn is_filled(main: u64, ticket: u64) -> bool {
    (main ^ ticket.wrapping_add(1) << TICKET_AT) >> TICKET_AT == 0
}

/// Returns true if a main word is that of a ticket or of a later one of the same buffer.
#[inline(always)]
pub(crate) fn has_reached(main: u64, ticket: u64) -> bool {
    main.wrapping_sub(ticket.wrapping_add(1) << TICKET_AT) as i64 >= 0
}

/// Returns the main word of a buffer whose next ticket is `ticket`, before any message was there.
pub(crate) fn empty_word(ticket: u64, slots: u64) -> u64 {
    ticket.wrapping_sub(slots).wrapping_add(1) << TICKET_AT
}

impl Place {
    /// Returns the length of the message in bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Place::Void => 0,
            Place::Line(_, len) => u64::from(*len),
            Place::Area(len) => *len,
            Place::Offered(offered) => offered.len,
        }
    }

    /// A message that its line holds, of at most [`INLINE_MAX`] bytes.
    #[inline]
    pub(crate) fn in_line(bytes: &[u8]) -> Place {
        let mut all = [0; INLINE_MAX];
        all[..bytes.len()].copy_from_slice(bytes);
        Place::Line(bytemuck::cast(all), bytes.len() as u8)
    }
}

impl Header {
    /// Returns the words of the line for that ticket.
    #[inline]
    pub(crate) fn encode(&self, ticket: u64) -> LineWords {
        let (form, len, [a, b, c, d]) = match self.place {
            Place::Void => (0, 0, [0; 4]),
            Place::Line(words, len) => (1, len, words),
            Place::Area(len) => (2, 0, [len, 0, 0, 0]),
            Place::Offered(Offered { len, from, state, number, signal }) => {
                (3, 0, [len, from.bits(), state.bits(), u64::from(number) << 32 | u64::from(signal)])
            }
        };
        let number = ticket.wrapping_add(1) << TICKET_AT | u64::from(self.before) << BEFORE_AT;
        let main = number | u64::from(self.kind.bits()) << KIND_AT | form;
        let first = u64::from(self.slot) << 32 | u64::from(self.source.to_word()) << 8 | u64::from(len);
        (main, [first, self.context, a, b, c, d])
    }

    /// Returns the header that those words hold.
    #[inline]
    pub(crate) fn decode((main, [first, context, a, b, c, d]): LineWords) -> Header {
        let place = match main % (1 << KIND_AT) {
            1 => Place::Line([a, b, c, d], first as u8),
            2 => Place::Area(a),
            3 => Place::Offered(Offered {
                len: a,
                from: GlobalAddress::from_bits(b),
                state: GlobalAddress::from_bits(c),
                number: (d >> 32) as u32,
                signal: d as u32,
            }),
            _ => Place::Void,
        };
        Header {
            source: Rank::from_word((first >> 8) as u32 & 0xff_ffff),
            slot: (first >> 32) as u32,
            context,
            kind: ValueKind::from_bits((main >> KIND_AT) as u32),
            before: (main >> BEFORE_AT) as u16,
            place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        let offered = Offered {
            len: 1 << 40,
            from: GlobalAddress::new(Rank(77), 1 << 39),
            state: GlobalAddress::new(Rank(77), 4096),
            number: u32::MAX,
            signal: 12,
        };
        let places = [Place::Void, Place::in_line(&[7; 13]), Place::Area(4096), Place::Offered(offered)];
        for (place, ticket) in places.into_iter().zip([0, 5, u64::MAX, u64::MAX - 1]) {
            let header = Header {
                source: Rank((1 << 24) - 1),
                slot: u32::MAX - 1,
                context: 1 << 63,
                kind: ValueKind::of::<[f32; 3]>(),
                before: u16::MAX - 1,
                place,
            };
            let words = header.encode(ticket);
            assert_eq!(Header::decode(words), header);
            assert!(is_filled(words.0, ticket));
            assert!(
                !is_filled(words.0, ticket.wrapping_add(1)) && !is_filled(words.0, ticket.wrapping_sub(8))
            );
            assert!(has_reached(words.0, ticket) && has_reached(words.0, ticket.wrapping_sub(8)));
            assert!(!has_reached(words.0, ticket.wrapping_add(8)));
        }
    }

    #[test]
    fn an_empty_word_is_of_no_ticket_and_behind_the_first_message() {
        for ticket in [0, 1, u64::MAX - 2, 1 << 40] {
            let empty = empty_word(ticket, 8);
            assert!(!is_filled(empty, ticket));
            let (slot, context, kind) = (0, 0, ValueKind::BYTES);
            let void = Header { source: Rank(0), slot, context, kind, before: 0, place: Place::Void };
            let (first, _) = void.encode(ticket);
            assert!(first.wrapping_sub(empty) as i64 > 0, "a fabric drops writes that are behind");
        }
        assert_eq!(empty_word(7, 8), 0, "memory that is zeroed");
    }
}
