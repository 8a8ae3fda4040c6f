//! Blocking collective calls by messages: the first calls of a kind, and all that have no compiled schedule.

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
