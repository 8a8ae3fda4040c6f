//! B, D: command queues: when commands fire, and the order of their effects.

use crate::exchange::{effort, exchange_all, is_simulated, next, previous};
use crate::expected_error::misused;
use crate::wait_until::{Idle, may_be_helped};
use std::time::Duration;
use tasuki::engine::{Cause, Posted, RemoteQueue};
use tasuki::onesided::AtomicOp;
use tasuki::{Array, Command, Job, Queue, Rank, Request, Result, Signal};

/// Posts a command, and waits for room if the queue is full.
pub(in crate::cases) fn post(queue: &Queue, idle: &Idle<'_>, command: &Command) -> Result<Posted> {
    loop {
        match queue.post(command) {
            Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                idle.serve(Duration::from_micros(10))?
            }
            other => return other,
        }
    }
}

/// A command that adds 1 to a word of `rank`.
pub(in crate::cases) fn count(word: &Array<u64>, rank: Rank) -> Command {
    Command::atomic(word.on(rank), AtomicOp::Add(1))
}

/// D4: a command fires if its trigger is met when it is posted, and also if its trigger is met
/// later; each fires once.
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
    assert!(done.reaches(4).wait_timeout(Duration::from_millis(2))?.is_none());
    job.raise(go.on(me), 1)?;
    done.wait_at_least(4)?;
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, 4);
    Ok(())
}

/// D9: commands trigger another command that waits in their own queue, while long copies are under
/// way in that queue. Each command runs once.
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

/// D5: commands with lower thresholds fire first; with equal thresholds they fire in the order of
/// their posts. Each command draws a number, which tells when it fired.
pub fn d5_lower_thresholds_fire_first(job: &Job) -> Result<()> {
    const THRESHOLDS: [u64; 6] = [3, 1, 2, 1, 3, 2];
    const ORDER: [usize; 6] = [1, 3, 2, 5, 0, 4];
    let (turn, order) = (job.alloc::<u64>(1)?, job.alloc::<u64>(THRESHOLDS.len())?);
    let (go, done, me) = (job.signal()?, job.signal()?, job.rank());
    // Access the words once before: an access to memory that is not mapped yet takes longer, and
    // later commands need not wait for it.
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
        // On the simulator atomics under way overtake each other, so only one threshold is met at a
        // time.
        for threshold in 1..=3 {
            job.raise(go.on(me), 1)?;
            done.wait_at_least(2 * threshold)?;
            let earlier = |at: &usize| THRESHOLDS[*at] <= threshold;
            let drawn = (0..6).filter(earlier).map(|at| order.get(at)).collect::<Result<Vec<u64>>>()?;
            assert!(drawn.iter().all(|&turn| turn < 2 * threshold), "{drawn:?}");
        }
    } else {
        // Only commands that already wait when the signal is raised fire in this order, not
        // commands that a helper has not read yet.
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

/// D6: the source of a copy is read when the command fires, not when it is posted. The bytes of a
/// put are copied when the command is made.
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

/// D8: a command that is cancelled never fires, and one that has fired cannot be cancelled.
pub fn d8_commands_are_taken_back(job: &Job) -> Result<()> {
    let (word, go, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(8)?;
    for round in 0..effort(job, 200, 10) as u64 {
        let add = || count(&word, to).when(go.reaches(round + 1)).then(done.on(me).add(1));
        let first = queue.post(add())?;
        let second = queue.post(add())?;
        assert!(queue.cancel(first)?, "the command waits");
        assert!(!queue.cancel(first)?, "the command was cancelled before");
        job.raise(go.on(me), 1)?;
        done.wait_at_least(round + 1)?;
        assert!(!queue.cancel(second)?, "the command has fired");
    }
    // More commands than can wait at once: the last ones are cancelled before they are read.
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
    // The owner of the queue cancels a command that another rank posted.
    let names: Vec<RemoteQueue> = exchange_all(job, other.remote())?;
    let posted: Vec<Posted> = exchange_all(job, names[to.index()].post(job, unmet())?)?;
    assert!(other.cancel(posted[previous(job).index()])?);
    job.barrier()
}

/// D8: a command is cancelled while another rank raises its trigger. It fires once or never, as
/// `cancel` returns.
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

/// D9: an effect may add 15, a command may have two effects, and signals trigger commands that
/// raise signals.
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
    assert!(extra.reaches(1).wait_timeout(Duration::from_millis(1))?.is_none());
    job.barrier()?;
    job.raise(signals[0].on(me), 1)?;
    signals[4].wait_at_least(15)?;
    extra.wait_at_least(28)?;
    assert_eq!(signals[4].value(), 15);
    job.barrier()
}

/// D10: a command waits for a raise by every rank, in any order, many times.
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

/// D10: a command with two triggers fires when both are met, whichever is met first, and however
/// far ahead one of them is.
pub fn d10_two_triggers(job: &Job) -> Result<()> {
    let (word, left, right, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?, job.signal()?);
    let (me, idle) = (job.rank(), Idle::new(job)?);
    let queue = job.queue(4)?;
    let mut fired = 0;
    for round in 0..effort(job, 100, 6) as u64 {
        let (one, other) = if round % 2 == 0 { (left, right) } else { (right, left) };
        let from = 2 * round;
        if round % 3 == 0 {
            job.raise(one.on(me), 2)?; // before the commands are posted
        }
        for step in [from + 2, from + 1] {
            let both = count(&word, me).when(left.reaches(step)).when(right.reaches(step));
            post(&queue, &idle, &both.then(done.on(me).add(1)))?;
        }
        if round % 3 != 0 {
            job.raise(one.on(me), 2)?;
        }
        idle.serve(Duration::from_micros(20))?;
        assert_eq!(done.value(), fired, "a command fired with one of two triggers met");
        for _ in 0..2 {
            job.raise(other.on(me), 1)?;
            fired += 1;
            done.wait_at_least(fired)?;
            assert_eq!(job.load(word.pointer())?, fired);
        }
    }
    job.barrier()
}

/// D12: no command of a repeating queue runs without credit, and none that was not posted. Credit
/// that comes before its command is kept.
pub fn d12_arrivals_let_commands_go_on(job: &Job) -> Result<()> {
    let (word, credit, done) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, from, idle) = (job.rank(), previous(job), Idle::new(job)?);
    let queue = Queue::session(job, 8, &credit)?;
    let add = count(&word, me).then(done.on(me).add(1));
    let mut ran = 0;
    for round in 0..effort(job, 100, 4) as u64 {
        let early = round % 4; // credit that comes before its commands
        job.raise(credit.on(from), early)?;
        credit.wait_at_least(ran + early)?;
        idle.serve(Duration::from_micros(10))?;
        assert_eq!((done.value(), queue.stats().unread), (ran, 0), "more commands ran than were posted");
        for _ in 0..5 {
            queue.post(&add)?;
        }
        done.wait_at_least(ran + early)?;
        idle.serve(Duration::from_micros(10))?;
        assert_eq!(
            (done.value(), queue.stats().unread),
            (ran + early, 5 - early),
            "a command ran without credit"
        );
        job.barrier()?;
        job.raise(credit.on(from), 5 - early)?;
        ran += 5;
        done.wait_at_least(ran)?;
        assert_eq!(job.load(word.pointer())?, ran);
        job.barrier()?;
    }
    Ok(())
}

