//! What collective calls take and return: requests, reduction operations, plans that are moved on in chunks, fuzzy
//! barriers, and neighbourhoods.
//!
//! The calls are methods of [`Communicator`](crate::Communicator), [`Cartesian`](crate::Cartesian) and
//! [`Neighbourhood`].

// The documentation lists the methods in the order of the modules.
pub(crate) mod blocking;
pub(crate) mod reduce_buffers;

pub(crate) mod nonblocking;

pub(crate) mod plan;

pub(crate) mod block_counts;
pub(crate) mod blocks;
pub(crate) mod chunked_plan;
pub(crate) mod exchange_buffers;
pub(crate) mod fuzzy_barrier;
pub(crate) mod gather_buffers;
pub(crate) mod owned_buffers;
pub(crate) mod plan_source;

pub(crate) mod cartesian;
pub(crate) mod dims_create;
pub(crate) mod neighbourhood;

pub use crate::data::{Data, OwnedValues};
pub use crate::members::Members;
pub use crate::reduction::any_order::AnyOrder;
pub use crate::reduction::bitwise::{And, Bool, Or, Xor};
pub use crate::reduction::min_max_loc::{MaxLoc, MinLoc, ValueLoc};
pub use crate::reduction::reduce_op::{Complex, Max, MaxAbs, Min, MinAbs, Product, ReduceOp};
pub use crate::split::{Split, SplitBy};
pub use block_counts::{BlockCount, BlockCounts};
#[doc(no_inline)]
pub use blocks::{Blocks, Uneven};
pub use chunked_plan::ChunkedPlan;
pub use exchange_buffers::{EqualBlocks, ExchangeBuffers, ScatterBlocks, ScatterTarget};
pub use fuzzy_barrier::FuzzyBarrier;
pub use gather_buffers::GatherBuffers;
pub use neighbourhood::Neighbourhood;
pub use nonblocking::CollectiveRequest;
pub use owned_buffers::{OwnedBlocks, OwnedEqualBlocks, OwnedGather, OwnedScatter, OwnedScatterTarget};
pub use plan::{PlanReduceOp, quiesce};
pub use plan_source::PlanSource;
pub use reduce_buffers::ReduceBuffers;
