//! A communicator: members that exchange messages and make collective calls, each named by its place among them.

use super::agreement::Agreed;
use super::fuzzy::Fuzzy;
use super::habit::{Habits, Kind};
use super::link::{Link, SLOTS};
use super::nonblocking::{self, Begun, Going};
use super::offered::Offered;
use super::plan::Plans;
use super::roll::{KEPT, Noted, Roll, Watched};
use super::stages::Stages;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::Machine;
use tasuki_message::Context;
use tasuki_schedule::selection::{MEMBERS_MAX, Selection};

/// How many members a member and those that it tells in one round are. Telling one more costs less than a round.
pub(super) const RADIX: usize = 8;

/// Contexts of a communicator: for messages, for collective calls, and for those that were begun.
const CONTEXTS: u64 = 3;

/// Members that exchange messages and make collective calls.
#[derive(Debug)]
pub struct Communicator {
    messages: Arc<Context>,
    pub(super) link: Link,
    /// Collective calls that were begun.
    pub(super) begun: Begun,
    rank: Rank,
    size: usize,
    /// What all communicators of the rank share.
    of_rank: Arc<OfRank>,
    /// Whether a thread of this rank is in a collective call.
    called: AtomicU8,
    /// The first of the signals of its fuzzy barriers, if it is the same on all members.
    pub(super) fuzzy_signals: Option<u32>,
    /// Made at the first fuzzy barrier.
    pub(super) fuzzy: OnceLock<Arc<Fuzzy>>,
    /// Whether a thread of this rank is making it.
    pub(super) is_making_fuzzy: AtomicBool,
    /// Its plans.
    plans: Plans,
    /// What algorithms are chosen by.
    pub(super) agreed: Agreed,
    /// The first of the signals by which members leave that have made plans.
    pub(super) farewell: OnceLock<u32>,
    /// That they do.
    pub(super) leaving: OnceLock<()>,
    /// Which calls members are in; none where that cannot be told. Of all ranks from the first call on, else from the
    /// first plan on.
    pub(super) watched: OnceLock<Option<Watched>>,
    /// The first of this member's signals for that.
    pub(super) roll: OnceLock<u32>,
    /// Whether that is the same on all members.
    is_roll_common: bool,
    /// What the fabric does of its own for all members; none before the first call that could use it, or where it does
    /// nothing.
    pub(super) offered: OnceLock<Option<Offered>>,
    /// Calls that are made again and again.
    pub(super) habits: Mutex<Habits>,
}

/// What all communicators of a rank share.
#[derive(Debug)]
struct OfRank {
    /// Numbers of contexts that it has given out.
    contexts: AtomicU64,
    /// Bytes of its parts of plans.
    plan_bytes: Arc<AtomicU64>,
    /// Collective calls that were begun.
    going: Arc<Going>,
}

/// No thread is in a collective call; one is; one is while a panic is under way; or none may be: a call was left by a
/// panic, in the midst of its messages.
const FREE: u8 = 0;
const CALLED: u8 = 1;
const CALLED_IN_PANIC: u8 = 2;
const LOST: u8 = 3;

/// A collective call: while it lasts there is no other.
// No more than that: words that were just stored by halves are slow to copy.
pub(super) struct Ongoing<'c> {
    members: &'c Communicator,
    _noted: Option<Noted>,
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        let next = if std::thread::panicking() { self.members.after_panic() } else { FREE };
        self.members.called.store(next, Ordering::Release); // SYNC one-call
    }
}

