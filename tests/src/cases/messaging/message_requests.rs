//! G1, G11, G17: sends and receives that are begun and then waited for, awaited, dropped or
//! forgotten.

use crate::exchange::effort;
use crate::expected_error::{misused, refused};
use crate::leak::forget;
use crate::pattern;
use std::time::Duration;
use tasuki::collective::Split;
use tasuki::engine::Cause;
use tasuki::message::{RecvRequest, SendRequest, recv_into, send_from};
use tasuki::{Communicator, ErrorKind, Job, Member, Rank, Request, Result, Slot};

/// A short message, one too long for a line, one of several chunks, one longer than a ring.
const LENGTHS: [usize; 4] = [40, 1000, 100_000, 600_000];

/// Fills freed memory with other bytes, so that a buffer that was freed too early has wrong bytes.
fn reuse_freed_memory(len: usize) {
    let blocks: Vec<Vec<u8>> = (0..10).map(|_| vec![0xdd; len]).collect();
    assert!(std::hint::black_box(&blocks).iter().all(|block| block.iter().all(|&byte| byte == 0xdd)));
}

/// G1: a slot is busy until its operation was waited for, however fast the message was transferred.
pub fn g1_a_slot_is_busy_until_it_is_waited_for(job: &Job) -> Result<()> {
    let world = job.world();
    for len in LENGTHS {
        if job.rank() == 0 {
            let mut first = world.isend(vec![1_u8; len], Rank(1), Slot(2))?;
            let busy = |outcome: Result<()>| {
                let texts = ["slot 2 to rank 1", "an earlier send on this slot", "hint: wait for it"];
                assert_eq!(
                    *refused(job, outcome, ErrorKind::Misuse, &texts).cause(),
                    Cause::Busy { what: "send" }
                );
            };
            busy(world.isend(vec![2_u8; len], Rank(1), Slot(2)).map(drop));
            busy(world.send(&[2_u8], Rank(1), Slot(2)));
            assert_eq!(first.wait()?.len(), len);
            world.send(&vec![3_u8; len], Rank(1), Slot(2))?;
        } else if job.rank() == 1 {
            let mut first = world.irecv(vec![0_u8; len], Rank(0), Slot(2))?;
            let texts = ["slot 2 from rank 0", "an earlier receive on this slot", "hint: wait for it"];
            refused(job, world.irecv(vec![0_u8; len], Rank(0), Slot(2)), ErrorKind::Misuse, &texts);
            refused(job, world.recv(&mut [0_u8], Rank(0), Slot(2)), ErrorKind::Misuse, &texts);
            assert_eq!(first.wait()?.0, vec![1; len]);
            assert_eq!(world.irecv(vec![0_u8; len], Rank(0), Slot(2))?.wait()?.0, vec![3; len]);
        }
    }
    job.barrier()
}

/// G9: thousands of messages are in flight in both directions. They arrive whatever the order in which they are begun
/// and waited for, and though they do not fit into the rings.
pub fn g9_thousands_in_flight(job: &Job) -> Result<()> {
    let (peer, many) = (job.rank_after(1), effort(job, 4000, 60));
    let world = job.world().split(Split::colour(0).slots(many))?;
    // Thirty-seven divides neither number, so this is a permutation.
    let orders: [fn(usize, usize) -> usize; 3] =
        [|index, _| index, |index, many| many - 1 - index, |index, many| index * 37 % many];
    let seed = |round: usize, slot: usize| (round * many + slot) as u64;
    for (round, order) in orders.into_iter().enumerate() {
        let len = |slot: usize| if slot % 500 == 7 { 20_000 } else { 300 + slot % 200 };
        let begin_receive = |slot| world.irecv(vec![0_u8; len(slot)], peer, Slot(slot));
        let mut receives = (0..many).map(begin_receive).collect::<Result<Vec<_>>>()?;
        let mut sends: Vec<Option<SendRequest<u8>>> = (0..many).map(|_| None).collect();
        for slot in (0..many).map(|index| orders[(round + 1) % 3](index, many)) {
            let values = pattern::bytes(seed(round, slot), len(slot));
            sends[slot] = Some(world.isend(values, peer, Slot(slot))?);
        }
        for slot in (0..many).map(|index| order(index, many)) {
            let (values, received) = receives[slot].wait()?;
            assert_eq!(received.slot, Slot(slot));
            pattern::check(&values, seed(round, slot), &format!("slot {slot} in round {round}"));
            let sent = sends[slot].take().expect("each is waited for once").wait()?;
            assert_eq!(sent.len(), len(slot));
        }
    }
    wait_by_slot(&world, peer, many)?;
    job.barrier()
}

