//! P20: slot banks that are closed with `close` and used again.

use crate::exchange::effort;
use crate::expected_error::misused;
use crate::pattern;
use std::time::{Duration, Instant};
use tasuki::collective::Max;
use tasuki::engine::{Cause, capabilities};
use tasuki::message::{close, set_send_buffer};
use tasuki::{Communicator, Job, Rank, Request, Result, Slot};

/// Slots of three banks, including the first and the last slot of a bank.
const SLOTS: [Slot; 4] = [Slot(0), Slot(63), Slot(64), Slot(191)];
/// A word, a line, and several chunks.
const LENGTHS: [usize; 3] = [8, 48, 70_000];

/// Exchanges messages of all lengths with `peer`, one in each of these slots.
fn exchange(world: &Communicator, peer: Rank, seed: u64, slots: &[Slot]) -> Result<()> {
    let me = world.rank();
    for (len, &slot) in LENGTHS.into_iter().flat_map(|len| slots.iter().map(move |slot| (len, slot))) {
        let seed_of = |place: usize| seed * 1000 + place as u64 * 300 + slot.0 as u64;
        let (sent, mut got) = (pattern::bytes(seed_of(me.0), len), vec![0; len]);
        world.scope(|s| {
            s.recv(&mut got, peer, slot)?;
            s.send(&sent, peer, slot)?;
            s.wait_all()
        })?;
        pattern::check(&got, seed_of(peer.0), &format!("round {seed}, {len} bytes on {slot:?} from {peer}"));
    }
    Ok(())
}

/// The partner of rank 0 or rank 1; the other ranks have none.
fn partner(job: &Job) -> Option<Rank> {
    (job.rank().0 < 2).then(|| Rank(1 - job.rank().0))
}

/// One rank closes the banks, or the other, or both, or none; at once, or one after the other. Then
/// they continue to exchange messages.
pub fn p20_close_in_every_order(job: &Job) -> Result<()> {
    let (world, signal) = (job.world(), job.signal()?);
    let Some(peer) = partner(job) else { return job.barrier() };
    let meet = |times: &mut u64| {
        *times += 1;
        job.raise(signal.on(peer), 1).and_then(|_| signal.wait_at_least(*times)).map(drop)
    };
    let mut times = 0;
    for round in 0..effort(job, 60, 12) as u64 {
        exchange(world, peer, round, if round % 5 == 4 { &SLOTS[2..] } else { &SLOTS })?;
        // Bit 0 of the round: rank 0 closes. Bit 1: rank 1 closes. `order` says which rank goes
        // first, or that they do not wait.
        let (closes, order) = (round >> job.rank().0 & 1 == 1, round / 4 % 3);
        if order == 1 + job.rank().0 as u64 {
            meet(&mut times)?;
        }
        if closes {
            close(world, peer)?;
            close(world, peer)?; // closing again has no effect
        }
        if order == 1 + peer.0 as u64 {
            meet(&mut times)?;
        }
    }
    job.barrier()
}

/// One rank closes again and again while the other has the banks open, with posted receives and
/// messages under way. Message numbers continue.
pub fn p20_numbers_go_on(job: &Job) -> Result<()> {
    let (world, rounds) = (job.world(), effort(job, 300, 12) as u64);
    for round in 0..rounds {
        if job.rank() == 0 {
            if round % 3 != 0 {
                close(world, Rank(1))?;
            }
            world.send(&[round], Rank(1), Slot(3))?;
            if round % 3 == 1 {
                close(world, Rank(1))?;
            }
            let mut got = [0];
            world.recv(&mut got, Rank(1), Slot(3))?;
            assert_eq!(got, [round * 7]);
        } else {
            let mut got = [0; 1000];
            // The posting of this receive stays in rank 0's slot banks, also while rank 0 has them
            // closed.
            match world.within(Duration::from_micros(round % 5)).recv(&mut got[..1], Rank(0), Slot(3)) {
                Err(error) if error.is_timeout() => drop(world.recv(&mut got, Rank(0), Slot(3))?),
                other => drop(other?),
            }
            assert_eq!(got[0], round);
            world.send(&[round * 7], Rank(0), Slot(3))?;
        }
    }
    job.barrier()
}

