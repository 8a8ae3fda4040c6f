//! Waiting in virtual time: no wake-up is missed and every deadlock is reported, with several threads of a rank too.

use crate::harness::{barrier, bootstrap_memory, change, load, run, run_well, signal, wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tasuki_core::base::log::{Level, Log};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::{After, Condition, Deadline, Handle, Worker};
use tasuki_core::fabric::AtomicKind;
use tasuki_core::node::node_state::RankStage;
use tasuki_fabric_sim::{Outcome, Sim, simulate};

/// Dissemination barrier: log2 rounds of signals.
fn dissemination_barrier(worker: &Worker, instance: u64) -> tasuki_core::base::Result<()> {
    let size = worker.size();
    let rounds = size.next_power_of_two().trailing_zeros();
    for round in 0..rounds {
        worker.raise(signal((worker.rank().0 + (1 << round)) % size, 10 + round), 1)?;
        wait(worker, 10 + round, instance)?;
    }
    Ok(())
}

#[test]
fn a_barrier_of_300_ranks_lets_no_rank_through_early() {
    let entered = AtomicU64::new(0);
    run_well(&Sim::seed(5).ranks(300), |worker| {
        for instance in 1..=3 {
            worker.platform().compute((worker.rank().0 * 37 % 100) as u64 * 100);
            entered.fetch_add(1, Ordering::Relaxed);
            dissemination_barrier(worker, instance)?;
            assert!(entered.load(Ordering::Relaxed) >= instance * 300, "a rank was let through early");
        }
        Ok(())
    });
}

#[test]
fn a_deadlock_names_every_waiting_rank_and_its_call() {
    let report = run(&Sim::seed(1).ranks(3), |worker| match worker.rank().0 {
        0 => wait(worker, 7, 4),
        1 => wait(worker, 8, 1),
        _ => Ok(()),
    });
    let failure = report.failure.unwrap().to_string();
    for part in ["2 ranks wait", "rank 0 waits in wait(signal 7 >= 4)", "rank 1 waits in wait(signal 8 >= 1)"]
    {
        assert!(failure.contains(part), "{failure}");
    }
    assert!(!failure.contains("rank 2"), "{failure}");
    for rank in [0, 1] {
        let Outcome::Returned(Err(error)) = &report.outcomes[rank] else { panic!() };
        assert!(error.to_string().contains("deadlock"), "{error}");
    }
    assert!(matches!(report.outcomes[2], Outcome::Returned(Ok(()))));
}

#[test]
fn ranks_that_wait_again_after_a_deadlock_are_killed() {
    let report = run(&Sim::seed(1), |worker| {
        let mut errors = 0_u64;
        while wait(worker, 7, 4).is_err() {
            errors += 1;
        }
        Ok(errors)
    });
    assert!(report.failure.unwrap().to_string().contains("deadlock"));
    assert!(report.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Killed)));
}

#[test]
fn a_timeout_ends_the_wait_at_its_time() {
    for seed in 0..50 {
        run_well(&Sim::seed(seed), |worker| {
            let limit = Duration::from_micros(100 + seed * 50);
            let before = worker.platform().now_ns();
            let condition = Condition::Signal(worker.fabric().own_signal(0)?, 1, None);
            let waited = worker.wait(&condition, worker.deadline_after(limit), &|| "wait".into());
            assert!(waited.unwrap_err().is_timeout());
            let took = worker.platform().now_ns() - before;
            assert!(took >= limit.as_nanos() as u64 && took < limit.as_nanos() as u64 + 5_000, "{took}");
            barrier(worker, 1, 0)
        });
    }
}

#[test]
fn a_loop_that_polls_a_word_sees_its_change() {
    run_well(&Sim::seed(9), |worker| {
        if worker.rank().0 == 0 {
            worker.platform().compute(30_000);
            worker.atomic(bootstrap_memory(1, 0), change(AtomicKind::Store, 3))?;
            worker.raise(signal(1, 0), 1)?;
        } else {
            while worker.fabric().read_signal(signal(1, 0)) == 0 {}
            while load(worker, bootstrap_memory(1, 0))? != 3 {
                worker.relax("loop")?;
            }
        }
        barrier(worker, 1, 0)
    });
}

