//! The values that a call carries itself.

use crate::{Pod, Result};
use tasuki_core::base::Cause;
use tasuki_core::queue::handler_call::Args;
use tasuki_core::queue::inline_data::{INLINE_BYTES, Inline};

/// The encoding of a value that a call carries.
pub(crate) fn inline<A: Pod>(args: &A) -> Result<Args, Cause> {
    let bytes = bytemuck::bytes_of(args);
    Inline::of(bytes).map(Args::Inline).ok_or_else(|| too_many(bytes.len()))
}

pub(super) fn too_many(bytes: usize) -> Cause {
    let text = format!("{bytes} bytes: a call carries at most {INLINE_BYTES}; pass a buffer (call_with)");
    Cause::Argument(text)
}
