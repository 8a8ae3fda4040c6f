//! Messages that are disturbed: their memory is freed, receives are withdrawn, members disagree, or
//! peers leave while buffered sends to them are under way.

use crate::exchange::{effort, is_simulated};
use crate::expected_error::{disagreed, misused, refused};
use crate::pattern;
use crate::wait_until::stay_away;
use std::time::Duration;
use tasuki::collective::Split;
use tasuki::engine::Cause;
use tasuki::message::{BUFFERED_OVERHEAD, recv_into, send_from, set_send_buffer};
use tasuki::{Communicator, ErrorKind, Job, Rank, Request, Result, Slot};

/// G15: the memory of a receive, or of a send, is freed before the message is sent. Both sides get
/// an error, and the slot remains usable.
pub fn g15_freed_memory_is_reported_on_both_sides(job: &Job) -> Result<()> {
    const LEN: usize = 100_000;
    let world = job.world();
    for (round, is_source) in [false, true, false].into_iter().enumerate() {
        let array = job.alloc_local::<u8>(LEN)?;
        let pointer = array.pointer();
        let outcome = world.scope(|s| {
            match (job.rank().0, is_source) {
                (0, true) => _ = s.send_from(pointer.slice(LEN), Rank(1), Slot(2))?,
                (1, false) => _ = s.recv_into(pointer.slice(LEN), Rank(0), Slot(2))?,
                _ => {}
            }
            drop(array);
            job.barrier()?;
            match (job.rank().0, is_source) {
                (0, false) => {
                    send_from(world, job.alloc_local::<u8>(LEN)?.pointer().slice(LEN), Rank(1), Slot(2))
                }
                (1, true) => {
                    let into = job.alloc_local::<u8>(LEN)?;
                    recv_into(world, into.pointer().slice(LEN), Rank(0), Slot(2)).map(drop)
                }
                _ => s.wait_all(),
            }
        });
        let error = outcome.expect_err("the memory was freed");
        let is_own = is_source == (job.rank() == 0);
        match error.cause() {
            Cause::Stale { .. } => {}
            Cause::NotSent { peer } => assert!(job.rank() == 1 && *peer == Rank(0), "{error}"),
            other => panic!("round {round}, own {is_own}: {other:?}"),
        }
        job.barrier()?;
        exchange(job, world, round as u8)?;
    }
    job.barrier()
}

/// Sends a message from rank 0 to rank 1 on the slot of the failed message.
fn exchange(job: &Job, world: &Communicator, value: u8) -> Result<()> {
    let mut got = vec![0; 60_000];
    match job.rank().0 {
        0 => world.send(&vec![value; 60_000], Rank(1), Slot(2)),
        _ => world.recv(&mut got, Rank(0), Slot(2)).map(|_| assert!(got.iter().all(|&byte| byte == value))),
    }
}

/// G16: a rank withdraws more receives than its peer has rings. The messages for them do not keep a
/// ring from other messages.
pub fn g16_withdrawn_receives_keep_no_ring(job: &Job) -> Result<()> {
    const SLOTS: usize = 9;
    let world = job.world();
    for round in 0..effort(job, 20, 3) as u64 {
        if job.rank() == 1 {
            let mut into = [0_u8; 64];
            for slot in 0..SLOTS {
                let late = world.within(Duration::from_micros(round)).recv(&mut into, Rank(0), Slot(slot));
                assert!(late.expect_err("nothing was sent").is_timeout());
            }
            job.barrier()?;
            world.recv(&mut into, Rank(0), Slot(SLOTS))?;
            assert_eq!(into, [99; 64]);
            for slot in 0..SLOTS {
                world.recv(&mut into, Rank(0), Slot(slot))?;
                assert_eq!(into, [slot as u8; 64]);
            }
        } else {
            job.barrier()?;
            let begin = |slot: usize| world.isend(vec![slot as u8; 64], Rank(1), Slot(slot));
            let sends = (0..SLOTS).map(begin).collect::<Result<Vec<_>>>()?;
            world.send(&[99_u8; 64], Rank(1), Slot(SLOTS))?;
            sends.into_iter().try_for_each(|mut send| send.wait().map(drop))?;
        }
    }
    job.barrier()
}

