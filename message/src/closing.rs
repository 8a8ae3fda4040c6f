//! Opening a pair's pages, letting go of them, and opening them again.
//!
//! The two ranks of a pair let go each for itself and never wait for each other. What one has let go while the other
//! has not stays as it is, and is found again with all that lies in it.

use super::call::Call;
use super::context::Context;
use super::mark::{Mark, Taken};
use super::page::{Block, Page, SLOTS, page_number};
use super::strays::GivenBack;
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Condition;

impl Context {
    /// Lets go of all pages that this rank has for messages with `peer`. Refused while one of them is in use; then
    /// nothing is changed.
    pub fn close(&self, peer: Rank) -> Result<()> {
        let call = || format!("close(rank {peer})");
        let fault = |cause| self.machine.fault(cause, call);
        self.machine.check().map_err(fault)?;
        if self.rank_of(peer).is_none() {
            return Err(fault(Cause::NoSuchRank { rank: peer, size: self.size() }));
        }
        let Some(pair) = self.pages.find(page_number(peer, 0)) else { return Ok(()) };
        let _claimed = pair.holding().claim(&self.machine, "close")?;
        // The pair's first page goes last: where another is open, it is.
        let numbers = (0..self.slots.div_ceil(SLOTS)).rev();
        let pages = numbers.filter_map(|number| self.pages.find(page_number(peer, number * SLOTS)));
        let pages: Vec<Arc<Page>> = pages.filter(|page| page.holding().is_open()).collect();
        let closed = pages
            .iter()
            .try_for_each(|page| page.shut())
            .map_err(fault)
            // Nothing of this rank's may be on its way into lines that others may get.
            .and_then(|()| self.machine.settle(&call))
            .and_then(|()| {
                self.pump.rings.forget_taken(&pages);
                pages.iter().try_for_each(|page| page.let_go(&self.machine))
            });
        // If it was refused, or failed, what is open still can be used as before.
        pages.iter().filter(|page| page.holding().is_open()).for_each(|page| page.unshut());
        closed.map_err(|error| error.in_call(call))
    }

    /// Opens a page, and its pair's first, if they are not.
    #[cold]
    #[inline(never)]
    pub(super) fn open_pages(&self, page: &Arc<Page>, call: Call) -> Result<()> {
        let pair = page.pair();
        let _claimed = pair.holding().claim(&self.machine, call.name())?;
        for page in [pair, page] {
            if !page.holding().is_open() {
                let opened = page.open(&self.machine, self.number);
                opened.map_err(|error| self.fault(error.cause().clone(), call))?;
            }
        }
        Ok(())
    }

    /// Marks the slot busy for a send.
    pub(super) fn occupy_send(&self, page: &Arc<Page>, block: Block, call: Call) -> Result<()> {
        self.occupy((page, block), &page.state(block).sending, "send", None, call)
    }

    /// Marks the slot busy for a receive. If one of any slot has it, waits for that, for at most so long.
    pub(super) fn occupy_receive(
        &self,
        page: &Arc<Page>,
        block: Block,
        limit: Option<Duration>,
        call: Call,
    ) -> Result<()> {
        self.occupy((page, block), &page.state(block).receiving, "receive", limit, call)
    }

    fn occupy(
        &self,
        (page, block): (&Arc<Page>, Block),
        mark: &Mark,
        what: &'static str,
        limit: Option<Duration>,
        call: Call,
    ) -> Result<()> {
        loop {
            match mark.occupy() {
                Ok(()) => return Ok(()),
                Err(Taken::Closed) => self.open_pages(page, call)?, // it was let go since it was found
                Err(Taken::Lent) => {
                    let condition = Condition::Event(Arc::new(GivenBack { page: page.clone(), block }));
                    self.machine.wait(&condition, limit, &|| call.to_string())?;
                }
                Err(Taken::Busy) => return Err(self.fault(Cause::Busy { what }, call)),
            }
        }
    }
}
