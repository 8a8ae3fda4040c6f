//! The receiver's side of a receive that is not short: its posting, and what happens until its message is there.
//!
//! A short receive does not need this: its message arrives in the slot's line.
//!
//! ```text
//! Describing --> Posting --> Posted --a message in the line, or in place--> ended
//!   ^                         |  ^--a chunk--> Fetching --+
//!   |                         +--withdraw----> Withdrawing --> withdrawn, or Posted: its message is being transferred
//! Searching --a kept message--> ended
//!   ^-- Withdrawing, if the receive was withdrawn for a kept message that another receive has taken
//! ```
//!
//! A receive of any slot that finds a late match (`late_match.rs`) withdraws its claim, too. If no sender has claimed
//! it, it continues as the receive of that message, in that message's slot. A receive that finds a kept message
//! (`kept.rs`) copies it. It searches before it is posted, so that the messages of a slot keep their order.
//!
//! This file has the states and the loop over them; `search.rs`, `arrival.rs` and `withdraw.rs` have the steps.

mod arrival;
mod search;
mod withdraw;

use crate::buffer::MessageBuffer;
use crate::protocol::kept::KeptMessage;
use crate::protocol::late_match::{LateMatchSearch, LateMatches};
use crate::protocol::outcome::{Done, Outcome};
use crate::protocol::ring_consumer::RingConsumer;
use crate::protocol::ring_span::RingSpan;
use crate::protocol::state_machine::{Awaits, StepResult};
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding::{self, CHUNKS_MAX, Data};
use std::sync::Arc;
use tasuki_core::base::{Cause, ValueKind};
use tasuki_core::engine::{Registration, RevocableBuffer, Worker};
use tasuki_core::fabric::Refused;
use tasuki_core::segment::GlobalAddress;

/// The progress of a receive.
#[derive(Debug)]
pub(crate) struct RecvProtocol {
    into: MessageBuffer,
    /// The type of its values.
    kind: ValueKind,
    /// Where the sender writes the message; null: the sender stages it in a ring.
    to: GlobalAddress,
    /// True if the sender must claim the receive.
    needs_claim: bool,
    /// The search for late matches and kept messages: of a receive of any slot, or while there may be a kept message.
    search: Option<Box<LateMatchSearch>>,
    /// The kept message that is being copied into job memory.
    kept: Option<KeptMessage>,
    /// The slot of the message that has claimed the receive, if the receive found that out when it was withdrawn.
    claimed_slot: Option<u32>,
    /// The registration that lets the sender write program memory. Kept until the receive is over.
    registered: Option<Registration>,
    consumer: RingConsumer,
    state: RecvState,
    /// True if the receive is to be withdrawn.
    withdraw_requested: bool,
    /// True if all parts of a split copy are taken.
    all_parts_taken: bool,
    /// Why the message cannot be received completely, although its sender knows that it is being received.
    failed: Option<Cause>,
    end: Option<Outcome>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecvState {
    /// The receive looks for a message that met an earlier receive.
    Searching,
    /// The description is written next, then the posting.
    Describing,
    Posting,
    Posted,
    /// The claim is being withdrawn; `expected` is its last known value.
    Withdrawing {
        operation: u64,
        expected: u64,
    },
    /// A chunk is being copied out of the ring.
    Fetching {
        operation: u64,
    },
    /// A short message is being copied into job memory.
    Storing {
        operation: u64,
        done: Done,
    },
    /// A kept message is being copied into job memory.
    StoringKept {
        operation: u64,
        done: Done,
    },
}

/// What follows a step. The type is small, and steps change the state in place. If a step returned a value that it has
/// just written in parts, the copy of the value would wait until all earlier stores have left the store queue, also the
/// store to the peer's line.
#[derive(Clone, Copy)]
enum RecvNext {
    Continue,
    Waits,
    Ended,
}

impl RecvProtocol {
    /// Makes the next receive on a slot. `to` is the address to which the sender can write; null if the sender cannot
    /// write to the buffer. `late_matches` belong to the context.
    pub(crate) fn new(
        (into, kind): (MessageBuffer, ValueKind),
        to: GlobalAddress,
        registered: Option<Registration>,
        bank: &SlotBank,
        index: SlotIndex,
        late_matches: &Arc<LateMatches>,
    ) -> RecvProtocol {
        // Two messages may compete for a receive of any slot. Only one sender at a time may write to a receive's
        // memory.
        let needs_claim = !to.is_null() || index == ANY;
        let slot = (index != ANY).then(|| bank.slot(index));
        let searches = slot.is_none_or(|slot| late_matches.kept.holds(bank.member, slot));
        let search = searches.then(|| Box::new(LateMatchSearch::new(late_matches, slot)));
        let state = if searches { RecvState::Searching } else { RecvState::Describing };
        let posted = RecvProtocol::posted(into, kind, RingConsumer::next(bank, index));
        RecvProtocol { to, needs_claim, search, registered, state, ..posted }
    }

