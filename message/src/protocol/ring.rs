//! Rings: job memory, small enough to stay in cache, through which a message between memories that only their owners
//! can reach passes in chunks. So both processors copy at once.
//!
//! A ring belongs to the sender. The sender copies a chunk in and announces the number of chunks. The receiver copies
//! the chunk out and acknowledges the number of chunks that it has taken. While the ring has room, the sender need not
//! wait for acknowledgements.
//!
//! One message at a time is copied into a ring. A message begins in an empty ring. If no ring is empty, a small message
//! begins behind messages that were not taken yet. So a rank that has many small messages in flight need not wait for
//! its peer after every fourth message. Receivers take messages in any order, but room becomes free from the oldest
//! message on.
//!
//! Each message begins in the ring where the last message ended. So the lines of a ring that is larger than the
//! second-level cache are evicted to the third-level cache, which both processors share, before the rank writes them
//! again. To write lines that are in the third-level cache costs a third of fetching them from the peer's own cache
//! (docs/design/communication/messages.md has the figures). So a rank that stages much data gets wide rings; a rank
//! that stages little saves their memory.

use crate::protocol::pipelined::MatchedSlot;
use crate::protocol::ring_span::{Chunking, RingSpan};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::directory;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Error, Rank};
use tasuki_core::engine::{Condition, Deadline, Started, WaitEvent, Worker};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::GlobalAddress;

/// Bytes of a narrow ring.
const RING: u64 = 256 << 10;
/// Longest message that a rank copies into a ring under the ring's lock. A longer message holds the ring instead of the
/// lock, because other threads of the rank may wait for the lock.
pub(crate) const FAST_PATH_MAX: u64 = RING / 4;
/// Bytes of a wide ring.
const WIDE: u64 = 2 << 20;
/// A rank uses wide rings after it has staged this many bytes.
const WIDE_AFTER: u64 = 4 << 20;
/// Most rings of a rank, of each size. A ring whose message has met a withdrawn receive does not count, because nobody
/// knows when that message will be taken.
const RINGS_MAX: usize = 4;
/// Longest message that is copied into a ring behind others.
const BEHIND_MAX: u64 = RING / 16;
/// Offset of a ring in its allocation. Program buffers often begin near the start of a page, and copies between
/// addresses with equal page offsets are slow (`os/memory/copy.rs` in core).
const PAGE_OFFSET: u64 = 2048;
/// How often a leaving rank checks for events that no peer reports.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A ring.
#[derive(Debug)]
struct Ring {
    at: GlobalAddress,
    bytes: u64,
    state: Mutex<RingState>,
}

/// No thread holds the lock during a call of the fabric, because on some platforms another thread of the rank runs
/// inside such a call.
#[derive(Debug, Default)]
struct RingState {
    /// True while a message holds the ring.
    is_held: bool,
    /// Offset at which the last message ended.
    next: u64,
    /// Bytes from the start of the oldest message to `next`.
    used: u64,
    /// The last message in the ring whose send is over. It is not in the list below, because most often the ring holds
    /// no other message.
    last: StagedMessage,
    /// The messages before the last one, from the oldest on.
    earlier: VecDeque<StagedMessage>,
    /// The operation that reads the generation of the oldest message's bank, to find out whether anybody can still
    /// take that message.
    generation_query: Option<u64>,
}

/// A message in a ring, and the bytes that become free when the message is over.
#[derive(Debug, Default)]
struct StagedMessage {
    /// `None`: the message is over.
    unconsumed: Option<Unconsumed>,
    bytes: u64,
}

/// A ring that one message holds until this value is dropped.
#[derive(Debug)]
pub(crate) struct HeldRing {
    ring: Arc<Ring>,
    /// Where the message lies in the ring: behind the last message.
    pub(crate) span: RingSpan,
    /// The message and its bytes; `None` until its send is over.
    message: StagedMessage,
}

/// A message in a ring whose send has completed.
#[derive(Clone, Debug)]
pub(crate) struct Unconsumed {
    bank: Arc<SlotBank>,
    /// The bank's generation at the time of the send. This rank may close the bank. The peer can still take the message
    /// until the peer has closed the bank, too.
    generation: u32,
    index: SlotIndex,
    number: u32,
    chunks: u32,
}

