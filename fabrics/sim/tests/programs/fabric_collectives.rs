//! The network's own barrier and multicast: what they order, what they refuse, and twins that must fail.

use crate::harness::{run, run_well, signal, starter, wait};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{FabricGroup, FabricGroupMember, Refused};
use tasuki_fabric_sim::Sim;

const KEY: u64 = 77;
/// Signals of each rank: meetings, multicasts, that all have opened the group.
const MET: u32 = 0;
const BROUGHT: u32 = 1;
const OPENED: u32 = 2;
/// Bytes of a place, which is the start of a rank's starter memory; what ranks tell each other lies behind it.
const BYTES: u64 = 512;
const TOLD: u64 = 1024;

fn offering(seed: u64, ranks: usize) -> Sim {
    Sim::seed(seed).ranks(ranks).barrier(true).multicast_bytes_max(BYTES)
}

fn members(ranks: usize) -> Vec<FabricGroupMember> {
    let of = |rank| FabricGroupMember {
        barrier_signal: signal(rank, MET),
        multicast_signal: signal(rank, BROUGHT),
        buffer: starter(rank, 0),
    };
    (0..ranks as u32).map(of).collect()
}

fn open(worker: &Worker, members: &[FabricGroupMember]) -> Result<(), Cause> {
    worker.fabric().open_group(&FabricGroup { key: KEY, members, me: worker.rank().index(), bytes: BYTES })
}

/// A group of all ranks, when all have opened it.
fn of_all(worker: &Worker) -> Result<()> {
    open(worker, &members(worker.size())).unwrap();
    crate::harness::meet(worker, OPENED, 0)
}

/// Does something as soon as there is room for it.
fn try_again(worker: &Worker, act: impl Fn() -> Result<(), Refused>) -> Result<()> {
    loop {
        match act() {
            Ok(()) => return Ok(()),
            Err(Refused::Never(cause)) => panic!("{cause}"),
            Err(_) => worker.relax("a group")?,
        }
    }
}

fn meet(worker: &Worker, times: u64) -> Result<()> {
    worker.settle(&|| "settle".into())?;
    try_again(worker, || worker.fabric().enter_barrier(KEY))?;
    wait_met(worker, times)
}

/// The network raises that signal: also when all other ranks have been told, and have left.
fn wait_met(worker: &Worker, times: u64) -> Result<()> {
    let cell = worker.fabric().own_signal(MET)?;
    worker.wait_signal(cell, times, Some(worker.rank()), None, &|| format!("meeting {times}"))
}

fn multicast(worker: &Worker, len: u64) -> Result<()> {
    try_again(worker, || worker.fabric().multicast(KEY, len))
}

/// Rounds in which each rank puts something at the next one and all meet. How often a rank saw what is older.
fn stale_after_meetings(worker: &Worker) -> Result<u64> {
    of_all(worker)?;
    let (me, size) = (worker.rank().0, worker.size() as u32);
    let mut stale = 0;
    for round in 1..=8_u64 {
        worker.put(starter((me + 1) % size, TOLD), &round.to_le_bytes())?;
        meet(worker, 2 * round - 1)?;
        let mut got = [0; 8];
        worker.get(starter(me, TOLD), &mut got)?;
        stale += u64::from(u64::from_le_bytes(got) != round);
        meet(worker, 2 * round)?;
    }
    Ok(stale)
}

/// Rounds in which the ranks in turn send something to all. How often a rank saw what is older.
fn stale_after_multicasts(worker: &Worker) -> Result<u64> {
    of_all(worker)?;
    let (me, size) = (worker.rank().0, worker.size() as u64);
    let (mut stale, mut brought) = (0, 0);
    for round in 1..=8_u64 {
        let len = 8 + round as usize * 60;
        let mut got = vec![round as u8; len];
        if round % size == u64::from(me) {
            worker.put(starter(me, 0), &got)?;
            multicast(worker, len as u64)?;
        } else {
            brought += 1;
            wait(worker, BROUGHT, brought)?;
            worker.get(starter(me, 0), &mut got)?;
        }
        stale += u64::from(got.iter().any(|&byte| byte != round as u8));
        meet(worker, round)?;
    }
    Ok(stale)
}

fn machines() -> [fn(Sim) -> Sim; 4] {
    [
        |sim| sim,
        |sim| sim.passive_targets(true).remote_completion(false).native_put_signal(false),
        |sim| sim.map(true),
        |sim| sim.outstanding_max(3).again_storm(0.1).connect_ns(30_000),
    ]
}

