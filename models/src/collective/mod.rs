//! Calls that all members of a group make together.

mod barrier;
mod bcast;
mod communicator;
mod gather;
mod link;
mod meeting;
mod reduce;
mod tree;

pub use communicator::Communicator;
pub use meeting::{Agreement, Meeting};
pub use reduce::Combine;
