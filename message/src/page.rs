//! A page: 64 slots of a pair in one context, and the fast path of their short messages.
//!
//! What two ranks share are the lines of `words.rs`; what stands here besides is this rank's own. A thread that sends
//! on a slot, or receives, marks the slot's direction busy while it does. The marks are plain stores: two threads that
//! use one slot in one direction at once are in error, are told so mostly, and can confuse nothing but that slot.

use super::arena::{self, BLOCKS, LINES};
use super::directory;
use super::holding::{Counts, Holding};
use super::mark::Mark;
use super::words::{self, Posting, SHORT_MAX};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::Acquire, Ordering::Relaxed};
use tasuki_core::base::{Cause, Numbered, Rank, Result};
use tasuki_core::engine::Machine;
use tasuki_core::fabric::{Refused, SLOT_PAYLOAD, SlotWord, SlotWrite, Slots};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::SLOT_LINE;

/// Slots of a page.
pub(crate) const SLOTS: u32 = 64;

/// A page of a pair, as this rank has it.
#[derive(Debug)]
pub(crate) struct Page {
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
    /// The pair's first page, if this is another.
    pair: Option<Arc<Page>>,
    holding: Holding,
    states: [State; BLOCKS],
}

/// What a rank knows of one slot.
#[derive(Debug)]
pub(crate) struct State {
    /// Messages sent on it.
    pub(crate) sent: AtomicU32,
    /// Messages received on it.
    pub(crate) received: AtomicU32,
    /// The version of the last receive posted.
    pub(crate) version: AtomicU32,
    /// Whether a send has not been waited for.
    pub(crate) sending: Mark,
    /// The same of a receive.
    pub(crate) receiving: Mark,
    /// Messages in the spool, which go first.
    pub(crate) spooled: AtomicU16,
}

impl State {
    /// Of a page that was never open.
    fn closed() -> State {
        State {
            sent: AtomicU32::new(0),
            received: AtomicU32::new(0),
            version: AtomicU32::new(0),
            sending: Mark::closed(),
            receiving: Mark::closed(),
            spooled: AtomicU16::new(0),
        }
    }

    /// Its lines are new. For one whose page is shut.
    fn begin_anew(&self) {
        for count in [&self.sent, &self.received, &self.version] {
            count.store(0, Relaxed);
        }
        self.receiving.begin_anew();
    }
}

/// A block of a page, by its place in it.
pub(crate) type Block = usize;

#[cfg(not(loom))]
const _: () = assert!(size_of::<State>() == 16);

/// The block of a pair's first page for receives of any slot.
pub(crate) const ANY: Block = SLOTS as usize;

impl Page {
    /// The page of a pair, which is not open; the peer by its name in the context and by its rank in the job. `pair`:
    /// its first page, if this is another.
    pub(crate) fn husk(
        machine: &Machine,
        (member, peer): (Rank, Rank),
        number: u32,
        pair: Option<Arc<Page>>,
        counts: &Arc<Counts>,
    ) -> Result<Page> {
        // Whosever they are: nobody uses these lines before the page is open, and then they are others.
        let lines = |rank| Slots::new(machine.shared_fabric(), arena::unit_at(rank, 1));
        Ok(Page {
            number: page_number(member, number * SLOTS),
            member,
            peer,
            first: number * SLOTS,
            ours: lines(machine.rank())?,
            theirs: lines(peer)?,
            pair,
            holding: Holding::none(counts),
            states: std::array::from_fn(|_| State::closed()),
        })
    }

    /// Whether it is open, and where.
    pub(crate) fn holding(&self) -> &Holding {
        &self.holding
    }

    /// Opens it. For who has claimed the pair.
    pub(crate) fn open(&self, machine: &Machine, context: u64) -> Result<()> {
        let opened = directory::open(machine, self.peer, context, self.first / SLOTS)?;
        self.ours.move_to(arena::unit_at(machine.rank(), opened.ours))?;
        self.theirs.move_to(arena::unit_at(self.peer, opened.theirs))?;
        if self.holding.note(&opened) {
            // Both ranks had let go: its lines are new, and so are the numbers of its messages.
            self.states.iter().for_each(State::begin_anew);
        }
        self.unshut();
        self.holding.set_open(true);
        Ok(())
    }

    /// Lets go of it. For who has claimed the pair and shut the page.
    pub(crate) fn let_go(&self, machine: &Machine) -> Result<()> {
        // Also if the next call fails: opening it finds out whether that has let go.
        self.holding.set_open(false);
        directory::close(machine, self.peer, self.holding.entry())
    }

    /// Marks all its slots closed, unless one is in use: then says which, and some are marked.
    pub(crate) fn shut(&self) -> Result<(), Cause> {
        for (block, state) in self.states.iter().enumerate() {
            let is_spooled = (state.spooled.load(Relaxed) > 0).then_some("a message of it lies in the spool");
            let is_sending = || (!state.sending.shut()).then_some("a send has not been waited for");
            let is_receiving = || (!state.receiving.shut()).then_some("a receive has not been waited for");
            if let Some(what) = is_spooled.or_else(is_sending).or_else(is_receiving) {
                let slot = (block != ANY).then(|| self.slot(block));
                return Err(Cause::InUse { what, slot });
            }
        }
        Ok(())
    }

