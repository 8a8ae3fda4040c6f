//! Guarantees of order hold on every seed, and fail when the simulator breaks the promise that they rely on.
#![allow(unsafe_code)]
//! Unsafe: own memory is read while peers write it, by the copy that tolerates that; a buffer handed to a fabric
//! outlives the operation on it.

use crate::harness::{barrier, bootstrap_memory, load, pattern, run, run_well, signal, wait};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::{After, Handle, Worker};
use tasuki_core::fabric::{Accepted, LinePayload, Refused, SignalLine, Token};
use tasuki_core::segment::{GlobalAddress, layout};
use tasuki_fabric_sim::Sim;

const SEEDS: u64 = 200;

/// Returns true if the receiver sees all bytes of a put whenever it sees the put's signal.
fn signals_follow_bytes(sim: &Sim) -> bool {
    let seen = run_well(sim, |worker| {
        let mut good = true;
        for round in 0..5 {
            let bytes = pattern(round, 700);
            if worker.rank().0 == 0 {
                worker.put_signal(bootstrap_memory(1, 0), &bytes, signal(1, 0), 1)?;
                wait(worker, 0, round + 1)?;
            } else {
                wait(worker, 0, round + 1)?;
                let mut here = vec![0; 700];
                let place = worker.own_place(bootstrap_memory(1, 0), 700)?;
                read_own(place, &mut here);
                good &= here == bytes;
                worker.raise(signal(0, 0), 1)?;
            }
        }
        Ok(good)
    });
    seen.into_iter().all(|good| good)
}

fn read_own(place: *mut u8, into: &mut [u8]) {
    // SAFETY: the place was found to be own memory of that length.
    unsafe { tasuki_core::os::copy::copy(place, into.as_mut_ptr(), into.len()) };
}

#[test]
fn a_put_signal_is_seen_after_its_bytes() {
    for seed in 0..SEEDS {
        let sim = Sim::seed(seed).native_put_signal(seed % 2 == 0).remote_completion(seed % 3 == 0);
        let sim = if seed % 5 == 0 { sim.transfer_bytes_max(300) } else { sim };
        assert!(signals_follow_bytes(&sim), "seed {seed}");
    }
}

#[test]
fn broken_promise_unordered_signals_overtake_their_bytes() {
    assert!((0..20).any(|seed| !signals_follow_bytes(&Sim::seed(seed).unordered_signals(true))));
}

/// Returns true if c equals the remote bytes after the copies remote -> a -> b -> c.
fn chain_arrives(sim: &Sim, after: impl Fn(Handle) -> After + Sync) -> bool {
    let arrived = run_well(sim, |worker| {
        let bytes = pattern(worker.rank().0 as u64, 600);
        worker.put(bootstrap_memory(worker.rank().0, 0), &bytes)?;
        barrier(worker, 0, 0)?;
        let mut good = true;
        if worker.rank().0 == 0 {
            let places = [
                bootstrap_memory(2, 0),
                bootstrap_memory(1, 1_000),
                bootstrap_memory(0, 2_000),
                bootstrap_memory(1, 3_000),
            ];
            let mut last = Handle::NULL;
            for pair in places.windows(2) {
                last = worker.copy(pair[0], pair[1], 600, after(last))?.handle;
            }
            worker.complete(last)?;
            let mut arrived = vec![0; 600];
            worker.get(bootstrap_memory(1, 3_000), &mut arrived)?;
            good = arrived == pattern(2, 600);
        }
        barrier(worker, 0, 1)?;
        Ok(good)
    });
    arrived.into_iter().all(|good| good)
}

#[test]
fn a_chain_of_copies_ordered_by_handles_delivers() {
    for seed in 0..SEEDS {
        let sim = Sim::seed(seed).ranks(3).third_party(seed % 2 == 0).remote_completion(seed % 3 == 0);
        assert!(chain_arrives(&sim, After::Exact), "seed {seed}");
    }
}

