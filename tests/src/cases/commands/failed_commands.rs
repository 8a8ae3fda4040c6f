//! D: commands that fail, that never fire, or that are invalid.

use crate::cases::command_queues::{count, post};
use crate::exchange::{effort, exchange_all, is_simulated, next};
use crate::expected_error::misused;
use crate::wait_until::Idle;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use tasuki::engine::{Cause, Combine, RemoteQueue};
use tasuki::onesided::{AtomicOp, RemoteSignal};
use tasuki::{Command, Job, Queue, Rank, Request, Result, Signal};

/// D17: a failed command poisons its signal with the cause. Commands that wait for the signal fail
/// with that cause, on every rank of the chain, and no rank waits for ever.
pub fn d17_failures_travel(job: &Job) -> Result<()> {
    let (word, step) = (job.alloc::<u64>(1)?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(8)?;
    if me == Rank(0) {
        let outside = word.on(to).at(1 << 30);
        queue.post(Command::copy(outside, word.pointer(), 1).then(step.on(to).add(1)))?;
    } else {
        queue.post(count(&word, to).when(step.reaches(1)).then(step.on(to).add(1)))?;
    }
    let failed = step.wait_at_least(1).expect_err("the signal is poisoned");
    let Cause::Poisoned { origin, cause } = failed.cause() else { panic!("{failed}") };
    assert!(*origin == Rank(0) || !is_simulated(job), "{failed}");
    assert!(
        matches!(**cause, Cause::OutOfRange { .. } | Cause::Stale { .. } | Cause::NullAddress),
        "{failed}"
    );
    Idle::new(job)?.until(|| Ok(queue.failure().is_some()))?;
    let failure = queue.failure().expect("the queue has a failure");
    assert_eq!(matches!(failure.cause(), Cause::Failed { .. }), me == Rank(0), "{failure}");
    let text = if me == Rank(0) { "queue: failed on rank" } else { "an earlier command failed on rank" };
    misused(job, Err::<(), _>(failure), &[text, "hint: "]);
    assert_eq!(queue.stats().failed, 1);
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, 0);
    // A command that waits for a poisoned signal fails at once, whenever it is posted.
    let after = job.signal()?;
    queue.post(count(&word, me).when(step.reaches(9)).then(after.on(me).add(1)))?;
    assert!(after.wait_at_least(1).is_err());
    job.barrier()
}

/// A dropped queue poisons the signals of commands that have not fired. A later post to the queue
/// is an error.
pub fn dropped_queues_poison_their_signals(job: &Job) -> Result<()> {
    let (word, go, poisoned) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(4)?;
    let names: Vec<RemoteQueue> = exchange_all(job, queue.remote())?;
    let idle = Idle::new(job)?;
    for _ in 0..6 {
        post(&queue, &idle, &count(&word, me).when(go.reaches(1)).then(poisoned.on(to).add(1)))?;
    }
    job.barrier()?;
    drop(queue);
    let failed = poisoned.wait_at_least(1).expect_err("the signal is poisoned");
    assert!(failed.to_string().contains("the queue was dropped before the command had fired"), "{failed}");
    job.barrier()?;
    let refused = names[to.index()].post(job, Command::nothing()).expect_err("the queue was dropped");
    assert!(matches!(refused.cause(), Cause::Stale { .. } | Cause::QueueDropped), "{refused}");
    job.raise(go.on(me), 1)?;
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, 0);
    Ok(())
}

/// A queue that is dropped at once still runs the commands whose triggers are met, whichever rank
/// may run them.
pub fn dropped_queues_finish_what_they_can(job: &Job) -> Result<()> {
    let (me, to) = (job.rank(), next(job));
    let (word, go) = (job.alloc::<u64>(1)?, job.signal()?);
    let (from, into) = (job.alloc::<u64>(4096)?, job.alloc::<u64>(4096)?);
    let (done, never) = (job.signal()?, job.signal()?);
    for round in 1..=20 {
        from.fill(round)?;
        job.barrier()?;
        let queue = job.queue(64)?;
        let copy = || Command::copy(from.pointer(), into.on(to), 4096).then(done.on(to).add(1));
        queue.post_many(&[copy(), copy().by_source(), copy().by_destination()])?;
        queue.post(count(&word, me).when(go.reaches(1 << 40)).then(never.on(to).add(1)))?;
        queue.post(count(&word, me).when(go.reaches(round)))?;
        job.raise(go.on(me), 1)?;
        go.wait_at_least(round)?;
        drop(queue);
        assert_eq!(job.load(word.pointer())?, round, "a command whose trigger was met did not run");
        done.wait_at_least(3 * round)?;
        assert!(into.to_vec()?.iter().all(|&value| value == round));
        is_poisoned(&never);
        job.barrier()?;
    }
    job.barrier()
}

