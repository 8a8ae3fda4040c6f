//! How the ranks of a case exchange addresses and other values, and how a case finds its
//! neighbours.

use tasuki::engine::fabric;
use tasuki::{GlobalPtr, Job, Pod, Rank, Result};

/// Sends `value` to every rank, and returns the values of all ranks, by rank. Collective.
pub(crate) fn exchange_all<T: Pod>(job: &Job, value: T) -> Result<Vec<T>> {
    exchange_lists(job, &[value]).map(|lists| lists.into_iter().flatten().collect())
}

/// Sends a list to every rank, and returns the lists of all ranks, by rank. Collective; all lists
/// must have one length.
pub(crate) fn exchange_lists<T: Pod>(job: &Job, values: &[T]) -> Result<Vec<Vec<T>>> {
    let node_state = job.alloc::<T>(values.len() * job.size())?;
    for rank in job.ranks() {
        job.put(node_state.on(rank).at(job.rank().index() * values.len()), values)?;
    }
    job.barrier()?;
    let all = node_state.to_vec()?;
    Ok(all.chunks(values.len()).map(<[T]>::to_vec).collect())
}

/// The rank after this one; after the last rank comes rank 0.
pub(crate) fn next(job: &Job) -> Rank {
    Rank((job.rank().0 + 1) % job.size())
}

/// The rank before this one; before rank 0 comes the last rank.
pub(crate) fn previous(job: &Job) -> Rank {
    Rank((job.rank().0 + job.size() - 1) % job.size())
}

pub(crate) fn last(job: &Job) -> Rank {
    Rank(job.size() - 1)
}

/// Returns true if the job is simulated. There a case does less work and does not rely on real
/// time.
pub(crate) fn is_simulated(job: &Job) -> bool {
    fabric(job) == "sim"
}

/// Returns true under AddressSanitizer.
pub(crate) fn is_watched() -> bool {
    std::env::var_os("ASAN_OPTIONS").is_some()
}

/// Returns how often a case should do something: `real` times on real processors, `simulated` times
/// on the simulator, where each step costs a thread switch. Under AddressSanitizer the number is
/// smaller, because the sanitizer sees a wrong access the first time it happens.
pub(crate) fn effort(job: &Job, real: usize, simulated: usize) -> usize {
    match is_simulated(job) {
        true => simulated,
        false if is_watched() => simulated.max(real / 8),
        false => real,
    }
}

/// The place `offset` bytes behind `pointer`, as a pointer to bytes.
pub(crate) fn bytes_at<T>(pointer: GlobalPtr<T>, offset: usize) -> GlobalPtr<u8> {
    pointer.cast::<u8>().at(offset)
}
