//! A bank: 64 slots of a pair in one context, and the fast path of their short messages.
//!
//! The ranks share the lines of `encoding.rs`; all other data here belong to this rank. A thread that sends or
//! receives on a slot marks that direction of the slot busy meanwhile. It does so by plain stores: two threads that
//! use one direction of a slot at once are in error. They mostly get an error, and can corrupt nothing but that slot.

use crate::buffered::order::{BufferedOrder, Pair};
use crate::call_info::CallNames;
use crate::slot::arena::{self, LINES, UNIT_SLOTS};
use crate::slot::bank_state::{BankState, BanksOfRank};
use crate::slot::directory;
use crate::slot::encoding::{self, Posting, SHORT_MAX};
use crate::slot::state::SlotState;
use std::sync::{Arc, Weak};
use tasuki_core::base::sync::{AtomicU16, AtomicU32, Ordering::Acquire, Ordering::Relaxed};
use tasuki_core::base::{Cause, Numbered, Rank, Result, ValueKind};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{Refused, SLOT_PAYLOAD, SlotWord, SlotWrite, Slots};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::SLOT_LINE;

/// Slots of a bank.
pub(crate) const SLOTS: u32 = 64;

/// A bank of a pair, as this rank keeps it.
#[derive(Debug)]
pub(crate) struct SlotBank {
    /// The member, and the number of the bank among the pair's: see [`bank_number`].
    number: u64,
    /// The peer's rank in the context.
    pub(crate) member: Rank,
    /// The peer's rank in the job.
    pub(crate) peer: Rank,
    /// This rank's lines: written by the peer, read by this rank.
    ours: Slots<LINES>,
    /// The peer's lines: written by this rank, read by the peer.
    theirs: Slots<LINES>,
    /// The pair's first bank; `None` if this is the first.
    first_bank: Option<Arc<SlotBank>>,
    bank_state: BankState,
    states: [LocalSlot; UNIT_SLOTS],
    /// If the bank's messages are steps of calls of the program, names these calls; `None` for messages that the
    /// program sends itself.
    call_names: Option<Weak<dyn CallNames>>,
}

/// What this rank knows of one slot.
#[derive(Debug)]
pub(crate) struct LocalSlot {
    /// Number of messages sent on it.
    pub(crate) sent: AtomicU32,
    /// Number of messages received on it.
    pub(crate) received: AtomicU32,
    /// The version of the last receive posted.
    pub(crate) version: AtomicU32,
    /// The state of its sends.
    pub(crate) sending: SlotState,
    /// The state of its receives.
    pub(crate) receiving: SlotState,
    /// Number of buffered messages, which are sent before any other message.
    pub(crate) buffered: AtomicU16,
}

impl LocalSlot {
    /// Makes the state of a slot in a bank that has never been open.
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

    /// Resets the state of the slot, because its lines are new. The bank must be closed.
    fn reset(&self) {
        for count in [&self.sent, &self.received, &self.version] {
            count.store(0, Relaxed);
        }
        self.receiving.reset();
    }
}

/// The index of a slot in its bank.
pub(crate) type SlotIndex = usize;

#[cfg(not(loom))]
const _: () = assert!(size_of::<LocalSlot>() == 16);

/// The index for receives of any slot, in the pair's first bank.
pub(crate) const ANY: SlotIndex = SLOTS as usize;

impl SlotBank {
    /// Makes a bank of a pair, not open yet. Takes the peer's ranks in the context and in the job, and the pair's
    /// first bank unless this is the first.
    pub(crate) fn new_closed(
        worker: &Worker,
        (member, peer): (Rank, Rank),
        number: u32,
        first_bank: Option<Arc<SlotBank>>,
        all: &Arc<BanksOfRank>,
    ) -> Result<SlotBank> {
        // These lines are placeholders: they are not used before `open` replaces them.
        let lines = |rank| Slots::new(worker.shared_fabric(), arena::unit_at(rank, 1));
        Ok(SlotBank {
            number: bank_number(member, number * SLOTS),
            member,
            peer,
            ours: lines(worker.rank())?,
            theirs: lines(peer)?,
            first_bank,
            bank_state: BankState::new_closed(all),
            states: std::array::from_fn(|_| LocalSlot::closed()),
            call_names: None,
        })
    }

