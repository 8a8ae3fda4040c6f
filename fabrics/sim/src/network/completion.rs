//! The ends of operations: everything accepted ends exactly once, and a flush after what went before it.

use crate::network::in_flight::{InFlight, InFlightId, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::Condition;

impl SimState {
    /// Everything of an operation has arrived (or, `Err`, nothing more of it will): the news travels back.
    pub(crate) fn settle(&mut self, id: InFlightId, outcome: Result<u64, Cause>) {
        let Some(flight) = self.in_flight.get_mut(&id) else { return };
        if std::mem::replace(&mut flight.settled, true) {
            return;
        }
        flight.pieces.clear();
        let task = flight.task;
        let told = flight.token.is_none();
        let flushes = std::mem::take(&mut flight.flushes);
        let late = if told { outcome.as_ref().err().cloned() } else { None };
        let mark = if outcome.is_ok() { RunEvent::Visible } else { RunEvent::Fail };
        self.trace.note(self.now, mark, [u64::from(id.issuer.0), id.number, u64::from(task.peer().0)]);
        self.no_longer_flying(id.issuer);
        for flush in flushes {
            self.flush_step(flush, late.clone());
        }
        if told {
            self.forget(id);
        } else {
            let back = if task.is_get() && outcome.is_ok() { 1 } else { self.delay(task.peer(), id.issuer) };
            self.schedule(self.now + back, id.issuer, EventKind::End { flight: id, outcome });
        }
    }

    /// An access failed where it arrived: nothing more of the operation takes effect.
    pub(crate) fn fail(&mut self, id: InFlightId, cause: Cause) {
        self.settle(id, Err(cause));
    }

    /// The issuer learns that an operation has ended.
    pub(crate) fn end(&mut self, id: InFlightId, outcome: Result<u64, Cause>) {
        let Some(flight) = self.in_flight.get_mut(&id) else { return };
        let token = flight.token.take();
        let outcome = flight.late.take().map_or(outcome, Err);
        self.forget(id);
        if let Some(token) = token {
            self.trace.note(self.now, RunEvent::End, [u64::from(id.issuer.0), id.number, token]);
            self.tell_issuer(id.issuer, token, outcome);
        }
    }

    /// The issuer learns that its buffer is free.
    pub(crate) fn end_early(&mut self, id: InFlightId) {
        let Some(flight) = self.in_flight.get_mut(&id) else { return };
        if flight.unread > 0 || (flight.settled && flight.open > 0) {
            return; // its target has not let it be read; or it failed, and its end is on the way
        }
        if let Some(token) = flight.token.take() {
            self.trace.note(self.now, RunEvent::EndEarly, [u64::from(id.issuer.0), id.number, token]);
            self.tell_issuer(id.issuer, token, Ok(0));
        }
    }

    fn tell_issuer(&mut self, issuer: Rank, token: u64, outcome: Result<u64, Cause>) {
        let state = self.rank_mut(issuer);
        state.outstanding -= 1;
        state.completions.push_back((token, outcome));
        self.news(issuer);
    }

    /// Removes an operation of which nothing is left.
    fn forget(&mut self, id: InFlightId) {
        let Some(flight) = self.in_flight.remove(&id) else { return };
        let is_told = matches!(flight.task, Task::SignalLine { .. } | Task::Slot { .. } | Task::Command(_));
        if is_told || flight.part_of.is_some() {
            self.rank_mut(id.issuer).outstanding -= 1;
            self.news(id.issuer);
        }
    }

    pub(crate) fn no_longer_flying(&mut self, issuer: Rank) {
        self.rank_mut(issuer).flying -= 1;
        if self.rank(issuer).flying == 0 {
            for place in 0..self.rank(issuer).actors.len() {
                let actor = self.rank(issuer).actors[place];
                if matches!(self.actors[actor].condition, Some(Condition::Settled)) {
                    self.wake(actor);
                }
            }
        }
    }

    /// Which operations a flush has to wait for.
    pub(crate) fn plan_flush(&mut self, id: InFlightId, flight: &mut InFlight, peer: Rank) {
        let last = InFlightId { number: id.number - 1, ..id };
        let first = InFlightId { number: 0, ..id };
        for (_, other) in self.in_flight.range_mut(first..=last) {
            let counts = other.task.peer() == peer && !matches!(other.task, Task::Flush { .. });
            if counts && !other.settled && !self.sim.twins.early_flush {
                other.flushes.push(id);
                flight.open += 1;
            }
        }
        if flight.open == 0 {
            flight.settled = true;
            self.no_longer_flying(id.issuer);
            let back = self.delay(id.issuer, peer) + self.delay(peer, id.issuer);
            self.schedule(self.now + back, id.issuer, EventKind::End { flight: id, outcome: Ok(0) });
        }
    }

    /// One of the operations that a flush waits for has arrived, or failed after its issuer was told otherwise.
    fn flush_step(&mut self, flush: InFlightId, late: Option<Cause>) {
        let Some(flight) = self.in_flight.get_mut(&flush) else { return };
        flight.late = flight.late.take().or(late);
        flight.open -= 1;
        if flight.open == 0 {
            self.settle(flush, Ok(0));
        }
    }

    /// Cuts what a rank has under way off from its memory: no local buffer is touched from now on, and what it is
    /// owed ends with `cause`, or is not told at all. Bytes that were read before still arrive.
    pub(crate) fn sever(&mut self, issuer: Rank, cause: Option<&Cause>) {
        let all = InFlightId { issuer, number: 0 }..=InFlightId { issuer, number: u64::MAX };
        let numbers: Vec<InFlightId> = self.in_flight.range(all).map(|(&id, _)| id).collect();
        for id in numbers {
            let Some(flight) = self.in_flight.get_mut(&id) else { continue };
            let token = flight.token.take();
            let is_over = flight.uses_buffer() || matches!(flight.task, Task::Flush { .. });
            let was_settled = flight.settled;
            if is_over || was_settled {
                self.forget(id);
                if !was_settled {
                    self.no_longer_flying(issuer);
                }
            }
            let Some(token) = token else { continue };
            match cause {
                Some(cause) => self.tell_issuer(issuer, token, Err(cause.clone())),
                None => self.rank_mut(issuer).outstanding -= 1,
            }
        }
    }
}
