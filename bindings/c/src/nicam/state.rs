//! What a rank has while NICAM runs: its transfers, the signal of its flags, and its memory.
//!
//! Unsafe: the functions are symbols of C; results go through pointers of C, which the caller vouches for.
#![allow(unsafe_code)]

use super::flags::FlagQueue;
use super::places::Places;
use crate::interface_state::InterfaceState;
use crate::process_rank;
use crate::status::Failure;
use std::ffi::c_int;
use std::sync::{Arc, OnceLock};
use tasuki::nicam::Transfers;
use tasuki::{Handlers, Job, Signal};

/// A rank of NICAM.
pub(super) struct State {
    pub(super) job: &'static Job,
    pub(super) transfers: Transfers<'static>,
    /// Raised after each store to a flag of this rank.
    pub(super) set: Signal<'static>,
    pub(super) places: Places,
    /// The flags of the barriers under way, and of the syncs.
    pub(super) barriers: Arc<FlagQueue>,
    pub(super) syncs: Arc<FlagQueue>,
    /// Why a barrier or the transfers can never be complete.
    failure: OnceLock<Failure>,
}

impl State {
    fn new(job: &'static Job) -> Result<State, Failure> {
        let (transfers, set, places) = (Transfers::new(job)?, job.signal()?, Places::new(job)?);
        let (barriers, syncs, failure) = (Arc::default(), Arc::default(), OnceLock::new());
        Ok(State { job, transfers, set, places, barriers, syncs, failure })
    }

    /// Keeps a failure that no call returns.
    pub(super) fn fail(&self, failure: Failure) {
        let _ = self.failure.set(failure); // the first one counts
    }

    /// Returns the failure of a barrier or of transfers.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }
}

static STATE: InterfaceState<State> = InterfaceState::new("nicam_init", "nicam_finalize");

/// Returns the state. Failure: NICAM does not run.
#[inline]
pub(super) fn state() -> Result<&'static State, Failure> {
    STATE.get()
}

/// Writes a result of C.
///
/// # Safety
/// The pointer is null, or points to a value that nobody else uses meanwhile.
pub(super) unsafe fn give<T>(to: *mut T, value: T, name: &str) -> Result<(), Failure> {
    // SAFETY: the caller promises it.
    let to = unsafe { to.as_mut() }.ok_or_else(|| Failure::misuse(format!("{name} is null")))?;
    *to = value;
    Ok(())
}

calls! {
    /// Joins the job.
    nicam_init() {
        STATE.begin(Handlers::new(), State::new)
    }

    /// Leaves the job.
    nicam_finalize() {
        STATE.stop()?;
        process_rank::end()
    }

    /// The number of this node.
    nicam_self(node: *mut c_int) {
        // SAFETY: the caller promises it.
        unsafe { give(node, state()?.job.rank().0 as c_int, "node") }
    }

    /// The number of nodes.
    nicam_nodes(nodes: *mut c_int) {
        // SAFETY: the caller promises it.
        unsafe { give(nodes, state()?.job.size() as c_int, "nodes") }
    }
}
