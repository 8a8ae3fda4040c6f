//! B, D: command queues: when commands fire, in which order their effects happen, who runs them.

use crate::exchange::{effort, is_simulated, last, next, previous, tell_all};
use crate::patience::{Idle, stay_away};
use crate::pattern;
use std::time::Duration;
use tasuki::{Array, Cause, Change, Combine, Command, Job, Queue, Rank, RemoteQueue, Result, Signal};

/// Posts, waiting for room where there is none: full is an ordinary answer.
fn post(queue: &Queue, idle: &Idle<'_>, command: &Command) -> Result<()> {
    loop {
        match queue.post(command) {
            Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                idle.serve(Duration::from_micros(10))?
            }
            other => return other.map(drop),
        }
    }
}

/// A command that adds one to a word.
fn count(word: &Array<u64>, rank: Rank) -> Command {
    Command::change(word.on(rank), Change::Add(1))
}

/// A command whose trigger is met when it is posted fires; one that is posted before, too; each once.
pub fn d4_triggers_that_are_met_fire(job: &Job) -> Result<()> {
    let (word, go, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(8)?;
    job.raise(go.on(me), 5)?;
    go.wait_at_least(5)?;
    for threshold in [4, 5] {
        queue.post(&count(&word, to).when(go.reaches(threshold)).then(done.on(me).add(1)))?;
    }
    queue.post(&count(&word, to).then(done.on(me).add(1)))?;
    done.wait_at_least(3)?;
    queue.post(&count(&word, to).when(go.reaches(6)).then(done.on(me).add(1)))?;
    let early = done.wait_timeout(4, Duration::from_millis(2));
    assert!(early.is_err_and(|error| error.is_timeout()));
    job.raise(go.on(me), 1)?;
    done.wait_at_least(4)?;
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, 4);
    Ok(())
}

/// Lower thresholds fire first, equal ones in the order of their posts. Who fired when is seen by the stream that the
/// commands are.
pub fn d5_lower_thresholds_fire_first(job: &Job) -> Result<()> {
    const THRESHOLDS: [u64; 6] = [3, 1, 2, 1, 3, 2];
    const ORDER: [usize; 6] = [1, 3, 2, 5, 0, 4];
    let (turn, order) = (job.alloc::<u64>(1)?, job.alloc::<u64>(THRESHOLDS.len())?);
    let (go, done, me) = (job.signal()?, job.signal()?, job.rank());
    let queue = job.queue(16)?;
    for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
        let draw = Command::fetch(turn.pointer(), Change::Add(1), order.on(me).at(at));
        queue.post(&draw.when(go.reaches(threshold)).then(done.on(me).add(1)))?;
    }
    if is_simulated(job) {
        // Atomics under way overtake each other there: one threshold at a time.
        for threshold in 1..=3 {
            job.raise(go.on(me), 1)?;
            done.wait_at_least(2 * threshold)?;
            let earlier = |at: &usize| THRESHOLDS[*at] <= threshold;
            let drawn = (0..6).filter(earlier).map(|at| order.get(at)).collect::<Result<Vec<u64>>>()?;
            assert!(drawn.iter().all(|&turn| turn < 2 * threshold), "{drawn:?}");
        }
    } else {
        job.raise(go.on(me), 3)?;
        done.wait_at_least(6)?;
        for (turn, at) in ORDER.into_iter().enumerate() {
            assert_eq!(order.get(at)?, turn as u64, "command {at}");
        }
    }
    job.barrier()
}

/// What a command moves is read when it fires, not when it is posted; what it carries, when it is made.
pub fn d6_sources_are_read_when_it_fires(job: &Job) -> Result<()> {
    let (from, to) = (job.alloc::<u64>(2)?, job.alloc::<u64>(2)?);
    let (go, done, me) = (job.signal()?, job.signal()?, job.rank());
    let queue = job.queue(8)?;
    from.fill(1)?;
    let mut value = 1_u64;
    let when = |command: Command| command.when(go.reaches(1)).then(done.on(me).add(1));
    queue.post(&when(Command::copy(from.pointer(), to.on(next(job)), 1)))?;
    queue.post(&when(Command::put(to.on(next(job)).at(1), &[value])))?;
    value += 1;
    from.fill(value)?;
    job.raise(go.on(me), 1)?;
    done.wait_at_least(2)?;
    job.barrier()?;
    assert_eq!(to.to_vec()?, [2, 1]);
    job.barrier()
}

