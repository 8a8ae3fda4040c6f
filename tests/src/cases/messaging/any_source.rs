//! Messages whose receiver does not name the sender: send_any and recv_any.

use crate::exchange::effort;
use crate::pattern;
use std::sync::Mutex;
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::set_send_buffer;
use tasuki::{Communicator, ErrorKind, Job, Member, Rank, Request, Result, Slot, block_on};

const SHORT: Duration = Duration::from_millis(5);
const FIRST: Rank = Rank(0);

/// The values of a message: its sender, its number, and numbers that follow from both.
fn message(from: usize, number: u64, values: usize) -> Vec<u64> {
    let rest = (2..values.max(2) as u64).map(|at| from as u64 * 1_000_003 + number * 101 + at);
    [from as u64, number].into_iter().chain(rest).collect()
}

/// The number of values of a message: some fit in a line, some in a buffer, and a few in neither.
fn values_of(number: u64) -> usize {
    [2, 3, 4, 5, 32, 2, 33, 900][number as usize % 8]
}

fn last(job: &Job) -> Rank {
    Rank(job.size() - 1)
}

fn is_last(job: &Job) -> bool {
    job.rank() == last(job)
}

/// More messages than the queue has buffers, from all ranks to all, each once, those of a sender in their order.
pub fn g_any_source_messages_keep_their_order(job: &Job) -> Result<()> {
    let (world, count) = (job.world(), effort(job, 150, 40) as u64);
    if job.size() == 1 {
        for number in 0..count {
            let sent = message(0, number, 2 + number as usize % 30);
            world.send_any(&sent, FIRST, Slot(number as usize % 3))?;
            assert_eq!(world.recv_any_vec::<u64>(Slot::ANY)?.0, sent);
        }
        return Ok(());
    }
    if job.rank() != FIRST {
        for number in 0..count {
            world.send_any(
                &message(job.rank().0, number, values_of(number)),
                FIRST,
                Slot(number as usize % 5),
            )?;
        }
        return job.barrier();
    }
    let (mut next, before) = (vec![0; job.size()], job.memory().any_source);
    for received in 0..count * (job.size() as u64 - 1) {
        if received % 50 == 0 {
            job.compute(Duration::from_micros(300)); // senders wait
        }
        let (values, got) = world.recv_any_vec::<u64>(Slot::ANY)?;
        let number = std::mem::replace(&mut next[got.source.0], values[1] + 1);
        assert_eq!(values, message(got.source.0, number, values_of(number)), "from member {}", got.source);
        assert_eq!((got.slot, got.count), (Slot(number as usize % 5), values.len()));
    }
    assert!(next[1..].iter().all(|&numbers| numbers == count), "{next:?}");
    assert_eq!(world.try_recv_any_vec::<u64>(Slot::ANY)?, None);
    let after = job.memory().any_source;
    assert!(after - before <= 64 * (256 + 64), "the queue is bounded: {before}, then {after}");
    job.barrier()
}

/// A receive of a slot takes the oldest message with it, also behind others.
pub fn g_any_source_slots_in_any_order(job: &Job) -> Result<()> {
    let world = job.world();
    for round in 0..20_u64 {
        if is_last(job) {
            for slot in 0..8 {
                world.send_any(&[round, slot as u64, 0, 0, 0, slot as u64], FIRST, Slot(slot << 20))?;
            }
        }
        if job.rank() == FIRST {
            for slot in [7, 3, 4, 6, 5, 2, 1, 0] {
                let mut values = [0; 6];
                let got = world.recv_any(&mut values, Slot(slot << 20))?;
                assert_eq!((got.slot, got.source.0, got.count), (Slot(slot << 20), last(job).0, 6));
                assert_eq!(values, [round, slot as u64, 0, 0, 0, slot as u64]);
            }
        }
    }
    job.barrier()
}

