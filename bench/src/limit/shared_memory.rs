//! Memory that two processes share without using Tasuki: a file without a name that each process maps itself.
#![allow(unsafe_code)]
//! Unsafe: maps a file and returns parts of the mapping as atomics and raw ranges, which are checked to lie in the
//! mapping. The mapping lives as long as the structure that the parts are borrowed from. No references to its bytes
//! exist.

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Bytes from one word to the next: two lines, because processors fetch lines in pairs.
pub(crate) const BLOCK: usize = 128;
/// Number of blocks at the start of the file for control words and hand-over words.
pub(super) const CONTROL_BLOCKS: usize = 512;
/// The block at which the words of the remote limits begin.
pub(super) const REMOTE_BLOCK: usize = CONTROL_BLOCKS;
/// The byte at which the buffers of the copy limits begin.
pub(super) const COPY_START: usize = 16 << 20;

/// The file, as the process that starts the two measuring processes holds it. The file is deleted when its last
/// descriptor is closed and its last mapping removed.
#[derive(Debug)]
pub(crate) struct SharedFile {
    fd: OwnedFd,
}

impl SharedFile {
    /// Creates a file with room for `copy_bytes` bytes of buffers. The memory of the words is allocated at once, that
    /// of the buffers by [`Shared::reserve_copies`].
    pub(crate) fn create(copy_bytes: usize) -> io::Result<SharedFile> {
        let fd = memfd_create(c"tasuki-bench-limit", MemfdFlags::CLOEXEC)?;
        ftruncate(&fd, (COPY_START + copy_bytes) as u64)?;
        fallocate(&fd, FallocateFlags::empty(), 0, COPY_START as u64)?;
        Ok(SharedFile { fd })
    }

    /// Returns the path at which another process of the same user can open the file while this process lives.
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
// SAFETY: an address range; what lies in it is reached by atomics, and by raw copies that take turns.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps the whole file at `path`.
    pub(crate) fn open(path: &str) -> io::Result<Shared> {
        let file = File::options().read(true).write(true).open(path)?;
        let bytes = file.metadata()?.len() as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new range at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Shared { file, start, bytes })
    }

    /// Allocates the memory of the buffers now, so that a lack of memory cannot kill the process during a copy.
    pub(super) fn reserve_copies(&self) -> io::Result<()> {
        let length = (self.bytes - COPY_START) as u64;
        Ok(fallocate(&self.file, FallocateFlags::empty(), COPY_START as u64, length)?)
    }

    /// Returns the word at the start of a block of 128 bytes.
    pub(super) fn word(&self, block: usize) -> &AtomicU64 {
        let place = self.range(block * BLOCK, size_of::<AtomicU64>());
        // SAFETY: `range` has checked that the word lies in the mapping. It is aligned to the block, and an atomic for
        // every process.
        unsafe { &*place.cast::<AtomicU64>() }
    }

    /// Returns a pointer to the first of `length` bytes that begin at `offset`.
    pub(super) fn range(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset <= self.bytes && length <= self.bytes - offset, "outside the limit's memory");
        // SAFETY: the assertion keeps the range in the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Returns the number of bytes for buffers.
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
