//! The memories of all simulated ranks: separate files, as processes have, which only the simulator reaches all of.
#![allow(unsafe_code)]
//! Unsafe: pointers into windows that live as long as this structure, and into memory that a registration names and
//! a section holds while it is copied. One thread of the run at a time executes any of this.

use std::ptr::NonNull;
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicU32, AtomicU64};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::fabric::{Atomic, CommandWrite, DirectCell, DirectSlots, Width};
use tasuki_core::node::node_state::NodeState;
use tasuki_core::os::copy;
use tasuki_core::queue::ring::RingLine;
use tasuki_core::segment::{GlobalAddress, Kind, MappedRange, Section, layout};

/// The windows of all ranks.
#[derive(Debug)]
pub(crate) struct Memory {
    windows: Vec<Arc<MappedRange>>,
    /// Ranks that have left: what they merely owned went with them.
    left: Vec<bool>,
}

/// The bytes of an access, at hand while this lives. Never kept across a switch: the owner of a registration spins
/// until its sections have ended.
struct Held {
    place: NonNull<u8>,
    _section: Option<Section>,
}

impl Memory {
    /// Memory for that many ranks.
    pub(crate) fn new(ranks: usize) -> Result<Memory> {
        let window = |rank| MappedRange::create_file().map(|file| Arc::new(MappedRange::new(file, rank)));
        Ok(Memory { windows: (0..ranks).map(window).collect::<Result<_>>()?, left: vec![false; ranks] })
    }

    /// The window of a rank of the job.
    pub(crate) fn window(&self, rank: Rank) -> &Arc<MappedRange> {
        &self.windows[rank.index()]
    }

    /// A rank has left.
    pub(crate) fn leave(&mut self, rank: Rank) {
        self.left[rank.index()] = true;
    }

    /// Whether there is such a rank.
    pub(crate) fn check(&self, rank: Rank) -> Result<(), Cause> {
        let size = self.windows.len();
        if rank.index() < size { Ok(()) } else { Err(Cause::NoSuchRank { rank, size }) }
    }

    /// EventKind can be said of an address without asking its owner.
    pub(crate) fn check_address(&self, at: GlobalAddress) -> Result<(), Cause> {
        if at.is_null() { Err(Cause::NullAddress) } else { self.check(at.rank()) }
    }

    /// The words of a signal.
    pub(crate) fn signal(&self, at: GlobalAddress) -> Result<DirectCell, Cause> {
        self.check(at.rank())?;
        if !layout::is_signal(at.offset()) {
            return Err(no_signal(at));
        }
        let system = self.window(at.rank()).system().map_err(cause)?;
        // SAFETY: signal memory lies in the system piece, which is mapped while the window lives.
        Ok(unsafe { DirectCell::new(system.add(at.offset() as usize)) })
    }

    /// Slot lines of a rank.
    pub(crate) fn slots(
        &self,
        at: GlobalAddress,
        lines: u64,
        node_state: &Arc<NodeState>,
    ) -> Result<DirectSlots, Cause> {
        self.check(at.rank())?;
        DirectSlots::new(self.window(at.rank()), node_state, at, lines)
    }

    /// Whether an access would succeed now.
    pub(crate) fn probe(&self, at: GlobalAddress, len: u64) -> Result<(), Cause> {
        self.hold(at, len).map(drop)
    }

    /// Job memory as its owner maps it.
    pub(crate) fn mapped(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        let held = self.hold(at, len).ok()?;
        held._section.is_none().then_some(held.place)
    }

