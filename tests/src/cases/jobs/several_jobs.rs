//! Several jobs run in one process at the same time. No job sees the state of another.

use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tasuki::collective::quiesce;
use tasuki::engine::capabilities;
use tasuki::onesided::After;
use tasuki::{ErrorKind, Job, Member, Rank, Request, Result, Slot, Sum, block_on};

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

/// Handles of a job outlive it: each call fails with an error, and dropping them does no harm, in any thread.
pub fn handles_of_an_ended_job_give_errors(job: &Job) -> Result<()> {
    let mut all = tasuki::local(2, |inner| {
        inner.serve_in_background()?;
        let (world, peer) = (inner.world(), inner.rank_after(1));
        let table = inner.alloc::<u64>(4)?;
        let mut receive = world.irecv(vec![0_u64; 1000], peer, Slot(1))?;
        let mut short = world.irecv(vec![0_u64], peer, Slot(2))?;
        let mut context = Context::from_waker(Waker::noop());
        assert!(
            receive.poll_finished(&mut context).is_pending()
                && short.poll_finished(&mut context).is_pending()
        );
        let (plan, chunked) =
            (world.allreduce_init::<u64>(4, Sum)?, world.allreduce_init::<u64>(4, Sum)?.chunked()?);
        let registered = inner.register(vec![1_u64])?;
        inner.barrier()?;
        Ok((inner.clone(), world.dup()?, table, receive, short, plan, chunked, registered))
    })?;
    let (ended, part, table, receive, short, plan, chunked, registered) = &mut all[0];
    let (world, peer, soon) = (ended.world(), Rank(1), Duration::from_millis(1));
    ended.set_timeout(Some(soon));
    let limited = ended.within(soon);
    let outcomes: Vec<(&str, Result<()>)> = vec![
        ("barrier", ended.barrier()),
        ("limited barrier", limited.barrier()),
        ("alloc", ended.alloc::<u64>(4).map(drop)),
        ("alloc_local", ended.alloc_local::<u64>(4).map(drop)),
        ("alloc_on", ended.alloc_on::<u64>(world, 4).map(drop)),
        ("register", ended.register(vec![1_u64]).map(drop)),
        ("put", ended.put(table.on(peer), &[1])),
        ("get", ended.get(table.on(peer), &mut [1])),
        ("iput", ended.iput(table.on(peer), vec![1], After::Nothing).map(drop)),
        ("fetch_add", ended.fetch_add(table.on(peer), 1).map(drop)),
        ("put to a registration", ended.put(registered.pointer(), &[1])),
        ("signal", ended.signal().and_then(|signal| signal.wait_at_least(1))),
        ("raise", ended.signal().and_then(|signal| ended.raise(signal.on(peer), 1))),
        ("reaches", ended.signal().and_then(|signal| signal.reaches(1).wait())),
        ("queue", ended.queue(8).map(drop)),
        ("serve", ended.serve().map(drop)),
        ("serve_in_background", ended.serve_in_background()),
        ("flush_calls", ended.flush_calls()),
        ("quiesce", quiesce(ended.world())),
        ("send", world.send(&1_u64, peer, Slot(0))),
        ("long send", limited.world().send(&[1_u64; 100_000], peer, Slot(0))),
        ("recv", world.recv(&mut [1_u64], peer, Slot(0)).map(drop)),
        ("long recv", limited.world().recv(&mut [1_u64; 1000], peer, Slot::ANY).map(drop)),
        ("isend", world.isend(vec![1_u64], peer, Slot(0)).map(drop)),
        ("irecv", world.irecv(vec![1_u64], peer, Slot(0)).map(drop)),
        ("scope", world.scope(|s| s.send([1_u64], peer, Slot(0)).map(drop))),
        ("allreduce", world.allreduce(&1_u64, Sum).map(drop)),
        ("bcast", part.bcast(&mut [1_u64; 1000], Member(1))),
        ("iallreduce", world.iallreduce(vec![1_u64], Sum).map(drop)),
        ("fuzzy_barrier", world.fuzzy_barrier().map(drop)),
        ("allreduce_init", part.allreduce_init::<u64>(4, Sum).map(drop)),
        ("dup", part.dup().map(drop)),
        ("split", world.split(0).map(drop)),
        ("recreate", part.recreate().map(drop)),
        ("plan", plan.start()),
        ("chunked plan", chunked.start(vec![1; 20])),
        ("wait for a receive", receive.wait_timeout(soon).map(drop)),
        ("await a receive", block_on(short).map(drop)),
        ("threads", ended.threads(2, |_| ended.barrier()).and_then(|all| all.into_iter().collect())),
    ];
    let is_right =
        |outcome: &Result<()>| outcome.as_ref().is_err_and(|error| error.kind() != ErrorKind::TimedOut);
    let wrong: Vec<_> = outcomes.iter().filter(|(_, outcome)| !is_right(outcome)).collect();
    assert!(wrong.is_empty(), "after the end of the job: {wrong:?}");
    ended.abort_on_failure(false);
    assert_eq!(table.get(0)?, 0, "its own memory is there until the last handle is dropped");
    let _ = (ended.memory(), ended.clock(), capabilities(ended), registered.to_vec(), limited.rank());
    thread::spawn(move || drop(all)).join().expect("dropping handles of an ended job does not panic");
    job.barrier()
}

/// The thread that serves a rank, or that tasks have needed, ends with its job.
pub fn an_ended_job_leaves_no_thread(job: &Job) -> Result<()> {
    let count = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    job.barrier()?;
    if job.rank() == 0 {
        let before = count();
        for round in 0..10 {
            tasuki::local(2, |inner| {
                let world = inner.world();
                if round % 2 == 0 {
                    inner.serve_in_background()?;
                }
                let mut receive = world.irecv(vec![0_u64; 1000], inner.rank_after(1), Slot(0))?;
                let is_pending = receive.poll_finished(&mut Context::from_waker(Waker::noop())).is_pending();
                assert!(is_pending, "nobody sends");
                inner.barrier()?;
                thread::sleep(Duration::from_millis(round)); // the thread sleeps after 2 ms
                inner.barrier()
            })?;
        }
        let begin = Instant::now();
        while count() > before && begin.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(count() <= before, "{} threads are left of {before}", count());
    }
    job.barrier()
}