#[test]
fn what_was_there_before_a_meeting_is_there_after_it() {
    for (seed, ranks) in (0..20).zip([2, 3, 5, 9].into_iter().cycle()) {
        for of in machines() {
            let stale = run_well(&of(offering(seed, ranks)), stale_after_meetings);
            assert_eq!(stale.iter().sum::<u64>(), 0, "seed {seed}");
        }
    }
}

#[test]
fn bytes_of_a_multicast_are_there_before_its_signal() {
    for (seed, ranks) in (0..20).zip([1, 2, 3, 9].into_iter().cycle()) {
        for of in machines() {
            let stale = run_well(&of(offering(seed, ranks)), stale_after_multicasts);
            assert_eq!(stale.iter().sum::<u64>(), 0, "seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let hash = |seed| run(&offering(seed, 5), stale_after_multicasts).trace_hash;
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

#[test]
fn twin_meetings_without_the_last_member_are_too_early() {
    let sees = |seed| {
        let report = run(&offering(seed, 3).early_meetings(true), stale_after_meetings);
        report.values().is_ok_and(|values| values.into_iter().flatten().sum::<u64>() > 0)
    };
    assert!((0..20).any(sees));
}

#[test]
fn twin_signals_of_multicasts_before_their_bytes_are_too_early() {
    let sees = |seed| {
        let report = run(&offering(seed, 3).unordered_signals(true), stale_after_multicasts);
        report.values().is_ok_and(|values| values.into_iter().flatten().sum::<u64>() > 0)
    };
    assert!((0..20).any(sees));
}

#[test]
fn misuse_and_networks_without_groups_refuse() {
    let never = |outcome| matches!(outcome, Err(Refused::Never(_)));
    run_well(&Sim::seed(1).ranks(2), |worker| {
        let opened = open(worker, &members(2));
        assert!(matches!(opened, Err(Cause::Unsupported(_))), "{opened:?}");
        assert!(never(worker.fabric().enter_barrier(KEY)) && never(worker.fabric().multicast(KEY, 1)));
        Ok(())
    });
    run_well(&offering(1, 2), |worker| {
        let fabric = worker.fabric();
        assert!(never(fabric.enter_barrier(KEY)));
        of_all(worker)?;
        assert!(open(worker, &members(2)).is_err(), "it is open");
        assert!(never(fabric.multicast(KEY, 0)) && never(fabric.multicast(KEY, BYTES + 1)));
        try_again(worker, || fabric.enter_barrier(KEY))?;
        if worker.rank() == Rank(0) {
            assert!(never(fabric.enter_barrier(KEY)), "it does not know of the end of the last one");
        }
        wait_met(worker, 1)?;
        meet(worker, 2)
    });
}

#[test]
fn who_has_closed_a_group_is_touched_no_more() {
    for seed in 0..20 {
        run_well(&offering(seed, 3), |worker| {
            of_all(worker)?;
            if worker.rank() == Rank(0) {
                worker.put(starter(0, 0), &[7; BYTES as usize])?;
                multicast(worker, BYTES)?;
                return worker.settle(&|| "settle".into());
            }
            if worker.rank() == Rank(2) {
                return wait(worker, BROUGHT, 1);
            }
            worker.fabric().close_group(KEY);
            let state = || -> Result<(u64, [u8; BYTES as usize])> {
                let mut place = [0; BYTES as usize];
                worker.get(starter(1, 0), &mut place)?;
                Ok((worker.fabric().read_signal(signal(1, BROUGHT)), place))
            };
            let before = state()?;
            let never = worker.fabric().own_signal(9)?;
            let long = Some(std::time::Duration::from_millis(1));
            let outcome = worker.wait_signal(never, 1, Some(worker.rank()), long, &|| "a while".into());
            assert!(outcome.is_err() && before == state()?);
            Ok(())
        });
    }
}

#[test]
fn a_death_ends_the_wait_for_a_meeting() {
    let report = run(&offering(2, 3).kill(Rank(1), 60_000), |worker| {
        of_all(worker)?;
        if worker.rank() == Rank(1) {
            worker.wait_signal(worker.fabric().own_signal(9)?, 1, None, None, &|| "stays away".into())?;
        }
        meet(worker, 1)
    });
    let told = report.outcomes.iter().filter(|outcome| match outcome {
        tasuki_fabric_sim::Outcome::Returned(Err(error)) => matches!(error.cause(), Cause::PeerDied { .. }),
        _ => false,
    });
    assert_eq!(told.count(), 2);
}
