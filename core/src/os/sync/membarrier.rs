//! A fence that one thread executes on all processors which run members of a group.
#![allow(unsafe_code)]
//! Unsafe: the membarrier system call, which takes no pointers.

use crate::os::disabled_features::DisabledFeatures;

const QUERY: libc::c_int = 0;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Whose processors the fence reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceScope {
    /// All processes that registered for it. An unregistered one is skipped without a word, so each writer of
    /// signals must have registered before it gets its first address.
    Registered,
    /// The threads of this process.
    Process,
}

/// Makes this process a member of the group. False where the system cannot, or may not.
pub fn register(group: FenceScope, denied: DisabledFeatures) -> bool {
    let (register, needed) = match group {
        FenceScope::Registered => (REGISTER_GLOBAL_EXPEDITED, GLOBAL_EXPEDITED),
        FenceScope::Process => (REGISTER_PRIVATE_EXPEDITED, PRIVATE_EXPEDITED),
    };
    if denied.membarrier {
        return false;
    }
    let offered = call(QUERY);
    offered > 0
        && offered & libc::c_long::from(register | needed) == libc::c_long::from(register | needed)
        && call(register) == 0
}

/// Executes the fence. Whoever calls must have registered.
pub fn fence(group: FenceScope) {
    let command = match group {
        FenceScope::Registered => GLOBAL_EXPEDITED,
        FenceScope::Process => PRIVATE_EXPEDITED,
    };
    let done = call(command);
    debug_assert_eq!(done, 0, "membarrier failed after it had been registered");
}

fn call(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes three numbers and no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}
