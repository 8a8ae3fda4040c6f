//! Makes a plan or an execution of a schedule, together with all members: each member allocates its part, sends its
//! address to all others, and compiles its steps. Either all members get the plan, or none.

use crate::call_kind::CallSchedules;
use crate::communicator::is_about_arguments;
use crate::dissemination::Dissemination;
use crate::failure::monitor::FailureMonitor;
use crate::message_algorithms::ONE_LINE_MAX;
use crate::message_algorithms::Peers;
use crate::message_algorithms::gather::allgather_words;
use crate::plan::compile::calls::compile_execution;
use crate::plan::compile::inline_flag;
use crate::plan::compile::placement::{self, PlacedParts};
use crate::plan::compile::queues::{QueueSteps, StartThreshold};
use crate::plan::end::departed::DepartedMembers;
use crate::plan::end::shutdown::PlanShutdown;
use crate::plan::registry::PlanRegistry;
use crate::plan::run::in_calls::{InCalls, InCallsState, StartData};
use crate::plan::setup::layout::{DataPlacement, Layout, PlacedPart, PlanAddress};
use crate::plan::state::{Form, PlanState};
use bytemuck::{Pod, Zeroable};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result, ValueKind};
use tasuki_core::engine::executor::{EXPOSED_BYTES, Execution};
use tasuki_core::engine::{BufferView, CachePolicy, Worker};
use tasuki_core::queue::reduction::{ReduceOperation, Reduction, SharedOperation};
use tasuki_schedule::shape::DATA;
use tasuki_schedule::{RankPart, START, Schedule, StepTrigger, started};

/// What a schedule is compiled to.
pub(crate) enum PlanKind {
    /// Repeating queues, which any rank may run.
    Queues(SharedOperation),
    /// The execution of a plan. The calling thread runs it, on the given data.
    Execution(CallSchedules, StartData),
    /// The execution of cached calls, which use the buffers that each call passes. The schedules are variants for these
    /// calls, for example for other roots; the first is the one that is negotiated. All variants have equal buffers and
    /// signals, and raise each signal equally often in a start. The flag is true if members expose their buffers to
    /// each other, which only two members may do.
    Calls(CallSchedules, bool),
    /// The execution of nonblocking calls, with such variants. Members make them in different orders.
    NonblockingCalls(CallSchedules),
}

/// What members tell each other at the end: that a member has made the plan, that it found no room, or that the
/// schedule or an argument is wrong there.
const MADE: u64 = 1;
const NO_ROOM: u64 = 0;
const WRONG: u64 = 2;

/// What each member sends to all others when a plan is made. It fits in a short message.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct MemberSetup {
    base: PlanAddress,
    /// The fingerprint of the schedule.
    fingerprint: u64,
    /// A word with the bits of the plans that this member no longer needs.
    done: u64,
    /// The first of the signals that members use to leave together.
    plan_shutdown: u32,
    /// 0 if this member found no room for its part.
    found_room: u32,
}

const _: () = assert!(size_of::<MemberSetup>() <= ONE_LINE_MAX);

/// What a member prepares, in words: it is sent if members prepare different things.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
struct Description([u8; 128]);

impl Description {
    /// Keeps as much of the text as there is room for.
    fn new(text: &str) -> Description {
        let mut description = Description::zeroed();
        let text = &text[..text.floor_char_boundary(description.0.len())];
        description.0[..text.len()].copy_from_slice(text.as_bytes());
        description
    }

    fn text(&self) -> Cow<'_, str> {
        let len = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..len])
    }
}

/// A plan that all members have.
pub(crate) struct PreparedPlan {
    pub(crate) plan_state: Arc<PlanState>,
    /// The number that identifies it when it is dropped; 0 for nonblocking calls.
    pub(crate) number: u64,
    /// The steps, if they are for cached calls.
    pub(crate) execution: Option<Execution>,
    /// The state of the starts, if this rank runs the plan in its own calls.
    pub(crate) call_state: Option<InCallsState>,
}

