//! G17: a message that met a dropped receive goes to the next receive of its slot, or of any slot. Receives are
//! dropped before, while and after their messages come; in tasks, in scopes, and by a panic.

use crate::exchange::{effort, is_simulated};
use crate::pattern::{message, number_of};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::close;
use tasuki::{Error, Job, Rank, Request, Result, Slot};

/// A short message, one of one chunk, one of several chunks, one longer than a ring.
const LENGTHS: [usize; 5] = [40, 49, 5_000, 100_000, 600_000];

/// A receive that has its message is dropped five times in a row. The next receive gets the message, and the one after
/// it the next message. Receives name the slot, or are of any slot, in turn.
pub fn g17_a_message_survives_dropped_receives(job: &Job) -> Result<()> {
    let world = job.world();
    for (round, len) in LENGTHS.into_iter().enumerate() {
        // Which of the receives are of any slot.
        for (part, any) in [0b000000_u32, 0b111111, 0b010101, 0b101010].into_iter().enumerate() {
            let (slot, first) = (Slot(60 + 10 * part), round * 100 + part * 10);
            if job.rank() == 0 {
                for number in [first, first + 1] {
                    let mut sending = world.isend(message(number, len), Rank(1), slot)?;
                    sending.wait()?;
                }
            } else {
                for turn in 0..5 {
                    let named = if any >> turn & 1 == 1 { Slot::ANY } else { slot };
                    let mut receive = world.irecv(vec![0_u8; 600_000], Rank(0), named)?;
                    while !receive.test() {
                        job.compute(Duration::from_micros(1));
                    }
                    drop(receive);
                }
                for number in [first, first + 1] {
                    let mut got = vec![0; len];
                    let named = if any >> 5 & 1 == 1 { Slot::ANY } else { slot };
                    let received = world.recv(&mut got, Rank(0), named)?;
                    assert_eq!((received.slot, received.count, number_of(&got)), (slot, len, number));
                }
            }
            job.barrier()?;
        }
    }
    Ok(())
}

/// Receives are dropped at many moments, and the messages keep their order: of one slot, or of any slot.
pub fn g17_receives_dropped_at_many_moments(job: &Job) -> Result<()> {
    let world = job.world();
    for (round, (named, len)) in
        [Slot(3), Slot::ANY].into_iter().flat_map(|named| LENGTHS.map(|len| (named, len))).enumerate()
    {
        let messages = if len > 100_000 { effort(job, 60, 6) } else { effort(job, 600, 25) };
        if job.rank() == 0 {
            for number in 0..messages {
                if number % 3 == 0 {
                    job.compute(Duration::from_nanos((number * 7_919 % 5_000) as u64));
                }
                world.send(&message(number, len), Rank(1), Slot(3))?;
            }
        } else {
            let (mut turn, mut next) = (round, 0);
            while next < messages {
                turn += 1;
                let mut receive = world.irecv(vec![0_u8; len.max(turn % 3 * 64)], Rank(0), named)?;
                let looks = turn % 11;
                for _ in 0..looks {
                    job.compute(Duration::from_nanos((turn * 37 % 900) as u64));
                    let _ = receive.test();
                }
                if turn % 4 == 0 {
                    let (got, received) = receive.wait()?;
                    assert_eq!((received.slot, received.count, got.len()), (Slot(3), len, len));
                    assert_eq!(number_of(&got), next, "{len} bytes, {named:?}");
                    next += 1;
                }
            }
        }
        job.barrier()?;
    }
    Ok(())
}

/// Two receives of a slot are dropped, one after the other: the first at many moments, the second while the slot keeps
/// the message of the first, which may still be on its way. Then a receive of the slot gets the next message in order;
/// one of any slot gets one that has not come yet.
pub fn g17_receives_dropped_on_a_slot_that_keeps_a_message(job: &Job) -> Result<()> {
    let (world, slot) = (job.world(), Slot(3));
    for (named, len) in [slot, Slot::ANY].into_iter().flat_map(|named| LENGTHS.map(|len| (named, len))) {
        let messages = if len > 100_000 { effort(job, 60, 6) } else { effort(job, 300, 20) };
        if job.rank() == 0 {
            for number in 0..messages {
                world.send(&message(number, len), Rank(1), slot)?;
            }
            job.barrier()?;
            continue;
        }
        let mut missing = vec![true; messages];
        for turn in 0..messages {
            for looks in [turn % 11, turn % 3] {
                let mut receive = world.irecv(vec![0_u8; len], Rank(0), slot)?;
                for _ in 0..looks {
                    job.compute(Duration::from_nanos((turn * 37 % 900) as u64));
                    let _ = receive.test();
                }
            }
            let mut got = vec![0; len];
            let received = world.recv(&mut got, Rank(0), named)?;
            let number = number_of(&got);
            assert_eq!((received.slot, received.count), (slot, len));
            assert!(std::mem::take(&mut missing[number]), "message {number} of {len} bytes came twice");
            assert!(
                named == Slot::ANY || number == turn,
                "message {number} of {len} bytes came before {turn}"
            );
        }
        job.barrier()?;
    }
    Ok(())
}

