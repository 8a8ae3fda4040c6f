//! What collective calls take and return: requests, reduction operations, plans that are moved on in chunks, fuzzy
//! barriers, and neighbourhoods.
//!
//! The calls are methods of [`Communicator`](crate::Communicator).

// The documentation lists the methods in the order of the modules.
pub(crate) mod blocking;

pub(crate) mod nonblocking;

pub(crate) mod plan;

pub(crate) mod chunked_plan;
pub(crate) mod fuzzy_barrier;
pub(crate) mod vector;

pub(crate) mod neighbourhood;

pub use crate::members::Members;
pub use crate::reduction::any_order::AnyOrder;
pub use crate::reduction::bitwise::{And, Bool, Or, Xor};
pub use crate::reduction::min_max_loc::{MaxLoc, MinLoc, ValueLoc};
pub use crate::reduction::reduce_op::{Complex, Max, MaxAbs, Min, MinAbs, Product, ReduceOp};
pub use chunked_plan::ChunkedPlan;
pub use fuzzy_barrier::FuzzyBarrier;
pub use neighbourhood::Neighbourhood;
pub use nonblocking::CollectiveRequest;
pub use plan::PlanReduceOp;
