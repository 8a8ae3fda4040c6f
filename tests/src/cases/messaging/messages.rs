//! G: single messages and large numbers of messages, and the state after errors of messages.

use crate::exchange::{effort, is_simulated};
use crate::expected_error::{misused, refused};
use crate::leak::forget;
use crate::pattern;
use std::time::{Duration, Instant};
use tasuki::collective::Split;
use tasuki::engine::Cause;
use tasuki::message::{
    BUFFERED_OVERHEAD, check_send_buffer, recv_into, send_from, set_buffered, set_send_buffer, slots,
};
use tasuki::{ErrorKind, Job, Member, Rank, Received, Request, Result, Slot};

/// Lengths around the limits of a line, a chunk and a ring.
const LENGTHS: [usize; 16] =
    [0, 1, 7, 8, 9, 16, 47, 48, 49, 100, 4096, 32_767, 32_768, 32_769, 262_144, 300_001];

/// G1: each message is matched with the receive of its pair, slot and direction.
pub fn g1_messages_of_all_lengths_arrive(job: &Job) -> Result<()> {
    let world = job.world();
    let (next, previous) = (job.rank_after(1), job.rank_after(-1));
    for (round, len) in LENGTHS.into_iter().enumerate() {
        let slot = Slot(round * 61 % 1024);
        let bytes = pattern::bytes(job.rank().0 as u64 * 1000 + round as u64, len);
        let mut got = vec![0xee; len + 3];
        world.scope(|s| {
            let mut receive = s.recv(&mut got, previous, slot)?;
            s.send(&bytes, next, slot)?.wait()?;
            let received = receive.wait()?;
            assert_eq!(received, Received { slot, source: Member(previous.0), count: len });
            Ok(())
        })?;
        pattern::check(&got[..len], previous.0 as u64 * 1000 + round as u64, &format!("{len} bytes"));
        assert!(got[len..].iter().all(|&byte| byte == 0xee), "bytes behind the message were written");
    }
    job.barrier()
}

/// G11b: the receive of a slot is posted again immediately after each message.
pub fn g11b_a_slot_is_used_again_at_once(job: &Job) -> Result<()> {
    let (world, rounds) = (job.world(), effort(job, 200_000, 300) as u64);
    let peer = Rank(1 - job.rank().0);
    for round in 1..=rounds {
        if job.rank() == 0 {
            world.send(&[round, round * 3], peer, Slot(9))?;
        } else {
            let mut got = [0; 2];
            world.recv(&mut got, peer, Slot(9))?;
            assert_eq!(got, [round, round * 3]);
        }
    }
    job.barrier()
}

/// G16: a receive that has timed out is never written to, and the next receive of the slot gets the
/// right message.
pub fn g16_receives_that_time_out(job: &Job) -> Result<()> {
    let world = job.world();
    let sizes = [1, 8, 48, 49, 1000, 70_000];
    let limits = effort(job, 20, 3);
    for (first, second) in sizes.iter().flat_map(|a| sizes.iter().map(move |b| (*a, *b))) {
        for limit in 0..limits {
            let seed = (first * 7 + second * 13 + limit) as u64;
            if job.rank() == 0 {
                let sent = pattern::bytes(seed, second.min(first));
                job.compute(Duration::from_micros(limit as u64 * 3));
                world.send(&sent, Rank(1), Slot(5))?;
            } else if job.rank() == 1 {
                let (mut early, mut late) = (vec![1; first], vec![2; second]);
                match world.within(Duration::from_micros(limit as u64 * 2)).recv(&mut early, Rank(0), Slot(5))
                {
                    Ok(got) => pattern::check(&early[..got.count], seed, "in time"),
                    Err(error) => {
                        assert!(error.is_timeout(), "{error}");
                        let got = world.recv(&mut late, Rank(0), Slot(5))?;
                        assert_eq!(got.count, second.min(first));
                        pattern::check(&late[..got.count], seed, "too late");
                        assert!(
                            early.iter().all(|&byte| byte == 1),
                            "the buffer was written after the receive had timed out"
                        );
                    }
                }
            }
        }
    }
    job.barrier()
}

