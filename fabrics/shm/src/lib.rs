//! The fabric inside a node: every rank maps the memory of every other rank, so the issuer's own processor completes
//! most operations before the call returns.
//!
//! Ranks may be processes or threads of one process; the code is the same. Registered program memory of a peer is
//! copied by `process_vm_readv` and `process_vm_writev` where the kernel permits that ([`processes`]), otherwise by a
//! request to its owner ([`owner_requests`]).
#![warn(clippy::print_stdout)]
#![allow(unsafe_code)]
//! Unsafe: copies between buffers that callers keep valid and places that [`peer_memory`] has found
//! to be mapped; see each.

mod owner_requests;
mod peer_memory;
mod piece_cache;
mod processes;
mod transfer;

use owner_requests::Requests;
use peer_memory::Peers;
use processes::Processes;
use std::ptr::NonNull;
use std::sync::Arc;
use tasuki_core::base::sync::{Ordering, fence};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::bootstrap::Membership;
use tasuki_core::fabric::signal_line::PAYLOAD_WORDS;
use tasuki_core::fabric::{
    Accept, Accepted, Atomic, Capabilities, CommandWrite, ConnectionState, DirectCell, DirectSlots, Fabric,
    FabricLine, Limits, LinePayload, Poison, Refused, SignalCell, SignalLine, Sink, SlotWrite, Width,
};
use tasuki_core::node::node_state::NodeState;
use tasuki_core::node::park::WakeMode;
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::process_vm::Direction;
use tasuki_core::segment::{GlobalAddress, Registry};

/// Options of the fabric. Tests use them to run the paths for systems with fewer facilities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Facilities of the system that are treated as refused.
    pub disabled: DisabledFeatures,
    /// Never use process_vm: accesses to registered program memory of a peer become requests to that peer.
    pub request_owner: bool,
    /// Give out signals and lines as pointers; otherwise each access goes through the fabric.
    pub direct_signals: bool,
    /// The least bytes of a receive in a program's own memory that its sender writes directly.
    pub direct_from: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            disabled: DisabledFeatures::default(),
            request_owner: false,
            direct_signals: true,
            direct_from: u64::MAX,
        }
    }
}

/// The access of one rank to the memory of all ranks of its node.
#[derive(Debug)]
pub struct ShmFabric {
    rank: Rank,
    node_state: Arc<NodeState>,
    mode: WakeMode,
    peers: Peers,
    registry: Registry,
    requests: Requests,
    options: Options,
    processes: Processes,
}

impl ShmFabric {
    /// Creates the fabric of the rank that `membership` describes.
    pub fn new(membership: &Membership, options: Options) -> Result<ShmFabric> {
        let peers = Peers::new(&membership.files);
        let registry = Registry::new(peers.range(membership.rank).clone())?;
        Ok(ShmFabric {
            rank: membership.rank,
            node_state: membership.node_state.clone(),
            mode: membership.node_state.wake_mode(),
            requests: Requests::new(peers.range(membership.rank).system()?),
            peers,
            registry,
            options,
            processes: Processes::join(&membership.node_state, membership.rank, options)?,
        })
    }

    /// Wakes the helper of a rank that has just got a request.
    fn wake_helper(&self, rank: Rank) {
        self.node_state.rank_state(rank).notify_helper(self.mode);
    }

    /// Raises a signal. Returns which queues of the owner have commands that wait for it, as `armed_after_raise`
    /// encodes them.
    #[inline(always)]
    fn add(&self, word: DirectCell, owner: Rank, amount: u64) -> u64 {
        word.counter().fetch_add(amount, Ordering::SeqCst); // SYNC signal-raise
        self.wake(owner);
        u64::from(word.control().armed_after_raise())
    }

    /// Wakes the owner of a signal that was just raised by a read-modify-write.
    #[inline]
    fn wake(&self, owner: Rank) {
        let rank_state = self.node_state.rank_state(owner);
        if rank_state.park().needs_wake_after_add(self.mode) {
            rank_state.wake_futex();
        }
    }
}

