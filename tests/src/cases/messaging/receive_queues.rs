//! Receive queues: many senders, one receiver, a fixed number of buffers.

use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::{ReceiveQueue, ReceiveQueueAddress, ReceiveQueueSender};
use tasuki::{ErrorKind, Job, Rank, Result, Slot, Sum};

const SHORT: Duration = Duration::from_millis(5);

/// Sends the address of rank 0's queue to all.
fn shared(job: &Job, inbox: &Option<ReceiveQueue>) -> Result<ReceiveQueueAddress> {
    let mut address = [inbox.as_ref().map_or_else(ReceiveQueueAddress::default, ReceiveQueue::address)];
    job.world().bcast(&mut address, Rank(0))?;
    assert_eq!(address[0].rank(), Rank(0));
    Ok(address[0])
}

/// The values of a message: its sender, its number, and numbers that follow from both.
fn message(from: Rank, number: u64, values: usize) -> Vec<u64> {
    let rest = (2..values.max(2) as u64).map(|at| from.0 as u64 * 1_000_003 + number * 101 + at);
    [from.0 as u64, number].into_iter().chain(rest).collect()
}

/// The number of values of a message: short ones, some that fill a buffer of 64 bytes, and a few that do not fit.
fn values_of(number: u64) -> usize {
    [2, 3, 4, 5, 8, 2, 9, 400][number as usize % 8]
}

/// All ranks but the first, or the only one, send `count` messages each to the queue of rank 0, which takes them all.
fn flood(job: &Job, inbox: Option<ReceiveQueue>, count: u64) -> Result<()> {
    let address = shared(job, &inbox)?;
    if let Some(mut inbox) = inbox {
        let mut next = vec![0; job.size()];
        let before = inbox.memory();
        if job.size() == 1 {
            let mut to = job.open_receive_queue(address)?;
            for number in 0..count {
                let sent = message(Rank(0), number, 2 + number as usize % 3);
                to.send(&sent, Slot(number as usize % 3))?;
                let (values, got) = inbox.recv_vec::<u64>(Slot::ANY)?;
                assert_eq!((values, got.source), (sent, Rank(0)));
            }
            return Ok(());
        }
        for received in 0..count * (job.size() as u64 - 1) {
            if received % 50 == 49 && job.size() <= 4 {
                std::thread::sleep(Duration::from_micros(200)); // senders wait
            }
            let (got, received) = inbox.recv_vec::<u64>(Slot::ANY)?;
            let from = received.source;
            let number = std::mem::replace(&mut next[from.0], got[1] + 1);
            assert_eq!(got, message(from, number, values_of(number)), "from rank {from}");
        }
        assert_eq!(inbox.memory(), before, "the queue has not grown");
        assert_eq!(inbox.try_recv_vec::<u64>(Slot::ANY)?, None);
        assert!(next[1..].iter().all(|&numbers| numbers == count), "{next:?}");
        job.barrier() // dropped after all senders are
    } else {
        let mut to = job.open_receive_queue(address)?;
        for number in 0..count {
            to.send(&message(job.rank(), number, values_of(number)), Slot(number as usize % 5))?;
        }
        drop(to);
        job.barrier()
    }
}

fn on_first<T>(job: &Job, make: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    (job.rank() == 0).then(make).transpose()
}

/// A queue of few buffers takes all messages of all ranks, each once, those of a rank in their order, and never grows.
pub fn f1_many_senders_few_buffers(job: &Job) -> Result<()> {
    for slots in [1, 2, 8] {
        flood(job, on_first(job, || job.receive_queue(slots, 64))?, 60)?;
    }
    flood(job, on_first(job, || job.receive_queue(200, 0))?, 60)
}

/// The counters may wrap.
pub fn f3_tickets_wrap(job: &Job) -> Result<()> {
    for first in [u64::MAX - 20, u64::MAX, 1 << 40] {
        flood(job, on_first(job, || job.receive_queue_from(4, 64, first))?, 30)?;
    }
    Ok(())
}