/// G6: buffered sends to a rank that has left are given up with an error, and their room can be
/// used again.
pub fn g6_buffered_sends_to_a_rank_that_left(job: &Job) -> Result<()> {
    if job.rank() == 1 {
        return Ok(());
    }
    let world = job.world();
    set_send_buffer(job, 20_000, Some(Duration::ZERO))?;
    let sent = (0..5).try_for_each(|slot| world.send(&[slot as u8; 1000], Rank(1), Slot(slot)));
    let vain = set_send_buffer(job, 0, None);
    match sent {
        Ok(()) => {
            let error = refused(job, vain, ErrorKind::PeerFailed, &["rank 1", "hint: receive each message"]);
            assert_eq!(*error.cause(), Cause::Untaken { messages: 5, peer: Rank(1), slot: 0 });
        }
        Err(error) => assert!(matches!(error.cause(), Cause::PeerLeft { peer: Rank(1) }), "{error}"),
    }
    set_send_buffer(job, 500, None)
}

/// G6: messages of a rank that leaves, from its send buffer and from dropped send requests, are
/// received by receives of any slot and of their own slot. After the last one, a receive fails.
pub fn g6_messages_of_a_rank_that_left_are_received(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 0 {
        set_send_buffer(job, 10_000, Some(Duration::ZERO))?;
        [3, 70, 4].into_iter().try_for_each(|slot| world.send(&[slot as u64; 20], Rank(1), Slot(slot)))?;
        drop(world.isend(vec![5_u64; 20], Rank(1), Slot(5))?);
        drop(world.isend(vec![4_u64; 21], Rank(1), Slot(4))?);
        return Ok(());
    }
    job.compute(Duration::from_micros(300));
    let (mut into, mut came) = ([0_u64; 30], Vec::new());
    for slot in [Slot(70), Slot::ANY, Slot::ANY, Slot::ANY, Slot::ANY] {
        let got = world.recv(&mut into, Rank(0), slot)?;
        assert!(into[..got.count].iter().all(|&value| value == got.slot.0 as u64));
        came.push((got.slot.0, got.count));
    }
    let place = |message| came.iter().position(|&other| other == message).expect("each message comes once");
    assert!(place((4, 20)) < place((4, 21)), "messages of one slot come in their order: {came:?}");
    assert_eq!((place((70, 20)), place((3, 20)) + place((5, 20)) + place((4, 20)) + place((4, 21))), (0, 10));
    let vain = world.recv(&mut into, Rank(0), Slot::ANY);
    refused(job, vain, ErrorKind::PeerFailed, &["any slot", "rank 0"]);
    Ok(())
}

/// G6: a message met a receive that was then dropped, and its sender has left long ago. A receive
/// of any slot still gets the message, although withdrawing the dropped receive is still under way.
/// After the last one, a receive fails.
pub fn g6_what_met_a_dropped_receive_of_a_rank_that_left(job: &Job) -> Result<()> {
    let (world, table) = (job.world(), job.alloc_local::<u64>(3)?);
    if job.rank() == 0 {
        job.barrier()?;
        [3, 70].into_iter().try_for_each(|slot| world.send(&[slot as u64; 3], Rank(1), Slot(slot)))?;
        return job.barrier();
    }
    let begin = |slot| world.irecv(vec![0_u64; 3], Rank(0), Slot(slot));
    let dropped = [begin(3)?, begin(70)?];
    job.barrier()?;
    job.barrier()?;
    drop(dropped);
    job.compute(Duration::from_millis(5));
    let mut into = [0_u64; 3];
    let first = world.recv(&mut into, Rank(0), Slot::ANY)?;
    assert_eq!(into, [first.slot.0 as u64; 3]);
    let second = recv_into(world, table.pointer().slice(3), Rank(0), Slot::ANY)?;
    assert_eq!(table.to_vec()?, [second.slot.0 as u64; 3]);
    assert_eq!(first.slot.0 + second.slot.0, 73);
    let vain = world.recv(&mut into, Rank(0), Slot::ANY);
    refused(job, vain, ErrorKind::PeerFailed, &["any slot", "rank 0"]);
    Ok(())
}

/// G6: the room of buffered sends comes back, and no message overtakes them.
pub fn g6_space_for_buffered_sends_comes_back(job: &Job) -> Result<()> {
    let world = job.world();
    for round in 0..3_u8 {
        if job.rank() == 0 {
            set_send_buffer(job, 3040 + 4 * BUFFERED_OVERHEAD, Some(Duration::ZERO))?;
            (0..3_u8).try_for_each(|at| world.send(&[round * 10 + at; 1000], Rank(1), Slot(1)))?;
            let full = world.send(&[9_u8; 1000], Rank(1), Slot(1));
            refused(
                job,
                full,
                ErrorKind::Full,
                &["the send buffer has only 1064 of 7136 bytes free", "hint: "],
            );
            job.barrier()?;
            // This rank makes no call in between. The buffered sends must still go first.
            std::thread::sleep(Duration::from_millis(5));
            world.send(&[round * 10 + 3; 40], Rank(1), Slot(1))?;
        } else {
            job.barrier()?;
            for at in 0..4_u8 {
                let mut got = [0; 1000];
                let len = world.recv(&mut got, Rank(0), Slot(1))?.count;
                assert_eq!((len, got[0]), (if at < 3 { 1000 } else { 40 }, round * 10 + at));
            }
        }
    }
    job.barrier()
}

