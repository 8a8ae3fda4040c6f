//! A rank's range of addresses as this process sees it: mapped piece by piece, when first touched.
#![allow(unsafe_code)]
//! Unsafe: pointers into mappings that live as long as the window. A table entry only ever goes from one mapping of
//! its piece to another of the same bytes, and none is unmapped before the window is dropped.

use super::extent_table::ExtentTable;
use super::layout::{GRANULE, PIECE, WINDOW};
use super::registry;
use crate::base::Result;
use crate::os::mapping::Mapping;
use crate::os::memfile::MemFile;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

/// Colours from one piece of a window to the next: its signals and its data should not be alike either, nor the data
/// of a neighbour.
const COLOURS_APART: usize = 17;
const BRANCH: usize = 32;
const _: () = assert!((BRANCH * BRANCH) as u64 == WINDOW / PIECE);

/// A mapped piece, for accesses that come back to it. Valid while its window lives.
#[derive(Clone, Copy, Debug)]
pub struct PieceView {
    start: NonNull<u8>,
    system: NonNull<u8>,
}

impl PieceView {
    /// The byte at `offset` of the range, which lies in this piece, if `bytes` bytes from there on are job memory. The
    /// way of nearly every access: nothing waits for the checks, which go as foreseen.
    ///
    /// # Safety
    /// The window that gave the view lives.
    #[inline]
    pub unsafe fn job(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        // SAFETY: the system piece is mapped while the window lives.
        let directory = unsafe { ExtentTable::over(self.system) };
        // What lies behind this piece may be mapped anywhere.
        if !directory.is_job(offset, bytes) || offset % PIECE + bytes > PIECE {
            return elsewhere();
        }
        // SAFETY: the piece is mapped in full and offset lies in it.
        Some(unsafe { self.start.add((offset % PIECE) as usize) })
    }

    /// The first byte of the rank's system piece.
    #[inline]
    pub fn system(&self) -> NonNull<u8> {
        self.system
    }
}

/// Cold, so that the pointer is not chosen by the outcome of the checks, but given before they are through.
#[cold]
#[inline(never)]
fn elsewhere() -> Option<NonNull<u8>> {
    None
}

type Leaf = [AtomicPtr<u8>; BRANCH];

/// The memory of one rank. Its owner and its peers use the same structure over the same file; nobody is asked when
/// a piece is mapped. Whole ranges are never reserved: 126 would fill an address space.
pub struct MappedRange {
    file: Arc<MemFile>,
    system: AtomicPtr<u8>,
    pieces: [AtomicPtr<Leaf>; BRANCH],
    mapped: Mutex<Vec<Mapping>>,
    /// The rank, or anything else that tells windows of one process apart.
    colour: usize,
}

impl MappedRange {
    /// A window over `file`, with nothing mapped yet. Windows that one process has side by side get different
    /// `colour`s, such as their ranks.
    ///
    /// Ranges of different ranks are alike: the same bytes lie at the same offsets. A processor that finds lines in
    /// its first cache by a hash of address bits 12 to 27 (AMD's do) holds only one of two lines that are alike in
    /// them, and a rank that writes to a peer what it reads of its own would have every line thrown out by the other.
    pub fn new(file: Arc<MemFile>, colour: usize) -> MappedRange {
        MappedRange {
            file,
            system: AtomicPtr::default(),
            pieces: std::array::from_fn(|_| AtomicPtr::default()),
            mapped: Mutex::default(),
            colour,
        }
    }

    /// A new memory file for a rank's range, with starter memory and arena registered in it: peers may use them as
    /// soon as they have the file, before its owner runs.
    pub fn create_file() -> Result<Arc<MemFile>> {
        let file = Arc::new(MemFile::create(c"tasuki-rank", WINDOW)?);
        registry::register_first(&MappedRange::new(file.clone(), 0).directory()?);
        Ok(file)
    }

    /// The file behind it.
    pub fn file(&self) -> &Arc<MemFile> {
        &self.file
    }

    /// The first byte of the system piece.
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

    /// The byte at `offset`, which lies in the registration `start .. start + len`; all of the registration can be
    /// reached from the pointer. Costs two loads for each of its pieces, a system call if they are not mapped yet, or
    /// not in a row: a place that is used again may be cut otherwise than before.
    pub fn at(&self, offset: u64, start: u64, len: u64) -> Result<NonNull<u8>> {
        debug_assert!(start <= offset && offset < start + len && start + len <= WINDOW);
        let pieces = start / PIECE..(start + len - 1) / PIECE + 1;
        let first = match self.row(&pieces) {
            Some(first) => first,
            None => self.map(&pieces)?,
        };
        // SAFETY: the pieces are mapped in a row and offset lies in one of them.
        Ok(unsafe { first.add((offset - pieces.start * PIECE) as usize) })
    }

    /// The first byte of pieces that are mapped one behind the other.
    fn row(&self, pieces: &Range<u64>) -> Option<NonNull<u8>> {
        let first = self.piece(pieces.start)?;
        let place = |number: u64| first.addr().get() as u64 + (number - pieces.start) * PIECE;
        let in_a_row = |number| self.piece(number).is_some_and(|at| at.addr().get() as u64 == place(number));
        (pieces.start + 1..pieces.end).all(in_a_row).then_some(first)
    }

