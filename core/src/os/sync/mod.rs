//! System calls by which threads of several processes wait for each other and order their accesses.

pub mod futex;
pub mod membarrier;
