//! What the bindings to C and Fortran need beyond the public interface.

use crate::start::run_from_environment;
use crate::{Communicator, Handlers, Job, Result};
use std::sync::Arc;

pub use tasuki_core::base::ValueKind;
pub use tasuki_core::engine::{BufferView, RevocableBuffer, StrideLayout, StridedView};
pub use tasuki_core::os::process::{at_exit, end_process};
pub use tasuki_core::queue::reduction::{Operator, ReduceOperation};
pub use tasuki_message::{Context, MessageBuffer, PendingRecv, PendingSend, TypedSlot};

/// Runs `app` like [`main`](crate::main()), and returns its error, which may be printed already.
pub fn run(app: impl Fn(&Job) -> Result<()> + Sync) -> Result<()> {
    run_from_environment(&Handlers::new(), app)
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
