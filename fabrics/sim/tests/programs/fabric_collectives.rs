//! The network's own barrier and multicast: their order, their errors, and runs with a broken promise that must fail.

use crate::harness::{bootstrap_memory, run, run_well, signal, wait};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{FabricGroup, FabricGroupMember, Refused};
use tasuki_fabric_sim::Sim;

const KEY: u64 = 77;
/// Signals of each rank: ended barriers, received multicasts, and the barrier after opening the group.
const MET: u32 = 0;
const BROUGHT: u32 = 1;
const OPENED: u32 = 2;
/// Bytes of a member's multicast buffer, at the start of its bootstrap memory. The values that ranks put lie behind it.
const BYTES: u64 = 512;
const PUT_OFFSET: u64 = 1024;

fn with_collectives(seed: u64, ranks: usize) -> Sim {
    Sim::seed(seed).ranks(ranks).barrier(true).multicast_bytes_max(BYTES)
}

fn members(ranks: usize) -> Vec<FabricGroupMember> {
    let of = |rank| FabricGroupMember {
        barrier_signal: signal(rank, MET),
        multicast_signal: signal(rank, BROUGHT),
        buffer: bootstrap_memory(rank, 0),
    };
    (0..ranks).map(of).collect()
}

fn open(worker: &Worker, members: &[FabricGroupMember]) -> Result<(), Cause> {
    worker.fabric().open_group(&FabricGroup { key: KEY, members, me: worker.rank().index(), bytes: BYTES })
}

/// Opens a group of all ranks and waits until all have opened it.
fn open_on_all(worker: &Worker) -> Result<()> {
    open(worker, &members(worker.size())).unwrap();
    crate::harness::barrier(worker, OPENED, 0)
}

/// Retries a call until there is room for it.
fn retry(worker: &Worker, act: impl Fn() -> Result<(), Refused>) -> Result<()> {
    loop {
        match act() {
            Ok(()) => return Ok(()),
            Err(Refused::Never(cause)) => panic!("{cause}"),
            Err(_) => worker.relax("a group")?,
        }
    }
}

fn barrier(worker: &Worker, times: u64) -> Result<()> {
    worker.settle(&|| "settle".into())?;
    retry(worker, || worker.fabric().enter_barrier(KEY))?;
    wait_barrier_end(worker, times)
}

/// Waits for the end of a barrier. The network raises that signal even if all other ranks have been notified and have
/// left.
fn wait_barrier_end(worker: &Worker, times: u64) -> Result<()> {
    let cell = worker.fabric().own_signal(MET)?;
    worker.wait_signal(cell, times, Some(worker.rank()), &|| format!("barrier {times}"))
}

fn multicast(worker: &Worker, len: u64) -> Result<()> {
    retry(worker, || worker.fabric().multicast(KEY, len))
}

/// Runs rounds in which each rank puts a value to the next rank, with a barrier. Returns how often
/// the rank read an older value.
fn stale_after_barriers(worker: &Worker) -> Result<u64> {
    open_on_all(worker)?;
    let (me, size) = (worker.rank().0, worker.size());
    let mut stale = 0;
    for round in 1..=8_u64 {
        worker.put(bootstrap_memory((me + 1) % size, PUT_OFFSET), &round.to_le_bytes())?;
        barrier(worker, 2 * round - 1)?;
        let mut got = [0; 8];
        worker.get(bootstrap_memory(me, PUT_OFFSET), &mut got)?;
        stale += u64::from(u64::from_le_bytes(got) != round);
        barrier(worker, 2 * round)?;
    }
    Ok(stale)
}

/// Runs rounds in which one rank after the other sends bytes to all. Returns how often the rank read older bytes.
fn stale_after_multicasts(worker: &Worker) -> Result<u64> {
    open_on_all(worker)?;
    let (me, size) = (worker.rank().0, worker.size() as u64);
    let (mut stale, mut brought) = (0, 0);
    for round in 1..=8_u64 {
        let len = 8 + round as usize * 60;
        let mut got = vec![round as u8; len];
        if round % size == me as u64 {
            worker.put(bootstrap_memory(me, 0), &got)?;
            multicast(worker, len as u64)?;
        } else {
            brought += 1;
            wait(worker, BROUGHT, brought)?;
            worker.get(bootstrap_memory(me, 0), &mut got)?;
        }
        stale += u64::from(got.iter().any(|&byte| byte != round as u8));
        barrier(worker, round)?;
    }
    Ok(stale)
}

fn networks() -> [fn(Sim) -> Sim; 4] {
    [
        |sim| sim,
        |sim| sim.passive_targets(true).remote_completion(false).native_put_signal(false),
        |sim| sim.map(true),
        |sim| sim.outstanding_max(3).again_storm(0.1).connect_ns(30_000),
    ]
}