impl PlanRegistry {
    /// Makes a plan or an execution of a schedule, for values of that type, together with all members, by messages of
    /// a call, whose text is `name`. The inner error means that no member has it.
    pub(crate) async fn negotiate(
        &self,
        peers: &impl Peers,
        (schedule, of): (&Schedule, ValueKind),
        part: &RankPart,
        kind: PlanKind,
        name: &str,
    ) -> Result<Result<PreparedPlan, Cause>> {
        let fault = |cause| self.group.worker().fault(cause, || "plan()".into());
        let data = match kind {
            PlanKind::Queues(_) => DataPlacement::OfPlan,
            PlanKind::Execution(..) | PlanKind::Calls(_, false) | PlanKind::NonblockingCalls(_) => {
                DataPlacement::CallBuffers
            }
            PlanKind::Calls(_, true) => DataPlacement::ExposedBuffer,
        };
        let draft = PlanDraft::new(self, part, data);
        let (fingerprint, combined) = (fingerprint(schedule, of, &kind), combined_by(&kind));
        let base = draft.as_ref().map_or(PlanAddress::zeroed(), |draft| draft.own.base);
        // The list of agreed frees needs the same order on all members.
        let is_in_order = !matches!(kind, PlanKind::NonblockingCalls(_));
        let done = if is_in_order { self.lock().word() } else { 0 };
        let plan_shutdown = self.name_shutdown_signal().map_err(fault)?;
        let word = MemberSetup { base, found_room: draft.is_ok().into(), fingerprint, done, plan_shutdown };
        let words = allgather_words(peers, &[word]).await?;
        if is_in_order {
            self.free_what_is_over(words.iter().map(|word| word.done));
        }
        self.register_shutdown(&words)?;
        let others = match words.iter().all(|word| word.fingerprint == words[0].fingerprint) {
            true => Vec::new(),
            false => {
                let text = format!("{name} of values of {}{combined}", of.class());
                allgather_words(peers, &[Description::new(&text)]).await?
            }
        };
        let plan_state = draft.and_then(|draft| match self.agree_on(&words, fingerprint, &others) {
            Ok(()) => Ok(draft.finish(self, (schedule, part), &words, kind)),
            Err(cause) => {
                draft.own.give_back(&draft.worker, draft.signals, &draft.counted);
                Err(cause)
            }
        });
        // No member may wait for a member that has failed. Also, until this exchange other members may still
        // initialise their buffers and signals.
        let refusal = match &plan_state {
            Ok((_, Ok(_))) => MADE,
            Ok((_, Err(cause))) | Err(cause) if is_about_arguments(cause.kind()) => WRONG,
            _ => NO_ROOM,
        };
        let all = allgather_words(peers, &[refusal]).await?;
        let cause = match plan_state {
            Ok((plan_state, Ok(steps))) if all.iter().all(|&one| one == MADE) => {
                return Ok(Ok(self.enter_made(plan_state, steps, is_in_order)));
            }
            Ok((plan_state, steps)) => {
                plan_state.free(self.group.messages());
                let text = "another member found no room for its part";
                steps.err().unwrap_or_else(|| Cause::no_room_at(None, text))
            }
            Err(cause) => cause,
        };
        // If the schedule is wrong for a member, all members say so, also one that found no room.
        let wrong = all.iter().position(|&one| one == WRONG).filter(|_| refusal != WRONG);
        let of_other =
            |other| Cause::mismatch(Some(other), format!("member {other} has refused the schedule"));
        Ok(Err(wrong.map_or(cause, of_other)))
    }

    /// Enters a plan that all members have made.
    fn enter_made(&self, plan_state: PlanState, steps: CompiledSteps, is_in_order: bool) -> PreparedPlan {
        let plan_state = Arc::new(plan_state);
        let number = if is_in_order { self.lock().enter(plan_state.clone()) } else { 0 };
        if !is_in_order {
            self.enter_nonblocking(plan_state.clone());
        }
        let CompiledSteps { execution, call_state } = steps;
        PreparedPlan { plan_state, number, execution, call_state }
    }

