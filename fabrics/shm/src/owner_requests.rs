//! Requests to the owner of memory: the path to registered program memory of a peer where the kernel does not permit
//! copies.
#![allow(unsafe_code)]
//! Unsafe: references to atomics in system pieces, and copies between slot buffers there and local buffers that their
//! issuers keep valid.
//!
//! Each rank has a few slots in its system piece, each with a buffer;
//! [`tasuki_core::node::request_slot`] has the protocol of a slot. The requester finds its reply
//! when it polls. A longer transfer uses one slot several times.

use crate::ShmFabric;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};
use tasuki_core::base::sync::{AtomicU64, Ordering, fence};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::{Accept, Accepted, Atomic, AtomicKind, Fabric, Refused, Sink, Token, Width};
use tasuki_core::node::node_state::{NodeState, RankStage};
use tasuki_core::node::request_slot::{OwnerReply, OwnerRequest, PostedCount, RequestSlot};
use tasuki_core::os::copy;
use tasuki_core::os::process_vm::Direction;
use tasuki_core::segment::{GlobalAddress, Kind, Section, layout};

/// Request slots of a rank: the number of requests to it that can be in flight at a time.
pub(crate) const SLOTS: usize = 64;
/// Bytes of a slot's buffer; a longer transfer uses it several times.
const BUFFER: u64 = 64 * 1024;

/// Kinds of requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum RequestKind {
    Put,
    Get,
    Atomic(Atomic),
    /// Copy inside the owner's memory, to that offset.
    Copy {
        to: u64,
    },
}

impl RequestKind {
    /// Returns the direction of the bytes, seen from the requester.
    pub(crate) fn direction(self) -> Direction {
        if self == RequestKind::Get { Direction::Read } else { Direction::Write }
    }
}

/// A whole request of this rank, which may take several pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    pub(crate) kind: RequestKind,
    pub(crate) local: *mut u8,
    pub(crate) at: GlobalAddress,
    pub(crate) len: u64,
    /// A signal to raise at the end, and the amount.
    pub(crate) then: Option<(GlobalAddress, u64)>,
}

// SAFETY: the issuer of the operation keeps the buffer valid, whichever thread polls.
unsafe impl Send for PendingRequest {}

/// Offset of the buffers in the request area: after the count and the slots, on a page of their own.
const FIRST_BUFFER: u64 = 16 * 1024;
const _: () = assert!(size_of::<RequestSlot>() * SLOTS + size_of::<PostedCount>() <= FIRST_BUFFER as usize);
const _: () = assert!(FIRST_BUFFER + SLOTS as u64 * BUFFER <= layout::REQUESTS_BYTES);

/// A request that has ended, and the signal to raise if it succeeded.
type Ended = (Token, Result<u64, Cause>, Option<(GlobalAddress, u64)>);

/// The slots of one rank, in its system piece.
#[derive(Clone, Copy, Debug)]
struct RequestSlots(NonNull<u8>);

// SAFETY: a pointer to shared memory that the fabric keeps mapped. The words in it are atomics, and the protocol of a
// slot gives its buffer to one rank at a time.
unsafe impl Send for RequestSlots {}
// SAFETY: a pointer to shared memory that the fabric keeps mapped. The words in it are atomics, and the protocol of a
// slot gives its buffer to one rank at a time.
unsafe impl Sync for RequestSlots {}

impl RequestSlots {
    fn new(system: NonNull<u8>) -> RequestSlots {
        // SAFETY: the request area lies in the system piece.
        RequestSlots(unsafe { system.add(layout::REQUESTS as usize) })
    }

    fn posted(&self) -> &PostedCount {
        // SAFETY: the mapped request area begins with the count, which is aligned and made of atomics.
        unsafe { self.0.cast().as_ref() }
    }

    fn slot(&self, number: usize) -> &RequestSlot {
        let at = size_of::<PostedCount>() + number % SLOTS * size_of::<RequestSlot>();
        // SAFETY: `SLOTS` slots follow the count in the mapped request area, aligned and made of atomics.
        unsafe { self.0.add(at).cast().as_ref() }
    }

