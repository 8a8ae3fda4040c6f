//! The end of plans: members that leave, alone or together.

pub(crate) mod departed;
pub(crate) mod shutdown;
