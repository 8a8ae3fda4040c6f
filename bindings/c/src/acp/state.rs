//! What a rank has while ACP runs, and the numbers of the ranks.
//!
//! A rank has the number that `acp_reset` gave it. Addresses hold the rank of the job, so two lists translate.

use super::signals::FreeSignals;
use super::slots::SLOTS;
use crate::interface_state::InterfaceState;
use crate::status::Failure;
use std::ffi::c_int;
use std::sync::{PoisonError, RwLock};
use tasuki::collective::Split;
use tasuki::{Array, Communicator, Job, Rank};

/// Bytes of starter memory, as in `acp.h`.
const STARTER_BYTES: usize = 65_536;

/// A rank of ACP.
pub(super) struct State {
    pub(super) job: &'static Job,
    pub(super) starter: Array<u64>,
    /// Messages apart from those of other interfaces.
    pub(super) own_messages: Communicator,
    pub(super) signals: FreeSignals,
    /// The number of each rank of the job, and the rank of each number.
    numbers: RwLock<(Vec<c_int>, Vec<Rank>)>,
}

pub(super) static STATE: InterfaceState<State> = InterfaceState::new("acp_init", "acp_finalize");

/// Returns the state. Failure: ACP does not run.
#[inline]
pub(super) fn state() -> Result<&'static State, Failure> {
    STATE.get()
}

impl State {
    pub(super) fn new(job: &'static Job) -> Result<State, Failure> {
        let starter = job.alloc::<u64>(STARTER_BYTES / size_of::<u64>())?;
        let numbers = RwLock::new((job.ranks().map(|rank| rank.0 as c_int).collect(), job.ranks().collect()));
        let own_messages = job.world().split(Split::colour(0).slots(SLOTS))?;
        Ok(State { job, starter, own_messages, signals: FreeSignals::default(), numbers })
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

    /// Gives the ranks of the job other numbers: those, and the rank of each.
    pub(super) fn renumber(&self, numbers: Vec<c_int>, ranks: Vec<Rank>) {
        *self.numbers.write().unwrap_or_else(PoisonError::into_inner) = (numbers, ranks);
    }
}
