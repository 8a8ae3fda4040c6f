//! The same seed gives the same run, event by event, in this process and in another one.

use crate::harness::{barrier, bootstrap_memory, change, run, signal};
use tasuki_core::base::Rank;
use tasuki_core::engine::After;
use tasuki_core::fabric::AtomicKind;
use tasuki_fabric_sim::{Report, Sim};

/// Runs a program with all operations, refusals, threads, and a death at the end.
fn run_all_features(seed: u64, keep_trace: bool) -> Report<Result<(), tasuki_core::base::Error>> {
    let sim =
        Sim::seed(seed).ranks(6).again_storm(0.1).outstanding_max(5).passive_targets(seed.is_multiple_of(2));
    let sim =
        sim.third_party(seed.is_multiple_of(3)).cpu_atomics(seed.is_multiple_of(5)).kill(Rank(5), 400_000);
    run(&sim.keep_trace(keep_trace), |worker| {
        let me = worker.rank().0;
        let mut bytes = vec![0; 5_000];
        for round in 0..5 {
            let peer = (me + round) % 6;
            worker.put(bootstrap_memory(peer, 0), &[round as u8; 900])?;
            worker.get(bootstrap_memory(peer, 0), &mut bytes)?;
            worker.copy(
                bootstrap_memory(peer, 0),
                bootstrap_memory((peer + 1) % 6, 1_000),
                500,
                After::All,
            )?;
            worker.atomic(bootstrap_memory(peer, 8), change(AtomicKind::Add, 1))?;
            worker.put_signal(bootstrap_memory(peer, 32), &[1; 40], signal(peer, 3), 1)?;
            let join = worker.platform().spawn(Box::new(|| {}));
            barrier(worker, 0, round as u64)?;
            join.unwrap()();
        }
        worker.platform().compute(500_000);
        barrier(worker, 0, 5)
    })
}

#[test]
fn equal_seeds_give_equal_runs_and_different_seeds_different_ones() {
    let mut hashes = Vec::new();
    for seed in 0..20 {
        let (first, second) = (run_all_features(seed, false), run_all_features(seed, true));
        assert_eq!(first.trace_hash, second.trace_hash, "seed {seed}");
        assert_eq!((first.end_ns, first.steps, first.events), (second.end_ns, second.steps, second.events));
        assert!(!second.trace.is_empty() && first.trace.is_empty());
        hashes.push(first.trace_hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 20);
}

const MARK: &str = "trace hash of the other process: ";
const SEED_VARIABLE: &str = "TASUKI_SIM_TEST_SEED";

/// Prints the hash in the process that `a_seed_gives_the_same_run_in_another_process` starts; does nothing otherwise.
#[test]
fn other_process() {
    if let Some(seed) = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok()) {
        println!("{MARK}{}", run_all_features(seed, false).trace_hash);
    }
}

#[test]
fn a_seed_gives_the_same_run_in_another_process() {
    for seed in [1, 2, 30] {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "determinism::other_process", "--nocapture"])
            .env(SEED_VARIABLE, seed.to_string());
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let hash =
            output.lines().find_map(|line| line.split_once(MARK)).expect("the other process prints it").1;
        assert_eq!(hash, run_all_features(seed, false).trace_hash.to_string(), "seed {seed}");
    }
}

#[test]
fn a_change_of_the_program_or_the_network_changes_the_run() {
    let hash = |latency, bytes: usize| {
        let sim = Sim::seed(1).latency_ns(latency);
        run(&sim, |worker| worker.put(bootstrap_memory(1, 0), &vec![1; bytes])).trace_hash
    };
    assert_eq!(hash(1_000, 8), hash(1_000, 8));
    assert_ne!(hash(1_000, 8), hash(1_001, 8));
    assert_ne!(hash(1_000, 8), hash(1_000, 9));
}
