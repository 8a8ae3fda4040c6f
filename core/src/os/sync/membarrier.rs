//! A memory fence that one thread executes on all processors that run threads of a group of processes.
#![allow(unsafe_code)]
//! Unsafe: the membarrier system call, which takes no pointers.

use crate::os::disabled_features::DisabledFeatures;

const QUERY: libc::c_int = 0;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// The processes whose processors the fence reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceScope {
    /// All processes that registered for it. The kernel silently skips processes that did not. So
    /// each writer of signals must register before it gets its first address.
    Registered,
    /// The threads of this process.
    Process,
}

/// Registers this process with the group. Returns false if the kernel cannot or does not allow it.
pub fn register(group: FenceScope, disabled: DisabledFeatures) -> bool {
    let (register, needed) = match group {
        FenceScope::Registered => (REGISTER_GLOBAL_EXPEDITED, GLOBAL_EXPEDITED),
        FenceScope::Process => (REGISTER_PRIVATE_EXPEDITED, PRIVATE_EXPEDITED),
    };
    if disabled.membarrier {
        return false;
    }
    let supported = call(QUERY);
    supported > 0
        && supported & libc::c_long::from(register | needed) == libc::c_long::from(register | needed)
        && call(register) == 0
}

/// Executes the fence. The calling process must have registered.
pub fn fence(group: FenceScope) {
    let command = match group {
        FenceScope::Registered => GLOBAL_EXPEDITED,
        FenceScope::Process => PRIVATE_EXPEDITED,
    };
    let done = call(command);
    debug_assert_eq!(done, 0, "membarrier failed after this process had registered");
}

fn call(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes three numbers and no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}
