//! J: plans, which are collectives that are prepared once and started many times.

use crate::exchange::{effort, is_simulated};
use crate::expected_error::{disagreed, misused, refused};
use crate::wait_until::stay_away;
use std::collections::BTreeSet;
use std::time::Duration;
use tasuki::collective::{Max, quiesce};
use tasuki::schedule::{
    ALGORITHMS, BufferId, BufferSpan, Builder, CollectiveKind, Contract, Counts, Origin, Schedule, Shape,
};
use tasuki::{Communicator, ErrorKind, Job, Member, Plan, Rank, Request, Result, Sum};

/// A value that tells its rank, its start and its place.
fn value(rank: usize, start: usize, at: usize) -> i64 {
    (rank * 1_000_000 + start * 1000 + at % 997) as i64
}

pub(in crate::cases) fn values(rank: usize, start: usize, count: usize) -> Vec<i64> {
    (0..count).map(|at| value(rank, start, at)).collect()
}

/// The sums of the values of the first `ranks` ranks.
pub(in crate::cases) fn sums(ranks: usize, start: usize, count: usize) -> Vec<i64> {
    (0..count).map(|at| (0..ranks).map(|rank| value(rank, start, at)).sum()).collect()
}

/// Numbers of values: none, a short message, and enough to be split into segments.
const COUNTS: [usize; 3] = [0, 5, 3001];

fn run(plan: &mut Plan<i64>) -> Result<Vec<i64>> {
    plan.start()?;
    plan.wait()?;
    plan.result().map(<[i64]>::to_vec)
}

/// J1: no start, one, and many. The values change between starts, and some members are late. The
/// buffer of a slow member must never have values of the next start.
pub fn j1_each_start_delivers_its_own_values(job: &Job) -> Result<()> {
    let world = job.world();
    let me = job.rank();
    let mut random = crate::random::Random::seed(me.0 as u64);
    // Where ranks can access only their own queues, each start waits for thread switches.
    let many = if std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() { 200 } else { 10_000 / job.size() };
    for (starts, count) in [(0, 10), (1, 10), (effort(job, many, 30), 1), (effort(job, 200, 5), 5000)] {
        for root in job.ranks() {
            let mut plan = world.bcast_init::<i64>(count, root)?;
            for start in 0..starts {
                if me == root {
                    plan.input()?.copy_from_slice(&values(root.index(), start, count));
                }
                plan.start()?;
                if random.below(50) == 0 {
                    job.compute(Duration::from_micros(random.below(20)));
                }
                plan.wait()?;
                if random.below(50) == 0 {
                    job.compute(Duration::from_micros(random.below(20)));
                }
                assert_eq!(plan.result()?, values(root.index(), start, count), "start {start} of {starts}");
            }
        }
    }
    Ok(())
}

/// Every algorithm that only moves data, for several sizes and roots, with sizes that the number of
/// segments does not divide.
pub fn j_every_algorithm_moves_the_right_values(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    for algorithm in ALGORITHMS {
        for bytes in [0, 1, effort(job, 100_000, 2000) as u64] {
            let root = bytes as usize % ranks;
            let shape = Shape::new(algorithm.collective, ranks, root, bytes);
            let combines = !matches!(
                algorithm.collective,
                CollectiveKind::Barrier
                    | CollectiveKind::Bcast
                    | CollectiveKind::Allgather
                    | CollectiveKind::Gather
                    | CollectiveKind::Scatter
                    | CollectiveKind::Alltoall
            );
            if combines || !(algorithm.fits)(&shape) {
                continue;
            }
            let mut plan = world.plan(&algorithm.schedule(&shape, 3).trusted())?;
            for start in 0..effort(job, 3, 2) as u64 {
                let contract = shape.contract(me);
                for span in contract.inputs {
                    let byte = |at: u64| (me as u64 * 7 + start + (span.offset + at) % 251) as u8;
                    let own: Vec<u8> = (0..span.bytes).map(byte).collect();
                    match bytes {
                        1 => plan.input()?.copy_from_slice(&own),
                        _ => plan.buffer_mut(span.buffer)?[span.offset as usize..][..own.len()]
                            .copy_from_slice(&own),
                    }
                }
                plan.start()?;
                plan.wait()?;
                let first = contract.outputs.iter().map(|(span, _)| span.offset).min().unwrap_or(0);
                for (span, origin) in contract.outputs {
                    let from = u64::from(origin.ranks[0]);
                    let byte = |at: u64| (from * 7 + start + (origin.offset + at) % 251) as u8;
                    let wanted: Vec<u8> = (0..span.bytes).map(byte).collect();
                    let is_right = |got: &[u8], first: u64| {
                        assert!(
                            got[(span.offset - first) as usize..][..wanted.len()] == wanted,
                            "{} of {shape:?}, start {start}, {span:?}",
                            algorithm.name
                        );
                    };
                    is_right(plan.buffer(span.buffer)?, 0);
                    is_right(plan.result()?, first);
                }
            }
        }
    }
    Ok(())
}

