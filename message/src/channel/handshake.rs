//! What both ends of a channel tell each other before its first element.

use bytemuck::{Pod, Zeroable};
use tasuki_core::base::Rank;
use tasuki_core::base::{Cause, ValueKind};
use tasuki_core::segment::GlobalAddress;

/// The type of the elements of a channel.
#[derive(Clone, Copy, Debug)]
pub struct ChannelElement {
    kind: ValueKind,
    /// Bytes of an element.
    pub size: u64,
    name: &'static str,
}

impl ChannelElement {
    /// Returns a type.
    pub fn of<T: 'static>() -> ChannelElement {
        ChannelElement {
            kind: ValueKind::of::<T>(),
            size: size_of::<T>() as u64,
            name: std::any::type_name::<T>(),
        }
    }
}

/// Bits of the number of a signal, of the kind of a type, and of an offset in the memory of a rank or a capacity.
const BITS: u32 = 20;
const PLACE_BITS: u32 = 40;
const _: () = assert!(ValueKind::BITS <= BITS && tasuki_core::segment::layout::SIGNALS_MAX <= 1 << BITS);
const _: () = assert!(tasuki_core::segment::layout::RANGE_BYTES <= 1 << PLACE_BITS);

fn low(word: u64, bits: u32) -> u64 {
    word & ((1 << bits) - 1)
}

/// A short message from the receiver to the sender: where the ring is.
#[derive(Clone, Copy, Debug, Zeroable, Pod)]
#[repr(C)]
pub(super) struct RingOffer {
    /// Offset of the ring in the receiver's memory, and the kind of the type.
    ring_and_kind: u64,
    /// Elements of the ring, and the signal of the committed counter.
    capacity_and_signal: u64,
    base: u64,
    size: u32,
    name: [u8; 20],
}

const _: () = assert!(size_of::<RingOffer>() == crate::SHORT_MAX, "an offer is a short message");

impl RingOffer {
    pub(super) fn new(
        element: &ChannelElement,
        ring: GlobalAddress,
        capacity: u64,
        (signal, base): (u32, u64),
    ) -> RingOffer {
        RingOffer {
            ring_and_kind: ring.offset() | u64::from(element.kind.bits()) << PLACE_BITS,
            capacity_and_signal: capacity | u64::from(signal) << PLACE_BITS,
            base,
            size: element.size as u32,
            name: end_of_name(element.name),
        }
    }

    pub(super) fn ring(&self, receiver: Rank) -> GlobalAddress {
        GlobalAddress::new(receiver, low(self.ring_and_kind, PLACE_BITS))
    }

    pub(super) fn capacity(&self) -> u64 {
        low(self.capacity_and_signal, PLACE_BITS)
    }

    /// Returns the signal of the committed counter and its value at first.
    pub(super) fn counter(&self) -> (u32, u64) {
        ((self.capacity_and_signal >> PLACE_BITS) as u32, self.base)
    }

    /// Returns why the sender refuses it.
    pub(super) fn refusal(&self, of_sender: &ChannelElement) -> Option<Cause> {
        let kind = ValueKind::from_bits((self.ring_and_kind >> PLACE_BITS) as u32);
        let is_same = kind == of_sender.kind && u64::from(self.size) == of_sender.size;
        (!is_same).then(|| types_differ(of_sender.name, &text_of(&self.name)))
    }
}

/// What comes with the first raise of the committed counter.
#[derive(Clone, Copy, Debug, Zeroable, Pod)]
#[repr(C)]
pub(super) struct Accept {
    /// The signal of the released counter, and above that 1 if the types differ.
    signal_and_refusal: u64,
    base: u64,
    name: [u8; 32],
}

impl Accept {
    pub(super) fn new(element: &ChannelElement, is_refused: bool, (signal, base): (u32, u64)) -> Accept {
        let signal_and_refusal = u64::from(signal) | u64::from(is_refused) << BITS;
        Accept { signal_and_refusal, base, name: end_of_name(element.name) }
    }

    /// Returns the signal of the released counter and its value at first.
    pub(super) fn counter(&self) -> (u32, u64) {
        (low(self.signal_and_refusal, BITS) as u32, self.base)
    }

    /// Returns why the sender has refused the offer, if it has.
    pub(super) fn refusal(&self, of_receiver: &ChannelElement) -> Option<Cause> {
        (self.signal_and_refusal >> BITS != 0).then(|| types_differ(&text_of(&self.name), of_receiver.name))
    }
}

fn types_differ(of_sender: &str, of_receiver: &str) -> Cause {
    let text =
        format!("the channel's sender has elements of type {of_sender}, its receiver of type {of_receiver}");
    Cause::mismatch(None, text)
}

/// Returns the end of a name, which tells most, in that many bytes.
fn end_of_name<const N: usize>(name: &str) -> [u8; N] {
    let (mut bytes, from) = ([0; N], name.len().saturating_sub(N));
    let end = &name.as_bytes()[from..];
    bytes[..end.len()].copy_from_slice(end);
    if from > 0 {
        bytes[..2].copy_from_slice(b"..");
    }
    bytes
}

fn text_of(name: &[u8]) -> String {
    String::from_utf8_lossy(name).trim_end_matches('\0').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_brings_what_was_put_in() {
        let element = ChannelElement::of::<[f64; 3]>();
        let ring = GlobalAddress::new(Rank(5), (1 << PLACE_BITS) - 64);
        let offer = RingOffer::new(&element, ring, (1 << PLACE_BITS) - 1, ((1 << BITS) - 1, u64::MAX));
        assert_eq!((offer.ring(Rank(5)), offer.capacity()), (ring, (1 << PLACE_BITS) - 1));
        assert_eq!(offer.counter(), ((1 << BITS) - 1, u64::MAX));
        assert!(offer.refusal(&element).is_none());
        let other = ChannelElement::of::<[f64; 4]>();
        let text = offer.refusal(&other).expect("another type").to_string();
        assert!(
            text.contains("sender has elements of type [f64; 4], its receiver of type [f64; 3]"),
            "{text}"
        );
    }

    #[test]
    fn an_answer_brings_what_was_put_in() {
        let element = ChannelElement::of::<u8>();
        for is_refused in [false, true] {
            let accept = Accept::new(&element, is_refused, ((1 << BITS) - 1, 7));
            assert_eq!(
                (accept.counter(), accept.refusal(&element).is_some()),
                (((1 << BITS) - 1, 7), is_refused)
            );
        }
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(text_of(&end_of_name::<8>("f64")), "f64");
        assert_eq!(text_of(&end_of_name::<8>("abcdefgh")), "abcdefgh");
        assert_eq!(text_of(&end_of_name::<8>("program::Point")), "..:Point");
    }
}
