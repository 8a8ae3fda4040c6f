//! One direction of a message, without what its waiters need: steps, and how it ended.

use super::page::{Block, Page};
use super::receiving::Receiving;
use super::ring::Rings;
use super::sending::Sending;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tasuki_core::base::Cause;
use tasuki_core::engine::Machine;

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
pub(crate) struct Ending {
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
    pub(crate) fn set(&self, end: &End) {
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
    pub(crate) fn is_set(&self) -> bool {
        self.kind.load(Ordering::Acquire) != 0 // SYNC message-end
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<End> {
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

    /// Whether it is a receive that needs nothing of its sender for its next step.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self, Way::Receive(receiving) if receiving.is_under_way())
    }

    /// A receive is to be taken back.
    pub(crate) fn withdraw(&mut self) {
        if let Way::Receive(receiving) = self {
            receiving.withdraw();
        }
    }
}
