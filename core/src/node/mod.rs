//! State that the ranks of one node share besides registered memory: which ranks have joined, sleep, wait or have died;
//! park lines; slots for owner requests; copies that several ranks share.

pub mod node_state;
pub mod park;
pub mod request_slot;
pub mod shared_copy;
pub mod waiters;
