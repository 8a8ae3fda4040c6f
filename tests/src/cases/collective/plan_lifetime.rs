//! J: plans that not all members start, and what remains of dropped plans.

use crate::expected_error::refused;
use crate::wait_until::may_be_helped;
use std::time::Duration;
use tasuki::collective::quiesce;
use tasuki::schedule::{ALGORITHMS, Algorithm, CollectiveKind, Shape};
use tasuki::{ErrorKind, Job, Rank, Request, Result, Slot, Sum};

/// A member leaves without having started plans that the others have started. The waits of the
/// others end with an error, and the others can leave, too.
pub fn j_waits_fail_when_a_member_leaves_before_starts(job: &Job) -> Result<()> {
    let (world, ranks) = (job.world(), job.size());
    let are_mutual = [CollectiveKind::Barrier, CollectiveKind::Allgather, CollectiveKind::Alltoall];
    let of_all = ALGORITHMS.iter().filter(|algorithm| are_mutual.contains(&algorithm.collective));
    let shape = |operation| {
        Shape::new(operation, ranks, 0, if operation == CollectiveKind::Barrier { 0 } else { 100 })
    };
    let fitting = of_all.filter(|algorithm| (algorithm.fits)(&shape(algorithm.collective)));
    let plan =
        |algorithm: &Algorithm| world.plan(&algorithm.schedule(&shape(algorithm.collective), 1).trusted());
    let mut plans = fitting.map(plan).collect::<Result<Vec<_>>>()?;
    for plan in &mut plans {
        plan.start()?;
        plan.wait()?;
    }
    job.barrier()?; // a failure also ends calls that were right and are still under way
    if job.rank() == 1 {
        return Ok(());
    }
    let (first, others) = plans.split_first_mut().expect("there are plans");
    let started = first.start().and_then(|()| others.iter_mut().try_for_each(|plan| plan.start()));
    if started.is_err() {
        refused(job, started, ErrorKind::PeerFailed, &["has left"]); // another member has detected it before
        return Ok(());
    }
    while !first.test() {
        job.compute(Duration::from_micros(20));
    }
    let outcomes = others.iter_mut().chain([first]).map(|plan| plan.wait());
    outcomes.for_each(|outcome| drop(refused(job, outcome, ErrorKind::PeerFailed, &["has left"])));
    Ok(())
}

/// A member leaves that has made more starts than the others in total, but of other plans. Members that wait for it get
/// an error.
pub fn j_waits_fail_when_a_member_leaves_after_other_starts(job: &Job) -> Result<()> {
    let (world, ranks, me) = (job.world(), job.size(), job.rank().index());
    let barrier = Shape::new(CollectiveKind::Barrier, ranks, 0, 0);
    let is_barrier = |one: &&Algorithm| one.collective == CollectiveKind::Barrier && (one.fits)(&barrier);
    let algorithm = ALGORITHMS.iter().find(is_barrier).expect("there is a barrier algorithm");
    let plan = || world.plan(&algorithm.schedule(&barrier, 1).trusted());
    let mut plans = (0..4).map(|_| plan()).collect::<Result<Vec<_>>>()?;
    for plan in &mut plans {
        plan.start()?;
        plan.wait()?;
    }
    job.barrier()?; // a failure also ends calls that were right and are still under way
    if me == ranks - 1 {
        plans[1..].iter_mut().try_for_each(|plan| plan.start())?;
        return Ok(());
    }
    let started = plans[0].start(); // fails if another member has already noticed
    if me == ranks - 2 {
        world.recv(&mut [0_u8], Rank(0), Slot(0))?; // this rank leaves only then
    }
    refused(job, started.and_then(|()| plans[0].wait()), ErrorKind::PeerFailed, &["has left"]);
    if me == 0 { world.send(&[1_u8], Rank(ranks - 2), Slot(0)) } else { Ok(()) }
}

/// Chunked plans are dropped while values pass through them. The starts are completed, and then all
/// memory is free again.
pub fn j_dropped_chunked_plans_complete_their_starts(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let kept = || (job.memory().local, job.memory().plans);
    quiesce(world)?;
    let before = kept();
    for tests in 0..5 {
        let mut exchange = world.alltoall_init::<u8>(100)?.chunked()?;
        let mut sum = world.allreduce_init::<u32>(100, Sum)?.chunked()?;
        exchange.start(vec![1; 700 * ranks])?;
        sum.start(vec![1; 650])?;
        for _ in 0..if me == 0 { tests } else { 0 } {
            exchange.test();
            job.compute(Duration::from_micros(50));
        }
        drop(exchange);
        if tests % 3 == 0 {
            world.barrier()?;
        }
        drop(sum);
        if tests % 2 == 0 {
            quiesce(world)?;
            assert_eq!(kept(), before, "after {tests} tests");
        }
    }
    quiesce(world)?;
    assert_eq!(kept(), before);
    assert_eq!(world.allreduce(&[1_u64], Sum)?, [ranks as u64]);
    Ok(())
}