    /// Sets `call_names`, which names the calls of the program if the bank's messages are steps of such calls.
    pub(crate) fn with_call_names(self, call_names: Option<Weak<dyn CallNames>>) -> SlotBank {
        SlotBank { call_names, ..self }
    }

    /// Returns the call of the program that a message on that slot is a step of.
    pub(crate) fn program_call(&self, slot: u32) -> Option<String> {
        self.call_names.as_ref()?.upgrade()?.call_on(slot)
    }

    /// Returns true if the bank's messages are steps of calls of the program.
    pub(crate) fn is_of_calls(&self) -> bool {
        self.call_names.is_some()
    }

    /// Returns the state of the bank: whether the bank is open, and where its memory is.
    pub(crate) fn bank_state(&self) -> &BankState {
        &self.bank_state
    }

    /// Opens the bank. The caller has claimed the pair.
    pub(crate) fn open(&self, worker: &Worker, context: u64) -> Result<()> {
        let opened = directory::open(worker, self.peer, context, self.number as u32)?;
        self.ours.move_to(arena::unit_at(worker.rank(), opened.ours))?;
        self.theirs.move_to(arena::unit_at(self.peer, opened.theirs))?;
        if self.bank_state.update(&opened) {
            // Both ranks had closed the bank, so its lines are new and its message numbers begin again.
            self.states.iter().for_each(LocalSlot::reset);
        }
        self.reopen();
        self.bank_state.set_open(true);
        Ok(())
    }

    /// Releases the bank's memory. The caller has claimed the pair and closed the slots.
    pub(crate) fn release(&self, worker: &Worker) -> Result<()> {
        // Mark the bank closed first. If the next call fails, reopening finds out whether the bank was released.
        self.bank_state.set_open(false);
        directory::close(worker, self.peer, self.bank_state.entry())
    }

    /// Marks all slots closed. If one is in use, returns an error with that slot; some slots are then marked.
    pub(crate) fn close(&self) -> Result<(), Cause> {
        for (index, state) in self.states.iter().enumerate() {
            let is_buffered =
                (state.buffered.load(Relaxed) > 0).then_some("a message of it is in the send buffer");
            let is_sending = || (!state.sending.close()).then_some("a send has not been waited for");
            let is_receiving = || (!state.receiving.close()).then_some("a receive has not been waited for");
            if let Some(what) = is_buffered.or_else(is_sending).or_else(is_receiving) {
                let slot = (index != ANY).then(|| self.slot(index) as usize);
                return Err(Cause::InUse { what, slot });
            }
        }
        Ok(())
    }

    /// Returns true if no message is in flight, apart from receives on the first `preposted` slots.
    pub(crate) fn is_idle(&self, preposted: usize) -> bool {
        self.states.iter().enumerate().all(|(index, state)| {
            let is_posted = index < preposted || !state.receiving.is_in_use();
            is_posted && !state.sending.is_in_use() && state.buffered.load(Relaxed) == 0
        })
    }

    /// Marks all slots closed, also those with preposted receives. The context must never be used again.
    pub(crate) fn close_for_good(&self) {
        self.states.iter().flat_map(|state| [&state.sending, &state.receiving]).for_each(SlotState::reset);
    }

    /// Marks all slots as no longer closed.
    pub(crate) fn reopen(&self) {
        self.states.iter().flat_map(|state| [&state.sending, &state.receiving]).for_each(SlotState::reopen);
    }

    /// Returns the number of the slot at that index.
    #[inline]
    pub(crate) fn slot(&self, index: SlotIndex) -> u32 {
        self.number as u32 * SLOTS + index as u32
    }

    /// Returns the pair's first bank, which holds the slot for receives of any slot.
    pub(crate) fn first_bank(self: &Arc<SlotBank>) -> &Arc<SlotBank> {
        self.first_bank.as_ref().unwrap_or(self)
    }

    /// Returns the order of the rank's buffered messages, and the pair of this bank in it.
    pub(crate) fn buffered_order(self: &Arc<SlotBank>) -> (&BufferedOrder, Pair) {
        (self.bank_state.buffered_order(), Arc::as_ptr(self.first_bank()).addr())
    }

