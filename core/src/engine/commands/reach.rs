//! Finding queues, and the words of the signals that they wait for.
#![allow(unsafe_code)]
//! Unsafe: pointers into system pieces and job memory that the fabric has just named, and that stay mapped while it
//! lives.

use super::Commands;
use crate::base::{Cause, Rank};
use crate::engine::machine::Machine;
use crate::fabric::{Arming, DirectCell, Fabric, SignalCell};
use crate::queue::area::{self, Queue};
use crate::queue::station::Station;
use crate::segment::GlobalAddress;
use crate::segment::layout::{SIGNAL_STRIDE, STATION, signal_offset};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// A queue with its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'m> {
    pub(super) owner: Rank,
    pub(super) number: u32,
    pub(super) generation: u32,
    pub(super) queue: Queue<'m>,
}

/// The first byte of a rank's own system piece.
#[derive(Debug)]
pub(super) struct OwnPiece(NonNull<u8>);

// SAFETY: a pointer to shared memory that is mapped while the machine's fabric lives.
unsafe impl Send for OwnPiece {}
// SAFETY: as above.
unsafe impl Sync for OwnPiece {}

impl Commands {
    /// What the rank of that fabric knows before it has made a queue.
    pub(in crate::engine) fn new(rank: Rank, fabric: &dyn Fabric) -> Result<Commands, Cause> {
        let system = fabric.system(rank);
        let system = system.ok_or_else(|| Cause::Bug("a rank does not reach its own memory".into()))?;
        let direct = matches!(fabric.own_signal(0)?, SignalCell::Direct(_));
        Ok(Commands {
            used: AtomicBool::new(false),
            system: OwnPiece(system),
            direct,
            coherent: fabric.capabilities().cpu_atomics,
            attending: Mutex::new(0),
            own: RwLock::new(Arc::new([])),
            made: AtomicU32::new(0),
            under_way: Mutex::default(),
            remote: Mutex::default(),
        })
    }

    /// Whether the rank has made a queue.
    #[inline(always)]
    pub(in crate::engine) fn are_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// The rank's own station.
    pub(super) fn station(&self) -> &Station {
        // SAFETY: the system piece is mapped while the fabric lives, which the machine keeps.
        unsafe { station_in(self.system.0) }
    }
}

/// # Safety
/// A system piece, mapped for `'s`.
unsafe fn station_in<'s>(system: NonNull<u8>) -> &'s Station {
    // SAFETY: by the caller's promise; a station is made of atomics.
    unsafe { system.add(STATION as usize).cast::<Station>().as_ref() }
}

impl Machine {
    /// The station of a rank, if it is in reach.
    #[inline]
    pub(super) fn station_of(&self, rank: Rank) -> Option<&Station> {
        if rank == self.rank() {
            return Some(self.commands().station());
        }
        // SAFETY: mapped while our fabric lives.
        self.system_of(rank).map(|system| unsafe { station_in(system) })
    }

    #[inline]
    fn system_of(&self, rank: Rank) -> Option<NonNull<u8>> {
        if rank == self.rank() {
            return Some(self.commands().system.0);
        }
        if self.commands().direct { self.fabric().system(rank) } else { None }
    }

    /// The queue of that rank and number, if it is in reach.
    pub(super) fn find_queue(&self, owner: Rank, number: u32) -> Option<Named<'_>> {
        let offset = self.station_of(owner)?.queue(number)?;
        self.queue_at(GlobalAddress::new(owner, offset))
    }

    /// The queue that begins there, if it is in reach.
    pub(super) fn queue_at(&self, at: GlobalAddress) -> Option<Named<'_>> {
        let head = self.queue_memory(at, area::HEAD_BYTES)?;
        // SAFETY: just found, in a registration that begins there: aligned.
        let card = unsafe { area::card_at(head)? };
        let place = self.queue_memory(at, area::bytes(card.capacity))?;
        // SAFETY: just found; what is freed stays mapped.
        let queue = unsafe { Queue::over(place, card.capacity) };
        Some(Named { owner: at.rank(), number: card.number, generation: card.generation, queue })
    }

    fn queue_memory(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        if at.rank() == self.rank() {
            return NonNull::new(self.own_place(at, len).ok()?);
        }
        self.fabric().mapped(at, len).or_else(|| self.fabric().map(at, len))
    }

    /// How far the signal of that number of a queue's rank has come.
    #[inline]
    pub(super) fn count_of(&self, owner: Rank, signal: u32) -> u64 {
        match self.signal_words(owner, signal) {
            Some(cell) if self.commands().direct => cell.counter().load(Ordering::Acquire), // SYNC signal-raise
            _ => self.fabric().read_signal(GlobalAddress::new(owner, signal_offset(signal))),
        }
    }

    /// Who waits for that signal, and whether it is poisoned.
    #[inline]
    pub(super) fn arming_of(&self, owner: Rank, signal: u32) -> Option<&Arming> {
        let system = self.system_of(owner)?;
        // SAFETY: signal memory lies in the system piece; the second line of a signal is its arming.
        Some(unsafe { system.add(signal_offset(signal) as usize + 64).cast::<Arming>().as_ref() })
    }

    /// The same of a signal of this rank's own.
    pub(in crate::engine) fn own_arming(&self, signal: GlobalAddress) -> Option<&Arming> {
        let index = (signal.offset() - signal_offset(0)) / SIGNAL_STRIDE;
        self.arming_of(self.rank(), index as u32)
    }

    #[inline]
    fn signal_words(&self, owner: Rank, signal: u32) -> Option<DirectCell> {
        let system = self.system_of(owner)?;
        // SAFETY: signal memory lies in the system piece, mapped while our fabric lives.
        Some(unsafe { DirectCell::new(system.add(signal_offset(signal) as usize)) })
    }
}
