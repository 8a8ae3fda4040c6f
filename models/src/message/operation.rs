//! A message that did not end at once: what a waiting call moves on.

use super::page::{Block, IDLE, Page};
use super::place::Place;
use super::receiving::Receiving;
use super::ring::Rings;
use super::sending::Sending;
use super::words;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::Waker;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Event, Loan, Machine};

/// How far a step has come.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Something must happen elsewhere first; whether anything was done before.
    Waits { moved: bool },
    /// The message has ended: [`Way::end`] says how.
    Ended,
}

/// How a message ended.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum End {
    Done(Done),
    Failed(Cause),
    /// A receive that was taken back before its message came.
    Withdrawn,
}

/// A message that went well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub(crate) len: u64,
    pub(crate) slot: u32,
}

/// How a message ended, for whoever looks without a lock. Set once, by who has the lock of its way; word by word, for
/// the reason that `receiving.rs` tells.
#[derive(Debug, Default)]
struct Ending {
    /// Whether it has, and how: the words belong to it.
    kind: AtomicU8,
    len: AtomicU64,
    slot: AtomicU32,
    cause: OnceLock<Cause>,
}

const DONE: u8 = 1;
const WITHDRAWN: u8 = 2;
const FAILED: u8 = 3;

impl Ending {
    #[inline]
    fn set(&self, end: &End) {
        let kind = match end {
            End::Done(done) => {
                self.len.store(done.len, Ordering::Relaxed);
                self.slot.store(done.slot, Ordering::Relaxed);
                DONE
            }
            End::Withdrawn => WITHDRAWN,
            End::Failed(cause) => {
                let _ = self.cause.set(cause.clone());
                FAILED
            }
        };
        self.kind.store(kind, Ordering::Release); // SYNC message-end
    }

    #[inline]
    fn is_set(&self) -> bool {
        self.kind.load(Ordering::Acquire) != 0 // SYNC message-end
    }

    #[inline]
    fn get(&self) -> Option<End> {
        match self.kind.load(Ordering::Acquire) {
            0 => None,
            DONE => {
                let (len, slot) = (self.len.load(Ordering::Relaxed), self.slot.load(Ordering::Relaxed));
                Some(End::Done(Done { len, slot }))
            }
            WITHDRAWN => Some(End::Withdrawn),
            _ => self.cause.get().cloned().map(End::Failed),
        }
    }
}

/// One direction of a message under way.
#[derive(Debug)]
pub(crate) enum Way {
    Send(Sending),
    Receive(Receiving),
    /// The arrival of a short message, which the receiver then takes.
    Watch {
        number: u32,
        end: Option<End>,
    },
}

impl Way {
    /// Moves it on as far as it goes.
    pub(crate) fn step(
        &mut self,
        machine: &Machine,
        page: &Arc<Page>,
        block: Block,
        rings: &Rings,
    ) -> Progress {
        match self {
            Way::Send(sending) => sending.step(machine, page, block, rings),
            Way::Receive(receiving) => receiving.step(machine, page, block),
            Way::Watch { number, end } if page.is_about(block, *number) => {
                *end = Some(End::Done(Done { len: 0, slot: page.slot(block) }));
                Progress::Ended
            }
            Way::Watch { .. } => Progress::Waits { moved: false },
        }
    }

    /// A short message that somebody awaits.
    pub(crate) fn watch(number: u32) -> Way {
        Way::Watch { number, end: None }
    }

    /// How it ended.
    #[inline]
    pub(crate) fn end(&self) -> Option<&End> {
        match self {
            Way::Send(sending) => sending.end(),
            Way::Receive(receiving) => receiving.end(),
            Way::Watch { end, .. } => end.as_ref(),
        }
    }

    /// Moves it on by this thread alone: one step, and further ones until `looks` in a row have done nothing.
    pub(crate) fn run(
        &mut self,
        machine: &Machine,
        (page, block): (&Arc<Page>, Block),
        rings: &Rings,
        looks: u32,
    ) -> Option<&End> {
        let mut left = looks;
        loop {
            match self.step(machine, page, block, rings) {
                Progress::Ended => return self.end(),
                Progress::Waits { moved: true } if looks > 0 => left = looks,
                Progress::Waits { .. } => left = left.checked_sub(1)?,
            }
            std::hint::spin_loop();
        }
    }

    /// A receive is to be taken back.
    fn withdraw(&mut self) {
        if let Way::Receive(receiving) = self {
            receiving.withdraw();
        }
    }
}

/// Which direction a message has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Send,
    Receive,
    Watch,
}

