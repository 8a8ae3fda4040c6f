//! Fabrics: the layer that moves bytes between the memories of ranks.
#![allow(unsafe_code)]
//! Unsafe: only declared here, as calls whose safety their callers guarantee.
//!
//! # What a fabric guarantees
//! - Put with signal: the fabric raises the signal at the target after the bytes are visible there.
//! - `flush(peer)` completes after every operation accepted before it for that peer is visible there.
//! - Each operation ends exactly once. Either the call returns [`Accepted::Done`]; or the fabric draws a token from
//!   `accept`, once, before it returns [`Accepted::Started`], and later calls the completion sink once with that token
//!   and the result or the error. This also holds after [`Fabric::fail_all`].
//! - The fabric checks bounds and liveness of every address: an access that begins after a registration has ended
//!   fails and touches nothing.
//!
//! # What it does not guarantee
//! - load and store of a peer's memory (see [`Fabric::map`]);
//! - order between operations, even to one peer;
//! - visibility at the target on local completion;
//! - ascending order of bytes, or the last byte last;
//! - that a put writes a word other than a signal in one piece;
//! - that the fabric's atomics are atomic with respect to the processor's, unless [`Capabilities::cpu_atomics`] is
//!   set;
//! - progress at a target that makes no call;
//! - acceptance: [`Refused::Again`] is ordinary, and may be the only result that a dead peer ever gives;
//! - cancelling;
//! - any length beyond [`Limits`];
//! - that the issuer may be a third rank, unless [`Capabilities::third_party`] is set;
//! - that a peer can be reached before [`Fabric::connect`] returns `Ready`;
//! - a barrier or multicast of its own, unless [`Capabilities::barrier`] and [`Capabilities::multicast_bytes_max`]
//!   say so.
//!
//! Fabrics never wait and never call the engine: the engine polls them. The bootstrap reports the death of a peer.

mod fabric_collectives;
mod operation;
mod poison;
mod signal;
mod signal_control;
pub mod signal_line;
mod slot_lines;

pub use fabric_collectives::{FabricGroup, FabricGroupMember};
pub use operation::{Accept, Accepted, Atomic, AtomicKind, CommandWrite, Refused, Token, Width};
pub use poison::Poison;
pub use signal::{DirectCell, DirectLine, FabricLine, LinePayload, SignalCell, SignalLine};
pub use signal_control::{BOUND, NOBODY, SEVERAL, SignalControl, certainly_reached, reached};
pub use slot_lines::{DirectSlots, SLOT_PAYLOAD, SlotLine, SlotWord, SlotWrite, Slots};

use crate::base::{Cause, Rank};
use crate::segment::{GlobalAddress, Registry};
use std::fmt::Debug;
use std::ptr::NonNull;

/// What a fabric can do on this system, confirmed by a probe when it was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// This process can load and store peers' job memory.
    pub map: bool,
    /// A rank can copy between two other ranks.
    pub third_party: bool,
    /// Puts carry a signal. Otherwise the fabric emulates the signal at the target, which must then make calls.
    pub native_put_signal: bool,
    /// The fabric's atomics and the processor's atomics on a word are atomic with respect to each other.
    pub cpu_atomics: bool,
    /// When an operation has ended, its bytes are visible at the target. Otherwise only the local buffer is free
    /// then, and [`Fabric::flush`] makes the bytes visible.
    pub remote_completion: bool,
    /// Size in bytes from which a receive into memory that its owner has not allocated from the job is registered and
    /// written by the sender directly. Shorter messages pass through mapped memory. 0 where no memory can be mapped.
    pub direct_from: u64,
    /// Groups of ranks have a barrier ([`Fabric::enter_barrier`]). This field and the next are equal on all ranks of
    /// a job, which try to open a group only if they are set. Opening a group can still fail
    /// ([`Fabric::open_group`]).
    pub barrier: bool,
    /// Largest multicast from one member of a group to all others, in bytes ([`Fabric::multicast`]); 0: no multicast.
    pub multicast_bytes_max: u64,
}

/// Limits of a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest size of one operation, in bytes.
    pub transfer_bytes_max: u64,
    /// Largest number of operations in flight.
    pub outstanding_max: usize,
}

/// State of the connection to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// Operations can be accepted.
    Ready,
    /// Not established yet: poll and call `connect` again.
    Pending,
}

/// Receives completions: the token of the operation, and the value it fetched (0 if none) or why it failed.
pub type Sink<'s> = dyn FnMut(Token, Result<u64, Cause>) + 's;

/// Checks that a signal and its data belong to one rank, which every fabric requires.
pub fn check_same_rank(data: GlobalAddress, signal: GlobalAddress) -> Result<(), Cause> {
    if data.rank() == signal.rank() {
        return Ok(());
    }
    let text = format!("data for rank {} and a signal of rank {}", data.rank(), signal.rank());
    Err(Cause::Argument(format!("{text}: both must be the same rank's")))
}

