//! J: nonblocking collective calls and plans with blocks of different lengths. Their results are
//! compared with plain arithmetic.

use crate::exchange::effort;
use crate::expected_error::{check_error, misused, refused};
use tasuki::collective::CollectiveRequest;
use tasuki::{Communicator, ErrorKind, Job, Plan, Rank, Request, Result};

/// Values of 8 bytes that tell their sender, their receiver and their place.
fn block(from: usize, to: usize, count: usize) -> Vec<u64> {
    (0..count).map(|at| (from * 1_000_003 + to * 10_007 + at % 8191) as u64).collect()
}

/// The number of values from one member to another: none, or some. A few values travel in one line
/// with their length.
fn count(from: usize, to: usize, scale: usize) -> usize {
    (from * 3 + to * 2) % 4 * scale
}

/// The number of values of each member, in calls where a member gives one block to all.
fn counts(ranks: usize, scale: usize) -> Vec<usize> {
    (0..ranks).map(|rank| (rank + 1) % 3 * scale).collect()
}

/// The blocks number `call` of all members.
fn all(counts: &[usize], call: usize) -> Vec<u64> {
    counts.iter().enumerate().flat_map(|(rank, &count)| block(rank, call, count)).collect()
}

/// Starts every call before it waits for any, and waits in the reverse order.
fn begun(world: &Communicator, root: Rank, scale: usize) -> Result<()> {
    let (me, ranks, is_root) = (world.rank().index(), world.size(), world.rank() == root.0);
    let counts = counts(ranks, scale);
    let said = if is_root { &counts[..] } else { &[] };
    let mine = block(me, 5, counts[me]);
    let mut gather = world.igather_v(mine.clone(), said, root)?;
    let given = if is_root { all(&counts, 6) } else { vec![] };
    let mut scatter = world.iscatter_v(given, said, counts[me], root)?;
    let mut allgather = world.iallgather_v(mine, &counts)?;
    let [gives, gets]: [Vec<usize>; 2] = [
        (0..ranks).map(|to| count(me, to, scale)).collect(),
        (0..ranks).map(|from| count(from, me, scale)).collect(),
    ];
    let given = (0..ranks).flat_map(|to| block(me, to, gives[to])).collect();
    let mut alltoall = world.ialltoall_v(given, &gives, &gets)?;
    let got: Vec<u64> = (0..ranks).flat_map(|from| block(from, me, gets[from])).collect();
    assert_eq!(alltoall.wait()?, got, "alltoall_v");
    assert_eq!(allgather.wait()?, all(&counts, 5), "allgather_v");
    assert_eq!(scatter.wait()?, block(me, 6, counts[me]), "scatter_v from {root}");
    assert_eq!(gather.wait()?, is_root.then(|| all(&counts, 5)), "gather_v to {root}");
    Ok(())
}

/// Nonblocking calls with every root and with blocks that are empty, short enough to travel with
/// their length, or longer.
pub fn j_nonblocking_blocks_of_different_lengths(job: &Job) -> Result<()> {
    for scale in [0, 1, 3, effort(job, 9001, 301)] {
        job.ranks().try_for_each(|root| begun(job.world(), root, scale))?;
    }
    job.barrier()?; // a refused root makes the communicator fail, and with it calls under way
    let (world, ranks) = (job.world(), job.size());
    let me = job.rank();
    misused(
        job,
        world.iallgather_v(vec![1_u64; 3], &vec![2; ranks]),
        &["iallgather_v", "3 values", "its count is 2"],
    );
    misused(job, world.iallgather_v(vec![1_u64; 3], &vec![3; ranks + 1]), &["counts", "members"]);
    misused(job, world.ialltoall_v(vec![1_u64; 3], &vec![2; ranks], &vec![2; ranks]), &["add up to"]);
    misused(job, world.igather_v(vec![1_u64], &[], Rank(ranks)), &["igather_v", "rank"]);
    misused(job, world.igather_v(vec![1_u64], &vec![2; ranks], me), &["igather_v", "itself"]);
    misused(job, world.iscatter_v(vec![1_u64], &vec![1; ranks + 1], 1, me), &["counts", "members"]);
    job.barrier()
}

