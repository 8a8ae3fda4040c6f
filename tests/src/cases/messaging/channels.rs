//! Channels: elements in order from one rank to another, through a ring.
#![allow(unsafe_code)]
//! Unsafe: arrays of the case are rings of channels; the case uses no address of them meanwhile.

use crate::exchange::{effort, is_simulated, next, previous};
use crate::expected_error::{disagreed, misused, refused};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::{ChannelReceiver, ChannelSender, channel_from, channel_over, channel_to};
use tasuki::onesided::{After, GlobalAddress};
use tasuki::{ErrorKind, GlobalPtr, Job, Member, Pod, Rank, Request, Result, Slot, block_on, wait_any};

const SHORT: Duration = Duration::from_millis(2);

/// The element of that number: its bytes follow from the number and their place.
fn element<T: Pod>(number: u64) -> T {
    let mut element = T::zeroed();
    let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bytes = bytemuck::bytes_of_mut(&mut element);
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (seed >> (8 * (at % 8))) as u8 ^ at as u8);
    element
}

fn is_element<T: Pod>(found: &T, number: u64) -> bool {
    bytemuck::bytes_of(found) == bytemuck::bytes_of(&element::<T>(number))
}

/// Fills and commits elements from `first` on, at most `most`, if there is room. Returns how many.
fn fill<T: Pod>(to: &mut ChannelSender<T>, first: u64, most: usize) -> Result<usize> {
    let Some(places) = to.try_reserve(most)? else { return Ok(0) };
    assert!(!places.is_empty() && places.len() <= most);
    places.iter_mut().zip(first..).for_each(|(place, number)| *place = element(number));
    let count = places.len();
    // In two commits: those that are left are still reserved.
    to.commit(count / 2)?;
    to.commit(count - count / 2)?;
    Ok(count)
}

/// Checks elements from `first` on, and releases at most `most`. Returns how many; `None` at the end.
fn check<T: Pod, S>(from: &mut ChannelReceiver<T, S>, first: u64, most: usize) -> Result<Option<usize>> {
    let Some(elements) = from.try_peek()? else { return Ok(Some(0)) };
    let count = elements.len().min(most);
    let wrong = elements.iter().zip(first..).find(|(found, number)| !is_element(*found, *number));
    assert!(
        wrong.is_none(),
        "element {} of those from {first} on is wrong",
        wrong.map_or(0, |(_, number)| number)
    );
    if elements.is_empty() {
        return Ok(None);
    }
    from.release(count)?;
    Ok(Some(count))
}

/// Sends `count` elements to the next rank while it receives as many from the previous one, in portions of up to
/// `portion`.
fn both_ways<T: Pod>(job: &Job, slot: Slot, capacity: usize, count: u64, portion: usize) -> Result<()> {
    let world = job.world();
    let mut from = channel_from::<T>(world, previous(job), slot, capacity)?;
    let mut to = Some(channel_to::<T>(world, next(job), slot)?);
    let (mut sent, mut received) = (0, 0);
    loop {
        let before = sent + received;
        if let Some(sender) = &mut to {
            sent += fill(sender, sent, portion.min((count - sent) as usize))? as u64;
            assert!(job.size() > 1 || sent - received <= capacity as u64, "more than the ring has");
            if sent == count {
                to.take().map_or(Ok(()), ChannelSender::finish)?;
            }
        }
        match check(&mut from, received, portion)? {
            Some(new) => received += new as u64,
            None if to.is_none() => break,
            None => {
                // The previous rank has finished. Others wait for this one.
                assert_eq!(received, count);
                to.as_mut().map_or(Ok(()), |sender| sender.ready().wait())?;
                continue;
            }
        }
        if sent + received == before {
            let sending = to.as_mut().map(ChannelSender::ready);
            wait_any(&mut [from.ready()].into_iter().chain(sending).collect::<Vec<_>>())?;
        }
    }
    assert_eq!(received, count);
    assert_eq!(from.peek()?.len(), 0, "the end stays");
    Ok(())
}

