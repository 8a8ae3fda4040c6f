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

/// A member and the members that it sends to in one round. One more message costs less than a further round.
pub(crate) const RADIX: usize = 8;

/// Contexts of a communicator: for messages, for blocking collective calls, and for nonblocking ones.
const CONTEXTS: u64 = 3;

/// An ordered group of members that exchange messages and make collective calls.
#[derive(Debug)]
pub struct Communicator {
    messages: Arc<Context>,
    pub(crate) channel: CollectiveChannel,
    /// Nonblocking collective calls.
    pub(crate) nonblocking: Nonblocking,
    rank: Rank,
    size: usize,
    /// State that all communicators of the rank share.
    of_rank: Arc<RankShared>,
    /// The name of the communicator, and the collective call that a thread of this rank is in, if any.
    current_call: Arc<CurrentCall>,
    /// The first signal of its fuzzy barriers, if it has the same number on all members.
    pub(crate) fuzzy_signals: Option<u32>,
    /// The state of fuzzy barriers, made at the first one.
    pub(crate) fuzzy: OnceLock<Arc<Fuzzy>>,
    /// True while a thread of this rank makes that state.
    pub(crate) is_making_fuzzy: AtomicBool,
    /// Its plans.
    plans: Plans,
    /// The data by which algorithms are chosen.
    pub(crate) agreed: Agreed,
    /// The first of the signals by which members that have made plans leave together.
    pub(crate) plan_shutdown: OnceLock<u32>,
    /// Set when this member is registered to leave that way.
    pub(crate) leaving: OnceLock<()>,
    /// The check for members in different calls; None where members cannot read each other's words. The communicator
    /// of all ranks has it from the first call on, others from the first plan on.
    pub(crate) mismatch_check: OnceLock<Option<MismatchCheck>>,
    /// The first of this member's signals for the call log.
    pub(crate) call_log: OnceLock<u32>,
    /// True if the call log's first signal has an equal number on all members.
    is_call_log_common: bool,
    /// The collectives of the network itself. Unset before the first call that could use them; None if there are
    /// none.
    pub(crate) fabric_collectives: OnceLock<Option<FabricCollectives>>,
    /// The compiled schedules of repeated calls.
    pub(crate) cache: Mutex<ScheduleCache>,
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
}

/// Values of the word of the current call: no thread is in a collective call; or no thread may enter one, because a
/// panic ended a call in the middle of its messages. Otherwise the word is the [`CallWord`] of the call.
const NO_CALL: u64 = 0;
const LEFT_BY_PANIC: u64 = u64::MAX;
/// Set in addition to the word of the call if it was made while its thread was panicking.
const IN_PANIC: u64 = 1 << 63;

/// A collective call under way. While it exists, no other call can begin.
// It holds nothing more: to copy words that were just stored in smaller pieces is slow.
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

/// What each member contributes to a split.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct SplitRequest {
    /// The new communicator of this member; unused unless `is_member`.
    colour: u64,
    /// Members are ordered by this and then by their present place.
    key: i64,
    /// The context number that this member offers. The one of the first member of the new communicator is used.
    context: u64,
    is_member: u64,
    slots: u64,
}

impl Communicator {
    /// Makes the communicator of all ranks, with `slots` slots for each pair and direction, and the data by which
    /// this rank would choose algorithms. It must be the rank's first communicator, and be made before the rank
    /// allocates signals that other ranks do not allocate, because signal numbers must be equal on all ranks.
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

    /// Returns its context for messages.
    #[inline(always)]
    pub fn messages(&self) -> &Arc<Context> {
        &self.messages
    }

    /// Returns its name, as it appears in names of calls.
    pub(crate) fn name(&self) -> &Arc<str> {
        self.current_call.communicator_name()
    }

    /// Returns the text for a collective call on it.
    pub(crate) fn call(&self, kind: &CallKind) -> String {
        self.call_of(CallWord::of(kind))
    }

    pub(crate) fn call_of(&self, word: CallWord) -> String {
        self.current_call.call(word)
    }

    /// Returns the text for a call that is no operation: `grid([2, 3])`.
    pub(crate) fn call_on(&self, call: &str) -> String {
        call_on(call, self.name())
    }

    /// Returns this rank's place among the members.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the bytes of buffers and signals that the plans and the cached schedules of this rank's communicators
    /// use.
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

