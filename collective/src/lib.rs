//! Collective calls: calls that all members of a communicator make together.

#![warn(clippy::print_stdout)]
#![forbid(unsafe_code)]

mod agreed_free;
mod agreement;
mod blocking;
mod cached;
mod call_kind;
mod call_name;
mod communicator;
mod current_call;
mod dissemination;
mod dropped_communicator;
mod fabric_collectives;
mod failure;
mod fuzzy_barrier;
mod group;
mod job_barrier;
mod message_algorithms;
mod neighbourhood;
mod nonblocking;
mod one_call;
mod plan;
mod quiesce;

pub use blocking::vector::{BlockLengths, allocate, reuse};
pub use communicator::Communicator;
pub use failure::job_call::JobCallSignature;
pub use fuzzy_barrier::{FUZZY_MAX, FuzzyBarrier};
pub use job_barrier::{JobBarrier, MinMax};
pub use neighbourhood::Neighbourhood;
pub use nonblocking::StartedCollective;
pub use plan::{ChunkShape, ChunkedRun, Plan, PlanValues};
