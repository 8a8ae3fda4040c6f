//! D, I: transfers of the NICAM interface: broadcasts, and transfers that use flags, use counters,
//! or are matched by key.

use crate::exchange::{effort, last, next, previous};
use crate::expected_error::{misused, refused};
use crate::pattern;
use crate::wait_until::stay_away;
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::nicam::{Flags, Transfers};
use tasuki::{ErrorKind, Job, Rank, Request, Result};

const LEN: usize = 3_000;

/// D2: when a flag has its value, the copy before it has arrived. Copies are short and long, to the rank itself and to
/// others.
pub fn d2_flags_follow_their_copies(job: &Job) -> Result<()> {
    let lens = [0, 1, 8, 100, LEN, effort(job, 300_000, 10_000)];
    let room = lens[5];
    let (source, target) = (job.alloc::<u8>(room)?, job.alloc::<u8>(room)?);
    let (flags, transfers) = (Flags::new(job, 2)?, Transfers::new(job)?);
    let (me, to, from) = (job.rank(), next(job), previous(job));
    let rounds = effort(job, 40, 2) as u64;
    for value in 1..=rounds * lens.len() as u64 {
        let len = lens[value as usize % lens.len()];
        job.put(source.pointer(), &pattern::bytes(value + me.0 as u64, len))?;
        transfers.copy_notify(source.pointer(), target.on(to), len, flags.at(0).on(to), value)?;
        flags.at(0).wait(value)?;
        let found = &target.to_vec()?[..len];
        pattern::check(found, value + from.0 as u64, &format!("{len} bytes with a flag"));
        assert_eq!(flags.at(1).value()?, 0, "another flag was set");
        transfers.sync().wait()?;
        job.barrier()?;
    }
    Ok(())
}

/// D3: a flag is set when as many copies have arrived as the counter was set to, not before. Copies
/// that come early count for the next phase.
pub fn d3_counted_arrivals(job: &Job) -> Result<()> {
    let all = job.size();
    let (source, target) = (job.alloc::<u64>(1)?, job.alloc::<u64>(all)?);
    let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
    let (me, flag) = (job.rank(), flags.at(0));
    misused(job, transfers.set_counter(flag.on(me), 0), &["0 arrivals"]);
    for phase in 1..=effort(job, 200, 5) as u64 {
        job.store(source.pointer(), phase * 100 + me.0 as u64)?;
        flag.set(0)?;
        if phase % 2 == 0 {
            transfers.set_counter(flag.on(me), all as u64)?;
            let again = transfers.set_counter(flag.on(me), 1);
            misused(job, again, &["the counter is armed"]);
        }
        job.barrier()?;
        for rank in job.ranks().filter(|&rank| rank != last(job)) {
            transfers.copy_countup(source.pointer(), target.on(rank).at(me.index()), 1)?;
        }
        transfers.sync().wait()?;
        job.barrier()?;
        if phase % 2 == 1 {
            transfers.set_counter(flag.on(me), all as u64)?; // all copies but one may have arrived
        }
        if me == last(job) {
            assert_eq!(flag.value()?, 0, "a flag was set without arrivals");
            for at in 0..all {
                transfers.copy_countup(source.pointer(), target.pointer().at(at), 1)?;
            }
        }
        flag.wait(1)?;
        let found = target.to_vec()?;
        let sent = |at: usize| phase * 100 + if me == last(job) { me.0 as u64 } else { at as u64 };
        assert!((0..all).all(|at| found[at] == sent(at)), "phase {phase}: {found:?}");
        transfers.sync().wait()?;
        job.barrier()?;
    }
    Ok(())
}

/// D3: the flag is not set if one arrival is missing. A surplus arrival counts for the next phase.
pub fn d3_not_before_the_last(job: &Job) -> Result<()> {
    let (words, flags, transfers) = (job.alloc::<u64>(2)?, Flags::new(job, 1)?, Transfers::new(job)?);
    let (me, to, flag) = (job.rank(), next(job), flags.at(0));
    let send = || -> Result<()> {
        transfers.copy_countup(words.pointer(), words.on(to).at(1), 1)?;
        transfers.sync().wait()
    };
    (0..4).try_for_each(|_| send())?;
    job.barrier()?;
    for (count, is_set) in [(3, true), (2, false)] {
        flag.set(0)?;
        transfers.set_counter(flag.on(me), count)?;
        stay_away(job);
        if is_set {
            flag.wait(1)?;
        } else {
            assert_eq!(flag.value()?, 0, "the flag was set although one arrival is missing");
        }
    }
    job.barrier()?;
    send()?;
    flag.wait(1)?;
    job.barrier()
}

