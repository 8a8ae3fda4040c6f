//! J10, J2: plans through whose buffers any number of values pass.

use crate::exchange::effort;
use crate::expected_error::refused;
use tasuki::{Blame, ChunkedPlan, Job, Rank, Result, Slot, Sum};

fn value(rank: usize, start: usize, at: usize) -> i64 {
    (rank * 1_000_000 + start * 10_000 + at) as i64
}

fn row(rank: usize, start: usize, count: usize) -> Vec<i64> {
    (0..count).map(|at| value(rank, start, at)).collect()
}

/// What members pass: none, fewer than there is room for, as many, and more, which do not divide.
const LENGTHS: [usize; 5] = [0, 3, 7, 14, 40];
/// Values that a plan has room for.
const ROOM: usize = 7;

fn pass(plan: &mut ChunkedPlan<i64>, values: Vec<i64>) -> Result<Vec<i64>> {
    plan.start(values)?;
    Ok(plan.wait()?.expect("it was started"))
}

/// J10: messages of any length, in pieces, each operation; a vector comes back with what was got.
pub fn j10_any_number_of_values_passes(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let root = Rank(ranks as u32 - 1);
    let is_root = job.rank() == root;
    let mut news = world.bcast_init::<i64>(ROOM, root)?.chunked()?;
    let mut sum = world.allreduce_init::<i64>(ROOM, Sum)?.chunked()?;
    // An operation that panics of what no member gave.
    let checked = |a: i64, b: i64| a.checked_add(b).expect("no more than all come to");
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

/// J10: neighbours exchange any number of values, also where a member gives less blocks than it gets.
pub fn j10_neighbours_pass_any_number(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank(), job.size());
    // Everybody gives rank 0 a block, which gives nobody any.
    let sources: Vec<Rank> = if me == 0 { job.ranks().skip(1).collect() } else { vec![] };
    let destinations = if me == 0 { vec![] } else { vec![Rank(0)] };
    let star = world.graph(&sources, &destinations)?;
    let mut plan = star.exchange_init::<i64>(ROOM)?.chunked()?;
    for (start, count) in LENGTHS.into_iter().enumerate() {
        let blocks = if me == 0 { ranks - 1 } else { 1 };
        let got = pass(&mut plan, row(me.index(), start, blocks * count))?;
        let wanted = (1..ranks).flat_map(|from| row(from, start, count)).collect::<Vec<_>>();
        assert!(if me == 0 { got == wanted } else { got.is_empty() }, "of {count}: {got:?}");
    }
    Ok(())
}

/// J2: several are started in different orders on different members, waited for in others, and beside other calls.
pub fn j2_pieces_pass_in_any_order(job: &Job) -> Result<()> {
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
        // Messages and a call in between: the pieces of those who wait for them go on.
        match me % 2 {
            0 if me + 1 < ranks => world.send(&[1_u8], Rank(me as u32 + 1), Slot(1))?,
            1 => world.recv(&mut [0_u8], Rank(me as u32 - 1), Slot(1)).map(drop)?,
            _ => {}
        }
        if me == 0 {
            job.world().barrier()?;
        }
        for at in (0..3).rev().map(number) {
            let wanted: Vec<i64> =
                (0..count).map(|i| (0..ranks).map(|rank| value(rank, at, i)).sum()).collect();
            assert_eq!(plans[at].wait()?, Some(wanted), "plan {at} of start {start}");
        }
        if me != 0 {
            job.world().barrier()?;
        }
    }
    Ok(())
}

/// J10: slices are lent inside a scope; what cannot be is refused, and loses nothing.
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
        refused(job, blocks.start(vec![0; ranks + 1]), Blame::Misuse, &["blocks", "start("]);
    }
    assert_eq!(pass(&mut blocks, vec![3; 2 * ranks])?, vec![3; 2 * ranks], "the plan is as it was");
    first.start(row(me, 2, 20))?;
    refused(job, first.start(vec![0; 20]), Blame::Misuse, &["wait for it before it is started again"]);
    assert_eq!(first.wait()?.map(|values| values.len()), Some(20));
    assert_eq!(first.wait()?, None, "it is over");
    let empty = world.bcast_init::<i64>(0, Rank(0))?;
    refused(job, empty.chunked(), Blame::Misuse, &["not empty"]);
    let mut active = world.barrier_init()?;
    active.start()?;
    refused(job, active.chunked(), Blame::Misuse, &["a start is active"]);
    Ok(())
}

/// J3: dropped while pieces are left: returns at once, and nothing is corrupted.
pub fn j3_dropped_while_pieces_are_left(job: &Job) -> Result<()> {
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
