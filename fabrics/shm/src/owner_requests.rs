//! Asking the owner: the way to memory that a peer merely owns where the kernel does not let us copy.
#![allow(unsafe_code)]
//! Unsafe: references to atomics in system pieces, and copies between slot buffers there and local buffers whose
//! owners promised to keep them.
//!
//! Each rank has a few slots in its system piece, each with a buffer; the protocol of a slot is in
//! [`tasuki_core::node::request_slot`]. The asker finds its answer when it polls; longer errands take several turns of one
//! slot.

use crate::ShmFabric;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::{Accept, Atomic, AtomicKind, Fabric, Posted, Refused, Sink, Token, Width};
use tasuki_core::node::node_state::{NodeState, Stage};
use tasuki_core::node::request_slot::{OwnerReply, OwnerRequest, PostedCount, RequestSlot};
use tasuki_core::os::copy;
use tasuki_core::os::process_vm::Direction;
use tasuki_core::segment::{GlobalAddress, Kind, Section, layout};

/// RequestSlots of a rank: requests to it that can be under way at a time.
pub(crate) const SLOTS: usize = 64;
/// Bytes of a slot's buffer; longer errands take several turns.
const BUFFER: u64 = 64 * 1024;

/// What is asked of an owner.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum RequestKind {
    Put,
    Get,
    Atomic(Atomic),
    /// Inside the owner's memory, to that offset.
    Copy {
        to: u64,
    },
}

impl RequestKind {
    /// Which way its bytes go, seen from the asker.
    pub(crate) fn way(self) -> Direction {
        if self == RequestKind::Get { Direction::Read } else { Direction::Write }
    }
}

/// An errand of this rank: all that it asks, piece by piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    pub(crate) ask: RequestKind,
    pub(crate) local: *mut u8,
    pub(crate) at: GlobalAddress,
    pub(crate) len: u64,
    /// A signal to raise when all is done.
    pub(crate) then: Option<(GlobalAddress, u64)>,
}

// SAFETY: the buffer is kept valid by whoever issued the operation, whichever thread polls.
unsafe impl Send for PendingRequest {}

/// Where the buffers begin: after the count and the slots, on a page of their own.
const FIRST_BUFFER: u64 = 16 * 1024;
const _: () = assert!(size_of::<RequestSlot>() * SLOTS + size_of::<PostedCount>() <= FIRST_BUFFER as usize);
const _: () = assert!(FIRST_BUFFER + SLOTS as u64 * BUFFER <= layout::REQUESTS_BYTES);

/// An errand that has ended, and the signal to raise if it ended well.
type Ended = (Token, Result<u64, Cause>, Option<(GlobalAddress, u64)>);

/// The slots of one rank, over its system piece.
#[derive(Clone, Copy, Debug)]
struct RequestSlots(NonNull<u8>);

// SAFETY: a pointer to atomics in shared memory that the fabric keeps mapped.
unsafe impl Send for RequestSlots {}
// SAFETY: as above.
unsafe impl Sync for RequestSlots {}

impl RequestSlots {
    fn new(system: NonNull<u8>) -> RequestSlots {
        // SAFETY: the request area lies in the system piece.
        RequestSlots(unsafe { system.add(layout::REQUESTS as usize) })
    }

    fn posted(&self) -> &PostedCount {
        // SAFETY: inside the request area, aligned, made of atomics.
        unsafe { self.0.cast().as_ref() }
    }

    fn slot(&self, number: usize) -> &RequestSlot {
        let at = size_of::<PostedCount>() + number % SLOTS * size_of::<RequestSlot>();
        // SAFETY: as above.
        unsafe { self.0.add(at).cast().as_ref() }
    }

    fn buffer(&self, number: usize) -> *mut u8 {
        // SAFETY: as above, by the assertion on the area's size.
        unsafe { self.0.add((FIRST_BUFFER + (number % SLOTS) as u64 * BUFFER) as usize).as_ptr() }
    }
}

/// What a rank asks of others, and what others ask of it.
#[derive(Debug)]
pub(crate) struct Requests {
    ours: RequestSlots,
    /// How many requests to us have been seen.
    seen: AtomicU64,
    asked: Mutex<RequestQueue>,
}

#[derive(Debug, Default)]
struct RequestQueue {
    under_way: VecDeque<PostedRequest>,
    failed: Vec<(Token, Cause)>,
    over: Option<Cause>,
}

#[derive(Debug)]
struct PostedRequest {
    token: Token,
    errand: PendingRequest,
    moved: u64,
    slots: RequestSlots,
    number: usize,
}

impl Requests {
    pub(crate) fn new(system: NonNull<u8>) -> Requests {
        Requests { ours: RequestSlots::new(system), seen: AtomicU64::new(0), asked: Mutex::default() }
    }

    pub(crate) fn has_work(&self, node_state: &NodeState) -> bool {
        let unseen = self.ours.posted().count() != self.seen.load(Ordering::Relaxed);
        unseen || self.asked().is_answered(node_state)
    }

