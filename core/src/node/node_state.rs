//! What all ranks of a node and their launcher share: who is there, who sleeps, who waits for what, who died.
#![allow(unsafe_code)]
//! Unsafe: references to structures of atomics inside a mapping that lives as long as the node state.
//!
//! One memory file of a page and 512 bytes a rank, made by whoever starts the job. Every word is atomic; which rank
//! writes what stands at each field.

use super::park::{ParkLine, WakeMode};
use super::shared_copy::SharedCopies;
use crate::base::{Error, Rank, Result};
use crate::os::mapping::Mapping;
use crate::os::memfile::MemFile;
use crate::segment::layout;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

const MAGIC: u64 = u64::from_le_bytes(*b"tasuki-b");
const HEADER_BYTES: usize = 4096;
const RANK_STATE_BYTES: usize = 512;
/// The node's helper was in a rank that has left.
const VACANT: u32 = u32::MAX;
/// Longest text of a death or of a waiting call that is kept.
pub const TEXT_BYTES: usize = 192;

/// The words of the whole node.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    /// Layout that the maker was compiled with.
    hash: AtomicU64,
    size: AtomicU32,
    /// 0 until decided, then 1 FENCE or 2 BARRIER. Written once, before any rank starts its program.
    wake_mode: AtomicU32,
    /// 0: no rank has had the node's helper; 1 + the rank that has it; [`VACANT`]. Written by CAS of who takes it, and
    /// by who gives it up.
    helper: AtomicU32,
    /// When the next membarrier of the node may run, in ns: a bucket of 500 a second.
    next_barrier: AtomicU64,
    /// 0 while all is well, then 1 + the rank that died first. Written once by whoever noticed (CAS), after `death`.
    /// Read by every call of every rank: on a line of its own.
    over: FutexLine,
    death: Death,
    /// Copies that ranks share.
    bulk: SharedCopies,
}

/// `claimed` of a death that only the node state tells.
const UNSAID: u32 = 1;
/// `claimed` of a death that the rank has also told on its own standard error.
const SAID: u32 = 2;

/// How the first rank died. Written under `claimed` (0 until then), read after `over`.
#[repr(C)]
struct Death {
    claimed: AtomicU32,
    when_ns: AtomicU64,
    how: SharedText,
}

/// A word with a line to itself.
#[repr(C, align(128))]
struct FutexLine(AtomicU32, [u8; 0]);

/// A short text in shared memory, written once or under a version.
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

/// Where a rank is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Stage {
    /// Started, or not even that.
    Absent = 0,
    /// Joined and running its program.
    Joined = 1,
    /// Done: only empties what others still need of it.
    Leaving = 2,
    /// Left in order.
    Left = 3,
}

/// The words of one rank.
#[derive(Debug)]
#[repr(C, align(512))]
pub struct RankState {
    park: ParkLine,
    /// The same of its helper, which nobody has to wake if there is none: it is never asleep.
    helper: ParkLine,
    /// [`Stage`]; written by the rank.
    stage: AtomicU32,
    /// The rank's process, as whoever lets it in knows it; written by that one when the rank joins.
    pid: AtomicU32,
    /// Odd while the record below is written. Written by the rank's waiting thread that holds `writing`.
    version: AtomicU32,
    /// 1 while the rank waits for something.
    waiting: AtomicU32,
    /// The kernel's number of the thread that waits.
    thread: AtomicU32,
    /// [`EndedBy`] as a word: 0 if that is not known.
    ended_by: AtomicU32,
    /// [`UnderWay`] as bits.
    under_way: AtomicU32,
    /// [`ProcessIdentity::pid`]; 0 until the rank has written the other fields of [`ProcessIdentity`].
    own_pid: AtomicU32,
    /// Since when it waits, in ns of the node's clock.
    since_ns: AtomicU64,
    /// The call, with its peer and object: `wait(signal 7 >= 4)`.
    call: SharedText,
    /// Fields of [`ProcessIdentity`]; written by the rank when it joins, `own_pid` last.
    pid_namespace: AtomicU64,
    cookie_at: AtomicU64,
    cookie: AtomicU64,
}

const _: () = assert!(size_of::<RankState>() == RANK_STATE_BYTES && size_of::<Header>() <= HEADER_BYTES);

