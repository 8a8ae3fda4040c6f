//! The only caller of libc: memory files, mappings, sleeping, copying between processes, processors, sockets.
//!
//! Everything here is thin: one system facility a file, safe where it can be, and no decision taken.

pub mod children;
pub mod clock;
pub mod copy;
pub mod denied;
pub mod futex;
pub mod mapping;
pub mod membarrier;
pub mod memfile;
pub mod memory;
pub mod outward;
pub mod poll;
pub mod prefetch;
pub mod process;
pub mod process_vm;
pub mod processors;
pub mod random;
pub mod socket;
pub mod wide;
