//! A communicator: an ordered group of members that exchange messages and make collective calls. A member is named by
//! its place in the group.

use super::agreement::Agreed;
use super::current_call::{CallWord, CurrentCall, call_on};
use crate::blocking::channel::{CollectiveChannel, SLOTS};
use crate::cached::schedule_cache::{CallKind, ScheduleCache};
use crate::dissemination::Dissemination;
use crate::fabric_collectives::FabricCollectives;
use crate::fuzzy_barrier::Fuzzy;
use crate::mismatch::call_log::{CallLog, KEPT, LoggedCall, MismatchCheck};
use crate::nonblocking::{self, ActiveCalls, Nonblocking};
use crate::plan::Plans;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_message::Context;
use tasuki_schedule::selection::{MEMBERS_MAX, Selection};

/// How many members a member and those that it tells in one round are. Telling one more costs less than a round.
pub(crate) const RADIX: usize = 8;

/// Contexts of a communicator: for messages, for collective calls, and for those that were begun.
const CONTEXTS: u64 = 3;

/// Members that exchange messages and make collective calls.
#[derive(Debug)]
pub struct Communicator {
    messages: Arc<Context>,
    pub(crate) channel: CollectiveChannel,
    /// Collective calls that were begun.
    pub(crate) nonblocking: Nonblocking,
    rank: Rank,
    size: usize,
    /// What all communicators of the rank share.
    of_rank: Arc<RankShared>,
    /// Its name, and whether a thread of this rank is in a collective call, and in which.
    current_call: Arc<CurrentCall>,
    /// The first of the signals of its fuzzy barriers, if it is the same on all members.
    pub(crate) fuzzy_signals: Option<u32>,
    /// Made at the first fuzzy barrier.
    pub(crate) fuzzy: OnceLock<Arc<Fuzzy>>,
    /// Whether a thread of this rank is making it.
    pub(crate) is_making_fuzzy: AtomicBool,
    /// Its plans.
    plans: Plans,
    /// What algorithms are chosen by.
    pub(crate) agreed: Agreed,
    /// The first of the signals by which members leave that have made plans.
    pub(crate) plan_shutdown: OnceLock<u32>,
    /// That they do.
    pub(crate) leaving: OnceLock<()>,
    /// Which calls members are in; none where that cannot be told. Of all ranks from the first call on, else from the
    /// first plan on.
    pub(crate) mismatch_check: OnceLock<Option<MismatchCheck>>,
    /// The first of this member's signals for that.
    pub(crate) call_log: OnceLock<u32>,
    /// Whether that is the same on all members.
    is_call_log_common: bool,
    /// What the fabric does of its own for all members; none before the first call that could use it, or where it does
    /// nothing.
    pub(crate) fabric_collectives: OnceLock<Option<FabricCollectives>>,
    /// Calls that are made again and again.
    pub(crate) cache: Mutex<ScheduleCache>,
}

/// What all communicators of a rank share.
#[derive(Debug)]
struct RankShared {
    /// Numbers of contexts that it has given out.
    contexts: AtomicU64,
    /// Bytes of its parts of plans.
    plan_bytes: Arc<AtomicU64>,
    /// Collective calls that were begun.
    active_calls: Arc<ActiveCalls>,
}

/// No thread is in a collective call; or none may be: a call was left by a panic, in the midst of its messages. Else a
/// thread is in the call of that [`CallWord`].
const NO_CALL: u64 = 0;
const LEFT_BY_PANIC: u64 = u64::MAX;
/// Beside the word of the call: it was made while a panic was under way.
const IN_PANIC: u64 = 1 << 63;

/// A collective call: while it lasts there is no other.
// No more than that: words that were just stored by halves are slow to copy.
pub(crate) struct CallGuard<'c> {
    communicator: &'c Communicator,
    _logged: Option<LoggedCall>,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let next = if std::thread::panicking() { self.communicator.after_panic() } else { NO_CALL };
        self.communicator.current_call.word.store(next, Ordering::Release); // SYNC one-call
    }
}