/// When a queue is dropped, ranks that wait for its commands get an error. This also holds for a repeating queue, and
/// for a queue that is dropped by a panic which the program catches, whichever commands are in flight.
pub fn dropped_queues_poison_their_signals_in_any_case(job: &Job) -> Result<()> {
    let (me, to) = (job.rank(), next(job));
    let (credit, step) = (job.signal()?, job.signal()?);
    let session = Queue::session(job, 8, &credit)?;
    for _ in 0..4 {
        session.post(Command::nothing().then(step.on(me).add(1)))?;
    }
    session.repeat()?;
    job.raise(credit.on(me), 6)?;
    step.wait_at_least(6)?;
    drop(session);
    let failed = step.wait_at_least(7).expect_err("the queue was dropped");
    assert!(failed.to_string().contains("the queue was dropped"), "{failed}");
    step.wait_at_least(6)?;
    job.barrier()?;
    const LONG: usize = 100_000;
    let (long, never) = (job.alloc::<u64>(2 * LONG)?, job.signal()?);
    for _ in 0..10 {
        let poisoned = job.signal()?;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let queue = job.queue(8).expect("there is room");
            let copy = Command::copy(long.pointer(), long.on(to).at(LONG), LONG);
            let waiting = Command::nothing().when(never.reaches(1)).then(poisoned.on(me).add(1));
            for command in [&copy, &copy, &waiting] {
                queue.post(command).expect("there is room");
            }
            resume_unwind(Box::new("on purpose"));
        }));
        assert!(panicked.is_err());
        let failed = poisoned.wait_at_least(1).expect_err("the command never fires");
        assert!(failed.to_string().contains(&format!("by a panic on rank {me}")), "{failed}");
        job.barrier()?;
    }
    job.barrier()
}

/// Ranks post to a queue while its owner drops it. Each post is refused, or its command runs.
pub fn posts_beside_a_drop_run_or_are_refused(job: &Job) -> Result<()> {
    let (ran, me) = (job.signal()?, job.rank());
    let mut expected = 0;
    for round in 0..effort(job, 300, 5) {
        let queue = job.queue(64)?;
        let names: Vec<RemoteQueue> = exchange_all(job, queue.remote())?;
        let mut accepted = 0_u64;
        if me == Rank(0) {
            job.compute(Duration::from_micros(round as u64 % 20));
            drop(queue);
        } else {
            loop {
                match names[0].post(job, Command::nothing().then(ran.on(Rank(0)).add(1))) {
                    Ok(_) => accepted += 1,
                    Err(error) if matches!(error.cause(), Cause::Full { .. }) => {}
                    Err(error) => {
                        let gone = matches!(error.cause(), Cause::Stale { .. } | Cause::QueueDropped);
                        assert!(gone, "{error}");
                        break;
                    }
                }
            }
        }
        expected += exchange_all(job, accepted)?.iter().sum::<u64>();
        if me == Rank(0) {
            ran.wait_at_least(expected)?;
            assert_eq!(ran.value(), expected, "round {round}");
        }
        job.barrier()?;
    }
    Ok(())
}