/// G10: send_any never meets recv, and send never meets recv_any, on equal slots.
pub fn g10_any_source_never_meets_named(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let (world, peer) = (job.world(), last(job));
    for round in 0..10_u64 {
        for named_first in [true, false] {
            let mut named = None;
            if is_last(job) {
                if named_first {
                    named = Some(world.isend(vec![round, 1], FIRST, Slot(3))?);
                }
                world.send_any(&[round, 2], FIRST, Slot(3))?;
                if !named_first {
                    named = Some(world.isend(vec![round, 1], FIRST, Slot(3))?);
                }
            }
            if job.rank() == FIRST {
                let (mut one, mut other) = ([0_u64; 2], [0_u64; 2]);
                if round % 2 == 0 {
                    world.recv_any(&mut one, Slot(3))?;
                    assert_eq!(world.try_recv_any_vec::<u64>(Slot::ANY)?, None);
                    world.recv(&mut other, peer, Slot::ANY)?;
                } else {
                    world.recv(&mut other, peer, Slot(3))?;
                    world.recv_any(&mut one, Slot::ANY)?;
                }
                assert_eq!((one, other), ([round, 2], [round, 1]));
            }
            named.map_or(Ok(Vec::new()), |mut named| named.wait())?;
        }
    }
    // Nothing but messages of the other kind is there.
    if is_last(job) {
        world.send_any(&[1_u64], FIRST, Slot(0))?;
    }
    job.barrier()?;
    if job.rank() == FIRST {
        let error = world.within(SHORT).recv(&mut [0_u64], peer, Slot(0)).expect_err("another kind");
        assert!(error.is_timeout(), "{error}");
        assert_eq!(world.recv_any_vec::<u64>(Slot(0))?.0, [1]);
    }
    job.barrier()
}

/// Messages of different communicators never meet; a communicator names its members.
pub fn g13_any_source_of_two_communicators(job: &Job) -> Result<()> {
    let world = job.world();
    let (dup, reversed) = (world.dup()?, world.split((0, -(job.rank().0 as isize)))?);
    let of = |communicator: &Communicator, what: u64, to: Rank| {
        communicator.send_any(&[what, job.rank().0 as u64], to, Slot(1))
    };
    job.ranks().try_for_each(|to| {
        of(&reversed, 3, to)?;
        of(&dup, 2, to)?;
        of(world, 1, to)
    })?;
    for (communicator, what) in [(world, 1), (&dup, 2), (&reversed, 3)] {
        let mut seen = vec![false; job.size()];
        for _ in 0..job.size() {
            let (values, got) = communicator.recv_any_vec::<u64>(Slot(1))?;
            let rank = values[1] as usize;
            assert_eq!(values[0], what);
            let member = if what == 3 { job.size() - 1 - rank } else { rank };
            assert_eq!(got.source, Member(member));
            assert!(!std::mem::replace(&mut seen[rank], true));
        }
        assert_eq!(communicator.try_recv_any_vec::<u64>(Slot(1))?, None);
    }
    reversed.send_any(&5_u64, Member(0), Slot(9))?;
    if is_last(job) {
        let all: u64 =
            (0..job.size()).map(|_| Ok(reversed.recv_any_vec::<u64>(Slot(9))?.0[0])).sum::<Result<_>>()?;
        assert_eq!(all, 5 * job.size() as u64);
    }
    let nobody = reversed.send_any(&5_u64, Member(job.size()), Slot(9)).expect_err("no such member");
    assert!(nobody.to_string().contains("send_any"), "{nobody}");
    world.send_any(&5_u64, None::<Rank>, Slot(9))?;
    let none = world.send_any(&5_u64, FIRST, Slot::ANY).expect_err("a send needs a slot");
    assert_eq!(none.kind(), ErrorKind::Misuse, "{none}");
    job.barrier()
}

