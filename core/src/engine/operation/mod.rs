//! One-sided operations: their kinds, how they are issued, in which order they may start, and the table of unfinished
//! ones.

pub(super) mod fabric_step;
pub(super) mod failures;
pub(super) mod issue;
pub(super) mod kind;
pub(super) mod mapped_copy;
pub(super) mod order;
pub(super) mod set;
pub(super) mod start;
pub(super) mod strided;
pub(super) mod table;
