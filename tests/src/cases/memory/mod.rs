//! Cases of global addresses, allocations and registrations.

pub mod addresses;
pub mod arrays_of_members;
pub mod freed_memory;
pub mod large_transfers;
pub mod memory_bounds;
pub mod memory_footprint;
pub mod misuse;
pub mod registered_memory;
pub mod registrations;
