//! B, D: command queues: when commands fire, and in which order their effects happen.

use crate::exchange::{effort, is_simulated, next, previous, tell_all};
use crate::expected_error::misused;
use crate::wait_until::{Idle, may_be_helped};
use std::time::Duration;
use tasuki::{Array, AtomicOp, Cause, Command, Job, Posted, Queue, Rank, RemoteQueue, Result, Signal};

/// Posts, waiting for room where there is none: full is an ordinary answer.
pub(super) fn post(queue: &Queue, idle: &Idle<'_>, command: &Command) -> Result<Posted> {
    loop {
        match queue.post(command) {
            Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                idle.serve(Duration::from_micros(10))?
            }
            other => return other,
        }
    }
}

/// A command that adds one to a word.
pub(super) fn count(word: &Array<u64>, rank: Rank) -> Command {
    Command::atomic(word.on(rank), AtomicOp::Add(1))
}

/// A command whose trigger is met when it is posted fires; one that is posted before, too; each once.
pub fn d4_triggers_that_are_met_fire(job: &Job) -> Result<()> {
    let (word, go, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(8)?;
    job.raise(go.on(me), 5)?;
    go.wait_at_least(5)?;
    for threshold in [4, 5] {
        queue.post(count(&word, to).when(go.reaches(threshold)).then(done.on(me).add(1)))?;
    }
    queue.post(count(&word, to).then(done.on(me).add(1)))?;
    done.wait_at_least(3)?;
    queue.post(count(&word, to).when(go.reaches(6)).then(done.on(me).add(1)))?;
    let early = done.wait_timeout(4, Duration::from_millis(2));
    assert!(early.is_err_and(|error| error.is_timeout()));
    job.raise(go.on(me), 1)?;
    done.wait_at_least(4)?;
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, 4);
    Ok(())
}

/// Commands that let a waiting one of their own queue go on, while long ones are under way in it: each happens once.
pub fn d9_queues_that_move_themselves_on(job: &Job) -> Result<()> {
    const LEN: usize = 40_000;
    const EACH: u64 = 10;
    let (word, fetched) = (job.alloc::<u64>(1)?, job.alloc::<u64>(1)?);
    let (long, me, all) = (job.alloc::<u64>(2 * LEN)?, job.rank(), job.size() as u64 * EACH);
    for _ in 0..effort(job, 60, 3) {
        let (step, joined) = (job.signal()?, job.signal()?);
        let queue = job.queue(64)?;
        queue.post(Command::nothing().when(step.reaches(all)).then(joined.on(me).add(1)))?;
        job.barrier()?;
        for number in 0..EACH {
            for rank in job.ranks() {
                let command = if number % 3 == 1 {
                    Command::copy(long.pointer(), long.on(rank).at(LEN), LEN)
                } else {
                    Command::fetch_atomic(word.on(rank), AtomicOp::Add(1), fetched.pointer())
                };
                queue.post(command.then(step.on(rank).add(1)))?;
            }
        }
        step.wait_at_least(all)?;
        joined.wait_at_least(1)?;
        job.barrier()?;
        assert_eq!((step.value(), joined.value()), (all, 1), "a command happened more than once");
        job.barrier()?;
    }
    Ok(())
}

/// Lower thresholds fire first, equal ones in the order of their posts. Who fired when is seen by the stream that the
/// commands are.
pub fn d5_lower_thresholds_fire_first(job: &Job) -> Result<()> {
    const THRESHOLDS: [u64; 6] = [3, 1, 2, 1, 3, 2];
    const ORDER: [usize; 6] = [1, 3, 2, 5, 0, 4];
    let (turn, order) = (job.alloc::<u64>(1)?, job.alloc::<u64>(THRESHOLDS.len())?);
    let (go, done, me) = (job.signal()?, job.signal()?, job.rank());
    // What is not at hand of whoever runs it takes longer, and the next ones need not wait for that.
    for rank in job.ranks() {
        job.load(turn.on(rank))?;
        job.load(order.on(rank))?;
    }
    job.barrier()?;
    let queue = job.queue(16)?;
    for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
        let draw = Command::fetch_atomic(turn.pointer(), AtomicOp::Add(1), order.on(me).at(at));
        queue.post(draw.when(go.reaches(threshold)).then(done.on(me).add(1)))?;
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
        // Only those that wait when their signal is raised are in order, not those that a helper has yet to read.
        while queue.stats().unread > 0 {
            std::thread::yield_now();
        }
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
    queue.post(when(Command::copy(from.pointer(), to.on(next(job)), 1)))?;
    queue.post(when(Command::put(to.on(next(job)).at(1), &[value])))?;
    value += 1;
    from.fill(value)?;
    job.raise(go.on(me), 1)?;
    done.wait_at_least(2)?;
    job.barrier()?;
    assert_eq!(to.to_vec()?, [2, 1]);
    job.barrier()
}

