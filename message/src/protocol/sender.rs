//! The sender's side of a message that did not complete at once.
//!
//! ```text
//! Looking --a short message, or one that does not fit-------------------> Notifying --> ended
//!  |   ^  \--a staged receive, which is usual-------> PipelinedSend, chunk by chunk --> ended
//!  v   | the receiver was quicker and has withdrawn it
//! Claiming --> Claimed --the posting has an address--> Putting -----------> Notifying
//!                   |      or, copied by both ranks -> SplitCopy ---------> Notifying
//!                   +----it has none, as a receive of any slot--> PipelinedSend
//!                   +----or blocks are sent to an address that is not mapped --> PipelinedSend
//! ```
//!
//! A message that fails before it has claimed a receive leaves no trace. One that fails later is reported to its
//! receiver as failed, and counts as a message of the slot.
//!
//! A receive on the message's own slot is preferred to one of any slot. The latter is always claimed, since two
//! messages may compete for it.

use crate::buffer::MessageBuffer;
use crate::protocol::fit::{misfit, type_mismatch};
use crate::protocol::outcome::{Done, Outcome};
use crate::protocol::pipelined::{FillResult, MatchedSlot, PipelinedSend};
use crate::protocol::ring::Rings;
use crate::protocol::split_copy::SplitCopy;
use crate::protocol::state_machine::{Awaits, StepResult};
use crate::slot::bank::{ANY, SlotBank, SlotIndex, pack};
use crate::slot::encoding::{self, Claim, Posting, SHORT_MAX};
use std::sync::Arc;
use tasuki_core::base::sync::Ordering::Relaxed;
use tasuki_core::base::{Cause, ValueKind};
use tasuki_core::engine::{CachePolicy, Started, Worker};
use tasuki_core::fabric::{Atomic, AtomicKind, Refused, SLOT_PAYLOAD, Width};
use tasuki_core::segment::GlobalAddress;

/// The progress of a send.
#[derive(Debug)]
pub(crate) struct SendProtocol {
    from: MessageBuffer,
    /// The type of its values.
    kind: ValueKind,
    /// True if the message meets a receive of any slot, at the pair's index for such receives.
    any: bool,
    /// True if the receive is posted, but no ring was free.
    lacks_ring: bool,
    /// Its number in the order of the pair's buffered messages, if it is one.
    buffered: Option<u64>,
    state: SendState,
    end: Option<Outcome>,
}

#[derive(Debug)]
enum SendState {
    Looking,
    Claiming {
        receive: Receive,
        operation: u64,
    },
    Claimed {
        receive: Receive,
    },
    Putting {
        operation: u64,
    },
    PipelinedSend(PipelinedSend),
    SplitCopy(SplitCopy),
    Notifying(SendNotice),
    /// The message has ended. The program may read the outcome later; the ring is free for other messages.
    Over,
}

/// A receive that was posted for a long message.
#[derive(Clone, Copy, Debug)]
struct Receive {
    version: u32,
    to: GlobalAddress,
    room: u64,
    kind: ValueKind,
}

impl Receive {
    /// Returns true if a message of that type and length goes through a ring.
    fn is_staged(&self, is_any: bool, message: (ValueKind, u64)) -> bool {
        self.to.is_null() && !self.takes_in_line(is_any, message) && message.1 <= self.room
    }

    /// Returns true if a message of that type and length goes into the slot's line. In the line of receives of any slot
    /// a short message has no room for its type. So it goes another way if the types are not the same.
    fn takes_in_line(&self, is_any: bool, (kind, len): (ValueKind, u64)) -> bool {
        len <= SHORT_MAX as u64 && (!is_any || kind == self.kind || len == 0)
    }
}

/// The last word and payload to write to the receiver. Then the message has ended.
#[derive(Debug)]
struct SendNotice {
    word: u64,
    payload: [u64; SLOT_PAYLOAD],
    used: usize,
    failed: Option<Cause>,
}

enum SendNext {
    State(SendState),
    Waits,
    /// The message waits, and this step has made progress before.
    Moved,
    /// The message has ended, and the receiver knows the outcome.
    Ended(Option<Cause>),
    /// The message cannot continue.
    Failed(Cause),
}

impl From<Cause> for SendNext {
    fn from(cause: Cause) -> SendNext {
        SendNext::Failed(cause)
    }
}