    #[inline(always)]
    pub(crate) fn state(&self, index: SlotIndex) -> &LocalSlot {
        &self.states[index]
    }

    /// Returns the number of the next message to the peer.
    #[inline(always)]
    pub(crate) fn next_number(&self, index: SlotIndex) -> u32 {
        self.state(index).sent.load(Relaxed).wrapping_add(1)
    }

    /// Returns the number of the next message from the peer.
    #[inline(always)]
    pub(crate) fn next_received(&self, index: SlotIndex) -> u32 {
        self.state(index).received.load(Relaxed).wrapping_add(1)
    }

    /// Returns the version of the next posting on a slot.
    pub(crate) fn next_version(&self, index: SlotIndex) -> u32 {
        let state = self.state(index);
        let version = encoding::version(state.version.load(Relaxed).wrapping_add(1));
        state.version.store(version, Relaxed);
        version
    }

    /// Returns the posting word that the peer wrote.
    #[inline(always)]
    pub(crate) fn posting(&self, index: SlotIndex) -> u64 {
        self.ours.read(2 * index, SlotWord::Side)
    }

    /// Prefetches the posting word that the peer writes.
    #[inline(always)]
    pub(crate) fn prefetch_posting(&self, index: SlotIndex) {
        self.ours.prefetch_for_read(2 * index);
    }

    /// Returns true if the peer has posted a receive of any kind for the next message.
    #[inline(always)]
    pub(crate) fn is_recv_posted(&self, index: SlotIndex) -> bool {
        let number = self.next_number(index);
        let posting = encoding::read_posting(self.posting(index), number);
        !matches!(posting, Posting::None | Posting::Withdrawn)
    }

    /// Returns true if the peer has withdrawn its receive for a message and posted no other.
    pub(crate) fn is_withdrawn(&self, index: SlotIndex, number: u32) -> bool {
        encoding::read_posting(self.posting(index), number) == Posting::Withdrawn
    }

    /// Returns true if this process can read the peer's writes directly, without calls of the fabric.
    pub(crate) fn is_directly_readable(&self) -> bool {
        self.ours.is_direct()
    }