/// A command that is taken back never fires; one that has fired cannot be taken back.
pub fn d8_commands_are_taken_back(job: &Job) -> Result<()> {
    let (word, go, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(8)?;
    for round in 0..effort(job, 200, 10) as u64 {
        let add = || count(&word, to).when(go.reaches(round + 1)).then(done.on(me).add(1));
        let first = queue.post(add())?;
        let second = queue.post(add())?;
        assert!(queue.cancel(first)?, "it waits");
        assert!(!queue.cancel(first)?, "it is not there any more");
        job.raise(go.on(me), 1)?;
        done.wait_at_least(round + 1)?;
        assert!(!queue.cancel(second)?, "it has fired");
    }
    // More than wait at once: those behind are taken back before they are read.
    let unmet = || count(&word, to).when(go.reaches(1 << 40));
    let idle = Idle::new(job)?;
    let posted = (0..16).map(|_| post(&queue, &idle, &unmet())).collect::<Result<Vec<_>>>()?;
    for one in posted.into_iter().rev() {
        assert!(queue.cancel(one)?);
    }
    queue.post(count(&word, to).then(done.on(me).add(1)))?;
    let rounds = effort(job, 200, 10) as u64;
    done.wait_at_least(rounds + 1)?;
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, rounds + 1);
    let other = job.queue(1)?;
    let posted = other.post(unmet())?;
    assert!(queue.cancel(posted).is_err_and(|error| error.to_string().contains("another queue")));
    assert!(other.cancel(posted)?);
    // What another rank posted, the queue's own takes back.
    let names: Vec<RemoteQueue> = tell_all(job, other.remote())?;
    let posted: Vec<Posted> = tell_all(job, job.post(names[to.index()], unmet())?)?;
    assert!(other.cancel(posted[previous(job).index()])?);
    job.barrier()
}

/// A command is taken back while others raise its signal: it fires once or never, as the answer says.
pub fn d8_takes_back_while_it_fires(job: &Job) -> Result<()> {
    let (word, go, done, met) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?, job.signal()?);
    let (me, to, from) = (job.rank(), next(job), previous(job));
    let queue = job.queue(8)?;
    let mut fired = 0;
    for round in 1..=effort(job, 500, 20) as u64 {
        let posted = queue.post(count(&word, me).when(go.reaches(round)).then(done.on(me).add(1)))?;
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
        queue.post(step.then(pair[1].on(me).add(15)).then(extra.on(next(job)).add(7)))?;
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
        queue.post(count(&word, me).when(joined.reaches(all * round)).then(done.on(me).add(1)))?;
        for rank in job.ranks() {
            job.raise(joined.on(rank), 1)?;
        }
        done.wait_at_least(round)?;
        assert!(job.load(word.pointer())? == round && joined.value() >= all * round);
        job.barrier()?;
    }
    Ok(())
}

/// A command with two triggers fires when both are met, whichever comes first and however far ahead one of them is.
pub fn d10_two_triggers(job: &Job) -> Result<()> {
    let (word, left, right, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?, job.signal()?);
    let (me, idle) = (job.rank(), Idle::new(job)?);
    let queue = job.queue(4)?;
    let mut fired = 0;
    for round in 0..effort(job, 100, 6) as u64 {
        let (one, other) = if round % 2 == 0 { (left, right) } else { (right, left) };
        let from = 2 * round;
        if round % 3 == 0 {
            job.raise(one.on(me), 2)?; // before the commands are there
        }
        for step in [from + 2, from + 1] {
            let both = count(&word, me).when(left.reaches(step)).when(right.reaches(step));
            post(&queue, &idle, &both.then(done.on(me).add(1)))?;
        }
        if round % 3 != 0 {
            job.raise(one.on(me), 2)?;
        }
        idle.serve(Duration::from_micros(20))?;
        assert_eq!(done.value(), fired, "one trigger of two");
        for _ in 0..2 {
            job.raise(other.on(me), 1)?;
            fired += 1;
            done.wait_at_least(fired)?;
            assert_eq!(job.load(word.pointer())?, fired);
        }
    }
    job.barrier()
}

