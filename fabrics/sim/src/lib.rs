//! The simulated fabric: whole programs in virtual time, with every delay, every reordering and every fault drawn
//! from one seed.
//!
//! [`simulate`] runs a function once for each rank, each on a thread of its own, of which only one runs at a time. A
//! rank reaches the others through a [`SimFabric`] and waits on a [`SimHost`]; every call of either is a scheduling
//! point and costs virtual time. The memories of ranks are separate files, and only the simulator copies between
//! them: an operation's source is read piece by piece at random moments, the pieces land in random order, and only
//! then are its signal raised and its end told. The same [`Sim`] and the same program give the same run, event by
//! event, in any process: [`Report::trace_hash`] says so.
//!
//! What to simulate stands in [`Sim`]: each capability of a fabric present or absent, faults of real networks, and
//! *twins*, which break one promise of a fabric on purpose, so that what is built on the promise can be shown to
//! need it.
#![warn(clippy::print_stdout)]
#![allow(unsafe_code)]
//! Unsafe: only declared here, in the trait's signatures: callers promise for their buffers, `transfer` relies on it.

mod actor;
mod admission;
mod agenda;
mod baton;
mod call;
mod completion;
mod costs;
mod draws;
mod flight;
mod groups;
mod host;
mod life;
mod memory;
mod options;
mod order;
mod simulate;
mod stuck;
mod trace;
mod transfer;
mod turn;
mod words;
mod world;

pub use host::SimHost;
pub use options::Sim;
pub use simulate::{Member, Outcome, Report, simulate};
pub use turn::Killed;

use call::Call;
use flight::{End, Task};
use std::ptr::NonNull;
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Local;
use tasuki_core::fabric::words::PAYLOAD_WORDS;
use tasuki_core::fabric::{
    Accept, Atomic, Capabilities, CommandWrite, Connection, DirectSlots, Fabric, Group, Limits, Line,
    LinePayload, Poison, Posted, Refused, SLOT_PAYLOAD, SignalCell, Sink, SlotWrite, ViaLine,
};
use tasuki_core::segment::{GlobalAddress, Registry};
use turn::Run;
use world::World;

/// One simulated rank's way to the memory of all.
#[derive(Debug)]
pub struct SimFabric {
    run: Arc<Run>,
    rank: Rank,
    registry: Registry,
    can: Capabilities,
    limits: Limits,
}

impl SimFabric {
    /// The fabric of a rank of the run, before the run starts.
    fn new(run: Arc<Run>, rank: Rank, can: Capabilities, limits: Limits) -> Result<SimFabric> {
        let window = run.lock().memory.window(rank).clone();
        Ok(SimFabric { run, rank, registry: Registry::new(window)?, can, limits })
    }

    /// Hands an operation over.
    fn post(&self, accept: Accept<'_>, task: Task) -> Result<Posted, Refused> {
        let me = self.run.check_thread()?;
        self.run.enter(self.rank, Call::Post).admit(self.rank, &task)?;
        let token = accept(); // takes a lock of the engine's; it is still this thread's turn
        let mut world = self.run.lock();
        world.launch(self.rank, Some(token), task);
        world.actors[me].breaks = 0;
        world.stir(me);
        Ok(Posted::Started)
    }

    /// Hands something over of whose end nobody is told.
    fn tell(&self, task: Task) -> Result<(), Refused> {
        let me = self.run.check_thread()?;
        let mut world = self.run.enter(self.rank, Call::Post);
        world.admit(self.rank, &task)?;
        world.launch(self.rank, None, task);
        world.actors[me].breaks = 0;
        Ok(())
    }

    /// Does something in a group, if there is room.
    fn of_group(&self, act: impl FnOnce(&mut World) -> Result<(), Refused>) -> Result<(), Refused> {
        let me = self.run.check_thread()?;
        let mut world = self.run.enter(self.rank, Call::Post);
        act(&mut world)?;
        world.actors[me].breaks = 0;
        Ok(())
    }

    /// A copy between job memories that this rank has mapped; `None` where one of them is not.
    fn copy_mapped(
        &self,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
    ) -> Option<Result<Posted, Refused>> {
        let world = self.run.enter(self.rank, Call::Post);
        if let Some(cause) = world.why_over(self.rank) {
            return Some(Err(cause.into()));
        }
        let probe = |world: &World| [from, to].into_iter().try_for_each(|end| world.probe(end, len));
        if let Err(refused) = probe(&world) {
            return Some(Err(refused));
        }
        world.memory.mapped(from, len)?;
        world.memory.mapped(to, len)?;
        let takes = world.transfer_ns(len);
        drop(world);
        // The time passes first: the copy is made in one piece at its end, if the places are still there.
        let world = self.run.enter(self.rank, Call::Compute(takes));
        let copied = probe(&world).and_then(|()| Ok(world.memory.copy(from, to, len)?));
        Some(copied.map(|()| Posted::Done(0)))
    }
}

