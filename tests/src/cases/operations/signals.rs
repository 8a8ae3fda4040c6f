//! D: signals, and bytes that are put before a signal is raised.

use crate::cases::kinds_of_memory::{Areas, KINDS, Kind};
use crate::exchange::{effort, next, previous};
use crate::expected_error::misused;
use crate::pattern;
use crate::wait_until::Idle;
use std::time::Duration;
use tasuki::onesided::{After, PayloadSignal};
use tasuki::{Job, Rank, Request, Result};

/// D1: when a rank sees a signal, all bytes that were put with it are there. The ranks form a ring and put into each
/// kind of memory, with sizes up to those that are copied with non-temporal stores.
pub fn d1_bytes_are_there_when_the_signal_is_seen(job: &Job) -> Result<()> {
    let sizes = [(1, 400), (8, 400), (64, 400), (4096, 200), (65_537, 40), (2 << 20, 4)];
    let (arrived, taken) = (job.signal()?, job.signal()?);
    let (to, from) = (next(job), previous(job));
    let mut round = 0;
    for kind in KINDS {
        for &(size, times) in &sizes[..effort(job, 6, 5)] {
            let areas = Areas::new(job, size)?;
            for _ in 0..effort(job, times, 2) {
                round += 1;
                job.put_signal(areas.on(kind, to), &pattern::bytes(round, size), arrived.on(to), 1)?;
                arrived.wait_at_least(round)?;
                pattern::check(&areas.image(kind)?, round, &format!("{size} bytes in {kind:?} memory"));
                job.raise(taken.on(from), 1)?;
                taken.wait_at_least(round)?;
            }
        }
    }
    Ok(())
}

/// D1: several writers raise one signal. When the signal has counted all of them, the bytes of all writers are there.
pub fn d1_one_signal_counts_many_writers(job: &Job) -> Result<()> {
    const LEN: usize = 3000;
    let (inbox, arrived, taken) = (job.alloc::<u8>(LEN * job.size())?, job.signal()?, job.signal()?);
    let reader = Rank(0);
    for round in 1..=effort(job, 300, 5) as u64 {
        let place = inbox.on(reader).at(job.rank().index() * LEN);
        let seed = round + job.rank().0 as u64 * 1000;
        job.put_signal(place, &pattern::bytes(seed, LEN), arrived.on(reader), 1)?;
        if job.rank() == reader {
            arrived.wait_at_least(round * job.size() as u64)?;
            for (rank, part) in inbox.to_vec()?.chunks(LEN).enumerate() {
                pattern::check(part, round + rank as u64 * 1000, &format!("from rank {rank}"));
            }
            job.ranks().try_for_each(|rank| job.raise(taken.on(rank), 1))?;
        }
        taken.wait_at_least(round)?;
    }
    Ok(())
}

/// D2: a store ordered after a copy becomes visible at the destination only after the bytes.
pub fn d2_store_after_copy(job: &Job) -> Result<()> {
    let len = effort(job, 100_000, 5_000);
    let (inbox, outbox, flag) = (Areas::new(job, len)?, Areas::new(job, len)?, job.alloc::<u64>(1)?);
    let idle = Idle::new(job)?;
    let (to, from) = (next(job), previous(job));
    let mut round = 0;
    for (source, target) in KINDS.into_iter().flat_map(|a| KINDS.map(|b| (a, b))) {
        for _ in 0..effort(job, 25, 4) {
            round += 1;
            outbox.set(job, source, &pattern::bytes(round, len))?;
            let sent =
                job.copy(outbox.on(source, job.rank()), inbox.on(target, to), len, After::Nothing)?.handle();
            let mut flag_store = job.istore(flag.on(to), round, After::Exact(sent))?;
            idle.until(|| {
                flag_store.test();
                job.load(flag.pointer()).map(|value| value == round)
            })?;
            let what = format!("{source:?} memory of rank {from} to {target:?} memory");
            pattern::check(&inbox.image(target)?, round, &what);
            flag_store.wait()?;
            job.barrier()?;
        }
    }
    Ok(())
}

/// Raises from all ranks add up. A wait ends at its threshold and not before, and raises before the
/// wait count.
pub fn signals_count(job: &Job) -> Result<()> {
    let signal = job.signal()?;
    let each = effort(job, 2000, 50) as u64;
    assert_eq!(signal.value(), 0);
    job.barrier()?;
    for _ in 0..each {
        job.ranks().try_for_each(|rank| job.raise(signal.on(rank), 3))?;
    }
    let all = 3 * each * job.size() as u64;
    signal.wait_at_least(1)?;
    signal.wait_at_least(all)?;
    assert_eq!(signal.value(), all);
    job.barrier()?;
    let mut next_raise = signal.reaches(all + 1);
    assert!(next_raise.wait_timeout(Duration::from_millis(5))?.is_none(), "nobody has raised it");
    assert_eq!(signal.value(), all, "a time-out changed the signal");
    job.barrier()?;
    job.raise(signal.on(next(job)), 1)?;
    assert!(next_raise.wait_timeout(Duration::from_secs(3600))?.is_some());
    Ok(())
}

