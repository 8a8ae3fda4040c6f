//! Wrappers of Linux system calls. No other folder calls libc.
//!
//! Each file wraps one facility: memory files, mappings, futexes, copies between processes, processors, sockets. The
//! wrappers are safe where that is possible, and leave all decisions to their callers.

pub mod clock;
pub mod disabled_features;
mod memory;
pub mod poll;
pub mod process;
pub mod random;
pub mod simd;
pub mod socket;
mod sync;

pub use memory::{available_memory, copy, mapping, memfile, prefetch, process_vm, store_policy};
pub use process::{affinity, child_status};
pub use sync::{futex, membarrier};
