//! Blocking collective calls by messages: used for the first calls of a kind, and for all calls without a compiled
//! schedule.

mod alltoall;
mod barrier;
mod bcast;
pub(crate) mod channel;
mod gather;
mod knomial_tree;
pub(crate) mod length_check;
pub(crate) mod reduce;
mod scan;
mod scatter;
pub(crate) mod vector;
