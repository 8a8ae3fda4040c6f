//! Calls that all members of a group make together.

#![warn(clippy::print_stdout)]
#![forbid(unsafe_code)]

mod agreement;
mod alltoall;
mod barrier;
mod bcast;
mod communicator;
mod fuzzy;
mod gather;
mod habit;
mod lengths;
mod link;
mod meeting;
mod neighbourhood;
mod nonblocking;
mod notices;
mod offered;
mod outgoing;
mod partners;
mod plan;
mod reduce;
mod roll;
mod scan;
mod scatter;
mod showing;
mod stages;
mod tree;
mod uneven;

pub use communicator::Communicator;
pub use fuzzy::{FUZZY_MAX, FuzzyBarrier};
pub use meeting::{Agreement, Meeting};
pub use neighbourhood::Neighbourhood;
pub use nonblocking::{Combiner, Started};
pub use plan::{Combining, Passed, Passing, Plan};
pub use reduce::{Combine, Combines};