/// I1: a rank issues copies between two others, and they are carried out. When sync is done, all
/// copies that this rank has issued have arrived.
pub fn i1_sync_covers_all(job: &Job) -> Result<()> {
    let (source, target) = (job.alloc::<u8>(LEN)?, job.alloc::<u8>(LEN * job.size())?);
    let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
    let (me, all) = (job.rank(), job.size());
    for round in 1..=effort(job, 60, 3) as u64 {
        job.put(source.pointer(), &pattern::bytes(round + me.0 as u64, LEN))?;
        job.barrier()?;
        // This rank fills its row on every rank, from the memory of the rank behind that one.
        for rank in job.ranks() {
            let from = Rank((rank.0 + 1) % all);
            transfers.copy(source.on(from), target.on(rank).at(LEN * me.index()), LEN)?;
        }
        let mut sync = transfers.sync();
        sync.wait()?;
        assert!(sync.test());
        let mut found = vec![0; LEN];
        for rank in job.ranks() {
            job.get(target.on(rank).at(LEN * me.index()), &mut found)?;
            let from = (rank.0 + 1) % all;
            pattern::check(&found, round + from as u64, "a copy issued by a third rank");
        }
        transfers.write_one(flags.at(0).on(next(job)), round)?;
        flags.at(0).wait(round)?;
        job.barrier()?;
    }
    Ok(())
}

/// I1: a word that is written after copies to one rank becomes visible after them.
pub fn i1_a_word_follows_copies(job: &Job) -> Result<()> {
    let (source, target) = (job.alloc::<u8>(LEN)?, job.alloc::<u8>(4 * LEN)?);
    let (flags, transfers, to) = (Flags::new(job, 1)?, Transfers::new(job)?, next(job));
    for round in 1..=effort(job, 200, 5) as u64 {
        job.put(source.pointer(), &pattern::bytes(round, LEN))?;
        for part in 0..4 {
            transfers.copy(source.pointer(), target.on(to).at(part * LEN), LEN)?;
        }
        transfers.write_one(flags.at(0).on(to), round)?;
        flags.at(0).wait(round)?;
        let found = target.to_vec()?;
        found.chunks(LEN).for_each(|part| pattern::check(part, round, "before the word"));
        transfers.sync().wait()?;
        job.barrier()?;
    }
    Ok(())
}

/// I6: source and destination of a copy are matched by key. Either side may come first, different keys may come in any
/// order, and sides with equal keys are matched in the order of their calls.
pub fn i6_rendezvous(job: &Job) -> Result<()> {
    const KEYS: [u64; 8] = [5, 3, 5, 9, 3, 5, 1, 9];
    const OTHER: [u64; 8] = [9, 5, 1, 5, 3, 9, 5, 3];
    let len = 200;
    let (source, target) = (job.alloc::<u8>(8 * len)?, job.alloc::<u8>(8 * len)?);
    let (flags, transfers) = (Flags::new(job, 16)?, Transfers::new(job)?);
    let (me, to, from) = (job.rank(), next(job), previous(job));
    for round in 1..=effort(job, 100, 4) as u64 {
        job.put(source.pointer(), &pattern::bytes(round * 10 + me.0 as u64, 8 * len))?;
        let sources = || -> Result<()> {
            for (at, key) in KEYS.into_iter().enumerate() {
                let flag = flags.at(at).on(me);
                transfers.copy_source(key, to, source.pointer().at(at * len), len, flag, round)?;
            }
            Ok(())
        };
        let destinations = || -> Result<()> {
            for (at, key) in OTHER.into_iter().enumerate() {
                let flag = flags.at(8 + at).on(me);
                transfers.copy_destination(key, from, target.pointer().at(at * len), len, flag, round)?;
            }
            Ok(())
        };
        if (round + me.0 as u64).is_multiple_of(2) {
            sources()?;
            job.compute(Duration::from_micros(5));
            destinations()?;
        } else {
            destinations()?;
            sources()?;
        }
        (0..16).try_for_each(|at| flags.at(at).wait(round))?;
        let (sent, found) = (pattern::bytes(round * 10 + from.0 as u64, 8 * len), target.to_vec()?);
        for (at, key) in OTHER.into_iter().enumerate() {
            let nth = OTHER[..at].iter().filter(|&&other| other == key).count();
            let place = (0..8).filter(|&place| KEYS[place] == key).nth(nth).expect("both sides have the key");
            assert!(found[at * len..][..len] == sent[place * len..][..len], "key {key}, number {nth}");
        }
        job.barrier()?;
    }
    Ok(())
}