/// Postings from just before a close, which nobody needs any more, must not appear in newly opened
/// banks.
pub fn p20_nothing_comes_late(job: &Job) -> Result<()> {
    let (world, mut got) = (job.world(), [0_u64]);
    for round in 0..effort(job, 100, 12) as u64 {
        let (poster, other) = (Rank(round as usize % 2), Rank(1 - round as usize % 2));
        for (word, slot) in (0..3).flat_map(|word| SLOTS.map(|slot| (word, slot))) {
            if job.rank() == other {
                world.send(&[round + word], poster, slot)?;
            } else {
                world.recv(&mut got, other, slot)?;
                assert_eq!(got, [round + word]);
            }
        }
        if job.rank() == other {
            close(world, poster)?;
        }
        job.barrier()?;
        if job.rank() == poster {
            for slot in SLOTS {
                let early = world.within(Duration::ZERO).recv(&mut got, other, slot);
                assert!(early.expect_err("nothing was sent").is_timeout());
            }
            close(world, other)?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// Memory of closed slot banks, of all pairs of ranks, serves the next communicator.
pub fn p20_closed_memory_serves_others(job: &Job) -> Result<()> {
    /// Bytes of the directory that may be used for the first time: its list heads, and a page of entries for each
    /// communicator.
    const DIRECTORY: u64 = (8 + 3) * 4096;
    let split = || job.world().split(1);
    let all = [split()?, split()?, split()?];
    job.barrier()?;
    let (before, mut first) = (job.memory(), None);
    for (round, world) in (0..effort(job, 300, 6)).zip(all.iter().cycle()) {
        for distance in 0..job.size() as i64 {
            let (to, from) = (job.rank_after(distance), job.rank_after(-distance));
            for slot in SLOTS {
                let mut sending = world.isend(vec![round; 3], to, slot)?;
                let mut got = [0; 3];
                world.recv(&mut got, from, slot)?;
                assert_eq!(got, [round; 3]);
                sending.wait()?;
            }
        }
        let open = job.memory();
        assert_eq!(open.slot_banks - before.slot_banks, 3 * 8320 * job.size() as u64);
        for rank in job.ranks() {
            close(world, rank)?;
        }
        let closed = job.memory();
        assert_eq!(closed.slot_banks, before.slot_banks);
        job.barrier()?;
        // If two ranks open a bank at once, both allocate its memory, and one of them frees it.
        let both = (open.slot_banks - before.slot_banks).next_multiple_of(4096);
        let most = *first.get_or_insert(open.file.max(closed.file) + DIRECTORY + both);
        let now = job.memory();
        assert!(now.file <= most, "round {round}: {now:?} of {most}, before {before:?}");
    }
    job.barrier()
}

/// A bank cannot be closed while the program has not waited for a message that it has begun. The message is not lost.
pub fn p20_close_in_use_is_refused(job: &Job) -> Result<()> {
    let (world, mut got, pause) = (job.world(), [0_u8; 100], job.signal()?);
    misused(job, close(world, Rank(99)), &["there is no rank 99"]);
    let Some(peer) = partner(job) else { return job.barrier() };
    close(world, peer)?; // has no effect if nothing was open
    exchange(world, peer, 0, &SLOTS)?;
    let refused = |what: &'static str, slot: Option<usize>| {
        let place = slot.map_or("slots are in use".to_string(), |slot| format!("slot {slot} is in use"));
        let call = format!("close(rank {peer})");
        let error = misused(job, close(world, peer), &[&place, what, &call, "hint: wait for it"]);
        assert_eq!(*error.cause(), Cause::InUse { what, slot });
    };
    let (send, receive) = ("a send has not been waited for", "a receive has not been waited for");
    for (seed, len) in (0..).zip(LENGTHS) {
        let mut sending = world.isend(pattern::bytes(seed, len), peer, Slot(65))?;
        refused(send, Some(65));
        let mut receiving = world.irecv(vec![0_u8; len], peer, Slot(65))?;
        refused(send, Some(65));
        sending.wait()?;
        refused(receive, Some(65));
        pattern::check(&receiving.wait()?.0, seed, "a message whose bank could not be closed");
        // A receive of any slot, and a receive that a scope has begun, also prevent the close. A dropped receive does
        // not.
        let mut any = world.irecv(vec![0_u8; 100], peer, Slot::ANY)?;
        refused(receive, None);
        world.send(&[7_u8; 60], peer, Slot(100))?;
        assert_eq!(any.wait()?.1.count, 60);
        world.scope(|s| {
            s.recv(&mut got, peer, Slot(2))?;
            refused(receive, Some(2));
            s.send([8_u8; 100], peer, Slot(2))?;
            s.wait_all()
        })?;
        drop(world.irecv(vec![0_u8; len], peer, Slot(66))?);
        // Refused only until it is known that no message has met the dropped receive.
        while let Err(error) = close(world, peer) {
            assert!(matches!(error.cause(), Cause::InUse { slot: Some(66), .. }), "{error}");
            assert!(pause.reaches(1).wait_timeout(Duration::from_micros(10))?.is_none());
        }
    }
    assert_eq!(got, [8; 100]);
    exchange(world, peer, 1, &SLOTS)?;
    job.barrier()
}

/// A close waits until the buffered messages of the pair were sent.
pub fn p20_close_waits_for_buffered_sends(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 0 {
        set_send_buffer(job, 100_000, Some(Duration::ZERO))?;
        world.send(&pattern::bytes(1, 2000), Rank(1), Slot(70))?;
        let early = close(&world.within(Duration::from_micros(100)), Rank(1));
        assert!(early.expect_err("the message was not sent").is_timeout());
    }
    job.barrier()?;
    if job.rank() == 1 {
        let mut got = vec![0; 2000];
        world.recv(&mut got, Rank(0), Slot(70))?;
        pattern::check(&got, 1, "a buffered message");
        close(world, Rank(0))?;
    } else {
        close(world, Rank(1))?; // waits until the message was sent
        set_send_buffer(job, 0, None)?;
    }
    job.barrier()
}

/// A rank that exchanges messages with itself has both ends of a slot bank.
pub fn p20_close_with_itself(job: &Job) -> Result<()> {
    let (world, me, before) = (job.world(), job.rank(), job.memory().slot_banks);
    for round in 0..effort(job, 200, 6) as u64 {
        for slot in SLOTS {
            let mut sending = world.isend(vec![round; 9], me, slot)?;
            let mut got = [0; 9];
            world.recv(&mut got, me, slot)?;
            assert_eq!(got, [round; 9]);
            misused(job, close(world, me), &["a send has not been waited for"]);
            sending.wait()?;
        }
        close(world, me)?;
        assert_eq!(job.memory().slot_banks, before);
    }
    job.barrier()
}

/// Two threads close one pair of ranks while a third exchanges messages with another rank.
pub fn p20_threads_close(job: &Job) -> Result<()> {
    let (world, rounds) = (job.world(), effort(job, 200, 5) as u64);
    for round in 0..rounds {
        match job.rank().0 {
            0 => {
                exchange(world, Rank(1), round, &SLOTS[1..3])?;
                let threads = job.threads(3, |thread| match thread {
                    2 => exchange(world, Rank(2), round, &SLOTS[1..3]),
                    _ => close(world, Rank(1)),
                });
                threads?.into_iter().collect::<Result<()>>()?;
            }
            1 => {
                exchange(world, Rank(0), round, &SLOTS[1..3])?;
                let threads = job.threads(2, |_| if round % 2 == 0 { close(world, Rank(0)) } else { Ok(()) });
                threads?.into_iter().collect::<Result<()>>()?;
            }
            _ => exchange(world, Rank(0), round, &SLOTS[1..3])?,
        }
    }
    job.barrier()
}

/// Rank 0 sends a long message at the moment at which rank 1 withdraws its receive, again and
/// again, until a message has been sent although the receive was withdrawn. If the sender sees the
/// withdrawal, it waits for the next receive. Returns false if no message was sent that way.
fn send_untaken(job: &Job, world: &Communicator, len: usize, seed: u64) -> Result<bool> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    if capabilities(job).direct_from <= len as u64 {
        return Ok(false);
    }
    for attempt in 0..effort(job, 600, 60) as u64 {
        job.barrier()?;
        let mut mine = [0_u8; 2]; // 1 if the message was received; 1 if it was sent
        let mut sending = None;
        if job.rank() == 1 {
            let limit = Duration::from_nanos(attempt % 60 * 200);
            mine[0] = world.within(limit).recv(&mut vec![0_u8; len], Rank(0), Slot(80)).is_ok().into();
        } else {
            let (begun, delay) = (Instant::now(), attempt % 120 * effort(job, 250, 0) as u64);
            while begun.elapsed() < Duration::from_nanos(delay) {
                std::hint::spin_loop();
            }
            let mut message = world.isend(pattern::bytes(seed, len), Rank(1), Slot(80))?;
            mine[1] = (0..10).any(|_| message.test()).into();
            sending = Some(message);
        }
        let [came, went] = job.world().allreduce(&mine, Max)?[..] else { unreachable!("there are two") };
        if job.rank() == 1 && came == 0 && went == 0 {
            world.recv(&mut vec![0_u8; len], Rank(0), Slot(80))?;
        }
        sending.map(|mut sending| sending.wait()).transpose()?;
        if came == 0 && went == 1 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A message that was sent and not received can still be received after the sender has closed the
/// bank.
pub fn p20_close_before_a_message_is_taken(job: &Job) -> Result<()> {
    const LEN: usize = 20_000;
    let world = job.world();
    for round in 0..effort(job, 20, 6) as u64 {
        if !send_untaken(job, world, LEN, round)? {
            break;
        }
        if job.rank() == 0 {
            close(world, Rank(1))?;
            // This send opens the bank again.
            let next = (round % 2 == 1).then(|| world.isend(vec![round], Rank(1), Slot(1))).transpose()?;
            job.barrier()?;
            next.map(|mut next| next.wait()).transpose()?;
        } else {
            job.barrier()?;
            let (mut got, mut word) = (vec![0; LEN], [0]);
            world.recv(&mut got, Rank(0), Slot(80))?;
            pattern::check(&got, round, "a message from before the close");
            if round % 2 == 1 {
                world.recv(&mut word, Rank(0), Slot(1))?;
                assert_eq!(word, [round]);
            }
            if round % 3 != 0 {
                close(world, Rank(0))?;
            }
        }
    }
    job.barrier()
}

/// A message met a receive that was dropped, and the receiver has closed the bank of its slot
/// since. A receive of any slot still finds the message.
pub fn p20_any_finds_messages_in_a_closed_bank(job: &Job) -> Result<()> {
    let world = job.world();
    for slot in [3, 70, 700, 70] {
        if job.rank() == 1 {
            let dropped = world.irecv(vec![0_usize; 2], Rank(0), Slot(slot))?;
            job.barrier()?;
            job.barrier()?;
            drop(dropped);
            close(world, Rank(0))?;
            let mut got = [0_usize; 2];
            assert_eq!(world.recv(&mut got, Rank(0), Slot::ANY)?.slot, Slot(slot));
            assert_eq!(got, [slot; 2]);
        } else {
            job.barrier()?;
            world.send(&[slot; 2], Rank(1), Slot(slot))?;
            job.barrier()?;
        }
    }
    job.barrier()
}

/// A message that nobody can receive any more, because both ranks have closed the bank, does not
/// block other messages.
pub fn p20_close_for_a_message_that_nobody_takes(job: &Job) -> Result<()> {
    let (world, peer) = (job.world(), Rank(1 - job.rank().0));
    // Each message is in a communicator of its own, whose banks stay closed; there are more of them
    // than a rank has rings. The last communicator has two messages.
    let split = |_| job.world().split(1);
    let all = (0..6).map(split).collect::<Result<Vec<Communicator>>>()?;
    for (round, world) in (0..).zip([&all[..], &all[5..]].concat()) {
        if !send_untaken(job, &world, 20_000, round)? {
            break;
        }
        close(&world, peer)?;
        job.barrier()?;
    }
    exchange(world, peer, 7, &SLOTS)?;
    if send_untaken(job, world, 20_000, 8)? {
        close(world, peer)?; // the ranks leave the job with the banks closed
    }
    job.barrier()
}