/// A message under way. A step may make calls of the fabric, which on some hosts let other threads of the rank run
/// before they return: so nobody waits for the lock of `way`, and what others must know stands beside it.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) page: Arc<Page>,
    pub(crate) block: Block,
    kind: Kind,
    way: Mutex<Way>,
    /// The message that a receive is for.
    number: AtomicU32,
    /// An earlier message on the slot that has to go first.
    behind: Mutex<Option<Arc<Operation>>>,
    /// How many messages of the slot went into the spool before it, one behind the other.
    depth: u64,
    /// Bytes of the spool that it takes, if it lies there.
    spooled: Option<u64>,
    ending: Ending,
    /// Whether the pump has it; changed under the lock of its queue.
    pub(crate) queued: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// A receive is to be taken back.
    unwanted: AtomicBool,
    /// Nobody will ask how it ended.
    detached: AtomicBool,
    /// Its slot can be used again, and may be in use, or closed: no business of this message any more.
    freed: AtomicBool,
}

impl Operation {
    pub(crate) fn new(
        page: &Arc<Page>,
        block: Block,
        way: Way,
        behind: Option<Arc<Operation>>,
    ) -> Arc<Operation> {
        Arc::new(Operation::make(page, block, way, behind))
    }

    /// A message that has ended already.
    pub(crate) fn ended(page: &Arc<Page>, block: Block, way: Way) -> Arc<Operation> {
        let ending = Ending::default();
        way.end().into_iter().for_each(|end| ending.set(end));
        let mut operation = Operation::make(page, block, way, None);
        operation.ending = ending;
        Arc::new(operation)
    }

    fn make(page: &Arc<Page>, block: Block, way: Way, behind: Option<Arc<Operation>>) -> Operation {
        let depth = behind.as_ref().map_or(0, |earlier| earlier.depth + 1);
        let (kind, number) = match &way {
            Way::Send(_) => (Kind::Send, 0),
            Way::Receive(receiving) => (Kind::Receive, receiving.number()),
            Way::Watch { number, .. } => (Kind::Watch, *number),
        };
        Operation {
            page: page.clone(),
            block,
            kind,
            way: Mutex::new(way),
            number: AtomicU32::new(number),
            behind: Mutex::new(behind),
            depth,
            spooled: None,
            ending: Ending::default(),
            queued: AtomicBool::new(false),
            waker: Mutex::default(),
            unwanted: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            freed: AtomicBool::new(false),
        }
    }

    /// A message that lies in the spool, for which nobody waits.
    pub(crate) fn spooled(
        page: &Arc<Page>,
        block: Block,
        bytes: Vec<u8>,
        behind: Option<Arc<Operation>>,
    ) -> Arc<Operation> {
        let len = bytes.len() as u64;
        let way = Way::Send(Sending::new(Place::Own(Loan::of(bytes))));
        let mut operation = Operation::make(page, block, way, behind);
        operation.spooled = Some(len);
        Arc::new(operation)
    }

    /// Bytes of the spool that it takes, if it lies there.
    pub(crate) fn spool_bytes(&self) -> Option<u64> {
        self.spooled
    }

