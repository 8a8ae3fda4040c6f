//! The address range of a rank, mapped into this process. Each piece is mapped when it is first used.
#![allow(unsafe_code)]
//! Unsafe: pointers into mappings that exist as long as the `MappedRange`. A table entry can change only to another
//! mapping of the same bytes, and no mapping is unmapped before the `MappedRange` is dropped.

use super::extent_table::ExtentTable;
use super::layout::{GRANULE, PIECE, RANGE_BYTES};
use super::registry;
use crate::base::Result;
use crate::base::sync::{AtomicPtr, Ordering};
use crate::os::mapping::Mapping;
use crate::os::memfile::MemFile;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// Colours from one piece of a range to the next. It keeps apart a rank's signals and its data, and the data of two
/// neighbouring ranks.
const COLOURS_APART: usize = 17;
const BRANCH: usize = 32;
const _: () = assert!((BRANCH * BRANCH) as u64 == RANGE_BYTES / PIECE);

/// A mapped piece, for repeated accesses. Valid while its `MappedRange` exists.
#[derive(Clone, Copy, Debug)]
pub struct PieceView {
    start: NonNull<u8>,
    system: NonNull<u8>,
}

impl PieceView {
    /// Returns the address of the byte at `offset` of the range, which must be in this piece, if the `bytes` bytes from
    /// there on are job memory of this piece. Nearly every access comes here: branch prediction keeps it from waiting
    /// for the checks.
    ///
    /// # Safety
    /// The `MappedRange` that returned the view must exist.
    #[inline]
    pub unsafe fn job_memory(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        // SAFETY: the system piece is mapped while the `MappedRange` exists.
        let table = unsafe { ExtentTable::over(self.system) };
        // The next piece may be mapped anywhere.
        if !table.is_job(offset, bytes) || offset % PIECE + bytes > PIECE {
            return cold_none();
        }
        // SAFETY: the whole piece is mapped and offset is in it.
        Some(unsafe { self.start.add((offset % PIECE) as usize) })
    }

    /// Returns the first byte of the rank's system piece.
    #[inline]
    pub fn system(&self) -> NonNull<u8> {
        self.system
    }
}

/// Cold, so that the compiler emits a predicted branch, not a conditional move that waits for the checks.
#[cold]
#[inline(never)]
fn cold_none() -> Option<NonNull<u8>> {
    None
}

type Leaf = [AtomicPtr<u8>; BRANCH];

/// The memory of one rank. Its owner and its peers use the same structure over the same file. A
/// peer maps a piece without asking the owner. No process reserves whole ranges: 126 of them would
/// fill an address space.
pub struct MappedRange {
    file: Arc<MemFile>,
    system: AtomicPtr<u8>,
    pieces: [AtomicPtr<Leaf>; BRANCH],
    mapped: Mutex<Vec<Mapping>>,
    /// The rank, or another number that differs between the ranges of one process.
    colour: usize,
}

impl MappedRange {
    /// Makes a range over `file`, with nothing mapped yet. The ranges of one process need different `colour`s, such as
    /// their ranks.
    ///
    /// All ranks have the same data at the same offsets. AMD's processors find lines in their first-level cache by a
    /// hash of address bits 12 to 27, and hold only one of two lines whose bits are equal. Without colours, a rank that
    /// copies its own data to the same offset of a peer would evict each line by the other.
    pub fn new(file: Arc<MemFile>, colour: usize) -> MappedRange {
        MappedRange {
            file,
            system: AtomicPtr::default(),
            pieces: std::array::from_fn(|_| AtomicPtr::default()),
            mapped: Mutex::default(),
            colour,
        }
    }

    /// Creates a memory file for a rank's range and registers bootstrap memory and arena in it. Peers may use these as
    /// soon as they have the file, before its owner runs.
    pub fn create_file() -> Result<Arc<MemFile>> {
        let file = Arc::new(MemFile::create(c"tasuki-rank", RANGE_BYTES)?);
        registry::register_initial(&MappedRange::new(file.clone(), 0).extent_table()?);
        Ok(file)
    }

    /// Returns the memory file.
    pub fn file(&self) -> &Arc<MemFile> {
        &self.file
    }

