//! Executions: compiled steps that a rank runs on its own thread, in a collective call or in the start and wait of a
//! plan.
#![allow(unsafe_code)]
//! Unsafe: copies between ranges of job memory and the caller's own memory. The fabric resolved the job memory when
//! the execution was made, and keeps it mapped while the fabric lives. The caller lends its own memory for the call.
//!
//! A [`RepeatingQueue`](super::RepeatingQueue) may be run by any rank while its owner computes, so it needs a lease,
//! shared state and armed signals. An execution is run by one thread and needs none of them: its steps run one after
//! the other, and when one has to wait, the call waits. [`Operand::CallBuffers`] names memory that the call lends; no
//! other rank reaches it. Each signal is raised by one rank only, which knows its value, so a raise is a store.
//!
//! Order: bytes that a step has copied are visible to a rank that sees the signal raised by the step, by release and
//! acquire (SYNC signal-raise), or that sees the step's inline flag (SYNC inline-flag). An inline flag lies in the
//! cache line of its data. The reader reads that line only, and the signal only in a long wait, so the signal's line
//! stays in the writer's cache.

mod call_buffers;
mod exposed_buffer;
mod kernel_copy;
mod step;
mod step_wait;
mod yield_hint;

pub use call_buffers::{COMBINED_MAX, CallBuffers, CombineWith};
pub use exposed_buffer::{EXPOSED_BYTES, ExposedBuffer};
pub use step::{FlagSpec, Operand, PerStart, StepAction, StepSpec, WaitSpec};
pub(super) use yield_hint::YieldHint;

use super::sync::inline_flag::InlineFlag;
use super::wait::condition::Condition;
use super::worker::Worker;
use crate::base::{Cause, Rank, Result};
use crate::fabric::{DirectCell, DirectLine, SignalCell, SignalLine, certainly_reached};
use crate::node::park::WakeMode;
use crate::os::{copy, prefetch, store_policy};
use crate::segment::GlobalAddress;
use exposed_buffer::{Exposure, ExposureTarget};
use kernel_copy::KernelCopy;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// Most bytes that are prefetched for a step: they must fit into the first-level cache beside other data.
const PREFETCH_BYTES_MAX: usize = 16 << 10;

/// Compiled steps. Each call runs the same number of them; after the last step comes the first again. There may be
/// several variants of the steps of a call, such as one for each root.
#[derive(Debug)]
pub struct Execution {
    /// The steps of all calls of the first variant, then those of the next.
    steps: Box<[ResolvedStep]>,
    /// Values of signals when they were last read. A value often shows that a buffer has been free for some calls
    /// already; then the signal is not read again, and its line stays in the writer's cache.
    seen: Box<[u64]>,
    per_call: usize,
    /// Number of steps of a variant.
    per_variant: usize,
    /// Index of the next step.
    next: usize,
    /// End of the steps of the call that is next or under way.
    end: usize,
    pass: u64,
    /// Where, and to whom, this rank exposes the first buffer of each call.
    exposes: Option<ExposureTarget>,
    /// Why a step failed. Taken by the call that returns the error.
    failure: Option<Cause>,
}

#[derive(Debug)]
struct ResolvedStep {
    wait: Option<ResolvedWait>,
    action: ResolvedAction,
    flag: Option<ResolvedFlag>,
    raises: Box<[ResolvedRaise]>,
    /// The last step of a call, and it provides data to others: running it sets the yield hint.
    sets_yield_hint: bool,
}

#[derive(Debug)]
struct ResolvedWait {
    cell: DirectCell,
    /// Index in [`Execution::seen`] of the value last read.
    seen: usize,
    count: PerStart,
    by: Rank,
    flag: Option<ResolvedFlag>,
}

/// An inline flag, resolved to its word.
#[derive(Clone, Copy, Debug)]
struct ResolvedFlag {
    word: NonNull<InlineFlag>,
    number: PerStart,
}

#[derive(Debug)]
struct ResolvedRaise {
    cell: DirectCell,
    count: PerStart,
    rank: Rank,
    mode: WakeMode,
}