#[test]
fn a_chain_of_copies_without_order_delivers_a_stale_value() {
    let sim = |seed| Sim::seed(seed).ranks(3).third_party(true);
    assert!((0..20).any(|seed| !chain_arrives(&sim(seed), |_| After::Nothing)));
}

#[test]
fn broken_promise_early_ends_deliver_a_stale_value() {
    let sim = |seed| Sim::seed(seed).ranks(3).third_party(true).early_ends(true);
    assert!((0..20).any(|seed| !chain_arrives(&sim(seed), After::Exact)));
}

/// A token that the engine never uses.
const TOKEN: Token = Token::MAX;

/// Posts an operation to the fabric directly, waits for its end and returns the outcome.
fn post_and_wait(worker: &Worker, post: impl Fn() -> Result<Accepted, Refused>) -> Result<u64, Cause> {
    assert_eq!(post(), Ok(Accepted::Started));
    let mut end = None;
    while end.is_none() {
        worker.fabric().poll(&mut |token, outcome| {
            assert_eq!((token, end.is_none()), (TOKEN, true));
            end = Some(outcome);
        });
    }
    end.unwrap()
}

/// Returns two results: true if the bytes of a put are visible in the target's memory when the
/// flush after it has ended, and true if they are visible when the put itself has ended.
fn visible_after_flush(sim: &Sim) -> (bool, bool) {
    let seen = run_well(sim, |worker| {
        let mut seen = (true, true);
        if worker.rank().0 == 0 {
            let bytes = pattern(1, 64);
            put_and_wait(worker, bootstrap_memory(1, 0), &bytes);
            seen.1 = peek(worker, bootstrap_memory(1, 0), 64) == bytes;
            post_and_wait(worker, || worker.fabric().flush(&|| TOKEN, Rank(1))).unwrap();
            seen.0 = peek(worker, bootstrap_memory(1, 0), 64) == bytes;
        }
        barrier(worker, 0, 0)?;
        Ok(seen)
    });
    seen[0]
}

fn put_and_wait(worker: &Worker, to: GlobalAddress, bytes: &[u8]) {
    // SAFETY: the bytes are borrowed until the operation has ended.
    let put = post_and_wait(worker, || unsafe {
        worker.fabric().put(&|| TOKEN, to, bytes.as_ptr(), bytes.len() as u64)
    });
    assert_eq!(put, Ok(0));
}

/// Returns the present bytes of another rank, read through mapped memory.
fn peek(worker: &Worker, at: GlobalAddress, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    read_own(worker.fabric().map(at, len as u64).unwrap().as_ptr(), &mut bytes);
    bytes
}

#[test]
fn a_flush_ends_after_everything_before_it_is_visible() {
    let mut early = 0;
    for seed in 0..SEEDS {
        let sim = Sim::seed(seed).map(true).remote_completion(seed % 2 == 0);
        let (when_flushed, when_ended) = visible_after_flush(&sim);
        assert!(when_flushed, "seed {seed}");
        assert!(when_ended || seed % 2 == 1, "seed {seed}: completion should mean visibility");
        early += u64::from(!when_ended);
    }
    assert!(early > SEEDS / 4, "local completion should often come before the bytes: {early}");
}

#[test]
fn broken_promise_an_early_flush_ends_before_the_bytes_arrive() {
    let sim = |seed| Sim::seed(seed).map(true).remote_completion(false).early_flush(true);
    assert!((0..50).any(|seed| !visible_after_flush(&sim(seed)).0));
}

