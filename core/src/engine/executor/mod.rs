//! Executions: compiled steps that a rank runs on its own thread, in a collective call or in the start and wait of a
//! plan.
#![allow(unsafe_code)]
//! Unsafe: copies between places of job memory that the fabric named when the execution was made, which stay mapped
//! while the fabric lives, and the caller's own memory, which it lends for the call.
//!
//! A [`RepeatingQueue`](super::RepeatingQueue) may be run by any rank while its owner computes, so it needs a lease,
//! shared state and armed signals. An execution is run by one thread and needs none of them: its steps run one after
//! the other, and when one has to wait, the call waits. [`Operand::CallBuffers`] names memory that the call lends; no
//! other rank reaches it. Each signal is raised by one rank only, which knows its value, so a raise is a store.
//!
//! Order: what a step has copied is visible to whoever sees the signal that it raised, by release and acquire (SYNC
//! signal-raise), or the inline flag behind them (SYNC inline-flag). An inline flag lies in the cache line of its data.
//! The reader looks at that line only, and at the signal only in a long wait, so the signal's line stays in the
//! writer's cache.

mod call_buffers;
mod exposed_buffer;
mod kernel_copy;
mod step;
mod step_wait;

pub use call_buffers::{COMBINED_MAX, CallBuffers, CombineWith};
pub use exposed_buffer::{EXPOSED_BYTES, ExposedBuffer};
pub use step::{FlagSpec, Operand, PerStart, StepAction, StepSpec, WaitSpec};
pub(super) use step_wait::YieldHint;

use super::sync::inline_flag::InlineFlag;
use super::wait::Condition;
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
    /// Values of signals when they were last read. A place has often been free for some calls already; then the signal
    /// is not read again, and its line stays in the writer's cache.
    seen: Box<[u64]>,
    per_call: usize,
    /// Steps of a variant.
    per_variant: usize,
    /// The next step, and the end of its call.
    next: usize,
    end: usize,
    pass: u64,
    /// Which of the call's buffers this rank exposes at the beginning of each call.
    exposes: Option<ExposureTarget>,
    /// Why a step could not be done.
    failure: Option<Cause>,
}

#[derive(Debug)]
struct ResolvedStep {
    wait: Option<ResolvedWait>,
    action: ResolvedAction,
    flag: Option<ResolvedFlag>,
    raises: Box<[ResolvedRaise]>,
    /// The call ends with giving something to others.
    sets_yield_hint: bool,
}

#[derive(Debug)]
struct ResolvedWait {
    cell: DirectCell,
    /// Where it stands how far it had come.
    seen: usize,
    count: PerStart,
    by: Rank,
    flag: Option<ResolvedFlag>,
}

/// A seal, with its word.
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

/// An act, with the places that it names.
#[derive(Debug)]
enum ResolvedAction {
    Nothing,
    /// The last says whether another rank is told of it at once, and reads it next.
    Copy(ResolvedOperand, ResolvedOperand, usize, bool),
    Combine(ResolvedOperand, (usize, u64), usize, bool),
    /// The same from or into what another rank shows.
    KernelCopy(KernelCopy),
}

#[derive(Clone, Copy, Debug)]
enum ResolvedOperand {
    Mapped(NonNull<u8>),
    CallBuffers(usize, u64),
}

// SAFETY: a pointer to shared memory that is mapped while the machine lives.
unsafe impl Send for ResolvedOperand {}
// SAFETY: as above.
unsafe impl Sync for ResolvedOperand {}
// SAFETY: a pointer to an atomic in such memory.
unsafe impl Send for ResolvedFlag {}
// SAFETY: as above.
unsafe impl Sync for ResolvedFlag {}

impl ResolvedStep {
    /// Whether it is there for its place in a row alone.
    fn is_padding(&self) -> bool {
        self.wait.is_none() && matches!(self.action, ResolvedAction::Nothing) && self.raises.is_empty()
    }

    /// Whether it lays out something, and tells others.
    fn provides_data(&self) -> bool {
        matches!(self.action, ResolvedAction::Copy(_, ResolvedOperand::Mapped(_), _, has_raise) if has_raise)
    }
}

impl ResolvedWait {
    /// Whether it is over, after what was seen before.
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

    /// Whether it is over, as can be seen now.
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
        // SAFETY: a word of job memory that is mapped while the machine lives, which executions store and load whole.
        unsafe { self.word.as_ref() }
    }
}

impl Execution {
    /// The steps of a call are done: the next call has those behind them.
    #[inline(always)]
    fn advance(&mut self) {
        while self.end > self.per_variant {
            self.end -= self.per_variant; // the same call of the first way
        }
        let is_last = self.end == self.per_variant;
        self.next = if is_last { 0 } else { self.end };
        self.end = self.next + self.per_call;
        self.pass += u64::from(is_last);
    }

    /// Looks whether places are free for the next call, if that begins with waiting for it: they mostly are, who says
    /// so is far away, and nothing waits for the answer now.
    #[inline(always)]
    fn look_ahead(&mut self) {
        if let Some(ResolvedStep { wait: Some(wait), action: ResolvedAction::Nothing, .. }) =
            self.steps.get(self.next)
            && wait.flag.is_none()
        {
            wait.is_over(self.pass, &mut self.seen);
        }
    }