impl Unconsumed {
    pub(crate) fn new(bank: &Arc<SlotBank>, index: SlotIndex, number: u32, chunks: u32) -> Unconsumed {
        let generation = bank.bank_state().generation();
        Unconsumed { bank: bank.clone(), generation, index, number, chunks }
    }

    /// Replaces the message. Most often the old and the new message are in one bank; then no reference count changes.
    #[inline]
    fn put(place: &mut Option<Unconsumed>, at: MatchedSlot<'_>, chunks: u32) {
        let MatchedSlot { bank, index, number, .. } = at;
        match place {
            Some(old) if Arc::ptr_eq(&old.bank, bank) => {
                (old.generation, old.index) = (bank.bank_state().generation(), index);
                (old.number, old.chunks) = (number, chunks);
            }
            _ => *place = Some(Unconsumed::new(bank, index, number, chunks)),
        }
    }

    /// Returns true if `other` is this message.
    fn is(&self, other: &Unconsumed) -> bool {
        let key = |message: &Unconsumed| (message.generation, message.index, message.number);
        Arc::ptr_eq(&self.bank, &other.bank) && key(self) == key(other)
    }

    /// Returns true if the message was taken, or if nobody can take it because both ranks have closed the bank. The
    /// lines of the bank say how much was taken. If both ranks have closed the bank, its lines may belong to another
    /// pair, so their contents do not matter.
    fn is_taken(&self) -> bool {
        self.bank.bank_state().generation() != self.generation
            || self.bank.taken(self.index, self.number, self.chunks) == self.chunks
    }

    /// Returns true if the receive of the message was withdrawn after the message was sent, and no other receive was
    /// posted.
    fn is_recv_withdrawn(&self) -> bool {
        self.bank.bank_state().generation() == self.generation
            && self.bank.is_withdrawn(self.index, self.number)
    }

    /// Returns true if the peer has left and takes no more messages.
    fn has_left(&self, worker: &Worker) -> bool {
        worker.node_state().rank_state(self.bank.peer).stage() >= RankStage::Left
            && self.bank.peer != worker.rank()
    }

    /// Returns true if [`Unconsumed::is_over`] may succeed.
    fn may_be_over(&self) -> bool {
        self.is_taken() || !self.bank.bank_state().is_open()
    }

    /// Returns true if the message is known to be taken, without a call of the fabric. If the result is false, the
    /// message may have been taken nevertheless.
    fn is_seen_taken(&self) -> bool {
        self.bank.is_directly_readable() && self.is_taken()
    }

    /// Returns true if the message is over: it was taken, or nobody can take it. If this rank has closed the bank, this
    /// function reads the generation in the bank's directory entry. It cannot wait for the fabric, so the result
    /// arrives some calls later; `generation_query` is the operation in flight. Only the thread that holds the ring may
    /// call this.
    fn is_over(&self, worker: &Worker, generation_query: &mut Option<u64>) -> bool {
        let outcome = match *generation_query {
            None if self.is_taken() || self.has_left(worker) => return true,
            None if self.bank.bank_state().is_open() => return false,
            None => match directory::query_generation(worker, self.bank.peer, self.bank.bank_state().entry())
            {
                Ok(Started::InFlight(operation)) => {
                    *generation_query = Some(operation);
                    return false;
                }
                Ok(Started::Done(word)) => Ok(word),
                Ok(Started::Later) | Err(_) => return false,
            },
            Some(operation) => match worker.take_outcome(operation) {
                None => return false,
                Some(outcome) => outcome,
            },
        };
        *generation_query = None;
        self.is_taken() || outcome.is_ok_and(|word| directory::read_generation(word) != self.generation)
    }
}

impl WaitEvent for Unconsumed {
    fn happened(&self) -> bool {
        self.is_taken()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.bank.peer, RankStage::Leaving)) // the peer's program receives nothing any more
    }
}

impl HeldRing {
    /// Records that the send is over. The room of its message is free for others when the message is taken.
    pub(crate) fn set_unconsumed(&mut self, message: Unconsumed) {
        self.message.unconsumed = Some(message);
    }
}

impl Drop for HeldRing {
    fn drop(&mut self) {
        let mut state = lock(&self.ring.state);
        state.push(std::mem::take(&mut self.message));
        state.is_held = false;
    }
}