/// Every operation that combines values, in the order of members. Any rank can execute built-in operations; only the
/// rank that passed a closure can execute it.
pub fn j_values_are_combined_in_order(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    // Maps v -> a v + b, applied one after the other. They are associative, but their order
    // matters.
    type Map = [i64; 2];
    let after = |a: Map, b: Map| [a[0].wrapping_mul(b[0]), a[0].wrapping_mul(b[1]).wrapping_add(a[1])];
    for count in COUNTS {
        let root = Rank(count % ranks);
        let maps = |rank: usize, start| -> Vec<Map> {
            values(rank, start, count).into_iter().map(|value| [value | 1, value]).collect()
        };
        let ordered = |upto: usize, start: usize| {
            let one = |all: Vec<Map>, rank| all.into_iter().zip(maps(rank, start)).map(|(a, b)| after(a, b));
            (1..upto).fold(maps(0, start), |all, rank| one(all, rank).collect())
        };
        let mut sum = world.allreduce_init::<i64>(count, Sum)?;
        let mut map = world.allreduce_init::<Map>(count, after)?;
        let mut most = world.reduce_init::<i64>(count, Max, root)?;
        let mut root_map = world.reduce_init::<Map>(count, after, root)?;
        let mut scan = world.scan_init::<i64>(count, Sum)?;
        let mut before = world.exscan_init::<Map>(count, after)?;
        let mut part = world.reduce_scatter_init::<i64>(count, Sum)?;
        for start in 0..effort(job, 6, 2) {
            let mine = values(me, start, count);
            for plan in [&mut sum, &mut most, &mut scan] {
                plan.input()?.copy_from_slice(&mine);
                plan.start()?;
            }
            for plan in [&mut map, &mut root_map, &mut before] {
                plan.input()?.copy_from_slice(&maps(me, start));
                plan.start()?;
            }
            part.input()?.copy_from_slice(&mine.repeat(ranks));
            part.start()?;
            [&mut sum, &mut most, &mut scan, &mut part].into_iter().try_for_each(Plan::wait)?;
            [&mut map, &mut root_map, &mut before].into_iter().try_for_each(Plan::wait)?;
            assert_eq!(sum.result()?, sums(ranks, start, count), "sum");
            assert_eq!(map.result()?, ordered(ranks, start), "maps");
            assert_eq!(scan.result()?, sums(me + 1, start, count), "scan");
            assert_eq!(part.result()?, sums(ranks, start, count), "part");
            if me > 0 {
                assert_eq!(before.result()?, ordered(me, start), "maps before");
            }
            if me == root.index() {
                assert_eq!(most.result()?, values(ranks - 1, start, count), "most");
                assert_eq!(root_map.result()?, ordered(ranks, start), "maps at the root");
            }
        }
    }
    Ok(())
}

