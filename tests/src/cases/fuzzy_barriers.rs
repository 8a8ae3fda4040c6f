//! I: fuzzy barriers: when they are over, in which order, and who is needed for that.

use crate::exchange::effort;
use crate::expected_error::told;
use crate::wait_until::{Idle, stay_away};
use std::time::Duration;
use tasuki::{Array, Blame, Communicator, FuzzyBarrier, Job, Rank, Result};

/// How far each member has come, told by itself in its own memory before it starts an instance.
struct Steps(Array<u64>);

impl Steps {
    fn new(job: &Job) -> Result<Steps> {
        Ok(Steps(job.alloc(1)?))
    }

    /// Starts an instance that all others see as `step`.
    fn start(&self, job: &Job, group: &Communicator, step: u64) -> Result<FuzzyBarrier> {
        job.store(self.0.pointer(), step)?; // as the others load it
        group.fuzzy_barrier()
    }

    /// That all those ranks have started it.
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

/// Over means that all have started it, whoever comes late: among all ranks, and in groups of every size.
pub fn i4_over_means_that_all_have_started(job: &Job) -> Result<()> {
    let mut random = crate::random::Random::seed(u64::from(job.rank().0));
    for size in (1..=job.size()).rev() {
        let ranks: Vec<Rank> = job.ranks().take(size).collect();
        let colour = (job.rank().index() < size).then_some(1);
        // The places are not the ranks: they run the other way.
        let group = job.world().split(colour, -i64::from(job.rank().0))?;
        let steps = Steps::new(job)?;
        if let Some(group) = &group {
            for step in 1..=effort(job, 60, 4) as u64 {
                compute(job, &mut random);
                let barrier = steps.start(job, group, step)?;
                compute(job, &mut random);
                while !barrier.is_done()? {
                    compute(job, &mut random);
                }
                steps.have_started(job, &ranks, step, &format!("{size} members"))?;
                assert!(barrier.is_done()?, "it stays over");
            }
        }
        job.barrier()?;
    }
    Ok(())
}

/// Instances are over in the order in which they were started, and not before the last member has started them.
pub fn i2_two_in_flight(job: &Job) -> Result<()> {
    let (world, idle, go) = (job.world(), Idle::new(job)?, job.signal()?);
    let steps = Steps::new(job)?;
    let late = Rank(0);
    for round in 0..effort(job, 200, 5) as u64 {
        let (first, second) = (2 * round + 1, 2 * round + 2);
        if job.rank() == late {
            go.wait_at_least((round + 1) * (job.size() as u64 - 1))?;
        }
        let one = steps.start(job, world, first)?;
        if job.rank() != late {
            let two = steps.start(job, world, second)?;
            assert!(!one.is_done()? && !two.is_done()?, "the last has not come");
            job.raise(go.on(late), 1)?;
            two.wait()?;
            assert!(one.is_done()?, "the second is over before the first");
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

/// A hundred are under way at once; one more than there is room for is an error and starts nothing.
pub fn i3_a_hundred_in_flight(job: &Job) -> Result<()> {
    let (world, go, late) = (job.world(), job.signal()?, Rank(0));
    let (steps, all) = (Steps::new(job)?, job.ranks().collect::<Vec<_>>());
    let many = effort(job, 128, 100) as u64;
    for round in 0..effort(job, 5, 1) as u64 {
        if job.rank() == late {
            go.wait_at_least((round + 1) * (job.size() as u64 - 1))?;
        }
        let first = round * many + 1;
        let barriers =
            (first..first + many).map(|step| steps.start(job, world, step)).collect::<Result<Vec<_>>>()?;
        if job.rank() != late {
            assert!(!barriers[0].is_done()?);
            if job.size() > 2 && many == 128 {
                let error = world.fuzzy_barrier().expect_err("there is no room");
                told(job, &error, Blame::System, &["fuzzy barriers under way is full (capacity 128)"]);
            }
            job.raise(go.on(late), 1)?;
        }
        for (step, barrier) in (first..).zip(&barriers) {
            barrier.wait()?;
            steps.have_started(job, &all, step, "a hundred")?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// An instance is not over when it starts, though those before it are, and is so once and for all.
pub fn i5_reset_at_start_set_once(job: &Job) -> Result<()> {
    let (world, turn) = (job.world(), job.signal()?);
    let mut earlier: Vec<FuzzyBarrier> = Vec::new();
    for round in 0..effort(job, 100, 5) as u64 {
        let late = Rank((round % job.size() as u64) as u32);
        if job.rank() == late {
            turn.wait_at_least(turn.value())?;
        } else {
            let barrier = world.fuzzy_barrier()?;
            assert!(!barrier.is_done()?, "rank {late} has not started it");
            earlier.push(barrier);
        }
        for before in earlier.iter().rev().skip(1).take(5) {
            assert!(before.is_done()?, "{before:?} was over");
        }
        // Not by a call that would be a barrier in itself before the late one has started.
        for rank in job.ranks() {
            if job.rank() != late {
                job.raise(turn.on(rank), 1)?;
            }
        }
        turn.wait_at_least((round + 1) * (job.size() as u64 - 1))?;
        if job.rank() == late {
            earlier.push(world.fuzzy_barrier()?);
        }
        earlier.last().map_or(Ok(()), FuzzyBarrier::wait)?;
    }
    Ok(())
}

/// Stages go on while every member but one computes and makes no call at all.
pub fn i2_members_compute(job: &Job) -> Result<()> {
    if std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // nobody reaches a member's queue but itself
    }
    let (word, turn, world) = (job.alloc::<u64>(1)?, job.signal()?, job.world());
    let before = Rank((job.rank().0 + job.size() as u32 - 1) % job.size() as u32);
    let _queue = job.queue(1)?; // and the helper that the simulator has with one
    world.fuzzy_barrier()?.wait()?;
    for round in 1..=effort(job, 50, 5) as u64 {
        job.barrier()?;
        // The last rank first, so that each has started before it is told anything.
        if job.rank().index() + 1 < job.size() {
            turn.wait_at_least(round)?;
        }
        let barrier = world.fuzzy_barrier()?;
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

/// Threads of all ranks start instances and wait for them: as many starts as a rank makes, so many instances.
pub fn i8_threads_start_barriers(job: &Job) -> Result<()> {
    let (world, threads, each) = (job.world(), 4, effort(job, 500, 6));
    let started = job.alloc::<u64>(1)?;
    let bodies = job.threads(threads, |_| -> Result<()> {
        for _ in 0..each {
            job.fetch_add(started.pointer(), 1)?;
            let barrier = world.fuzzy_barrier()?;
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

/// Communicators have their own, under way at the same time, also when they and their barriers are dropped.
pub fn i4_communicators_keep_apart(job: &Job) -> Result<()> {
    let (world, late) = (job.world(), Rank(0));
    let rounds = effort(job, 30, 3) as u64;
    for round in 1..=rounds {
        let half = world.split(Some(u64::from(job.rank().0 % 2)), 0)?.expect("a colour was named");
        let inner = half.fuzzy_barrier()?;
        if job.rank() == late {
            inner.wait()?; // nobody has started the one of all
        }
        let outer = world.fuzzy_barrier()?;
        outer.wait()?;
        assert_eq!((inner.instance(), outer.instance()), (1, round));
    }
    Ok(())
}

/// Who leaves without waiting for what it has started still tells what others wait for.
pub fn i_leaving_with_barriers_under_way(job: &Job) -> Result<()> {
    let (world, turn, go) = (job.world(), job.signal()?, job.signal()?);
    for _ in 0..effort(job, 20, 2) {
        job.compute(Duration::from_micros(u64::from(job.rank().0) * 5));
        drop(world.fuzzy_barrier()?);
    }
    // The last rank first: nobody has been told anything when it starts, so all is left to what it leaves behind.
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
