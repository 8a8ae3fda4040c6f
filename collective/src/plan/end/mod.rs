//! The end of plans: members that leave, and the memory of dropped plans that others may still reach.

pub(crate) mod deferred_free;
pub(crate) mod departed;
pub(crate) mod shutdown;
