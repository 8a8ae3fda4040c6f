//! The items that most programs use: the types of the crate root but [`Result`](crate::Result), so that `Result<T, E>`
//! keeps its usual meaning, and a few more.

#[doc(no_inline)]
pub use crate::collective::{Max, Min, Product};
#[doc(no_inline)]
pub use crate::onesided::{After, AtomicOp, Trigger};
#[doc(no_inline)]
pub use crate::{
    Array, Blocks, Cartesian, Command, Communicator, Error, ErrorKind, GlobalPtr, Handler, HandlerCx,
    Handlers, Job, Member, Plan, Pod, Queue, Rank, Received, Request, Scope, Signal, Sim, Slot, Sum, Uneven,
    Zeroable, block_on, dims_create, wait_all, wait_any,
};
