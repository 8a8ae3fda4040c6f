//! Copies, atomic operations, and completion.

use super::collectives::{collectives, is_of_collective};
use super::memory::place;
use super::state::state;
use crate::status::Failure;
use std::ffi::c_int;
use tasuki::bindings::{is_pending, last_issued};
use tasuki::onesided::{After, AtomicOp, Handle, Word};

const NULL: u64 = 0;
const ALL: u64 = u64::MAX;
const CONT: u64 = u64::MAX - 1;

fn after(order: u64) -> Result<After, Failure> {
    Ok(match order {
        NULL => After::Nothing,
        ALL => After::All,
        CONT => After::Cont,
        handle if is_of_collective(handle) => {
            return Err(Failure::misuse(
                "no access starts after a collective: wait for that by acp_complete",
            ));
        }
        handle => After::Prefix(Handle::from_number(handle)),
    })
}

/// Begins an atomic operation on the word at `src`, and stores what it was at `dst`.
fn atomic<W: Word>(dst: u64, src: u64, operation: AtomicOp<W>, order: u64) -> Result<u64, Failure> {
    if dst == 0 {
        return Err(Failure::misuse("dst is null: the old value is stored there"));
    }
    let issued = state()?.job.iatomic(place(src).cast(), operation, place(dst).cast(), after(order)?)?;
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
        Ok(state()?.job.copy(place(src), place(dst), size, after(order)?)?.handle().number())
    }

    /// Replaces a word of 4 bytes if it has a value.
    acp_cas4(dst: u64, src: u64, oldval: u32, newval: u32, order: u64) -> u64, NULL; {
        atomic(dst, src, AtomicOp::CompareSwap { expected: oldval, new: newval }, order)
    }

    /// Replaces a word of 8 bytes if it has a value.
    acp_cas8(dst: u64, src: u64, oldval: u64, newval: u64, order: u64) -> u64, NULL; {
        atomic(dst, src, AtomicOp::CompareSwap { expected: oldval, new: newval }, order)
    }

    /// Waits until an access and all before it have ended, or a start of a collective has.
    acp_complete(handle: u64) -> c_int, -1; {
        let state = state()?;
        if is_of_collective(handle) {
            return collectives()?.wait(|all| all.outcome(handle)).map(|()| 0);
        }
        let completed = state.job.complete(known(handle, last_issued(state.job)));
        if is_all(handle) {
            collectives()?.wait(|all| all.outcome_of_all())?;
        }
        completed?;
        Ok(0)
    }

    /// Tells whether an access, or one before it, is under way, or a start of a collective is.
    acp_inquire(handle: u64) -> c_int, 0; {
        let state = state()?;
        let is_one = is_of_collective(handle);
        if !is_one && is_pending(state.job, known(handle, last_issued(state.job))) {
            return Ok(1);
        }
        if !is_one && !is_all(handle) {
            return Ok(0);
        }
        let collectives = collectives()?;
        let has_ended = || {
            let outcome = collectives.with(|all| if is_one { all.outcome(handle) } else { all.outcome_of_all() });
            outcome.is_some()
        };
        if has_ended() {
            return Ok(0);
        }
        state.job.serve()?; // programs ask again and again
        Ok(c_int::from(!has_ended()))
    }
}

fn is_all(handle: u64) -> bool {
    handle == ALL || handle == CONT
}

/// The handle that a wait names.
fn known(handle: u64, last: Handle) -> Handle {
    if is_all(handle) { last } else { Handle::from_number(handle) }
}
