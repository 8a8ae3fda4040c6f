//! Opening a pair's banks, letting go of them, and opening them again.
//!
//! The two ranks of a pair let go each for itself and never wait for each other. What one has let go while the other
//! has not stays as it is, and is found again with all that lies in it.

use crate::call_info::CallInfo;
use crate::context::Context;
use crate::protocol::late_match::SlotReleased;
use crate::slot::bank::{SLOTS, SlotBank, SlotIndex, bank_number};
use crate::slot::state::{OccupyError, SlotState};
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Condition;

impl Context {
    /// Lets go of all banks that this rank has for messages with `peer`. Refused while one of them is in use; then
    /// nothing is changed.
    pub fn close(&self, peer: Rank) -> Result<()> {
        let call = || format!("close(rank {peer})");
        let fault = |cause| self.worker.fault(cause, call);
        self.worker.check().map_err(fault)?;
        if self.rank_of(peer).is_none() {
            return Err(fault(Cause::NoSuchRank { rank: peer, size: self.size() }));
        }
        let Some(pair) = self.banks.find(bank_number(peer, 0)) else { return Ok(()) };
        let _claimed = pair.bank_state().claim(&self.worker, "close")?;
        // The pair's first bank goes last: where another is open, it is.
        let numbers = (0..self.slots.div_ceil(SLOTS)).rev();
        let banks = numbers.filter_map(|number| self.banks.find(bank_number(peer, number * SLOTS)));
        let banks: Vec<Arc<SlotBank>> = banks.filter(|bank| bank.bank_state().is_open()).collect();
        let closed = banks
            .iter()
            .try_for_each(|bank| bank.close())
            .map_err(fault)
            // Nothing of this rank's may be on its way into lines that others may get.
            .and_then(|()| self.worker.settle(&call))
            .and_then(|()| {
                self.progress.rings.forget_taken(&banks);
                banks.iter().try_for_each(|bank| bank.release(&self.worker))
            });
        // If it was refused, or failed, what is open still can be used as before.
        banks.iter().filter(|bank| bank.bank_state().is_open()).for_each(|bank| bank.reopen());
        closed.map_err(|error| error.in_call(call))
    }

    /// Opens a bank, and its pair's first, if they are not.
    #[cold]
    #[inline(never)]
    pub(crate) fn open_banks(&self, bank: &Arc<SlotBank>, call: CallInfo) -> Result<()> {
        let pair = bank.pair();
        let _claimed = pair.bank_state().claim(&self.worker, call.name())?;
        for bank in [pair, bank] {
            if !bank.bank_state().is_open() {
                let opened = bank.open(&self.worker, self.number);
                opened.map_err(|error| self.fault(error.cause().clone(), call))?;
            }
        }
        Ok(())
    }

    /// Marks the slot busy for a send.
    pub(crate) fn occupy_send(&self, bank: &Arc<SlotBank>, block: SlotIndex, call: CallInfo) -> Result<()> {
        self.occupy((bank, block), &bank.state(block).sending, "send", None, call)
    }

    /// Marks the slot busy for a receive. If one of any slot has it, waits for that, for at most so long.
    pub(crate) fn occupy_receive(
        &self,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
        limit: Option<Duration>,
        call: CallInfo,
    ) -> Result<()> {
        self.occupy((bank, block), &bank.state(block).receiving, "receive", limit, call)
    }

    fn occupy(
        &self,
        (bank, block): (&Arc<SlotBank>, SlotIndex),
        mark: &SlotState,
        what: &'static str,
        limit: Option<Duration>,
        call: CallInfo,
    ) -> Result<()> {
        loop {
            match mark.occupy() {
                Ok(()) => return Ok(()),
                Err(OccupyError::Closed) => self.open_banks(bank, call)?, // it was let go since it was found
                Err(OccupyError::Lent) => {
                    let condition = Condition::Event(Arc::new(SlotReleased { bank: bank.clone(), block }));
                    self.worker.wait(&condition, limit, &|| call.to_string())?;
                }
                Err(OccupyError::Busy) => return Err(self.fault(Cause::Busy { what }, call)),
            }
        }
    }
}
