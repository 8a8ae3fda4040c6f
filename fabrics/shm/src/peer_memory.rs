//! The memory of all ranks of the node, as this rank maps it.
#![allow(unsafe_code)]
//! Unsafe: pointers into mapped ranges that live as long as the fabric.

use crate::piece_cache;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::{CommandWrite, DirectCell, DirectLine, DirectSlots, Refused, Width};
use tasuki_core::node::node_state::NodeState;
use tasuki_core::os::memfile::MemFile;
use tasuki_core::queue::ring::RingLine;
use tasuki_core::segment::{ExtentLocation, GlobalAddress, Kind, MappedRange, PieceView, layout};

/// The mapped ranges of all ranks, each created at the first access.
#[derive(Debug)]
pub(crate) struct Peers {
    /// A number that no other `Peers` of this process has.
    number: u64,
    files: Vec<Arc<MemFile>>,
    ranges: Vec<OnceLock<Arc<MappedRange>>>,
}

/// The place of the bytes of an access.
pub(crate) enum Target<'p> {
    /// Mapped here.
    Mapped(NonNull<u8>),
    /// In registered program memory of the owner, at address `host` in its process.
    Program { range: &'p MappedRange, place: ExtentLocation, host: u64 },
}

impl Peers {
    pub(crate) fn new(files: &[Arc<MemFile>]) -> Peers {
        let ranges = files.iter().map(|_| OnceLock::new()).collect();
        Peers { number: piece_cache::number(), files: files.to_vec(), ranges }
    }

    #[inline]
    pub(crate) fn check(&self, rank: Rank) -> Result<(), Cause> {
        let size = self.ranges.len();
        if rank.index() < size { Ok(()) } else { Err(Cause::NoSuchRank { rank, size }) }
    }

    /// Returns the mapped range of a rank of the job.
    #[inline]
    pub(crate) fn range(&self, rank: Rank) -> &Arc<MappedRange> {
        self.ranges[rank.index()]
            .get_or_init(|| Arc::new(MappedRange::new(self.files[rank.index()].clone(), rank.index())))
    }

    /// Returns the piece of an address if it is mapped already. As fast as an addition if this thread accessed that
    /// piece last, otherwise a chain of dependent loads (`piece_cache.rs`).
    #[inline(always)]
    fn view(&self, at: GlobalAddress) -> Option<PieceView> {
        piece_cache::last(self.number, at.piece()).or_else(|| self.another_view(at))
    }

    #[inline(never)]
    fn another_view(&self, at: GlobalAddress) -> Option<PieceView> {
        if let Some(view) = piece_cache::previous(self.number, at.piece()) {
            return Some(view);
        }
        let view = self.ranges.get(at.rank().index())?.get()?.view(at.offset())?;
        piece_cache::remember(self.number, at.piece(), view);
        Some(view)
    }

    /// Returns the bytes of an access if they are job memory that is mapped already. Otherwise
    /// [`Peers::resolve`] maps them or returns what they are.
    #[inline(always)]
    pub(crate) fn mapped(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        // SAFETY: the mapped ranges live as long as `self`.
        unsafe { self.view(at)?.job_memory(at.offset(), len) }
    }

    /// Returns an aligned word, as [`Peers::mapped`] does.
    #[inline(always)]
    pub(crate) fn word(&self, at: GlobalAddress, width: Width) -> Option<NonNull<u8>> {
        if at.offset().is_multiple_of(width.bytes()) { self.mapped(at, width.bytes()) } else { None }
    }

    /// Returns the bytes of an access, and a signal of the same rank.
    #[inline(always)]
    pub(crate) fn mapped_with_signal(
        &self,
        at: GlobalAddress,
        len: u64,
        signal: GlobalAddress,
    ) -> Option<(NonNull<u8>, DirectCell)> {
        let view = self.view(at)?;
        if signal.rank() != at.rank() || !layout::is_signal(signal.offset()) {
            return None;
        }
        // SAFETY: signal memory lies in the system piece, which is mapped while the range lives.
        let word = unsafe { DirectCell::new(view.system().add(signal.offset() as usize)) };
        // SAFETY: the mapped ranges live as long as `self`.
        Some((unsafe { view.job_memory(at.offset(), len)? }, word))
    }

