//! The slots of messages, and what a receive returns about its message.

use crate::{Member, Result};
use tasuki_message::{Context, TypedSlot};

/// A message slot: what other libraries call a tag. A slot is the message channel of one sender, one receiver and one
/// communicator with this index.
///
/// A slot serves one message at a time. Several outstanding messages use several slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub usize);

impl Slot {
    /// In a receive: any slot. The receive gets the next message of the sender, whatever slot it was sent on.
    ///
    /// At most one such receive can be outstanding for each sender. A send looks for a receive on its own slot first.
    /// The two kinds of receive are not ordered with each other: a message that was sent while a receive on its slot
    /// was being withdrawn may arrive after a later one.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     let mut got = [0_u64; 10];
    ///     if job.rank() == 0 {
    ///         job.world().send(&[5_u64, 6], Rank(1), Slot(33))?;
    ///     } else {
    ///         let received = job.world().recv(&mut got, Rank(0), Slot::ANY)?;
    ///         assert_eq!((received.slot, &got[..received.count]), (Slot(33), &[5, 6][..]));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub const ANY: Slot = Slot(usize::MAX);

    /// Returns the number as messages know it. All numbers that do not fit become one that no communicator has.
    #[inline(always)]
    pub(crate) fn word(self) -> u32 {
        if self.0 < Context::NO_SLOT as usize { self.0 as u32 } else { self.word_beyond() }
    }

    /// Returns this slot for values of that type.
    #[inline(always)]
    pub(crate) fn of<T: 'static>(self) -> TypedSlot {
        TypedSlot::of::<T>(self.word())
    }

    #[cold]
    fn word_beyond(self) -> u32 {
        if self == Slot::ANY { Context::ANY } else { Context::NO_SLOT }
    }
}

/// What a receive returns about its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The slot on which the message was sent.
    pub slot: Slot,
    /// The sender; [`Member::NONE`] for a receive from `None`.
    pub source: Member,
    /// The number of values that were sent, which may be smaller than the buffer.
    pub count: usize,
}

impl Received {
    /// What a receive from nobody on that slot returns.
    pub(crate) fn nothing(slot: Slot) -> Received {
        Received { slot, source: Member::NONE, count: 0 }
    }
}

#[inline]
pub(crate) fn received<T>(context: &Context, got: tasuki_message::Received) -> Result<Received> {
    received_values(context, got, size_of::<T>())
}

/// Counts what was received in values of `size` bytes.
#[inline]
pub(crate) fn received_values(
    context: &Context,
    got: tasuki_message::Received,
    size: usize,
) -> Result<Received> {
    let (slot, source, size) = (Slot(got.slot as usize), Member(got.source.0), size.max(1) as u64);
    if !got.len.is_multiple_of(size) {
        return Err(context.partial_value(got, size));
    }
    Ok(Received { slot, source, count: (got.len / size) as usize })
}

pub(crate) fn bytes<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}