#[test]
fn bytes_put_before_a_barrier_are_visible_after_it() {
    for (seed, ranks) in (0..20).zip([2, 3, 5, 9].into_iter().cycle()) {
        for of in networks() {
            let stale = run_well(&of(with_collectives(seed, ranks)), stale_after_barriers);
            assert_eq!(stale.iter().sum::<u64>(), 0, "seed {seed}");
        }
    }
}

#[test]
fn bytes_of_a_multicast_are_visible_before_its_signal() {
    for (seed, ranks) in (0..20).zip([1, 2, 3, 9].into_iter().cycle()) {
        for of in networks() {
            let stale = run_well(&of(with_collectives(seed, ranks)), stale_after_multicasts);
            assert_eq!(stale.iter().sum::<u64>(), 0, "seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let hash = |seed| run(&with_collectives(seed, 5), stale_after_multicasts).trace_hash;
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

#[test]
fn broken_promise_early_barriers_show_stale_values() {
    let sees = |seed| {
        let report = run(&with_collectives(seed, 3).early_barriers(true), stale_after_barriers);
        report.values().is_ok_and(|values| values.into_iter().flatten().sum::<u64>() > 0)
    };
    assert!((0..20).any(sees));
}

#[test]
fn broken_promise_unordered_signals_of_multicasts_show_stale_bytes() {
    let sees = |seed| {
        let report = run(&with_collectives(seed, 3).unordered_signals(true), stale_after_multicasts);
        report.values().is_ok_and(|values| values.into_iter().flatten().sum::<u64>() > 0)
    };
    assert!((0..20).any(sees));
}

#[test]
fn misuse_and_networks_without_collectives_give_errors() {
    let never = |outcome| matches!(outcome, Err(Refused::Never(_)));
    run_well(&Sim::seed(1).ranks(2), |worker| {
        let opened = open(worker, &members(2));
        assert!(matches!(opened, Err(Cause::Unsupported(_))), "{opened:?}");
        assert!(never(worker.fabric().enter_barrier(KEY)) && never(worker.fabric().multicast(KEY, 1)));
        Ok(())
    });
    run_well(&with_collectives(1, 2), |worker| {
        let fabric = worker.fabric();
        assert!(never(fabric.enter_barrier(KEY)));
        open_on_all(worker)?;
        assert!(open(worker, &members(2)).is_err(), "the group is open already");
        assert!(never(fabric.multicast(KEY, 0)) && never(fabric.multicast(KEY, BYTES + 1)));
        retry(worker, || fabric.enter_barrier(KEY))?;
        if worker.rank() == Rank(0) {
            assert!(never(fabric.enter_barrier(KEY)), "it was not notified of the end of the barrier before");
        }
        wait_barrier_end(worker, 1)?;
        barrier(worker, 2)
    });
}

#[test]
fn a_multicast_does_not_write_to_a_member_that_closed_its_group() {
    for seed in 0..20 {
        run_well(&with_collectives(seed, 3), |worker| {
            open_on_all(worker)?;
            if worker.rank() == Rank(0) {
                worker.put(bootstrap_memory(0, 0), &[7; BYTES as usize])?;
                multicast(worker, BYTES)?;
                return worker.settle(&|| "settle".into());
            }
            if worker.rank() == Rank(2) {
                return wait(worker, BROUGHT, 1);
            }
            worker.fabric().close_group(KEY);
            let state = || -> Result<(u64, [u8; BYTES as usize])> {
                let mut place = [0; BYTES as usize];
                worker.get(bootstrap_memory(1, 0), &mut place)?;
                Ok((worker.fabric().read_signal(signal(1, BROUGHT)), place))
            };
            let before = state()?;
            let never = worker.fabric().own_signal(9)?;
            let long = Some(std::time::Duration::from_millis(1));
            let _limit = long.map(|long| worker.limited(long));
            let outcome = worker.wait_signal(never, 1, Some(worker.rank()), &|| "a while".into());
            assert!(outcome.is_err() && before == state()?);
            Ok(())
        });
    }
}

#[test]
fn a_death_ends_the_wait_for_a_barrier() {
    let report = run(&with_collectives(2, 3).kill(Rank(1), 60_000), |worker| {
        open_on_all(worker)?;
        if worker.rank() == Rank(1) {
            worker.wait_signal(worker.fabric().own_signal(9)?, 1, None, &|| "stays away".into())?;
        }
        barrier(worker, 1)
    });
    let informed = report.outcomes.iter().filter(|outcome| match outcome {
        tasuki_fabric_sim::Outcome::Returned(Err(error)) => matches!(error.cause(), Cause::PeerDied { .. }),
        _ => false,
    });
    assert_eq!(informed.count(), 2);
}