    /// Returns the member `steps` places after `member`, wrapping around at most once.
    #[inline]
    pub(crate) fn after(&self, member: Rank, steps: usize) -> Rank {
        let at = member.index() + steps;
        Rank(if at < self.size { at } else { at - self.size } as u32)
    }

    /// Returns all other members, the next one first.
    pub(crate) fn others(&self) -> impl Iterator<Item = Rank> + '_ {
        (1..self.size).map(|steps| self.after(self.rank, steps))
    }

    /// Returns the distances of the members with which a member communicates in the round of `step`: 1 to 7 times
    /// `step`.
    pub(crate) fn partners(&self, step: usize) -> impl Iterator<Item = usize> + use<> {
        let size = self.size;
        (1..RADIX).map(move |times| times * step).take_while(move |&at| at < size)
    }

    /// Splits the members into communicators by colour, ordered by key and then by present place. Returns None to a
    /// member without a colour. Collective.
    pub fn split(&self, colour: Option<u64>, key: i64, slots: u32) -> Result<Option<Communicator>> {
        let call =
            || self.call_on(&colour.map_or("split()".into(), |colour| format!("split(colour {colour})")));
        // A number that is not chosen is never used again.
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

    /// Begins a collective call. Only one may be under way, because all members must know the order of calls.
    ///
    /// The word of the call is written by a plain store, as the state of slots is. A locked instruction would wait
    /// until the stores of the last call have reached its partners, which costs a cache-line transfer. So two threads
    /// that call at the very same time may both get in undetected. That is an error of the program, and it can
    /// disturb nothing but this communicator.
    #[inline]
    pub(crate) fn begin(&self, kind: Option<&CallKind>, call: &dyn Fn() -> String) -> Result<CallGuard<'_>> {
        self.begin_as(kind.map_or(CallWord::PREPARES, CallWord::of), kind, call)
    }

    /// Begins a collective call that is named by `word`.
    #[inline]
    pub(crate) fn begin_as(
        &self,
        word: CallWord,
        kind: Option<&CallKind>,
        call: &dyn Fn() -> String,
    ) -> Result<CallGuard<'_>> {
        self.worker().check().map_err(|cause| self.worker().fault(cause, call))?;
        // SYNC one-call: makes the writes of the last call visible, which may have been made by another thread.
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

    /// Returns the word of the current call after a call whose thread panics. If the panic ends the call, other
    /// members wait for messages that were not sent, and would take those of a later call for them. So no later call
    /// is allowed, and the call log tells the others. If the call was running compiled steps, the cache refuses later
    /// calls instead.
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

    /// Starts the check for different calls, at the first call on the communicator of all ranks.
    #[cold]
    fn start_mismatch_check(&self) -> Option<&MismatchCheck> {
        let &first = self.call_log.get()?;
        let firsts: Vec<_> = Rank::all(self.size).map(|rank| (rank, first)).collect();
        let _ = self.open_call_log(&firsts); // without it, messages still report the errors of others
        self.mismatch_check.get()?.as_ref()
    }

    /// Opens the call log, if all members reach each other's signals: from now on members detect that they are in
    /// different calls. `firsts` are the ranks of the members and the first signal of each one's call log.
    pub(crate) fn open_call_log(&self, firsts: &[(Rank, u32)]) -> Result<(), Cause> {
        let worker = self.worker();
        let is_for_all = firsts.len() <= MEMBERS_MAX && worker.reaches_words();
        let call_log = if is_for_all { CallLog::new(worker, self.rank().index(), firsts) } else { Ok(None) };
        let (call_log, opened) =
            call_log.map_or_else(|cause| (None, Err(cause)), |call_log| (call_log, Ok(())));
        let _ = self.mismatch_check.set(call_log.map(|call_log| MismatchCheck::new(worker, call_log)));
        opened
    }

    /// Returns an error unless `root` is a member.
    pub(crate) fn check_root(&self, root: Rank, call: &dyn Fn() -> String) -> Result<()> {
        if root.index() < self.size {
            return Ok(());
        }
        Err(self.worker().fault(Cause::NoSuchRank { rank: root, size: self.size }, call))
    }

    /// Names the collective call in an error of one of its steps, unless the error names it already.
    pub(crate) fn step_failed(&self, error: Error, call: &dyn Fn() -> String) -> Error {
        let call = call();
        if error.call() == call { error } else { error.note(format!("in {call}")) }
    }
}
