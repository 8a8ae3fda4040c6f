//! Start and end, the numbers of the ranks, and the barrier.
//!
//! Unsafe: the functions are symbols of C; a text of C is read.
#![allow(unsafe_code)]

use super::state::{STATE, State, state};
use super::{allocation, channels, collectives, memory, segmented_buffers};
use crate::process_rank;
use crate::status::{Failure, last_text};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;

/// How a process ends that aborts.
const ABORTED: i32 = 1;

/// Ends all that the program has created, when no rank uses it any more.
fn end_all(state: &State) {
    collectives::end_all();
    channels::end_all();
    segmented_buffers::end_all();
    memory::end_all();
    allocation::end_all(state.job);
}

calls! {
    /// Joins the job.
    acp_init(argc: *mut c_int, argv: *mut c_void) -> c_int, -1; {
        let _ = (argc, argv);
        STATE.begin(allocation::handlers(), |job| {
            let state = State::new(job)?;
            channels::begin(job)?;
            collectives::begin(job)?;
            job.barrier()?;
            Ok(state)
        })?;
        Ok(0)
    }

    /// Leaves the job.
    acp_finalize() -> c_int, -1; {
        let state = state()?;
        let met = state.job.barrier();
        STATE.stop()?;
        end_all(state);
        let ended = process_rank::end();
        met?;
        ended.map(|()| 0)
    }

    /// Gives this rank another number.
    acp_reset(rank: c_int) -> c_int, -1; {
        let state = state()?;
        let job = state.job;
        job.complete(tasuki::bindings::last_issued(job))?;
        let given = job.world().allgather(&rank)?; // and nobody accesses anything any more
        let mut ranks = vec![None; job.size()];
        for (of, number) in job.ranks().zip(&given) {
            let place = usize::try_from(*number).ok().and_then(|number| ranks.get_mut(number));
            match place {
                Some(place @ None) => *place = Some(of),
                _ => {
                    let text = format!("the new numbers of the ranks are {given:?}: each of 0 to {} once", job.size() - 1);
                    return Err(Failure::misuse(text));
                }
            }
        }
        end_all(state);
        state.starter.fill(0)?;
        state.renumber(given, ranks.into_iter().flatten().collect());
        job.barrier()?;
        Ok(0)
    }

    /// Returns when all ranks have called it.
    acp_sync() -> c_int, -1; {
        state()?.job.barrier()?;
        Ok(0)
    }

    /// The number of this rank.
    acp_rank() -> c_int, -1; {
        let state = state()?;
        Ok(state.number_of(state.job.rank()))
    }

    /// The number of ranks.
    acp_procs() -> c_int, -1; {
        Ok(state()?.job.size() as c_int)
    }
}

/// Prints the text and this thread's last error, and ends all ranks.
///
/// # Safety
/// The text is null, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_abort(text: *const c_char) {
    let number = state().map_or(-1, |state| state.number_of(state.job.rank()));
    // SAFETY: the caller promises it.
    let text = if text.is_null() { c"" } else { unsafe { CStr::from_ptr(text) } };
    let line = format!("acp_abort on rank {number}: {}\n{}", text.to_string_lossy(), last_text());
    let _ = writeln!(std::io::stderr().lock(), "{}", line.trim_end()); // there is nobody to tell
    tasuki::bindings::end_process(ABORTED)
}
