//! The simulated fabric: it runs whole programs in virtual time and draws every delay, reordering and fault from one
//! seed.
//!
//! [`simulate`] runs a function once for each rank. Each rank has a thread, and only one thread runs at a time. A rank
//! reaches the others through a [`SimFabric`] and waits on a [`SimPlatform`]; every call of either is a scheduling
//! point and costs virtual time. The memories of ranks are separate files, and only the simulator copies between
//! them. It reads the source of an operation piece by piece at random moments and writes the pieces in random order.
//! Only then does it raise the signal of the operation and report its end. The same [`Sim`] and the same program give
//! the same run, event by event, in any process; [`Report::trace_hash`] is then equal.
//!
//! [`Sim`] describes what to simulate: each capability of a fabric, present or absent, the faults of real networks,
//! and *broken promises*. A broken promise takes one guarantee of the fabric away on purpose, so that a test can show
//! that the code above needs it.
#![warn(clippy::print_stdout)]
#![allow(unsafe_code)]
//! Unsafe: only declared here, in the trait's signatures. Callers promise that their buffers stay valid, and `transfer`
//! relies on that.

mod network;
mod options;
mod platform;
mod random;
mod run_hash;
mod scheduler;
mod simulate;
mod state;

pub use options::Sim;
pub use platform::SimPlatform;
pub use scheduler::Killed;
pub use simulate::{Member, Outcome, Report, simulate};

use network::in_flight::{End, Task};
use scheduler::Scheduler;
use scheduler::call_kind::CallKind;
use state::SimState;
use std::ptr::NonNull;
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Local;
use tasuki_core::fabric::signal_line::PAYLOAD_WORDS;
use tasuki_core::fabric::{
    Accept, Accepted, Atomic, Capabilities, CommandWrite, ConnectionState, DirectSlots, Fabric, FabricGroup,
    FabricLine, Limits, LinePayload, Poison, Refused, SLOT_PAYLOAD, SignalCell, SignalLine, Sink, SlotWrite,
};
use tasuki_core::segment::{GlobalAddress, Registry};

/// The access of one simulated rank to the memory of all ranks.
#[derive(Debug)]
pub struct SimFabric {
    run: Arc<Scheduler>,
    rank: Rank,
    registry: Registry,
    can: Capabilities,
    limits: Limits,
}

impl SimFabric {
    /// Creates the fabric of a rank before the run starts.
    fn new(run: Arc<Scheduler>, rank: Rank, can: Capabilities, limits: Limits) -> Result<SimFabric> {
        let range = run.lock().memory.range(rank).clone();
        Ok(SimFabric { run, rank, registry: Registry::new(range)?, can, limits })
    }

    /// Starts an operation and reports its end to the issuer by the token.
    fn post(&self, accept: Accept<'_>, task: Task) -> Result<Accepted, Refused> {
        let me = self.run.check_thread()?;
        self.run.enter(self.rank, CallKind::Post).admit(self.rank, &task)?;
        let token = accept(); // takes a lock of the engine; this thread still has the turn
        let mut state = self.run.lock();
        state.start_operation(self.rank, Some(token), task);
        state.actors[me].retries = 0;
        state.wake_operation_waiters(me);
        Ok(Accepted::Started)
    }

    /// Starts an operation whose end is not reported.
    fn post_unreported(&self, task: Task) -> Result<(), Refused> {
        let me = self.run.check_thread()?;
        let mut state = self.run.enter(self.rank, CallKind::Post);
        state.admit(self.rank, &task)?;
        state.start_operation(self.rank, None, task);
        state.actors[me].retries = 0;
        Ok(())
    }

    /// Makes a call for a group of the fabric's collectives.
    fn group_call(&self, act: impl FnOnce(&mut SimState) -> Result<(), Refused>) -> Result<(), Refused> {
        let me = self.run.check_thread()?;
        let mut state = self.run.enter(self.rank, CallKind::Post);
        act(&mut state)?;
        state.actors[me].retries = 0;
        Ok(())
    }

