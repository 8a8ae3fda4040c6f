//! J: collective calls that are begun, and waited for later.

use crate::exchange::effort;
use crate::refusal::misused;
use tasuki::{Collective, Job, Rank, Result, Sum};

/// A value that says whose it is, of which call, and where.
fn values(rank: usize, call: usize, count: usize) -> Vec<u64> {
    (0..count).map(|at| (rank * 1_000_003 + call * 10_007 + at % 8191) as u64).collect()
}

fn sums(ranks: impl Iterator<Item = usize> + Clone, call: usize, count: usize) -> Vec<u64> {
    let mut all = vec![0; count];
    ranks.for_each(|rank| all.iter_mut().zip(values(rank, call, count)).for_each(|(sum, it)| *sum += it));
    all
}

/// The calls of a round, all under way at once.
struct Round {
    bcast: Collective<Vec<u64>>,
    reduce: Collective<Option<Vec<u64>>>,
    allreduce: Collective<Vec<u64>>,
    gather: Collective<Option<Vec<u64>>>,
    scatter: Collective<Vec<u64>>,
    allgather: Collective<Vec<u64>>,
    alltoall: Collective<Vec<u64>>,
    reduce_scatter: Collective<Vec<u64>>,
    scan: Collective<Vec<u64>>,
    exscan: Collective<Option<Vec<u64>>>,
    barrier: Collective<()>,
}

fn begin(job: &Job, count: usize, call: usize) -> Result<Round> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let root = Rank((call % ranks) as u32);
    let mine = || values(me, call, count);
    let blocks: Vec<u64> = (0..ranks).flat_map(|to| values(me, call + to, count)).collect();
    let given = if job.rank() == root { blocks.clone() } else { vec![] };
    Ok(Round {
        bcast: world.ibcast(if job.rank() == root { mine() } else { vec![0; count] }, root)?,
        reduce: world.ireduce(mine(), Sum, root)?,
        allreduce: world.iallreduce(mine(), |a: u64, b: u64| a + b)?,
        gather: world.igather(mine(), root)?,
        scatter: world.iscatter(given, count, root)?,
        allgather: world.iallgather(mine())?,
        alltoall: world.ialltoall(blocks.clone())?,
        reduce_scatter: world.ireduce_scatter(blocks, Sum)?,
        scan: world.iscan(mine(), Sum)?,
        exscan: world.iexscan(mine(), Sum)?,
        barrier: world.ibarrier()?,
    })
}

/// Waited for in another order than they were begun.
fn end(job: &Job, round: Round, count: usize, call: usize) -> Result<()> {
    let (me, ranks) = (job.rank().index(), job.size());
    let root = call % ranks;
    let everybody = sums(0..ranks, call, count);
    let all: Vec<u64> = (0..ranks).flat_map(|rank| values(rank, call, count)).collect();
    round.barrier.wait()?;
    assert_eq!(round.exscan.wait()?, (me > 0).then(|| sums(0..me, call, count)), "exscan");
    assert_eq!(round.scan.wait()?, sums(0..me + 1, call, count), "scan");
    assert_eq!(round.reduce_scatter.wait()?, sums(0..ranks, call + me, count), "reduce_scatter");
    let got: Vec<u64> = (0..ranks).flat_map(|from| values(from, call + me, count)).collect();
    assert_eq!(round.alltoall.wait()?, got, "alltoall");
    assert_eq!(pollster::block_on(round.allgather)?, all, "allgather");
    assert_eq!(round.scatter.wait()?, values(root, call + me, count), "scatter");
    assert_eq!(round.gather.wait()?, (me == root).then_some(all), "gather");
    let mut allreduce = round.allreduce;
    while !allreduce.is_finished() {
        job.compute(std::time::Duration::from_micros(1));
    }
    assert_eq!(allreduce.wait()?, everybody, "allreduce");
    assert_eq!(round.reduce.wait()?, (me == root).then_some(everybody), "reduce");
    assert_eq!(round.bcast.wait()?, values(root, call, count), "bcast");
    Ok(())
}

/// Every operation, several rounds under way, other calls and messages in between.
pub fn j_calls_that_are_begun(job: &Job) -> Result<()> {
    let world = job.world();
    for count in [0, 1, 7, effort(job, 20_000, 1500)] {
        for call in 0..effort(job, job.size(), 2) {
            let (first, second) = (begin(job, count, call)?, begin(job, count, call + 1)?);
            assert_eq!(world.allreduce(&[1_u64], Sum)?, [job.size() as u64]);
            end(job, second, count, call + 1)?;
            world.barrier()?;
            end(job, first, count, call)?;
        }
    }
    Ok(())
}

/// As many as may be under way, and one more; and what is senseless.
pub fn j_begun_calls_are_bounded(job: &Job) -> Result<()> {
    let world = job.world();
    let is_last = job.rank().index() + 1 == job.size();
    let begin = || (0..64).map(|at| world.iallreduce(vec![at], Sum)).collect::<Result<Vec<_>>>();
    for _ in 0..2 {
        // None is over before the last member has begun it.
        let early = if is_last { Vec::new() } else { begin()? };
        if !is_last {
            let error = world.ibarrier().expect_err("64 are under way");
            assert!(error.to_string().contains("collective calls under way"), "{error}");
        }
        job.barrier()?;
        for (at, call) in (if is_last { begin()? } else { early }).into_iter().enumerate() {
            assert_eq!(call.wait()?, [(at * job.size()) as i32]);
        }
    }
    misused(job, world.ibcast(vec![1], Rank(job.size() as u32)), &["rank"]);
    if job.size() > 1 {
        misused(job, world.ialltoall(vec![1_u8; job.size() + 1]), &["members"]);
    }
    world.ibarrier()?.wait()
}
