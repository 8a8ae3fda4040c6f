//! How ranks and their threads end: in order, by a panic, killed.

use crate::run_hash::RunEvent;
use crate::scheduler::actor::State;
use crate::state::SimState;
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank};

impl SimState {
    /// A thread has ended; `panicked` is what its panic said.
    pub(crate) fn retire(&mut self, actor: usize, panicked: Option<&str>) {
        let rank = self.actors[actor].rank;
        self.trace.note(self.now, RunEvent::Leave, [u64::from(rank.0), actor as u64, 4]);
        self.actors[actor].state = State::Ended;
        self.actors[actor].next = None;
        self.rank_mut(rank).alive -= 1;
        self.alive -= 1;
        self.watch.acted();
        if let Some(message) = panicked {
            let how = format!("panicked: {message}");
            self.node_state.declare_dead(rank, &how, self.now);
            self.watch.fail(self.counts.steps, Error::new(Cause::Program(how)).on_rank(rank));
        }
        self.notice(rank);
        self.stir_all(rank);
        for other in 0..self.actors.len() {
            if self.actors[other].joins == Some(actor) {
                self.wake(other);
            }
        }
        if self.rank(rank).alive == 0 {
            self.memory.leave(rank);
            self.sever(rank, None);
            while let Some(what) = self.rank_mut(rank).inbox.pop_front() {
                self.carry_out(what);
            }
        }
    }

    /// A rank dies: its calls unwind from now on. EventKind it sent still arrives; what is sent to it never does. EventKind it
    /// has under way ends, with an error: its destructors may wait for that, for as long as memory is lent to it.
    pub(crate) fn die(&mut self, rank: Rank, silent: bool) {
        if self.rank(rank).dead || self.rank(rank).alive == 0 {
            return;
        }
        self.trace.note(self.now, RunEvent::Die, [u64::from(rank.0), u64::from(silent), 0]);
        self.rank_mut(rank).dead = true;
        let killed = self.killed(rank);
        self.sever(rank, killed.as_ref());
        for place in 0..self.rank(rank).actors.len() {
            let actor = self.rank(rank).actors[place];
            self.actors[actor].killed = true;
            if matches!(self.actors[actor].state, State::Ready | State::Paused) {
                self.resume_at(actor, self.now);
            }
        }
        if !silent {
            let told = self.now + self.sim.faults.detection_ns;
            self.schedule(told, rank, crate::scheduler::event_queue::EventKind::Tell { rank });
        }
    }

    /// That the rank was killed, as it hears of that itself.
    pub(crate) fn killed(&self, rank: Rank) -> Option<Cause> {
        let cause = || Cause::PeerDied { peer: rank, how: "killed".into(), ago: Duration::ZERO };
        self.rank(rank).dead.then(cause)
    }

    /// The node state tells of a death.
    pub(crate) fn tell(&mut self, rank: Rank) {
        self.trace.note(self.now, RunEvent::Tell, [u64::from(rank.0), 0, 0]);
        self.node_state.declare_dead(rank, "killed by the simulator", self.now);
        self.notice(rank);
    }

    /// Whether the rank is in a call in which its fabric makes progress.
    pub(crate) fn is_in_call(&self, rank: Rank) -> bool {
        let state = self.rank(rank);
        let waits = |&actor: &usize| self.actors[actor].waits_in_a_call();
        state.serving || state.actors.iter().any(waits)
    }

    /// A call of the rank: what waited for one takes effect.
    pub(crate) fn serve(&mut self, rank: Rank) {
        if self.rank(rank).inbox.is_empty() {
            return;
        }
        self.rank_mut(rank).serving = true;
        while let Some(what) = self.rank_mut(rank).inbox.pop_front() {
            self.carry_out(what);
        }
        self.rank_mut(rank).serving = false;
    }
}
