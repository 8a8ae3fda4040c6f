//! The end of a run by a deadlock or by the time limit. The error names the waiting ranks.
//!
//! Before a deadlock is reported, the clock is advanced and all threads check their conditions once more. That also
//! makes the engine publish what its threads wait for. A thread that then finds something to do should have been
//! woken earlier; such missed wake-ups are counted.

use crate::run_hash::RunEvent;
use crate::scheduler::actor::State;
use crate::scheduler::call_costs::{CALLS_AFTER_FAILURE, DEADLOCK_CHECK_NS};
use crate::state::SimState;
use tasuki_core::base::{Cause, Error, Rank};

/// What is known of the run as a whole.
#[derive(Debug, Default)]
pub(crate) struct DeadlockWatch {
    /// All threads check their conditions, and nothing has happened since.
    checking: bool,
    /// Number of threads that would have slept on although they had something to do.
    pub(crate) missed_wakeups: u64,
    /// Why the run fails; the field below holds how many calls had been made by then.
    pub(crate) failure: Option<Error>,
    failed_at_step: u64,
    /// All ranks have been killed because they did not stop.
    all_killed: bool,
}

impl DeadlockWatch {
    /// Notes that an event has happened.
    pub(crate) fn event_ran(&mut self) {
        self.checking = false;
    }

    /// Notes that a thread has done something.
    pub(crate) fn thread_acted(&mut self) {
        if std::mem::take(&mut self.checking) && self.failure.is_none() {
            self.missed_wakeups += 1;
        }
    }

    /// Lets the run fail with `error`, unless it has failed already.
    pub(crate) fn fail(&mut self, steps: u64, error: Error) {
        if self.failure.is_none() {
            self.failure = Some(error);
            self.failed_at_step = steps;
        }
    }
}

impl SimState {
    /// No event and no turn is left: all paused threads check their conditions, or a deadlock is reported.
    pub(crate) fn check_for_deadlock(&mut self) {
        if self.watch.checking {
            return self.report_deadlock();
        }
        self.watch.checking = true;
        self.trace.record(self.now, RunEvent::DeadlockCheck, [0; 3]);
        for actor in 0..self.actors.len() {
            if self.actors[actor].state == State::Paused {
                let at = self.now + self.draw_about(DEADLOCK_CHECK_NS) + DEADLOCK_CHECK_NS;
                self.resume_at(actor, at);
            }
        }
    }

    /// No thread found anything to do: their calls end with an error.
    fn report_deadlock(&mut self) {
        self.trace.record(self.now, RunEvent::Deadlock, [0; 3]);
        self.watch.checking = false;
        if self.watch.failure.is_some() && self.over {
            return self.kill_all(); // they got an error, and wait again
        }
        let waits = self.waits();
        let Some((first, what)) = waits.first() else { return self.kill_all() };
        let how = format!("deadlock together with {} other ranks; it waits in {what}", waits.len() - 1);
        let text = format!("deadlock: {} ranks wait and no operation is in flight", waits.len());
        let mut error = Error::new(Cause::Program(text));
        for (rank, what) in &waits {
            error = error.note(format!("rank {rank} waits in {what}"));
        }
        for rank in Rank::all(self.ranks.len()) {
            if self.rank(rank).dead {
                error = error.note(format!("rank {rank} is dead"));
            } else if let Some(buffer) = self.node_state.rank_state(rank).send_buffer() {
                error = error.note(format!("rank {rank}: {buffer}"));
            }
        }
        self.node_state.declare_dead(*first, &how, self.now);
        self.watch.fail(self.counts.steps, error);
        self.over = false; // wakes all waiting threads once more, also after an earlier death
        self.check_node_state(*first);
    }

    /// Returns the waiting ranks, each with the call that it waits in.
    fn waits(&self) -> Vec<(Rank, String)> {
        let waiting = |rank: &Rank| {
            let waits = |&actor: &usize| self.actors[actor].waits_in_call();
            self.rank(*rank).actors.iter().any(waits)
        };
        let names = |rank: Rank| match self.node_state.rank_state(rank).published_wait() {
            Some(wait) => format!("{} since {} ns of virtual time", wait.call, wait.since_ns),
            None if self.joins_a_thread(rank) => "join(a thread of its own)".into(),
            None => "a call that has published no description".into(),
        };
        Rank::all(self.ranks.len()).filter(waiting).map(|rank| (rank, names(rank))).collect()
    }

    fn joins_a_thread(&self, rank: Rank) -> bool {
        self.rank(rank).actors.iter().any(|&actor| self.actors[actor].joining.is_some())
    }

    /// Ends the run when its time is up, and kills all ranks if they go on long after the run has failed.
    #[inline]
    pub(crate) fn check_limits(&mut self) {
        if self.now > self.sim.time_max_ns && self.watch.failure.is_none() {
            self.time_limit_reached();
        }
        if self.watch.failure.is_some() {
            let grace = CALLS_AFTER_FAILURE * self.ranks.len() as u64;
            if self.counts.steps > self.watch.failed_at_step + grace {
                self.kill_all();
            }
        }
    }

    #[cold]
    fn time_limit_reached(&mut self) {
        let rank = self.actors[self.running].rank;
        let text = format!("the run has reached its limit of {} ns of virtual time", self.sim.time_max_ns);
        self.node_state.declare_dead(rank, &text, self.now);
        let mut error = Error::new(Cause::Program(text));
        for (rank, what) in self.waits() {
            error = error.note(format!("rank {rank} waits in {what}"));
        }
        self.watch.fail(self.counts.steps, error.note(format!("rank {rank} was running")));
        self.check_node_state(rank);
    }

    #[cold]
    fn kill_all(&mut self) {
        if !std::mem::replace(&mut self.watch.all_killed, true) {
            Rank::all(self.ranks.len()).for_each(|rank| self.die(rank, true));
        }
    }
}
