//! A context: a set of ranks with a message space of its own. This file has its banks and the fast path of short
//! messages.

use crate::call_info::{CallInfo, CallNames};
use crate::progress::engine::ProgressEngine;
use crate::progress::finalize::FinalizeHook;
use crate::protocol::late_match::LateMatches;
use crate::receive_queue::any_source::AnySource;
use crate::receive_queue::{
    MessageLimit, MessageLimitAddress, MessagePermits, ReceiveQueue, ReceiveQueueAddress,
    ReceiveQueueOptions, ReceiveQueueSender,
};
use crate::slot::arena;
use crate::slot::bank::{ANY, SLOTS, SlotBank, SlotIndex, bank_number};
use crate::slot::encoding::{self, SHORT_MAX};
use crate::typed_slot::TypedSlot;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tasuki_core::base::sync::{AtomicBool, Ordering::Relaxed};
use tasuki_core::base::{Cause, Error, ErrorKind, IdMap, Numbered, Rank, Result, ValueKind};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::Refused;

/// A message that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The slot it was sent on.
    pub slot: u32,
    /// The sender.
    pub source: Rank,
    /// Its length in bytes.
    pub len: u64,
}

/// How often a withdrawal of a short receive is tried while the fabric has no resources. If it still fails, the
/// sender may use the receive later; the message then goes to the next receive, as for a late match.
pub(crate) const WITHDRAW_ATTEMPTS: usize = 100;

/// A short receive that was posted. Its slot is busy until [`Context::take`] or [`Context::discard_posted`].
#[derive(Clone, Copy, Debug)]
pub struct PostedRecv<'c> {
    bank: &'c SlotBank,
    /// The message's number, the kind of its values, the slot index and the size of the receive in one word. So it is
    /// built in a register and takes one entry of the processor's store buffer.
    word: u64,
}

impl<'c> PostedRecv<'c> {
    /// Describes the receive of the message of that number, of values of that type.
    #[inline(always)]
    pub(crate) fn new(
        bank: &'c SlotBank,
        index: SlotIndex,
        number: u32,
        room: usize,
        kind: ValueKind,
    ) -> PostedRecv<'c> {
        debug_assert!(
            index < SLOTS as usize && room <= SHORT_MAX,
            "a slot that is named, and a short receive"
        );
        let low = kind.bits() << 12 | (index as u32) << 6 | room as u32;
        PostedRecv { bank, word: u64::from(number) << 32 | u64::from(low) }
    }

    #[inline(always)]
    pub(crate) fn number(&self) -> u32 {
        (self.word >> 32) as u32
    }

    #[inline(always)]
    pub(crate) fn index(&self) -> SlotIndex {
        (self.word >> 6) as usize % SLOTS as usize
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> ValueKind {
        ValueKind::from_bits(self.word as u32 >> 12)
    }

    pub(crate) fn bank(&self) -> &'c SlotBank {
        self.bank
    }

    /// Returns the size of the receive in bytes.
    #[inline(always)]
    pub fn room(&self) -> usize {
        self.word as usize & 63
    }

    /// Returns the source and the slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.bank.member, self.bank.slot(self.index()))
    }
}

/// A short message that was sent. Its slot is busy until [`Context::discard_sent`].
#[derive(Clone, Copy, Debug)]
pub struct SentShort<'c> {
    bank: &'c SlotBank,
    index: SlotIndex,
}

impl<'c> SentShort<'c> {
    /// Returns the destination and the slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.bank.member, self.bank.slot(self.index))
    }

    /// Returns the bank, which 64 neighbouring slots share, and this slot's bit in it.
    #[inline(always)]
    pub fn bit(&self) -> (SentBank<'c>, u64) {
        (SentBank(self.bank), 1 << self.index)
    }
}

/// The bank of 64 neighbouring slots on which messages were sent.
#[derive(Clone, Copy, Debug)]
pub struct SentBank<'c>(&'c SlotBank);

impl<'c> SentBank<'c> {
    /// Returns true if both are the same bank.
    #[inline(always)]
    pub fn is(self, other: SentBank<'_>) -> bool {
        std::ptr::eq(self.0, other.0)
    }

