//! What carries bytes between the memories of ranks.
#![allow(unsafe_code)]
//! Unsafe: only declared here, as calls whose safety their callers promise.
//!
//! # What a fabric promises
//! - put with signal: the signal is raised at the target after the bytes are visible there;
//! - `flush(peer)`: completes after everything accepted before it for that peer is visible there;
//! - each operation ends exactly once: by [`Posted::Done`] at once; or it draws a token from `accept`, once, before
//!   it answers [`Posted::Started`], and ends by one call of the completion sink with that token, with its error
//!   if it failed. After [`Fabric::fail_all`] too;
//! - bounds and liveness of every address are checked: an access that begins after the end of a registration
//!   happened fails and touches nothing.
//!
//! # What it does not promise
//! Load and store of a peer's memory (ask [`Fabric::map`]); order between operations, even to one peer; visibility
//! at local completion; ascending order of bytes, or the last byte last; a word other than a signal in one piece,
//! if it was put; that a fabric's atomics are atomic against the processor's, unless [`Capabilities::cpu_atomics`]
//! says so; progress at a target that makes no call; acceptance ([`Refused::Again`] is ordinary, and may be the
//! only answer that a dead peer ever gives) or cancelling; any length beyond [`Limits`]; a third party as issuer,
//! unless [`Capabilities::third_party`]; that a peer can be reached before [`Fabric::connect`] says so; a barrier or
//! multicast of its own, unless [`Capabilities::barrier`] and [`Capabilities::multicast_bytes_max`].
//!
//! Fabrics never wait and never call the engine: they are polled. Death of a peer comes from the bootstrap.

mod fabric_collectives;
mod operation;
mod poison;
mod signal;
mod signal_control;
pub mod signal_line;
mod slot_lines;

pub use fabric_collectives::{FabricGroup, FabricGroupMember};
pub use operation::{Accept, Atomic, AtomicKind, CommandWrite, Posted, Refused, Token, Width};
pub use poison::Poison;
pub use signal::{DirectCell, DirectLine, FabricLine, LinePayload, SignalCell, SignalLine};
pub use signal_control::{BOUND, NOBODY, SEVERAL, SignalControl, plainly_reached, reached};
pub use slot_lines::{DirectSlots, SLOT_PAYLOAD, SlotLine, SlotWord, SlotWrite, Slots};

use crate::base::{Cause, Rank};
use crate::segment::{GlobalAddress, Registry};
use std::fmt::Debug;
use std::ptr::NonNull;

/// What a fabric can do here and now, confirmed by a probe when it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Peers' job memory can be loaded and stored.
    pub map: bool,
    /// An issuer may copy between two other ranks.
    pub third_party: bool,
    /// Puts carry a signal; otherwise the fabric emulates it at the target, which must then make calls.
    pub native_put_signal: bool,
    /// The fabric's atomics and the processor's agree about a word.
    pub cpu_atomics: bool,
    /// When an operation has ended its bytes are visible at the target. Otherwise only the local buffer is free
    /// then, and [`Fabric::flush`] tells of the rest.
    pub remote_completion: bool,
    /// Bytes from which on a receive in memory that its owner merely owns is registered and written by the sender;
    /// shorter ones are staged in mapped memory. 0 where none can be mapped.
    pub direct_from: u64,
    /// Groups of ranks can meet ([`Fabric::meet`]). This and the next are the same on all ranks of a job, which ask
    /// each other only where it is there; whether a group comes about is another matter ([`Fabric::open_group`]).
    pub barrier: bool,
    /// Most bytes that a member of a group can send all others at once ([`Fabric::multicast`]); 0: none.
    pub multicast_bytes_max: u64,
}

/// Sizes that a fabric states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Longest single operation, in bytes.
    pub transfer_bytes_max: u64,
    /// Operations that may be under way at a time.
    pub outstanding_max: usize,
}

/// How far the way to a peer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// Operations will be accepted.
    Ready,
    /// Poll, and ask again.
    Pending,
}

/// Where completions go: the token of the operation, and what it fetched (0 if nothing) or why it failed.
pub type Sink<'s> = dyn FnMut(Token, Result<u64, Cause>) + 's;

/// That a signal and the data it tells of are the same rank's, which every fabric needs.
pub fn check_same_rank(data: GlobalAddress, signal: GlobalAddress) -> Result<(), Cause> {
    if data.rank() == signal.rank() {
        return Ok(());
    }
    let text = format!("data for rank {} and a signal of rank {}", data.rank(), signal.rank());
    Err(Cause::Argument(format!("{text}: both must be the same rank's")))
}