/// Rings of every size, elements of every size, also to oneself: nothing is lost, doubled or out of order.
pub fn e6_elements_wrap_around(job: &Job) -> Result<()> {
    for capacity in [1, 3, 1000] {
        let count = effort(job, 4 * capacity.max(500), capacity + 40) as u64;
        for portion in [1, 2, 5000] {
            let count = if portion == 1 { count.min(effort(job, 4000, 40) as u64) } else { count };
            both_ways::<u8>(job, Slot(0), capacity, count, portion)?;
            both_ways::<[u64; 6]>(job, Slot(0), capacity, count, portion)?;
        }
        both_ways::<[u8; 4096]>(
            job,
            Slot(0),
            capacity.min(effort(job, 1000, 10)),
            effort(job, 1500, 25) as u64,
            7,
        )?;
    }
    job.barrier()
}

/// Sends `count` elements by blocking calls.
fn send_all<T: Pod>(to: &mut ChannelSender<T>, count: u64, portion: usize) -> Result<()> {
    let mut sent = 0;
    while sent < count {
        let places = to.reserve(portion.min((count - sent) as usize))?;
        let new = places.len();
        assert!(new > 0);
        places.iter_mut().zip(sent..).for_each(|(place, number)| *place = element(number));
        to.commit(new)?;
        sent += new as u64;
    }
    Ok(())
}

/// Receives by blocking calls until the end.
fn receive_all<T: Pod, S>(from: &mut ChannelReceiver<T, S>, portion: usize) -> Result<u64> {
    let mut received = 0;
    loop {
        let elements = from.peek()?;
        let new = elements.len().min(portion);
        if new == 0 {
            return Ok(received);
        }
        elements[..new].iter().zip(received..).for_each(|(found, number)| assert!(is_element(found, number)));
        from.release(new)?;
        received += new as u64;
    }
}

/// Many elements by blocking calls, in order; now the sender is ahead, now the receiver.
pub fn e_order_of_many_elements(job: &Job) -> Result<()> {
    let (world, count) = (job.world(), effort(job, 100_000, 300) as u64);
    for (slot, late) in [(3, 0), (4, 1)] {
        match job.rank().0 {
            0 => {
                let mut to = channel_to::<u64>(world, Rank(1), Slot(slot))?;
                if late == 0 {
                    job.compute(Duration::from_millis(1));
                }
                send_all(&mut to, count, 9)?;
            }
            1 => {
                let mut from = channel_from::<u64>(world, Rank(0), Slot(slot), 64)?;
                if late == 1 {
                    job.compute(Duration::from_millis(1));
                }
                assert_eq!(receive_all(&mut from, 1000)?, count);
            }
            _ => {}
        }
    }
    job.barrier()
}

/// Channels from all ranks to the first one and back, several for each pair, all at once.
pub fn e1_e3_many_channels(job: &Job) -> Result<()> {
    const CHANNELS: usize = 5;
    let (world, first) = (job.world(), Rank(0));
    let slots = || (0..CHANNELS).map(Slot);
    let count = effort(job, 300, 40) as u64;
    let peers: Vec<Rank> = if job.rank() == first { job.ranks().collect() } else { vec![first] };
    let mut from = Vec::new();
    let mut to = Vec::new();
    for &peer in &peers {
        for slot in slots() {
            from.push((channel_from::<u64>(world, peer, slot, 1 + slot.0)?, 0, false));
            to.push((Some(channel_to::<u64>(world, peer, slot)?), 0));
        }
    }
    while from.iter().any(|(_, _, is_over)| !is_over) || to.iter().any(|(to, _)| to.is_some()) {
        let sending = to.iter_mut().filter_map(|(to, _)| Some(to.as_mut()?.ready()));
        let receiving = from.iter_mut().filter(|(_, _, is_over)| !is_over).map(|(from, ..)| from.ready());
        wait_any(&mut sending.chain(receiving).collect::<Vec<_>>())?;
        for (place, (to, sent)) in to.iter_mut().enumerate() {
            let count = count + place as u64 % CHANNELS as u64;
            let Some(sender) = to else { continue };
            *sent += fill(sender, *sent, 3.min((count - *sent) as usize))? as u64;
            if *sent == count {
                *to = None;
            }
        }
        for (place, (from, received, is_over)) in
            from.iter_mut().enumerate().filter(|(_, (_, _, is_over))| !is_over)
        {
            match check(from, *received, 100)? {
                Some(new) => *received += new as u64,
                None => {
                    *is_over = true;
                    assert_eq!(*received, count + place as u64 % CHANNELS as u64);
                }
            }
        }
    }
    job.barrier()
}