/// G6: the helper of a rank that computes delivers its buffered sends, short and long ones.
pub fn g6_a_helper_makes_progress_with_buffered_sends(job: &Job) -> Result<()> {
    let helped = std::env::var("TASUKI_HELPER").is_ok_and(|helper| helper == "rank" || helper == "node");
    if !is_simulated(job) && !helped {
        return Ok(());
    }
    let (world, flag) = (job.world(), job.alloc::<u64>(1)?);
    let _queue = job.queue(1)?; // the simulator has a helper once there is a queue
    let lengths = [8, 40, 100, 5_000, 100_000];
    for round in 1..=effort(job, 20, 2) as u64 {
        if job.rank() == 0 {
            set_send_buffer(job, 200_000, Some(Duration::ZERO))?;
            for (slot, len) in (0..).zip(lengths) {
                world.send(&pattern::bytes(round, len), Rank(1), Slot(slot))?;
            }
            job.barrier()?;
            while flag.get(0)? < round {
                stay_away(job);
            }
        } else {
            job.barrier()?;
            for (slot, len) in (0..5).zip(lengths).rev() {
                let mut got = vec![0; len];
                world.recv(&mut got, Rank(0), Slot(slot))?;
                pattern::check(&got, round, "delivered by a helper");
            }
            job.put(flag.on(Rank(0)), &[round])?;
        }
        job.barrier()?;
    }
    set_send_buffer(job, 0, None)
}

/// G12: collective calls whose partners are late, on a rank that buffers every send at once.
pub fn g12_collective_calls_with_buffered_sends(job: &Job) -> Result<()> {
    let world = job.world();
    set_send_buffer(job, 1 << 20, Some(Duration::ZERO))?;
    for round in 0..effort(job, 20, 4) as u64 {
        job.compute(Duration::from_micros(job.rank().0 as u64 * 2000));
        for value in [1_u64, 2, 3] {
            let mut got = [if job.rank() == 0 { round * 10 + value } else { 0 }];
            world.bcast(&mut got, Rank(0))?;
            assert_eq!(got, [round * 10 + value]);
        }
        assert_eq!(world.allgather(&[job.rank().0])?.len(), job.size());
        world.barrier()?;
    }
    set_send_buffer(job, 0, None)?;
    job.barrier()
}

/// G12: members of a new communicator disagree about its number of slots.
pub fn g12_members_disagree_about_slots(job: &Job) -> Result<()> {
    let slots = if job.rank() == 0 { 10 } else { 20 };
    let made = job.world().split(Split::colour(1).slots(slots));
    disagreed(job, made.map(drop), &["disagree about slots: the smallest is 10, the largest 20"]);
    misused(job, job.world().split(Split::colour(1).slots(0)).map(drop), &["1 to 1048576"]);
    job.barrier()
}

/// G8: a send must name its slot.
pub fn g8_sends_name_their_slot(job: &Job) -> Result<()> {
    let (world, peer) = (job.world(), job.rank_after(1));
    let texts = ["a send names its slot"];
    misused(job, world.send(&[1_u8], peer, Slot::ANY), &texts);
    misused(job, world.send(&[1_u8; 100], peer, Slot::ANY), &texts);
    misused(job, world.isend(vec![1_u8], peer, Slot::ANY).map(drop), &texts);
    misused(job, world.scope(|s| s.send([1_u8], peer, Slot::ANY).map(drop)), &texts);
    job.barrier()
}