    /// Takes those marks away.
    pub(crate) fn unshut(&self) {
        self.states.iter().flat_map(|state| [&state.sending, &state.receiving]).for_each(Mark::unshut);
    }

    /// The number of the slot whose block that is.
    #[inline]
    pub(crate) fn slot(&self, block: Block) -> u32 {
        self.first + block as u32
    }

    /// The page whose last block is for receives of any slot.
    pub(crate) fn pair(self: &Arc<Page>) -> &Arc<Page> {
        self.pair.as_ref().unwrap_or(self)
    }

    #[inline(always)]
    pub(crate) fn state(&self, block: Block) -> &State {
        &self.states[block]
    }

    /// The number of the next message to the peer.
    #[inline(always)]
    pub(crate) fn next_number(&self, block: Block) -> u32 {
        self.state(block).sent.load(Relaxed).wrapping_add(1)
    }

    /// The number of the next message from the peer.
    #[inline(always)]
    pub(crate) fn next_received(&self, block: Block) -> u32 {
        self.state(block).received.load(Relaxed).wrapping_add(1)
    }

    /// The version of the next posting on a slot.
    pub(crate) fn next_version(&self, block: Block) -> u32 {
        let state = self.state(block);
        let version = words::version(state.version.load(Relaxed).wrapping_add(1));
        state.version.store(version, Relaxed);
        version
    }

    /// What the peer has posted.
    #[inline(always)]
    pub(crate) fn posting(&self, block: Block) -> u64 {
        self.ours.read(2 * block, SlotWord::Side)
    }

    /// What the peer has posted will be read.
    #[inline(always)]
    pub(crate) fn will_send(&self, block: Block) {
        self.ours.will_read(2 * block);
    }

    /// Whether the peer has posted a receive for the next message, of whatever kind.
    #[inline(always)]
    pub(crate) fn is_awaited(&self, block: Block) -> bool {
        let number = self.next_number(block);
        let posting = words::read_posting(self.posting(block), number);
        !matches!(posting, Posting::None | Posting::Withdrawn)
    }

    /// Whether the peer has withdrawn the receive for a message, and posted no other.
    pub(crate) fn is_withdrawn(&self, block: Block, number: u32) -> bool {
        words::read_posting(self.posting(block), number) == Posting::Withdrawn
    }

    /// Whether what the peer writes lies in this process's reach: looking at it is no call of the fabric.
    pub(crate) fn is_in_reach(&self) -> bool {
        self.ours.is_direct()
    }

