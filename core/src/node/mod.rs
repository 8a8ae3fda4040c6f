//! What the ranks of one node share besides memory: a node state that says who is there, sleeps, waits or died.

pub mod node_state;
pub mod park;
pub mod request_slot;
pub mod shared_copy;
pub mod waiters;
