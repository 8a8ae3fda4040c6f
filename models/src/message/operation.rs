//! A message that did not end at once: what a waiting call moves on.

use super::page::{Block, IDLE, Page};
use super::place::Place;
use super::receiving::Receiving;
use super::ring::Rings;
use super::sending::Sending;
use super::words;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Event, Loan, Machine};

/// How far a step has come.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Something must happen elsewhere first.
    Waits,
    /// The message has ended.
    Ended(End),
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

/// One direction of a message under way.
#[derive(Debug)]
pub(crate) enum Way {
    Send(Sending),
    Receive(Receiving),
    /// The arrival of a short message, which the receiver then takes.
    Watch {
        number: u32,
    },
}

/// A message under way.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) page: Arc<Page>,
    pub(crate) block: Block,
    way: Mutex<Way>,
    /// An earlier message on the slot that has to go first.
    behind: Mutex<Option<Arc<Operation>>>,
    /// How many messages of the slot went into the spool before it, one behind the other.
    depth: u64,
    /// Bytes of the spool that it takes, if it lies there.
    spooled: Option<u64>,
    end: OnceLock<End>,
    waker: Mutex<Option<Waker>>,
    /// Nobody will ask how it ended.
    detached: AtomicBool,
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

    fn make(page: &Arc<Page>, block: Block, way: Way, behind: Option<Arc<Operation>>) -> Operation {
        let depth = behind.as_ref().map_or(0, |earlier| earlier.depth + 1);
        Operation {
            page: page.clone(),
            block,
            way: Mutex::new(way),
            behind: Mutex::new(behind),
            depth,
            spooled: None,
            end: OnceLock::new(),
            waker: Mutex::default(),
            detached: AtomicBool::new(false),
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
        self.spooled.is_some()
            || self.detached.load(Ordering::SeqCst) && matches!(&*lock(&self.way), Way::Send(_))
    }

    /// Moves it on as far as it goes. True when it has ended.
    pub(crate) fn step(&self, machine: &Machine, rings: &Rings) -> bool {
        if self.is_behind() {
            return false;
        }
        let mut way = lock(&self.way);
        let progress = match &mut *way {
            Way::Send(sending) => sending.step(machine, &self.page, self.block, rings),
            Way::Receive(receiving) => receiving.step(machine, &self.page, self.block),
            Way::Watch { number } if self.page.is_about(self.block, *number) => {
                Progress::Ended(End::Done(Done { len: 0, slot: self.page.slot(self.block) }))
            }
            Way::Watch { .. } => Progress::Waits,
        };
        drop(way);
        match progress {
            Progress::Waits => false,
            Progress::Ended(end) => {
                let _ = self.end.set(end); // nobody else sets it: one thread at a time steps
                if self.detached.load(Ordering::SeqCst) {
                    self.free_slot();
                }
                self.wake();
                true
            }
        }
    }

    /// Whether an earlier message is not over. One that is over is forgotten.
    fn is_behind(&self) -> bool {
        let mut behind = lock(&self.behind);
        if behind.as_ref().is_some_and(|earlier| earlier.end().is_some()) {
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
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.get()
    }

    /// Nobody will ask for it again: its slot is free when it has ended.
    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::SeqCst);
        if self.end().is_some() {
            self.free_slot();
        }
    }

    /// The slot's direction can be used again.
    pub(crate) fn free_slot(&self) {
        let state = self.page.state(self.block);
        match &*lock(&self.way) {
            Way::Send(_) => state.sending.store(IDLE, Ordering::Relaxed),
            Way::Receive(_) => state.receiving.store(IDLE, Ordering::Relaxed),
            Way::Watch { .. } => {}
        }
    }

    /// A receive is to be taken back, if its message is not on its way already.
    pub(crate) fn withdraw(&self) {
        if let Way::Receive(receiving) = &mut *lock(&self.way) {
            receiving.withdraw();
        }
    }

    /// Whether it is a send of which nobody knows yet.
    pub(crate) fn is_unmatched_send(&self) -> bool {
        matches!(&*lock(&self.way), Way::Send(sending) if sending.is_looking())
    }

    /// A copy of a message of which nobody knows yet.
    pub(crate) fn copied(&self) -> Result<Vec<u8>, Cause> {
        let from = match &*lock(&self.way) {
            Way::Send(sending) => sending.from().clone(),
            _ => return Err(Cause::Bug("a receive in the spool".into())),
        };
        let mut bytes = vec![0; from.len() as usize];
        from.read(&mut bytes).map(|()| bytes)
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
        if let Some(waker) = lock(&self.waker).take() {
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
        if self.end().is_some() || self.is_behind() {
            return false;
        }
        let Ok(way) = self.way.try_lock() else { return false };
        match &*way {
            Way::Send(sending) => sending.can_step(&self.page, self.block),
            Way::Receive(receiving) => receiving.can_step(&self.page, self.block),
            Way::Watch { number } => self.page.is_about(self.block, *number),
        }
    }
}

impl Event for Operation {
    fn happened(&self) -> bool {
        self.can_step() || self.end().is_some()
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        let promised = match &*lock(&self.way) {
            Way::Receive(receiving) => receiving.is_promised(&self.page, self.block),
            Way::Watch { number } => words::is_promised(self.page.promised(self.block), *number),
            Way::Send(_) => false,
        };
        Some((self.page.peer, if promised { Stage::Left } else { Stage::Leaving }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
