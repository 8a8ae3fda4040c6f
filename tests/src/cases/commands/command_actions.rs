//! B, D: the actions of commands, and the ranks that run them.

use crate::cases::command_queues::count;
use crate::exchange::{effort, is_simulated, last, next, previous};
use crate::pattern;
use crate::wait_until::{Idle, stay_away};
use std::time::Duration;
use tasuki::engine::{Cause, Combine, RemoteQueue};
use tasuki::{Command, Job, Rank, Result};

/// D16: segments pass through all ranks; a command forwards each segment once it has arrived. Long
/// and short segments are mixed, so copies end in another order than they start. No rank may
/// forward a segment that is not there.
pub fn d16_segments_are_forwarded_in_order(job: &Job) -> Result<()> {
    let lengths = [40_000, 8, 3_000, 100_000, 64, 9_000, 20_000, 1];
    let starts: Vec<usize> =
        lengths.iter().scan(0, |at, len| Some(std::mem::replace(at, *at + len))).collect();
    let data = job.alloc::<u8>(lengths.iter().sum())?;
    let (arrived, me, to) = (job.signal()?, job.rank(), next(job));
    let queue = job.queue(16)?;
    let forwards = me != last(job);
    let segments = lengths.len() as u64;
    for round in 0..effort(job, 100, 3) as u64 {
        if forwards {
            for (at, (&start, &len)) in starts.iter().zip(&lengths).enumerate() {
                let copy = Command::copy(data.on(me).at(start), data.on(to).at(start), len);
                let ready = arrived.reaches(segments * round + at as u64 + 1);
                queue.post(copy.when(ready).then(arrived.on(to).add(1)))?;
            }
        }
        if me == Rank(0) {
            for (at, (&start, &len)) in starts.iter().zip(&lengths).enumerate() {
                let bytes = pattern::bytes(round * segments + at as u64, len);
                job.put(data.on(me).at(start), &bytes)?;
                job.raise(arrived.on(me), 1)?;
            }
        }
        for (at, (&start, &len)) in starts.iter().zip(&lengths).enumerate() {
            arrived.wait_at_least(segments * round + at as u64 + 1)?;
            let mut bytes = vec![0; len];
            job.get(data.on(me).at(start), &mut bytes)?;
            pattern::check(&bytes, round * segments + at as u64, &format!("segment {at} of round {round}"));
        }
        job.barrier()?;
    }
    Ok(())
}

/// Long copies, in which waiting ranks take part, are complete when their effect is visible;
/// several at once, and in both directions.
pub fn long_copies_are_whole(job: &Job) -> Result<()> {
    let sizes = [131_072, 1_000_003, if is_simulated(job) { 200_001 } else { 9_000_001 }];
    let (done, me, to, from) = (job.signal()?, job.rank(), next(job), previous(job));
    let queue = job.queue(8)?;
    let mut all = 0;
    for (round, size) in sizes.into_iter().enumerate() {
        let (source, target) = (job.alloc::<u8>(size)?, job.alloc::<u8>(2 * size)?);
        let seed = |rank: Rank| 10 * round as u64 + rank.0 as u64;
        job.put(source.on(me), &pattern::bytes(seed(me), size))?;
        job.barrier()?;
        queue.post(Command::copy(source.on(me), target.on(to), size).then(done.on(to).add(1)))?;
        queue.post(Command::copy(source.on(to), target.on(me).at(size), size).then(done.on(me).add(1)))?;
        all += 2;
        done.wait_at_least(all)?;
        let bytes = target.to_vec()?;
        pattern::check(&bytes[..size], seed(from), &format!("{size} bytes from rank {from}"));
        pattern::check(&bytes[size..], seed(to), &format!("{size} bytes of rank {to}"));
        job.barrier()?;
    }
    Ok(())
}

