//! Calls that all members of a group make together.

pub mod algorithm;
mod alltoall;
mod barrier;
mod bcast;
mod communicator;
mod fuzzy;
mod gather;
mod habit;
mod link;
mod meeting;
pub mod names;
mod neighbours;
mod nonblocking;
mod notices;
mod offered;
mod plan;
mod reduce;
mod roll;
mod scan;
mod scatter;
pub mod selection;
pub mod shape;
mod stages;
mod tree;
mod uneven;

pub use algorithm::Algorithm;
pub use communicator::Communicator;
pub use fuzzy::{FUZZY_MAX, FuzzyBarrier};
pub use meeting::{Agreement, Meeting};
pub use neighbours::{Edge, Got, Neighbours};
pub use nonblocking::{Combiner, Started};
pub use plan::{Combining, Plan};
pub use reduce::Combine;
pub use selection::{Costs, Forced, Measured, Selection};
pub use shape::{Counts, DATA, Operation, Placement, RESULT, Shape};