    fn buffer(&self, number: usize) -> *mut u8 {
        // SAFETY: `SLOTS` buffers begin at `FIRST_BUFFER`, and end inside the mapped request area, as an assertion
        // beside that constant checks.
        unsafe { self.0.add((FIRST_BUFFER + (number % SLOTS) as u64 * BUFFER) as usize).as_ptr() }
    }
}

/// This rank's requests to others, and the slots for requests to it.
#[derive(Debug)]
pub(crate) struct Requests {
    ours: RequestSlots,
    /// The count of requests to this rank when it last handled them.
    seen: AtomicU64,
    queue: Mutex<RequestQueue>,
}

#[derive(Debug, Default)]
struct RequestQueue {
    in_flight: VecDeque<PostedRequest>,
    failed: Vec<(Token, Cause)>,
    failure: Option<Cause>,
}

#[derive(Debug)]
struct PostedRequest {
    token: Token,
    request: PendingRequest,
    moved: u64,
    slots: RequestSlots,
    number: usize,
}

impl Requests {
    pub(crate) fn new(system: NonNull<u8>) -> Requests {
        Requests { ours: RequestSlots::new(system), seen: AtomicU64::new(0), queue: Mutex::default() }
    }

    pub(crate) fn has_work(&self, node_state: &NodeState) -> bool {
        let unseen = self.ours.posted().count() != self.seen.load(Ordering::Relaxed);
        unseen || self.queue().has_replies(node_state)
    }

    pub(crate) fn fail_all(&self, cause: &Cause) {
        let mut queue = self.queue();
        queue.failure.get_or_insert_with(|| cause.clone());
        let dropped: Vec<Token> = queue.in_flight.drain(..).map(|one| one.token).collect();
        queue.failed.extend(dropped.into_iter().map(|token| (token, cause.clone())));
    }

    fn queue(&self) -> MutexGuard<'_, RequestQueue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl RequestQueue {
    fn has_replies(&self, node_state: &NodeState) -> bool {
        let done =
            |one: &PostedRequest| one.slots.slot(one.number).reply().is_some() || one.is_orphaned(node_state);
        !self.failed.is_empty() || self.in_flight.iter().any(done)
    }
}

impl PostedRequest {
    /// Returns the bytes of the current piece.
    fn piece(&self) -> u64 {
        let left = self.request.len - self.moved;
        if matches!(self.request.kind, RequestKind::Copy { .. }) { left } else { left.min(BUFFER) }
    }

    /// Returns true if the owner has left without a reply, so that none will come. Reads the stage before the reply.
    fn is_orphaned(&self, node_state: &NodeState) -> bool {
        let left = node_state.rank_state(self.request.at.rank()).stage() == RankStage::Left; // SYNC rank-left
        left && self.slots.slot(self.number).reply().is_none()
    }

    /// Fills the slot, which this rank has CLAIMED, and hands it to the owner.
    fn post(&self, requester: Rank) {
        let mut request = OwnerRequest {
            requester: requester.to_word(),
            offset: self.request.at.offset() + self.moved,
            len: self.piece(),
            ..OwnerRequest::default()
        };
        match self.request.kind {
            RequestKind::Put => request.kind = PUT,
            RequestKind::Get => request.kind = GET,
            RequestKind::Atomic(atomic) => encode(atomic, &mut request),
            RequestKind::Copy { to } => (request.kind, request.operand) = (COPY, to),
        }
        if self.request.kind == RequestKind::Put {
            let from = self.request.local.wrapping_add(self.moved as usize);
            // SAFETY: the issuer keeps the buffer; the slot's buffer is ours while CLAIMED.
            unsafe { copy::copy(from, self.slots.buffer(self.number), self.piece() as usize) };
        }
        self.slots.slot(self.number).post(request, self.slots.posted());
    }

