//! One direction of a message, without what its waiters need: steps, and how it ended.

use crate::protocol::receiver::RecvProtocol;
use crate::protocol::ring::Rings;
use crate::protocol::sender::SendProtocol;
use crate::slot::bank::{SlotBank, SlotIndex};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tasuki_core::base::Cause;
use tasuki_core::engine::Worker;

/// How far a step has come.
#[derive(Debug)]
pub(crate) enum StepResult {
    /// Something must happen elsewhere first; whether anything was done before.
    Waits { moved: bool },
    /// The message has ended: [`ProtocolState::end`] says how.
    Ended,
}

/// How a message ended.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Outcome {
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
/// the reason that `receiver.rs` tells.
#[derive(Debug, Default)]
pub(crate) struct OutcomeCell {
    /// Whether it has, and how: the words belong to it.
    kind: AtomicU8,
    len: AtomicU64,
    slot: AtomicU32,
    cause: OnceLock<Cause>,
}

const DONE: u8 = 1;
const WITHDRAWN: u8 = 2;
const FAILED: u8 = 3;

impl OutcomeCell {
    #[inline]
    pub(crate) fn set(&self, end: &Outcome) {
        let kind = match end {
            Outcome::Done(done) => {
                self.len.store(done.len, Ordering::Relaxed);
                self.slot.store(done.slot, Ordering::Relaxed);
                DONE
            }
            Outcome::Withdrawn => WITHDRAWN,
            Outcome::Failed(cause) => {
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
    pub(crate) fn get(&self) -> Option<Outcome> {
        match self.kind.load(Ordering::Acquire) {
            0 => None,
            DONE => {
                let (len, slot) = (self.len.load(Ordering::Relaxed), self.slot.load(Ordering::Relaxed));
                Some(Outcome::Done(Done { len, slot }))
            }
            WITHDRAWN => Some(Outcome::Withdrawn),
            _ => self.cause.get().cloned().map(Outcome::Failed),
        }
    }
}

/// One direction of a message under way.
#[derive(Debug)]
pub(crate) enum ProtocolState {
    Send(SendProtocol),
    Receive(RecvProtocol),
    /// The arrival of a short message, which the receiver then takes.
    Watch {
        number: u32,
        end: Option<Outcome>,
    },
}

impl ProtocolState {
    /// Moves it on as far as it goes.
    pub(crate) fn step(
        &mut self,
        worker: &Worker,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        rings: &Rings,
    ) -> StepResult {
        match self {
            ProtocolState::Send(sending) => sending.step(worker, bank, index, rings),
            ProtocolState::Receive(receiving) => receiving.step(worker, bank, index),
            ProtocolState::Watch { number, end } if bank.has_data(index, *number) => {
                *end = Some(Outcome::Done(Done { len: 0, slot: bank.slot(index) }));
                StepResult::Ended
            }
            ProtocolState::Watch { .. } => StepResult::Waits { moved: false },
        }
    }

    /// A short message that somebody awaits.
    pub(crate) fn watch(number: u32) -> ProtocolState {
        ProtocolState::Watch { number, end: None }
    }

    /// How it ended.
    #[inline]
    pub(crate) fn end(&self) -> Option<&Outcome> {
        match self {
            ProtocolState::Send(sending) => sending.end(),
            ProtocolState::Receive(receiving) => receiving.end(),
            ProtocolState::Watch { end, .. } => end.as_ref(),
        }
    }

    /// Moves it on by this thread alone: one step, and further ones until `looks` in a row have done nothing.
    pub(crate) fn run(
        &mut self,
        worker: &Worker,
        (bank, index): (&Arc<SlotBank>, SlotIndex),
        rings: &Rings,
        attempts: u32,
    ) -> Option<&Outcome> {
        let mut left = attempts;
        loop {
            match self.step(worker, bank, index, rings) {
                StepResult::Ended => return self.end(),
                StepResult::Waits { moved: true } if attempts > 0 => left = attempts,
                StepResult::Waits { .. } => left = left.checked_sub(1)?,
            }
            std::hint::spin_loop();
        }
    }

    /// Whether it is a receive that needs nothing of its sender for its next step.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self, ProtocolState::Receive(receiving) if receiving.is_under_way())
    }

    /// A receive is to be taken back.
    pub(crate) fn withdraw(&mut self) {
        if let ProtocolState::Receive(receiving) = self {
            receiving.withdraw();
        }
    }
}
