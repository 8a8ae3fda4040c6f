//! A context: ranks whose messages meet those of no other context. Here: its pages, and the way of nearly every
//! short message.

use super::arena;
use super::call::Call;
use super::debt::Debt;
use super::page::{ANY, Block, Page, SLOTS, page_number};
use super::pump::Pump;
use super::strays::Strays;
use super::words::{self, SHORT_MAX};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Numbered, Rank, Result, Roll};
use tasuki_core::engine::Machine;
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

/// A short receive that was posted. Its slot is busy until [`Context::take`] or [`Context::forget_posted`].
#[derive(Clone, Copy, Debug)]
pub struct Posted<'c> {
    page: &'c Page,
    /// The message's number, the block, and for how many bytes there is room, in one word: it is put together in a
    /// register and takes one place in the processor's queue of stores.
    word: u64,
}

impl<'c> Posted<'c> {
    /// The receive of the message of that number.
    #[inline(always)]
    pub(super) fn new(page: &'c Page, block: Block, number: u32, room: usize) -> Posted<'c> {
        Posted { page, word: u64::from(number) << 32 | (block as u64) << 8 | room as u64 }
    }

    #[inline(always)]
    pub(super) fn number(&self) -> u32 {
        (self.word >> 32) as u32
    }

    #[inline(always)]
    fn block(&self) -> Block {
        usize::from((self.word >> 8) as u16)
    }

    /// For how many bytes there is room.
    #[inline(always)]
    pub fn room(&self) -> usize {
        usize::from(self.word as u8)
    }

    /// From whom, on which slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.page.member, self.page.slot(self.block()))
    }
}

/// A short message that was sent. Its slot is busy until [`Context::forget_sent`].
#[derive(Clone, Copy, Debug)]
pub struct Sent<'c> {
    page: &'c Page,
    block: Block,
}

impl<'c> Sent<'c> {
    /// To whom, on which slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.page.member, self.page.slot(self.block))
    }

    /// The page, which all messages that were sent on 64 neighbouring slots share, and its bit there.
    #[inline(always)]
    pub fn bit(&self) -> (SentPage<'c>, u64) {
        (SentPage(self.page), 1 << self.block)
    }
}

/// Neighbouring slots on which messages were sent.
#[derive(Clone, Copy, Debug)]
pub struct SentPage<'c>(&'c Page);

impl<'c> SentPage<'c> {
    /// Whether it is this one.
    #[inline(always)]
    pub fn is(self, other: SentPage<'_>) -> bool {
        std::ptr::eq(self.0, other.0)
    }

    /// The messages of these bits.
    #[inline(always)]
    pub fn sent(self, mut bits: u64) -> impl Iterator<Item = Sent<'c>> {
        std::iter::from_fn(move || {
            let block = (bits != 0).then_some(bits.trailing_zeros() as Block)?;
            bits &= bits - 1;
            Some(Sent { page: self.0, block })
        })
    }
}

/// Ranks whose messages meet those of no other context. Each is named by its place among them.
pub struct Context {
    pub(super) machine: Arc<Machine>,
    pub(super) pump: Arc<Pump>,
    /// Unlike that of any other context of the job, ever.
    pub(super) number: u64,
    pub(super) slots: u32,
    /// The members' ranks in the job; all of them, if none.
    members: Option<Arc<[Rank]>>,
    pub(super) pages: Roll<Page>,
    /// Whether messages that wait go into the rank's spool.
    pub(super) spools: bool,
    pub(super) strays: Arc<Strays>,
}

impl Context {
    /// Any slot, in a receive.
    pub const ANY: u32 = Call::ANY;

    /// The first context of a job, of all its ranks. `slots`: how many messages of a pair can be outstanding in each
    /// direction.
    pub fn first(machine: Arc<Machine>, slots: u32) -> Context {
        let pump = Arc::new(Pump::default());
        machine.employ(pump.clone());
        Context::new(machine, pump, 0, slots, None)
    }

    /// Another context of the same rank, of these members, of which it is one.
    pub fn another(&self, number: u64, slots: u32, members: Option<Arc<[Rank]>>) -> Context {
        Context::new(self.machine.clone(), self.pump.clone(), number, slots, members)
    }

    fn new(
        machine: Arc<Machine>,
        pump: Arc<Pump>,
        number: u64,
        slots: u32,
        members: Option<Arc<[Rank]>>,
    ) -> Context {
        let (pages, strays) = (Roll::default(), Arc::default());
        Context { machine, pump, number, slots, members, pages, spools: true, strays }
    }

    /// The same for messages whose receives stand ([`Context::tell`]): their turn is known by what was sent, so none
    /// goes into the spool.
    pub fn for_steps(&self, number: u64, slots: u32, members: Option<Arc<[Rank]>>) -> Context {
        Context { spools: false, ..self.another(number, slots, members) }
    }