/// I6: if source and destination differ in size, both sides get an error, and nothing is written. A
/// full list is an error that changes nothing.
pub fn i6_sides_that_differ(job: &Job) -> Result<()> {
    let (data, flags, transfers) = (job.alloc::<u64>(4)?, Flags::new(job, 19)?, Transfers::new(job)?);
    let (me, peer) = (job.rank(), Rank(1 - job.rank().0.min(1)));
    if me.0 < 2 {
        data.fill(me.0 as u64 + 1)?;
        let flag = |at: usize| flags.at(at).on(me);
        let first = me == Rank(0);
        job.barrier()?;
        if first {
            transfers.copy_source(1, peer, data.pointer(), 4, flag(0), 1)?;
        }
        job.barrier()?;
        if !first {
            let small = transfers.copy_destination(1, peer, data.pointer(), 3, flag(0), 1);
            let texts = ["copy_destination(key 1 from rank 0)", "bytes", "24", "32", "hint: copy_source"];
            refused(job, small, ErrorKind::Disagreement, &texts);
        } else {
            let texts = ["flag 0 of a copy by key 1 with rank 1", "bytes", "24", "32", "hint: copy_source"];
            refused(job, flags.at(0).wait(1), ErrorKind::Disagreement, &texts);
            flags.at(0).set(1)?;
        }
        job.barrier()?;
        // A flag that has a value already must not hide the error.
        if first {
            transfers.copy_source(2, peer, data.pointer(), 3, flag(0), 2)?;
        }
        job.barrier()?;
        if first {
            let texts = ["flag 0 of a copy by key 2 with rank 1", "bytes", "24", "32"];
            refused(job, flags.at(0).wait_at_least(2), ErrorKind::Disagreement, &texts);
        } else {
            let large = transfers.copy_destination(2, peer, data.pointer(), 4, flag(0), 2);
            refused(
                job,
                large,
                ErrorKind::Disagreement,
                &["copy_destination(key 2 from rank 0)", "24", "32"],
            );
        }
        job.barrier()?;
        assert_eq!(data.to_vec()?, [me.0 as u64 + 1; 4]);
        let foreign = transfers.copy_source(1, peer, data.on(peer), 1, flag(1), 1);
        misused(job, foreign, &["belongs to rank"]);
        if first {
            for key in 0..16 {
                transfers.copy_source(key, peer, data.pointer(), 1, flag(3 + key as usize), 1)?;
            }
            let more = transfers.copy_source(99, peer, data.pointer(), 1, flag(1), 1);
            refused(job, more, ErrorKind::Full, &["copies by key", "capacity 16"]);
        }
        job.barrier()?;
        if !first {
            for key in (0..16).rev() {
                transfers.copy_destination(key, peer, data.pointer(), 1, flag(2), key + 1)?;
                flags.at(2).wait(key + 1)?;
            }
            assert_eq!(data.get(0)?, 1);
        } else {
            (0..16).try_for_each(|at| flags.at(3 + at).wait(1))?;
        }
    } else {
        (0..6).try_for_each(|_| job.barrier())?;
    }
    job.barrier()
}

