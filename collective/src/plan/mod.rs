//! Plans: schedules that members have prepared together and can start any number of times.
//!
//! When a plan is made, each member allocates the buffers and signals of its part, sends their addresses to the other
//! members, and compiles its steps to commands of repeating queues or to an execution. With repeating queues, a start
//! raises one signal of the member. Each command then runs when its trigger is met. It is run by the member in its
//! calls, by a peer that raised the signal, or by a helper.

mod aligned_buffer;
pub(crate) mod compile;
pub(crate) mod end;
mod program_data;
pub(crate) mod registry;
pub(crate) mod run;
pub(crate) mod setup;
pub(crate) mod state;

use super::call_kind::CallSchedules;
use super::communicator::Communicator;
use super::current_call::{CallWord, described, size};
use crate::failure::monitor::FailureMonitor;
use crate::failure::published_wait::Lane;
use crate::message_algorithms::run_now;
use crate::plan::registry::Plans;
use program_data::{DataSpans, InputKept, ProgramData};
pub use run::chunked::{ChunkShape, ChunkedRun};
use run::in_calls::{CallState, InCallsState, StartData};
pub(crate) use setup::negotiate::{PlanKind, PreparedPlan};
use state::{Form, PlanOver, PlanState};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};
use tasuki_core::base::sync::Ordering;
use tasuki_core::base::{Cause, Error, Result, ValueKind};
use tasuki_core::engine::{AwaitedCondition, BufferView, CachePolicy, Condition, scoped_wait_probe_about};
use tasuki_core::queue::reduction::{ReduceOperation, SharedOperation};
use tasuki_message::Context;
use tasuki_schedule::selection::Pieces;
use tasuki_schedule::shape::{Counts, Shape};
use tasuki_schedule::{BufferDecl, BufferId, BufferKind, BufferSpan, RankPart, START, Schedule};

/// A schedule that the members of a communicator have prepared.
///
/// Only one start may be under way at a time. The memory of a dropped plan is freed when no member can reach it any
/// more: when all members have dropped the plan, and then make their next plan or [quiesce](Communicator::quiesce).
pub struct Plan {
    plan_state: Arc<PlanState>,
    /// Its buffers and steps, if this rank runs it in its own calls.
    call_state: Option<InCallsState>,
    number: u64,
    plans: Plans,
    messages: Arc<Context>,
    monitor: Arc<FailureMonitor>,
    /// What it does, for the names of its calls.
    name: String,
    communicator: Arc<str>,
    rooms: Box<[BufferDecl]>,
    /// In a box, so that programs can keep plans in enums and lists of small values.
    program_data: Box<ProgramData>,
    /// Bytes of its largest buffer.
    largest: u64,
    ended: u64,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({}, {} starts)", self.name, self.plan_state.started.load(Ordering::Relaxed))
    }
}

impl Communicator {
    /// Makes a plan or an execution of a schedule, for values of that type, together with all members, within a
    /// collective call. The inner error means that no member has it.
    pub(crate) fn negotiate(
        &self,
        schedule: (&Schedule, ValueKind),
        part: &RankPart,
        kind: PlanKind,
        call: &dyn Fn() -> String,
    ) -> Result<Result<PreparedPlan, Cause>> {
        let negotiated = run_now(self.plans().negotiate(&self.channel, schedule, part, kind, &call()));
        negotiated.map_err(|error| self.step_failed(error, call))
    }
}

/// The values of a plan.
#[derive(Clone)]
pub struct PlanValues {
    /// Their type.
    pub kind: ValueKind,
    /// How they are combined.
    pub operation: SharedOperation,
}

