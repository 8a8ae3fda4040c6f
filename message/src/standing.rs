//! Receives that stand all the time, for those who know what comes next: short messages of a pair go through four slots
//! in turn, and as soon as one was taken, its next receive is posted. So a sender that is some messages ahead of its
//! receiver, as in a barrier, never waits for a posting, nor for the line of one that is just being written. Pages of
//! such a context are never closed.

use super::context::{Context, Posted};
use super::page::{Block, Page};
use super::words::SHORT_MAX;
use std::sync::atomic::Ordering::Relaxed;
use tasuki_core::base::{Rank, Result};

/// How many slots take turns.
pub const TURNS: usize = 4;

impl Context {
    /// Lets receives from a member stand. The first time only this costs anything.
    #[inline]
    pub fn stand(&self, from: Rank) -> Result<()> {
        if let Some((page, _)) = self.ready(from, 0)
            && (0..TURNS).all(|turn| page.state(turn).receiving.is_busy())
        {
            return Ok(());
        }
        self.stand_up(from)
    }

    #[cold]
    #[inline(never)]
    fn stand_up(&self, from: Rank) -> Result<()> {
        let (page, _) = self.page(self.from("irecv", from, 0))?;
        for turn in 0..TURNS {
            if page.state(turn).receiving.is_idle() {
                self.post(SHORT_MAX, from, turn as u32)?;
            }
        }
        Ok(())
    }

    /// Sends the next short message to a member whose receives stand.
    #[inline]
    pub fn tell(&self, bytes: &[u8], to: Rank) -> Result<()> {
        let mut slot = 0;
        if let Some((page, _)) = self.ready(to, 0) {
            let turn = turn_to_send(page);
            if page.send_short(turn, bytes) {
                return Ok(());
            }
            slot = turn as u32;
        }
        if slot == 0 {
            let (page, _) = self.page(self.to("send", to, 0))?;
            slot = turn_to_send(&page) as u32;
        }
        self.send(bytes, to, slot)
    }

    /// Takes the next short message from a member, and lets its slot's next receive stand. How long it is.
    #[inline]
    pub fn hear(&self, into: &mut [u8; SHORT_MAX], from: Rank) -> Result<usize> {
        self.stand(from)?;
        if let Some((page, _)) = self.ready(from, 0) {
            let (turn, number) = turn_to_receive(page);
            page.will_send(turn_to_send(page)); // its posting came three messages ago
            let got = self.take("recv", Posted::new(page, turn, number, SHORT_MAX), into)?;
            // The page may have left the lately used ones meanwhile, but it stays.
            if page.post_short(turn, SHORT_MAX).is_ok() {
                page.state(turn).receiving.set_busy();
            }
            return Ok(got.len as usize);
        }
        self.hear_slowly(into, from)
    }

    #[cold]
    #[inline(never)]
    fn hear_slowly(&self, into: &mut [u8; SHORT_MAX], from: Rank) -> Result<usize> {
        let (page, _) = self.page(self.from("recv", from, 0))?;
        let (turn, number) = turn_to_receive(&page);
        let got = self.take("recv", Posted::new(&page, turn, number, SHORT_MAX), into)?;
        self.stand_up(from)?;
        Ok(got.len as usize)
    }
}

/// The slot of the next message to be sent.
#[inline]
fn turn_to_send(page: &Page) -> Block {
    turn(|turn| page.state(turn).sent.load(Relaxed))
}

/// The slot of the next message to be received, and its number there.
#[inline]
fn turn_to_receive(page: &Page) -> (Block, u32) {
    let received = |turn| page.state(turn).received.load(Relaxed);
    let turn = turn(received);
    (turn, received(turn).wrapping_add(1))
}

/// Whose turn it is, by how many messages each slot had.
#[inline]
fn turn(count: impl Fn(Block) -> u32) -> Block {
    (0..TURNS).map(count).fold(0, u32::wrapping_add) as usize % TURNS
}
