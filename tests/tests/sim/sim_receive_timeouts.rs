//! G16, step by step: on the simulator a receive times out at every moment while its message is
//! sent and received.

use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::{Job, Rank, Request, Result, Sim, Slot};
use tasuki_tests::simulated_machines::MACHINES;
use tasuki_tests::watchdog::Watchdog;

/// A short message, one just too long to be short, and one of several pieces.
const LENGTHS: [usize; 3] = [8, 49, 3000];
/// Stands for a receive that does not know the length.
const ANY_LENGTH: usize = usize::MAX;
/// Lengths of the receive buffers.
const ROOMS: [usize; 5] = [8, 48, 100, 3000, ANY_LENGTH];

/// Rank 0 sends two messages. The first receive of rank 1 names `slot`, has a buffer of `room`
/// bytes and times out after `limit`. The later receives name `rest` and have enough room and time.
/// If they are of any slot, they may get the second message first. Returns true if the first
/// receive timed out.
fn exchange(
    job: &Job,
    (len, room): (usize, usize),
    (slot, rest): (Slot, Slot),
    limit: Duration,
) -> Result<bool> {
    let (world, first, second) = (job.world(), vec![1_u8; len.min(room)], vec![2_u8; len]);
    // The limit counts from the beginning of the call, and opening the slots takes longer than most limits here.
    match job.rank().0 {
        0 => world.send(&[0_u8], Rank(1), Slot(8))?,
        _ => drop(world.recv(&mut [0_u8], Rank(0), Slot(8))?),
    }
    let never = job.signal()?;
    if job.rank() == Rank(0) {
        // Otherwise the messages would be there before most of the limits are reached.
        never.reaches(1).wait_timeout(Duration::from_micros(3))?;
        world.send(&first, Rank(1), Slot(7))?;
        let outcome = world.send(&second, Rank(1), Slot(7));
        // If the first message went to a receive of any slot, the second may meet the receive that has timed out,
        // before this rank learns of its withdrawal.
        if slot != Slot::ANY && rest == Slot::ANY && len > room && outcome.is_err() {
            let error = outcome.expect_err("it is an error");
            assert!(matches!(error.cause(), Cause::Truncated { .. }), "{error}");
            world.send(&second, Rank(1), Slot(7))?;
        } else {
            outcome?;
        }
        job.barrier()?;
        return Ok(false);
    }
    let (mut early, mut late) = (Vec::new(), vec![9_u8; 3000]);
    let limited = world.within(limit);
    let outcome = if room == ANY_LENGTH {
        limited.recv_vec(Rank(0), slot).map(|(got, received)| {
            early = got;
            received
        })
    } else {
        early = vec![9; room];
        limited.recv(&mut early, Rank(0), slot)
    };
    let mut missing = vec![&first, &second];
    let timed_out = match &outcome {
        Ok(got) => {
            assert_eq!((got.count, got.slot, &early[..got.count]), (first.len(), Slot(7), &first[..]));
            missing.remove(0);
            false
        }
        Err(error) => {
            assert!(error.is_timeout(), "{error}");
            true
        }
    };
    while !missing.is_empty() {
        let got = world.recv(&mut late, Rank(0), rest)?;
        let most = if rest == Slot::ANY { missing.len() } else { 1 };
        let which = missing[..most].iter().position(|message| message[..] == late[..got.count]);
        assert_eq!(got.slot, Slot(7));
        missing.remove(which.expect("the received message is one of those that were sent"));
    }
    job.barrier()?;
    assert!(
        !timed_out || early.iter().all(|&byte| byte == 9),
        "the buffer was written after the receive had timed out"
    );
    Ok(timed_out)
}

/// Lets the receive time out after each number of steps. A step is too short for two events of a
/// message.
fn at_every_moment(name: &str) {
    let machine = MACHINES.iter().find(|machine| machine.name == name).expect("there is such a machine");
    let _watched = Watchdog::over(format!("time-outs at every moment, {name}"));
    for (len, room) in LENGTHS.into_iter().flat_map(|len| ROOMS.map(|room| (len, room))) {
        let slots = [(Slot(7), Slot(7)), (Slot(7), Slot::ANY), (Slot::ANY, Slot(7))];
        for slots in slots {
            let (mut timed_out, mut in_time) = (0, 0);
            for step in 0..120_u64 {
                let sim = (machine.of)(Sim::seed(step).ranks(2));
                let limit = Duration::from_nanos(step * 251);
                let outcome = tasuki::sim(sim, |job| exchange(job, (len, room), slots, limit));
                let outcome = outcome.unwrap_or_else(|error| {
                    panic!("{len} bytes into {room}, {slots:?}, {limit:?}, seed {step}: {error}")
                });
                let late = outcome.values.into_iter().flatten().any(|late| late);
                *(if late { &mut timed_out } else { &mut in_time }) += 1;
            }
            assert!(timed_out > 0 && in_time > 0, "{len} into {room}: {timed_out} late, {in_time} in time");
        }
    }
}

#[test]
fn at_every_moment_on_a_plain_machine() {
    at_every_moment("plain");
}

#[test]
fn at_every_moment_where_memory_is_mapped() {
    at_every_moment("mapped");
}

#[test]
fn at_every_moment_on_a_bare_machine() {
    at_every_moment("bare");
}