/// Thousands of messages are in flight in both directions in a scope, and are waited for by their slots. Every other
/// message is short.
fn wait_by_slot(world: &Communicator, peer: Rank, many: usize) -> Result<()> {
    let values: Vec<Vec<u8>> =
        (0..many).map(|slot| pattern::bytes(slot as u64, if slot % 2 == 0 { 24 } else { 240 })).collect();
    let mut into: Vec<Vec<u8>> = values.iter().map(|values| vec![0; values.len()]).collect();
    world.scope(|scope| {
        let receives = into.iter_mut().enumerate();
        let receives = receives.map(|(slot, into)| scope.recv(into, peer, Slot(slot)));
        let mut receives = receives.collect::<Result<Vec<_>>>()?;
        let sends = values.iter().enumerate().map(|(slot, values)| scope.send(values, peer, Slot(slot)));
        let mut sends = sends.collect::<Result<Vec<_>>>()?;
        for slot in (0..many).map(|index| index * 37 % many) {
            let received = receives[slot].wait()?;
            assert_eq!(received.count, values[slot].len());
            if slot % 3 == 0 {
                sends[slot].wait()?;
            }
        }
        Ok(())
    })?;
    assert!(into == values, "messages of a scope are whole");
    Ok(())
}

/// G17: the bytes of a send whose request is dropped or forgotten still arrive, and no freed memory
/// is read.
pub fn g17_sends_outlive_their_request(job: &Job) -> Result<()> {
    let fates: [fn(SendRequest<u8>); 2] = [drop, |sending| forget(sending)];
    let world = job.world();
    for (round, (len, fate)) in LENGTHS.into_iter().flat_map(|len| fates.map(|fate| (len, fate))).enumerate()
    {
        let slot = Slot(round);
        if job.rank() == 0 {
            fate(world.isend(pattern::bytes(round as u64, len), Rank(1), slot)?);
            reuse_freed_memory(len);
        }
        job.barrier()?;
        if job.rank() == 1 {
            let mut got = vec![0; len];
            world.recv(&mut got, Rank(0), slot)?;
            pattern::check(&got, round as u64, &format!("send {round} of {len} bytes"));
        }
        // A rank that waits makes progress on the message.
        job.barrier()?;
    }
    Ok(())
}

/// G17: if a receive is dropped, the next receive gets its message. If a request is forgotten, its
/// buffer and slot stay in use.
pub fn g17_receives_outlive_their_request(job: &Job) -> Result<()> {
    let world = job.world();
    for (round, len) in LENGTHS.into_iter().enumerate() {
        for part in 0..2 {
            let (seed, dropped, forgotten) =
                ((round * 10 + part) as u64, Slot(1), Slot(100 + round * 2 + part));
            if job.rank() == 1 {
                drop(world.irecv(vec![9_u8; len], Rank(0), dropped)?);
                forget(world.irecv(vec![9_u8; len], Rank(0), forgotten)?);
                reuse_freed_memory(len);
            }
            job.barrier()?;
            if job.rank() == 0 {
                let mut first = world.isend(pattern::bytes(seed, len), Rank(1), dropped)?;
                world.isend(pattern::bytes(seed, len), Rank(1), forgotten)?.wait()?;
                first.wait()?;
            } else if job.rank() == 1 {
                reuse_freed_memory(len);
                let mut got = vec![0; len];
                world.recv(&mut got, Rank(0), dropped)?;
                pattern::check(&got, seed, "the receive after one that was dropped");
                reuse_freed_memory(len);
            }
            job.barrier()?;
        }
    }
    Ok(())
}