impl fmt::Debug for PlanValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanValues").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Communicator {
    /// Prepares a schedule, together with all members. `prepare` is called before a queue is made.
    ///
    /// Errors: members came with different schedules, or values of different types; a member has no room for its part;
    /// the schedule is for another number of ranks than there are members. Then no member has the plan.
    pub fn plan(&self, schedule: &Schedule, values: PlanValues, prepare: &dyn Fn()) -> Result<Plan> {
        let spans = |member| DataSpans::of_contract(&schedule.contract(member));
        self.plan_as("plan", schedule.name(), (schedule, &spans), values, prepare)
    }

    /// Prepares a schedule under another name, in the call `what`. `spans` returns where a member's input and result
    /// lie.
    fn plan_as(
        &self,
        what: &str,
        name: &str,
        (schedule, spans): (&Schedule, &dyn Fn(usize) -> DataSpans),
        values: PlanValues,
        prepare: &dyn Fn(),
    ) -> Result<Plan> {
        let call = || self.call_on(&format!("plan({name})"));
        let fault = |cause| self.worker().fault(cause, call);
        if schedule.ranks() != self.size() {
            let (ranks, size) = (schedule.ranks(), self.size());
            let text = format!("the schedule is for {ranks} ranks, but the group has {size} members");
            return Err(self.refuse(Cause::Argument(text), what, &call));
        }
        self.begin_named(what, &call)?.run_agreed(|| {
            prepare();
            let part = schedule.part(self.rank().index());
            let prepared =
                self.negotiate((schedule, values.kind), &part, PlanKind::Queues(values.operation), &call)?;
            let prepared = prepared.map_err(fault);
            Ok(prepared.map(|prepared| {
                let spans = spans(self.rank().index());
                self.plan_of(name.into(), prepared, part.buffer_decls().into(), spans)
            }))
        })
    }

    /// Prepares a collective with the algorithm that the selection chooses. Otherwise like
    /// [`plan`](Communicator::plan).
    pub fn plan_for(&self, shape: &Shape, values: PlanValues, prepare: &dyn Fn()) -> Result<Plan> {
        let selection = self.select(shape)?;
        match selection
            .calling_thread_pieces(shape, matches!(values.operation, ReduceOperation::UserDefined(_)))
        {
            Some(pieces) => self.plan_in_calls(shape, &pieces, values),
            None => {
                let schedule = selection.choose(shape).schedule(shape, 1);
                let spans = |member| DataSpans::of_shape(shape, member);
                let (what, name) = (init_of(shape), name_of(shape, self.name()));
                self.plan_as(&what, &name, (&schedule, &spans), values, prepare)
            }
        }
    }

    fn plan_in_calls(&self, shape: &Shape, pieces: &Pieces, values: PlanValues) -> Result<Plan> {
        let (schedules, name) = (CallSchedules::of_plan(pieces), name_of(shape, self.name()));
        let schedule = schedules.all[0].clone();
        let call = || self.call_on(&format!("plan({name})"));
        let me = self.rank().index();
        let (part, bytes) = (schedule.part(me), shape.buffer_bytes(me));
        let start_data = StartData::new(bytes, values.operation);
        let prepared = self.begin_named(&init_of(shape), &call)?.run_agreed(|| {
            let prepared = self.negotiate(
                (&schedule, values.kind),
                &part,
                PlanKind::Execution(schedules, start_data),
                &call,
            )?;
            Ok(prepared.map_err(|cause| self.worker().fault(cause, call)))
        })?;
        if let Form::Execution(in_calls) = &prepared.plan_state.form {
            self.messages().progress().add_continuation(in_calls.clone());
        }
        let rooms =
            part.buffer_decls().iter().zip(bytes).map(|(room, bytes)| BufferDecl { bytes, ..room.clone() });
        Ok(self.plan_of(name, prepared, rooms.collect(), DataSpans::of_shape(shape, me)))
    }

    fn plan_of(
        &self,
        name: String,
        prepared: PreparedPlan,
        rooms: Box<[BufferDecl]>,
        spans: DataSpans,
    ) -> Plan {
        Plan {
            program_data: Box::new(ProgramData::new(spans, prepared.plan_state.counted.clone())),
            plan_state: prepared.plan_state,
            call_state: prepared.call_state,
            number: prepared.number,
            plans: self.plans().plans.clone(),
            messages: self.messages().clone(),
            monitor: self.plans().monitor.clone(),
            name,
            communicator: self.name().clone(),
            largest: rooms.iter().map(|room| room.bytes).max().unwrap_or(0),
            rooms,
            ended: 0,
        }
    }
}

