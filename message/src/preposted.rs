//! Preposted receives, for protocols that know which message comes next. Short messages of a pair use four slots in
//! turn. As soon as a message is taken, the next receive on its slot is posted. So a sender that is a few messages
//! ahead of its receiver, as in a barrier, waits neither for a posting nor for the cache line of a posting that is
//! just being written. Banks of such a context are never closed.

use crate::context::{Context, PostedRecv};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::SHORT_MAX;
use tasuki_core::base::sync::Ordering::Relaxed;
use tasuki_core::base::{Rank, Result, ValueKind};

/// How many slots a pair uses in turn.
pub const PREPOSTED_SLOTS: usize = 4;

impl Context {
    /// Preposts receives for messages from a member. Costs something only the first time.
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
                self.post(SHORT_MAX, from, (turn as u32).into())?;
            }
        }
        Ok(())
    }

    /// Sends the next short message to a member that has preposted receives.
    #[inline]
    pub fn send_preposted(&self, bytes: &[u8], to: Rank) -> Result<()> {
        let mut slot = 0;
        if let Some((bank, _)) = self.ready(to, 0) {
            let turn = next_to_send(bank);
            if bank.send_short(turn, bytes, ValueKind::BYTES) {
                return Ok(());
            }
            slot = turn as u32;
        }
        if slot == 0 {
            let (bank, _) = self.bank(self.to("send", to, 0))?;
            slot = next_to_send(&bank) as u32;
        }
        self.send(bytes, to, slot.into())
    }

    /// Receives the next short message from a member and preposts the next receive on its slot. Returns the message's
    /// length in bytes.
    #[inline]
    pub fn recv_preposted(&self, into: &mut [u8; SHORT_MAX], from: Rank) -> Result<usize> {
        self.prepost(from)?;
        if let Some((bank, _)) = self.ready(from, 0) {
            let (turn, number) = next_to_receive(bank);
            bank.prefetch_posting(next_to_send(bank)); // its posting came three messages ago
            let got =
                self.take("recv", PostedRecv::new(bank, turn, number, SHORT_MAX, ValueKind::BYTES), into)?;
            // The bank may no longer be among the recent ones, but it still exists.
            if bank.post_short(turn, SHORT_MAX, ValueKind::BYTES).is_ok() {
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
        let got =
            self.take("recv", PostedRecv::new(&bank, turn, number, SHORT_MAX, ValueKind::BYTES), into)?;
        self.prepost_slowly(from)?;
        Ok(got.len as usize)
    }
}

/// Returns the slot of the next message to send.
#[inline]
fn next_to_send(bank: &SlotBank) -> SlotIndex {
    next_slot(|turn| bank.state(turn).sent.load(Relaxed))
}

/// Returns the slot of the next message to receive, and that message's number.
#[inline]
fn next_to_receive(bank: &SlotBank) -> (SlotIndex, u32) {
    let received = |turn| bank.state(turn).received.load(Relaxed);
    let turn = next_slot(received);
    (turn, received(turn).wrapping_add(1))
}

/// Returns the slot whose turn it is, given how many messages each slot has had.
#[inline]
fn next_slot(count: impl Fn(SlotIndex) -> u32) -> SlotIndex {
    (0..PREPOSTED_SLOTS).map(count).fold(0, u32::wrapping_add) as usize % PREPOSTED_SLOTS
}