impl Drop for SimFabric {
    fn drop(&mut self) {
        self.run.lock().sever(self.rank, None);
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

    fn connect(&self, peer: Rank) -> Result<Connection, Cause> {
        self.run.enter(self.rank, Call::Ask).connection(self.rank, peer)
    }

    fn check(&self, at: GlobalAddress, len: u64) -> Result<(), Cause> {
        match self.run.enter(self.rank, Call::Post).probe(at, len) {
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
    ) -> Result<Posted, Refused> {
        if len == 0 {
            return Ok(Posted::Done(0));
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
    ) -> Result<Posted, Refused> {
        if len == 0 {
            return Ok(Posted::Done(0));
        }
        self.post(accept, Task::Move { from: End::There(from), to: End::Here(Local(to)), len, then: None })
    }

    fn copy(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
    ) -> Result<Posted, Refused> {
        if len == 0 {
            return Ok(Posted::Done(0));
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

    fn atomic(&self, accept: Accept<'_>, at: GlobalAddress, atomic: &Atomic) -> Result<Posted, Refused> {
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
    ) -> Result<Posted, Refused> {
        if len == 0 {
            return self.raise(accept, signal, amount);
        }
        let from = End::Here(Local(from.cast_mut()));
        let then = Some((signal, amount));
        self.post(accept, Task::Move { from, to: End::There(to), len, then })
    }

    fn raise(&self, accept: Accept<'_>, signal: GlobalAddress, amount: u64) -> Result<Posted, Refused> {
        self.post(accept, Task::Raise { signal, amount })
    }

    fn poison(&self, accept: Accept<'_>, signal: GlobalAddress, poison: Poison) -> Result<Posted, Refused> {
        self.post(accept, Task::Poison { signal, poison })
    }

    fn flush(&self, accept: Accept<'_>, peer: Rank) -> Result<Posted, Refused> {
        self.post(accept, Task::Flush { peer })
    }

    fn line(&self, signal: GlobalAddress) -> Result<Line<'_>, Cause> {
        self.run.enter(self.rank, Call::Ask).memory.signal(signal)?;
        Ok(Line::Via(ViaLine { fabric: self, signal }))
    }

    fn write_line(&self, signal: GlobalAddress, payload: LinePayload, value: u64) -> Result<(), Refused> {
        self.tell(Task::Line { signal, payload, value })
    }

    fn own_signal(&self, index: u32) -> Result<SignalCell, Cause> {
        let signal = memory::signal_address(self.rank, index);
        self.run.enter(self.rank, Call::Ask).memory.signal(signal)?;
        Ok(SignalCell::Via(signal))
    }

    fn read_signal(&self, signal: GlobalAddress) -> u64 {
        use tasuki_core::base::sync::Ordering;
        let world = self.run.enter(self.rank, Call::Look);
        world.memory.signal(signal).map_or(0, |cell| cell.counter().load(Ordering::Acquire)) // SYNC signal-raise
    }

    fn read_line(&self, signal: GlobalAddress, value: u64) -> Option<LinePayload> {
        self.run.enter(self.rank, Call::Look).memory.signal(signal).ok()?.payload(value, PAYLOAD_WORDS)
    }

    fn slots(&self, at: GlobalAddress, lines: u64) -> Result<Option<DirectSlots>, Cause> {
        let world = self.run.enter(self.rank, Call::Ask);
        world.memory.slots(at, lines, &world.board).map(|_| None)
    }

    fn write_slot(&self, line: GlobalAddress, write: &SlotWrite<'_>) -> Result<(), Refused> {
        let mut payload = [0; SLOT_PAYLOAD];
        payload[..write.payload.len()].copy_from_slice(write.payload);
        let (word, value, used) = (write.word, write.value, write.payload.len());
        self.tell(Task::Slot { line, word, value, payload, used })
    }

    fn read_slot(&self, line: GlobalAddress, word: usize) -> u64 {
        let world = self.run.enter(self.rank, Call::Look);
        world.memory.slots(line, 1, &world.board).map_or(0, |slot| slot.look(word))
    }

    fn write_command(&self, write: &CommandWrite) -> Result<(), Refused> {
        self.tell(Task::Command(*write))
    }

    fn open_group(&self, group: &Group<'_>) -> Result<(), Cause> {
        self.run.enter(self.rank, Call::Ask).open_group(self.rank, group)
    }

    fn meet(&self, group: u64) -> Result<(), Refused> {
        self.of_group(|world| world.meet(self.rank, group))
    }

    fn multicast(&self, group: u64, len: u64) -> Result<(), Refused> {
        self.of_group(|world| world.multicast(self.rank, group, len))
    }

    fn close_group(&self, group: u64) {
        self.run.lock().close_group(self.rank, group); // not a call: who drops something may be no thread of the run
    }

    fn poll(&self, sink: &mut Sink<'_>) {
        let mut world = self.run.enter(self.rank, Call::Poll);
        let me = world.running;
        let news = world.news_of(self.rank);
        world.actors[me].seen = news;
        let ended = std::mem::take(&mut world.rank_mut(self.rank).completions);
        if !ended.is_empty() {
            world.stir(me);
        }
        drop(world);
        ended.into_iter().for_each(|(token, outcome)| sink(token, outcome));
    }

    fn has_work(&self) -> bool {
        let world = self.run.enter(self.rank, Call::Look);
        let state = world.rank(self.rank);
        !state.completions.is_empty() || !state.inbox.is_empty()
    }

    fn is_settled(&self) -> bool {
        self.run.enter(self.rank, Call::Look).rank(self.rank).flying == 0
    }

    fn system(&self, rank: Rank) -> Option<NonNull<u8>> {
        if rank == self.rank { self.registry.window().system().ok() } else { None }
    }

    fn map(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        let world = self.run.enter(self.rank, Call::Ask);
        if self.can.map { world.memory.mapped(at, len) } else { None }
    }

    fn fail_all(&self, cause: &Cause) {
        let mut world = self.run.enter(self.rank, Call::Post);
        world.rank_mut(self.rank).over.get_or_insert_with(|| cause.clone());
        world.sever(self.rank, Some(cause));
    }

    fn cut_off(&self) -> Option<Cause> {
        self.run.lock().killed(self.rank) // costs nothing: it is asked for in every wait
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn peer_bytes(&self) -> u64 {
        0 // the simulator holds what a real fabric would; nothing of it is the rank's
    }
}