/// Returns the name of the call that prepares a collective.
pub(crate) fn init_of(shape: &Shape) -> String {
    format!("{}_init", shape.collective.name())
}

/// Returns the name of the plan of a shape on a communicator: `bcast 8 KiB from rank 0`.
fn name_of(shape: &Shape, communicator: &str) -> String {
    let Shape { collective, root, .. } = *shape;
    let text = match shape.counts {
        Counts::Equal(bytes) => {
            format!("{} {}", collective.name(), described(collective, root, bytes, communicator))
        }
        Counts::Each(_) => format!("{}_v {} in all", collective.name(), size(shape.bytes_of_all())),
        Counts::Matrix(_) | Counts::Graph(_) => collective.name().to_string(),
    };
    text.trim_end().to_string()
}

impl Plan {
    /// Starts the plan: the steps of this member may begin. Costs one raise, and runs the steps that need not wait.
    ///
    /// Error: the previous start is under way, because neither [`Plan::wait`] nor [`Plan::test`] has returned that it
    /// is complete.
    #[inline]
    pub fn start(&mut self) -> Result<()> {
        let worker = &self.plan_state.worker;
        let last = self.plan_state.started.load(Ordering::Relaxed);
        if last != self.ended {
            return Err(self.start_active("start"));
        }
        let check = worker.check().and_then(|()| self.monitor.check());
        check.map_err(|cause| worker.fault(cause, || self.call("start")))?;
        if self.program_data.copies.is_to_write {
            self.write_copies()?;
        }
        let worker = &self.plan_state.worker;
        self.plan_state.started.store(last + 1, Ordering::Relaxed);
        let started = match (&self.plan_state.form, &mut self.call_state) {
            (Form::Execution(in_calls), Some(call_state)) => {
                in_calls.start(call_state).map_err(|cause| worker.fault(cause, String::new))
            }
            (Form::Queues(queues, _), _) if !queues.is_empty() => {
                worker.start_repeating_queues(queues, self.plan_state.own.signal(START), self.largest)
            }
            _ => Ok(()),
        };
        started.map_err(|error| error.in_call(|| self.call("start")))
    }

    /// Sets the tag of the next start: a member whose start has another tag fails.
    fn set_tag(&mut self, tag: u32) {
        self.call_state.iter_mut().for_each(|call_state| run::in_calls::set_tag(call_state, tag));
        self.plan_state.starts.iter().for_each(|(starts, _)| starts.store_tag(tag));
    }

    /// Returns an error if a member has made a start with another tag. The steps of an execution have found that.
    fn compare_tags(&self) -> Result<()> {
        let other = self.plan_state.starts.as_ref().and_then(|(starts, _)| starts.find_other_tag());
        let fault = |cause| self.failed(self.plan_state.worker.fault(cause, || self.start_under_way()));
        other.map_or(Ok(()), |cause| Err(fault(cause)))
    }

    /// Returns true if this thread's calls have a time limit.
    #[inline]
    pub fn has_limit(&self) -> bool {
        self.plan_state.worker.has_limit()
    }

    /// Returns when the start is complete for this member: its results are there, and its inputs may be changed.
    /// Returns at once if no start is under way.
    #[inline]
    pub fn wait(&mut self) -> Result<()> {
        if self.is_active() {
            let _monitored = scoped_wait_probe_about(self.monitor.probe(), self.about());
            let waited = self.plan_state.wait(&|| self.start_under_way());
            return waited.and_then(|()| self.end("wait")).map_err(|error| self.failed(error));
        }
        Ok(())
    }

