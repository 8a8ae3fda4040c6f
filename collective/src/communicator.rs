//! A communicator: an ordered group of members that exchange messages and make collective calls. A member is named by
//! its place in the group.

use super::agreement::Agreed;
use super::call_name::CallName;
use super::current_call::{CallWord, CurrentCall, WORLD, call_on};
use crate::blocking::channel::{CollectiveChannel, SLOTS};
use crate::cached::entry::ScheduleCache;
use crate::call_kind::CallKind;
use crate::dissemination::Dissemination;
use crate::dropped_communicator::{Child, Children, CommunicatorMemory, DropMark, RecreateChain};
use crate::fabric_collectives::FabricCollectives;
use crate::failure::job_call::JobCallSignature;
use crate::failure::member::{MonitoredMember, SIGNALS};
use crate::failure::monitor::{FailureMonitor, RankMonitors};
use crate::failure::published_wait::Lane;
use crate::failure::signature::CallSignature;
use crate::fuzzy_barrier::departure::FuzzyDeparture;
use crate::fuzzy_barrier::state::Fuzzy;
use crate::group::Group;
use crate::job_barrier::MinMax;
use crate::message_algorithms::ONE_LINE_MAX;
use crate::message_algorithms::gather::allgather;
use crate::message_algorithms::run_now;
use crate::nonblocking::calls::Nonblocking;
use crate::nonblocking::channel as nonblocking;
use crate::nonblocking::task::ActiveCalls;
use crate::plan::registry::{PlanRegistry, Plans};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Error, ErrorKind, Rank, Result};
use tasuki_core::engine::{Worker, scoped_wait_probe_about, set_wait_probe};
use tasuki_message::Context;
use tasuki_schedule::selection::Selection;

/// Contexts of a communicator: for messages, for blocking collective calls, and for nonblocking ones.
const CONTEXTS: u64 = 3;
/// Set in the numbers of the contexts that members use to recreate a communicator.
const RECREATES: u64 = 1 << 39;

/// An ordered group of members that exchange messages and make collective calls.
#[derive(Debug)]
pub struct Communicator {
    group: Group,
    pub(crate) channel: CollectiveChannel,
    /// Nonblocking collective calls.
    pub(crate) nonblocking: Nonblocking,
    /// State that all communicators of the rank share.
    of_rank: Arc<RankShared>,
    /// The name of the communicator, and the collective call that a thread of this rank is in, if any.
    current_call: Arc<CurrentCall>,
    /// What the member tells of its fuzzy barriers when it leaves, if that is known before the first one: the signals
    /// have the same numbers on all members.
    pub(crate) fuzzy_departure: Option<Arc<FuzzyDeparture>>,
    /// The state of fuzzy barriers, made at the first one.
    pub(crate) fuzzy: OnceLock<Arc<Fuzzy>>,
    /// True while a thread of this rank makes that state.
    pub(crate) is_making_fuzzy: AtomicBool,
    /// Its plans, which also hold its failure monitor.
    plans: Arc<PlanRegistry>,
    /// The data from which algorithms are chosen.
    pub(crate) agreed: Agreed,
    /// The collectives that the network performs. Unset before the first call that could use them; None if the network
    /// has none.
    pub(crate) fabric_collectives: OnceLock<Option<FabricCollectives>>,
    /// The compiled schedules of repeated calls.
    pub(crate) cache: Mutex<ScheduleCache>,
    /// The communicators that were split from it.
    children: Children,
    /// The communicators that were recreated one from the other, and the number of this one among them.
    chain: RecreateChain,
    number_in_chain: u64,
    /// Says when it is dropped; None for the world. Last, so that all else is dropped before.
    drop_mark: Option<DropMark>,
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if self.drop_mark.is_some() {
            self.clear_cache();
        }
    }
}

/// State that all communicators of a rank share.
#[derive(Debug)]
struct RankShared {
    /// The next unused context number.
    contexts: AtomicU64,
    /// Bytes of this rank's parts of plans.
    plan_bytes: Arc<AtomicU64>,
    /// Nonblocking collective calls that are not complete.
    active_calls: Arc<ActiveCalls>,
    /// The number of the signal that is the alarm of each rank.
    alarm: u32,
    monitors: Arc<RankMonitors>,
}