    /// Returns the first of the signals that members use to leave together. They are allocated with the first plan.
    fn name_shutdown_signal(&self) -> Result<u32, Cause> {
        if let Some(&first) = self.shutdown_signal.get() {
            return Ok(first);
        }
        let made = self.group.worker().registry().untouched_signals(Dissemination::count(self.group.size()));
        let first = made.map_err(|error| error.cause().clone())?;
        Ok(*self.shutdown_signal.get_or_init(|| first))
    }

    /// Registers the shutdown: from the first plan on, members leave together.
    fn register_shutdown(&self, words: &[MemberSetup]) -> Result<()> {
        if self.leaves_together.set(()).is_ok() {
            let (worker, plans) = (self.group.worker(), self.plans.clone());
            let stages = self.shutdown_stages(words);
            let stages = stages.map_err(|cause| worker.fault(cause, || "plan()".into()))?;
            self.group.messages().add_finalize_hook(Arc::new(PlanShutdown::new(
                plans,
                stages,
                self.is_freed.clone(),
                worker,
            )))?;
        }
        Ok(())
    }

    fn shutdown_stages(&self, words: &[MemberSetup]) -> Result<Dissemination, Cause> {
        let neighbours = |stage| self.group.neighbours(stage, |member| words[member.index()].plan_shutdown);
        let first = words[self.group.place().index()].plan_shutdown;
        Dissemination::new(self.group.worker(), first, Dissemination::count(self.group.size()), neighbours)
    }

    /// Returns an error unless all members passed the same schedule and found room for it. `descriptions` are what
    /// members prepare, if they differ.
    fn agree_on(
        &self,
        words: &[MemberSetup],
        fingerprint: u64,
        descriptions: &[Description],
    ) -> Result<(), Cause> {
        if let Some(other) = words.iter().position(|word| word.fingerprint != fingerprint) {
            let (theirs, ours) =
                (descriptions[other].text(), descriptions[self.group.place().index()].text());
            let text = if theirs == ours {
                format!("member {other} came with another schedule, type of values, or way of combining")
            } else {
                format!(
                    "member {other} came with another schedule, size, root, type of values, or way of combining, \
                     {theirs}; this one has {ours}"
                )
            };
            let text = format!("{text}: all members make the same plan together");
            return Err(Cause::mismatch(Some(other), text));
        }
        match words.iter().position(|word| word.found_room == 0) {
            Some(other) => {
                let text = format!("member {other} found no room for its part, so no member has the plan");
                Err(Cause::no_room_at(Some(other), text))
            }
            None => Ok(()),
        }
    }
}

/// Returns how the values of a plan are combined.
fn combined_by(kind: &PlanKind) -> String {
    let operation = match kind {
        PlanKind::Execution(_, start_data) => start_data.operation(),
        PlanKind::Queues(operation) => operation,
        PlanKind::Calls(..) | PlanKind::NonblockingCalls(_) => return String::new(), // each call passes its operation
    };
    match operation {
        ReduceOperation::Nothing => String::new(),
        ReduceOperation::Builtin(reduction) => format!(", combined by {reduction}"),
        ReduceOperation::UserDefined(_) => ", combined by an operation of the program".into(),
    }
}

/// Returns a hash of what must be equal on all members.
fn fingerprint(schedule: &Schedule, of: ValueKind, kind: &PlanKind) -> u64 {
    let mut hasher = DefaultHasher::new();
    (schedule.name(), schedule.ranks(), of).hash(&mut hasher);
    match kind {
        PlanKind::Execution(schedules, start_data) => {
            (schedules.pieces.count, schedules.pieces.longer, start_data.operation().text_for_comparison())
                .hash(&mut hasher);
        }
        PlanKind::Queues(operation) => operation.text_for_comparison().hash(&mut hasher),
        PlanKind::Calls(..) | PlanKind::NonblockingCalls(_) => {} // each call passes its operation
    }
    let compared = if schedule.is_local_view() { vec![] } else { vec![0, schedule.ranks() - 1] };
    for rank in compared {
        format!("{:?}", schedule.part(rank)).hash(&mut hasher);
    }
    hasher.finish()
}