/// J2: several plans are under way at once, on several communicators; each member starts them in a
/// different order.
pub fn j2_members_start_plans_in_different_orders(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let other = world.split((0, -(job.rank().0 as isize)))?;
    let mut random = crate::random::Random::seed(me as u64);
    let mut plans = Vec::new();
    for group in [world, &other] {
        for count in [1, 700] {
            plans.push(group.allreduce_init::<i64>(count, Sum)?);
        }
    }
    for start in 0..effort(job, 300, 10) {
        let mut order: Vec<usize> = (0..plans.len()).collect();
        for at in 0..order.len() {
            let other = random.below(order.len() as u64) as usize;
            order.swap(at, other);
        }
        for &which in &order {
            let count = if which % 2 == 0 { 1 } else { 700 };
            plans[which].input()?.copy_from_slice(&values(me + which, start, count));
            plans[which].start()?;
        }
        for &which in order.iter().rev() {
            let mut wanted = vec![0; if which % 2 == 0 { 1 } else { 700 }];
            let all = (0..ranks).map(|rank| values(rank + which, start, wanted.len()));
            for theirs in all.collect::<Vec<_>>() {
                wanted.iter_mut().zip(theirs).for_each(|(sum, value)| *sum += value);
            }
            plans[which].wait()?;
            assert_eq!(plans[which].result()?, wanted, "plan {which}, start {start}");
        }
    }
    Ok(())
}

/// J3: a plan that members have started a different number of times can never end. All members get
/// an error, and other dropped plans are freed. A plan that a member still has can be started
/// later.
pub fn j3_unequal_numbers_of_starts_are_reported(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    let mut odd = world.allreduce_init::<u64>(64, Sum)?;
    let of_it = job.memory().local;
    let mut late = world.allreduce_init::<u64>(64, Sum)?;
    if me == 0 {
        odd.start()?;
        late.start()?;
    }
    let mut late = (me != 0).then_some(late); // rank 0 drops it while it is under way
    drop((odd, world.bcast_init::<u8>(1000, Rank(0))?));
    let texts = ["quiesce(", "number of starts of a plan", "smallest is 0", "largest 1"];
    disagreed(job, quiesce(world), &texts);
    quiesce(world)?;
    if let Some(late) = &mut late {
        late.start()?;
        late.wait()?;
    }
    drop(late);
    assert_eq!(bytes_now(job, world)?, of_it);
    Ok(())
}

/// The bytes that plans of this communicator use on this rank, after all dropped plans are freed.
fn bytes_now(job: &Job, group: &Communicator) -> Result<u64> {
    quiesce(group)?;
    Ok(job.memory().local)
}

/// J3, J12: a plan is dropped at any moment, also during a start. Dropping returns at once, the other members get right
/// values, and all memory is freed.
pub fn j3_plans_are_dropped_at_any_moment(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    let before = bytes_now(job, world)?;
    for round in 0..effort(job, 30, 4) {
        let root = Rank(round % job.size());
        let mut dropped = world.bcast_init::<i64>(2000, root)?;
        let never = world.allreduce_init::<i64>(10, Sum)?;
        let mut after = world.bcast_init::<i64>(2000, root)?;
        let data = values(root.index(), round, 2000);
        if me == root {
            dropped.input()?.copy_from_slice(&data);
            after.input()?.copy_from_slice(&data);
        }
        dropped.start()?;
        if (me.index() + round).is_multiple_of(2) {
            drop(dropped); // while others wait for the start
        } else {
            dropped.wait()?;
            assert_eq!(dropped.result()?, data, "round {round}");
        }
        drop(never);
        assert_eq!(run(&mut after)?, data, "round {round}, the plan made after the dropped one");
    }
    let after = bytes_now(job, world)?;
    assert_eq!(after, before, "dropped plans left memory in use");
    Ok(())
}

