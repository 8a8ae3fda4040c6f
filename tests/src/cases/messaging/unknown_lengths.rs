//! G19: receives of messages whose length the receiver does not know.

use crate::exchange::{effort, is_simulated, next, previous};
use crate::expected_error::disagreed;
use crate::pattern::{message, number_of};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::set_send_buffer;
use tasuki::{Job, Rank, Request, Result, Slot};

/// Numbers of values: none, messages in the slot's line, and messages through a ring: of one chunk, of several, and
/// longer than the ring.
fn counts(job: &Job) -> [usize; 6] {
    [0, 1, 6, 7, (100 << 10) / 8, if is_simulated(job) { 40_000 } else { 500_000 }]
}

fn values(first: u64, count: usize) -> Vec<u64> {
    (first..first + count as u64).map(|value| value * 0x9e37_79b9).collect()
}

/// Messages of all lengths arrive whole, in blocking and nonblocking receives, of a slot and of any slot, begun before
/// and after the sends; two messages of different lengths keep their order.
pub fn g19_messages_of_unknown_length_arrive(job: &Job) -> Result<()> {
    let (world, to, from, slot) = (job.world(), next(job), previous(job), Slot(3));
    for (round, count) in counts(job).into_iter().enumerate() {
        let others = [values(1, count), values(2, 9 - round), values(3, count)];
        for named in [slot, Slot::ANY] {
            for sends_first in [true, false] {
                let mut sending = None;
                if sends_first {
                    sending = Some(world.isend(others[0].clone(), to, slot)?);
                    job.barrier()?;
                }
                let mut receiving = world.irecv_vec::<u64>(from, named)?;
                if !sends_first {
                    job.barrier()?;
                    sending = Some(world.isend(others[0].clone(), to, slot)?);
                }
                let (got, received) = receiving.wait()?;
                sending.expect("it was begun").wait()?;
                assert!(got == others[0], "{count} values, {named:?}");
                assert_eq!((received.slot, received.count, received.source.0), (slot, count, from.0));
                job.barrier()?;
            }
            // Rank 0 receives first if it is not alone.
            let is_first = job.rank() == 0 && job.size() > 1;
            let receive = || -> Result<()> {
                for other in &others[1..] {
                    let (got, received) = world.recv_vec::<u64>(from, named)?;
                    assert!(got == *other, "{} values, {named:?}", other.len());
                    assert_eq!((received.slot, received.count), (slot, other.len()));
                }
                Ok(())
            };
            if job.size() == 1 {
                for other in &others {
                    let mut sending = world.isend(other.clone(), to, slot)?;
                    assert!(world.recv_vec::<u64>(from, named)?.0 == *other);
                    sending.wait()?;
                }
                continue;
            }
            if is_first {
                receive()?;
            }
            for other in &others[1..] {
                world.send(other, to, slot)?;
            }
            if !is_first {
                receive()?;
            }
            job.barrier()?;
        }
    }
    let (nothing, received) = world.recv_vec::<u64>(None::<Rank>, slot)?;
    assert_eq!((nothing, received.count), (vec![], 0));
    assert_eq!(world.irecv_vec::<u64>(None::<Rank>, slot)?.wait()?.0, Vec::<u64>::new());
    Ok(())
}

/// Bytes that are no whole number of values are an error, and wait for the next receive, whatever it names. The
/// messages of the slot keep their order.
pub fn g19_bytes_that_are_no_whole_values_wait(job: &Job) -> Result<()> {
    let (world, to, from, slot) = (job.world(), next(job), previous(job), Slot(3));
    for (round, len) in [13, 1_001, 100_003].into_iter().enumerate() {
        let texts = [format!("the message has {len} bytes"), "waits for the next receive".to_owned()];
        let texts = [texts[0].as_str(), texts[1].as_str(), "or bytes", "recv_vec("];
        for (turn, named) in [
            [slot; 4],
            [Slot::ANY; 4],
            [slot, Slot::ANY, slot, Slot::ANY],
            [Slot::ANY, slot, Slot::ANY, slot],
        ]
        .into_iter()
        .enumerate()
        {
            let (first, second) = (message(10 * round + turn, len), message(round, len + 3));
            let send = || -> Result<()> {
                world.isend(first.clone(), to, slot)?.wait()?;
                world.isend(second.clone(), to, slot)?.wait().map(drop)
            };
            let receive = || -> Result<()> {
                disagreed(job, world.recv_vec::<u64>(from, named[0]), &texts);
                disagreed(job, world.irecv_vec::<u32>(from, named[1])?.wait(), &texts[..3]);
                disagreed(job, world.recv_vec::<u64>(from, named[2]), &texts);
                let (got, received) = world.recv_vec::<u8>(from, named[3])?;
                assert!(got == first && received.slot == slot, "{len} bytes, {named:?}");
                assert!(world.recv_vec::<u8>(from, slot)?.0 == second);
                Ok(())
            };
            if job.size() == 1 {
                set_send_buffer(job, 1 << 20, Some(Duration::ZERO))?;
                send().and_then(|()| receive())?;
                set_send_buffer(job, 0, None)?;
            } else if job.rank().0.is_multiple_of(2) {
                send().and_then(|()| receive())?;
            } else {
                receive().and_then(|()| send())?;
            }
            job.barrier()?;
        }
    }
    Ok(())
}

