//! Opening, closing and reopening the banks of a pair.
//!
//! Each rank of a pair closes its own side. It waits for the other rank only if a buffered message must be sent first. A bank that only one rank has closed
//! keeps its memory, so that rank finds all messages when it reopens the bank.

use crate::call_info::CallInfo;
use crate::context::Context;
use crate::preposted::PREPOSTED_SLOTS;
use crate::protocol::late_match::SlotReleased;
use crate::slot::bank::{SLOTS, SlotBank, SlotIndex, bank_number};
use crate::slot::directory::EndedEntry;
use crate::slot::state::{OccupyError, SlotState};
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Condition;

impl Context {
    /// Closes all banks of this rank for messages with `peer`, after buffered messages to it were sent. If one of them
    /// is in use, returns an error and changes nothing.
    pub fn close(&self, peer: Rank) -> Result<()> {
        let call = || match &self.rank_of(peer) {
            Some(rank) if *rank != peer => format!("close(rank {rank}, member {peer})"),
            _ => format!("close(rank {peer})"),
        };
        let fault = |cause| self.worker.fault(cause, call);
        self.worker.check().map_err(fault)?;
        if self.rank_of(peer).is_none() {
            return Err(fault(self.no_such_member(peer)));
        }
        let Some(first_bank) = self.banks.find(bank_number(peer, 0)) else { return Ok(()) };
        if self.progress.has_buffered() {
            self.wait_until_sent(Some(&first_bank), &call)?;
        }
        let _claimed = first_bank.bank_state().claim(&self.worker, "close")?;
        // The pair's first bank is closed last: it must be open while another one is.
        let numbers = (0..self.slots.div_ceil(SLOTS)).rev();
        let banks = numbers.filter_map(|number| self.banks.find(bank_number(peer, number * SLOTS)));
        let banks: Vec<Arc<SlotBank>> = banks.filter(|bank| bank.bank_state().is_open()).collect();
        let closed = banks
            .iter()
            .try_for_each(|bank| bank.close())
            // Looked at last: a receive that is dropped now finds the banks closed.
            .and_then(|()| match self.late_matches.kept.pending_of(peer) {
                None => Ok(()),
                Some(slot) => {
                    let what = "a message is being transferred to a receive that was dropped";
                    Err(Cause::InUse { what, slot: slot.map(|slot| slot as usize) })
                }
            })
            .map_err(fault)
            // No write of this rank may be in flight to lines that other ranks may get.
            .and_then(|()| self.worker.settle(&call))
            .and_then(|()| {
                self.progress.rings.forget_taken(&banks);
                banks.iter().try_for_each(|bank| bank.release(&self.worker))
            });
        // If the close was refused or failed, the banks that are still open can be used as before.
        banks.iter().filter(|bank| bank.bank_state().is_open()).for_each(|bank| bank.reopen());
        closed.map_err(|error| error.in_call(call))
    }

    /// Returns true if no message of this member is in flight: the program has waited for all sends and receives, and
    /// the send buffer has no message. Preposted receives do not count.
    pub fn is_idle(&self) -> bool {
        !self.late_matches.kept.any_pending()
            && self
                .banks
                .items()
                .iter()
                .all(|bank| !bank.bank_state().is_open() || bank.is_idle(self.preposted()))
    }

    /// Returns the number of slots with preposted receives, which are the first slots of the context.
    fn preposted(&self) -> usize {
        if self.is_of_program { 0 } else { PREPOSTED_SLOTS }
    }

    /// Frees all memory for the messages of a context. [No message may be in flight](Self::is_idle) on any member, and
    /// no member may use the context any more.
    pub fn free(&self) -> Result<()> {
        let banks = self.banks.items();
        banks.iter().for_each(|bank| bank.close_for_good());
        let open: Vec<_> = banks.iter().filter(|bank| bank.bank_state().is_open()).cloned().collect();
        // No write of this rank may be in flight to lines that other ranks may get.
        self.worker.settle(&|| "the end of a communicator that was dropped".into())?;
        self.progress.rings.forget_taken(&open);
        for bank in &open {
            match bank.release(&self.worker) {
                Err(error) if matches!(error.cause(), Cause::PeerLeft { .. }) => {} // nobody needs its memory
                released => released?,
            }
        }
        let of_lower = banks.iter().filter(|bank| bank.peer >= self.worker.rank());
        let entries = of_lower.map(|bank| EndedEntry { peer: bank.peer, entry: bank.bank_state().entry() });
        // A bank that was never opened has entry 0.
        self.progress.ended_entries.free(&self.worker, entries.filter(|ended| ended.entry != 0))
    }

    /// Opens a bank and its pair's first bank, if they are not open.
    #[cold]
    #[inline(never)]
    pub(crate) fn open_banks(&self, bank: &Arc<SlotBank>, call: CallInfo) -> Result<()> {
        let first_bank = bank.first_bank();
        let _claimed = first_bank.bank_state().claim(&self.worker, call.name())?;
        for bank in [first_bank, bank] {
            if !bank.bank_state().is_open() {
                let opened = bank.open(&self.worker, self.number);
                opened.map_err(|error| self.fault(error.cause().clone(), call))?;
                self.late_matches.kept.mark(bank);
            }
        }
        Ok(())
    }

    /// Marks the slot busy for a send.
    pub(crate) fn occupy_send(&self, bank: &Arc<SlotBank>, index: SlotIndex, call: CallInfo) -> Result<()> {
        self.occupy((bank, index), &bank.state(index).sending, "send", call).map(drop)
    }

    /// Marks the slot busy for a receive. If a receive of any slot uses the slot, waits until that receive has ended.
    /// Returns true if there may be a kept message for the receive.
    pub(crate) fn occupy_receive(
        &self,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        call: CallInfo,
    ) -> Result<bool> {
        self.occupy((bank, index), &bank.state(index).receiving, "receive", call)
    }

    fn occupy(
        &self,
        (bank, index): (&Arc<SlotBank>, SlotIndex),
        state: &SlotState,
        what: &'static str,
        call: CallInfo,
    ) -> Result<bool> {
        loop {
            match state.occupy() {
                Ok(may_be_kept) => return Ok(may_be_kept),
                Err(OccupyError::Closed) => self.open_banks(bank, call)?, // the bank was closed since it was looked up
                Err(OccupyError::Borrowed) => {
                    let condition = Condition::Event(Arc::new(SlotReleased { bank: bank.clone(), index }));
                    self.worker.wait(&condition, self.worker.call_deadline(), &|| call.to_string())?;
                }
                Err(OccupyError::Busy) => return Err(self.fault(Cause::Busy { what }, call)),
            }
        }
    }
}