/// The counters may lie on any ranks, and be divided among them.
pub fn f5_counters_on_other_ranks(job: &Job) -> Result<()> {
    let last = Rank(job.size() - 1);
    flood(job, on_first(job, || job.receive_queue_with(4, 64, &[last]))?, 40)?;
    let all: Vec<Rank> = job.ranks().collect();
    flood(job, on_first(job, || job.receive_queue_with(8, 64, &all))?, 40)
}

/// Senders that all belong to one share borrow slots of the other one, and their messages keep their order.
pub fn f5_senders_borrow_slots(job: &Job) -> Result<()> {
    const COUNT: u64 = 20;
    if job.size() < 5 {
        return Ok(()); // one sender alone never finds its share full of messages of others
    }
    let mut inbox = on_first(job, || job.receive_queue_with(2, 64, &job.spread_ranks(2)))?; // a slot in each share
    let mut to = job.open_receive_queue(shared(job, &inbox)?)?;
    let senders = job.size().div_ceil(2); // the ranks of the first share
    let mut next = vec![0; senders];
    // A sender borrows only if it found its share full, and is free to leave it when it is full again.
    for round in 0.. {
        let mine = if job.rank().0 < senders { COUNT } else { 0 };
        if let Some(inbox) = &mut inbox {
            for _ in 0..COUNT * (senders as u64 - 1) {
                job.compute(Duration::from_micros(20)); // senders wait
                let (got, received) = inbox.recv_vec::<u64>(Slot::ANY)?;
                let number = std::mem::replace(&mut next[received.source.0], got[1] + 1);
                assert_eq!(got, message(received.source, number, values_of(number)));
            }
        } else {
            for number in round * COUNT..round * COUNT + mine {
                to.send(&message(job.rank(), number, values_of(number)), Slot(0))?;
            }
        }
        let borrowed = usize::from(job.rank().0 < senders && to.share() != 0);
        if job.world().allreduce(&[borrowed], Sum)?[0] > 0 {
            break;
        }
        assert!(round < 200, "no sender has borrowed a slot");
    }
    drop(to);
    job.barrier()
}

/// Messages whose tickets were drawn together are received like others; those that are not sent after an error stop
/// nobody.
pub fn f_several_tickets_by_one_atomic(job: &Job) -> Result<()> {
    let mut inbox = on_first(job, || job.receive_queue(4, 64))?;
    let mut to = job.open_receive_queue(shared(job, &inbox)?)?;
    let last = Rank(job.size() - 1);
    let messages: Vec<Vec<u64>> = (0..if job.size() == 1 { 4 } else { 20 })
        .map(|number| message(job.rank(), number, if job.size() == 1 { 3 } else { values_of(number) }))
        .collect();
    let parts: Vec<&[u64]> = messages.iter().map(|values| &values[..]).collect();
    if job.rank() != 0 || job.size() == 1 {
        to.send_many(&parts, Slot(3))?;
        to.send_many::<u64>(&[], Slot(3))?;
    }
    if let Some(inbox) = &mut inbox {
        let mut next = vec![0; job.size()];
        for _ in 0..messages.len() * (job.size() - 1).max(1) {
            let (got, received) = inbox.recv_vec::<u64>(Slot(3))?;
            let number = std::mem::replace(&mut next[received.source.0], got[1] + 1);
            assert_eq!(got, message(received.source, number, got.len()));
        }
        assert_eq!(inbox.try_recv_vec::<u64>(Slot::ANY)?, None);
    }
    job.barrier()?;
    if job.rank() == last {
        job.set_timeout(Some(SHORT));
        let six = [[last.0 as u64, 1]; 6];
        let error =
            to.send_many(&six.each_ref().map(|two| &two[..]), Slot(3)).expect_err("there is room for 4");
        assert!(error.is_timeout() && error.to_string().contains("4 of 6 messages were sent"), "{error}");
        job.set_timeout(None);
    }
    job.barrier()?;
    if let Some(inbox) = &mut inbox {
        for _ in 0..4 {
            assert_eq!(inbox.recv_vec::<u64>(Slot(3))?.0, [last.0 as u64, 1]);
        }
        job.open_receive_queue(inbox.address())?.send(&[0_u64, 5], Slot(3))?;
        assert_eq!(inbox.recv_vec::<u64>(Slot(3))?.0, [0, 5], "the tickets of the others hold up nobody");
    }
    drop(to);
    job.barrier()
}

