//! Plans whose starts the calling thread runs: an execution on buffers of the plan.
//!
//! Any rank may run a repeating queue, so it needs a lease, bookkeeping, and armed signals. If the node has no helper,
//! only ranks run steps, and a rank that waits can run its own. An execution is then faster. A start runs the steps up
//! to the first that must wait. Any later call of this rank that waits continues from there.

use crate::current_call::CallWord;
use crate::failure::monitor::FailureMonitor;
use crate::plan::aligned_buffer::AlignedBuffer;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use tasuki_core::base::{Cause, Result};
use tasuki_core::engine::executor::{CallBuffers, Execution};
use tasuki_core::engine::owner_lock::{Borrower, Owner, Unavailable, owner_lock};
use tasuki_core::engine::{BufferView, Worker};
use tasuki_core::queue::reduction::SharedOperation;
use tasuki_message::Continuation;
use tasuki_schedule::BufferId;

/// The data of one start of a plan.
pub(crate) struct StartData {
    /// Bytes of this member's data, and of the separate result.
    bytes: [u64; 2],
    operation: SharedOperation,
}

/// The starts of such a plan, as the threads of the rank that continue them see them.
#[derive(Debug)]
pub(crate) struct InCalls {
    worker: Arc<Worker>,
    /// The monitor keeps the plans of its communicator, so they do not keep the monitor.
    monitor: Weak<FailureMonitor>,
    borrower: Borrower<CallState>,
}

/// Makes the communicator fail if the program's operation panics. Steps run in any call of the rank, so the panic may
/// unwind through one that knows nothing of the plan.
struct PanicReport<'p>(&'p InCalls);

impl Drop for PanicReport<'_> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(monitor) = self.0.monitor.upgrade()
        {
            monitor.report_panic(&self.0.worker, CallWord::START);
        }
    }
}

/// The state, as the owner of the plan sees it: between starts the buffers belong to the program.
pub(crate) type InCallsState = Owner<CallState>;

/// The execution of a plan, its buffers, and the progress of its start.
pub(crate) struct CallState {
    execution: Execution,
    buffers: [AlignedBuffer; 2],
    operation: SharedOperation,
    /// True from the begin of a start until its last step has run.
    is_under_way: bool,
}

impl StartData {
    pub(crate) fn new(bytes: [u64; 2], operation: SharedOperation) -> StartData {
        StartData { bytes, operation }
    }

    /// Returns how its values are combined.
    pub(crate) fn operation(&self) -> &SharedOperation {
        &self.operation
    }

    /// Returns the bytes of its buffers.
    pub(crate) fn memory(&self) -> u64 {
        self.bytes.into_iter().map(AlignedBuffer::memory).sum()
    }

    fn make_buffers(&self) -> Result<[AlignedBuffer; 2], Cause> {
        let [data, result] = self.bytes.map(AlignedBuffer::new);
        Ok([data?, result?])
    }
}

impl InCalls {
    /// Makes the starts of such a plan, and its state as the owner sees it. Error: there is no room for its buffers.
    pub(crate) fn new(
        worker: Arc<Worker>,
        monitor: Weak<FailureMonitor>,
        execution: Execution,
        start_data: StartData,
    ) -> Result<(InCalls, InCallsState), Cause> {
        let buffers = start_data.make_buffers()?;
        let operation = start_data.operation;
        let state = CallState { execution, buffers, operation, is_under_way: false };
        let (owner, borrower) = owner_lock(state);
        Ok((InCalls { worker, monitor, borrower }, owner))
    }

    /// Starts the plan, and runs the steps up to the first that must wait. The previous start must be complete.
    #[inline]
    pub(crate) fn start(&self, call_state: &mut InCallsState) -> Result<(), Cause> {
        let _panic_report = PanicReport(self);
        let state = call_state.owned_mut().filter(|state| !state.is_under_way).ok_or_else(broken)?;
        state.is_under_way = true;
        if !self.run_until_blocked(state) {
            call_state.release();
        }
        Ok(())
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.borrower.is_owned()
    }

