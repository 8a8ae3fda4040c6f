//! J10, J2: chunked plans, whose starts take any number of values.

use crate::exchange::effort;
use crate::expected_error::refused;
use tasuki::collective::{ChunkedPlan, Neighbourhood};
use tasuki::{Cartesian, ErrorKind, Job, Member, Rank, Request, Result, Slot, Sum};

fn value(rank: usize, start: usize, at: usize) -> i64 {
    (rank * 1_000_000 + start * 10_000 + at) as i64
}

fn row(rank: usize, start: usize, count: usize) -> Vec<i64> {
    (0..count).map(|at| value(rank, start, at)).collect()
}

/// Numbers of values: none, fewer than fit into the plan, exactly as many, and more.
const LENGTHS: [usize; 5] = [0, 3, 7, 14, 40];
/// The number of values that fit into a plan.
const ROOM: usize = 7;

fn pass(plan: &mut ChunkedPlan<i64>, values: Vec<i64>) -> Result<Vec<i64>> {
    plan.start(values)?;
    plan.wait()
}

/// J10: every operation with any number of values, in pieces. The vector that was passed in comes
/// back with the result.
pub fn j10_any_number_of_values_passes(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let root = Rank(ranks - 1);
    let is_root = job.rank() == root;
    let mut news = world.bcast_init::<i64>(ROOM, root)?.chunked()?;
    let mut sum = world.allreduce_init::<i64>(ROOM, Sum)?.chunked()?;
    // An operation that panics if it combines values that no member gave.
    let checked = |a: i64, b: i64| a.checked_add(b).expect("values of the members do not overflow");
    let mut own = world.reduce_init::<i64>(ROOM, checked, root)?.chunked()?;
    let mut parts = world.scatter_init::<i64>(ROOM, root)?.chunked()?;
    let mut all = world.allgather_init::<i64>(ROOM)?.chunked()?;
    let mut exchange = world.alltoall_init::<i64>(ROOM)?.chunked()?;
    for (start, count) in LENGTHS.into_iter().chain([effort(job, 3000, 100)]).enumerate() {
        let total: Vec<i64> =
            (0..count).map(|at| (0..ranks).map(|rank| value(rank, start, at)).sum()).collect();
        let mine = row(me, start, count);
        assert_eq!(pass(&mut news, mine.clone())?, row(root.index(), start, count), "of {count}");
        assert_eq!(pass(&mut sum, mine.clone())?, total, "of {count}");
        let reduced = pass(&mut own, mine.clone())?;
        assert!(!is_root || reduced == total, "of {count}");

        let blocks = |from: usize| row(from, start, ranks * count);
        let given = if is_root { blocks(me) } else { mine.clone() };
        let part = pass(&mut parts, given)?;
        let at = if is_root { me * count } else { 0 };
        assert_eq!(part[at..][..count], blocks(root.index())[me * count..][..count], "of {count}");

        let mut gathered = vec![-1; ranks * count];
        gathered[me * count..][..count].copy_from_slice(&mine);
        let everybody: Vec<i64> = (0..ranks).flat_map(|rank| row(rank, start, count)).collect();
        all.run(&mut gathered)?;
        assert_eq!(gathered, everybody, "of {count}");

        let got = pass(&mut exchange, blocks(me))?;
        let wanted = (0..ranks).flat_map(|from| blocks(from)[me * count..][..count].to_vec());
        assert_eq!(got, wanted.collect::<Vec<_>>(), "of {count}");
    }
    Ok(())
}

/// J10: neighbours exchange any number of values, also if a member gives fewer blocks than it gets.
pub fn j10_neighbours_pass_any_number_of_values(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank(), job.size());
    // All other members give a block to rank 0, and rank 0 gives none.
    let sources: Vec<Member> = if me == 0 { world.members().iter().skip(1).collect() } else { vec![] };
    let destinations = if me == 0 { vec![] } else { vec![Member(0)] };
    let star = Neighbourhood::new(world, &sources, &destinations)?;
    let mut plan = star.neighbor_alltoall_init::<i64>(ROOM)?.chunked()?;
    let line = Cartesian::new(world, [ranks], [false])?;
    let mut on_line = line.neighbor_alltoall_init::<i64>(ROOM)?.chunked()?;
    for (start, count) in LENGTHS.into_iter().enumerate() {
        let blocks = if me == 0 { ranks - 1 } else { 1 };
        let got = pass(&mut plan, row(me.index(), start, blocks * count))?;
        let wanted = (1..ranks).flat_map(|from| row(from, start, count)).collect::<Vec<_>>();
        assert!(if me == 0 { got == wanted } else { got.is_empty() }, "of {count}: {got:?}");
        // The block of a missing neighbour stays as the program gave it.
        let both = |rank: usize| row(rank, start, 2 * count);
        let [[before, after]] = line.neighbors();
        let block = |neighbour: Option<Member>, side: usize| match neighbour {
            Some(member) => both(member.0)[(1 - side) * count..][..count].to_vec(),
            None => both(me.index())[side * count..][..count].to_vec(),
        };
        assert_eq!(pass(&mut on_line, both(me.index()))?, [block(before, 0), block(after, 1)].concat());
    }
    Ok(())
}

