//! Whether a message fits in a receive: by the type of its values, and by its length.

use crate::slot::bank::{SlotBank, SlotIndex};
use tasuki_core::base::{Cause, KindClass, ValueKind};

/// Returns why a message does not fit in a receive. Both are given by the kind of their values and their bytes.
pub(crate) fn misfit((sent, len): (ValueKind, u64), (wanted, room): (ValueKind, u64)) -> Option<Cause> {
    if !sent.matches(wanted) {
        return Some(type_mismatch(sent.class(), wanted.class()));
    }
    (len > room).then_some(Cause::Truncated { len, room })
}

/// Returns the error of types that differ. The caller of this crate names those that are no number types.
pub(crate) fn type_mismatch(sent: KindClass, wanted: KindClass) -> Cause {
    Cause::TypeMismatch { sent: sent.name(), wanted: wanted.name() }
}

/// Returns true if a message that does not fit in a receive stays for another one. Such a message was sent to an
/// earlier receive, which was withdrawn. If the classes of both types match, the message may have been sent to this
/// receive by a sender that could not tell the types apart, and waits for its end: then this receive takes it.
pub(crate) fn stays(sent: ValueKind, wanted: ValueKind) -> bool {
    sent.matches(wanted) || !sent.class().may_match(wanted.class())
}

/// Returns why the message did not fit, as its sender has reported in the data of a slot.
#[cold]
pub(crate) fn reported_misfit(bank: &SlotBank, index: SlotIndex, receive: (ValueKind, u64)) -> Cause {
    let len = bank.data_word(index, 0);
    let sent = ValueKind::from_bits(bank.data_word(index, 1) as u32);
    misfit((sent, len), receive).unwrap_or(Cause::Truncated { len, room: receive.1 })
}