/// A receive of a slot takes the oldest message with it, also behind others, and no buffer is used again before the
/// messages before it were taken.
pub fn f9_messages_are_taken_out_of_order(job: &Job) -> Result<()> {
    let mut inbox = on_first(job, || job.receive_queue(8, 64))?;
    let address = shared(job, &inbox)?;
    let mut to = job.open_receive_queue(address)?;
    let last = job.size() - 1;
    for round in 0..20_u64 {
        if job.rank().0 == last {
            // Fill the queue; slot 7 comes last.
            for slot in 0..8 {
                to.send(&[round, slot as u64, 0, 0, 0, slot as u64], Slot(slot))?;
            }
            if last != 0 {
                // Waits until the message in the first buffer was taken, which is the last that is taken.
                to.send(&[round, 8, 0, 0, 0, 8], Slot(8))?;
            }
        }
        if let Some(inbox) = &mut inbox {
            for slot in [7, 3, 4, 6, 5, 2, 1, 0, 8] {
                if slot == 8 && last == 0 {
                    to.send(&[round, 8, 0, 0, 0, 8], Slot(8))?;
                }
                let mut got = [0; 6];
                let received = inbox.recv(&mut got, Slot(slot))?;
                assert_eq!((received.slot, received.source.0, received.count), (Slot(slot), last, 6));
                assert_eq!(got, [round, slot as u64, 0, 0, 0, slot as u64]);
            }
        }
    }
    drop(to);
    job.barrier()
}

/// If messages of other slots fill all buffers, the oldest ones are copied out; when there is no room for that either,
/// the receive fails, and no message is lost.
pub fn f10_other_slots_fill_the_queue(job: &Job) -> Result<()> {
    let mut inbox = on_first(job, || job.receive_queue(4, 64))?;
    let address = shared(job, &inbox)?;
    let mut to = job.open_receive_queue(address)?;
    let last = Rank(job.size() - 1);
    let send = |to: &mut ReceiveQueueSender, numbers: std::ops::Range<u64>| {
        numbers.into_iter().try_for_each(|number| to.send(&message(last, number, 6), Slot(1)))
    };
    if let Some(inbox) = &mut inbox {
        let mut sent = 0;
        let error = loop {
            if job.size() == 1 {
                send(&mut to, sent..sent + 1)?;
                sent += 1;
                if sent < 4 {
                    continue; // the first receive copies one message out, and each further one another
                }
            }
            job.set_timeout(Some(SHORT));
            match inbox.recv_vec::<u64>(Slot(2)).expect_err("no message has that slot") {
                error if error.is_timeout() => {}
                error => break error,
            }
        };
        job.set_timeout(None);
        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        assert!(matches!(error.cause(), Cause::Full { .. }), "{error}");
        let all = if job.size() == 1 { sent } else { 40 };
        for number in 0..all {
            let (got, received) = inbox.recv_vec::<u64>(Slot(1))?;
            assert_eq!((got, received.source), (message(last, number, 6), last));
        }
    } else if job.rank() == last {
        send(&mut to, 0..40)?;
    }
    drop(to);
    job.barrier()
}