/// What a rank says of its process, so that others can be sure that they copy from and to that process and no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessIdentity {
    /// Its number, as it knows itself: it means the same process only in the same namespace.
    pub pid: u32,
    /// Its namespace of process numbers; 0 if it could not find out.
    pub pid_namespace: u64,
    /// Where in its memory the cookie lies.
    pub cookie_at: u64,
    /// A random number.
    pub cookie: u64,
}

/// The one rank that can end a wait: no other rank can, and the wait has no time limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndedBy {
    /// That rank's program has to send or to receive a message.
    Message(Rank),
    /// That rank has to raise a signal.
    Signal(Rank),
}

/// What a rank that waits has begun besides, and may go on with though its program waits: other ranks may need no more
/// than that of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnderWay {
    /// Messages that it sends.
    pub sends: bool,
    /// What raises signals: command queues, handlers, plans.
    pub signals: bool,
}

/// A wait as its rank published it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedWait {
    /// The call with peer and object.
    pub call: String,
    /// When it began, in ns of the node's clock.
    pub since_ns: u64,
    /// Who alone can end it, if that is known.
    pub ended_by: Option<EndedBy>,
    /// What else goes on in the rank meanwhile.
    pub under_way: UnderWay,
    /// The kernel's number of the thread that waits.
    pub thread: u32,
}

impl EndedBy {
    /// The rank that has to do something.
    pub fn rank(self) -> Rank {
        match self {
            EndedBy::Message(rank) | EndedBy::Signal(rank) => rank,
        }
    }

    fn word(this: Option<EndedBy>) -> u32 {
        this.map_or(0, |by| (by.rank().0 + 1) << 1 | u32::from(matches!(by, EndedBy::Signal(_))))
    }

    fn of_word(word: u32) -> Option<EndedBy> {
        let rank = Rank((word >> 1).checked_sub(1)?);
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
    /// Who died.
    pub rank: Rank,
    /// How, in words.
    pub how: String,
    /// Whether the rank itself has told this on its standard error: nobody need repeat it to the user.
    pub is_said: bool,
    /// When, in ns of the node's clock.
    pub when_ns: u64,
}

/// The mapped node state of a node.
#[derive(Debug)]
pub struct NodeState {
    file: MemFile,
    mapping: Mapping,
    size: usize,
}

impl NodeState {
    /// A new node state for `size` ranks.
    pub fn create(size: usize) -> Result<NodeState> {
        let node_state = NodeState::map(MemFile::create(c"tasuki-node", NodeState::bytes(size))?, size)?;
        let header = node_state.header();
        header.hash.store(layout::HASH, Ordering::Relaxed);
        header.size.store(size as u32, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(node_state)
    }

    /// The node state behind a descriptor that the launcher handed over.
    pub fn adopt(fd: OwnedFd, size: usize) -> Result<NodeState> {
        let node_state = NodeState::map(MemFile::adopt(fd, NodeState::bytes(size))?, size)?;
        let header = node_state.header();
        let ours = header.magic.load(Ordering::Acquire) == MAGIC
            && header.hash.load(Ordering::Relaxed) == layout::HASH
            && header.size.load(Ordering::Relaxed) as usize == size;
        if ours {
            Ok(node_state)
        } else {
            Err(Error::argument("the descriptor is not this job's node state"))
        }
    }

    fn map(file: MemFile, size: usize) -> Result<NodeState> {
        let mapping = Mapping::shared(&file, 0, file.len() as usize)?;
        Ok(NodeState { file, mapping, size })
    }

    /// The node's helper is to be in that rank. False: it is in another.
    pub fn take_helper(&self, rank: Rank) -> bool {
        let word = &self.header().helper;
        let take =
            |from| word.compare_exchange(from, rank.0 + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        take(0) || take(VACANT)
    }

    /// The rank in which the node's helper was has none any more.
    pub fn leave_helper(&self) {
        self.header().helper.store(VACANT, Ordering::Relaxed);
    }

    /// Whether the node had a helper, and has none now.
    pub fn lacks_helper(&self) -> bool {
        self.header().helper.load(Ordering::Relaxed) == VACANT
    }

    /// Bytes that the node state of `size` ranks takes, once a node.
    pub fn bytes(size: usize) -> u64 {
        (HEADER_BYTES + size * RANK_STATE_BYTES).next_multiple_of(4096) as u64
    }

    /// The file, to hand it on.
    pub fn file(&self) -> &MemFile {
        &self.file
    }

    /// How many ranks it has seats for.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, at least HEADER_BYTES long, and Header is made of atomics.
        unsafe { self.mapping.start().cast::<Header>().as_ref() }
    }

    /// The rank state of `rank`, which must be below the size.
    #[inline]
    pub fn rank_state(&self, rank: Rank) -> &RankState {
        assert!(rank.index() < self.size);
        let at = HEADER_BYTES + rank.index() * RANK_STATE_BYTES;
        // SAFETY: the index was checked; seats are aligned by their size; RankState is made of atomics.
        unsafe { self.mapping.start().add(at).cast::<RankState>().as_ref() }
    }

    /// The rank state's address for callers that keep the node state alive themselves.
    #[inline]
    pub fn rank_state_ptr(&self, rank: Rank) -> NonNull<RankState> {
        NonNull::from(self.rank_state(rank))
    }

    /// Copies that ranks of the node share.
    #[inline]
    pub fn bulk(&self) -> &SharedCopies {
        &self.header().bulk
    }

    /// Decides how sleepers are found; before any rank runs.
    pub fn set_wake_mode(&self, mode: WakeMode) {
        let word = match mode {
            WakeMode::Fence => 1,
            WakeMode::Barrier => 2,
        };
        self.header().wake_mode.store(word, Ordering::Release);
    }

    /// How sleepers are found. FENCE, which is right everywhere, until somebody decides.
    pub fn wake_mode(&self) -> WakeMode {
        if self.header().wake_mode.load(Ordering::Acquire) == 2 { WakeMode::Barrier } else { WakeMode::Fence }
    }

    /// Takes one of the node's 500 membarriers a second; false if there is none just now.
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

    /// Whether a rank has died. One load of a line that hardly ever changes.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.header().over.0.load(Ordering::Relaxed) != 0
    }