    /// The first byte of the system piece, if it is mapped already.
    #[inline]
    pub fn mapped_system(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.system.load(Ordering::Acquire))
    }

    /// The piece that `offset` lies in, if it and the system piece are mapped already. Costs three loads, each at a
    /// place that the one before it says.
    #[inline]
    pub fn view(&self, offset: u64) -> Option<PieceView> {
        Some(PieceView { start: self.piece(offset / PIECE)?, system: self.mapped_system()? })
    }

    #[inline]
    fn piece(&self, number: u64) -> Option<NonNull<u8>> {
        let (branch, leaf) = (number as usize / BRANCH % BRANCH, number as usize % BRANCH);
        // SAFETY: a leaf is never freed before the window; null is checked.
        let leaves = unsafe { self.pieces[branch].load(Ordering::Acquire).as_ref() }?;
        NonNull::new(leaves[leaf].load(Ordering::Acquire))
    }

    /// Maps pieces in one go, one behind the other.
    #[cold]
    fn map(&self, pieces: &Range<u64>) -> Result<NonNull<u8>> {
        let mut mapped = self.mapped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(first) = self.row(pieces) {
            return Ok(first); // another thread was quicker
        }
        let bytes = (pieces.end - pieces.start) * PIECE;
        let colour = self.colour + pieces.start as usize * COLOURS_APART;
        let mapping = Mapping::shared_in_colour(&self.file, pieces.start * PIECE, bytes as usize, colour)?;
        for piece in pieces.clone() {
            // SAFETY: the mapping is that long.
            let at = unsafe { mapping.start().add(((piece - pieces.start) * PIECE) as usize) };
            self.enter(piece, at);
        }
        let first = mapping.start();
        mapped.push(mapping);
        Ok(first)
    }

    /// Writes a piece into the table. Only under the lock of `mapped`.
    fn enter(&self, number: u64, at: NonNull<u8>) {
        let slot = &self.pieces[number as usize / BRANCH];
        if slot.load(Ordering::Relaxed).is_null() {
            let leaf: Box<Leaf> = Box::new(std::array::from_fn(|_| AtomicPtr::default()));
            slot.store(Box::into_raw(leaf), Ordering::Release);
        }
        // SAFETY: just made, or made before; never freed before the window.
        let leaves = unsafe { &*slot.load(Ordering::Relaxed) };
        leaves[number as usize % BRANCH].store(at.as_ptr(), Ordering::Release);
    }

    /// What is registered in the range.
    #[inline]
    pub fn directory(&self) -> Result<ExtentTable> {
        // SAFETY: the system piece is mapped while the window lives, and users of the directory hold the window.
        self.system().map(|system| unsafe { ExtentTable::over(system) })
    }

    /// Bytes of this process's own memory that the tables take.
    pub fn table_bytes(&self) -> u64 {
        let leaves = self.pieces.iter().filter(|leaf| !leaf.load(Ordering::Relaxed).is_null()).count();
        (size_of::<MappedRange>() + leaves * size_of::<Leaf>()) as u64
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        for leaf in &mut self.pieces {
            let leaf = std::mem::take(leaf.get_mut());
            if !leaf.is_null() {
                // SAFETY: it came from Box::into_raw in `enter` and nobody can use it any more.
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
    fn two_views_show_the_same_bytes() {
        let file = MappedRange::create_file().unwrap();
        let (ours, theirs) = (MappedRange::new(file.clone(), 0), MappedRange::new(file, 1));
        let offset = SYMMETRIC.start + 12345;
        let place = |window: &MappedRange| window.at(offset, SYMMETRIC.start, PIECE).unwrap().as_ptr();
        // SAFETY: both pointers are mapped; nobody else uses them.
        unsafe {
            place(&ours).write_volatile(7);
            assert_eq!(place(&theirs).read_volatile(), 7);
        }
        assert_ne!(place(&ours), place(&theirs));
    }

    #[test]
    fn pieces_that_were_mapped_apart_come_in_a_row_where_a_registration_needs_them() {
        let window = MappedRange::new(MappedRange::create_file().unwrap(), 0);
        window.system().unwrap();
        let start = SYMMETRIC.start + PIECE;
        let apart: Vec<_> =
            (0..3).map(|i| window.at(start + i * PIECE, start + i * PIECE, PIECE).unwrap()).collect();
        // SAFETY: mapped, and nobody else's.
        unsafe { apart[2].write_volatile(5) };
        let first = window.at(start, start, 3 * PIECE).unwrap();
        // SAFETY: the row is that long.
        assert_eq!(unsafe { first.add(2 * PIECE as usize).read_volatile() }, 5);
        assert_eq!(
            window.at(start + 2 * PIECE, start, 3 * PIECE).unwrap().as_ptr() as u64,
            first.as_ptr() as u64 + 2 * PIECE
        );
        assert_eq!(
            window.at(start + PIECE, start + PIECE, 2 * PIECE).unwrap().as_ptr() as u64,
            first.as_ptr() as u64 + PIECE
        );
    }

    #[test]
    fn a_view_ends_with_its_piece() {
        let window = MappedRange::new(MappedRange::create_file().unwrap(), 0);
        let (directory, start, len) = (window.directory().unwrap(), SYMMETRIC.start, 2 * PIECE);
        directory.extent(9).publish(ExtentInfo { start, len, host: 0 });
        directory.name_granules(start, len, 9);
        window.at(start, start, 2 * PIECE).unwrap();
        let view = window.view(start).unwrap();
        // SAFETY: the window lives.
        let there = |offset, bytes| unsafe { view.job(offset, bytes).is_some() };
        assert!(there(start, PIECE) && there(start + PIECE - 8, 8) && !there(start + PIECE - 8, 9));
    }

    #[test]
    fn a_registration_larger_than_a_piece_is_contiguous() {
        let window = MappedRange::new(MappedRange::create_file().unwrap(), 0);
        let (start, len) = (SYMMETRIC.start + PIECE, 3 * PIECE);
        let last = window.at(start + len - 1, start, len).unwrap().as_ptr() as u64;
        let first = window.at(start, start, len).unwrap().as_ptr() as u64;
        assert_eq!(last - first, len - 1);
    }
}