    /// Whether what the peer reads does so, too: no call that moves a message is one of the fabric.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.ours.is_direct() && self.theirs.is_direct()
    }

    /// How many chunks of a staged message the peer has taken: all, if it has posted another receive since.
    pub(crate) fn taken(&self, block: Block, number: u32, chunks: u32) -> u32 {
        if words::is_later(self.posting(block), number) {
            return chunks;
        }
        words::read_taken(self.claim(block), number, chunks)
    }

    /// Tells the peer how many chunks were taken.
    pub(crate) fn tell_taken(&self, block: Block, number: u32, chunks: u32) -> Result<(), Refused> {
        self.write_claim(block, words::taken(number, chunks), &[])
    }

    /// What the peer has sent.
    #[inline(always)]
    pub(crate) fn data(&self, block: Block) -> u64 {
        self.ours.read(2 * block, SlotWord::Main)
    }

    /// Whether something of the message of that number has come.
    pub(crate) fn is_about(&self, block: Block, number: u32) -> bool {
        words::number(self.data(block)) == number
    }

    /// A word of what it has sent.
    #[inline(always)]
    pub(crate) fn data_word(&self, block: Block, index: usize) -> u64 {
        self.ours.payload(2 * block, index)
    }

    /// The claim of the peer's posting.
    pub(crate) fn claim(&self, block: Block) -> u64 {
        self.ours.read(2 * block + 1, SlotWord::Main)
    }

    /// No part of the message that both ranks are going to copy is taken. For its sender, who has the claim.
    pub(crate) fn deal(&self, block: Block) {
        self.ours.begin_turns(2 * block + 1);
    }

    /// Takes the next part of a message that both ranks copy: for its sender. On mapped memory.
    pub(crate) fn our_turn(&self, block: Block) -> u32 {
        self.ours.take_turn(2 * block + 1)
    }

    /// The same for its receiver.
    pub(crate) fn their_turn(&self, block: Block) -> u32 {
        self.theirs.take_turn(2 * block + 1)
    }

    /// The claim will be read and changed: fetches its line once for both.
    #[inline]
    pub(crate) fn will_claim(&self, block: Block) {
        self.ours.will_change(2 * block + 1);
    }

    /// Where the receive wants its message, as the description says that stands there now.
    pub(crate) fn wanted_at(&self, block: Block) -> GlobalAddress {
        GlobalAddress::from_bits(self.ours.payload(2 * block + 1, 0))
    }

    /// The size of the receive of that version; none if another one is described there by now.
    pub(crate) fn wanted_size(&self, block: Block, version: u32) -> Option<u64> {
        words::read_size(self.ours.payload(2 * block + 1, 1), version)
    }

    /// Where the claim of the peer's posting lies, at this rank.
    pub(crate) fn claim_at(&self, me: Rank, block: Block) -> GlobalAddress {
        arena::unit_at(me, self.holding.units().0).add((2 * block as u64 + 1) * SLOT_LINE)
    }

    /// Where the claim of our own posting lies, at the peer.
    pub(crate) fn their_claim_at(&self, block: Block) -> GlobalAddress {
        arena::unit_at(self.peer, self.holding.units().1).add((2 * block as u64 + 1) * SLOT_LINE)
    }

    /// Up to which message the peer has promised to send, even if it leaves.
    pub(crate) fn promised(&self, block: Block) -> u64 {
        self.ours.read(2 * block + 1, SlotWord::Side)
    }

    /// Promises the peer to send so many messages, even if this rank leaves.
    pub(crate) fn promise(&self, block: Block, messages: u64) -> Result<(), Refused> {
        let write = SlotWrite { word: SlotWord::Side, value: messages, payload: &[] };
        self.theirs.write(2 * block + 1, write)
    }

    /// Tells the peer of a message, or a part of one.
    #[inline(always)]
    pub(crate) fn write_data(&self, block: Block, value: u64, payload: &[u64]) -> Result<(), Refused> {
        self.theirs.write(2 * block, SlotWrite { word: SlotWord::Main, value, payload })
    }

    /// Posts a receive at the peer.
    #[inline(always)]
    pub(crate) fn write_posting(&self, block: Block, value: u64) -> Result<(), Refused> {
        self.theirs.write(2 * block, SlotWrite { word: SlotWord::Side, value, payload: &[] })
    }

    /// Describes a receive that is no short one: its number and version, and where its message shall go.
    pub(crate) fn describe(
        &self,
        block: Block,
        (number, version): (u32, u32),
        (to, bytes): (GlobalAddress, u64),
    ) -> Result<(), Refused> {
        let posted = words::claim(number, version, words::Claim::Posted);
        self.write_claim(block, posted, &[to.bits(), words::size(version, bytes)])
    }

    fn write_claim(&self, block: Block, value: u64, payload: &[u64]) -> Result<(), Refused> {
        self.theirs.write(2 * block + 1, SlotWrite { word: SlotWord::Main, value, payload })
    }

    /// Sends a short message if its receive stands there already, in one line. False: it is for the slow path.
    #[inline(always)]
    pub(crate) fn send_short(&self, block: Block, bytes: &[u8]) -> bool {
        let state = self.state(block);
        // SYNC unspooled: the number counts what has left the spool
        let may = bytes.len() <= SHORT_MAX && state.sending.is_idle() && state.spooled.load(Acquire) == 0;
        let number = self.next_number(block);
        if !may || !words::takes_short(self.posting(block), number, bytes.len()) {
            return false;
        }
        let value = words::short_data(number, self.slot(block), bytes.len());
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
    fn write_packed(&self, block: Block, value: u64, bytes: &[u8]) -> Result<(), Refused> {
        self.write_data(block, value, &pack(bytes)[..bytes.len().div_ceil(8)])
    }

    /// Posts a receive of at most [`SHORT_MAX`] bytes; its number.
    #[inline(always)]
    pub(crate) fn post_short(&self, block: Block, room: usize) -> Result<u32, Refused> {
        let state = self.state(block);
        let number = self.next_received(block);
        let version = state.version.load(Relaxed).wrapping_add(1);
        state.version.store(version, Relaxed);
        self.write_posting(block, words::short_posting(number, version, room))?;
        Ok(number)
    }

    /// Takes the short message of that number, if it is there and fits: how long it is.
    #[inline(always)]
    pub(crate) fn take_short(&self, block: Block, number: u32, into: &mut [u8]) -> Option<usize> {
        let len = words::brings_short(self.data(block), number)?;
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
    pub(crate) fn unpack(&self, block: Block, into: &mut [u8]) {
        debug_assert!(into.len() <= SHORT_MAX);
        let (whole, rest) = into.as_chunks_mut::<8>();
        for (index, bytes) in whole.iter_mut().enumerate() {
            *bytes = self.data_word(block, index).to_le_bytes();
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

impl Numbered for Page {
    #[inline(always)]
    fn number(&self) -> u64 {
        self.number
    }
}

/// The number of the page that a slot of a peer lies in.
#[inline(always)]
pub(crate) fn page_number(peer: Rank, slot: u32) -> u64 {
    u64::from(peer.0) << 32 | u64::from(slot / SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_what_the_documents_say() {
        assert_eq!(size_of::<Page>(), 1184, "docs/memory.md");
    }
}
