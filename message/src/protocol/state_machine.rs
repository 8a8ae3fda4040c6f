//! One direction of a message: its steps. What threads that wait for it need is in `MessageOp`.

use crate::protocol::late_match::LateMatches;
use crate::protocol::outcome::{Done, Outcome};
use crate::protocol::receiver::RecvProtocol;
use crate::protocol::ring::Rings;
use crate::protocol::sender::SendProtocol;
use crate::slot::bank::{SlotBank, SlotIndex};
use std::sync::Arc;
use tasuki_core::base::ValueKind;
use tasuki_core::base::sync::{AtomicU8, Ordering};
use tasuki_core::engine::Worker;

/// The result of a step.
#[derive(Debug)]
pub(crate) enum StepResult {
    /// The message waits for the peer or the fabric. `moved`: true if this call has made progress before.
    Waits { moved: bool },
    /// The message has ended with the outcome [`ProtocolState::end`].
    Ended,
}

/// What an unfinished message waits for. The progress engine checks only that, to find out whether a step would do
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Awaits {
    /// Only a step can tell.
    Anything,
    /// The message is a receive, and waits for data about it.
    Data,
    /// The message is a send, and waits for a receive to be posted.
    Posting,
    /// The message is a send whose receive is posted, and waits for a ring.
    Ring,
}

/// [`Awaits`], for readers without the lock.
#[derive(Debug)]
pub(crate) struct AwaitsCell(AtomicU8);

impl AwaitsCell {
    pub(crate) fn new(awaits: Awaits) -> AwaitsCell {
        AwaitsCell(AtomicU8::new(awaits as u8))
    }

    pub(crate) fn set(&self, awaits: Awaits) {
        self.0.store(awaits as u8, Ordering::Release); // SYNC message-awaits
    }

    #[inline]
    pub(crate) fn get(&self) -> Awaits {
        let all = [Awaits::Data, Awaits::Posting, Awaits::Ring];
        let found = self.0.load(Ordering::Acquire); // SYNC message-awaits
        all.into_iter().find(|&one| one as u8 == found).unwrap_or(Awaits::Anything)
    }
}

/// One direction of an unfinished message.
#[derive(Debug)]
pub(crate) enum ProtocolState {
    Send(SendProtocol),
    Receive(RecvProtocol),
    /// The state waits for the arrival of a short message, which the receiver then takes.
    Watch {
        number: u32,
        end: Option<Outcome>,
    },
}

impl ProtocolState {
    /// Steps the message as far as possible.
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
            ProtocolState::Watch { end: Some(_), .. } => StepResult::Ended,
            ProtocolState::Watch { number, end } if bank.has_data(index, *number) => {
                *end = Some(watched(bank, index));
                StepResult::Ended
            }
            ProtocolState::Watch { .. } => StepResult::Waits { moved: false },
        }
    }

    /// Makes the state that waits for a short message.
    pub(crate) fn watch(number: u32) -> ProtocolState {
        ProtocolState::Watch { number, end: None }
    }

    /// Returns the outcome of the message, if it has ended.
    #[inline]
    pub(crate) fn end(&self) -> Option<&Outcome> {
        match self {
            ProtocolState::Send(sending) => sending.end(),
            ProtocolState::Receive(receiving) => receiving.end(),
            ProtocolState::Watch { end, .. } => end.as_ref(),
        }
    }

    /// Steps the message once, and again until `attempts` steps in a row have made no progress. No other thread may use
    /// the message meanwhile.
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

    /// Returns what the message has waited for since its last step.
    pub(crate) fn awaits(&self) -> Awaits {
        match self {
            ProtocolState::Send(sending) => sending.awaits(),
            ProtocolState::Receive(receiving) => receiving.awaits(),
            ProtocolState::Watch { .. } => Awaits::Data,
        }
    }

    /// Returns true if the message is a receive whose next step does not depend on its sender.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self, ProtocolState::Receive(receiving) if receiving.is_under_way())
    }

    /// Requests to withdraw a receive.
    pub(crate) fn withdraw(&mut self) {
        if let ProtocolState::Receive(receiving) = self {
            receiving.withdraw();
        }
    }

    /// Lets a receive that names its slot look for a kept message of that slot.
    pub(crate) fn look_for_kept(
        &mut self,
        bank: &SlotBank,
        index: SlotIndex,
        late_matches: &Arc<LateMatches>,
    ) {
        match self {
            ProtocolState::Receive(receiving) => receiving.look_for_kept(bank, index, late_matches),
            ProtocolState::Watch { end, .. } => *end = Some(watched(bank, index)),
            ProtocolState::Send(_) => {}
        }
    }
}

/// The outcome of watching for a short message: its receive can take it.
fn watched(bank: &SlotBank, index: SlotIndex) -> Outcome {
    Outcome::Done(Done { len: 0, slot: bank.slot(index), kind: ValueKind::BYTES, was_kept: false })
}
