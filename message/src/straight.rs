//! The straight way through a ring: messages that are no short ones, of blocking calls and of sends that are begun,
//! where both ranks reach each other's memory and nothing is in the way. Nothing of it is a call of the fabric, so it
//! needs no loan, no operation and no ring to itself; where something is in the way, those go on from where it has come
//! to.

use super::berth::Berth;
use super::context::{Context, Received};
use super::page::{ANY, Block, Page};
use super::ring::AT_ONCE;
use super::sending::{self, Found};
use super::staging::Meeting;
use super::taking::Taking;
use super::words::{self, Data, SHORT_MAX};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use tasuki_core::engine::{Caching, Launched, View};
use tasuki_core::segment::GlobalAddress;

/// How far a receive has come.
#[derive(Debug)]
pub(super) enum Straight {
    Done(Received),
    /// It waits, or ends in some other way.
    Posted(Taking),
}

impl Context {
    /// Sends a message on a slot that was occupied, if its receive stands there and wants it staged, and a ring is
    /// free. False: nothing was done.
    pub(super) fn send_straight(&self, bytes: View<'_>, page: &Arc<Page>, block: Block) -> bool {
        let (len, state) = (bytes.len() as u64, page.state(block));
        let may = (SHORT_MAX as u64 + 1..=AT_ONCE).contains(&len)
            && page.is_mapped()
            && state.spooled.load(Acquire) == 0; // SYNC unspooled
        if !may || !matches!(sending::find(page, block, len), Found::Staged) {
            return false;
        }
        let number = page.next_number(block);
        let at = Meeting { page, block, number, slot: page.slot(block) };
        let sent = self.pump.rings.fill(at, len, |berth| self.stage(bytes, at, berth));
        if sent {
            state.sent.store(number, Relaxed);
        }
        sent
    }

    /// Copies a message into a ring of this rank's and tells its receiver of each chunk. False: nothing was done. If
    /// the first chunk is in reach, all are.
    #[inline]
    fn stage(&self, bytes: View<'_>, at: Meeting<'_>, berth: Berth) -> bool {
        for chunk in 0..berth.cut.chunks() {
            let (from, len) = berth.cut.part(chunk);
            let is_told = self.machine.copy_out(bytes, from, berth.place(chunk), len, Caching::Outward)
                && at.tell(berth, chunk + 1).is_ok();
            if !is_told {
                debug_assert_eq!(chunk, 0, "the receiver knows of the message");
                return false;
            }
        }
        true
    }

    /// Posts a receive on a slot that was occupied, and takes its message if that comes soon. None: nothing was done.
    pub(super) fn receive_straight(
        &self,
        into: View<'_>,
        page: &Arc<Page>,
        block: Block,
    ) -> Option<Straight> {
        let room = into.len() as u64;
        let is_staged = room < self.machine.fabric().capabilities().direct_from;
        if block == ANY || room <= SHORT_MAX as u64 || !is_staged || !page.is_mapped() {
            return None;
        }
        let mut taking = Taking::next(page, block);
        let Taking { number, version, .. } = taking;
        page.describe(block, (number, version), (GlobalAddress::NULL, room)).ok()?;
        page.write_posting(block, words::staged_posting(number, version, room)).ok()?;
        let looks = self.machine.spins(Some(page.peer));
        let mut left = looks;
        loop {
            match words::read_data(page.data(block), number) {
                Data::None => {}
                Data::Staged { chunks } if page.data_word(block, 1) <= room => {
                    let (berth, before) = (Berth::at(page, block), taking.taken);
                    let taken = taking.take((page, block), berth, chunks, |place, (at, len), caching| {
                        let is_copied = self.machine.copy_in(place, into, at, len, caching);
                        Ok(if is_copied { Launched::Done(0) } else { Launched::Later })
                    });
                    if !matches!(taken, Ok(Launched::Done(_))) {
                        break;
                    }
                    if taking.is_owed(berth) {
                        if page.tell_taken(block, number, taking.taken).is_err() {
                            break;
                        }
                        taking.told = taking.taken;
                    }
                    if taking.told == berth.cut.chunks() {
                        page.state(block).received.store(number, Relaxed);
                        let (slot, len) = (page.data_word(block, 2) as u32, berth.cut.len());
                        return Some(Straight::Done(Received { slot, source: page.member, len }));
                    }
                    if taking.taken > before {
                        left = looks;
                    }
                }
                _ => break,
            }
            let Some(fewer) = left.checked_sub(1) else { break };
            left = fewer;
            std::hint::spin_loop();
        }
        Some(Straight::Posted(taking))
    }
}
