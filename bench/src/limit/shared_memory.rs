//! Memory that two processes share without Tasuki's help: a nameless file that each maps by itself.
#![allow(unsafe_code)]
//! Unsafe: maps a file and gives out parts of the mapping as atomics and raw ranges, checked to lie inside. The
//! mapping lives as long as the structure that the parts are borrowed from; nobody makes references to its bytes.

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Bytes from one word to the next: two lines, since processors fetch lines in pairs.
pub(crate) const BLOCK: usize = 128;
/// Blocks of control and hand-over words at the start of the file.
pub(super) const CONTROL_BLOCKS: usize = 512;
/// Where the words of the remote limits begin, as a block.
pub(super) const REMOTE_BLOCK: usize = CONTROL_BLOCKS;
/// Where the buffers of the copy limits begin, in bytes.
pub(super) const COPY_START: usize = 16 << 20;

/// The file as whoever starts the two processes holds it; gone with the last descriptor and mapping.
#[derive(Debug)]
pub(crate) struct SharedFile {
    fd: OwnedFd,
}

impl SharedFile {
    /// A file with room for `copy_bytes` bytes of buffers. Memory is taken for the words at once, for the buffers
    /// by [`Shared::reserve_copies`].
    pub(crate) fn create(copy_bytes: usize) -> io::Result<SharedFile> {
        let fd = memfd_create(c"tasuki-bench-limit", MemfdFlags::CLOEXEC)?;
        ftruncate(&fd, (COPY_START + copy_bytes) as u64)?;
        fallocate(&fd, FallocateFlags::empty(), 0, COPY_START as u64)?;
        Ok(SharedFile { fd })
    }

    /// Where another process of the same user opens it while this one lives.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd())
    }
}

/// The file as one process has mapped it.
#[derive(Debug)]
pub(crate) struct Shared {
    file: File,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address range; what lies in it is reached by atomics, and by raw copies that take turns.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps the file at `path`, in full.
    pub(crate) fn open(path: &str) -> io::Result<Shared> {
        let file = File::options().read(true).write(true).open(path)?;
        let bytes = file.metadata()?.len() as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new range at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Shared { file, start, bytes })
    }

    /// Takes memory for the buffers now, so that a copy cannot die of its lack.
    pub(super) fn reserve_copies(&self) -> io::Result<()> {
        let length = (self.bytes - COPY_START) as u64;
        Ok(fallocate(&self.file, FallocateFlags::empty(), COPY_START as u64, length)?)
    }

    /// The word at the start of a block of 128 bytes.
    pub(super) fn word(&self, block: usize) -> &AtomicU64 {
        let place = self.range(block * BLOCK, size_of::<AtomicU64>());
        // SAFETY: inside the mapping by the line above, aligned to the block, and an atomic for every process.
        unsafe { &*place.cast::<AtomicU64>() }
    }

    /// The first of `length` bytes from `offset` on.
    pub(super) fn range(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset <= self.bytes && length <= self.bytes - offset, "outside the limit's memory");
        // SAFETY: inside the mapping by the line above.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Bytes there are for buffers.
    pub(super) fn copy_bytes(&self) -> usize {
        self.bytes - COPY_START
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the range is ours, and whatever was borrowed from it is gone.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_views_show_the_same_words() {
        let file = SharedFile::create(0).unwrap();
        let (ours, theirs) = (Shared::open(&file.path()).unwrap(), Shared::open(&file.path()).unwrap());
        ours.word(3).store(7, Ordering::Release);
        assert_eq!(theirs.word(3).load(Ordering::Acquire), 7);
        assert_eq!(theirs.word(4).load(Ordering::Acquire), 0);
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn what_lies_outside_is_refused() {
        let file = SharedFile::create(4096).unwrap();
        Shared::open(&file.path()).unwrap().range(COPY_START + 4095, 2);
    }
}