/// G15: a message longer than its receive is an error on both sides, and nothing is written.
pub fn g15_too_large_is_reported_on_both_sides(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let world = job.world();
    for (len, room) in [(2, 1), (48, 47), (49, 48), (100, 50), (100_000, 10), (100_000, 99_999)] {
        let truncated = Cause::Truncated { len, room };
        if job.rank() == 0 {
            let error = world
                .send(&vec![7_u8; len as usize], Rank(1), Slot(0))
                .expect_err("the message does not fit");
            assert_eq!(*error.cause(), truncated, "{error}");
            world.send(&[5_u8], Rank(1), Slot(0))?;
        } else if job.rank() == 1 {
            let mut into = vec![3_u8; room as usize];
            let error = world.recv(&mut into, Rank(0), Slot(0)).expect_err("the message does not fit");
            assert_eq!(*error.cause(), truncated, "{error}");
            assert!(into.iter().all(|&byte| byte == 3));
            assert_eq!(world.recv(&mut into, Rank(0), Slot(0))?.count, 1);
        }
    }
    job.barrier()
}

/// G3, G4, G5: a send that waits too long is buffered, with the bytes that it had then.
pub fn g3_the_send_buffer_holds_unreceived_messages(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 0 {
        set_send_buffer(job, 100_000, Some(Duration::ZERO))?;
        for slot in 0..3 {
            let mut value = vec![slot; 20 + slot * 1000];
            world.send(&value, Rank(1), Slot(slot))?;
            value.fill(99);
        }
        assert_eq!(check_send_buffer(job)?, (0, 3));
    }
    job.barrier()?;
    if job.rank() == 1 {
        for slot in [1, 0, 2] {
            let mut value = vec![77_usize; 20 + slot * 1000];
            world.recv(&mut value, Rank(0), Slot(slot))?;
            assert!(value.iter().all(|&word| word == slot));
        }
    }
    Ok(())
}

/// G7: a receive of any slot takes a message of every slot.
pub fn g7_any_slot(job: &Job) -> Result<()> {
    let world = job.world();
    for (round, len) in LENGTHS.into_iter().enumerate() {
        let slot = Slot(1000 - round * 60);
        if job.rank() == 0 {
            world.send(&pattern::bytes(round as u64, len), Rank(1), slot)?;
        } else if job.rank() == 1 {
            let mut got = vec![0; len.max(60)];
            let received = world.recv(&mut got, Rank(0), Slot::ANY)?;
            assert_eq!(received, Received { slot, source: Member(0), count: len });
            pattern::check(&got[..len], round as u64, "any");
        }
    }
    job.barrier()
}

/// G3: receives of any slot get the messages that a rank has sent without waiting in the order of their sends.
pub fn g3_receives_of_any_slot_take_the_oldest(job: &Job) -> Result<()> {
    let world = job.world();
    for round in 0..effort(job, 50, 5) as u64 {
        if job.rank() == 0 {
            // The slots fall, so that neither their numbers nor the places of their messages give the order.
            for number in 0..20 {
                world.send(&[round, number], Rank(1), Slot(40 - number as usize))?;
            }
        }
        job.barrier()?;
        if job.rank() == 1 {
            for number in 0..20 {
                let mut got = [0; 2];
                let received = world.recv(&mut got, Rank(0), Slot::ANY)?;
                assert_eq!((got, received.slot), ([round, number], Slot(40 - number as usize)));
            }
        }
        job.barrier()?;
    }
    Ok(())
}

