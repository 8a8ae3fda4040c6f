//! Commands and handlers: post and chain use two ranks, queue_contention uses many, handler calls a handler of the
//! other rank.

use super::{Figures, Setup, Stopwatch, expect, figure, wrong};
use std::time::Duration;
use tasuki::engine::{Cause, RemoteQueue};
use tasuki::onesided::AtomicOp;
use tasuki::{Command, Handler, Handlers, Rank, Request};
use tokio::sync::Notify;

/// Number of commands that are posted in a row, and number of places of a queue.
const POSTS: u64 = 1_000;
const PLACES: usize = 2_048;
/// Number of copies of a chain, and the distance of the words that they copy.
const HOPS: u64 = 64;
const APART: usize = 16;
/// Number of rounds in a repetition. The first round does not count.
const ROUNDS: u64 = 40;

/// Posts commands to a queue that the other rank drains: one command in each call, or 50.
pub(crate) fn post<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, me, peer, is_lead, rounds) =
        (s.job, s.job.rank(), s.peer(), s.is_lead(), s.effort.times(ROUNDS));
    let of = |(variant, batch): (&str, usize)| {
        let (queue, names) = (job.queue(PLACES)?, job.alloc::<RemoteQueue>(1)?);
        job.put(names.on(peer), &[queue.remote()])?;
        job.barrier()?;
        let theirs = names.get(0)?;
        let (word, done) = (job.alloc(1)?, job.signal()?);
        let row =
            move |first: u64, word: &tasuki::Array<u64>, done: &tasuki::Signal<'_>| -> tasuki::Result<u64> {
                let mut values = first..first + POSTS;
                let store = |value| Command::store(word.on(peer), value);
                let batches: Vec<Vec<Command>> = (0..POSTS as usize / batch)
                    .map(|_| values.by_ref().take(batch).map(store).collect())
                    .collect();
                let last = Command::nothing().then(done.on(peer).add(1)).then(done.on(me).add(1));
                let watch = Stopwatch::start();
                match batch {
                    1 => batches.iter().try_for_each(|one| theirs.post(job, &one[0]).map(drop))?,
                    _ => batches.iter().try_for_each(|some| theirs.post_many(job, some).map(drop))?,
                }
                let took = watch.ns(0);
                theirs.post(job, &last).map(|_| took)
            };
        let mut past = 0;
        Ok(figure(variant, move || {
            let _drained_by_us = &queue;
            let mut took = 0;
            for round in 0..rounds {
                past += 1;
                let first = past * POSTS;
                let row = if is_lead { row(first, &word, &done)? } else { 0 };
                took += if round == 0 { 0 } else { row };
                done.wait_at_least(past)?;
                if !is_lead {
                    expect(word.get(0)?, first + POSTS - 1, "post")?;
                }
                job.barrier()?;
            }
            Ok(took as f64 / ((rounds - 1) * POSTS) as f64)
        }))
    };
    [("one_by_one", 1), ("by_50", 50)].into_iter().map(of).collect()
}

/// Copies of eight bytes to and fro between two ranks; each copy triggers the next one. A copy is run by the rank that
/// has the source, or by the first rank that finds it.
pub(crate) fn chain<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, me, peer, is_lead, rounds) =
        (s.job, s.job.rank(), s.peer(), s.is_lead(), s.effort.times(ROUNDS));
    let of = |(variant, by_source): (&str, bool)| {
        let (queue, words) = (job.queue(PLACES)?, job.alloc::<u64>((HOPS as usize + 1) * APART)?);
        let (go, end) = (job.signal()?, job.signal()?);
        let mut past = 0;
        let mut round = move || -> tasuki::Result<u64> {
            for hop in (u64::from(!is_lead)..HOPS).step_by(2) {
                let (from, to) = (hop as usize * APART, (hop as usize + 1) * APART);
                let copy = Command::copy(words.on(me).at(from), words.on(peer).at(to), 1);
                let copy = copy.when(go.reaches(past * HOPS / 2 + hop / 2 + 1));
                let next = if hop + 1 == HOPS { end } else { go };
                let copy = copy.then(next.on(peer).add(1));
                queue.post(&if by_source { copy.by_source() } else { copy })?;
            }
            job.barrier()?;
            past += 1;
            if !is_lead {
                go.wait_at_least(past * HOPS / 2)?;
                return job.barrier().map(|()| 0);
            }
            job.put(words.on(me), &[!past])?;
            let watch = Stopwatch::start();
            job.raise(go.on(me), 1)?;
            end.wait_at_least(past)?;
            let took = watch.ns(0);
            expect(words.get(HOPS as usize * APART)?, !past, "chain")?;
            job.barrier().map(|()| took)
        };
        Ok(figure(variant, move || {
            round()?;
            let took = (1..rounds).map(|_| round()).sum::<tasuki::Result<u64>>()?;
            Ok(took as f64 / ((rounds - 1) * HOPS) as f64)
        }))
    };
    [("by_source", true), ("free", false)].into_iter().map(of).collect()
}

