//! Start and end, the numbers of the ranks, and the barrier.
//!
//! A rank has the number that `acp_reset` gave it. Addresses hold the rank of the job, so two lists translate.
//!
//! Unsafe: the functions are symbols of C; a text of C is read.
#![allow(unsafe_code)]

use super::memory::Registrations;
use crate::interface_state::InterfaceState;
use crate::process_rank;
use crate::status::{Failure, last_text};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::sync::{PoisonError, RwLock};
use tasuki::{Array, Handlers, Job, Rank};

/// Bytes of starter memory, as in `acp.h`.
const STARTER_BYTES: usize = 65_536;
/// How a process ends that aborts.
const ABORTED: i32 = 1;

/// A rank of ACP.
pub(super) struct State {
    pub(super) job: &'static Job,
    pub(super) starter: Array<u64>,
    pub(super) registrations: Registrations,
    /// The number of each rank of the job, and the rank of each number.
    numbers: RwLock<(Vec<c_int>, Vec<Rank>)>,
}

static STATE: InterfaceState<State> = InterfaceState::new("acp_init", "acp_finalize");

/// Returns the state. Failure: ACP does not run.
#[inline]
pub(super) fn state() -> Result<&'static State, Failure> {
    STATE.get()
}

impl State {
    fn new(job: &'static Job) -> Result<State, Failure> {
        let starter = job.alloc::<u64>(STARTER_BYTES / size_of::<u64>())?;
        let numbers = RwLock::new((job.ranks().map(|rank| rank.0 as c_int).collect(), job.ranks().collect()));
        Ok(State { job, starter, registrations: Registrations::default(), numbers })
    }

    /// The number of a rank of the job.
    pub(super) fn number_of(&self, rank: Rank) -> c_int {
        self.numbers.read().unwrap_or_else(PoisonError::into_inner).0[rank.index()]
    }

    /// The rank of the job that has a number.
    pub(super) fn rank_of(&self, number: c_int) -> Result<Rank, Failure> {
        let numbers = self.numbers.read().unwrap_or_else(PoisonError::into_inner);
        let rank = usize::try_from(number).ok().and_then(|number| numbers.1.get(number));
        let last = self.job.size() - 1;
        rank.copied().ok_or_else(|| Failure::misuse(format!("rank {number} does not exist: 0 to {last}")))
    }
}

calls! {
    /// Joins the job.
    acp_init(argc: *mut c_int, argv: *mut c_void) -> c_int, -1; {
        let _ = (argc, argv);
        STATE.begin(Handlers::new(), |job| {
            let state = State::new(job)?;
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
        state.registrations.end_all();
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
        state.registrations.end_all();
        state.starter.fill(0)?;
        let numbers = (given, ranks.into_iter().flatten().collect());
        *state.numbers.write().unwrap_or_else(PoisonError::into_inner) = numbers;
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
