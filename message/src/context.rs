//! A context: ranks whose messages meet those of no other context. Here: its banks, and the way of nearly every
//! short message.

use crate::call_info::{CallInfo, CallNames};
use crate::progress::engine::ProgressEngine;
use crate::progress::finalize::FinalizeHook;
use crate::protocol::late_match::LateMatches;
use crate::slot::arena;
use crate::slot::bank::{ANY, SLOTS, SlotBank, SlotIndex, bank_number};
use crate::slot::encoding::{self, SHORT_MAX};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tasuki_core::base::{Cause, Error, IdMap, Numbered, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::Refused;

/// What came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// On which slot.
    pub slot: u32,
    /// From whom.
    pub source: Rank,
    /// How many bytes.
    pub len: u64,
}

/// How often a short receive is tried to be taken back, where a fabric has no room. One that is not may be sent to
/// still: then the message is for the next receive, too.
const WITHDRAWALS: usize = 100;

/// A short receive that was posted. Its slot is busy until [`Context::take`] or [`Context::discard_posted`].
#[derive(Clone, Copy, Debug)]
pub struct PostedRecv<'c> {
    bank: &'c SlotBank,
    /// The message's number, the block, and for how many bytes there is room, in one word: it is put together in a
    /// register and takes one place in the processor's queue of stores.
    word: u64,
}

impl<'c> PostedRecv<'c> {
    /// The receive of the message of that number.
    #[inline(always)]
    pub(crate) fn new(bank: &'c SlotBank, block: SlotIndex, number: u32, room: usize) -> PostedRecv<'c> {
        PostedRecv { bank, word: u64::from(number) << 32 | (block as u64) << 8 | room as u64 }
    }

    #[inline(always)]
    pub(crate) fn number(&self) -> u32 {
        (self.word >> 32) as u32
    }

    #[inline(always)]
    fn block(&self) -> SlotIndex {
        usize::from((self.word >> 8) as u16)
    }

    /// For how many bytes there is room.
    #[inline(always)]
    pub fn room(&self) -> usize {
        usize::from(self.word as u8)
    }

    /// From whom, on which slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.bank.member, self.bank.slot(self.block()))
    }
}

/// A short message that was sent. Its slot is busy until [`Context::discard_sent`].
#[derive(Clone, Copy, Debug)]
pub struct SentShort<'c> {
    bank: &'c SlotBank,
    block: SlotIndex,
}

impl<'c> SentShort<'c> {
    /// To whom, on which slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.bank.member, self.bank.slot(self.block))
    }

    /// The bank, which all messages that were sent on 64 neighbouring slots share, and its bit there.
    #[inline(always)]
    pub fn bit(&self) -> (SentBank<'c>, u64) {
        (SentBank(self.bank), 1 << self.block)
    }
}

/// Neighbouring slots on which messages were sent.
#[derive(Clone, Copy, Debug)]
pub struct SentBank<'c>(&'c SlotBank);

impl<'c> SentBank<'c> {
    /// Whether it is this one.
    #[inline(always)]
    pub fn is(self, other: SentBank<'_>) -> bool {
        std::ptr::eq(self.0, other.0)
    }

    /// The messages of these bits.
    #[inline(always)]
    pub fn sent(self, mut bits: u64) -> impl Iterator<Item = SentShort<'c>> {
        std::iter::from_fn(move || {
            let block = (bits != 0).then_some(bits.trailing_zeros() as SlotIndex)?;
            bits &= bits - 1;
            Some(SentShort { bank: self.0, block })
        })
    }
}

/// Ranks whose messages meet those of no other context. Each is named by its place among them.
pub struct Context {
    pub(crate) worker: Arc<Worker>,
    pub(crate) progress: Arc<ProgressEngine>,
    /// Unlike that of any other context of the job, ever.
    pub(crate) number: u64,
    pub(crate) slots: u32,
    /// The members' ranks in the job; all of them, if none.
    members: Option<Arc<[Rank]>>,
    pub(crate) banks: IdMap<SlotBank>,
    /// Whether messages that wait go into the rank's spool.
    pub(crate) buffers: bool,
    pub(crate) late_matches: Arc<LateMatches>,
    /// Whose steps its messages are, if they are.
    steps_of: Option<Weak<dyn CallNames>>,
}

impl Context {
    /// Any slot, in a receive.
    pub const ANY: u32 = CallInfo::ANY;

