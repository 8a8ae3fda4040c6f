//! B5 to B9, B11: the order of copies, expressed with commands: a copy after a stream of copies,
//! after one command, after all commands, and copies one after the other.

use crate::cases::command_queues::{count, post};
use crate::exchange::{effort, last, next};
use crate::pattern;
use crate::wait_until::Idle;
use tasuki::engine::Cause;
use tasuki::{Command, Job, Queue, Rank, Result};

/// The length of a copy that takes longer than a rank holds the lease of its queue. In real memory, several ranks share
/// such a copy.
fn slow(job: &Job) -> usize {
    effort(job, 300_000, 20_000)
}

/// B5, prefix: a command that waits for a place in a stream starts after everything that fired in
/// the stream before that place, although later commands have ended long ago. B5, exact: a command
/// that waits for one other command starts after it, even if others have not fired.
pub fn b5_after_a_stream_or_after_one(job: &Job) -> Result<()> {
    let len = slow(job);
    let (data, ends) = (job.alloc::<u8>(2 * len)?, job.alloc::<u8>(3)?);
    let (stream, alone, gate, done) = (job.signal()?, job.signal()?, job.signal()?, job.signal()?);
    let (me, queue) = (job.rank(), job.queue(16)?);
    for round in 1..=effort(job, 50, 3) as u64 {
        let bytes = pattern::bytes(round, len);
        data.write(0, &bytes)?;
        ends.fill(0)?;
        job.barrier()?;
        let (from, near) = (data.on(last(job)), data.on(me).at(len));
        // The last byte of the copy, which the ordered commands read.
        let end = near.at(len - 1);
        queue.post_many(&[
            Command::copy(end, ends.on(me), 1).when(stream.reaches(3 * round - 2)).then(done.on(me).add(1)),
            Command::copy(from, near, len).then(stream.on(me).add(1)),
            Command::nothing().then(stream.on(me).add(1)),
            Command::copy(end, ends.on(me).at(1), 1).when(gate.reaches(round)).then(stream.on(me).add(1)),
            Command::put(ends.on(me).at(2), &[round as u8]).then(alone.on(me).add(1)),
        ])?;
        queue.post(Command::nothing().when(alone.reaches(round)).then(done.on(me).add(1)))?;
        done.wait_at_least(2 * round)?;
        assert_eq!(ends.to_vec()?, [bytes[len - 1], 0, round as u8], "round {round}");
        pattern::check(&data.to_vec()?[len..], round, "the slow copy");
        job.raise(gate.on(me), 1)?;
        Idle::new(job)?.until(|| Ok(ends.get(1)? == bytes[len - 1]))?;
        job.barrier()?;
    }
    Ok(())
}

