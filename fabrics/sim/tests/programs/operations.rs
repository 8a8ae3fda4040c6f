//! Put, get, copy and atomics work with every set of capabilities and on every seed.

use crate::harness::{barrier, bootstrap_memory, change, load, pattern, run_well, signal, wait};
use tasuki_core::engine::{After, Handle};
use tasuki_core::fabric::AtomicKind;
use tasuki_fabric_sim::Sim;

/// Returns a simulation whose capabilities and limits follow from the seed, refusals included.
fn simulation(seed: u64) -> Sim {
    let bit = |n: u64| (seed >> n) & 1 == 1;
    let sim = Sim::seed(seed)
        .map(bit(0))
        .third_party(bit(1))
        .native_put_signal(bit(2))
        .remote_completion(bit(3))
        .reorder(bit(4))
        .cpu_atomics(bit(5))
        .passive_targets(bit(6));
    let sim = if bit(7) { sim.again_storm(0.2).connect_ns(5_000) } else { sim };
    let sim = if bit(1) { sim.transfer_bytes_max(1_000) } else { sim };
    if bit(3) { sim.outstanding_max(3) } else { sim }
}

#[test]
fn get_returns_what_was_put_and_nothing_beside_it_changes() {
    for seed in 0..256 {
        run_well(&simulation(seed).ranks(3), |worker| {
            let me = worker.rank().0;
            for round in 0..6 {
                let len = [0, 1, 7, 8, 9, 3_000][round as usize];
                let to = (me + 1 + (seed + round) as usize % 3) % 3;
                let at = bootstrap_memory(to, 8192 * me as u64 + 3);
                let bytes = pattern(seed + round, len);
                worker.put(at, &bytes)?;
                let mut back = vec![0; len + 2];
                worker.get(bootstrap_memory(to, 8192 * me as u64 + 2), &mut back)?;
                assert_eq!(back[1..len + 1], bytes);
                assert_eq!(back[0], 0, "seed {seed}");
                worker.put(at, &vec![0; len])?;
                worker.get(at, &mut back)?;
                assert_eq!(back, vec![0; len + 2], "seed {seed}");
            }
            barrier(worker, 0, 0)
        });
    }
}

#[test]
fn copies_work_between_any_two_ranks() {
    for seed in 0..128 {
        run_well(&simulation(seed).ranks(4), |worker| {
            let me = worker.rank().0;
            worker.put(bootstrap_memory(me, 0), &pattern(me as u64, 2_000))?;
            barrier(worker, 0, 0)?;
            if me == 3 {
                let mut last = Handle::NULL;
                for from in 0..4_usize {
                    for to in 0..4 {
                        let place = 4_096 + from as u64 * 4_096;
                        let copy = worker.copy(
                            bootstrap_memory(from, 0),
                            bootstrap_memory(to, place),
                            2_000,
                            After::Nothing,
                        )?;
                        last = copy.handle;
                    }
                }
                worker.complete(last)?;
            }
            barrier(worker, 0, 1)?;
            for from in 0..4_usize {
                let mut bytes = vec![0; 2_000];
                worker.get(bootstrap_memory(me, 4_096 + from as u64 * 4_096), &mut bytes)?;
                assert_eq!(bytes, pattern(from as u64, 2_000), "seed {seed}, from {from} to {me}");
            }
            barrier(worker, 0, 2)
        });
    }
}

#[test]
fn registered_memory_is_accessed_like_job_memory() {
    for seed in 0..64 {
        run_well(&simulation(seed).ranks(2), |worker| {
            let mut own = pattern(seed, 500);
            let offset = worker.registry().register(own.as_mut_ptr() as u64, 500)?;
            let (me, peer) = (worker.rank().0, 1 - worker.rank().0);
            worker.put(bootstrap_memory(peer, 0), &offset.to_ne_bytes())?;
            worker.raise(signal(peer, 0), 1)?;
            wait(worker, 0, 1)?;
            let theirs = load(worker, bootstrap_memory(me, 0))?;
            let at = tasuki_core::segment::GlobalAddress::new(tasuki_core::base::Rank(peer), theirs);
            let mut bytes = vec![0; 500];
            worker.get(at, &mut bytes)?;
            assert_eq!(bytes, pattern(seed, 500));
            worker.put(at.add(100), &pattern(seed + 1, 50))?;
            worker.get(at.add(100), &mut bytes[..50])?;
            assert_eq!(bytes[..50], pattern(seed + 1, 50));
            barrier(worker, 1, 0)?;
            worker.registry().free(offset)?;
            drop(own);
            barrier(worker, 1, 1)
        });
    }
}

#[test]
fn an_overlapping_copy_inside_a_rank_moves_as_memmove_does() {
    for seed in 0..64 {
        run_well(&Sim::seed(seed).third_party(seed % 2 == 0).bandwidth(50_000_000), |worker| {
            for (from, to) in [(0, 100), (100, 0), (50, 50)] {
                if worker.rank().0 == 1 {
                    break;
                }
                let mut bytes = pattern(seed, 1_000);
                worker.put(bootstrap_memory(1, 0), &bytes)?;
                let copy =
                    worker.copy(bootstrap_memory(1, from), bootstrap_memory(1, to), 700, After::Nothing)?;
                worker.complete(copy.handle)?;
                bytes.copy_within(from as usize..from as usize + 700, to as usize);
                let mut after = vec![0; 1_000];
                worker.get(bootstrap_memory(1, 0), &mut after)?;
                assert_eq!(after, bytes, "seed {seed}: {from} to {to}");
            }
            barrier(worker, 0, 0)
        });
    }
}

/// Returns the values that all ranks fetch when they add to one word, sorted.
fn fetched_by_adds(sim: &Sim) -> Vec<u64> {
    let adds = run_well(sim, |worker| {
        let add = |_| worker.atomic(bootstrap_memory(0, 64), change(AtomicKind::Add, 1));
        let fetched: Vec<u64> = (0..20).map(add).collect::<Result<_, _>>()?;
        barrier(worker, 0, 0)?;
        Ok(fetched)
    });
    let mut all = adds.concat();
    all.sort_unstable();
    all
}

#[test]
fn no_two_adds_fetch_the_same_value() {
    for seed in 0..64 {
        assert_eq!(
            fetched_by_adds(&simulation(seed).ranks(5)),
            (0..100).collect::<Vec<u64>>(),
            "seed {seed}"
        );
    }
}

#[test]
fn broken_promise_torn_atomics_lose_additions() {
    assert!(
        (0..8).any(|seed| fetched_by_adds(&Sim::seed(seed).ranks(5).torn_atomics(true)).last() != Some(&99))
    );
}
