//! State that all ranks of a node and their launcher share: which ranks have joined, sleep, wait
//! for what, or have died.
#![allow(unsafe_code)]
//! Unsafe: references to structures of atomics inside a mapping that exists as long as the node state.
//!
//! It is one memory file of a page and 512 bytes for each rank. The process that starts the job
//! creates it. Every word is atomic. The comment of each field says who writes it.

use super::park::{ParkLine, WakeMode};
use super::shared_copy::SharedCopies;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::{Error, Rank, Result};
use crate::os::mapping::Mapping;
use crate::os::memfile::MemFile;
use crate::segment::layout;
use std::os::fd::OwnedFd;

const MAGIC: u64 = u64::from_le_bytes(*b"tasuki-b");
const HEADER_BYTES: usize = 4096;
const RANK_STATE_BYTES: usize = 512;
/// Value of `helper`: the node's helper was in a rank that has left.
const VACANT: u32 = u32::MAX;
/// The most bytes of a text: how a rank died, or the call that waits. Longer texts are cut.
pub const TEXT_BYTES: usize = 192;

/// The words of the whole node.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    /// Hash of the layout that the creator was compiled with.
    hash: AtomicU64,
    size: AtomicU32,
    /// 0 until it is chosen, then 1 FENCE or 2 MEMBARRIER. Written once, before any rank starts its program.
    wake_mode: AtomicU32,
    /// 0: no rank has had the node's helper; 1 + the rank that has it; or [`VACANT`]. Written by
    /// the rank that takes the helper (CAS) and by the rank that gives it up.
    helper: AtomicU32,
    /// Token bucket of 500 membarriers a second: the time in ns when the next one may run.
    next_barrier: AtomicU64,
    /// 0, or 1 + the rank that died first. Written once, after `death`, by the process that claimed `death`. Every call
    /// of every rank reads it, so it has a cache line of its own.
    over: PaddedWord,
    death: Death,
    /// Copies that several ranks share.
    shared_copies: SharedCopies,
}

/// `claimed` of a death whose reason is only in the node state.
const NOT_PRINTED: u32 = 1;
/// `claimed` of a death whose reason the rank has also printed on its own standard error.
const PRINTED: u32 = 2;

/// How the first rank died. Written by the process that set `claimed` (0 before), read after `over`.
#[repr(C)]
struct Death {
    claimed: AtomicU32,
    when_ns: AtomicU64,
    how: SharedText,
}

/// A word with two cache lines to itself.
#[repr(C, align(128))]
struct PaddedWord(AtomicU32, [u8; 0]);

/// A short text in shared memory, written once or protected by a version.
#[derive(Debug)]
#[repr(C)]
struct SharedText {
    words: [AtomicU64; TEXT_BYTES / 8],
}

impl SharedText {
    fn write(&self, text: &str) {
        let mut end = text.len().min(TEXT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; TEXT_BYTES];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        for (word, chunk) in self.words.iter().zip(bytes.chunks_exact(8)) {
            word.store(u64::from_le_bytes(chunk.try_into().expect("chunks of eight")), Ordering::Relaxed);
        }
    }

