//! J: nonblocking collective calls and plans with blocks of different lengths, which receivers learn. Their results are
//! compared with plain arithmetic.

use crate::exchange::effort;
use crate::expected_error::{check_error, misused, refused};
use tasuki::collective::quiesce;
use tasuki::{Blocks, Cartesian, Communicator, ErrorKind, Job, Plan, Rank, Request, Result, Uneven};

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
fn all(counts: &[usize], call: usize) -> Blocks<u64> {
    counts.iter().enumerate().map(|(rank, &count)| block(rank, call, count)).collect()
}

/// Starts every call before it waits for any, and waits in the reverse order.
fn begun(world: &Communicator, root: Rank, scale: usize) -> Result<()> {
    let (me, ranks, is_root) = (world.rank().index(), world.size(), world.rank() == root.0);
    let counts = counts(ranks, scale);
    let mine = block(me, 5, counts[me]);
    let mut gather = world.igather(Uneven(mine.clone()), root)?;
    let given = || if is_root { all(&counts, 6) } else { Blocks::default() };
    let learned = world.iscatter(given(), (), root)?;
    let known = world.iscatter(given(), counts[me], root)?;
    let placed = world.iscatter(given(), vec![9; counts[me]], root)?;
    let mut allgather = world.iallgather(Uneven(mine))?;
    let mut alltoall =
        world.ialltoall((0..ranks).map(|to| block(me, to, count(me, to, scale))).collect::<Blocks<u64>>())?;
    let got: Blocks<u64> = (0..ranks).map(|from| block(from, me, count(from, me, scale))).collect();
    assert_eq!(alltoall.wait()?, got, "alltoall");
    assert_eq!(allgather.wait()?, all(&counts, 5), "allgather");
    for mut scatter in [placed, known, learned] {
        assert_eq!(scatter.wait()?, block(me, 6, counts[me]), "scatter from {root}");
    }
    assert_eq!(gather.wait()?, is_root.then(|| all(&counts, 5)), "gather to {root}");
    Ok(())
}

/// Results go into blocks that are there: these get other blocks, and keep the memory of their values where it has
/// room. Other members pass the other form of the same call.
pub fn j_results_take_the_place_of_blocks(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let ring = Cartesian::new(world, [ranks], [true])?;
    let sides = [(me + ranks - 1) % ranks, (me + 1) % ranks];
    let mut kept = [(); 4].map(|()| Blocks::default());
    for (round, scale) in [effort(job, 9001, 301), 0, 3, 40].into_iter().enumerate() {
        let (root, replaces) = (Rank(round % ranks), !(me + round).is_multiple_of(3));
        let (is_root, counts) = (job.rank() == root, counts(ranks, scale));
        let (mine, everyones) = (block(me, 5, counts[me]), all(&counts, 5));
        let blocks_to = |members: &[usize]| -> Blocks<u64> {
            members.iter().map(|&to| block(me, to, count(me, to, scale))).collect()
        };
        let blocks_from = |members: &[usize]| -> Blocks<u64> {
            members.iter().map(|&from| block(from, me, count(from, me, scale))).collect()
        };
        let everyone: Vec<usize> = (0..ranks).collect();
        let [gathered, allgathered, exchanged, neighbours] = &mut kept;
        if replaces {
            let got = world.gather((Uneven(&mine), &mut *gathered), root)?;
            assert_eq!(got, is_root.then_some(()), "gather to {root}");
            world.allgather((Uneven(&mine[..]), &mut *allgathered))?;
            world.alltoall((&blocks_to(&everyone), &mut *exchanged))?;
            ring.neighbor_alltoall((&blocks_to(&sides), &mut *neighbours))?;
        } else {
            if let Some(got) = world.gather(Uneven(&mine), root)? {
                *gathered = got;
            }
            *allgathered = world.allgather(Uneven(&mine))?;
            *exchanged = world.alltoall(&blocks_to(&everyone))?;
            *neighbours = ring.neighbor_alltoall(&blocks_to(&sides))?;
        }
        let check = |kept: &[Blocks<u64>; 4], what: &str| {
            let expected = [&everyones, &everyones, &blocks_from(&everyone), &blocks_from(&sides)];
            for (number, (got, expected)) in kept.iter().zip(expected).enumerate() {
                if number > 0 || is_root {
                    assert_eq!(got, expected, "{what} call {number}, round {round}");
                }
            }
        };
        check(&kept, "blocking");
        let [gathered, allgathered, exchanged, neighbours] = kept;
        let mut gather = world.igather((Uneven(mine.clone()), gathered), root)?;
        let mut allgather = world.iallgather((Uneven(mine), allgathered))?;
        let mut alltoall = world.ialltoall((blocks_to(&everyone), exchanged))?;
        let mut exchange = ring.ineighbor_alltoall((blocks_to(&sides), neighbours))?;
        let gathered = gather.wait()?.unwrap_or_default();
        kept = [gathered, allgather.wait()?, alltoall.wait()?, exchange.wait()?];
        check(&kept, "nonblocking");
    }
    // Few values stay in the memory that many have had.
    let (few, to_each) = ([me as u64; 2], || all(&vec![2; ranks], 5));
    let mut result = all(&vec![100; ranks], 5);
    let memory = result.values().as_ptr();
    world.allgather((Uneven(&few), &mut result))?;
    assert!(result.counts().all(|count| count == 2));
    world.alltoall((&to_each(), &mut result))?;
    if let Some(()) = world.gather((Uneven(&few), &mut result), Rank(0))? {
        assert_eq!(result.values().len(), 2 * ranks);
    }
    ring.neighbor_alltoall((&all(&[2; 2], 5), &mut result))?;
    result = world.iallgather((Uneven(few), result))?.wait()?;
    result = world.ialltoall((to_each(), result))?.wait()?;
    result = ring.ineighbor_alltoall((all(&[2; 2], 5), result))?.wait()?;
    assert_eq!((result.values().as_ptr(), result.len()), (memory, 2), "the memory was not used again");
    // A refused call leaves no blocks: their ends would be those of other values.
    let fails = world.dup()?;
    if me == 0 {
        misused(job, fails.alltoall((&all(&vec![1; ranks + 1], 5), &mut result)), &["alltoall", "blocks"]);
        assert!(result.is_empty() && result.values().is_empty(), "{result:?}");
    }
    job.barrier()
}