/// A collective call under way. While it exists, no other call can begin. If it is dropped before it has ended, a panic
/// has ended the call.
// It holds one reference only: copying a larger guard would load words just after parts of them were stored, which is
// slow.
pub(crate) struct CallGuard<'c> {
    communicator: &'c Communicator,
}

impl CallGuard<'_> {
    /// Runs the call and ends it. If it fails or panics, the communicator has failed.
    #[inline]
    pub(crate) fn run<R>(self, body: impl FnOnce() -> Result<R>) -> Result<R> {
        let outcome = body().map_err(|error| self.failed(error));
        self.end();
        outcome
    }

    /// Reports the failure of the call, and explains it.
    #[cold]
    fn failed(&self, error: Error) -> Error {
        let communicator = self.communicator;
        let call = || communicator.current_call.call(communicator.word_of_call());
        let error = communicator.monitor().explain(error, communicator.worker(), &call);
        communicator.report(error.cause());
        error
    }

    /// Like [`run`](Self::run), for a call that all members may refuse together, with an inner error. If that [is about
    /// arguments](is_about_arguments) on any member, it is on all, and the communicator has failed. Each member notes
    /// that itself, so that all get their own errors. After other inner errors, for want of room or memory, the
    /// communicator goes on.
    pub(crate) fn run_agreed<R>(self, body: impl FnOnce() -> Result<Result<R>>) -> Result<R> {
        let communicator = self.communicator;
        self.run(|| {
            let outcome = body()?.map_err(|error| communicator.monitor().name_rank(error));
            if let Err(error) = &outcome
                && is_about_arguments(error.kind())
            {
                let word = communicator.word_of_call();
                communicator.monitor().note_agreed(communicator.worker(), word, error.cause());
            }
            Ok(outcome)
        })?
    }

    #[inline]
    fn end(self) {
        self.communicator.leave_call();
        std::mem::forget(self);
    }
}

impl Drop for CallGuard<'_> {
    #[cold]
    fn drop(&mut self) {
        self.communicator.report_panic();
        self.communicator.leave_call();
    }
}

/// How often a member pauses for the notice of one whose call has ended with an error.
const STALE_PAUSES: u32 = 1000;
/// Longest name of a communicator that is part of the name of another one.
const NAME_MAX: usize = 80;

/// Returns the name of a communicator that was made from `parent` by that call: `dup of world`. In a long chain of
/// communicators the middle of the names is left out.
fn name_of_part(how: &str, parent: &str) -> String {
    let first = parent.rsplit(" of ").next().unwrap_or(parent);
    if parent.len() > NAME_MAX { format!("{how} of .. of {first}") } else { format!("{how} of {parent}") }
}

/// Returns the name of the communicator that takes the place of one that has failed: `world (recreated)`, then
/// `world (recreated 2 times)`.
fn name_of_recreated(failed: &str) -> String {
    let (name, times) = match failed.strip_suffix(" times)").and_then(|name| name.rsplit_once(" (recreated "))
    {
        Some((name, times)) => (name, times.parse().unwrap_or(1)),
        None => failed.strip_suffix(" (recreated)").map_or((failed, 0_u64), |name| (name, 1)),
    };
    if times == 0 { format!("{name} (recreated)") } else { format!("{name} (recreated {} times)", times + 1) }
}

/// Returns true if errors of this kind say that arguments of members are wrong, or differ.
pub(crate) fn is_about_arguments(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Misuse | ErrorKind::Disagreement)
}

/// What each member contributes to a split.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct SplitRequest {
    /// The new communicator of this member, if it is to have one.
    colour: u64,
    /// Members are ordered by this key, and members with equal keys by their present place.
    key: i64,
    /// The context number that this member offers. The new communicator uses the offer of its first member.
    context: u64,
    slots: u32,
    /// The first of this member's signals for failures of the new communicator; [`NO_ROOM`] or [`NO_MEMBER`].
    signals: u32,
    /// Which earlier communicators this member no longer needs.
    not_needed: u64,
}

const _: () = assert!(size_of::<SplitRequest>() <= ONE_LINE_MAX);

/// Stands for the first signal of a member that found no room for its signals.
const NO_ROOM: u32 = u32::MAX;
/// In place of the first signal: the member has no colour.
const NO_MEMBER: u32 = u32::MAX - 1;

impl SplitRequest {
    fn is_member(&self) -> bool {
        self.signals != NO_MEMBER
    }
}

