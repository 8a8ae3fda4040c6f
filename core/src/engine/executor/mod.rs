//! The executor, which runs compiled steps: one representation and one interpreter, with two drivers.
//!
//! | driver | who runs the steps | signals |
//! |---|---|---|
//! | [`Execution`] (`in_call.rs`) | the calling thread | a raise is a store, because one rank only raises each signal |
//! | [`RepeatingQueue`](super::RepeatingQueue) (`command_queue/repeating/in_queue.rs`) | the queue's own rank, in start, wait and test of a plan, under the lease | a raise is an addition, and may run another queue |
//!
//! Both resolve the same [`StepSpec`]s to memory that this process has mapped (`resolved.rs`), and run them by
//! `Worker::run_steps` (`interpreter.rs`). A step of a queue that needs memory out of reach, another rank's help or a
//! record in the trace is run as a command (`command_queue/run`), through the fabric. A helper, other ranks, and the
//! rank in its other waits always run the steps of a queue so.
//!
//! Order: bytes that a step has copied are visible to a rank that sees the signal raised by the step, by release and
//! acquire (SYNC signal-raise), or that sees the step's inline flag (SYNC inline-flag). An inline flag lies in the
//! cache line of its data. The reader reads that line only, and the signal only in a long wait, so the signal's line
//! stays in the writer's cache.

mod call_buffers;
mod exposed_buffer;
mod in_call;
mod interpreter;
mod kernel_copy;
mod operand;
mod pieces;
mod resolved;
mod start_tags;
mod step;
mod step_wait;
mod yield_hint;

pub use call_buffers::{COMBINED_MAX, CallBuffers};
pub use exposed_buffer::{EXPOSED_BYTES, ExposedBuffer};
pub use in_call::Execution;
pub(super) use interpreter::Driver;
pub use pieces::PieceLengths;
pub(super) use resolved::{ResolvedAction, ResolvedStep, ResolvedWait};
pub use step::{FlagSpec, Operand, PerStart, StepAction, StepSpec, WaitSpec};
pub(super) use yield_hint::YieldHint;