/// Nonblocking calls with every root and with blocks that are empty, short enough to travel with
/// their length, or longer.
pub fn j_nonblocking_blocks_of_different_lengths(job: &Job) -> Result<()> {
    for scale in [0, 1, 3, effort(job, 9001, 301)] {
        job.ranks().try_for_each(|root| begun(job.world(), root, scale))?;
    }
    let (world, me, ranks) = (job.world().dup()?, job.rank(), job.size());
    let values = || vec![1_u64; 3];
    let more = Blocks::ending_at(values(), &vec![3; ranks + 1]);
    misused(job, world.ialltoall(more.clone()), &["ialltoall", "blocks", "members"]);
    misused(
        job,
        world.ialltoall(Blocks::ending_at(values(), &vec![2; ranks])),
        &["ends at value 2", "3 values"],
    );
    misused(job, world.igather(Uneven(vec![1_u64]), Rank(ranks)), &["igather", "rank"]);
    misused(job, world.iscatter(more, (), me), &["iscatter", "blocks", "members"]);
    let mut ends = vec![3; ranks];
    ends[0] = 4;
    let texts: &[&str] = if ranks == 1 { &["ends at value 4"] } else { &["begins at value 4"] };
    misused(job, world.iscatter(Blocks::ending_at(values(), &ends), (), me), texts);
    let mine = Blocks::ending_at(values(), &vec![3; ranks]);
    let own = if me == 0 { 3 } else { 0 };
    misused(job, world.iscatter(mine, own + 1, me), &["iscatter", "itself"]);
    refused(job, world.ibarrier(), ErrorKind::Disagreement, &["has failed"]);
    begun(&world.recreate()?, Rank(0), 3)
}

/// More values than memory can have are refused on the rank that asks for them.
pub fn j_counts_beyond_memory_are_refused(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    for count in [usize::MAX, usize::MAX / 2 + 1, 1 << 60] {
        let wanted = world.scatter(&[0_u64][..], count, me).map(drop);
        refused(job, wanted, ErrorKind::NoMemory, &["scatter", "not enough memory for"]);
        let begun = world.iscatter(vec![0_u64], count, me).map(drop);
        refused(job, begun, ErrorKind::NoMemory, &["iscatter", "not enough memory for"]);
        assert!(Blocks::new(vec![0_u64], &vec![count; job.size()]).is_err());
        let mut ends = vec![count; job.size()];
        ends[0] = 1;
        let out = Blocks::ending_at(vec![0_u64], &ends);
        if job.size() > 1 {
            misused(job, world.alltoall(&out), &["alltoall", "last block"]);
            misused(job, world.scatter(&out, (), me), &["scatter", "last block"]);
        }
    }
    job.barrier()
}

/// A member expects another length than the root has for it. Both get an error, whichever of them has the smaller
/// number.
pub fn j_block_lengths_that_disagree_get_errors(job: &Job) -> Result<()> {
    for (gives, gets) in [(0, 1), (1, 0), (3, 4), (4, 5), (9, 2), (2, 9), (900, 901), (20_000, 19_999)] {
        for form in 0..4 {
            let part = job.world().split((job.rank().0 < 2).then_some(0))?;
            if let Some(part) = part {
                let error =
                    refused(job, disagree(&part, form, gives, gets), ErrorKind::Disagreement, &["disagree"]);
                assert!(error.to_string().contains("scatter"));
            }
            job.barrier()?;
        }
    }
    Ok(())
}