/// A message of another type is an error on both sides. The slot goes on.
pub fn g19_types_are_compared(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends of another type learn of it from their receive
    let (world, to, from, slot) = (job.world(), next(job), previous(job), Slot(3));
    for count in [1, 7, 20_000] {
        for named in [slot, Slot::ANY] {
            let texts = ["of type i32, but the receive wants f64"];
            let mut receiving = world.irecv_vec::<f64>(from, named)?;
            job.barrier()?;
            disagreed(job, world.send(&vec![7_i32; 2 * count], to, slot), &texts);
            disagreed(job, receiving.wait(), &texts);
            job.barrier()?;
            let mut sending = world.isend(vec![7_i32; 2 * count], to, slot)?;
            job.barrier()?;
            disagreed(job, world.recv_vec::<f64>(from, named), &texts);
            disagreed(job, sending.wait(), &texts);
            job.barrier()?;
            let mut sending = world.isend(vec![0.5; count], to, slot)?;
            assert_eq!(world.recv_vec::<f64>(from, named)?.0, vec![0.5; count]);
            sending.wait()?;
            job.barrier()?;
        }
    }
    Ok(())
}

/// A receive that has reached its limit leaves its message to the next one, which knows its length or does not.
pub fn g19_a_limit_leaves_the_message(job: &Job) -> Result<()> {
    let (world, slot) = (job.world(), Slot(3));
    for (named, len) in
        [slot, Slot::ANY].into_iter().flat_map(|named| [40, 49, 5_000, 300_000].map(|len| (named, len)))
    {
        let messages = if len > 100_000 { effort(job, 40, 6) } else { effort(job, 300, 30) };
        if job.rank() == 0 {
            for number in 0..messages {
                job.compute(Duration::from_nanos((number * 7_919 % 5_000) as u64));
                world.send(&message(number, len), Rank(1), slot)?;
            }
        } else {
            let mut next = 0;
            for turn in 0.. {
                let limit = Duration::from_nanos((turn * 37 % 9_000) as u64);
                match world.within(limit).recv_vec::<u8>(Rank(0), named) {
                    Ok((got, received)) => {
                        assert_eq!((number_of(&got), received.slot, got.len()), (next, slot, len));
                        next += 1;
                    }
                    Err(error) => {
                        assert!(error.is_timeout(), "{error}");
                        assert!(error.to_string().contains("recv_vec("), "{error}");
                    }
                }
                if next < messages && turn % 3 == 0 {
                    let mut got = vec![0; len];
                    let count = world.recv(&mut got, Rank(0), named)?.count;
                    assert_eq!((number_of(&got), count), (next, len));
                    next += 1;
                }
                if next == messages {
                    break;
                }
            }
        }
        job.barrier()?;
    }
    Ok(())
}

/// Receives of unknown length are dropped and cancelled at many moments. No message is lost, and they keep their order.
pub fn g19_dropped_receives_lose_nothing(job: &Job) -> Result<()> {
    let (world, slot) = (job.world(), Slot(3));
    for (named, len) in
        [slot, Slot::ANY].into_iter().flat_map(|named| [40, 49, 5_000, 300_000].map(|len| (named, len)))
    {
        let messages = if len > 100_000 { effort(job, 40, 6) } else { effort(job, 300, 25) };
        if job.rank() == 0 {
            for number in 0..messages {
                if number % 3 == 0 {
                    job.compute(Duration::from_nanos((number * 7_919 % 5_000) as u64));
                }
                world.send(&message(number, len), Rank(1), slot)?;
            }
        } else {
            let (mut turn, mut next) = (0, 0);
            while next < messages {
                turn += 1;
                let mut receive = world.irecv_vec::<u8>(Rank(0), named)?;
                for _ in 0..turn % 11 {
                    job.compute(Duration::from_nanos((turn * 37 % 900) as u64));
                    let _ = receive.test();
                }
                let got = match turn % 5 {
                    0 => receive.wait()?.0,
                    1 if receive.cancel() => {
                        assert_eq!(receive.into_values(), Some(vec![]));
                        continue;
                    }
                    2 => {
                        drop(receive);
                        let mut got = vec![0; len];
                        let count = world.recv(&mut got, Rank(0), named)?.count;
                        assert_eq!(count, len);
                        got
                    }
                    _ => continue,
                };
                assert_eq!((number_of(&got), got.len()), (next, len), "{named:?}");
                next += 1;
            }
        }
        job.barrier()?;
    }
    Ok(())
}

/// A receive whose sender leaves gets the message that was sent before, and then an error.
pub fn g19_receives_end_when_their_sender_has_left(job: &Job) -> Result<()> {
    let (world, slot) = (job.world(), Slot(3));
    if job.rank() == 0 {
        return world.send(&values(1, 10_000), Rank(1), slot);
    }
    assert!(world.recv_vec::<u64>(Rank(0), slot)?.0 == values(1, 10_000));
    for error in [
        world.recv_vec::<u64>(Rank(0), slot).map(drop),
        world.irecv_vec::<u64>(Rank(0), Slot::ANY)?.wait().map(drop),
    ] {
        let error = error.expect_err("the sender has left");
        assert!(matches!(error.cause(), Cause::PeerLeft { peer: Rank(0) }), "{error}");
    }
    Ok(())
}