    /// The first context of a job, of all its ranks. `slots`: how many messages of a pair can be outstanding in each
    /// direction.
    pub fn first(worker: Arc<Worker>, slots: u32) -> Context {
        let progress = Arc::new(ProgressEngine::default());
        worker.set_agent(progress.clone());
        Context::new(worker, progress, 0, slots, None)
    }

    /// Another context of the same rank, of these members, of which it is one.
    pub fn another(&self, number: u64, slots: u32, members: Option<Arc<[Rank]>>) -> Context {
        Context::new(self.worker.clone(), self.progress.clone(), number, slots, members)
    }

    fn new(
        worker: Arc<Worker>,
        progress: Arc<ProgressEngine>,
        number: u64,
        slots: u32,
        members: Option<Arc<[Rank]>>,
    ) -> Context {
        let (banks, late_matches) = (IdMap::default(), Arc::default());
        Context {
            worker,
            progress,
            number,
            slots,
            members,
            banks,
            buffers: true,
            late_matches,
            steps_of: None,
        }
    }

    /// The same for messages whose receives stand ([`Context::tell`]): their turn is known by what was sent, so none
    /// goes into the spool. They are steps of what `calls` names.
    pub fn for_collectives(
        &self,
        number: u64,
        slots: u32,
        members: Option<Arc<[Rank]>>,
        calls: Weak<dyn CallNames>,
    ) -> Context {
        Context { buffers: false, steps_of: Some(calls), ..self.another(number, slots, members) }
    }

    /// Finds or makes the slots of the pair that this member and `peer` are, so that no later call need.
    pub fn prepare(&self, peer: Rank, slot: u32) -> Result<()> {
        self.bank(self.to("isend", peer, slot)).map(drop)
    }

    /// The machine whose rank it is.
    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// What moves on in waiting calls of the rank.
    pub fn progress(&self) -> &ProgressEngine {
        &self.progress
    }

    /// Unlike that of any other context of the job, ever.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The rank pays that when it leaves.
    pub fn add_finalize_hook(&self, hook: Arc<dyn FinalizeHook>) -> Result<()> {
        self.progress.add_finalize_hook(&self.worker, hook)
    }

    /// How many members it has.
    pub fn size(&self) -> usize {
        self.members.as_ref().map_or(self.worker.size(), |members| members.len())
    }

    /// The rank in the job of a member.
    pub fn rank_of(&self, member: Rank) -> Option<Rank> {
        match &self.members {
            None => (member.index() < self.worker.size()).then_some(member),
            Some(members) => members.get(member.index()).copied(),
        }
    }

    /// How many slots a pair has in each direction.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Sends bytes to `to` on a slot. Returns when they may be used again.
    #[inline(always)] // a value goes from register to line
    pub fn send(&self, bytes: &[u8], to: Rank, slot: u32) -> Result<()> {
        if let Some((bank, block)) = self.ready(to, slot)
            && bank.send_short(block, bytes)
        {
            return Ok(());
        }
        self.send_slowly(bytes, to, slot)
    }

    /// Receives bytes from `from` on a slot, or on any.
    #[inline(always)]
    pub fn recv(&self, into: &mut [u8], from: Rank, slot: u32) -> Result<Received> {
        if into.len() <= SHORT_MAX
            && let Some((bank, block)) = self.ready(from, slot)
            && bank.state(block).receiving.is_idle()
            && let Ok(number) = bank.post_short(block, into.len())
        {
            bank.state(block).receiving.set_busy();
            return self.take("recv", PostedRecv::new(bank, block, number, into.len()), into);
        }
        self.recv_slowly(into, from, slot, None)
    }

    /// The same, for at most that long. When the time has run out, nothing was received, and nothing will be written
    /// into `into` later.
    pub fn recv_within(&self, into: &mut [u8], from: Rank, slot: u32, limit: Duration) -> Result<Received> {
        self.recv_slowly(into, from, slot, Some(limit))
    }

