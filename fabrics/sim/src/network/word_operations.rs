//! Words that change in one step: atomics, signals, lines.

use crate::network::in_flight::{InFlightId, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::call_costs::CARD_NS;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use tasuki_core::base::Cause;
use tasuki_core::base::sync::{AtomicU32, AtomicU64, Ordering};
use tasuki_core::fabric::{Atomic, AtomicKind, DirectLine, LinePayload, SlotWrite, Width};
use tasuki_core::node::park::WakeMode;
use tasuki_core::segment::GlobalAddress;

impl SimState {
    /// The word, signal or line of an operation takes effect.
    pub(crate) fn apply(&mut self, id: InFlightId) {
        let Some(flight) = self.in_flight.get(&id) else { return };
        let task = flight.task;
        let is_put = matches!(task, Task::Move { .. });
        if flight.settled
            || !self.arrives(
                task.peer(),
                EventKind::Apply { flight: id },
                is_put && !self.sim.can.native_put_signal,
            )
        {
            return;
        }
        if self.is_for_nobody(id) {
            return self.fail(id, Cause::PeerLeft { peer: task.peer() });
        }
        self.trace.note(
            self.now,
            RunEvent::Apply,
            [u64::from(id.issuer.0), id.number, u64::from(task.peer().0)],
        );
        match task {
            Task::Move { then: Some((signal, amount)), .. } | Task::Raise { signal, amount } => {
                let raised = self.raise(signal, amount);
                self.took_effect(id, raised);
            }
            Task::Poison { signal, poison } => {
                let poisoned = self.memory.signal(signal).map(|cell| u64::from(cell.poison(poison)));
                self.news(signal.rank());
                self.took_effect(id, poisoned.map(|_| 0));
            }
            Task::SignalLine { signal, payload, value } => self.apply_line(id, signal, payload, value),
            Task::Slot { line, word, value, payload, used } => {
                self.apply_slot(id, line, &SlotWrite { word, value, payload: &payload[..used] });
            }
            Task::Command(write) => {
                let written = self.memory.write_command(&write);
                self.news(write.places[0].rank());
                self.activate_standby(write.places[0].rank());
                self.took_effect(id, written.map(|()| 0));
            }
            Task::Atomic { at, atomic } => self.apply_atomic(id, at, atomic),
            Task::Move { .. } | Task::Flush { .. } => {}
        }
    }

    /// One part of an operation has taken effect, or failed to.
    fn took_effect(&mut self, id: InFlightId, outcome: Result<u64, Cause>) {
        let value = match outcome {
            Ok(value) => value,
            Err(cause) => return self.fail(id, cause),
        };
        let Some(flight) = self.in_flight.get_mut(&id) else { return };
        flight.open -= 1;
        if flight.open == 0 {
            self.settle(id, Ok(value));
        }
    }

    pub(crate) fn raise(&mut self, signal: GlobalAddress, amount: u64) -> Result<u64, Cause> {
        self.memory.signal(signal)?.counter().fetch_add(amount, Ordering::SeqCst); // SYNC signal-raise
        self.news(signal.rank());
        Ok(0)
    }

    fn apply_line(&mut self, id: InFlightId, signal: GlobalAddress, payload: LinePayload, value: u64) {
        let cell = match self.memory.signal(signal) {
            Ok(cell) => cell,
            Err(cause) => return self.fail(id, cause),
        };
        let behind = value.wrapping_sub(cell.counter().load(Ordering::Relaxed)) as i64;
        if self.sim.twins.torn_lines && behind > 0 {
            // The counter now, the payload some time later.
            cell.counter().store(value, Ordering::Release); // SYNC signal-raise
            let later = self.now + 1 + self.draws.up_to(4 * self.sim.network.latency_ns);
            self.schedule(later, signal.rank(), EventKind::Apply { flight: id });
            return self.news(signal.rank());
        }
        // A line only grows: one that was overtaken by a later one is as if it had been overwritten.
        if behind >= 0 {
            let rank_state = self.node_state.rank_state(signal.rank());
            DirectLine::new(cell, rank_state, WakeMode::Fence).write(payload, value);
        }
        self.news(signal.rank());
        self.took_effect(id, Ok(0));
    }

    fn apply_slot(&mut self, id: InFlightId, line: GlobalAddress, write: &SlotWrite<'_>) {
        match self.memory.slots(line, 1, &self.node_state) {
            Ok(slots) => slots.take(write),
            Err(cause) => return self.fail(id, cause),
        }
        self.news(line.rank());
        self.took_effect(id, Ok(0));
    }

    fn apply_atomic(&mut self, id: InFlightId, at: GlobalAddress, atomic: Atomic) {
        let coherent = self.sim.can.cpu_atomics && !self.sim.twins.torn_atomics;
        if coherent {
            let changed = self.memory.change(at, atomic);
            return self.took_effect(id, changed);
        }
        // The card reads the word, or has it already, and writes it back some time later.
        let look = Atomic { kind: AtomicKind::Load, operand: 0, width: atomic.width };
        let kept = self.cards.get(&at).map(|&(value, _)| value).filter(|_| !self.sim.twins.torn_atomics);
        let old = match kept.map_or_else(|| self.memory.change(at, look), Ok) {
            Ok(old) => old,
            Err(cause) => return self.fail(id, cause),
        };
        let value = changed(old, atomic);
        let users = self.cards.get(&at).map_or(0, |&(_, users)| users) + 1;
        self.cards.insert(at, (value, users));
        let later = self.now + 1 + self.draws.up_to(CARD_NS);
        self.schedule(
            later,
            at.rank(),
            EventKind::WriteBack { flight: id, at, width: atomic.width, value, old },
        );
    }

    /// A card writes a word back.
    pub(crate) fn write_back(
        &mut self,
        id: InFlightId,
        at: GlobalAddress,
        width: Width,
        value: u64,
        old: u64,
    ) {
        let Some((kept, users)) = self.cards.remove(&at) else { return };
        if users > 1 {
            self.cards.insert(at, (kept, users - 1));
        }
        let operand = if self.sim.twins.torn_atomics { value } else { kept };
        let number = [u64::from(at.rank().0), id.number, 0];
        self.trace.note(self.now, RunEvent::WriteBack, number);
        let stored = self.memory.change(at, Atomic { kind: AtomicKind::Store, operand, width });
        self.took_effect(id, stored.map(|_| old));
    }
}

/// EventKind a word that was `old` is after the change.
fn changed(old: u64, atomic: Atomic) -> u64 {
    match atomic.width {
        Width::W4 => {
            let word = AtomicU32::new(old as u32);
            atomic.apply4(&word);
            u64::from(word.into_inner())
        }
        Width::W8 => {
            let word = AtomicU64::new(old);
            atomic.apply8(&word);
            word.into_inner()
        }
    }
}