/// In a communicator that numbers its members in another order, and beside messages on the same slots.
pub fn e_channels_of_members(job: &Job) -> Result<()> {
    let world = job.world();
    let reversed = world.split((0, -(job.rank().0 as isize)))?;
    if job.size() > 1 {
        let slot = Slot(7);
        match reversed.rank().0 {
            0 => {
                let mut to = channel_to::<u64>(&reversed, Member(1), slot)?;
                reversed.send(&5_u64, Member(1), slot)?; // the other direction of the slot is free
                send_all(&mut to, 20, 3)?;
                to.finish()?;
            }
            1 => {
                let mut from = channel_from::<u64>(&reversed, Member(0), slot, 4)?;
                let mut got = 0_u64;
                reversed.recv(&mut got, Member(0), slot)?;
                assert_eq!((got, receive_all(&mut from, 2)?), (5, 20));
            }
            _ => {}
        }
    }
    job.barrier()
}

/// A receiver that is dropped before, during or after the handshake, or with elements in the ring, ends the sender, and
/// all memory comes back.
pub fn e5_receivers_are_dropped(job: &Job) -> Result<()> {
    let (world, slot) = (job.world(), Slot(2));
    let peer = Rank(job.size() - 1);
    let before = job.memory();
    for step in 0..5 {
        let mut to = None;
        if job.rank() == 0 && step > 0 {
            to = Some(channel_to::<u64>(world, peer, slot)?);
        }
        job.barrier()?;
        let mut from = None;
        if job.rank() == peer {
            from = Some(channel_from::<u64>(world, Rank(0), slot, 4)?);
        }
        if step <= 1 {
            drop(from.take()); // before the sender has accepted the offer
        }
        job.barrier()?;
        if job.rank() == 0 && step == 0 {
            to = Some(channel_to::<u64>(world, peer, slot)?);
        }
        if let (Some(to), 3..) = (&mut to, step) {
            send_all(to, step - 1, 2)?;
        }
        job.barrier()?;
        if let (Some(from), 4..) = (&mut from, step) {
            assert_eq!(from.peek()?.len(), 3);
            from.release(1)?;
        }
        drop(from);
        job.barrier()?;
        if let Some(to) = &mut to {
            let ended = (|| loop {
                let count = to.reserve(3)?.len();
                to.commit(count)?;
            })();
            let error = refused::<()>(
                job,
                ended,
                ErrorKind::PeerFailed,
                &["reserve(channel on slot 2 to rank", "hint:"],
            );
            assert!(matches!(error.cause(), Cause::ChannelDropped { peer: of } if *of == peer), "{error}");
        }
        drop(to);
        job.barrier()?;
    }
    settle(job, before.channels)?;
    assert_eq!(job.memory().local, before.local, "rings are freed");
    job.barrier()
}

/// Waits until the memory of channels is what it was.
fn settle(job: &Job, before: u64) -> Result<()> {
    let never = job.signal()?;
    while job.memory().channels != before {
        assert!(never.reaches(1).wait_timeout(Duration::from_micros(50))?.is_none());
    }
    Ok(())
}

