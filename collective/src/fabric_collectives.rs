//! Barriers and broadcasts of the network itself, for members that do not reach each other's memory by loads and
//! stores.
//!
//! At the first such call of a communicator, each member allocates the signals and memory that the network needs, and
//! two allgathers give their addresses to all members. Later calls use them if all members have them. A barrier is one
//! barrier of the network. In a broadcast the network writes the root's bytes, behind a header that describes them,
//! into a buffer of each member. Each member copies the bytes out and then enters a barrier of the network. Only the
//! next call waits for that barrier; when it is complete, all buffers are free again. So a broadcast takes one network
//! latency, unless the root starts it before all members have read the previous one.
//!
//! Members that do not come are detected by [`call_notices`](crate::failure::call_notices).

use crate::failure::call_notices::CallNotices;
use crate::group::Group;
use crate::message_algorithms::ONE_LINE_MAX;
use bytemuck::{Pod, Zeroable};
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{Fabric, FabricGroup, FabricGroupMember, Refused, SignalCell, certainly_reached};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// Most bytes of a member's buffer.
pub(crate) const PLACE_MAX: u64 = 64 << 10;
/// Signals that the network raises on a member: for barriers, and for broadcasts.
const SIGNALS: u32 = 2;

/// The addresses that each member sends to all others, in one short message.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct FabricAddresses {
    place: u64,
    /// The number of the first of its signals.
    signals: u32,
    /// 0 if this member has no room.
    pub(crate) found_room: u32,
}

const _: () = assert!(size_of::<FabricAddresses>() <= ONE_LINE_MAX);

/// The header before the bytes of a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct BcastHeader {
    number: u64,
    root: u32,
    bytes: u32,
}

/// Signals and memory of this member, which are freed when it is dropped.
#[derive(Debug)]
pub(crate) struct FabricMemory {
    worker: Arc<Worker>,
    pub(crate) word: FabricAddresses,
    bytes: u64,
}

/// The collectives of the network for one communicator.
#[derive(Debug)]
pub(crate) struct FabricCollectives {
    part: FabricMemory,
    key: u64,
    /// Its signals, and their initial counters: raised by barriers, and by broadcasts.
    barrier_signal: (SignalCell, u64),
    bcast_signal: (SignalCell, u64),
    /// Number of broadcasts that this member has received, and number of all broadcasts so far.
    received: AtomicU64,
    broadcasts: AtomicU64,
    call_notices: Arc<CallNotices>,
}

/// A call under way that the network performs.
pub(crate) struct FabricCall<'c> {
    pub(crate) fabric_collectives: &'c FabricCollectives,
    pub(crate) group: &'c Group,
    pub(crate) call: &'c dyn Fn() -> String,
}

impl FabricMemory {
    pub(crate) fn new(worker: &Arc<Worker>, bytes: u64) -> Result<FabricMemory> {
        let registry = worker.registry();
        let word = FabricAddresses { place: 0, signals: registry.private_signals(SIGNALS)?, found_room: 1 };
        let mut part = FabricMemory { worker: worker.clone(), word, bytes };
        if bytes > 0 {
            part.word.place = registry.allocate_local(bytes)?;
        }
        Ok(part)
    }

    fn place(&self) -> GlobalAddress {
        GlobalAddress::new(self.worker.rank(), self.word.place)
    }
}

