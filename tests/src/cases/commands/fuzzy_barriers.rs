//! I: fuzzy barriers: when they end, in which order, and which ranks are needed for that.

use crate::exchange::effort;
use crate::expected_error::{check_error, refused};
use crate::wait_until::{Idle, stay_away};
use std::time::Duration;
use tasuki::collective::FuzzyBarrier;
use tasuki::engine::Cause;
use tasuki::{Array, Communicator, ErrorKind, Job, Rank, Request, Result};

/// The step of each member, which it stores in its own memory before it starts a barrier.
struct Steps(Array<u64>);

impl Steps {
    fn new(job: &Job) -> Result<Steps> {
        Ok(Steps(job.alloc(1)?))
    }

    /// Stores `step`, then starts a barrier.
    fn start(&self, job: &Job, group: &Communicator, step: u64) -> Result<FuzzyBarrier> {
        job.store(self.0.pointer(), step)?; // an atomic store, because others load it
        group.fuzzy_barrier()
    }

    /// Asserts that all of `ranks` have reached `step`.
    fn have_started(&self, job: &Job, ranks: &[Rank], step: u64, what: &str) -> Result<()> {
        for &rank in ranks {
            let there = job.load(self.0.on(rank))?;
            assert!(there >= step, "{what}: over, and rank {rank} is at {there}, not at {step}");
        }
        Ok(())
    }
}

fn compute(job: &Job, random: &mut crate::random::Random) {
    if random.below(3) == 0 {
        job.compute(Duration::from_micros(random.below(20)));
    }
}

/// I4: a barrier ends after all members have started it, whichever member is late. Tested in the world and in groups of
/// every size.
pub fn i4_over_means_that_all_have_started(job: &Job) -> Result<()> {
    let mut random = crate::random::Random::seed(job.rank().0 as u64);
    for size in (1..=job.size()).rev() {
        let ranks: Vec<Rank> = job.ranks().take(size).collect();
        let colour = (job.rank().index() < size).then_some(1);
        // Members of the group are in reverse order of their ranks.
        let group = job.world().split(colour.map(|colour| (colour, -(job.rank().0 as isize))))?;
        let steps = Steps::new(job)?;
        if let Some(group) = &group {
            for step in 1..=effort(job, 60, 4) as u64 {
                compute(job, &mut random);
                let mut barrier = steps.start(job, group, step)?;
                compute(job, &mut random);
                while !barrier.test() {
                    compute(job, &mut random);
                }
                steps.have_started(job, &ranks, step, &format!("{size} members"))?;
                assert!(barrier.test(), "a barrier that has ended stays ended");
            }
        }
        job.barrier()?;
    }
    Ok(())
}

/// I2: barriers end in the order in which they were started, and not before the last member has
/// started them.
pub fn i2_two_in_flight(job: &Job) -> Result<()> {
    let (world, idle, go) = (job.world(), Idle::new(job)?, job.signal()?);
    let steps = Steps::new(job)?;
    let late = Rank(0);
    for round in 0..effort(job, 200, 5) as u64 {
        let (first, second) = (2 * round + 1, 2 * round + 2);
        if job.rank() == late {
            go.wait_at_least((round + 1) * (job.size() as u64 - 1))?;
        }
        let mut one = steps.start(job, world, first)?;
        if job.rank() != late {
            let mut two = steps.start(job, world, second)?;
            assert!(!one.test() && !two.test(), "a barrier ended before the last member has started it");
            job.raise(go.on(late), 1)?;
            two.wait()?;
            assert!(one.test(), "the second is over before the first");
        } else {
            one.wait()?;
            idle.serve(Duration::from_micros(20))?;
            steps.start(job, world, second)?.wait()?;
        }
        steps.have_started(job, &job.ranks().collect::<Vec<_>>(), second, "two")?;
        job.barrier()?;
    }
    Ok(())
}