/// A sender whose time limit is reached has sent nothing, and stops no other one: not while it keeps its sender, which
/// sends on, nor when it drops it.
pub fn f_senders_that_give_up_stop_nobody(job: &Job) -> Result<()> {
    for drops in [false, true] {
        for len in [2, 8, 400] {
            let inbox = on_first(job, || job.receive_queue(2, 64))?;
            let address = shared(job, &inbox)?;
            let is_late = job.rank().0 == job.size() - 1;
            let mut to = job.open_receive_queue(address)?;
            if is_late {
                let sent = if len == 400 { 0 } else { 2 };
                (0..sent).try_for_each(|number| to.send(&message(job.rank(), number, 2), Slot(0)))?;
                job.set_timeout(Some(SHORT));
                let error = to.send(&message(job.rank(), 77, len), Slot(0)).expect_err("nobody receives");
                assert!(error.is_timeout(), "{error}");
                job.set_timeout(None);
                if drops {
                    drop(to);
                    to = job.open_receive_queue(address)?;
                }
            }
            job.barrier()?;
            let before = if len == 400 { 0 } else { 2 };
            let more = message(job.rank(), 5, 2);
            match inbox {
                // What was sent before the error, and one message of each other rank: not the one that was given up.
                Some(mut inbox) => {
                    let expected = before + if job.size() == 1 { 0 } else { job.size() - 1 };
                    for _ in 0..expected {
                        let (got, received) = inbox.recv_vec::<u64>(Slot::ANY)?;
                        let from = received.source;
                        assert_eq!(got, message(from, got[1], 2));
                        assert_ne!(got[1], 77);
                    }
                    if job.size() == 1 {
                        to.send(&more, Slot(0))?;
                        assert_eq!(inbox.recv_vec::<u64>(Slot::ANY)?.0, more);
                    }
                    assert_eq!(inbox.try_recv_vec::<u64>(Slot::ANY)?, None);
                    drop(to);
                    job.barrier()?;
                }
                None => {
                    to.send(&more, Slot(0))?;
                    drop(to);
                    job.barrier()?;
                }
            }
        }
    }
    Ok(())
}

/// A message that is longer than a buffer stays at its sender until it is received, also into too little room at first.
pub fn f_long_messages_stay_at_their_senders(job: &Job) -> Result<()> {
    let mut inbox = on_first(job, || job.receive_queue(4, 64))?;
    let address = shared(job, &inbox)?;
    if let Some(inbox) = &mut inbox {
        let mut next = vec![0_u64; job.size()];
        for received in 0..3 * (job.size() - 1) {
            if received == 0 {
                let error = inbox.recv(&mut [0_u64; 10], Slot::ANY).expect_err("too little room");
                assert!(matches!(error.cause(), Cause::Truncated { .. }), "{error}");
                let error = inbox.recv_vec::<u32>(Slot::ANY).expect_err("another type");
                assert!(matches!(error.cause(), Cause::TypeMismatch { .. }), "{error}");
            }
            let (got, received) = inbox.recv_vec::<u64>(Slot::ANY)?;
            let from = received.source;
            assert!(got == message(from, next[from.0], 30_000), "from rank {from}");
            next[from.0] += 1;
        }
    } else {
        let mut to = job.open_receive_queue(address)?;
        (0..3).try_for_each(|number| to.send(&message(job.rank(), number, 30_000), Slot(0)))?;
    }
    job.barrier()
}

/// Senders of a queue that was dropped get an error, and queues come and go without end.
pub fn f_queues_are_dropped(job: &Job) -> Result<()> {
    let inbox = on_first(job, || job.receive_queue(2, 64))?;
    let address = shared(job, &inbox)?;
    let mut to = job.open_receive_queue(address)?;
    job.barrier()?;
    drop(inbox);
    job.barrier()?;
    let closed = |error: tasuki::Error| {
        assert!(matches!(error.cause(), Cause::QueueClosed { peer: Rank(0) }), "{error}");
    };
    closed(job.open_receive_queue(address).expect_err("it was dropped"));
    // A few messages fit into buffers that nobody reads any more.
    let sends = (0..4).map(|number| to.send(&message(job.rank(), number, 2), Slot(0)));
    closed(sends.collect::<Result<()>>().expect_err("it was dropped"));
    closed(to.send(&message(job.rank(), 9, 400), Slot(0)).expect_err("it was dropped"));
    drop(to);
    job.barrier()?;
    let mut inbox = on_first(job, || job.receive_queue(16, 64))?;
    let mut to = job.open_receive_queue(shared(job, &inbox)?)?;
    job.barrier()?; // all have opened it
    if let Some(inbox) = inbox.as_mut().filter(|_| job.size() > 1) {
        assert_eq!(inbox.recv_vec::<u64>(Slot(1))?.0, [1]);
    }
    if job.rank() != 0 {
        // The receiver drops the queue when it has the first message; the long one has stayed here.
        to.send(&[1_u64], Slot(1))?;
        closed(to.send(&message(job.rank(), 9, 400), Slot(0)).expect_err("it was dropped"));
    }
    drop((inbox, to));
    job.barrier()?;
    let mut before = job.memory().local;
    for round in 0..300_u64 {
        if round == 1 {
            before = job.memory().local; // the first queue of the loop has freed the one above
        }
        let mut own = job.receive_queue(150, 100)?;
        let mut to = job.open_receive_queue(own.address())?;
        to.send(&message(job.rank(), round, 9), Slot(0))?;
        assert_eq!(own.recv_vec::<u64>(Slot::ANY)?.0, message(job.rank(), round, 9));
    }
    assert_eq!(job.memory().local, before);
    job.barrier()
}