impl SendProtocol {
    pub(crate) fn new(from: MessageBuffer, kind: ValueKind) -> SendProtocol {
        let state = SendState::Looking;
        SendProtocol { from, kind, any: false, lacks_ring: false, buffered: None, state, end: None }
    }

    /// Makes it a message in the send buffer, with that number in the order of its pair.
    pub(crate) fn buffered(self, number: u64) -> SendProtocol {
        SendProtocol { buffered: Some(number), ..self }
    }

    /// Returns the outcome of the message, if it has ended.
    pub(crate) fn end(&self) -> Option<&Outcome> {
        self.end.as_ref()
    }

    /// Returns true if the message has not met a receive.
    pub(crate) fn is_unmatched(&self) -> bool {
        matches!(self.state, SendState::Looking)
    }

    /// Returns true if it is not known yet whether the message has met a receive.
    pub(crate) fn is_claiming(&self) -> bool {
        matches!(self.state, SendState::Claiming { .. })
    }

    /// Returns what the message has waited for since its last step.
    pub(crate) fn awaits(&self) -> Awaits {
        match self.state {
            SendState::Looking if self.lacks_ring => Awaits::Ring,
            SendState::Looking => Awaits::Posting,
            _ => Awaits::Anything,
        }
    }

    /// Returns the buffer, so that an unmatched message can be copied.
    pub(crate) fn from(&self) -> &MessageBuffer {
        &self.from
    }

    /// Returns true if no step of this rank would make progress, and none of its operations is in flight.
    pub(crate) fn is_stuck(&self, bank: &Arc<SlotBank>, index: SlotIndex, rings: &Rings) -> bool {
        let is_under_way = match &self.state {
            SendState::Claiming { .. } | SendState::Putting { .. } => true,
            SendState::PipelinedSend(pipelined) => pipelined.is_copying(),
            _ => false,
        };
        !is_under_way && !self.can_step(bank, index, rings)
    }

    /// Returns true if a step would make progress.
    pub(crate) fn can_step(&self, bank: &Arc<SlotBank>, index: SlotIndex, rings: &Rings) -> bool {
        match &self.state {
            SendState::Looking => match find(bank, index, (self.kind, self.from.len())) {
                Found::Staged => rings.have_room(self.from.len()),
                Found::Nothing => self.any_posted(bank).is_some(),
                _ => true,
            },
            SendState::PipelinedSend(pipelined) => {
                let (at, matched_index) = self.matched_slot(bank, index);
                pipelined.can_step(at.taken(
                    matched_index,
                    at.next_number(matched_index),
                    pipelined.span.chunking.chunks(),
                ))
            }
            SendState::SplitCopy(split) => {
                let (at, matched_index) = self.matched_slot(bank, index);
                split.can_step(at, matched_index, at.next_number(matched_index))
            }
            SendState::Claimed { receive } => {
                let message = (self.kind, self.from.len());
                let is_staged = receive.is_staged(self.any, message) || self.from.is_strided();
                !is_staged || rings.have_room(self.from.len())
            }
            SendState::Notifying { .. } => true,
            // The fabric reports the end of their operations.
            SendState::Claiming { .. } | SendState::Putting { .. } | SendState::Over => false,
        }
    }

