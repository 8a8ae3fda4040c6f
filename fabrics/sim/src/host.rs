//! The ground that a simulated rank stands on: virtual time, and pauses that end when something concerns the rank.
//!
//! No wake-up is lost. Whatever concerns a rank raises its news; a thread notes them when it polls, before it looks
//! at anything, and a pause that finds others than those noted returns at once. What other threads of the rank do to
//! its table of operations is no event of the simulator: it is looked at after all time of the pausing call has
//! passed, so that nothing comes between that look and the sleep, and whoever goes to sleep or acts wakes those that
//! wait for it.

use crate::actor::is_about_operations;
use crate::call::Call;
use crate::costs::{RELAX_MAX_NS, RELAX_NS};
use crate::turn::{Guard, Killed, Run};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tasuki_core::base::Rank;
use tasuki_core::engine::{Condition, Host, Pause};

/// Clock and pause of one simulated rank.
#[derive(Debug)]
pub struct SimHost {
    run: Arc<Run>,
    rank: Rank,
}

impl SimHost {
    pub(crate) fn new(run: Arc<Run>, rank: Rank) -> SimHost {
        SimHost { run, rank }
    }

    /// One break of a thread that retries in a loop. It grows while nothing concerns the rank.
    fn relax<'r>(&'r self, mut world: Guard<'r>, me: usize) {
        let one = &mut world.actors[me];
        one.breaks += 1;
        let at_most = (RELAX_NS << one.breaks.min(20)).min(RELAX_MAX_NS);
        let until = world.now + world.about(at_most);
        let world = self.run.block(world, me, until);
        self.note_news(world, me);
    }

    /// What happened up to now is known to the thread that goes on. True if there was anything new.
    fn note_news(&self, mut world: Guard<'_>, me: usize) -> bool {
        let news = world.news_of(self.rank);
        let one = &mut world.actors[me];
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
        let mut world = self.run.lock();
        met.into_iter().for_each(|actor| world.wake(actor));
        drop(world);
        is_about_operations(pause.condition) && (pause.met)(pause.condition)
    }

    /// The paused threads of this rank that wait for its operations.
    fn waiting(&self, me: usize) -> Vec<(usize, Condition)> {
        let world = self.run.lock();
        let others = world.rank(self.rank).actors.iter().filter(|&&actor| actor != me);
        let waits = |&actor: &usize| Some((actor, world.actors[actor].condition.clone()?));
        others.filter_map(waits).filter(|(_, condition)| is_about_operations(condition)).collect()
    }
}

impl Host for SimHost {
    fn now_ns(&self) -> u64 {
        self.run.enter(self.rank, Call::Clock).now
    }

    fn glance_ns(&self) -> u64 {
        self.run.lock().now
    }

    fn pause(&self, pause: Pause<'_>) {
        let world = self.run.enter(self.rank, Call::Pause);
        let me = world.running;
        if pause.until_ns <= world.now {
            return self.relax(world, me);
        }
        drop(world); // `met` looks at the engine's table; it is still this thread's turn
        if self.looks_again(&pause, me) {
            return;
        }
        let mut world = self.run.lock();
        let is_settled = world.rank(self.rank).flying == 0;
        let is_met = matches!(pause.condition, Condition::Settled) && is_settled;
        if world.news_of(self.rank) == world.actors[me].seen && !is_met {
            world.actors[me].condition = Some(pause.condition.clone());
            world = self.run.block(world, me, pause.until_ns);
        }
        self.note_news(world, me);
    }

    fn stand_by(&self, over: &Condition) {
        // Nothing comes between the caller's last look and the sleep: no time passes.
        let mut world = self.run.lock();
        let me = world.running;
        world.actors[me].condition = Some(over.clone());
        world.actors[me].stands_by = true;
        let mut world = self.run.block(world, me, u64::MAX);
        world.actors[me].stands_by = false;
    }

    fn call_up(&self) {
        self.run.enter(self.rank, Call::Ask).call_up(self.rank);
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
        drop(self.run.enter(self.rank, Call::Compute(ns)));
    }

    fn spawn(&self, body: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn FnOnce() + Send>> {
        let mut world = self.run.enter(self.rank, Call::Thread);
        let actor = world.add_actor(self.rank);
        let (number, stack) = (world.rank(self.rank).actors.len() - 1, world.sim.stack_bytes);
        drop(world);
        let (run, rank) = (self.run.clone(), self.rank);
        let thread = std::thread::Builder::new()
            .name(format!("rank {rank}.{number}"))
            .stack_size(stack)
            .spawn(move || live(&run, actor, body));
        let mut world = self.run.lock();
        match thread {
            Ok(thread) => {
                let now = world.now;
                world.resume_at(actor, now);
                drop(world);
                let run = self.run.clone();
                Ok(Box::new(move || {
                    run.join(rank, actor);
                    drop(thread.join());
                }))
            }
            Err(error) => {
                world.retire(actor, None);
                Err(error)
            }
        }
    }
}

/// The life of a thread of the run: from its first turn until it gives its last one away.
pub(crate) fn live<R>(run: &Run, actor: usize, body: impl FnOnce() -> R) -> Result<R, Fate> {
    if !run.begin(actor) {
        // And what it owns, while it is still this thread's turn: calls of that unwind.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(body)));
        run.end(actor, None);
        return Err(Fate::Killed);
    }
    let outcome = catch_unwind(AssertUnwindSafe(body)).map_err(|panic| match panic.downcast::<Killed>() {
        Ok(_) => Fate::Killed,
        Err(panic) => Fate::Panicked(tasuki_core::base::panic_message(&*panic).to_string()),
    });
    let panicked = if let Err(Fate::Panicked(message)) = &outcome { Some(&message[..]) } else { None };
    run.end(actor, panicked);
    outcome
}

/// How a thread of the run ended other than by returning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Killed,
    Panicked(String),
}
