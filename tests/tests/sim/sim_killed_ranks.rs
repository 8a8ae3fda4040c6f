//! A simulated rank is killed at any moment of its work. It must unwind to its end, whatever
//! buffers it has lent.
//!
//! Its destructors wait until nobody uses the buffers that messages borrowed. That wait must end
//! although the killed rank makes no further progress. If it does not end, the watchdog ends the
//! test.

use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::{MessageLimit, MessageLimitAddress, ReceiveQueue, channel_from, channel_to};
use tasuki::{Job, Rank, Request, Result, Signal, Sim, Slot};
use tasuki_tests::simulated_machines::MACHINES;
use tasuki_tests::watchdog::Watchdog;

/// Lengths in values: messages too long for one line, staged messages, and messages whose buffers
/// are registered on machines that do so.
const LENGTHS: [usize; 3] = [9, 700, 5_000];

const VICTIM: Rank = Rank(2);

/// Runs the program again and again on every machine, and kills the victim later in each run.
fn killed_at_every_moment(program: fn(&Job) -> Result<()>) {
    for machine in &MACHINES {
        for at in (0..60).map(|step| 5_000 + step * 7_919) {
            let what = format!("{}, a death at {at} ns", machine.name);
            let _watched = Watchdog::over(what.clone());
            let sim = (machine.of)(Sim::seed(at).ranks(4)).kill(VICTIM, at).time_max_ns(20_000_000);
            let run = tasuki::sim(sim, |job| -> Result<()> {
                loop {
                    program(job)?;
                }
            });
            let error = run.map(|run| run.values).expect_err(&what);
            assert!(matches!(error.cause(), Cause::PeerDied { peer: VICTIM, .. }), "{what}: {error}");
        }
    }
}

/// The next rank, and the one before.
fn neighbours(job: &Job) -> [Rank; 2] {
    [job.rank_after(1), job.rank_after(-1)]
}

#[test]
fn in_collective_calls() {
    killed_at_every_moment(|job| {
        job.world().allgather(&[1_u64; 5])?;
        job.world().allgather(&[1_u64; 9]).map(drop)
    });
}

#[test]
fn in_blocking_messages() {
    killed_at_every_moment(|job| {
        let ([next, before], is_first) = (neighbours(job), job.rank() == Rank(0));
        for len in LENGTHS {
            let (sent, mut got) = (vec![1_u64; len], vec![0_u64; len]);
            if is_first {
                job.world().send(&sent, next, Slot(1))?;
            }
            job.world().recv(&mut got, before, Slot(1))?;
            if !is_first {
                job.world().send(&sent, next, Slot(1))?;
            }
        }
        Ok(())
    });
}

#[test]
fn in_a_scope() {
    killed_at_every_moment(|job| {
        let [next, before] = neighbours(job);
        for len in LENGTHS {
            let (sent, mut got) = (vec![1_u64; len], vec![0_u64; len]);
            job.world().scope(|scope| {
                scope.recv(&mut got, before, Slot(1))?;
                scope.send(&sent, next, Slot(1))?;
                scope.wait_all()
            })?;
        }
        Ok(())
    });
}

#[test]
fn in_threads() {
    killed_at_every_moment(|job| {
        let [next, before] = neighbours(job);
        let outcomes = job.threads(2, |thread| {
            let (slot, len) = (Slot(thread + 1), LENGTHS[thread + 1]);
            let (sent, mut got) = (vec![1_u64; len], vec![0_u64; len]);
            job.world().scope(|scope| {
                scope.send(&sent, next, slot)?;
                job.world().recv(&mut got, before, slot)?;
                scope.wait_all()
            })
        })?;
        outcomes.into_iter().collect()
    });
}

#[test]
fn with_messages_that_go_on_by_themselves() {
    killed_at_every_moment(|job| {
        let [next, before] = neighbours(job);
        for len in LENGTHS {
            let mut receiving = job.world().irecv(vec![0_u64; len], before, Slot(1))?;
            let mut sending = job.world().isend(vec![1_u64; len], next, Slot(1))?;
            let vain = job.world().irecv(vec![0_u64; len], next, Slot(2))?;
            receiving.wait()?;
            drop(vain);
            sending.wait()?;
        }
        Ok(())
    });
}

/// A buffer that a scope borrows. When its rank unwinds, `drop` makes progress once more and checks
/// that no message is written into the buffer.
struct BorrowedBuffer<'j> {
    job: &'j Job,
    signal: Signal<'j>,
    buffer: Vec<u64>,
}