/// A sender that is dropped before, during or after the handshake, or with elements that were not read: the receiver
/// gets them, and then the end.
pub fn e5_senders_are_dropped(job: &Job) -> Result<()> {
    let (world, slot) = (job.world(), Slot(2));
    let peer = Rank(job.size() - 1);
    let before = job.memory();
    for step in 0..5_u64 {
        let sends = step.saturating_sub(2);
        let mut to = None;
        if job.rank() == 0 {
            to = Some(channel_to::<u64>(world, peer, slot)?);
            if step == 0 {
                drop(to.take()); // before there is an offer
            }
        }
        job.barrier()?;
        let mut from = None;
        if job.rank() == peer {
            from = Some(channel_from::<u64>(world, Rank(0), slot, 4)?);
        }
        if let (Some(to), 3..) = (&mut to, step) {
            send_all(to, sends, 2)?;
        }
        if let (Some(to), 2) = (&mut to, step) {
            to.ready().wait()?;
        }
        drop(to);
        job.barrier()?;
        if let Some(from) = &mut from {
            assert_eq!(receive_all(from, 1)?, sends);
            assert_eq!((from.peek()?.len(), from.try_peek()?.map(<[u64]>::len)), (0, Some(0)));
            if step == 3 {
                assert_eq!(from.free()?.len(), 4);
            }
        }
        drop(from);
        job.barrier()?;
    }
    settle(job, before.channels)?;
    assert_eq!(job.memory().local, before.local, "rings are freed");
    job.barrier()
}

/// A sender that sends nothing, and whose rank leaves before the receiver's end is made: still a proper end.
pub fn e5_a_sender_leaves_before_its_receiver_comes(job: &Job) -> Result<()> {
    let last = Rank(job.size() - 1);
    match job.rank().0 {
        0 if last != Rank(0) => drop(channel_to::<u64>(job.world(), last, Slot(0))?),
        _ if job.rank() == last && last != Rank(0) => {
            job.compute(Duration::from_millis(2));
            let mut from = channel_from::<u64>(job.world(), Rank(0), Slot(0), 3)?;
            assert_eq!(from.peek()?.len(), 0);
        }
        _ => {}
    }
    Ok(())
}

/// A sender whose rank leaves without having closed it, and one whose elements all were committed before.
pub fn e5_ranks_leave(job: &Job) -> Result<()> {
    let last = Rank(job.size() - 1);
    if last == Rank(0) {
        return Ok(());
    }
    let world = job.world();
    if job.rank() == 0 {
        let mut to = channel_to::<u64>(world, last, Slot(0))?;
        send_all(&mut to, 3, 3)?;
        crate::leak::forget(to);
        let mut to = channel_to::<u64>(world, last, Slot(1))?;
        send_all(&mut to, 3, 3)?;
    } else if job.rank() == last {
        let mut from = channel_from::<u64>(world, Rank(0), Slot(0), 4)?;
        let mut closed = channel_from::<u64>(world, Rank(0), Slot(1), 4)?;
        assert_eq!(receive_all(&mut closed, 1)?, 3);
        let error = refused(
            job,
            receive_all(&mut from, 3),
            ErrorKind::PeerFailed,
            &["peek(channel on slot 0", "hint:"],
        );
        assert!(matches!(error.cause(), Cause::PeerLeft { peer: Rank(0) }), "{error}");
    }
    Ok(())
}

