//! memory: bytes of a prepared plan, by lists of all ranks and by one list of the first rank, against the formula of
//! docs/guide/memory.md; and what is left when all ranks have dropped it.

use crate::cases::collective::single_driver::{Form, named};
use crate::cases::memory::rank_memory;
use crate::harness::process_role::ProcessRole;
use crate::result::figure::Event;
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use tasuki::schedule::{CollectiveKind, RankPart as OfRank, Schedule, Shape};
use tasuki::{Job, Sum};

/// Among more ranks proofs take long.
pub(crate) const RANKS: RangeInclusive<usize> = 2..=16;
/// Bytes of what a rank gives.
const BYTES: u64 = 8 << 10;
/// What is prepared, and by which algorithm.
const PLANS: [(&str, CollectiveKind, &str); 2] =
    [("bcast", CollectiveKind::Bcast, "binary"), ("sum", CollectiveKind::Allreduce, "tree")];
/// What is told of what is left.
const LEFT: &str = "plans_freed";
/// Buffers begin at multiples of this many bytes.
const BUFFER: u64 = 128;
/// Bytes of a signal,
const SIGNAL: u64 = 128;
/// of a queue without its places, and of a place.
const QUEUE: u64 = 17_024;
const PLACE: u64 = 216;

/// What the ranks of a job told of one plan.
pub(crate) struct PlanMemory {
    /// The variant of the row.
    pub(crate) variant: String,
    /// Bytes of each rank.
    pub(crate) bytes: Vec<f64>,
    /// What the formula gives for each.
    pub(crate) formula: Vec<f64>,
}

fn schedule(
    ranks: usize,
    of: (&str, CollectiveKind, &str),
    form: Form,
) -> tasuki::Result<(String, Schedule)> {
    let (what, operation, name) = of;
    let spread = named(operation, name)?.schedule(&Shape::new(operation, ranks, 0, BYTES), 1);
    let ending = if form == Form::SingleDriver { "driven" } else { "spread" };
    let schedule = if form == Form::SingleDriver { spread.driven_by(0) } else { spread };
    Ok((format!("{what}_{ending}"), schedule))
}

fn all() -> impl Iterator<Item = ((&'static str, CollectiveKind, &'static str), Form)> {
    PLANS.into_iter().flat_map(|plan| Form::ALL.map(|form| (plan, form)))
}

/// What a part takes when it is prepared: its signals and the one by which who leaves speaks, its buffers, each as
/// often as starts take turns, and its queues, of commands for so many starts; one that raises two signals has two
/// places.
fn formula(part: &OfRank) -> u64 {
    let rooms =
        part.buffer_decls().iter().map(|room| room.bytes.next_multiple_of(BUFFER) * room.kind.times());
    let starts = part.buffer_decls().iter().map(|room| room.kind.times()).max().unwrap_or(1);
    let mut queues: BTreeMap<u16, u64> = BTreeMap::new();
    for step in part.steps() {
        let lines = if step.effects().count() > 1 { 2 } else { 1 };
        *queues.entry(step.queue.0).or_default() += starts * lines;
    }
    let queues = queues.values().map(|places| QUEUE + PLACE * places.next_power_of_two());
    SIGNAL * (part.signal_decls().len() as u64 + 1) + rooms.sum::<u64>() + queues.sum::<u64>()
}

/// Bytes of buffers alone.
fn buffers(part: &OfRank) -> u64 {
    part.buffer_decls().iter().map(|room| room.bytes.next_multiple_of(BUFFER) * room.kind.times()).sum()
}

/// Each rank prepares the plans, one after the other, starts each, and tells its bytes before that and after.
pub(crate) fn app(job: &Job, tell: &dyn Fn(Event)) -> tasuki::Result<()> {
    // Buffers and queues, and buffers and signals: what belongs to plans, and buffers twice.
    let look = || (job.memory().local, job.memory().plans);
    job.quiesce()?;
    let first = look();
    for (plan, form) in all() {
        let (name, schedule) = schedule(job.size(), plan, form)?;
        let before = look();
        let mut plan = job.world().plan_with::<u64>(&schedule, Sum)?;
        let now = look();
        plan.start()?;
        plan.wait()?;
        let both = now.0 - before.0 + now.1 - before.1;
        tell(Event::Report(name, both - buffers(&schedule.part(job.rank().index()))));
        drop(plan);
        job.quiesce()?;
    }
    let left = look();
    tell(Event::Report(LEFT.into(), left.0.abs_diff(first.0) + left.1.abs_diff(first.1)));
    Ok(())
}

/// What the ranks of such a job tell.
pub(crate) fn look(ranks: usize) -> anyhow::Result<Vec<PlanMemory>> {
    let told = rank_memory::reports(ProcessRole::PlanMemory.job(ranks, &[])?, ranks)?;
    let of = |variant: String, formula: &dyn Fn(usize) -> u64| {
        let bytes: Vec<f64> =
            told.iter().filter(|(what, _)| *what == variant).map(|&(_, bytes)| bytes as f64).collect();
        ensure!(bytes.len() == ranks, "{} of {ranks} ranks told of {variant}", bytes.len());
        Ok(PlanMemory { variant, bytes, formula: (0..ranks).map(|rank| formula(rank) as f64).collect() })
    };
    let mut rows = Vec::new();
    for (plan, form) in all() {
        let (name, schedule) = schedule(ranks, plan, form).context("a plan")?;
        rows.push(of(name, &|rank| formula(&schedule.part(rank)))?);
    }
    rows.push(of(LEFT.into(), &|_| 0)?);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn plans_take_what_the_formula_says_and_leave_nothing() {
        for ranks in [1, 2, 5] {
            let told = Mutex::new(Vec::new());
            tasuki::local(ranks, |job| {
                let rank = job.rank().index();
                app(job, &|event| told.lock().unwrap().push((rank, event)))
            })
            .unwrap();
            let told = told.into_inner().unwrap();
            for rank in 0..ranks {
                let mut of_rank = told.iter().filter(|(of, _)| *of == rank).map(|(_, event)| event.clone());
                for (plan, form) in all() {
                    let (name, schedule) = schedule(ranks, plan, form).unwrap();
                    let bytes = formula(&schedule.part(rank));
                    assert_eq!(of_rank.next(), Some(Event::Report(name, bytes)), "{rank} of {ranks}");
                }
                assert_eq!(of_rank.next(), Some(Event::Report(LEFT.into(), 0)));
            }
        }
    }
}