/// An action with resolved operands.
#[derive(Debug)]
enum ResolvedAction {
    Nothing,
    /// From, to, and the number of bytes. True if the step also raises a signal, so that another rank probably reads
    /// the bytes next.
    Copy(ResolvedOperand, ResolvedOperand, usize, bool),
    /// From, the buffer of the call and the offset in it, and the number of bytes. True if the values at the first
    /// operand are the left ones.
    Combine(ResolvedOperand, (usize, u64), usize, bool),
    /// A copy from or into a buffer that another rank exposes.
    KernelCopy(KernelCopy),
}

#[derive(Clone, Copy, Debug)]
enum ResolvedOperand {
    Mapped(NonNull<u8>),
    CallBuffers(usize, u64),
}

// SAFETY: a pointer to shared memory that all threads of the process may use, and that stays mapped while the fabric
// lives.
unsafe impl Send for ResolvedOperand {}
// SAFETY: a pointer to shared memory that all threads of the process may use, and that stays mapped while the fabric
// lives.
unsafe impl Sync for ResolvedOperand {}
// SAFETY: a pointer to an atomic in shared memory that stays mapped while the fabric lives.
unsafe impl Send for ResolvedFlag {}
// SAFETY: a pointer to an atomic in shared memory that stays mapped while the fabric lives.
unsafe impl Sync for ResolvedFlag {}

impl ResolvedStep {
    /// Returns true if the step does nothing: it only makes all variants equally long.
    fn is_padding(&self) -> bool {
        self.wait.is_none() && matches!(self.action, ResolvedAction::Nothing) && self.raises.is_empty()
    }

    /// Returns true if the step copies data to job memory and raises signals that announce them.
    fn provides_data(&self) -> bool {
        matches!(self.action, ResolvedAction::Copy(_, ResolvedOperand::Mapped(_), _, has_raise) if has_raise)
    }
}

impl ResolvedWait {
    /// Returns true if the condition is met. Reads the signal only if its last seen value does not show that.
    #[inline(always)]
    fn is_over(&self, pass: u64, seen: &mut [u64]) -> bool {
        if self.flag.is_some() {
            return self.is_over_now(pass);
        }
        let (count, seen) = (self.count.in_pass(pass), &mut seen[self.seen]);
        certainly_reached(*seen, count) || {
            *seen = self.cell.counter().load(Ordering::Acquire); // SYNC signal-raise
            certainly_reached(*seen, count)
        }
    }

    /// Returns true if the condition is met. Always reads the flag or the signal.
    #[inline(always)]
    fn is_over_now(&self, pass: u64) -> bool {
        if let Some(flag) = &self.flag {
            return flag.word().is_set_to(flag.number.in_pass(pass));
        }
        certainly_reached(self.cell.counter().load(Ordering::Acquire), self.count.in_pass(pass)) // SYNC signal-raise
    }

    fn condition(&self, pass: u64) -> Condition {
        Condition::Signal(SignalCell::Direct(self.cell), self.count.in_pass(pass), Some(self.by))
    }
}

impl ResolvedFlag {
    #[inline(always)]
    fn word(&self) -> &InlineFlag {
        // SAFETY: an aligned word of job memory that stays mapped while the fabric lives. Executions access it only
        // as an atomic.
        unsafe { self.word.as_ref() }
    }
}

impl Execution {
    /// Moves on to the steps of the next call, which follow in the first variant.
    #[inline(always)]
    fn advance(&mut self) {
        while self.end > self.per_variant {
            self.end -= self.per_variant; // the same call in the first variant
        }
        let is_last = self.end == self.per_variant;
        self.next = if is_last { 0 } else { self.end };
        self.end = self.next + self.per_call;
        self.pass += u64::from(is_last);
    }

    /// Reads the signal that the next call waits for first, if its first step only waits for a free buffer. The
    /// buffer is mostly free by now. The signal's line has to come from a far processor, and now no step waits for
    /// it.
    #[inline(always)]
    fn look_ahead(&mut self) {
        if let Some(ResolvedStep { wait: Some(wait), action: ResolvedAction::Nothing, .. }) =
            self.steps.get(self.next)
            && wait.flag.is_none()
        {
            wait.is_over(self.pass, &mut self.seen);
        }
    }

