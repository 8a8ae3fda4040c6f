//! Rings: memory of the job's, small enough to stay in cache, through which messages between memories that only
//! their owners reach go a chunk at a time, so that both processors copy at once.
//!
//! A ring lies at the sender. The sender copies a chunk in and tells the receiver how many there are; the receiver
//! copies it out and tells the sender how many it has taken. A message has the ring to itself from its first chunk
//! until its last was taken; its sender need not wait for that.
//!
//! Messages use a ring one behind the other, from where the last one ended. A ring that is larger than the second-level
//! cache is emptied into the third level before it comes round, which both processors share: written anew from there,
//! lines cost a third of what they cost out of the peer's own cache (docs/design/messages.md has the figures). So a
//! rank that stages much gets wide rings; one that stages little does without their memory.

use crate::protocol::pipelined::MatchedSlot;
use crate::protocol::ring_span::{Chunking, RingSpan};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::directory;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank};
use tasuki_core::engine::node_state::Stage;
use tasuki_core::engine::{Condition, Started, WaitEvent, Worker};
use tasuki_core::segment::GlobalAddress;

/// Bytes of a ring.
const RING: u64 = 256 << 10;
/// The longest message that a rank brings into a ring at once. Longer ones have one to themselves: while a message is
/// brought there at once, the rank's other threads may wait.
pub(crate) const FAST_PATH_MAX: u64 = RING / 4;
/// Bytes of a wide one.
const WIDE: u64 = 2 << 20;
/// Wide rings are made once so many bytes were staged.
const WIDE_AFTER: u64 = 4 << 20;
/// Rings of a rank, of either size: so many messages go through rings at a time, the others wait. Rings of messages
/// whose receive was withdrawn when they had gone do not count: nobody knows when they are taken.
const RINGS_MAX: usize = 4;
/// Where a ring begins in a bank of memory. Buffers of programs begin near the beginning of one; copies between places
/// that lie alike are slow (`os/copy.rs` in core).
const COLOUR: u64 = 2048;
/// How often to ask for what nobody tells.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A ring, taken by one message at a time.
#[derive(Debug)]
struct Ring {
    at: GlobalAddress,
    bytes: u64,
    state: Mutex<RingState>,
}

/// Never looked at across a call of the fabric: on some hosts another thread of the rank runs inside one.
#[derive(Debug, Default)]
struct RingState {
    /// Whether a message has it to itself.
    is_held: bool,
    /// Where the last message ended.
    next: u64,
    /// The message that lies in it, whose send is over.
    unconsumed: Option<Unconsumed>,
    /// The operation that asks whether anybody can take that.
    generation_query: Option<u64>,
}

/// A ring that a message has to itself until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldRing {
    ring: Arc<Ring>,
    /// Where the message lies in it: behind the last one.
    pub(crate) span: RingSpan,
    /// What the next message has to wait for.
    left: Option<Unconsumed>,
}

/// A message that lies in a ring, and of which its sender's program knows that it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Unconsumed {
    bank: Arc<SlotBank>,
    /// The bank's then. This rank may let go of the bank, and the message can be taken as long as the peer has not.
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

    /// A message takes the place of another, which most often came the same way: then nothing is counted.
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

    /// Whether it was taken, as far as the bank's lines tell; or nobody can take it any more, since both ranks have let
    /// go. Then the lines may be another pair's by now, and whatever they say is right.
    fn is_taken(&self) -> bool {
        self.bank.bank_state().generation() != self.generation
            || self.bank.taken(self.index, self.number, self.chunks) == self.chunks
    }

    /// Whether its receive was withdrawn when it had gone, and no other has been posted.
    fn is_recv_withdrawn(&self) -> bool {
        self.bank.bank_state().generation() == self.generation
            && self.bank.is_withdrawn(self.index, self.number)
    }

    /// Whether its peer has left, and takes nothing out of a ring any more.
    fn has_left(&self, worker: &Worker) -> bool {
        worker.node_state().rank_state(self.bank.peer).stage() >= Stage::Left
            && self.bank.peer != worker.rank()
    }

    /// Whether asking [`Unconsumed::is_over`] is worth it.
    fn may_be_over(&self) -> bool {
        self.is_taken() || !self.bank.bank_state().is_open()
    }

    /// The same where looking is no call of the fabric. False: it may have been taken.
    fn is_seen_taken(&self) -> bool {
        self.bank.is_directly_readable() && self.is_taken()
    }

    /// Whether nobody waits for it any more: it was taken, or nobody can take it. Of a bank that this rank has let go
    /// it asks the bank's entry, and has the answer some calls later: calls of the fabric that wait are impossible
    /// here. `asked` is the operation that asks. For the one thread that has the ring.
    fn is_over(&self, worker: &Worker, generation_query: &mut Option<u64>) -> bool {
        let answer = match *generation_query {
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
            Some(operation) => match worker.landed(operation) {
                None => return false,
                Some(answer) => answer,
            },
        };
        *generation_query = None;
        self.is_taken() || answer.is_ok_and(|word| directory::read_generation(word) != self.generation)
    }
}

