//! D: commands that can run do run, even if a rank stops polling at the moment when they become
//! ready; and waits keep their time-outs.

use crate::cases::command_queues::count;
use crate::exchange::{effort, exchange_all, is_simulated, next};
use crate::expected_error::{check_error, misused};
use crate::pattern;
use crate::random::Random;
use crate::wait_until::{Idle, stay_away};
use std::time::Duration;
use tasuki::engine::{Cause, RemoteQueue};
use tasuki::message::set_send_buffer;
use tasuki::onesided::{AtomicOp, bootstrap_memory};
use tasuki::{Array, Command, ErrorKind, Job, Rank, Request, Result, Slot};

/// Returns true if other ranks can access this rank's queues.
fn is_in_reach(job: &Job) -> bool {
    !is_simulated(job) && std::env::var("TASUKI_DIRECT_SIGNALS").as_deref() != Ok("off")
}

/// Waits until a word of this rank has `value`. If other ranks must run this rank's queues, this function makes no call
/// that runs them.
fn watch(job: &Job, word: &Array<u64>, idle: &Idle<'_>, value: u64) -> Result<()> {
    let (in_reach, mut looks) = (is_in_reach(job), 0);
    while job.load(word.pointer())? != value {
        looks += 1;
        if in_reach && looks < 200 {
            std::hint::spin_loop();
        } else if in_reach {
            std::thread::yield_now(); // the other rank may need this processor
        } else {
            idle.serve(Duration::from_micros(10))?
        }
    }
    Ok(())
}

/// D12: a command is posted to a rank's queue while the rank stops polling the queue. Either the rank or the poster
/// runs the command.
pub fn d12_posts_while_a_rank_goes_away(job: &Job) -> Result<()> {
    let (word, turn, idle) = (job.alloc::<u64>(1)?, job.alloc::<u64>(1)?, Idle::new(job)?);
    let queue = job.queue(16)?;
    let names: Vec<RemoteQueue> = exchange_all(job, queue.remote())?;
    let (owner, poster) = (Rank(0), Rank(1));
    let mut random = Random::seed(job.rank().0 as u64 + 1);
    for round in 1..=effort(job, 50_000, 10) as u64 {
        if job.rank() == owner {
            job.store(turn.on(poster), round)?;
            for _ in 0..random.below(3) {
                idle.serve(Duration::from_nanos(random.below(3000)))?;
            }
            watch(job, &word, &idle, round)?;
        } else {
            watch(job, &turn, &idle, round)?;
            (0..random.below(300)).for_each(|_| std::hint::spin_loop());
            names[0].post(job, Command::put(word.on(owner), &[round]))?;
        }
    }
    job.barrier()
}

/// D12: an effect raises a signal for which a second queue has just begun to wait. The commands of
/// both queues run.
pub fn d12_effects_beside_a_second_queue(job: &Job) -> Result<()> {
    let (words, turn, idle) =
        ([job.alloc::<u64>(1)?, job.alloc::<u64>(1)?], job.alloc::<u64>(1)?, Idle::new(job)?);
    let queues = [job.queue(16)?, job.queue(16)?];
    let (owner, raiser) = (Rank(0), Rank(1));
    let mut random = Random::seed(7);
    for round in 1..=effort(job, 5_000, 10) as u64 {
        let go = job.signal()?;
        let waits = |at: usize| Command::put(words[at].on(owner), &[round]).when(go.reaches(1));
        if job.rank() == owner {
            queues[0].post(waits(0))?;
            job.store(turn.on(raiser), round)?;
            (0..random.below(200)).for_each(|_| std::hint::spin_loop());
            queues[1].post(waits(1))?;
            watch(job, &words[0], &idle, round)?;
            watch(job, &words[1], &idle, round)?;
        } else {
            watch(job, &turn, &idle, round)?;
            queues[0].post(Command::nothing().then(go.on(owner).add(1)))?;
        }
    }
    job.barrier()
}

/// D10: commands with two triggers fire in the order of their posts, and none is lost, even if many
/// can fire at once.
pub fn d10_two_triggers_keep_their_order(job: &Job) -> Result<()> {
    const LEN: usize = 20_000;
    let many = effort(job, 200, 70);
    let (turn, order) = (job.alloc::<u64>(1)?, job.alloc::<u64>(8)?);
    let data = job.alloc::<u8>(2 * LEN)?;
    let (first, second, done, me) = (job.signal()?, job.signal()?, job.signal()?, job.rank());
    let queue = job.queue(1024)?;
    let both = |command: Command, step| {
        command.when(first.reaches(step)).when(second.reaches(step)).then(done.on(me).add(1))
    };
    for place in 0..8 {
        queue
            .post(both(Command::fetch_atomic(turn.pointer(), AtomicOp::Add(1), order.on(me).at(place)), 1))?;
    }
    for _ in 0..many {
        queue.post(both(Command::copy(data.on(me), data.on(me).at(LEN), LEN), 2))?;
    }
    for all in [8, 8 + many as u64] {
        job.raise(second.on(me), 1)?;
        job.raise(first.on(me), 1)?;
        done.wait_at_least(all)?;
    }
    let mut order = order.to_vec()?;
    if is_simulated(job) {
        order.sort_unstable(); // on the simulator these commands are in flight together
    }
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7]);
    job.barrier()
}

