//! The ends of ranks and of their threads: by returning, by a panic, by being killed.

use crate::run_hash::RunEvent;
use crate::scheduler::actor::State;
use crate::state::SimState;
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank};

impl SimState {
    /// Ends a thread; `panicked` is the message of its panic.
    pub(crate) fn actor_ended(&mut self, actor: usize, panicked: Option<&str>) {
        let rank = self.actors[actor].rank;
        self.trace.record(self.now, RunEvent::Leave, [rank.0 as u64, actor as u64, 4]);
        self.actors[actor].state = State::Ended;
        self.actors[actor].next = None;
        self.rank_mut(rank).alive -= 1;
        self.alive -= 1;
        self.watch.thread_acted();
        if let Some(message) = panicked {
            let how = format!("panicked: {message}");
            self.node_state.declare_dead(rank, &how, self.now);
            self.watch.fail(self.counts.steps, Error::new(Cause::Program(how)).on_rank(rank));
        }
        self.check_node_state(rank);
        // Others of the rank may wait for what the thread has done last, such as the helper's word that it has stopped.
        self.notify(rank);
        for other in 0..self.actors.len() {
            if self.actors[other].joining == Some(actor) {
                self.wake(other);
            }
        }
        if self.rank(rank).alive == 0 {
            self.memory.leave(rank);
            self.abandon_operations(rank, None);
            while let Some(what) = self.rank_mut(rank).inbox.pop_front() {
                self.apply_event(what);
            }
        }
    }

    /// Kills a rank: its calls unwind from now on. What it has sent still arrives; what is sent to
    /// it never does. Its operations in flight end with an error, because its destructors may wait
    /// for them while they use lent memory.
    pub(crate) fn die(&mut self, rank: Rank, silent: bool) {
        if self.rank(rank).dead || self.rank(rank).alive == 0 {
            return;
        }
        self.trace.record(self.now, RunEvent::Die, [rank.0 as u64, u64::from(silent), 0]);
        self.rank_mut(rank).dead = true;
        let killed = self.killed(rank);
        self.abandon_operations(rank, killed.as_ref());
        for place in 0..self.rank(rank).actors.len() {
            let actor = self.rank(rank).actors[place];
            self.actors[actor].killed = true;
            if matches!(self.actors[actor].state, State::Ready | State::Paused) {
                self.resume_at(actor, self.now);
            }
        }
        if !silent {
            let reported_at = self.now + self.sim.faults.detection_ns;
            self.schedule(
                reported_at,
                rank,
                crate::scheduler::event_queue::EventKind::DeathReported { rank },
            );
        }
    }

    /// Returns the cause that the rank's own calls report if it was killed.
    pub(crate) fn killed(&self, rank: Rank) -> Option<Cause> {
        let cause = || Cause::PeerDied { peer: rank, how: "killed".into(), ago: Duration::ZERO };
        self.rank(rank).dead.then(cause)
    }

    /// Lets the node state report a death.
    pub(crate) fn report_death(&mut self, rank: Rank) {
        self.trace.record(self.now, RunEvent::DeathReported, [rank.0 as u64, 0, 0]);
        self.node_state.declare_dead(rank, "killed by the simulator", self.now);
        self.check_node_state(rank);
    }

    /// Returns true if the rank is in a call in which its fabric makes progress.
    pub(crate) fn is_in_call(&self, rank: Rank) -> bool {
        let state = self.rank(rank);
        let waits = |&actor: &usize| self.actors[actor].waits_in_call();
        state.delivering || state.actors.iter().any(waits)
    }

    /// Applies the events that waited for a call of the rank.
    pub(crate) fn deliver_inbox(&mut self, rank: Rank) {
        if self.rank(rank).inbox.is_empty() {
            return;
        }
        self.rank_mut(rank).delivering = true;
        while let Some(what) = self.rank_mut(rank).inbox.pop_front() {
            self.apply_event(what);
        }
        self.rank_mut(rank).delivering = false;
    }
}