    /// Returns what probes are asked about in waits for its starts.
    fn about(&self) -> u32 {
        Lane::Start.about(self.number)
    }

    /// Records that the start is complete. Error: a panic has ended its steps.
    #[inline]
    fn end(&mut self, call: &str) -> Result<()> {
        if self.is_broken() {
            return Err(self.plan_state.worker.fault(run::in_calls::broken(), || self.call(call)));
        }
        self.ended += 1;
        Ok(())
    }

    /// Returns true if the start is complete for this member. Makes progress, and never waits.
    pub fn test(&mut self) -> Result<bool> {
        if !self.is_active() {
            return Ok(true);
        }
        let check =
            self.monitor.check().map_err(|cause| self.plan_state.worker.fault(cause, || self.call("test")));
        let tested = check.and_then(|()| self.plan_state.test(&|| self.call("test")));
        let ended =
            tested.and_then(|is_over| if is_over { self.end("test").map(|()| true) } else { Ok(false) });
        ended.map_err(|error| self.failed(error))
    }

    /// Returns `Ready` if the start is complete for this member or has failed, as [`Plan::test`] does; otherwise the
    /// task of `waker` is woken when it is.
    pub fn poll(&mut self, waker: &Waker, awaited: &mut AwaitedCondition) -> Poll<Result<()>> {
        match self.test() {
            Ok(true) => return Poll::Ready(Ok(())),
            Err(error) => return Poll::Ready(Err(error)),
            Ok(false) => {}
        }
        if let Err(error) = self.plan_state.look(&self.monitor, &|| self.start_under_way()) {
            return Poll::Ready(Err(self.failed(error)));
        }
        let over = PlanOver { plan_state: self.plan_state.clone(), call: self.start_under_way() };
        let worker = &self.plan_state.worker;
        awaited.set(
            worker,
            self.monitor.awaited(worker, Condition::Event(Arc::new(over)), self.about()),
            waker,
        );
        Poll::Pending
    }

    /// Makes the communicator fail, because a start has failed.
    #[cold]
    fn failed(&self, error: Error) -> Error {
        let worker = &self.plan_state.worker;
        let error = self.monitor.explain(error, worker, &|| self.start_under_way());
        self.monitor.report(worker, CallWord::START, error.cause());
        if self.monitor.is_failed() {
            self.plan_state.abandon();
        }
        error
    }