const INVERT: Handler<u64, u64> = Handler::new("invert", |_, word| !word);

/// Returns the handlers of a job that runs `handler`.
pub(crate) fn handlers() -> Handlers {
    Handlers::new().add(INVERT).add(END_IDLENESS)
}

/// Passes a word to a handler of the other rank, which is waiting, and receives the reply.
pub(crate) fn handler<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, peer, is_lead, rounds) = (s.job, s.peer(), s.is_lead(), s.effort.times(20_000));
    let end = job.signal()?;
    let mut past = 0;
    Ok(vec![figure("", move || {
        past += 1;
        if !is_lead {
            return end.wait_at_least(past).map(|()| 0.0);
        }
        let watch = Stopwatch::start();
        for word in 0..rounds {
            expect(INVERT.call(job, peer, &word)?.wait()?, !word, "handler")?;
        }
        let took = watch.ns(0);
        job.raise(end.on(peer), 1).map(|()| took as f64 / rounds as f64)
    })])
}

/// Ends the only task of the rank.
static IS_OVER: Notify = Notify::const_new();
const END_IDLENESS: Handler<(), ()> = Handler::new("bench: end idleness", |_, ()| IS_OVER.notify_one());
/// How long the caller pauses before each call, so that whoever serves the other rank sleeps.
const PAUSE: Duration = Duration::from_millis(1);

/// Passes a word to a handler of the other rank, whose executor has nothing to do, and receives the reply.
pub(crate) fn handler_idle<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, peer, is_lead, rounds) = (s.job, s.peer(), s.is_lead(), s.effort.times(50).max(5));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(vec![figure("", move || {
        if !is_lead {
            job.serve_in_background()?; // not when it is set up, before `handler` is measured
            runtime.block_on(IS_OVER.notified());
            return Ok(0.0);
        }
        let mut took = 0;
        for word in 0..rounds {
            std::thread::sleep(PAUSE);
            let watch = Stopwatch::start();
            expect(INVERT.call(job, peer, &word)?.wait()?, !word, "handler_idle")?;
            took += watch.ns(0);
        }
        END_IDLENESS.call(job, peer, &())?.wait()?;
        Ok(took as f64 / rounds as f64)
    })])
}

/// The rank that owns the contended queue, and the number of its places.
const OWNER: Rank = Rank(0);
const FEW_PLACES: usize = 1_024;
/// How long a rank that finds the queue full runs its own queues before it tries again.
const SERVE: Duration = Duration::from_micros(10);

/// Many ranks post to one queue, as fast as it accepts commands.
pub(crate) fn queue_contention<'j>(s: &Setup<'j>) -> Figures<'j> {
    let job = s.job;
    let names = job.alloc::<RemoteQueue>(1)?;
    let queue = (job.rank() == OWNER).then(|| job.queue(FEW_PLACES)).transpose()?;
    queue.iter().try_for_each(|queue| names.set(0, queue.remote()))?;
    let (word, done, never) = (job.alloc::<u64>(1)?, job.signal()?, job.signal()?);
    job.barrier()?;
    let theirs = job.get_value(names.on(OWNER))?;
    job.barrier()?; // the name's memory goes with its owner's `names`
    let post = move |command: &Command| -> tasuki::Result<()> {
        loop {
            match theirs.post(job, command) {
                Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                    if never.reaches(1).wait_timeout(SERVE)?.is_some() {
                        return Err(wrong("queue_contention"));
                    }
                }
                posted => return posted.map(drop),
            }
        }
    };
    let posters = job.size() as u64 - 1;
    let each = (s.effort.commands / posters).max(1);
    let (mut counted, mut ended) = (0, 0);
    let mut round = move |each: u64| -> tasuki::Result<u64> {
        let _drained_by_us = &queue;
        (counted, ended) = (counted + each * posters, ended + posters);
        job.barrier()?;
        let watch = Stopwatch::start();
        job.barrier()?; // its time is measured, because the first rank to leave it posts at once
        if job.rank() != OWNER {
            let add = Command::atomic(word.on(OWNER), AtomicOp::Add(1));
            (0..each).try_for_each(|_| post(&add))?;
            return post(&Command::nothing().then(done.on(OWNER).add(1))).map(|()| 0);
        }
        done.wait_at_least(ended)?;
        let took = watch.ns(0);
        expect(word.get(0)?, counted, "queue_contention").map(|()| took)
    };
    Ok(vec![figure("", move || {
        round(each.div_ceil(10))?;
        let took = round(each)?;
        job.barrier()?;
        Ok((each * posters) as f64 / (took.max(1) as f64 / 1e9))
    })])
}
