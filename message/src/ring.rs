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

use super::berth::{Berth, Cut};
use super::directory;
use super::page::{Block, Page};
use super::staging::Meeting;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Launched, Machine};
use tasuki_core::segment::GlobalAddress;

/// Bytes of a ring.
const RING: u64 = 256 << 10;
/// The longest message that a rank brings into a ring at once. Longer ones have one to themselves: while a message is
/// brought there at once, the rank's other threads may wait.
pub(super) const AT_ONCE: u64 = RING / 4;
/// Bytes of a wide one.
const WIDE: u64 = 2 << 20;
/// Wide rings are made once so many bytes were staged.
const WIDE_AFTER: u64 = 4 << 20;
/// Rings of a rank, of either size: so many messages go through rings at a time, the others wait. Rings of messages
/// whose receive was withdrawn when they had gone do not count: nobody knows when they are taken.
const RINGS_MAX: usize = 4;
/// Where a ring begins in a page of memory. Buffers of programs begin near the beginning of one; copies between places
/// that lie alike are slow (`os/copy.rs` in core).
const COLOUR: u64 = 2048;
/// How often to ask for what nobody tells.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// A ring, taken by one message at a time.
#[derive(Debug)]
struct Ring {
    at: GlobalAddress,
    bytes: u64,
    state: Mutex<State>,
}

/// Never looked at across a call of the fabric: on some hosts another thread of the rank runs inside one.
#[derive(Debug, Default)]
struct State {
    /// Whether a message has it to itself.
    is_held: bool,
    /// Where the last message ended.
    next: u64,
    /// The message that lies in it, whose send is over.
    untaken: Option<Untaken>,
    /// The operation that asks whether anybody can take that.
    asked: Option<u64>,
}

/// A ring that a message has to itself until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    ring: Arc<Ring>,
    /// Where the message lies in it: behind the last one.
    pub(crate) berth: Berth,
    /// What the next message has to wait for.
    left: Option<Untaken>,
}

/// A message that lies in a ring, and of which its sender's program knows that it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Untaken {
    page: Arc<Page>,
    /// The page's then. This rank may let go of the page, and the message can be taken as long as the peer has not.
    generation: u32,
    block: Block,
    number: u32,
    chunks: u32,
}

impl Untaken {
    pub(crate) fn new(page: &Arc<Page>, block: Block, number: u32, chunks: u32) -> Untaken {
        let generation = page.holding().generation();
        Untaken { page: page.clone(), generation, block, number, chunks }
    }

    /// A message takes the place of another, which most often came the same way: then nothing is counted.
    #[inline]
    fn put(place: &mut Option<Untaken>, at: Meeting<'_>, chunks: u32) {
        let Meeting { page, block, number, .. } = at;
        match place {
            Some(old) if Arc::ptr_eq(&old.page, page) => {
                (old.generation, old.block) = (page.holding().generation(), block);
                (old.number, old.chunks) = (number, chunks);
            }
            _ => *place = Some(Untaken::new(page, block, number, chunks)),
        }
    }

    /// Whether it was taken, as far as the page's lines tell; or nobody can take it any more, since both ranks have let
    /// go. Then the lines may be another pair's by now, and whatever they say is right.
    fn is_taken(&self) -> bool {
        self.page.holding().generation() != self.generation
            || self.page.taken(self.block, self.number, self.chunks) == self.chunks
    }

    /// Whether its receive was withdrawn when it had gone, and no other has been posted.
    fn is_parked(&self) -> bool {
        self.page.holding().generation() == self.generation && self.page.is_withdrawn(self.block, self.number)
    }

    /// Whether its peer has left, and takes nothing out of a ring any more.
    fn has_left(&self, machine: &Machine) -> bool {
        machine.board().seat(self.page.peer).stage() >= Stage::Left && self.page.peer != machine.rank()
    }