/// G5: an awaited send is buffered like any other. A message that does not fit into the buffer is
/// returned with an error.
pub fn g5_awaited_sends_are_buffered(job: &Job) -> Result<()> {
    let (world, peer) = (job.world(), job.rank_after(1));
    set_send_buffer(job, 10_000, Some(Duration::from_millis(2)))?;
    for len in [8, 48, 49, 5000] {
        let sent = pollster::block_on(world.isend(pattern::bytes(1, len), peer, Slot(3))?)?;
        assert_eq!(sent.len(), len);
        let mut got = vec![0; len];
        world.recv(&mut got, peer, Slot(3))?;
        pattern::check(&got, 1, "awaited");
    }
    let mut large = world.isend(pattern::bytes(2, 20_000), peer, Slot(3))?;
    job.barrier()?; // no receive is posted yet
    refused(
        job,
        large.wait(),
        ErrorKind::Full,
        &["the message takes 20000 + 1024 bytes", "of 10000 bytes free"],
    );
    job.barrier()?;
    let mut receive = world.irecv(vec![0; 20_000], peer, Slot(3))?;
    job.barrier()?;
    pattern::check(&receive.wait()?.0, 2, "the message that was too large for the send buffer");
    assert_eq!(large.wait()?.len(), 20_000);
    misused(job, large.wait().map_err(|error| error.on_rank(job.rank())), &["isend", "begin another"]);
    job.barrier()
}

/// G16: a message that did not fit into a receive, which was then dropped, is not given to the next
/// receive, which is awaited.
pub fn g16_awaited_after_one_that_was_dropped(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 1 {
        let small = world.irecv(vec![0_u8; 8], Rank(0), Slot(4))?;
        job.barrier()?;
        job.barrier()?;
        drop(small);
        let (got, _) = pollster::block_on(world.irecv(vec![0_u8; 48], Rank(0), Slot(4))?)?;
        assert_eq!(got, [7; 48]);
    } else {
        job.barrier()?;
        let large = world.send(&[6_u8; 16], Rank(1), Slot(4));
        assert_eq!(
            *large.expect_err("the message does not fit").cause(),
            Cause::Truncated { len: 16, room: 8 }
        );
        job.barrier()?;
        job.compute(Duration::from_millis(2));
        world.send(&[7_u8; 48], Rank(1), Slot(4))?;
    }
    job.barrier()
}

/// G16: once the sender knows that a short receive was withdrawn, it does not use it. A receive of
/// any slot gets the message.
pub fn g16_any_after_a_short_one_that_was_withdrawn(job: &Job) -> Result<()> {
    let world = job.world();
    for round in 0..20_u64 {
        if job.rank() == 1 {
            let mut into = [0_u64];
            if round % 2 == 0 {
                let late = world.within(Duration::from_micros(100)).recv(&mut into, Rank(0), Slot(5));
                assert!(late.expect_err("nothing was sent").is_timeout());
            } else {
                drop(world.irecv(vec![0_u64], Rank(0), Slot(5))?);
            }
            world.send(&[round], Rank(0), Slot(0))?;
            let got = world.recv(&mut into, Rank(0), Slot::ANY)?;
            assert_eq!((into, got.slot), ([round], Slot(5)));
        } else {
            world.recv(&mut [0_u64], Rank(1), Slot(0))?;
            world.send(&[round], Rank(1), Slot(5))?;
        }
    }
    job.barrier()
}

/// G16: a message that met a receive which was then dropped may be taken by a receive of any slot
/// as well as by one of its own slot. A receive that is too small leaves it there.
pub fn g16_any_takes_what_met_a_dropped_receive(job: &Job) -> Result<()> {
    let world = job.world();
    for round in 0..20 {
        let (slot, other) = (Slot(70 + round % 3), Slot(round % 3));
        if job.rank() == 1 {
            let dropped = world.irecv(vec![0_u64; 2], Rank(0), slot)?;
            job.barrier()?;
            job.barrier()?;
            let early =
                (round % 2 == 0).then(|| world.irecv(vec![0_u64; 2], Rank(0), Slot::ANY)).transpose()?;
            drop(dropped);
            let first = match early {
                Some(early) => pollster::block_on(early)?,
                None => {
                    let small = world.recv(&mut [0_u8], Rank(0), Slot::ANY);
                    assert_eq!(
                        *small.expect_err("the receive is too small").cause(),
                        Cause::Truncated { len: 16, room: 1 }
                    );
                    let mut into = vec![0; 2];
                    let got =
                        world.recv(&mut into, Rank(0), if round % 4 == 1 { Slot::ANY } else { slot })?;
                    (into, got)
                }
            };
            assert_eq!((&first.0[..], first.1.slot), (&[round as u64, 1][..], slot));
            job.barrier()?;
            for (value, slot) in [(2, slot), (3, other)] {
                let mut into = [0_u64; 2];
                let got = world.recv(&mut into, Rank(0), if round % 3 == 0 { slot } else { Slot::ANY })?;
                assert_eq!((into, got.slot), ([round as u64, value], slot));
            }
        } else {
            job.barrier()?;
            world.send(&[round as u64, 1], Rank(1), slot)?;
            job.barrier()?;
            job.barrier()?;
            world.send(&[round as u64, 2], Rank(1), slot)?;
            world.send(&[round as u64, 3], Rank(1), other)?;
        }
    }
    job.barrier()
}