    /// A moment that is not over yet, by any clock.
    pub const JUST_NOW: u64 = u64::MAX;

    /// How a rank died that ended the process which it shares with others.
    pub const EXITED: &str = "its program ended the process of all ranks (exit)";

    /// Says that `rank` died, and wakes everybody. False if another death was told before: the first one counts.
    pub fn declare_dead(&self, rank: Rank, how: &str, now_ns: u64) -> bool {
        self.declare(rank, how, UNSAID, now_ns)
    }

    /// The same for the calling rank, which has told on its own standard error what happened.
    pub fn declare_dead_and_said(&self, rank: Rank, how: &str, now_ns: u64) -> bool {
        self.declare(rank, how, SAID, now_ns)
    }

    fn declare(&self, rank: Rank, how: &str, claim: u32, now_ns: u64) -> bool {
        let death = &self.header().death;
        if death.claimed.compare_exchange(0, claim, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        death.when_ns.store(now_ns, Ordering::Relaxed);
        death.how.write(how);
        self.header().over.0.store(rank.0 + 1, Ordering::Release); // SYNC board-death
        self.wake_all();
        true
    }

    /// The first death, if there was one.
    pub fn death(&self) -> Option<DeathRecord> {
        let rank = self.header().over.0.load(Ordering::Acquire).checked_sub(1)?; // SYNC board-death
        let death = &self.header().death;
        let when_ns = death.when_ns.load(Ordering::Relaxed);
        let is_said = death.claimed.load(Ordering::Relaxed) == SAID;
        Some(DeathRecord { rank: Rank(rank), how: death.how.read(), is_said, when_ns })
    }

    /// Wakes every rank that sleeps, to look around.
    pub fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for rank in Rank::all(self.size) {
            self.rank_state(rank).wake();
        }
    }
}

impl RankState {
    /// The rank's park line.
    #[inline]
    pub fn park(&self) -> &ParkLine {
        &self.park
    }

    /// The park line of the rank's helper.
    #[inline]
    pub fn helper(&self) -> &ParkLine {
        &self.helper
    }

    /// Wakes the rank's helper if it sleeps. What it is to look at has been stored before. Whether it did.
    pub fn notify_helper(&self, mode: WakeMode) -> bool {
        let is_roused = self.helper.needs_wake(mode);
        if is_roused {
            self.wake_helper();
        }
        is_roused
    }

    #[cold]
    fn wake_helper(&self) {
        #[cfg(not(loom))]
        crate::os::futex::wake(self.helper.futex(), 1, crate::os::futex::Scope::Shared);
    }

    /// Wakes the rank and its helper if they sleep, whatever they wait for.
    pub fn wake(&self) {
        if self.park.rouse() {
            self.wake_futex();
        }
        if self.helper.rouse() {
            self.wake_helper();
        }
    }

