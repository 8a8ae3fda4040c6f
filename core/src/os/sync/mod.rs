//! System calls that let threads of several processes wait for each other and order their memory accesses.

pub mod futex;
pub mod membarrier;