impl StagedMessage {
    /// Returns true if the message is known to be over, without a call of the fabric. If the result is false, the
    /// message may be over nevertheless.
    fn is_seen_over(&self) -> bool {
        self.unconsumed.as_ref().is_none_or(Unconsumed::is_seen_taken)
    }
}

impl RingState {
    /// Frees the room of the messages that are known to be over without a call of the fabric. Returns true if the ring
    /// is empty then.
    #[inline]
    fn is_empty(&mut self) -> bool {
        while self.earlier.front().is_some_and(StagedMessage::is_seen_over) {
            self.drop_oldest();
        }
        self.earlier.is_empty() && self.last.is_seen_over()
    }

    fn oldest(&self) -> &StagedMessage {
        self.earlier.front().unwrap_or(&self.last)
    }

    /// Frees the room of the oldest message.
    fn drop_oldest(&mut self) {
        let oldest = self.earlier.pop_front().unwrap_or_else(|| std::mem::take(&mut self.last));
        self.used -= oldest.bytes;
        self.generation_query = None;
    }

    /// Adds a message. Its room must be counted already.
    fn push(&mut self, message: StagedMessage) {
        let before = std::mem::replace(&mut self.last, message);
        if before.bytes > 0 {
            self.earlier.push_back(before);
        }
    }

    /// Returns all messages, from the oldest on.
    fn all(&mut self) -> impl Iterator<Item = &mut StagedMessage> {
        self.earlier.iter_mut().chain(Some(&mut self.last))
    }
}

impl Ring {
    fn new(worker: &Worker, bytes: u64) -> Result<Arc<Ring>, Cause> {
        let offset = worker.registry().allocate_local(PAGE_OFFSET + bytes);
        let offset = offset.map_err(|error: Error| error.cause().clone())?;
        let at = GlobalAddress::new(worker.rank(), offset + PAGE_OFFSET);
        Ok(Arc::new(Ring { at, bytes, state: Mutex::default() }))
    }

    /// Holds the ring for a message of `len` bytes, if no message holds the ring and it is empty. With `behind`, the
    /// ring may also contain messages, if it has room behind them.
    fn hold(self: &Arc<Ring>, worker: &Worker, len: u64, behind: bool) -> Option<HeldRing> {
        loop {
            let mut state = lock(&self.state);
            if state.is_held {
                return None;
            }
            if state.is_empty() || behind && self.has_room_behind(&state, len) {
                return Some(self.held(&mut state, len));
            }
            let (message, mut generation_query) =
                (state.oldest().unconsumed.clone(), state.generation_query.take());
            state.is_held = true; // so that no other thread removes the oldest message
            drop(state);
            let is_over = message.is_none_or(|message| message.is_over(worker, &mut generation_query));
            let mut state = lock(&self.state);
            (state.is_held, state.generation_query) = (false, generation_query);
            if !is_over {
                return None;
            }
            state.drop_oldest();
        }
    }

    /// Returns the bytes from the end of the last message to the end of the next one, if the next one has this span.
    fn footprint(&self, state: &RingState, span: RingSpan) -> u64 {
        (span.start + self.bytes - state.next) % self.bytes + span.chunking.bytes()
    }

    /// Returns true if a message of `len` bytes fits behind the messages in the ring.
    fn has_room_behind(&self, state: &RingState, len: u64) -> bool {
        len <= BEHIND_MAX && state.used + self.footprint(state, self.span(state, len)) <= self.bytes
    }

    /// Returns where the next message, of `len` bytes, will lie.
    fn span(&self, state: &RingState, len: u64) -> RingSpan {
        let chunking = Chunking::of(len);
        let start = state.next.next_multiple_of(chunking.chunk) % self.bytes;
        RingSpan { ring: self.at, bytes: self.bytes, start, chunking }
    }