impl WaitEvent for Unconsumed {
    fn happened(&self) -> bool {
        self.is_taken()
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        Some((self.bank.peer, Stage::Leaving)) // its program receives nothing any more
    }
}

impl HeldRing {
    /// The send is over; the ring is for others when that message was taken.
    pub(crate) fn leave(&mut self, message: Unconsumed) {
        self.left = Some(message);
    }
}

impl Drop for HeldRing {
    fn drop(&mut self) {
        let mut state = lock(&self.ring.state);
        if self.left.is_some() {
            state.unconsumed = self.left.take();
        }
        state.is_held = false;
    }
}

impl Ring {
    fn new(worker: &Worker, bytes: u64) -> Result<Arc<Ring>, Cause> {
        let offset = worker.registry().allocate_local(COLOUR + bytes);
        let offset = offset.map_err(|error: Error| error.cause().clone())?;
        let at = GlobalAddress::new(worker.rank(), offset + COLOUR);
        Ok(Arc::new(Ring { at, bytes, state: Mutex::default() }))
    }

    /// Takes it for a message of `len` bytes, if nobody has it and nothing lies in it.
    fn hold(self: &Arc<Ring>, worker: &Worker, len: u64) -> Option<HeldRing> {
        let (message, mut generation_query) = {
            let mut state = lock(&self.state);
            if state.is_held {
                return None;
            }
            if state.unconsumed.as_ref().is_none_or(Unconsumed::is_seen_taken) {
                return Some(self.held(&mut state, len));
            }
            state.is_held = true;
            (state.unconsumed.clone(), state.generation_query.take())
        };
        let is_over = message.is_none_or(|message| message.is_over(worker, &mut generation_query));
        let mut state = lock(&self.state);
        (state.is_held, state.generation_query) = (false, generation_query);
        is_over.then(|| self.held(&mut state, len))
    }

    /// Where the next message lies, of `len` bytes.
    fn span(&self, state: &RingState, len: u64) -> RingSpan {
        let chunking = Chunking::of(len);
        let start = state.next.next_multiple_of(chunking.chunk) % self.bytes;
        RingSpan { ring: self.at, bytes: self.bytes, start, chunking }
    }

    /// Has `fill` bring a whole message there, if nobody has it and nothing lies in it: under its lock, so `fill` makes
    /// no call of the fabric. None: it is not to be had. False: `fill` did nothing.
    #[inline]
    fn fill(&self, at: MatchedSlot<'_>, len: u64, fill: impl FnOnce(RingSpan) -> bool) -> Option<bool> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let is_free = state.unconsumed.as_ref().is_none_or(Unconsumed::is_seen_taken);
        if state.is_held || state.generation_query.is_some() || !is_free {
            return None;
        }
        let span = self.span(&state, len);
        let is_filled = fill(span);
        if is_filled {
            state.next = span.end();
            Unconsumed::put(&mut state.unconsumed, at, span.chunking.chunks());
        }
        Some(is_filled)
    }

    /// It is the message's of `len` bytes.
    fn held(self: &Arc<Ring>, state: &mut RingState, len: u64) -> HeldRing {
        let span = self.span(state, len);
        *state = RingState { is_held: true, next: span.end(), unconsumed: None, generation_query: None };
        HeldRing { ring: self.clone(), span, left: None }
    }

    /// What lies in it, where no message has it to itself.
    fn unconsumed(&self) -> Option<Option<Unconsumed>> {
        let state = lock(&self.state);
        (!state.is_held).then(|| state.unconsumed.clone())
    }

    /// Whether it may be had.
    fn is_free(&self) -> bool {
        self.unconsumed().is_some_and(|message| message.is_none_or(|message| message.may_be_over()))
    }

    /// Whether a message lies in it that is parked.
    fn is_recv_withdrawn(&self) -> bool {
        self.unconsumed().flatten().is_some_and(|message| message.is_recv_withdrawn())
    }

    /// Forgets a message on one of these banks that was taken.
    fn forget_taken(&self, banks: &[Arc<SlotBank>]) {
        let Some(message) = lock(&self.state).unconsumed.clone() else { return };
        if banks.iter().any(|bank| Arc::ptr_eq(bank, &message.bank)) && message.is_taken() {
            let mut state = lock(&self.state);
            let is_it = |other: &Unconsumed| {
                Arc::ptr_eq(&other.bank, &message.bank)
                    && (other.generation, other.index, other.number)
                        == (message.generation, message.index, message.number)
            };
            if !state.is_held
                && state.generation_query.is_none()
                && state.unconsumed.as_ref().is_some_and(is_it)
            {
                state.unconsumed = None;
            }
        }
    }
}