/// Returns the error of a split in which members of a colour disagree about the number of slots.
fn slots_that_differ(requests: &[SplitRequest]) -> Option<Cause> {
    let mut limits: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
    for &SplitRequest { colour, slots, .. } in requests.iter().filter(|request| request.is_member()) {
        let (least, most) = limits.entry(colour).or_insert((slots, slots));
        (*least, *most) = ((*least).min(slots), (*most).max(slots));
    }
    let (least, most) = limits.into_values().find(|(least, most)| least != most)?;
    Some(Cause::Disagree { member: None, what: "slots", least: least.into(), most: most.into() })
}

impl Communicator {
    /// Makes the communicator of all ranks, with `slots` slots for each pair and direction. `by` are the data from
    /// which this rank alone would choose algorithms. It must be the rank's first communicator. The rank must make it
    /// before it allocates signals that other ranks do not allocate, because signal numbers must be equal on all ranks.
    pub fn world(worker: Arc<Worker>, slots: u32, by: Selection) -> Result<Communicator> {
        let (rank, size) = (worker.rank(), worker.size());
        let signals =
            worker.registry().untouched_signals(Dissemination::fuzzy_signals(Dissemination::count(size)))?;
        let alarm = worker.registry().untouched_signals(1)?;
        let first = worker.registry().untouched_signals(SIGNALS)?;
        let monitors: Arc<RankMonitors> = Arc::default();
        let cell = worker.fabric().own_signal(alarm).map_err(Error::new)?;
        worker.alarm().set(worker.fabric(), cell, monitors.clone());
        let messages = Arc::new(Context::first(worker, slots));
        let current_call = CurrentCall::new(WORLD.into());
        let channel = CollectiveChannel::new(
            Arc::new(messages.for_collectives(1, SLOTS, None, Arc::downgrade(&current_call) as _)),
            rank,
        );
        let active_calls: Arc<ActiveCalls> = Arc::default();
        messages.add_finalize_hook(active_calls.clone())?;
        let nonblocking = Nonblocking::new(active_calls.clone(), |calls| {
            messages.for_collectives(2, nonblocking::SLOTS, None, calls)
        });
        let contexts = AtomicU64::new(CONTEXTS);
        let of_rank =
            Arc::new(RankShared { contexts, plan_bytes: Arc::default(), active_calls, alarm, monitors });
        let members = Rank::all(size).map(|rank| MonitoredMember { rank, first }).collect();
        let mut world =
            Communicator::of(messages, channel, nonblocking, rank, members, of_rank, current_call)?;
        let departure = world.new_departure(|_| signals).map_err(Error::new)?;
        world.messages().add_finalize_hook(departure.clone())?;
        world.fuzzy_departure = Some(departure);
        world.agreed = Agreed::new(by);
        Ok(world)
    }

    fn of(
        messages: Arc<Context>,
        channel: CollectiveChannel,
        nonblocking: Nonblocking,
        rank: Rank,
        members: Box<[MonitoredMember]>,
        of_rank: Arc<RankShared>,
        current_call: Arc<CurrentCall>,
    ) -> Result<Communicator> {
        let (group, plans) = (Group::new(messages, rank), Plans::default());
        let monitor = FailureMonitor::new(
            group.worker(),
            rank.index(),
            members,
            of_rank.alarm,
            current_call.clone(),
            &of_rank.monitors,
            plans.clone(),
        );
        let monitor = monitor.map_err(Error::new)?;
        let plans = PlanRegistry::new(group.clone(), monitor, plans, of_rank.plan_bytes.clone());
        let is_making_fuzzy = AtomicBool::new(false);
        let (fuzzy_departure, fuzzy) = (None, OnceLock::new());
        Ok(Communicator {
            group,
            channel,
            nonblocking,
            of_rank,
            current_call,
            fuzzy_departure,
            fuzzy,
            is_making_fuzzy,
            plans,
            agreed: Agreed::default(),
            fabric_collectives: OnceLock::new(),
            cache: Mutex::default(),
            children: Children::default(),
            chain: RecreateChain::default(),
            number_in_chain: 0,
            drop_mark: None,
        })
    }

    /// Returns its context for messages.
    #[inline(always)]
    pub fn messages(&self) -> &Arc<Context> {
        self.group.messages()
    }

