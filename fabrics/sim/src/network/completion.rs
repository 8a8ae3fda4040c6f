//! Completion: every accepted operation ends exactly once, and a flush ends after the operations before it.

use crate::network::in_flight::{InFlight, InFlightId, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::Condition;

impl SimState {
    /// Notes that an operation has arrived completely (or, `Err`, that it failed) and sends the
    /// completion to the issuer.
    pub(crate) fn operation_arrived(&mut self, id: InFlightId, outcome: Result<u64, Cause>) {
        let Some(operation) = self.in_flight.get_mut(&id) else { return };
        if std::mem::replace(&mut operation.settled, true) {
            return;
        }
        operation.pieces.clear();
        let task = operation.task;
        let was_reported = operation.token.is_none();
        let flushes = std::mem::take(&mut operation.flushes);
        let late_failure = if was_reported { outcome.as_ref().err().cloned() } else { None };
        let mark = if outcome.is_ok() { RunEvent::Visible } else { RunEvent::Fail };
        self.trace.record(self.now, mark, [id.issuer.0 as u64, id.number, task.peer().0 as u64]);
        self.count_arrival(id.issuer);
        for flush in flushes {
            self.flush_step(flush, late_failure.clone());
        }
        if was_reported {
            self.remove_operation(id);
        } else {
            let back = if task.is_get() && outcome.is_ok() { 1 } else { self.delay(task.peer(), id.issuer) };
            self.schedule(self.now + back, id.issuer, EventKind::End { operation: id, outcome });
        }
    }

    /// Notes that an access failed where it arrived: nothing more of the operation takes effect.
    pub(crate) fn fail(&mut self, id: InFlightId, cause: Cause) {
        self.operation_arrived(id, Err(cause));
    }

    /// Reports the end of an operation to the issuer.
    pub(crate) fn end(&mut self, id: InFlightId, outcome: Result<u64, Cause>) {
        let Some(operation) = self.in_flight.get_mut(&id) else { return };
        let token = operation.token.take();
        let outcome = operation.late_failure.take().map_or(outcome, Err);
        self.remove_operation(id);
        if let Some(token) = token {
            self.trace.record(self.now, RunEvent::End, [id.issuer.0 as u64, id.number, token]);
            self.report_end(id.issuer, token, outcome);
        }
    }

    /// Reports to the issuer that its buffer is free.
    pub(crate) fn end_early(&mut self, id: InFlightId) {
        let Some(operation) = self.in_flight.get_mut(&id) else { return };
        if operation.unread > 0 || (operation.settled && operation.open > 0) {
            return; // its passive target has not let it be read; or it failed, and its completion is scheduled
        }
        if let Some(token) = operation.token.take() {
            self.trace.record(self.now, RunEvent::EndEarly, [id.issuer.0 as u64, id.number, token]);
            self.report_end(id.issuer, token, Ok(0));
        }
    }

    fn report_end(&mut self, issuer: Rank, token: u64, outcome: Result<u64, Cause>) {
        let state = self.rank_mut(issuer);
        state.outstanding -= 1;
        state.completions.push_back((token, outcome));
        self.notify(issuer);
    }

    /// Removes an operation that has ended completely.
    fn remove_operation(&mut self, id: InFlightId) {
        let Some(operation) = self.in_flight.remove(&id) else { return };
        let counts_until_removal =
            matches!(operation.task, Task::SignalLine { .. } | Task::Slot { .. } | Task::Command(_));
        if counts_until_removal || operation.part_of.is_some() {
            self.rank_mut(id.issuer).outstanding -= 1;
            self.notify(id.issuer);
        }
    }

    pub(crate) fn count_arrival(&mut self, issuer: Rank) {
        self.rank_mut(issuer).in_flight_count -= 1;
        if self.rank(issuer).in_flight_count == 0 {
            for place in 0..self.rank(issuer).actors.len() {
                let actor = self.rank(issuer).actors[place];
                if matches!(self.actors[actor].condition, Some(Condition::Settled)) {
                    self.wake(actor);
                }
            }
        }
    }

    /// Registers a flush with the operations that it has to wait for.
    pub(crate) fn plan_flush(&mut self, id: InFlightId, operation: &mut InFlight, peer: Rank) {
        let last = InFlightId { number: id.number - 1, ..id };
        let first = InFlightId { number: 0, ..id };
        for (_, other) in self.in_flight.range_mut(first..=last) {
            let counts = other.task.peer() == peer && !matches!(other.task, Task::Flush { .. });
            if counts && !other.settled && !self.sim.broken.early_flush {
                other.flushes.push(id);
                operation.open += 1;
            }
        }
        if operation.open == 0 {
            operation.settled = true;
            self.count_arrival(id.issuer);
            let back = self.delay(id.issuer, peer) + self.delay(peer, id.issuer);
            self.schedule(self.now + back, id.issuer, EventKind::End { operation: id, outcome: Ok(0) });
        }
    }

    /// Notes that one operation that a flush waits for has arrived, or failed after its issuer got a successful end.
    fn flush_step(&mut self, flush: InFlightId, late_failure: Option<Cause>) {
        let Some(operation) = self.in_flight.get_mut(&flush) else { return };
        operation.late_failure = operation.late_failure.take().or(late_failure);
        operation.open -= 1;
        if operation.open == 0 {
            self.operation_arrived(flush, Ok(0));
        }
    }

    /// Separates the operations of a rank from its memory: they touch no local buffer from now on.
    /// They end with `cause`, or without a report if there is none. Bytes that were read before
    /// still arrive.
    pub(crate) fn abandon_operations(&mut self, issuer: Rank, cause: Option<&Cause>) {
        let all = InFlightId { issuer, number: 0 }..=InFlightId { issuer, number: u64::MAX };
        let numbers: Vec<InFlightId> = self.in_flight.range(all).map(|(&id, _)| id).collect();
        for id in numbers {
            let Some(operation) = self.in_flight.get_mut(&id) else { continue };
            let token = operation.token.take();
            let is_over = operation.uses_buffer() || matches!(operation.task, Task::Flush { .. });
            let was_settled = operation.settled;
            if is_over || was_settled {
                self.remove_operation(id);
                if !was_settled {
                    self.count_arrival(issuer);
                }
            }
            let Some(token) = token else { continue };
            match cause {
                Some(cause) => self.report_end(issuer, token, Err(cause.clone())),
                None => self.rank_mut(issuer).outstanding -= 1,
            }
        }
    }
}
