//! A bank: 64 slots of a pair in one context, and the fast path of their short messages.
//!
//! What two ranks share are the lines of `encoding.rs`; what stands here besides is this rank's own. A thread that sends
//! on a slot, or receives, marks the slot's direction busy while it does. The marks are plain stores: two threads that
//! use one slot in one direction at once are in error, are told so mostly, and can confuse nothing but that slot.

use crate::call_info::CallNames;
use crate::slot::arena::{self, BLOCKS, LINES};
use crate::slot::bank_state::{BankCounts, BankState};
use crate::slot::directory;
use crate::slot::encoding::{self, Posting, SHORT_MAX};
use crate::slot::state::SlotState;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use tasuki_core::base::{Cause, Numbered, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{Refused, SLOT_PAYLOAD, SlotWord, SlotWrite, Slots};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::SLOT_LINE;

/// Slots of a bank.
pub(crate) const SLOTS: u32 = 64;

/// A bank of a pair, as this rank has it.
#[derive(Debug)]
pub(crate) struct SlotBank {
    number: u64,
    /// The peer, as the context names it.
    pub(crate) member: Rank,
    /// Its rank in the job.
    pub(crate) peer: Rank,
    /// The number of its first slot.
    first: u32,
    /// Written by the peer, read by us.
    ours: Slots<LINES>,
    /// Written by us, read by the peer.
    theirs: Slots<LINES>,
    /// The pair's first bank, if this is another.
    pair: Option<Arc<SlotBank>>,
    bank_state: BankState,
    states: [LocalSlot; BLOCKS],
    /// What its messages are steps of.
    steps_of: Option<Weak<dyn CallNames>>,
}

/// What a rank knows of one slot.
#[derive(Debug)]
pub(crate) struct LocalSlot {
    /// Messages sent on it.
    pub(crate) sent: AtomicU32,
    /// Messages received on it.
    pub(crate) received: AtomicU32,
    /// The version of the last receive posted.
    pub(crate) version: AtomicU32,
    /// Whether a send has not been waited for.
    pub(crate) sending: SlotState,
    /// The same of a receive.
    pub(crate) receiving: SlotState,
    /// Messages in the spool, which go first.
    pub(crate) buffered: AtomicU16,
}

impl LocalSlot {
    /// Of a bank that was never open.
    fn closed() -> LocalSlot {
        LocalSlot {
            sent: AtomicU32::new(0),
            received: AtomicU32::new(0),
            version: AtomicU32::new(0),
            sending: SlotState::closed(),
            receiving: SlotState::closed(),
            buffered: AtomicU16::new(0),
        }
    }

    /// Its lines are new. For one whose bank is shut.
    fn reset(&self) {
        for count in [&self.sent, &self.received, &self.version] {
            count.store(0, Relaxed);
        }
        self.receiving.reset();
    }
}

/// A block of a bank, by its place in it.
pub(crate) type SlotIndex = usize;

#[cfg(not(loom))]
const _: () = assert!(size_of::<LocalSlot>() == 16);

/// The block of a pair's first bank for receives of any slot.
pub(crate) const ANY: SlotIndex = SLOTS as usize;

impl SlotBank {
    /// The bank of a pair, which is not open; the peer by its name in the context and by its rank in the job. `pair`:
    /// its first bank, if this is another.
    pub(crate) fn new_closed(
        worker: &Worker,
        (member, peer): (Rank, Rank),
        number: u32,
        pair: Option<Arc<SlotBank>>,
        counts: &Arc<BankCounts>,
    ) -> Result<SlotBank> {
        // Whosever they are: nobody uses these lines before the bank is open, and then they are others.
        let lines = |rank| Slots::new(worker.shared_fabric(), arena::unit_at(rank, 1));
        Ok(SlotBank {
            number: bank_number(member, number * SLOTS),
            member,
            peer,
            first: number * SLOTS,
            ours: lines(worker.rank())?,
            theirs: lines(peer)?,
            pair,
            bank_state: BankState::none(counts),
            states: std::array::from_fn(|_| LocalSlot::closed()),
            steps_of: None,
        })
    }

    /// The same for messages that are steps of larger calls, if they are.
    pub(crate) fn with_names(self, steps_of: Option<Weak<dyn CallNames>>) -> SlotBank {
        SlotBank { steps_of, ..self }
    }

    /// The larger call of which a message on that slot is a step.
    pub(crate) fn larger_call(&self, slot: u32) -> Option<String> {
        self.steps_of.as_ref()?.upgrade()?.call_on(slot)
    }

    /// Whether it is open, and where.
    pub(crate) fn bank_state(&self) -> &BankState {
        &self.bank_state
    }

    /// Opens it. For who has claimed the pair.
    pub(crate) fn open(&self, worker: &Worker, context: u64) -> Result<()> {
        let opened = directory::open(worker, self.peer, context, self.first / SLOTS)?;
        self.ours.move_to(arena::unit_at(worker.rank(), opened.ours))?;
        self.theirs.move_to(arena::unit_at(self.peer, opened.theirs))?;
        if self.bank_state.note(&opened) {
            // Both ranks had let go: its lines are new, and so are the numbers of its messages.
            self.states.iter().for_each(LocalSlot::reset);
        }
        self.reopen();
        self.bank_state.set_open(true);
        Ok(())
    }

    /// Lets go of it. For who has claimed the pair and shut the bank.
    pub(crate) fn release(&self, worker: &Worker) -> Result<()> {
        // Also if the next call fails: opening it finds out whether that has let go.
        self.bank_state.set_open(false);
        directory::close(worker, self.peer, self.bank_state.entry())
    }

    /// Marks all its slots closed, unless one is in use: then says which, and some are marked.
    pub(crate) fn close(&self) -> Result<(), Cause> {
        for (block, state) in self.states.iter().enumerate() {
            let is_buffered =
                (state.buffered.load(Relaxed) > 0).then_some("a message of it lies in the spool");
            let is_sending = || (!state.sending.close()).then_some("a send has not been waited for");
            let is_receiving = || (!state.receiving.close()).then_some("a receive has not been waited for");
            if let Some(what) = is_buffered.or_else(is_sending).or_else(is_receiving) {
                let slot = (block != ANY).then(|| self.slot(block));
                return Err(Cause::InUse { what, slot });
            }
        }
        Ok(())
    }

    /// Takes those marks away.
    pub(crate) fn reopen(&self) {
        self.states.iter().flat_map(|state| [&state.sending, &state.receiving]).for_each(SlotState::reopen);
    }

    /// The number of the slot whose block that is.
    #[inline]
    pub(crate) fn slot(&self, block: SlotIndex) -> u32 {
        self.first + block as u32
    }

    /// The bank whose last block is for receives of any slot.
    pub(crate) fn pair(self: &Arc<SlotBank>) -> &Arc<SlotBank> {
        self.pair.as_ref().unwrap_or(self)
    }

    #[inline(always)]
    pub(crate) fn state(&self, block: SlotIndex) -> &LocalSlot {
        &self.states[block]
    }

    /// The number of the next message to the peer.
    #[inline(always)]
    pub(crate) fn next_number(&self, block: SlotIndex) -> u32 {
        self.state(block).sent.load(Relaxed).wrapping_add(1)
    }

    /// The number of the next message from the peer.
    #[inline(always)]
    pub(crate) fn next_received(&self, block: SlotIndex) -> u32 {
        self.state(block).received.load(Relaxed).wrapping_add(1)
    }

    /// The version of the next posting on a slot.
    pub(crate) fn next_version(&self, block: SlotIndex) -> u32 {
        let state = self.state(block);
        let version = encoding::version(state.version.load(Relaxed).wrapping_add(1));
        state.version.store(version, Relaxed);
        version
    }

    /// What the peer has posted.
    #[inline(always)]
    pub(crate) fn posting(&self, block: SlotIndex) -> u64 {
        self.ours.read(2 * block, SlotWord::Side)
    }

    /// What the peer has posted will be read.
    #[inline(always)]
    pub(crate) fn prefetch_posting(&self, block: SlotIndex) {
        self.ours.prefetch_for_read(2 * block);
    }

    /// Whether the peer has posted a receive for the next message, of whatever kind.
    #[inline(always)]
    pub(crate) fn is_awaited(&self, block: SlotIndex) -> bool {
        let number = self.next_number(block);
        let posting = encoding::read_posting(self.posting(block), number);
        !matches!(posting, Posting::None | Posting::Withdrawn)
    }

    /// Whether the peer has withdrawn the receive for a message, and posted no other.
    pub(crate) fn is_withdrawn(&self, block: SlotIndex, number: u32) -> bool {
        encoding::read_posting(self.posting(block), number) == Posting::Withdrawn
    }

    /// Whether what the peer writes lies in this process's reach: looking at it is no call of the fabric.
    pub(crate) fn is_directly_readable(&self) -> bool {
        self.ours.is_direct()
    }

    /// Whether what the peer reads does so, too: no call that moves a message is one of the fabric.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.ours.is_direct() && self.theirs.is_direct()
    }

    /// How many chunks of a staged message the peer has taken: all, if it has posted another receive since.
    pub(crate) fn taken(&self, block: SlotIndex, number: u32, chunks: u32) -> u32 {
        if encoding::is_later(self.posting(block), number) {
            return chunks;
        }
        encoding::read_taken(self.claim(block), number, chunks)
    }

    /// Tells the peer how many chunks were taken.
    pub(crate) fn write_taken(&self, block: SlotIndex, number: u32, chunks: u32) -> Result<(), Refused> {
        self.write_claim(block, encoding::taken(number, chunks), &[])
    }

    /// What the peer has sent.
    #[inline(always)]
    pub(crate) fn data(&self, block: SlotIndex) -> u64 {
        self.ours.read(2 * block, SlotWord::Main)
    }

    /// Whether something of the message of that number has come.
    pub(crate) fn is_about(&self, block: SlotIndex, number: u32) -> bool {
        encoding::number(self.data(block)) == number
    }

    /// A word of what it has sent.
    #[inline(always)]
    pub(crate) fn data_word(&self, block: SlotIndex, word: usize) -> u64 {
        self.ours.payload(2 * block, word)
    }

    /// The claim of the peer's posting.
    pub(crate) fn claim(&self, block: SlotIndex) -> u64 {
        self.ours.read(2 * block + 1, SlotWord::Main)
    }

    /// No part of the message that both ranks are going to copy is taken. For its sender, who has the claim.
    pub(crate) fn begin_split_copy(&self, block: SlotIndex) {
        self.ours.begin_parts(2 * block + 1);
    }

    /// Takes the next part of a message that both ranks copy: for its sender. On mapped memory.
    pub(crate) fn take_part_as_sender(&self, block: SlotIndex) -> u32 {
        self.ours.take_part(2 * block + 1)
    }

    /// The same for its receiver.
    pub(crate) fn take_part_as_receiver(&self, block: SlotIndex) -> u32 {
        self.theirs.take_part(2 * block + 1)
    }

    /// The claim will be read and changed: fetches its line once for both.
    #[inline]
    pub(crate) fn prefetch_claim(&self, block: SlotIndex) {
        self.ours.prefetch_for_write(2 * block + 1);
    }

    /// Where the receive wants its message, as the description says that stands there now.
    pub(crate) fn wanted_at(&self, block: SlotIndex) -> GlobalAddress {
        GlobalAddress::from_bits(self.ours.payload(2 * block + 1, 0))
    }

    /// The size of the receive of that version; none if another one is described there by now.
    pub(crate) fn wanted_size(&self, block: SlotIndex, version: u32) -> Option<u64> {
        encoding::read_size(self.ours.payload(2 * block + 1, 1), version)
    }

    /// Where the claim of the peer's posting lies, at this rank.
    pub(crate) fn claim_at(&self, me: Rank, block: SlotIndex) -> GlobalAddress {
        arena::unit_at(me, self.bank_state.units().0).add((2 * block as u64 + 1) * SLOT_LINE)
    }

    /// Where the claim of our own posting lies, at the peer.
    pub(crate) fn their_claim_at(&self, block: SlotIndex) -> GlobalAddress {
        arena::unit_at(self.peer, self.bank_state.units().1).add((2 * block as u64 + 1) * SLOT_LINE)
    }

    /// Up to which message the peer has promised to send, even if it leaves.
    pub(crate) fn promised(&self, block: SlotIndex) -> u64 {
        self.ours.read(2 * block + 1, SlotWord::Side)
    }

    /// Promises the peer to send so many messages, even if this rank leaves.
    pub(crate) fn promise(&self, block: SlotIndex, messages: u64) -> Result<(), Refused> {
        let write = SlotWrite { word: SlotWord::Side, value: messages, payload: &[] };
        self.theirs.write(2 * block + 1, write)
    }

    /// Tells the peer of a message, or a part of one.
    #[inline(always)]
    pub(crate) fn write_data(&self, block: SlotIndex, value: u64, payload: &[u64]) -> Result<(), Refused> {
        self.theirs.write(2 * block, SlotWrite { word: SlotWord::Main, value, payload })
    }

    /// Posts a receive at the peer.
    #[inline(always)]
    pub(crate) fn write_posting(&self, block: SlotIndex, value: u64) -> Result<(), Refused> {
        self.theirs.write(2 * block, SlotWrite { word: SlotWord::Side, value, payload: &[] })
    }

    /// Describes a receive that is no short one: its number and version, and where its message shall go.
    pub(crate) fn describe(
        &self,
        block: SlotIndex,
        (number, version): (u32, u32),
        (to, bytes): (GlobalAddress, u64),
    ) -> Result<(), Refused> {
        let posted = encoding::claim(number, version, encoding::Claim::Posted);
        self.write_claim(block, posted, &[to.bits(), encoding::size(version, bytes)])
    }

    fn write_claim(&self, block: SlotIndex, value: u64, payload: &[u64]) -> Result<(), Refused> {
        self.theirs.write(2 * block + 1, SlotWrite { word: SlotWord::Main, value, payload })
    }

    /// Sends a short message if its receive stands there already, in one line. False: it is for the slow path.
    #[inline(always)]
    pub(crate) fn send_short(&self, block: SlotIndex, bytes: &[u8]) -> bool {
        let state = self.state(block);
        // SYNC unbuffered: the number counts what has left the spool
        let may = bytes.len() <= SHORT_MAX && state.sending.is_idle() && state.buffered.load(Acquire) == 0;
        let number = self.next_number(block);
        if !may || !encoding::takes_short(self.posting(block), number, bytes.len()) {
            return false;
        }
        let value = encoding::short_data(number, self.slot(block), bytes.len());
        let written = match <[u8; 8]>::try_from(bytes) {
            Ok(word) => self.write_data(block, value, &[u64::from_le_bytes(word)]),
            Err(_) if bytes.is_empty() => self.write_data(block, value, &[]),
            Err(_) => self.write_packed(block, value, bytes),
        };
        if written.is_ok() {
            state.sent.store(number, Relaxed);
        }
        written.is_ok()
    }

    #[inline(never)]
    fn write_packed(&self, block: SlotIndex, value: u64, bytes: &[u8]) -> Result<(), Refused> {
        self.write_data(block, value, &pack(bytes)[..bytes.len().div_ceil(8)])
    }

    /// Posts a receive of at most [`SHORT_MAX`] bytes; its number.
    #[inline(always)]
    pub(crate) fn post_short(&self, block: SlotIndex, room: usize) -> Result<u32, Refused> {
        let state = self.state(block);
        let number = self.next_received(block);
        let version = state.version.load(Relaxed).wrapping_add(1);
        state.version.store(version, Relaxed);
        self.write_posting(block, encoding::short_posting(number, version, room))?;
        Ok(number)
    }

    /// Takes the short message of that number, if it is there and fits: how long it is.
    #[inline(always)]
    pub(crate) fn take_short(&self, block: SlotIndex, number: u32, into: &mut [u8]) -> Option<usize> {
        let len = encoding::brings_short(self.data(block), number)?;
        let place = into.get_mut(..len)?;
        if let Ok(word) = <&mut [u8; 8]>::try_from(&mut *place) {
            *word = self.data_word(block, 0).to_le_bytes();
        } else {
            self.unpack(block, place);
        }
        let state = self.state(block);
        state.received.store(number, Relaxed);
        state.receiving.set_idle();
        Some(len)
    }

    /// Copies the payload of a short message out.
    #[inline(never)]
    pub(crate) fn unpack(&self, block: SlotIndex, into: &mut [u8]) {
        debug_assert!(into.len() <= SHORT_MAX);
        let (whole, rest) = into.as_chunks_mut::<8>();
        for (word, bytes) in whole.iter_mut().enumerate() {
            *bytes = self.data_word(block, word).to_le_bytes();
        }
        if !rest.is_empty() {
            let mut word = self.data_word(block, whole.len());
            for byte in rest {
                (*byte, word) = (word as u8, word >> 8);
            }
        }
    }
}

/// Bytes of a short message as words.
#[inline]
pub(crate) fn pack(bytes: &[u8]) -> [u64; SLOT_PAYLOAD] {
    debug_assert!(bytes.len() <= SHORT_MAX);
    let mut words = [0; SLOT_PAYLOAD];
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, &bytes) in words.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(bytes);
    }
    if let Some(word) = words.get_mut(whole.len()) {
        *word = rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
    words
}

impl Numbered for SlotBank {
    #[inline(always)]
    fn number(&self) -> u64 {
        self.number
    }
}

/// The number of the bank that a slot of a peer lies in.
#[inline(always)]
pub(crate) fn bank_number(peer: Rank, slot: u32) -> u64 {
    u64::from(peer.0) << 32 | u64::from(slot / SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_what_the_documents_say() {
        assert_eq!(size_of::<SlotBank>(), 1184, "docs/guide/memory.md");
    }
}