    /// Returns its members.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Returns its name, as errors show it.
    pub fn name(&self) -> &Arc<str> {
        self.current_call.communicator_name()
    }

    /// Returns the text for a collective call on it.
    pub(crate) fn call(&self, kind: &CallKind) -> String {
        self.call_of(CallWord::of(kind))
    }

    pub(crate) fn call_of(&self, word: CallWord) -> String {
        self.current_call.call(word)
    }

    /// Returns the text for a call that is not in [`CallWord`], for example `grid([2, 3])`.
    pub(crate) fn call_on(&self, call: &str) -> String {
        call_on(call, self.name())
    }

    /// Returns this rank's place among the members.
    pub fn rank(&self) -> Rank {
        self.group.place()
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// Returns the bytes of buffers and signals that the plans and the cached schedules of this rank's communicators
    /// use.
    pub fn plan_bytes(&self) -> u64 {
        self.plans.bytes()
    }

    pub(crate) fn plans(&self) -> &Arc<PlanRegistry> {
        &self.plans
    }

    pub(crate) fn worker(&self) -> &Worker {
        self.group.worker()
    }

    /// Returns the communicators that were split from it.
    pub(crate) fn children(&self) -> &Children {
        &self.children
    }

    /// Returns its failure monitor.
    #[inline]
    pub(crate) fn monitor(&self) -> &Arc<FailureMonitor> {
        &self.plans.monitor
    }

    /// Splits the members into communicators by colour, ordered by key and then by present place. Returns None to a
    /// member without a colour. Collective.
    pub fn split(&self, colour: Option<u64>, key: i64, slots: u32) -> Result<Option<Communicator>> {
        let call =
            || self.call_on(&colour.map_or("split()".into(), |colour| format!("split(colour {colour})")));
        let name = |colour| name_of_part(&format!("split(colour {colour})"), self.name());
        self.divide(colour, key, slots, ("split", &call, &name))
    }

    /// Makes a communicator of the same members, in the same order. Collective.
    pub fn dup(&self) -> Result<Communicator> {
        let (call, name) = (|| self.call_on("dup()"), |_| name_of_part("dup", self.name()));
        let made = self.divide(Some(0), 0, self.messages().slots(), ("dup", &call, &name))?;
        made.ok_or_else(|| self.worker().fault(Cause::Bug("no communicator was made".into()), call))
    }

    /// Makes the communicators of the members with equal colours, named by their colour.
    fn divide(
        &self,
        colour: Option<u64>,
        key: i64,
        slots: u32,
        (what, call, name): (&str, &dyn Fn() -> String, &dyn Fn(u64) -> String),
    ) -> Result<Option<Communicator>> {
        self.begin_named(what, call)?.run_agreed(|| {
            let request = self.split_request(colour, key, slots);
            let request = request.and_then(|request| {
                self.children_word().map(|not_needed| SplitRequest { not_needed, ..request })
            });
            let request = request.map_err(|error| self.step_failed(error, call))?;
            let requests = self.allgather_steps(&[request]).map_err(|error| self.step_failed(error, call))?;
            let freed = self.children.settle(requests.iter().map(|request| request.not_needed));
            freed.map_err(|error| self.step_failed(error, call))?;
            if let Some(cause) = slots_that_differ(&requests) {
                self.children.enter(Child::Nothing);
                return Ok(Err(self.worker().fault(cause, call)));
            }
            let Some(colour) = colour else {
                self.children.enter(Child::Nothing);
                return Ok(Ok(None));
            };
            let chain = RecreateChain::default();
            let part = self.part_of(&requests, colour, (&chain, 0), name(colour), call);
            self.children.enter(if part.is_ok() { Child::Split(chain) } else { Child::Nothing });
            Ok(part.map(Some))
        })
    }

    /// Sets whether a failure of any communicator of the rank, which this rank finds, ends the job.
    pub fn abort_on_failure(&self, aborts: bool) {
        self.of_rank.monitors.abort_on_failure(aborts);
    }

    /// Makes a communicator with the members, the order and the number of slots of this one, which replaces this one
    /// after a failure. Collective. Works whether this communicator has failed or not, but only once for each
    /// communicator.
    pub fn recreate(&self) -> Result<Communicator> {
        let call = || self.call_on("recreate()");
        self.worker().check().map_err(|cause| self.worker().fault(cause, call))?;
        if self.monitor().lane_count(Lane::Recreate).swap(1, Ordering::Relaxed) > 0 {
            let text = "it was already recreated, or that has failed: use the new communicator";
            return Err(self.worker().fault(Cause::Argument(text.into()), call));
        }
        // The members exchange what they need in separate contexts, which hold no message of an earlier call.
        let ranks: Arc<[Rank]> = self.group.ranks().collect();
        let context = self.messages().number() | RECREATES;
        let current_call = CurrentCall::new(self.name().clone());
        current_call.note_text(call());
        current_call.one_call.begin(CallWord::of_name(Lane::Recreate.name()).bits());
        let names = Arc::downgrade(&current_call) as _;
        let channel = CollectiveChannel::new(
            Arc::new(self.messages().for_collectives(context + 1, SLOTS, Some(ranks), names)),
            self.rank(),
        );
        self.messages().progress().drop_finalized_hooks(self.worker())?; // those of fuzzy barriers
        let request = SplitRequest {
            not_needed: self.chain.are_over_before(self.number_in_chain)?.into(),
            ..self.split_request(Some(0), 0, self.messages().slots())?
        };
        let mut requests = vec![request; self.size()];
        let all = bytemuck::cast_slice_mut(&mut requests);
        let _monitored = scoped_wait_probe_about(self.monitor().probe(), Lane::Recreate.about(1));
        let exchanged = run_now(allgather(&channel, bytemuck::bytes_of(&request), all));
        let freed = exchanged.and_then(|()| channel.context().free().map(|()| requests));
        let requests = freed.map_err(|error| self.step_failed(error, &call))?;
        if requests.iter().all(|request| request.not_needed != 0) {
            self.chain.free_before(self.number_in_chain)?;
        }
        let place = (&self.chain, self.number_in_chain + 1);
        self.part_of(&requests, 0, place, name_of_recreated(self.name()), &call)
    }

    /// Returns what this member contributes to a split, without what it no longer needs.
    fn split_request(&self, colour: Option<u64>, key: i64, slots: u32) -> Result<SplitRequest> {
        // A context number that is offered but not used is never offered again.
        let next = self.of_rank.contexts.fetch_add(CONTEXTS, Ordering::Relaxed);
        let signals = match colour {
            Some(_) => self.worker().registry().untouched_signals(SIGNALS).unwrap_or(NO_ROOM),
            None => NO_MEMBER,
        };
        Ok(SplitRequest {
            colour: colour.unwrap_or(0),
            key,
            context: (self.worker().rank().0 as u64) << 40 | next,
            not_needed: 0,
            slots,
            signals,
        })
    }

    /// Makes this member's communicator from the requests of all members, with that number in a chain. Error, on all
    /// members of its colour: one of them has no room.
    fn part_of(
        &self,
        requests: &[SplitRequest],
        colour: u64,
        (chain, number): (&RecreateChain, u64),
        name: String,
        call: &dyn Fn() -> String,
    ) -> Result<Communicator> {
        let fault = |cause| self.worker().fault(cause, call);
        let mut members: Vec<usize> = (0..self.size())
            .filter(|&place| {
                let request = requests[place];
                request.is_member() && request.colour == colour
            })
            .collect();
        if let Some(place) = members.iter().find(|&&place| requests[place].signals == NO_ROOM) {
            let text = format!("member {place} has no signals left for another communicator");
            return Err(fault(Cause::no_room_at(Some(*place), text)));
        }
        members.sort_by_key(|&place| (requests[place].key, place));
        let context = requests[members[0]].context;
        let rank = members.iter().position(|&place| place == self.rank().0).unwrap_or_default();
        let ranks: Arc<[Rank]> = members
            .iter()
            .map(|&place| self.messages().rank_of(Rank(place)).expect("it is a member"))
            .collect();
        let first = |place: usize| requests[place].signals;
        let monitored = ranks.iter().zip(&members);
        let monitored =
            monitored.map(|(&rank, &place)| MonitoredMember { rank, first: first(place) }).collect();
        let signals = first(self.rank().0);
        let messages =
            Arc::new(self.messages().another(context, requests[self.rank().0].slots, Some(ranks.clone())));
        let for_collectives =
            |number, slots, calls| self.messages().for_collectives(number, slots, Some(ranks.clone()), calls);
        let current_call = CurrentCall::new(name.into());
        let channel = CollectiveChannel::new(
            Arc::new(for_collectives(context + 1, SLOTS, Arc::downgrade(&current_call) as _)),
            Rank(rank),
        );
        let of_rank = self.of_rank.clone();
        let steps = |calls| for_collectives(context + 2, nonblocking::SLOTS, calls);
        let nonblocking = Nonblocking::new(of_rank.active_calls.clone(), steps);
        let rank = Rank(rank);
        let mut made =
            Communicator::of(messages, channel, nonblocking, rank, monitored, of_rank, current_call)?;
        made.agreed = self.agreed.clone();
        let is_dropped = Arc::default();
        made.drop_mark = Some(DropMark(Arc::clone(&is_dropped)));
        (made.chain, made.number_in_chain) = (chain.clone(), number);
        chain.enter(number, made.memory(signals, is_dropped));
        Ok(made)
    }

    /// Returns what it uses, to be freed when all members have dropped it. `signals` is the first of its signals for
    /// failures.
    fn memory(&self, signals: u32, is_dropped: Arc<AtomicBool>) -> CommunicatorMemory {
        CommunicatorMemory {
            contexts: [self.channel.context().clone(), self.nonblocking.context().clone()],
            signals,
            plans: self.plans.clone(),
            children: self.children.clone(),
            is_dropped,
        }
    }

    /// Begins a collective call. Only one may be under way, because all members must know the order of calls.
    #[inline]
    pub(crate) fn begin(&self, kind: &CallKind, call: &dyn Fn() -> String) -> Result<CallGuard<'_>> {
        self.begin_as(CallWord::of(kind), CallSignature::of(kind), call)
    }

