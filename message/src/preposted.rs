//! Receives that stand all the time, for those who know what comes next: short messages of a pair go through four slots
//! in turn, and as soon as one was taken, its next receive is posted. So a sender that is some messages ahead of its
//! receiver, as in a barrier, never waits for a posting, nor for the line of one that is just being written. Pages of
//! such a context are never closed.

use crate::context::{Context, PostedRecv};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::SHORT_MAX;
use std::sync::atomic::Ordering::Relaxed;
use tasuki_core::base::{Rank, Result};

/// How many slots take turns.
pub const PREPOSTED_SLOTS: usize = 4;

impl Context {
    /// Lets receives from a member stand. The first time only this costs anything.
    #[inline]
    pub fn prepost(&self, from: Rank) -> Result<()> {
        if let Some((bank, _)) = self.ready(from, 0)
            && (0..PREPOSTED_SLOTS).all(|turn| bank.state(turn).receiving.is_busy())
        {
            return Ok(());
        }
        self.prepost_slowly(from)
    }

    #[cold]
    #[inline(never)]
    fn prepost_slowly(&self, from: Rank) -> Result<()> {
        let (bank, _) = self.bank(self.from("irecv", from, 0))?;
        for turn in 0..PREPOSTED_SLOTS {
            if bank.state(turn).receiving.is_idle() {
                self.post(SHORT_MAX, from, turn as u32)?;
            }
        }
        Ok(())
    }

    /// Sends the next short message to a member whose receives stand.
    #[inline]
    pub fn send_preposted(&self, bytes: &[u8], to: Rank) -> Result<()> {
        let mut slot = 0;
        if let Some((bank, _)) = self.ready(to, 0) {
            let turn = next_to_send(bank);
            if bank.send_short(turn, bytes) {
                return Ok(());
            }
            slot = turn as u32;
        }
        if slot == 0 {
            let (bank, _) = self.bank(self.to("send", to, 0))?;
            slot = next_to_send(&bank) as u32;
        }
        self.send(bytes, to, slot)
    }

    /// Takes the next short message from a member, and lets its slot's next receive stand. How long it is.
    #[inline]
    pub fn recv_preposted(&self, into: &mut [u8; SHORT_MAX], from: Rank) -> Result<usize> {
        self.prepost(from)?;
        if let Some((bank, _)) = self.ready(from, 0) {
            let (turn, number) = next_to_receive(bank);
            bank.prefetch_posting(next_to_send(bank)); // its posting came three messages ago
            let got = self.take("recv", PostedRecv::new(bank, turn, number, SHORT_MAX), into)?;
            // The bank may have left the lately used ones meanwhile, but it stays.
            if bank.post_short(turn, SHORT_MAX).is_ok() {
                bank.state(turn).receiving.set_busy();
            }
            return Ok(got.len as usize);
        }
        self.recv_preposted_slowly(into, from)
    }

    #[cold]
    #[inline(never)]
    fn recv_preposted_slowly(&self, into: &mut [u8; SHORT_MAX], from: Rank) -> Result<usize> {
        let (bank, _) = self.bank(self.from("recv", from, 0))?;
        let (turn, number) = next_to_receive(&bank);
        let got = self.take("recv", PostedRecv::new(&bank, turn, number, SHORT_MAX), into)?;
        self.prepost_slowly(from)?;
        Ok(got.len as usize)
    }
}

/// The slot of the next message to be sent.
#[inline]
fn next_to_send(bank: &SlotBank) -> SlotIndex {
    next_slot(|turn| bank.state(turn).sent.load(Relaxed))
}

/// The slot of the next message to be received, and its number there.
#[inline]
fn next_to_receive(bank: &SlotBank) -> (SlotIndex, u32) {
    let received = |turn| bank.state(turn).received.load(Relaxed);
    let turn = next_slot(received);
    (turn, received(turn).wrapping_add(1))
}

/// Whose turn it is, by how many messages each slot had.
#[inline]
fn next_slot(count: impl Fn(SlotIndex) -> u32) -> SlotIndex {
    (0..PREPOSTED_SLOTS).map(count).fold(0, u32::wrapping_add) as usize % PREPOSTED_SLOTS
}