    /// Makes the next call, of which no step has run yet, use `variant`. Without this call it uses variant 0.
    #[inline(always)]
    pub fn choose_variant(&mut self, variant: usize) {
        debug_assert!(
            variant == 0 || (variant + 1) * self.per_variant <= self.steps.len(),
            "a variant that exists"
        );
        self.next += variant * self.per_variant;
        self.end += variant * self.per_variant;
    }

    /// Returns the variant of the call whose steps are next.
    fn variant(&self) -> u64 {
        (self.next / self.per_variant.max(1)) as u64
    }

    /// Returns true if the next step need not wait.
    pub fn can_continue(&self) -> bool {
        let wait = self.steps.get(self.next).and_then(|step| step.wait.as_ref());
        wait.is_none_or(|wait| wait.is_over_now(self.pass))
    }
}

impl Worker {
    /// Returns true if this rank can run executions: it reaches signals of others by stores, and records no trace.
    pub fn can_execute(&self) -> bool {
        self.reaches_words() && self.recorder().is_none()
    }

    /// Makes an execution of the steps of `calls` calls, each with the same number of steps; after the last of these
    /// calls the first one follows again. `variants` are different steps for the same calls, for example one variant
    /// for each root. In each call, this rank must wait for the same signals in all variants, and raise the same
    /// ones. Returns `None` if this rank does not reach by loads and stores all memory and signals that the steps
    /// name, or if it records a trace.
    ///
    /// Since the members agreed on the steps, nobody may have raised a signal that this rank raises. `exposes`: the
    /// address of an [`ExposedBuffer`], and the rank to which this rank exposes the first buffer of each call. The
    /// steps of a call must then end only when that rank has finished with the buffer.
    pub fn make_execution(
        &self,
        variants: &[Vec<StepSpec>],
        calls: usize,
        exposes: Option<(GlobalAddress, Rank)>,
    ) -> Result<Option<Execution>, Cause> {
        if !self.can_execute() {
            return Ok(None);
        }
        let per_variant = variants.first().map_or(0, Vec::len);
        if variants.iter().any(|variant| variant.len() != per_variant) {
            return Err(Cause::Bug("variants of a call that differ in their number of steps".into()));
        }
        let specs = || variants.iter().flatten();
        let mut found = Vec::with_capacity(per_variant * variants.len());
        let mut signals: Vec<u32> = specs().filter_map(|spec| Some(spec.wait?.signal)).collect();
        signals.sort_unstable();
        signals.dedup();
        for spec in specs() {
            let Some(step) = self.find_step(spec, &signals)? else { return Ok(None) };
            found.push(step);
        }
        let stands = |&signal: &u32| self.count_of_own(signal);
        let seen = signals.iter().map(stands).collect();
        let per_call = per_variant / calls;
        for call in found.chunks_mut(per_call.max(1)) {
            let last = call.iter_mut().rfind(|step| !step.is_padding());
            last.into_iter().for_each(|step| step.sets_yield_hint = step.provides_data());
        }
        let exposes = exposes
            .map(|(word, to)| Ok(ExposureTarget { word: self.exposed_buffer_at(word)?, to }))
            .transpose()?;
        let (steps, failure) = (found.into(), None);
        Ok(Some(Execution {
            steps,
            seen,
            per_call,
            per_variant,
            next: 0,
            end: per_call,
            pass: 0,
            exposes,
            failure,
        }))
    }

