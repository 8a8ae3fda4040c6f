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
/// Which earlier operations one waits for.
///
/// ```
/// use tasuki::Request;
/// use tasuki::onesided::After;
/// tasuki::local(2, |job| {
///     let (data, ready, peer) = (job.alloc::<u64>(100)?, job.alloc::<u64>(1)?, job.rank_after(1));
///     let put = job.iput(data.on(peer), vec![7; 100], After::Nothing)?;
///     job.istore(ready.on(peer), 1, After::Exact(put.handle()))?.wait()?; // after the values
///     while job.load(ready.pointer())? == 0 {}
///     assert_eq!(data.get(99)?, 7);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::engine::After;
/// The name of an operation, for others that start after it.
///
/// ```
/// use tasuki::Request;
/// use tasuki::onesided::{After, Handle};
/// tasuki::local(1, |job| {
///     let word = job.alloc::<u64>(1)?;
///     let last: Handle = job.istore(word.pointer(), 1, After::Nothing)?.handle();
///     job.istore(word.pointer(), 2, After::Prefix(last))?.wait()?; // after that one and all before it
///     assert_eq!(word.get(0)?, 2);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::engine::Handle;
/// Where a byte is, without the type of its value.
///
/// ```
/// use tasuki::onesided::GlobalAddress;
/// tasuki::local(2, |job| {
///     let table = job.alloc::<u64>(4)?;
///     let (first, third): (GlobalAddress, _) = (table.on(job.rank_after(1)).address(), table.on(job.rank_after(1)).at(2));
///     assert_eq!((first.rank(), first.add(16)), (job.rank_after(1), third.address()));
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::segment::GlobalAddress;