    /// Lets `fill` copy a whole message into the ring, if no message holds the ring and it is empty. With `behind`, the
    /// ring may also contain messages, if it has room behind them. `fill` runs under the lock, so it must not call the
    /// fabric. Returns `None` if the ring is not available; `Some(false)` if `fill` did nothing.
    #[inline]
    fn fill(
        &self,
        at: MatchedSlot<'_>,
        len: u64,
        behind: bool,
        fill: impl FnOnce(RingSpan) -> bool,
    ) -> Option<bool> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if state.is_held || state.generation_query.is_some() {
            return None;
        }
        let is_empty = state.is_empty();
        if !(is_empty || behind && self.has_room_behind(&state, len)) {
            return None;
        }
        let span = self.span(&state, len);
        let is_filled = fill(span);
        if is_filled {
            let chunks = span.chunking.chunks();
            if is_empty {
                state.last.bytes = span.chunking.bytes();
                state.used = state.last.bytes;
                Unconsumed::put(&mut state.last.unconsumed, at, chunks);
            } else {
                let (bytes, mut unconsumed) = (self.footprint(&state, span), None);
                state.used += bytes;
                Unconsumed::put(&mut unconsumed, at, chunks);
                state.push(StagedMessage { unconsumed, bytes });
            }
            state.next = span.end();
        }
        Some(is_filled)
    }

    /// Holds the ring for a message of `len` bytes. The caller has checked that the ring has room.
    fn held(self: &Arc<Ring>, state: &mut RingState, len: u64) -> HeldRing {
        let span = self.span(state, len);
        let bytes = if state.is_empty() {
            (state.last, state.used) = (StagedMessage::default(), 0);
            span.chunking.bytes().min(self.bytes)
        } else {
            self.footprint(state, span)
        };
        (state.is_held, state.next, state.generation_query) = (true, span.end(), None);
        state.used += bytes;
        HeldRing { ring: self.clone(), span, message: StagedMessage { unconsumed: None, bytes } }
    }

    /// Returns the oldest message in the ring.
    fn oldest(&self) -> Option<Unconsumed> {
        lock(&self.state).oldest().unconsumed.clone()
    }

    /// Returns true if [`Ring::hold`] may succeed or may free room.
    fn may_hold(&self, len: u64, behind: bool) -> bool {
        let oldest = {
            let state = lock(&self.state);
            if state.is_held {
                return false;
            }
            if behind && self.has_room_behind(&state, len) {
                return true;
            }
            state.oldest().unconsumed.clone()
        };
        oldest.is_none_or(|message| message.may_be_over())
    }

    /// Returns true if the message whose end would free room has met a withdrawn receive.
    fn is_recv_withdrawn(&self) -> bool {
        let oldest = {
            let state = lock(&self.state);
            if state.is_held { None } else { state.oldest().unconsumed.clone() }
        };
        oldest.is_some_and(|message| message.is_recv_withdrawn())
    }

    /// Forgets messages on these banks that were taken.
    fn forget_taken(&self, banks: &[Arc<SlotBank>]) {
        let is_on_them = |message: &Unconsumed| banks.iter().any(|bank| Arc::ptr_eq(bank, &message.bank));
        let mut messages: Vec<Unconsumed> =
            lock(&self.state).all().filter_map(|message| message.unconsumed.clone()).collect();
        messages.retain(|message| is_on_them(message) && message.is_taken());
        let mut state = lock(&self.state);
        // If a thread is finding out whether the oldest message is over, this function leaves that message to it.
        let is_asked = state.is_held || state.generation_query.is_some();
        for message in state.all().skip(usize::from(is_asked)) {
            let is_taken = |unconsumed: &Unconsumed| messages.iter().any(|taken| taken.is(unconsumed));
            if message.unconsumed.as_ref().is_some_and(is_taken) {
                message.unconsumed = None;
            }
        }
    }
}

/// Rings of one size, allocated when first needed.
#[derive(Debug)]
struct RingsOfSize {
    bytes: u64,
    rings: [OnceLock<Arc<Ring>>; RINGS_MAX],
    /// Rings that were allocated while messages in some of `rings` had met withdrawn receives.
    extra: Mutex<Vec<Arc<Ring>>>,
    growing: Mutex<()>,
}

impl RingsOfSize {
    fn of(bytes: u64) -> RingsOfSize {
        RingsOfSize { bytes, rings: Default::default(), extra: Mutex::default(), growing: Mutex::default() }
    }

    fn first(&self) -> impl Iterator<Item = &Arc<Ring>> {
        self.rings.iter().map_while(OnceLock::get)
    }

    fn all(&self) -> Vec<Arc<Ring>> {
        let extra = lock(&self.extra);
        self.first().chain(extra.iter()).cloned().collect()
    }

