//! Copying from and to memory that another process merely owns, by asking the kernel.
#![allow(unsafe_code)]
//! Unsafe: process_vm_readv and process_vm_writev. The kernel checks the remote range (EFAULT); the local range is
//! the caller's promise.

use crate::os::disabled_features::DisabledFeatures;

/// Which way the bytes go, seen from the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the other process into ours.
    Read,
    /// From ours into the other process.
    Write,
}

/// Why a copy did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyRefusal {
    /// The kernel does not let us, or does not know the call.
    Permission,
    /// The remote range is not mapped there.
    Fault,
    /// The process is gone.
    Gone,
}

/// Copies `len` bytes between `local` here and `remote` in process `pid`.
///
/// # Safety
/// `local .. local + len` must be memory that may be read (`Direction::Write`) or written (`Direction::Read`) during the call.
pub unsafe fn copy(
    way: Direction,
    pid: u32,
    local: *mut u8,
    remote: u64,
    len: usize,
    denied: DisabledFeatures,
) -> Result<(), CopyRefusal> {
    if denied.process_vm {
        return Err(CopyRefusal::Permission);
    }
    let mut done = 0;
    while done < len {
        let here = libc::iovec { iov_base: local.wrapping_add(done).cast(), iov_len: len - done };
        let there =
            libc::iovec { iov_base: (remote as usize + done) as *mut libc::c_void, iov_len: len - done };
        // SAFETY: `here` is valid by the caller's promise, `there` is checked by the kernel.
        let moved = unsafe {
            match way {
                Direction::Read => libc::process_vm_readv(pid as libc::pid_t, &here, 1, &there, 1, 0),
                Direction::Write => libc::process_vm_writev(pid as libc::pid_t, &here, 1, &there, 1, 0),
            }
        };
        match moved {
            1.. => done += moved as usize,
            _ => return Err(refusal()),
        }
    }
    Ok(())
}

/// Whether the call works at all, tried on this process itself. Other processes may still be out of bounds.
pub fn permitted(denied: DisabledFeatures) -> bool {
    let (source, mut target) = ([7_u8; 8], [0_u8; 8]);
    let from = source.as_ptr() as u64;
    // SAFETY: target is ours for the length of the call.
    let done = unsafe { copy(Direction::Read, std::process::id(), target.as_mut_ptr(), from, 8, denied) };
    done.is_ok() && source == target
}

fn refusal() -> CopyRefusal {
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ESRCH) => CopyRefusal::Gone,
        Some(libc::EFAULT) => CopyRefusal::Fault,
        _ => CopyRefusal::Permission,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_s_own_process_can_be_read_and_faults_are_told() {
        let (source, mut target) = ([7_u8; 100], [0_u8; 100]);
        let pid = std::process::id();
        let none = DisabledFeatures::default();
        let from = source.as_ptr() as u64;
        // SAFETY: target is ours for the length of the call.
        let answer = unsafe { copy(Direction::Read, pid, target.as_mut_ptr(), from, 100, none) };
        if answer == Err(CopyRefusal::Permission) {
            return; // a sandbox that forbids the call altogether
        }
        assert_eq!((answer, target), (Ok(()), source));
        // SAFETY: as above; address 16 is never mapped.
        let unmapped = unsafe { copy(Direction::Read, pid, target.as_mut_ptr(), 16, 100, none) };
        assert_eq!(unmapped, Err(CopyRefusal::Fault));
        let deny = DisabledFeatures { process_vm: true, ..none };
        // SAFETY: as above.
        let denied = unsafe { copy(Direction::Read, pid, target.as_mut_ptr(), from, 1, deny) };
        assert_eq!(denied, Err(CopyRefusal::Permission));
    }
}