/// Member 1 gives member 0 `gives` values, and member 0 expects `gets`.
fn disagree(pair: &Communicator, form: usize, gives: usize, gets: usize) -> Result<()> {
    let is_first = pair.rank() == 0;
    let blocks = match is_first {
        true => Blocks::default(),
        false => Blocks::new(vec![0_u64; gives + 5], &[gives, 5])?,
    };
    let own = if is_first { gets } else { 5 };
    match form {
        0 => pair.scatter(&blocks, own, Rank(1)).map(drop),
        1 => pair.scatter(&blocks, &mut vec![0; own], Rank(1)),
        2 => pair.iscatter(blocks, own, Rank(1))?.wait().map(drop),
        _ => pair.iscatter(blocks, vec![0; own], Rank(1))?.wait().map(drop),
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
    let own = counts[me];
    let given = if is_root { &counts[..] } else { &[] };
    let [gives, gets]: [Vec<usize>; 2] = [
        (0..ranks).map(|to| count(me, to, scale)).collect(),
        (0..ranks).map(|from| count(from, me, scale)).collect(),
    ];
    let mut gather = world.gather_init::<u64>(Uneven(own), root)?;
    let mut scatter = world.scatter_init::<u64>(given, root)?;
    let mut allgather = world.allgather_init::<u64>(Uneven(own))?;
    let mut alltoall = world.alltoall_init::<u64>(&gives)?;
    for start in 0..starts {
        let mine = block(me, start, own);
        gather.input()?.copy_from_slice(&mine);
        if is_root {
            scatter.input()?.copy_from_slice(all(&counts, 20 + start).values());
        }
        allgather.input()?.copy_from_slice(&mine);
        let given: Vec<u64> = (0..ranks).flat_map(|to| block(me, to + start, gives[to])).collect();
        alltoall.input()?.copy_from_slice(&given);
        [&mut gather, &mut scatter, &mut allgather, &mut alltoall].into_iter().try_for_each(Plan::start)?;
        [&mut alltoall, &mut allgather, &mut scatter, &mut gather].into_iter().try_for_each(Plan::wait)?;
        let got: Vec<u64> = (0..ranks).flat_map(|from| block(from, me + start, gets[from])).collect();
        assert_eq!(alltoall.result()?, got, "alltoall, start {start}");
        assert_eq!(allgather.result()?, all(&counts, start).values(), "allgather, start {start}");
        assert_eq!(scatter.result()?, block(me, 20 + start, own), "scatter from {root}, start {start}");
        if is_root {
            assert_eq!(gather.result()?, all(&counts, start).values(), "gather to {root}, start {start}");
        }
    }
    Ok(())
}

/// If two members disagree, all get an error, no member gets a plan, and no memory remains in use.
pub fn j10_planned_block_lengths_that_disagree_get_errors(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let right: Vec<usize> = (1..=ranks).collect();
    quiesce(world)?;
    let kept = || (job.memory().local, job.memory().plans);
    type Prepare<'p> = &'p dyn Fn(&Communicator) -> Result<Plan<u64>>;
    let misused = |prepare: Prepare<'_>, texts: &[&str]| -> Result<()> {
        let part = world.dup()?;
        let _plan = part.barrier_init()?;
        // The refusal below would fail a member that is still preparing its barrier.
        world.barrier()?;
        let before = kept();
        // A member whose own counts are wrong gets another kind of error than the others.
        let error = prepare(&part).expect_err("counts that do not agree");
        assert!(matches!(error.kind(), ErrorKind::Misuse | ErrorKind::Disagreement), "{error}");
        check_error(job, &error, error.kind(), texts);
        assert_eq!(kept(), before, "the refused plan left memory in use");
        Ok(())
    };
    let zero = Rank(0);
    let wrong = format!("{} counts", ranks + 1);
    let texts: &[&str] = if me == 0 { &[&wrong, "scatter_init"] } else { &["member 0", &wrong] };
    misused(&|part| part.scatter_init(&vec![1; ranks + 1], zero), texts)?;
    misused(&|part| part.gather_init(Uneven(1), Rank(ranks)), &["rank"])?;
    misused(&|part| part.gather_init(Uneven(usize::MAX), zero), &["gather_init", "bytes"])?;
    misused(&|part| part.allgather_init(Uneven(usize::MAX)), &["allgather_init", "bytes"])?;
    misused(&|part| part.scatter_init(&vec![usize::MAX; ranks], zero), &["scatter_init", "bytes"])?;
    misused(&|part| part.alltoall_init(&vec![usize::MAX; ranks]), &["alltoall_init", "bytes"])?;
    if ranks > 1 {
        let root = Rank(usize::from(me == 1));
        misused(&|part| part.gather_init(Uneven(1), root), &["something else", "another root"])?;
        misused(&|part| part.scatter_init(&vec![1; ranks], root), &["something else", "another root"])?;
        let short = vec![1; if me == 1 { 1 } else { ranks }];
        let texts: &[&str] = if me == 1 { &["1 counts"] } else { &["member 1 was refused"] };
        misused(&|part| part.alltoall_init(&short), texts)?;
    }
    let mut after = world.allgather_init::<u64>(Uneven(right[me]))?;
    after.input()?.copy_from_slice(&block(me, 1, right[me]));
    after.start()?;
    after.wait()?;
    assert_eq!(after.result()?, all(&right, 1).values());
    job.barrier()
}