/// A failed command poisons its signal with its cause; what was to follow fails with that cause, on every rank that the
/// chain goes through, and nobody waits for ever.
pub fn d17_failures_travel(job: &Job) -> Result<()> {
    let (word, step) = (job.alloc::<u64>(1)?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(8)?;
    if me == Rank(0) {
        let outside = word.on(to).at(1 << 30);
        queue.post(&Command::copy(outside, word.pointer(), 1).then(step.on(to).add(1)))?;
    } else {
        queue.post(&count(&word, to).when(step.reaches(1)).then(step.on(to).add(1)))?;
    }
    let failed = step.wait_at_least(1).expect_err("its signal is poisoned");
    let Cause::Poisoned { origin, cause } = failed.cause() else { panic!("{failed}") };
    assert!(*origin == Rank(0) || !is_simulated(job), "{failed}");
    assert!(
        matches!(**cause, Cause::OutOfRange { .. } | Cause::Stale { .. } | Cause::NullAddress),
        "{failed}"
    );
    Idle::new(job)?.until(|| Ok(queue.failure().is_some()))?;
    assert!(queue.failure().is_some_and(|failure| failure.to_string().contains("failed on rank")));
    assert_eq!(queue.standing().failed, 1);
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, 0);
    // What waits for a poisoned signal fails at once, whenever it is posted.
    let after = job.signal()?;
    queue.post(&count(&word, me).when(step.reaches(9)).then(after.on(me).add(1)))?;
    assert!(after.wait_at_least(1).is_err());
    job.barrier()
}

/// A command that is taken back never fires; one that has fired cannot be taken back.
pub fn d8_commands_are_taken_back(job: &Job) -> Result<()> {
    let (word, go, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(8)?;
    for round in 0..effort(job, 200, 10) as u64 {
        let add = || count(&word, to).when(go.reaches(round + 1)).then(done.on(me).add(1));
        let first = queue.post(&add())?;
        let second = queue.post(&add())?;
        assert!(queue.cancel(first)?, "it waits");
        assert!(!queue.cancel(first)?, "it is not there any more");
        job.raise(go.on(me), 1)?;
        done.wait_at_least(round + 1)?;
        assert!(!queue.cancel(second)?, "it has fired");
    }
    // More than wait at once: those behind are taken back before they are read.
    let unmet = || count(&word, to).when(go.reaches(1 << 40));
    let posted = (0..16).map(|_| queue.post(&unmet())).collect::<Result<Vec<_>>>()?;
    for one in posted.into_iter().rev() {
        assert!(queue.cancel(one)?);
    }
    queue.post(&count(&word, to).then(done.on(me).add(1)))?;
    let rounds = effort(job, 200, 10) as u64;
    done.wait_at_least(rounds + 1)?;
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, rounds + 1);
    let other = job.queue(1)?;
    let posted = other.post(&unmet())?;
    assert!(queue.cancel(posted).is_err_and(|error| error.to_string().contains("another queue")));
    assert!(other.cancel(posted)?);
    Ok(())
}

/// A command is taken back while others raise its signal: it fires once or never, as the answer says.
pub fn d8_takes_back_while_it_fires(job: &Job) -> Result<()> {
    let (word, go, done, met) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?, job.signal()?);
    let (me, to, from) = (job.rank(), next(job), previous(job));
    let queue = job.queue(8)?;
    let mut fired = 0;
    for round in 1..=effort(job, 500, 20) as u64 {
        let posted = queue.post(&count(&word, me).when(go.reaches(round)).then(done.on(me).add(1)))?;
        job.raise(met.on(from), 1)?;
        met.wait_at_least(round)?;
        job.raise(go.on(to), 1)?;
        fired += u64::from(!queue.cancel(posted)?);
        done.wait_at_least(fired)?;
        assert_eq!(job.load(word.pointer())?, fired);
        go.wait_at_least(round)?;
    }
    job.barrier()
}

/// An effect of 15 adds 15, a second effect is one, and signals make signals.
pub fn d9_effects_and_chains(job: &Job) -> Result<()> {
    let signals = (0..5).map(|_| job.signal()).collect::<Result<Vec<Signal<'_>>>>()?;
    let (extra, me) = (job.signal()?, job.rank());
    let queue = job.queue(16)?;
    for pair in signals.windows(2) {
        let step = Command::nothing().when(pair[0].reaches(15));
        queue.post(&step.then(pair[1].on(me).add(15)).then(extra.on(next(job)).add(7)))?;
    }
    job.barrier()?;
    job.raise(signals[0].on(me), 14)?;
    assert!(extra.wait_timeout(1, Duration::from_millis(1)).is_err());
    job.barrier()?;
    job.raise(signals[0].on(me), 1)?;
    signals[4].wait_at_least(15)?;
    extra.wait_at_least(28)?;
    assert_eq!(signals[4].value(), 15);
    job.barrier()
}