    /// Whether asking [`Untaken::is_over`] is worth it.
    fn may_be_over(&self) -> bool {
        self.is_taken() || !self.page.holding().is_open()
    }

    /// The same where looking is no call of the fabric. False: it may have been taken.
    fn is_seen_taken(&self) -> bool {
        self.page.is_in_reach() && self.is_taken()
    }

    /// Whether nobody waits for it any more: it was taken, or nobody can take it. Of a page that this rank has let go
    /// it asks the page's entry, and has the answer some calls later: calls of the fabric that wait are impossible
    /// here. `asked` is the operation that asks. For the one thread that has the ring.
    fn is_over(&self, machine: &Machine, asked: &mut Option<u64>) -> bool {
        let answer = match *asked {
            None if self.is_taken() || self.has_left(machine) => return true,
            None if self.page.holding().is_open() => return false,
            None => match directory::ask_generation(machine, self.page.peer, self.page.holding().entry()) {
                Ok(Launched::UnderWay(operation)) => {
                    *asked = Some(operation);
                    return false;
                }
                Ok(Launched::Done(word)) => Ok(word),
                Ok(Launched::Later) | Err(_) => return false,
            },
            Some(operation) => match machine.landed(operation) {
                None => return false,
                Some(answer) => answer,
            },
        };
        *asked = None;
        self.is_taken() || answer.is_ok_and(|word| directory::read_generation(word) != self.generation)
    }
}

impl Event for Untaken {
    fn happened(&self) -> bool {
        self.is_taken()
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        Some((self.page.peer, Stage::Leaving)) // its program receives nothing any more
    }
}

impl Held {
    /// The send is over; the ring is for others when that message was taken.
    pub(crate) fn leave(&mut self, message: Untaken) {
        self.left = Some(message);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = lock(&self.ring.state);
        if self.left.is_some() {
            state.untaken = self.left.take();
        }
        state.is_held = false;
    }
}

impl Ring {
    fn new(machine: &Machine, bytes: u64) -> Result<Arc<Ring>, Cause> {
        let offset = machine.registry().allocate_local(COLOUR + bytes);
        let offset = offset.map_err(|error: Error| error.cause().clone())?;
        let at = GlobalAddress::new(machine.rank(), offset + COLOUR);
        Ok(Arc::new(Ring { at, bytes, state: Mutex::default() }))
    }

    /// Takes it for a message of `len` bytes, if nobody has it and nothing lies in it.
    fn hold(self: &Arc<Ring>, machine: &Machine, len: u64) -> Option<Held> {
        let (message, mut asked) = {
            let mut state = lock(&self.state);
            if state.is_held {
                return None;
            }
            if state.untaken.as_ref().is_none_or(Untaken::is_seen_taken) {
                return Some(self.held(&mut state, len));
            }
            state.is_held = true;
            (state.untaken.clone(), state.asked.take())
        };
        let is_over = message.is_none_or(|message| message.is_over(machine, &mut asked));
        let mut state = lock(&self.state);
        (state.is_held, state.asked) = (false, asked);
        is_over.then(|| self.held(&mut state, len))
    }

    /// Where the next message lies, of `len` bytes.
    fn berth(&self, state: &State, len: u64) -> Berth {
        let cut = Cut::of(len);
        let start = state.next.next_multiple_of(cut.chunk) % self.bytes;
        Berth { ring: self.at, bytes: self.bytes, start, cut }
    }

    /// Has `fill` bring a whole message there, if nobody has it and nothing lies in it: under its lock, so `fill` makes
    /// no call of the fabric. None: it is not to be had. False: `fill` did nothing.
    #[inline]
    fn fill(&self, at: Meeting<'_>, len: u64, fill: impl FnOnce(Berth) -> bool) -> Option<bool> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let is_free = state.untaken.as_ref().is_none_or(Untaken::is_seen_taken);
        if state.is_held || state.asked.is_some() || !is_free {
            return None;
        }
        let berth = self.berth(&state, len);
        let is_filled = fill(berth);
        if is_filled {
            state.next = berth.end();
            Untaken::put(&mut state.untaken, at, berth.cut.chunks());
        }
        Some(is_filled)
    }

