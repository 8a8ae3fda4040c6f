//! The scheduler. One thread of the run has the turn at a time, in the order of virtual time. A thread goes on without
//! a switch as long as no other turn comes before its own, and it runs the events in between itself.

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
use crate::scheduler::next_event::NextStep;
use crate::state::SimState;
use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard};
use tasuki_core::base::{Cause, Rank};

/// A run, shared by all its threads.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: Mutex<SimState>,
    /// Notified when the last thread has ended.
    pub(crate) ended: Condvar,
}

pub(crate) type Guard<'r> = MutexGuard<'r, SimState>;

/// The panic payload that unwinds the thread of a killed rank. It never reaches a panic hook. Code that catches panics
/// of a rank's program may pass it on with `std::panic::resume_unwind`; otherwise the rank's next call unwinds again.
#[derive(Clone, Copy, Debug)]
pub struct Killed;

thread_local! {
    /// The address of the run, and the actor in it, of this thread.
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

    /// Makes the calling thread an actor and waits for its first turn. Returns false if the actor was killed before.
    pub(crate) fn begin(&self, actor: usize) -> bool {
        SELF.set((self.name(), actor));
        let handoff = self.lock().actors[actor].handoff.clone();
        handoff.take();
        !self.lock().actors[actor].killed
    }

    /// Returns the actor that the calling thread is.
    fn me(&self) -> Option<usize> {
        let (run, actor) = SELF.get();
        (run == self.name()).then_some(actor)
    }

    /// Returns the actor of the calling thread, or an error if the run did not start the thread.
    pub(crate) fn check_thread(&self) -> Result<usize, Cause> {
        let text = "this thread was not started by the simulated rank: start threads with job.threads, and drive futures \
                    by block_on, not by an executor with threads of its own";
        self.me().ok_or_else(|| Cause::Argument(text.into()))
    }

    /// Unwinds if the thread was killed.
    fn unless_killed<'r>(&'r self, state: Guard<'r>, me: usize) -> Guard<'r> {
        if state.must_unwind(me) {
            drop(state);
            std::panic::resume_unwind(Box::new(Killed));
        }
        state
    }

    /// Begins a call of the calling thread for `rank`: its time passes, and other threads have their turns. Panics in a
    /// thread that the run did not start, because an error would not stop it.
    pub(crate) fn enter(&self, rank: Rank, call: CallKind) -> Guard<'_> {
        let me = match self.check_thread() {
            Ok(me) => me,
            Err(cause) => panic!("{cause}"),
        };
        let mut state = self.lock();
        state.counts.steps += 1;
        let (now, numbers) = (state.now, [call.number(), rank.0 as u64, me as u64]);
        state.trace.record(now, RunEvent::Call, numbers);
        state.check_node_state(rank);
        if call.is_action() {
            state.watch.thread_acted();
            state.wake_operation_waiters(me);
        }
        let cost = call.cost_ns();
        let cost = if let CallKind::Compute(_) = call { cost } else { state.draw_about(cost) };
        let at = now.saturating_add(cost);
        state = self.pass_time(state, me, at);
        if call.makes_progress() {
            state.deliver_inbox(rank);
        }
        state
    }

    /// Lets time pass until `at_ns` for the calling thread.
    pub(crate) fn pass_time<'r>(&'r self, mut state: Guard<'r>, me: usize, at_ns: u64) -> Guard<'r> {
        let rank = state.actors[me].rank;
        let turn = state.moment(at_ns, rank);
        while !state.must_unwind(me) {
            match state.next_before(me, turn) {
                NextStep::Continue => {
                    state.now = at_ns;
                    state.actors[me].clock = at_ns;
                    break;
                }
                NextStep::Event => state.run_next_event(),
                NextStep::Turn(next) => {
                    state.ready(me, turn);
                    state = self.hand_over(state, me, next);
                    break;
                }
            }
        }
        state.check_limits();
        self.unless_killed(state, me)
    }

    /// Pauses the calling thread until something wakes it, or until `until_ns`.
    pub(crate) fn block<'r>(&'r self, mut state: Guard<'r>, me: usize, until_ns: u64) -> Guard<'r> {
        if state.actors[me].killed && state.actors[me].joining.is_none() {
            return self.unless_killed(state, me); // a thread that unwinds does not wait
        }
        let numbers = [state.actors[me].rank.0 as u64, me as u64, 0];
        let now = state.now;
        state.trace.record(now, RunEvent::Wait, numbers);
        if until_ns < u64::MAX {
            state.resume_at(me, until_ns);
        }
        state.actors[me].state = State::Paused;
        let next = state.run_events_until_turn().unwrap_or(me);
        if next == me {
            state.resume(me);
        } else {
            state = self.hand_over(state, me, next);
        }
        state.check_limits();
        self.unless_killed(state, me)
    }

    /// Gives another thread the turn and waits until this one has it again.
    fn hand_over<'r>(&'r self, mut state: Guard<'r>, me: usize, next: usize) -> Guard<'r> {
        state.counts.switches += 1;
        state.running = next;
        state.resume(next);
        let (mine, theirs) = (state.actors[me].handoff.clone(), state.actors[next].handoff.clone());
        drop(state);
        theirs.pass();
        mine.take();
        self.lock()
    }

    /// Gives out the first turn of the run.
    pub(crate) fn start(&self) {
        self.pass_on(self.lock());
    }

    /// Gives the next thread the turn; this thread does not wait for another turn.
    fn pass_on(&self, mut state: Guard<'_>) {
        let Some(next) = state.run_events_until_turn() else {
            drop(state);
            return self.ended.notify_all();
        };
        state.running = next;
        state.resume(next);
        let theirs = state.actors[next].handoff.clone();
        drop(state);
        theirs.pass();
    }

    /// Ends the calling thread's actor and gives its turn away.
    pub(crate) fn end(&self, actor: usize, panicked: Option<&str>) {
        SELF.set((0, 0));
        let mut state = self.lock();
        state.actor_ended(actor, panicked);
        self.pass_on(state);
    }

    /// Waits until a thread of the run has ended. Returns at once in a thread that is not of the run itself.
    pub(crate) fn join(&self, rank: Rank, actor: usize) {
        let Some(me) = self.me() else { return };
        self.lock().actors[me].joining = Some(actor);
        let mut state = self.enter(rank, CallKind::Thread);
        while state.actors[actor].state != State::Ended {
            state = self.block(state, me, u64::MAX);
        }
        state.actors[me].joining = None;
    }
}