/// Counts whose sum is more than memory can have are refused on the rank that passes them.
pub fn j_counts_beyond_memory_are_refused(job: &Job) -> Result<()> {
    let world = job.world();
    for count in [usize::MAX, usize::MAX / 2 + 1, 1 << 60] {
        let counts = vec![count; job.size()];
        let all = world.allgather_v(&[0_u64], &counts).map(drop);
        refused(job, all, ErrorKind::NoMemory, &["allgather_v", "not enough memory for"]);
        let got = world.alltoall_v(&[0_u64; 0], &vec![0; job.size()], &counts).map(drop);
        refused(job, got, ErrorKind::NoMemory, &["alltoall_v", "not enough memory for"]);
        if job.size() == 1 {
            // A root that is refused makes its communicator fail.
            let part = || world.split(Some(0), 0).map(|part| part.expect("every rank is a member"));
            let all = part()?.gather_v(&[0_u64], &counts, Rank(0)).map(drop);
            refused(job, all, ErrorKind::NoMemory, &["gather_v"]);
            let mine = part()?.scatter_v(&[0_u64], &counts, count, Rank(0)).map(drop);
            misused(job, mine, &["scatter_v", "add up to"]);
        }
        let begun = world.iallgather_v(vec![0_u64], &counts).map(drop);
        refused(job, begun, ErrorKind::NoMemory, &["iallgather_v", "not enough memory for"]);
    }
    job.barrier()
}

/// Two members disagree about a length. Both get an error, whichever of them has the smaller
/// number.
pub fn j_block_lengths_that_disagree_get_errors(job: &Job) -> Result<()> {
    for (gives, gets) in [(0, 1), (1, 0), (3, 4), (4, 5), (9, 2), (2, 9), (900, 901), (20_000, 19_999)] {
        for (call, is_begun) in (0..4).flat_map(|call| [(call, true), (call, false)]) {
            let part = job.world().split((job.rank().0 < 2).then_some(0), 0)?;
            if let Some(part) = part {
                let outcome = if is_begun { disagree } else { disagree_at_once }(&part, call, gives, gets);
                let error = refused(job, outcome, ErrorKind::Disagreement, &["disagree"]);
                assert!(error.to_string().contains(["gather", "scatter", "allgather", "alltoall"][call]));
            }
            job.barrier()?;
        }
    }
    Ok(())
}

