//! The memory of all ranks of the node, as this rank sees it.
#![allow(unsafe_code)]
//! Unsafe: pointers into windows that live as long as the fabric.

use crate::piece_cache;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::{CommandWrite, DirectCell, DirectLine, DirectSlots, Refused, Width};
use tasuki_core::node::node_state::NodeState;
use tasuki_core::os::memfile::MemFile;
use tasuki_core::queue::ring::RingLine;
use tasuki_core::segment::{ExtentLocation, GlobalAddress, Kind, MappedRange, PieceView, layout};

/// The windows of all ranks, made when first touched.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Unlike that of any other in this process.
    number: u64,
    files: Vec<Arc<MemFile>>,
    windows: Vec<OnceLock<Arc<MappedRange>>>,
}

/// Where the bytes of an access are.
pub(crate) enum Target<'p> {
    /// Mapped here.
    Mapped(NonNull<u8>),
    /// In memory that their owner merely owns, at `host` in its process.
    Own { window: &'p MappedRange, place: ExtentLocation, host: u64 },
}

impl Peers {
    pub(crate) fn new(files: &[Arc<MemFile>]) -> Peers {
        let windows = files.iter().map(|_| OnceLock::new()).collect();
        Peers { number: piece_cache::number(), files: files.to_vec(), windows }
    }

    #[inline]
    pub(crate) fn check(&self, rank: Rank) -> Result<(), Cause> {
        let size = self.windows.len();
        if rank.index() < size { Ok(()) } else { Err(Cause::NoSuchRank { rank, size }) }
    }

    /// The window of a rank of the job.
    #[inline]
    pub(crate) fn window(&self, rank: Rank) -> &Arc<MappedRange> {
        self.windows[rank.index()]
            .get_or_init(|| Arc::new(MappedRange::new(self.files[rank.index()].clone(), rank.index())))
    }

    /// The piece of an address, if it is mapped already. As quick as adding two numbers where this thread was there
    /// last, five loads in a row elsewhere.
    #[inline(always)]
    fn view(&self, at: GlobalAddress) -> Option<PieceView> {
        piece_cache::of(self.number, at.piece()).or_else(|| self.another_view(at))
    }

    #[inline(never)]
    fn another_view(&self, at: GlobalAddress) -> Option<PieceView> {
        if let Some(view) = piece_cache::again(self.number, at.piece()) {
            return Some(view);
        }
        let view = self.windows.get(at.rank().index())?.get()?.view(at.offset())?;
        piece_cache::remember(self.number, at.piece(), view);
        Some(view)
    }

    /// The bytes of an access, if they are job memory that is mapped already; else [`Peers::resolve`] maps them or
    /// says what they are.
    #[inline(always)]
    pub(crate) fn mapped(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        // SAFETY: our windows live as long as we do.
        unsafe { self.view(at)?.job_memory(at.offset(), len) }
    }

    /// The same of an aligned word.
    #[inline(always)]
    pub(crate) fn word(&self, at: GlobalAddress, width: Width) -> Option<NonNull<u8>> {
        if at.offset().is_multiple_of(width.bytes()) { self.mapped(at, width.bytes()) } else { None }
    }

