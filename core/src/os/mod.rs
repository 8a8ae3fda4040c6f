//! The only caller of libc: memory files, mappings, sleeping, copying between processes, processors, sockets.
//!
//! Everything here is thin: one system facility a file, safe where it can be, and no decision taken.

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
