//! Several jobs run in one process at the same time. No job sees the state of another.

use std::thread;
use tasuki::{Job, Rank, Result};

/// A small job whose result depends on `seed`.
fn little_job(ranks: usize, seed: u64) -> Result<Vec<u64>> {
    tasuki::local(ranks, |job| {
        let (inbox, arrived) = (job.alloc::<u64>(1)?, job.signal()?);
        let next = Rank((job.rank().0 + 1) % job.size());
        for round in 1..=50 {
            let value = seed * 1000 + round * 10 + job.rank().0 as u64;
            job.put_signal(inbox.on(next), &[value], arrived.on(next), 1)?;
            arrived.wait_at_least(round)?;
            let previous = (job.rank().index() + job.size() - 1) % job.size();
            assert_eq!(inbox.get(0)?, seed * 1000 + round * 10 + previous as u64, "job {seed}");
            job.barrier()?;
        }
        Ok(seed + job.rank().0 as u64)
    })
}

/// Each rank of a job starts several jobs at once, and continues in its own job meanwhile.
pub fn jobs_in_jobs(job: &Job) -> Result<()> {
    let counter = job.alloc::<u64>(1)?;
    thread::scope(|scope| -> Result<()> {
        let seeds = (1..=3_u64).map(|number| job.rank().0 as u64 * 10 + number);
        let threads: Vec<_> = seeds.map(|seed| (seed, scope.spawn(move || little_job(3, seed)))).collect();
        for _ in 0..1000 {
            job.fetch_add(counter.on(Rank(0)), 1)?;
        }
        for (seed, thread) in threads {
            let values = thread.join().expect("an inner job panicked")?;
            assert_eq!(values, [seed, seed + 1, seed + 2]);
        }
        job.barrier()
    })?;
    assert_eq!(job.load(counter.on(Rank(0)))?, 1000 * job.size() as u64);
    job.barrier()
}

/// One thread may be in two jobs. The library caches which memory a thread accessed last. It must not use this entry
/// for the other job, whose memory has equal addresses.
pub fn one_thread_in_two_jobs(job: &Job) -> Result<()> {
    let outer = job.alloc::<u64>(1)?;
    for round in 1..=20 {
        tasuki::local(job.size(), |inner| {
            let own = inner.alloc::<u64>(1)?;
            if inner.rank() == job.rank() {
                inner.put(own.pointer(), &[round])?;
                job.put(outer.pointer(), &[round + 100])?;
                inner.fetch_add(own.pointer(), 1000)?;
                assert_eq!((own.get(0)?, outer.get(0)?), (round + 1000, round + 100));
            }
            inner.barrier()
        })?;
    }
    job.barrier()
}

/// A job that fails inside another one does not affect the outer job.
pub fn a_failing_job_harms_no_other(job: &Job) -> Result<()> {
    let failed = tasuki::local(3, |inner| {
        if inner.rank() == Rank(1) {
            return Err(tasuki::Error::argument("not today"));
        }
        inner.barrier()
    });
    let error = failed.expect_err("rank 1 of the inner job failed");
    assert!(error.rank() == Some(Rank(1)) && error.to_string().contains("not today"), "{error}");
    job.barrier()
}
