//! How the ranks of a case tell each other where their memory is.

use tasuki::{GlobalPtr, Job, Pod, Rank, Result};

/// Tells every rank a value; what each of them told, by rank. Collective.
pub(crate) fn tell_all<T: Pod>(job: &Job, value: T) -> Result<Vec<T>> {
    tell_all_of(job, &[value]).map(|told| told.into_iter().flatten().collect())
}

/// Tells every rank a list; what each of them told, by rank. Collective; the lists must have the same length.
pub(crate) fn tell_all_of<T: Pod>(job: &Job, values: &[T]) -> Result<Vec<Vec<T>>> {
    let node_state = job.alloc::<T>(values.len() * job.size())?;
    for rank in job.ranks() {
        job.put(node_state.on(rank).at(job.rank().index() * values.len()), values)?;
    }
    job.barrier()?;
    let all = node_state.to_vec()?;
    Ok(all.chunks(values.len()).map(<[T]>::to_vec).collect())
}

/// The rank after this one, round the job.
pub(crate) fn next(job: &Job) -> Rank {
    Rank((job.rank().0 + 1) % job.size() as u32)
}

/// The rank before this one, round the job.
pub(crate) fn previous(job: &Job) -> Rank {
    Rank((job.rank().0 + job.size() as u32 - 1) % job.size() as u32)
}

/// The last rank.
pub(crate) fn last(job: &Job) -> Rank {
    Rank(job.size() as u32 - 1)
}

/// Whether the job is simulated, where a case does less of the same and does not count on real time.
pub(crate) fn is_simulated(job: &Job) -> bool {
    job.fabric() == "sim"
}

/// How often to do something: `real` on real processors, `simulated` where each step costs a switch. A sanitizer that
/// looks at each access sees what is wrong with one the first time that it comes.
pub(crate) fn effort(job: &Job, real: usize, simulated: usize) -> usize {
    let is_watched = std::env::var_os("ASAN_OPTIONS").is_some();
    match is_simulated(job) {
        true => simulated,
        false if is_watched => simulated.max(real / 8),
        false => real,
    }
}

/// The same place, named as bytes.
pub(crate) fn bytes_at<T>(pointer: GlobalPtr<T>, offset: usize) -> GlobalPtr<u8> {
    pointer.cast::<u8>().at(offset)
}