    fn read(&self) -> String {
        let bytes: Vec<u8> =
            self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(TEXT_BYTES);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// The stage of a rank between its start and its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum RankStage {
    /// The rank has not joined yet.
    Absent = 0,
    /// The rank has joined and runs its program.
    Joined = 1,
    /// The program of the rank has finished, and the rank completes the work that other ranks still need.
    Leaving = 2,
    /// The rank has left the job without an error.
    Left = 3,
}

/// The words of one rank.
#[derive(Debug)]
#[repr(C, align(512))]
pub struct RankState {
    park: ParkLine,
    /// The park line of the rank's helper. If there is no helper, the line stays AWAKE.
    helper: ParkLine,
    /// [`RankStage`]; written by the rank.
    stage: AtomicU32,
    /// The rank's process id in the namespace of the process that accepted the rank. That process
    /// writes it when the rank joins.
    pid: AtomicU32,
    /// Odd while the record of a wait is written. Written by one thread of the rank at a time.
    version: AtomicU32,
    /// 1 while the rank waits.
    waiting: AtomicU32,
    /// The kernel's id of the thread that waits.
    thread: AtomicU32,
    /// [`EndedBy`] as a word: 0 if that is not known.
    ended_by: AtomicU32,
    /// [`UnderWay`] as bits.
    under_way: AtomicU32,
    /// [`ProcessIdentity::pid`]; 0 until the rank has written the other fields of [`ProcessIdentity`].
    own_pid: AtomicU32,
    /// When the wait began, in ns of the node's clock.
    since_ns: AtomicU64,
    /// The call, with its peer and object: `wait(signal 7 >= 4)`.
    call: SharedText,
    /// 0, or 1 + the rank that has called the handler that this rank runs. Written by the thread that runs it.
    handles_for: AtomicU32,
    /// Fields of [`SendBuffer`]. Written by the rank, by one thread at a time.
    buffered: AtomicU32,
    buffered_to: AtomicU32,
    buffered_slot: AtomicU32,
    buffered_bytes: AtomicU64,
    /// Fields of [`ProcessIdentity`]; written by the rank when it joins, `own_pid` last.
    pid_namespace: AtomicU64,
    cookie_at: AtomicU64,
    cookie: AtomicU64,
}

const _: () = assert!(size_of::<RankState>() == RANK_STATE_BYTES && size_of::<Header>() <= HEADER_BYTES);

/// The identity of a rank's process. Before a peer lets the kernel copy, it checks that the kernel reaches this
/// process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessIdentity {
    /// The process id in the process's own PID namespace. It names the process only there.
    pub pid: u32,
    /// The PID namespace of the process; 0 if it could not find out.
    pub pid_namespace: u64,
    /// The address of the cookie in the process's memory.
    pub cookie_at: u64,
    /// A random number.
    pub cookie: u64,
}

/// The only rank that can end a wait that has no time limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndedBy {
    /// The program of this rank must send or receive a message.
    Message(Rank),
    /// This rank must raise a signal.
    Signal(Rank),
}

/// Operations that a waiting rank has begun and that progress while its program waits. Other ranks may need nothing
/// else from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnderWay {
    /// True if the rank is sending messages.
    pub sends: bool,
    /// True if the rank has command queues, handlers or plans that can raise signals.
    pub signals: bool,
}

/// The messages in the send buffer of a rank: their sends have returned, and their receives have not been posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendBuffer {
    /// How many there are.
    pub messages: u32,
    /// The receiver of the oldest one.
    pub to: Rank,
    /// The slot of the oldest one.
    pub slot: u32,
    /// The bytes of the oldest one.
    pub bytes: u64,
}

impl std::fmt::Display for SendBuffer {
    /// `send buffer: 2 messages, not received; the oldest for rank 1 on slot 4, 8 bytes`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SendBuffer { messages, to, slot, bytes } = *self;
        let s = if messages == 1 { "" } else { "s" };
        let the_oldest = if messages == 1 { "" } else { "the oldest " };
        write!(f, "send buffer: {messages} message{s}, not received; ")?;
        write!(f, "{the_oldest}for rank {to} on slot {slot}, {bytes} bytes")
    }
}

/// A wait as its rank published it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedWait {
    /// The call with peer and object.
    pub call: String,
    /// When the wait began, in ns of the node's clock.
    pub since_ns: u64,
    /// The only rank that can end the wait, if that is known.
    pub ended_by: Option<EndedBy>,
    /// Other operations of the rank, which progress during the wait.
    pub under_way: UnderWay,
    /// The kernel's id of the thread that waits.
    pub thread: u32,
}

impl EndedBy {
    /// Returns the rank that must act.
    pub fn rank(self) -> Rank {
        match self {
            EndedBy::Message(rank) | EndedBy::Signal(rank) => rank,
        }
    }

    fn word(this: Option<EndedBy>) -> u32 {
        this.map_or(0, |by| (by.rank().to_word() + 1) << 1 | u32::from(matches!(by, EndedBy::Signal(_))))
    }

    fn of_word(word: u32) -> Option<EndedBy> {
        let rank = Rank::from_word((word >> 1).checked_sub(1)?);
        Some(if word & 1 == 0 { EndedBy::Message(rank) } else { EndedBy::Signal(rank) })
    }
}

impl UnderWay {
    fn bits(self) -> u32 {
        u32::from(self.sends) | u32::from(self.signals) << 1
    }

    fn of_bits(bits: u32) -> UnderWay {
        UnderWay { sends: bits & 1 != 0, signals: bits & 2 != 0 }
    }
}

/// The first death of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeathRecord {
    /// The rank that died.
    pub rank: Rank,
    /// A text that says how the rank died.
    pub how: String,
    /// True if the rank itself has printed this on its standard error, so that nobody need repeat it to the user.
    pub is_printed: bool,
    /// When the rank died, in ns of the node's clock.
    pub when_ns: u64,
}