/// I3: a hundred barriers are under way at once. One more than fit is an error and starts nothing.
pub fn i3_a_hundred_in_flight(job: &Job) -> Result<()> {
    let (world, go, late) = (job.world(), job.signal()?, Rank(0));
    let (steps, all) = (Steps::new(job)?, job.ranks().collect::<Vec<_>>());
    let many = effort(job, 128, 100) as u64;
    for round in 0..effort(job, 5, 1) as u64 {
        if job.rank() == late {
            go.wait_at_least((round + 1) * (job.size() as u64 - 1))?;
        }
        let first = round * many + 1;
        let mut barriers =
            (first..first + many).map(|step| steps.start(job, world, step)).collect::<Result<Vec<_>>>()?;
        if job.rank() != late {
            assert!(!barriers[0].test());
            if job.size() > 2 && many == 128 {
                let error = world.fuzzy_barrier().expect_err("there is no room");
                check_error(
                    job,
                    &error,
                    ErrorKind::Full,
                    &["fuzzy barriers under way is full (capacity 128)"],
                );
            }
            job.raise(go.on(late), 1)?;
        }
        for (step, barrier) in (first..).zip(&mut barriers) {
            barrier.wait()?;
            steps.have_started(job, &all, step, "a hundred")?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// I5: a barrier is not done when it starts, although those before it are. A barrier that is done
/// stays done.
pub fn i5_reset_at_start_set_once(job: &Job) -> Result<()> {
    let (world, turn) = (job.world(), job.signal()?);
    let mut earlier: Vec<FuzzyBarrier> = Vec::new();
    for round in 0..effort(job, 100, 5) as u64 {
        let late = Rank(round as usize % job.size());
        if job.rank() == late {
            turn.wait_at_least(turn.value())?;
        } else {
            let mut barrier = world.fuzzy_barrier()?;
            assert!(!barrier.test(), "rank {late} has not started it");
            earlier.push(barrier);
        }
        for before in earlier.iter_mut().rev().skip(1).take(5) {
            assert!(before.test(), "{before:?} was done before");
        }
        // Ranks synchronize by signals here. A collective call would itself be a barrier before the late member has
        // started.
        for rank in job.ranks() {
            if job.rank() != late {
                job.raise(turn.on(rank), 1)?;
            }
        }
        turn.wait_at_least((round + 1) * (job.size() as u64 - 1))?;
        if job.rank() == late {
            earlier.push(world.fuzzy_barrier()?);
        }
        earlier.last_mut().map_or(Ok(()), FuzzyBarrier::wait)?;
    }
    Ok(())
}

/// I2: barriers make progress while every member but one computes and makes no call.
pub fn i2_members_compute(job: &Job) -> Result<()> {
    if std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // only the owner can access a queue
    }
    let (word, turn, world) = (job.alloc::<u64>(1)?, job.signal()?, job.world());
    let before = Rank((job.rank().0 + job.size() - 1) % job.size());
    let _queue = job.queue(1)?; // the simulator has a helper once there is a queue
    world.fuzzy_barrier()?.wait()?;
    for round in 1..=effort(job, 50, 5) as u64 {
        job.barrier()?;
        // From the last rank to the first, so that each member has started before another one
        // notifies it.
        if job.rank().index() + 1 < job.size() {
            turn.wait_at_least(round)?;
        }
        let mut barrier = world.fuzzy_barrier()?;
        if job.rank() != Rank(0) {
            job.raise(turn.on(before), 1)?;
            while word.get(0)? < round {
                stay_away(job);
            }
        } else {
            barrier.wait()?;
            job.ranks().skip(1).try_for_each(|rank| job.put(word.on(rank), &[round]))?;
        }
        barrier.wait()?;
    }
    job.barrier()
}

/// I8: threads of all ranks start barriers and wait for them. The number of barriers is the number
/// of starts that each rank makes.
pub fn i8_threads_start_barriers(job: &Job) -> Result<()> {
    let (world, threads, each) = (job.world(), 4, effort(job, 500, 6));
    let started = job.alloc::<u64>(1)?;
    let bodies = job.threads(threads, |_| -> Result<()> {
        for _ in 0..each {
            job.fetch_add(started.pointer(), 1)?;
            let mut barrier = world.fuzzy_barrier()?;
            barrier.wait()?;
            for rank in job.ranks() {
                let there = job.load(started.on(rank))?;
                assert!(there >= barrier.instance(), "{barrier:?} is over, rank {rank} has begun {there}");
            }
        }
        Ok(())
    });
    bodies?.into_iter().collect::<Result<()>>()?;
    assert_eq!(world.fuzzy_barrier()?.instance(), (threads * each + 1) as u64);
    job.barrier()
}

/// I4: each communicator has its own barriers. They may be under way at the same time, also when
/// communicators and barriers are dropped.
pub fn i4_communicators_keep_apart(job: &Job) -> Result<()> {
    let (world, late) = (job.world(), Rank(0));
    let rounds = effort(job, 30, 3) as u64;
    for round in 1..=rounds {
        let half = world.split(job.rank().0 % 2)?;
        let mut inner = half.fuzzy_barrier()?;
        if job.rank() == late {
            inner.wait()?; // no rank has started the barrier of the world
        }
        let mut outer = world.fuzzy_barrier()?;
        outer.wait()?;
        assert_eq!((inner.instance(), outer.instance()), (1, round));
    }
    Ok(())
}

/// A rank that leaves without waiting for its barriers still sends the notifications that others
/// wait for.
pub fn i_leaving_with_barriers_under_way(job: &Job) -> Result<()> {
    let (world, turn, go) = (job.world(), job.signal()?, job.signal()?);
    for _ in 0..effort(job, 20, 2) {
        job.compute(Duration::from_micros(job.rank().0 as u64 * 5));
        drop(world.fuzzy_barrier()?);
    }
    // From the last rank to the first: no member has been notified when it starts, so all
    // notifications remain to be sent when it leaves.
    if job.rank().index() + 1 < job.size() {
        turn.wait_at_least(1)?;
    }
    if job.rank() == Rank(0) {
        go.wait_at_least(job.size() as u64 - 1)?;
        job.compute(Duration::from_micros(200));
        return world.fuzzy_barrier()?.wait();
    }
    drop(world.fuzzy_barrier()?);
    job.raise(turn.on(Rank(job.rank().0 - 1)), 1)?;
    job.raise(go.on(Rank(0)), 1)
}

/// A member leaves early, and a plan keeps it until the others leave, too. Waits for barriers that it has not started end
/// with an error, also those of members that another one notifies, and on communicators that it has dropped or has
/// started no barrier on.
pub fn i_members_with_plans_leave_early(job: &Job) -> Result<()> {
    let (world, early) = (job.world(), Rank(1));
    let mut plan = world.barrier_init()?;
    plan.start()?;
    plan.wait()?;
    let (dropped, group) = (world.dup()?, world.dup()?);
    dropped.fuzzy_barrier()?.wait()?;
    if job.rank() == early {
        drop(dropped);
        group.fuzzy_barrier()?.wait()?; // frees what the dropped one no longer needs
        drop(group.fuzzy_barrier()?);
        return Ok(());
    }
    let ended_early = |mut barrier: FuzzyBarrier| {
        if job.rank().0.is_multiple_of(2) {
            while !barrier.test() {
                job.compute(Duration::from_micros(20));
            }
        }
        let error =
            refused(job, barrier.wait(), ErrorKind::PeerFailed, &["fuzzy_barrier(", "has left", "hint:"]);
        assert!(matches!(error.cause(), Cause::PeerLeft { .. }), "{error}");
    };
    let [mut first, mut second] = [group.fuzzy_barrier()?, group.fuzzy_barrier()?];
    let third = group.fuzzy_barrier()?;
    first.wait()?;
    second.wait()?; // the member starts it, and does not wait for it
    ended_early(third);
    ended_early(dropped.fuzzy_barrier()?);
    ended_early(world.fuzzy_barrier()?);
    drop(plan);
    Ok(())
}
