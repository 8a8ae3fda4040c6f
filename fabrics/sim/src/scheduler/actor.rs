//! The threads of a run and what wakes them. A rank has one actor, and one more for each thread that it starts.

use crate::run_hash::RunEvent;
use crate::scheduler::call_costs::WAKE_NS;
use crate::scheduler::event_queue::Moment;
use crate::scheduler::handoff::Handoff;
use crate::state::SimState;
use std::sync::Arc;
use tasuki_core::base::Rank;
use tasuki_core::engine::Condition;
use tasuki_core::node::node_state::Stage;

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It goes on at a known time.
    Ready,
    /// It is its turn.
    Running,
    /// It goes on when something wakes it, or at its deadline.
    Paused,
    /// It has ended.
    Ended,
}

/// One thread of the run.
#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) rank: Rank,
    pub(crate) baton: Arc<Handoff>,
    pub(crate) state: State,
    /// When it goes on, if that is known: an entry of the agenda for another moment is void.
    pub(crate) next: Option<Moment>,
    /// How far its time has come: it never goes back, though a thread of another rank may be behind.
    pub(crate) clock: u64,
    /// Its calls unwind.
    pub(crate) killed: bool,
    /// EventKind [`SimState::news_of`] its rank there was when this thread last looked around.
    pub(crate) seen: u64,
    /// Breaks taken in a row.
    pub(crate) breaks: u32,
    /// EventKind it waits for, while paused.
    pub(crate) condition: Option<Condition>,
    /// It is paused until a command is written for its rank: nothing else that concerns that concerns it.
    pub(crate) stands_by: bool,
    /// The thread whose end it waits for. Nothing but that end, not even its own death, takes it out of this wait:
    /// the other thread may use what this one has lent it.
    pub(crate) joins: Option<usize>,
}

impl Actor {
    /// Whether it has paused in a call of the rank's.
    pub(crate) fn waits_in_a_call(&self) -> bool {
        self.state == State::Paused && !self.stands_by
    }
}

/// Whether a condition is about the rank's own table of operations, which other threads of the rank change.
pub(crate) fn is_about_operations(condition: &Condition) -> bool {
    matches!(
        condition,
        Condition::Finished(_) | Condition::FinishedThrough(_) | Condition::Room | Condition::Event(_)
    )
}

impl SimState {
    /// A new thread of a rank. It runs when an entry of the agenda says so.
    pub(crate) fn add_actor(&mut self, rank: Rank) -> usize {
        self.actors.push(Actor {
            rank,
            baton: Arc::default(),
            state: State::Ready,
            next: None,
            clock: 0,
            killed: self.rank(rank).dead,
            seen: 0,
            breaks: 0,
            condition: None,
            stands_by: false,
            joins: None,
        });
        let number = self.actors.len() - 1;
        self.rank_mut(rank).actors.push(number);
        self.rank_mut(rank).alive += 1;
        self.alive += 1;
        number
    }

    /// The thread goes on at that time, whatever was planned for it before.
    pub(crate) fn resume_at(&mut self, actor: usize, at_ns: u64) {
        let (rank, clock) = (self.actors[actor].rank, self.actors[actor].clock);
        let moment = self.moment(at_ns.max(clock), rank);
        self.ready(actor, moment);
    }

    /// The thread goes on at that moment.
    pub(crate) fn ready(&mut self, actor: usize, moment: Moment) {
        let one = &mut self.actors[actor];
        one.state = State::Ready;
        one.next = Some(moment);
        self.turns.push(moment, actor);
    }

    /// It is the thread's turn.
    pub(crate) fn resume(&mut self, actor: usize) {
        let one = &mut self.actors[actor];
        one.state = State::Running;
        one.condition = None;
        let (rank, next) = (one.rank, one.next.take());
        self.now = next.map_or(self.now, |moment| moment.at_ns);
        self.actors[actor].clock = self.now;
        self.trace.note(self.now, RunEvent::Switch, [u64::from(rank.0), actor as u64, 0]);
    }