#[test]
fn a_flush_reports_an_operation_that_failed_after_its_local_end() {
    let mut reported = 0;
    for seed in 0..SEEDS {
        let failed = run_well(&Sim::seed(seed).remote_completion(false), |worker| {
            let place = GlobalAddress::new(Rank(1), layout::LOCAL.start); // the address of the first allocation
            if worker.rank().0 == 1 {
                let offset = worker.registry().allocate_local(64)?;
                assert_eq!(offset, place.offset());
                worker.raise(signal(0, 0), 1)?;
                worker.platform().compute(2_000 + seed * 40);
                worker.registry().free(offset)?;
                return barrier(worker, 1, 0).map(|()| None);
            }
            wait(worker, 0, 1)?;
            put_and_wait(worker, place, &[9; 64]);
            let failed = post_and_wait(worker, || worker.fabric().flush(&|| TOKEN, Rank(1))).err();
            barrier(worker, 1, 0).map(|()| failed)
        });
        if let Some(cause) = &failed[0] {
            assert!(matches!(cause, Cause::Stale { .. }), "seed {seed}: {cause}");
            reported += 1;
        }
    }
    assert!((10..SEEDS).contains(&reported), "{reported}");
}

#[test]
fn a_copy_does_not_end_before_its_passive_source_was_read() {
    for seed in 0..50 {
        let sim = Sim::seed(seed).ranks(3).third_party(true).remote_completion(false).passive_targets(true);
        run_well(&sim, |worker| {
            if worker.rank().0 == 0 {
                let copy =
                    || worker.fabric().copy(&|| TOKEN, bootstrap_memory(1, 0), bootstrap_memory(2, 0), 64);
                assert_eq!(post_and_wait(worker, copy), Ok(0));
                assert!(worker.platform().now_ns() >= 50_000, "seed {seed}");
            } else if worker.rank().0 == 1 {
                worker.platform().compute(50_000);
            }
            barrier(worker, 0, 0)
        });
    }
}

#[test]
fn bytes_of_a_passive_source_that_is_read_late_take_the_latency() {
    for seed in 0..50 {
        let sim = Sim::seed(seed).passive_targets(true);
        let at = run_well(&sim, |worker| {
            let mut at = 50_000;
            if worker.rank().0 == 0 {
                let mut bytes = [0; 64];
                worker.get(bootstrap_memory(1, 0), &mut bytes)?;
                at = worker.platform().now_ns();
            } else {
                worker.platform().compute(at);
            }
            barrier(worker, 0, 0)?;
            Ok(at)
        });
        assert!(at[0] >= at[1] + 1_000, "seed {seed}: {at:?}");
    }
}

/// Returns true if the payload of a signal line is visible whenever its counter is.
fn lines_arrive_whole(sim: &Sim) -> bool {
    let seen = run_well(sim, |worker| {
        let mut good = true;
        for round in 1..=10_u64 {
            if worker.rank().0 == 0 {
                let SignalLine::Via(line) = worker.fabric().line(signal(1, 3))? else { unreachable!() };
                let payload = LinePayload::of(&[round; 6]);
                while line.fabric.write_line(line.signal, payload, round) == Err(Refused::Again) {
                    worker.relax("line")?;
                }
                wait(worker, 0, round)?;
            } else {
                let cell = worker.fabric().own_signal(3)?;
                wait(worker, 3, round)?;
                good &= cell.read_payload(worker.fabric(), round) == Some([round; 6]);
                worker.raise(signal(0, 0), 1)?;
            }
        }
        barrier(worker, 1, 0)?;
        Ok(good)
    });
    seen.into_iter().all(|good| good)
}

#[test]
fn a_signal_line_arrives_with_its_payload() {
    for seed in 0..SEEDS {
        let sim = Sim::seed(seed).again_storm(0.2).passive_targets(seed % 2 == 0);
        assert!(lines_arrive_whole(&sim), "seed {seed}");
    }
}

#[test]
fn broken_promise_torn_lines_arrive_without_their_payload() {
    assert!((0..20).any(|seed| !lines_arrive_whole(&Sim::seed(seed).torn_lines(true))));
}