/// A rank leaves that has made no sender, and a plan keeps it until the others leave, too: the receiver gets an error,
/// whether it has waited before or not. A sender that was dropped before it knew the receiver is a proper end all the
/// same.
pub fn e5_ranks_with_plans_leave_early(job: &Job) -> Result<()> {
    let (world, last) = (job.world(), Rank(job.size() - 1));
    let mut plan = world.barrier_init()?;
    plan.start()?;
    plan.wait()?;
    if job.rank() == 0 {
        drop(channel_to::<u64>(world, last, Slot(0))?);
        job.compute(Duration::from_millis(2));
        return Ok(());
    }
    if job.rank() != last {
        return Ok(());
    }
    let mut waits = channel_from::<u64>(world, Rank(0), Slot(1), 3)?;
    let left = |outcome: Result<usize>, call: &str| {
        let error = refused(job, outcome, ErrorKind::PeerFailed, &[call, "has left", "hint:"]);
        assert!(matches!(error.cause(), Cause::PeerLeft { peer: Rank(0) }), "{error}");
    };
    left(waits.peek().map(<[u64]>::len), "peek(channel on slot 1 from rank 0)");
    left(waits.peek().map(<[u64]>::len), "peek(channel on slot 1 from rank 0)");
    let mut closed = channel_from::<u64>(world, Rank(0), Slot(0), 3)?;
    assert_eq!(closed.peek()?.len(), 0);
    let mut late = channel_from::<u64>(world, Rank(0), Slot(2), 3)?;
    let found = loop {
        match late.try_peek() {
            Ok(None) => job.compute(Duration::from_micros(20)),
            found => break found.map(|found| found.map_or(0, <[u64]>::len)),
        }
    };
    left(found, "peek(channel on slot 2 from rank 0)");
    let mut awaited = channel_from::<u64>(world, Rank(0), Slot(3), 3)?;
    left(block_on(async { awaited.ready().await.map(|()| 0) }), "peek(channel on slot 3 from rank 0)");
    assert_eq!(awaited.free()?.len(), 3); // no sender uses the ring
    Ok(())
}

/// Ends with elements of different types: both get an error that names both types.
pub fn e_types_of_channels_differ(job: &Job) -> Result<()> {
    #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Point([f64; 2]);
    let (world, peer, before) = (job.world(), Rank(job.size() - 1), job.memory());
    let (mut to, mut from, mut bytes_to, mut words_from) = (None, None, None, None);
    if job.rank() == 0 {
        to = Some(channel_to::<Point>(world, peer, Slot(0))?);
        bytes_to = Some(channel_to::<u8>(world, peer, Slot(1))?);
    }
    if job.rank() == peer {
        from = Some(channel_from::<f64>(world, Rank(0), Slot(0), 10)?);
        words_from = Some(channel_from::<u64>(world, Rank(0), Slot(1), 10)?);
    }
    if let (Some(to), Some(bytes_to)) = (&mut to, &mut bytes_to) {
        for _ in 0..2 {
            disagreed(
                job,
                to.reserve(1).map(drop),
                &["reserve(", "sender", "Point", "receiver of type f64", "hint:"],
            );
        }
        disagreed(job, bytes_to.reserve(1).map(drop), &["type u8", "type u64"]);
    }
    if let (Some(from), Some(words_from)) = (&mut from, &mut words_from) {
        for _ in 0..2 {
            disagreed(job, from.peek().map(drop), &["peek(", "Point", "receiver of type f64", "hint:"]);
        }
        disagreed(job, words_from.peek().map(drop), &["type u8", "type u64"]);
    }
    drop((to, from, bytes_to, words_from));
    job.barrier()?;
    settle(job, before.channels)?;
    job.barrier()
}

/// Waits end at the limit of the handle or of the rank, at each stage, and the channel goes on as if nothing had
/// happened.
pub fn e_limits_of_channels(job: &Job) -> Result<()> {
    let late = |outcome: Result<()>, call: &str| {
        drop(refused(job, outcome, ErrorKind::TimedOut, &[call, "timed out"]))
    };
    let (soon, peer) = (job.within(SHORT), Rank(job.size() - 1));
    let (mut to, mut from) = (None, None);
    if job.rank() == 0 {
        let mut sender = channel_to::<u64>(soon.world(), peer, Slot(0))?;
        late(sender.reserve(1).map(drop), "reserve(channel on slot 0 to rank");
        assert!(sender.try_reserve(1)?.is_none());
        assert!(sender.ready().wait_timeout(SHORT)?.is_none());
        to = Some(sender);
    }
    job.barrier()?;
    if job.rank() == peer {
        let mut receiver = channel_from::<u64>(soon.world(), Rank(0), Slot(0), 2)?;
        if peer != Rank(0) {
            late(receiver.peek().map(drop), "peek(channel on slot 0 from rank");
            assert!(receiver.try_peek()?.is_none());
            late(receiver.free().map(drop), "free(channel on slot 0 from rank");
        }
        from = Some(receiver);
    }
    job.barrier()?;
    if let Some(to) = &mut to {
        to.ready().wait()?;
        send_all(to, 2, 1)?;
        job.set_timeout(Some(SHORT));
        late(to.ready().wait(), "reserve(channel");
        late(to.reserve(1).map(drop), "reserve(channel");
        assert!(to.try_reserve(1)?.is_none());
        job.set_timeout(None);
    }
    job.barrier()?;
    if let Some(from) = &mut from {
        assert!(check(from, 0, 2)? == Some(2));
        late(from.peek().map(drop), "peek(channel");
    }
    job.barrier()?;
    if let Some(to) = to {
        to.finish()?;
    }
    job.barrier()?;
    if let Some(from) = &mut from {
        assert_eq!(from.peek()?.len(), 0);
        from.free()?;
        misused(job, from.peek().map(drop), &["peek("]);
        misused(job, from.free().map(drop), &["free(channel on slot", "the ring was waited for already"]);
    }
    job.barrier()
}