    /// Returns where the message meets its receive: at its own slot, or at the index for receives of any slot.
    fn matched_slot<'p>(&self, bank: &'p Arc<SlotBank>, index: SlotIndex) -> (&'p Arc<SlotBank>, SlotIndex) {
        if self.any { (bank.first_bank(), ANY) } else { (bank, index) }
    }

    /// Steps the message as far as possible.
    pub(crate) fn step(
        &mut self,
        worker: &Worker,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        rings: &Rings,
    ) -> StepResult {
        let slot = bank.slot(index);
        let mut moved = false;
        loop {
            let (matched_bank, matched_index) = self.matched_slot(bank, index);
            let number = matched_bank.next_number(matched_index);
            let at = MatchedSlot { bank: matched_bank, index: matched_index, number, slot, kind: self.kind };
            let next = match &self.state {
                SendState::Looking => self.find_receive(worker, bank, index, rings),
                SendState::Claiming { receive, operation } => {
                    let (receive, operation) = (*receive, *operation);
                    when_finished(worker, operation, |found| after_claim(number, receive, found))
                }
                SendState::Claimed { receive } => self.start_transfer(worker, at, rings, *receive),
                SendState::Putting { operation } => when_finished(worker, *operation, |_| self.in_place(at)),
                SendState::PipelinedSend(_) => self.fill(worker, at),
                SendState::SplitCopy(_) => self.copy_parts(worker, at),
                SendState::Notifying(notice) => write_notice(matched_bank, matched_index, notice),
                SendState::Over => SendNext::Waits,
            };
            match next {
                SendNext::State(state) => {
                    moved |= !matches!(state, SendState::Looking);
                    self.any &= !matches!(state, SendState::Looking);
                    self.state = state;
                }
                SendNext::Waits => return StepResult::Waits { moved },
                SendNext::Moved => return StepResult::Waits { moved: true },
                SendNext::Failed(cause) if self.is_matched() && !is_reported_to_receiver(&cause) => {
                    self.state = SendState::Notifying(failed(number, cause))
                }
                SendNext::Failed(cause) => return self.end_with(Outcome::Failed(cause)),
                SendNext::Ended(failed) => {
                    matched_bank.state(matched_index).sent.store(number, Relaxed);
                    let done = Done { len: self.from.len(), slot, kind: self.kind, was_kept: false };
                    return self.end_with(failed.map_or(Outcome::Done(done), Outcome::Failed));
                }
            }
        }
    }

    /// Returns true if a receive waits for this message and for no other.
    fn is_matched(&self) -> bool {
        !matches!(self.state, SendState::Looking | SendState::Claiming { .. })
    }

    fn end_with(&mut self, end: Outcome) -> StepResult {
        self.state = SendState::Over;
        self.end = Some(end);
        StepResult::Ended
    }

    /// Looks for a posted receive, first on the message's own slot.
    fn find_receive(
        &mut self,
        worker: &Worker,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        rings: &Rings,
    ) -> SendNext {
        let number = bank.next_number(index);
        self.lacks_ring = false;
        match find(bank, index, (self.kind, self.from.len())) {
            Found::Short => return self.short(number, self.kind.bits()),
            Found::Unfit { version, cause } => return self.unfit(number, version, cause),
            Found::Staged => {
                let next = self.begin_pipelined_send(worker, rings);
                self.lacks_ring = matches!(next, SendNext::Waits);
                return next;
            }
            Found::Long { version } => {
                return claim(worker, bank, (index, bank.slot(index)), number, version);
            }
            Found::Nothing => {}
        }
        let Some(version) = self.any_posted(bank) else { return SendNext::Waits };
        let place = (ANY, bank.slot(index));
        let next = claim(worker, bank.first_bank(), place, bank.first_bank().next_number(ANY), version);
        self.any = matches!(next, SendNext::State(_));
        next
    }

    /// Returns the version of a posted receive of any slot that no message has claimed, unless an older message in the
    /// send buffer has to take it.
    fn any_posted(&self, bank: &Arc<SlotBank>) -> Option<u32> {
        let (first_bank, number) = (bank.first_bank(), bank.first_bank().next_number(ANY));
        match encoding::read_posting(first_bank.posting(ANY), number) {
            Posting::Long { version, .. } if posted(first_bank, ANY, number, version) => {
                let (order, pair) = bank.buffered_order();
                order.is_first(pair, self.buffered).then_some(version)
            }
            _ => None,
        }
    }

    /// Prepares a short message for the receiver's line. `tag`: [`encoding::Data::Short`].
    fn short(&self, number: u32, tag: u32) -> SendNext {
        let mut bytes = [0; SHORT_MAX];
        let bytes = &mut bytes[..self.from.len() as usize];
        if let Err(cause) = self.from.enter().and_then(|from| from.read(bytes)) {
            return cause.into();
        }
        let word = encoding::short_data(number, tag, bytes.len());
        let used = bytes.len().div_ceil(8);
        SendNext::State(SendState::Notifying(SendNotice { word, payload: pack(bytes), used, failed: None }))
    }

    /// Starts to transfer the bytes. The receive is claimed.
    fn start_transfer(
        &self,
        worker: &Worker,
        at: MatchedSlot<'_>,
        rings: &Rings,
        receive: Receive,
    ) -> SendNext {
        let MatchedSlot { bank, number, slot, .. } = at;
        let Receive { version, to, room, kind } = receive;
        let len = self.from.len();
        if let Some(cause) = misfit((self.kind, len), (kind, room)) {
            return self.unfit(number, version, cause);
        }
        if receive.takes_in_line(self.any, (self.kind, len)) {
            return self.short(number, if self.any { slot } else { self.kind.bits() });
        }
        // Where blocks cannot be packed in place, the ring is the staging memory.
        if to.is_null() || self.from.is_strided() && !worker.can_map(to, len) {
            return self.begin_pipelined_send(worker, rings);
        }
        if let Some(split) = SplitCopy::of(worker, bank, &self.from, to) {
            return SendNext::State(SendState::SplitCopy(split));
        }
        match self
            .from
            .enter()
            .and_then(|from| from.start_copy_out(worker, (0, len), to, CachePolicy::Cached))
        {
            Ok(Started::Done(_)) => self.in_place(at),
            Ok(Started::InFlight(operation)) => SendNext::State(SendState::Putting { operation }),
            Ok(Started::Later) => SendNext::Waits,
            Err(cause) => cause.into(),
        }
    }

    /// Begins to stage the bytes in a ring.
    fn begin_pipelined_send(&self, worker: &Worker, rings: &Rings) -> SendNext {
        match rings.take(worker, self.from.len()) {
            Ok(Some(ring)) => SendNext::State(SendState::PipelinedSend(PipelinedSend::new(ring))),
            Ok(None) => SendNext::Waits,
            Err(cause) => cause.into(),
        }
    }

    fn in_place(&self, at: MatchedSlot<'_>) -> SendNext {
        let payload = padded([self.from.len(), at.slot_and_kind(), 0]);
        let word = encoding::in_place_data(at.number);
        SendNext::State(SendState::Notifying(SendNotice { word, payload, used: 2, failed: None }))
    }

    /// Reports to the receiver that the message does not fit in its receive.
    #[cold]
    fn unfit(&self, number: u32, version: u32, cause: Cause) -> SendNext {
        let payload = padded([self.from.len(), u64::from(self.kind.bits()), 0]);
        let word = encoding::unfit_data(number, version);
        SendNext::State(SendState::Notifying(SendNotice { word, payload, used: 2, failed: Some(cause) }))
    }

    /// Copies this rank's parts of a split copy.
    fn copy_parts(&mut self, worker: &Worker, at: MatchedSlot<'_>) -> SendNext {
        let SendState::SplitCopy(split) = &mut self.state else { return SendNext::Waits };
        let copied = split.run(worker, at);
        next(copied, || self.in_place(at))
    }

    /// Fills the ring.
    fn fill(&mut self, worker: &Worker, at: MatchedSlot<'_>) -> SendNext {
        let (from, SendState::PipelinedSend(pipelined)) = (&self.from, &mut self.state) else {
            return SendNext::Waits;
        };
        let filled = from.enter().and_then(|from| {
            let copy = |part, place| from.start_copy_out(worker, part, place, CachePolicy::Adaptive);
            pipelined.run(worker, at, copy)
        });
        next(filled, || SendNext::Ended(None))
    }
}

