//! What collective calls take and return, and the rules that hold for all of them.
//!
//! The calls are methods of [`Communicator`](crate::Communicator), [`Cartesian`](crate::Cartesian) and
//! [`Neighbourhood`].
//!
//! # Rules
//!
//! *Order.* All members of a communicator make the same blocking collective calls, begin the same nonblocking ones and
//! make the same plans, all of these in one order (as MPI-4 section 6.12 demands). Blocking calls match blocking ones
//! only, and nonblocking calls nonblocking ones only. Messages, starts of plans and fuzzy barriers may come anywhere
//! between.
//!
//! *Threads.* One thread of each member at a time makes blocking calls on a communicator or begins nonblocking ones.
//! Threads that make collective calls on their own use a communicator each ([`dup`](crate::Communicator::dup)).
//!
//! *Arguments.* All members pass the same root, the same operation and the same type of values, and the same number of
//! values unless the call takes blocks of different lengths. They may pass different forms, as one in place and another
//! not; the traits of this module list the forms.
//!
//! *Return.* A call returns when this member's values may be reused and its result is there. Other members may not have
//! come yet, unless the result needs their values or the call is a barrier.
//!
//! *Failures.* A call fails if an argument of a member is wrong by itself, such as a root that does not exist or a
//! result of the wrong length; if members disagree about arguments, such as the number of bytes, or are in different
//! calls, or have made different calls before; if a member died or left; if a time limit is reached; if the operation
//! panics. Then the communicator, of any number of members, has failed on all members: calls on it that are active or
//! come later return an error that names the first failure
//! ([`Cause::CommunicatorFailed`](crate::engine::Cause::CommunicatorFailed)).
//! [`recreate`](crate::Communicator::recreate) makes a new communicator.
//!
//! *Errors that change nothing.* After these the communicator goes on, and the call can be made again: too many calls
//! are active ([`Cause::Full`](crate::engine::Cause::Full)); another thread of the rank is in a collective call; a
//! start of the plan is active; ranks are in different calls of the job, which are barriers and allocations, or
//! allocate different values; a member has no room or memory for its part of a plan, a communicator or an allocation,
//! which all members are told.
//!
//! *Members in different calls.* All that a member sends in a call carries a number that depends on the call and on all
//! calls before it. So a member that receives anything from a member in another call returns an error and no value. A
//! member that receives nothing in a call, such as the root of a broadcast, may return before it can know, and gets the
//! error in a later call. Members that only wait for each other find out after a millisecond, two nonblocking calls only if
//! ranks read each other's memory. Not noticed are
//! operations of the program that differ, and different numbers of values in chunked plans that a helper runs.
//!
//! *Members that wait for each other.* Starts of plans and fuzzy barriers may come anywhere between the calls, and a
//! barrier or an allocation of the job beside calls of the world. But any of them may wait for all members. So no two
//! members may each wait for what the other one begins only later: then all get errors. That is found if each of the
//! two waits in the thread that has made the communicator, for one thing, and if ranks read each other's memory; a wait
//! in a call of the job, only against one of the world. Other threads may wait in an order of their own. All else waits
//! for ever, unless there is a time limit ([`Job::set_timeout`](crate::Job::set_timeout)).
//!
//! *Operations* need not commute. Values are combined in the combining order ([`ReduceOp`]), so the bits of a result
//! depend neither on the root nor on the form of the call.
//!
//! # Nonblocking calls
//!
//! The [rules](#rules) hold for them. Members may wait for their calls in any order, and different members in different
//! orders. The call owns its values until it is complete, which it is when this member's part is. It does not wait,
//! except to find the slots of pairs that have none yet. Dropping the request cancels nothing.
//!
//! *Progress.* A call goes on in the calls of its members, each of which moves its own part on ([who makes
//! progress](crate::engine#progress)). Any thread of the rank that makes progress may run the operation, also the one
//! that begins the call; if the operation panics, that thread's call panics, and the communicator fails.
//!
//! *Limits.* Up to 64 calls that use messages may be active on a communicator, and up to 64 of each kind that runs a
//! compiled schedule. One more is an error that begins nothing ([`Cause::Full`](crate::engine::Cause::Full)); so is the
//! 64th call after one that uses messages and is still active. Wait for the oldest call and begin this one again. Calls
//! of one kind that run a compiled schedule run one after the other, in the order in which they began.
//!
//! *Errors* of the call that begins it are wrong arguments, too many active calls, and an earlier failure. The wait
//! returns all others. A member that drops the
//! request and leaves before its part is complete may get errors about messages that were not received, as after a
//! send.
//!
//! # Costs
//!
//! A *kind* of call is a collective with the number and type of its values and the operation that combines them. The
//! first three calls of a kind use messages. The costs that are stated at the calls are those of messages. If the ranks
//! can access each other's memory and are at most 32, later calls of the kind run a schedule that was compiled once:
//! each member copies its values to a place that all can access, and takes its result from the others' places. Calls
//! with blocks of different lengths, and exchanges with neighbours, always use messages.
//!
//! Compiled schedules take up to about 64 MiB for each member and communicator, those of nonblocking calls as much
//! again, for up to 128 kinds of nonblocking calls; further kinds use messages. [`quiesce`] frees them.
//!
//! A nonblocking call costs what the blocking call costs, except that it does not use the network's own barrier and
//! multicast; a few copies of the values on the heap; once about 8 KiB for the slots of each pair that exchanges
//! messages.

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
pub use exchange_buffers::{EqualBlocks, ExchangeBuffers, NeighborBuffers, ScatterBlocks, ScatterTarget};
pub use fuzzy_barrier::FuzzyBarrier;
pub use gather_buffers::GatherBuffers;
pub use neighbourhood::Neighbourhood;
pub use nonblocking::CollectiveRequest;
pub use owned_buffers::{OwnedBlocks, OwnedEqualBlocks, OwnedGather, OwnedScatter, OwnedScatterTarget};
pub use plan::{PlanReduceOp, quiesce};
pub use plan_source::PlanSource;
pub use reduce_buffers::ReduceBuffers;