    /// Reads bytes `from .. from + into.len()` of the access `at .. at + len`, all of which must be there.
    pub(crate) fn read(
        &self,
        at: GlobalAddress,
        len: u64,
        from: usize,
        into: &mut [u8],
    ) -> Result<(), Cause> {
        let held = self.hold(at, len)?;
        debug_assert!((from + into.len()) as u64 <= len);
        // SAFETY: the place holds `len` bytes while it is held, and the part read lies inside.
        unsafe { copy::copy(held.place.as_ptr().add(from), into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Writes `bytes` into the access `at .. at + len`, `from` bytes behind its start.
    pub(crate) fn write(&self, at: GlobalAddress, len: u64, from: usize, bytes: &[u8]) -> Result<(), Cause> {
        let held = self.hold(at, len)?;
        debug_assert!((from + bytes.len()) as u64 <= len);
        // SAFETY: as for reading.
        unsafe { copy::copy(bytes.as_ptr(), held.place.as_ptr().add(from), bytes.len()) };
        Ok(())
    }

    /// Copies between two places at once; overlapping ranges move as memmove does.
    pub(crate) fn copy(&self, from: GlobalAddress, to: GlobalAddress, len: u64) -> Result<(), Cause> {
        let (source, target) = (self.hold(from, len)?, self.hold(to, len)?);
        // SAFETY: both places hold `len` bytes while they are held.
        unsafe { copy::copy(source.place.as_ptr(), target.place.as_ptr(), len as usize) };
        Ok(())
    }

    /// Changes a word in one step; what it was.
    pub(crate) fn change(&self, at: GlobalAddress, atomic: Atomic) -> Result<u64, Cause> {
        let bytes = atomic.width.bytes();
        let held = self.hold(at, bytes)?;
        if !(held.place.as_ptr() as u64).is_multiple_of(bytes) {
            return Err(Cause::Misaligned { address: at.bits(), align: bytes as usize });
        }
        // SAFETY: an aligned word of that width, held.
        Ok(unsafe {
            match atomic.width {
                Width::W4 => atomic.apply4(held.place.cast::<AtomicU32>().as_ref()),
                Width::W8 => atomic.apply8(held.place.cast::<AtomicU64>().as_ref()),
            }
        })
    }

    /// Writes the lines of a command, the first one last.
    pub(crate) fn write_command(&self, write: &CommandWrite) -> Result<(), Cause> {
        for at in (0..write.lines as usize).rev() {
            let held = self.hold(write.places[at], size_of::<RingLine>() as u64)?;
            // SAFETY: held; a line is made of atomics, and lies in a queue, whose lines are aligned.
            let line = unsafe { held.place.cast::<RingLine>().as_ref() };
            line.write(write.position + at as u64, &write.words[at]);
        }
        Ok(())
    }

    /// Finds the bytes of an access, if they are registered.
    fn hold(&self, at: GlobalAddress, len: u64) -> Result<Held, Cause> {
        self.check_address(at)?;
        let window = self.window(at.rank());
        let directory = window.extent_table().map_err(cause)?;
        let found = directory.find(at.offset(), len, at.bits());
        let place = found.map_err(|miss| name_signals(at, miss))?;
        match place.kind {
            Kind::Job => {
                let place = window.at(at.offset(), place.start, place.len).map_err(cause)?;
                Ok(Held { place, _section: None })
            }
            Kind::Own(_) if self.left[at.rank().index()] => Err(Cause::PeerLeft { peer: at.rank() }),
            Kind::Own(host) => {
                let section = directory.enter(&place, at.offset(), len, at.bits())?;
                let place = NonNull::new(host as *mut u8).ok_or(Cause::NullAddress)?;
                Ok(Held { place, _section: Some(section) })
            }
        }
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
fn cause(error: Error) -> Cause {
    error.cause().clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_core::fabric::AtomicKind;
    use tasuki_core::segment::Registry;

    fn address(rank: u32, offset: u64) -> GlobalAddress {
        GlobalAddress::new(Rank(rank), offset)
    }

    #[test]
    fn job_memory_and_own_memory_are_read_and_written_within_their_bounds() {
        let memory = Memory::new(2).unwrap();
        let registry = Registry::new(memory.window(Rank(1)).clone()).unwrap();
        let mut own = vec![0_u8; 16];
        let places =
            [registry.allocate_local(16).unwrap(), registry.register(own.as_mut_ptr() as u64, 16).unwrap()];
        for offset in places {
            let at = address(1, offset);
            memory.write(at, 16, 4, &[1, 2, 3]).unwrap();
            let mut back = [9; 5];
            memory.read(at, 16, 3, &mut back).unwrap();
            assert_eq!(back, [0, 1, 2, 3, 0]);
            assert_eq!(memory.probe(at, 17), Err(Cause::OutOfRange { address: at.bits(), bytes: 17 }));
            registry.free(offset).unwrap();
            assert_eq!(memory.probe(at, 1), Err(Cause::Stale { address: at.bits() }));
        }
    }

    #[test]
    fn who_leaves_takes_memory_of_its_own_along_and_leaves_job_memory() {
        let mut memory = Memory::new(1).unwrap();
        let registry = Registry::new(memory.window(Rank(0)).clone()).unwrap();
        let mut own = [0_u8; 8];
        let job = address(0, registry.allocate_local(8).unwrap());
        let own = address(0, registry.register(own.as_mut_ptr() as u64, 8).unwrap());
        memory.leave(Rank(0));
        assert_eq!(
            (memory.probe(job, 8), memory.probe(own, 8)),
            (Ok(()), Err(Cause::PeerLeft { peer: Rank(0) }))
        );
    }

    #[test]
    fn wrong_addresses_are_named_as_on_a_node() {
        let memory = Memory::new(2).unwrap();
        let _registry = Registry::new(memory.window(Rank(0)).clone()).unwrap();
        assert_eq!(memory.probe(GlobalAddress::NULL, 1), Err(Cause::NullAddress));
        assert_eq!(memory.probe(address(2, 8), 1), Err(Cause::NoSuchRank { rank: Rank(2), size: 2 }));
        let signal = signal_address(Rank(0), 3);
        assert_eq!(memory.probe(signal, 8), Err(Cause::SignalMemory { address: signal.bits() }));
        assert!(memory.signal(signal).is_ok());
        assert!(matches!(memory.signal(signal.add(8)), Err(Cause::Argument(_))));
        assert_eq!(memory.signal(GlobalAddress::NULL).unwrap_err(), Cause::NullAddress);
    }

    #[test]
    fn words_change_only_where_they_are_aligned() {
        let memory = Memory::new(1).unwrap();
        let registry = Registry::new(memory.window(Rank(0)).clone()).unwrap();
        let at = address(0, registry.allocate_local(16).unwrap());
        let add = Atomic { kind: AtomicKind::Add, operand: 5, width: Width::W8 };
        assert_eq!((memory.change(at, add), memory.change(at, add)), (Ok(0), Ok(5)));
        let odd = at.add(4);
        assert_eq!(memory.change(odd, add), Err(Cause::Misaligned { address: odd.bits(), align: 8 }));
    }
}