    pub(crate) fn fail_all(&self, cause: &Cause) {
        let mut asked = self.asked();
        asked.over.get_or_insert_with(|| cause.clone());
        let dropped: Vec<Token> = asked.under_way.drain(..).map(|one| one.token).collect();
        asked.failed.extend(dropped.into_iter().map(|token| (token, cause.clone())));
    }

    fn asked(&self) -> MutexGuard<'_, RequestQueue> {
        self.asked.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl RequestQueue {
    fn is_answered(&self, node_state: &NodeState) -> bool {
        let done =
            |one: &PostedRequest| one.slots.slot(one.number).reply().is_some() || one.is_orphaned(node_state);
        !self.failed.is_empty() || self.under_way.iter().any(done)
    }
}

impl PostedRequest {
    /// Bytes of the piece that is asked for now.
    fn piece(&self) -> u64 {
        let left = self.errand.len - self.moved;
        if matches!(self.errand.ask, RequestKind::Copy { .. }) { left } else { left.min(BUFFER) }
    }

    /// Whether the owner has left without an answer: none will come. The stage is read first.
    fn is_orphaned(&self, node_state: &NodeState) -> bool {
        let left = node_state.rank_state(self.errand.at.rank()).stage() == Stage::Left; // SYNC rank_state-left
        left && self.slots.slot(self.number).reply().is_none()
    }

    /// Fills the slot, which is CLAIMED by us, and hands it to the owner.
    fn post(&self, asker: Rank) {
        let mut question = OwnerRequest {
            requester: asker.0,
            offset: self.errand.at.offset() + self.moved,
            len: self.piece(),
            ..OwnerRequest::default()
        };
        match self.errand.ask {
            RequestKind::Put => question.kind = PUT,
            RequestKind::Get => question.kind = GET,
            RequestKind::Atomic(atomic) => encode(atomic, &mut question),
            RequestKind::Copy { to } => (question.kind, question.operand) = (COPY, to),
        }
        if self.errand.ask == RequestKind::Put {
            let from = self.errand.local.wrapping_add(self.moved as usize);
            // SAFETY: the issuer keeps the buffer; the slot's buffer is ours while CLAIMED.
            unsafe { copy::copy(from, self.slots.buffer(self.number), self.piece() as usize) };
        }
        self.slots.slot(self.number).post(question, self.slots.posted());
    }

    /// Takes the answer. `None`: the next piece is to be asked for.
    fn take(&mut self, reply: OwnerReply) -> Option<Result<u64, Cause>> {
        let (address, bytes) = (self.errand.at.add(self.moved).bits(), self.piece());
        match reply.status {
            DONE => {}
            STALE => return Some(Err(Cause::Stale { address })),
            _ => return Some(Err(Cause::OutOfRange { address, bytes })),
        }
        if self.errand.ask == RequestKind::Get {
            let to = self.errand.local.wrapping_add(self.moved as usize);
            // SAFETY: the issuer keeps the buffer; the slot's buffer is ours while DONE.
            unsafe { copy::copy(self.slots.buffer(self.number), to, bytes as usize) };
        }
        self.moved += bytes;
        (self.moved == self.errand.len).then_some(Ok(reply.value))
    }
}

impl ShmFabric {
    /// Posts a request to the owner of `errand.at`.
    pub(crate) fn post_request(&self, accept: Accept<'_>, errand: PendingRequest) -> Result<Posted, Refused> {
        let slots = RequestSlots::new(
            self.peers.window(errand.at.rank()).system().map_err(crate::peer_memory::cause)?,
        );
        let mut asked = self.requests.asked();
        if let Some(cause) = &asked.over {
            return Err(cause.clone().into());
        }
        let peer = errand.at.rank();
        if self.node_state.rank_state(peer).stage() >= Stage::Leaving {
            return Err(Cause::PeerLeft { peer }.into());
        }
        let mut numbers = (0..SLOTS).map(|i| (i + self.rank.index() * 7) % SLOTS);
        let Some(number) = numbers.find(|&number| slots.slot(number).claim()) else {
            return Err(Refused::Again);
        };
        let one = PostedRequest { token: accept(), errand, moved: 0, slots, number };
        one.post(self.rank);
        asked.under_way.push_back(one);
        drop(asked);
        self.wake(peer);
        self.wake_helper(peer);
        Ok(Posted::Started)
    }

    /// Takes answers, asks for next pieces, and reports what has ended.
    pub(crate) fn collect(&self, sink: &mut Sink<'_>) {
        let mut ended: Vec<Ended> = Vec::new();
        let mut asked = self.requests.asked();
        ended.extend(asked.failed.drain(..).map(|(token, cause)| (token, Err(cause), None)));
        let mut next = Vec::new();
        asked.under_way.retain_mut(|one| {
            let slots = one.slots;
            let slot = slots.slot(one.number);
            if one.is_orphaned(&self.node_state) {
                // Its slot is the left rank's, of no use to anybody any more.
                ended.push((one.token, Err(Cause::PeerLeft { peer: one.errand.at.rank() }), None));
                return false;
            }
            let Some(reply) = slot.reply() else { return true };
            match one.take(reply) {
                None => {
                    slot.reuse();
                    one.post(self.rank);
                    next.push(one.errand.at.rank());
                    true
                }
                Some(outcome) => {
                    slot.release();
                    ended.push((one.token, outcome, one.errand.then));
                    false
                }
            }
        });
        drop(asked);
        for owner in next {
            self.wake(owner);
            self.wake_helper(owner);
        }
        for (token, outcome, then) in ended {
            let raised = match (&outcome, then) {
                (Ok(_), Some((signal, amount))) => self.raise(&|| 0, signal, amount),
                _ => Ok(Posted::Done(0)),
            };
            sink(token, if let Err(Refused::Never(cause)) = raised { Err(*cause) } else { outcome });
        }
    }

