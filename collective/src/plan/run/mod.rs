//! Starts of plans that this rank advances in its own calls: plans without a helper, and plans in chunks.

pub(crate) mod chunked;
pub(crate) mod in_calls;