    /// Whether it is a send of which nobody waits for the end.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.spooled.is_some() || self.detached.load(Ordering::SeqCst) && self.kind == Kind::Send
    }

    /// Moves it on as [`Way::run`] does. True if it has ended now. Nothing if another thread is at it.
    pub(crate) fn run(&self, machine: &Machine, rings: &Rings, looks: u32) -> bool {
        if self.is_over() || self.is_behind() {
            return false;
        }
        let Some(mut way) = try_lock(&self.way) else { return false };
        if self.is_over() {
            return false;
        }
        if self.unwanted.load(Ordering::SeqCst) && self.unwanted.swap(false, Ordering::SeqCst) {
            way.withdraw();
        }
        let ended = way.run(machine, (&self.page, self.block), rings, looks).is_some();
        if let Way::Receive(receiving) = &*way {
            self.number.store(receiving.number(), Ordering::Relaxed);
        }
        if !ended {
            return false;
        }
        way.end().into_iter().for_each(|end| self.ending.set(end));
        drop(way);
        if self.detached.load(Ordering::SeqCst) {
            self.free_slot();
        }
        self.wake();
        true
    }

    /// Whether an earlier message is not over. One that is over is forgotten.
    fn is_behind(&self) -> bool {
        if self.depth == 0 {
            return false;
        }
        let mut behind = lock(&self.behind);
        if behind.as_ref().is_some_and(|earlier| earlier.is_over()) {
            *behind = None;
        }
        behind.is_some()
    }

    /// Where it stands among the messages of its slot in the spool.
    pub(crate) fn depth(&self) -> u64 {
        self.depth
    }

    /// The earlier message that goes first.
    pub(crate) fn behind(&self) -> Option<Arc<Operation>> {
        lock(&self.behind).clone()
    }

    /// How it ended, if it has.
    #[inline]
    pub(crate) fn end(&self) -> Option<End> {
        self.ending.get()
    }

    /// Whether it has ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_set()
    }

    /// Nobody will ask for a send again: its slot is free when it has ended.
    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::SeqCst);
        if self.is_over() {
            self.free_slot();
        }
    }

    /// The slot's direction can be used again. Only once, by whoever comes first.
    pub(crate) fn free_slot(&self) {
        if self.freed.swap(true, Ordering::SeqCst) {
            return;
        }
        let state = self.page.state(self.block);
        match self.kind {
            Kind::Send => state.sending.store(IDLE, Ordering::Relaxed),
            Kind::Receive => state.receiving.store(IDLE, Ordering::Relaxed),
            Kind::Watch => {}
        }
    }

    /// A receive is to be taken back, if its message is not on its way already.
    pub(crate) fn withdraw(&self) {
        self.unwanted.store(true, Ordering::SeqCst);
    }

    /// Returns when no thread is taking a step of it. For one that nobody will begin to step.
    pub(crate) fn settle(&self, machine: &Machine) {
        while try_lock(&self.way).is_none() {
            machine.pause();
        }
    }

    /// Whether it is a send of which nobody knows yet. For one that nobody steps.
    pub(crate) fn is_unmatched_send(&self) -> bool {
        let way = try_lock(&self.way);
        way.is_some_and(|way| matches!(&*way, Way::Send(sending) if sending.is_looking()))
    }

    /// A copy of a message of which nobody knows yet. For one that nobody steps.
    pub(crate) fn copied(&self, machine: &Machine) -> Result<Vec<u8>, Cause> {
        let bug = || Cause::Bug("only a send that waits goes into the spool".into());
        let way = try_lock(&self.way).ok_or_else(bug)?;
        let Way::Send(sending) = &*way else { return Err(bug()) };
        let from = sending.from();
        let mut bytes = vec![0; from.len() as usize];
        match from {
            Place::Own(_) => from.enter()?.read(&mut bytes)?,
            Place::Job(at, _) => machine.get(*at, &mut bytes).map_err(|error| error.cause().clone())?,
        }
        Ok(bytes)
    }

    /// Whom to wake when it has ended, or cannot any more.
    pub(crate) fn set_waker(&self, waker: Option<&Waker>) {
        *lock(&self.waker) = waker.cloned();
    }

    /// Whether somebody is to be woken.
    pub(crate) fn is_watched(&self) -> bool {
        lock(&self.waker).is_some()
    }

    /// Wakes whoever asked for it.
    pub(crate) fn wake(&self) {
        let waker = lock(&self.waker).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the peer has gone and will not bring it on.
    pub(crate) fn is_hopeless(&self, machine: &Machine) -> bool {
        let gone = |(peer, stage): (Rank, Stage)| machine.board().seat(peer).stage() >= stage;
        self.hopeless_from().is_some_and(|from| from.0 != machine.rank() && gone(from)) && !self.happened()
    }

    /// Whether a step would bring it on. False while another thread is at it.
    pub(crate) fn can_step(&self) -> bool {
        if self.is_over() || self.is_behind() {
            return false;
        }
        let Some(way) = try_lock(&self.way) else { return false };
        match &*way {
            Way::Send(sending) => sending.can_step(&self.page, self.block),
            Way::Receive(receiving) => {
                let unwanted = self.unwanted.load(Ordering::SeqCst);
                receiving.can_step(&self.page, self.block, unwanted)
            }
            Way::Watch { number, .. } => self.page.is_about(self.block, *number),
        }
    }
}

impl Event for Operation {
    fn happened(&self) -> bool {
        self.can_step() || self.is_over()
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        let number = self.number.load(Ordering::Relaxed);
        // A sender that leaves waits until what it has begun was taken out of its ring.
        let will_come = || {
            words::is_promised(self.page.promised(self.block), number)
                || self.page.is_about(self.block, number)
        };
        let stage = if self.kind != Kind::Send && will_come() { Stage::Left } else { Stage::Leaving };
        Some((self.page.peer, stage))
    }
}

/// For locks that are held a moment, and never during a call of the fabric.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
