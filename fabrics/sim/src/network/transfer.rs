//! Moving bytes: the source is read piece by piece at random moments, and the pieces arrive in any order.
#![allow(unsafe_code)]
//! Unsafe: copies from and to local buffers of operations in flight. Their issuers keep the buffers
//! until the operation has ended. An operation that no longer uses its buffer has lost its pieces
//! or was removed.

use crate::network::in_flight::{End, InFlight, InFlightId, Piece, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::call_costs::SIGNAL_NS;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use std::ops::Range;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::Token;
use tasuki_core::os::copy;

/// Most pieces that one transfer is split into.
const PIECES_MAX: u64 = 4;

impl SimState {
    /// Starts an accepted operation.
    pub(crate) fn start_operation(&mut self, issuer: Rank, token: Option<Token>, task: Task) {
        let state = self.rank_mut(issuer);
        state.operations_started += 1;
        state.outstanding += 1;
        state.in_flight_count += 1;
        let id = InFlightId { issuer, number: state.operations_started };
        let numbers = [issuer.0 as u64, task.peer().0 as u64, task.bytes()];
        self.trace.record(self.now, RunEvent::Accept, numbers);
        self.watch.thread_acted();
        let mut operation = InFlight::new(task, token);
        match task {
            Task::Move { .. } => self.plan_move(id, &mut operation),
            Task::Flush { peer } => self.plan_flush(id, &mut operation, peer),
            _ => {
                operation.open = 1;
                let arrives = self.now + self.delay(issuer, task.peer());
                let arrives = self.in_order(issuer, task.peer(), arrives);
                self.schedule(arrives, task.peer(), EventKind::Apply { operation: id });
            }
        }
        self.in_flight.insert(id, operation);
    }

    /// Returns when a message arrives that leaves now and would arrive at `arrives` if messages could overtake.
    fn in_order(&mut self, issuer: Rank, peer: Rank, arrives: u64) -> u64 {
        if self.sim.network.reorder {
            return arrives;
        }
        let pair = self.pair(issuer, peer);
        pair.ordered_until = pair.ordered_until.max(arrives) + 1;
        pair.ordered_until
    }

    fn plan_move(&mut self, id: InFlightId, operation: &mut InFlight) {
        let Task::Move { from, to, len, then } = operation.task else { return };
        let (source, target) = (from.rank(id.issuer), to.rank(id.issuer));
        let requested = if source == id.issuer { self.now } else { self.now + self.delay(id.issuer, source) };
        let requested =
            if operation.task.is_get() { self.in_order(id.issuer, source, requested) } else { requested };
        let departs = requested.max(self.rank(source).link_free_at_ns);
        let takes = self.transfer_ns(len);
        self.rank_mut(source).link_free_at_ns = departs + takes;
        let mut travels = self.delay(source, target);
        if self.ends_early() {
            travels += self.random.up_to(8 * self.sim.network.latency_ns);
        }
        let earliest = if operation.task.is_get() { 0 } else { self.pair(id.issuer, target).ordered_until };
        let (mut read_last, mut lands_last) = (0, 0);
        for (piece, range) in self.split(len as usize).into_iter().enumerate() {
            let read = self.random.between(requested, departs + takes);
            let spread = self.random.up_to(takes + self.sim.network.jitter_ns / 2);
            let lands_at = (read.max(departs) + travels + spread).max(earliest);
            (read_last, lands_last) = (read.max(read_last), lands_at.max(lands_last));
            operation.pieces.push(Piece { range, lands_at, bytes: None });
            self.schedule(read, source, EventKind::Read { operation: id, piece });
        }
        operation.unread = operation.pieces.len();
        operation.open = operation.pieces.len() + usize::from(then.is_some());
        operation.in_lockstep = source == target;
        if !operation.task.is_get() {
            self.in_order(id.issuer, target, lands_last + SIGNAL_NS);
            if self.ends_early() {
                let free = read_last + 1 + self.random.up_to(SIGNAL_NS);
                self.schedule(free, id.issuer, EventKind::EndEarly { operation: id });
            }
        }
        if then.is_some() && self.sim.broken.unordered_signals {
            let at = self.random.between(departs + 1, lands_last);
            self.schedule(at, target, EventKind::Apply { operation: id });
        }
    }

    /// Returns true if puts end before their bytes are visible.
    pub(crate) fn ends_early(&self) -> bool {
        !self.sim.can.remote_completion || self.sim.broken.early_ends
    }

    /// Splits a transfer at random bytes; half of all transfers stay whole.
    fn split(&mut self, len: usize) -> Vec<Range<usize>> {
        let most = PIECES_MAX.min(len as u64) - 1;
        let cuts = if self.random.up_to(1) == 0 { 0 } else { self.random.up_to(most) };
        let mut ends: Vec<usize> = (0..cuts).map(|_| self.random.between(1, len as u64) as usize).collect();
        ends.push(len);
        ends.sort_unstable();
        ends.dedup();
        let mut start = 0;
        ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect()
    }

    /// Reads a piece of a source.
    pub(crate) fn read(&mut self, id: InFlightId, piece: usize) {
        let Some((task, range)) = self.piece(id, piece) else { return };
        let Task::Move { from, len, .. } = task else { return };
        let mut bytes = vec![0; range.len()];
        match from {
            End::Here(local) => {
                let from = local.0.wrapping_add(range.start).cast_const();
                // SAFETY: the operation is in flight and has an unread piece, so its buffer is
                // kept.
                unsafe { copy::copy(from, bytes.as_mut_ptr(), bytes.len()) };
            }
            End::There(at) => {
                if !self.takes_effect_now(at.rank(), EventKind::Read { operation: id, piece }, false) {
                    return;
                }
                if let Err(cause) = self.memory.read(at, len, range.start, &mut bytes) {
                    return self.fail(id, cause);
                }
            }
        }
        self.note_piece(RunEvent::Read, id, range.len());
        self.send_piece(id, piece, bytes);
    }

    /// Sends a piece that was read, or waits until all pieces were read.
    fn send_piece(&mut self, id: InFlightId, piece: usize, bytes: Vec<u8>) {
        let Some(operation) = self.in_flight.get_mut(&id) else { return };
        operation.pieces[piece].bytes = Some(bytes);
        operation.unread -= 1;
        if operation.in_lockstep && operation.unread > 0 {
            return;
        }
        let all = if operation.in_lockstep { 0..operation.pieces.len() } else { piece..piece + 1 };
        let Task::Move { from, to, .. } = operation.task else { return };
        let times: Vec<(usize, u64)> = all.map(|piece| (piece, operation.pieces[piece].lands_at)).collect();
        let (source, target) = (from.rank(id.issuer), to.rank(id.issuer));
        // A passive source is read in its next call, which may be later than planned. Its bytes take the latency all
        // the same: threads of the target may be ahead by that much.
        let travels = if source == target { 1 } else { self.sim.network.latency_ns.max(1) };
        for (piece, lands_at) in times {
            let at = lands_at.max(self.now + travels);
            self.schedule(at, target, EventKind::Land { operation: id, piece });
        }
    }

    /// Writes a piece to its destination.
    pub(crate) fn land(&mut self, id: InFlightId, piece: usize) {
        let Some((task, range)) = self.piece(id, piece) else { return };
        let Task::Move { to, len, .. } = task else { return };
        if let End::There(at) = to
            && !self.takes_effect_now(at.rank(), EventKind::Land { operation: id, piece }, false)
        {
            return;
        }
        if self.target_closed_group(id) {
            return self.fail(id, Cause::PeerLeft { peer: task.peer() });
        }
        let taken = self.in_flight.get_mut(&id).and_then(|operation| operation.pieces[piece].bytes.take());
        let Some(bytes) = taken else { return };
        match to {
            End::Here(local) => {
                let to = local.0.wrapping_add(range.start);
                // SAFETY: the operation is in flight and has a piece that has not been written,
                // so its buffer is kept.
                unsafe { copy::copy(bytes.as_ptr(), to, bytes.len()) };
            }
            End::There(at) => {
                if let Err(cause) = self.memory.write(at, len, range.start, &bytes) {
                    return self.fail(id, cause);
                }
            }
        }
        self.note_piece(RunEvent::Land, id, range.len());
        self.landed(id);
    }

    /// Notes that one more piece has been written.
    fn landed(&mut self, id: InFlightId) {
        let Some(operation) = self.in_flight.get_mut(&id) else { return };
        operation.open -= 1;
        let open = operation.open;
        let Task::Move { then, to, .. } = operation.task else { return };
        if open == 0 {
            self.operation_arrived(id, Ok(0));
        } else if open == 1 && then.is_some() && !self.sim.broken.unordered_signals {
            let at = self.now + 1 + self.random.up_to(SIGNAL_NS - 1);
            self.schedule(at, to.rank(id.issuer), EventKind::Apply { operation: id });
        }
    }

    /// Returns an operation and the range of one of its pieces, if it still has pieces.
    fn piece(&self, id: InFlightId, piece: usize) -> Option<(Task, Range<usize>)> {
        let operation = self.in_flight.get(&id)?;
        Some((operation.task, operation.pieces.get(piece)?.range.clone()))
    }

    fn note_piece(&mut self, mark: RunEvent, id: InFlightId, bytes: usize) {
        self.trace.record(self.now, mark, [id.issuer.0 as u64, id.number, bytes as u64]);
    }

    /// Returns true if an event takes effect at a rank now. At a dead rank it never does. At a rank that makes progress
    /// only in its calls, the event waits for the next call. `emulated`: the event needs a call in any case.
    pub(crate) fn takes_effect_now(&mut self, at: Rank, what: EventKind, emulated: bool) -> bool {
        if self.rank(at).dead {
            return false;
        }
        let needs_call = emulated || self.sim.network.passive_targets;
        if !needs_call || self.is_in_call(at) {
            return true;
        }
        if self.rank(at).alive > 0 {
            self.rank_mut(at).inbox.push_back(what);
        } else if let EventKind::Read { operation, .. }
        | EventKind::Land { operation, .. }
        | EventKind::Apply { operation } = what
        {
            self.fail(operation, Cause::PeerLeft { peer: at });
        }
        false
    }
}