/// J4: plans of a single rank, which has no data to move.
pub fn j4_plans_of_one_rank_or_of_no_values(job: &Job) -> Result<()> {
    let alone = job.world().split(job.rank().0)?;
    for group in [&alone, job.world()] {
        let mut empty = group.bcast_init::<i64>(0, Member(0))?;
        let mut sum = group.allreduce_init::<i64>(0, Sum)?;
        let mut barrier = group.barrier_init()?;
        let mut exchange = group.alltoall_init::<i64>(0)?;
        for _ in 0..5 {
            for plan in [&mut empty, &mut sum, &mut exchange] {
                assert!(run(plan)?.is_empty());
            }
            barrier.start()?;
            barrier.wait()?;
        }
    }
    let mut sum = alone.allreduce_init::<i64>(3, Sum)?;
    sum.input()?.copy_from_slice(&[1, 2, 3]);
    assert_eq!(run(&mut sum)?, [1, 2, 3]);
    Ok(())
}

/// J5: members in the middle of a chain compute. The values still reach the others, because other
/// ranks or a helper run the commands.
pub fn j5_values_pass_members_that_compute(job: &Job) -> Result<()> {
    if std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // only the owner can access a member's commands
    }
    let (world, me) = (job.world(), job.rank().index());
    let (over, last) = (job.signal()?, job.size() - 1);
    let chain =
        ALGORITHMS.iter().find(|algorithm| algorithm.name == "chain").expect("there is an algorithm chain");
    let shape = Shape::new(CollectiveKind::Bcast, job.size(), 0, 8000);
    let mut plan = world.plan(&chain.schedule(&shape, 4))?;
    for start in 0..effort(job, 20, 3) as u64 {
        if me == 0 {
            plan.input()?.copy_from_slice(&[start as u8; 8000]);
        }
        plan.start()?;
        if me > 0 && me < last {
            // This rank makes no call that could make progress until the last member has all values.
            while over.value() <= start {
                stay_away(job);
            }
        }
        plan.wait()?;
        assert_eq!(plan.result()?, [start as u8; 8000], "start {start}");
        if me == last {
            job.ranks().try_for_each(|rank| job.raise(over.on(rank), 1))?;
        }
        over.wait_at_least(start + 1)?;
    }
    Ok(())
}

/// A broadcast among all ranks but `by`, along the binary tree of the ACP paper. Rank `by` runs the
/// list of all copies, and neither gives nor gets values.
fn list_of_an_outsider(ranks: usize, by: usize, bytes: u64) -> Schedule {
    let members = move || (0..ranks).filter(move |&rank| rank != by);
    let write = move |b: &mut Builder| {
        let data = b.buffer("data", bytes);
        b.prepared_by(Some(by));
        let places: Vec<_> = members().map(|rank| data.on(rank)).collect();
        let mut arrived = vec![None]; // the root has the bytes already
        for child in 1..places.len() {
            let parent = (child - 1) / 2;
            arrived.push(Some(b.copy(places[parent], places[child]).after(arrived[parent]).id()));
        }
    };
    let contract = move |rank: usize| {
        let root = usize::from(by == 0);
        let span = BufferSpan { buffer: BufferId::FIRST, offset: 0, bytes };
        let origin = Origin { ranks: vec![root as u32], buffer: BufferId::FIRST, offset: 0 };
        let gives = if rank == root { vec![span] } else { vec![] };
        let gets = if rank == by { vec![] } else { vec![(span, origin)] };
        Contract { inputs: gives, outputs: gets, ..Contract::default() }
    };
    Schedule::build("list of an outsider", (ranks, 0, bytes), write, contract)
}

/// J9: a rank that is not in the tree runs the tree of 7 ranks, and smaller trees. The buffer of this rank must not be
/// changed.
pub fn j9_a_rank_outside_runs_the_tree(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let count = effort(job, 5000, 300);
    for by in BTreeSet::from([0, ranks / 2, ranks - 1]) {
        let root = usize::from(by == 0);
        let mut plan = world.plan(&list_of_an_outsider(ranks, by, count as u64))?;
        let byte = |rank: usize, start: usize| (rank * 31 + start * 7 + 1) as u8;
        for start in 0..effort(job, 20, 3) {
            if me == root || me == by {
                plan.buffer_mut(BufferId::FIRST)?.fill(byte(me, start));
            }
            plan.start()?;
            plan.wait()?;
            let from = if me == by { by } else { root };
            assert_eq!(
                plan.buffer(BufferId::FIRST)?,
                vec![byte(from, start); count],
                "by rank {by}, start {start}"
            );
        }
    }
    Ok(())
}