/// Converts the progress of a copy to the next step.
fn next(filled: Result<FillResult, Cause>, over: impl FnOnce() -> SendNext) -> SendNext {
    match filled {
        Ok(FillResult::Over) => over(),
        Ok(FillResult::Waits { moved: true }) => SendNext::Moved,
        Ok(FillResult::Waits { moved: false }) => SendNext::Waits,
        Err(cause) => cause.into(),
    }
}

/// What the next message on a slot meets.
pub(crate) enum Found {
    /// There is no receive, or its description has not arrived, or it was withdrawn.
    Nothing,
    /// The message goes into the line of the receive.
    Short,
    /// The message does not fit, by its length or its type.
    Unfit { version: u32, cause: Cause },
    /// The message goes through a ring.
    Staged,
    /// The receive must be claimed before its address and size are valid.
    Long { version: u32 },
}

/// Checks what the next message on a slot, of values of that type and so many bytes, meets.
#[inline]
pub(crate) fn find(bank: &SlotBank, index: SlotIndex, (kind, len): (ValueKind, u64)) -> Found {
    let (word, number) = (bank.posting(index), bank.next_number(index));
    let truncated = |room| Cause::Truncated { len, room };
    match encoding::read_posting(word, number) {
        Posting::Short { class, .. } | Posting::Staged { class, .. } if !kind.class().may_match(class) => {
            let cause = type_mismatch(kind.class(), class);
            Found::Unfit { version: encoding::posting_version(word), cause }
        }
        // The posting of a long receive does not change when the receive is withdrawn. For a longer message the types
        // are compared when the receive is claimed.
        Posting::Long { version, class } if len <= SHORT_MAX as u64 && !kind.class().may_match(class) => {
            let cause = type_mismatch(kind.class(), class);
            if posted(bank, index, number, version) {
                Found::Unfit { version, cause }
            } else {
                Found::Nothing
            }
        }
        Posting::Short { room, .. } if len > room as u64 => {
            Found::Unfit { version: encoding::posting_version(word), cause: truncated(room as u64) }
        }
        Posting::Short { .. } => Found::Short,
        Posting::Long { .. } | Posting::Staged { .. } if len <= SHORT_MAX as u64 => Found::Short,
        Posting::Staged { least, .. } if len <= least => Found::Staged,
        Posting::Staged { version, .. } if posted(bank, index, number, version) => {
            match bank.recv_size(index, version) {
                Some(room) if len > room => Found::Unfit { version, cause: truncated(room) },
                Some(_) => Found::Staged,
                None => Found::Nothing, // withdrawn since
            }
        }
        Posting::Long { version, .. } => {
            bank.prefetch_claim(index);
            if posted(bank, index, number, version) { Found::Long { version } } else { Found::Nothing }
        }
        _ => Found::Nothing,
    }
}