/// G17: receives are posted and waited for while the sender keeps sending.
pub fn g17_receives_race_with_their_messages(job: &Job) -> Result<()> {
    let (world, rounds) = (job.world(), effort(job, 300, 10));
    for (place, len) in LENGTHS.into_iter().enumerate() {
        let slot = Slot(place);
        for round in 0..rounds {
            if job.rank() == 0 {
                world.send(&pattern::bytes(round as u64, len), Rank(1), slot)?;
            } else if job.rank() == 1 {
                let mut early = world.irecv(vec![1; len], Rank(0), slot)?;
                if round % 3 == 0 {
                    job.compute(Duration::from_micros((round % 7) as u64));
                }
                let (got, _) = early.wait()?;
                pattern::check(&got, round as u64, &format!("message {round} of {len} bytes"));
            }
        }
    }
    job.barrier()
}

/// G11: messages are waited for by peer and slot, in any order.
pub fn g11_waits_by_peer_and_slot(job: &Job) -> Result<()> {
    let world = job.world();
    let (next, previous) = (job.rank_after(1), job.rank_after(-1));
    let sent: Vec<Vec<usize>> = (0..20).map(|slot| vec![slot * 1000 + job.rank().0; 1 + 7 * slot]).collect();
    let mut got: Vec<Vec<usize>> = (0..20).map(|slot| vec![0; 1 + 7 * slot]).collect();
    world.scope(|s| {
        let receives = got.iter_mut().enumerate().map(|(slot, into)| s.recv(into, previous, Slot(slot)));
        let mut receives = receives.collect::<Result<Vec<_>>>()?;
        let sends = sent.iter().enumerate().rev().map(|(slot, values)| s.send(values, next, Slot(slot)));
        let mut sends = sends.collect::<Result<Vec<_>>>()?;
        for slot in (0..20).map(|slot| slot * 7 % 20) {
            assert_eq!(receives[slot].wait()?.count, 1 + 7 * slot);
            sends[19 - slot].wait()?;
        }
        assert!(sends[0].wait().is_err_and(|error| error.kind() == ErrorKind::Misuse));
        Ok(())
    })?;
    for (slot, values) in got.iter().enumerate() {
        assert!(values.iter().all(|&value| value == slot * 1000 + previous.0));
    }
    job.barrier()
}