impl Fabric for ShmFabric {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            map: true,
            third_party: true,
            native_put_signal: true,
            cpu_atomics: true,
            remote_completion: true,
            direct_from: self.options.direct_from,
            barrier: false,
            multicast_bytes_max: 0,
        }
    }

    fn limits(&self) -> Limits {
        Limits { transfer_bytes_max: u64::MAX, outstanding_max: owner_requests::SLOTS }
    }

    fn connect(&self, peer: Rank) -> Result<ConnectionState, Cause> {
        self.peers.check(peer).map(|()| ConnectionState::Ready)
    }

    fn check(&self, at: GlobalAddress, len: u64) -> Result<(), Cause> {
        self.peers.resolve(at, len).map(drop)
    }

    unsafe fn put(
        &self,
        accept: Accept<'_>,
        to: GlobalAddress,
        from: *const u8,
        len: u64,
    ) -> Result<Accepted, Refused> {
        // SAFETY: `put_bytes` needs what this function's caller promises: `from .. from + len` stays readable.
        unsafe { self.put_bytes(accept, to, from, len) }
    }

    unsafe fn get(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: *mut u8,
        len: u64,
    ) -> Result<Accepted, Refused> {
        // SAFETY: `get_bytes` needs what this function's caller promises: `to .. to + len` stays writable.
        unsafe { self.get_bytes(accept, from, to, len) }
    }

    fn copy(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
    ) -> Result<Accepted, Refused> {
        self.copy_bytes(accept, from, to, len)
    }

    fn atomic(&self, accept: Accept<'_>, at: GlobalAddress, atomic: &Atomic) -> Result<Accepted, Refused> {
        self.change_word(accept, at, atomic)
    }

    fn word(&self, at: GlobalAddress, width: Width) -> Option<NonNull<u8>> {
        self.peers.word(at, width)
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
        if let Some((place, word)) = self.peers.mapped_with_signal(to, len, signal) {
            // SAFETY: the caller keeps `from` readable; `mapped_with_signal` has just found `len` mapped bytes at
            // `place`.
            unsafe { transfer::copy_and_fence(from, place.as_ptr(), len) };
            return Ok(Accepted::Done(self.add(word, signal.rank(), amount)));
        }
        // SAFETY: the caller keeps `from .. from + len` readable until the operation has ended.
        unsafe { self.put_signal_anywhere(accept, to, from, len, signal, amount) }
    }

    fn raise(&self, _: Accept<'_>, signal: GlobalAddress, amount: u64) -> Result<Accepted, Refused> {
        Ok(Accepted::Done(self.add(self.peers.signal(signal)?, signal.rank(), amount)))
    }

    fn poison(&self, _: Accept<'_>, signal: GlobalAddress, poison: Poison) -> Result<Accepted, Refused> {
        let word = self.peers.signal(signal)?;
        word.poison(poison);
        self.wake(signal.rank());
        Ok(Accepted::Done(u64::from(word.control().armed_after_raise())))
    }

    fn flush(&self, _: Accept<'_>, peer: Rank) -> Result<Accepted, Refused> {
        // Every operation of this fabric ends only when its bytes are visible.
        self.peers.check(peer)?;
        Ok(Accepted::Done(0))
    }

    fn line(&self, signal: GlobalAddress) -> Result<SignalLine<'_>, Cause> {
        if !self.options.direct_signals {
            self.peers.find_signal(signal)?;
            return Ok(SignalLine::Via(FabricLine { fabric: self, signal }));
        }
        self.direct_line(signal).map(SignalLine::Direct)
    }

    fn write_line(&self, signal: GlobalAddress, payload: LinePayload, value: u64) -> Result<(), Refused> {
        self.direct_line(signal)?.write(payload, value);
        Ok(())
    }

    fn own_signal(&self, index: u32) -> Result<SignalCell, Cause> {
        let signal = peer_memory::signal_address(self.rank, index);
        let cell = self.peers.find_signal(signal)?;
        Ok(if self.options.direct_signals { SignalCell::Direct(cell) } else { SignalCell::Via(signal) })
    }

    fn read_signal(&self, signal: GlobalAddress) -> u64 {
        self.peers.find_signal(signal).map_or(0, |cell| cell.counter().load(Ordering::Acquire)) // SYNC signal-raise
    }

    fn read_line(&self, signal: GlobalAddress, value: u64) -> Option<LinePayload> {
        self.peers.find_signal(signal).ok()?.payload(value, PAYLOAD_WORDS)
    }

    fn mapped(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        if self.options.direct_signals { self.peers.mapped(at, len) } else { None }
    }

    unsafe fn copy_exposed(
        &self,
        of: Rank,
        there: u64,
        here: *mut u8,
        len: usize,
        is_into: bool,
    ) -> Result<(), Cause> {
        // SAFETY: the caller keeps `len` bytes at `here` valid for the direction, and accesses them in no other way
        // during the call; `is_into` decides the direction here, too.
        unsafe {
            self.copy_by_kernel(
                of,
                there,
                here,
                len,
                if is_into { Direction::Write } else { Direction::Read },
            )
        }
    }

    fn slots(&self, at: GlobalAddress, lines: u64) -> Result<Option<DirectSlots>, Cause> {
        if self.options.direct_signals {
            self.peers.slots(at, lines, &self.node_state).map(Some)
        } else {
            Ok(None)
        }
    }

    fn write_slot(&self, line: GlobalAddress, write: &SlotWrite<'_>) -> Result<(), Refused> {
        self.peers.slots(line, 1, &self.node_state)?.write_first(write);
        Ok(())
    }

    fn read_slot(&self, line: GlobalAddress, word: usize) -> u64 {
        self.peers.slots(line, 1, &self.node_state).map_or(0, |slot| slot.read_word(word))
    }

    fn write_command(&self, write: &CommandWrite) -> Result<(), Refused> {
        self.peers.write_command(write)?;
        fence(Ordering::SeqCst); // as for a raised signal: the park line is read after the command was written
        self.wake(write.places[0].rank());
        self.wake_helper(write.places[0].rank());
        Ok(())
    }

    fn poll(&self, sink: &mut Sink<'_>) {
        self.handle_requests();
        self.collect(sink);
    }

    fn has_work(&self) -> bool {
        self.requests.has_work(&self.node_state)
    }

    fn system(&self, rank: Rank) -> Option<NonNull<u8>> {
        if !self.options.direct_signals && rank != self.rank {
            return None;
        }
        self.peers.system(rank)
    }

    fn map(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        match self.peers.resolve(at, len).ok()? {
            peer_memory::Target::Mapped(place) => Some(place),
            peer_memory::Target::Program { .. } => None,
        }
    }

    fn map_closed(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        self.peers.map_closed(at, len)
    }

    fn fail_all(&self, cause: &Cause) {
        self.requests.fail_all(cause);
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn peer_bytes(&self) -> u64 {
        self.peers.bytes()
    }
}