/// Invalid commands are refused when they are posted, and change nothing.
pub fn wrong_commands_are_refused(job: &Job) -> Result<()> {
    let (word, signal, me) = (job.alloc::<u64>(16)?, job.signal()?, job.rank());
    let queue = job.queue(4)?;
    let session = Queue::session(job, 4, &signal)?;
    let effect = signal.on(me).add(1);
    let nowhere = Rank(job.size());
    let floats = job.alloc::<f64>(1)?;
    let (number, bits) = (floats.pointer(), Combine::Xor);
    let far = 1_u64 << 40;
    let wrong: [(_, _, &[&str]); 9] = [
        (&queue, Command::put(word.pointer(), &[0_u64; 7]), &["post(put(56 bytes to", "48 bytes, not 56"]),
        (&queue, Command::nothing().then(effect).then(effect).then(effect), &["two effects at most"]),
        (
            &queue,
            Command::nothing().then(effect).then(signal.on(me).add(1 << 24)),
            &["second effect adds at most"],
        ),
        (&queue, Command::nothing().then(signal.on(nowhere).add(1)), &["no rank"]),
        (&queue, count(&word, nowhere), &["atomic add", "no rank"]),
        (&queue, Command::copy(word.pointer(), word.on(nowhere), 1), &["copy(8 bytes", "no rank"]),
        (
            &queue,
            Command::copy(word.pointer(), word.pointer(), far as usize),
            &[&format!("copy({} bytes", far * 8), &format!("less than 2^40 bytes, not {}", far * 8)],
        ),
        (&queue, Command::reduce(number, number, 1, bits), &["Xor of F64(8 bytes", "floating-point"]),
        (&session, Command::nothing().when(signal.reaches(1)), &["has no trigger"]),
    ];
    for (queue, command, texts) in wrong {
        misused(job, queue.post(&command), &[&["post("], texts].concat());
        let many = [Command::nothing(), command];
        misused(
            job,
            queue.post_many(&many),
            &[&["post_many(2 commands"], &texts[texts.len() - 1..]].concat(),
        );
    }
    let many = [Command::nothing(), Command::put(word.pointer(), &[0_u64; 7])];
    misused(job, queue.post_many(&many), &["2 commands, with [1] put(56 bytes to", ", to a queue of rank"]);
    assert!(job.queue(0).is_err() && job.queue((1 << 20) + 1).is_err());
    misused(job, queue.repeat(), &["repeat", "only a session queue", "Queue::session"]);
    misused(job, session.repeat(), &["repeat", "no commands"]);
    tasuki::local(1, |other| {
        let foreign = other.signal()?;
        let refused = queue
            .post(Command::nothing().when(foreign.reaches(1)))
            .expect_err("the signal belongs to another job");
        assert!(refused.to_string().contains("another job"), "{refused}");
        Ok(())
    })?;
    assert_eq!(queue.stats(), tasuki::engine::QueueStats::default());
    queue.post(count(&word, me).then(effect))?;
    signal.wait_at_least(1)?;
    job.barrier()
}

/// A command that fails when it runs, and so poisons the signal `poisons`.
fn failing(job: &Job, poisons: RemoteSignal) -> Result<Command> {
    let word = job.alloc_local::<u64>(1)?; // freed before the command runs
    Ok(Command::atomic(word.pointer(), AtomicOp::Add(1)).then(poisons.add(1)))
}

/// Asserts that the signal is poisoned, and that the error names a rank.
fn is_poisoned(signal: &Signal<'_>) {
    let failed = signal.wait_at_least(1).expect_err("the signal is poisoned");
    assert!(matches!(failed.cause(), Cause::Poisoned { .. }), "{failed}");
    let text = failed.to_string();
    assert!(text.contains("wait(signal") && text.contains("rank"), "{text}");
}

/// D17: commands that wait for a poisoned signal fail. The signal is the credit of a repeating queue, before and after
/// `repeat`, or the first or second trigger of a command with two triggers. Commands for which credit came before the
/// poison run.
pub fn d17_poisoned_credits_and_joins(job: &Job) -> Result<()> {
    let word = job.alloc::<u64>(1)?;
    let (me, to, idle) = (job.rank(), next(job), Idle::new(job)?);
    let queue = job.queue(8)?;
    for repeats in [false, true] {
        let (credit, ran, poisoned, late) = (job.signal()?, job.signal()?, job.signal()?, job.signal()?);
        let session = Queue::session(job, 8, &credit)?;
        session.post(count(&word, me).then(ran.on(me).add(1)))?;
        session.post(count(&word, me).then(poisoned.on(to).add(1)))?;
        if repeats {
            session.repeat()?;
        }
        job.raise(credit.on(me), 1)?;
        ran.wait_at_least(1)?;
        job.barrier()?;
        queue.post(failing(job, credit.on(me))?)?;
        is_poisoned(&poisoned);
        job.barrier()?;
        if !repeats {
            session.post(count(&word, me).then(late.on(me).add(1)))?;
            job.raise(credit.on(me), 3)?;
            is_poisoned(&late);
        }
        idle.until(|| Ok(session.stats().failed >= 2 - u64::from(repeats)))?;
        let failure = session.failure().expect("the queue has a failure").to_string();
        assert!(failure.contains("failed on rank"), "{failure}");
        job.barrier()?;
    }
    assert_eq!(job.load(word.pointer())?, 2, "one command for each credit ran");
    for bad_first in [false, true] {
        let (good, bad, poisoned) = (job.signal()?, job.signal()?, job.signal()?);
        let [one, other] = if bad_first { [&bad, &good] } else { [&good, &bad] };
        let both = count(&word, me).when(one.reaches(1)).when(other.reaches(1));
        queue.post(both.then(poisoned.on(to).add(1)))?;
        queue.post(failing(job, bad.on(me))?)?;
        job.raise(good.on(me), 1)?;
        is_poisoned(&poisoned);
    }
    job.barrier()?;
    assert_eq!(job.load(word.pointer())?, 2);
    job.barrier()
}

