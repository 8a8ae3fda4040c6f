//! Copies, atomic operations, and completion.

use super::infrastructure::state;
use super::memory::place;
use crate::status::Failure;
use std::ffi::c_int;
use tasuki::bindings::{is_pending, last_issued};
use tasuki::onesided::{After, AtomicOp, Handle, Word};

const NULL: u64 = 0;
const ALL: u64 = u64::MAX;
const CONT: u64 = u64::MAX - 1;

fn after(order: u64) -> After {
    match order {
        NULL => After::Nothing,
        ALL => After::All,
        CONT => After::Cont,
        handle => After::Prefix(Handle::from_number(handle)),
    }
}

/// Begins an atomic operation on the word at `src`, and stores what it was at `dst`.
fn atomic<W: Word>(dst: u64, src: u64, operation: AtomicOp<W>, order: u64) -> Result<u64, Failure> {
    if dst == 0 {
        return Err(Failure::misuse("dst is null: the old value is stored there"));
    }
    let issued = state()?.job.iatomic(place(src).cast(), operation, place(dst).cast(), after(order))?;
    Ok(issued.handle().number())
}

/// Defines atomic operations with one value.
macro_rules! atomics {
    ($($name:ident: $type:ty, $operation:ident;)*) => {
        calls! {$(
            /// An atomic operation on a word.
            $name(dst: u64, src: u64, value: $type, order: u64) -> u64, NULL; {
                atomic(dst, src, AtomicOp::$operation(value), order)
            }
        )*}
    };
}

atomics! {
    acp_swap4: u32, Swap;
    acp_swap8: u64, Swap;
    acp_add4: u32, Add;
    acp_add8: u64, Add;
    acp_xor4: u32, Xor;
    acp_xor8: u64, Xor;
    acp_or4: u32, Or;
    acp_or8: u64, Or;
    acp_and4: u32, And;
    acp_and8: u64, And;
}

calls! {
    /// Copies bytes from anywhere to anywhere.
    acp_copy(dst: u64, src: u64, size: usize, order: u64) -> u64, NULL; {
        Ok(state()?.job.copy(place(src), place(dst), size, after(order))?.handle().number())
    }

    /// Replaces a word of 4 bytes if it has a value.
    acp_cas4(dst: u64, src: u64, oldval: u32, newval: u32, order: u64) -> u64, NULL; {
        atomic(dst, src, AtomicOp::CompareSwap { expected: oldval, new: newval }, order)
    }

    /// Replaces a word of 8 bytes if it has a value.
    acp_cas8(dst: u64, src: u64, oldval: u64, newval: u64, order: u64) -> u64, NULL; {
        atomic(dst, src, AtomicOp::CompareSwap { expected: oldval, new: newval }, order)
    }

    /// Waits until an access and all before it have ended.
    acp_complete(handle: u64) -> c_int, -1; {
        let job = state()?.job;
        job.complete(known(handle, last_issued(job)))?;
        Ok(0)
    }

    /// Tells whether an access, or one before it, is under way.
    acp_inquire(handle: u64) -> c_int, 0; {
        let job = state()?.job;
        Ok(c_int::from(is_pending(job, known(handle, last_issued(job)))))
    }
}

/// The handle that a wait names.
fn known(handle: u64, last: Handle) -> Handle {
    if handle == ALL || handle == CONT { last } else { Handle::from_number(handle) }
}