/// Returns true if the description of a long receive has arrived and the receive has not been withdrawn.
fn posted(bank: &SlotBank, index: SlotIndex, number: u32, version: u32) -> bool {
    bank.claim(index) == encoding::claim(number, version, Claim::Posted)
}

/// Claims a long receive for a message of that slot, unless its receiver withdraws it first.
fn claim(
    worker: &Worker,
    bank: &SlotBank,
    (index, slot): (SlotIndex, u32),
    number: u32,
    version: u32,
) -> SendNext {
    // If the claim succeeds, the description read here belongs to the posting, because a later posting has another
    // version.
    let Some(room) = bank.recv_size(index, version) else { return SendNext::Waits };
    let receive = Receive { version, to: bank.recv_address(index), room, kind: bank.recv_kind(index) };
    let expected = encoding::claim(number, version, Claim::Posted);
    let operand = encoding::claimed(number, slot);
    let kind = AtomicKind::Cas { expected };
    match worker.start_atomic(bank.claim_at(worker.rank(), index), Atomic { kind, operand, width: Width::W8 })
    {
        Ok(Started::Done(found)) => after_claim(number, receive, found),
        Ok(Started::InFlight(operation)) => SendNext::State(SendState::Claiming { receive, operation }),
        Ok(Started::Later) => SendNext::Waits,
        Err(cause) => cause.into(),
    }
}

fn after_claim(number: u32, receive: Receive, found: u64) -> SendNext {
    let is_ours = found == encoding::claim(number, receive.version, Claim::Posted);
    SendNext::State(if is_ours { SendState::Claimed { receive } } else { SendState::Looking })
}

fn write_notice(bank: &SlotBank, index: SlotIndex, notice: &SendNotice) -> SendNext {
    match bank.write_data(index, notice.word, &notice.payload[..notice.used]) {
        Ok(()) => SendNext::Ended(notice.failed.clone()),
        Err(Refused::Never(cause)) => SendNext::Ended(Some(*cause)),
        Err(Refused::Again | Refused::Relay) => SendNext::Waits,
    }
}

/// Calls `then` with the result of an operation, if it has ended.
fn when_finished(worker: &Worker, operation: u64, then: impl FnOnce(u64) -> SendNext) -> SendNext {
    match worker.take_outcome(operation) {
        None => SendNext::Waits,
        Some(Err(cause)) => cause.into(),
        Some(Ok(value)) => then(value),
    }
}

/// Returns true if the receiver learns of the error without this sender.
fn is_reported_to_receiver(cause: &Cause) -> bool {
    matches!(cause, Cause::PeerDied { .. } | Cause::JobOver)
}

/// Makes the notice of a message that failed after its receive was claimed.
fn failed(number: u32, cause: Cause) -> SendNotice {
    SendNotice { word: encoding::failed_data(number), payload: padded([0; 3]), used: 0, failed: Some(cause) }
}

fn padded(words: [u64; 3]) -> [u64; SLOT_PAYLOAD] {
    let mut payload = [0; SLOT_PAYLOAD];
    payload[..3].copy_from_slice(&words);
    payload
}