/// D17: a failure takes its place in the order of raises of its signal. Values reached before it
/// remain, and raises after it do not hide it, neither from ranks that wait nor from commands,
/// whenever they are posted.
pub fn later_successes_hide_no_failure(job: &Job) -> Result<()> {
    let (word, me, to) = (job.alloc::<u64>(1)?, job.rank(), next(job));
    job.store(word.pointer(), 0)?;
    job.barrier()?;
    let queue = job.queue(16)?;
    let (bad, good, late, all) = (job.signal()?, job.signal()?, job.signal()?, job.signal()?);
    let well = |signal: &Signal<'_>| Command::nothing().then(signal.on(to).add(1)).then(all.on(to).add(1));
    queue.post_many(&[failing(job, bad.on(to))?, well(&bad), well(&bad)])?;
    queue.post(well(&good))?;
    good.wait_at_least(1)?;
    job.barrier()?;
    queue.post(failing(job, good.on(to))?)?;
    queue.post_many(&[well(&good), well(&good)])?;
    all.wait_at_least(5)?;
    is_poisoned(&bad);
    let failed = good.wait_at_least(2).expect_err("one of the commands has failed");
    assert!(matches!(failed.cause(), Cause::Poisoned { .. }), "{failed}");
    for _ in 0..2 {
        queue.post(count(&word, me).when(bad.reaches(1)).then(late.on(me).add(1)))?;
        is_poisoned(&late);
    }
    if !is_simulated(job) && std::env::var_os("TASUKI_DIRECT_SIGNALS").is_none() {
        // On other fabrics the failure may come first; then no raise follows it.
        good.wait_at_least(1)?;
        assert_eq!((bad.value(), good.value()), (2, 3));
        queue.post(count(&word, me).when(good.reaches(1)))?;
        Idle::new(job)?.until(|| Ok(job.load(word.pointer())? == 1))?;
    }
    job.barrier()
}

/// Triggers, effects and queues that belong to another job, to a former job or to no job are
/// refused when a command is posted.
pub fn foreign_signals_and_queues_are_refused(job: &Job) -> Result<()> {
    let (word, signal, me) = (job.alloc::<u64>(1)?, job.signal()?, job.rank());
    let queue = job.queue(4)?;
    // Jobs that have ended. The objects of later jobs may lie at the addresses of theirs.
    let mut former: Option<Command> = None;
    for _ in 0..20 {
        let outcome = tasuki::local(1, |inner| {
            let (own, queue) = (inner.signal()?, inner.queue(1)?);
            if let Some(command) = &former {
                misused(inner, queue.post(command), &["post(", "another job"]);
            }
            Ok(Command::nothing().when(own.reaches(1)))
        })?;
        former = outcome.into_iter().next();
    }
    let former = former.expect("there was a job");
    misused(job, queue.post(&former), &["post(", &format!("queue of rank {me}"), "another job"]);
    misused(job, queue.post(former.when(signal.reaches(1))), &["signals of two different jobs"]);
    let nothing = bytemuck::Zeroable::zeroed();
    let effect = |signal: RemoteSignal| Command::nothing().then(signal.add(1));
    misused(job, queue.post(effect(nothing)), &["post(", "no signal lies at"]);
    let misplaced = bytemuck::cast::<u64, RemoteSignal>(word.pointer().address().bits());
    misused(job, queue.post(effect(misplaced)), &["no signal lies at"]);
    let crooked = bytemuck::cast::<u64, RemoteSignal>(bytemuck::cast::<_, u64>(signal.on(me)) + 8);
    misused(job, queue.post(effect(crooked)), &["no signal lies at"]);
    // Invalid queue names: null, with a rank that does not exist, and at places without a queue.
    let named = bytemuck::cast::<u64, RemoteQueue>;
    misused(job, named(0).post(job, Command::nothing()), &["post("]);
    misused(job, named(u64::MAX).post(job, Command::nothing()), &["post(", "no rank"]);
    for rank in job.ranks() {
        let text = format!("queue of rank {rank}");
        let at = word.on(rank).address().bits() / 4096 * 4096;
        misused(job, named(at).post(job, Command::nothing()), &["post(", &text]);
    }
    assert_eq!(queue.stats(), tasuki::engine::QueueStats::default());
    queue.post(count(&word, me).then(signal.on(me).add(1)))?;
    assert!(signal.reaches(1).wait_timeout(Duration::from_secs(60))?.is_some());
    job.barrier()
}