    /// Copies between job memories that this rank has mapped; `None` if one of them is not mapped.
    fn copy_mapped(
        &self,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
    ) -> Option<Result<Accepted, Refused>> {
        let state = self.run.enter(self.rank, CallKind::Post);
        if let Some(cause) = state.refusal_cause(self.rank) {
            return Some(Err(cause.into()));
        }
        let probe = |state: &SimState| [from, to].into_iter().try_for_each(|end| state.probe(end, len));
        if let Err(refused) = probe(&state) {
            return Some(Err(refused));
        }
        state.memory.mapped(from, len)?;
        state.memory.mapped(to, len)?;
        let takes = state.transfer_ns(len);
        drop(state);
        // The time passes first. The copy is made in one piece at its end, if both ranges are still registered.
        let state = self.run.enter(self.rank, CallKind::Compute(takes));
        let copied = probe(&state).and_then(|()| Ok(state.memory.copy(from, to, len)?));
        Some(copied.map(|()| Accepted::Done(0)))
    }
}

impl Drop for SimFabric {
    fn drop(&mut self) {
        self.run.lock().abandon_operations(self.rank, None);
    }
}

impl Fabric for SimFabric {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn capabilities(&self) -> Capabilities {
        self.can
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn connect(&self, peer: Rank) -> Result<ConnectionState, Cause> {
        self.run.enter(self.rank, CallKind::Lookup).connection(self.rank, peer)
    }

    fn check(&self, at: GlobalAddress, len: u64) -> Result<(), Cause> {
        match self.run.enter(self.rank, CallKind::Post).probe(at, len) {
            Err(Refused::Never(cause)) => Err(*cause),
            _ => Ok(()),
        }
    }

    unsafe fn put(
        &self,
        accept: Accept<'_>,
        to: GlobalAddress,
        from: *const u8,
        len: u64,
    ) -> Result<Accepted, Refused> {
        if len == 0 {
            return Ok(Accepted::Done(0));
        }
        let from = End::Here(Local(from.cast_mut()));
        self.post(accept, Task::Move { from, to: End::There(to), len, then: None })
    }

    unsafe fn get(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: *mut u8,
        len: u64,
    ) -> Result<Accepted, Refused> {
        if len == 0 {
            return Ok(Accepted::Done(0));
        }
        self.post(accept, Task::Move { from: End::There(from), to: End::Here(Local(to)), len, then: None })
    }

    fn copy(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
    ) -> Result<Accepted, Refused> {
        if len == 0 {
            return Ok(Accepted::Done(0));
        }
        if self.can.map
            && let Some(copied) = self.copy_mapped(from, to, len)
        {
            return copied;
        }
        if !self.can.third_party {
            return Err(Refused::Relay);
        }
        self.post(accept, Task::Move { from: End::There(from), to: End::There(to), len, then: None })
    }

    fn atomic(&self, accept: Accept<'_>, at: GlobalAddress, atomic: &Atomic) -> Result<Accepted, Refused> {
        self.post(accept, Task::Atomic { at, atomic: *atomic })
    }

    unsafe fn put_signal(
        &self,
        accept: Accept<'_>,
        to: GlobalAddress,
        from: *const u8,
        len: u64,
        signal: GlobalAddress,
        amount: u64,
    ) -> Result<Accepted, Refused> {
        if len == 0 {
            return self.raise(accept, signal, amount);
        }
        let from = End::Here(Local(from.cast_mut()));
        let then = Some((signal, amount));
        self.post(accept, Task::Move { from, to: End::There(to), len, then })
    }

    fn raise(&self, accept: Accept<'_>, signal: GlobalAddress, amount: u64) -> Result<Accepted, Refused> {
        self.post(accept, Task::Raise { signal, amount })
    }

    fn poison(&self, accept: Accept<'_>, signal: GlobalAddress, poison: Poison) -> Result<Accepted, Refused> {
        self.post(accept, Task::Poison { signal, poison })
    }

    fn flush(&self, accept: Accept<'_>, peer: Rank) -> Result<Accepted, Refused> {
        self.post(accept, Task::Flush { peer })
    }

    fn line(&self, signal: GlobalAddress) -> Result<SignalLine<'_>, Cause> {
        self.run.enter(self.rank, CallKind::Lookup).memory.signal(signal)?;
        Ok(SignalLine::Via(FabricLine { fabric: self, signal }))
    }

    fn write_line(&self, signal: GlobalAddress, payload: LinePayload, value: u64) -> Result<(), Refused> {
        self.post_unreported(Task::SignalLine { signal, payload, value })
    }

