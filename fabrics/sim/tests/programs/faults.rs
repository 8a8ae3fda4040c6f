//! Faults of networks and programs, and how each call ends.
#![allow(unsafe_code)]
//! Unsafe: buffers handed to a fabric outlive the operations on them; one word of own signal memory is read.

use crate::harness::{barrier, bootstrap_memory, cause, change, pattern, run, run_well, signal, wait};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{After, Platform};
use tasuki_core::fabric::{Accepted, AtomicKind, Fabric, Refused, Token};
use tasuki_core::segment::{GlobalAddress, layout};
use tasuki_fabric_sim::{Outcome, Sim, simulate};

#[test]
fn wrong_addresses_give_errors_and_change_no_memory() {
    for seed in 0..64 {
        let sim = Sim::seed(seed).remote_completion(seed % 2 == 0).third_party(seed % 3 == 0);
        run_well(&sim, |worker| {
            let freed = GlobalAddress::new(worker.rank(), worker.registry().allocate_local(64)?);
            worker.registry().free(freed.offset())?;
            let beyond = bootstrap_memory(1, layout::BOOTSTRAP_MEMORY_BYTES - 4);
            let add = change(AtomicKind::Add, 1);
            let bits = GlobalAddress::bits;
            let mut eight = [0; 8];
            assert_eq!(cause(worker.put(GlobalAddress::NULL, &[1])), Cause::NullAddress);
            let nobody = Cause::NoSuchRank { rank: Rank(2), size: 2 };
            assert_eq!(cause(worker.get(bootstrap_memory(2, 0), &mut eight)), nobody);
            assert_eq!(cause(worker.raise(signal(2, 0), 1)), nobody);
            let memory = (bits(bootstrap_memory(1, 0)), layout::BOOTSTRAP_MEMORY_BYTES);
            let out = Cause::OutOfRange { address: bits(beyond), bytes: 8, registration: Some(memory) };
            assert_eq!(cause(worker.put(beyond, &[9; 8])), out);
            assert_eq!(cause(worker.put_signal(beyond, &[9; 8], signal(1, 9), 1)), out);
            assert_eq!(cause(worker.get(beyond, &mut eight)), out);
            assert_eq!(cause(worker.put(freed, &[1])), Cause::Stale { address: bits(freed) });
            assert_eq!(cause(worker.atomic(freed, add)), Cause::Stale { address: bits(freed) });
            let odd = bootstrap_memory(1, 4);
            assert_eq!(cause(worker.atomic(odd, add)), Cause::Misaligned { address: bits(odd), align: 8 });
            let word = signal(1, 0);
            assert_eq!(cause(worker.put(word, &[1])), Cause::SignalMemory { address: bits(word) });
            assert_eq!(cause(worker.atomic(word, add)), Cause::SignalMemory { address: bits(word) });
            assert!(matches!(cause(worker.raise(bootstrap_memory(1, 0), 1)), Cause::Argument(_)));
            let two_ranks = worker.put_signal(bootstrap_memory(1, 0), &[1], signal(0, 0), 1);
            assert!(matches!(cause(two_ranks), Cause::Argument(_)));
            let copied = worker.copy(beyond, bootstrap_memory(1, 0), 8, After::Nothing);
            let copied = copied.and_then(|issued| worker.complete(issued.handle));
            assert_eq!(cause(copied), out);
            barrier(worker, 0, 0)?;
            worker.get(bootstrap_memory(1, layout::BOOTSTRAP_MEMORY_BYTES - 8), &mut eight)?;
            assert_eq!(eight, [0; 8]);
            assert_eq!(worker.fabric().read_signal(signal(worker.rank().0, 9)), 0);
            barrier(worker, 0, 1)
        });
    }
}

#[test]
fn operations_succeed_after_a_storm_of_refusals() {
    for seed in 0..100 {
        let sim = Sim::seed(seed).ranks(4).again_storm(0.6).outstanding_max(2).connect_ns(3_000);
        run_well(&sim, |worker| {
            let me = worker.rank().0;
            for round in 0..10 {
                worker.copy(bootstrap_memory(me, 0), bootstrap_memory((me + 1) % 4, 8), 8, After::Nothing)?;
                worker.raise(signal((me + round) % 4, 0), 1)?;
            }
            barrier(worker, 1, 0)?;
            assert_eq!(worker.fabric().read_signal(signal(me, 0)), 10);
            Ok(())
        });
    }
}

