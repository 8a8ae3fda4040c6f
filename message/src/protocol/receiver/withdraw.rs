//! The withdrawal of a posted receive: requested by the program, or because it has found a message that met an earlier
//! receive.

use super::{RecvNext, RecvProtocol, RecvState};
use crate::protocol::outcome::Outcome;
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Claim, Data};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::{Started, Worker};
use tasuki_core::fabric::{Atomic, AtomicKind, Refused, Width};

impl RecvProtocol {
    /// Requests that the receive be withdrawn. Has no effect if its message is already being transferred.
    pub(crate) fn withdraw(&mut self) {
        self.withdraw_requested = true;
    }

    /// Returns true if a message has met the receive. Then the receive is not to be withdrawn any more.
    pub(crate) fn goes_on_with_message(&mut self, bank: &SlotBank, index: SlotIndex) -> bool {
        let (bank, index) =
            self.redirected().map_or((bank, index), |late_match| (&*late_match.bank, late_match.index));
        let has_met = match self.state {
            RecvState::Searching | RecvState::Describing | RecvState::Posting => false,
            RecvState::Withdrawing { .. } => false,
            RecvState::Fetching { .. } | RecvState::Storing { .. } | RecvState::StoringKept { .. } => true,
            RecvState::Posted if !self.withdraw_requested => true,
            RecvState::Posted => match encoding::read_data(bank.data(index), self.consumer.number) {
                Data::Staged { .. } | Data::SplitCopy | Data::InPlace | Data::Short { .. } => true,
                Data::None | Data::Unfit { .. } | Data::Failed => false,
            },
        };
        self.withdraw_requested &= !has_met;
        has_met
    }

    /// Withdraws the posting of a staged receive. No sender writes its memory, so a message sent now is for the next
    /// receive.
    pub(super) fn withdraw_staged(&mut self, worker: &Worker, bank: &SlotBank, index: SlotIndex) -> RecvNext {
        let withdrawn = encoding::withdrawn_posting(self.consumer.number, bank.next_version(index));
        match bank.write_posting(index, withdrawn) {
            Ok(()) => self.withdrawn(worker, bank.member),
            Err(Refused::Never(cause)) => self.fail(*cause),
            Err(Refused::Again | Refused::Relay) => RecvNext::Waits,
        }
    }

    /// Withdraws the claim, whose last known value is `expected`.
    pub(super) fn withdraw_claim(
        &mut self,
        worker: &Worker,
        bank: &SlotBank,
        index: SlotIndex,
        expected: u64,
    ) -> RecvNext {
        let operand = encoding::claim(self.consumer.number, self.consumer.version, Claim::Withdrawn);
        let atomic = Atomic { kind: AtomicKind::Cas { expected }, operand, width: Width::W8 };
        match worker.start_atomic(bank.their_claim_at(index), atomic) {
            Ok(Started::Done(found)) => self.after_withdraw(worker, bank, index, expected, found),
            Ok(Started::InFlight(operation)) => self.go_to(RecvState::Withdrawing { operation, expected }),
            Ok(Started::Later) => RecvNext::Waits,
            Err(cause) => self.withdraw_failed(worker, bank, index, cause),
        }
    }

    /// Handles a claim that cannot be withdrawn. If the sender has left, every message that it claimed has arrived.
    #[cold]
    pub(super) fn withdraw_failed(
        &mut self,
        worker: &Worker,
        bank: &SlotBank,
        index: SlotIndex,
        cause: Cause,
    ) -> RecvNext {
        if !matches!(cause, Cause::PeerLeft { .. }) {
            return self.fail(cause);
        }
        if bank.has_data(index, self.consumer.number) {
            self.withdraw_requested = false;
            return self.go_to(RecvState::Posted);
        }
        self.withdrawn(worker, bank.member)
    }

    /// Called when no sender has the receive any more. If it was withdrawn for a message that met another receive, it
    /// continues with that message.
    fn withdrawn(&mut self, worker: &Worker, member: Rank) -> RecvNext {
        if self.redirect() {
            return self.go_to(RecvState::Posted);
        }
        if self.withdraw_requested || self.search.is_none() {
            return self.ended(Outcome::Withdrawn);
        }
        match self.take_kept(worker, member) {
            Some(next) => next,
            None => self.go_to(RecvState::Searching), // another receive was quicker
        }
    }

    pub(super) fn after_withdraw(
        &mut self,
        worker: &Worker,
        bank: &SlotBank,
        index: SlotIndex,
        expected: u64,
        found: u64,
    ) -> RecvNext {
        if found == expected {
            return self.withdrawn(worker, bank.member);
        }
        if let Some(slot) = encoding::read_claimed(found, self.consumer.number) {
            self.withdraw_requested = false; // the message is being transferred
            self.claimed_slot = Some(slot);
            self.release_late_match(worker); // the late match waits for the next receive
            return self.go_to(RecvState::Posted);
        }
        // The posting has not arrived yet. Withdraw against the value found, so that the posting arrives too late.
        self.withdraw_claim(worker, bank, index, found)
    }
}
