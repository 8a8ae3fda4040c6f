//! Reduction operations.

pub(crate) mod any_order;
pub(crate) mod bitwise;
pub(crate) mod min_max_loc;
pub(crate) mod reduce_op;
