//! G17: sends and receives that are cancelled. Either the message is not transferred and the request has its values, or
//! the request goes on and returns them. A message that meets a cancellation is received once.

use crate::exchange::effort;
use crate::pattern::{message, number_of};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::{BUFFERED_OVERHEAD, set_send_buffer};
use tasuki::{ErrorKind, Job, Rank, Request, Result, Slot, wait_any};

/// A short message, one of one chunk, one of several chunks, one longer than a ring.
const LENGTHS: [usize; 5] = [40, 49, 5_000, 100_000, 600_000];
const SLOT: Slot = Slot(5);

/// Checks the outcome of a wait after a cancellation.
fn was_cancelled<T>(waited: Result<T>) {
    let error = waited.err().expect("a wait after a cancellation fails");
    assert_eq!(*error.cause(), Cause::AlreadyReturned { what: "the message" });
    assert!(error.kind() == ErrorKind::Misuse && error.to_string().contains("or cancelled"), "{error}");
}

/// A send without a receive is cancelled, and the receive that comes later gets the next message of the slot. A send
/// that has met its receive is not cancelled.
pub fn g17_a_cancelled_send_is_not_transferred(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let world = job.world();
    for (round, len) in LENGTHS.into_iter().enumerate() {
        if job.rank() == 0 {
            let mut old = world.isend(message(round, len), Rank(1), SLOT)?;
            assert!(!old.test() && old.cancel() && !old.cancel() && old.test());
            was_cancelled(old.wait());
            assert_eq!(old.into_values(), Some(message(round, len)));
            let mut new = world.isend(message(round + 10, len), Rank(1), SLOT)?;
            job.barrier()?;
            while !new.test() {
                job.compute(Duration::from_micros(1));
            }
            assert!(!new.cancel(), "the message has arrived");
            assert_eq!(new.wait()?, message(round + 10, len));
            assert!(!new.cancel() && new.into_values().is_none());
        } else if job.rank() == 1 {
            job.barrier()?;
            let (got, _) = world.irecv(vec![0_u8; len], Rank(0), SLOT)?.wait()?;
            assert_eq!(number_of(&got), round + 10);
        } else {
            job.barrier()?;
        }
        let mut nobody = world.isend(vec![1_u8; len], None::<Rank>, SLOT)?;
        assert!(!nobody.cancel() && nobody.wait()?.len() == len);
        job.barrier()?;
    }
    Ok(())
}

/// A receive without a message is cancelled, and its values are as they were. The next receive, of the slot or of any
/// slot, gets the message. A receive whose message has arrived is not cancelled.
pub fn g17_a_cancelled_receive_leaves_its_message(job: &Job) -> Result<()> {
    let world = job.world();
    let named = [(SLOT, SLOT), (SLOT, Slot::ANY), (Slot::ANY, SLOT), (Slot::ANY, Slot::ANY)];
    for (round, (len, (early, late))) in
        LENGTHS.into_iter().flat_map(|len| named.map(|named| (len, named))).enumerate()
    {
        if job.rank() == 1 {
            let mut receive = world.irecv(vec![9_u8; len], Rank(0), early)?;
            assert!(!receive.test() && receive.cancel() && !receive.cancel() && receive.test());
            was_cancelled(receive.wait());
            assert_eq!(receive.into_values(), Some(vec![9; len]));
        }
        job.barrier()?;
        if job.rank() == 0 {
            world.send(&message(round, len), Rank(1), SLOT)?;
        } else if job.rank() == 1 {
            let mut receive = world.irecv(vec![0_u8; len + 8], Rank(0), late)?;
            while !receive.test() {
                job.compute(Duration::from_micros(1));
            }
            assert!(!receive.cancel(), "its message has arrived");
            let (got, received) = receive.wait()?;
            assert_eq!((number_of(&got), received.slot), (round, SLOT));
        }
        let mut nobody = world.irecv(vec![1_u8; len], None::<Rank>, SLOT)?;
        assert!(!nobody.cancel() && nobody.wait()?.0 == vec![1; len]);
        job.barrier()?;
    }
    Ok(())
}

/// Sends and receives are cancelled at many moments, while their peer cancels, too. The receiver gets each message that
/// was not cancelled once, in order, and no other one.
pub fn g17_cancellations_race_with_messages(job: &Job) -> Result<()> {
    let world = job.world();
    for (named, len) in [SLOT, Slot::ANY].into_iter().flat_map(|named| LENGTHS.map(|len| (named, len))) {
        let messages = if len > 100_000 { effort(job, 60, 6) } else { effort(job, 400, 25) };
        let pause = |turn: usize| job.compute(Duration::from_nanos((turn * 7_919 % 900) as u64));
        if job.rank() == 0 {
            let mut sent = Vec::new();
            for number in 0..=messages {
                let mut send = world.isend(message(number, len), Rank(1), SLOT)?;
                for _ in 0..number % 7 {
                    pause(number);
                    let _ = send.test();
                }
                if number < messages && number % 4 != 0 && send.cancel() {
                    assert_eq!(
                        number_of(&send.into_values().expect("a cancelled send has its values")),
                        number
                    );
                } else {
                    assert_eq!(number_of(&send.wait()?), number);
                    sent.push(number);
                }
            }
            world.send(&sent, Rank(1), Slot(6))?;
        } else {
            let (mut turn, mut got) = (0, Vec::new());
            while got.last() != Some(&messages) {
                turn += 1;
                let mut receive = world.irecv(vec![0_u8; len + turn % 2 * 64], Rank(0), named)?;
                for _ in 0..turn % 11 {
                    pause(turn);
                    let _ = receive.test();
                }
                if turn % 4 != 0 && receive.cancel() {
                    let values = receive.into_values().expect("a cancelled receive has its values");
                    assert!(values.iter().all(|&byte| byte == 0), "no message has come here");
                } else {
                    got.push(number_of(&receive.wait()?.0));
                }
            }
            let mut sent = vec![0_usize; messages + 1];
            let count = world.recv(&mut sent, Rank(0), Slot(6))?.count;
            assert_eq!(got, sent[..count], "{len} bytes, {named:?}");
        }
        job.barrier()?;
    }
    Ok(())
}

/// A send that was buffered is not cancelled, and arrives. One for which the send buffer is full is.
pub fn g17_a_buffered_send_is_not_cancelled(job: &Job) -> Result<()> {
    let world = job.world();
    set_send_buffer(job, 1000 + 2 * BUFFERED_OVERHEAD, Some(Duration::ZERO))?;
    if job.rank() == 0 {
        let mut small = world.isend(message(1, 600), Rank(1), SLOT)?;
        wait_any([&mut small])?; // the poll has buffered it
        assert!(!small.cancel() && small.wait()? == message(1, 600));
        let mut large = world.isend(message(2, 600), Rank(1), SLOT)?;
        assert!(matches!(
            large.wait().map_err(|error| error.cause().clone()),
            Err(Cause::SendBufferFull { .. })
        ));
        assert!(large.cancel());
        assert_eq!(large.into_values(), Some(message(2, 600)));
    }
    job.barrier()?;
    if job.rank() == 0 {
        world.send(&message(3, 20), Rank(1), SLOT)?;
    } else if job.rank() == 1 {
        for number in [1, 3] {
            let (got, _) = world.irecv(vec![0_u8; 600], Rank(0), SLOT)?.wait()?;
            assert_eq!(number_of(&got), number);
        }
    }
    set_send_buffer(job, 0, None)?; // waits until the send buffer is empty
    job.barrier()
}