/// I7: a broadcast reaches every rank and sets the flag of every rank, including the source. A rank
/// that discards broadcasts is not changed.
pub fn i7_broadcasts(job: &Job) -> Result<()> {
    let (source, target) = (job.alloc::<u8>(LEN)?, job.alloc::<u8>(LEN)?);
    let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
    let me = job.rank();
    for round in 1..=effort(job, 40, 4) as u64 {
        let root = Rank(round as usize % job.size());
        let drops = Rank((round as usize + 1) % job.size());
        transfers.bcast_discard(me == drops)?;
        target.fill(0)?;
        flags.at(0).set(0)?;
        job.barrier()?;
        if me == root {
            job.put(source.pointer(), &pattern::bytes(round, LEN))?;
            let (to, flag) = (|rank| target.on(rank), |rank| flags.at(0).on(rank));
            transfers.bcast(source.pointer(), to, LEN, flag, round)?;
            transfers.sync().wait()?;
        }
        if me != drops {
            flags.at(0).wait(round)?;
            pattern::check(&target.to_vec()?, round, "broadcast");
        }
        job.barrier()?;
        if me == drops {
            assert_eq!(flags.at(0).value()?, 0, "this rank discards broadcasts");
            assert!(target.to_vec()?.iter().all(|&byte| byte == 0));
        }
        job.barrier()?;
    }
    Ok(())
}

/// I8: threads of all ranks copy, notify, count and write words at once. Each gets its own data,
/// and sync covers all threads.
pub fn i8_threads_transfer(job: &Job) -> Result<()> {
    let (threads, each, len) = (effort(job, 8, 3), effort(job, 200, 4), 64);
    let (source, target) = (job.alloc::<u8>(threads * len)?, job.alloc::<u8>(threads * len)?);
    let (words, counted) = (job.alloc::<u64>(1)?, job.alloc::<u64>(1)?);
    let (flags, back) = (Flags::new(job, threads + 1)?, Flags::new(job, threads)?);
    let (transfers, me, to, from) = (Transfers::new(job)?, job.rank(), next(job), previous(job));
    transfers.set_counter(flags.at(threads).on(me), (threads * each) as u64)?;
    job.barrier()?;
    let bodies = job.threads(threads, |thread| -> Result<()> {
        let place = thread * len;
        for round in 1..=each as u64 {
            let seed = |rank: Rank| round * 100 + thread as u64 * 10 + rank.0 as u64;
            job.put(source.pointer().at(place), &pattern::bytes(seed(me), len))?;
            let (here, there) = (source.pointer().at(place), target.on(to).at(place));
            transfers.copy_countup(words.pointer(), counted.on(to), 1)?;
            if round % 2 == 0 {
                transfers.copy_notify(here, there, len, flags.at(thread).on(to), round)?;
            } else {
                transfers.copy(here, there, len)?;
                transfers.write_one(flags.at(thread).on(to), round)?;
            }
            flags.at(thread).wait(round)?;
            let mut found = vec![0; len];
            target.read(place, &mut found)?;
            pattern::check(&found, seed(from), &format!("thread {thread}, round {round}"));
            if round % 5 == 0 {
                transfers.sync().wait()?;
            }
            transfers.write_one(back.at(thread).on(from), round)?;
            back.at(thread).wait(round)?;
        }
        Ok(())
    });
    bodies?.into_iter().collect::<Result<()>>()?;
    flags.at(threads).wait(1)?;
    transfers.sync().wait()?;
    job.barrier()
}

/// D2: flags set by one thread are set in its order, with copies of any length and without. A flag
/// that counts up never goes back, even if the first stores to it are slow, and the copies before a
/// value have arrived.
pub fn d2_flags_count_up(job: &Job) -> Result<()> {
    let (threads, rounds, each) = (3, effort(job, 60, 3), effort(job, 30, 8) as u64);
    let lens = [0, 8, effort(job, 40_000, 5_000)];
    let (me, to) = (job.rank(), next(job));
    for _ in 0..rounds {
        let (source, target) = (job.alloc::<u8>(threads * lens[2])?, job.alloc::<u8>(threads * lens[2])?);
        let (flags, transfers) = (Flags::new(job, threads)?, Transfers::new(job)?);
        job.barrier()?;
        let bodies = job.threads(threads, |thread| -> Result<()> {
            let (place, flag) = (thread * lens[2], flags.at(thread));
            job.put(source.pointer().at(place), &[me.0 as u8 + 1; 8])?;
            for value in 1..=each {
                match lens.get(value as usize % 4) {
                    None => transfers.write_one(flag.on(to), value)?,
                    Some(&len) => {
                        let (here, there) = (source.pointer().at(place), target.on(to).at(place));
                        transfers.copy_notify(here, there, len, flag.on(to), value)?;
                    }
                }
            }
            let mut seen = 0;
            while seen < each {
                flag.wait_at_least(seen + 1)?;
                let now = flag.value()?;
                assert!(now > seen, "thread {thread}: {now} after {seen}");
                seen = now;
            }
            let mut found = [0; 8];
            target.read(place, &mut found)?;
            assert_eq!(found, [previous(job).0 as u8 + 1; 8]);
            transfers.sync().wait()
        });
        bodies?.into_iter().collect::<Result<()>>()?;
        job.barrier()?;
    }
    Ok(())
}