/// The allocated memory and signals of a part, before the members agree.
struct PlanDraft {
    worker: Arc<Worker>,
    own: PlacedPart,
    data: DataPlacement,
    /// The number of its signals, and the initial counters of those of the part.
    signals: u32,
    initial: Vec<u64>,
    counted: Arc<AtomicU64>,
}

impl PlanDraft {
    fn new(registry: &PlanRegistry, part: &RankPart, data: DataPlacement) -> Result<PlanDraft, Cause> {
        let worker = registry.group.worker().clone();
        let layout = Layout::of(part, data);
        let count = part.signal_decls().len() as u32;
        let own_cause = |error: tasuki_core::base::Error| error.cause().clone();
        let has_queues = data == DataPlacement::OfPlan;
        let all = count + u32::from(has_queues);
        let signals = worker.registry().private_signals(all).map_err(own_cause)?;
        let block = match layout.bytes {
            0 => 0,
            bytes => match worker.registry().allocate_local(bytes) {
                Ok(block) => block,
                Err(error) => {
                    worker.registry().free_signals(signals, all);
                    return Err(own_cause(error));
                }
            },
        };
        let initial = (signals..signals + count).map(|signal| worker.count_of_own(signal)).collect();
        let base = PlanAddress { block, signals, starts: if has_queues { signals + count } else { 0 } };
        let (own, counted) = (PlacedPart::new(worker.rank(), base, part, data), registry.plan_bytes.clone());
        counted.fetch_add(own.bytes(all), Ordering::Relaxed);
        match data {
            DataPlacement::CallBuffers => inline_flag::clear(&worker, &own, part),
            DataPlacement::ExposedBuffer => {
                let nothing = [0; EXPOSED_BYTES as usize];
                worker.copy_out(
                    BufferView::of(&nothing),
                    0,
                    own.byte(DATA, 0, 0),
                    EXPOSED_BYTES,
                    CachePolicy::Cached,
                );
            }
            DataPlacement::OfPlan => {}
        }
        Ok(PlanDraft { own, worker, data, signals: all, initial, counted })
    }

    /// Compiles the part, now that the addresses of the other parts are known. Error: it cannot be compiled.
    fn finish(
        self,
        registry: &PlanRegistry,
        (schedule, part): (&Schedule, &RankPart),
        words: &[MemberSetup],
        kind: PlanKind,
    ) -> (PlanState, Result<CompiledSteps, Cause>) {
        let (how, operator) = match &kind {
            PlanKind::Execution(..)
            | PlanKind::Calls(..)
            | PlanKind::NonblockingCalls(_)
            | PlanKind::Queues(ReduceOperation::Nothing) => (None, None),
            PlanKind::Queues(ReduceOperation::Builtin(how)) => (Some(*how), None),
            PlanKind::Queues(ReduceOperation::UserDefined(operator)) => {
                let number = self.worker.operators().add(operator.clone());
                (Some(Reduction::user_defined(number, operator.value_bytes() as u32)), Some(number))
            }
        };
        let waits = |trigger: &StepTrigger| *trigger != started();
        let mut plan_state = PlanState {
            worker: self.worker,
            takes_part: !part.steps().is_empty() || part.finish_conditions().iter().any(waits),
            own: self.own,
            signals: self.signals,
            form: Form::Calls,
            started: Arc::default(),
            passed_after: AtomicU64::new(0),
            is_left: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            asked: AtomicU32::new(0),
            starts: None,
            operator,
            counted: self.counted,
        };
        let others = plan_state.others(registry, schedule, part, words, self.data);
        let steps = others.and_then(|others| {
            let placed = PlacedParts { own: &plan_state.own, initial: &self.initial, others: &others };
            let compile = |schedules: &CallSchedules| {
                compile_execution(&placed, schedules, &plan_state.worker, (part.rank(), self.data))
            };
            match kind {
                PlanKind::Execution(schedules, start_data) => {
                    let execution = compile(&schedules)?;
                    plan_state.set_execution(&registry.monitor, execution, start_data)
                }
                PlanKind::Calls(schedules, _) | PlanKind::NonblockingCalls(schedules) => {
                    Ok(CompiledSteps { execution: Some(compile(&schedules)?), call_state: None })
                }
                PlanKind::Queues(_) => {
                    let (queues, start_thresholds) =
                        (placed.compile_queues(part, how)?, placed.start_thresholds(part));
                    plan_state.make_queues(queues, how, start_thresholds)?;
                    plan_state.watch_departures(registry, words).map(|()| CompiledSteps::default())
                }
            }
        });
        (plan_state, steps)
    }
}