/// D11: a repeating queue runs as many commands as it has credit for, in their order, and keeps
/// credit that comes early. It starts again whenever credit comes, and nothing has to be reset.
pub fn d11_sessions_begin_again(job: &Job) -> Result<()> {
    let words = job.alloc::<u64>(3)?;
    let (credit, done, me) = (job.signal()?, job.signal()?, job.rank());
    let queue = Queue::session(job, 8, &credit)?;
    job.raise(credit.on(me), 1)?;
    // A helper may run the queue, and may not have begun.
    let is_run_at_once = !may_be_helped(job);
    for at in 0..3 {
        let add = Command::atomic(words.on(me).at(at), AtomicOp::Add(1));
        queue.post(&if at == 0 { add } else { add.then(done.on(me).add(1)) })?;
        if at == 0 && is_run_at_once {
            assert!(queue.repeat().is_err(), "the queue has begun");
        }
    }
    job.raise(credit.on(me), 2)?;
    done.wait_at_least(2)?;
    assert_eq!(words.to_vec()?, [1, 1, 1]);
    let again = job.signal()?;
    let cycle = Queue::session(job, 8, &again)?;
    for at in 0..3 {
        let add = Command::atomic(words.on(me).at(at), AtomicOp::Add(1));
        cycle.post(&if at == 2 { add.then(done.on(me).add(1)) } else { add })?;
    }
    cycle.repeat()?;
    for refused in [cycle.post(Command::nothing()), cycle.remote().post(job, Command::nothing())] {
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

/// D11: thresholds work when the signal wraps past zero.
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
        let early = done.reaches(fired).wait_timeout(Duration::from_micros(300))?;
        assert!(early.is_none(), "{fired}");
        job.raise(go.on(me), 1)?;
        done.wait_at_least(fired)?;
    }
    job.barrier()
}

/// D13: a post to a full queue returns an error, loses nothing, and succeeds when there is room
/// again.
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
        // Both commands are accepted or none is. Both are if another thread has made room meanwhile.
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

/// D14: threads of all ranks post to all queues at once. No command is lost or run twice.
pub fn d14_everybody_posts_at_once(job: &Job) -> Result<()> {
    let (word, done) = (job.alloc::<u64>(1)?, job.signal()?);
    let queue = job.queue(64)?;
    let queues: Vec<RemoteQueue> = exchange_all(job, queue.remote())?;
    let (threads, each) = (effort(job, 4, 2), effort(job, 1_000, 5));
    let idles = (0..threads).map(|_| Idle::new(job)).collect::<Result<Vec<_>>>()?;
    let posted = job.threads(threads, |thread| {
        for at in 0..each * queues.len() {
            let to = (at + thread) % queues.len();
            let owner = Rank(to);
            let add = count(&word, owner).then(done.on(owner).add(1));
            let many = [add.clone(), add];
            while let Err(error) = queues[to].post_many(job, &many) {
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

/// B10: a command whose trigger is not met does not delay the commands behind it.
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