/// Both ends are awaited, alone and beside other requests.
pub fn e_channels_are_awaited(job: &Job) -> Result<()> {
    let (world, count) = (job.world(), effort(job, 500, 30) as u64);
    let mut from = channel_from::<u64>(world, previous(job), Slot(0), 3)?;
    let mut to = channel_to::<u64>(world, next(job), Slot(0))?;
    if job.size() == 1 {
        let (mut sending, mut receiving) = (to.ready(), from.ready());
        assert_eq!(wait_any(&mut [&mut receiving as &mut dyn Request<Value = ()>, &mut sending])?, 1);
        assert!(sending.test() && !receiving.test());
        return Ok(());
    }
    let ends: Result<()> = block_on(async {
        for number in 0..count {
            to.ready().await?;
            to.reserve(1)?[0] = element(number);
            to.commit(1)?;
            from.ready().await?;
            assert!(is_element(&from.peek()?[0], number));
            from.release(1)?;
        }
        Ok(())
    });
    ends?;
    to.finish()?;
    pollster::block_on(from.ready())?;
    assert_eq!(from.peek()?.len(), 0);
    job.barrier()
}

/// Rings in memory of the program: an array of the rank, and its part of one of all ranks. They come back with the
/// elements in them.
pub fn e_rings_of_the_program(job: &Job) -> Result<()> {
    let world = job.world();
    let (own, symmetric) = (job.alloc_local::<u64>(3)?, job.alloc::<[u64; 6]>(5)?);
    let before = job.memory();
    // SAFETY: no rank uses the address of either array until it was returned.
    let mut from = unsafe { channel_over(world, previous(job), Slot(0), own)? };
    // SAFETY: no rank uses the address of this array either until it was returned.
    let mut from_symmetric = unsafe { channel_over(world, previous(job), Slot(1), symmetric)? };
    let mut to = channel_to::<u64>(world, next(job), Slot(0))?;
    let mut to_symmetric = channel_to::<[u64; 6]>(world, next(job), Slot(1))?;
    assert!(job.memory().channels >= before.channels + 24 + 240 + 4 * 128);
    send_all(&mut to, 3, 3)?;
    send_all(&mut to_symmetric, 5, 5)?;
    assert!(from.peek()?.iter().zip(0..).all(|(found, number)| is_element(found, number)));
    to_symmetric.finish()?;
    assert_eq!(receive_all(&mut from_symmetric, 4)?, 5);
    to.finish()?;
    let own = from.free()?;
    let symmetric = from_symmetric.free()?;
    assert_eq!(own.to_vec()?, [0, 1, 2].map(element::<u64>));
    assert_eq!(symmetric.get(4)?, element::<[u64; 6]>(4));
    drop((from, from_symmetric));
    job.barrier()?;
    settle(job, before.channels)?;
    assert_eq!(job.memory().local, before.local);
    job.barrier()
}

fn word_at(bits: u64) -> GlobalPtr<u64> {
    GlobalPtr::new(GlobalAddress::from_bits(bits))
}

