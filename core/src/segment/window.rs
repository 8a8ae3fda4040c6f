//! A rank's range of addresses as this process sees it: mapped piece by piece, when first touched.
#![allow(unsafe_code)]
//! Unsafe: pointers into mappings that live as long as the window. A table entry is set once, from null to a piece
//! that is never unmapped before the window is dropped.

use super::directory::Directory;
use super::layout::{GRANULE, PIECE, WINDOW};
use super::registry;
use crate::base::Result;
use crate::os::mapping::Mapping;
use crate::os::memfile::MemFile;
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
pub struct View {
    start: NonNull<u8>,
    system: NonNull<u8>,
}

impl View {
    /// The byte at `offset` of the range, which lies in this piece, if `bytes` bytes from there on are job memory. The
    /// way of nearly every access: nothing waits for the checks, which go as foreseen.
    ///
    /// # Safety
    /// The window that gave the view lives.
    #[inline]
    pub unsafe fn job(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        // SAFETY: the system piece is mapped while the window lives.
        let directory = unsafe { Directory::over(self.system) };
        if !directory.is_job(offset, bytes) {
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
pub struct Window {
    file: Arc<MemFile>,
    system: AtomicPtr<u8>,
    pieces: [AtomicPtr<Leaf>; BRANCH],
    mapped: Mutex<Vec<Mapping>>,
    /// The rank, or anything else that tells windows of one process apart.
    colour: usize,
}

impl Window {
    /// A window over `file`, with nothing mapped yet. Windows that one process has side by side get different
    /// `colour`s, such as their ranks.
    ///
    /// Ranges of different ranks are alike: the same bytes lie at the same offsets. A processor that finds lines in
    /// its first cache by a hash of address bits 12 to 27 (AMD's do) holds only one of two lines that are alike in
    /// them, and a rank that writes to a peer what it reads of its own would have every line thrown out by the other.
    pub fn new(file: Arc<MemFile>, colour: usize) -> Window {
        Window {
            file,
            system: AtomicPtr::default(),
            pieces: std::array::from_fn(|_| AtomicPtr::default()),
            mapped: Mutex::default(),
            colour,
        }
    }

    /// A new memory file for a rank's range, with starter memory registered in it: peers may use that as soon as
    /// they have the file, before its owner runs.
    pub fn create_file() -> Result<Arc<MemFile>> {
        let file = Arc::new(MemFile::create(c"tasuki-rank", WINDOW)?);
        registry::register_starter(&Window::new(file.clone(), 0).directory()?);
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
    /// reached from the pointer. Costs two loads once its piece is mapped, a system call before.
    #[inline]
    pub fn at(&self, offset: u64, start: u64, len: u64) -> Result<NonNull<u8>> {
        let piece = match self.piece(offset / PIECE) {
            Some(piece) => piece,
            None => self.map(offset, start, len)?,
        };
        // SAFETY: the piece is mapped in full and offset lies in it.
        Ok(unsafe { piece.add((offset % PIECE) as usize) })
    }

    /// The first byte of the system piece, if it is mapped already.
    #[inline]
    pub fn mapped_system(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.system.load(Ordering::Acquire))
    }

    /// The piece that `offset` lies in, if it and the system piece are mapped already. Costs three loads, each at a
    /// place that the one before it says.
    #[inline]
    pub fn view(&self, offset: u64) -> Option<View> {
        Some(View { start: self.piece(offset / PIECE)?, system: self.mapped_system()? })
    }

    #[inline]
    fn piece(&self, number: u64) -> Option<NonNull<u8>> {
        let (branch, leaf) = (number as usize / BRANCH % BRANCH, number as usize % BRANCH);
        // SAFETY: a leaf is never freed before the window; null is checked.
        let leaves = unsafe { self.pieces[branch].load(Ordering::Acquire).as_ref() }?;
        NonNull::new(leaves[leaf].load(Ordering::Acquire))
    }

    /// Maps the piece of `offset`, or all pieces of a registration that is larger than one, in one go.
    #[cold]
    fn map(&self, offset: u64, start: u64, len: u64) -> Result<NonNull<u8>> {
        debug_assert!(start <= offset && offset < start + len && start + len <= WINDOW);
        let mut mapped = self.mapped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let number = offset / PIECE;
        if let Some(piece) = self.piece(number) {
            return Ok(piece); // another thread was quicker
        }
        let (first, last) = (start / PIECE, (start + len - 1) / PIECE);
        let bytes = (last - first + 1) * PIECE;
        let colour = self.colour + first as usize * COLOURS_APART;
        let mapping = Mapping::shared_in_colour(&self.file, first * PIECE, bytes as usize, colour)?;
        for piece in first..=last {
            // SAFETY: the mapping is that long.
            let at = unsafe { mapping.start().add(((piece - first) * PIECE) as usize) };
            self.enter(piece, at);
        }
        // SAFETY: as above.
        let at = unsafe { mapping.start().add(((number - first) * PIECE) as usize) };
        mapped.push(mapping);
        Ok(at)
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
    pub fn directory(&self) -> Result<Directory> {
        // SAFETY: the system piece is mapped while the window lives, and users of the directory hold the window.
        self.system().map(|system| unsafe { Directory::over(system) })
    }

    /// Bytes of this process's own memory that the tables take.
    pub fn table_bytes(&self) -> u64 {
        let leaves = self.pieces.iter().filter(|leaf| !leaf.load(Ordering::Relaxed).is_null()).count();
        (size_of::<Window>() + leaves * size_of::<Leaf>()) as u64
    }
}

impl Drop for Window {
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

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::layout::SYMMETRIC;

    #[test]
    fn two_views_show_the_same_bytes() {
        let file = Window::create_file().unwrap();
        let (ours, theirs) = (Window::new(file.clone(), 0), Window::new(file, 1));
        let offset = SYMMETRIC.start + 12345;
        let place = |window: &Window| window.at(offset, SYMMETRIC.start, PIECE).unwrap().as_ptr();
        // SAFETY: both pointers are mapped; nobody else uses them.
        unsafe {
            place(&ours).write_volatile(7);
            assert_eq!(place(&theirs).read_volatile(), 7);
        }
        assert_ne!(place(&ours), place(&theirs));
    }

    #[test]
    fn a_registration_larger_than_a_piece_is_contiguous() {
        let window = Window::new(Window::create_file().unwrap(), 0);
        let (start, len) = (SYMMETRIC.start + PIECE, 3 * PIECE);
        let last = window.at(start + len - 1, start, len).unwrap().as_ptr() as u64;
        let first = window.at(start, start, len).unwrap().as_ptr() as u64;
        assert_eq!(last - first, len - 1);
    }
}
