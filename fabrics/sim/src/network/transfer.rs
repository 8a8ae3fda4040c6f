//! Moving bytes: a source is read piece by piece at random moments, the pieces travel, and land in any order.
#![allow(unsafe_code)]
//! Unsafe: copies from and to local buffers of operations under way. Their issuers keep them until the operation has
//! ended; an operation that needs its buffer no more, or may not use it any more, has lost its pieces or is gone.

use crate::network::in_flight::{End, InFlight, InFlightId, Piece, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::call_costs::SIGNAL_NS;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use std::ops::Range;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::Token;
use tasuki_core::os::copy;

/// Most pieces that one transfer is cut into.
const PIECES_MAX: u64 = 4;

impl SimState {
    /// An accepted operation sets out.
    pub(crate) fn launch(&mut self, issuer: Rank, token: Option<Token>, task: Task) {
        let state = self.rank_mut(issuer);
        state.flights_made += 1;
        state.outstanding += 1;
        state.flying += 1;
        let id = InFlightId { issuer, number: state.flights_made };
        let numbers = [u64::from(issuer.0), u64::from(task.peer().0), task.bytes()];
        self.trace.note(self.now, RunEvent::Accept, numbers);
        self.watch.acted();
        let mut flight = InFlight::new(task, token);
        match task {
            Task::Move { .. } => self.plan_move(id, &mut flight),
            Task::Flush { peer } => self.plan_flush(id, &mut flight, peer),
            _ => {
                flight.open = 1;
                let arrives = self.now + self.delay(issuer, task.peer());
                let arrives = self.in_order(issuer, task.peer(), arrives);
                self.schedule(arrives, task.peer(), EventKind::Apply { flight: id });
            }
        }
        self.in_flight.insert(id, flight);
    }

    /// When something that sets out now and would arrive at `arrives` does arrive.
    fn in_order(&mut self, issuer: Rank, peer: Rank, arrives: u64) -> u64 {
        if self.sim.network.reorder {
            return arrives;
        }
        let pair = self.pair(issuer, peer);
        pair.ordered_until = pair.ordered_until.max(arrives) + 1;
        pair.ordered_until
    }

    fn plan_move(&mut self, id: InFlightId, flight: &mut InFlight) {
        let Task::Move { from, to, len, then } = flight.task else { return };
        let (source, target) = (from.rank(id.issuer), to.rank(id.issuer));
        let asked = if source == id.issuer { self.now } else { self.now + self.delay(id.issuer, source) };
        let asked = if flight.task.is_get() { self.in_order(id.issuer, source, asked) } else { asked };
        let sets_out = asked.max(self.rank(source).way_out_free_at);
        let takes = self.transfer_ns(len);
        self.rank_mut(source).way_out_free_at = sets_out + takes;
        let mut travels = self.delay(source, target);
        if self.ends_early() {
            travels += self.draws.up_to(8 * self.sim.network.latency_ns);
        }
        let earliest = if flight.task.is_get() { 0 } else { self.pair(id.issuer, target).ordered_until };
        let (mut read_last, mut lands_last) = (0, 0);
        for (piece, range) in self.cut(len as usize).into_iter().enumerate() {
            let read = self.draws.between(asked, sets_out + takes);
            let spread = self.draws.up_to(takes + self.sim.network.jitter_ns / 2);
            let lands_at = (read.max(sets_out) + travels + spread).max(earliest);
            (read_last, lands_last) = (read.max(read_last), lands_at.max(lands_last));
            flight.pieces.push(Piece { range, lands_at, bytes: None });
            self.schedule(read, source, EventKind::Read { flight: id, piece });
        }
        flight.unread = flight.pieces.len();
        flight.open = flight.pieces.len() + usize::from(then.is_some());
        flight.in_lockstep = source == target;
        if !flight.task.is_get() {
            self.in_order(id.issuer, target, lands_last + SIGNAL_NS);
            if self.ends_early() {
                let free = read_last + 1 + self.draws.up_to(SIGNAL_NS);
                self.schedule(free, id.issuer, EventKind::EndEarly { flight: id });
            }
        }
        if then.is_some() && self.sim.twins.unordered_signals {
            let at = self.draws.between(sets_out + 1, lands_last);
            self.schedule(at, target, EventKind::Apply { flight: id });
        }
    }

    /// Whether puts end before their bytes are visible.
    pub(crate) fn ends_early(&self) -> bool {
        !self.sim.can.remote_completion || self.sim.twins.early_ends
    }

    /// Cuts a transfer at random bytes; half of them not at all.
    fn cut(&mut self, len: usize) -> Vec<Range<usize>> {
        let most = PIECES_MAX.min(len as u64) - 1;
        let cuts = if self.draws.up_to(1) == 0 { 0 } else { self.draws.up_to(most) };
        let mut ends: Vec<usize> = (0..cuts).map(|_| self.draws.between(1, len as u64) as usize).collect();
        ends.push(len);
        ends.sort_unstable();
        ends.dedup();
        let mut start = 0;
        ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect()
    }

    /// A piece of a source is read.
    pub(crate) fn read(&mut self, id: InFlightId, piece: usize) {
        let Some((task, range)) = self.piece(id, piece) else { return };
        let Task::Move { from, len, .. } = task else { return };
        let mut bytes = vec![0; range.len()];
        match from {
            End::Here(local) => {
                let from = local.0.wrapping_add(range.start).cast_const();
                // SAFETY: the operation is under way and has a piece unread, so its buffer is kept.
                unsafe { copy::copy(from, bytes.as_mut_ptr(), bytes.len()) };
            }
            End::There(at) => {
                if !self.arrives(at.rank(), EventKind::Read { flight: id, piece }, false) {
                    return;
                }
                if let Err(cause) = self.memory.read(at, len, range.start, &mut bytes) {
                    return self.fail(id, cause);
                }
            }
        }
        self.note_piece(RunEvent::Read, id, range.len());
        self.set_out(id, piece, bytes);
    }

    /// EventKind was read sets out, or waits until everything is.
    fn set_out(&mut self, id: InFlightId, piece: usize, bytes: Vec<u8>) {
        let Some(flight) = self.in_flight.get_mut(&id) else { return };
        flight.pieces[piece].bytes = Some(bytes);
        flight.unread -= 1;
        if flight.in_lockstep && flight.unread > 0 {
            return;
        }
        let all = if flight.in_lockstep { 0..flight.pieces.len() } else { piece..piece + 1 };
        let Task::Move { to, .. } = flight.task else { return };
        let times: Vec<(usize, u64)> = all.map(|piece| (piece, flight.pieces[piece].lands_at)).collect();
        for (piece, lands_at) in times {
            let at = lands_at.max(self.now + 1);
            self.schedule(at, to.rank(id.issuer), EventKind::Land { flight: id, piece });
        }
    }

    /// A piece arrives.
    pub(crate) fn land(&mut self, id: InFlightId, piece: usize) {
        let Some((task, range)) = self.piece(id, piece) else { return };
        let Task::Move { to, len, .. } = task else { return };
        if let End::There(at) = to
            && !self.arrives(at.rank(), EventKind::Land { flight: id, piece }, false)
        {
            return;
        }
        if self.is_for_nobody(id) {
            return self.fail(id, Cause::PeerLeft { peer: task.peer() });
        }
        let taken = self.in_flight.get_mut(&id).and_then(|flight| flight.pieces[piece].bytes.take());
        let Some(bytes) = taken else { return };
        match to {
            End::Here(local) => {
                let to = local.0.wrapping_add(range.start);
                // SAFETY: the operation is under way and has a piece that has not landed, so its buffer is kept.
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

    /// One more piece is at its place.
    fn landed(&mut self, id: InFlightId) {
        let Some(flight) = self.in_flight.get_mut(&id) else { return };
        flight.open -= 1;
        let open = flight.open;
        let Task::Move { then, to, .. } = flight.task else { return };
        if open == 0 {
            self.settle(id, Ok(0));
        } else if open == 1 && then.is_some() && !self.sim.twins.unordered_signals {
            let at = self.now + 1 + self.draws.up_to(SIGNAL_NS - 1);
            self.schedule(at, to.rank(id.issuer), EventKind::Apply { flight: id });
        }
    }

    /// A piece of an operation that still moves any.
    fn piece(&self, id: InFlightId, piece: usize) -> Option<(Task, Range<usize>)> {
        let flight = self.in_flight.get(&id)?;
        Some((flight.task, flight.pieces.get(piece)?.range.clone()))
    }

    fn note_piece(&mut self, mark: RunEvent, id: InFlightId, bytes: usize) {
        self.trace.note(self.now, mark, [u64::from(id.issuer.0), id.number, bytes as u64]);
    }

    /// Something reaches a rank: whether it takes effect now. At a dead rank nothing ever does; at a rank that
    /// makes progress in its calls only, it waits for the next one. `emulated`: it takes a call in any case.
    pub(crate) fn arrives(&mut self, at: Rank, what: EventKind, emulated: bool) -> bool {
        if self.rank(at).dead {
            return false;
        }
        let needs_call = emulated || self.sim.network.passive_targets;
        if !needs_call || self.is_in_call(at) {
            return true;
        }
        if self.rank(at).alive > 0 {
            self.rank_mut(at).inbox.push_back(what);
        } else if let EventKind::Read { flight, .. }
        | EventKind::Land { flight, .. }
        | EventKind::Apply { flight } = what
        {
            self.fail(flight, Cause::PeerLeft { peer: at });
        }
        false
    }
}