    /// Wakes whoever sleeps on the futex, after [`ParkLine::needs_wake`] said so.
    #[cold]
    pub fn wake_futex(&self) {
        #[cfg(not(loom))]
        crate::os::futex::wake(self.park.futex(), 1, crate::os::futex::Scope::Shared);
    }

    /// Where the rank is in its life.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Absent,
            1 => Stage::Joined,
            2 => Stage::Leaving,
            _ => Stage::Left,
        }
    }

    /// The rank reaches a stage.
    pub fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u32, Ordering::Release);
    }

    /// The rank's process id as whoever let the rank in knows it. 0: it has not asked to join, or runs where that one
    /// does not see it. A rank in another namespace knows the process by another number, or not at all.
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Which process the rank is: said before it joins, by whoever lets it in.
    pub fn set_pid(&self, pid: u32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// What the rank says of its process; `None` until it has said it.
    pub fn process_identity(&self) -> Option<ProcessIdentity> {
        let pid = self.own_pid.load(Ordering::Acquire); // SYNC process-identity
        (pid != 0).then(|| ProcessIdentity {
            pid,
            pid_namespace: self.pid_namespace.load(Ordering::Relaxed),
            cookie_at: self.cookie_at.load(Ordering::Relaxed),
            cookie: self.cookie.load(Ordering::Relaxed),
        })
    }

    /// The rank says what its process is: once, before it gives anybody an address of its memory.
    pub fn publish_process_identity(&self, identity: ProcessIdentity) {
        self.pid_namespace.store(identity.pid_namespace, Ordering::Relaxed);
        self.cookie_at.store(identity.cookie_at, Ordering::Relaxed);
        self.cookie.store(identity.cookie, Ordering::Relaxed);
        self.own_pid.store(identity.pid, Ordering::Release); // SYNC process-identity
    }

    /// Publishes what the rank waits for. Only one thread of the rank at a time may call this or
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

    /// The rank waits no more.
    pub fn end_wait(&self) {
        self.waiting.store(0, Ordering::Relaxed);
    }

    /// What the rank waits for, if it has waited long enough to say so.
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
        None // the record changes faster than it can be read: the rank is not stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_death_counts_and_wakes() {
        let node_state = NodeState::create(3).unwrap();
        assert!(!node_state.is_over() && node_state.death().is_none());
        let epoch = node_state.rank_state(Rank(2)).park().begin_sleep(crate::node::park::ASLEEP, || ());
        assert!(node_state.declare_dead(Rank(1), "signal 9", 5));
        assert!(!node_state.declare_dead_and_said(Rank(0), "exit code 1", 6), "the first one counts");
        let (rank, how) = (Rank(1), "signal 9".to_string());
        assert_eq!(node_state.death(), Some(DeathRecord { rank, how, is_said: false, when_ns: 5 }));
        assert_ne!(node_state.rank_state(Rank(2)).park().futex().load(Ordering::Relaxed), epoch.0);
    }

    #[test]
    fn a_death_that_its_rank_has_told_shows_as_such() {
        let node_state = NodeState::create(2).unwrap();
        assert!(node_state.declare_dead_and_said(Rank(1), "panicked", 5));
        assert!(node_state.death().unwrap().is_said);
    }

    #[test]
    fn waits_are_published_and_cut_at_a_character() {
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
    fn a_board_can_be_handed_on_but_not_forged() {
        let node_state = NodeState::create(2).unwrap();
        let copy = || node_state.file().as_fd().try_clone_to_owned().unwrap();
        let other = NodeState::adopt(copy(), 2).unwrap();
        node_state.rank_state(Rank(1)).set_stage(Stage::Joined);
        assert_eq!(other.rank_state(Rank(1)).stage(), Stage::Joined);
        let empty = MemFile::create(c"empty", NodeState::bytes(2)).unwrap();
        assert!(NodeState::adopt(empty.as_fd().try_clone_to_owned().unwrap(), 2).is_err());
    }

    #[test]
    fn barrier_tokens_are_bounded() {
        let node_state = NodeState::create(1).unwrap();
        let taken =
            (0..1_000_u64).filter(|i| node_state.take_barrier_token(1_000_000_000 + i * 1_000_000)).count();
        assert!((450..=520).contains(&taken), "{taken} in a second");
    }
}
