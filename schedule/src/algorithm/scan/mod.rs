//! Scans: each rank gets the combined values of all ranks up to it (inclusive), or before it (exclusive).

pub(super) mod doubling;
pub(super) mod tree;