    /// Carries out what peers have asked.
    pub(crate) fn serve(&self) {
        let slots = self.requests.ours;
        let posted = slots.posted().count();
        if posted == self.requests.seen.swap(posted, Ordering::Relaxed) {
            return;
        }
        for number in 0..SLOTS {
            let slot = slots.slot(number);
            if let Some(question) = slot.request() {
                slot.complete(self.serve_one(&question, slots.buffer(number)));
                fence(Ordering::SeqCst); // as a raised signal: the asker's park line is looked at after the answer
                let asker = Rank(question.requester);
                if self.peers.check(asker).is_ok() {
                    self.wake(asker);
                }
            }
        }
    }

    /// Carries out one request.
    fn serve_one(&self, question: &OwnerRequest, buffer: *mut u8) -> OwnerReply {
        let status = |status| OwnerReply { status, value: 0 };
        let most = if question.kind == COPY { question.len } else { BUFFER };
        let len = question.len.min(most);
        let (host, _section) = match self.hold_own(question.offset, len) {
            Ok(held) => held,
            Err(refusal) => return status(refusal),
        };
        match question.kind {
            // SAFETY: own registered memory of that length, held by the section; the buffer is ours while POSTED.
            PUT => unsafe { copy::copy(buffer, host, len as usize) },
            // SAFETY: as above.
            GET => unsafe { copy::copy(host, buffer, len as usize) },
            COPY => match self.hold_own(question.operand, len) {
                // SAFETY: as above, both places.
                Ok((to, _section)) => unsafe { copy::copy(host, to, len as usize) },
                Err(refusal) => return status(refusal),
            },
            _ => {
                let atomic = decode(question);
                let Some(word) = NonNull::new(host) else { return status(OUTSIDE) };
                if !(host as u64).is_multiple_of(atomic.width.bytes()) || len != atomic.width.bytes() {
                    return status(OUTSIDE);
                }
                // SAFETY: own registered memory, aligned and of the word's width by the lines above.
                return OwnerReply { status: DONE, value: unsafe { atomic.apply(word) } };
            }
        }
        status(DONE)
    }

    /// Registered memory of this rank's own, kept from being freed by the section; or the status that refuses it.
    fn hold_own(&self, offset: u64, len: u64) -> Result<(*mut u8, Section), u32> {
        let offset = offset % layout::RANGE_BYTES;
        let directory = self.registry.range().extent_table().map_err(|_| OUTSIDE)?;
        let held = directory.find(offset, len, offset).and_then(|place| {
            // Another thread of this rank may be about to free it: it waits for the section.
            directory.enter(&place, offset, len, offset).map(|section| (place.kind, section))
        });
        match held {
            Ok((Kind::Own(host), section)) => Ok((host as *mut u8, section)),
            Err(Cause::Stale { .. }) => Err(STALE),
            _ => Err(OUTSIDE),
        }
    }
}

/// Kinds of a question.
const PUT: u32 = 0;
const GET: u32 = 1;
const COPY: u32 = 10;
/// Statuses of a reply.
const DONE: u32 = 0;
const OUTSIDE: u32 = 1;
const STALE: u32 = 2;

/// An atomic as a question; [`decode`] reads it.
fn encode(atomic: Atomic, question: &mut OwnerRequest) {
    question.kind = match atomic.kind {
        AtomicKind::Store => 2,
        AtomicKind::Swap => 3,
        AtomicKind::Add => 4,
        AtomicKind::Xor => 5,
        AtomicKind::Or => 6,
        AtomicKind::And => 7,
        AtomicKind::Cas { .. } => 8,
        AtomicKind::Load => 9,
    };
    question.expected = if let AtomicKind::Cas { expected } = atomic.kind { expected } else { 0 };
    question.width = atomic.width.bytes() as u32;
    question.operand = atomic.operand;
}

fn decode(question: &OwnerRequest) -> Atomic {
    let kind = match question.kind {
        2 => AtomicKind::Store,
        3 => AtomicKind::Swap,
        4 => AtomicKind::Add,
        5 => AtomicKind::Xor,
        6 => AtomicKind::Or,
        7 => AtomicKind::And,
        8 => AtomicKind::Cas { expected: question.expected },
        _ => AtomicKind::Load,
    };
    let width = if question.width == 4 { Width::W4 } else { Width::W8 };
    Atomic { kind, operand: question.operand, width }
}
