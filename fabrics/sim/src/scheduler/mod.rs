//! Whose turn it is. One thread of the run at a time, in the order of virtual time; it goes on without a switch as
//! long as nothing comes before it, and lets the events between happen itself.

pub(crate) mod actor;
pub(crate) mod call_costs;
pub(crate) mod call_kind;
pub(crate) mod deadlock;
pub(crate) mod event_queue;
pub(crate) mod handoff;
pub(crate) mod next_event;
pub(crate) mod rank_exit;

use crate::run_hash::RunEvent;
use crate::scheduler::actor::State;
use crate::scheduler::call_kind::CallKind;
use crate::scheduler::next_event::Next;
use crate::state::SimState;
use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard};
use tasuki_core::base::{Cause, Rank};

/// A run, as all its threads share it.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: Mutex<SimState>,
    /// Told when the last thread has ended.
    pub(crate) ended: Condvar,
}

pub(crate) type Guard<'r> = MutexGuard<'r, SimState>;

/// EventKind the thread of a killed rank unwinds with. It never reaches a panic hook. Who catches panics of a rank's
/// program may let this one pass by `std::panic::resume_unwind`; its next call unwinds again in any case.
#[derive(Clone, Copy, Debug)]
pub struct Killed;

thread_local! {
    /// Which run and which of its actors the thread is.
    static SELF: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

impl Scheduler {
    pub(crate) fn new(state: SimState) -> Scheduler {
        Scheduler { state: Mutex::new(state), ended: Condvar::new() }
    }

    pub(crate) fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn name(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The calling thread becomes an actor and waits for its first turn. False: it shall not even begin.
    pub(crate) fn begin(&self, actor: usize) -> bool {
        SELF.set((self.name(), actor));
        let baton = self.lock().actors[actor].baton.clone();
        baton.take();
        !self.lock().actors[actor].killed
    }

    /// Which actor the calling thread is.
    fn me(&self) -> Option<usize> {
        let (run, actor) = SELF.get();
        (run == self.name()).then_some(actor)
    }

    /// That the calling thread may not make calls, if so.
    pub(crate) fn check_thread(&self) -> Result<usize, Cause> {
        let text = "this thread was not started by the simulated rank: start threads with job.threads";
        self.me().ok_or_else(|| Cause::Argument(text.into()))
    }

    /// Unwinds if the rank was killed.
    fn unless_killed<'r>(&'r self, state: Guard<'r>, me: usize) -> Guard<'r> {
        if state.is_doomed(me) {
            drop(state);
            std::panic::resume_unwind(Box::new(Killed));
        }
        state
    }

    /// A call of the calling thread, made for `rank`: its time passes, others have their turns. Panics in a thread
    /// that is not of this run, which no other answer would stop.
    pub(crate) fn enter(&self, rank: Rank, call: CallKind) -> Guard<'_> {
        let me = match self.check_thread() {
            Ok(me) => me,
            Err(cause) => panic!("{cause}"),
        };
        let mut state = self.lock();
        state.counts.steps += 1;
        let (now, numbers) = (state.now, [call.number(), u64::from(rank.0), me as u64]);
        state.trace.note(now, RunEvent::CallKind, numbers);
        state.notice(rank);
        if call.acts() {
            state.watch.acted();
            state.stir(me);
        }
        let cost = call.cost_ns();
        let cost = if let CallKind::Compute(_) = call { cost } else { state.about(cost) };
        let at = now.saturating_add(cost);
        state = self.pass_time(state, me, at);
        if call.serves() {
            state.serve(rank);
        }
        state
    }

    /// Lets time pass until `at_ns` for the calling thread.
    pub(crate) fn pass_time<'r>(&'r self, mut state: Guard<'r>, me: usize, at_ns: u64) -> Guard<'r> {
        let rank = state.actors[me].rank;
        let turn = state.moment(at_ns, rank);
        while !state.is_doomed(me) {
            match state.before(me, turn) {
                Next::Nothing => {
                    state.now = at_ns;
                    state.actors[me].clock = at_ns;
                    break;
                }
                Next::Event => state.let_happen(),
                Next::Turn(next) => {
                    state.ready(me, turn);
                    state = self.hand_over(state, me, next);
                    break;
                }
            }
        }
        state.check_limits();
        self.unless_killed(state, me)
    }

    /// The calling thread pauses until something wakes it, or until `until_ns`.
    pub(crate) fn block<'r>(&'r self, mut state: Guard<'r>, me: usize, until_ns: u64) -> Guard<'r> {
        if state.actors[me].killed && state.actors[me].joins.is_none() {
            return self.unless_killed(state, me); // a thread that unwinds does not wait
        }
        let numbers = [u64::from(state.actors[me].rank.0), me as u64, 0];
        let now = state.now;
        state.trace.note(now, RunEvent::Wait, numbers);
        if until_ns < u64::MAX {
            state.resume_at(me, until_ns);
        }
        state.actors[me].state = State::Paused;
        let next = state.let_happen_until_turn().unwrap_or(me);
        if next == me {
            state.resume(me);
        } else {
            state = self.hand_over(state, me, next);
        }
        state.check_limits();
        self.unless_killed(state, me)
    }

    /// Another thread's turn, until it is ours again.
    fn hand_over<'r>(&'r self, mut state: Guard<'r>, me: usize, next: usize) -> Guard<'r> {
        state.counts.switches += 1;
        state.running = next;
        state.resume(next);
        let (mine, theirs) = (state.actors[me].baton.clone(), state.actors[next].baton.clone());
        drop(state);
        theirs.pass();
        mine.take();
        self.lock()
    }

    /// The first turn of all.
    pub(crate) fn start(&self) {
        self.pass_on(self.lock());
    }

    /// Gives the turn to whoever is next, from a thread that does not wait for another.
    fn pass_on(&self, mut state: Guard<'_>) {
        let Some(next) = state.let_happen_until_turn() else {
            drop(state);
            return self.ended.notify_all();
        };
        state.running = next;
        state.resume(next);
        let theirs = state.actors[next].baton.clone();
        drop(state);
        theirs.pass();
    }

    /// The calling thread ends as an actor and gives its turn away.
    pub(crate) fn end(&self, actor: usize, panicked: Option<&str>) {
        SELF.set((0, 0));
        let mut state = self.lock();
        state.retire(actor, panicked);
        self.pass_on(state);
    }

    /// Waits until a thread of the run has ended; not at all in a thread that is none of the run itself.
    pub(crate) fn join(&self, rank: Rank, actor: usize) {
        let Some(me) = self.me() else { return };
        self.lock().actors[me].joins = Some(actor);
        let mut state = self.enter(rank, CallKind::Thread);
        while state.actors[actor].state != State::Ended {
            state = self.block(state, me, u64::MAX);
        }
        state.actors[me].joins = None;
    }
}