/// Receives of three slots and of any slot are outstanding at once and dropped. Every message arrives once, and whole.
pub fn g17_dropped_receives_of_any_slot_beside_others(job: &Job) -> Result<()> {
    let (world, messages) = (job.world(), effort(job, 600, 30));
    let len = |number: usize| [[8, 48], [56, 40_000], [40, 320]][number % 3][number / 3 % 2];
    if job.rank() == 0 {
        for number in 0..messages {
            world.send(&message(number, len(number)), Rank(1), Slot((number % 3) * 40))?;
        }
        return job.barrier();
    }
    let (mut missing, mut left) = (vec![true; messages], messages);
    for turn in 0.. {
        if left == 0 {
            break;
        }
        let slot = Slot(turn % 3 * 40);
        let begin = |slot: Slot, room: usize| world.irecv(vec![0_u8; room], Rank(0), slot);
        let (any, mut named) = if turn % 2 == 0 {
            let any = begin(Slot::ANY, 40_000)?;
            (any, begin(slot, [48, 40_000, 320][slot.0 / 40])?)
        } else {
            let named = begin(slot, [48, 40_000, 320][slot.0 / 40])?;
            (begin(Slot::ANY, 40_000)?, named)
        };
        for _ in 0..turn % 7 {
            job.compute(Duration::from_nanos((turn * 53 % 700) as u64));
            let _ = named.test();
        }
        drop(any);
        if turn % 5 == 0 && named.test() {
            let (got, received) = named.wait()?;
            let number = number_of(&got);
            assert_eq!((received.count, received.slot), (got.len(), slot));
            assert_eq!(got.len(), len(number));
            assert!(std::mem::take(&mut missing[number]), "message {number} came twice");
            left -= 1;
        }
    }
    job.barrier()
}

/// Threads of a rank drop receives of one sender at once: three of a slot each, one of any slot. Every message arrives
/// once, and whole.
pub fn g17_threads_drop_receives(job: &Job) -> Result<()> {
    let (world, messages) = (job.world(), effort(job, 400, 6));
    let len = |slot: usize, number: usize| [8, 400, [24, 9_000][number % 2]][slot];
    let left = AtomicUsize::new(3 * messages);
    let taken: Mutex<HashSet<usize>> = Mutex::default();
    let outcomes = job.threads(4, |thread| -> Result<()> {
        if job.rank() == 0 {
            for number in (0..messages).filter(|_| thread < 3) {
                let values = message(number * 3 + thread, len(thread, number));
                world.send(&values, Rank(1), Slot(thread))?;
            }
            return Ok(());
        }
        let slot = if thread == 3 { Slot::ANY } else { Slot(thread) };
        for turn in 0.. {
            if left.load(Ordering::SeqCst) == 0 {
                break;
            }
            let mut receive = world.irecv(vec![0_u8; [8, 400, 9_000, 9_000][thread]], Rank(0), slot)?;
            for _ in 0..turn % 5 {
                job.compute(Duration::from_nanos(turn * 71 % 800));
                let _ = receive.test();
            }
            if turn % 3 == 0 && receive.test() {
                let (got, received) = receive.wait()?;
                let number = number_of(&got[..received.count]);
                assert_eq!(received.slot, Slot(number % 3));
                assert!(taken.lock().expect("no panic").insert(number), "message {number} came twice");
                left.fetch_sub(1, Ordering::SeqCst);
            }
        }
        Ok(())
    })?;
    outcomes.into_iter().collect::<Result<()>>()?;
    job.barrier()
}

/// A message meets a receive of any slot while a receive of its own slot is posted. When the first is dropped, the
/// other one gets the message: blocking, awaited, and in a scope.
pub fn g17_an_outstanding_receive_gets_the_message(job: &Job) -> Result<()> {
    let (world, slot) = (job.world(), Slot(5));
    for (round, len) in [40, 48, 49, 5_000, 100_000].into_iter().enumerate() {
        for way in 0..4 {
            let number = round * 10 + way;
            if job.rank() == 0 {
                job.barrier()?;
                world.send(&message(number, len), Rank(1), slot)?;
                job.barrier()?;
                continue;
            }
            let mut any = world.irecv(vec![0_u8; 100_000], Rank(0), Slot::ANY)?;
            job.barrier()?;
            while !any.test() {
                job.compute(Duration::from_micros(1));
            }
            let mut got = vec![0; len];
            if way == 3 {
                world.scope(|s| {
                    s.recv(&mut got, Rank(0), slot)?;
                    drop(any);
                    s.wait_all()
                })?;
            } else {
                let mut named = world.irecv(got, Rank(0), slot)?;
                assert!(!named.test());
                drop(any);
                while way == 1 && !named.test() {}
                (got, _) = if way == 2 { pollster::block_on(named)? } else { named.wait()? };
            }
            assert_eq!(number_of(&got), number);
            job.barrier()?;
        }
    }
    job.barrier()
}

