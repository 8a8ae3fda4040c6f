//! Receives that stand all the time, for those who know what comes next: as soon as a message was taken, the next one's
//! receive is posted, so that its sender never waits for the posting.

use super::call::Call;
use super::context::{Context, Posted};
use super::page::IDLE;
use super::words::SHORT_MAX;
use std::sync::atomic::Ordering::Relaxed;
use tasuki_core::base::{Rank, Result};

impl Context {
    /// Posts the receive of the next short message on a slot, unless it stands there.
    #[inline]
    pub(crate) fn stand(&self, from: Rank, slot: u32) -> Result<()> {
        if let Some((page, block)) = self.ready(from, slot)
            && page.state(block).receiving.load(Relaxed) != IDLE
        {
            return Ok(());
        }
        let (page, block) = self.page(Call::from("irecv", from, slot))?;
        if page.state(block).receiving.load(Relaxed) == IDLE {
            self.post(SHORT_MAX, from, slot)?;
        }
        Ok(())
    }

    /// Takes the next short message on a slot, and lets the receive of the one after stand there. How long it is.
    #[inline]
    pub(crate) fn recv_standing(&self, into: &mut [u8; SHORT_MAX], from: Rank, slot: u32) -> Result<usize> {
        self.stand(from, slot)?;
        let (page, block) = self.page(Call::from("recv", from, slot))?;
        let number = page.state(block).received.load(Relaxed).wrapping_add(1);
        let got = self.take("recv", Posted { number }, into, from, slot)?;
        self.stand(from, slot)?;
        Ok(got.len as usize)
    }
}