/// What each member says in a split.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct SplitRequest {
    /// Which of the new communicators; none of them if it is not `is_member`.
    colour: u64,
    /// Its place there, by this and then by its present place.
    key: i64,
    /// The number of a context that it gives if it comes to be the first.
    context: u64,
    is_member: u64,
    slots: u64,
}

impl Communicator {
    /// The communicator of all ranks, with so many slots for each pair and direction, and what this rank would choose
    /// algorithms by. The first one of a rank, and made before it tells others of signals that only it has.
    pub fn world(worker: Arc<Worker>, slots: u32, by: Selection) -> Result<Communicator> {
        let (rank, size) = (worker.rank(), worker.size());
        let signals =
            worker.registry().untouched_signals(Dissemination::signals(Dissemination::count(size)))?;
        let call_log = OnceLock::from(worker.registry().untouched_signals(KEPT)?);
        let messages = Arc::new(Context::first(worker, slots));
        let current_call = CurrentCall::new("world".into());
        let channel = CollectiveChannel::new(Arc::new(messages.for_collectives(
            1,
            SLOTS,
            None,
            Arc::downgrade(&current_call) as _,
        )));
        let active_calls: Arc<ActiveCalls> = Arc::default();
        messages.add_finalize_hook(active_calls.clone())?;
        let nonblocking = Nonblocking::new(active_calls.clone(), |calls| {
            messages.for_collectives(2, nonblocking::SLOTS, None, calls)
        });
        let contexts = AtomicU64::new(CONTEXTS);
        let of_rank = Arc::new(RankShared { contexts, plan_bytes: Arc::default(), active_calls });
        let world = Communicator::of(messages, channel, nonblocking, (rank, size), of_rank, current_call);
        let agreed = Agreed::new(by);
        Ok(Communicator { fuzzy_signals: Some(signals), call_log, is_call_log_common: true, agreed, ..world })
    }

    fn of(
        messages: Arc<Context>,
        channel: CollectiveChannel,
        nonblocking: Nonblocking,
        (rank, size): (Rank, usize),
        of_rank: Arc<RankShared>,
        current_call: Arc<CurrentCall>,
    ) -> Communicator {
        let is_making_fuzzy = AtomicBool::new(false);
        let (fuzzy_signals, fuzzy, plans) = (None, OnceLock::new(), Plans::default());
        Communicator {
            messages,
            channel,
            nonblocking,
            rank,
            size,
            of_rank,
            current_call,
            fuzzy_signals,
            fuzzy,
            is_making_fuzzy,
            plans,
            agreed: Agreed::default(),
            plan_shutdown: OnceLock::new(),
            leaving: OnceLock::new(),
            mismatch_check: OnceLock::new(),
            call_log: OnceLock::new(),
            is_call_log_common: false,
            fabric_collectives: OnceLock::new(),
            cache: Mutex::default(),
        }
    }

    /// Its messages.
    #[inline(always)]
    pub fn messages(&self) -> &Arc<Context> {
        &self.messages
    }

    /// What it is called where calls are told.
    pub(crate) fn name(&self) -> &Arc<str> {
        self.current_call.communicator_name()
    }

    /// How a collective call on it is told.
    pub(crate) fn call(&self, kind: &CallKind) -> String {
        self.call_of(CallWord::of(kind))
    }

    pub(crate) fn call_of(&self, word: CallWord) -> String {
        self.current_call.call(word)
    }

    /// The same of a call that is no operation: `grid([2, 3])`.
    pub(crate) fn call_on(&self, call: &str) -> String {
        call_on(call, self.name())
    }

    /// This rank's place among the members.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes that the plans and the cached schedules of this rank's communicators take: buffers and
    /// signals.
    pub fn plan_bytes(&self) -> u64 {
        self.of_rank.plan_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn plan_bytes_counted(&self) -> &Arc<AtomicU64> {
        &self.of_rank.plan_bytes
    }

    pub(crate) fn plans(&self) -> &Plans {
        &self.plans
    }

    pub(crate) fn worker(&self) -> &Worker {
        self.messages.worker()
    }

    /// The member so many places further on, around the end: at most once around.
    #[inline]
    pub(crate) fn after(&self, member: Rank, steps: usize) -> Rank {
        let at = member.index() + steps;
        Rank(if at < self.size { at } else { at - self.size } as u32)
    }

    /// All others, the next one first.
    pub(crate) fn others(&self) -> impl Iterator<Item = Rank> + '_ {
        (1..self.size).map(|steps| self.after(self.rank, steps))
    }