    /// Returns the messages that these bits stand for.
    #[inline(always)]
    pub fn sent(self, mut bits: u64) -> impl Iterator<Item = SentShort<'c>> {
        std::iter::from_fn(move || {
            let index = (bits != 0).then_some(bits.trailing_zeros() as SlotIndex)?;
            bits &= bits - 1;
            Some(SentShort { bank: self.0, index })
        })
    }
}

/// A set of ranks with a message space of its own. A member is named by its index in the set.
pub struct Context {
    pub(crate) worker: Arc<Worker>,
    pub(crate) progress: Arc<ProgressEngine>,
    /// Identifies the context. No other context of the job has, or ever had, this number.
    pub(crate) number: u64,
    pub(crate) slots: u32,
    /// The members; `None` for all ranks of the job.
    members: Option<MemberRanks>,
    pub(crate) banks: IdMap<SlotBank>,
    /// True if sends that wait too long are buffered.
    buffers: AtomicBool,
    /// True if its messages are the program's own; false if they are steps of collective calls.
    pub(crate) is_of_program: bool,
    pub(crate) late_matches: Arc<LateMatches>,
    /// That of the rank, which all its contexts share.
    pub(crate) any_source: Arc<AnySource>,
    /// Names the calls of the program that its messages are steps of; `None` for the program's own messages.
    call_names: Option<Weak<dyn CallNames>>,
}

/// The members of a context that does not have all ranks of the job in their order.
struct MemberRanks {
    /// Their ranks in the job.
    ranks: Arc<[Rank]>,
    /// Pairs of a rank in the job and its number here, in the order of the ranks. Made when a rank is first looked for.
    by_rank: OnceLock<Box<[(u32, u32)]>>,
}

impl MemberRanks {
    fn find(&self, rank: Rank) -> Option<Rank> {
        let by_rank = self.by_rank.get_or_init(|| {
            let numbered = self.ranks.iter().zip(0..);
            let mut by_rank: Box<[_]> = numbered.map(|(rank, member)| (rank.to_word(), member)).collect();
            by_rank.sort_unstable();
            by_rank
        });
        let at = by_rank.binary_search_by_key(&rank.to_word(), |&(rank, _)| rank).ok()?;
        Some(Rank::from_word(by_rank[at].1))
    }
}

impl Context {
    /// Any slot, for a receive.
    pub const ANY: u32 = CallInfo::ANY;

    /// A slot that no context has. It stands for all numbers above, too.
    pub const NO_SLOT: u32 = CallInfo::ANY - 1;

    /// Makes the first context of a job, with all its ranks. `slots`: how many messages of a pair can be outstanding
    /// in each direction.
    pub fn first(worker: Arc<Worker>, slots: u32) -> Context {
        let progress = Arc::new(ProgressEngine::default());
        worker.set_agent(progress.clone());
        progress.buffered.show_at(Arc::downgrade(&worker));
        let any_source = Arc::new(AnySource::new(&worker));
        let unreceived: Weak<AnySource> = Arc::downgrade(&any_source);
        progress.set_any_source(unreceived);
        Context::new(worker, progress, any_source, 0, slots, None)
    }

    /// Makes another context of this rank, with these members. This rank must be one of them.
    pub fn another(&self, number: u64, slots: u32, members: Option<Arc<[Rank]>>) -> Context {
        let (worker, progress, any_source) = (&self.worker, &self.progress, &self.any_source);
        Context::new(worker.clone(), progress.clone(), any_source.clone(), number, slots, members)
    }

    fn new(
        worker: Arc<Worker>,
        progress: Arc<ProgressEngine>,
        any_source: Arc<AnySource>,
        number: u64,
        slots: u32,
        members: Option<Arc<[Rank]>>,
    ) -> Context {
        let (banks, late_matches) = (IdMap::default(), Arc::default());
        let members = members.map(|ranks| MemberRanks { ranks, by_rank: OnceLock::new() });
        Context {
            worker,
            progress,
            number,
            slots,
            members,
            banks,
            buffers: AtomicBool::new(true),
            is_of_program: true,
            late_matches,
            any_source,
            call_names: None,
        }
    }