    /// Returns true if this process can also write directly what the peer reads, so that messages need no call of the
    /// fabric.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.ours.is_direct() && self.theirs.is_direct()
    }

    /// Returns how many chunks of a staged message the peer has taken. If the peer has posted another receive since, it
    /// has taken all.
    pub(crate) fn taken(&self, index: SlotIndex, number: u32, chunks: u32) -> u32 {
        if encoding::is_later(self.posting(index), number) {
            return chunks;
        }
        encoding::read_taken(self.claim(index), number, chunks)
    }

    /// Reports to the peer how many chunks were taken.
    pub(crate) fn write_taken(&self, index: SlotIndex, number: u32, chunks: u32) -> Result<(), Refused> {
        self.write_claim(index, encoding::taken(number, chunks), &[])
    }

    /// Returns the data word that the peer wrote.
    #[inline(always)]
    pub(crate) fn data(&self, index: SlotIndex) -> u64 {
        self.ours.read(2 * index, SlotWord::Main)
    }

    /// Returns true if data about the message of that number have arrived.
    pub(crate) fn has_data(&self, index: SlotIndex, number: u32) -> bool {
        encoding::number(self.data(index)) == number
    }

    /// Returns a payload word of the data.
    #[inline(always)]
    pub(crate) fn data_word(&self, index: SlotIndex, word: usize) -> u64 {
        self.ours.payload(2 * index, word)
    }

    /// Returns the claim word of the peer's posting.
    pub(crate) fn claim(&self, index: SlotIndex) -> u64 {
        self.ours.read(2 * index + 1, SlotWord::Main)
    }

    /// Resets the part counter of a message that both ranks will copy. Called by its sender, which has claimed the
    /// receive.
    pub(crate) fn begin_split_copy(&self, index: SlotIndex) {
        self.ours.begin_parts(2 * index + 1);
    }

    /// Takes the next part of a message that both ranks copy. Called by the sender; needs mapped memory.
    pub(crate) fn take_part_as_sender(&self, index: SlotIndex) -> u32 {
        self.ours.take_part(2 * index + 1)
    }

    /// Takes the next part of a message that both ranks copy. Called by the receiver.
    pub(crate) fn take_part_as_receiver(&self, index: SlotIndex) -> u32 {
        self.theirs.take_part(2 * index + 1)
    }

    /// Prefetches the line of the claim word for reading and changing it.
    #[inline]
    pub(crate) fn prefetch_claim(&self, index: SlotIndex) {
        self.ours.prefetch_for_write(2 * index + 1);
    }

    /// Returns the address in the peer's present description of its receive.
    pub(crate) fn recv_address(&self, index: SlotIndex) -> GlobalAddress {
        GlobalAddress::from_bits(self.ours.payload(2 * index + 1, 0))
    }

    /// Returns the size of the receive of that version; `None` if the description now belongs to another version.
    pub(crate) fn recv_size(&self, index: SlotIndex, version: u32) -> Option<u64> {
        encoding::read_size(self.ours.payload(2 * index + 1, 1), version)
    }

    /// Returns the type in the peer's present description of its receive.
    pub(crate) fn recv_kind(&self, index: SlotIndex) -> ValueKind {
        ValueKind::from_bits(self.ours.payload(2 * index + 1, 2) as u32)
    }

    /// Returns the address of the claim word of the peer's posting, at this rank.
    pub(crate) fn claim_at(&self, me: Rank, index: SlotIndex) -> GlobalAddress {
        arena::unit_at(me, self.bank_state.units().0).add((2 * index as u64 + 1) * SLOT_LINE)
    }

    /// Returns the address of the claim word of this rank's posting, at the peer.
    pub(crate) fn their_claim_at(&self, index: SlotIndex) -> GlobalAddress {
        arena::unit_at(self.peer, self.bank_state.units().1).add((2 * index as u64 + 1) * SLOT_LINE)
    }

    /// Returns the number of the last message that the peer has promised to send even if it leaves.
    pub(crate) fn promised(&self, index: SlotIndex) -> u64 {
        self.ours.read(2 * index + 1, SlotWord::Side)
    }

    /// Promises the peer that this rank sends all messages up to that number even if it leaves.
    pub(crate) fn promise(&self, index: SlotIndex, messages: u64) -> Result<(), Refused> {
        let write = SlotWrite { word: SlotWord::Side, value: messages, payload: &[] };
        self.theirs.write(2 * index + 1, write)
    }

    /// Writes the data word and payload of a message, or of a part of one, at the peer.
    #[inline(always)]
    pub(crate) fn write_data(&self, index: SlotIndex, value: u64, payload: &[u64]) -> Result<(), Refused> {
        self.theirs.write(2 * index, SlotWrite { word: SlotWord::Main, value, payload })
    }

    /// Posts a receive at the peer.
    #[inline(always)]
    pub(crate) fn write_posting(&self, index: SlotIndex, value: u64) -> Result<(), Refused> {
        self.theirs.write(2 * index, SlotWrite { word: SlotWord::Side, value, payload: &[] })
    }

    /// Describes a receive that is not short: its number and version, its address, size and type.
    pub(crate) fn describe(
        &self,
        index: SlotIndex,
        (number, version): (u32, u32),
        (to, bytes, of): (GlobalAddress, u64, ValueKind),
    ) -> Result<(), Refused> {
        let posted = encoding::claim(number, version, encoding::Claim::Posted);
        self.write_claim(index, posted, &[to.bits(), encoding::size(version, bytes), u64::from(of.bits())])
    }

    fn write_claim(&self, index: SlotIndex, value: u64, payload: &[u64]) -> Result<(), Refused> {
        self.theirs.write(2 * index + 1, SlotWrite { word: SlotWord::Main, value, payload })
    }

    /// Sends a short message with one cache line, if a receive of the same type is already posted. If it returns false,
    /// the caller must take the slow path.
    #[inline(always)]
    pub(crate) fn send_short(&self, index: SlotIndex, bytes: &[u8], of: ValueKind) -> bool {
        let state = self.state(index);
        // SYNC unbuffered: `sent` includes all messages that have left the send buffer.
        let may = bytes.len() <= SHORT_MAX && state.sending.is_idle() && state.buffered.load(Acquire) == 0;
        let number = self.next_number(index);
        if !may || !encoding::accepts_short(self.posting(index), number, bytes.len(), of) {
            return false;
        }
        let value = encoding::short_data(number, of.bits(), bytes.len());
        let written = match <[u8; 8]>::try_from(bytes) {
            Ok(word) => self.write_data(index, value, &[u64::from_le_bytes(word)]),
            Err(_) if bytes.is_empty() => self.write_data(index, value, &[]),
            Err(_) => match <[u8; 16]>::try_from(bytes) {
                // Most collective calls send a value of eight bytes with a header.
                Ok(words) => self.write_data(index, value, &two_words(words)),
                Err(_) => self.write_packed(index, value, bytes),
            },
        };
        if written.is_ok() {
            state.sent.store(number, Relaxed);
        }
        written.is_ok()
    }

    #[inline(never)]
    fn write_packed(&self, index: SlotIndex, value: u64, bytes: &[u8]) -> Result<(), Refused> {
        self.write_data(index, value, &pack(bytes)[..bytes.len().div_ceil(8)])
    }

    /// Posts a receive of at most [`SHORT_MAX`] bytes, of that type. Returns its number.
    #[inline(always)]
    pub(crate) fn post_short(&self, index: SlotIndex, room: usize, of: ValueKind) -> Result<u32, Refused> {
        let state = self.state(index);
        let number = self.next_received(index);
        let version = state.version.load(Relaxed).wrapping_add(1);
        state.version.store(version, Relaxed);
        self.write_posting(index, encoding::short_posting(number, version, room, of))?;
        Ok(number)
    }

    /// Takes the short message of that number, if it has arrived, fits, and has values of that type. Returns its
    /// length.
    #[inline(always)]
    pub(crate) fn take_short(
        &self,
        index: SlotIndex,
        number: u32,
        into: &mut [u8],
        of: ValueKind,
    ) -> Option<usize> {
        let len = encoding::short_len(self.data(index), number, of)?;
        let place = into.get_mut(..len)?;
        if let Ok(word) = <&mut [u8; 8]>::try_from(&mut *place) {
            *word = self.data_word(index, 0).to_le_bytes();
        } else if let Ok(words) = <&mut [u8; 16]>::try_from(&mut *place) {
            let both = u128::from(self.data_word(index, 0)) | u128::from(self.data_word(index, 1)) << 64;
            *words = both.to_le_bytes();
        } else {
            self.unpack(index, place);
        }
        let state = self.state(index);
        state.received.store(number, Relaxed);
        state.receiving.set_idle();
        Some(len)
    }

    /// Copies the payload of a short message out of the line.
    #[inline(never)]
    pub(crate) fn unpack(&self, index: SlotIndex, into: &mut [u8]) {
        debug_assert!(into.len() <= SHORT_MAX);
        let (whole, rest) = into.as_chunks_mut::<8>();
        for (word, bytes) in whole.iter_mut().enumerate() {
            *bytes = self.data_word(index, word).to_le_bytes();
        }
        if !rest.is_empty() {
            let mut word = self.data_word(index, whole.len());
            for byte in rest {
                (*byte, word) = (word as u8, word >> 8);
            }
        }
    }
}

#[inline]
fn two_words(bytes: [u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(bytes);
    [both as u64, (both >> 64) as u64]
}

/// Packs the bytes of a short message into words.
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

/// Returns the number of the bank that contains a slot of a peer.
#[inline(always)]
pub(crate) fn bank_number(peer: Rank, slot: u32) -> u64 {
    u64::from(peer.to_word()) << 32 | u64::from(slot / SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_peer_beyond_32_bits_has_the_banks_of_another() {
        for peer in [0, 1, 7] {
            assert_ne!(bank_number(Rank(peer | 1 << 32), 70), bank_number(Rank(peer), 70));
            assert_ne!(bank_number(Rank(peer | 3 << 40), 70), bank_number(Rank(peer), 70));
        }
        assert_ne!(bank_number(Rank(1), 0), bank_number(Rank(0), u32::MAX));
    }

    #[test]
    fn bank_size_matches_the_documentation() {
        assert_eq!(size_of::<SlotBank>(), 1200, "docs/guide/memory.md");
    }
}