    /// How far away the members are that a member has to do with in the round of `step`: 1 to 7 steps.
    pub(crate) fn partners(&self, step: usize) -> impl Iterator<Item = usize> + use<> {
        let size = self.size;
        (1..RADIX).map(move |times| times * step).take_while(move |&at| at < size)
    }

    /// New communicators of the members that name the same colour, placed by key and then as they are here; none for
    /// one that names none. Collective.
    pub fn split(&self, colour: Option<u64>, key: i64, slots: u32) -> Result<Option<Communicator>> {
        let call =
            || self.call_on(&colour.map_or("split()".into(), |colour| format!("split(colour {colour})")));
        // Numbers that are given in vain are never used again.
        let next = self.of_rank.contexts.fetch_add(CONTEXTS, Ordering::Relaxed);
        let own = u64::from(self.worker().rank().0) << 40 | next;
        let request = SplitRequest {
            colour: colour.unwrap_or(0),
            key,
            context: own,
            is_member: colour.is_some().into(),
            slots: slots.into(),
        };
        let guard = self.begin(None, &call)?;
        let requests = self.allgather_steps(&[request]).map_err(|error| self.step_failed(error, &call))?;
        drop(guard);
        let Some(colour) = colour else { return Ok(None) };
        let mut members: Vec<u32> = (0..self.size as u32)
            .filter(|&place| {
                let request = requests[place as usize];
                request.is_member != 0 && request.colour == colour
            })
            .collect();
        let requested = || members.iter().map(|&place| requests[place as usize].slots);
        let (least, most) = (requested().min().unwrap_or(0), requested().max().unwrap_or(0));
        if least != most {
            let cause = Cause::Disagree { what: "slots", least, most };
            return Err(self.worker().fault(cause, call));
        }
        members.sort_by_key(|&place| (requests[place as usize].key, place));
        let context = requests[members[0] as usize].context;
        let rank = members.iter().position(|&place| place == self.rank.0).unwrap_or_default();
        let ranks: Arc<[Rank]> = members
            .iter()
            .map(|&place| self.messages.rank_of(Rank(place)).expect("it is a member"))
            .collect();
        let size = ranks.len();
        let messages = Arc::new(self.messages.another(context, slots, Some(ranks.clone())));
        let for_collectives =
            |number, slots, calls| self.messages.for_collectives(number, slots, Some(ranks.clone()), calls);
        let current_call = CurrentCall::new(format!("split(colour {colour}) of {}", self.name()).into());
        let channel = CollectiveChannel::new(Arc::new(for_collectives(
            context + 1,
            SLOTS,
            Arc::downgrade(&current_call) as _,
        )));
        let of_rank = self.of_rank.clone();
        let steps = |calls| for_collectives(context + 2, nonblocking::SLOTS, calls);
        let nonblocking = Nonblocking::new(of_rank.active_calls.clone(), steps);
        let rank = Rank(rank as u32);
        let made = Communicator::of(messages, channel, nonblocking, (rank, size), of_rank, current_call);
        Ok(Some(Communicator { agreed: self.agreed.clone(), ..made }))
    }