    /// Returns true if another ring may be allocated.
    fn may_grow(all: &[Arc<Ring>]) -> bool {
        all.iter().filter(|ring| !ring.is_recv_withdrawn()).count() < RINGS_MAX
    }

    /// Returns true if a ring may be available for a message of `len` bytes.
    fn has_room(&self, len: u64) -> bool {
        let mut numbered = self.first().enumerate();
        if !self.is_complete() || numbered.any(|(index, ring)| ring.may_hold(len, index > 0)) {
            return true;
        }
        // The checks below mostly fail, and threads that wait for a ring call this function again and again.
        if lock(&self.extra).is_empty() && !self.first().any(|ring| ring.is_recv_withdrawn()) {
            return false;
        }
        let all = self.all();
        all[RINGS_MAX..].iter().any(|ring| ring.may_hold(len, true)) || RingsOfSize::may_grow(&all)
    }

    /// Returns true if all rings but the extra ones are allocated.
    fn is_complete(&self) -> bool {
        self.rings[RINGS_MAX - 1].get().is_some()
    }

    /// Returns the rings in which a message may lie behind others. The first ring is not among them, so that a longer
    /// message, which needs an empty ring, can get one.
    fn behind(&self) -> impl Iterator<Item = &Arc<Ring>> {
        self.first().skip(if self.is_complete() { 1 } else { RINGS_MAX })
    }

    /// Returns a free ring or a new one; `None` if all are in use.
    fn take(&self, worker: &Worker, len: u64) -> Result<Option<HeldRing>, Cause> {
        if let Some(held) = self.first().find_map(|ring| ring.hold(worker, len, false)) {
            return Ok(Some(held));
        }
        if !self.is_complete() {
            return self.make(worker, len);
        }
        match self.behind().find_map(|ring| ring.hold(worker, len, true)) {
            None => self.extra(worker, len),
            held => Ok(held),
        }
    }

    #[cold]
    fn make(&self, worker: &Worker, len: u64) -> Result<Option<HeldRing>, Cause> {
        let _growing = lock(&self.growing);
        let Some(place) = self.rings.iter().find(|place| place.get().is_none()) else { return Ok(None) };
        let ring = Ring::new(worker, self.bytes)?;
        let held = ring.held(&mut lock(&ring.state), len);
        let _ = place.set(ring); // cannot fail: the lock is held
        Ok(Some(held))
    }

    /// Returns an extra ring, if messages in some rings have met withdrawn receives.
    #[cold]
    fn extra(&self, worker: &Worker, len: u64) -> Result<Option<HeldRing>, Cause> {
        let all = self.all();
        if let Some(held) = all.iter().skip(RINGS_MAX).find_map(|ring| ring.hold(worker, len, true)) {
            return Ok(Some(held));
        }
        let may_grow = RingsOfSize::may_grow(&all);
        let _growing = lock(&self.growing); // not locked before, because the checks above may call the fabric
        if !may_grow || self.all().len() != all.len() {
            return Ok(None);
        }
        let ring = Ring::new(worker, RING)?;
        let held = ring.held(&mut lock(&ring.state), len);
        lock(&self.extra).push(ring);
        Ok(Some(held))
    }
}

/// The rings of a rank.
#[derive(Debug)]
pub(crate) struct Rings {
    narrow: RingsOfSize,
    wide: RingsOfSize,
    /// Approximate number of bytes staged so far: two threads that add at once may lose one addition.
    staged: AtomicU64,
    /// No ring was available for the last message that asked.
    was_full: AtomicBool,
}

impl Default for Rings {
    fn default() -> Rings {
        Rings {
            narrow: RingsOfSize::of(RING),
            wide: RingsOfSize::of(WIDE),
            staged: AtomicU64::new(0),
            was_full: AtomicBool::new(false),
        }
    }
}

impl Rings {
    /// Bytes of job memory that the rings take.
    pub(crate) fn bytes(&self) -> u64 {
        let all = [&self.narrow, &self.wide]
            .map(|size| size.all().iter().map(|ring| ring.bytes + PAGE_OFFSET).sum::<u64>());
        all.iter().sum()
    }

