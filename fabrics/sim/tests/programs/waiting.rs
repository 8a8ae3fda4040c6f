//! Waiting in virtual time: nothing is slept through, nobody waits for ever unnamed, threads of a rank included.

use crate::ranks::{change, load, meet, run, run_well, signal, starter, wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tasuki_core::base::log::{Level, Log};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::{After, Condition, Handle, Machine};
use tasuki_core::fabric::AtomicKind;
use tasuki_core::node::board::Stage;
use tasuki_fabric_sim::{Outcome, Sim, simulate};

/// All ranks hear of all others, in log2 rounds of signals.
fn barrier(machine: &Machine, instance: u64) -> tasuki_core::base::Result<()> {
    let size = machine.size() as u32;
    let rounds = size.next_power_of_two().trailing_zeros();
    for round in 0..rounds {
        machine.raise(signal((machine.rank().0 + (1 << round)) % size, 10 + round), 1)?;
        wait(machine, 10 + round, instance)?;
    }
    Ok(())
}

#[test]
fn three_hundred_ranks_meet() {
    let entered = AtomicU64::new(0);
    run_well(&Sim::seed(5).ranks(300), |machine| {
        for instance in 1..=3 {
            machine.host().compute(u64::from(machine.rank().0 * 37 % 100) * 100);
            entered.fetch_add(1, Ordering::Relaxed);
            barrier(machine, instance)?;
            assert!(entered.load(Ordering::Relaxed) >= instance * 300, "somebody was let through early");
        }
        Ok(())
    });
}

#[test]
fn everyone_who_waits_is_named_when_nothing_can_happen() {
    let report = run(&Sim::seed(1).ranks(3), |machine| match machine.rank().0 {
        0 => wait(machine, 7, 4),
        1 => wait(machine, 8, 1),
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
fn ranks_that_wait_again_after_a_deadlock_are_ended() {
    let report = run(&Sim::seed(1), |machine| {
        let mut errors = 0_u64;
        while wait(machine, 7, 4).is_err() {
            errors += 1;
        }
        Ok(errors)
    });
    assert!(report.failure.unwrap().to_string().contains("deadlock"));
    assert!(report.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Killed)));
}

#[test]
fn a_time_out_comes_at_its_time() {
    for seed in 0..50 {
        run_well(&Sim::seed(seed), |machine| {
            let limit = Duration::from_micros(100 + seed * 50);
            let before = machine.host().now_ns();
            let condition = Condition::Signal(machine.fabric().own_signal(0)?, 1, None);
            let waited = machine.wait(&condition, Some(limit), &|| "wait".into());
            assert!(waited.unwrap_err().is_timeout());
            let took = machine.host().now_ns() - before;
            assert!(took >= limit.as_nanos() as u64 && took < limit.as_nanos() as u64 + 5_000, "{took}");
            meet(machine, 1, 0)
        });
    }
}

#[test]
fn a_loop_over_a_word_sees_it_change() {
    run_well(&Sim::seed(9), |machine| {
        if machine.rank().0 == 0 {
            machine.host().compute(30_000);
            machine.atomic(starter(1, 0), change(AtomicKind::Store, 3))?;
            machine.raise(signal(1, 0), 1)?;
        } else {
            while machine.fabric().read_signal(signal(1, 0)) == 0 {}
            while load(machine, starter(1, 0))? != 3 {
                machine.relax("loop")?;
            }
        }
        meet(machine, 1, 0)
    });
}

#[test]
fn who_waits_for_a_rank_that_leaves_is_told() {
    for seed in 0..300 {
        let report = run(&Sim::seed(seed).ranks(3).in_step(true), |machine| {
            let cell = machine.fabric().own_signal(0)?;
            match machine.rank().0 {
                0 => machine.wait_signal(cell, 1, Some(Rank(1)), None, &|| "wait".into()),
                1 => {
                    machine.host().compute(seed * 3);
                    Ok(())
                }
                _ => machine.wait_signal(cell, 1, None, None, &|| "wait".into()),
            }
        });
        assert!(report.failure.is_none() && report.rescues == 0, "seed {seed}");
        let Outcome::Returned(Err(error)) = &report.outcomes[0] else { panic!("seed {seed}") };
        assert_eq!(error.cause(), &Cause::PeerLeft { peer: Rank(1) });
        let Outcome::Returned(Err(error)) = &report.outcomes[2] else { panic!("seed {seed}") };
        assert!(matches!(error.cause(), Cause::PeerDied { .. } | Cause::PeerLeft { .. }), "{error}");
    }
}

#[test]
fn a_stage_that_all_reach_is_noticed() {
    for seed in 0..50 {
        let report = simulate(&Sim::seed(seed).ranks(5), |member| {
            tasuki_core::engine::Host::compute(&*member.host, u64::from(member.rank.0) * 5_000);
            let machine = member.join(Log::new("test", Level::Warn)).unwrap();
            machine.wait(&Condition::AllReached(Stage::Joined), None, &|| "meet".into()).unwrap();
            let now = machine.host().now_ns();
            machine.leave().unwrap();
            now
        });
        let report = report.unwrap();
        assert_eq!(report.rescues, 0);
        assert!(report.values().unwrap().into_iter().all(|now| (20_000..25_000).contains(&now)));
    }
}

/// A machine that threads of a rank share.
fn run_shared(sim: &Sim, app: impl Fn(&Arc<Machine>) + Sync) {
    let report = simulate(sim, |member| {
        let machine = Arc::new(member.join(Log::new("test", Level::Warn)).unwrap());
        app(&machine);
        machine.leave().unwrap();
    });
    let report = report.unwrap();
    assert_eq!(report.rescues, 0, "under {sim:?}");
    report.values().unwrap();
}

#[test]
fn threads_of_a_rank_wait_for_different_things() {
    for seed in 0..100 {
        run_shared(&Sim::seed(seed).remote_completion(seed % 2 == 0).outstanding_max(3), |machine| {
            let me = machine.rank().0;
            let work = |index: u32| {
                let machine = machine.clone();
                Box::new(move || {
                    for round in 1..=5 {
                        let first = machine.copy(starter(me, 0), starter(1 - me, 64), 32, After::Nothing);
                        let first = first.unwrap().handle;
                        let then =
                            machine.copy(starter(1 - me, 64), starter(me, 128), 32, After::Exact(first));
                        machine.raise(signal(1 - me, index), 1).unwrap();
                        wait(&machine, index, round).unwrap();
                        machine.complete_exactly(then.unwrap().handle).unwrap();
                    }
                })
            };
            let joins: Vec<_> = (0..4).map(|index| machine.host().spawn(work(index)).unwrap()).collect();
            work(4)();
            joins.into_iter().for_each(|join| join());
        });
    }
}

#[test]
fn a_thread_finishes_what_another_one_waits_for() {
    for seed in 0..200 {
        run_shared(&Sim::seed(seed), |machine| {
            let me = machine.rank().0;
            let other = machine.clone();
            let issued = Arc::new(AtomicU64::new(0));
            let theirs = issued.clone();
            let body = Box::new(move || {
                let first = other.copy(starter(1 - me, 0), starter(me, 64), 32, After::Nothing).unwrap();
                let empty =
                    other.copy(starter(me, 0), starter(me, 64), 0, After::Exact(first.handle)).unwrap();
                theirs.store(empty.handle.number(), Ordering::Release);
                other.complete_exactly(empty.handle).unwrap();
            });
            let join = machine.host().spawn(body).unwrap();
            while issued.load(Ordering::Acquire) == 0 {
                machine.host().compute(10);
            }
            // Moves the table on, and then leaves the other thread to itself for longer than its operations take.
            machine.progress();
            machine.complete(Handle::from_number(issued.load(Ordering::Relaxed))).unwrap();
            machine.host().compute(100_000);
            let before = machine.host().now_ns();
            join();
            assert!(machine.host().now_ns() - before < 20_000, "the thread ended late");
        });
    }
}

#[test]
fn a_thread_that_goes_to_sleep_wakes_those_whose_operations_it_has_ended() {
    for seed in 0..300 {
        let took = AtomicU64::new(0);
        run_shared(&Sim::seed(seed).latency_ns(100_000).jitter_ns(0), |machine| {
            let (me, other) = (machine.rank().0, machine.clone());
            if me == 1 {
                return;
            }
            let long = machine.copy(starter(0, 0), starter(1, 0), 8, After::Nothing).unwrap().handle;
            let took = &took;
            let body: Box<dyn FnOnce() -> u64 + Send> = Box::new(move || {
                other.host().compute(seed * 11);
                let before = other.host().now_ns();
                let empty = |after| other.copy(starter(0, 0), starter(0, 8), 0, after);
                let done = empty(After::Nothing).unwrap().handle;
                let empty = empty(After::Exact(done));
                other.complete_exactly(empty.unwrap().handle).unwrap();
                other.host().now_ns() - before
            });
            let result = Arc::new(AtomicU64::new(0));
            let theirs = result.clone();
            let join =
                machine.host().spawn(Box::new(move || theirs.store(body(), Ordering::Relaxed))).unwrap();
            (0..150).for_each(|_| machine.progress());
            machine.complete(long).unwrap();
            join();
            took.store(result.load(Ordering::Relaxed), Ordering::Relaxed);
        });
        assert!(took.into_inner() < 20_000, "seed {seed}: slept on though its operation had ended");
    }
}

#[test]
fn threads_that_wait_for_ever_are_named_by_their_rank() {
    let report = simulate(&Sim::seed(1), |member| {
        let machine = Arc::new(member.join(Log::new("test", Level::Warn)).unwrap());
        let other = machine.clone();
        let join = machine
            .host()
            .spawn(Box::new(move || wait(&other, 3, 1).unwrap_err().call().to_string().clear()));
        join.unwrap()();
        machine.leave()
    });
    let report = report.unwrap();
    let failure = report.failure.unwrap().to_string();
    for rank in [0, 1] {
        assert!(failure.contains(&format!("rank {rank} waits in wait(signal 3 >= 1)")), "{failure}");
    }
    assert!(report.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Returned(_))));
}

#[test]
fn a_call_of_a_thread_that_nobody_knows_is_refused() {
    run_well(&Sim::seed(1), |machine| {
        let cause = std::thread::scope(|scope| {
            let put = scope.spawn(|| machine.put(starter(1, 0), &[1]).unwrap_err().cause().clone());
            put.join().unwrap()
        });
        assert!(matches!(cause, Cause::Argument(text) if text.contains("job.threads")));
        meet(machine, 0, 0)
    });
}
