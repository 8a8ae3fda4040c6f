//! Executions: steps that the calling thread runs, in a collective call or in the start and wait of a plan.
//!
//! An execution is run by one thread, so it needs no lease, shared state or armed signals: its steps run one after the
//! other, and when one has to wait, the call waits. [`Operand::CallBuffers`](super::Operand) names memory that the call
//! lends; no other rank reaches it. Each signal is raised by one rank only, which knows its value, so a raise is a
//! store.

use super::call_buffers::CallBuffers;
use super::exposed_buffer::{Exposure, ExposureTarget};
use super::interpreter::Driver;
use super::operand::ResolvedOperand;
use super::pieces::PieceLengths;
use super::resolved::{ResolvedAction, ResolvedFlag, ResolvedStep, ResolvedWait, WaitState};
use super::start_tags::{SeenSignal, Tags};
use super::step::{PerStart, StepSpec};
use crate::base::sync::Ordering;
use crate::base::{Cause, Rank, Result};
use crate::engine::worker::Worker;
use crate::fabric::{DirectCell, DirectLine, SignalLine};
use crate::node::park::WakeMode;
use crate::segment::GlobalAddress;
use std::collections::BTreeMap;

/// What a call does when the action of a step is done.
#[derive(Debug)]
pub(super) struct CallEffects {
    flag: Option<ResolvedFlag>,
    pub(super) raises: Box<[ResolvedRaise]>,
    /// The last step of a call, and it provides data to others: running it sets the yield hint.
    sets_yield_hint: bool,
}

pub(super) type CallStep = ResolvedStep<CallEffects>;

/// A signal that a step raises, and the count that it then has.
#[derive(Debug)]
pub(super) struct ResolvedRaise {
    cell: DirectCell,
    count: PerStart,
    rank: Rank,
    mode: WakeMode,
}

/// Compiled steps. Each call runs the same number of them; after the last step comes the first again. There may be
/// several variants of the steps of a call, such as one for each root.
#[derive(Debug)]
pub struct Execution {
    /// The steps of all calls of the first variant, then those of the next.
    steps: Box<[CallStep]>,
    /// Values of signals when they were last read. A value often shows that a buffer has been free for some calls
    /// already; then the signal is not read again, and its line stays in the writer's cache.
    seen: Box<[SeenSignal]>,
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
    pieces: PieceLengths,
    /// The number of the piece that is next or under way.
    piece: usize,
    /// The variant that the present call has chosen.
    chosen: usize,
    tags: Tags,
    /// Why a step failed. Taken by the call that returns the error.
    failure: Option<Cause>,
}

/// The driver of a call.
struct CallDriver<'d> {
    worker: &'d Worker,
    seen: &'d mut [SeenSignal],
    call_buffers: &'d CallBuffers<'d>,
    /// Index of the first step, and number of steps of a variant.
    begin: usize,
    per_variant: usize,
    tags: &'d Tags,
    failure: &'d mut Option<Cause>,
}

impl Driver for CallDriver<'_> {
    type Effects = CallEffects;

    /// Reads the signal only if its last seen value does not show that it has been reached.
    #[inline(always)]
    fn is_over(&mut self, wait: &ResolvedWait, pass: u64) -> bool {
        match wait.state(pass, self.seen, self.tags) {
            WaitState::Met => true,
            WaitState::Unmet => false,
            WaitState::OtherTag => {
                *self.failure = Some(in_another_call(wait.by));
                false
            }
        }
    }

    fn run_special(&mut self, action: &ResolvedAction) -> bool {
        let done = match action {
            ResolvedAction::KernelCopy(copy) => {
                copy.run(self.worker, variant_of(self.begin, self.per_variant), self.call_buffers)
            }
            _ => Err(Cause::Bug("a step of a call that only a command can run".into())),
        };
        *self.failure = done.err();
        self.failure.is_none()
    }

    #[inline(always)]
    fn complete(&mut self, effects: &CallEffects, pass: u64) {
        if let Some(flag) = &effects.flag {
            flag.word().set(flag.number.in_pass(pass), self.tags.of(0));
        }
        for raise in &effects.raises {
            let line =
                DirectLine::new(raise.cell, self.worker.node_state().rank_state(raise.rank), raise.mode);
            line.raise_tagged(raise.count.in_pass(pass), self.tags.start(), self.tags.of(0));
        }
        if effects.sets_yield_hint {
            self.worker.yield_hint().note();
        }
    }
}

impl CallStep {
    /// Returns true if the step does nothing: it only makes all variants equally long.
    fn is_padding(&self) -> bool {
        self.wait.is_none()
            && matches!(self.action, ResolvedAction::Nothing)
            && self.effects.raises.is_empty()
    }