    /// Returns a free ring for a message of `len` bytes; `None` if all are in use.
    pub(crate) fn take(&self, worker: &Worker, len: u64) -> Result<Option<HeldRing>, Cause> {
        let staged = self.staged.load(Ordering::Relaxed);
        let held = match self.sized(staged).take(worker, len) {
            Err(_) if staged >= WIDE_AFTER => self.narrow.take(worker, len)?, // no memory for wide ones
            held => held?,
        };
        self.was_full.store(held.is_none(), Ordering::Relaxed);
        if held.is_some() {
            self.staged.store(staged.saturating_add(len), Ordering::Relaxed);
        }
        Ok(held)
    }

    /// Lets `fill` copy a whole message into a ring, without a call of the fabric. Returns false if nothing was done.
    #[inline]
    pub(crate) fn fill(&self, at: MatchedSlot<'_>, len: u64, fill: impl Fn(RingSpan) -> bool) -> bool {
        let staged = self.staged.load(Ordering::Relaxed);
        let rings = self.sized(staged);
        let is_filled = (rings.first().find_map(|ring| ring.fill(at, len, false, &fill)))
            .or_else(|| rings.behind().find_map(|ring| ring.fill(at, len, true, &fill)));
        if is_filled == Some(true) {
            self.staged.store(staged.saturating_add(len), Ordering::Relaxed);
        }
        is_filled == Some(true)
    }

    /// Returns true if a ring may be available for a small message.
    pub(crate) fn seem_free(&self) -> bool {
        !self.was_full.load(Ordering::Relaxed) || self.have_room(1)
    }

    /// Returns true if a ring may be available for a message of `len` bytes.
    pub(crate) fn have_room(&self, len: u64) -> bool {
        self.sized(self.staged.load(Ordering::Relaxed)).has_room(len)
    }

    /// Returns the rings for a rank that has staged that many bytes.
    fn sized(&self, staged: u64) -> &RingsOfSize {
        if staged < WIDE_AFTER { &self.narrow } else { &self.wide }
    }

    /// Waits until each message in the rings was taken or can no longer be taken. Called when the rank leaves.
    pub(crate) fn drain(&self, worker: &Worker) {
        for ring in self.all() {
            while ring.hold(worker, 0, false).is_none()
                && let Some(message) = ring.oldest()
            {
                let (peer, slot) = (message.bank.peer, message.bank.slot(message.index));
                let call = || format!("leave(): a message to rank {peer}, slot {slot}, is being taken");
                // If the peer closes a bank that this rank has closed, nobody reports that.
                let deadline = match message.bank.bank_state().is_open() {
                    true => Deadline::NEVER,
                    false => worker.deadline_after(POLL_INTERVAL),
                };
                let waited = worker.wait(&Condition::Event(Arc::new(message)), deadline, &call);
                if waited.is_err_and(|error| !error.is_timeout()) {
                    lock(&ring.state).drop_oldest(); // the peer or the job has ended, so nobody takes the message
                }
            }
        }
    }

    /// Forgets messages on these banks that were taken. Called before the banks' lines may become another pair's.
    pub(crate) fn forget_taken(&self, banks: &[Arc<SlotBank>]) {
        self.all().iter().for_each(|ring| ring.forget_taken(banks));
    }

    fn all(&self) -> Vec<Arc<Ring>> {
        self.narrow.all().into_iter().chain(self.wide.all()).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_stay_inside_the_ring_and_apart() {
        let at = GlobalAddress::new(Rank(0), 1 << 20);
        let ring = Arc::new(Ring { at, bytes: RING, state: Mutex::default() });
        for len in [49, 5000, 100, 1 << 20, 70_000, 4096, 4096].into_iter().cycle().take(200) {
            let held = ring.held(&mut lock(&ring.state), len);
            let span = held.span;
            let places: Vec<u64> =
                (0..span.chunking.chunks()).map(|chunk| span.place(chunk).offset()).collect();
            assert!(places.iter().all(|place| place - at.offset() + span.chunking.chunk <= RING));
            for near in places.windows(span.room() as usize) {
                let mut near = near.to_vec();
                near.sort_unstable();
                assert!(near.windows(2).all(|pair| pair[1] - pair[0] >= span.chunking.chunk));
            }
            let words = span.words();
            assert_eq!(RingSpan::of(words), span);
        }
        assert!(RingSpan::of([u64::MAX; 3]).room() > 0 && RingSpan::of([0; 3]).room() > 0);
    }
}