    /// Like [`Context::another`], for messages with preposted receives ([`Context::send_preposted`]). Their slot
    /// follows from the number of messages sent, so none is buffered. They are steps of the calls that `calls` names.
    pub fn for_collectives(
        &self,
        number: u64,
        slots: u32,
        members: Option<Arc<[Rank]>>,
        calls: Weak<dyn CallNames>,
    ) -> Context {
        let buffers = AtomicBool::new(false);
        let another = self.another(number, slots, members);
        Context { buffers, is_of_program: false, call_names: Some(calls), ..another }
    }

    /// Sets whether sends of this context are buffered, as the send buffer of the rank says.
    pub fn set_buffered(&self, buffers: bool) {
        self.buffers.store(buffers, Relaxed);
    }

    /// Returns after how long a waiting send of so many bytes is buffered.
    pub(crate) fn buffers_after(&self, bytes: u64) -> Option<Duration> {
        let buffers = self.buffers.load(Relaxed);
        if buffers { self.progress.buffered.after(bytes) } else { None }
    }

    /// Finds or creates the slots of the pair of this member and `peer`, so that later calls need not.
    pub fn prepare(&self, peer: Rank, slot: u32) -> Result<()> {
        self.bank(self.to("isend", peer, slot)).map(drop)
    }

    /// Returns the worker of this rank.
    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Returns the progress engine that the rank's waiting calls run.
    pub fn progress(&self) -> &ProgressEngine {
        &self.progress
    }

    /// Lets the waker thread serve the rank until it leaves.
    pub fn serve_in_background(&self) -> Result<()> {
        self.progress.serve_in_background(&self.worker)
    }

    /// Makes a receive queue of this rank.
    pub fn receive_queue(&self, options: &ReceiveQueueOptions) -> Result<ReceiveQueue> {
        ReceiveQueue::new(&self.worker, &self.progress, options)
    }

    /// Opens a receive queue, to send to it.
    pub fn open_receive_queue(&self, address: ReceiveQueueAddress) -> Result<ReceiveQueueSender> {
        ReceiveQueueSender::open(&self.worker, &self.progress, address)
    }

    /// Makes a limit on the number of messages under way to this rank.
    pub fn message_limit(&self, messages: usize, counters: &[Rank]) -> Result<MessageLimit> {
        MessageLimit::new(&self.worker, &self.progress, messages, counters)
    }

    /// Opens a message limit, to get permits.
    pub fn open_message_limit(&self, address: MessageLimitAddress) -> Result<MessagePermits> {
        MessagePermits::open(&self.worker, address)
    }

    /// Returns the number of the context, which no other context of the job has or ever had.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Registers work that the rank does when it leaves.
    pub fn add_finalize_hook(&self, hook: Arc<dyn FinalizeHook>) -> Result<()> {
        self.progress.add_finalize_hook(&self.worker, hook)
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.members.as_ref().map_or(self.worker.size(), |members| members.ranks.len())
    }

    /// Returns the members' ranks in the job; `None` for all ranks.
    pub(crate) fn member_ranks(&self) -> Option<&Arc<[Rank]>> {
        self.members.as_ref().map(|members| &members.ranks)
    }

    /// Returns a member's rank in the job.
    pub fn rank_of(&self, member: Rank) -> Option<Rank> {
        match &self.members {
            None => (member.index() < self.worker.size()).then_some(member),
            Some(members) => members.ranks.get(member.index()).copied(),
        }
    }

    /// Returns the member with that rank in the job, if there is one.
    pub fn member_of(&self, rank: Rank) -> Option<Rank> {
        match &self.members {
            None => (rank.index() < self.worker.size()).then_some(rank),
            Some(members) => members.find(rank),
        }
    }

    /// Returns the member that a call means by a rank of the job. If all ranks are members, that is the rank itself,
    /// and the call finds out if there is no such rank.
    #[inline(always)]
    pub fn peer(&self, rank: Rank) -> Result<Rank, Cause> {
        match &self.members {
            None => Ok(rank),
            Some(members) => self.find_peer(members, rank),
        }
    }

    #[inline(never)]
    fn find_peer(&self, members: &MemberRanks, rank: Rank) -> Result<Rank, Cause> {
        self.worker.check_rank(rank)?;
        members.find(rank).ok_or(Cause::NotAMember { rank })
    }

