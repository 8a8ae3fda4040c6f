//! Starts of plans that this rank advances in its own calls: plans without a helper, and chunked plans.

pub(crate) mod chunked;
pub(crate) mod in_calls;