/// Signals of dropped plans have counted already. A fuzzy barrier that gets these signals later must not be done at
/// once because of these counts.
pub fn j_fuzzy_barriers_ignore_old_values_of_signals(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    for members in 2..=job.size() {
        let Some(part) = world.split((me.index() < members).then_some(0))? else { continue };
        for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.collective == CollectiveKind::Barrier)
        {
            let shape = Shape::new(CollectiveKind::Barrier, members, 0, 0);
            let mut plan = part.plan(&algorithm.schedule(&shape, 1).trusted())?;
            for _ in 0..3 {
                plan.start()?;
                plan.wait()?;
            }
        }
        quiesce(&part)?;
    }
    let all = world.split(0)?;
    all.fuzzy_barrier()?.wait()?; // allocates what fuzzy barriers need, which is collective
    if me == 0 {
        world.recv(&mut [0_u8], Rank(1), Slot(0))?;
    }
    let mut barrier = all.fuzzy_barrier()?;
    if me == 1 {
        assert!(!barrier.test(), "rank 0 has not started the barrier");
        world.send(&[1_u8], Rank(0), Slot(0))?;
    }
    barrier.wait()
}

/// An operation panics in a plan that other ranks may execute. The start ends with an error on all
/// members, and so does every later call on the communicator.
pub fn j_queue_plans_report_a_panicking_operation(job: &Job) -> Result<()> {
    let (world, ranks) = (job.world(), job.size());
    let flat =
        ALGORITHMS.iter().find(|one| (one.collective, one.name) == (CollectiveKind::Allreduce, "flat"));
    let flat = flat.expect("there is an algorithm flat");
    let some = |a: i64, b: i64| if a + b > 1000 { panic!("on purpose") } else { a + b };
    for count in [3, 5000] {
        let shape =
            Shape { value_bytes: 8, ..Shape::new(CollectiveKind::Allreduce, ranks, 0, 8 * count as u64) };
        let part = world.split(0)?;
        let mut plan = part.plan::<i64>((&flat.schedule(&shape, 1), some))?;
        for value in [1, 2000] {
            job.barrier()?; // a failure also ends starts that were right and are still under way
            plan.input()?.fill(value);
            let outcome = plan.start().and_then(|()| plan.wait());
            if value == 1 {
                outcome?;
                assert_eq!(plan.result()?, vec![ranks as i64; count]);
            } else {
                refused(job, outcome, ErrorKind::Program, &["operation", "panicked"]);
            }
        }
        drop(plan);
        refused(job, quiesce(&part), ErrorKind::Program, &["quiesce(", "panicked"]);
        refused(job, part.barrier(), ErrorKind::Program, &["barrier(", "panicked"]);
    }
    world.barrier()
}

/// An operation panics in a plan of which each member executes its own steps. Other members still wait for steps of the
/// member whose operation panicked.
pub fn j_executions_report_a_panicking_operation(job: &Job) -> Result<()> {
    if may_be_helped(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there other ranks may execute a plan
    }
    let (world, me, ranks) = (job.world(), job.rank(), job.size() as i64);
    let some = move |a: i64, b: i64| if me == 0 && a + b > 1000 { panic!("on purpose") } else { a + b };
    let mut plan = world.allreduce_init::<i64>(5000, some)?;
    plan.input()?.fill(1000);
    job.barrier()?; // a failure also ends calls that were right and are still under way
    let run = || plan.start().and_then(|()| plan.wait());
    if me == 0 {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    } else {
        let started = plan.start(); // does not wait
        if started.is_err() {
            refused(job, started, ErrorKind::Program, &["panicked"]); // rank 0 was quicker
        }
    }
    drop(plan);
    refused(job, quiesce(world), ErrorKind::Program, &["quiesce(", "panicked"]);
    let world = world.recreate()?;
    assert_eq!(world.allreduce(&[1_i64], Sum)?, [ranks]);
    Ok(())
}