/// A fabric, as one rank of a job uses it. Any thread of the rank may make any call.
///
/// Every operation ends at once (`Done`), or is accepted (`Started`) and ends later through [`Fabric::poll`], or is
/// refused and has no effect. `len` may be 0; then the addresses are not checked.
pub trait Fabric: Send + Sync + Debug {
    /// The fabric's name: `shm`, `sim`, ...
    fn name(&self) -> &'static str;

    /// Returns what the fabric can do.
    fn capabilities(&self) -> Capabilities;

    /// Returns the fabric's limits.
    fn limits(&self) -> Limits;

    /// Begins to connect to `peer`, or returns the state of the connection. Operations may be posted before it is
    /// `Ready`; until then they are refused with `Again`.
    fn connect(&self, peer: Rank) -> Result<ConnectionState, Cause>;

    /// Checks an access of `len` bytes, as far as this rank can. The engine calls it before the first part of a
    /// transfer that it splits, so that a transfer that ends out of bounds moves nothing.
    fn check(&self, at: GlobalAddress, len: u64) -> Result<(), Cause>;

    /// Copies `len` bytes at `from` in this process to `to`.
    ///
    /// # Safety
    /// `from .. from + len` stays readable, and this process does not write it, until the operation has ended.
    unsafe fn put(
        &self,
        accept: Accept<'_>,
        to: GlobalAddress,
        from: *const u8,
        len: u64,
    ) -> Result<Accepted, Refused>;

    /// Copies `len` bytes at `from` to `to` in this process.
    ///
    /// # Safety
    /// `to .. to + len` stays writable, and this process does not access it, until the operation has ended.
    unsafe fn get(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: *mut u8,
        len: u64,
    ) -> Result<Accepted, Refused>;

    /// Copies `len` bytes from `from` to `to`, on any ranks. A fabric without [`Capabilities::third_party`] may
    /// return [`Refused::Relay`]. Overlapping ranges of one rank are copied as by memmove.
    fn copy(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
    ) -> Result<Accepted, Refused>;

