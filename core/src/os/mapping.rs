//! A piece of a memory file, or of private memory, in this process's address space.
#![allow(unsafe_code)]
//! Unsafe: mmap and munmap of ranges that this structure owns. The memory is shared with other processes, so no
//! reference to plain data in it is ever made: only raw pointers and atomics.

use super::memfile::MemFile;
use crate::base::{Error, Result};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// A mapped range, unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is an address range; what may be done with it is up to the users of its pointer.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file` from `offset` (a multiple of the page size), shared and writable.
    pub fn shared(file: &MemFile, offset: u64, len: usize) -> Result<Mapping> {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        Mapping::map(len, flags, file.as_fd().as_raw_fd(), offset)
    }

    /// Maps `len` bytes of private memory that a forked child finds zeroed.
    pub fn wiped_on_fork(len: usize) -> Result<Mapping> {
        let mapping = Mapping::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        // SAFETY: the range was just mapped and is owned.
        if unsafe { libc::madvise(mapping.start.as_ptr().cast(), len, libc::MADV_WIPEONFORK) } != 0 {
            return Err(Error::last_os("madvise(MADV_WIPEONFORK)"));
        }
        Ok(mapping)
    }

    fn map(len: usize, flags: libc::c_int, fd: libc::c_int, offset: u64) -> Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new range at an address of the kernel's choice overlaps nothing.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, offset as libc::off_t) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os("mmap"));
        }
        Ok(Mapping { start: NonNull::new(start.cast()).expect("the kernel maps nothing at 0"), len })
    }

    /// The first byte.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: an empty range cannot be mapped.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is owned and nobody keeps its pointer beyond the structure.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