    /// Returns true if the step copies data to job memory and raises signals that announce them.
    fn provides_data(&self) -> bool {
        matches!(self.action, ResolvedAction::Copy(_, ResolvedOperand::Mapped(_), _, true))
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
        self.tags.advance();
    }

    /// Reads the signal that the next call waits for first, if its first step only waits for a free buffer. The
    /// buffer is mostly free by now. The signal's line has to come from a far processor, and now no step waits for
    /// it.
    #[inline(always)]
    fn look_ahead(&mut self) {
        if let Some(CallStep { wait: Some(wait), action: ResolvedAction::Nothing, .. }) =
            self.steps.get(self.next)
            && wait.flag.is_none()
        {
            wait.state(self.pass, &mut self.seen, &self.tags);
        }
    }

    /// Makes the next call, of which no step has run yet, use `variant`, and sets the tag of that call. Without this
    /// call it uses variant 0 and the tag of the call before. The tag travels with each signal and inline flag of the
    /// call: a rank whose call has another tag fails before it uses the data.
    #[inline(always)]
    pub fn begin_call(&mut self, variant: usize, tag: u32) {
        self.tags.set(tag);
        self.chosen = variant;
        self.choose_steps(variant * self.pieces.lengths());
    }

    /// Makes the next piece use these of the steps.
    #[inline(always)]
    fn choose_steps(&mut self, variant: usize) {
        debug_assert!(
            variant == 0 || (variant + 1) * self.per_variant <= self.steps.len(),
            "a variant that exists"
        );
        self.next += variant * self.per_variant;
        self.end += variant * self.per_variant;
    }

    /// Moves on to the next piece of a call, one of which has passed. Returns true if that was the last one.
    #[inline(always)]
    fn end_piece(&mut self) -> bool {
        if self.pieces.count == 1 {
            return true;
        }
        self.piece += 1;
        if self.piece < self.pieces.count {
            let is_shorter = self.piece >= self.pieces.longer;
            self.choose_steps(self.chosen * self.pieces.lengths() + usize::from(is_shorter));
            return false;
        }
        (self.piece, self.chosen) = (0, 0);
        true
    }

    /// Returns the variant of the call whose steps are next.
    fn variant(&self) -> u64 {
        variant_of(self.next, self.per_variant)
    }

    /// Takes the reason why a step has failed, if one has. The execution cannot be used again then.
    pub fn take_failure(&mut self) -> Option<Cause> {
        self.failure.take()
    }

