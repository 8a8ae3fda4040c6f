//! When nothing can happen any more, who waits is named and the run ends; the same when its time is up.
//!
//! Nobody is called stuck lightly: first the clock is put forward and everyone looks around once more. That also
//! makes the engine publish what its threads wait for. A thread that then finds something to do was not woken when
//! it should have been; such rescues are counted.

use crate::run_hash::RunEvent;
use crate::scheduler::actor::State;
use crate::scheduler::call_costs::{CALLS_AFTER_FAILURE, LOOK_AROUND_NS};
use crate::state::SimState;
use tasuki_core::base::{Cause, Error, Rank};

/// EventKind is known of the run as a whole.
#[derive(Debug, Default)]
pub(crate) struct DeadlockWatch {
    /// Everyone looks around, and nothing has happened since.
    looking: bool,
    /// Threads that would have slept on although they had something to do.
    pub(crate) rescues: u64,
    /// Why the run fails, and how many calls had been made when that was found.
    pub(crate) failure: Option<Error>,
    failed_at_step: u64,
    /// All ranks have been killed, for they did not stop.
    hopeless: bool,
}

impl DeadlockWatch {
    /// An event has happened.
    pub(crate) fn stirred(&mut self) {
        self.looking = false;
    }

    /// A thread has done something.
    pub(crate) fn acted(&mut self) {
        if std::mem::take(&mut self.looking) && self.failure.is_none() {
            self.rescues += 1;
        }
    }

    /// The run fails; the first reason counts.
    pub(crate) fn fail(&mut self, steps: u64, error: Error) {
        if self.failure.is_none() {
            self.failure = Some(error);
            self.failed_at_step = steps;
        }
    }
}

impl SimState {
    /// Nothing is going to happen by itself.
    pub(crate) fn look_around(&mut self) {
        if self.watch.looking {
            return self.give_up_waiting();
        }
        self.watch.looking = true;
        self.trace.note(self.now, RunEvent::LookAround, [0; 3]);
        for actor in 0..self.actors.len() {
            if self.actors[actor].state == State::Paused {
                let at = self.now + self.about(LOOK_AROUND_NS) + LOOK_AROUND_NS;
                self.resume_at(actor, at);
            }
        }
    }

    /// Nobody found anything to do: their calls end.
    fn give_up_waiting(&mut self) {
        self.trace.note(self.now, RunEvent::Stuck, [0; 3]);
        self.watch.looking = false;
        if self.watch.failure.is_some() && self.over {
            return self.kill_all(); // they were told, and wait again
        }
        let waits = self.waits();
        let Some((first, what)) = waits.first() else { return self.kill_all() };
        let how = format!("deadlock, like {} others; it waits in {what}", waits.len() - 1);
        let text = format!("deadlock: {} ranks wait and nothing is under way", waits.len());
        let mut error = Error::new(Cause::Program(text));
        for (rank, what) in &waits {
            error = error.note(format!("rank {rank} waits in {what}"));
        }
        for rank in Rank::all(self.ranks.len()).filter(|&rank| self.rank(rank).dead) {
            error = error.note(format!("rank {rank} is dead"));
        }
        self.node_state.declare_dead(*first, &how, self.now);
        self.watch.fail(self.counts.steps, error);
        self.over = false; // whoever waits is woken once more, also if a death was told before
        self.notice(*first);
    }

    /// Who waits, and for what.
    fn waits(&self) -> Vec<(Rank, String)> {
        let waiting = |rank: &Rank| {
            let waits = |&actor: &usize| self.actors[actor].waits_in_a_call();
            self.rank(*rank).actors.iter().any(waits)
        };
        let names = |rank: Rank| match self.node_state.rank_state(rank).published_wait() {
            Some(wait) => format!("{} since {} ns of virtual time", wait.call, wait.since_ns),
            None if self.joins_thread(rank) => "join(a thread of its own)".into(),
            None => "a call that does not say what for".into(),
        };
        Rank::all(self.ranks.len()).filter(waiting).map(|rank| (rank, names(rank))).collect()
    }

    fn joins_thread(&self, rank: Rank) -> bool {
        self.rank(rank).actors.iter().any(|&actor| self.actors[actor].joins.is_some())
    }

    /// Ends the run if its time is up, and whoever goes on long after it has failed.
    #[inline]
    pub(crate) fn check_limits(&mut self) {
        if self.now > self.sim.time_max_ns && self.watch.failure.is_none() {
            self.end_of_time();
        }
        if self.watch.failure.is_some() {
            let grace = CALLS_AFTER_FAILURE * self.ranks.len() as u64;
            if self.counts.steps > self.watch.failed_at_step + grace {
                self.kill_all();
            }
        }
    }

    #[cold]
    fn end_of_time(&mut self) {
        let rank = self.actors[self.running].rank;
        let text = format!("the run's {} ns of virtual time are up", self.sim.time_max_ns);
        self.node_state.declare_dead(rank, &text, self.now);
        let mut error = Error::new(Cause::Program(text));
        for (rank, what) in self.waits() {
            error = error.note(format!("rank {rank} waits in {what}"));
        }
        self.watch.fail(self.counts.steps, error.note(format!("rank {rank} runs")));
        self.notice(rank);
    }

    #[cold]
    fn kill_all(&mut self) {
        if !std::mem::replace(&mut self.watch.hopeless, true) {
            Rank::all(self.ranks.len()).for_each(|rank| self.die(rank, true));
        }
    }
}
