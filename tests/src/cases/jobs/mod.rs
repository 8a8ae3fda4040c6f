//! Cases of whole ranks: their threads, their child processes, their sleep, and several jobs in one
//! process.

pub mod child_processes;
pub mod concurrent_threads;
pub mod idle_processor_time;
pub mod lost_wakeups;
pub mod several_jobs;
pub mod sleeping_ranks;
pub mod tracing;
