//! The slot of a message together with the type of its values.

use tasuki_core::base::ValueKind;

/// A slot, and the type of the values of a message on it. A number alone is a slot for bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypedSlot {
    /// The slot; [`Context::ANY`](crate::Context::ANY) for any slot.
    pub slot: u32,
    /// The type.
    pub kind: ValueKind,
}

impl TypedSlot {
    /// The slot for values of that type.
    #[inline(always)]
    pub fn of<T: 'static>(slot: u32) -> TypedSlot {
        TypedSlot { slot, kind: ValueKind::of::<T>() }
    }
}

impl From<u32> for TypedSlot {
    #[inline(always)]
    fn from(slot: u32) -> TypedSlot {
        TypedSlot { slot, kind: ValueKind::BYTES }
    }
}
