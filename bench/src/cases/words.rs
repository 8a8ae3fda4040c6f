//! Words between two ranks. put_near and put measure one direction, as half a ping-pong. get and atomic make one
//! operation at a time on words that their owner wrote last.

use super::pointer_chase::{STEP, chain, next, pass};
use super::{Figures, Setup, Stopwatch, advance, expect, figure, one_way};
use std::ops::Range;
use tasuki::onesided::{PayloadReader, PayloadSignal, PayloadWriter};
use tasuki::{Array, GlobalPtr, Job, Rank, Request, Signal};

/// Words lie 128 bytes apart.
const STRIDE: usize = 16;

/// Value and signal lie in one cache line.
pub(crate) fn put_near<'j>(s: &Setup<'j>) -> Figures<'j> {
    let line = PayloadSignal::<u64>::new(s.job)?;
    let (mut to, mut from) = (line.writer(s.peer())?, line.reader(Some(s.peer())));
    let (is_lead, rounds, mut sent) = (s.is_lead(), s.effort.times(100_000), 0);
    let repeat =
        move || one_way(rounds, |rounds| near(&mut to, &mut from, is_lead, advance(&mut sent, rounds)));
    Ok(vec![figure("", repeat)])
}

#[inline(never)]
fn near(
    to: &mut PayloadWriter<'_, u64>,
    from: &mut PayloadReader<'_, u64>,
    is_lead: bool,
    values: Range<u64>,
) -> tasuki::Result<()> {
    for value in values {
        if is_lead {
            to.put(&value)?;
            expect(from.wait()?, !value, "put_near")?;
        } else {
            expect(from.wait()?, value, "put_near")?;
            to.put(&!value)?;
        }
    }
    Ok(())
}

/// Value and signal lie on different pages.
pub(crate) fn put<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, peer, is_lead) = (s.job, s.peer(), s.is_lead());
    let (inbox, arrived) = (job.alloc(1)?, job.signal()?);
    let (rounds, mut sent) = (s.effort.times(100_000), 0);
    let repeat = move || {
        one_way(rounds, |rounds| apart(job, &inbox, &arrived, peer, is_lead, advance(&mut sent, rounds)))
    };
    Ok(vec![figure("", repeat)])
}

#[inline(never)]
fn apart(
    job: &Job,
    inbox: &Array<u64>,
    arrived: &Signal<'_>,
    peer: Rank,
    is_lead: bool,
    values: Range<u64>,
) -> tasuki::Result<()> {
    let (to, raise) = (inbox.on(peer), arrived.on(peer));
    for value in values {
        if is_lead {
            job.put_signal(to, &[value], raise, 1)?;
        }
        arrived.wait_at_least(value + 1)?;
        expect(inbox.get(0)?, if is_lead { !value } else { value }, "put")?;
        if !is_lead {
            job.put_signal(to, &[!value], raise, 1)?;
        }
    }
    Ok(())
}

/// Gets of words.
pub(crate) fn get<'j>(s: &Setup<'j>) -> Figures<'j> {
    remote(s, 0, get_all)
}

/// Fetch-adds on words.
pub(crate) fn atomic<'j>(s: &Setup<'j>) -> Figures<'j> {
    remote(s, 1, add_all)
}

type Visit = fn(&Job, GlobalPtr<u64>, usize, u64) -> tasuki::Result<()>;

/// The follower rewrites its words before each pass; in a pass the lead visits each of them. `added` is what a visit
/// adds to the number of the pass in a word.
fn remote<'j>(s: &Setup<'j>, added: u64, visit: Visit) -> Figures<'j> {
    let (job, peer, is_lead) = (s.job, s.peer(), s.is_lead());
    let (words, passes) = (s.effort.times(10_000) as usize, s.effort.times(10));
    let table = job.alloc(words * STRIDE)?;
    let (rewritten, visited) = (job.signal()?, job.signal()?);
    let mut now = 0;
    let mut once = move || -> tasuki::Result<u64> {
        now += 1;
        if is_lead {
            rewritten.wait_at_least(now)?;
            let watch = Stopwatch::start();
            visit(job, table.on(peer), words, now)?;
            let took = watch.ns(0);
            return job.raise(visited.on(peer), 1).map(|()| took);
        }
        chain(words, now).enumerate().try_for_each(|(index, word)| table.set(index * STRIDE, word))?;
        job.raise(rewritten.on(peer), 1)?;
        visited.wait_at_least(now)?;
        let check = |index| expect(pass(table.get(index * STRIDE)?), now + added, "atomic");
        (0..words).try_for_each(check).map(|()| 0)
    };
    Ok(vec![figure("", move || {
        once()?;
        let took = (0..passes).map(|_| once()).sum::<tasuki::Result<u64>>()?;
        Ok(took as f64 / (passes * words as u64) as f64)
    })])
}

#[inline(never)]
fn get_all(job: &Job, first: GlobalPtr<u64>, words: usize, now: u64) -> tasuki::Result<()> {
    let mut at = 0;
    for _ in 0..words {
        let word = job.get_value(first.at(at * STRIDE))?;
        expect(pass(word), now, "get")?;
        at = next(word);
    }
    Ok(())
}

#[inline(never)]
fn add_all(job: &Job, first: GlobalPtr<u64>, words: usize, now: u64) -> tasuki::Result<()> {
    let mut at = 0;
    for _ in 0..words {
        let word = job.fetch_add(first.at(at * STRIDE), STEP)?;
        expect(pass(word), now, "atomic")?;
        at = next(word);
    }
    Ok(())
}
