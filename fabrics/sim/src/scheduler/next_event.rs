//! The choice of the next event or turn. Time passes in order for each rank, but between ranks only as far as it
//! matters.
//!
//! Nothing that a rank does reaches another one sooner than the network's latency. So a thread may go on before the
//! earlier turn of another rank's thread if it is ahead by at most the latency. The outcome is the same, and a run of
//! many ranks has a tenth of the switches. An event for a rank never overtakes a turn of that rank's threads, and
//! threads of one rank never overtake each other. Ranks that map memory reach each other at once, so then no thread
//! runs ahead.

use crate::scheduler::actor::State;
use crate::scheduler::event_queue::{EventKind, Moment};
use crate::state::SimState;
use tasuki_core::base::Rank;

/// What has to come before a thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextStep {
    /// Nothing; the thread goes on.
    Continue,
    /// The next event.
    Event,
    /// The turn of that actor.
    Turn(usize),
}

impl SimState {
    /// Returns what comes before the turn of a running thread.
    #[inline]
    pub(crate) fn next_before(&mut self, me: usize, turn: Moment) -> NextStep {
        let event = self.events.next().map(|(moment, _)| moment).filter(|&moment| moment < turn);
        let other = self.next_turn().filter(|&(moment, _)| moment < turn);
        if let Some((moment, actor)) = other {
            let is_far = turn.at_ns >= moment.at_ns.saturating_add(self.ahead_ns);
            if is_far && event.is_none_or(|event| moment < event) {
                return NextStep::Turn(actor);
            }
            let rank = self.actors[me].rank;
            if let Some(sibling) = self.turn_of_rank(rank, event.unwrap_or(turn)) {
                return NextStep::Turn(sibling);
            }
        }
        match event {
            None => NextStep::Continue,
            Some(event) => {
                self.turn_of_rank(Rank::from_word(event.rank), event).map_or(NextStep::Event, NextStep::Turn)
            }
        }
    }

    /// Runs the next event.
    pub(crate) fn run_next_event(&mut self) {
        if let Some((moment, what)) = self.events.pop() {
            self.run_event(moment, what);
        }
    }

    /// Runs events until a thread has the turn and returns that thread; `None` when all threads have ended.
    pub(crate) fn run_events_until_turn(&mut self) -> Option<usize> {
        while self.alive > 0 {
            let event: Option<(Moment, &EventKind)> = self.events.next();
            let event = event.map(|(moment, _)| moment);
            match (event, self.next_turn()) {
                (None, None) => self.check_for_deadlock(),
                (Some(event), Some((turn, actor))) if turn < event => return Some(actor),
                (None, Some((_, actor))) => return Some(actor),
                (Some(_), _) => self.run_next_event(),
            }
        }
        None
    }

    /// Returns the earliest turn and drops void entries before it.
    fn next_turn(&mut self) -> Option<(Moment, usize)> {
        loop {
            let (moment, &actor) = self.turns.next()?;
            if self.actors[actor].next == Some(moment) {
                return Some((moment, actor));
            }
            self.turns.pop();
        }
    }

    /// Returns the actor of that rank with the earliest turn before `limit`.
    fn turn_of_rank(&self, rank: Rank, limit: Moment) -> Option<usize> {
        let turns = self.rank(rank).actors.iter().filter_map(|&actor| {
            let one = &self.actors[actor];
            let waits = matches!(one.state, State::Ready | State::Paused);
            one.next.filter(|&moment| waits && moment < limit).map(|moment| (moment, actor))
        });
        turns.min().map(|(_, actor)| actor)
    }
}