/// A scope is cancelled at many moments, by an error and by a panic. The memory that it borrowed is not written later,
/// and the next receive gets the message.
pub fn g17_cancelled_scopes_lose_nothing(job: &Job) -> Result<()> {
    let (world, messages, table) = (job.world(), effort(job, 150, 12), job.alloc::<u8>(600_000)?);
    for len in LENGTHS {
        let slot = Slot(9);
        if job.rank() == 0 {
            for number in 0..messages {
                world.send(&message(number, len), Rank(1), slot)?;
            }
            job.barrier()?;
            continue;
        }
        for number in 0..messages {
            let named = if number % 3 == 0 { Slot::ANY } else { slot };
            for turn in 0..3 {
                let mut into = vec![0_u8; len];
                let cancelled = catch_unwind(AssertUnwindSafe(|| {
                    world.scope(|s| -> Result<()> {
                        match turn {
                            2 => s.recv_into(table.pointer().slice(len), Rank(0), named)?,
                            _ => s.recv(&mut into, Rank(0), named)?,
                        };
                        job.compute(Duration::from_nanos((number * 331 % 9_000) as u64));
                        if turn == 1 {
                            std::panic::resume_unwind(Box::new("cancelled"))
                        }
                        Err(Error::argument("cancelled"))
                    })
                }));
                assert!(!matches!(cancelled, Ok(Ok(()))));
                into.fill(7);
                std::hint::black_box(&into);
            }
            let mut got = vec![0; len];
            let received = world.recv(&mut got, Rank(0), named)?;
            assert_eq!((received.slot, received.count, number_of(&got)), (slot, len, number));
        }
        job.barrier()?;
    }
    Ok(())
}

/// A kept message stays if the next receive is too small, and if both ranks close the slots. A rank may leave with a
/// kept message.
pub fn g17_kept_messages_stay(job: &Job) -> Result<()> {
    let (world, peer) = (job.world(), Rank(1 - job.rank().0));
    for len in [49, 5_000] {
        for (part, named) in [Slot(70), Slot::ANY].into_iter().enumerate() {
            if job.rank() == 0 {
                world.send(&message(part, len), peer, Slot(70))?;
            } else {
                let mut receive = world.irecv(vec![0_u8; 5_000], peer, named)?;
                while !receive.test() {
                    job.compute(Duration::from_micros(1));
                }
                drop(receive);
                for small in [Slot(70), Slot::ANY] {
                    let error =
                        world.recv(&mut [0_u8; 48], peer, small).expect_err("the receive is too small");
                    assert_eq!(*error.cause(), Cause::Truncated { len: len as u64, room: 48 });
                }
            }
            job.barrier()?;
            close(world, peer)?;
            job.barrier()?;
            if job.rank() == 0 {
                world.send(&message(part + 8, len), peer, Slot(70))?;
            } else {
                let mut got = vec![0; len];
                for number in [part, part + 8] {
                    world.recv(&mut got, peer, named)?;
                    assert_eq!(number_of(&got), number);
                }
            }
            job.barrier()?;
        }
    }
    if job.rank() == 0 {
        world.send(&[1_u8; 400], peer, Slot(1))
    } else {
        let mut receive = world.irecv(vec![0_u8; 400], peer, Slot(1))?;
        while !receive.test() {
            job.compute(Duration::from_micros(1));
        }
        Ok(())
    }
}

/// A receive is dropped while a long message passes through a ring, and its rank leaves or goes on at once. The sender
/// gets an error if nobody takes the message, and neither rank hangs.
pub fn g17_a_rank_leaves_during_a_transfer(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 0 {
        let sent = world.send(&vec![1_u8; 3_000_000], Rank(1), Slot(1));
        if let Err(error) = sent {
            assert!(matches!(error.cause(), Cause::PeerLeft { peer: Rank(1) }), "{error}");
        }
        return Ok(());
    }
    let mut receive = world.irecv(vec![0_u8; 3_000_000], Rank(0), Slot(1))?;
    for _ in 0..20 {
        job.compute(Duration::from_micros(10));
        let _ = receive.test();
    }
    drop(receive);
    Ok(())
}

/// Receives race with a time limit of tokio, as in a service. No message is lost, and they keep their order.
pub fn g17_receives_under_tokio_timeouts(job: &Job) -> Result<()> {
    if is_simulated(job) {
        return Ok(()); // tokio's clock is real
    }
    let (world, messages) = (job.world(), effort(job, 400, 1));
    let tokio =
        tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(Error::program)?;
    tokio.block_on(async {
        for len in LENGTHS {
            if job.rank() == 0 {
                for number in 0..messages {
                    world.isend(message(number, len), Rank(1), Slot(2))?.await?;
                    if number % 7 == 0 {
                        tokio::time::sleep(Duration::from_micros((number * 13 % 500) as u64)).await;
                    }
                }
                continue;
            }
            let mut next = 0;
            while next < messages {
                let receive = world.irecv(vec![0_u8; len], Rank(0), Slot(2))?;
                if let Ok(got) = tokio::time::timeout(Duration::from_micros(20), receive).await {
                    assert_eq!(number_of(&got?.0), next, "{len} bytes");
                    next += 1;
                }
            }
        }
        Ok::<(), Error>(())
    })?;
    job.barrier()
}