/// G16: receives of three slots and of any slot that keep timing out. Every message arrives once,
/// and whole.
pub fn g16_any_beside_receives_that_time_out(job: &Job) -> Result<()> {
    let (world, rounds) = (job.world(), effort(job, 3000, 60) as u64);
    let len = |value: u64| [[1, 6], [7, 5000], [5, 40]][value as usize % 3][value as usize / 3 % 2];
    if job.rank() == 0 {
        for value in 0..rounds {
            world.send(&vec![value; len(value)], Rank(1), Slot(value as usize % 3))?;
        }
        return job.barrier();
    }
    let (mut into, mut missing) = (vec![0_u64; 5000], vec![true; rounds as usize]);
    let mut came = 0;
    for turn in 0.. {
        if came == rounds {
            break;
        }
        let (slot, room) = [(0, 6), (Slot::ANY.0, 5000), (1, 5000), (Slot::ANY.0, 5000), (2, 40)][turn % 5];
        let limit = Duration::from_nanos((turn as u64 * 37) % 3000);
        match world.within(limit).recv(&mut into[..room], Rank(0), Slot(slot)) {
            Ok(got) => {
                let value = into[0];
                assert_eq!((got.count, got.slot), (len(value), Slot(value as usize % 3)), "value {value}");
                assert!(into[..got.count].iter().all(|&other| other == value), "value {value} is mixed");
                assert!(std::mem::take(&mut missing[value as usize]), "value {value} came twice");
                came += 1;
            }
            Err(error) => assert!(error.is_timeout(), "{error}"),
        }
    }
    job.barrier()
}

/// G16: a long message that meets a receive which has just timed out stays for a receive that is
/// large enough. A smaller receive in between fails and takes nothing. If the message did not meet
/// the first receive, its sender gets an error because the smaller one has no room.
pub fn g16_a_small_one_leaves_a_long_message(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let (world, values) = (job.world(), vec![7_u64; 700]);
    for round in 0..effort(job, 20_000, 60) as u64 {
        if job.rank() == 0 {
            world.recv(&mut [0_u8], Rank(1), Slot(0))?;
            job.compute(Duration::from_nanos(round * 37 % 3000));
            let sent = world.send(&values, Rank(1), Slot(5));
            world.send(&[u8::from(sent.is_ok())], Rank(1), Slot(1))?;
            continue;
        }
        let mut into = [0_u64; 700];
        world.send(&[0_u8], Rank(0), Slot(0))?;
        let first = world.within(Duration::from_nanos(round * 53 % 2000)).recv(&mut into, Rank(0), Slot(5));
        let mut came = first.is_ok();
        if let Err(error) = first {
            assert!(error.is_timeout(), "{error}");
            let small = world.recv(&mut [0_u64; 500], Rank(0), Slot(5));
            let truncated = Cause::Truncated { len: 5600, room: 4000 };
            assert_eq!(*small.expect_err("the receive is too small").cause(), truncated);
        }
        let mut went = [0_u8];
        world.recv(&mut went, Rank(0), Slot(1))?;
        if went == [1] && !came {
            came = world.recv(&mut into, Rank(0), Slot(5))?.count == 700;
        }
        assert_eq!((went, &into[..]), ([u8::from(came)], if came { &values[..] } else { &[0; 700] }));
    }
    job.barrier()
}

/// G9: more long messages under way than one call of the progress function looks at; the receives
/// are posted in reverse order.
pub fn g9_six_hundred_long_receives(job: &Job) -> Result<()> {
    let (world, peer, many) = (job.world(), job.rank_after(1), effort(job, 600, 300));
    let mut into = vec![[0_u8; 64]; many];
    let values: Vec<[u8; 64]> = (0..many).map(|slot| [slot as u8; 64]).collect();
    world.scope(|s| {
        for (slot, value) in (0..many).zip(&values) {
            s.send(value, peer, Slot(slot))?;
        }
        for (slot, into) in (0..many).zip(&mut into).rev() {
            s.recv(into, peer, Slot(slot))?;
        }
        s.wait_all()
    })?;
    assert_eq!(into, values);
    job.barrier()
}