/// Rings of one size, made when first needed.
#[derive(Debug)]
struct RingsOfSize {
    bytes: u64,
    rings: [OnceLock<Arc<Ring>>; RINGS_MAX],
    /// Made while messages were parked in some of those.
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

    /// Whether another one may be made.
    fn may_grow(all: &[Arc<Ring>]) -> bool {
        all.iter().filter(|ring| !ring.is_recv_withdrawn()).count() < RINGS_MAX
    }

    /// Whether one may be had.
    fn has_room(&self) -> bool {
        let all = self.all();
        all.iter().any(|ring| ring.is_free()) || RingsOfSize::may_grow(&all)
    }

    /// One that nobody uses, or a new one; none if all are in use.
    fn take(&self, worker: &Worker, len: u64) -> Result<Option<HeldRing>, Cause> {
        if let Some(held) = self.first().find_map(|ring| ring.hold(worker, len)) {
            return Ok(Some(held));
        }
        if self.rings[RINGS_MAX - 1].get().is_some() {
            self.extra(worker, len)
        } else {
            self.make(worker, len)
        }
    }

    #[cold]
    fn make(&self, worker: &Worker, len: u64) -> Result<Option<HeldRing>, Cause> {
        let _growing = lock(&self.growing);
        let Some(place) = self.rings.iter().find(|place| place.get().is_none()) else { return Ok(None) };
        let ring = Ring::new(worker, self.bytes)?;
        let held = ring.held(&mut lock(&ring.state), len);
        let _ = place.set(ring); // nobody else sets one meanwhile
        Ok(Some(held))
    }

    /// One beside the first, if messages are parked in some.
    #[cold]
    fn extra(&self, worker: &Worker, len: u64) -> Result<Option<HeldRing>, Cause> {
        let all = self.all();
        if let Some(held) = all.iter().skip(RINGS_MAX).find_map(|ring| ring.hold(worker, len)) {
            return Ok(Some(held));
        }
        let may_grow = RingsOfSize::may_grow(&all);
        let _growing = lock(&self.growing); // not before: looking at lines may be a call of the fabric
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
    /// Bytes staged so far, about: two threads that add at once do no harm.
    staged: AtomicU64,
}

impl Default for Rings {
    fn default() -> Rings {
        Rings { narrow: RingsOfSize::of(RING), wide: RingsOfSize::of(WIDE), staged: AtomicU64::new(0) }
    }
}

impl Rings {
    /// A ring that nobody uses, for a message of `len` bytes; none if all are in use.
    pub(crate) fn take(&self, worker: &Worker, len: u64) -> Result<Option<HeldRing>, Cause> {
        let staged = self.staged.load(Ordering::Relaxed);
        let held = match self.sized(staged).take(worker, len) {
            Err(_) if staged >= WIDE_AFTER => self.narrow.take(worker, len)?, // no memory for wide ones
            held => held?,
        };
        if held.is_some() {
            self.staged.store(staged.saturating_add(len), Ordering::Relaxed);
        }
        Ok(held)
    }

    /// Has `fill` bring a whole message into one at once, without a call of the fabric. False: nothing was done.
    #[inline]
    pub(crate) fn fill(&self, at: MatchedSlot<'_>, len: u64, fill: impl Fn(RingSpan) -> bool) -> bool {
        let staged = self.staged.load(Ordering::Relaxed);
        let is_filled = self.sized(staged).first().find_map(|ring| ring.fill(at, len, &fill));
        if is_filled == Some(true) {
            self.staged.store(staged.saturating_add(len), Ordering::Relaxed);
        }
        is_filled == Some(true)
    }

    /// Whether a message may have one.
    pub(crate) fn have_room(&self) -> bool {
        self.sized(self.staged.load(Ordering::Relaxed)).has_room()
    }

    /// Those for a rank that has staged so many bytes.
    fn sized(&self, staged: u64) -> &RingsOfSize {
        if staged < WIDE_AFTER { &self.narrow } else { &self.wide }
    }

    /// Waits until nothing lies in them, or nobody will take it. For a rank that leaves.
    pub(crate) fn drain(&self, worker: &Worker) {
        for ring in self.all() {
            let Some(message) = lock(&ring.state).unconsumed.clone() else { continue };
            let (peer, slot) = (message.bank.peer, message.bank.slot(message.index));
            let call = || format!("leave(): a message to rank {peer}, slot {slot}, is being taken");
            let event = Arc::new(message);
            while ring.hold(worker, 0).is_none() {
                // Nobody tells when the peer lets go of a bank that this rank has let go.
                let limit = (!event.bank.bank_state().is_open()).then_some(POLL_INTERVAL);
                match worker.wait(&Condition::Event(event.clone()), limit, &call) {
                    Err(error) if error.is_timeout() => {}
                    _ => break, // it was taken; or the peer, or the job, has ended, and then nobody takes it
                }
            }
        }
    }

    /// Forgets messages on these banks that were taken: before the banks' lines may become another pair's.
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