#[test]
fn a_deadlock_on_a_peer_without_room_names_the_waiting_rank() {
    let sim = Sim::seed(3).ranks(3).again_for_ever(Rank(2));
    let report = run(&sim, |worker| {
        if worker.rank().0 == 0 {
            worker.put(bootstrap_memory(2, 0), &[1; 8])?;
        }
        Ok(())
    });
    let failure = report.failure.unwrap().to_string();
    assert!(failure.contains("deadlock: 1 ranks wait"), "{failure}");
    assert!(failure.contains("rank 0 waits in put(8 bytes to 2:"), "{failure}");
    let Outcome::Returned(Err(error)) = &report.outcomes[0] else { panic!("{:?}", report.outcomes) };
    assert!(error.to_string().contains("deadlock"), "{error}");
}

#[test]
fn an_endless_retry_ends_at_the_time_limit() {
    let sim = Sim::seed(3).again_for_ever(Rank(1)).time_max_ns(10_000_000);
    let report = run(&sim, |worker| {
        let payload = Default::default();
        while worker.rank().0 == 0 && worker.fabric().write_line(signal(1, 0), payload, 1).is_err() {
            worker.relax("line.put")?;
        }
        Ok(())
    });
    let failure = report.failure.unwrap().to_string();
    assert!(
        failure.contains("limit of 10000000 ns of virtual time") && failure.contains("rank 0 was running")
    );
    assert!(report.steps < 10_000, "the pauses of a retry should grow: {} steps", report.steps);
}

/// Kills rank 1 while all others wait for it.
fn death(sim: &Sim) -> Vec<Outcome<Result<()>>> {
    let report = run(sim, |worker| {
        if worker.rank().0 == 1 {
            loop {
                worker.platform().compute(100);
            }
        }
        wait(worker, 0, 1)
    });
    assert!(report.failure.is_none() && report.missed_wakeups == 0);
    report.outcomes
}

#[test]
fn a_killed_rank_unwinds_and_the_others_get_an_error() {
    for seed in 0..20 {
        let outcomes = death(&Sim::seed(seed).ranks(4).kill(Rank(1), 20_000));
        assert!(matches!(outcomes[1], Outcome::Killed));
        for rank in [0, 2, 3] {
            let Outcome::Returned(Err(error)) = &outcomes[rank] else { panic!("{outcomes:?}") };
            let text = error.to_string();
            assert!(text.contains("rank 1 died (killed by the simulator)"), "{text}");
        }
    }
}

#[test]
fn a_rank_can_be_killed_at_any_time() {
    for seed in 0..200 {
        let sim = Sim::seed(seed).ranks(3).kill(Rank(1), seed * 150).outstanding_max(4);
        let report = run(&sim, |worker| {
            let me = worker.rank().0;
            let mut bytes = vec![0; 3_000];
            for round in 0..8 {
                worker.put(bootstrap_memory((me + 1) % 3, 0), &pattern(round, 3_000))?;
                worker.get(bootstrap_memory((me + 2) % 3, 0), &mut bytes)?;
                worker.copy(
                    bootstrap_memory(me, 0),
                    bootstrap_memory((me + 1) % 3, 4_000),
                    100,
                    After::All,
                )?;
            }
            barrier(worker, 0, 0)
        });
        assert!(report.failure.is_none(), "seed {seed}: {:?}", report.failure);
        for (rank, outcome) in report.outcomes.iter().enumerate() {
            match outcome {
                Outcome::Killed => assert_eq!(rank, 1),
                Outcome::Returned(Err(error)) => assert!(
                    matches!(error.cause(), Cause::PeerDied { peer: Rank(1), .. }),
                    "seed {seed}: {error}"
                ),
                Outcome::Returned(Ok(())) => {} // it had finished before
                Outcome::Panicked(message) => panic!("seed {seed}: {message}"),
            }
        }
    }
}

/// Records the contents of a buffer when its owner's stack is unwound.
struct Unwound<'b> {
    buffer: &'b [AtomicU8],
    held: &'b Mutex<Vec<u8>>,
}

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        *self.held.lock().unwrap() = contents(self.buffer);
    }
}

fn contents(buffer: &[AtomicU8]) -> Vec<u8> {
    buffer.iter().map(|byte| byte.load(Ordering::SeqCst)).collect()
}

#[test]
fn buffers_of_a_killed_rank_are_not_written_after_it_has_unwound() {
    let mut unfinished = 0;
    for seed in 0..100 {
        let buffer: Vec<AtomicU8> = (0..2_000).map(|_| AtomicU8::new(1)).collect();
        let held = Mutex::default();
        let report = simulate(&Sim::seed(seed).kill(Rank(0), 40 + seed * 40), |member| {
            if member.rank == Rank(1) {
                return member.platform.compute(1_000_000);
            }
            let _unwound = Unwound { buffer: &buffer, held: &held };
            let place = buffer.as_ptr().cast_mut().cast::<u8>();
            // SAFETY: the buffer outlives the run, and is made of atomics.
            let posted = unsafe { member.fabric.get(&|| 1, bootstrap_memory(1, 0), place, 2_000) };
            assert_eq!(posted, Ok(Accepted::Started));
            member.platform.compute(1_000_000);
        });
        assert!(report.unwrap().outcomes[0] == Outcome::Killed);
        assert_eq!(contents(&buffer), *held.lock().unwrap(), "seed {seed}");
        unfinished += usize::from(contents(&buffer).contains(&1));
    }
    assert!(unfinished > 20, "{unfinished}");
}

