//! Copies between this process and the private memory of another process, by the kernel.
#![allow(unsafe_code)]
//! Unsafe: process_vm_readv and process_vm_writev. The kernel checks the remote range (EFAULT); the caller promises
//! that the local range is valid.

use crate::os::disabled_features::DisabledFeatures;

/// The direction of a copy, seen from the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the other process into this one.
    Read,
    /// From this process into the other one.
    Write,
}

/// Why the kernel refused a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyRefusal {
    /// The kernel forbids the copy, or does not have the system call.
    Permission,
    /// The remote range is not mapped in the other process.
    Fault,
    /// The other process has ended.
    Gone,
}

/// Copies `len` bytes between `local` in this process and `remote` in process `pid`.
///
/// # Safety
/// `local .. local + len` must be readable (`Direction::Write`) or writable (`Direction::Read`) during the call.
pub unsafe fn copy(
    direction: Direction,
    pid: u32,
    local: *mut u8,
    remote: u64,
    len: usize,
    disabled: DisabledFeatures,
) -> Result<(), CopyRefusal> {
    if disabled.process_vm {
        return Err(CopyRefusal::Permission);
    }
    let mut done = 0;
    while done < len {
        let here = libc::iovec { iov_base: local.wrapping_add(done).cast(), iov_len: len - done };
        let there =
            libc::iovec { iov_base: (remote as usize + done) as *mut libc::c_void, iov_len: len - done };
        // SAFETY: the caller keeps `local .. local + len`, of which `here` is a part, valid for the direction; the
        // kernel checks `there`.
        let moved = unsafe {
            match direction {
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

/// Returns true if a copy from this process to itself works. The kernel may still refuse other processes.
pub fn permitted(disabled: DisabledFeatures) -> bool {
    let (source, mut target) = ([7_u8; 8], [0_u8; 8]);
    let from = source.as_ptr() as u64;
    // SAFETY: target is a local variable, writable during the call.
    let done = unsafe { copy(Direction::Read, std::process::id(), target.as_mut_ptr(), from, 8, disabled) };
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
    fn the_own_process_can_be_read_and_refusals_are_reported() {
        let (source, mut target) = ([7_u8; 100], [0_u8; 100]);
        let pid = std::process::id();
        let none = DisabledFeatures::default();
        let from = source.as_ptr() as u64;
        // SAFETY: target is a local variable, writable during the call.
        let answer = unsafe { copy(Direction::Read, pid, target.as_mut_ptr(), from, 100, none) };
        if answer == Err(CopyRefusal::Permission) {
            return; // a sandbox forbids the system call
        }
        assert_eq!((answer, target), (Ok(()), source));
        // SAFETY: `target` is a local variable of 100 bytes, writable during the call. Address 16 is never mapped.
        let unmapped = unsafe { copy(Direction::Read, pid, target.as_mut_ptr(), 16, 100, none) };
        assert_eq!(unmapped, Err(CopyRefusal::Fault));
        let disabled = DisabledFeatures { process_vm: true, ..none };
        // SAFETY: `target` is a local variable, writable during the call.
        let refused = unsafe { copy(Direction::Read, pid, target.as_mut_ptr(), from, 1, disabled) };
        assert_eq!(refused, Err(CopyRefusal::Permission));
    }
}