/// A join of as many as there are ranks, in whatever order they come, again and again.
pub fn d10_joins(job: &Job) -> Result<()> {
    let (word, joined, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let me = job.rank();
    let queue = job.queue(4)?;
    let all = job.size() as u64;
    for round in 1..=effort(job, 200, 10) as u64 {
        queue.post(&count(&word, me).when(joined.reaches(all * round)).then(done.on(me).add(1)))?;
        for rank in job.ranks() {
            job.raise(joined.on(rank), 1)?;
        }
        done.wait_at_least(round)?;
        assert!(job.load(word.pointer())? == round && joined.value() >= all * round);
        job.barrier()?;
    }
    Ok(())
}

/// A session queue runs as many commands as it was given credit for, in their order, and keeps what came early; it
/// begins anew as often as credits come, and nothing is reset.
pub fn d11_sessions_begin_anew(job: &Job) -> Result<()> {
    let words = job.alloc::<u64>(3)?;
    let (credit, done, me) = (job.signal()?, job.signal()?, job.rank());
    let queue = job.session_queue(8, &credit)?;
    job.raise(credit.on(me), 1)?;
    for at in 0..3 {
        let add = Command::change(words.on(me).at(at), Change::Add(1));
        queue.post(&if at == 0 { add } else { add.then(done.on(me).add(1)) })?;
        if at == 0 && !is_simulated(job) {
            assert!(queue.repeat().is_err(), "it has begun");
        }
    }
    job.raise(credit.on(me), 2)?;
    done.wait_at_least(2)?;
    assert_eq!(words.to_vec()?, [1, 1, 1]);
    let again = job.signal()?;
    let cycle = job.session_queue(8, &again)?;
    for at in 0..3 {
        let add = Command::change(words.on(me).at(at), Change::Add(1));
        cycle.post(&if at == 2 { add.then(done.on(me).add(1)) } else { add })?;
    }
    cycle.repeat()?;
    assert!(cycle.post(&Command::nothing()).is_err());
    let rounds = effort(job, 20_000, 30) as u64;
    for round in 1..=rounds {
        job.raise(again.on(me), 3)?;
        done.wait_at_least(2 + round)?;
    }
    job.raise(again.on(me), 1)?;
    let idle = Idle::new(job)?;
    idle.until(|| Ok(words.get(0)? == rounds + 2))?;
    idle.serve(Duration::from_micros(200))?;
    assert_eq!(words.to_vec()?, [rounds + 2, rounds + 1, rounds + 1]);
    job.barrier()
}

/// Thresholds go on across the wrap of the counter.
pub fn d11_thresholds_wrap(job: &Job) -> Result<()> {
    let (go, done, me) = (job.signal()?, job.signal()?, job.rank());
    let queue = job.queue(8)?;
    job.raise(go.on(me), 1 << 62)?;
    job.raise(go.on(me), 1 << 62)?;
    job.raise(go.on(me), (1 << 62) - 1)?;
    job.raise(go.on(me), (1 << 62) - 1)?;
    go.wait_at_least(u64::MAX - 1)?;
    for threshold in [2, u64::MAX, 0, 1] {
        queue.post(&Command::nothing().when(go.reaches(threshold)).then(done.on(me).add(1)))?;
    }
    for fired in 1..=4 {
        let early = done.wait_timeout(fired, Duration::from_micros(300));
        assert!(early.is_err_and(|error| error.is_timeout()), "{fired}");
        job.raise(go.on(me), 1)?;
        done.wait_at_least(fired)?;
    }
    job.barrier()
}

/// A full queue says so, loses nothing and takes more when there is room again.
pub fn d13_full_is_an_ordinary_answer(job: &Job) -> Result<()> {
    let (word, go, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let me = job.rank();
    let queue = job.queue(8)?;
    let mut taken = 0;
    for round in 1..=effort(job, 50, 3) as u64 {
        let add = count(&word, me).when(go.reaches(round)).then(done.on(me).add(1));
        let refused = loop {
            match queue.post(&add) {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused.cause(), Cause::Full { capacity: 8, .. }), "{refused}");
        assert!(refused.to_string().contains("the command queue is full"), "{refused}");
        assert!(taken >= 8 * round, "{taken} in round {round}");
        let two = [add.clone(), add];
        assert!(queue.post_many(&two).is_err(), "all or none");
        job.raise(go.on(me), 1)?;
        done.wait_at_least(taken)?;
    }
    assert_eq!(job.load(word.pointer())?, taken);
    Ok(())
}

/// Threads of all ranks post to all queues at once; nothing is lost or done twice.
pub fn d14_everybody_posts_at_once(job: &Job) -> Result<()> {
    let (word, done) = (job.alloc::<u64>(1)?, job.signal()?);
    let queue = job.queue(64)?;
    let queues: Vec<RemoteQueue> = tell_all(job, queue.remote())?;
    let (threads, each) = (effort(job, 4, 2), effort(job, 1_000, 5));
    let idles = (0..threads).map(|_| Idle::new(job)).collect::<Result<Vec<_>>>()?;
    let posted = job.threads(threads, |thread| {
        for at in 0..each * queues.len() {
            let to = (at + thread) % queues.len();
            let owner = Rank(to as u32);
            let add = count(&word, owner).then(done.on(owner).add(1));
            let many = [add.clone(), add];
            while let Err(error) = job.post_many(queues[to], &many) {
                assert!(matches!(error.cause(), Cause::Full { .. }), "{error}");
                idles[thread].serve(Duration::from_micros(10))?;
            }
        }
        Ok(())
    })?;
    posted.into_iter().collect::<Result<()>>()?;
    let all = (2 * threads * each * queues.len()) as u64;
    done.wait_at_least(all)?;
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, all);
    assert_eq!((queue.standing().unread, queue.standing().failed), (0, 0));
    job.barrier()
}

/// Segments pass through all ranks, each forwarded by a command when it has arrived: long and short ones mixed, so that
/// they end in another order than they began. Nobody forwards what is not there.
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
                queue.post(&copy.when(ready).then(arrived.on(to).add(1)))?;
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

/// Long copies, which ranks that wait take part in, are whole when their effect is seen; several at once, and in both
/// directions.
pub fn long_copies_are_whole(job: &Job) -> Result<()> {
    let sizes = [131_072, 1_000_003, if is_simulated(job) { 200_001 } else { 9_000_001 }];
    let (done, me, to, from) = (job.signal()?, job.rank(), next(job), previous(job));
    let queue = job.queue(8)?;
    let mut all = 0;
    for (round, size) in sizes.into_iter().enumerate() {
        let (source, target) = (job.alloc::<u8>(size)?, job.alloc::<u8>(2 * size)?);
        let seed = |rank: Rank| 10 * round as u64 + u64::from(rank.0);
        job.put(source.on(me), &pattern::bytes(seed(me), size))?;
        job.barrier()?;
        queue.post(&Command::copy(source.on(me), target.on(to), size).then(done.on(to).add(1)))?;
        queue.post(&Command::copy(source.on(to), target.on(me).at(size), size).then(done.on(me).add(1)))?;
        all += 2;
        done.wait_at_least(all)?;
        let bytes = target.to_vec()?;
        pattern::check(&bytes[..size], seed(from), &format!("{size} bytes from rank {from}"));
        pattern::check(&bytes[size..], seed(to), &format!("{size} bytes of rank {to}"));
        job.barrier()?;
    }
    Ok(())
}

/// The owner of a queue computes, who raised its signal computes on, others sleep: the command runs.
pub fn d18_somebody_runs_it(job: &Job) -> Result<()> {
    if std::env::var_os("TASUKI_DIRECT").is_some() {
        return Ok(()); // nobody reaches the queue but its owner, who computes
    }
    let (word, go, met, over) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?, job.signal()?);
    let me = job.rank();
    let queue = job.queue(4)?;
    for round in 1..=20 {
        match me {
            Rank(0) => {
                queue.post(&count(&word, Rank(1)).when(go.reaches(round)).then(met.on(Rank(1)).add(1)))?;
                job.barrier()?;
                // Its own memory: no call that could run anything.
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

/// A command whose trigger is unmet holds up nobody behind it.
pub fn b10_independent_commands_do_not_wait(job: &Job) -> Result<()> {
    let (word, never, done, me) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?, job.rank());
    let queue = job.queue(4)?;
    let waits = queue.post(&count(&word, me).when(never.reaches(1)))?;
    for round in 1..=effort(job, 1_000, 20) as u64 {
        queue.post(&count(&word, me).then(done.on(me).add(1)))?;
        done.wait_at_least(round)?;
    }
    assert!(queue.cancel(waits)?);
    job.barrier()
}

/// Values are combined on arrival, of every size, short and long.
pub fn reductions_on_arrival(job: &Job) -> Result<()> {
    let all = job.size() as u64;
    for len in [1, 3, 700, 5_000] {
        let (sums, most, bits) = (job.alloc::<f64>(len)?, job.alloc::<i32>(len)?, job.alloc::<u8>(len)?);
        let parts = (job.alloc::<f64>(len)?, job.alloc::<i32>(len)?, job.alloc::<u8>(len)?);
        let (turn, me, to) = (job.signal()?, job.rank(), next(job));
        parts.0.fill(f64::from(me.0) + 0.5)?;
        parts.1.fill(if me.0.is_multiple_of(2) { me.0 as i32 } else { -(me.0 as i32) })?;
        parts.2.fill(1 << (me.0 % 8))?;
        let queue = job.queue(8)?;
        // One rank after the other, each when the one before it has.
        let own = |command: Command| command.when(turn.reaches(3));
        let root = Rank(0);
        queue.post(
            &own(Command::reduce(parts.0.on(me), sums.on(root), len, Combine::Sum)).then(turn.on(to).add(1)),
        )?;
        queue.post(
            &own(Command::reduce(parts.1.on(me), most.on(root), len, Combine::MaxAbs))
                .then(turn.on(to).add(1)),
        )?;
        queue.post(
            &own(Command::reduce(parts.2.on(me), bits.on(root), len, Combine::Or)).then(turn.on(to).add(1)),
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

/// What has not fired when its queue is dropped poisons its signals, and what others post to it then is an error.
pub fn dropped_queues_tell(job: &Job) -> Result<()> {
    let (word, go, told) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(4)?;
    let names: Vec<RemoteQueue> = tell_all(job, queue.remote())?;
    for _ in 0..6 {
        queue.post(&count(&word, me).when(go.reaches(1)).then(told.on(to).add(1)))?;
    }
    job.barrier()?;
    drop(queue);
    let failed = told.wait_at_least(1).expect_err("poisoned");
    assert!(failed.to_string().contains("its queue was dropped before it had fired"), "{failed}");
    job.barrier()?;
    let refused = job.post(names[to.index()], &Command::nothing()).expect_err("it is gone");
    assert!(matches!(refused.cause(), Cause::Stale { .. } | Cause::QueueDropped), "{refused}");
    job.raise(go.on(me), 1)?;
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, 0);
    Ok(())
}

/// Commands that are wrong in themselves are refused when they are posted, and change nothing.
pub fn wrong_commands_are_refused(job: &Job) -> Result<()> {
    let (word, signal, me) = (job.alloc::<u64>(16)?, job.signal()?, job.rank());
    let queue = job.queue(4)?;
    let session = job.session_queue(4, &signal)?;
    let effect = signal.on(me).add(1);
    let nowhere = Rank(job.size() as u32);
    let wrong = [
        (&queue, Command::put(word.pointer(), &[0_u64; 7]), "48 bytes, not 56"),
        (&queue, Command::nothing().then(effect).then(effect).then(effect), "two effects at most"),
        (
            &queue,
            Command::nothing().then(effect).then(signal.on(me).add(1 << 24)),
            "second effect adds at most",
        ),
        (&queue, Command::nothing().then(signal.on(nowhere).add(1)), "no rank"),
        (&queue, count(&word, nowhere), "no rank"),
        (&queue, Command::copy(word.pointer(), word.on(nowhere), 1), "no rank"),
        (&queue, Command::copy(word.pointer(), word.pointer(), 1 << 40), "less than 2^40"),
        (&session, Command::nothing().when(signal.reaches(1)), "has no trigger"),
    ];
    for (queue, command, text) in wrong {
        let refused = queue.post(&command).expect_err(text);
        assert!(refused.to_string().contains(text), "{refused}");
        assert!(refused.to_string().contains("post("), "{refused}");
    }
    let floats = job.alloc::<f64>(1)?;
    let bits = Command::reduce(floats.pointer(), floats.pointer(), 1, Combine::Xor);
    assert!(queue.post(&bits).is_err_and(|error| error.to_string().contains("floating-point")));
    assert!(job.queue(0).is_err() && job.queue((1 << 20) + 1).is_err());
    assert!(queue.repeat().is_err(), "it is no session queue");
    tasuki::local(1, |other| {
        let foreign = other.signal()?;
        let refused = queue.post(&Command::nothing().when(foreign.reaches(1))).expect_err("another job's");
        assert!(refused.to_string().contains("another job"), "{refused}");
        Ok(())
    })?;
    assert_eq!(queue.standing(), tasuki::Standing::default());
    post(&queue, &Idle::new(job)?, &count(&word, me).then(effect))?;
    signal.wait_at_least(1)?;
    job.barrier()
}