    /// Finds the bytes of any access, and maps them if needed.
    #[cold]
    pub(crate) fn resolve(&self, at: GlobalAddress, len: u64) -> Result<Target<'_>, Cause> {
        if at.is_null() {
            return Err(Cause::NullAddress);
        }
        self.check(at.rank())?;
        let range = self.range(at.rank());
        let extents = range.extent_table().map_err(cause)?;
        let place = extents.find(at.offset(), len, at.bits()).map_err(|miss| name_signals(at, miss))?;
        match place.kind {
            Kind::Job => range.at(at.offset(), place.start, place.len).map(Target::Mapped).map_err(cause),
            Kind::Program(host) => Ok(Target::Program { range, place, host }),
        }
    }

    /// Maps closed memory of any rank.
    #[cold]
    pub(crate) fn map_closed(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        self.check(at.rank()).ok()?;
        let range = self.range(at.rank());
        let place = range.extent_table().ok()?.find_closed(at.offset(), len)?;
        range.at(at.offset(), place.start, place.len).ok()
    }

    /// Returns the first byte of a rank's system piece.
    #[inline]
    pub(crate) fn system(&self, rank: Rank) -> Option<NonNull<u8>> {
        let range = self.ranges.get(rank.index())?;
        match range.get().and_then(|range| range.mapped_system()) {
            Some(system) => Some(system),
            None => self.range(rank).system().ok(),
        }
    }

    /// Returns the words of a signal.
    #[inline(always)]
    pub(crate) fn signal(&self, at: GlobalAddress) -> Result<DirectCell, Refused> {
        let range = self.ranges.get(at.rank().index()).and_then(OnceLock::get);
        match range.and_then(|range| range.mapped_system()) {
            Some(system) if layout::is_signal(at.offset()) => {
                // SAFETY: signal memory lies in the system piece, which is mapped while the range lives.
                Ok(unsafe { DirectCell::new(system.add(at.offset() as usize)) })
            }
            _ => self.find_signal(at).map_err(Refused::from),
        }
    }

    /// Returns the words of a signal whose rank was not accessed before, or why there are none.
    #[cold]
    pub(crate) fn find_signal(&self, at: GlobalAddress) -> Result<DirectCell, Cause> {
        self.check(at.rank())?;
        if !layout::is_signal(at.offset()) {
            return Err(no_signal(at));
        }
        let system = self.range(at.rank()).system().map_err(cause)?;
        // SAFETY: signal memory lies in the system piece, which is mapped while the range lives.
        Ok(unsafe { DirectCell::new(system.add(at.offset() as usize)) })
    }

    /// Returns slot lines of any rank.
    pub(crate) fn slots(
        &self,
        at: GlobalAddress,
        lines: u64,
        node_state: &Arc<NodeState>,
    ) -> Result<DirectSlots, Cause> {
        self.check(at.rank())?;
        DirectSlots::new(self.range(at.rank()), node_state, at, lines)
    }

    /// Writes the lines of a command, the first one last.
    pub(crate) fn write_command(&self, write: &CommandWrite) -> Result<(), Cause> {
        for at in (0..write.lines as usize).rev() {
            let Target::Mapped(place) = self.resolve(write.places[at], size_of::<RingLine>() as u64)? else {
                return Err(Cause::Stale { address: write.places[at].bits() });
            };
            // SAFETY: `resolve` has just found the place; a line is made of atomics, and lies in a
            // queue, whose lines are aligned.
            let line = unsafe { place.cast::<RingLine>().as_ref() };
            line.write(write.position + at as u64, &write.words[at]);
        }
        Ok(())
    }

    /// Returns the bytes of private memory that this rank holds for peers that it has accessed.
    pub(crate) fn bytes(&self) -> u64 {
        let touched: u64 = self.ranges.iter().filter_map(|range| range.get()).map(|w| w.table_bytes()).sum();
        touched + (self.ranges.len() * size_of::<OnceLock<Arc<MappedRange>>>()) as u64
    }
}

impl crate::ShmFabric {
    pub(crate) fn direct_line(&self, signal: GlobalAddress) -> Result<DirectLine<'_>, Cause> {
        let cell = self.peers.find_signal(signal)?;
        Ok(DirectLine::new(cell, self.node_state.rank_state(signal.rank()), self.mode))
    }
}

/// Returns the address of a rank's signal.
pub(crate) fn signal_address(rank: Rank, index: u32) -> GlobalAddress {
    GlobalAddress::new(rank, layout::signal_offset(index))
}

#[cold]
fn no_signal(at: GlobalAddress) -> Cause {
    if at.is_null() { Cause::NullAddress } else { Cause::Argument(format!("no signal lies at {at}")) }
}

/// Replaces a miss by a more exact cause if the address lies in signal memory.
#[cold]
fn name_signals(at: GlobalAddress, miss: Cause) -> Cause {
    let signals = layout::SIGNALS..layout::SIGNALS + layout::SIGNALS_MAX * layout::SIGNAL_STRIDE;
    if signals.contains(&at.offset()) { Cause::SignalMemory { address: at.bits() } } else { miss }
}

#[cold]
pub(crate) fn cause(error: tasuki_core::base::Error) -> Cause {
    error.cause().clone()
}