/// J: a schedule in which a step moves only a part of a value is refused, whichever rank the step belongs to.
pub fn j_schedules_that_split_a_value_are_refused(job: &Job) -> Result<()> {
    let tree =
        ALGORITHMS.iter().find(|one| (one.name, one.collective) == ("tree", CollectiveKind::Allreduce));
    let tree = tree.expect("there is an algorithm tree");
    for (bytes, are_whole) in [(16, true), (12, false), (20, false), (8, true)] {
        let shape = Shape::new(CollectiveKind::Allreduce, job.size(), 0, bytes);
        let plan = job.world().dup()?.plan::<i64>((&tree.schedule(&shape, 1), Sum));
        match are_whole {
            true => drop(plan?),
            false => drop(misused(job, plan.map(drop), &["combines", "not a multiple of the value size 8"])),
        }
    }
    Ok(())
}

/// J9: one rank runs the commands of all ranks, in one list, for several algorithms. The results
/// must be as usual. This covers broadcasts, allgathers, and sums, which that rank computes in the
/// memory of others.
pub fn j9_one_rank_runs_the_commands_of_all(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let count = effort(job, 600, 40);
    for operation in [CollectiveKind::Bcast, CollectiveKind::Allgather, CollectiveKind::Allreduce] {
        for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.collective == operation) {
            let shape = Shape::new(operation, ranks, ranks / 2, count as u64 * 8);
            let wants =
                ["binary", "staged", "eager", "command lists", "bruck", "flat", "tree", "rabenseifner"];
            if !(algorithm.fits)(&shape) || !wants.contains(&algorithm.name) {
                continue;
            }
            for by in BTreeSet::from([0, ranks - 1]) {
                let mut plan = world.plan::<i64>((&algorithm.schedule(&shape, 2).driven_by(by), Sum))?;
                for start in 0..effort(job, 10, 3) {
                    let mine = values(me, start, count);
                    let wanted = match operation {
                        CollectiveKind::Bcast => values(shape.root, start, count),
                        CollectiveKind::Allreduce => sums(ranks, start, count),
                        _ => (0..ranks).flat_map(|rank| values(rank, start, count)).collect(),
                    };
                    match operation {
                        CollectiveKind::Bcast if me != shape.root => {}
                        _ => plan.input()?.copy_from_slice(&mine),
                    }
                    assert_eq!(run(&mut plan)?, wanted, "{} by rank {by}, start {start}", algorithm.name);
                }
            }
        }
    }
    Ok(())
}

