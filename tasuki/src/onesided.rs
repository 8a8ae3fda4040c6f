//! Access to the memory of other ranks: global addresses, registered buffers, operations under way and their order,
//! atomic operations, and signals of other ranks, with and without a payload.
//!
//! The calls are methods of [`Job`](crate::Job); [`Array`](crate::Array) and [`GlobalPtr`](crate::GlobalPtr) name the
//! memory.

pub use crate::command::Effect;
pub use crate::job_info::bootstrap_memory;
pub use crate::memory::accumulate::Accumulable;
pub use crate::memory::array::{Local, LocalArray, MemberArray, OfMembers, Symmetric};
pub use crate::memory::atomic_op::AtomicOp;
pub use crate::memory::pointer::{GlobalSlice, GlobalStrided};
pub use crate::memory::registered::{RawRegistration, Registered};
pub use crate::memory::transfer_request::{TransferRequest, TransferValue};
pub use crate::memory::word::Word;
pub use crate::payload_signal::{PayloadReader, PayloadSignal, PayloadWriter};
pub use crate::reduction::reduce_op::BuiltinOp;
pub use crate::remote_signal::RemoteSignal;
pub use crate::trigger::Trigger;
#[doc(inline)]
pub use tasuki_core::engine::{After, Handle};
#[doc(inline)]
pub use tasuki_core::segment::GlobalAddress;