    /// Returns the first byte of the system piece. Maps it if necessary.
    #[inline]
    pub fn system(&self) -> Result<NonNull<u8>> {
        match self.mapped_system() {
            Some(start) => Ok(start),
            None => self.map_system(),
        }
    }

    #[cold]
    fn map_system(&self) -> Result<NonNull<u8>> {
        let start = self.at(0, 0, GRANULE)?;
        self.system.store(start.as_ptr(), Ordering::Release);
        Ok(start)
    }

    /// Returns the address of the byte at `offset` in the registration `start .. start + len`. The
    /// whole registration can be reached from the pointer. Costs two loads for each of its pieces,
    /// and a system call if they are not mapped contiguously yet: addresses that are used again may
    /// be divided in another way than before.
    pub fn at(&self, offset: u64, start: u64, len: u64) -> Result<NonNull<u8>> {
        debug_assert!(start <= offset && offset < start + len && start + len <= RANGE_BYTES);
        let pieces = start / PIECE..(start + len - 1) / PIECE + 1;
        let first = match self.contiguous(&pieces) {
            Some(first) => first,
            None => self.map(&pieces)?,
        };
        // SAFETY: the pieces are mapped contiguously and offset is in one of them.
        Ok(unsafe { first.add((offset - pieces.start * PIECE) as usize) })
    }

    /// Returns the first byte of `pieces` if they are mapped contiguously.
    fn contiguous(&self, pieces: &Range<u64>) -> Option<NonNull<u8>> {
        let first = self.piece(pieces.start)?;
        let expected = |number: u64| first.addr().get() as u64 + (number - pieces.start) * PIECE;
        let follows =
            |number| self.piece(number).is_some_and(|at| at.addr().get() as u64 == expected(number));
        (pieces.start + 1..pieces.end).all(follows).then_some(first)
    }

    /// Returns the first byte of the system piece if it is mapped already.
    #[inline]
    pub fn mapped_system(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.system.load(Ordering::Acquire))
    }

    /// Returns the piece that contains `offset` if it and the system piece are mapped already. Costs three loads: the
    /// table of the piece, the piece, and the system piece.
    #[inline]
    pub fn view(&self, offset: u64) -> Option<PieceView> {
        Some(PieceView { start: self.piece(offset / PIECE)?, system: self.mapped_system()? })
    }

    #[inline]
    fn piece(&self, number: u64) -> Option<NonNull<u8>> {
        let (branch, leaf) = (number as usize / BRANCH % BRANCH, number as usize % BRANCH);
        // SAFETY: a leaf is not freed before the `MappedRange` is dropped; `as_ref` checks for null.
        let leaves = unsafe { self.pieces[branch].load(Ordering::Acquire).as_ref() }?;
        NonNull::new(leaves[leaf].load(Ordering::Acquire))
    }

    /// Maps `pieces` contiguously by one mapping.
    #[cold]
    fn map(&self, pieces: &Range<u64>) -> Result<NonNull<u8>> {
        let mut mapped = self.mapped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(first) = self.contiguous(pieces) {
            return Ok(first); // another thread has mapped them meanwhile
        }
        let bytes = (pieces.end - pieces.start) * PIECE;
        let colour = self.colour + pieces.start as usize * COLOURS_APART;
        let mapping = Mapping::shared_in_colour(&self.file, pieces.start * PIECE, bytes as usize, colour)?;
        for piece in pieces.clone() {
            // SAFETY: `piece` is one of `pieces`, and the mapping is as long as all of them.
            let at = unsafe { mapping.start().add(((piece - pieces.start) * PIECE) as usize) };
            self.set_piece(piece, at);
        }
        let first = mapping.start();
        mapped.push(mapping);
        Ok(first)
    }

    /// Writes the address of a piece into the table. The caller must hold the lock of `mapped`.
    fn set_piece(&self, number: u64, at: NonNull<u8>) {
        let slot = &self.pieces[number as usize / BRANCH];
        if slot.load(Ordering::Relaxed).is_null() {
            let leaf: Box<Leaf> = Box::new(std::array::from_fn(|_| AtomicPtr::default()));
            slot.store(Box::into_raw(leaf), Ordering::Release);
        }
        // SAFETY: the leaf exists by now, and is not freed before the `MappedRange` is dropped.
        let leaves = unsafe { &*slot.load(Ordering::Relaxed) };
        leaves[number as usize % BRANCH].store(at.as_ptr(), Ordering::Release);
    }

    /// Returns the table of the range's registrations.
    #[inline]
    pub fn extent_table(&self) -> Result<ExtentTable> {
        // SAFETY: the system piece is mapped while the `MappedRange` exists, and users of the table keep that.
        self.system().map(|system| unsafe { ExtentTable::over(system) })
    }

    /// Returns how many bytes of this process's private memory the tables take.
    pub fn table_bytes(&self) -> u64 {
        let leaves = self.pieces.iter().filter(|leaf| !leaf.load(Ordering::Relaxed).is_null()).count();
        (size_of::<MappedRange>() + leaves * size_of::<Leaf>()) as u64
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        for leaf in &self.pieces {
            let leaf = leaf.load(Ordering::Relaxed);
            if !leaf.is_null() {
                // SAFETY: it came from Box::into_raw in `set_piece` and nobody can use it any more.
                drop(unsafe { Box::from_raw(leaf) });
            }
        }
    }
}