/// What each member says in a split.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Wish {
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
    pub fn world(machine: Arc<Machine>, slots: u32, by: Selection) -> Result<Communicator> {
        let (rank, size) = (machine.rank(), machine.size());
        let signals = machine.registry().untouched_signals(Stages::signals(Stages::count(size)))?;
        let roll = OnceLock::from(machine.registry().untouched_signals(KEPT)?);
        let messages = Arc::new(Context::first(machine, slots));
        let link = Link::new(Arc::new(messages.for_steps(1, SLOTS, None)));
        let going: Arc<Going> = Arc::default();
        messages.owe(going.clone())?;
        let steps = messages.for_steps(2, nonblocking::SLOTS, None);
        let begun = Begun::new(Arc::new(steps), going.clone());
        let contexts = AtomicU64::new(CONTEXTS);
        let of_rank = Arc::new(OfRank { contexts, plan_bytes: Arc::default(), going });
        let world = Communicator::of(messages, link, begun, (rank, size), of_rank);
        let agreed = Agreed::new(by);
        Ok(Communicator { fuzzy_signals: Some(signals), roll, is_roll_common: true, agreed, ..world })
    }

    fn of(
        messages: Arc<Context>,
        link: Link,
        begun: Begun,
        (rank, size): (Rank, usize),
        of_rank: Arc<OfRank>,
    ) -> Communicator {
        let (called, is_making_fuzzy) = (AtomicU8::new(FREE), AtomicBool::new(false));
        let (fuzzy_signals, fuzzy, plans) = (None, OnceLock::new(), Plans::default());
        Communicator {
            messages,
            link,
            begun,
            rank,
            size,
            of_rank,
            called,
            fuzzy_signals,
            fuzzy,
            is_making_fuzzy,
            plans,
            agreed: Agreed::default(),
            farewell: OnceLock::new(),
            leaving: OnceLock::new(),
            watched: OnceLock::new(),
            roll: OnceLock::new(),
            is_roll_common: false,
            offered: OnceLock::new(),
            habits: Mutex::default(),
        }
    }

    /// Its messages.
    #[inline(always)]
    pub fn messages(&self) -> &Arc<Context> {
        &self.messages
    }

    /// This rank's place among the members.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes that plans of this rank's communicators take, and calls that became habits: buffers and signals.
    pub fn plan_bytes(&self) -> u64 {
        self.of_rank.plan_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn plan_bytes_counted(&self) -> &Arc<AtomicU64> {
        &self.of_rank.plan_bytes
    }

    pub(super) fn plans(&self) -> &Plans {
        &self.plans
    }

    pub(super) fn machine(&self) -> &Machine {
        self.messages.machine()
    }

    /// The member so many places further on, around the end: at most once around.
    #[inline]
    pub(super) fn after(&self, member: Rank, steps: usize) -> Rank {
        let at = member.index() + steps;
        Rank(if at < self.size { at } else { at - self.size } as u32)
    }

    /// All others, the next one first.
    pub(super) fn others(&self) -> impl Iterator<Item = Rank> + '_ {
        (1..self.size).map(|steps| self.after(self.rank, steps))
    }

    /// How far away the members are that a member has to do with in the round of `step`: 1 to 7 steps.
    pub(super) fn partners(&self, step: usize) -> impl Iterator<Item = usize> + use<> {
        let size = self.size;
        (1..RADIX).map(move |times| times * step).take_while(move |&at| at < size)
    }

    /// New communicators of the members that name the same colour, placed by key and then as they are here; none for
    /// one that names none. Collective.
    pub fn split(&self, colour: Option<u64>, key: i64, slots: u32) -> Result<Option<Communicator>> {
        // Numbers that are given in vain are never used again.
        let next = self.of_rank.contexts.fetch_add(CONTEXTS, Ordering::Relaxed);
        let own = u64::from(self.machine().rank().0) << 40 | next;
        let wish = Wish {
            colour: colour.unwrap_or(0),
            key,
            context: own,
            is_member: colour.is_some().into(),
            slots: slots.into(),
        };
        let mut wishes = vec![wish; self.size];
        self.allgather(&[wish], &mut wishes)?;
        let Some(colour) = colour else { return Ok(None) };
        let mut members: Vec<u32> = (0..self.size as u32)
            .filter(|&place| {
                let wish = wishes[place as usize];
                wish.is_member != 0 && wish.colour == colour
            })
            .collect();
        let wished = || members.iter().map(|&place| wishes[place as usize].slots);
        let (least, most) = (wished().min().unwrap_or(0), wished().max().unwrap_or(0));
        if least != most {
            let cause = Cause::Disagree { what: "slots", least, most };
            return Err(self.machine().fault(cause, || format!("split(colour {colour})")));
        }
        members.sort_by_key(|&place| (wishes[place as usize].key, place));
        let context = wishes[members[0] as usize].context;
        let rank = members.iter().position(|&place| place == self.rank.0).unwrap_or_default();
        let ranks: Arc<[Rank]> = members
            .iter()
            .map(|&place| self.messages.rank_of(Rank(place)).expect("it is a member"))
            .collect();
        let size = ranks.len();
        let messages = Arc::new(self.messages.another(context, slots, Some(ranks.clone())));
        let for_steps = |number, slots| Arc::new(self.messages.for_steps(number, slots, Some(ranks.clone())));
        let link = Link::new(for_steps(context + 1, SLOTS));
        let of_rank = self.of_rank.clone();
        let begun = Begun::new(for_steps(context + 2, nonblocking::SLOTS), of_rank.going.clone());
        let rank = Rank(rank as u32);
        let made = Communicator::of(messages, link, begun, (rank, size), of_rank);
        Ok(Some(Communicator { agreed: self.agreed.clone(), ..made }))
    }

    /// Begins a collective call: one at a time, for their order must be known to all members.
    ///
    /// The mark is a plain store, as the marks of slots are: a locked instruction would wait until what the last call
    /// wrote for its partners has reached them, which is a hand-over. So two threads that call at the very same time
    /// may not be told; they are in error, and can confuse nothing but this communicator.
    #[inline]
    pub(super) fn begin(&self, kind: Option<&Kind>, call: &dyn Fn() -> String) -> Result<Ongoing<'_>> {
        self.machine().check().map_err(|cause| self.machine().fault(cause, call))?;
        // SYNC one-call: what the last call left, perhaps another thread's, is seen.
        let called = self.called.load(Ordering::Acquire);
        if called != FREE {
            return Err(self.refuse_called(called, call));
        }
        let called = if std::thread::panicking() { CALLED_IN_PANIC } else { CALLED };
        self.called.store(called, Ordering::Relaxed);
        let watched = match self.watched.get() {
            Some(watched) => watched.as_ref(),
            None if self.is_roll_common => self.watch_from_now_on(),
            None => None,
        };
        let noted = match watched {
            Some(watched) => Some(watched.note(kind)),
            None => self.offered.get().and_then(Option::as_ref).map(|offered| offered.note(kind)),
        };
        Ok(Ongoing { members: self, _noted: noted })
    }

    #[cold]
    fn refuse_called(&self, called: u8, call: &dyn Fn() -> String) -> Error {
        let text = match called {
            LOST => "the operation of an earlier call panicked: this communicator is of no more use",
            _ => "another thread of this rank is in a collective call; their order must be known to all",
        };
        self.machine().fault(Cause::Argument(text.into()), call)
    }

    /// What comes after a call whose thread panics. If that ends the call others wait for messages that it has not
    /// sent, and would take those of a later call for them; so there is none, and they are told. If it was going its
    /// own steps, those are refused.
    #[cold]
    fn after_panic(&self) -> u8 {
        if self.called.load(Ordering::Relaxed) == CALLED_IN_PANIC || self.has_left_a_walk() {
            return FREE;
        }
        if let Some(watched) = self.watched.get().and_then(Option::as_ref) {
            watched.note_panic();
        }
        LOST
    }

    /// The first call of all ranks: from now on they find out who is in another one.
    #[cold]
    fn watch_from_now_on(&self) -> Option<&Watched> {
        let &first = self.roll.get()?;
        let firsts: Vec<_> = Rank::all(self.size).map(|rank| (rank, first)).collect();
        let _ = self.open_roll(&firsts); // one that cannot look hears of others' errors by messages
        self.watched.get()?.as_ref()
    }

    /// From now on members find out who is in another call, where all reach each other's signals: `firsts` are their
    /// ranks, and the first of the signals that tell which calls they are in.
    pub(super) fn open_roll(&self, firsts: &[(Rank, u32)]) -> Result<(), Cause> {
        let machine = self.machine();
        let is_for_all = firsts.len() <= MEMBERS_MAX && machine.reaches_words();
        let roll = if is_for_all { Roll::new(machine, self.rank().index(), firsts) } else { Ok(None) };
        let (roll, opened) = roll.map_or_else(|cause| (None, Err(cause)), |roll| (roll, Ok(())));
        let _ = self.watched.set(roll.map(|roll| Watched::new(machine, roll)));
        opened
    }

    /// A member that is to be the root.
    pub(super) fn check_root(&self, root: Rank, call: &dyn Fn() -> String) -> Result<()> {
        if root.index() < self.size {
            return Ok(());
        }
        Err(self.machine().fault(Cause::NoSuchRank { rank: root, size: self.size }, call))
    }

    /// Names the collective call in an error of one of its steps.
    pub(super) fn step_failed(&self, error: Error, call: &dyn Fn() -> String) -> Error {
        error.note(format!("in {}", call()))
    }
}