#[test]
fn a_wait_for_a_rank_that_leaves_ends_with_an_error() {
    for seed in 0..300 {
        let report = run(&Sim::seed(seed).ranks(3).in_step(true), |worker| {
            let cell = worker.fabric().own_signal(0)?;
            match worker.rank().0 {
                0 => worker.wait_signal(cell, 1, Some(Rank(1)), &|| "wait".into()),
                1 => {
                    worker.platform().compute(seed * 3);
                    Ok(())
                }
                _ => worker.wait_signal(cell, 1, None, &|| "wait".into()),
            }
        });
        assert!(report.failure.is_none() && report.missed_wakeups == 0, "seed {seed}");
        let Outcome::Returned(Err(error)) = &report.outcomes[0] else { panic!("seed {seed}") };
        assert_eq!(error.cause(), &Cause::PeerLeft { peer: Rank(1) });
        let Outcome::Returned(Err(error)) = &report.outcomes[2] else { panic!("seed {seed}") };
        assert!(matches!(error.cause(), Cause::PeerDied { .. } | Cause::PeerLeft { .. }), "{error}");
    }
}

#[test]
fn a_wait_for_a_stage_ends_when_all_ranks_have_reached_it() {
    for seed in 0..50 {
        let report = simulate(&Sim::seed(seed).ranks(5), |member| {
            tasuki_core::engine::Platform::compute(&*member.platform, member.rank.0 as u64 * 5_000);
            let worker = member.join(Log::new("test", Level::Warn)).unwrap();
            worker
                .wait(&Condition::AllReached(RankStage::Joined), Deadline::NEVER, &|| "meet".into())
                .unwrap();
            let now = worker.platform().now_ns();
            worker.leave().unwrap();
            now
        });
        let report = report.unwrap();
        assert_eq!(report.missed_wakeups, 0);
        assert!(report.values().unwrap().into_iter().all(|now| (20_000..25_000).contains(&now)));
    }
}

/// Runs `app` on every rank with a worker that threads of the rank can share.
fn run_threaded(sim: &Sim, app: impl Fn(&Arc<Worker>) + Sync) {
    let report = simulate(sim, |member| {
        let worker = Arc::new(member.join(Log::new("test", Level::Warn)).unwrap());
        app(&worker);
        worker.leave().unwrap();
    });
    let report = report.unwrap();
    assert_eq!(report.missed_wakeups, 0, "under {sim:?}");
    report.values().unwrap();
}

#[test]
fn threads_of_a_rank_wait_for_different_things() {
    for seed in 0..100 {
        run_threaded(&Sim::seed(seed).remote_completion(seed % 2 == 0).outstanding_max(3), |worker| {
            let me = worker.rank().0;
            let work = |index: u32| {
                let worker = worker.clone();
                Box::new(move || {
                    for round in 1..=5 {
                        let first = worker.copy(
                            bootstrap_memory(me, 0),
                            bootstrap_memory(1 - me, 64),
                            32,
                            After::Nothing,
                        );
                        let first = first.unwrap().handle;
                        let then = worker.copy(
                            bootstrap_memory(1 - me, 64),
                            bootstrap_memory(me, 128),
                            32,
                            After::Exact(first),
                        );
                        worker.raise(signal(1 - me, index), 1).unwrap();
                        wait(&worker, index, round).unwrap();
                        worker.complete_exactly(then.unwrap().handle).unwrap();
                    }
                })
            };
            let joins: Vec<_> = (0..4).map(|index| worker.platform().spawn(work(index)).unwrap()).collect();
            work(4)();
            joins.into_iter().for_each(|join| join());
        });
    }
}