    /// Marks the plan as dropped: it is freed when all members have dropped it and all starts are complete.
    fn mark_dropped(&self) {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).take(self.number);
    }

    /// Returns true if a panic has ended its steps.
    fn is_broken(&self) -> bool {
        self.call_state.as_ref().is_some_and(run::in_calls::is_broken)
    }

    /// Returns true if a start is under way: neither [`Plan::wait`] nor [`Plan::test`] has returned that it is
    /// complete.
    pub fn is_active(&self) -> bool {
        self.plan_state.started.load(Ordering::Relaxed) != self.ended
    }

    /// Returns this member's input. Errors: a start is under way; the schedule has the input in several places; there
    /// is no memory for it.
    #[inline]
    pub fn input(&mut self) -> Result<&mut [u8]> {
        self.check_at_rest("input")?;
        let Some(span) = self.program_data.spans.input else { return Err(self.in_several_places("input")) };
        if let (InputKept::InPlace, Some(call_state)) = (self.program_data.spans.kept, &mut self.call_state) {
            let slice = |state| &mut CallState::buffer_mut(state, span.buffer)[range_of(span)];
            return Ok(call_state.owned_mut().map(slice).unwrap_or_default());
        }
        let Plan { program_data, plan_state, name, communicator, .. } = self;
        program_data
            .copies
            .input(span, &|cause| plan_state.worker.fault(cause, || call("input", name, communicator)))
    }

    /// Returns this member's result. Errors: those of [`Plan::input`].
    #[inline]
    pub fn result(&mut self) -> Result<&[u8]> {
        self.check_at_rest("result")?;
        let Some(span) = self.program_data.spans.result else { return Err(self.in_several_places("result")) };
        if let Some(call_state) = &self.call_state {
            let slice = |state| &CallState::buffer(state, span.buffer)[range_of(span)];
            return Ok(call_state.owned().map(slice).unwrap_or_default());
        }
        let Plan { program_data, plan_state, name, communicator, ended, .. } = self;
        let read = |buffer, at, into: &mut [u8]| read_from(plan_state, &None, (buffer, at), into);
        let fault = |cause| plan_state.worker.fault(cause, || call("result", name, communicator));
        program_data.copies.result(span, *ended, &read, &fault)
    }

    /// Returns a buffer of a schedule of the program. If `is_changed`, the next start writes what the program changes
    /// in it. Errors: a start is under way; the program does not use this buffer; there is no memory for a copy.
    pub fn buffer(&mut self, buffer: BufferId, is_changed: bool) -> Result<&mut [u8]> {
        self.check_at_rest("buffer")?;
        let is_of_program = self.program_data.spans.kept == InputKept::OnceUsed;
        let room =
            self.rooms.get(buffer.index()).filter(|room| is_of_program && room.kind == BufferKind::User);
        let Some(&BufferDecl { bytes, .. }) = room else {
            let number = buffer.index();
            let text = format!(
                "buffer {number} is no buffer that the program's own schedule shares with the program"
            );
            return Err(self.refused("buffer", &text));
        };
        let Plan { program_data, plan_state, name, communicator, ended, .. } = self;
        let read = |buffer, at, into: &mut [u8]| read_from(plan_state, &None, (buffer, at), into);
        let fault = |cause| plan_state.worker.fault(cause, || call("buffer", name, communicator));
        program_data.copies.buffer((buffer, bytes), (*ended, is_changed), &read, &fault)
    }

    /// Writes the copies that a start needs.
    #[inline]
    fn write_copies(&mut self) -> Result<()> {
        let Plan { program_data, plan_state, call_state, name, communicator, .. } = self;
        let ProgramData { spans, copies } = &mut **program_data;
        let mut write = |buffer, at, bytes: &[u8]| write_to(plan_state, call_state, (buffer, at), bytes);
        let fault = |cause| plan_state.worker.fault(cause, || call("start", name, communicator));
        copies.write(spans, &mut write, &fault)
    }

    /// Gives up the copies: from now on the steps combine what [`Plan::write`] writes.
    fn drop_copies(&mut self) {
        let spans = DataSpans { kept: InputKept::InPlace, ..self.program_data.spans };
        *self.program_data = ProgramData::new(spans, self.plan_state.counted.clone());
    }

    /// Writes into a buffer, before a start of a plan without copies. Error: a start is under way; the bytes do not
    /// fit.
    fn write(&mut self, buffer: BufferId, at: u64, bytes: &[u8]) -> Result<()> {
        self.check_place(buffer, at, bytes.len(), "write")?;
        write_to(&self.plan_state, &mut self.call_state, (buffer, at), bytes)
    }

    /// Reads from a buffer. Error: a start is under way; the buffer is shorter.
    fn read(&self, buffer: BufferId, at: u64, into: &mut [u8]) -> Result<()> {
        self.check_place(buffer, at, into.len(), "read")?;
        read_from(&self.plan_state, &self.call_state, (buffer, at), into)
    }

    fn check_place(&self, buffer: BufferId, at: u64, len: usize, call: &str) -> Result<()> {
        self.check_at_rest(call)?;
        let bytes = self.rooms.get(buffer.index()).map_or(0, |room| room.bytes);
        if at.checked_add(len as u64).is_none_or(|end| end > bytes) {
            let text = format!("{len} bytes at offset {at} do not fit in the buffer of {bytes} bytes");
            return Err(self.refused(call, &text));
        }
        Ok(())
    }

    /// Returns an error if a start is under way.
    #[inline]
    fn check_at_rest(&self, call: &str) -> Result<()> {
        if self.is_active() {
            return Err(self.start_active(call));
        }
        Ok(())
    }

    #[cold]
    fn in_several_places(&self, call: &str) -> Error {
        let text = format!("the schedule has the {call} in several places: use its buffers");
        self.refused(call, &text)
    }

    /// Returns the error of a call that must not be made while a start is active. A start that has failed stays active:
    /// then it is the failure.
    #[cold]
    pub fn start_active(&self, call: &str) -> Error {
        let cause = self.monitor.check().err().unwrap_or(Cause::StartActive);
        self.plan_state.worker.fault(cause, || self.call(call))
    }

    /// Returns the error of a start that was waited for before.
    #[cold]
    pub(crate) fn already_returned(&self) -> Error {
        self.plan_state.worker.fault(Cause::AlreadyReturned { what: "the start" }, || self.call("wait"))
    }

    /// Returns the error of a call with a wrong argument.
    #[cold]
    pub fn refused(&self, call: &str, text: &str) -> Error {
        self.plan_state.worker.fault(Cause::Argument(text.into()), || self.call(call))
    }

    #[cold]
    fn call(&self, what: &str) -> String {
        call(what, &self.name, &self.communicator)
    }

    /// Returns the name of a wait: `plan(allreduce 8 KiB, world, start 17)`.
    #[cold]
    fn start_under_way(&self) -> String {
        let Plan { name, communicator, .. } = self;
        format!("plan({name}, {communicator}, start {})", self.plan_state.started.load(Ordering::Relaxed))
    }
}