    fn own_signal(&self, index: u32) -> Result<SignalCell, Cause> {
        let signal = network::memory::signal_address(self.rank, index);
        self.run.enter(self.rank, CallKind::Lookup).memory.signal(signal)?;
        Ok(SignalCell::Via(signal))
    }

    fn read_signal(&self, signal: GlobalAddress) -> u64 {
        use tasuki_core::base::sync::Ordering;
        let state = self.run.enter(self.rank, CallKind::Read);
        state.memory.signal(signal).map_or(0, |cell| cell.counter().load(Ordering::Acquire)) // SYNC signal-raise
    }

    fn read_line(&self, signal: GlobalAddress, value: u64) -> Option<LinePayload> {
        self.run.enter(self.rank, CallKind::Read).memory.signal(signal).ok()?.payload(value, PAYLOAD_WORDS)
    }

    fn slots(&self, at: GlobalAddress, lines: u64) -> Result<Option<DirectSlots>, Cause> {
        let state = self.run.enter(self.rank, CallKind::Lookup);
        state.memory.slots(at, lines, &state.node_state).map(|_| None)
    }

    fn write_slot(&self, line: GlobalAddress, write: &SlotWrite<'_>) -> Result<(), Refused> {
        let mut payload = [0; SLOT_PAYLOAD];
        payload[..write.payload.len()].copy_from_slice(write.payload);
        let (word, value, used) = (write.word, write.value, write.payload.len());
        self.post_unreported(Task::Slot { line, word, value, payload, used })
    }

    fn read_slot(&self, line: GlobalAddress, word: usize) -> u64 {
        let state = self.run.enter(self.rank, CallKind::Read);
        state.memory.slots(line, 1, &state.node_state).map_or(0, |slot| slot.read_word(word))
    }

    fn write_command(&self, write: &CommandWrite) -> Result<(), Refused> {
        self.post_unreported(Task::Command(*write))
    }

    fn open_group(&self, group: &FabricGroup<'_>) -> Result<(), Cause> {
        self.run.enter(self.rank, CallKind::Lookup).open_group(self.rank, group)
    }

    fn enter_barrier(&self, group: u64) -> Result<(), Refused> {
        self.group_call(|state| state.enter_barrier(self.rank, group))
    }

    fn multicast(&self, group: u64, len: u64) -> Result<(), Refused> {
        self.group_call(|state| state.multicast(self.rank, group, len))
    }

    fn close_group(&self, group: u64) {
        self.run.lock().close_group(self.rank, group); // not a scheduling point: a thread outside the run may drop a group
    }

    fn poll(&self, sink: &mut Sink<'_>) {
        let mut state = self.run.enter(self.rank, CallKind::Poll);
        let me = state.running;
        let event_count = state.event_count(self.rank);
        state.actors[me].seen = event_count;
        let ended = std::mem::take(&mut state.rank_mut(self.rank).completions);
        if !ended.is_empty() {
            state.wake_operation_waiters(me);
        }
        drop(state);
        ended.into_iter().for_each(|(token, outcome)| sink(token, outcome));
    }

    fn has_work(&self) -> bool {
        let state = self.run.enter(self.rank, CallKind::Read);
        let state = state.rank(self.rank);
        !state.completions.is_empty() || !state.inbox.is_empty()
    }

    fn is_quiescent(&self) -> bool {
        self.run.enter(self.rank, CallKind::Read).rank(self.rank).in_flight_count == 0
    }

    fn system(&self, rank: Rank) -> Option<NonNull<u8>> {
        if rank == self.rank { self.registry.range().system().ok() } else { None }
    }

    fn map(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        let state = self.run.enter(self.rank, CallKind::Lookup);
        if self.can.map { state.memory.mapped(at, len) } else { None }
    }

    fn fail_all(&self, cause: &Cause) {
        let mut state = self.run.enter(self.rank, CallKind::Post);
        state.rank_mut(self.rank).over.get_or_insert_with(|| cause.clone());
        state.abandon_operations(self.rank, Some(cause));
    }

    fn is_cut_off(&self) -> Option<Cause> {
        self.run.lock().killed(self.rank) // costs no time: every wait calls it
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn peer_bytes(&self) -> u64 {
        0 // the simulator holds the state of peers, not the rank
    }
}