#[test]
fn a_thread_wakes_another_whose_operation_it_has_completed() {
    for seed in 0..200 {
        run_threaded(&Sim::seed(seed), |worker| {
            let me = worker.rank().0;
            let other = worker.clone();
            let issued = Arc::new(AtomicU64::new(0));
            let theirs = issued.clone();
            let body = Box::new(move || {
                let first = other
                    .copy(bootstrap_memory(1 - me, 0), bootstrap_memory(me, 64), 32, After::Nothing)
                    .unwrap();
                let empty = other
                    .copy(bootstrap_memory(me, 0), bootstrap_memory(me, 64), 0, After::Exact(first.handle))
                    .unwrap();
                theirs.store(empty.handle.number(), Ordering::Release);
                other.complete_exactly(empty.handle).unwrap();
            });
            let join = worker.platform().spawn(body).unwrap();
            while issued.load(Ordering::Acquire) == 0 {
                worker.platform().compute(10);
            }
            // Completes the operations, then computes for longer than the operations of the other thread take.
            worker.progress();
            worker.complete(Handle::from_number(issued.load(Ordering::Relaxed))).unwrap();
            worker.platform().compute(100_000);
            let before = worker.platform().now_ns();
            join();
            assert!(worker.platform().now_ns() - before < 20_000, "the thread ended late");
        });
    }
}

#[test]
fn a_thread_that_begins_to_sleep_wakes_threads_whose_operations_it_has_completed() {
    for seed in 0..300 {
        let took = AtomicU64::new(0);
        run_threaded(&Sim::seed(seed).latency_ns(100_000).jitter_ns(0), |worker| {
            let (me, other) = (worker.rank().0, worker.clone());
            if me == 1 {
                return;
            }
            let long = worker
                .copy(bootstrap_memory(0, 0), bootstrap_memory(1, 0), 8, After::Nothing)
                .unwrap()
                .handle;
            let took = &took;
            let body: Box<dyn FnOnce() -> u64 + Send> = Box::new(move || {
                other.platform().compute(seed * 11);
                let before = other.platform().now_ns();
                let empty = |after| other.copy(bootstrap_memory(0, 0), bootstrap_memory(0, 8), 0, after);
                let done = empty(After::Nothing).unwrap().handle;
                let empty = empty(After::Exact(done));
                other.complete_exactly(empty.unwrap().handle).unwrap();
                other.platform().now_ns() - before
            });
            let result = Arc::new(AtomicU64::new(0));
            let theirs = result.clone();
            let join =
                worker.platform().spawn(Box::new(move || theirs.store(body(), Ordering::Relaxed))).unwrap();
            (0..150).for_each(|_| worker.progress());
            worker.complete(long).unwrap();
            join();
            took.store(result.load(Ordering::Relaxed), Ordering::Relaxed);
        });
        assert!(took.into_inner() < 20_000, "seed {seed}: slept on though its operation had ended");
    }
}

#[test]
fn a_deadlock_of_a_spawned_thread_names_its_rank_and_call() {
    let report = simulate(&Sim::seed(1), |member| {
        let worker = Arc::new(member.join(Log::new("test", Level::Warn)).unwrap());
        let other = worker.clone();
        let join = worker
            .platform()
            .spawn(Box::new(move || wait(&other, 3, 1).unwrap_err().call().to_string().clear()));
        join.unwrap()();
        worker.leave()
    });
    let report = report.unwrap();
    let failure = report.failure.unwrap().to_string();
    for rank in [0, 1] {
        assert!(failure.contains(&format!("rank {rank} waits in wait(signal 3 >= 1)")), "{failure}");
    }
    assert!(report.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Returned(_))));
}

#[test]
fn a_call_of_a_thread_outside_the_run_is_refused() {
    run_well(&Sim::seed(1), |worker| {
        let cause = std::thread::scope(|scope| {
            let put = scope.spawn(|| worker.put(bootstrap_memory(1, 0), &[1]).unwrap_err().cause().clone());
            put.join().unwrap()
        });
        assert!(matches!(cause, Cause::Argument(text) if text.contains("job.threads")));
        barrier(worker, 0, 0)
    });
}