/// Member 1 gives member 0 `gives` values, and member 0 expects `gets`.
fn disagree(pair: &Communicator, call: usize, gives: usize, gets: usize) -> Result<()> {
    let (values, is_first, at) = (vec![0_u64; gives], pair.rank() == 0, pair.rank().index());
    let known = if is_first { gets } else { gives };
    let mut begun: CollectiveRequest<Vec<u64>> = match call {
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

/// Does what `disagree` does, in blocking calls.
fn disagree_at_once(pair: &Communicator, call: usize, gives: usize, gets: usize) -> Result<()> {
    let (values, is_first) = (vec![0_u64; gives], pair.rank() == 0);
    let known = if is_first { gets } else { gives };
    match call {
        0 if is_first => pair.gather_v(&[0_u64; 5], &[5, gets], Rank(0)).map(drop),
        0 => pair.gather_v(&values, &[], Rank(0)).map(drop),
        1 if is_first => pair.scatter_v::<u64>(&[], &[], gets, Rank(1)).map(drop),
        1 => pair.scatter_v(&vec![0_u64; gives + 5], &[gives, 5], 5, Rank(1)).map(drop),
        2 if is_first => pair.allgather_v(&[0_u64; 5], &[5, known]).map(drop),
        2 => pair.allgather_v(&values, &[5, known]).map(drop),
        _ if is_first => pair.alltoall_v::<u64>(&[], &[0, 0], &[0, gets]).map(drop),
        _ => pair.alltoall_v(&values, &[gives, 0], &[0, 0]).map(drop),
    }
}

/// Plans of all four operations, all under way at once, started many times.
pub fn j_planned_blocks_of_different_lengths(job: &Job) -> Result<()> {
    for scale in [effort(job, 9001, 301), 1, 0, 3].into_iter().take(effort(job, 4, 2)) {
        let mut roots = job.ranks().skip(scale % job.size()).take(effort(job, 5, 1));
        roots.try_for_each(|root| planned(job.world(), root, scale, effort(job, 10, 3)))?;
    }
    job.barrier()
}

fn planned(world: &Communicator, root: Rank, scale: usize, starts: usize) -> Result<()> {
    let (me, ranks, is_root) = (world.rank().index(), world.size(), world.rank() == root.0);
    let counts = counts(ranks, scale);
    let (own, before) = (counts[me], counts[..me].iter().sum());
    let said = if is_root { &counts[..] } else { &[] };
    let [gives, gets]: [Vec<usize>; 2] = [
        (0..ranks).map(|to| count(me, to, scale)).collect(),
        (0..ranks).map(|from| count(from, me, scale)).collect(),
    ];
    let mut gather = world.gather_v_init::<u64>(own, said, root)?;
    let mut scatter = world.scatter_v_init::<u64>(own, said, root)?;
    let mut allgather = world.allgather_v_init::<u64>(&counts)?;
    let mut alltoall = world.alltoall_v_init::<u64>(&gives, &gets)?;
    for start in 0..starts {
        let mine = block(me, start, own);
        gather.write(if is_root { before } else { 0 }, &mine)?;
        if is_root {
            scatter.write(0, &all(&counts, 20 + start))?;
        }
        allgather.write(before, &mine)?;
        let given: Vec<u64> = (0..ranks).flat_map(|to| block(me, to + start, gives[to])).collect();
        alltoall.write(0, &given)?;
        [&mut gather, &mut scatter, &mut allgather, &mut alltoall].into_iter().try_for_each(Plan::start)?;
        [&mut alltoall, &mut allgather, &mut scatter, &mut gather].into_iter().try_for_each(Plan::wait)?;
        let got: Vec<u64> = (0..ranks).flat_map(|from| block(from, me + start, gets[from])).collect();
        assert_eq!(alltoall.to_vec()?, got, "alltoall_v, start {start}");
        assert_eq!(allgather.to_vec()?, all(&counts, start), "allgather_v, start {start}");
        let scattered = scatter.to_vec()?;
        let at = if is_root { before } else { 0 };
        assert_eq!(
            scattered[at..][..own],
            block(me, 20 + start, own),
            "scatter_v from {root}, start {start}"
        );
        if is_root {
            assert_eq!(gather.to_vec()?, all(&counts, start), "gather_v to {root}, start {start}");
        }
    }
    Ok(())
}

/// If two members disagree, all get an error, no member gets a plan, and no memory remains in use.
pub fn j10_planned_block_lengths_that_disagree_get_errors(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let last = ranks - 1;
    let right: Vec<usize> = (1..=ranks).collect();
    // The counts as the wrong member passes them: one value more from the last member.
    let wrong = |is_wrong: bool| {
        let mut counts = right.clone();
        counts[last] += usize::from(is_wrong);
        counts
    };
    world.quiesce()?;
    let kept = || (job.memory().local, job.memory().plans);
    let before = kept();
    let misused = |outcome: Result<Plan<u64>>, texts: &[&str]| {
        // A member whose own counts are wrong gets another kind of error than the others.
        let error = outcome.expect_err("counts that do not agree");
        assert!(matches!(error.kind(), ErrorKind::Misuse | ErrorKind::Disagreement), "{error}");
        check_error(job, &error, error.kind(), texts);
        assert_eq!(kept(), before, "the refused plan left memory in use");
    };
    let zero = Rank(0);
    let (as_root, in_any_case) = if me == 0 { ("disagree", "init") } else { ("counts of member 0", "init") };
    misused(world.gather_v_init(right[me], &wrong(true), zero), &[as_root, in_any_case]);
    misused(world.scatter_v_init(right[me], &wrong(true), zero), &[as_root, in_any_case]);
    misused(
        world.gather_v_init(1, &vec![1; ranks + 1], zero),
        &[if me == 0 { "members" } else { "member 0" }],
    );
    misused(world.gather_v_init(1, &vec![1; ranks], Rank(ranks)), &["rank"]);
    misused(world.gather_v_init(usize::MAX, &vec![usize::MAX; ranks], zero), &["bytes"]);
    misused(world.alltoall_v_init(&vec![usize::MAX; ranks], &vec![usize::MAX; ranks]), &["bytes"]);
    if ranks > 1 {
        misused(world.allgather_v_init(&wrong(me == 0)), &[if me == 0 { "disagree" } else { "member 0" }]);
        let root = Rank(usize::from(me == 1));
        misused(world.gather_v_init(1, &vec![1; ranks], root), &["something else", "another root"]);
        // The last member gives the first one value more than the first expects.
        let (mut gives, gets) = (vec![2; ranks], vec![2; ranks]);
        gives[0] += usize::from(me == last);
        let texts: &[&str] =
            if me == 0 || me == last { &["disagree", "alltoall_v"] } else { &["was refused"] };
        misused(world.alltoall_v_init(&gives, &gets), texts);
        let short = vec![1; if me == 1 { 1 } else { ranks }];
        let texts: &[&str] = if me == 1 { &["1 counts"] } else { &["member 1 was refused"] };
        misused(world.alltoall_v_init(&short, &vec![1; ranks]), texts);
    }
    let mut after = world.allgather_v_init::<u64>(&right)?;
    let at = right[..me].iter().sum();
    after.write(at, &block(me, 1, right[me]))?;
    after.start()?;
    after.wait()?;
    assert_eq!(after.to_vec()?, all(&right, 1));
    job.barrier()
}