/// J10: misuse is refused on the rank that asks for it, and nothing is lost.
pub fn j10_misuse_of_plans_is_refused(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    misused(job, world.dup()?.bcast_init::<u8>(1, Rank(job.size())), &["rank"]);
    let mut plan = world.bcast_init::<i64>(4, Rank(0))?;
    let own = if me == Rank(0) { 4 } else { 0 };
    assert_eq!((plan.input()?.len(), plan.result()?.len()), (own, 4));
    misused(job, plan.buffer(BufferId::FIRST).map(drop), &["buffer 0", "own schedule"]);
    for start in 0..3 {
        if me == Rank(0) {
            plan.input()?.copy_from_slice(&values(0, start, 4));
        }
        plan.start()?;
        misused(job, plan.start(), &["has not ended", "wait"]);
        misused(job, plan.input().map(drop), &["input(", "a start is active"]);
        misused(job, plan.result().map(drop), &["result(", "a start is active"]);
        misused(job, plan.buffer(BufferId::FIRST).map(drop), &["buffer(", "a start is active"]);
        plan.wait()?;
        plan.wait()?; // has no effect when nothing is under way
        assert!(plan.test());
        assert_eq!(plan.result()?, values(0, start, 4));
    }
    // A schedule for another number of members.
    let chain =
        ALGORITHMS.iter().find(|algorithm| algorithm.name == "chain").expect("there is an algorithm chain");
    let foreign = chain.schedule(&Shape::new(CollectiveKind::Bcast, job.size() + 1, 0, 8), 1);
    misused(job, world.dup()?.plan(&foreign.trusted()), &["ranks", "members"]);
    if job.size() > 1 {
        let count = if me == Rank(0) { 7 } else { 8 };
        let [one, other, last] = [world.dup()?, world.dup()?, world.dup()?];
        let _plans = [one.barrier_init()?, other.barrier_init()?, last.barrier_init()?];
        // Rings for messages stay once they exist.
        let local = || job.memory().local - job.memory().rings;
        let before = local();
        refused(job, one.bcast_init::<i64>(count, Rank(0)), ErrorKind::Disagreement, &["another schedule"]);
        let most = |on: &Communicator, is_sum: bool, count: usize| match is_sum {
            true => on.allreduce_init::<i64>(count, Sum),
            false => on.allreduce_init::<i64>(count, Max),
        };
        refused(job, most(&other, me == Rank(0), 8), ErrorKind::Disagreement, &["way of combining"]);
        refused(job, most(&last, me == Rank(1), 100_000), ErrorKind::Disagreement, &["way of combining"]);
        assert_eq!(local(), before, "the refused plans left memory in use");
    }
    job.barrier()
}

/// J11: the allgather tree of the ACP paper, by lists that ranks run independently.
pub fn j11_allgather_by_independent_lists(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let lists = ALGORITHMS
        .iter()
        .find(|algorithm| algorithm.name == "command lists")
        .expect("there is an algorithm of command lists");
    let counts = Counts::Each((0..ranks as u64).map(|rank| 8 + rank % 3 * 100).collect());
    for shape in [
        Shape::new(CollectiveKind::Allgather, ranks, 0, 700),
        Shape { counts, ..Shape::new(CollectiveKind::Allgather, ranks, 0, 8) },
    ] {
        let mut plan = world.plan(&lists.schedule(&shape, 1))?;
        for start in 0..effort(job, 30, 4) {
            let byte = |rank: usize| (rank * 31 + start) as u8;
            plan.input()?.fill(byte(me));
            plan.start()?;
            plan.wait()?;
            let got = plan.result()?;
            for rank in 0..ranks {
                let block = &got[shape.offset_of(rank) as usize..][..shape.bytes_of(rank) as usize];
                assert!(block.iter().all(|&got| got == byte(rank)), "block {rank}, start {start}");
            }
        }
    }
    Ok(())
}

/// J13: blocking collective calls between start and wait of plans on one communicator.
pub fn j13_calls_between_start_and_wait(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let mut plans = [
        world.allreduce_init::<i64>(3, Sum)?,
        world.scan_init::<i64>(3, Sum)?,
        world.alltoall_init::<i64>(3)?,
    ];
    for start in 0..effort(job, 100, 5) {
        for plan in &mut plans {
            let count = plan.input()?.len();
            plan.input()?.copy_from_slice(&values(me, start, count));
            plan.start()?;
            assert_eq!(world.allreduce(&[value(me, start, 0)][..], Sum)?, sums(ranks, start, 1));
        }
        let mut root = [start as i64 * i64::from(me == 0)];
        world.bcast(&mut root, Rank(0))?;
        assert_eq!(root, [start as i64]);
        let [sum, scan, exchange] = &mut plans;
        exchange.wait()?;
        scan.wait()?;
        while !sum.test() {
            if is_simulated(job) {
                stay_away(job);
            }
        }
        assert_eq!(sum.result()?, sums(ranks, start, 3));
        assert_eq!(scan.result()?, sums(me + 1, start, 3));
    }
    Ok(())
}