    /// Takes a reply. Returns `None` if another piece must be requested.
    fn take(&mut self, reply: OwnerReply) -> Option<Result<u64, Cause>> {
        let (address, bytes) = (self.request.at.add(self.moved).bits(), self.piece());
        match reply.status {
            DONE => {}
            STALE => return Some(Err(Cause::Stale { address })),
            _ => return Some(Err(Cause::OutOfRange { address, bytes, registration: None })),
        }
        if self.request.kind == RequestKind::Get {
            let to = self.request.local.wrapping_add(self.moved as usize);
            // SAFETY: the issuer keeps the buffer; the slot's buffer is ours while DONE.
            unsafe { copy::copy(self.slots.buffer(self.number), to, bytes as usize) };
        }
        self.moved += bytes;
        (self.moved == self.request.len).then_some(Ok(reply.value))
    }
}

impl ShmFabric {
    /// Posts a request to the owner of `request.at`.
    pub(crate) fn post_request(
        &self,
        accept: Accept<'_>,
        request: PendingRequest,
    ) -> Result<Accepted, Refused> {
        let slots = RequestSlots::new(
            self.peers.range(request.at.rank()).system().map_err(crate::peer_memory::cause)?,
        );
        let mut queue = self.requests.queue();
        if let Some(cause) = &queue.failure {
            return Err(cause.clone().into());
        }
        let peer = request.at.rank();
        if self.node_state.rank_state(peer).stage() >= RankStage::Leaving {
            return Err(Cause::PeerLeft { peer }.into());
        }
        let mut numbers = (0..SLOTS).map(|i| (i + self.rank.index() * 7) % SLOTS);
        let Some(number) = numbers.find(|&number| slots.slot(number).claim()) else {
            return Err(Refused::Again);
        };
        let one = PostedRequest { token: accept(), request, moved: 0, slots, number };
        one.post(self.rank);
        queue.in_flight.push_back(one);
        drop(queue);
        self.wake(peer);
        self.wake_helper(peer);
        Ok(Accepted::Started)
    }

    /// Takes replies, requests next pieces, and reports the requests that have ended.
    pub(crate) fn collect(&self, sink: &mut Sink<'_>) {
        let mut ended: Vec<Ended> = Vec::new();
        let mut queue = self.requests.queue();
        ended.extend(queue.failed.drain(..).map(|(token, cause)| (token, Err(cause), None)));
        let mut next = Vec::new();
        queue.in_flight.retain_mut(|one| {
            let slots = one.slots;
            let slot = slots.slot(one.number);
            if one.is_orphaned(&self.node_state) {
                // The slot belongs to the rank that has left; no rank needs it any more.
                ended.push((one.token, Err(Cause::PeerLeft { peer: one.request.at.rank() }), None));
                return false;
            }
            let Some(reply) = slot.reply() else { return true };
            match one.take(reply) {
                None => {
                    slot.reuse();
                    one.post(self.rank);
                    next.push(one.request.at.rank());
                    true
                }
                Some(outcome) => {
                    slot.release();
                    ended.push((one.token, outcome, one.request.then));
                    false
                }
            }
        });
        drop(queue);
        for owner in next {
            self.wake(owner);
            self.wake_helper(owner);
        }
        for (token, outcome, then) in ended {
            let raised = match (&outcome, then) {
                (Ok(_), Some((signal, amount))) => self.raise(&|| 0, signal, amount),
                _ => Ok(Accepted::Done(0)),
            };
            sink(token, if let Err(Refused::Never(cause)) = raised { Err(*cause) } else { outcome });
        }
    }

    /// Carries out the requests of peers.
    pub(crate) fn handle_requests(&self) {
        let slots = self.requests.ours;
        let posted = slots.posted().count();
        if posted == self.requests.seen.swap(posted, Ordering::Relaxed) {
            return;
        }
        for number in 0..SLOTS {
            let slot = slots.slot(number);
            if let Some(request) = slot.request() {
                slot.complete(self.handle_request(&request, slots.buffer(number)));
                fence(Ordering::SeqCst); // as for a raised signal: the requester's park line is read after the reply was written
                let requester = Rank::from_word(request.requester);
                if self.peers.check(requester).is_ok() {
                    self.wake(requester);
                }
            }
        }
    }