    /// Returns true if no step will run any more: the start is complete, or a panic has ended it.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_over() || self.borrower.is_poisoned()
    }

    /// Returns true if a panic has ended its steps.
    pub(crate) fn is_broken(&self) -> bool {
        self.borrower.is_poisoned()
    }

    /// Returns when the start is complete.
    #[inline]
    pub(crate) fn wait(&self, call: &dyn Fn() -> String) -> Result<()> {
        let _panic_report = PanicReport(self);
        while !self.is_over() {
            match self.borrower.try_lock() {
                Ok(mut guard) => {
                    guard.value().run(|execution, buffers| {
                        self.worker.execute(execution, buffers, call).map(|()| true)
                    })?;
                    guard.give_back();
                }
                Err(Unavailable::Owned) => {}
                Err(Unavailable::Locked) => self.worker.pause(), // another thread runs steps for a moment
                Err(Unavailable::Poisoned) => return Err(self.worker.fault(broken(), call)),
            }
        }
        Ok(())
    }

    /// Ends the start, because its communicator has failed: no step runs any more, and so no operation of the program,
    /// which would surprise it in a later call. Returns when no other thread runs a step.
    pub(crate) fn abandon(&self) {
        loop {
            match self.borrower.try_lock() {
                Ok(guard) => return guard.poison(),
                Err(Unavailable::Locked) => self.worker.pause(),
                Err(Unavailable::Owned | Unavailable::Poisoned) => return,
            }
        }
    }

    /// Runs steps that need not wait. Returns true if the start is complete.
    pub(crate) fn test(&self, call: &dyn Fn() -> String) -> Result<bool> {
        let _panic_report = PanicReport(self);
        match self.borrower.try_lock() {
            Ok(mut guard) => {
                self.worker.test_execution(&guard.value().execution, call)?;
                let is_over = self.run_until_blocked(guard.value());
                if is_over {
                    guard.give_back();
                } else if let Some(cause) = guard.value().execution.take_failure() {
                    return Err(self.worker.fault(cause, call));
                }
                Ok(is_over)
            }
            Err(Unavailable::Owned) => Ok(true),
            Err(Unavailable::Locked) => Ok(false),
            Err(Unavailable::Poisoned) => Err(self.worker.fault(broken(), call)),
        }
    }

    /// Runs the steps up to the first that must wait. Returns true if all have run.
    #[inline]
    fn run_until_blocked(&self, state: &mut CallState) -> bool {
        let Ok(is_over) = state
            .run(|execution, buffers| Ok::<_, Infallible>(self.worker.run_until_blocked(execution, buffers)));
        is_over
    }
}

/// Returns true if a panic of the program's operation has ended a start while the owner ran it.
#[inline]
pub(crate) fn is_broken(call_state: &InCallsState) -> bool {
    call_state.owned().is_some_and(|state| state.is_under_way)
}

/// Sets the tag of the next starts.
pub(crate) fn set_tag(call_state: &mut InCallsState, tag: u32) {
    call_state.owned_mut().into_iter().for_each(|state| state.execution.begin_call(0, tag));
}

#[cold]
pub(crate) fn broken() -> Cause {
    let text = "the operation of this plan has panicked, so the plan cannot be used any more: drop it, and recreate \
                the communicator";
    Cause::Program(text.into())
}

impl Continuation for InCalls {
    fn can_resume(&self) -> bool {
        // False while another thread runs the steps.
        self.borrower.try_lock().is_ok_and(|mut guard| guard.value().execution.can_continue())
    }

    fn is_under_way(&self) -> bool {
        self.borrower.try_lock().is_ok()
    }

    fn resume(&self) {
        let _panic_report = PanicReport(self);
        if let Ok(mut guard) = self.borrower.try_lock() {
            if self.run_until_blocked(guard.value()) {
                guard.give_back();
            }
            self.worker.wake_own_threads();
        }
    }
}

impl CallState {
    /// Returns one of the two buffers that the program uses.
    #[inline]
    pub(crate) fn buffer(&self, buffer: BufferId) -> &[u8] {
        self.buffers[buffer.index()].bytes()
    }

    #[inline]
    pub(crate) fn buffer_mut(&mut self, buffer: BufferId) -> &mut [u8] {
        self.buffers[buffer.index()].bytes_mut()
    }

    /// Calls `run` with the execution and the buffers. Returns true if `run` does: then all steps have run.
    #[inline]
    fn run<E>(
        &mut self,
        mut run: impl FnMut(&mut Execution, &CallBuffers<'_>) -> std::result::Result<bool, E>,
    ) -> std::result::Result<bool, E> {
        let CallState { buffers: [data, result], operation, .. } = self;
        let operation = operation.borrow(|operator| &**operator);
        let buffers = [BufferView::of_mut(data.bytes_mut()), BufferView::of_mut(result.bytes_mut())];
        let buffers = CallBuffers { buffers, operation };
        let is_over = run(&mut self.execution, &buffers)?;
        self.is_under_way = !is_over;
        Ok(is_over)
    }
}