/// Returns the name of a call of a plan.
#[cold]
fn call(what: &str, name: &str, communicator: &str) -> String {
    format!("{what}({name}, {communicator})")
}

fn range_of(span: BufferSpan) -> Range<usize> {
    span.offset as usize..(span.offset + span.bytes) as usize
}

/// Writes into a buffer of a plan that has no start under way.
#[inline]
fn write_to(
    plan_state: &PlanState,
    call_state: &mut Option<InCallsState>,
    (buffer, at): (BufferId, u64),
    bytes: &[u8],
) -> Result<()> {
    if let Some(call_state) = call_state {
        let at = at as usize;
        let place = call_state.owned_mut().map(|state| &mut state.buffer_mut(buffer)[at..at + bytes.len()]);
        place.into_iter().for_each(|place| place.copy_from_slice(bytes));
        return Ok(());
    }
    let (to, len, worker) = (plan_state.own.byte(buffer, at, 0), bytes.len() as u64, &plan_state.worker);
    let is_done = len == 0 || worker.copy_out(BufferView::of(bytes), 0, to, len, CachePolicy::Cached);
    if is_done { Ok(()) } else { worker.put(to, bytes) }
}

/// Reads from a buffer of a plan that has no start under way.
#[inline]
fn read_from(
    plan_state: &PlanState,
    call_state: &Option<InCallsState>,
    (buffer, at): (BufferId, u64),
    into: &mut [u8],
) -> Result<()> {
    if let Some(call_state) = call_state {
        let at = at as usize;
        let place = call_state.owned().map(|state| &state.buffer(buffer)[at..at + into.len()]);
        place.into_iter().for_each(|place| into.copy_from_slice(place));
        return Ok(());
    }
    let (from, len, worker) = (plan_state.own.byte(buffer, at, 0), into.len() as u64, &plan_state.worker);
    let is_done = len == 0 || worker.copy_in(from, BufferView::of_mut(into), 0, len, CachePolicy::Cached);
    if is_done { Ok(()) } else { worker.get(from, into) }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if self.is_broken() {
            self.plan_state.is_left.store(true, Ordering::Relaxed);
        }
        self.mark_dropped();
    }
}
