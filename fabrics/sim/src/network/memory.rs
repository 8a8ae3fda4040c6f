//! The memories of all simulated ranks: separate files, as processes have. Only the simulator reaches all of them.
#![allow(unsafe_code)]
//! Unsafe: pointers into mapped ranges that live as long as this structure, and into registered memory that a section
//! keeps valid while it is copied. Only one thread of the run at a time executes this code.

use std::ptr::NonNull;
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicU32, AtomicU64};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::fabric::{Atomic, CommandWrite, DirectCell, DirectSlots, Width};
use tasuki_core::node::node_state::NodeState;
use tasuki_core::os::copy;
use tasuki_core::queue::ring::RingLine;
use tasuki_core::segment::{GlobalAddress, Kind, MappedRange, Section, layout};

/// The mapped ranges of all ranks.
#[derive(Debug)]
pub(crate) struct Memory {
    ranges: Vec<Arc<MappedRange>>,
    /// For each rank, true if it has left. Registered program memory is gone with its
    /// rank.
    left: Vec<bool>,
}

/// Access to the bytes of a range. Never kept across a switch of threads: the owner of a registration spins until the
/// sections of its memory have ended.
struct Access {
    place: NonNull<u8>,
    _section: Option<Section>,
}

impl Memory {
    /// Creates memory for that many ranks.
    pub(crate) fn new(ranks: usize) -> Result<Memory> {
        let range = |rank| MappedRange::create_file().map(|file| Arc::new(MappedRange::new(file, rank)));
        Ok(Memory { ranges: (0..ranks).map(range).collect::<Result<_>>()?, left: vec![false; ranks] })
    }

    /// Returns the mapped range of a rank of the job.
    pub(crate) fn range(&self, rank: Rank) -> &Arc<MappedRange> {
        &self.ranges[rank.index()]
    }

    /// Notes that a rank has left.
    pub(crate) fn leave(&mut self, rank: Rank) {
        self.left[rank.index()] = true;
    }

    /// Checks that there is such a rank.
    pub(crate) fn check(&self, rank: Rank) -> Result<(), Cause> {
        let size = self.ranges.len();
        if rank.index() < size { Ok(()) } else { Err(Cause::NoSuchRank { rank, size }) }
    }

    /// Checks what can be checked of an address without its owner.
    pub(crate) fn check_address(&self, at: GlobalAddress) -> Result<(), Cause> {
        if at.is_null() { Err(Cause::NullAddress) } else { self.check(at.rank()) }
    }

    /// Returns the words of a signal.
    pub(crate) fn signal(&self, at: GlobalAddress) -> Result<DirectCell, Cause> {
        self.check(at.rank())?;
        if !layout::is_signal(at.offset()) {
            return Err(no_signal(at));
        }
        let system = self.range(at.rank()).system().map_err(cause)?;
        // SAFETY: signal memory lies in the system piece, which is mapped while the range lives.
        Ok(unsafe { DirectCell::new(system.add(at.offset() as usize)) })
    }

    /// Returns slot lines of a rank.
    pub(crate) fn slots(
        &self,
        at: GlobalAddress,
        lines: u64,
        node_state: &Arc<NodeState>,
    ) -> Result<DirectSlots, Cause> {
        self.check(at.rank())?;
        DirectSlots::new(self.range(at.rank()), node_state, at, lines)
    }

    /// Checks that an access would succeed now.
    pub(crate) fn probe(&self, at: GlobalAddress, len: u64) -> Result<(), Cause> {
        self.access(at, len).map(drop)
    }

    /// Returns job memory at the place where its owner maps it.
    pub(crate) fn mapped(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        let access = self.access(at, len).ok()?;
        access._section.is_none().then_some(access.place)
    }