    /// It is the message's of `len` bytes.
    fn held(self: &Arc<Ring>, state: &mut State, len: u64) -> Held {
        let berth = self.berth(state, len);
        *state = State { is_held: true, next: berth.end(), untaken: None, asked: None };
        Held { ring: self.clone(), berth, left: None }
    }

    /// What lies in it, where no message has it to itself.
    fn untaken(&self) -> Option<Option<Untaken>> {
        let state = lock(&self.state);
        (!state.is_held).then(|| state.untaken.clone())
    }

    /// Whether it may be had.
    fn is_free(&self) -> bool {
        self.untaken().is_some_and(|message| message.is_none_or(|message| message.may_be_over()))
    }

    /// Whether a message lies in it that is parked.
    fn is_parked(&self) -> bool {
        self.untaken().flatten().is_some_and(|message| message.is_parked())
    }

    /// Forgets a message on one of these pages that was taken.
    fn forget_taken(&self, pages: &[Arc<Page>]) {
        let Some(message) = lock(&self.state).untaken.clone() else { return };
        if pages.iter().any(|page| Arc::ptr_eq(page, &message.page)) && message.is_taken() {
            let mut state = lock(&self.state);
            let is_it = |other: &Untaken| {
                Arc::ptr_eq(&other.page, &message.page)
                    && (other.generation, other.block, other.number)
                        == (message.generation, message.block, message.number)
            };
            if !state.is_held && state.asked.is_none() && state.untaken.as_ref().is_some_and(is_it) {
                state.untaken = None;
            }
        }
    }
}

/// Rings of one size, made when first needed.
#[derive(Debug)]
struct Sized {
    bytes: u64,
    rings: [OnceLock<Arc<Ring>>; RINGS_MAX],
    /// Made while messages were parked in some of those.
    further: Mutex<Vec<Arc<Ring>>>,
    making: Mutex<()>,
}

impl Sized {
    fn of(bytes: u64) -> Sized {
        Sized { bytes, rings: Default::default(), further: Mutex::default(), making: Mutex::default() }
    }

    fn first(&self) -> impl Iterator<Item = &Arc<Ring>> {
        self.rings.iter().map_while(OnceLock::get)
    }

    fn all(&self) -> Vec<Arc<Ring>> {
        let further = lock(&self.further);
        self.first().chain(further.iter()).cloned().collect()
    }

    /// Whether another one may be made.
    fn may_grow(all: &[Arc<Ring>]) -> bool {
        all.iter().filter(|ring| !ring.is_parked()).count() < RINGS_MAX
    }

    /// Whether one may be had.
    fn has_room(&self) -> bool {
        let all = self.all();
        all.iter().any(|ring| ring.is_free()) || Sized::may_grow(&all)
    }

    /// One that nobody uses, or a new one; none if all are in use.
    fn take(&self, machine: &Machine, len: u64) -> Result<Option<Held>, Cause> {
        if let Some(held) = self.first().find_map(|ring| ring.hold(machine, len)) {
            return Ok(Some(held));
        }
        if self.rings[RINGS_MAX - 1].get().is_some() {
            self.further(machine, len)
        } else {
            self.make(machine, len)
        }
    }

    #[cold]
    fn make(&self, machine: &Machine, len: u64) -> Result<Option<Held>, Cause> {
        let _making = lock(&self.making);
        let Some(place) = self.rings.iter().find(|place| place.get().is_none()) else { return Ok(None) };
        let ring = Ring::new(machine, self.bytes)?;
        let held = ring.held(&mut lock(&ring.state), len);
        let _ = place.set(ring); // nobody else sets one meanwhile
        Ok(Some(held))
    }

