//! The threads of a run and what wakes them. A rank has one actor, and one more for each thread that it starts.

use crate::run_hash::RunEvent;
use crate::scheduler::call_costs::WAKE_NS;
use crate::scheduler::event_queue::Moment;
use crate::scheduler::handoff::Handoff;
use crate::state::SimState;
use std::sync::Arc;
use tasuki_core::base::Rank;
use tasuki_core::engine::Condition;
use tasuki_core::node::node_state::RankStage;

/// State of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It continues at a known time.
    Ready,
    /// It has the turn.
    Running,
    /// It continues when something wakes it, or at its deadline.
    Paused,
    /// It has ended.
    Ended,
}

/// One thread of the run.
#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) rank: Rank,
    pub(crate) handoff: Arc<Handoff>,
    pub(crate) state: State,
    /// When the thread continues, if that is known. An entry of the turn queue for another moment is void.
    pub(crate) next: Option<Moment>,
    /// The thread's time, in ns. It never goes back, though a thread of another rank may be behind.
    pub(crate) clock: u64,
    /// The thread was killed: its calls unwind.
    pub(crate) killed: bool,
    /// The [`SimState::event_count`] of its rank when this thread last polled.
    pub(crate) seen: u64,
    /// Number of consecutive pauses of a thread that retries.
    pub(crate) retries: u32,
    /// The condition that a paused thread waits for.
    pub(crate) condition: Option<Condition>,
    /// The thread is paused until a command is written for its rank; other events of the rank do not wake it.
    pub(crate) is_on_standby: bool,
    /// The thread whose end this thread waits for. Nothing else ends this wait, not even its own
    /// death, because the other thread may use what this one has lent it.
    pub(crate) joining: Option<usize>,
}

impl Actor {
    /// Returns true if the thread has paused in a call of its rank.
    pub(crate) fn waits_in_call(&self) -> bool {
        self.state == State::Paused && !self.is_on_standby
    }
}

/// Returns true if a condition depends on the rank's own table of operations, which other threads of the rank change.
pub(crate) fn depends_on_operations(condition: &Condition) -> bool {
    matches!(
        condition,
        Condition::Finished(_) | Condition::FinishedThrough(_) | Condition::Room | Condition::Event(_)
    )
}

impl SimState {
    /// Adds a thread to a rank. It runs when the turn queue has an entry for it.
    pub(crate) fn add_actor(&mut self, rank: Rank) -> usize {
        self.actors.push(Actor {
            rank,
            handoff: Arc::default(),
            state: State::Ready,
            next: None,
            clock: 0,
            killed: self.rank(rank).dead,
            seen: 0,
            retries: 0,
            condition: None,
            is_on_standby: false,
            joining: None,
        });
        let number = self.actors.len() - 1;
        self.rank_mut(rank).actors.push(number);
        self.rank_mut(rank).alive += 1;
        self.alive += 1;
        number
    }

    /// Lets the thread continue at that time and voids any earlier entry of the turn queue.
    pub(crate) fn resume_at(&mut self, actor: usize, at_ns: u64) {
        let (rank, clock) = (self.actors[actor].rank, self.actors[actor].clock);
        let moment = self.moment(at_ns.max(clock), rank);
        self.ready(actor, moment);
    }

    /// Lets the thread continue at that moment.
    pub(crate) fn ready(&mut self, actor: usize, moment: Moment) {
        let one = &mut self.actors[actor];
        one.state = State::Ready;
        one.next = Some(moment);
        self.turns.push(moment, actor);
    }

    /// Gives the thread the turn.
    pub(crate) fn resume(&mut self, actor: usize) {
        let one = &mut self.actors[actor];
        one.state = State::Running;
        one.condition = None;
        let (rank, next) = (one.rank, one.next.take());
        self.now = next.map_or(self.now, |moment| moment.at_ns);
        self.actors[actor].clock = self.now;
        self.trace.record(self.now, RunEvent::Switch, [rank.0 as u64, actor as u64, 0]);
    }