/// G3: a buffered message arrives although its sender makes no call. (A simulated thread cannot sleep meanwhile.)
pub fn g3_buffered_messages_arrive_while_their_sender_computes(job: &Job) -> Result<()> {
    if is_simulated(job) {
        return Ok(());
    }
    let (world, arrived) = (job.world(), job.signal()?);
    for (round, len) in (1..).zip([1, 48, 5000]) {
        if job.rank() == 0 {
            world.send(&vec![7_u8; len], Rank(1), Slot(0))?;
            let begun = Instant::now();
            while arrived.value() < round && begun.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_micros(100)); // no call of the library but a look at the signal
            }
            assert!(arrived.value() == round, "{len} bytes have waited for a call of their sender");
        } else if job.rank() == 1 {
            std::thread::sleep(Duration::from_millis(2)); // the send is buffered by now
            world.recv(&mut vec![0_u8; len], Rank(0), Slot(0))?;
            job.raise(arrived.on(Rank(0)), 1)?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// G2: a send without buffering does not return before its receive is posted.
pub fn g2_a_send_waits_for_its_receive(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let (world, posted) = (job.world(), job.alloc::<u64>(1)?);
    for (round, len) in LENGTHS.into_iter().enumerate() {
        if job.rank() == 0 {
            world.send(&vec![1_u8; len], Rank(1), Slot(0))?;
            assert!(posted.get(0)? > round as u64, "{len} bytes were sent before their receive");
        } else if job.rank() == 1 {
            job.compute(Duration::from_micros(50));
            job.put(posted.on(Rank(0)), &[round as u64 + 1])?;
            world.recv(&mut vec![0_u8; len], Rank(0), Slot(0))?;
        }
    }
    job.barrier()
}

/// G3: a message whose receive comes in time is not buffered. Without a time limit no message is ever buffered.
pub fn g3_sends_in_time_are_not_buffered(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 0 {
        set_send_buffer(job, 1 << 20, Some(Duration::from_secs(3600)))?;
        world.send(&[1_u8; 5000], Rank(1), Slot(0))?;
        assert_eq!(check_send_buffer(job)?, (0, 0));
        set_send_buffer(job, 1 << 20, None)?;
        world.send(&[2_u8; 5000], Rank(1), Slot(0))?;
        assert_eq!(check_send_buffer(job)?, (0, 0));
        set_send_buffer(job, 1 << 20, Some(Duration::from_millis(1)))?;
        world.send(&[3_u8; 5000], Rank(1), Slot(0))?;
        assert_eq!(check_send_buffer(job)?, (0, 1));
    } else if job.rank() == 1 {
        for round in 1..=2 {
            job.compute(Duration::from_millis(3));
            let mut got = [0_u8; 5000];
            world.recv(&mut got, Rank(0), Slot(0))?;
            assert_eq!(got, [round; 5000]);
        }
    }
    job.barrier()?;
    if job.rank() == 1 {
        let mut got = [0_u8; 5000];
        world.recv(&mut got, Rank(0), Slot(0))?;
        assert_eq!(got, [3; 5000]);
    }
    job.barrier()
}

/// G5: three sends are buffered, then one receive is posted: one message is delivered, two remain.
/// G1: a message behind a buffered one on its slot follows it in order.
pub fn g5_every_call_makes_progress_with_buffered_sends(job: &Job) -> Result<()> {
    let (world, ready) = (job.world(), job.signal()?);
    if job.rank() == 0 {
        set_send_buffer(job, 1 << 20, Some(Duration::ZERO))?;
        for slot in 0..3 {
            world.send(&[slot; 100], Rank(1), Slot(slot))?;
        }
        for number in 0..10_u64 {
            world.send(&[number; 9], Rank(1), Slot(7))?;
        }
        job.raise(ready.on(Rank(1)), 1)?;
        ready.wait_at_least(1)?;
        // A waiting call may have delivered the first message already.
        while check_send_buffer(job)?.1 > 12 {}
        assert_eq!(check_send_buffer(job)?, (0, 12));
        job.raise(ready.on(Rank(1)), 1)?;
        set_send_buffer(job, 0, None)?; // waits until the send buffer is empty
    } else if job.rank() == 1 {
        ready.wait_at_least(1)?;
        let mut posted = world.irecv(vec![9_usize; 100], Rank(0), Slot(1))?;
        job.raise(ready.on(Rank(0)), 1)?;
        assert_eq!(posted.wait()?.0, vec![1; 100]);
        ready.wait_at_least(2)?;
        for slot in [2, 0] {
            let mut got = [9_usize; 100];
            world.recv(&mut got, Rank(0), Slot(slot))?;
            assert_eq!(got, [slot; 100]);
        }
        for number in 0..10_u64 {
            let mut got = [99_u64; 9];
            world.recv(&mut got, Rank(0), Slot(7))?;
            assert_eq!(got, [number; 9]);
        }
    }
    job.barrier()
}

/// G3: with `TASUKI_SEND_BUFFER`, short sends whose receive is not posted return. Long ones wait, and those that find
/// no room, and those of a communicator that does not use the buffer. Without the variable, nothing is tested.
pub fn g3_short_sends_return(job: &Job) -> Result<()> {
    const SHORT: usize = 60_000;
    let Some(capacity) = std::env::var("TASUKI_SEND_BUFFER").ok() else { return Ok(()) };
    assert_eq!(capacity, "100000", "two messages of {SHORT} bytes have no room");
    let (world, peer) = (job.world(), Rank(1 - job.rank().0));
    for to in [peer, job.rank()] {
        for len in [0, 8, 1000, SHORT] {
            world.send(&pattern::bytes(len as u64, len), to, Slot(len % 64))?; // both ranks send first
        }
        job.barrier()?;
        for len in [8, SHORT, 0, 1000] {
            let mut got = vec![0; len];
            assert_eq!(world.recv(&mut got, to, Slot(len % 64))?.count, len);
            pattern::check(&got, len as u64, "a short send");
        }
    }
    let (waiting, posted) = (world.dup()?, job.alloc::<u64>(1)?);
    set_buffered(&waiting, false);
    let ways: [(_, &[usize]); 3] = [(&waiting, &[8]), (world, &[70_000]), (world, &[SHORT, SHORT])];
    for (round, (communicator, lens)) in (0..).zip(ways) {
        job.barrier()?;
        if job.rank() == 0 {
            for (slot, &len) in lens.iter().enumerate() {
                communicator.send(&vec![1_u8; len], peer, Slot(slot))?;
            }
            assert!(posted.get(0)? > round, "{lens:?} bytes were sent before their receives");
        } else {
            job.compute(Duration::from_millis(2));
            job.put(posted.on(peer), &[round + 1])?;
            for (slot, &len) in lens.iter().enumerate() {
                communicator.recv(&mut vec![0_u8; len], peer, Slot(slot))?;
            }
        }
    }
    job.barrier()
}

/// G6: messages without a byte take room in the send buffer, too.
pub fn g6_empty_messages_fill_the_send_buffer(job: &Job) -> Result<()> {
    const MESSAGES: u64 = 10;
    let (world, to, from) = (job.world(), job.rank_after(1), job.rank_after(-1));
    let mut nothing: [u8; 0] = [];
    set_send_buffer(job, MESSAGES * BUFFERED_OVERHEAD, Some(Duration::ZERO))?;
    (0..MESSAGES).try_for_each(|_| world.send(&nothing, to, Slot(0)))?;
    assert_eq!(job.memory().send_buffer, MESSAGES * BUFFERED_OVERHEAD);
    refused(job, world.send(&nothing, to, Slot(0)), ErrorKind::Full, &["0 + 1024 bytes", "only 0 of 10240"]);
    job.barrier()?;
    (0..MESSAGES).try_for_each(|_| world.recv(&mut nothing, from, Slot(0)).map(drop))?;
    set_send_buffer(job, 0, None)?; // waits until the send buffer is empty
    assert_eq!(job.memory().send_buffer, 0);
    job.barrier()
}

/// G6: a full send buffer is an error; nothing is sent, and nothing is lost.
pub fn g6_the_send_buffer_is_full(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 0 {
        set_send_buffer(job, 150 + 2 * BUFFERED_OVERHEAD, Some(Duration::ZERO))?;
        world.send(&[1_u8; 100], Rank(1), Slot(1))?;
        let full = world.send(&[2_u8; 100], Rank(1), Slot(2));
        let texts = [
            "slot 2 to rank 1",
            "the message takes 100 + 1024 bytes",
            "1074 of 2198 bytes free",
            "hint: make the send buffer larger",
        ];
        refused(job, full, ErrorKind::Full, &texts);
        world.send(&[3_u8; 50], Rank(1), Slot(3))?;
    }
    job.barrier()?;
    if job.rank() == 0 {
        set_send_buffer(job, 0, None)?;
        world.send(&[4_u8; 100], Rank(1), Slot(2))?;
    } else if job.rank() == 1 {
        for (slot, value, len) in [(3, 3, 50), (1, 1, 100), (2, 4, 100)] {
            let mut got = vec![0_u8; len];
            world.recv(&mut got, Rank(0), Slot(slot))?;
            assert_eq!(got, vec![value; len]);
        }
    }
    job.barrier()
}

/// G4: a send of job memory is buffered like any other, with the bytes that it had then.
pub fn g4_sends_of_job_memory_are_buffered(job: &Job) -> Result<()> {
    let (world, table) = (job.world(), job.alloc::<u64>(1000)?);
    if job.rank() == 0 {
        set_send_buffer(job, 10_000, Some(Duration::ZERO))?;
        table.fill(5)?;
        send_from(world, table.pointer().slice(1000), Rank(1), Slot(0))?;
        table.fill(6)?;
    }
    job.barrier()?;
    if job.rank() == 1 {
        let mut got = [0_u64; 1000];
        world.recv(&mut got, Rank(0), Slot(0))?;
        assert_eq!(got, [5; 1000]);
    }
    job.barrier()
}

/// G7: a receive of any slot and one of a named slot are posted together. Messages may be matched
/// either way; none is lost or doubled.
pub fn g7_any_slot_beside_a_slot(job: &Job) -> Result<()> {
    let world = job.world();
    for round in 0..effort(job, 200, 8) as u64 {
        if job.rank() == 0 {
            world.send(&[round, 1], Rank(1), Slot(70))?;
            world.send(&[round, 2], Rank(1), Slot(70))?;
        } else if job.rank() == 1 {
            let (mut any, mut named) = ([0_u64; 2], [0_u64; 2]);
            world.scope(|s| {
                if round % 2 == 0 {
                    s.recv(&mut any, Rank(0), Slot::ANY)?;
                    s.recv(&mut named, Rank(0), Slot(70))?;
                } else {
                    s.recv(&mut named, Rank(0), Slot(70))?;
                    s.recv(&mut any, Rank(0), Slot::ANY)?;
                }
                s.wait_all()
            })?;
            assert_eq!((any[0], named[0], any[1] + named[1], any[1] * named[1]), (round, round, 3, 2));
        }
    }
    job.barrier()
}

/// G8: slots and ranks that do not exist, and two receives of any slot.
pub fn g8_slots_and_ranks_that_are_none(job: &Job) -> Result<()> {
    let (world, size) = (job.world(), job.size());
    assert_eq!(slots(world), 1024);
    let texts =
        ["there is no slot 1024: the communicator has 1024", "hint: create the communicator with more"];
    misused(job, world.send(&[1_u8], Rank(0), Slot(1024)), &texts);
    misused(job, world.recv(&mut [1_u8], Rank(0), Slot(1024)), &texts);
    misused(job, world.isend(vec![1_u8; 100], Rank(0), Slot(1024)), &texts);
    let texts = [&format!("there is no rank {size}")[..], "hint: take ranks from"];
    misused(job, world.send(&[1_u8], Rank(size), Slot(0)), &texts);
    misused(job, world.irecv(vec![1_u8], Rank(size), Slot(0)), &texts);
    let failing = world.dup()?;
    misused(job, failing.bcast(&mut [1_u8], Rank(size)), &texts);
    // Numbers of more than 32 bits stand for no existing slot or rank, also once the banks of the existing are open.
    let mut own = world.irecv(vec![0_u8], job.rank(), Slot(0))?;
    world.send(&[5_u8], job.rank(), Slot(0))?;
    assert_eq!(own.wait()?.0, [5]);
    for beyond in [1 << 32, 3 << 40, usize::MAX - 1] {
        let texts = ["there is no slot 4294967294 or above: the communicator has 1024"];
        misused(job, world.send(&[1_u8], job.rank(), Slot(beyond)), &texts);
        misused(job, world.irecv(vec![1_u8], job.rank(), Slot(beyond)), &texts);
        let rank = Rank(job.rank().0 | beyond);
        let texts = [&format!("there is no rank {rank}")[..]];
        misused(job, world.send(&[1_u8], rank, Slot(0)), &texts);
        misused(job, world.irecv(vec![1_u8], rank, Slot(0)), &texts);
        misused(job, failing.bcast(&mut [1_u8], rank), &texts);
        misused(job, world.scope(|s| s.send([1_u8], rank, Slot(0)).map(drop)), &texts);
    }
    let any = world.irecv(vec![0_u8; 8], Rank(0), Slot::ANY)?;
    misused(
        job,
        world.irecv(vec![0_u8; 8], Rank(0), Slot::ANY),
        &["any slot from rank 0", "earlier receive"],
    );
    drop(any);
    let few = world.split(Split::colour(0).slots(3))?;
    misused(job, few.send(&[1_u8], Rank(0), Slot(3)), &["there is no slot 3: the communicator has 3"]);
    job.barrier()
}

/// G9: with 600 posted receives, one more message is received correctly, and so are their messages.
pub fn g9_six_hundred_receives(job: &Job) -> Result<()> {
    let (world, many) = (job.world(), effort(job, 600, 70));
    let peer = Rank(1 - job.rank().0);
    let posted: Vec<_> =
        (0..many).map(|slot| world.irecv(vec![0_usize; 1 + slot % 20], peer, Slot(slot))).collect();
    job.barrier()?;
    if job.rank() == 0 {
        world.send(&[77_u64], peer, Slot(1000))?;
    } else {
        let mut got = [0_u64];
        world.recv(&mut got, peer, Slot(1000))?;
        assert_eq!(got, [77]);
    }
    for slot in (0..many).rev() {
        world.send(&vec![slot; 1 + slot % 20], peer, Slot(slot))?;
    }
    for (slot, receive) in posted.into_iter().enumerate() {
        assert_eq!(receive?.wait()?.0, vec![slot; 1 + slot % 20]);
    }
    job.barrier()
}

/// G14: both ranks send before they receive, on one slot after the other. Buffered sends keep this
/// from deadlock.
pub fn g14_head_to_head(job: &Job) -> Result<()> {
    let (world, many) = (job.world(), effort(job, 3000, 30) as u64);
    let peer = Rank(1 - job.rank().0);
    set_send_buffer(job, 64 << 20, Some(Duration::ZERO))?;
    let slot = |number: u64| Slot((number % 16) as usize);
    for number in 0..many {
        world.send(&vec![number; 1 + number as usize % 30], peer, slot(number))?;
    }
    for number in 0..many {
        let mut got = vec![0; 1 + number as usize % 30];
        world.recv(&mut got, peer, slot(number))?;
        assert_eq!(got, vec![number; got.len()]);
    }
    job.barrier()
}

/// G18: eight threads of each rank send and receive at once.
pub fn g18_eight_threads_exchange(job: &Job) -> Result<()> {
    let (world, rounds) = (job.world(), effort(job, 300, 4));
    let (next, previous) = (job.rank_after(1), job.rank_after(-1));
    let outcomes = job.threads(8, |thread| -> Result<()> {
        let slot = Slot(thread * 9);
        for round in 0..rounds {
            let len = [3, 48, 200, 70_000][(round + thread) % 4];
            let (sent, mut got) = (pattern::bytes((round * 8 + thread) as u64, len), vec![0; len]);
            world.scope(|s| {
                s.recv(&mut got, previous, slot)?;
                s.send(&sent, next, slot)?;
                s.wait_all()
            })?;
            pattern::check(&got, (round * 8 + thread) as u64, &format!("thread {thread}, round {round}"));
        }
        Ok(())
    })?;
    outcomes.into_iter().collect::<Result<()>>()?;
    job.barrier()
}

/// Messages from job memory to job memory, and from and to other memory.
pub fn messages_of_job_memory(job: &Job) -> Result<()> {
    let world = job.world();
    let (next, previous) = (job.rank_after(1), job.rank_after(-1));
    for (round, len) in LENGTHS.into_iter().enumerate() {
        let table = job.alloc::<u8>(2 * len.max(1))?;
        let seed = |rank: Rank| rank.0 as u64 * 100 + round as u64;
        table.write(0, &pattern::bytes(seed(job.rank()), len))?;
        let receive = |job: &Job| -> Result<Vec<u8>> {
            if round % 3 == 0 {
                let mut own = vec![0; len];
                world.recv(&mut own, previous, Slot(12))?;
                return Ok(own);
            }
            let got = recv_into(world, table.pointer().at(len).slice(len), previous, Slot(12))?;
            assert_eq!((got.count, got.source), (len, Member(previous.0)));
            let mut image = vec![0; len];
            table.read(len, &mut image)?;
            let _ = job;
            Ok(image)
        };
        let got = if job.size() == 1 {
            let mut sending = world.isend(pattern::bytes(seed(job.rank()), len), next, Slot(12))?;
            let got = receive(job)?;
            sending.wait()?;
            got
        } else if job.rank().0.is_multiple_of(2) {
            send_from(world, table.pointer().slice(len), next, Slot(12))?;
            receive(job)?
        } else {
            let got = receive(job)?;
            send_from(world, table.pointer().slice(len), next, Slot(12))?;
            got
        };
        pattern::check(&got, seed(previous), &format!("{len} bytes"));
        job.barrier()?;
    }
    job.barrier()
}

/// G16: messages that were sent to withdrawn receives and that nobody receives do not keep ranks
/// from leaving.
pub fn g16_messages_to_withdrawn_receives_let_ranks_leave(job: &Job) -> Result<()> {
    let (world, peer) = (job.world(), job.rank_after(1));
    let into = vec![0_u8; 20_000];
    forget(world.irecv(into.clone(), peer, Slot(1))?);
    job.barrier()?;
    world.send(&into, peer, Slot(1)) // when this returns, the message is in the ring of its sender
}

/// G1: all members send and receive at once, short messages and long ones, around a ring, along a line with two ends,
/// and to themselves. A message that is too long is an error on both sides.
pub fn g1_members_send_and_receive_at_once(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let (world, me, size) = (job.world(), job.rank().0, job.size());
    let (west, east) = (job.rank_after(-1), job.rank_after(1));
    for len in [0, 1, 6, 7, 1000, 100_000] {
        let (own, mut got) = (vec![me as u64; len], vec![u64::MAX; len]);
        let received = world.sendrecv(&own, east, &mut got, west, Slot(4))?;
        assert_eq!((received.count, received.source.0, received.slot), (len, west.0, Slot(4)));
        assert_eq!(got, vec![west.0 as u64; len], "around a ring");
        world.sendrecv(&own, job.rank(), &mut got, job.rank(), Slot(4))?;
        assert_eq!(got, own, "to oneself");
    }
    let (before, after) = (me.checked_sub(1).map(Rank), (me + 1 < size).then_some(Rank(me + 1)));
    let mut got = usize::MAX;
    let received = world.sendrecv(&me, after, &mut got, before, Slot(4))?;
    assert_eq!(received.count, usize::from(me > 0));
    assert_eq!(got, me.checked_sub(1).unwrap_or(usize::MAX), "along a line");
    if size > 1 {
        // Rank 0 sends rank 1 more than it has room for; nobody else sends.
        let (to, from) = ((me == 0).then_some(Rank(1)), (me == 1).then_some(Rank(0)));
        let outcome = world.sendrecv(&[7_u8; 100], to, &mut [0_u8; 99], from, Slot(4));
        assert_eq!(outcome.is_err(), me < 2, "{outcome:?}");
    }
    job.barrier()
}