impl std::fmt::Debug for MappedRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MappedRange").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::extent::ExtentInfo;
    use crate::segment::layout::SYMMETRIC;

    #[test]
    fn two_mapped_ranges_of_a_file_share_its_bytes() {
        let file = MappedRange::create_file().unwrap();
        let (ours, theirs) = (MappedRange::new(file.clone(), 0), MappedRange::new(file, 1));
        let offset = SYMMETRIC.start + 12345;
        let place = |range: &MappedRange| range.at(offset, SYMMETRIC.start, PIECE).unwrap().as_ptr();
        // SAFETY: both pointers are mapped; nobody else uses them.
        unsafe {
            place(&ours).write_volatile(7);
            assert_eq!(place(&theirs).read_volatile(), 7);
        }
        assert_ne!(place(&ours), place(&theirs));
    }

    #[test]
    fn pieces_mapped_one_by_one_are_mapped_contiguously_for_a_large_registration() {
        let range = MappedRange::new(MappedRange::create_file().unwrap(), 0);
        range.system().unwrap();
        let start = SYMMETRIC.start + PIECE;
        let apart: Vec<_> =
            (0..3).map(|i| range.at(start + i * PIECE, start + i * PIECE, PIECE).unwrap()).collect();
        // SAFETY: the byte is mapped, and nobody else uses it.
        unsafe { apart[2].write_volatile(5) };
        let first = range.at(start, start, 3 * PIECE).unwrap();
        // SAFETY: three pieces are mapped from `first` on.
        assert_eq!(unsafe { first.add(2 * PIECE as usize).read_volatile() }, 5);
        assert_eq!(
            range.at(start + 2 * PIECE, start, 3 * PIECE).unwrap().as_ptr() as u64,
            first.as_ptr() as u64 + 2 * PIECE
        );
        assert_eq!(
            range.at(start + PIECE, start + PIECE, 2 * PIECE).unwrap().as_ptr() as u64,
            first.as_ptr() as u64 + PIECE
        );
    }

    #[test]
    fn a_view_refuses_accesses_beyond_its_piece() {
        let range = MappedRange::new(MappedRange::create_file().unwrap(), 0);
        let (table, start, len) = (range.extent_table().unwrap(), SYMMETRIC.start, 2 * PIECE);
        table.extent(9).publish(ExtentInfo { start, len, host: 0 });
        table.map_granules(start, len, 9);
        range.at(start, start, 2 * PIECE).unwrap();
        let view = range.view(start).unwrap();
        // SAFETY: `range` lives until the end of the test, and its mappings with it.
        let allows = |offset, bytes| unsafe { view.job_memory(offset, bytes).is_some() };
        assert!(allows(start, PIECE) && allows(start + PIECE - 8, 8) && !allows(start + PIECE - 8, 9));
    }

    #[test]
    fn a_registration_larger_than_a_piece_is_contiguous() {
        let range = MappedRange::new(MappedRange::create_file().unwrap(), 0);
        let (start, len) = (SYMMETRIC.start + PIECE, 3 * PIECE);
        let last = range.at(start + len - 1, start, len).unwrap().as_ptr() as u64;
        let first = range.at(start, start, len).unwrap().as_ptr() as u64;
        assert_eq!(last - first, len - 1);
    }
}