/// D13: the queue has the largest number of commands in flight, all of which wait for a rank that makes no call, and
/// one more command could fire. A waiting rank still times out when it should, and gets the failure of another command.
pub fn d13_waits_with_the_most_commands_in_flight(job: &Job) -> Result<()> {
    let (data, over) = (job.alloc::<u8>(64)?, job.alloc::<u64>(1)?);
    let (go, done, never, failed) = (job.signal()?, job.signal()?, job.signal()?, job.signal()?);
    let (me, busy) = (job.rank(), Rank(1));
    job.barrier()?;
    if me == busy {
        while job.load(over.pointer())? == 0 {
            stay_away(job);
        }
    } else {
        let (queue, other) = (job.queue(128)?, job.queue(8)?);
        queue.post(count(&over, me).when(go.reaches(1)).then(done.on(me).add(1)))?;
        for _ in 0..64 {
            queue.post(Command::copy(data.on(busy), data.on(me), 8).by_source().then(done.on(me).add(1)))?;
        }
        job.raise(go.on(me), 1)?;
        assert!(never.reaches(1).wait_timeout(Duration::from_millis(5))?.is_none());
        let mut into = [0_u64; 1];
        let late = job.world().within(Duration::from_millis(5)).recv(&mut into, busy, Slot(0));
        assert!(late.is_err_and(|error| error.is_timeout()));
        other.post(Command::copy(data.on(me).at(1 << 30), data.on(me), 8).then(failed.on(me).add(1)))?;
        let poisoned = failed.wait_at_least(1).expect_err("the command of the signal failed");
        assert!(matches!(poisoned.cause(), Cause::Poisoned { .. }), "{poisoned}");
        job.store(over.on(busy), 1)?;
        done.wait_at_least(65)?;
    }
    job.barrier()
}

/// D17: only one rank may run a command, and that rank has left. The rank that waits for the command's effect gets an
/// error.
pub fn d17_bound_to_who_has_left(job: &Job) -> Result<()> {
    let (done, me, gone) = (job.signal()?, job.rank(), Rank(1));
    // Bootstrap memory exists as long as the job, also that of a rank that has left.
    let (from, to) = (bootstrap_memory(job, gone)?, bootstrap_memory(job, me)?);
    job.barrier()?;
    if me == gone {
        return Ok(());
    }
    let queue = job.queue(8)?;
    let mut copies = (1..).map(|copied| {
        let posted = queue.post(Command::copy(from, to, 8).by_source().then(done.on(me).add(1)));
        posted.and_then(|_| done.wait_at_least(copied))
    });
    // Until the other rank has left, it runs the copies. If other ranks cannot access its queue,
    // the owner of the queue gets the bytes itself.
    let refused =
        if is_in_reach(job) { copies.find_map(Result::err) } else { copies.next().and_then(Result::err) };
    refused
        .iter()
        .for_each(|error| check_error(job, error, ErrorKind::PeerFailed, &["rank 1 has left the job"]));
    Ok(())
}

/// D13: a post that can never fit is refused as misuse; the error does not say that the queue is
/// full.
pub fn d13_what_never_fits(job: &Job) -> Result<()> {
    let (word, me) = (job.alloc::<u64>(1)?, job.rank());
    let (one, eight) = (job.queue(1)?, job.queue(8)?);
    let names: Vec<RemoteQueue> = exchange_all(job, one.remote())?;
    let two_lines = Command::put(word.on(me), &[1_u64, 2, 3, 4]);
    misused(job, one.post(&two_lines), &["has 1 lines", "takes 2"]);
    misused(job, names[next(job).index()].post(job, &two_lines), &["has 1 lines", "takes 2"]);
    misused(job, eight.post_many(&vec![count(&word, me); 9]), &["has 8 lines", "takes 9"]);
    job.barrier()
}

/// G6: the rank with the node's helper leaves. The next rank that waits takes the helper over, and
/// the helper delivers that rank's buffered sends while the rank computes.
pub fn g6_helpers_are_succeeded(job: &Job) -> Result<()> {
    let world = job.world();
    let (flag, idle) = (job.alloc::<u64>(1)?, Idle::new(job)?);
    let (gone, sender, receiver) = (Rank(0), Rank(1), Rank(2));
    job.barrier()?;
    if job.rank() == receiver {
        job.put(flag.on(gone), &[1_u64])?;
    }
    while job.rank() == gone && flag.get(0)? == 0 {
        stay_away(job); // until the receiver stops waiting
    }
    let is_theirs = job.rank() == sender || job.rank() == receiver;
    if std::env::var("TASUKI_HELPER").as_deref() != Ok("node") || !is_theirs {
        return Ok(());
    }
    let sent = pattern::bytes(1, 100_000);
    if job.rank() == sender {
        // The helper moves to this rank meanwhile.
        (0..30).try_for_each(|_| idle.serve(Duration::from_millis(20)))?;
        set_send_buffer(job, 200_000, Some(Duration::ZERO))?;
        world.send(&sent, receiver, Slot(1))?; // buffered, because no receive is posted yet
        job.put(flag.on(receiver), &[1_u64])?;
        while flag.get(0)? == 0 {
            stay_away(job);
        }
        return set_send_buffer(job, 0, None);
    }
    while flag.get(0)? == 0 {
        stay_away(job); // so the sender is the only rank that waits
    }
    let mut got = vec![0; sent.len()];
    world.recv(&mut got, sender, Slot(1))?;
    pattern::check(&got, 1, "delivered by the second helper");
    job.put(flag.on(sender), &[1_u64])
}