    fn find_step(&self, spec: &StepSpec, signals: &[u32]) -> Result<Option<ResolvedStep>, Cause> {
        let wait = match spec.wait {
            None => None,
            Some(WaitSpec { signal, count, by, flag }) => match self.fabric().own_signal(signal)? {
                SignalCell::Direct(cell) => {
                    let seen = signals.partition_point(|&other| other < signal);
                    Some(ResolvedWait { cell, seen, count, by, flag: self.find_flag(flag)? })
                }
                SignalCell::Via(_) => return Ok(None),
            },
        };
        let mut raises = Vec::with_capacity(spec.raises.len());
        for &(signal, PerStart { first, more }) in &spec.raises {
            let SignalLine::Direct(line) = self.fabric().line(signal)? else { return Ok(None) };
            let stood = line.cell().counter().load(Ordering::Acquire); // SYNC signal-raise
            let count = PerStart { first: stood.wrapping_add(first), more };
            raises.push(ResolvedRaise { cell: line.cell(), count, rank: signal.rank(), mode: line.mode() });
        }
        let Some(action) = self.find_action(spec.action, !spec.raises.is_empty())? else { return Ok(None) };
        let flag = self.find_flag(spec.flag)?;
        Ok(Some(ResolvedStep { wait, action, flag, raises: raises.into(), sets_yield_hint: false }))
    }

    fn find_flag(&self, flag: Option<FlagSpec>) -> Result<Option<ResolvedFlag>, Cause> {
        let Some(FlagSpec { at, number }) = flag else { return Ok(None) };
        let place = self
            .place(at, size_of::<InlineFlag>() as u64)
            .filter(|place| place.cast::<InlineFlag>().is_aligned());
        let unseen = || Cause::Bug("an inline flag outside of mapped memory".into());
        Ok(Some(ResolvedFlag { word: place.ok_or_else(unseen)?.cast(), number }))
    }

    fn place(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        self.fabric().mapped(at, len).or_else(|| self.fabric().map(at, len))
    }

    fn find_action(&self, action: StepAction, has_raise: bool) -> Result<Option<ResolvedAction>, Cause> {
        let place = |operand: Operand, len: u64| match operand {
            Operand::CallBuffers(buffer, at) => Some(ResolvedOperand::CallBuffers(buffer, at)),
            Operand::At(at) => self.place(at, len).map(ResolvedOperand::Mapped),
            Operand::ExposedBuffer(..) => None,
        };
        if let Some(kernel_copy) = KernelCopy::of(self, action)? {
            return Ok(Some(ResolvedAction::KernelCopy(kernel_copy)));
        }
        Ok(match action {
            StepAction::Nothing | StepAction::Copy(_, _, 0) | StepAction::Combine(_, _, 0, _) => {
                Some(ResolvedAction::Nothing)
            }
            StepAction::Copy(from, to, len) => match (place(from, len), place(to, len)) {
                (Some(from), Some(to)) => Some(ResolvedAction::Copy(from, to, len as usize, has_raise)),
                _ => None,
            },
            StepAction::Combine(from, Operand::CallBuffers(buffer, at), len, in_front) => place(from, len)
                .map(|from| ResolvedAction::Combine(from, (buffer, at), len as usize, in_front)),
            StepAction::Combine(..) => return Err(Cause::Bug("a call combines in its own memory".into())),
        })
    }

    /// Runs the remaining steps of one call. Waits where a step must wait, and makes progress meanwhile. Fails if a
    /// rank died, or if a rank that a step waits for has left or can no longer be reached. After an error the
    /// execution cannot be used again.
    #[inline]
    pub fn execute(
        &self,
        execution: &mut Execution,
        call_buffers: &CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let exposure =
            execution.exposes.map(|target| Exposure::of(self, target, execution.variant(), call_buffers));
        while !self.run_until_blocked(execution, call_buffers) {
            self.wait_or_fail(execution, call)?;
        }
        exposure.into_iter().for_each(Exposure::end);
        Ok(())
    }

    /// Waits for the condition of the next step, or returns the error if that step has failed.
    #[cold]
    #[inline(never)]
    fn wait_or_fail(&self, execution: &mut Execution, call: &dyn Fn() -> String) -> Result<()> {
        match execution.failure.take() {
            Some(cause) => Err(self.fault(cause, call)),
            None => self.wait_for_step(&execution.steps[execution.next..execution.end], execution.pass, call),
        }
    }