    /// The call that comes next, of which no step has been run yet, goes that way; without it, the first one.
    #[inline(always)]
    pub fn choose_variant(&mut self, variant: usize) {
        debug_assert!(
            variant == 0 || (variant + 1) * self.per_variant <= self.steps.len(),
            "a variant that exists"
        );
        self.next += variant * self.per_variant;
        self.end += variant * self.per_variant;
    }

    /// Which way the call goes whose steps are next.
    fn variant(&self) -> u64 {
        (self.next / self.per_variant.max(1)) as u64
    }

    /// Whether the next step need not wait.
    pub fn can_continue(&self) -> bool {
        let wait = self.steps.get(self.next).and_then(|step| step.wait.as_ref());
        wait.is_none_or(|wait| wait.is_over_now(self.pass))
    }
}

impl Worker {
    /// Whether this rank can have executions: it reaches others' signals by stores, and nothing that it does is to be
    /// noted.
    pub fn can_execute(&self) -> bool {
        self.reaches_words() && self.recorder().is_none()
    }

    /// An execution of those steps, of which each call runs as many: so many calls, and then again. `variants` are
    /// different steps for the same calls, as for roots; in each call this rank waits for the same signals in all ways,
    /// and raises the same. None: this rank does not reach by loads and stores all that they name, or what it does is
    /// to be noted.
    ///
    /// Nobody may have raised a signal that it raises since they were agreed on. `exposes`: where, and to whom, it
    /// shows what each call lends first; a call ends only when that one has done with it.
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

    /// Runs the steps of one call that are left. Waits, and serves peers meanwhile. An error: a rank died, or one left
    /// that is waited for, or can no longer be reached; then the execution is of no more use.
    #[inline]
    pub fn execute(
        &self,
        execution: &mut Execution,
        lent: &CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let exposure = execution.exposes.map(|target| Exposure::of(self, target, execution.variant(), lent));
        while !self.run_until_blocked(execution, lent) {
            self.wait_or_fail(execution, call)?;
        }
        exposure.into_iter().for_each(Exposure::end);
        Ok(())
    }

    /// Waits for what the next step waits for. Error: it has come to that, and could not be done.
    #[cold]
    #[inline(never)]
    fn wait_or_fail(&self, execution: &mut Execution, call: &dyn Fn() -> String) -> Result<()> {
        match execution.failure.take() {
            Some(cause) => Err(self.fault(cause, call)),
            None => self.wait_for_step(&execution.steps[execution.next..execution.end], execution.pass, call),
        }
    }

    /// Runs the steps of one call that are left, up to one that has to wait. Whether there was none: the next steps are
    /// those of another call.
    #[inline]
    pub fn run_until_blocked(&self, execution: &mut Execution, lent: &CallBuffers<'_>) -> bool {
        let (begin, pass) = (execution.next, execution.pass);
        for (at, step) in (begin..).zip(&execution.steps[begin..execution.end]) {
            if let Some(wait) = &step.wait
                && !wait.is_over(pass, &mut execution.seen)
            {
                execution.next = at;
                return false;
            }
            if let ResolvedAction::KernelCopy(kernel_copy) = &step.action {
                if let Err(cause) = kernel_copy.run(self, execution.variant(), lent) {
                    (execution.next, execution.failure) = (at, Some(cause));
                    return false;
                }
            } else {
                self.run_step_action(&step.action, lent);
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

    /// Whether the execution ends well, as far as can be told now: an error if what its next step waits for cannot come
    /// any more. Moves this rank's work on; never waits.
    pub fn test_execution(&self, execution: &Execution, call: &dyn Fn() -> String) -> Result<()> {
        let wait = execution.steps.get(execution.next).and_then(|step| step.wait.as_ref());
        wait.map_or(Ok(()), |wait| self.test(&wait.condition(execution.pass), call).map(drop))
    }

    /// Where a step reads. What others have laid out far away is on its way from there.
    #[inline(always)]
    fn prefetch_source(&self, from: ResolvedOperand, lent: &CallBuffers<'_>, len: usize) -> *const u8 {
        let place = lent.place(from, len);
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
    fn run_step_action(&self, action: &ResolvedAction, lent: &CallBuffers<'_>) {
        match *action {
            ResolvedAction::Nothing | ResolvedAction::KernelCopy(_) => {} // which may fail, and are done elsewhere
            ResolvedAction::Copy(from, to, len, has_raise) => {
                let from = self.prefetch_source(from, lent, len);
                // SAFETY: mapped memory of the job, or bytes that the caller lends, of which these are within; the
                // job's lie elsewhere.
                unsafe {
                    match to {
                        ResolvedOperand::Mapped(to) if has_raise => {
                            self.store_policy().copy(from, to.as_ptr(), len)
                        }
                        ResolvedOperand::Mapped(to) => copy::copy(from, to.as_ptr(), len),
                        ResolvedOperand::CallBuffers(buffer, at) => {
                            copy::copy(from, lent.buffers[buffer].part_mut(at, len as u64), len);
                        }
                    }
                }
                copy::fence_after_copy(len);
            }
            ResolvedAction::Combine(from, (buffer, at), len, in_front) => {
                let from = self.prefetch_source(from, lent, len);
                lent.combine(from, lent.own_mut(buffer, at, len), in_front);
            }
        }
    }
}