/// G11: a long message of job memory arrives whole if its receiver waits for it, does something
/// else meanwhile, or receives from any slot. The sender may overwrite the source once the send has
/// returned.
pub fn g11_long_job_messages_are_whole(job: &Job) -> Result<()> {
    const MOST: usize = 1_100_000;
    let (world, table) = (job.world(), job.alloc::<u8>(MOST)?);
    let (first, second) = (Rank(0), Rank(1));
    for round in 0..effort(job, 120, 12) {
        let len = [65_535, 65_536, 65_537, 200_003, 1_048_576, MOST][round % 6];
        let slot = Slot(round % 3);
        if job.rank() == first {
            table.write(0, &pattern::bytes(round as u64, len))?;
            job.barrier()?;
            send_from(world, table.pointer().slice(len), second, slot)?;
            table.write(0, &vec![0xff; len])?;
        } else if job.rank() == second {
            table.fill(0)?;
            job.barrier()?;
            let got = match round % 4 {
                0 | 1 => recv_into(world, table.pointer().slice(len), first, slot)?,
                2 => recv_into(world, table.pointer().slice(MOST), first, Slot::ANY)?,
                _ => world.scope(|s| {
                    let mut receive = s.recv_into(table.pointer().slice(len), first, slot)?;
                    job.compute(Duration::from_micros(300));
                    receive.wait()
                })?,
            };
            assert_eq!((got.count, got.slot), (len, slot));
            let mut image = vec![0; len];
            table.read(0, &mut image)?;
            pattern::check(&image, round as u64, &format!("round {round}, {len} bytes"));
        } else {
            job.barrier()?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// G11: job memory in a scope, sent to job memory and to other memory. There are more messages than
/// fit into the scope's fixed table, and they are waited for in two ways.
pub fn g11_scopes_of_job_memory(job: &Job) -> Result<()> {
    let world = job.world();
    let (next, previous) = (job.rank_after(1), job.rank_after(-1));
    for len in [0, 8, 48, 49, 5000, 100_000] {
        let count = if len < 5000 { effort(job, 150, 70) } else { 3 };
        let table = job.alloc::<u8>((2 * count * len).max(1))?;
        let seed = |rank: Rank, round: usize| rank.0 as u64 * 1000 + round as u64;
        for round in 0..count {
            table.write(round * len, &pattern::bytes(seed(job.rank(), round), len))?;
        }
        let mut own = vec![vec![0; len]; count / 2];
        world.scope(|s| {
            let (first, into) = (table.pointer(), table.pointer().at(count * len));
            let (mut receives, mut sends) = (Vec::new(), Vec::new());
            for (round, own) in own.iter_mut().enumerate() {
                receives.push(s.recv(own, previous, Slot(round))?);
            }
            for round in count / 2..count {
                receives.push(s.recv_into(into.at(round * len).slice(len), previous, Slot(round))?);
            }
            for round in 0..count {
                sends.push(s.send_from(first.at(round * len).slice(len), next, Slot(round))?);
            }
            for round in (0..count).step_by(3) {
                sends[round].wait()?;
                let got = receives[round].wait()?;
                assert_eq!((got.count, got.source, got.slot), (len, Member(previous.0), Slot(round)));
            }
            Ok(())
        })?;
        for round in 0..count {
            let mut got = vec![0; len];
            match own.get(round) {
                Some(own) => got.copy_from_slice(own),
                None => table.read((count + round) * len, &mut got)?,
            }
            pattern::check(&got, seed(previous, round), &format!("message {round} of {len} bytes"));
        }
        let outside = world
            .scope(|s| s.recv_into(table.pointer().slice(table.len() + 70_000), previous, Slot(3)).map(drop));
        refused(job, outside, ErrorKind::Misuse, &["irecv(slot 3 from rank"]);
        job.barrier()?;
    }
    Ok(())
}

/// A scope that fails withdraws operations that its peers do not know of. Their slots and buffers
/// are free again.
pub fn a_scope_that_fails_takes_all_back(job: &Job) -> Result<()> {
    let world = job.world();
    for len in LENGTHS {
        let (mut into, values) = (vec![5_u8; len], vec![6_u8; len]);
        let peer = job.rank_after(1);
        let failed: Result<()> = world.scope(|s| {
            s.recv(&mut into, peer, Slot(30))?;
            s.send(&values, peer, Slot(31))?;
            Err(tasuki::Error::argument("not now"))
        });
        assert!(failed.is_err_and(|error| error.to_string().contains("not now")));
        assert!(into.iter().all(|&byte| byte == 5));
        job.barrier()?;
        if job.rank() == 0 {
            world.send(&vec![7_u8; len], Rank(1), Slot(30))?;
        } else if job.rank() == 1 {
            world.recv(&mut into, Rank(0), Slot(30))?;
            assert!(into.iter().all(|&byte| byte == 7));
        }
        job.barrier()?;
    }
    Ok(())
}

/// Requests are awaited under executors that know nothing of messages: pollster, and tokio on one
/// thread.
pub fn messages_are_awaited(job: &Job) -> Result<()> {
    async fn ring(world: &Communicator, next: Rank, previous: Rank, len: usize, slot: Slot) -> Result<()> {
        let receive = world.irecv(vec![0; len], previous, slot)?;
        let sent = world.isend(pattern::bytes(len as u64, len), next, slot)?.await?;
        let (got, received) = receive.await?;
        assert_eq!((received.count, sent.len()), (len, len));
        pattern::check(&got, len as u64, "awaited");
        Ok(())
    }
    let world = job.world();
    let (next, previous) = (job.rank_after(1), job.rank_after(-1));
    for len in LENGTHS {
        job.compute(Duration::from_micros(job.rank().0 as u64 * 3000));
        pollster::block_on(ring(world, next, previous, len, Slot(1)))?;
    }
    let tokio = tokio::runtime::Builder::new_current_thread().build().map_err(tasuki::Error::program)?;
    tokio.block_on(async {
        for len in LENGTHS {
            let a = ring(world, next, previous, len, Slot(2));
            let b = ring(world, next, previous, len + 1, Slot(3));
            let (a, b) = tokio::join!(a, b);
            a.and(b)?;
        }
        Ok::<(), tasuki::Error>(())
    })?;
    job.barrier()
}

/// A receive that was awaited and dropped before its message came is withdrawn.
pub fn awaiting_may_be_given_up(job: &Job) -> Result<()> {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};
    let world = job.world();
    for len in LENGTHS {
        if job.rank() == 1 {
            let mut receive: RecvRequest<u8> = world.irecv(vec![0; len], Rank(0), Slot(8))?;
            let polled = Pin::new(&mut receive).poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending));
            drop(receive);
        }
        job.barrier()?;
        if job.rank() == 0 {
            world.send(&pattern::bytes(1, len), Rank(1), Slot(8))?;
        } else if job.rank() == 1 {
            let mut got = vec![0; len];
            world.recv(&mut got, Rank(0), Slot(8))?;
            pattern::check(&got, 1, "received after a dropped receive");
        }
        job.barrier()?;
    }
    Ok(())
}

