//! The platform of a simulated rank: virtual time, and pauses that end when an event concerns the rank.
//!
//! No wake-up is lost. Every event that concerns a rank increments the rank's event count. A thread records the count
//! when it polls, before it checks anything; a pause that finds another count than the recorded one returns at once.
//! Changes that other threads of the rank make to its table of operations are no events. The pausing thread checks
//! the table after all time of the pausing call has passed, so nothing can happen between that check and the sleep.
//! A thread that changes the table or goes to sleep wakes the threads that wait for the table.

use crate::scheduler::actor::depends_on_operations;
use crate::scheduler::call_costs::{RELAX_MAX_NS, RELAX_NS};
use crate::scheduler::call_kind::CallKind;
use crate::scheduler::{Guard, Killed, Scheduler};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tasuki_core::base::Rank;
use tasuki_core::engine::{Condition, Pause, Platform};

/// Clock and pause of one simulated rank.
#[derive(Debug)]
pub struct SimPlatform {
    run: Arc<Scheduler>,
    rank: Rank,
}

impl SimPlatform {
    pub(crate) fn new(run: Arc<Scheduler>, rank: Rank) -> SimPlatform {
        SimPlatform { run, rank }
    }

    /// Pauses a thread that retries in a loop. The pause grows while no event concerns the rank.
    fn relax<'r>(&'r self, mut state: Guard<'r>, me: usize) {
        let one = &mut state.actors[me];
        one.retries += 1;
        let at_most = (RELAX_NS << one.retries.min(20)).min(RELAX_MAX_NS);
        let until = state.now + state.draw_about(at_most);
        let state = self.run.block(state, me, until);
        self.record_seen_events(state, me);
    }

    /// Records that the thread knows all events up to now. Returns true if there were new ones.
    fn record_seen_events(&self, mut state: Guard<'_>, me: usize) -> bool {
        let event_count = state.event_count(self.rank);
        let one = &mut state.actors[me];
        let is_new = std::mem::replace(&mut one.seen, event_count) != event_count;
        if is_new {
            one.retries = 0;
        }
        is_new
    }

    /// Wakes threads of this rank whose conditions this thread has met. Returns true if its own condition is met.
    fn looks_again(&self, pause: &Pause<'_>, me: usize) -> bool {
        let mut met: Vec<usize> = Vec::new();
        for (actor, condition) in self.waiting(me) {
            if (pause.met)(&condition) {
                met.push(actor);
            }
        }
        let mut state = self.run.lock();
        met.into_iter().for_each(|actor| state.wake(actor));
        drop(state);
        depends_on_operations(pause.condition) && (pause.met)(pause.condition)
    }

    /// Returns the paused threads of this rank that wait for its operations.
    fn waiting(&self, me: usize) -> Vec<(usize, Condition)> {
        let state = self.run.lock();
        let others = state.rank(self.rank).actors.iter().filter(|&&actor| actor != me);
        let waits = |&actor: &usize| Some((actor, state.actors[actor].condition.clone()?));
        others.filter_map(waits).filter(|(_, condition)| depends_on_operations(condition)).collect()
    }
}

impl Platform for SimPlatform {
    fn now_ns(&self) -> u64 {
        self.run.enter(self.rank, CallKind::Clock).now
    }

    fn observer_now_ns(&self) -> u64 {
        self.run.lock().now
    }

    fn pause(&self, pause: Pause<'_>) {
        let state = self.run.enter(self.rank, CallKind::Pause);
        let me = state.running;
        if pause.until_ns <= state.now {
            return self.relax(state, me);
        }
        drop(state); // `met` reads the engine's table; this thread still has the turn
        if self.looks_again(&pause, me) {
            return;
        }
        let mut state = self.run.lock();
        let is_quiescent = state.rank(self.rank).in_flight_count == 0;
        let is_met = matches!(pause.condition, Condition::Settled) && is_quiescent;
        if state.event_count(self.rank) == state.actors[me].seen && !is_met {
            state.actors[me].condition = Some(pause.condition.clone());
            state = self.run.block(state, me, pause.until_ns);
        }
        self.record_seen_events(state, me);
    }

    fn keep_on_standby(&self, over: &Condition) {
        // No time passes, so nothing happens between the caller's last check and the sleep.
        let mut state = self.run.lock();
        let me = state.running;
        state.actors[me].condition = Some(over.clone());
        state.actors[me].is_on_standby = true;
        let mut state = self.run.block(state, me, u64::MAX);
        state.actors[me].is_on_standby = false;
    }

    fn activate_standby(&self) {
        self.run.enter(self.rank, CallKind::Lookup).activate_standby(self.rank);
    }

    fn spins(&self) -> u32 {
        0
    }

    fn has_processor(&self) -> bool {
        false
    }

    fn waited(&self, _: u64) {}

    fn lets_threads_sleep(&self) -> bool {
        false // virtual time would stand still meanwhile
    }

    fn compute(&self, ns: u64) {
        drop(self.run.enter(self.rank, CallKind::Compute(ns)));
    }

    fn spawn(&self, body: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn FnOnce() + Send>> {
        let mut state = self.run.enter(self.rank, CallKind::Thread);
        let actor = state.add_actor(self.rank);
        let (number, stack) = (state.rank(self.rank).actors.len() - 1, state.sim.stack_bytes);
        drop(state);
        let (run, rank) = (self.run.clone(), self.rank);
        let thread = std::thread::Builder::new()
            .name(format!("rank {rank}.{number}"))
            .stack_size(stack)
            .spawn(move || run_thread(&run, actor, body));
        let mut state = self.run.lock();
        match thread {
            Ok(thread) => {
                let now = state.now;
                state.resume_at(actor, now);
                drop(state);
                let run = self.run.clone();
                Ok(Box::new(move || {
                    run.join(rank, actor);
                    drop(thread.join());
                }))
            }
            Err(error) => {
                state.actor_ended(actor, None);
                Err(error)
            }
        }
    }
}

/// Runs a thread of the run, from its first turn until it gives its last turn away.
pub(crate) fn run_thread<R>(run: &Scheduler, actor: usize, body: impl FnOnce() -> R) -> Result<R, ThreadEnd> {
    if !run.begin(actor) {
        // Drop what the body owns while this thread still has the turn: calls of destructors unwind.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(body)));
        run.end(actor, None);
        return Err(ThreadEnd::Killed);
    }
    let outcome = catch_unwind(AssertUnwindSafe(body)).map_err(|panic| match panic.downcast::<Killed>() {
        Ok(_) => ThreadEnd::Killed,
        Err(panic) => ThreadEnd::Panicked(tasuki_core::base::panic_message(&*panic).to_string()),
    });
    let panicked = if let Err(ThreadEnd::Panicked(message)) = &outcome { Some(&message[..]) } else { None };
    run.end(actor, panicked);
    outcome
}

/// How a thread of the run ended, if it did not return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ThreadEnd {
    Killed,
    Panicked(String),
}
