//! Calls with blocks that differ in length, in all ways of making them, against plain arithmetic.

use crate::exchange::effort;
use crate::refusal::{misused, refused};
use tasuki::{Blame, Collective, Communicator, Job, Rank, Result};

/// Values of 8 bytes that say from whom they are, to whom, and where.
fn block(from: usize, to: usize, count: usize) -> Vec<u64> {
    (0..count).map(|at| (from * 1_000_003 + to * 10_007 + at % 8191) as u64).collect()
}

/// How many values go from one member to another: none, or some, of which few go beside their length.
fn count(from: usize, to: usize, scale: usize) -> usize {
    (from * 3 + to * 2) % 4 * scale
}

/// How many values each member gives, where it gives all the same.
fn counts(ranks: usize, scale: usize) -> Vec<usize> {
    (0..ranks).map(|rank| (rank + 1) % 3 * scale).collect()
}

/// Blocks that each member gives, the one with the number `call`.
fn all(counts: &[usize], call: usize) -> Vec<u64> {
    counts.iter().enumerate().flat_map(|(rank, &count)| block(rank, call, count)).collect()
}

/// Every call, begun before any is waited for, waited for in the opposite order.
fn begun(world: &Communicator, root: Rank, scale: usize) -> Result<()> {
    let (me, ranks, is_root) = (world.rank().index(), world.size(), world.rank() == root);
    let counts = counts(ranks, scale);
    let said = if is_root { &counts[..] } else { &[] };
    let mine = block(me, 5, counts[me]);
    let gather = world.igather_v(mine.clone(), said, root)?;
    let given = if is_root { all(&counts, 6) } else { vec![] };
    let scatter = world.iscatter_v(given, said, counts[me], root)?;
    let allgather = world.iallgather_v(mine, &counts)?;
    let [gives, gets]: [Vec<usize>; 2] = [
        (0..ranks).map(|to| count(me, to, scale)).collect(),
        (0..ranks).map(|from| count(from, me, scale)).collect(),
    ];
    let given = (0..ranks).flat_map(|to| block(me, to, gives[to])).collect();
    let alltoall = world.ialltoall_v(given, &gives, &gets)?;
    let got: Vec<u64> = (0..ranks).flat_map(|from| block(from, me, gets[from])).collect();
    assert_eq!(alltoall.wait()?, got, "alltoall_v");
    assert_eq!(allgather.wait()?, all(&counts, 5), "allgather_v");
    assert_eq!(scatter.wait()?, block(me, 6, counts[me]), "scatter_v from {root}");
    assert_eq!(gather.wait()?, is_root.then(|| all(&counts, 5)), "gather_v to {root}");
    Ok(())
}

/// Begun calls to and from every rank, of blocks that are empty, go beside their length, or do not.
pub fn j_begun_blocks_that_differ(job: &Job) -> Result<()> {
    for scale in [0, 1, 3, effort(job, 9001, 301)] {
        job.ranks().try_for_each(|root| begun(job.world(), root, scale))?;
    }
    let (world, ranks) = (job.world(), job.size());
    let me = job.rank();
    misused(job, world.iallgather_v(vec![1_u64; 3], &vec![2; ranks]), &["iallgather_v", "[3]", "[2]"]);
    misused(job, world.iallgather_v(vec![1_u64; 3], &vec![3; ranks + 1]), &["counts", "members"]);
    misused(job, world.ialltoall_v(vec![1_u64; 3], &vec![2; ranks], &vec![2; ranks]), &["come to", "not 3"]);
    misused(job, world.igather_v(vec![1_u64], &[], Rank(ranks as u32)), &["igather_v", "rank"]);
    misused(job, world.igather_v(vec![1_u64], &vec![2; ranks], me), &["igather_v", "itself"]);
    misused(job, world.iscatter_v(vec![1_u64], &vec![1; ranks + 1], 1, me), &["counts", "members"]);
    job.barrier()
}

/// Two members that disagree by one value both find out, whichever of them is to give less.
pub fn j_begun_blocks_that_disagree(job: &Job) -> Result<()> {
    for (gives, gets) in [(0, 1), (1, 0), (3, 4), (4, 5), (9, 2), (2, 9), (900, 901), (20_000, 19_999)] {
        for call in 0..4 {
            let part = job.world().split((job.rank().0 < 2).then_some(0), 0)?;
            if let Some(part) = part {
                let error = refused(job, disagree(&part, call, gives, gets), Blame::Misuse, &["disagree"]);
                assert!(error.to_string().contains(["gather", "scatter", "allgather", "alltoall"][call]));
            }
            job.barrier()?;
        }
    }
    Ok(())
}

/// Member 1 gives member 0 so many values that expects another number.
fn disagree(pair: &Communicator, call: usize, gives: usize, gets: usize) -> Result<()> {
    let (values, is_first, at) = (vec![0_u64; gives], pair.rank() == 0, pair.rank().index());
    let known = if is_first { gets } else { gives };
    let begun: Collective<Vec<u64>> = match call {
        0 if is_first => return pair.igather_v(vec![0_u64; 5], &[5, gets], Rank(0))?.wait().map(drop),
        0 => return pair.igather_v(values, &[], Rank(0))?.wait().map(drop),
        1 if is_first => pair.iscatter_v(vec![], &[], gets, Rank(1))?,
        1 => pair.iscatter_v(vec![0_u64; gives + 5], &[gives, 5], 5, Rank(1))?,
        2 => pair.iallgather_v(if is_first { vec![0_u64; 5] } else { values }, &[5, known])?,
        _ => {
            let (mut out, mut into) = ([0, 0], [0, 0]);
            if is_first {
                into[1 - at] = gets;
            } else {
                out[1 - at] = gives;
            }
            pair.ialltoall_v(if is_first { vec![] } else { values }, &out, &into)?
        }
    };
    begun.wait().map(drop)
}