    /// Finds or makes the slots of the pair that this member and `peer` are, so that no later call need.
    pub fn prepare(&self, peer: Rank, slot: u32) -> Result<()> {
        self.page(self.to("isend", peer, slot)).map(drop)
    }

    /// The machine whose rank it is.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// What moves on in waiting calls of the rank.
    pub fn pump(&self) -> &Pump {
        &self.pump
    }

    /// Unlike that of any other context of the job, ever.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The rank pays that when it leaves.
    pub fn owe(&self, debt: Arc<dyn Debt>) -> Result<()> {
        self.pump.owe(&self.machine, debt)
    }

    /// How many members it has.
    pub fn size(&self) -> usize {
        self.members.as_ref().map_or(self.machine.size(), |members| members.len())
    }

    /// The rank in the job of a member.
    pub fn rank_of(&self, member: Rank) -> Option<Rank> {
        match &self.members {
            None => (member.index() < self.machine.size()).then_some(member),
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
        if let Some((page, block)) = self.ready(to, slot)
            && page.send_short(block, bytes)
        {
            return Ok(());
        }
        self.send_slowly(bytes, to, slot)
    }

    /// Receives bytes from `from` on a slot, or on any.
    #[inline(always)]
    pub fn recv(&self, into: &mut [u8], from: Rank, slot: u32) -> Result<Received> {
        if into.len() <= SHORT_MAX
            && let Some((page, block)) = self.ready(from, slot)
            && page.state(block).receiving.is_idle()
            && let Ok(number) = page.post_short(block, into.len())
        {
            page.state(block).receiving.set_busy();
            return self.take("recv", Posted::new(page, block, number, into.len()), into);
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
    pub fn post(&self, room: usize, from: Rank, slot: u32) -> Result<Posted<'_>> {
        if let Some((page, block)) = self.ready(from, slot)
            && page.state(block).receiving.is_idle()
            && let Ok(number) = page.post_short(block, room)
        {
            page.state(block).receiving.set_busy();
            return Ok(Posted::new(page, block, number, room));
        }
        self.post_slowly(room, None, self.from("irecv", from, slot))
    }

    /// The same where something is in the way, for at most that long.
    #[cold]
    #[inline(never)]
    pub(super) fn post_slowly(&self, room: usize, limit: Option<Duration>, call: Call) -> Result<Posted<'_>> {
        let (page, block) = self.page(call)?;
        self.occupy_receive(&page, block, limit, call)?;
        loop {
            match page.post_short(block, room) {
                Ok(number) => return Ok(Posted::new(self.pages.kept(&page), block, number, room)),
                Err(refused) => {
                    self.retry(refused, call).inspect_err(|_| self.suspect(&page, block))?;
                }
            }
        }
    }

    /// A receive that was posted is taken back: what is sent now waits for the next one.
    pub fn forget_posted(&self, posted: Posted<'_>) {
        if let Some(page) = self.pages.find(posted.page.number()) {
            self.withdraw_short(&page, posted.block(), posted.number());
        }
    }

    /// Takes a short receive back, that of a message's number. What was sent before the sender hears of it lies in the
    /// slot's line, for the next receive there.
    #[cold]
    pub(super) fn withdraw_short(&self, page: &Arc<Page>, block: Block, number: u32) {
        let withdrawn = words::withdrawn_posting(number, page.next_version(block));
        for _ in 0..WITHDRAWALS {
            if page.is_about(block, number) || self.machine.check().is_err() {
                break;
            }
            match page.write_posting(block, withdrawn) {
                Err(Refused::Again | Refused::Relay) if !std::thread::panicking() => self.machine.pause(),
                _ => break,
            }
        }
        self.suspect(page, block);
    }

    /// Frees the slot of a receive that has ended without its message. That may have come all the same, or come still.
    #[cold]
    pub(super) fn suspect(&self, page: &Arc<Page>, block: Block) {
        match block {
            ANY => page.state(block).receiving.set_idle(), // it was claimed, so it knows
            _ => self.strays.suspect(page, block),
        }
        self.machine.stir();
    }

    /// Sends a short message if its receive stands there already. None: nothing was done.
    #[inline(always)]
    pub fn send_now(&self, bytes: &[u8], to: Rank, slot: u32) -> Option<Sent<'_>> {
        let (page, block) = self.ready(to, slot)?;
        if !page.send_short(block, bytes) {
            return None;
        }
        page.state(block).sending.set_busy();
        Some(Sent { page, block })
    }

    /// The slot of a message that was sent at once can be used again.
    #[inline(always)]
    pub fn forget_sent(&self, Sent { page, block }: Sent<'_>) {
        page.state(block).sending.set_idle();
    }