    /// Reads bytes `from .. from + into.len()` of the access `at .. at + len`, all of which must be registered.
    pub(crate) fn read(
        &self,
        at: GlobalAddress,
        len: u64,
        from: usize,
        into: &mut [u8],
    ) -> Result<(), Cause> {
        let access = self.access(at, len)?;
        debug_assert!((from + into.len()) as u64 <= len);
        // SAFETY: the place holds `len` bytes while `access` lives, and callers read only bytes below `len`.
        unsafe { copy::copy(access.place.as_ptr().add(from), into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Writes `bytes` into the access `at .. at + len`, `from` bytes behind its start.
    pub(crate) fn write(&self, at: GlobalAddress, len: u64, from: usize, bytes: &[u8]) -> Result<(), Cause> {
        let access = self.access(at, len)?;
        debug_assert!((from + bytes.len()) as u64 <= len);
        // SAFETY: the place holds `len` bytes while `access` lives, and callers write only bytes below `len`.
        unsafe { copy::copy(bytes.as_ptr(), access.place.as_ptr().add(from), bytes.len()) };
        Ok(())
    }

    /// Copies between two ranges at once; overlapping ranges are copied as memmove does.
    pub(crate) fn copy(&self, from: GlobalAddress, to: GlobalAddress, len: u64) -> Result<(), Cause> {
        let (source, target) = (self.access(from, len)?, self.access(to, len)?);
        // SAFETY: both places hold `len` bytes while they are accessed.
        unsafe { copy::copy(source.place.as_ptr(), target.place.as_ptr(), len as usize) };
        Ok(())
    }

    /// Changes a word in one step; returns its old value.
    pub(crate) fn change(&self, at: GlobalAddress, atomic: Atomic) -> Result<u64, Cause> {
        let bytes = atomic.width.bytes();
        let access = self.access(at, bytes)?;
        if !(access.place.as_ptr() as u64).is_multiple_of(bytes) {
            return Err(Cause::Misaligned { address: at.bits(), align: bytes as usize });
        }
        // SAFETY: the access covers a word of that width, whose alignment was just checked.
        Ok(unsafe {
            match atomic.width {
                Width::W4 => atomic.apply4(access.place.cast::<AtomicU32>().as_ref()),
                Width::W8 => atomic.apply8(access.place.cast::<AtomicU64>().as_ref()),
            }
        })
    }

    /// Writes the lines of a command, the first one last.
    pub(crate) fn write_command(&self, write: &CommandWrite) -> Result<(), Cause> {
        for at in (0..write.lines as usize).rev() {
            let access = self.access(write.places[at], size_of::<RingLine>() as u64)?;
            // SAFETY: the access covers the line; a line is made of atomics, and lies in a queue,
            // whose lines are aligned.
            let line = unsafe { access.place.cast::<RingLine>().as_ref() };
            line.write(write.position + at as u64, &write.words[at]);
        }
        Ok(())
    }

    /// Finds the bytes of an access if they are registered.
    fn access(&self, at: GlobalAddress, len: u64) -> Result<Access, Cause> {
        self.check_address(at)?;
        let range = self.range(at.rank());
        let extents = range.extent_table().map_err(cause)?;
        let found = extents.find(at.offset(), len, at.bits());
        let place = found.map_err(|miss| name_signals(at, miss))?;
        match place.kind {
            Kind::Job => {
                let place = range.at(at.offset(), place.start, place.len).map_err(cause)?;
                Ok(Access { place, _section: None })
            }
            Kind::Program(_) if self.left[at.rank().index()] => Err(Cause::PeerLeft { peer: at.rank() }),
            Kind::Program(host) => {
                let section = extents.enter(&place, at.offset(), len, at.bits())?;
                let place = NonNull::new(host as *mut u8).ok_or(Cause::NullAddress)?;
                Ok(Access { place, _section: Some(section) })
            }
        }
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
fn cause(error: Error) -> Cause {
    error.cause().clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_core::fabric::AtomicKind;
    use tasuki_core::segment::Registry;

    fn address(rank: usize, offset: u64) -> GlobalAddress {
        GlobalAddress::new(Rank(rank), offset)
    }

    #[test]
    fn job_and_registered_memory_are_accessed_within_their_bounds() {
        let memory = Memory::new(2).unwrap();
        let registry = Registry::new(memory.range(Rank(1)).clone()).unwrap();
        let mut own = vec![0_u8; 16];
        let places =
            [registry.allocate_local(16).unwrap(), registry.register(own.as_mut_ptr() as u64, 16).unwrap()];
        for offset in places {
            let at = address(1, offset);
            memory.write(at, 16, 4, &[1, 2, 3]).unwrap();
            let mut back = [9; 5];
            memory.read(at, 16, 3, &mut back).unwrap();
            assert_eq!(back, [0, 1, 2, 3, 0]);
            let (address, registration) = (at.bits(), Some((at.bits(), 16)));
            assert_eq!(memory.probe(at, 17), Err(Cause::OutOfRange { address, bytes: 17, registration }));
            registry.free(offset).unwrap();
            assert_eq!(memory.probe(at, 1), Err(Cause::Stale { address: at.bits() }));
        }
    }

    #[test]
    fn registered_memory_of_a_rank_that_left_is_gone_and_its_job_memory_stays() {
        let mut memory = Memory::new(1).unwrap();
        let registry = Registry::new(memory.range(Rank(0)).clone()).unwrap();
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
    fn wrong_addresses_give_the_causes_of_the_shared_memory_fabric() {
        let memory = Memory::new(2).unwrap();
        let _registry = Registry::new(memory.range(Rank(0)).clone()).unwrap();
        assert_eq!(memory.probe(GlobalAddress::NULL, 1), Err(Cause::NullAddress));
        assert_eq!(memory.probe(address(2, 8), 1), Err(Cause::NoSuchRank { rank: Rank(2), size: 2 }));
        let signal = signal_address(Rank(0), 3);
        assert_eq!(memory.probe(signal, 8), Err(Cause::SignalMemory { address: signal.bits() }));
        assert!(memory.signal(signal).is_ok());
        assert!(matches!(memory.signal(signal.add(8)), Err(Cause::Argument(_))));
        assert_eq!(memory.signal(GlobalAddress::NULL).unwrap_err(), Cause::NullAddress);
    }

    #[test]
    fn atomics_need_aligned_words() {
        let memory = Memory::new(1).unwrap();
        let registry = Registry::new(memory.range(Rank(0)).clone()).unwrap();
        let at = address(0, registry.allocate_local(16).unwrap());
        let add = Atomic { kind: AtomicKind::Add, operand: 5, width: Width::W8 };
        assert_eq!((memory.change(at, add), memory.change(at, add)), (Ok(0), Ok(5)));
        let odd = at.add(4);
        assert_eq!(memory.change(odd, add), Err(Cause::Misaligned { address: odd.bits(), align: 8 }));
    }
}