    /// Begins a collective call that is not an operation, of that name.
    pub(crate) fn begin_named(&self, name: &str, call: &dyn Fn() -> String) -> Result<CallGuard<'_>> {
        let name = CallName::named(name);
        self.begin_as(CallWord::of_name(name), CallSignature::of_name(name), call)
    }

    /// Returns the words of all members, in a collective call of that name, which matches no other call.
    pub fn exchange_words(&self, name: &str, words: &[u64], call: &dyn Fn() -> String) -> Result<Vec<u64>> {
        let guard = self.begin_named(name, call)?;
        guard.run(|| self.allgather_steps(words).map_err(|error| self.step_failed(error, call)))
    }

    /// Begins a collective call that is named by `word`.
    #[inline]
    pub(crate) fn begin_as(
        &self,
        word: CallWord,
        signature: CallSignature,
        call: &dyn Fn() -> String,
    ) -> Result<CallGuard<'_>> {
        let check = self.worker().check().and_then(|()| self.monitor().check());
        check.map_err(|cause| self.worker().fault(cause, call))?;
        if !self.current_call.one_call.is_none() {
            return Err(self.worker().fault(Cause::AnotherCall, call));
        }
        if word.is_named() {
            self.current_call.note_text(call());
        }
        self.current_call.one_call.begin(word.bits());
        set_wait_probe(self.monitor().probe());
        self.channel.begin_call(signature, self.monitor().note(signature));
        Ok(CallGuard { communicator: self })
    }

    /// Runs a collective call of the job, which goes by other means, beside the calls of this communicator, the world.
    /// So a member that waits in a call of the world finds that another one is in a call of the job instead, and the
    /// other way round. `body` may run twice: after a failure of the world that does not concern it, it goes on. If a
    /// rank gives up a call of the job when its time limit is reached, all calls of the job fail from then on, on all
    /// ranks.
    ///
    /// If the world fails because ranks were in a call of the job and others were not, each rank tells its program once,
    /// in whatever call comes first, and then the calls of the job go on. The parameter of `body` is true if this rank
    /// has done that before this call ([`JobBarrier::agree`](crate::job_barrier::JobBarrier::agree)).
    pub fn run_job_call(
        &self,
        what: JobCallSignature,
        call: &dyn Fn() -> String,
        body: impl Fn(bool) -> Result<MinMax>,
    ) -> Result<MinMax> {
        let monitor = self.monitor();
        if monitor.is_failed()
            && let Some(cause) = monitor.job_calls_given_up()
        {
            return Err(self.worker().fault(cause, call));
        }
        let is_after_failure = monitor.is_about_job_calls();
        if is_after_failure && !monitor.is_known_to_program() {
            return Err(self.worker().fault(monitor.failure(), call));
        }
        let body = || body(is_after_failure);
        let alone = || {
            let _monitored = scoped_wait_probe_about(monitor.probe(), Lane::JobAlone.about(0));
            body()
        };
        let outcome = match monitor.begin_job_call(what) {
            None => alone(),
            Some(job_call) => {
                let outcome = body();
                drop(job_call);
                let is_of_world = |error: &Error| matches!(error.cause(), Cause::CommunicatorFailed { .. });
                match outcome {
                    Err(error) if is_of_world(&error) && !monitor.is_about_job_calls() => alone(),
                    outcome => outcome,
                }
            }
        };
        if outcome.as_ref().is_err_and(Error::is_timeout) {
            monitor.give_up_job_calls(self.worker(), what);
        }
        outcome.and_then(|agreed| match agreed.is_void {
            true => Err(self.worker().fault(monitor.failure(), call)),
            false => Ok(agreed),
        })
    }

    #[inline]
    fn leave_call(&self) {
        set_wait_probe(0);
        self.current_call.one_call.end();
    }

    /// Reports to all members that the call under way has failed on this member.
    #[cold]
    fn report(&self, cause: &Cause) {
        self.monitor().report(self.worker(), self.word_of_call(), cause);
    }

    #[cold]
    fn report_panic(&self) {
        self.monitor().report_panic(self.worker(), self.word_of_call());
    }

    fn word_of_call(&self) -> CallWord {
        CallWord::from_bits(self.current_call.one_call.word())
    }

    /// Returns an error unless `root` is a member.
    pub(crate) fn check_root(&self, root: Rank, word: CallWord) -> Result<()> {
        if root.index() < self.size() {
            return Ok(());
        }
        let no_member = Cause::NoSuchMember { member: root.index(), size: self.size() };
        Err(self.refuse_call(no_member, word))
    }

    /// Refuses a collective call of that name, because an argument of this member is wrong. Returns the error, and
    /// makes the communicator fail on all members.
    #[cold]
    pub fn refuse(&self, cause: Cause, name: &str, call: &dyn Fn() -> String) -> Error {
        self.refuse_as(cause, CallWord::of_name(CallName::named(name)), call)
    }

    /// Refuses a collective call that this member has not begun, because an argument is wrong. All refusals pass here.
    /// The others may be in the call, and would wait for this member, or meet it in its next call.
    #[cold]
    pub(crate) fn refuse_as(&self, cause: Cause, word: CallWord, call: &dyn Fn() -> String) -> Error {
        self.monitor().report(self.worker(), word, &cause);
        self.monitor().name_rank(self.worker().fault(cause, call))
    }

    /// Like [`refuse_as`](Self::refuse_as), for a call that its word names.
    #[cold]
    pub(crate) fn refuse_call(&self, cause: Cause, word: CallWord) -> Error {
        self.refuse_as(cause, word, &|| self.call_of(word))
    }

    /// Names the collective call in an error of one of its steps, unless the error names it already. The memory of a
    /// step is gone if the call of its owner has ended with an error.
    pub(crate) fn step_failed(&self, error: Error, call: &dyn Fn() -> String) -> Error {
        if let Cause::Stale { .. } = error.cause() {
            // Its notice says why, and comes soon.
            for _ in 0..STALE_PAUSES {
                if let Some(cause) = self.monitor().read_notice() {
                    return self.worker().fault(cause, call);
                }
                self.worker().pause();
            }
            let first = "the call of another member has ended with an error".into();
            let cause = Cause::CommunicatorFailed { first, kind: ErrorKind::PeerFailed, peer: None };
            return self.worker().fault(cause, call);
        }
        error.in_outer_call(call())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_long_chains_stay_short() {
        let mut name = "world".to_string();
        for _ in 0..1000 {
            name = name_of_part("dup", &name);
            assert!(
                name.len() <= NAME_MAX + 20 && name.starts_with("dup of ") && name.ends_with("world"),
                "{name}"
            );
        }
    }

    #[test]
    fn recreated_communicators_are_counted() {
        let once = name_of_recreated("dup of world");
        let thrice = name_of_recreated(&name_of_recreated(&once));
        assert_eq!((&*once, &*thrice), ("dup of world (recreated)", "dup of world (recreated 3 times)"));
    }
}
