//! The ground that a simulated rank stands on: virtual time, and pauses that end when something concerns the rank.
//!
//! No wake-up is lost. Whatever concerns a rank raises its news; a thread notes them when it polls, before it looks
//! at anything, and a pause that finds others than those noted returns at once. EventKind other threads of the rank do to
//! its table of operations is no event of the simulator: it is looked at after all time of the pausing call has
//! passed, so that nothing comes between that look and the sleep, and whoever goes to sleep or acts wakes those that
//! wait for it.

use crate::scheduler::actor::is_about_operations;
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

    /// One break of a thread that retries in a loop. It grows while nothing concerns the rank.
    fn relax<'r>(&'r self, mut state: Guard<'r>, me: usize) {
        let one = &mut state.actors[me];
        one.breaks += 1;
        let at_most = (RELAX_NS << one.breaks.min(20)).min(RELAX_MAX_NS);
        let until = state.now + state.about(at_most);
        let state = self.run.block(state, me, until);
        self.note_news(state, me);
    }

    /// EventKind happened up to now is known to the thread that goes on. True if there was anything new.
    fn note_news(&self, mut state: Guard<'_>, me: usize) -> bool {
        let news = state.news_of(self.rank);
        let one = &mut state.actors[me];
        let is_new = std::mem::replace(&mut one.seen, news) != news;
        if is_new {
            one.breaks = 0;
        }
        is_new
    }

    /// Wakes threads of this rank whose conditions this one has met, and says whether its own is.
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
        is_about_operations(pause.condition) && (pause.met)(pause.condition)
    }

    /// The paused threads of this rank that wait for its operations.
    fn waiting(&self, me: usize) -> Vec<(usize, Condition)> {
        let state = self.run.lock();
        let others = state.rank(self.rank).actors.iter().filter(|&&actor| actor != me);
        let waits = |&actor: &usize| Some((actor, state.actors[actor].condition.clone()?));
        others.filter_map(waits).filter(|(_, condition)| is_about_operations(condition)).collect()
    }
}

impl Platform for SimPlatform {
    fn now_ns(&self) -> u64 {
        self.run.enter(self.rank, CallKind::Clock).now
    }

    fn glance_ns(&self) -> u64 {
        self.run.lock().now
    }

    fn pause(&self, pause: Pause<'_>) {
        let state = self.run.enter(self.rank, CallKind::Pause);
        let me = state.running;
        if pause.until_ns <= state.now {
            return self.relax(state, me);
        }
        drop(state); // `met` looks at the engine's table; it is still this thread's turn
        if self.looks_again(&pause, me) {
            return;
        }
        let mut state = self.run.lock();
        let is_quiescent = state.rank(self.rank).flying == 0;
        let is_met = matches!(pause.condition, Condition::Settled) && is_quiescent;
        if state.news_of(self.rank) == state.actors[me].seen && !is_met {
            state.actors[me].condition = Some(pause.condition.clone());
            state = self.run.block(state, me, pause.until_ns);
        }
        self.note_news(state, me);
    }

    fn keep_on_standby(&self, over: &Condition) {
        // Nothing comes between the caller's last look and the sleep: no time passes.
        let mut state = self.run.lock();
        let me = state.running;
        state.actors[me].condition = Some(over.clone());
        state.actors[me].stands_by = true;
        let mut state = self.run.block(state, me, u64::MAX);
        state.actors[me].stands_by = false;
    }

    fn activate_standby(&self) {
        self.run.enter(self.rank, CallKind::Ask).activate_standby(self.rank);
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
            .spawn(move || live(&run, actor, body));
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
                state.retire(actor, None);
                Err(error)
            }
        }
    }
}

/// The life of a thread of the run: from its first turn until it gives its last one away.
pub(crate) fn live<R>(run: &Scheduler, actor: usize, body: impl FnOnce() -> R) -> Result<R, ThreadEnd> {
    if !run.begin(actor) {
        // And what it owns, while it is still this thread's turn: calls of that unwind.
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

/// How a thread of the run ended other than by returning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ThreadEnd {
    Killed,
    Panicked(String),
}
