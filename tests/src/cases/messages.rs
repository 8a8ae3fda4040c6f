//! G: messages, one at a time and many, and what their errors leave behind.

use crate::exchange::effort;
use crate::pattern;
use std::time::Duration;
use tasuki::{Cause, Job, Rank, Received, Result, Slot};

/// Lengths around everything that changes with them: the line, chunks, rings.
const LENGTHS: [usize; 16] =
    [0, 1, 7, 8, 9, 16, 47, 48, 49, 100, 4096, 32_767, 32_768, 32_769, 262_144, 300_001];

/// G1: each message meets the receive of its own pair, slot and direction.
pub fn g1_messages_of_all_lengths_arrive(job: &Job) -> Result<()> {
    let world = job.world();
    let (next, previous) = (job.rank_after(1), job.rank_after(-1));
    for (round, len) in LENGTHS.into_iter().enumerate() {
        let slot = Slot(round as u32 * 61 % 1024);
        let bytes = pattern::bytes(u64::from(job.rank().0) * 1000 + round as u64, len);
        let mut got = vec![0xee; len + 3];
        world.scope(|s| {
            s.recv(&mut got, previous, slot)?;
            s.send(&bytes, next, slot)?;
            s.wait_send(next, slot)?;
            let received = s.wait_recv::<u8>(previous, slot)?;
            assert_eq!(received, Received { slot, source: previous, count: len });
            Ok(())
        })?;
        pattern::check(&got[..len], u64::from(previous.0) * 1000 + round as u64, &format!("{len} bytes"));
        assert!(got[len..].iter().all(|&byte| byte == 0xee), "nothing behind the message");
    }
    job.barrier()
}

/// G11b: a slot whose receive is posted anew at once after each message.
pub fn g11b_a_slot_is_used_again_at_once(job: &Job) -> Result<()> {
    let (world, rounds) = (job.world(), effort(job, 1_000_000, 300) as u64);
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

/// G16: a receive whose time has run out is never written to, and the next on the slot is right.
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
                match world.recv_within(&mut early, Rank(0), Slot(5), Duration::from_micros(limit as u64 * 2))
                {
                    Ok(got) => pattern::check(&early[..got.count], seed, "in time"),
                    Err(error) => {
                        assert!(error.is_timeout(), "{error}");
                        let got = world.recv(&mut late, Rank(0), Slot(5))?;
                        assert_eq!(got.count, second.min(first));
                        pattern::check(&late[..got.count], seed, "too late");
                        assert!(early.iter().all(|&byte| byte == 1), "written after its time");
                    }
                }
            }
        }
    }
    job.barrier()
}

/// G15: a message that is larger than its receive is an error on both sides, and nothing is written.
pub fn g15_too_large_is_told_on_both_sides(job: &Job) -> Result<()> {
    let world = job.world();
    for (len, room) in [(2, 1), (48, 47), (49, 48), (100, 50), (100_000, 10), (100_000, 99_999)] {
        let truncated = Cause::Truncated { len, room };
        if job.rank() == 0 {
            let error = world.send(&vec![7_u8; len as usize], Rank(1), Slot(0)).expect_err("it does not fit");
            assert_eq!(*error.cause(), truncated, "{error}");
            world.send(&[5_u8], Rank(1), Slot(0))?;
        } else if job.rank() == 1 {
            let mut into = vec![3_u8; room as usize];
            let error = world.recv(&mut into, Rank(0), Slot(0)).expect_err("it does not fit");
            assert_eq!(*error.cause(), truncated, "{error}");
            assert!(into.iter().all(|&byte| byte == 3));
            assert_eq!(world.recv(&mut into, Rank(0), Slot(0))?.count, 1);
        }
    }
    job.barrier()
}

/// G3, G4, G5: the spool takes what waits too long, as it was then.
pub fn g3_the_spool_takes_what_waits(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 0 {
        job.set_spool(100_000, Some(Duration::ZERO))?;
        for slot in 0..3_u64 {
            let mut value = vec![slot; 20 + slot as usize * 1000];
            world.send(&value, Rank(1), Slot(slot as u32))?;
            value.fill(99);
        }
        assert_eq!(job.check_spool()?, (0, 3));
    }
    job.barrier()?;
    if job.rank() == 1 {
        for slot in [1, 0, 2_u64] {
            let mut value = vec![77_u64; 20 + slot as usize * 1000];
            world.recv(&mut value, Rank(0), Slot(slot as u32))?;
            assert!(value.iter().all(|&word| word == slot));
        }
    }
    Ok(())
}

/// G7: a receive of any slot takes the message of whichever slot.
pub fn g7_any_slot(job: &Job) -> Result<()> {
    let world = job.world();
    for (round, len) in LENGTHS.into_iter().enumerate() {
        let slot = Slot(1000 - round as u32 * 60);
        if job.rank() == 0 {
            world.send(&pattern::bytes(round as u64, len), Rank(1), slot)?;
        } else if job.rank() == 1 {
            let mut got = vec![0; len.max(60)];
            let received = world.recv(&mut got, Rank(0), Slot::ANY)?;
            assert_eq!(received, Received { slot, source: Rank(0), count: len });
            pattern::check(&got[..len], round as u64, "any");
        }
    }
    job.barrier()
}
