//! Memory files (memfd): other processes get the descriptor. The kernel frees the memory with its last user.
#![allow(unsafe_code)]
//! Unsafe: system calls on a descriptor that this structure owns.

use crate::base::{Error, Result};
use crate::os::process;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A sparse, sealed memory file. It is in no mounted file system. So a small /dev/shm does not limit it, and nothing
/// remains of it however its users end.
#[derive(Debug)]
pub struct MemFile {
    fd: OwnedFd,
    len: u64,
}

impl MemFile {
    /// Creates a file of `len` bytes. They are zero, and no memory backs them yet. `name` appears only in /proc.
    pub fn create(name: &std::ffi::CStr, len: u64) -> Result<MemFile> {
        process::allow_file_size(len)?;
        // SAFETY: name is a C string; nobody else owns the new descriptor.
        let fd = unsafe {
            let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            if fd < 0 {
                return Err(Error::last_os("memfd_create"));
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: the descriptor is open; the calls take numbers only.
        let done = unsafe {
            libc::ftruncate(fd.as_raw_fd(), len as libc::off_t) == 0
                && libc::fcntl(
                    fd.as_raw_fd(),
                    libc::F_ADD_SEALS,
                    libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL,
                ) == 0
        };
        if done { Ok(MemFile { fd, len }) } else { Err(Error::last_os("ftruncate of a memfd")) }
    }

    /// Takes a file that another process sent. Error: the descriptor is not a sealed memory file of exactly `len`
    /// bytes. If it were not sealed, its owner could shrink it, and this process would die of SIGBUS.
    pub fn adopt(fd: OwnedFd, len: u64) -> Result<MemFile> {
        // SAFETY: fcntl takes numbers only; stat is valid memory for fstat's result.
        let (seals, size) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstat(fd.as_raw_fd(), &mut stat);
            (libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS), stat.st_size as u64)
        };
        let fixed = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        if seals < 0 || seals & fixed != fixed || size != len {
            return Err(Error::argument(format!(
                "the descriptor ({size} bytes, seals {seals:#x}) is not a sealed memory file of {len} bytes"
            )));
        }
        Ok(MemFile { fd, len })
    }

    /// Returns the length in bytes. It never changes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the descriptor, to send it to another process.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }

    /// Reads bytes from `offset` on without mapping them or allocating pages. Error: the file ends
    /// before `into` is full.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            let (rest, at) = (&mut into[done..], offset + done as u64);
            // SAFETY: pread writes only into the slice.
            let got = unsafe {
                libc::pread(self.fd.as_raw_fd(), rest.as_mut_ptr().cast(), rest.len(), at as libc::off_t)
            };
            match usize::try_from(got) {
                Ok(0) => return Err(Error::argument(format!("the memory file ends before offset {at}"))),
                Ok(more) => done += more,
                Err(_) => return Err(Error::last_os("pread of a memfd")),
            }
        }
        Ok(())
    }

    /// Allocates memory for a range now, so that an access to it cannot fail later.
    pub fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        loop {
            if self.fallocate(0, offset, len) {
                return Ok(());
            }
            let error = std::io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(Error::from_io("fallocate", &error));
            }
        }
    }

    /// Frees the memory of a range: its bytes read as zero from now on.
    pub fn punch(&self, offset: u64, len: u64) {
        let done = self.fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, len);
        debug_assert!(done, "fallocate(FALLOC_FL_PUNCH_HOLE) of a memory file failed");
    }

    /// Returns how many bytes of the file memory backs at present.
    pub fn backed(&self) -> u64 {
        // SAFETY: stat is valid memory for the result.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstat(self.fd.as_raw_fd(), &mut stat);
            stat.st_blocks as u64 * 512
        }
    }

    fn fallocate(&self, mode: libc::c_int, offset: u64, len: u64) -> bool {
        // SAFETY: the descriptor is open; the call takes numbers only.
        unsafe { libc::fallocate(self.fd.as_raw_fd(), mode, offset as libc::off_t, len as libc::off_t) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_sparse_and_sealed_and_punch_frees_its_memory() {
        let file = MemFile::create(c"test", 1 << 40).unwrap();
        assert_eq!(file.backed(), 0);
        file.reserve(1 << 30, 1 << 20).unwrap();
        assert_eq!(file.backed(), 1 << 20);
        file.punch(1 << 30, 1 << 20);
        assert_eq!(file.backed(), 0);
        let copy = file.as_fd().try_clone_to_owned().unwrap();
        assert!(MemFile::adopt(copy, 1 << 40).is_ok());
    }

    #[test]
    fn adopt_refuses_a_file_that_is_not_sealed() {
        let fd = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(MemFile::adopt(fd.into(), 4096).is_err());
    }
}