    /// Whether the thread's calls unwind: it is killed, waits for no other thread, and does not unwind already.
    /// (Destructors of a thread that unwinds may make calls, and their time passes.)
    pub(crate) fn is_doomed(&self, actor: usize) -> bool {
        let one = &self.actors[actor];
        one.killed && one.joins.is_none() && !std::thread::panicking()
    }

    /// Wakes a thread if it is paused.
    pub(crate) fn wake(&mut self, actor: usize) {
        if self.actors[actor].state == State::Paused {
            let delay = self.about(WAKE_NS);
            self.trace.note(
                self.now,
                RunEvent::Wake,
                [u64::from(self.actors[actor].rank.0), actor as u64, 0],
            );
            self.resume_at(actor, self.now + delay);
        }
    }

    /// Something happened that concerns a rank: its paused threads look around.
    pub(crate) fn news(&mut self, rank: Rank) {
        self.rank_mut(rank).news += 1;
        for place in 0..self.rank(rank).actors.len() {
            let actor = self.rank(rank).actors[place];
            if !self.actors[actor].stands_by || self.over {
                self.wake(actor);
            }
        }
    }

    /// Who stands by at a rank looks around.
    pub(crate) fn activate_standby(&mut self, rank: Rank) {
        for place in 0..self.rank(rank).actors.len() {
            let actor = self.rank(rank).actors[place];
            if self.actors[actor].stands_by {
                self.wake(actor);
            }
        }
    }

    /// A number that has grown if a thread of the rank should look around again.
    pub(crate) fn news_of(&self, rank: Rank) -> u64 {
        self.rank(rank).news + self.stages
    }

    /// A thread did something that may change the rank's table of operations: others that wait for that look.
    pub(crate) fn stir(&mut self, me: usize) {
        let rank = self.actors[me].rank;
        if self.rank(rank).alive > 1 {
            self.stir_all(rank);
        }
    }

    /// The same of all threads of the rank.
    pub(crate) fn stir_all(&mut self, rank: Rank) {
        for place in 0..self.rank(rank).actors.len() {
            let actor = self.rank(rank).actors[place];
            let one = &self.actors[actor];
            if !one.stands_by && one.condition.as_ref().is_some_and(is_about_operations) {
                self.wake(actor);
            }
        }
    }

    /// Looks what a rank has done to the node state since its last call, and wakes whom it concerns.
    #[inline]
    pub(crate) fn notice(&mut self, rank: Rank) {
        if self.node_state.is_over() && !self.over {
            self.over = true;
            Rank::all(self.ranks.len()).for_each(|rank| self.news(rank));
        }
        let stage = self.node_state.rank_state(rank).stage();
        if stage != self.rank(rank).stage {
            self.reach(rank, stage);
        }
    }

    #[cold]
    fn reach(&mut self, rank: Rank, stage: Stage) {
        self.trace.note(self.now, RunEvent::Leave, [u64::from(rank.0), stage as u64, 0]);
        self.stages += 1;
        let before = std::mem::replace(&mut self.rank_mut(rank).stage, stage);
        if stage >= Stage::Leaving && before < Stage::Leaving {
            self.gone += 1;
        }
        if stage == Stage::Left {
            self.memory.leave(rank);
        }
        let (gone, all) = (self.gone, self.ranks.len());
        for actor in 0..self.actors.len() {
            let concerned = match &self.actors[actor].condition {
                Some(Condition::Signal(_, _, Some(from))) => *from == rank && stage >= Stage::Leaving,
                Some(Condition::Signal(_, _, None)) => gone + 1 >= all,
                Some(Condition::AllReached(wanted)) => self.ranks.iter().all(|one| one.stage >= *wanted),
                Some(Condition::Event(_)) => stage >= Stage::Leaving,
                _ => false,
            };
            if concerned && !self.actors[actor].stands_by {
                self.wake(actor);
            }
        }
    }
}