/// Nothing runs without an arrival, and nothing that was not posted; an arrival before its command is kept.
pub fn d12_arrivals_let_commands_go_on(job: &Job) -> Result<()> {
    let (word, credit, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, from, idle) = (job.rank(), previous(job), Idle::new(job)?);
    let queue = job.session_queue(8, &credit)?;
    let add = count(&word, me).then(done.on(me).add(1));
    let mut ran = 0;
    for round in 0..effort(job, 100, 4) as u64 {
        let early = round % 4; // arrivals that are ahead of their commands
        job.raise(credit.on(from), early)?;
        credit.wait_at_least(ran + early)?;
        idle.serve(Duration::from_micros(10))?;
        assert_eq!((done.value(), queue.stats().unread), (ran, 0), "the reader passed what was written");
        for _ in 0..5 {
            queue.post(&add)?;
        }
        done.wait_at_least(ran + early)?;
        idle.serve(Duration::from_micros(10))?;
        assert_eq!((done.value(), queue.stats().unread), (ran + early, 5 - early), "no arrival, and it ran");
        job.barrier()?;
        job.raise(credit.on(from), 5 - early)?;
        ran += 5;
        done.wait_at_least(ran)?;
        assert_eq!(job.load(word.pointer())?, ran);
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
    // A helper may be the one that runs it, and not have come to it.
    let is_run_at_once = !may_be_helped(job);
    for at in 0..3 {
        let add = Command::atomic(words.on(me).at(at), AtomicOp::Add(1));
        queue.post(&if at == 0 { add } else { add.then(done.on(me).add(1)) })?;
        if at == 0 && is_run_at_once {
            assert!(queue.repeat().is_err(), "it has begun");
        }
    }
    job.raise(credit.on(me), 2)?;
    done.wait_at_least(2)?;
    assert_eq!(words.to_vec()?, [1, 1, 1]);
    let again = job.signal()?;
    let cycle = job.session_queue(8, &again)?;
    for at in 0..3 {
        let add = Command::atomic(words.on(me).at(at), AtomicOp::Add(1));
        cycle.post(&if at == 2 { add.then(done.on(me).add(1)) } else { add })?;
    }
    cycle.repeat()?;
    for refused in [cycle.post(Command::nothing()), job.post(cycle.remote(), Command::nothing())] {
        assert!(refused.as_ref().is_err_and(|error| *error.cause() == Cause::QueueRepeats), "{refused:?}");
        misused(job, refused, &["post(", "repeats the commands", "hint: post all commands before"]);
    }
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
        queue.post(Command::nothing().when(go.reaches(threshold)).then(done.on(me).add(1)))?;
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
        assert!(
            refused.to_string().contains("the command queue is full (capacity 8)\n  hint: "),
            "{refused}"
        );
        assert!(taken >= 8 * round, "{taken} in round {round}");
        let two = [add.clone(), add];
        // All or none: if somebody has made room meanwhile, both.
        match queue.post_many(&two) {
            Ok(_) => taken += 2,
            Err(error) => assert!(matches!(error.cause(), Cause::Full { .. }), "{error}"),
        }
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
    assert_eq!((queue.stats().unread, queue.stats().failed), (0, 0));
    job.barrier()
}

/// A command whose trigger is unmet holds up nobody behind it.
pub fn b10_independent_commands_do_not_wait(job: &Job) -> Result<()> {
    let (word, never, done, me) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?, job.rank());
    let queue = job.queue(4)?;
    let waits = queue.post(count(&word, me).when(never.reaches(1)))?;
    for round in 1..=effort(job, 1_000, 20) as u64 {
        queue.post(count(&word, me).then(done.on(me).add(1)))?;
        done.wait_at_least(round)?;
    }
    assert!(queue.cancel(waits)?);
    job.barrier()
}