/// J2: the members start several plans in different orders, wait for them in different orders, and
/// make other calls in between.
pub fn j2_chunked_plans_start_and_end_in_any_order(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let mut plans = Vec::new();
    for _ in 0..3 {
        plans.push(world.allreduce_init::<i64>(ROOM, Sum)?.chunked()?);
    }
    for start in 0..effort(job, 50, 4) {
        let count = 5 * ROOM + start % 3;
        let number = |at: usize| (at + me + start) % 3;
        for at in (0..3).map(number) {
            plans[at].start(row(me, at, count))?;
        }
        // Messages and a call in between: the pieces of members that wait in them must make
        // progress.
        match me % 2 {
            0 if me + 1 < ranks => world.send(&[1_u8], Rank(me + 1), Slot(1))?,
            1 => world.recv(&mut [0_u8], Rank(me - 1), Slot(1)).map(drop)?,
            _ => {}
        }
        if me == 0 {
            job.world().barrier()?;
        }
        for at in (0..3).rev().map(number) {
            let wanted: Vec<i64> =
                (0..count).map(|i| (0..ranks).map(|rank| value(rank, at, i)).sum()).collect();
            assert_eq!(plans[at].wait()?, wanted, "plan {at} of start {start}");
        }
        if me != 0 {
            job.world().barrier()?;
        }
    }
    Ok(())
}

/// J10: slices can be lent inside a scope. Misuse is refused, and nothing is lost.
pub fn j10_slices_pass_and_misuse_is_refused(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let mut first = world.allreduce_init::<i64>(ROOM, Sum)?.chunked()?;
    let mut second = world.bcast_init::<i64>(ROOM, Rank(0))?.chunked()?;
    let (mut sum, mut news) = (row(me, 0, 20), row(me, 1, 30));
    world.scope(|s| {
        if me % 2 == 0 {
            s.start(&mut first, &mut sum)?;
            s.start(&mut second, &mut news)
        } else {
            s.start(&mut second, &mut news)?;
            s.start(&mut first, &mut sum)
        }
    })?;
    assert_eq!(sum, (0..20).map(|at| (0..ranks).map(|rank| value(rank, 0, at)).sum()).collect::<Vec<i64>>());
    assert_eq!(news, row(0, 1, 30));

    let mut blocks = world.alltoall_init::<i64>(ROOM)?.chunked()?;
    if ranks > 1 {
        refused(job, blocks.start(vec![0; ranks + 1]), ErrorKind::Misuse, &["blocks", "start("]);
    }
    assert_eq!(
        pass(&mut blocks, vec![3; 2 * ranks])?,
        vec![3; 2 * ranks],
        "the refused start left the plan usable"
    );
    first.start(row(me, 2, 20))?;
    refused(job, first.start(vec![0; 20]), ErrorKind::Misuse, &["wait for it before the next start"]);
    assert_eq!(first.wait()?.len(), 20);
    refused(job, first.wait(), ErrorKind::Misuse, &["the start was waited for already"]);
    let empty = world.bcast_init::<i64>(0, Rank(0))?;
    refused(job, empty.chunked(), ErrorKind::Misuse, &["not empty"]);
    let mut active = world.barrier_init()?;
    active.start()?;
    refused(job, active.chunked(), ErrorKind::Misuse, &["a start is active"]);
    Ok(())
}

/// J3: a plan is dropped while pieces are left. Dropping returns at once, and nothing is corrupted.
pub fn j3_plans_are_dropped_while_pieces_are_left(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank().index());
    for count in [ROOM, 3 * ROOM] {
        let mut plan = world.allreduce_init::<i64>(ROOM, Sum)?.chunked()?;
        plan.start(row(me, 0, count))?;
        drop(plan);
    }
    let sum = world.allreduce(&[1_u64], Sum)?;
    assert_eq!(sum, [job.size() as u64]);
    Ok(())
}