/// Counts one running thread while it exists.
struct AtWork(Arc<AtomicUsize>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Joins threads when it is dropped, also by an unwinding thread.
struct Started<'s> {
    joins: Vec<Box<dyn FnOnce() + Send>>,
    shared: Shared<'s>,
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        self.joins.drain(..).for_each(|join| join());
    }
}

/// Data that the threads use. When it is dropped, it records how many of the threads were still running.
struct Shared<'s> {
    at_work: Arc<AtomicUsize>,
    outlived_by: &'s AtomicUsize,
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.outlived_by.fetch_add(self.at_work.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

#[test]
fn a_killed_thread_still_waits_for_the_threads_that_it_joins() {
    let mut killed = 0;
    for seed in 0..150 {
        let outlived_by = AtomicUsize::new(0);
        let report = simulate(&Sim::seed(seed).kill(Rank(0), seed * 250), |member| {
            let shared = Shared { at_work: Arc::default(), outlived_by: &outlived_by };
            let mut started = Started { joins: Vec::new(), shared };
            for _ in 0..3 {
                started.shared.at_work.fetch_add(1, Ordering::SeqCst);
                let (guard, host) = (AtWork(started.shared.at_work.clone()), member.platform.clone());
                let body = move || {
                    (0..4).for_each(|_| host.compute(3_000));
                    drop(guard);
                };
                started.joins.push(member.platform.spawn(Box::new(body)).unwrap());
            }
        });
        killed += usize::from(report.unwrap().outcomes[0] == Outcome::Killed);
        assert_eq!(outlived_by.into_inner(), 0, "seed {seed}");
    }
    assert!((20..150).contains(&killed), "{killed}");
}

#[test]
fn operations_sent_before_a_death_arrive_and_later_ones_do_not() {
    let arrived = |at| {
        let report = run(&Sim::seed(5).kill(Rank(0), at).detection_ns(100_000), |worker| {
            if worker.rank().0 == 0 {
                worker.raise(signal(1, 0), 1)?;
                worker.platform().compute(1_000_000);
            }
            worker.platform().compute(50_000);
            Ok(worker.fabric().read_signal(signal(1, 0)))
        });
        matches!(report.outcomes[1], Outcome::Returned(Ok(1)))
    };
    assert!(!arrived(0) && arrived(900) && arrived(10_000));
}

#[test]
fn after_a_silent_death_only_timeouts_end_calls() {
    let sim = Sim::seed(1).silent_death(Rank(1), 5_000);
    let report = run(&sim, |worker| {
        if worker.rank().0 == 1 {
            worker.platform().compute(1_000_000);
        }
        let cell = worker.fabric().own_signal(0)?;
        let _limit = worker.limited(Duration::from_millis(3));
        worker.wait_signal(cell, 1, None, &|| "wait".into())
    });
    let Outcome::Returned(Err(error)) = &report.outcomes[0] else { panic!() };
    assert!(error.is_timeout(), "{error}");
    assert!(matches!(report.outcomes[1], Outcome::Killed) && report.failure.is_none());

    for seed in 0..10 {
        let report = run(&Sim::seed(seed).silent_death(Rank(1), 5_000), |worker| {
            if worker.rank().0 == 1 {
                worker.platform().compute(1_000_000);
            }
            worker.platform().compute(10_000);
            worker.put(bootstrap_memory(1, 0), &[1])
        });
        let failure = report.failure.unwrap().to_string();
        assert!(failure.contains("rank 0 waits in put(1 bytes to 1:"), "seed {seed}: {failure}");
        assert!(failure.contains("rank 1 is dead"), "seed {seed}: {failure}");
    }
}

#[test]
fn a_panic_of_a_rank_ends_the_waits_of_all() {
    let report = run(&Sim::seed(1).ranks(3), |worker| {
        assert_ne!(worker.rank().0, 2, "rank 2 panics on purpose");
        wait(worker, 0, 1)
    });
    let failure = report.failure.unwrap();
    assert_eq!(failure.rank(), Some(Rank(2)));
    assert!(failure.to_string().contains("panicked: ") && failure.to_string().contains("panics on purpose"));
    let Outcome::Returned(Err(error)) = &report.outcomes[0] else { panic!() };
    assert!(matches!(error.cause(), Cause::PeerDied { peer: Rank(2), .. }), "{error}");
    assert!(
        matches!(&report.outcomes[2], Outcome::Panicked(message) if message.contains("panics on purpose"))
    );
}

#[test]
fn a_passive_target_receives_only_in_its_calls() {
    let seen_while_computing = |passive, native| {
        let sim = Sim::seed(7).passive_targets(passive).native_put_signal(native);
        let seen = run_well(&sim, |worker| {
            if worker.rank().0 == 0 {
                worker.put_signal(bootstrap_memory(1, 0), &[5; 8], signal(1, 0), 1)?;
                return Ok(vec![]);
            }
            let counter = worker.registry().range().at(layout::signal_offset(0), 0, layout::PIECE)?;
            worker.platform().compute(100_000);
            let before = read_word(counter.as_ptr());
            for _ in 0..2 {
                worker.progress(); // the bytes in one call, their signal in the next
                worker.platform().compute(1_000);
            }
            Ok(vec![before, worker.fabric().read_signal(signal(1, 0))])
        });
        seen[1].clone()
    };
    assert_eq!(seen_while_computing(false, true), [1, 1]);
    assert_eq!(seen_while_computing(false, false), [0, 1]);
    assert_eq!(seen_while_computing(true, true), [0, 1]);
}

fn read_word(place: *const u8) -> u64 {
    // SAFETY: an aligned word of this rank's own signal memory.
    unsafe { place.cast::<u64>().read_volatile() }
}

/// Polls the fabric once and returns the ends of operations by token.
pub(crate) fn poll_ends(fabric: &dyn Fabric) -> Vec<(Token, Result<u64, Cause>)> {
    let mut ends = Vec::new();
    fabric.poll(&mut |token, outcome| ends.push((token, outcome)));
    ends
}

#[test]
fn accepted_operations_end_once_also_after_fail_all() {
    for seed in 0..200 {
        let sim = Sim::seed(seed).remote_completion(seed % 2 == 0).outstanding_max(20);
        let report = simulate(&sim, |member| {
            let fabric = &*member.fabric;
            if member.rank == Rank(1) {
                return;
            }
            let mut buffers = vec![vec![0xee_u8; 100]; 30];
            let (mut accepted, mut ended) = (Vec::new(), Vec::new());
            for (number, buffer) in buffers.iter_mut().enumerate() {
                let posted = post(fabric, number as u64, buffer);
                match posted {
                    Ok(Accepted::Started) => accepted.push(number as u64),
                    Ok(Accepted::Done(_)) => panic!("no operation completes within its call here"),
                    Err(refused) => assert_eq!(refused, Refused::Again),
                }
                if number as u64 % 7 == seed % 7 {
                    ended.extend(poll_ends(fabric));
                }
            }
            fabric.fail_all(&Cause::JobOver);
            assert_eq!(post(fabric, 99, &mut buffers[0]), Err(Refused::from(Cause::JobOver)));
            let before = buffers.clone();
            member.platform.compute(1_000_000);
            ended.extend(poll_ends(fabric));
            ended.extend(poll_ends(fabric));
            assert_eq!(buffers, before, "seed {seed}: a buffer was touched after it was given back");
            let mut tokens: Vec<Token> = ended.iter().map(|&(token, _)| token).collect();
            tokens.sort_unstable();
            assert_eq!(tokens, accepted, "seed {seed}");
            let well = ended.iter().filter(|end| end.1.is_ok()).count();
            assert!(well < accepted.len(), "seed {seed}: all had ended before");
        });
        report.unwrap().values().unwrap();
    }
}

/// Posts an operation whose kind follows from its token.
pub(crate) fn post(fabric: &dyn Fabric, token: Token, buffer: &mut [u8]) -> Result<Accepted, Refused> {
    let (accept, len, peer) = (move || token, buffer.len() as u64, bootstrap_memory(1, 0));
    // SAFETY: the buffers live until all operations have ended, and are read only after that.
    unsafe {
        match token % 5 {
            0 => fabric.put(&accept, peer, buffer.as_ptr(), len),
            1 => fabric.get(&accept, peer, buffer.as_mut_ptr(), len),
            2 => fabric.put_signal(&accept, peer, buffer.as_ptr(), len, signal(1, 0), 1),
            3 => fabric.atomic(&accept, peer, &change(AtomicKind::Swap, 1)),
            _ => fabric.flush(&accept, Rank(1)),
        }
    }
}

#[test]
fn invalid_descriptions_are_refused() {
    assert!(simulate(&Sim::seed(1).ranks(0), |_| ()).is_err());
    let nobody = simulate(&Sim::seed(1).ranks(2).kill(Rank(2), 0), |_| ());
    assert_eq!(cause(nobody), Cause::NoSuchRank { rank: Rank(2), size: 2 });
}