/// A long message stays at its sender until it is received, also into too little room or as another type at first.
pub fn g15_any_source_misfits_lose_no_message(job: &Job) -> Result<()> {
    let world = job.world();
    for len in [3, 30, 20_000] {
        if job.rank() == FIRST {
            let mut next = vec![0_u64; job.size()];
            for received in 0..3 * (job.size() - 1) {
                if received % 2 == 0 {
                    let error = world.recv_any(&mut [0_u64; 2], Slot::ANY).expect_err("too little room");
                    assert!(matches!(error.cause(), Cause::Truncated { .. }), "{error}");
                    assert!(error.to_string().contains("recv_any(any slot from any rank)"), "{error}");
                    let sender = error.peer().expect("its message is there").to_string();
                    assert!(
                        error.to_string().contains(&format!("rank {sender} has sent the message")),
                        "{error}"
                    );
                    let error = world.recv_any_vec::<u32>(Slot(0)).expect_err("another type");
                    assert!(matches!(error.cause(), Cause::TypeMismatch { .. }), "{error}");
                    assert!(error.peer().is_some_and(|sender| sender != FIRST), "{error}");
                    let error = world.irecv_any::<u32>(Slot(0)).wait().expect_err("another type");
                    assert!(matches!(error.cause(), Cause::TypeMismatch { .. }), "{error}");
                }
                let mut values = vec![0; len + 5];
                let got = world.recv_any(&mut values, Slot(0))?;
                assert_eq!(got.count, len);
                assert!(values[..len] == message(got.source.0, next[got.source.0], len), "{}", got.source);
                assert_eq!(values[len..], [0; 5]);
                next[got.source.0] += 1;
            }
        } else {
            (0..3)
                .try_for_each(|number| world.send_any(&message(job.rank().0, number, len), FIRST, Slot(0)))?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// G17: a request that is dropped has taken no message, whether it had found one or not, and messages keep their order.
pub fn g17_dropped_any_source_receives_lose_nothing(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    let next = job.rank_after(1);
    for len in [2, 20, 32] {
        drop(world.irecv_any::<u64>(Slot::ANY)); // nothing was sent
        let mut pending = world.irecv_any::<u64>(Slot(7));
        assert!(!pending.test());
        for number in 0..6 {
            world.send_any(&message(me.0, number, len), next, Slot(number as usize % 2))?;
        }
        let from = job.rank_after(-1).0;
        let mut taken: Vec<_> = (0..4).map(|_| world.irecv_any::<u64>(Slot::ANY)).collect();
        while !taken.iter_mut().all(|request| request.test()) {}
        assert_eq!(taken.remove(0).wait()?.0, message(from, 0, len));
        // The oldest goes back last.
        while let Some(request) = taken.pop().filter(|_| len != 20) {
            drop(request);
        }
        drop(taken);
        assert!(!pending.test());
        for number in [1, 3, 2, 4, 5] {
            let (values, got) = world.recv_any_vec::<u64>(Slot(number as usize % 2))?;
            assert_eq!((values, got.source), (message(from, number, len), Member(from)));
        }
        drop(pending);
        job.barrier()?;
    }
    // One that goes back between others.
    (0..3).try_for_each(|number| world.send_any(&message(me.0, number, 2), next, Slot(number as usize)))?;
    let mut taken = world.irecv_any::<u64>(Slot(1));
    while !taken.test() {}
    drop(taken);
    for number in 0..3 {
        assert_eq!(world.recv_any_vec::<u64>(Slot::ANY)?.0, message(job.rank_after(-1).0, number, 2));
    }
    job.barrier()?;
    // A long one, fetched and put back.
    if is_last(job) && job.size() > 1 {
        world.send_any(&pattern::bytes(5, 100_000), FIRST, Slot(0))?;
    }
    if job.rank() == FIRST && job.size() > 1 {
        let mut request = world.irecv_any::<u8>(Slot(0));
        while !request.test() {}
        drop(request);
        let (bytes, got) = world.recv_any_vec::<u8>(Slot::ANY)?;
        pattern::check(&bytes, 5, "after a dropped receive");
        assert_eq!(got.source.0, last(job).0);
    }
    job.barrier()
}

/// G17: a message that goes back wakes a thread that waits for it.
pub fn g17_a_message_that_goes_back_wakes_a_thread(job: &Job) -> Result<()> {
    let world = job.world();
    for len in [2, 20] {
        world.send_any(&message(3, 4, len), job.rank(), Slot(7))?;
        let mut request = world.irecv_any::<u64>(Slot(7));
        assert!(request.test());
        let request = Mutex::new(Some(request));
        let received = job.threads(2, |thread| {
            if thread == 0 {
                return world.within(Duration::from_secs(10)).recv_any_vec::<u64>(Slot(7)).map(Some);
            }
            job.compute(Duration::from_millis(5));
            drop(request.lock().expect("nobody has panicked").take());
            Ok(None)
        })?;
        let received = received.into_iter().collect::<Result<Vec<_>>>()?;
        assert_eq!(received[0].as_ref().expect("it came").0, message(3, 4, len));
    }
    job.barrier()
}

/// Calls with a time limit leave nothing behind: a receive takes nothing, a send sends nothing and stops nobody.
pub fn g_any_source_time_limits(job: &Job) -> Result<()> {
    let (world, limited) = (job.world(), job.world().within(SHORT));
    let error = limited.recv_any_vec::<u64>(Slot(0)).expect_err("nothing was sent");
    assert!(error.is_timeout() && error.to_string().contains("recv_any(slot 0 from any rank)"), "{error}");
    let mut request = world.irecv_any::<u64>(Slot(0));
    assert!(request.wait_timeout(SHORT)?.is_none());
    job.barrier()?;
    let mut sent = 0_u64;
    if is_last(job) {
        let error = loop {
            match limited.send_any(&message(job.rank().0, sent, 2 + sent as usize % 20), FIRST, Slot(1)) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert!(error.is_timeout() && error.to_string().contains("send_any("), "{error}");
        assert_eq!(sent, 64, "the queue has so many buffers");
        let error =
            limited.send_any(&message(job.rank().0, 99, 400), FIRST, Slot(1)).expect_err("nobody receives");
        assert!(error.is_timeout(), "{error}");
    }
    let mut sent = [sent];
    world.bcast(&mut sent, last(job))?;
    if job.rank() == FIRST {
        for number in 0..sent[0] {
            let (values, _) = world.recv_any_vec::<u64>(Slot(1))?;
            assert_eq!(values, message(last(job).0, number, 2 + number as usize % 20));
        }
    }
    job.barrier()?;
    // What was given up has not come, and holds up nobody, though the rank that gave it up sends no more: there are
    // more messages than buffers.
    if job.rank() != FIRST && !is_last(job) {
        (0..80_u64).try_for_each(|number| world.send_any(&number, FIRST, Slot(1)))?;
    }
    if job.rank() == FIRST {
        for number in 0..80 * job.size().saturating_sub(2).max(1) as u64 {
            if job.size() < 3 {
                world.send_any(&number, FIRST, Slot(1))?;
            }
            world.recv_any_vec::<u64>(Slot(1))?;
        }
        assert_eq!(world.try_recv_any_vec::<usize>(Slot::ANY)?, None);
        let mut request = request;
        world.send_any(&1_u64, FIRST, Slot(0))?;
        assert_eq!(request.wait()?.0, [1]);
        assert!(request.wait().is_err_and(|error| error.kind() == ErrorKind::Misuse));
    }
    job.barrier()
}

/// If messages of other slots fill the queue, the oldest are copied out; when there is no room for that either, the
/// receive fails, and no message is lost.
pub fn f10_other_slots_fill_the_any_source_queue(job: &Job) -> Result<()> {
    let world = job.world();
    let all = 400_u64;
    if job.size() == 1 {
        return Ok(());
    }
    if is_last(job) {
        (0..all).try_for_each(|number| world.send_any(&message(job.rank().0, number, 32), FIRST, Slot(1)))?;
    } else if job.rank() == FIRST {
        let error = world.recv_any_vec::<u64>(Slot(2)).expect_err("no message has that slot");
        assert!(matches!(error.cause(), Cause::Full { .. }), "{error}");
        assert!(error.to_string().contains("recv_any(slot 2 from any rank)"), "{error}");
        for number in 0..all {
            assert_eq!(world.recv_any_vec::<u64>(Slot(1))?.0, message(last(job).0, number, 32));
        }
    }
    job.barrier()
}

/// A receive ends when no other member is left, though other ranks are, and so does an iterator. What was sent before
/// comes.
pub fn g_any_source_ends_when_all_other_members_have_left(job: &Job) -> Result<()> {
    let world = job.world();
    let pairs = world.split(usize::from(job.rank().0 > 1))?; // ranks 0 and 1, and the others
    match job.rank().0 {
        0 if job.size() > 1 => {
            let mut got = Vec::new();
            for message in pairs.messages_from_any::<u64>(Slot::ANY) {
                got.push(message?.0);
            }
            assert_eq!(got, [message(1, 0, 2), message(1, 1, 9), message(1, 2, 400)]);
            let error = pairs.recv_any_vec::<u64>(Slot(4)).expect_err("the only other member has left");
            assert!(matches!(error.cause(), Cause::PeerLeft { peer: Rank(1) }), "{error}");
            assert!(error.to_string().contains("rank 0: recv_any(slot 4 from any rank)"), "{error}");
            let error = pairs.irecv_any::<u64>(Slot(4)).wait().expect_err("the only other member has left");
            assert!(matches!(error.cause(), Cause::PeerLeft { peer: Rank(1) }), "{error}");
            let error = pairs.send_any(&1, Rank(1), Slot(4)).expect_err("it has left");
            assert!(matches!(error.cause(), Cause::PeerLeft { peer: Rank(1) }), "{error}");
            assert_eq!(block_on(pairs.messages_from_any::<u64>(Slot::ANY).next_message()).map(drop_ok), None);
            (2..job.size()).try_for_each(|rank| world.send_any(&9, Rank(rank), Slot(0)))
        }
        1 => {
            let send = |number, len| pairs.send_any(&message(1, number, len), FIRST, Slot(number as usize));
            send(0, 2).and_then(|()| send(1, 9)).and_then(|()| send(2, 400))
        }
        _ if job.size() > 1 => {
            assert_eq!(world.recv_any_vec::<i32>(Slot(0))?.0, [9]);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Requests do not wait for room. Messages keep the order in which they were begun, whether by requests or by calls that
/// wait, whatever order the requests are waited for.
pub fn g_isend_any_keeps_the_order_of_all_sends(job: &Job) -> Result<()> {
    let (world, count) = (job.world(), 150_u64);
    let send = |number| world.isend_any(message(job.rank().0, number, values_of(number)), FIRST, Slot(0));
    let receive = |next: &mut Vec<u64>| -> Result<()> {
        let (values, got) = world.recv_any_vec::<u64>(Slot(0))?;
        let number = std::mem::replace(&mut next[got.source.0], values[1] + 1);
        assert_eq!(values, message(got.source.0, number, values_of(number)), "from member {}", got.source);
        Ok(())
    };
    let sends = job.size() == 1 || job.rank() != FIRST;
    let mut requests = if sends { (0..count).map(send).collect::<Result<Vec<_>>>()? } else { Vec::new() };
    if sends {
        assert!(!requests[count as usize - 1].test(), "the queue has fewer buffers, and nobody has received");
    }
    job.barrier()?;
    let mut next = vec![0; job.size()];
    if sends && job.size() > 1 {
        for number in (count..count + 40).step_by(2) {
            world.send_any(&message(job.rank().0, number, values_of(number)), FIRST, Slot(0))?;
            requests.push(send(number + 1)?);
        }
    }
    if job.rank() == FIRST {
        let all = if job.size() == 1 { count } else { (count + 40) * (job.size() as u64 - 1) };
        (0..all).try_for_each(|_| receive(&mut next))?;
    }
    for request in requests.iter_mut().rev() {
        let values = request.wait()?;
        assert_eq!(values, message(job.rank().0, values[1], values_of(values[1])));
    }
    job.barrier()
}

/// A request that is cancelled sends nothing and holds up nobody; one that is dropped, or whose wait has reached its
/// limit, sends.
pub fn g_isend_any_is_cancelled_or_dropped(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank().0);
    let begin = |number, values| world.isend_any(message(me, number, values), FIRST, Slot(1));
    let mut kept = None;
    if is_last(job) {
        (0..64).try_for_each(|number| world.send_any(&message(me, number, 2), FIRST, Slot(1)))?;
        let mut requests = (64..70).map(|number| begin(number, if number % 3 == 0 { 400 } else { 5 }));
        let [short, long, two] = [requests.next(), requests.nth(1), requests.next()];
        for (request, number, values) in [(short, 64, 5), (long, 66, 400)] {
            let mut request = request.expect("there are six")?;
            assert!(!request.test() && request.cancel() && !request.cancel());
            let error = request.wait().expect_err("it was cancelled");
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert_eq!(request.into_values(), Some(message(me, number, values)));
        }
        drop(two.expect("there are six")?); // 67
        drop(requests.next().expect("there are six")?); // 68
        let mut last = requests.next().expect("there are six")?; // 69, which is long
        assert!(last.wait_timeout(SHORT)?.is_none());
        kept = Some(last);
    }
    job.barrier()?;
    if job.rank() == FIRST {
        for (number, values) in
            (0..64).map(|number| (number, 2)).chain([(65, 5), (67, 5), (68, 5), (69, 400)])
        {
            assert_eq!(world.recv_any_vec::<u64>(Slot(1))?.0, message(last(job).0, number, values));
        }
    }
    if let Some(mut last) = kept {
        assert_eq!(last.wait()?, message(me, 69, 400));
        assert!(!last.cancel(), "it was received");
        let mut announced = begin(70, 400)?;
        assert!(announced.wait_timeout(SHORT)?.is_none());
        assert!(announced.cancel(), "nobody has received it");
        assert_eq!(announced.into_values(), Some(message(me, 70, 400)));
        assert_eq!(world.isend_any(7_u64, None::<Rank>, Slot(1))?.wait()?, 7);
        let error = world.isend_any(7_u64, FIRST, Slot::ANY).expect_err("a send needs a slot");
        assert!(error.to_string().contains("isend_any"), "{error}");
    }
    job.barrier()?;
    if job.rank() == FIRST {
        assert_eq!(world.try_recv_any_vec::<u64>(Slot::ANY)?, None);
        for number in 0..80_u64 {
            world.send_any(&number, FIRST, Slot(1))?; // more than there are buffers
            assert_eq!(world.recv_any_vec::<u64>(Slot(1))?.0, [number]);
        }
    }
    job.barrier()
}

/// What requests have not written yet is written when their rank leaves, though all other members leave, too.
pub fn g_isend_any_is_written_while_its_rank_leaves(job: &Job) -> Result<()> {
    // Many more than there are buffers: the rank is still writing when the receiver learns that all others leave.
    let (world, count) = (job.world(), effort(job, 2000, 100) as u64);
    let values_of = |number: u64| [2, 3, 4, 5, 32][number as usize % 5];
    if is_last(job) {
        for number in 0..count {
            drop(world.isend_any(message(job.rank().0, number, values_of(number)), FIRST, Slot(2))?);
        }
    }
    if job.rank() == FIRST {
        job.compute(Duration::from_millis(2)); // the other ranks leave
        let (mut messages, mut number) = (world.messages_from_any::<u64>(Slot(2)), 0);
        while let Some(got) =
            if number % 2 == 0 { messages.next() } else { block_on(messages.next_message()) }
        {
            assert_eq!(got?.0, message(last(job).0, number, values_of(number)));
            number += 1;
        }
        assert_eq!(number, count);
    }
    Ok(())
}

/// No more than 4,096 messages wait for buffers, dropped requests included; a refused one changes nothing.
pub fn g_isend_any_is_bounded(job: &Job) -> Result<()> {
    let (world, me, before) = (job.world(), job.rank(), job.memory().any_source);
    let mut begun = 0_u64;
    let error = loop {
        match world.isend_any(begun, me, Slot(4)) {
            Ok(request) => drop(request),
            Err(error) => break error,
        }
        begun += 1;
        assert!(begun < 6000, "there is no bound");
    };
    assert!(error.is_full() && error.to_string().contains("isend_any("), "{error}");
    assert!((4096..4096 + 200).contains(&begun), "{begun}");
    let waiting = job.memory().any_source - before;
    assert!((4096 * 256..4096 * 1024).contains(&waiting), "{waiting} bytes");
    for number in 0..begun {
        assert_eq!(world.recv_any_vec::<u64>(Slot(4))?.0, [number]);
    }
    assert!(job.memory().any_source < before + (64 << 10));
    job.barrier()
}

/// Tasks of several executors await requests for which there was no room.
pub fn g_isend_any_in_tasks(job: &Job) -> Result<()> {
    let (world, me, count) = (job.world(), job.rank(), 40_u64);
    let to = Rank((me.0 + 1) % job.size());
    for polls_itself in [true, false] {
        let sends = async {
            let begin = |number| world.isend_any(message(me.0, number, values_of(number)), to, Slot(3));
            let mut requests = (0..2 * count).map(begin).collect::<Result<Vec<_>>>()?;
            requests.pop().expect("there are some").await.map(drop)
        };
        let send = |_| if polls_itself { block_on(sends) } else { pollster::block_on(sends) };
        let (send, receives) = (Mutex::new(Some(send)), || -> Result<()> {
            job.compute(Duration::from_millis(1));
            for number in 0..2 * count {
                let (values, got) = world.recv_any_vec::<u64>(Slot(3))?;
                assert_eq!(values, message(got.source.0, number, values_of(number)));
            }
            Ok(())
        });
        let done = job.threads(2, |thread| match thread {
            0 => (send.lock().expect("nobody has panicked").take().expect("once"))(()),
            _ => receives(),
        })?;
        done.into_iter().collect::<Result<()>>()?;
        job.barrier()?;
    }
    Ok(())
}

fn drop_ok<T>(_: Result<T>) {}

/// Requests, tasks and iterators get messages, each one once.
pub fn g_any_source_requests_and_tasks(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    let count = 3 * job.size() as u64;
    let send_all = || {
        (0..count).try_for_each(|number| {
            let to = Rank((me.0 + number as usize) % job.size());
            world.send_any(&message(me.0, number, 2 + number as usize), to, Slot(0))
        })
    };
    let check = |messages: &mut Vec<Vec<u64>>| {
        messages.sort();
        let sent = (0..job.size()).flat_map(|from| (0..count).map(move |number| (from, number)));
        let mine = sent.filter(|(from, number)| (from + *number as usize) % job.size() == me.0);
        let mine: Vec<_> = mine.map(|(from, number)| message(from, number, 2 + number as usize)).collect();
        assert_eq!(*messages, mine);
        messages.clear();
    };
    let mut requests: Vec<_> = (0..count).map(|_| world.irecv_any::<u64>(Slot(0))).collect();
    send_all()?;
    let mut got: Vec<Vec<u64>> =
        requests.iter_mut().map(|request| Ok(request.wait()?.0)).collect::<Result<_>>()?;
    check(&mut got);
    job.barrier()?;
    send_all()?;
    let two = async {
        let (one, other) = (world.irecv_any::<u64>(Slot(0)), world.irecv_any::<u64>(Slot(0)));
        Ok::<_, tasuki::Error>([other.await?.0, one.await?.0])
    };
    got.extend(pollster::block_on(two)?);
    let mut messages = world.messages_from_any::<u64>(Slot(0));
    for _ in 2..count {
        got.push(messages.next().expect("nobody has left")?.0);
    }
    check(&mut got);
    job.barrier()
}

/// Threads of a rank send to one receiver, and threads of the receiver receive. Those that wait stop nobody.
pub fn g18_any_source_threads(job: &Job) -> Result<()> {
    const THREADS: usize = 3;
    let (world, count) = (job.world(), effort(job, 60, 20) as u64);
    let senders = if job.size() == 1 { 1 } else { job.size() - 1 };
    let sends = job.size() == 1 || job.rank() != FIRST;
    let send = |thread: usize| -> Result<()> {
        (0..count).try_for_each(|number| {
            let sent = message(job.rank().0 * THREADS + thread, number, values_of(number));
            world.send_any(&sent, FIRST, Slot(thread))
        })
    };
    let receive = |thread: usize| -> Result<()> {
        let mut next = vec![0; job.size() * THREADS];
        for _ in 0..count * senders as u64 {
            let (values, got) = world.recv_any_vec::<u64>(Slot(thread))?;
            let number = std::mem::replace(&mut next[values[0] as usize], values[1] + 1);
            assert_eq!(values, message(got.source.0 * THREADS + thread, number, values_of(number)));
        }
        Ok(())
    };
    let body = |thread: usize| match thread < THREADS {
        true if sends => send(thread),
        false if job.rank() == FIRST => receive(thread - THREADS),
        _ => Ok(()),
    };
    job.threads(2 * THREADS, body)?.into_iter().collect::<Result<()>>()?;
    job.barrier()
}

/// The queue takes no memory before the first message, and then as much as its size says.
pub fn g_any_source_takes_memory_at_its_first_message(job: &Job) -> Result<()> {
    let (world, before) = (job.world(), job.memory());
    assert_eq!(before.any_source, 0);
    job.barrier()?;
    if job.rank() == FIRST {
        assert_eq!(world.try_recv_any_vec::<u64>(Slot::ANY)?, None);
        world.send_any(&message(0, 0, 9), FIRST, Slot(0))?;
        let used = job.memory();
        let tables = used.any_source - 64 * (256 + 64);
        assert!((1..1000).contains(&tables), "{tables}");
        assert!(used.file - before.file <= 5 * 4096, "{} pages", (used.file - before.file) / 4096);
        assert_eq!(world.recv_any_vec::<u64>(Slot::ANY)?.0, message(0, 0, 9));
    } else {
        assert_eq!(job.memory().any_source, 0);
    }
    job.barrier()
}

/// Messages are received in the order in which they were sent, though one was taken by a request that was dropped, and
/// another was copied out of the full queue since.
pub fn g_messages_put_back_and_copied_out_keep_their_order(job: &Job) -> Result<()> {
    const BUFFERS: u64 = 64; // of a queue whose size nobody has set
    let world = job.world();
    if is_last(job) {
        let slot = |number| Slot(if number + 1 == BUFFERS { 5 } else { 7 });
        (0..BUFFERS)
            .try_for_each(|number| world.send_any(&message(job.rank().0, number, 2), FIRST, slot(number)))?;
    }
    job.barrier()?;
    if job.rank() == FIRST {
        let mut newest = world.irecv_any::<u64>(Slot(5));
        while !newest.test() {
            job.compute(Duration::from_micros(10));
        }
        drop(newest);
        let error = world.within(SHORT).recv_any_vec::<u64>(Slot(9)).expect_err("no message has that slot");
        assert!(error.is_timeout(), "{error}");
        for number in 0..BUFFERS {
            assert_eq!(world.recv_any_vec::<u64>(Slot::ANY)?.0, message(last(job).0, number, 2));
        }
    }
    job.barrier()
}

/// A message that does not fit into a receive, or has another type, stays the oldest one of its slot, also behind a
/// message that nobody asks for.
pub fn g_a_message_that_does_not_fit_stays_the_oldest(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    for is_short in [true, false] {
        if is_last(job) {
            world.send_any(&9_u64, FIRST, Slot(9))?;
            world.send_any(&message(me.0, 1, 2), FIRST, Slot(1))?;
        }
        job.barrier()?;
        if me == FIRST {
            world.send_any(&message(me.0, 2, 2), FIRST, Slot(1))?;
            let refused = match is_short {
                true => world.recv_any(&mut [0_u64; 1], Slot(1)),
                false => world.recv_any(&mut [0_f32; 4], Slot(1)),
            };
            let error = refused.expect_err("it has another length, or another type");
            assert_eq!(error.kind(), ErrorKind::Disagreement, "{error}");
            for (from, number) in [(last(job).0, 1), (me.0, 2)] {
                assert_eq!(world.recv_any_vec::<u64>(Slot(1))?.0, message(from, number, 2));
            }
            assert_eq!(world.recv_any_vec::<u64>(Slot(9))?.0, [9]);
        }
        job.barrier()?;
    }
    Ok(())
}