    /// Executes an atomic operation on one word. The old value comes with the completion.
    fn atomic(&self, accept: Accept<'_>, at: GlobalAddress, atomic: &Atomic) -> Result<Accepted, Refused>;

    /// Returns the word at `at`, if this process can access it by loads and locked instructions: it is aligned and
    /// lies in job memory that is mapped here and stays mapped while the fabric lives. `None` is no error: the
    /// operation is then posted as usual, and fails there if it must.
    fn word(&self, _at: GlobalAddress, _width: Width) -> Option<NonNull<u8>> {
        None
    }

    /// Copies like `put`, then raises `signal`, which belongs to the same rank, by `amount`. The result is that of
    /// [`Fabric::raise`].
    ///
    /// # Safety
    /// As for `put`.
    unsafe fn put_signal(
        &self,
        accept: Accept<'_>,
        to: GlobalAddress,
        from: *const u8,
        len: u64,
        signal: GlobalAddress,
        amount: u64,
    ) -> Result<Accepted, Refused>;

    /// Raises `signal` by `amount`. If that is done at once, the result is the queue whose commands wait for the
    /// signal ([`SignalControl::armed_after_raise`]); otherwise the signal's owner checks this.
    fn raise(&self, accept: Accept<'_>, signal: GlobalAddress, amount: u64) -> Result<Accepted, Refused>;

    /// Poisons `signal`, unless it is poisoned already. The result is that of [`Fabric::raise`].
    fn poison(&self, accept: Accept<'_>, signal: GlobalAddress, poison: Poison) -> Result<Accepted, Refused>;

    /// Ends when everything accepted for `peer` before it is visible there.
    fn flush(&self, accept: Accept<'_>, peer: Rank) -> Result<Accepted, Refused>;

    /// Returns the signal line at `signal`, which only this rank writes.
    fn line(&self, signal: GlobalAddress) -> Result<SignalLine<'_>, Cause>;

    /// Writes payload and counter of a line atomically. Called only through [`SignalLine::Via`].
    fn write_line(&self, signal: GlobalAddress, payload: LinePayload, value: u64) -> Result<(), Refused>;

    /// Returns one of this rank's own signals.
    fn own_signal(&self, index: u32) -> Result<SignalCell, Cause>;

    /// Reads the counter of an own signal that this process cannot access directly. Called only through
    /// [`SignalCell::Via`].
    fn read_signal(&self, signal: GlobalAddress) -> u64;

    /// Reads the payload of an own line that this process cannot access directly, if it still is the one of `value`.
    fn read_line(&self, signal: GlobalAddress, value: u64) -> Option<LinePayload>;

    /// Returns the address in this process of job memory that is mapped already, so that the caller can copy by
    /// itself. It is valid while the fabric lives and the memory is not freed. None where the fabric would not
    /// account for such copies.
    fn mapped(&self, _at: GlobalAddress, _len: u64) -> Option<NonNull<u8>> {
        None
    }

    /// Copies `len` bytes between `here` and the address `there` in the process of rank `of`, which has exposed that
    /// memory: to `there` if `_is_into`, else from it. The copy is complete on return. Errors: the fabric does not
    /// support this, the system forbids it, or the rank is gone.
    ///
    /// # Safety
    /// `len` bytes at `here` may be read, or written. The other rank keeps its memory valid during the call. Nobody
    /// else writes the memory that is read, or accesses the memory that is written.
    unsafe fn copy_exposed(
        &self,
        _of: Rank,
        _there: u64,
        _here: *mut u8,
        _len: usize,
        _is_into: bool,
    ) -> Result<(), Cause> {
        Err(Cause::Unsupported("memory of another process is out of this fabric's reach".into()))
    }

    /// Returns the slot lines at `at`, if this process can access them directly. Otherwise each access goes through
    /// the next two calls.
    fn slots(&self, at: GlobalAddress, lines: u64) -> Result<Option<DirectSlots>, Cause>;

    /// Writes into a slot line that only this rank writes. Called only through [`Slots`]. Payload and word arrive
    /// together. Of two writes to one word, the one with the greater value remains, in whichever order they arrive.
    fn write_slot(&self, line: GlobalAddress, write: &SlotWrite<'_>) -> Result<(), Refused>;

    /// Reads word 0 to 7 of one of this rank's own slot lines. Called only through [`Slots`].
    fn read_slot(&self, line: GlobalAddress, word: usize) -> u64;

    /// Writes a command into a ring, at positions that were reserved for it. Each line arrives whole, the first line
    /// last. The ring's owner is notified.
    fn write_command(&self, write: &CommandWrite) -> Result<(), Refused>;

    /// Opens this rank's part of a group. Each member calls it; no member may use the group before it knows that all
    /// have opened it. The buffers stay registered until the group is closed. Errors: no resources for another group,
    /// or the members cannot form one.
    fn open_group(&self, _group: &FabricGroup<'_>) -> Result<(), Cause> {
        Err(Cause::Unsupported(format!("groups of ranks on fabric {}", self.name())))
    }

    /// Enters the next barrier of a group. When all members have entered it, the fabric raises each member's
    /// `barrier_signal` by 1.
    ///
    /// A member may enter the next barrier only after its signal has reported the previous one. A barrier carries no
    /// data and flushes nothing: what a member sent before is visible to all members after it only if it [was
    /// quiescent](Fabric::is_quiescent) when it entered. Not guaranteed: that anybody learns of a member that never
    /// enters; that the barrier has ended for every member before another member, which it ended for, leaves the job.
    /// Refused like an operation.
    fn enter_barrier(&self, _group: u64) -> Result<(), Refused> {
        Err(Refused::Never(Box::new(Cause::Unsupported(format!("barriers on fabric {}", self.name())))))
    }

    /// Sends the first `len` bytes of this member's buffer to the buffer of each other member, and raises that
    /// member's `multicast_signal` by 1 after they are visible. `len` is at least 1.
    ///
    /// The fabric may read the buffer until the bytes have arrived everywhere. The sender learns of this only by a
    /// later barrier or by [`Fabric::is_quiescent`]. Multicasts are not ordered, not even those of one member: a
    /// sender must know that all members have consumed the previous one. Refused like an operation.
    fn multicast(&self, _group: u64, _len: u64) -> Result<(), Refused> {
        Err(Refused::Never(Box::new(Cause::Unsupported(format!("multicasts on fabric {}", self.name())))))
    }

    /// Closes this rank's part of a group: the group no longer touches its signals and its buffer. Other members'
    /// later barriers never complete.
    fn close_group(&self, _group: u64) {}

    /// Processes completions and requests from peers. One thread at a time does this; calls from other threads return
    /// at once.
    fn poll(&self, sink: &mut Sink<'_>);

    /// Returns true if `poll` would find something to do. Called before a thread sleeps.
    fn has_work(&self) -> bool;

    /// Returns true if everything that this rank sent has arrived, including lines and operations that ended before
    /// they were visible. A rank leaves only then; otherwise a peer that waits for its data could learn instead that
    /// it left.
    fn is_quiescent(&self) -> bool {
        true
    }

    /// Returns the first byte of a rank's system piece, if loads and stores reach it. Always so for this rank's own.
    fn system(&self, rank: Rank) -> Option<NonNull<u8>>;

    /// Returns the address in this process of `len` bytes of job memory at `at`, if loads and stores reach all of
    /// them. Maps them if needed.
    fn map(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>>;

    /// Does what [`Fabric::map`] does for closed memory, which only its owner and the peer that it serves may ask for.
    fn map_closed(&self, _at: GlobalAddress, _len: u64) -> Option<NonNull<u8>> {
        None
    }

    /// Fails every accepted operation because a rank has died. Later operations are refused.
    fn fail_all(&self, cause: &Cause);

    /// Returns why this rank itself is dead, if it can learn of that: a simulated rank that was killed and unwinds.
    /// Everything it had accepted ends by itself and later operations are refused, so it need not wait for anything.
    fn is_cut_off(&self) -> Option<Cause> {
        None
    }

    /// Returns this rank's own memory range and its registrations.
    fn registry(&self) -> &Registry;

    /// Returns the bytes of private memory that the fabric holds for peers, for `job.memory()`.
    fn peer_bytes(&self) -> u64;
}