/// Numbers and arrays come back as they are, short and long ones. What a shorter message does not fill stays. A second
/// wait is an error that names rank and call.
pub fn g11_numbers_and_arrays_come_back(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank().0 as u64);
    let (to, from) = (job.rank_after(1), job.rank_after(-1));
    let of = from.0 as u64;
    for _ in 0..3 {
        let mut number = world.irecv(0_u64, from, Slot(0))?;
        let mut short = world.irecv([7_u64; 4], from, Slot(1))?;
        let mut long = world.irecv([7_u64; 1000], from, Slot(2))?;
        let mut vector = world.irecv(vec![7_u64; 4], from, Slot(3))?;
        let mut sends = (
            world.isend(me, to, Slot(0))?,
            world.isend([me; 2], to, Slot(1))?,
            world.isend([me; 900], to, Slot(2))?,
            world.isend([me; 2], to, Slot(3))?,
        );
        let (got, received) = number.wait()?;
        assert_eq!((got, received.count), (of, 1));
        let (got, received) = short.wait()?;
        assert_eq!((got, received.count), ([of, of, 7, 7], 2));
        let (got, received) = long.wait()?;
        assert!(got[..900].iter().all(|&value| value == of) && got[900..].iter().all(|&value| value == 7));
        assert_eq!((received.count, vector.wait()?.0), (900, vec![of; 2]));
        assert_eq!((sends.0.wait()?, sends.1.wait()?), (me, [me; 2]));
        assert_eq!((sends.2.wait()?, sends.3.wait()?), ([me; 900], [me; 2]));
        misused(job, number.wait(), &["irecv(slot 0 from rank", "the message was waited for already"]);
        misused(job, sends.2.wait(), &["isend(slot 2 to rank", "the message was waited for already"]);
    }
    assert_eq!(world.irecv([me; 3], None::<Rank>, Slot(0))?.wait()?.0, [me; 3]);
    assert_eq!(world.isend(me, None::<Rank>, Slot(0))?.wait()?, me);
    job.barrier()
}
