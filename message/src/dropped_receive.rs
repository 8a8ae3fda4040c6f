//! Receives that nobody waits for any more: their requests were dropped, their scope was cancelled, or the call that
//! waited unwinds. A message that has met such a receive is kept for the next one. A short message stays in
//! the line of its slot instead, and the contexts of collective calls keep nothing. A receive that is cancelled is
//! withdrawn only if no message has met it. A message that has no whole number of values for its receive is kept, too.

use crate::buffer::MessageBuffer;
use crate::call_info::CallInfo;
use crate::context::{Context, WITHDRAW_ATTEMPTS};
use crate::progress::operation::MessageOp;
use crate::protocol::kept::KeptMessage;
use crate::protocol::outcome::Outcome;
use crate::slot::bank::{ANY, SLOTS, SlotBank, SlotIndex, bank_number};
use crate::slot::encoding;
use std::sync::Arc;
use std::thread::panicking;
use tasuki_core::engine::Deadline;
use tasuki_core::fabric::Refused;

impl Context {
    /// Ends the use of a receive that is not short, and frees its slot. If a message has met the receive, the message
    /// is kept. Waits for a transfer only if the peer, or the fabric, may write to memory that the receive does not
    /// own; during a panic not even then, and such a message is lost. For a receive of any slot it also waits until it
    /// is known whether a sender has claimed it, which needs no help of the sender.
    #[cold]
    pub(crate) fn abandon_receive(&self, operation: &Arc<MessageOp>) {
        let (bank, index, worker) = (&operation.bank, operation.index, &self.worker);
        operation.set_waker(None);
        operation.withdraw();
        while !self.is_decided(operation) && !panicking() && worker.check().is_ok() {
            worker.pause();
        }
        let owned = || if self.keeps() { operation.own_buffer(worker) } else { None };
        if !operation.is_over() {
            if let Some(bytes) = owned() {
                return self.keep(operation, bytes);
            }
            if !panicking() {
                let call = CallInfo::from("irecv", bank.member, bank.slot(index));
                let _guard = self.guard(operation);
                let _ = self.finish(operation, Deadline::NEVER, call); // the result does not matter
            }
        }
        if let Some(Outcome::Done(done)) = operation.end()
            && self.keeps()
            // If the copy fails, the memory was freed before the message was received.
            && let Some(bytes) = owned().or_else(|| operation.received_copy(worker, done.len).ok())
        {
            return self.keep(operation, bytes);
        }
        self.progress.remove(worker, operation);
        if !operation.is_over() && !self.keeps() {
            self.refuse_the_rest(bank, index);
        }
        self.suspect(bank, index);
    }

    /// Tells the sender of a message that nobody takes the rest of it. Its call was given up, too.
    fn refuse_the_rest(&self, bank: &SlotBank, index: SlotIndex) {
        let withdrawn = encoding::withdrawn_posting(bank.next_received(index), bank.next_version(index));
        for _ in 0..WITHDRAW_ATTEMPTS {
            match bank.write_posting(index, withdrawn) {
                Err(Refused::Again | Refused::Relay) if !panicking() => self.worker.pause(),
                _ => break,
            }
        }
    }

    /// Withdraws a receive that is not short and frees its slot, unless a message has met it or it has failed. Returns
    /// true if it was withdrawn. Waits until that is known, which needs no help of the sender.
    pub(crate) fn withdraw_receive(&self, operation: &Arc<MessageOp>) -> bool {
        let worker = &self.worker;
        operation.withdraw();
        loop {
            if self.progress.run(worker, operation) || operation.is_over() {
                break;
            }
            if operation.goes_on_with_message(worker) || worker.check().is_err() {
                return false;
            }
            worker.pause();
        }
        let is_withdrawn = operation.end() == Some(Outcome::Withdrawn);
        if is_withdrawn {
            operation.set_waker(None);
            self.progress.remove(worker, operation); // no thread uses the buffer any more
            self.suspect(&operation.bank, operation.index);
        }
        is_withdrawn
    }

    /// Returns true if messages to dropped receives are kept. Those of collective calls are not: if such a receive is
    /// dropped, the call was given up on all members.
    fn keeps(&self) -> bool {
        self.is_of_program
    }

    /// Steps a receive that is to be withdrawn. Returns true if it is known whether the receive gets a message, and of
    /// which slot. For a receive that names its slot this can be found out later.
    fn is_decided(&self, operation: &Arc<MessageOp>) -> bool {
        if operation.run(&self.worker, 0) {
            self.progress.remove_ended(operation);
        }
        operation.is_over() || operation.index != ANY || operation.sent_on(&self.worker).is_some()
    }

    /// Keeps the message of a receive, whose bytes are or will be in `bytes`. Frees its slot.
    fn keep(&self, operation: &Arc<MessageOp>, bytes: MessageBuffer) {
        let (bank, index) = (&operation.bank, operation.index);
        let (slot, was_kept) = match operation.end() {
            Some(Outcome::Done(done)) => (Some(done.slot), done.was_kept),
            _ => (operation.sent_on(&self.worker), false),
        };
        let transfer = operation.clone();
        let message = KeptMessage { transfer, bank: bank.clone(), index, bytes };
        operation.set_kept(&self.late_matches);
        match slot {
            Some(slot) if was_kept => self.late_matches.kept.put_back(bank.member, slot, message),
            _ => self.late_matches.kept.add(bank.member, slot, message),
        }
        match index {
            ANY => {
                bank.state(index).receiving.set_idle();
                if let Some(slot) = slot
                    && let Some(bank) = self.banks.find(bank_number(bank.member, slot))
                {
                    bank.state((slot % SLOTS) as SlotIndex).receiving.mark_kept();
                }
            }
            _ if was_kept => self.late_matches.suspect(bank, index), // a later message may lie in the line
            _ => bank.state(index).receiving.keep(),
        }
        self.progress.add(operation);
        if operation.is_over() {
            self.progress.remove_ended(operation);
        }
        self.worker.notify_own_helper();
        self.worker.wake_own_threads();
    }
}