    /// Makes a receive that was already posted for a staged message, and that has taken some of its chunks.
    pub(crate) fn posted(into: MessageBuffer, kind: ValueKind, consumer: RingConsumer) -> RecvProtocol {
        RecvProtocol {
            into,
            kind,
            to: GlobalAddress::NULL,
            needs_claim: false,
            search: None,
            kept: None,
            claimed_slot: None,
            registered: None,
            consumer,
            state: RecvState::Posted,
            withdraw_requested: false,
            all_parts_taken: false,
            failed: None,
            end: None,
        }
    }

    /// Returns the outcome of the receive, if it has ended.
    #[inline]
    pub(crate) fn end(&self) -> Option<&Outcome> {
        self.end.as_ref()
    }

    /// Returns the slot of the message that the receive gets; `None` if no message has met it yet, as far as this rank
    /// knows.
    pub(crate) fn sent_on(&self, bank: &SlotBank, index: SlotIndex) -> Option<u32> {
        if let Some(late_match) = self.redirected() {
            return Some(late_match.bank.slot(late_match.index));
        }
        match (index, self.state) {
            (ANY, RecvState::Searching | RecvState::Describing | RecvState::Posting) => None,
            (ANY, _) => match encoding::read_data(bank.data(index), self.consumer.number) {
                Data::Short { tag, .. } => Some(tag),
                Data::Staged { .. } => Some(bank.data_word(index, 2) as u32),
                Data::SplitCopy | Data::InPlace => Some(bank.data_word(index, 1) as u32),
                Data::None | Data::Unfit { .. } | Data::Failed => self.claimed_slot,
            },
            _ => Some(bank.slot(index)),
        }
    }

    /// Moves the receive to memory that it owns, with the bytes that have come, unless it owns its memory already.
    /// Returns that memory; `None` if the sender, or an operation in flight, may write to the memory it has now.
    pub(crate) fn own_buffer(&mut self, bank: &SlotBank, index: SlotIndex) -> Option<MessageBuffer> {
        match &self.into {
            MessageBuffer::OnArrival(_) => return Some(self.into.clone()),
            MessageBuffer::Unregistered(buffer) if buffer.owns_bytes() => return Some(self.into.clone()),
            MessageBuffer::Unregistered(_) | MessageBuffer::Strided(_) => {}
            MessageBuffer::Job(..) => return None,
        }
        let is_written = matches!(
            self.state,
            RecvState::Fetching { .. } | RecvState::Storing { .. } | RecvState::StoringKept { .. }
        );
        if !self.to.is_null() || is_written {
            return None;
        }
        let (bank, index) =
            self.redirected().map_or((bank, index), |late_match| (&*late_match.bank, late_match.index));
        let is_staged =
            matches!(encoding::read_data(bank.data(index), self.consumer.number), Data::Staged { .. });
        let len = match &self.end {
            Some(Outcome::Done(done)) => done.len,
            _ if is_staged => bank.data_word(index, 1),
            _ => u64::MAX,
        };
        let len = len.min(self.into.len());
        let owned = RevocableBuffer::zeroed(len as usize);
        self.into.unpack_staged(false).ok()?;
        self.into.enter().ok()?.copy_to(owned.enter().ok()?.view(), len as usize)?;
        self.into = MessageBuffer::Unregistered(owned);
        Some(self.into.clone())
    }

    /// Returns the buffer of the receive.
    pub(crate) fn into(&self) -> &MessageBuffer {
        &self.into
    }

    /// Returns the number of the receive's message.
    pub(crate) fn number(&self) -> u32 {
        self.consumer.number
    }

    /// Returns what the receive has waited for since its last step. A receive of any slot may also continue with a late
    /// match.
    pub(crate) fn awaits(&self) -> Awaits {
        let is_untouched = self.consumer.taken == 0 && !self.all_parts_taken && !self.withdraw_requested;
        match self.state {
            RecvState::Posted if is_untouched && self.search.is_none() && self.failed.is_none() => {
                Awaits::Data
            }
            _ => Awaits::Anything,
        }
    }

    /// Returns true if the next step of the receive does not depend on the sender: one of its operations is in flight,
    /// or it has found a late match.
    pub(crate) fn is_under_way(&self) -> bool {
        let has_late_match = || self.search.as_ref().is_some_and(|search| search.has_one());
        matches!(
            self.state,
            RecvState::Withdrawing { .. }
                | RecvState::Fetching { .. }
                | RecvState::Storing { .. }
                | RecvState::StoringKept { .. }
        ) || has_late_match()
    }