    /// Returns the cause of an error about a member that does not exist.
    #[cold]
    pub fn no_such_member(&self, member: Rank) -> Cause {
        match &self.members {
            None => Cause::NoSuchRank { rank: member, size: self.size() },
            Some(_) => Cause::NoSuchMember { member: member.index(), size: self.size() },
        }
    }

    /// Returns how many slots a pair has in each direction.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Sends bytes to `to` on a slot. Returns when they may be reused.
    #[inline(always)] // so that a value goes from a register to the cache line
    pub fn send(&self, bytes: &[u8], to: Rank, slot: TypedSlot) -> Result<()> {
        if let Some((bank, index)) = self.ready(to, slot.slot)
            && bank.send_short(index, bytes, slot.kind)
        {
            return Ok(());
        }
        self.send_slowly(bytes, to, slot)
    }

    /// Receives bytes from `from` on a slot, or on any slot. After a timeout nothing was received, and nothing will be
    /// written to `into` later.
    #[inline(always)]
    pub fn recv(&self, into: &mut [u8], from: Rank, slot: TypedSlot) -> Result<Received> {
        if into.len() <= SHORT_MAX
            && let Some((bank, index)) = self.ready(from, slot.slot)
            && bank.state(index).receiving.is_idle()
            && let Ok(number) = bank.post_short(index, into.len(), slot.kind)
        {
            bank.state(index).receiving.set_busy();
            let posted = PostedRecv::new(bank, index, number, into.len(), slot.kind);
            return self.take("recv", posted, into);
        }
        self.recv_slowly(into, from, slot)
    }