/// B6: copies of every length in two queues raise one signal. A command that waits for all of them
/// finds all their bytes. B8: a rank that has waited for the last command of a stream has the data
/// of all before it.
pub fn b6_b8_after_all_that_was_posted(job: &Job) -> Result<()> {
    let lengths = [slow(job), 9_000, 8, 20_000, 64, 1];
    let total: usize = lengths.iter().sum();
    let (data, copied) = (job.alloc::<u8>(2 * total)?, job.alloc::<u8>(total)?);
    let (all, stream, done) = (job.signal()?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queues = [job.queue(8)?, job.queue(8)?];
    done.wait_at_least(0)?; // no copy was posted yet
    for round in 1..=effort(job, 50, 3) as u64 {
        data.write(0, &pattern::bytes(round, total))?;
        job.barrier()?;
        let after = Command::copy(data.on(me).at(total), copied.on(me), total);
        queues[0].post(after.when(all.reaches(6 * round)).then(done.on(me).add(1)))?;
        let mut start = 0;
        for (at, len) in lengths.into_iter().enumerate() {
            let copy = Command::copy(data.on(to).at(start), data.on(me).at(total + start), len);
            let copy = copy.then(all.on(me).add(1));
            queues[at % 2].post(if at % 2 == 0 { copy.then(stream.on(me).add(1)) } else { copy })?;
            start += len;
        }
        // The first copy is the slow one.
        stream.wait_at_least(3 * round - 2)?;
        let arrived = data.to_vec()?;
        assert!(
            arrived[total..][..lengths[0]] == arrived[..lengths[0]],
            "the first of a stream, round {round}"
        );
        done.wait_at_least(round)?;
        assert_eq!(all.value(), 6 * round);
        pattern::check(&copied.to_vec()?, round, "after all");
        for queue in &queues {
            let stats = queue.stats();
            assert_eq!((stats.unread, stats.waiting, stats.failed), (0, 0, 0));
        }
        job.barrier()?;
    }
    Ok(())
}

/// B7: commands of a repeating queue give it the credit for the next command, so each runs after
/// the one before. Of many copies to one place the last must remain, although each copy is slower
/// than the next.
pub fn b7_copies_in_a_row(job: &Job) -> Result<()> {
    let (many, len) = (20, slow(job));
    let (data, place) = (job.alloc::<u8>(len)?, job.alloc::<u8>(len)?);
    let (me, to) = (job.rank(), next(job));
    let credit = job.signal()?;
    let queue = Queue::session(job, many + 1, &credit)?;
    for round in 0..effort(job, 20, 2) as u64 {
        let bytes = pattern::bytes(round, len);
        data.write(0, &bytes)?;
        job.barrier()?;
        for at in 0..many {
            let part = len / (at + 1);
            let copy = Command::copy(data.on(me).at(len - part), place.on(to), part);
            queue.post(copy.then(credit.on(me).add(1)))?;
        }
        let before = round * (many as u64 + 1);
        job.raise(credit.on(me), 1)?;
        credit.wait_at_least(before + many as u64 + 1)?;
        job.barrier()?;
        let part = len / many;
        assert_eq!(place.to_vec()?[..part], bytes[len - part..], "the bytes of the last copy remain");
        job.barrier()?;
        // The last command gave credit for one more; a command that does nothing uses it.
        queue.post(Command::nothing())?;
    }
    Ok(())
}

/// B9: a million copies; the rank waits only after all are posted. A queue of 64 commands makes the
/// poster wait for room, and nothing is lost.
pub fn b9_a_million_copies_by_commands(job: &Job) -> Result<()> {
    let (copies, places) = (effort(job, 1_000_000, 600), 4096);
    let (from, into) = (job.alloc::<u64>(places)?, job.alloc::<u64>(places)?);
    let (done, me, to, idle) = (job.signal()?, job.rank(), next(job), Idle::new(job)?);
    from.write(0, &(0..places as u64).map(|at| at << 8 | me.0 as u64).collect::<Vec<_>>())?;
    let queue = job.queue(64)?;
    assert_eq!(queue.capacity(), 64);
    for number in 0..copies {
        let at = number % places;
        let copy = Command::copy(from.on(me).at(at), into.on(to).at(at), 1);
        post(&queue, &idle, &copy.then(done.on(me).add(1)))?;
        if number % 64 == 0 {
            let stats = queue.stats();
            assert!(stats.unread + stats.in_flight <= 128, "{stats:?}");
        }
    }
    done.wait_at_least(copies as u64)?;
    job.barrier()?;
    assert_eq!(done.value(), copies as u64);
    let previous = crate::exchange::previous(job).0 as u64;
    for (at, word) in into.to_vec()?.into_iter().enumerate().take(copies) {
        assert_eq!(word, (at as u64) << 8 | previous);
    }
    job.barrier()
}

/// B11: commands that should follow a failed copy do not start, on any rank, and fail with its
/// cause. Independent commands still run, also later ones in the queue.
pub fn b11_followers_of_a_failed_copy(job: &Job) -> Result<()> {
    let (word, free) = (job.alloc::<u64>(4)?, job.signal()?);
    let (me, to, root) = (job.rank(), next(job), Rank(0));
    let queue = job.queue(16)?;
    let (bad, second, third) = (job.signal()?, job.signal()?, job.signal()?);
    word.set(0, 5)?;
    queue.post(count(&word, me).when(bad.reaches(1)).then(second.on(me).add(1)))?;
    queue.post(
        Command::copy(word.on(me), word.on(to).at(1), 1).when(second.reaches(1)).then(third.on(to).add(1)),
    )?;
    job.barrier()?;
    if me == root {
        // Copies with a wrong source; the rank that runs a copy detects the failure.
        let nowhere = word.on(to).at(1 << 30);
        let fails = Command::copy(nowhere, word.on(me), slow(job));
        let twice = job.ranks().map(|rank| fails.clone().then(bad.on(rank).add(1)));
        twice.into_iter().try_for_each(|command| queue.post(command).map(drop))?;
    }
    queue.post(Command::put(word.on(to).at(3), &[7_u64]).then(free.on(to).add(1)))?;
    free.wait_at_least(1)?; // independent of the failed copy
    for signal in [&bad, &second, &third, &second] {
        let failed = signal.wait_at_least(1).expect_err("the commands before it have failed");
        let Cause::Poisoned { cause, .. } = failed.cause() else { panic!("{failed}") };
        let range = matches!(**cause, Cause::OutOfRange { .. } | Cause::Stale { .. } | Cause::NullAddress);
        assert!(range && failed.to_string().contains("failed on rank"), "{failed}");
    }
    Idle::new(job)?.until(|| Ok(queue.failure().is_some()))?;
    job.barrier()?;
    assert_eq!(word.to_vec()?, [5, 0, 0, 7], "a follower has started");
    queue.post(count(&word, me).then(free.on(me).add(1)))?;
    free.wait_at_least(2)?;
    assert_eq!(job.load(word.pointer())?, 6);
    job.barrier()
}