#[test]
fn a_line_that_was_overtaken_does_not_overwrite_the_later_one() {
    for seed in 0..SEEDS {
        run_well(&Sim::seed(seed), |worker| {
            if worker.rank().0 == 0 {
                for value in 1..=5_u64 {
                    let written = worker.fabric().write_line(signal(1, 3), LinePayload::of(&value), value);
                    assert_eq!(written, Ok(()));
                }
                return Ok(());
            }
            let mut last = 0;
            while last < 5 {
                let now = worker.fabric().read_signal(signal(1, 3));
                assert!(now >= last, "seed {seed}: from {last} back to {now}");
                last = now;
            }
            worker.platform().compute(100_000);
            assert_eq!(worker.fabric().read_line(signal(1, 3), 5).map(|line| line.to()), Some(5_u64));
            Ok(())
        });
    }
}

/// Returns true if rank 1 sees the second of two signals, raised one after the other by rank 0, before the first.
fn second_first(sim: &Sim) -> bool {
    let seen = run_well(sim, |worker| {
        if worker.rank().0 == 0 {
            worker.fabric().raise(&|| TOKEN, signal(1, 0), 1).unwrap();
            worker.fabric().raise(&|| TOKEN, signal(1, 1), 1).unwrap();
            return barrier(worker, 2, 0).map(|()| false);
        }
        wait(worker, 1, 1)?;
        let second_first = worker.fabric().read_signal(signal(1, 0)) == 0;
        barrier(worker, 2, 0).map(|()| second_first)
    });
    seen[1]
}

#[test]
fn operations_overtake_each_other_only_if_reordering_is_on() {
    let overtaken =
        |reorder| (0..SEEDS).filter(|&seed| second_first(&Sim::seed(seed).reorder(reorder))).count();
    assert_eq!(overtaken(false), 0);
    assert!(overtaken(true) > 10);
}

#[test]
fn the_bytes_of_one_put_arrive_in_any_order() {
    let seen_first = |seed| {
        let sim = Sim::seed(seed).bandwidth(100_000_000);
        let seen = run_well(&sim, |worker| {
            let mut seen = (0, 0);
            if worker.rank().0 == 0 {
                worker.put(bootstrap_memory(1, 0), &[1; 1_000])?;
                worker.raise(signal(1, 0), 1)?;
            } else {
                while worker.fabric().read_signal(signal(1, 0)) == 0 {
                    let bytes = [own_byte(worker, 0)?, own_byte(worker, 999)?];
                    seen = (seen.0 | (bytes[0] & !bytes[1]), seen.1 | (bytes[1] & !bytes[0]));
                }
            }
            Ok(seen)
        });
        seen[1]
    };
    let all: Vec<(u8, u8)> = (0..40).map(seen_first).collect();
    assert!(all.iter().any(|seen| seen.0 == 1) && all.iter().any(|seen| seen.1 == 1), "{all:?}");
}

fn own_byte(worker: &Worker, offset: u64) -> tasuki_core::base::Result<u8> {
    let mut byte = [0];
    read_own(worker.own_place(bootstrap_memory(1, offset), 1)?, &mut byte);
    Ok(byte[0])
}

#[test]
fn operations_started_before_leaving_arrive() {
    for seed in 0..2 * SEEDS {
        let with_line = seed % 4 == 0;
        let report = run(&Sim::seed(seed).remote_completion(seed % 3 == 0), |worker| {
            if worker.rank().0 == 0 {
                worker.put_signal(bootstrap_memory(1, 0), &[7; 8], signal(1, 0), 1)?;
                if with_line {
                    let written = worker.fabric().write_line(signal(1, 1), LinePayload::of(&seed), 1);
                    assert_eq!(written, Ok(()));
                }
                return Ok(());
            }
            for index in 0..=u32::from(with_line) {
                let cell = worker.fabric().own_signal(index)?;
                worker.wait_signal(cell, 1, Some(Rank(0)), &|| "wait".into())?;
            }
            assert_eq!(load(worker, bootstrap_memory(1, 0))?, u64::from_ne_bytes([7; 8]));
            Ok(())
        });
        assert_eq!(report.missed_wakeups, 0, "seed {seed}");
        for value in report.values().unwrap() {
            value.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
}
