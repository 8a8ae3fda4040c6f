//! G18 for one-sided operations: eight threads of each rank make calls at the same time.

use crate::cases::kinds_of_memory::{Areas, KINDS};
use crate::exchange::{effort, exchange_all, last, next};
use crate::expected_error::check_error;
use crate::pattern;
use crate::random::Random;
use std::collections::BTreeSet;
use tasuki::onesided::{After, AtomicOp, Handle};
use tasuki::{ErrorKind, GlobalPtr, Job, Rank, Request, Result, Signal};

const THREADS: usize = 8;
const LEN: usize = 2000;

/// Runs `body` on eight threads of this rank. If a thread panics or returns an error, the rank
/// fails.
fn on_threads(job: &Job, body: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    job.threads(THREADS, body)?.into_iter().collect()
}

/// Eight threads mix puts, gets, copies, atomics, requests and completions, and each thread gets
/// the right bytes.
pub fn g18_eight_threads_move_bytes(job: &Job) -> Result<()> {
    let areas = Areas::new(job, THREADS * LEN)?;
    let counter = Areas::new(job, 8)?;
    let rounds = effort(job, 300, 5);
    on_threads(job, |thread| {
        let mut random = Random::seed(thread as u64 * 100 + job.rank().0 as u64);
        for round in 0..rounds as u64 {
            let kind = KINDS[random.below(2) as usize];
            let place = areas.on(kind, next(job)).at(thread * LEN);
            let seed = round * 8 + thread as u64;
            let bytes = pattern::bytes(seed, LEN);
            match random.below(4) {
                0 => job.put(place, &bytes)?,
                1 => drop(job.iput(place, bytes, After::Nothing)?.wait()?),
                2 => job.complete(job.iput(place, bytes, After::All)?.handle())?,
                _ => {
                    let near = job.alloc_local::<u8>(LEN)?;
                    near.write(0, &bytes)?;
                    job.complete(job.copy(near.pointer(), place, LEN, After::Nothing)?.handle())?;
                }
            }
            let mut found = vec![0; LEN];
            match random.below(2) {
                0 => job.get(place, &mut found)?,
                _ => found = job.iget(place, found, After::Nothing)?.wait()?,
            }
            pattern::check(&found, seed, &format!("thread {thread}, round {round}, {kind:?}"));
            job.fetch_add(counter.on(kind, last(job)).cast::<u64>(), 1)?;
        }
        Ok(())
    })?;
    job.barrier()?;
    let counted = |kind| job.get_value::<u64>(counter.on(kind, last(job)).cast());
    let counted = counted(KINDS[0])? + counted(KINDS[1])?;
    assert_eq!(counted, (rounds * THREADS * job.size()) as u64);
    job.barrier()
}

/// Each of eight threads waits for its own signal, which the thread with its number on the previous
/// rank raises.
pub fn g18_eight_threads_wait(job: &Job) -> Result<()> {
    let signals: Vec<Signal<'_>> = (0..THREADS).map(|_| job.signal()).collect::<Result<_>>()?;
    let inbox = job.alloc::<u8>(THREADS * LEN)?;
    let (turns, back) = (effort(job, 500, 5) as u64, (0..THREADS).map(|_| job.signal()));
    let back: Vec<Signal<'_>> = back.collect::<Result<_>>()?;
    let (to, from) = (next(job), crate::exchange::previous(job));
    on_threads(job, |thread| {
        for turn in 1..=turns {
            let seed = turn * 8 + thread as u64;
            let place = inbox.on(to).at(thread * LEN);
            job.put_signal(place, &pattern::bytes(seed, LEN), signals[thread].on(to), 1)?;
            signals[thread].wait_at_least(turn)?;
            let mut found = vec![0; LEN];
            inbox.read(thread * LEN, &mut found)?;
            pattern::check(&found, seed, &format!("thread {thread}, turn {turn}"));
            job.raise(back[thread].on(from), 1)?;
            back[thread].wait_at_least(turn)?;
        }
        Ok(())
    })
}

/// Eight threads order operations after their own handles while the other threads complete theirs.
pub fn g18_eight_threads_order(job: &Job) -> Result<()> {
    let words = job.register(vec![0_u64; THREADS])?;
    let far: GlobalPtr<u64> = exchange_all(job, words.pointer())?[next(job).index()];
    let (turns, steps) = (effort(job, 100, 3), 10);
    on_threads(job, |thread| {
        let line = job.alloc_local::<u64>(steps + 1)?;
        for turn in 0..turns as u64 {
            line.fill(u64::MAX)?;
            let (mut end, add) = (Handle::NULL, AtomicOp::Add(1));
            for step in 0..steps {
                let result = line.pointer().at(step);
                end = job.iatomic(far.at(thread), add, result, After::Exact(end))?.handle();
                end = job.copy(result, line.pointer().at(steps), 1, After::Exact(end))?.handle();
            }
            job.complete(end)?;
            let first = turn * steps as u64;
            let mut expected: Vec<u64> = (first..first + steps as u64).collect();
            expected.push(first + steps as u64 - 1);
            assert_eq!(line.to_vec()?, expected, "thread {thread}, turn {turn}");
        }
        Ok(())
    })?;
    job.barrier()?;
    assert!(words.to_vec().iter().all(|&word| word == (turns * steps) as u64));
    job.barrier()
}

/// Every operation of any thread has a number of its own, even if it ends at once, because handles
/// identify operations.
pub fn g18_eight_threads_number_their_own(job: &Job) -> Result<()> {
    let each = effort(job, 20_000, 20);
    let numbers = job.threads(THREADS, |_| -> Result<Vec<u64>> {
        let pair = job.alloc_local::<u64>(2)?;
        let copy =
            || job.copy(pair.pointer(), pair.pointer().at(1), 1, After::Nothing).map(|copy| copy.handle());
        let numbers: Result<_> = (0..each).map(|_| copy().map(Handle::number)).collect();
        job.complete(copy()?)?;
        numbers
    })?;
    let numbers: Vec<u64> = numbers.into_iter().collect::<Result<Vec<_>>>()?.concat();
    let different = BTreeSet::from_iter(&numbers).len();
    assert_eq!(different, each * THREADS, "two operations have one number");
    job.barrier()
}

/// Two threads of a rank make collective calls at once. The other ranks could not know their order,
/// so one call is refused. The other one succeeds, and the job continues.
pub fn g18_one_collective_call_at_a_time(job: &Job) -> Result<()> {
    let start = job.signal()?;
    for round in 1..=effort(job, 50, 2) as u64 {
        if job.rank() == Rank(0) {
            let meet = |_| match job.barrier() {
                Ok(()) => Ok(1),
                Err(refused) => {
                    check_error(job, &refused, ErrorKind::Misuse, &["another thread of this rank"]);
                    // The other ranks come only now, so the accepted call could not end before the
                    // refusal.
                    job.ranks().skip(1).try_for_each(|rank| job.raise(start.on(rank), 1)).map(|()| 0)
                }
            };
            let through: Result<usize> = job.threads(2, meet)?.into_iter().sum();
            assert_eq!(through?, 1, "exactly one of two calls succeeds");
        } else {
            start.wait_at_least(round)?;
            job.barrier()?;
        }
    }
    job.barrier()
}