/// Operations of programs on the ring of a channel are refused, by all ranks, until the receiver has freed it.
pub fn e_rings_are_closed_to_operations(job: &Job) -> Result<()> {
    let (world, before) = (job.world(), job.alloc_local::<u64>(1)?);
    // Fresh addresses are given out one after the other, in steps of 64 KiB.
    let ring = word_at(before.pointer().address().bits() + (64 << 10));
    let mut from = channel_from::<u64>(world, previous(job), Slot(0), 4)?;
    let mut to = channel_to::<u64>(world, next(job), Slot(0))?;
    to.reserve(2)?.copy_from_slice(&[1, 2]);
    to.commit(2)?;
    assert_eq!(from.peek()?, [1, 2]);
    let rings = world.allgather(&ring.address().bits())?;
    let is_closed = !is_simulated(job) && std::env::var_os("TASUKI_DIRECT_SIGNALS").is_none();
    for at in rings.iter().copied().map(word_at) {
        let refused = |result: Result<()>| match is_closed {
            true => drop(misused(job, result, &["is in the ring of a channel", "hint:"])),
            false => assert!(result.is_ok(), "{result:?}"), // the receiver reads a copy
        };
        refused(job.put(at, &[9]));
        refused(job.get_value(at.at(1)).map(drop));
        refused(job.fetch_add(at, 1).map(drop));
        refused(job.copy(before.pointer(), at, 1, After::Nothing).and_then(|mut copy| copy.wait()));
    }
    job.barrier()?;
    assert_eq!(from.peek()?, [1, 2]);
    from.release(2)?;
    to.reserve(2)?.copy_from_slice(&[3, 4]);
    to.commit(2)?;
    assert_eq!(from.peek()?, [3, 4]);
    to.finish()?;
    let own = from.free()?;
    assert_eq!(own.pointer(), ring, "the case knew the address of the ring");
    job.barrier()?;
    let next_ring = word_at(rings[next(job).index()]);
    job.put(next_ring, &[7])?;
    job.barrier()?;
    assert_eq!(own.to_vec()?, [7, 2, 3, 4]);
    job.barrier()
}

/// Wrong arguments are refused and change nothing.
pub fn e_misuse_of_channels(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    misused(job, channel_to::<u64>(world, Rank(job.size()), Slot(0)), &["there is no rank"]);
    misused(job, channel_from::<u64>(world, Member(job.size()), Slot(0), 4), &["there is no member"]);
    misused(job, channel_to::<u64>(world, None::<Rank>, Slot(0)), &["needs a rank"]);
    misused(job, channel_to::<u64>(world, me, Slot::ANY), &["needs a slot"]);
    misused(job, channel_to::<u64>(world, me, Slot(1 << 20)), &["there is no slot"]);
    misused(job, channel_from::<u64>(world, me, Slot(1 << 20), 4), &["there is no slot"]);
    misused(job, channel_from::<u64>(world, me, Slot(0), 0), &["at least one byte"]);
    misused(job, channel_from::<()>(world, me, Slot(0), 4), &["at least one byte"]);
    let before = job.memory();
    let mut to = channel_to::<u64>(world, me, Slot(0))?;
    misused(job, channel_to::<u64>(world, me, Slot(0)), &["channel_to(", "hint:"]);
    misused(job, to.commit(1), &["1 elements to commit, of 0"]);
    let mut from = channel_from::<u64>(world, me, Slot(0), 4)?;
    assert_eq!(to.reserve(9)?.len(), 4);
    misused(job, to.commit(5), &["5 elements to commit, of 4"]);
    assert_eq!(to.reserve(2)?.len(), 2);
    misused(job, to.commit(3), &["3 elements to commit, of 2"]);
    to.commit(2)?;
    misused(job, from.release(1), &["1 elements to release, of 0"]);
    assert_eq!(from.peek()?.len(), 2);
    misused(job, from.release(3), &["3 elements to release, of 2"]);
    from.release(2)?;
    assert!(from.try_peek()?.is_none());
    drop((to, from));
    settle(job, before.channels)?;
    job.barrier()
}
