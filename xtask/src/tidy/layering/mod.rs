//! Rules about what may depend on what.

pub(crate) mod atomics_home;
pub(crate) mod bench_reach;
pub(crate) mod dependency_edges;
pub(crate) mod file_cycles;
pub(crate) mod knows_no_collective;
pub(crate) mod layers;
pub(crate) mod libc_home;
pub(crate) mod test_targets;