impl Drop for FabricMemory {
    fn drop(&mut self) {
        if self.worker.fork_guard().is_forked() {
            return;
        }
        if self.word.place != 0 {
            let freed = self.worker.registry().free(self.word.place);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
        self.worker.registry().free_signals(self.word.signals, SIGNALS);
    }
}

impl Drop for FabricCollectives {
    fn drop(&mut self) {
        if !self.part.worker.fork_guard().is_forked() {
            self.part.worker.fabric().close_group(self.key); // before dropping `part` frees its memory
        }
    }
}

impl FabricAddresses {
    fn member(&self, rank: Rank) -> FabricGroupMember {
        let signal = |number| GlobalAddress::new(rank, signal_offset(number));
        let place = if self.place == 0 { GlobalAddress::NULL } else { GlobalAddress::new(rank, self.place) };
        FabricGroupMember {
            barrier_signal: signal(self.signals),
            multicast_signal: signal(self.signals + 1),
            buffer: place,
        }
    }
}

impl FabricCollectives {
    pub(crate) fn new(
        group: &Group,
        part: FabricMemory,
        words: &[FabricAddresses],
        call_notices: &Arc<CallNotices>,
    ) -> Result<FabricCollectives, Cause> {
        let worker = part.worker.clone();
        let fabric = worker.fabric();
        let (me, key) = (group.place().index(), group.messages().number());
        let ranks: Box<[Rank]> =
            Rank::all(words.len()).filter_map(|member| group.messages().rank_of(member)).collect();
        let group_members: Vec<FabricGroupMember> =
            words.iter().zip(&ranks).map(|(word, &rank)| word.member(rank)).collect();
        let signals = [0, 1].map(|at| part.word.signals + at);
        let own = |signal: u32| Ok((fabric.own_signal(signal)?, worker.count_of_own(signal)));
        let (barrier_signal, bcast_signal) = (own(signals[0])?, own(signals[1])?);
        fabric.open_group(&FabricGroup { key, members: &group_members, me, bytes: part.bytes })?;
        let [received, broadcasts] = Default::default();
        Ok(FabricCollectives {
            part,
            key,
            barrier_signal,
            bcast_signal,
            received,
            broadcasts,
            call_notices: call_notices.clone(),
        })
    }
}

impl FabricCall<'_> {
    /// Returns true if a broadcast of `bytes` fits into the buffers.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        (size_of::<BcastHeader>() + bytes) as u64 <= self.fabric_collectives.part.bytes
    }

    /// Performs a barrier.
    pub(crate) fn barrier(&self) -> Result<()> {
        self.end(self.expect_nothing().and_then(|()| self.enter_barrier()).and_then(|()| self.wait_barrier()))
    }

    /// Performs a broadcast of bytes that [fit](FabricCall::takes).
    pub(crate) fn bcast(&self, bytes: &mut [u8], root: Rank) -> Result<()> {
        let number = self.fabric_collectives.broadcasts.fetch_add(1, Ordering::Relaxed) + 1;
        let head = BcastHeader { number, root: root.to_word(), bytes: bytes.len() as u32 };
        let done = match self.group.place() == root {
            true => self.multicast(head, bytes),
            false => self.receive(head, bytes),
        };
        self.end(done.and_then(|()| self.enter_barrier()))
    }

    /// Ends a call. A call that fails is the last one, because the progress of other members is then unknown.
    fn end(&self, outcome: Result<()>) -> Result<()> {
        if outcome.is_err() {
            self.fabric_collectives.call_notices.fail();
        }
        outcome
    }

    fn worker(&self) -> &Worker {
        &self.fabric_collectives.part.worker
    }

    /// Enters the next barrier, when the previous one is complete.
    fn enter_barrier(&self) -> Result<()> {
        self.wait_barrier()?;
        self.fabric_collectives.call_notices.count_barrier();
        self.retry(|fabric| fabric.enter_barrier(self.fabric_collectives.key))
    }

    /// Returns when the last barrier that this member has entered is complete.
    fn wait_barrier(&self) -> Result<()> {
        let (cell, initial) = self.fabric_collectives.barrier_signal;
        let threshold = initial + self.fabric_collectives.call_notices.barriers();
        // The network raises this signal, even if other members have left after they entered. So this wait depends on
        // no other rank.
        self.worker().wait_signal(cell, threshold, Some(self.worker().rank()), self.call)
    }

    /// Returns an error if a broadcast has arrived that this member has not received. Its root is in another call than
    /// this member: the broadcast cannot belong to a later call, because the root of that would wait for a barrier that
    /// this member has not entered yet.
    fn expect_nothing(&self) -> Result<()> {
        let (cell, initial) = self.fabric_collectives.bcast_signal;
        let received = initial + self.fabric_collectives.received.load(Ordering::Relaxed);
        if !certainly_reached(cell.read(self.worker().fabric()), received + 1) {
            return Ok(());
        }
        let text = "another member is in a bcast: members make the same calls in the same order";
        Err(self.worker().fault(Cause::mismatch(None, text), self.call))
    }

    /// Waits until all members have received the previous broadcast, and sends bytes to all.
    fn multicast(&self, head: BcastHeader, bytes: &[u8]) -> Result<()> {
        self.wait_barrier()?;
        let all = [bytemuck::bytes_of(&head), bytes].concat();
        self.worker().put(self.fabric_collectives.part.place(), &all)?;
        self.retry(|fabric| fabric.multicast(self.fabric_collectives.key, all.len() as u64))
    }

    /// Receives the broadcast of the root.
    fn receive(&self, wanted: BcastHeader, bytes: &mut [u8]) -> Result<()> {
        let root = self.group.messages().rank_of(Rank::from_word(wanted.root));
        let (cell, initial) = self.fabric_collectives.bcast_signal;
        let threshold = initial + self.fabric_collectives.received.fetch_add(1, Ordering::Relaxed) + 1;
        self.worker().wait_signal(cell, threshold, root, self.call)?;
        let mut all = vec![0; size_of::<BcastHeader>() + bytes.len()];
        self.worker().get(self.fabric_collectives.part.place(), &mut all)?;
        let (head, payload) = all.split_at(size_of::<BcastHeader>());
        let head: BcastHeader = bytemuck::pod_read_unaligned(head);
        if head != wanted {
            return Err(self.worker().fault(disagree(head, wanted), self.call));
        }
        bytes.copy_from_slice(payload);
        Ok(())
    }

    /// Calls the fabric again until it has room.
    fn retry(&self, hand: impl Fn(&dyn Fabric) -> Result<(), Refused>) -> Result<()> {
        loop {
            match hand(self.worker().fabric()) {
                Ok(()) => return Ok(()),
                Err(Refused::Never(cause)) => return Err(self.worker().fault(*cause, self.call)),
                Err(Refused::Again | Refused::Relay) => self.worker().relax(&(self.call)())?,
            }
        }
    }
}

/// Returns the error that the root's broadcast differs from the one that this member waits for.
#[cold]
fn disagree(head: BcastHeader, wanted: BcastHeader) -> Cause {
    if (BcastHeader { bytes: wanted.bytes, ..head }) == wanted {
        return Cause::bytes_differ(head.root as usize, head.bytes.into(), wanted.bytes.into());
    }
    let text = format!(
        "broadcast {} came from root {}, and {} of root {} was waited for: members make the same calls in the same \
         order",
        head.number, head.root, wanted.number, wanted.root
    );
    Cause::mismatch(Some(head.root as usize), text)
}
