//! D18 on the simulator: which rank runs a copy between two others, what that costs, and what
//! happens to commands for a rank whose inbox is full, or that leaves or has left.

use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::set_send_buffer;
use tasuki::onesided::bootstrap_memory;
use tasuki::{Command, Job, Rank, Result, Sim, Slot};
use tasuki_tests::watchdog::Watchdog;

fn run(what: &str, seeds: u64, of: impl Fn(Sim) -> Sim, app: impl Fn(&Job) -> Result<()> + Sync) {
    for seed in 0..seeds {
        let _watched = Watchdog::over(format!("{what}, seed {seed}"));
        let sim = of(Sim::seed(seed).ranks(3)).time_max_ns(1_000_000_000);
        if let Err(error) = tasuki::sim(sim, &app) {
            panic!("{what}, seed {seed}: {error}");
        }
    }
}

/// Only rank 1 has a queue. It copies from rank 2 to rank 0, which make no call meanwhile. The
/// bytes must go directly from rank 2 to rank 0, and the owner of the source must carry out the
/// copy.
#[test]
fn a_copy_between_two_others_takes_its_way_once() {
    const LEN: usize = 64_000;
    const COPIES: u64 = 16;
    let slow = |sim: Sim| sim.bandwidth(100_000_000); // 0.64 to 1.28 ms for LEN bytes
    run("a copy between two others", 8, slow, |job| {
        let (data, flag) = (job.alloc::<u8>(LEN)?, job.alloc::<u64>(1)?);
        let (done, failed) = (job.signal()?, job.signal()?);
        data.fill(job.rank().0 as u8)?;
        job.barrier()?;
        if job.rank() != Rank(1) {
            while flag.get(0)? == 0 {
                job.compute(Duration::from_micros(5)); // no call that could run anything
            }
            assert!(job.rank() == Rank(2) || data.to_vec()?.iter().all(|&byte| byte == 2));
            return job.barrier();
        }
        let queue = job.queue(4)?;
        let began = job.clock();
        (0..COPIES).try_for_each(|_| job.get(data.on(Rank(2)), &mut vec![0; LEN]))?;
        let once = job.clock() - began;
        let began = job.clock();
        for round in 1..=COPIES {
            let copy = Command::copy(data.on(Rank(2)), data.on(Rank(0)), LEN);
            queue.post(copy.then(done.on(Rank(1)).add(1)))?;
            done.wait_at_least(round)?;
        }
        let took = job.clock() - began;
        assert!(
            took < once + once / 2,
            "the copies took {took:?}, gets {once:?}: the bytes went through this rank"
        );
        let outside = data.on(Rank(0)).at(1 << 30);
        queue.post(Command::copy(data.on(Rank(2)), outside, 1).then(failed.on(Rank(1)).add(1)))?;
        let error = failed.wait_at_least(1).expect_err("the destination is outside of the memory");
        assert!(matches!(error.cause(), Cause::Poisoned { origin: Rank(2), .. }), "{error}");
        [0, 2].iter().try_for_each(|&rank| job.put(flag.on(Rank(rank)), &[1]))?;
        job.barrier()
    });
}

/// Many commands for one rank on a slow network. The rank's inbox is full, and it has as many
/// operations under way as it may; all further commands wait for room.
#[test]
fn a_full_inbox_takes_more_when_there_is_room() {
    const QUEUES: usize = 4;
    const EACH: usize = 64;
    const LEN: usize = 8;
    const LONG: usize = 100_000;
    let slow = |sim: Sim| sim.ranks(5).bandwidth(2_000_000); // 50 ms for the long transfer
    run("a full inbox", 2, slow, |job| {
        let (data, done, me) = (job.alloc::<u8>(LEN * 2)?, job.signal()?, job.rank());
        let queues = (0..QUEUES).map(|_| job.queue(EACH)).collect::<Result<Vec<_>>>()?;
        let long = job.alloc::<u8>(LONG)?;
        data.fill(1 + me.0 as u8)?;
        job.barrier()?;
        if me == Rank(1) {
            job.put(long.on(Rank(2)), &[0; LONG])?; // copies from this rank must wait for it
        }
        if me != Rank(0) && me != Rank(1) {
            job.compute(Duration::from_micros(100));
            for at in 0..QUEUES * EACH {
                let copy = Command::copy(data.on(Rank(1)), data.on(Rank(0)).at(LEN), LEN).by_destination();
                queues[at / EACH].post(copy.then(done.on(me).add(1)))?;
            }
            done.wait_at_least((QUEUES * EACH) as u64)?;
            assert!(queues.iter().all(|queue| queue.stats().failed == 0));
        }
        job.barrier()?;
        assert!(me != Rank(0) || data.to_vec()?[LEN..].iter().all(|&byte| byte == 2));
        job.barrier()
    });
}

/// A rank that leaves accepts no commands. It stays until a message that it has sent is received. A
/// rank with commands for it runs them itself, also after it is gone, and no rank waits for ever.
#[test]
fn commands_for_a_rank_that_leaves_are_run_from_here() {
    run(
        "a rank that leaves",
        8,
        |sim| sim,
        |job| {
            let (data, me) = (job.alloc::<u8>(64)?, job.rank());
            let (done, failed) = (job.signal()?, job.signal()?);
            let leaver = Rank(2);
            job.put(bootstrap_memory(job, me)?, &[10 + me.0 as u8; 64])?;
            job.barrier()?;
            if me == leaver {
                set_send_buffer(job, 10_000, Some(Duration::ZERO))?;
                job.world().send(&[7_u64; 100], Rank(1), Slot(1))?;
                return Ok(());
            }
            if me == Rank(1) {
                job.compute(Duration::from_millis(1)); // until it leaves
                let queue = job.queue(4)?;
                let source = bootstrap_memory(job, leaver)?;
                for (at, bound) in [false, true].into_iter().enumerate() {
                    let copy = Command::copy(source, data.on(Rank(0)).at(32 * at), 32);
                    let copy = if bound { copy.by_source() } else { copy };
                    queue.post(copy.then(done.on(me).add(1)))?;
                }
                done.wait_at_least(2)?;
                let mut got = [0_u64; 100];
                job.world().recv(&mut got, leaver, Slot(1))?;
                job.compute(Duration::from_millis(1)); // until the leaver is gone
                let outside = Command::copy(source.at(1 << 30), data.on(me), 32);
                queue.post(outside.by_source().then(failed.on(me).add(1)))?;
                let error = failed.wait_at_least(1).expect_err("the source is outside of the memory");
                assert!(matches!(error.cause(), Cause::Poisoned { origin: Rank(1), .. }), "{error}");
                return job.raise(done.on(Rank(0)), 1);
            }
            done.wait_at_least(1)?;
            assert_eq!(data.to_vec()?, [12; 64]);
            Ok(())
        },
    );
}