    /// Posts a receive of at most [`SHORT_MAX`] bytes on a slot. [`Context::take`] returns its message.
    #[inline(always)]
    pub fn post(&self, room: usize, from: Rank, slot: TypedSlot) -> Result<PostedRecv<'_>> {
        match self.try_post(room, from, slot) {
            Some(posted) => Ok(posted),
            None => self.post_slowly(room, self.from("irecv", from, slot)),
        }
    }

    /// Like [`Context::post`]. Returns `None`, having done nothing, if a kept message may wait for the receive: then
    /// [`Context::begin_long_recv`] begins it.
    #[inline(always)]
    pub fn post_unless_kept(
        &self,
        room: usize,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<Option<PostedRecv<'_>>> {
        match self.try_post(room, from, slot) {
            Some(posted) => Ok(Some(posted)),
            None => self.post_unless_kept_slowly(room, from, slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn post_unless_kept_slowly(
        &self,
        room: usize,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<Option<PostedRecv<'_>>> {
        if self.late_matches.kept.holds(from, slot.slot) {
            return Ok(None);
        }
        self.post_slowly(room, self.from("irecv", from, slot)).map(Some)
    }

    /// Posts a receive if its slot is ready at once.
    #[inline(always)]
    fn try_post(&self, room: usize, from: Rank, slot: TypedSlot) -> Option<PostedRecv<'_>> {
        let (bank, index) = self.ready(from, slot.slot)?;
        if !bank.state(index).receiving.is_idle() {
            return None;
        }
        let number = bank.post_short(index, room, slot.kind).ok()?;
        bank.state(index).receiving.set_busy();
        Some(PostedRecv::new(bank, index, number, room, slot.kind))
    }

    /// Like [`Context::post`], where the slot is not ready at once.
    #[cold]
    #[inline(never)]
    fn post_slowly(&self, room: usize, call: CallInfo) -> Result<PostedRecv<'_>> {
        let (bank, index) = self.bank(call)?;
        self.occupy_receive(&bank, index, call)?;
        let number = self.post_occupied(&bank, index, room, call)?;
        Ok(PostedRecv::new(self.banks.borrow(&bank), index, number, room, call.kind))
    }

    /// Posts a short receive on an occupied slot. Returns its number.
    pub(crate) fn post_occupied(
        &self,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        room: usize,
        call: CallInfo,
    ) -> Result<u32> {
        loop {
            match bank.post_short(index, room, call.kind) {
                Ok(number) => return Ok(number),
                Err(refused) => {
                    self.retry(refused, call).inspect_err(|_| self.suspect(bank, index))?;
                }
            }
        }
    }

    /// Withdraws a receive that was posted. A message sent later waits for the next receive.
    pub fn discard_posted(&self, posted: PostedRecv<'_>) {
        if let Some(bank) = self.banks.find(posted.bank.number()) {
            self.withdraw_short(&bank, posted.index(), posted.number());
        }
    }

    /// Withdraws the short receive of that message. A message sent before the sender learns of it stays in the slot's
    /// line for the next receive there.
    #[cold]
    pub(crate) fn withdraw_short(&self, bank: &Arc<SlotBank>, index: SlotIndex, number: u32) {
        let withdrawn = encoding::withdrawn_posting(number, bank.next_version(index));
        for _ in 0..WITHDRAW_ATTEMPTS {
            if bank.has_data(index, number) || self.worker.check().is_err() {
                break;
            }
            match bank.write_posting(index, withdrawn) {
                Err(Refused::Again | Refused::Relay) if !std::thread::panicking() => self.worker.pause(),
                _ => break,
            }
        }
        self.suspect(bank, index);
    }

    /// Frees the slot of a receive that ended without its message. The message may have arrived nevertheless, or may
    /// still arrive.
    #[cold]
    pub(crate) fn suspect(&self, bank: &Arc<SlotBank>, index: SlotIndex) {
        match index {
            ANY => bank.state(index).receiving.set_idle(), // its claim word tells whether a message comes
            _ => self.late_matches.suspect(bank, index),
        }
        self.worker.wake_own_threads();
    }

    /// Sends a short message if its receive is already posted. `None`: nothing was done.
    #[inline(always)]
    pub fn try_send_short(&self, bytes: &[u8], to: Rank, slot: TypedSlot) -> Option<SentShort<'_>> {
        let (bank, index) = self.ready(to, slot.slot)?;
        if !bank.send_short(index, bytes, slot.kind) {
            return None;
        }
        bank.state(index).sending.set_busy();
        Some(SentShort { bank, index })
    }

    /// Frees the slot of a short message that was sent.
    #[inline(always)]
    pub fn discard_sent(&self, SentShort { bank, index }: SentShort<'_>) {
        bank.state(index).sending.set_idle();
    }

    /// Takes the message of a short receive that a call of that name posted.
    #[inline(always)]
    pub fn take(&self, name: &'static str, posted: PostedRecv<'_>, into: &mut [u8]) -> Result<Received> {
        let (bank, index, number) = (posted.bank, posted.index(), posted.number());
        for _ in 0..self.worker.spins(Some(bank.peer)) {
            if let Some(len) = bank.take_short(index, number, into, posted.kind()) {
                return Ok(Received { slot: bank.slot(index), source: bank.member, len: len as u64 });
            }
            std::hint::spin_loop();
        }
        let slot = TypedSlot { slot: bank.slot(index), kind: posted.kind() };
        self.wait_short(number, into, self.from(name, bank.member, slot))
    }

    /// Describes a send by a call of that name.
    pub(crate) fn to(&self, name: &'static str, peer: Rank, slot: impl Into<TypedSlot>) -> CallInfo {
        CallInfo::to(name, peer, slot).of_member(self.member(peer))
    }

    /// Describes a receive by a call of that name.
    pub(crate) fn from(&self, name: &'static str, peer: Rank, slot: impl Into<TypedSlot>) -> CallInfo {
        CallInfo::from(name, peer, slot).of_member(self.member(peer))
    }

    /// Returns a member's rank in the job, unless the context has all ranks of the job.
    fn member(&self, peer: Rank) -> Option<Rank> {
        self.members.as_ref().and_then(|members| members.ranks.get(peer.index()).copied())
    }

    /// Returns the bank and index of a slot, if the bank was used recently and calls are possible.
    #[inline(always)]
    pub(crate) fn ready(&self, peer: Rank, slot: u32) -> Option<(&SlotBank, SlotIndex)> {
        if slot < self.slots && self.worker.check().is_ok() {
            let bank = self.banks.recent(bank_number(peer, slot))?;
            return Some((bank, (slot % SLOTS) as usize));
        }
        None
    }

    /// Returns the bank and index of a slot. Creates the bank if necessary.
    pub(crate) fn bank(&self, call: CallInfo) -> Result<(Arc<SlotBank>, SlotIndex)> {
        let CallInfo { peer, slot, .. } = call;
        self.worker.check().map_err(|cause| self.fault(cause, call))?;
        if self.rank_of(peer).is_none() {
            return Err(self.fault(self.no_such_member(peer), call));
        }
        if slot == CallInfo::ANY && call.is_send() {
            let text = "a send names its slot: Slot::ANY is for receives";
            return Err(self.fault(Cause::Argument(text.into()), call));
        }
        if slot == CallInfo::ANY {
            let first_bank = self.open(peer, 0, None, call)?;
            for bank in self.late_matches.closed_banks(peer) {
                self.open_banks(&bank, call)?;
            }
            return Ok((first_bank, ANY));
        }
        if slot >= self.slots {
            return Err(
                self.fault(Cause::NoSuchSlot { slot: slot as usize, slots: self.slots as usize }, call)
            );
        }
        // Any bank needs the pair's first bank: receives of any slot are posted there.
        let first_bank = if slot < SLOTS { None } else { Some(self.open(peer, 0, None, call)?) };
        Ok((self.open(peer, slot, first_bank, call)?, (slot % SLOTS) as usize))
    }

    fn open(
        &self,
        peer: Rank,
        slot: u32,
        first_bank: Option<Arc<SlotBank>>,
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
                first_bank,
                &self.progress.banks,
            )?;
            Ok(bank.with_call_names(self.call_names.clone()))
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

    /// Describes a wait for a message, by the call that the program made.
    #[cold]
    pub(crate) fn call_text(&self, call: CallInfo) -> String {
        let names = self.call_names.as_ref().and_then(Weak::upgrade);
        names.and_then(|names| names.call_on(call.slot)).unwrap_or_else(|| call.to_string())
    }

    /// Waits a moment if the fabric lacked resources; otherwise returns the error.
    pub(crate) fn retry(&self, refused: Refused, call: CallInfo) -> Result<()> {
        match refused {
            Refused::Never(cause) => Err(self.fault(*cause, call)),
            Refused::Again | Refused::Relay => self.worker.relax(call.name()),
        }
    }

    /// Makes the error for a message in the buffer whose length is not a multiple of `size` bytes.
    #[cold]
    pub fn partial_value(&self, got: Received, size: u64) -> Error {
        let call = self.from("recv", got.source, got.slot);
        self.fault(Cause::PartialValue { len: got.len, size, is_kept: false }, call)
    }

    /// Makes the error of a send, or of a receive, of that name. It names the peer.
    #[cold]
    pub fn call_failed(
        &self,
        cause: Cause,
        (name, is_send): (&'static str, bool),
        peer: Rank,
        slot: u32,
    ) -> Error {
        let call = if is_send { self.to(name, peer, slot) } else { self.from(name, peer, slot) };
        self.fault(cause, call).with_peer(Some(call.peer_rank()))
    }

    #[cold]
    pub(crate) fn fault(&self, cause: Cause, call: CallInfo) -> Error {
        let names_peer = matches!(cause.kind(), ErrorKind::Disagreement | ErrorKind::TimedOut);
        let peer = names_peer.then(|| call.peer_rank());
        self.worker.fault(cause, || call.to_string()).with_peer(peer)
    }

    /// Returns the bytes of open slot banks in this rank's arena, over all contexts.
    pub fn slot_bytes(&self) -> u64 {
        self.progress.banks.open.load(Relaxed) as u64 * arena::UNIT
    }

    /// Returns the bytes of private memory that all contexts of the rank hold for peers.
    pub fn private_bytes(&self) -> u64 {
        (self.progress.banks.made.load(Relaxed) * size_of::<SlotBank>()) as u64
    }

    /// Returns the bytes of the rank's rings.
    pub fn ring_bytes(&self) -> u64 {
        self.progress.rings.bytes()
    }

    /// Returns the bytes of the rank's receive queues, without messages that were copied out of them.
    pub fn receive_queue_bytes(&self) -> u64 {
        self.progress.receive_queues.bytes()
    }

    /// Returns the bytes of the channels of the rank. Frees those whose ends are both gone.
    pub fn channel_bytes(&self) -> u64 {
        if self.worker.check_alive().is_ok() {
            let _ = self.progress.channels.sweep(&self.worker); // fails never
        }
        self.progress.channels.bytes()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("number", &self.number).finish_non_exhaustive()
    }
}