    /// Posts a receive of at most [`SHORT_MAX`] bytes on a slot, whose message [`Context::take`] gives.
    #[inline(always)]
    pub fn post(&self, room: usize, from: Rank, slot: u32) -> Result<PostedRecv<'_>> {
        if let Some((bank, block)) = self.ready(from, slot)
            && bank.state(block).receiving.is_idle()
            && let Ok(number) = bank.post_short(block, room)
        {
            bank.state(block).receiving.set_busy();
            return Ok(PostedRecv::new(bank, block, number, room));
        }
        self.post_slowly(room, None, self.from("irecv", from, slot))
    }

    /// The same where something is in the way, for at most that long.
    #[cold]
    #[inline(never)]
    pub(crate) fn post_slowly(
        &self,
        room: usize,
        limit: Option<Duration>,
        call: CallInfo,
    ) -> Result<PostedRecv<'_>> {
        let (bank, block) = self.bank(call)?;
        self.occupy_receive(&bank, block, limit, call)?;
        loop {
            match bank.post_short(block, room) {
                Ok(number) => return Ok(PostedRecv::new(self.banks.borrow(&bank), block, number, room)),
                Err(refused) => {
                    self.retry(refused, call).inspect_err(|_| self.suspect(&bank, block))?;
                }
            }
        }
    }

    /// A receive that was posted is taken back: what is sent now waits for the next one.
    pub fn discard_posted(&self, posted: PostedRecv<'_>) {
        if let Some(bank) = self.banks.find(posted.bank.number()) {
            self.withdraw_short(&bank, posted.block(), posted.number());
        }
    }

    /// Takes a short receive back, that of a message's number. What was sent before the sender hears of it lies in the
    /// slot's line, for the next receive there.
    #[cold]
    pub(crate) fn withdraw_short(&self, bank: &Arc<SlotBank>, block: SlotIndex, number: u32) {
        let withdrawn = encoding::withdrawn_posting(number, bank.next_version(block));
        for _ in 0..WITHDRAWALS {
            if bank.is_about(block, number) || self.worker.check().is_err() {
                break;
            }
            match bank.write_posting(block, withdrawn) {
                Err(Refused::Again | Refused::Relay) if !std::thread::panicking() => self.worker.pause(),
                _ => break,
            }
        }
        self.suspect(bank, block);
    }

    /// Frees the slot of a receive that has ended without its message. That may have come all the same, or come still.
    #[cold]
    pub(crate) fn suspect(&self, bank: &Arc<SlotBank>, block: SlotIndex) {
        match block {
            ANY => bank.state(block).receiving.set_idle(), // it was claimed, so it knows
            _ => self.late_matches.suspect(bank, block),
        }
        self.worker.stir();
    }

    /// Sends a short message if its receive stands there already. None: nothing was done.
    #[inline(always)]
    pub fn try_send_short(&self, bytes: &[u8], to: Rank, slot: u32) -> Option<SentShort<'_>> {
        let (bank, block) = self.ready(to, slot)?;
        if !bank.send_short(block, bytes) {
            return None;
        }
        bank.state(block).sending.set_busy();
        Some(SentShort { bank, block })
    }

    /// The slot of a message that was sent at once can be used again.
    #[inline(always)]
    pub fn discard_sent(&self, SentShort { bank, block }: SentShort<'_>) {
        bank.state(block).sending.set_idle();
    }

    /// Takes the message of a short receive that was posted by a call of that name.
    #[inline(always)]
    pub fn take(&self, name: &'static str, posted: PostedRecv<'_>, into: &mut [u8]) -> Result<Received> {
        let (bank, block, number) = (posted.bank, posted.block(), posted.number());
        for _ in 0..self.worker.spins(Some(bank.peer)) {
            if let Some(len) = bank.take_short(block, number, into) {
                return Ok(Received { slot: bank.slot(block), source: bank.member, len: len as u64 });
            }
            std::hint::spin_loop();
        }
        self.wait_short(number, into, None, self.from(name, bank.member, bank.slot(block)))
    }

    /// A send by a call of that name.
    pub(crate) fn to(&self, name: &'static str, peer: Rank, slot: u32) -> CallInfo {
        CallInfo::to(name, peer, slot).of_member(self.member(peer))
    }

    /// A receive by a call of that name.
    pub(crate) fn from(&self, name: &'static str, peer: Rank, slot: u32) -> CallInfo {
        CallInfo::from(name, peer, slot).of_member(self.member(peer))
    }

    /// The rank in the job of a member of a part of it.
    fn member(&self, peer: Rank) -> Option<Rank> {
        self.members.as_ref().and_then(|members| members.get(peer.index()).copied())
    }

    /// The bank of a slot that was used lately, if calls are possible.
    #[inline(always)]
    pub(crate) fn ready(&self, peer: Rank, slot: u32) -> Option<(&SlotBank, SlotIndex)> {
        if slot < self.slots && self.worker.check().is_ok() {
            let bank = self.banks.recent(bank_number(peer, slot))?;
            return Some((bank, (slot % SLOTS) as usize));
        }
        None
    }

    /// The bank and block of a slot, found or made.
    pub(crate) fn bank(&self, call: CallInfo) -> Result<(Arc<SlotBank>, SlotIndex)> {
        let CallInfo { peer, slot, .. } = call;
        self.worker.check().map_err(|cause| self.fault(cause, call))?;
        if self.rank_of(peer).is_none() {
            return Err(self.fault(Cause::NoSuchRank { rank: peer, size: self.size() }, call));
        }
        if slot == CallInfo::ANY && call.is_send() {
            let text = "a send names its slot: Slot::ANY is for receives";
            return Err(self.fault(Cause::Argument(text.into()), call));
        }
        if slot == CallInfo::ANY {
            let pair = self.open(peer, 0, None, call)?;
            for bank in self.late_matches.closed_banks(peer) {
                self.open_banks(&bank, call)?;
            }
            return Ok((pair, ANY));
        }
        if slot >= self.slots {
            return Err(self.fault(Cause::NoSuchSlot { slot, slots: self.slots }, call));
        }
        // The pair's first bank comes with any: receives of any slot are posted there.
        let pair = if slot < SLOTS { None } else { Some(self.open(peer, 0, None, call)?) };
        Ok((self.open(peer, slot, pair, call)?, (slot % SLOTS) as usize))
    }

    fn open(
        &self,
        peer: Rank,
        slot: u32,
        pair: Option<Arc<SlotBank>>,
        call: CallInfo,
    ) -> Result<Arc<SlotBank>> {
        if let Some(bank) = self.banks.recent_shared(bank_number(peer, slot))
            && bank.bank_state().is_open()
        {
            return Ok(bank);
        }
        let peer_rank = self.rank_of(peer).unwrap_or(peer);
        let make = || -> Result<SlotBank> {
            let bank = SlotBank::new_closed(
                &self.worker,
                (peer, peer_rank),
                slot / SLOTS,
                pair,
                &self.progress.banks,
            )?;
            Ok(bank.with_names(self.steps_of.clone()))
        };
        let bank = self
            .banks
            .get_or_insert_with(bank_number(peer, slot), make)
            .map_err(|error| self.fault(error.cause().clone(), call))?;
        if !bank.bank_state().is_open() {
            self.open_banks(&bank, call)?;
        }
        Ok(bank)
    }

    /// What a wait for a message is told as: the call that the program made.
    #[cold]
    pub(crate) fn told(&self, call: CallInfo) -> String {
        let larger = self.steps_of.as_ref().and_then(Weak::upgrade);
        larger.and_then(|larger| larger.call_on(call.slot)).unwrap_or_else(|| call.to_string())
    }

    /// Waits a moment where a fabric had no room.
    pub(crate) fn retry(&self, refused: Refused, call: CallInfo) -> Result<()> {
        match refused {
            Refused::Never(cause) => Err(self.fault(*cause, call)),
            Refused::Again | Refused::Relay => self.worker.relax(call.name()),
        }
    }

    /// That a message is no whole number of values of so many bytes.
    #[cold]
    pub fn partial_value(&self, got: Received, size: u64) -> Error {
        let Received { slot, source, len } = got;
        let text = format!(
            "the message of {len} bytes is no whole number of values of {size} bytes: receive values of the type \
             that was sent, or bytes; what came lies in the buffer"
        );
        self.fault(Cause::Argument(text), self.from("recv", source, slot))
    }

    #[cold]
    pub(crate) fn fault(&self, cause: Cause, call: CallInfo) -> Error {
        self.worker.fault(cause, || call.to_string())
    }

    /// Bytes of slots in this rank's arena that any of its contexts has open.
    pub fn slot_bytes(&self) -> u64 {
        self.progress.banks.open.load(Relaxed) as u64 * arena::UNIT
    }

    /// Bytes of private memory that all contexts of the rank take for their peers.
    pub fn private_bytes(&self) -> u64 {
        (self.progress.banks.made.load(Relaxed) * size_of::<SlotBank>()) as u64
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("number", &self.number).finish_non_exhaustive()
    }
}