/// The mapped state of a node.
#[derive(Debug)]
pub struct NodeState {
    file: MemFile,
    mapping: Mapping,
    size: usize,
}

impl NodeState {
    /// Creates a node state for `size` ranks.
    pub fn create(size: usize) -> Result<NodeState> {
        let node_state = NodeState::map(MemFile::create(c"tasuki-node", NodeState::bytes(size))?, size)?;
        let header = node_state.header();
        header.hash.store(layout::HASH, Ordering::Relaxed);
        header.size.store(size as u32, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(node_state)
    }

    /// Maps the node state whose descriptor another process sent. Error: it is not a node state for
    /// `size` ranks of this version.
    pub fn adopt(fd: OwnedFd, size: usize) -> Result<NodeState> {
        let node_state = NodeState::map(MemFile::adopt(fd, NodeState::bytes(size))?, size)?;
        let header = node_state.header();
        let ours = header.magic.load(Ordering::Acquire) == MAGIC
            && header.hash.load(Ordering::Relaxed) == layout::HASH
            && header.size.load(Ordering::Relaxed) as usize == size;
        if ours {
            Ok(node_state)
        } else {
            Err(Error::argument("the descriptor is not the node state of this job"))
        }
    }

    fn map(file: MemFile, size: usize) -> Result<NodeState> {
        let mapping = Mapping::shared(&file, 0, file.len() as usize)?;
        Ok(NodeState { file, mapping, size })
    }

    /// Claims the node's helper for `rank`. Returns false if another rank has it.
    pub fn take_helper(&self, rank: Rank) -> bool {
        let word = &self.header().helper;
        let take = |from| {
            word.compare_exchange(from, rank.to_word() + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        take(0) || take(VACANT)
    }

    /// Gives up the node's helper, which the calling rank had.
    pub fn give_up_helper(&self) {
        self.header().helper.store(VACANT, Ordering::Relaxed);
    }

    /// Returns true if the node had a helper and has none now.
    pub fn lacks_helper(&self) -> bool {
        self.header().helper.load(Ordering::Relaxed) == VACANT
    }

    /// Returns the bytes of a node state for `size` ranks. A node has one.
    pub fn bytes(size: usize) -> u64 {
        (HEADER_BYTES + size * RANK_STATE_BYTES).next_multiple_of(4096) as u64
    }

    /// Returns the memory file, to send it to other processes.
    pub fn file(&self) -> &MemFile {
        &self.file
    }

    /// Returns the number of ranks.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, at least HEADER_BYTES long, and Header is made of atomics.
        unsafe { self.mapping.start().cast::<Header>().as_ref() }
    }

    /// Returns the state of `rank`, which must be below the size.
    #[inline]
    pub fn rank_state(&self, rank: Rank) -> &RankState {
        assert!(rank.index() < self.size);
        let at = HEADER_BYTES + rank.index() * RANK_STATE_BYTES;
        // SAFETY: the index was checked; rank states are aligned to their size; RankState is made of atomics.
        unsafe { self.mapping.start().add(at).cast::<RankState>().as_ref() }
    }

    /// Returns the copies that ranks of the node share.
    #[inline]
    pub fn shared_copies(&self) -> &SharedCopies {
        &self.header().shared_copies
    }

    /// Sets how writers detect sleepers. Must be called before any rank runs.
    pub fn set_wake_mode(&self, mode: WakeMode) {
        let word = match mode {
            WakeMode::Fence => 1,
            WakeMode::Membarrier => 2,
        };
        self.header().wake_mode.store(word, Ordering::Release);
    }

    /// Returns how writers detect sleepers. Until the mode is set, FENCE, which is correct everywhere.
    pub fn wake_mode(&self) -> WakeMode {
        let word = self.header().wake_mode.load(Ordering::Acquire);
        if word == 2 { WakeMode::Membarrier } else { WakeMode::Fence }
    }

    /// Takes one of the node's 500 membarriers a second. Returns false if none is left now.
    pub fn take_barrier_token(&self, now_ns: u64) -> bool {
        const APART_NS: u64 = 2_000_000;
        let next = self.header().next_barrier.load(Ordering::Relaxed);
        let after = next.max(now_ns.saturating_sub(8 * APART_NS)) + APART_NS;
        next <= now_ns
            && self
                .header()
                .next_barrier
                .compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Returns true if a rank has died. Costs one load of a cache line that changes at most once.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.header().over.0.load(Ordering::Relaxed) != 0
    }

    /// A time of death that no clock has passed: the death is reported as 0 ns ago.
    pub const JUST_NOW: u64 = u64::MAX;

    /// The cause of death of a rank that ended the process which it shares with other ranks.
    pub const EXITED: &str = "its program called exit, which ended all ranks of the process";

    /// Declares that `rank` died, and wakes all ranks. Returns false if a death was declared
    /// before: the first one counts.
    pub fn declare_dead(&self, rank: Rank, how: &str, now_ns: u64) -> bool {
        self.declare(rank, how, NOT_PRINTED, now_ns)
    }

    /// Declares the calling rank dead, like [`NodeState::declare_dead`]. The rank has printed the reason on its own
    /// standard error.
    pub fn declare_dead_and_printed(&self, rank: Rank, how: &str, now_ns: u64) -> bool {
        self.declare(rank, how, PRINTED, now_ns)
    }

    fn declare(&self, rank: Rank, how: &str, claim: u32, now_ns: u64) -> bool {
        let death = &self.header().death;
        if death.claimed.compare_exchange(0, claim, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        death.when_ns.store(now_ns, Ordering::Relaxed);
        death.how.write(how);
        self.header().over.0.store(rank.to_word() + 1, Ordering::Release); // SYNC node-death
        self.wake_all();
        true
    }

    /// Returns the first death, if a rank has died.
    pub fn death(&self) -> Option<DeathRecord> {
        let rank = self.header().over.0.load(Ordering::Acquire).checked_sub(1)?; // SYNC node-death
        let death = &self.header().death;
        let when_ns = death.when_ns.load(Ordering::Relaxed);
        let is_printed = death.claimed.load(Ordering::Relaxed) == PRINTED;
        Some(DeathRecord { rank: Rank::from_word(rank), how: death.how.read(), is_printed, when_ns })
    }

    /// Wakes sleeping threads of a rank, because what they wait for has been stored.
    #[inline]
    pub fn wake_sleepers(&self, rank: Rank) {
        let rank_state = self.rank_state(rank);
        if rank_state.park().needs_wake(self.wake_mode()) {
            rank_state.wake_futex();
        }
    }

    /// Wakes the helper of a rank, like [`RankState::notify_helper`].
    pub fn notify_helper(&self, rank: Rank) -> bool {
        self.rank_state(rank).notify_helper(self.wake_mode())
    }

    /// Wakes all ranks that sleep: they check their conditions again.
    pub fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for rank in Rank::all(self.size) {
            self.rank_state(rank).wake();
        }
    }
}

impl RankState {
    /// Returns the rank's park line.
    #[inline]
    pub fn park(&self) -> &ParkLine {
        &self.park
    }

    /// Returns the park line of the rank's helper.
    #[inline]
    pub fn helper(&self) -> &ParkLine {
        &self.helper
    }

    /// Wakes the rank's helper if it sleeps. The caller must have stored the helper's work before. Returns true if it
    /// woke the helper.
    pub fn notify_helper(&self, mode: WakeMode) -> bool {
        let needs_wake = self.helper.needs_wake(mode);
        if needs_wake {
            self.wake_helper();
        }
        needs_wake
    }

    #[cold]
    fn wake_helper(&self) {
        #[cfg(not(loom))]
        crate::os::futex::wake(self.helper.futex(), 1, crate::os::futex::Scope::Shared);
    }

    /// Wakes the rank and its helper if they sleep, whatever they wait for.
    pub fn wake(&self) {
        if self.park.mark_awake() {
            self.wake_futex();
        }
        if self.helper.mark_awake() {
            self.wake_helper();
        }
    }

    /// Wakes the thread that sleeps on the rank's futex, after [`ParkLine::needs_wake`] returned true.
    #[cold]
    pub fn wake_futex(&self) {
        #[cfg(not(loom))]
        crate::os::futex::wake(self.park.futex(), 1, crate::os::futex::Scope::Shared);
    }

    /// Returns the rank's stage.
    pub fn stage(&self) -> RankStage {
        match self.stage.load(Ordering::Acquire) {
            0 => RankStage::Absent,
            1 => RankStage::Joined,
            2 => RankStage::Leaving,
            _ => RankStage::Left,
        }
    }

    /// Sets the rank's stage. Only the rank itself calls this.
    pub fn set_stage(&self, stage: RankStage) {
        self.stage.store(stage as u32, Ordering::Release);
    }

    /// Returns the rank's process id in the PID namespace of the process that accepted the rank; 0 if the rank has not
    /// asked to join, or is not visible in that namespace. In other namespaces the process has another id, or none.
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Sets the rank's process id. The process that accepts the rank calls this before the rank has joined.
    pub fn set_pid(&self, pid: u32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// Returns the identity of the rank's process; `None` until the rank has published it.
    pub fn process_identity(&self) -> Option<ProcessIdentity> {
        let pid = self.own_pid.load(Ordering::Acquire); // SYNC process-identity
        (pid != 0).then(|| ProcessIdentity {
            pid,
            pid_namespace: self.pid_namespace.load(Ordering::Relaxed),
            cookie_at: self.cookie_at.load(Ordering::Relaxed),
            cookie: self.cookie.load(Ordering::Relaxed),
        })
    }

    /// Publishes the identity of the rank's process. The rank calls this once, before any other rank gets an address of
    /// its memory.
    pub fn publish_process_identity(&self, identity: ProcessIdentity) {
        self.pid_namespace.store(identity.pid_namespace, Ordering::Relaxed);
        self.cookie_at.store(identity.cookie_at, Ordering::Relaxed);
        self.cookie.store(identity.cookie, Ordering::Relaxed);
        self.own_pid.store(identity.pid, Ordering::Release); // SYNC process-identity
    }

    /// Publishes that the rank runs a handler that `caller` has called; `None`: it runs none. At most one thread of the
    /// rank at a time runs handlers.
    #[inline]
    pub fn set_handles_for(&self, caller: Option<Rank>) {
        self.handles_for.store(caller.map_or(0, |caller| caller.to_word() + 1), Ordering::Relaxed);
    }

    /// Returns the rank that has called the handler that the rank runs, if it runs one.
    pub fn handles_for(&self) -> Option<Rank> {
        self.handles_for.load(Ordering::Relaxed).checked_sub(1).map(Rank::from_word)
    }

    /// Publishes what the send buffer of the rank holds. At most one thread of the rank at a time may call this.
    pub fn set_send_buffer(&self, buffer: Option<SendBuffer>) {
        if let Some(SendBuffer { to, slot, bytes, .. }) = buffer {
            self.buffered_to.store(to.to_word(), Ordering::Relaxed);
            self.buffered_slot.store(slot, Ordering::Relaxed);
            self.buffered_bytes.store(bytes, Ordering::Relaxed);
        }
        self.buffered.store(buffer.map_or(0, |buffer| buffer.messages), Ordering::Release); // SYNC send-buffer
    }

    /// Returns what the send buffer of the rank holds; `None`: nothing. If it changes meanwhile, the parts may be of
    /// different moments.
    pub fn send_buffer(&self) -> Option<SendBuffer> {
        let messages = self.buffered.load(Ordering::Acquire); // SYNC send-buffer
        (messages > 0).then(|| SendBuffer {
            messages,
            to: Rank::from_word(self.buffered_to.load(Ordering::Relaxed)),
            slot: self.buffered_slot.load(Ordering::Relaxed),
            bytes: self.buffered_bytes.load(Ordering::Relaxed),
        })
    }

    /// Publishes what the rank waits for. At most one thread of the rank at a time may call this or
    /// [`RankState::end_wait`].
    pub fn publish_wait(&self, wait: &PublishedWait) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release); // SYNC wait-record
        self.call.write(&wait.call);
        self.since_ns.store(wait.since_ns, Ordering::Relaxed);
        self.ended_by.store(EndedBy::word(wait.ended_by), Ordering::Relaxed);
        self.under_way.store(wait.under_way.bits(), Ordering::Relaxed);
        self.thread.store(wait.thread, Ordering::Relaxed);
        self.waiting.store(1, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release); // SYNC wait-record
    }

    /// Records that the rank no longer waits.
    pub fn end_wait(&self) {
        self.waiting.store(0, Ordering::Relaxed);
    }

    /// Returns what the rank waits for, if it has waited long enough to publish it.
    pub fn published_wait(&self) -> Option<PublishedWait> {
        for _ in 0..100 {
            let version = self.version.load(Ordering::Acquire); // SYNC wait-record
            if self.waiting.load(Ordering::Relaxed) == 0 {
                return None;
            }
            let wait = PublishedWait {
                call: self.call.read(),
                since_ns: self.since_ns.load(Ordering::Relaxed),
                ended_by: EndedBy::of_word(self.ended_by.load(Ordering::Relaxed)),
                under_way: UnderWay::of_bits(self.under_way.load(Ordering::Relaxed)),
                thread: self.thread.load(Ordering::Relaxed),
            };
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version {
                return Some(wait);
            }
        }
        None // the record changes faster than it can be read, so the rank makes progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_death_is_recorded_and_wakes_all_ranks() {
        let node_state = NodeState::create(3).unwrap();
        assert!(!node_state.is_over() && node_state.death().is_none());
        let epoch = node_state.rank_state(Rank(2)).park().begin_sleep(crate::node::park::ASLEEP, || ());
        assert!(node_state.declare_dead(Rank(1), "signal 9", 5));
        assert!(!node_state.declare_dead_and_printed(Rank(0), "exit code 1", 6), "the first one counts");
        let (rank, how) = (Rank(1), "signal 9".to_string());
        assert_eq!(node_state.death(), Some(DeathRecord { rank, how, is_printed: false, when_ns: 5 }));
        assert_ne!(node_state.rank_state(Rank(2)).park().futex().load(Ordering::Relaxed), epoch.0);
    }

    #[test]
    fn a_death_that_its_rank_has_printed_is_marked() {
        let node_state = NodeState::create(2).unwrap();
        assert!(node_state.declare_dead_and_printed(Rank(1), "panicked", 5));
        assert!(node_state.death().unwrap().is_printed);
    }

    #[test]
    fn waits_are_published_and_long_texts_are_cut_at_a_character() {
        let node_state = NodeState::create(1).unwrap();
        let rank_state = node_state.rank_state(Rank(0));
        assert_eq!(rank_state.published_wait(), None);
        let mut wait = PublishedWait {
            call: "ä".repeat(TEXT_BYTES),
            since_ns: 9,
            ended_by: None,
            under_way: UnderWay::default(),
            thread: 7,
        };
        rank_state.publish_wait(&wait);
        wait.call = "ä".repeat(TEXT_BYTES / 2);
        assert_eq!(rank_state.published_wait().as_ref(), Some(&wait));
        for (by, sends, signals) in [
            (EndedBy::Message(Rank(0)), true, false),
            (EndedBy::Signal(Rank(0)), false, true),
            (EndedBy::Signal(Rank::MAX), true, true),
        ] {
            let under_way = UnderWay { sends, signals };
            wait = PublishedWait { ended_by: Some(by), under_way, ..wait };
            rank_state.publish_wait(&wait);
            assert_eq!(rank_state.published_wait().as_ref(), Some(&wait));
        }
        rank_state.end_wait();
        assert_eq!(rank_state.published_wait(), None);
    }

    #[test]
    fn the_send_buffer_is_published() {
        let node_state = NodeState::create(2).unwrap();
        let rank_state = node_state.rank_state(Rank(1));
        assert_eq!(rank_state.send_buffer(), None);
        let buffer = SendBuffer { messages: 2, to: Rank(0), slot: 7, bytes: 1 << 40 };
        rank_state.set_send_buffer(Some(buffer));
        assert_eq!(rank_state.send_buffer(), Some(buffer));
        let text =
            "send buffer: 2 messages, not received; the oldest for rank 0 on slot 7, 1099511627776 bytes";
        assert_eq!(buffer.to_string(), text);
        let one = SendBuffer { messages: 1, bytes: 8, ..buffer };
        assert_eq!(one.to_string(), "send buffer: 1 message, not received; for rank 0 on slot 7, 8 bytes");
        rank_state.set_send_buffer(None);
        assert_eq!(rank_state.send_buffer(), None);
    }

    #[test]
    fn a_node_state_can_be_adopted_but_not_forged() {
        let node_state = NodeState::create(2).unwrap();
        let copy = || node_state.file().as_fd().try_clone_to_owned().unwrap();
        let other = NodeState::adopt(copy(), 2).unwrap();
        node_state.rank_state(Rank(1)).set_stage(RankStage::Joined);
        assert_eq!(other.rank_state(Rank(1)).stage(), RankStage::Joined);
        let empty = MemFile::create(c"empty", NodeState::bytes(2)).unwrap();
        assert!(NodeState::adopt(empty.as_fd().try_clone_to_owned().unwrap(), 2).is_err());
    }

    #[test]
    fn membarriers_are_limited_to_500_a_second() {
        let node_state = NodeState::create(1).unwrap();
        let taken =
            (0..1_000_u64).filter(|i| node_state.take_barrier_token(1_000_000_000 + i * 1_000_000)).count();
        assert!((450..=520).contains(&taken), "{taken} in a second");
    }
}