/// The steps that this rank runs itself, if any: those of cached calls, or those of a plan.
#[derive(Default)]
struct CompiledSteps {
    execution: Option<Execution>,
    call_state: Option<InCallsState>,
}

impl PlanState {
    /// Returns the parts that this rank's part refers to, with their addresses.
    fn others(
        &self,
        registry: &PlanRegistry,
        schedule: &Schedule,
        part: &RankPart,
        words: &[MemberSetup],
        data: DataPlacement,
    ) -> Result<BTreeMap<u32, PlacedPart>, Cause> {
        let place = |member: u32| {
            let rank = registry.group.rank_of(Rank::from_word(member))?;
            let part = schedule.part(member as usize);
            Ok((member, PlacedPart::new(rank, words[member as usize].base, &part, data)))
        };
        placement::named(part).into_iter().map(place).collect()
    }

    fn set_execution(
        &mut self,
        monitor: &Arc<FailureMonitor>,
        execution: Execution,
        start_data: StartData,
    ) -> Result<CompiledSteps, Cause> {
        let memory = start_data.memory();
        let (worker, monitor) = (self.worker.clone(), Arc::downgrade(monitor));
        let (in_calls, call_state) = InCalls::new(worker, monitor, execution, start_data)?;
        self.own.beside = memory;
        self.counted.fetch_add(memory, Ordering::Relaxed);
        self.form = Form::Execution(Arc::new(in_calls));
        Ok(CompiledSteps { execution: None, call_state: Some(call_state) })
    }

    /// Registers the probe that detects members that leave without a start.
    fn watch_departures(&mut self, registry: &PlanRegistry, words: &[MemberSetup]) -> Result<(), Cause> {
        let address_of = |member: Rank| words[member.index()].base;
        let starts = Arc::new(DepartedMembers::new(
            &registry.group,
            &registry.monitor,
            self.started.clone(),
            address_of,
        )?);
        let wait_probe = self.worker.wait_probes().add(starts.clone());
        self.starts = Some((starts, wait_probe));
        Ok(())
    }

    fn make_queues(
        &mut self,
        queues: Vec<QueueSteps>,
        how: Option<Reduction>,
        start_thresholds: Vec<StartThreshold>,
    ) -> Result<(), Cause> {
        let start = self.own.number(START);
        let mut made = Vec::new();
        let mut made_all = Ok(());
        for queue in queues {
            match self.worker.make_repeating_queue(&queue.steps, how, start, queue.per_start) {
                Ok(own) => made.push(own),
                Err(cause) => {
                    made_all = Err(cause);
                    break;
                }
            }
        }
        let cell = |start_threshold: StartThreshold| {
            Ok((self.worker.fabric().own_signal(start_threshold.signal)?, start_threshold))
        };
        let cells = start_thresholds.into_iter().map(cell).collect::<Result<_, Cause>>();
        let (cells, found) = cells.map_or_else(|cause| (Box::default(), Err(cause)), |cells| (cells, Ok(())));
        // Set even if a queue could not be made, so that the others are freed.
        self.form = Form::Queues(made.into(), cells);
        made_all.and(found)
    }
}