    /// Begins a collective call: one at a time, for their order must be known to all members.
    ///
    /// The mark is a plain store, as the marks of slots are: a locked instruction would wait until what the last call
    /// wrote for its partners has reached them, which is a hand-over. So two threads that call at the very same time
    /// may not be told; they are in error, and can confuse nothing but this communicator.
    #[inline]
    pub(crate) fn begin(&self, kind: Option<&CallKind>, call: &dyn Fn() -> String) -> Result<CallGuard<'_>> {
        self.begin_as(kind.map_or(CallWord::PREPARES, CallWord::of), kind, call)
    }

    /// The same for a call that is told by a word of its own.
    #[inline]
    pub(crate) fn begin_as(
        &self,
        word: CallWord,
        kind: Option<&CallKind>,
        call: &dyn Fn() -> String,
    ) -> Result<CallGuard<'_>> {
        self.worker().check().map_err(|cause| self.worker().fault(cause, call))?;
        // SYNC one-call: what the last call left, perhaps another thread's, is seen.
        let current = self.current_call.word.load(Ordering::Acquire);
        if current != NO_CALL {
            return Err(self.refuse_second_call(current, call));
        }
        if word == CallWord::PREPARES {
            self.current_call.note_preparing(call());
        }
        let in_panic = if std::thread::panicking() { IN_PANIC } else { 0 };
        self.current_call.word.store(word.bits() | in_panic, Ordering::Relaxed);
        let mismatch_check = match self.mismatch_check.get() {
            Some(mismatch_check) => mismatch_check.as_ref(),
            None if self.is_call_log_common => self.start_mismatch_check(),
            None => None,
        };
        let logged = match mismatch_check {
            Some(mismatch_check) => Some(mismatch_check.note(kind)),
            None => self
                .fabric_collectives
                .get()
                .and_then(Option::as_ref)
                .map(|fabric_collectives| fabric_collectives.note(kind)),
        };
        Ok(CallGuard { communicator: self, _logged: logged })
    }

    #[cold]
    fn refuse_second_call(&self, current: u64, call: &dyn Fn() -> String) -> Error {
        let text = match current {
            LEFT_BY_PANIC => "the operation of an earlier call panicked: this communicator is of no more use",
            _ => "another thread of this rank is in a collective call; their order must be known to all",
        };
        self.worker().fault(Cause::Argument(text.into()), call)
    }

    /// What comes after a call whose thread panics. If that ends the call others wait for messages that it has not
    /// sent, and would take those of a later call for them; so there is none, and they are told. If it was running
    /// its compiled steps, those are refused.
    #[cold]
    fn after_panic(&self) -> u64 {
        if self.current_call.word.load(Ordering::Relaxed) & IN_PANIC != 0 || self.was_left_by_panic() {
            return NO_CALL;
        }
        if let Some(mismatch_check) = self.mismatch_check.get().and_then(Option::as_ref) {
            mismatch_check.log_panic();
        }
        LEFT_BY_PANIC
    }

    /// The first call of all ranks: from now on they find out who is in another one.
    #[cold]
    fn start_mismatch_check(&self) -> Option<&MismatchCheck> {
        let &first = self.call_log.get()?;
        let firsts: Vec<_> = Rank::all(self.size).map(|rank| (rank, first)).collect();
        let _ = self.open_call_log(&firsts); // one that cannot look hears of others' errors by messages
        self.mismatch_check.get()?.as_ref()
    }

    /// From now on members find out who is in another call, where all reach each other's signals: `firsts` are their
    /// ranks, and the first of the signals that tell which calls they are in.
    pub(crate) fn open_call_log(&self, firsts: &[(Rank, u32)]) -> Result<(), Cause> {
        let worker = self.worker();
        let is_for_all = firsts.len() <= MEMBERS_MAX && worker.reaches_words();
        let call_log = if is_for_all { CallLog::new(worker, self.rank().index(), firsts) } else { Ok(None) };
        let (call_log, opened) =
            call_log.map_or_else(|cause| (None, Err(cause)), |call_log| (call_log, Ok(())));
        let _ = self.mismatch_check.set(call_log.map(|call_log| MismatchCheck::new(worker, call_log)));
        opened
    }

    /// A member that is to be the root.
    pub(crate) fn check_root(&self, root: Rank, call: &dyn Fn() -> String) -> Result<()> {
        if root.index() < self.size {
            return Ok(());
        }
        Err(self.worker().fault(Cause::NoSuchRank { rank: root, size: self.size }, call))
    }

    /// Names the collective call in an error of one of its steps, unless that says it already.
    pub(crate) fn step_failed(&self, error: Error, call: &dyn Fn() -> String) -> Error {
        let call = call();
        if error.call() == call { error } else { error.note(format!("in {call}")) }
    }
}