/// Queues of senseless sizes are refused.
pub fn f_senseless_queues_are_refused(job: &Job) -> Result<()> {
    let refused = |made: Result<ReceiveQueue>, kind: ErrorKind| {
        let error = made.expect_err("senseless");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("receive_queue("), "{error}");
    };
    refused(job.receive_queue(0, 64), ErrorKind::Misuse);
    refused(job.receive_queue(1 << 17, 64), ErrorKind::Misuse);
    refused(job.receive_queue(4, usize::MAX), ErrorKind::Misuse);
    refused(job.receive_queue_with(4, 64, &[]), ErrorKind::Misuse);
    refused(job.receive_queue_with(4, 64, &[Rank(job.size())]), ErrorKind::Misuse);
    let mut inbox = job.receive_queue(1, 0)?;
    let mut to = job.open_receive_queue(inbox.address())?;
    assert_eq!(to.send(&1, Slot(usize::MAX)).expect_err("no slot").kind(), ErrorKind::Misuse);
    to.send(&[0_u8; 0], Slot(0))?;
    assert_eq!(inbox.recv_vec::<u64>(Slot(0))?.0, [0_u64; 0], "an empty message");
    job.barrier()
}

/// A receive ends when no rank is left that could send, and a send when its receiver has left.
pub fn f_receives_end_when_all_others_have_left(job: &Job) -> Result<()> {
    let inbox = on_first(job, || job.receive_queue(2, 64))?;
    let address = shared(job, &inbox)?;
    match inbox {
        Some(mut inbox) if job.size() > 1 => {
            let mut got = 0;
            let error = loop {
                match inbox.recv_vec::<u64>(Slot::ANY) {
                    Ok((values, received)) => got += usize::from(values == message(received.source, 3, 9)),
                    Err(error) => break error,
                }
            };
            assert_eq!(got, job.size() - 1, "{error}");
            assert!(matches!(error.cause(), Cause::PeerLeft { .. }), "{error}");
            Ok(())
        }
        Some(_) => Ok(()),
        None => job.open_receive_queue(address)?.send(&message(job.rank(), 3, 9), Slot(0)),
    }
}

/// A sender whose time limit is reached and which then does nothing more, though it is not dropped, stops no other one.
pub fn f_an_idle_sender_that_gave_up_stops_nobody(job: &Job) -> Result<()> {
    let inbox = on_first(job, || job.receive_queue(2, 64))?;
    let address = shared(job, &inbox)?;
    let (last, mut senders) =
        (job.size() - 1, [job.open_receive_queue(address)?, job.open_receive_queue(address)?]);
    if job.rank().0 == last {
        (0..2).try_for_each(|number| senders[0].send(&message(job.rank(), number, 2), Slot(0)))?;
        job.set_timeout(Some(SHORT));
        let error = senders[1].send(&message(job.rank(), 77, 2), Slot(0)).expect_err("nobody receives");
        assert!(error.is_timeout(), "{error}");
        job.set_timeout(None);
    }
    job.barrier()?;
    if job.rank().0 == last {
        (2..8).try_for_each(|number| senders[0].send(&message(job.rank(), number, 2), Slot(0)))?;
    }
    if let Some(mut inbox) = inbox {
        for number in 0..8 {
            assert_eq!(inbox.recv_vec::<u64>(Slot(0))?.0, message(Rank(last), number, 2));
        }
        drop(senders);
        return job.barrier();
    }
    drop(senders);
    job.barrier()
}
