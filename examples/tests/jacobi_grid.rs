//! Jacobi's iteration on ranks that are threads, simulated, or processes: equal to the serial run in every bit.
#![allow(clippy::unwrap_used)]

use tasuki::{Sim, local, processes, sim};
use tasuki_examples::jacobi::{serial, solve};

/// Rows, columns and steps: tiles of different sizes, plates with fewer rows or columns than the grid of ranks.
const PLATES: &[([usize; 2], usize)] =
    &[([1, 1], 3), ([8, 8], 40), ([5, 13], 33), ([1, 9], 20), ([2, 3], 10)];

#[test]
fn every_cell_equals_the_serial_run_on_threads() {
    for &(sides, steps) in PLATES {
        for ranks in 1..=9 {
            let mut outcomes = local(ranks, |job| solve(job, sides, steps)).unwrap();
            assert!(outcomes[1..].iter().all(Option::is_none));
            assert_eq!(outcomes.swap_remove(0).unwrap(), serial(sides, steps), "{sides:?} on {ranks} ranks");
        }
    }
}

#[test]
fn every_cell_equals_the_serial_run_with_every_seed() {
    for seed in 0..10 {
        for ranks in [4, 6] {
            let outcome = sim(Sim::seed(seed).ranks(ranks), |job| solve(job, [7, 10], 25)).unwrap();
            let solution = outcome.values.into_iter().flatten().flatten().next().unwrap();
            assert_eq!(solution, serial([7, 10], 25), "seed {seed}, {ranks} ranks");
        }
    }
}

#[test]
fn processes_find_the_serial_result_and_rank_0_prints_it() {
    let program = processes(6, env!("CARGO_BIN_EXE_jacobi"));
    let outputs = program.args(["--side", "23", "--steps", "150"]).run().unwrap();
    let printed = outputs.iter().map(|output| std::str::from_utf8(&output.stdout).unwrap());
    let printed: Vec<&str> = printed.collect();
    assert!(printed[0].contains(" on 3 x 2 ranks, ") && printed[0].contains("equal to the serial run"));
    assert!(printed[1..].iter().all(|printed| printed.is_empty()), "{printed:?}");
}

/// A plate inside a rim of 1 becomes 1 everywhere.
#[test]
fn the_iteration_converges() {
    let solution = |steps| local(2, |job| solve(job, [9, 6], steps)).unwrap().swap_remove(0).unwrap();
    let (first, _) = solution(5);
    let (last, cells) = solution(450);
    assert!(cells.iter().all(|cell| (cell - 1.0).abs() < 1e-6), "{cells:?}");
    assert!(last < 1e-9 && first > 1e-2, "{first} {last}");
}