    /// Returns true if a step would make progress. `withdraw_requested`: true if the receive is to be withdrawn.
    pub(crate) fn can_step(&self, bank: &SlotBank, index: SlotIndex, withdraw_requested: bool) -> bool {
        let (bank, index) =
            self.redirected().map_or((bank, index), |late_match| (&late_match.bank, late_match.index));
        match self.state {
            RecvState::Searching => {
                withdraw_requested
                    || self.can_redirect(bank.member)
                    || !self.search.as_ref().is_some_and(|search| search.is_blocked(bank.member))
            }
            RecvState::Describing | RecvState::Posting => true,
            RecvState::Posted => match encoding::read_data(bank.data(index), self.consumer.number) {
                Data::None => self.withdraw_requested || withdraw_requested || self.can_redirect(bank.member),
                Data::Staged { .. } if self.failed.is_some() => true,
                Data::Staged { chunks } => {
                    chunks > self.consumer.taken || self.consumer.needs_ack(RingSpan::at(bank, index))
                }
                Data::SplitCopy => {
                    !self.all_parts_taken || self.failed.is_some() && self.consumer.acknowledged != CHUNKS_MAX
                }
                Data::Short { .. } | Data::InPlace | Data::Unfit { .. } | Data::Failed => true,
            },
            // The fabric reports the end of their operations.
            RecvState::Withdrawing { .. }
            | RecvState::Fetching { .. }
            | RecvState::Storing { .. }
            | RecvState::StoringKept { .. } => false,
        }
    }

    /// Steps the receive as far as possible.
    pub(crate) fn step(&mut self, worker: &Worker, bank: &SlotBank, index: SlotIndex) -> StepResult {
        let mut moved = false;
        loop {
            let redirected = self.redirected().map(|late_match| (late_match.bank.clone(), late_match.index));
            let (bank, index) = redirected.as_ref().map_or((bank, index), |(bank, index)| (bank, *index));
            let next = match self.state {
                RecvState::Searching | RecvState::Describing | RecvState::Posting
                    if self.withdraw_requested =>
                {
                    self.ended(Outcome::Withdrawn)
                }
                RecvState::Searching => self.search_before_posting(worker, bank, index),
                RecvState::Describing => self.describe(bank, index),
                RecvState::Posting => self.post(bank, index),
                RecvState::Posted => self.check_data(worker, bank, index),
                RecvState::Withdrawing { operation, expected } => match worker.take_outcome(operation) {
                    None => RecvNext::Waits,
                    Some(Err(cause)) => self.withdraw_failed(worker, bank, index, cause),
                    Some(Ok(found)) => self.after_withdraw(worker, bank, index, expected, found),
                },
                RecvState::Fetching { operation } => match worker.take_outcome(operation) {
                    None => RecvNext::Waits,
                    Some(Err(cause)) => self.fail_midway(cause),
                    Some(Ok(_)) => self.fetched(),
                },
                RecvState::Storing { operation, done } => match worker.take_outcome(operation) {
                    None => RecvNext::Waits,
                    Some(Err(cause)) => self.fail(cause),
                    Some(Ok(_)) => self.done(bank, index, done),
                },
                RecvState::StoringKept { operation, done } => match worker.take_outcome(operation) {
                    None => RecvNext::Waits,
                    Some(Err(cause)) => {
                        self.put_back_kept(bank.member, done.slot);
                        self.fail(cause)
                    }
                    Some(Ok(_)) => {
                        self.kept = None;
                        self.ended(Outcome::Done(done))
                    }
                },
            };
            match next {
                RecvNext::Continue => moved = true,
                RecvNext::Waits => return StepResult::Waits { moved },
                RecvNext::Ended => {
                    self.registered = None;
                    self.release_late_match(worker);
                    return StepResult::Ended;
                }
            }
        }
    }

    #[inline(always)]
    fn go_to(&mut self, state: RecvState) -> RecvNext {
        self.state = state;
        RecvNext::Continue
    }

    #[inline(always)]
    fn ended(&mut self, end: Outcome) -> RecvNext {
        self.end = Some(end);
        RecvNext::Ended
    }

    #[cold]
    fn fail(&mut self, cause: Cause) -> RecvNext {
        self.ended(Outcome::Failed(cause))
    }

    fn describe(&mut self, bank: &SlotBank, index: SlotIndex) -> RecvNext {
        let RingConsumer { number, version, .. } = self.consumer;
        let written = bank.describe(index, (number, version), (self.to, self.into.len(), self.kind));
        self.written_then(written, RecvState::Posting)
    }

    fn post(&mut self, bank: &SlotBank, index: SlotIndex) -> RecvNext {
        let RingConsumer { number, version, .. } = self.consumer;
        let word = match self.needs_claim {
            true => encoding::long_posting(number, version, self.kind),
            false => encoding::staged_posting(number, version, self.into.len(), self.kind),
        };
        let written = bank.write_posting(index, word);
        self.written_then(written, RecvState::Posted)
    }

    #[inline(always)]
    fn written_then(&mut self, written: Result<(), Refused>, state: RecvState) -> RecvNext {
        match written {
            Ok(()) => self.go_to(state),
            Err(Refused::Never(cause)) => self.fail(*cause),
            Err(Refused::Again | Refused::Relay) => RecvNext::Waits,
        }
    }
}
