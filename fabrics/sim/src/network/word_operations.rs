//! Words that change in one step: atomics, signals, lines.

use crate::network::in_flight::{InFlightId, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::call_costs::NIC_HOLD_NS;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use tasuki_core::base::Cause;
use tasuki_core::base::sync::{AtomicU32, AtomicU64, Ordering};
use tasuki_core::fabric::{Atomic, AtomicKind, DirectLine, LinePayload, SlotWrite, Width};
use tasuki_core::node::park::WakeMode;
use tasuki_core::segment::GlobalAddress;

impl SimState {
    /// Applies the word, signal or line of an operation.
    pub(crate) fn apply(&mut self, id: InFlightId) {
        let Some(operation) = self.in_flight.get(&id) else { return };
        let task = operation.task;
        let is_put = matches!(task, Task::Move { .. });
        if operation.settled
            || !self.takes_effect_now(
                task.peer(),
                EventKind::Apply { operation: id },
                is_put && !self.sim.can.native_put_signal,
            )
        {
            return;
        }
        if self.target_closed_group(id) {
            return self.fail(id, Cause::PeerLeft { peer: task.peer() });
        }
        self.trace.record(self.now, RunEvent::Apply, [id.issuer.0 as u64, id.number, task.peer().0 as u64]);
        match task {
            Task::Move { then: Some((signal, amount)), .. } | Task::Raise { signal, amount } => {
                let raised = self.raise(signal, amount);
                self.took_effect(id, raised);
            }
            Task::Poison { signal, poison } => {
                let poisoned = self.memory.signal(signal).map(|cell| u64::from(cell.poison(poison)));
                self.notify(signal.rank());
                self.took_effect(id, poisoned.map(|_| 0));
            }
            Task::SignalLine { signal, payload, value } => self.apply_line(id, signal, payload, value),
            Task::Slot { line, word, value, payload, used } => {
                self.apply_slot(id, line, &SlotWrite { word, value, payload: &payload[..used] });
            }
            Task::Command(write) => {
                let written = self.memory.write_command(&write);
                self.notify(write.places[0].rank());
                self.activate_standby(write.places[0].rank());
                self.took_effect(id, written.map(|()| 0));
            }
            Task::Atomic { at, atomic } => self.apply_atomic(id, at, atomic),
            Task::Move { .. } | Task::Flush { .. } => {}
        }
    }

    /// Notes that one part of an operation has taken effect or has failed.
    fn took_effect(&mut self, id: InFlightId, outcome: Result<u64, Cause>) {
        let value = match outcome {
            Ok(value) => value,
            Err(cause) => return self.fail(id, cause),
        };
        let Some(operation) = self.in_flight.get_mut(&id) else { return };
        operation.open -= 1;
        if operation.open == 0 {
            self.operation_arrived(id, Ok(value));
        }
    }

    pub(crate) fn raise(&mut self, signal: GlobalAddress, amount: u64) -> Result<u64, Cause> {
        self.memory.signal(signal)?.counter().fetch_add(amount, Ordering::SeqCst); // SYNC signal-raise
        self.notify(signal.rank());
        Ok(0)
    }

    fn apply_line(&mut self, id: InFlightId, signal: GlobalAddress, payload: LinePayload, value: u64) {
        let cell = match self.memory.signal(signal) {
            Ok(cell) => cell,
            Err(cause) => return self.fail(id, cause),
        };
        let behind = value.wrapping_sub(cell.counter().load(Ordering::Relaxed)) as i64;
        if self.sim.broken.torn_lines && behind > 0 {
            // The counter is written now, the payload some time later.
            cell.counter().store(value, Ordering::Release); // SYNC signal-raise
            let later = self.now + 1 + self.random.up_to(4 * self.sim.network.latency_ns);
            self.schedule(later, signal.rank(), EventKind::Apply { operation: id });
            return self.notify(signal.rank());
        }
        // A line only grows. A line that a later one has overtaken counts as overwritten.
        if behind >= 0 {
            let rank_state = self.node_state.rank_state(signal.rank());
            DirectLine::new(cell, rank_state, WakeMode::Fence).write(payload, value);
        }
        self.notify(signal.rank());
        self.took_effect(id, Ok(0));
    }

    fn apply_slot(&mut self, id: InFlightId, line: GlobalAddress, write: &SlotWrite<'_>) {
        match self.memory.slots(line, 1, &self.node_state) {
            Ok(slots) => slots.take(write),
            Err(cause) => return self.fail(id, cause),
        }
        self.notify(line.rank());
        self.took_effect(id, Ok(0));
    }

    fn apply_atomic(&mut self, id: InFlightId, at: GlobalAddress, atomic: Atomic) {
        let coherent = self.sim.can.cpu_atomics && !self.sim.broken.torn_atomics;
        if coherent {
            let changed = self.memory.change(at, atomic);
            return self.took_effect(id, changed);
        }
        // The network card reads the word, unless it holds it already, and writes it back some time later.
        let look = Atomic { kind: AtomicKind::Load, operand: 0, width: atomic.width };
        let kept = self.nic_words.get(&at).map(|&(value, _)| value).filter(|_| !self.sim.broken.torn_atomics);
        let old = match kept.map_or_else(|| self.memory.change(at, look), Ok) {
            Ok(old) => old,
            Err(cause) => return self.fail(id, cause),
        };
        let value = changed(old, atomic);
        let users = self.nic_words.get(&at).map_or(0, |&(_, users)| users) + 1;
        self.nic_words.insert(at, (value, users));
        let later = self.now + 1 + self.random.up_to(NIC_HOLD_NS);
        self.schedule(
            later,
            at.rank(),
            EventKind::WriteBack { operation: id, at, width: atomic.width, value, old },
        );
    }

    /// Lets a network card write a word back.
    pub(crate) fn write_back(
        &mut self,
        id: InFlightId,
        at: GlobalAddress,
        width: Width,
        value: u64,
        old: u64,
    ) {
        let Some((kept, users)) = self.nic_words.remove(&at) else { return };
        if users > 1 {
            self.nic_words.insert(at, (kept, users - 1));
        }
        let operand = if self.sim.broken.torn_atomics { value } else { kept };
        let number = [at.rank().0 as u64, id.number, 0];
        self.trace.record(self.now, RunEvent::WriteBack, number);
        let stored = self.memory.change(at, Atomic { kind: AtomicKind::Store, operand, width });
        self.took_effect(id, stored.map(|_| old));
    }
}

/// Returns the value of a word after the change if it was `old`.
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