    /// Runs the remaining steps of one call up to one that must wait or that fails. Returns true if all have run; the
    /// next steps then belong to the next call.
    #[inline]
    pub fn run_until_blocked(&self, execution: &mut Execution, call_buffers: &CallBuffers<'_>) -> bool {
        let (begin, pass) = (execution.next, execution.pass);
        for (at, step) in (begin..).zip(&execution.steps[begin..execution.end]) {
            if let Some(wait) = &step.wait
                && !wait.is_over(pass, &mut execution.seen)
            {
                execution.next = at;
                return false;
            }
            if let ResolvedAction::KernelCopy(kernel_copy) = &step.action {
                if let Err(cause) = kernel_copy.run(self, execution.variant(), call_buffers) {
                    (execution.next, execution.failure) = (at, Some(cause));
                    return false;
                }
            } else {
                self.run_step_action(&step.action, call_buffers);
            }
            if let Some(flag) = &step.flag {
                flag.word().set(flag.number.in_pass(pass));
            }
            for raise in &step.raises {
                let line = DirectLine::new(raise.cell, self.node_state().rank_state(raise.rank), raise.mode);
                line.raise_to(raise.count.in_pass(pass));
            }
            if step.sets_yield_hint {
                self.yield_hint().note();
            }
        }
        execution.advance();
        execution.look_ahead();
        true
    }

    /// Returns why the next step can never run, if so: a rank has died, or the one that the step waits for has left.
    pub fn ends_execution(&self, execution: &Execution) -> Option<Cause> {
        let wait = execution.steps.get(execution.next).and_then(|step| step.wait.as_ref());
        wait.filter(|wait| !wait.is_over_now(execution.pass))
            .and_then(|wait| self.end_of_job(&wait.condition(execution.pass)))
    }

    /// Tests the condition of the next step: an error if it can no longer be met. Makes progress for this rank; never
    /// waits.
    pub fn test_execution(&self, execution: &Execution, call: &dyn Fn() -> String) -> Result<()> {
        let wait = execution.steps.get(execution.next).and_then(|step| step.wait.as_ref());
        wait.map_or(Ok(()), |wait| self.test(&wait.condition(execution.pass), call).map(drop))
    }

    /// Returns the address that a step reads. If the step reads many bytes that another rank has written, and
    /// processors are far from each other (this rank then uses non-temporal stores), prefetches them.
    #[inline(always)]
    fn prefetch_source(
        &self,
        from: ResolvedOperand,
        call_buffers: &CallBuffers<'_>,
        len: usize,
    ) -> *const u8 {
        let place = call_buffers.place(from, len);
        if len >= store_policy::SHORT
            && matches!(from, ResolvedOperand::Mapped(_))
            && self.store_policy().is_non_temporal()
        {
            let lines = (0..len.min(PREFETCH_BYTES_MAX)).step_by(copy::LINE);
            lines.for_each(|at| prefetch::for_reading(place.wrapping_add(at)));
        }
        place
    }

    #[inline(always)]
    fn run_step_action(&self, action: &ResolvedAction, call_buffers: &CallBuffers<'_>) {
        match *action {
            ResolvedAction::Nothing | ResolvedAction::KernelCopy(_) => {} // the caller runs kernel copies
            ResolvedAction::Copy(from, to, len, has_raise) => {
                let from = self.prefetch_source(from, call_buffers, len);
                // SAFETY: each range is either job memory, resolved for `len` bytes and still mapped, or a range that
                // `part` or `part_mut` has checked to be inside a buffer lent by the caller. The job memory lies
                // outside of these buffers.
                unsafe {
                    match to {
                        ResolvedOperand::Mapped(to) if has_raise => {
                            self.store_policy().copy(from, to.as_ptr(), len)
                        }
                        ResolvedOperand::Mapped(to) => copy::copy(from, to.as_ptr(), len),
                        ResolvedOperand::CallBuffers(buffer, at) => {
                            copy::copy(from, call_buffers.buffers[buffer].part_mut(at, len as u64), len);
                        }
                    }
                }
                copy::fence_after_copy(len);
            }
            ResolvedAction::Combine(from, (buffer, at), len, in_front) => {
                let from = self.prefetch_source(from, call_buffers, len);
                call_buffers.combine(from, call_buffers.own_mut(buffer, at, len), in_front);
            }
        }
    }
}