    /// Returns true if the next step need not wait, and no step has failed.
    pub fn can_continue(&self) -> bool {
        let wait = self.steps.get(self.next).and_then(|step| step.wait.as_ref());
        self.failure.is_none() && wait.is_none_or(|wait| wait.is_over_now(self.pass))
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
    /// If calls are cut into `pieces` of two lengths, each variant comes twice: for the longer pieces, and for the
    /// others.
    ///
    /// Since the members agreed on the steps, nobody may have raised a signal that this rank raises. `exposes`: the
    /// address of an [`ExposedBuffer`](super::ExposedBuffer), and the rank to which this rank exposes the first buffer
    /// of each call. The steps of a call must then end only when that rank has finished with the buffer.
    pub fn make_execution(
        &self,
        variants: &[Vec<StepSpec>],
        calls: usize,
        pieces: PieceLengths,
        exposes: Option<(GlobalAddress, Rank)>,
    ) -> Result<Option<Execution>, Cause> {
        if !self.can_execute() {
            return Ok(None);
        }
        let per_variant = variants.first().map_or(0, Vec::len);
        if variants.iter().any(|variant| variant.len() != per_variant) {
            return Err(Cause::Bug("variants of a call that differ in their number of steps".into()));
        }
        let per_call = per_variant / calls;
        let raised_by_calls = |variant: &[StepSpec]| -> Vec<Raised> {
            variant.chunks(per_call.max(1)).map(Raised::of).collect()
        };
        let mut all = variants.iter().map(|variant| raised_by_calls(variant));
        if all.next().is_some_and(|first| all.any(|other| other != first)) {
            let text = "variants of a call that raise signals differently".into();
            return Err(Cause::Unsupported(text));
        }
        let specs = || variants.iter().flatten();
        let mut found = Vec::with_capacity(per_variant * variants.len());
        let mut signals: Vec<u32> = specs().filter_map(|spec| Some(spec.wait?.signal)).collect();
        signals.sort_unstable();
        signals.dedup();
        for variant in variants {
            let mut raised = Raised::of(variant);
            for spec in variant {
                let Some(step) = self.find_call_step(spec, &signals, &mut raised)? else { return Ok(None) };
                found.push(step);
            }
        }
        let stands = |&signal: &u32| SeenSignal::unread(self.count_of_own(signal));
        let seen = signals.iter().map(stands).collect();
        for call in found.chunks_mut(per_call.max(1)) {
            let last = call.iter_mut().rfind(|step| !step.is_padding());
            last.into_iter().for_each(|step| step.effects.sets_yield_hint = step.provides_data());
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
            pieces,
            piece: 0,
            chosen: 0,
            tags: Tags::default(),
            failure,
        }))
    }

    fn find_call_step(
        &self,
        spec: &StepSpec,
        signals: &[u32],
        raised: &mut Raised,
    ) -> Result<Option<CallStep>, Cause> {
        let Some(wait) = self.find_wait(spec.wait, signals)? else { return Ok(None) };
        let mut raises = Vec::with_capacity(spec.raises.len());
        for &(signal, amount) in &spec.raises {
            let SignalLine::Direct(line) = self.fabric().line(signal)? else { return Ok(None) };
            let stood = line.cell().counter().load(Ordering::Acquire); // SYNC signal-raise
            let PerStart { first, more } = raised.count(signal, amount);
            let count = PerStart { first: stood.wrapping_add(first), more };
            raises.push(ResolvedRaise { cell: line.cell(), count, rank: signal.rank(), mode: line.mode() });
        }
        let Some(action) = self.find_action(spec.action, !spec.raises.is_empty())? else { return Ok(None) };
        let effects =
            CallEffects { flag: self.find_flag(spec.flag)?, raises: raises.into(), sets_yield_hint: false };
        Ok(Some(ResolvedStep { wait, action, effects }))
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
        loop {
            let piece;
            let call_buffers = if execution.pieces.count == 1 {
                call_buffers // not copied: a load of what was just stored in parts is slow
            } else {
                piece = call_buffers.piece(execution.pieces.range(execution.piece));
                &piece
            };
            let exposure =
                execution.exposes.map(|target| Exposure::of(self, target, execution.variant(), call_buffers));
            while !self.run_piece(execution, call_buffers) {
                self.wait_or_fail(execution, call)?;
            }
            exposure.into_iter().for_each(Exposure::end);
            if execution.end_piece() {
                return Ok(());
            }
        }
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
        if execution.pieces.count == 1 {
            return self.run_piece(execution, call_buffers);
        }
        loop {
            let piece = call_buffers.piece(execution.pieces.range(execution.piece));
            if !self.run_piece(execution, &piece) {
                return false;
            }
            if execution.end_piece() {
                return true;
            }
        }
    }

    /// Runs the remaining steps of a piece of a call, as [`Worker::run_until_blocked`] does.
    #[inline]
    fn run_piece(&self, execution: &mut Execution, call_buffers: &CallBuffers<'_>) -> bool {
        let (begin, pass) = (execution.next, execution.pass);
        let mut driver = CallDriver {
            worker: self,
            seen: &mut execution.seen,
            call_buffers,
            begin,
            per_variant: execution.per_variant,
            tags: &execution.tags,
            failure: &mut execution.failure,
        };
        let steps = &execution.steps[begin..execution.end];
        if let Some(at) = self.run_steps((begin, steps), pass, call_buffers, &mut driver) {
            execution.next = at;
            return false;
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
}

/// Returns the error that the data or the signal of `by` belong to another call.
#[cold]
fn in_another_call(by: Option<Rank>) -> Cause {
    let who = by.map_or("another rank".into(), |by| format!("rank {by}"));
    let text = format!(
        "{who} has made other collective calls on this communicator than this rank, or passes another number of values \
         to a chunked plan: members make the same calls in the same order"
    );
    Cause::mismatch(None, text)
}

/// Returns the variant of a step. Only exposed buffers need it: the division takes longer than many a step.
fn variant_of(step: usize, per_variant: usize) -> u64 {
    (step / per_variant.max(1)) as u64
}

/// By how much steps raise each signal: those counted so far, and all.
#[derive(PartialEq)]
struct Raised(BTreeMap<GlobalAddress, (u64, u64)>);

impl Raised {
    fn of(steps: &[StepSpec]) -> Raised {
        let mut raised = BTreeMap::new();
        for &(signal, amount) in steps.iter().flat_map(|spec| &spec.raises) {
            raised.entry(signal).or_insert((0, 0)).1 += amount;
        }
        Raised(raised)
    }

    /// Counts a raise. Returns the sum so far in the first pass, and what each further pass adds.
    fn count(&mut self, signal: GlobalAddress, amount: u64) -> PerStart {
        let (so_far, all) = self.0.entry(signal).or_insert((0, amount));
        *so_far += amount;
        PerStart { first: *so_far, more: *all }
    }
}
