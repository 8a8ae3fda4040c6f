//! Memory of this process and of others: available memory, memory files, mappings, copies.

pub mod available_memory;
pub mod copy;
pub mod mapping;
pub mod memfile;
pub mod prefetch;
pub mod process_vm;
pub mod store_policy;
