//! Calls that all members of a group make together.

pub mod algorithm;
mod barrier;
mod bcast;
mod communicator;
mod fuzzy;
mod gather;
mod link;
mod meeting;
mod reduce;
pub mod shape;
mod stages;
mod tree;

pub use communicator::Communicator;
pub use fuzzy::{FUZZY_MAX, FuzzyBarrier};
pub use meeting::{Agreement, Meeting};
pub use reduce::Combine;
