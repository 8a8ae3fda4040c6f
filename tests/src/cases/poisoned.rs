//! D: commands that fail, that never fire, or that are wrong in themselves.

use super::queues::{count, post};
use crate::exchange::{is_simulated, next, tell_all};
use crate::patience::Idle;
use tasuki::{Cause, Combine, Command, Job, Rank, RemoteQueue, Result};

/// A failed command poisons its signal with its cause; what was to follow fails with that cause, on every rank that the
/// chain goes through, and nobody waits for ever.
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
    queue.post(count(&word, me).when(step.reaches(9)).then(after.on(me).add(1)))?;
    assert!(after.wait_at_least(1).is_err());
    job.barrier()
}

/// What has not fired when its queue is dropped poisons its signals, and what others post to it then is an error.
pub fn dropped_queues_tell(job: &Job) -> Result<()> {
    let (word, go, told) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    let queue = job.queue(4)?;
    let names: Vec<RemoteQueue> = tell_all(job, queue.remote())?;
    let idle = Idle::new(job)?;
    for _ in 0..6 {
        post(&queue, &idle, &count(&word, me).when(go.reaches(1)).then(told.on(to).add(1)))?;
    }
    job.barrier()?;
    drop(queue);
    let failed = told.wait_at_least(1).expect_err("poisoned");
    assert!(failed.to_string().contains("its queue was dropped before it had fired"), "{failed}");
    job.barrier()?;
    let refused = job.post(names[to.index()], Command::nothing()).expect_err("it is gone");
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
        let refused = queue.post(Command::nothing().when(foreign.reaches(1))).expect_err("another job's");
        assert!(refused.to_string().contains("another job"), "{refused}");
        Ok(())
    })?;
    assert_eq!(queue.standing(), tasuki::Standing::default());
    queue.post(count(&word, me).then(effect))?;
    signal.wait_at_least(1)?;
    job.barrier()
}