/// One way of carrying bytes, as one rank of a job sees it. All calls may come from any thread of the rank.
///
/// Every operation either ends at once (`Done`), or is accepted (`Started`) and ends later through
/// [`Fabric::poll`], or is refused and has no effect. `len` may be 0, and then addresses are not looked at.
pub trait Fabric: Send + Sync + Debug {
    /// `shm`, `sim`, ...
    fn name(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Its sizes.
    fn limits(&self) -> Limits;

    /// Makes or looks at the way to `peer`. Operations may be posted without it and are then refused with
    /// `Again` until the way is there.
    fn connect(&self, peer: Rank) -> Result<ConnectionState, Cause>;

    /// Looks at an access of `len` bytes, as far as this rank can see. Asked before the first piece of a transfer
    /// that is cut, so that one which ends outside moves nothing.
    fn check(&self, at: GlobalAddress, len: u64) -> Result<(), Cause>;

    /// Copies `len` bytes at `from` in this process to `to`.
    ///
    /// # Safety
    /// `from .. from + len` stays readable, and is not written by this process, until the operation has ended.
    unsafe fn put(
        &self,
        accept: Accept<'_>,
        to: GlobalAddress,
        from: *const u8,
        len: u64,
    ) -> Result<Posted, Refused>;

    /// Copies `len` bytes at `from` to `to` in this process.
    ///
    /// # Safety
    /// `to .. to + len` stays writable, and is not touched by this process, until the operation has ended.
    unsafe fn get(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: *mut u8,
        len: u64,
    ) -> Result<Posted, Refused>;

    /// Copies `len` bytes from `from` to `to`, wherever both are; a fabric without [`Capabilities::third_party`]
    /// answers [`Refused::Relay`]. Overlapping ranges of one rank move as memmove does.
    fn copy(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
    ) -> Result<Posted, Refused>;

    /// Changes one word; what it was arrives with the completion.
    fn atomic(&self, accept: Accept<'_>, at: GlobalAddress, atomic: &Atomic) -> Result<Posted, Refused>;

    /// The word at `at`, if loads and locked instructions on it are all that reading and changing it take: aligned,
    /// in job memory that is mapped here and stays so while the fabric lives. `None` says nothing more: the operation
    /// goes its ordinary way, and fails there if it must.
    fn word(&self, _at: GlobalAddress, _width: Width) -> Option<NonNull<u8>> {
        None
    }

    /// Copies like `put`, then raises `signal`, which belongs to the same rank, by `amount`. Ends as
    /// [`Fabric::raise`] does.
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
    ) -> Result<Posted, Refused>;

    /// Raises `signal` by `amount`. Where that is done at once, the answer is whose commands wait for the signal
    /// ([`SignalControl::look_after_add`]); elsewhere its owner looks itself.
    fn raise(&self, accept: Accept<'_>, signal: GlobalAddress, amount: u64) -> Result<Posted, Refused>;

    /// Poisons `signal`, if it is sound. Ends as [`Fabric::raise`] does.
    fn poison(&self, accept: Accept<'_>, signal: GlobalAddress, poison: Poison) -> Result<Posted, Refused>;

    /// Ends when everything accepted for `peer` before it is visible there.
    fn flush(&self, accept: Accept<'_>, peer: Rank) -> Result<Posted, Refused>;

    /// The signal line at `signal`, of which this rank is the one writer.
    fn line(&self, signal: GlobalAddress) -> Result<SignalLine<'_>, Cause>;

    /// Writes payload and counter of a line in one piece; only through [`SignalLine::Via`].
    fn write_line(&self, signal: GlobalAddress, payload: LinePayload, value: u64) -> Result<(), Refused>;

    /// A signal of this rank's own.
    fn own_signal(&self, index: u32) -> Result<SignalCell, Cause>;

    /// The counter of an own signal that is not in this process's reach; only through [`SignalCell::Via`].
    fn read_signal(&self, signal: GlobalAddress) -> u64;

    /// The payload of an own line that is not in this process's reach, if it still is the one of `value`.
    fn read_line(&self, signal: GlobalAddress, value: u64) -> Option<LinePayload>;

    /// Job memory that this process can copy from and to by itself, if it has it mapped already; valid while the fabric
    /// lives and the memory is not freed. None where such copies would take no part in what the fabric does.
    fn mapped(&self, _at: GlobalAddress, _len: u64) -> Option<NonNull<u8>> {
        None
    }

    /// Copies `len` bytes between `here` and what another rank shows at the address `there` of its process: into it, or
    /// from it. They have been copied when it returns. Errors: the fabric cannot do that, or may not any more; the rank
    /// is gone.
    ///
    /// # Safety
    /// As many bytes at `here` may be read, or written; the other rank keeps its own as long, and lets nobody else
    /// write them, nor read what is written.
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

    /// The slot lines at `at`, if this process can reach them by itself; otherwise each access goes through the two
    /// calls below.
    fn slots(&self, at: GlobalAddress, lines: u64) -> Result<Option<DirectSlots>, Cause>;

    /// Writes into a slot line of which this rank is the one writer; only through [`Slots`]. Payload and word arrive
    /// in one piece. Of two writes of one word, the one with the greater value stays, in whatever order they arrive.
    fn write_slot(&self, line: GlobalAddress, write: &SlotWrite<'_>) -> Result<(), Refused>;

    /// Word 0 to 7 of a slot line of this rank's own; only through [`Slots`].
    fn read_slot(&self, line: GlobalAddress, word: usize) -> u64;

    /// Writes a command into a ring, at places that were reserved for it: lines arrive whole, the first one last. Its
    /// owner is_enabled of it.
    fn write_command(&self, write: &CommandWrite) -> Result<(), Refused>;

    /// Opens this rank's part of a group. Each member does; none may use it before it knows that all have. The places
    /// stay registered until it is closed. Error: there is no room for another group, or it can be none.
    fn open_group(&self, _group: &FabricGroup<'_>) -> Result<(), Cause> {
        Err(Cause::Unsupported(format!("groups of ranks on fabric {}", self.name())))
    }

    /// This member comes to the next meeting of a group. When all have come, each one's signal `met` is raised by 1.
    ///
    /// It comes to one at a time: again only when its signal has told of the last. A meeting carries nothing and pushes
    /// nothing: what a member sent before is visible after it to all, if it [has settled](Fabric::is_quiescent) before
    /// that member came. Not promised: that anybody is told of a member that does not come, or that it has ended for a
    /// member before others who were told have left. Refused like an operation.
    fn meet(&self, _group: u64) -> Result<(), Refused> {
        Err(Refused::Never(Box::new(Cause::Unsupported(format!("meetings on fabric {}", self.name())))))
    }

    /// Sends the first `len` bytes of this member's place to the same place of each other one, and raises the signal
    /// `brought` there by 1 after they are visible. `len` is at least 1.
    ///
    /// The bytes are read until they have arrived, which the sender is told by nothing but a later meeting, or by
    /// [`Fabric::is_quiescent`]. Multicasts are not ordered, neither those of one member: who sends must know that all
    /// have taken what was sent before. Refused like an operation.
    fn multicast(&self, _group: u64, _len: u64) -> Result<(), Refused> {
        Err(Refused::Never(Box::new(Cause::Unsupported(format!("multicasts on fabric {}", self.name())))))
    }

    /// This rank has no more to do with a group: nothing of it touches its signals and its place any more. Other
    /// members' later meetings never end.
    fn close_group(&self, _group: u64) {}

    /// Takes completions and serves what peers ask of this rank. One thread at a time does it; others return.
    fn poll(&self, sink: &mut Sink<'_>);

    /// Whether `poll` would find something. Asked before sleeping.
    fn has_work(&self) -> bool;

    /// Whether all that this rank sent has arrived, lines and what ended before it was visible included. A rank
    /// leaves only then: whoever waits for what it sent would otherwise hear that it left instead.
    fn is_quiescent(&self) -> bool {
        true
    }

    /// The first byte of a rank's system piece, where loads and stores reach it: this rank's own always.
    fn system(&self, rank: Rank) -> Option<NonNull<u8>>;

    /// A peer's job memory in this process, where loads and stores reach it; all `len` bytes.
    fn map(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>>;

    /// Fails everything that was accepted: a rank has died. Later operations are refused.
    fn fail_all(&self, cause: &Cause);

    /// That this rank itself is dead, where it can hear of that: one that is simulated and was killed, and unwinds. All
    /// that it had accepted ends by itself, later operations are refused, and so nothing is waited for.
    fn is_cut_off(&self) -> Option<Cause> {
        None
    }

    /// This rank's own range: what it has registered and where.
    fn registry(&self) -> &Registry;

    /// Bytes of private memory that the fabric holds for peers, for `job.memory()`.
    fn peer_bytes(&self) -> u64;
}