    /// The bytes of any access with a signal of the same rank.
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
        // SAFETY: signal memory lies in the system piece, which is mapped while the window lives.
        let word = unsafe { DirectCell::new(view.system().add(signal.offset() as usize)) };
        // SAFETY: our windows live as long as we do.
        Some((unsafe { view.job_memory(at.offset(), len)? }, word))
    }

    /// Finds the bytes of any access, and maps them if need be.
    #[cold]
    pub(crate) fn resolve(&self, at: GlobalAddress, len: u64) -> Result<Target<'_>, Cause> {
        if at.is_null() {
            return Err(Cause::NullAddress);
        }
        self.check(at.rank())?;
        let window = self.window(at.rank());
        let directory = window.extent_table().map_err(cause)?;
        let place = directory.find(at.offset(), len, at.bits()).map_err(|miss| name_signals(at, miss))?;
        match place.kind {
            Kind::Job => window.at(at.offset(), place.start, place.len).map(Target::Mapped).map_err(cause),
            Kind::Own(host) => Ok(Target::Own { window, place, host }),
        }
    }

    /// The first byte of a rank's system piece.
    #[inline]
    pub(crate) fn system(&self, rank: Rank) -> Option<NonNull<u8>> {
        let window = self.windows.get(rank.index())?;
        match window.get().and_then(|window| window.mapped_system()) {
            Some(system) => Some(system),
            None => self.window(rank).system().ok(),
        }
    }

    /// The words of a signal.
    #[inline(always)]
    pub(crate) fn signal(&self, at: GlobalAddress) -> Result<DirectCell, Refused> {
        let window = self.windows.get(at.rank().index()).and_then(OnceLock::get);
        match window.and_then(|window| window.mapped_system()) {
            Some(system) if layout::is_signal(at.offset()) => {
                // SAFETY: signal memory lies in the system piece, which is mapped while the window lives.
                Ok(unsafe { DirectCell::new(system.add(at.offset() as usize)) })
            }
            _ => self.find_signal(at).map_err(Refused::from),
        }
    }

    /// The words of a signal whose rank has not been touched yet, or why there are none.
    #[cold]
    pub(crate) fn find_signal(&self, at: GlobalAddress) -> Result<DirectCell, Cause> {
        self.check(at.rank())?;
        if !layout::is_signal(at.offset()) {
            return Err(no_signal(at));
        }
        let system = self.window(at.rank()).system().map_err(cause)?;
        // SAFETY: signal memory lies in the system piece, which is mapped while the window lives.
        Ok(unsafe { DirectCell::new(system.add(at.offset() as usize)) })
    }

    /// Slot lines of any rank.
    pub(crate) fn slots(
        &self,
        at: GlobalAddress,
        lines: u64,
        node_state: &Arc<NodeState>,
    ) -> Result<DirectSlots, Cause> {
        self.check(at.rank())?;
        DirectSlots::new(self.window(at.rank()), node_state, at, lines)
    }

    /// Writes the lines of a command, the first one last.
    pub(crate) fn write_command(&self, write: &CommandWrite) -> Result<(), Cause> {
        for at in (0..write.lines as usize).rev() {
            let Target::Mapped(place) = self.resolve(write.places[at], size_of::<RingLine>() as u64)? else {
                return Err(Cause::Stale { address: write.places[at].bits() });
            };
            // SAFETY: just found; a line is made of atomics, and lies in a queue, whose lines are aligned.
            let line = unsafe { place.cast::<RingLine>().as_ref() };
            line.write(write.position + at as u64, &write.words[at]);
        }
        Ok(())
    }

    /// Bytes of private memory held for peers that were touched.
    pub(crate) fn bytes(&self) -> u64 {
        let touched: u64 =
            self.windows.iter().filter_map(|window| window.get()).map(|w| w.table_bytes()).sum();
        touched + (self.windows.len() * size_of::<OnceLock<Arc<MappedRange>>>()) as u64
    }
}

impl crate::ShmFabric {
    pub(crate) fn direct_line(&self, signal: GlobalAddress) -> Result<DirectLine<'_>, Cause> {
        let cell = self.peers.find_signal(signal)?;
        Ok(DirectLine::new(cell, self.node_state.rank_state(signal.rank()), self.mode))
    }
}

/// The address of a rank's signal.
pub(crate) fn signal_address(rank: Rank, index: u32) -> GlobalAddress {
    GlobalAddress::new(rank, layout::signal_offset(index))
}

#[cold]
fn no_signal(at: GlobalAddress) -> Cause {
    if at.is_null() { Cause::NullAddress } else { Cause::Argument(format!("no signal lies at {at}")) }
}

/// A miss in signal memory is named as such.
#[cold]
fn name_signals(at: GlobalAddress, miss: Cause) -> Cause {
    let signals = layout::SIGNALS..layout::SIGNALS + layout::SIGNALS_MAX * layout::SIGNAL_STRIDE;
    if signals.contains(&at.offset()) { Cause::SignalMemory { address: at.bits() } } else { miss }
}

#[cold]
pub(crate) fn cause(error: tasuki_core::base::Error) -> Cause {
    error.cause().clone()
}