    /// Carries out one request.
    fn handle_request(&self, request: &OwnerRequest, buffer: *mut u8) -> OwnerReply {
        let status = |status| OwnerReply { status, value: 0 };
        let most = if request.kind == COPY { request.len } else { BUFFER };
        let len = request.len.min(most);
        let (host, _section) = match self.enter_program_memory(request.offset, len) {
            Ok(held) => held,
            Err(refusal) => return status(refusal),
        };
        match request.kind {
            // SAFETY: the section keeps `len` bytes of this rank's registered memory at `host`; the slot's buffer
            // belongs to the owner while POSTED.
            PUT => unsafe { copy::copy(buffer, host, len as usize) },
            // SAFETY: the section keeps `len` bytes of this rank's registered memory at `host`; the slot's buffer
            // belongs to the owner while POSTED.
            GET => unsafe { copy::copy(host, buffer, len as usize) },
            COPY => match self.enter_program_memory(request.operand, len) {
                // SAFETY: two sections keep `len` bytes of this rank's registered memory at `host` and at `to`.
                Ok((to, _section)) => unsafe { copy::copy(host, to, len as usize) },
                Err(refusal) => return status(refusal),
            },
            _ => {
                let atomic = decode(request);
                let Some(word) = NonNull::new(host) else { return status(OUTSIDE) };
                if !(host as u64).is_multiple_of(atomic.width.bytes()) || len != atomic.width.bytes() {
                    return status(OUTSIDE);
                }
                // SAFETY: the section keeps the word in this rank's registered memory; its width and alignment were
                // just checked.
                return OwnerReply { status: DONE, value: unsafe { atomic.apply(word) } };
            }
        }
        status(DONE)
    }

    /// Returns registered program memory of this rank with a section that keeps it valid, or the status that refuses
    /// it.
    fn enter_program_memory(&self, offset: u64, len: u64) -> Result<(*mut u8, Section), u32> {
        let offset = offset % layout::RANGE_BYTES;
        let extents = self.registry.range().extent_table().map_err(|_| OUTSIDE)?;
        let held = extents.find(offset, len, offset).and_then(|place| {
            // Another thread of this rank may be about to free the memory: it waits for the section.
            extents.enter(&place, offset, len, offset).map(|section| (place.kind, section))
        });
        match held {
            Ok((Kind::Program(host), section)) => Ok((host as *mut u8, section)),
            Err(Cause::Stale { .. }) => Err(STALE),
            _ => Err(OUTSIDE),
        }
    }
}

/// Kinds of requests, as numbers in the slot.
const PUT: u32 = 0;
const GET: u32 = 1;
const COPY: u32 = 10;
/// Statuses of a reply.
const DONE: u32 = 0;
const OUTSIDE: u32 = 1;
const STALE: u32 = 2;

/// Encodes an atomic operation as a request; [`decode`] reads it.
fn encode(atomic: Atomic, request: &mut OwnerRequest) {
    request.kind = match atomic.kind {
        AtomicKind::Store => 2,
        AtomicKind::Swap => 3,
        AtomicKind::Add => 4,
        AtomicKind::Xor => 5,
        AtomicKind::Or => 6,
        AtomicKind::And => 7,
        AtomicKind::Cas { .. } => 8,
        AtomicKind::Load => 9,
    };
    request.expected = if let AtomicKind::Cas { expected } = atomic.kind { expected } else { 0 };
    request.width = atomic.width.bytes() as u32;
    request.operand = atomic.operand;
}

fn decode(request: &OwnerRequest) -> Atomic {
    let kind = match request.kind {
        2 => AtomicKind::Store,
        3 => AtomicKind::Swap,
        4 => AtomicKind::Add,
        5 => AtomicKind::Xor,
        6 => AtomicKind::Or,
        7 => AtomicKind::And,
        8 => AtomicKind::Cas { expected: request.expected },
        _ => AtomicKind::Load,
    };
    let width = if request.width == 4 { Width::W4 } else { Width::W8 };
    Atomic { kind, operand: request.operand, width }
}