    /// Returns true if the thread's calls unwind: it was killed, joins no other thread, and does not unwind already.
    /// (Destructors of a thread that unwinds may make calls, and their time passes.)
    pub(crate) fn must_unwind(&self, actor: usize) -> bool {
        let one = &self.actors[actor];
        one.killed && one.joining.is_none() && !std::thread::panicking()
    }

    /// Wakes a thread if it is paused.
    pub(crate) fn wake(&mut self, actor: usize) {
        if self.actors[actor].state == State::Paused {
            let delay = self.draw_about(WAKE_NS);
            self.trace.record(self.now, RunEvent::Wake, [self.actors[actor].rank.0 as u64, actor as u64, 0]);
            self.resume_at(actor, self.now + delay);
        }
    }

    /// Reports an event that concerns a rank: wakes the rank's paused threads.
    pub(crate) fn notify(&mut self, rank: Rank) {
        self.rank_mut(rank).event_count += 1;
        for place in 0..self.rank(rank).actors.len() {
            let actor = self.rank(rank).actors[place];
            if !self.actors[actor].is_on_standby || self.over {
                self.wake(actor);
            }
        }
    }

    /// Wakes the threads of a rank that are on standby.
    pub(crate) fn activate_standby(&mut self, rank: Rank) {
        for place in 0..self.rank(rank).actors.len() {
            let actor = self.rank(rank).actors[place];
            if self.actors[actor].is_on_standby {
                self.wake(actor);
            }
        }
    }

    /// Returns a number that has grown if a thread of the rank should check its condition again.
    pub(crate) fn event_count(&self, rank: Rank) -> u64 {
        self.rank(rank).event_count + self.stages
    }

    /// Reports that a thread may have changed its rank's table of operations: wakes the others that wait for the table.
    pub(crate) fn wake_operation_waiters(&mut self, me: usize) {
        let rank = self.actors[me].rank;
        if self.rank(rank).alive > 1 {
            self.wake_all_operation_waiters(rank);
        }
    }

    /// Wakes all threads of the rank that wait for its table of operations.
    pub(crate) fn wake_all_operation_waiters(&mut self, rank: Rank) {
        for place in 0..self.rank(rank).actors.len() {
            let actor = self.rank(rank).actors[place];
            let one = &self.actors[actor];
            if !one.is_on_standby && one.condition.as_ref().is_some_and(depends_on_operations) {
                self.wake(actor);
            }
        }
    }

    /// Reads what a rank has changed in the node state since its last call, and wakes the threads concerned.
    #[inline]
    pub(crate) fn check_node_state(&mut self, rank: Rank) {
        if self.node_state.is_over() && !self.over {
            self.over = true;
            Rank::all(self.ranks.len()).for_each(|rank| self.notify(rank));
        }
        let stage = self.node_state.rank_state(rank).stage();
        if stage != self.rank(rank).stage {
            self.reach(rank, stage);
        }
    }

    #[cold]
    fn reach(&mut self, rank: Rank, stage: RankStage) {
        self.trace.record(self.now, RunEvent::Leave, [rank.0 as u64, stage as u64, 0]);
        self.stages += 1;
        let before = std::mem::replace(&mut self.rank_mut(rank).stage, stage);
        if stage >= RankStage::Leaving && before < RankStage::Leaving {
            self.leaving_count += 1;
        }
        if stage == RankStage::Left {
            self.memory.leave(rank);
        }
        let (leaving_count, all) = (self.leaving_count, self.ranks.len());
        for actor in 0..self.actors.len() {
            let concerned = match &self.actors[actor].condition {
                Some(Condition::Signal(_, _, Some(from))) => *from == rank && stage >= RankStage::Leaving,
                Some(Condition::Signal(_, _, None)) => leaving_count + 1 >= all,
                Some(Condition::AllReached(wanted)) => self.ranks.iter().all(|one| one.stage >= *wanted),
                Some(Condition::Event(_)) => stage >= RankStage::Leaving,
                _ => false,
            };
            if concerned && !self.actors[actor].is_on_standby {
                self.wake(actor);
            }
        }
    }
}