    /// One beside the first, if messages are parked in some.
    #[cold]
    fn further(&self, machine: &Machine, len: u64) -> Result<Option<Held>, Cause> {
        let all = self.all();
        if let Some(held) = all.iter().skip(RINGS_MAX).find_map(|ring| ring.hold(machine, len)) {
            return Ok(Some(held));
        }
        let may_grow = Sized::may_grow(&all);
        let _making = lock(&self.making); // not before: looking at lines may be a call of the fabric
        if !may_grow || self.all().len() != all.len() {
            return Ok(None);
        }
        let ring = Ring::new(machine, RING)?;
        let held = ring.held(&mut lock(&ring.state), len);
        lock(&self.further).push(ring);
        Ok(Some(held))
    }
}

/// The rings of a rank.
#[derive(Debug)]
pub(crate) struct Rings {
    narrow: Sized,
    wide: Sized,
    /// Bytes staged so far, about: two threads that add at once do no harm.
    staged: AtomicU64,
}

impl Default for Rings {
    fn default() -> Rings {
        Rings { narrow: Sized::of(RING), wide: Sized::of(WIDE), staged: AtomicU64::new(0) }
    }
}

impl Rings {
    /// A ring that nobody uses, for a message of `len` bytes; none if all are in use.
    pub(crate) fn take(&self, machine: &Machine, len: u64) -> Result<Option<Held>, Cause> {
        let staged = self.staged.load(Ordering::Relaxed);
        let held = match self.sized(staged).take(machine, len) {
            Err(_) if staged >= WIDE_AFTER => self.narrow.take(machine, len)?, // no memory for wide ones
            held => held?,
        };
        if held.is_some() {
            self.staged.store(staged.saturating_add(len), Ordering::Relaxed);
        }
        Ok(held)
    }

    /// Has `fill` bring a whole message into one at once, without a call of the fabric. False: nothing was done.
    #[inline]
    pub(crate) fn fill(&self, at: Meeting<'_>, len: u64, fill: impl Fn(Berth) -> bool) -> bool {
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
    fn sized(&self, staged: u64) -> &Sized {
        if staged < WIDE_AFTER { &self.narrow } else { &self.wide }
    }

    /// Waits until nothing lies in them, or nobody will take it. For a rank that leaves.
    pub(crate) fn drain(&self, machine: &Machine) {
        for ring in self.all() {
            let Some(message) = lock(&ring.state).untaken.clone() else { continue };
            let (peer, slot) = (message.page.peer, message.page.slot(message.block));
            let call = || format!("leave(): a message to rank {peer}, slot {slot}, is being taken");
            let event = Arc::new(message);
            while ring.hold(machine, 0).is_none() {
                // Nobody tells when the peer lets go of a page that this rank has let go.
                let limit = (!event.page.holding().is_open()).then_some(LOOK_AGAIN);
                match machine.wait(&Condition::Event(event.clone()), limit, &call) {
                    Err(error) if error.is_timeout() => {}
                    _ => break, // it was taken; or the peer, or the job, has ended, and then nobody takes it
                }
            }
        }
    }

    /// Forgets messages on these pages that were taken: before the pages' lines may become another pair's.
    pub(crate) fn forget_taken(&self, pages: &[Arc<Page>]) {
        self.all().iter().for_each(|ring| ring.forget_taken(pages));
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
            let berth = held.berth;
            let places: Vec<u64> = (0..berth.cut.chunks()).map(|chunk| berth.place(chunk).offset()).collect();
            assert!(places.iter().all(|place| place - at.offset() + berth.cut.chunk <= RING));
            for near in places.windows(berth.room() as usize) {
                let mut near = near.to_vec();
                near.sort_unstable();
                assert!(near.windows(2).all(|pair| pair[1] - pair[0] >= berth.cut.chunk));
            }
            let told = berth.words();
            assert_eq!(Berth::of(told), berth);
        }
        assert!(Berth::of([u64::MAX; 3]).room() > 0 && Berth::of([0; 3]).room() > 0);
    }
}