/// D17: a transfer that fails under way ends the waits for its flags with an error, and makes every
/// further call of its rank fail.
pub fn d17_failed_transfers_end_waits_with_an_error(job: &Job) -> Result<()> {
    let (me, to, from) = (job.rank(), next(job), previous(job));
    let (data, flags, transfers) = (job.alloc::<u64>(4)?, Flags::new(job, 3)?, Transfers::new(job)?);
    let gone = job.alloc_local::<u64>(4)?;
    transfers.copy_source(5, to, gone.pointer(), 4, flags.at(0).on(me), 1)?;
    drop(gone);
    job.barrier()?;
    transfers.copy_destination(5, from, data.pointer(), 4, flags.at(1).on(me), 1)?;
    let check_failure = |outcome: Result<()>, call: &str| {
        let failed = outcome.expect_err(call);
        assert!(matches!(failed.cause(), Cause::Poisoned { .. }), "{failed}");
        assert!(failed.to_string().contains(call), "{call:?} is not in: {failed}");
    };
    check_failure(flags.at(1).wait(1), "wait for flag 1");
    check_failure(transfers.sync().wait(), "sync()");
    check_failure(transfers.copy(data.pointer(), data.on(to), 1), "copy: ");
    check_failure(transfers.write_one(flags.at(2).on(to), 1), "write_one: ");
    check_failure(transfers.set_counter(flags.at(2).on(me), 1), "set_counter: ");
    let again = transfers.copy_source(6, to, data.pointer(), 4, flags.at(0).on(me), 1);
    check_failure(again, "copy_source(key 6");
    assert!(transfers.sync().test() && transfers.sync().wait().is_err());
    job.barrier()
}

/// Wrong arguments are refused at once, and nothing is changed.
pub fn wrong_transfers_are_refused(job: &Job) -> Result<()> {
    let (data, flags, transfers) = (job.alloc::<u64>(4)?, Flags::new(job, 1)?, Transfers::new(job)?);
    let (me, to) = (job.rank(), next(job));
    let (here, flag) = (data.pointer(), flags.at(0));
    misused(job, transfers.copy(tasuki::GlobalPtr::NULL, here, 1), &["null"]);
    misused(job, transfers.copy_notify(here, data.on(Rank(99)), 1, flag.on(to), 1), &["99"]);
    misused(job, transfers.write_one(flags.at(100_000_000).on(to), 1), &["write_one", "no such flag"]);
    for (flag, text) in [(flags.at(1), "flag 1 of 1"), (flags.at(usize::MAX), "of 1")] {
        misused(job, flag.value(), &[text, "there is no flag", "1 (0 to 0)"]);
        misused(job, flag.set(1), &[text]);
        misused(job, flag.wait(1), &[text]);
        misused(job, transfers.write_one(flag.on(to), 1), &["write_one", "no such flag"]);
    }
    if job.size() > 1 {
        misused(job, transfers.set_counter(flag.on(to), 1), &["the flag belongs to rank"]);
    }
    misused(job, transfers.copy_notify(here.at(9_000_000), data.on(to), 1, flag.on(to), 1), &["copy_notify"]);
    transfers.copy_notify(here, data.on(to).at(1), 1, flag.on(to), 4)?;
    flag.wait_at_least(3)?;
    assert_eq!((flag.value()?, me), (4, job.rank()));
    transfers.sync().wait()?;
    job.barrier()
}