impl Drop for BorrowedBuffer<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let before = self.buffer.clone();
            for _ in 0..5 {
                assert!(self.signal.wait_at_least(1).is_err(), "the job of rank {} is over", self.job.rank());
            }
            assert_eq!(self.buffer, before, "nothing is written after the scope has ended");
        }
    }
}

#[test]
fn a_scope_has_all_of_its_buffers_back_when_its_rank_was_killed() {
    for seed in 0..20 {
        let sim = Sim::seed(seed).kill(Rank(0), 500_000);
        let run = tasuki::sim(sim, |job| {
            let mut borrowed = BorrowedBuffer { job, signal: job.signal()?, buffer: vec![0; 200] };
            if job.rank() == Rank(1) {
                job.compute(Duration::from_micros(200));
                job.world().send(&[7_u64], Rank(0), Slot(2))?;
                return job.barrier();
            }
            let (first, second) = borrowed.buffer.split_at_mut(100);
            job.world().scope(|scope| {
                scope.recv(first, Rank(1), Slot(1))?;
                scope.recv(second, Rank(1), Slot(2))?;
                job.compute(Duration::from_millis(1)); // the second message arrives meanwhile
                Ok(())
            })
        });
        let error = run.map(|run| run.values).expect_err("rank 0 dies");
        assert!(matches!(error.cause(), Cause::PeerDied { peer: Rank(0), .. }), "seed {seed}: {error}");
    }
}

/// Channels come and go, with the victim at either end.
#[test]
fn in_channels() {
    killed_at_every_moment(|job| {
        let [next, before] = neighbours(job);
        let mut from = channel_from::<[u64; 9]>(job.world(), before, Slot(1), 2)?;
        let mut to = channel_to::<[u64; 9]>(job.world(), next, Slot(1))?;
        for _ in 0..3 {
            to.reserve(1)?[0] = [7; 9];
            to.commit(1)?;
            assert_eq!(from.peek()?[0], [7; 9]);
            from.release(1)?;
        }
        to.finish()?;
        from.free().map(drop)
    });
}

/// All other ranks send to one, by its receive queue and by `send_any`: short messages, messages in areas of buffers,
/// and messages that stay at their senders. There are fewer buffers than messages, so that senders wait for room, and
/// the victim dies also between its ticket and its message.
fn many_to_one(job: &Job, receiver: Rank) -> Result<()> {
    let (world, is_receiver) = (job.world(), job.rank() == receiver);
    let mut queue = is_receiver.then(|| job.receive_queue(2, 64)).transpose()?;
    let mut address = [queue.as_ref().map(ReceiveQueue::address).unwrap_or_default()];
    world.bcast(&mut address, receiver)?;
    let limit = is_receiver.then(|| job.message_limit(1)).transpose()?;
    let mut limit_address = [limit.as_ref().map_or_else(MessageLimitAddress::default, MessageLimit::address)];
    world.bcast(&mut limit_address, receiver)?;
    let lengths = [1, 8, 700];
    let Some(queue) = &mut queue else {
        let mut to_queue = job.open_receive_queue(address[0])?;
        let mut permits = job.open_message_limit(limit_address[0])?;
        for len in lengths {
            permits.acquire()?;
            to_queue.send(&vec![job.rank().index(); len], Slot(0))?;
            match len {
                1 => drop(world.isend_any(vec![job.rank().index(); len], receiver, Slot(0))?),
                _ => world.send_any(&vec![job.rank().index(); len], receiver, Slot(0))?,
            }
        }
        return Ok(());
    };
    let mut next = [[0; 4]; 2]; // of each sender, by either way
    for _ in 0..lengths.len() * (job.size() - 1) {
        let (values, received) = queue.recv_vec::<usize>(Slot(0))?;
        limit.as_ref().map_or(Ok(()), |limit| limit.release(1))?;
        let (others, got) = world.recv_any_vec::<usize>(Slot(0))?;
        for (next, (values, from)) in
            next.iter_mut().zip([(values, received.source.index()), (others, got.source.index())])
        {
            assert_eq!(values, vec![from; lengths[next[from]]], "each message once, in order");
            next[from] += 1;
        }
    }
    Ok(())
}

#[test]
fn in_receive_queues_of_others() {
    killed_at_every_moment(|job| many_to_one(job, Rank(0)));
}

#[test]
fn in_its_receive_queue() {
    killed_at_every_moment(|job| many_to_one(job, VICTIM));
}
