//! Mappings of a memory file, or of private memory, into this process's address space.
#![allow(unsafe_code)]
//! Unsafe: mmap and munmap of ranges that this structure owns. Other processes share the memory. So it is accessed by
//! raw pointers and atomics only, never by a reference to plain data.

use crate::base::{Error, Result};
use crate::os::memfile::MemFile;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// The number of colours: see [`Mapping::shared_in_colour`].
pub const COLOURS: usize = 64;
/// Bytes from one colour to the next: a large page, so that large pages can still be mapped.
pub const COLOUR_BYTES: usize = 2 << 20;

/// A mapped range, unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is only an address range; the users of its pointer must synchronize their accesses.
unsafe impl Send for Mapping {}
// SAFETY: a mapping is only an address range; the users of its pointer must synchronize their accesses.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file` from `offset` (a multiple of the page size), shared and writable.
    pub fn shared(file: &MemFile, offset: u64, len: usize) -> Result<Mapping> {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        Mapping::map(len, flags, file.as_fd().as_raw_fd(), offset)
    }

    /// Maps like [`Mapping::shared`], at an address of the given colour (modulo [`COLOURS`]): the addresses of two
    /// mappings of different colours differ modulo `COLOURS * COLOUR_BYTES`.
    pub fn shared_in_colour(file: &MemFile, offset: u64, len: usize, colour: usize) -> Result<Mapping> {
        let slack = COLOURS * COLOUR_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let reserved = Mapping::map_as(len + slack, libc::PROT_NONE, flags, -1, 0)?;
        let base = reserved.start.as_ptr() as usize;
        let skip = (colour % COLOURS * COLOUR_BYTES).wrapping_sub(base) % slack;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_fd().as_raw_fd());
        // SAFETY: the range that is replaced, and those that are unmapped around it, lie in the reserved range, which
        // this function owns.
        unsafe {
            let start = reserved.start.as_ptr().add(skip);
            if libc::mmap(start.cast(), len, access, flags, fd, offset as libc::off_t) == libc::MAP_FAILED {
                return Err(Error::last_os("mmap"));
            }
            std::mem::forget(reserved);
            for (from, bytes) in [(base as *mut u8, skip), (start.add(len), slack - skip)] {
                if bytes > 0 {
                    libc::munmap(from.cast(), bytes);
                }
            }
            Ok(Mapping { start: NonNull::new_unchecked(start), len })
        }
    }

    /// Maps `len` bytes of private memory. A forked child reads zeros in it.
    pub fn wiped_on_fork(len: usize) -> Result<Mapping> {
        let mapping = Mapping::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        // SAFETY: the range was just mapped and is owned here.
        if unsafe { libc::madvise(mapping.start.as_ptr().cast(), len, libc::MADV_WIPEONFORK) } != 0 {
            return Err(Error::last_os("madvise(MADV_WIPEONFORK)"));
        }
        Ok(mapping)
    }

    fn map(len: usize, flags: libc::c_int, fd: libc::c_int, offset: u64) -> Result<Mapping> {
        Mapping::map_as(len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset)
    }

    fn map_as(
        len: usize,
        access: libc::c_int,
        flags: libc::c_int,
        fd: libc::c_int,
        offset: u64,
    ) -> Result<Mapping> {
        // SAFETY: the kernel chooses an address where the new range overlaps nothing.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, offset as libc::off_t) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os("mmap"));
        }
        Ok(Mapping { start: NonNull::new(start.cast()).expect("the kernel maps nothing at 0"), len })
    }

    /// Returns the address of the first byte.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns false: an empty range cannot be mapped.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is owned, and no user keeps its pointer longer than this structure.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_its_colour_and_the_reserved_rest_is_unmapped() {
        let file = MemFile::create(c"colours", 4096).unwrap();
        for colour in [0, 1, COLOURS - 1, COLOURS + 5] {
            let mapping = Mapping::shared_in_colour(&file, 0, 4096, colour).unwrap();
            let start = mapping.start().as_ptr() as usize;
            assert_eq!(start / COLOUR_BYTES % COLOURS, colour % COLOURS);
            // SAFETY: the byte is mapped, and nobody else uses it.
            unsafe { mapping.start().as_ptr().add(4095).write_volatile(1) };
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            assert!(maps.contains(&format!("{start:x}-{:x} rw-s", start + 4096)), "{maps}");
        }
    }
}
