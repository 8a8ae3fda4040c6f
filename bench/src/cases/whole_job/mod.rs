//! Figures of whole jobs: how long they take to start and to end, and what they cost while they wait.

pub(crate) mod idle_time;
pub(crate) mod kill_time;
pub(crate) mod startup;
pub(crate) mod waiting_ranks;