/// A time-out lasts at least as long as its limit, for every limit.
pub fn time_outs_are_not_early(job: &Job) -> Result<()> {
    let signal = job.signal()?;
    for limit in [0, 1, 50, 3_000, 30_000].map(Duration::from_micros) {
        let start = job.clock();
        assert!(signal.reaches(1).wait_timeout(limit)?.is_none());
        assert!(job.clock() - start >= limit, "a limit of {limit:?} lasted {:?}", job.clock() - start);
    }
    job.barrier()?;
    if job.rank() == Rank(0) {
        job.compute(Duration::from_millis(600));
        job.ranks().try_for_each(|rank| job.raise(signal.on(rank), 1))?;
    }
    // Longer than 2^64 ns; cut to 64 bits it would be short.
    for limit in [Duration::from_secs(18_446_744_074), Duration::MAX] {
        assert!(signal.reaches(1).wait_timeout(limit)?.is_some());
    }
    Ok(())
}

/// Signals wrap, and waits work across the wrap.
pub fn signals_wrap(job: &Job) -> Result<()> {
    let signal = job.signal()?;
    let half = 1_u64 << 63;
    job.raise(signal.on(next(job)), half - 1)?;
    signal.wait_at_least(half - 1)?;
    job.barrier()?;
    job.raise(signal.on(next(job)), half - 2)?;
    signal.wait_at_least(u64::MAX - 2)?;
    job.barrier()?;
    for step in 0..6 {
        let early =
            signal.reaches(u64::MAX.wrapping_add(step).wrapping_sub(1)).wait_timeout(Duration::ZERO)?;
        assert!(early.is_none(), "step {step} was visible before it was raised");
        job.barrier()?;
        job.raise(signal.on(next(job)), 1)?;
        signal.wait_at_least(u64::MAX.wrapping_add(step).wrapping_sub(1))?;
        job.barrier()?;
    }
    let (word, to) = (job.alloc::<u64>(1)?, signal.on(next(job)));
    for amount in [half, u64::MAX] {
        let text = "a signal is raised by less than 2^63 at a time";
        misused(job, job.raise(to, amount), &["raise(signal of rank", text]);
        misused(job, job.put_signal(word.on(next(job)), &[7], to, amount), &["put_signal(", text]);
    }
    job.barrier()?;
    assert_eq!((signal.value(), word.get(0)?), (3, 0));
    Ok(())
}

/// A put of zero bytes raises its signal, even with a null address.
pub fn empty_puts_raise(job: &Job) -> Result<()> {
    let (inbox, signal) = (job.alloc::<u64>(1)?, job.signal()?);
    job.put_signal(inbox.on(next(job)), &[], signal.on(next(job)), 2)?;
    signal.wait_at_least(2)?;
    job.put_signal(tasuki::GlobalPtr::<u64>::NULL, &[], signal.on(next(job)), 3)?;
    signal.wait_at_least(5)?;
    assert_eq!((signal.value(), inbox.get(0)?), (5, 0));
    job.barrier()
}

/// Payload signals carry up to 48 bytes with their count, in both directions.
pub fn lines_carry_their_payload(job: &Job) -> Result<()> {
    let (there, back) = (PayloadSignal::<[u64; 6]>::new(job)?, PayloadSignal::<[u8; 3]>::new(job)?);
    let (to, from) = (next(job), previous(job));
    let (mut out, mut answer) = (there.writer(to)?, back.writer(from)?);
    let (mut inward, mut confirmed) = (there.reader(Some(from)), back.reader(None));
    for round in 0..effort(job, 5_000, 30) as u64 {
        let value = [round, !round, round << 7, job.rank().0 as u64, 5, round * 3];
        out.put(&value)?;
        let got = inward.wait()?;
        assert_eq!(got, [round, !round, round << 7, from.0 as u64, 5, round * 3]);
        answer.put(&[round as u8; 3])?;
        assert_eq!(confirmed.wait()?, [round as u8; 3]);
    }
    let none = there.writer(Rank(job.size())).map(drop);
    misused(job, none, &[&format!("there is no rank {}: ", job.size())]);
    job.barrier()
}

/// If a payload signal is written again before it was read, the reader gets an error instead of
/// mixed values.
pub fn payload_signals_detect_overruns(job: &Job) -> Result<()> {
    let line = PayloadSignal::<[u64; 6]>::new(job)?;
    let mut writer = line.writer(next(job))?;
    for value in 1..=3_u64 {
        writer.put(&[value; 6])?;
    }
    job.barrier()?;
    let lost = line.reader(Some(previous(job))).wait();
    crate::expected_error::disagreed(job, lost, &["wrote again before", "reply to each value"]);
    job.barrier()
}

/// Signal memory can be changed only by signals.
pub fn signal_memory_is_not_memory(job: &Job) -> Result<()> {
    let signal = job.signal()?;
    let bits: u64 = bytemuck::cast(signal.on(next(job)));
    let word = tasuki::GlobalPtr::<u64>::new(tasuki::onesided::GlobalAddress::from_bits(bits));
    let areas = Areas::new(job, 8)?;
    let texts = ["is in signal memory", "hint: raise signals"];
    for kind in [Kind::Job, Kind::Program] {
        let own = areas.on(kind, job.rank()).cast();
        misused(job, crate::expected_error::ended(job.copy(own, word, 1, After::Nothing)), &texts);
    }
    misused(job, job.put(word, &[7]), &texts);
    misused(job, job.store(word, 7), &texts);
    misused(job, job.fetch_add(word, 7), &texts);
    job.barrier()?;
    assert_eq!(signal.value(), 0);
    job.barrier()
}