    /// Takes the message of a short receive that was posted by a call of that name.
    #[inline(always)]
    pub fn take(&self, name: &'static str, posted: Posted<'_>, into: &mut [u8]) -> Result<Received> {
        let (page, block, number) = (posted.page, posted.block(), posted.number());
        for _ in 0..self.machine.spins(Some(page.peer)) {
            if let Some(len) = page.take_short(block, number, into) {
                return Ok(Received { slot: page.slot(block), source: page.member, len: len as u64 });
            }
            std::hint::spin_loop();
        }
        self.wait_short(number, into, None, self.from(name, page.member, page.slot(block)))
    }

    /// A send by a call of that name.
    pub(super) fn to(&self, name: &'static str, peer: Rank, slot: u32) -> Call {
        Call::to(name, peer, slot).of_member(self.member(peer))
    }

    /// A receive by a call of that name.
    pub(super) fn from(&self, name: &'static str, peer: Rank, slot: u32) -> Call {
        Call::from(name, peer, slot).of_member(self.member(peer))
    }

    /// The rank in the job of a member of a part of it.
    fn member(&self, peer: Rank) -> Option<Rank> {
        self.members.as_ref().and_then(|members| members.get(peer.index()).copied())
    }

    /// The page of a slot that was used lately, if calls are possible.
    #[inline(always)]
    pub(super) fn ready(&self, peer: Rank, slot: u32) -> Option<(&Page, Block)> {
        if slot < self.slots && self.machine.check().is_ok() {
            let page = self.pages.recent(page_number(peer, slot))?;
            return Some((page, (slot % SLOTS) as usize));
        }
        None
    }

    /// The page and block of a slot, found or made.
    pub(super) fn page(&self, call: Call) -> Result<(Arc<Page>, Block)> {
        let Call { peer, slot, .. } = call;
        self.machine.check().map_err(|cause| self.fault(cause, call))?;
        if self.rank_of(peer).is_none() {
            return Err(self.fault(Cause::NoSuchRank { rank: peer, size: self.size() }, call));
        }
        if slot == Call::ANY && call.is_send() {
            let text = "a send names its slot: Slot::ANY is for receives";
            return Err(self.fault(Cause::Argument(text.into()), call));
        }
        if slot == Call::ANY {
            let pair = self.open(peer, 0, None, call)?;
            for page in self.strays.closed_pages(peer) {
                self.open_pages(&page, call)?;
            }
            return Ok((pair, ANY));
        }
        if slot >= self.slots {
            return Err(self.fault(Cause::NoSuchSlot { slot, slots: self.slots }, call));
        }
        // The pair's first page comes with any: receives of any slot are posted there.
        let pair = if slot < SLOTS { None } else { Some(self.open(peer, 0, None, call)?) };
        Ok((self.open(peer, slot, pair, call)?, (slot % SLOTS) as usize))
    }

    fn open(&self, peer: Rank, slot: u32, pair: Option<Arc<Page>>, call: Call) -> Result<Arc<Page>> {
        if let Some(page) = self.pages.recent_shared(page_number(peer, slot))
            && page.holding().is_open()
        {
            return Ok(page);
        }
        let peer_rank = self.rank_of(peer).unwrap_or(peer);
        let make = || Page::husk(&self.machine, (peer, peer_rank), slot / SLOTS, pair, &self.pump.pages);
        let page = self
            .pages
            .get_or_make(page_number(peer, slot), make)
            .map_err(|error| self.fault(error.cause().clone(), call))?;
        if !page.holding().is_open() {
            self.open_pages(&page, call)?;
        }
        Ok(page)
    }

    /// Waits a moment where a fabric had no room.
    pub(super) fn retry(&self, refused: Refused, call: Call) -> Result<()> {
        match refused {
            Refused::Never(cause) => Err(self.fault(*cause, call)),
            Refused::Again | Refused::Relay => self.machine.relax(call.name()),
        }
    }

    /// That a message is no whole number of values of so many bytes.
    #[cold]
    pub fn no_values(&self, got: Received, size: u64) -> Error {
        let Received { slot, source, len } = got;
        let text = format!(
            "the message of {len} bytes is no whole number of values of {size} bytes: receive values of the type \
             that was sent, or bytes; what came lies in the buffer"
        );
        self.fault(Cause::Argument(text), self.from("recv", source, slot))
    }

    #[cold]
    pub(super) fn fault(&self, cause: Cause, call: Call) -> Error {
        self.machine.fault(cause, || call.to_string())
    }

    /// Bytes of slots in this rank's arena that any of its contexts has open.
    pub fn slot_bytes(&self) -> u64 {
        self.pump.pages.open.load(Relaxed) as u64 * arena::UNIT
    }

    /// Bytes of private memory that all contexts of the rank take for their peers.
    pub fn private_bytes(&self) -> u64 {
        (self.pump.pages.made.load(Relaxed) * size_of::<Page>()) as u64
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("number", &self.number).finish_non_exhaustive()
    }
}
