//! What the bindings to C and Fortran need beyond the public interface.

use crate::message::{ChannelReceiver, ChannelSender};
use crate::nicam::{self, RemoteFlag};
use crate::onesided::{GlobalAddress, Handle, RemoteSignal};
use crate::start::run_from_environment;
use crate::{Array, Communicator, GlobalPtr, Handlers, Job, Pod, Result};
use std::sync::Arc;
use std::task::{Poll, Waker};

pub use tasuki_core::base::ValueKind;
pub use tasuki_core::engine::{AwaitedCondition, BufferView, RevocableBuffer, StrideLayout, StridedView};
pub use tasuki_core::os::process::{at_exit, end_process};
pub use tasuki_core::queue::reduction::{Operator, ReduceOperation};
pub use tasuki_message::{Context, MessageBuffer, PendingRecv, PendingSend, TypedSlot};

/// Runs `app` like [`main_with`](crate::main_with), and returns its error, which may be printed already.
pub fn run(handlers: &Handlers, app: impl Fn(&Job) -> Result<()> + Sync) -> Result<()> {
    run_from_environment(handlers, app)
}

/// Returns `Ready` if a [`reserve`](ChannelSender::reserve) does not wait. Otherwise `waker` is woken then, as long as
/// `awaited` is kept.
pub fn poll_channel_to<T: Pod>(
    to: &mut ChannelSender<T>,
    awaited: &mut AwaitedCondition,
    waker: &Waker,
) -> Poll<()> {
    to.poll_room(awaited, waker)
}

/// Returns `Ready` if a [`peek`](ChannelReceiver::peek) does not wait. Otherwise `waker` is woken then, as long as
/// `awaited` is kept.
pub fn poll_channel_from<T: Pod, S>(
    from: &mut ChannelReceiver<T, S>,
    awaited: &mut AwaitedCondition,
    waker: &Waker,
) -> Poll<()> {
    from.poll_element(awaited, waker)
}

/// The message context of a communicator.
#[inline(always)]
pub fn messages(communicator: &Communicator) -> &Arc<Context> {
    communicator.messages()
}

/// The communicator inside.
#[inline(always)]
pub fn collective(communicator: &Communicator) -> &tasuki_collective::Communicator {
    communicator.inside()
}

/// Where the values of an array are in this process.
pub fn own_place<T: Pod>(array: &Array<T>) -> *mut T {
    array.place()
}

/// The flag whose first word is there; `set` is raised after each store to it. A flag has four words.
pub fn remote_flag(word: GlobalPtr<u64>, set: RemoteSignal) -> RemoteFlag {
    RemoteFlag::of(word, set)
}

/// Returns the error of a copy by key that the words of a flag tell.
pub fn check_flag_words(job: &Job, words: [u64; 4], call: &str) -> Result<()> {
    nicam::check_words(job, words, call)
}

/// Where a byte of this rank's job memory or registered memory is in this process.
pub fn own_byte(job: &Job, at: GlobalAddress) -> Result<*mut u8> {
    job.worker.own_place(at, 1).map_err(|cause| job.worker.fault(cause, || "query_address".into()))
}

/// The last operation that this rank has issued.
pub fn last_issued(job: &Job) -> Handle {
    job.worker.last_issued()
}

/// Returns true if an operation of this rank, or one before it, is under way. Makes progress.
pub fn is_pending(job: &Job, handle: Handle) -> bool {
    job.worker.is_pending(handle)
}
