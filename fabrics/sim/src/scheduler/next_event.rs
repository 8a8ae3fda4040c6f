//! EventKind comes next. Time passes in order for each rank; between ranks only as far as it matters.
//!
//! Nothing that a rank does reaches another one sooner than the network's latency. So a thread may go on although the
//! turn of another rank's thread came earlier, as long as it is ahead of it by no more than that: the outcome is the
//! same, and a run of many ranks has a tenth of the switches. An event for a rank never overtakes a turn of that
//! rank's threads, nor do threads of one rank each other. With memory that ranks map they reach each other at once,
//! and nobody runs ahead.

use crate::scheduler::actor::State;
use crate::scheduler::event_queue::{EventKind, Moment};
use crate::state::SimState;
use tasuki_core::base::Rank;

/// EventKind has to come before a thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Nothing: it goes on.
    Nothing,
    /// The next event.
    Event,
    /// The turn of that thread.
    Turn(usize),
}

impl SimState {
    /// EventKind comes before the turn of a running thread.
    #[inline]
    pub(crate) fn before(&mut self, me: usize, turn: Moment) -> Next {
        let event = self.events.next().map(|(moment, _)| moment).filter(|&moment| moment < turn);
        let other = self.next_turn().filter(|&(moment, _)| moment < turn);
        if let Some((moment, actor)) = other {
            let is_far = turn.at_ns >= moment.at_ns.saturating_add(self.ahead_ns);
            if is_far && event.is_none_or(|event| moment < event) {
                return Next::Turn(actor);
            }
            let rank = self.actors[me].rank;
            if let Some(sibling) = self.turn_of_rank(rank, event.unwrap_or(turn)) {
                return Next::Turn(sibling);
            }
        }
        match event {
            None => Next::Nothing,
            Some(event) => self.turn_of_rank(Rank(event.rank), event).map_or(Next::Event, Next::Turn),
        }
    }

    /// The next event happens.
    pub(crate) fn let_happen(&mut self) {
        if let Some((moment, what)) = self.events.pop() {
            self.happen(moment, what);
        }
    }

    /// Events happen until it is a thread's turn, which is returned; `None` when all threads have ended.
    pub(crate) fn let_happen_until_turn(&mut self) -> Option<usize> {
        while self.alive > 0 {
            let event: Option<(Moment, &EventKind)> = self.events.next();
            let event = event.map(|(moment, _)| moment);
            match (event, self.next_turn()) {
                (None, None) => self.look_around(),
                (Some(event), Some((turn, actor))) if turn < event => return Some(actor),
                (None, Some((_, actor))) => return Some(actor),
                (Some(_), _) => self.let_happen(),
            }
        }
        None
    }

    /// The earliest turn; void entries before it are dropped.
    fn next_turn(&mut self) -> Option<(Moment, usize)> {
        loop {
            let (moment, &actor) = self.turns.next()?;
            if self.actors[actor].next == Some(moment) {
                return Some((moment, actor));
            }
            self.turns.pop();
        }
    }

    /// The earliest turn before `limit` of a thread of that rank.
    fn turn_of_rank(&self, rank: Rank, limit: Moment) -> Option<usize> {
        let turns = self.rank(rank).actors.iter().filter_map(|&actor| {
            let one = &self.actors[actor];
            let waits = matches!(one.state, State::Ready | State::Paused);
            one.next.filter(|&moment| waits && moment < limit).map(|moment| (moment, actor))
        });
        turns.min().map(|(_, actor)| actor)
    }
}