/// D18: the owner of a queue computes, the rank that raised the trigger computes, and the others
/// sleep. The command must run.
pub fn d18_somebody_runs_it(job: &Job) -> Result<()> {
    if std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // only the owner can access the queue, and it computes
    }
    let (word, go, met, over) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?, job.signal()?);
    let me = job.rank();
    let queue = job.queue(4)?;
    for round in 1..=20 {
        match me {
            Rank(0) => {
                queue.post(count(&word, Rank(1)).when(go.reaches(round)).then(met.on(Rank(1)).add(1)))?;
                job.barrier()?;
                // Reads its own memory: this call cannot run commands.
                while word.get(0)? < round {
                    stay_away(job);
                }
            }
            Rank(1) => {
                job.barrier()?;
                job.compute(Duration::from_micros(50));
                job.raise(go.on(Rank(0)), 1)?;
                while word.get(0)? < round {
                    stay_away(job);
                }
                job.put(word.on(Rank(0)), &[round])?;
            }
            _ => job.barrier()?,
        }
        job.raise(over.on(last(job)), 1)?;
        if me == last(job) {
            over.wait_at_least(round * job.size() as u64)?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// B3: a command in the queue of a third rank copies between two ranks that make no call meanwhile.
pub fn b3_between_two_who_compute(job: &Job) -> Result<()> {
    let (data, flag, done) = (job.alloc::<u8>(50_000)?, job.alloc::<u64>(1)?, job.signal()?);
    let me = job.rank();
    let queue = job.queue(4)?;
    for round in 1..=effort(job, 30, 3) as u64 {
        if me == Rank(2) {
            job.put(data.on(me), &pattern::bytes(round, 50_000))?;
        }
        job.barrier()?;
        if me == Rank(1) {
            let copy = Command::copy(data.on(Rank(2)), data.on(Rank(0)), 50_000);
            queue.post(copy.then(done.on(me).add(1)))?;
            done.wait_at_least(round)?;
            [0, 2].iter().try_for_each(|&rank| job.put(flag.on(Rank(rank)), &[round]))?;
        } else if me.0 < 3 {
            while flag.get(0)? < round {
                stay_away(job);
            }
        }
        if me == Rank(0) {
            pattern::check(&data.to_vec()?, round, "between two others");
        }
        job.barrier()?;
    }
    Ok(())
}

/// B3: one rank has the queue, only a second rank may run the command, and a third rank raises its trigger. The second
/// rank runs it in a wait, whether it sleeps or not, and whether it has queues or not. Several queues may have such
/// commands at once.
pub fn b3_bound_to_a_third(job: &Job) -> Result<()> {
    let (me, ranks) = (job.rank(), job.size());
    let data = job.alloc::<u64>(ranks * 2)?;
    let (go, done) = (job.signal()?, job.signal()?);
    let queue = if me.0.is_multiple_of(2) { Some(job.queue(8)?) } else { None };
    for round in 1..=effort(job, 100, 4) as u64 {
        data.fill(round * 100 + me.0 as u64)?;
        job.barrier()?;
        let (from, to) = (job.rank_after(1), job.rank_after(2));
        if let Some(queue) = &queue {
            let into = data.on(to).at(me.index() * 2);
            let copy = || Command::copy(data.on(from).at(from.index() * 2 + 1), into, 1);
            queue.post(copy().by_source().when(go.reaches(round)).then(done.on(from).add(1)))?;
            queue.post(copy().by_destination().when(go.reaches(round)).then(done.on(to).add(1)))?;
        }
        job.barrier()?;
        if round.is_multiple_of(3) && round.is_multiple_of(10) {
            job.compute(Duration::from_millis(2)); // until some ranks sleep
        }
        job.raise(go.on(previous(job)), 1)?;
        // The number of commands whose source or destination is this rank.
        let of_mine =
            [job.rank_after(-1), job.rank_after(-2)].iter().filter(|one| one.0.is_multiple_of(2)).count();
        done.wait_at_least(round * of_mine as u64)?;
        job.barrier()?;
        let owner = job.rank_after(-2);
        if owner.0.is_multiple_of(2) {
            let source = job.rank_after(-1);
            assert_eq!(data.get(owner.index() * 2)?, round * 100 + source.0 as u64);
        }
        job.barrier()?;
    }
    Ok(())
}

/// All ranks post commands without order to one queue that combine values into one array. Each
/// command counts once.
pub fn reductions_of_one_queue_all_count(job: &Job) -> Result<()> {
    let (name, done, me) = (job.alloc::<RemoteQueue>(1)?, job.signal()?, job.rank());
    let (queue, root) = (job.queue(256)?, Rank(0));
    job.put(name.on(me), &[queue.remote()])?;
    job.barrier()?;
    let mut theirs = [queue.remote()];
    job.get(name.on(root), &mut theirs)?;
    let (idle, mut all_before) = (Idle::new(job)?, 0);
    for len in [1, 5_000] {
        let (parts, sums) = (job.alloc::<u64>(len)?, job.alloc::<u64>(len)?);
        parts.fill(1)?;
        job.barrier()?;
        let each = effort(job, 200, 10) as u64;
        let reduce = Command::reduce(parts.on(me), sums.on(root), len, Combine::Sum);
        let reduce = reduce.then(done.on(root).add(1));
        for _ in 0..each {
            idle.until(|| match theirs[0].post(job, &reduce) {
                Err(error) if matches!(error.cause(), Cause::Full { .. }) => Ok(false),
                posted => posted.map(|_| true),
            })?;
        }
        let all = each * job.size() as u64;
        all_before += all;
        if me == root {
            done.wait_at_least(all_before)?;
            assert!(sums.to_vec()?.iter().all(|&sum| sum == all), "{len}: {} of {all}", sums.get(0)?);
        }
        job.barrier()?;
    }
    let most = job.alloc::<u64>((1 << 17) + 1)?;
    let too_long = theirs[0].post(job, Command::reduce(most.on(me), most.on(root), most.len(), Combine::Sum));
    assert!(too_long.is_err_and(|error| error.to_string().contains("at most 1048576 bytes, not 1048584")));
    job.barrier()?;
    drop(queue);
    job.barrier()
}

/// Values of every size are combined at the destination.
pub fn reductions_on_arrival(job: &Job) -> Result<()> {
    let all = job.size() as u64;
    for len in [1, 3, 700, 5_000] {
        let (sums, most, bits) = (job.alloc::<f64>(len)?, job.alloc::<i32>(len)?, job.alloc::<u8>(len)?);
        let parts = (job.alloc::<f64>(len)?, job.alloc::<i32>(len)?, job.alloc::<u8>(len)?);
        let (turn, me, to) = (job.signal()?, job.rank(), next(job));
        parts.0.fill(me.0 as f64 + 0.5)?;
        parts.1.fill(if me.0.is_multiple_of(2) { me.0 as i32 } else { -(me.0 as i32) })?;
        parts.2.fill(1 << (me.0 % 8))?;
        let queue = job.queue(8)?;
        // One rank after the other: the commands of a rank raise the trigger of the next.
        let own = |command: Command| command.when(turn.reaches(3));
        let root = Rank(0);
        queue.post(
            own(Command::reduce(parts.0.on(me), sums.on(root), len, Combine::Sum)).then(turn.on(to).add(1)),
        )?;
        queue.post(
            own(Command::reduce(parts.1.on(me), most.on(root), len, Combine::MaxAbs))
                .then(turn.on(to).add(1)),
        )?;
        queue.post(
            own(Command::reduce(parts.2.on(me), bits.on(root), len, Combine::Or)).then(turn.on(to).add(1)),
        )?;
        job.barrier()?;
        if me == root {
            job.raise(turn.on(me), 3)?;
            turn.wait_at_least(6)?;
            let sum = (0..job.size()).map(|rank| rank as f64 + 0.5).sum::<f64>();
            assert!(sums.to_vec()?.iter().all(|&value| value == sum), "{len}");
            let farthest =
                if all == 1 || (all - 1).is_multiple_of(2) { all as i32 - 1 } else { 1 - all as i32 };
            assert!(most.to_vec()?.iter().all(|&value| value == farthest), "{len}");
            let mask = (0..all).fold(0_u8, |mask, rank| mask | 1 << (rank % 8));
            assert!(bits.to_vec()?.iter().all(|&value| value == mask), "{len}");
        }
        job.barrier()?;
    }
    Ok(())
}
