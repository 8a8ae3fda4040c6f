//! The heat equation in virtual time: rows that overtake each other and ranks that are late change nothing.
#![allow(clippy::unwrap_used)]

use tasuki::{Sim, sim};
use tasuki_examples::heat::{Plate, Way, serial, solve_by};

/// Whether the solution on simulated ranks is the serial run's, bit for bit, however the rows are exchanged.
fn is_exact(how: Sim, plate: Plate, iterations: usize) -> bool {
    let mut ways = [Way::Puts, Way::Messages, Way::Commands].into_iter();
    ways.all(|way| is_exact_by(way, how.clone(), plate, iterations))
}

fn is_exact_by(way: Way, how: Sim, plate: Plate, iterations: usize) -> bool {
    let outcome = sim(how, |job| solve_by(way, job, plate, iterations, |_| ())).unwrap();
    let solution = outcome.values.into_iter().flatten().flatten().next().unwrap();
    solution.field.difference(&serial(plate, iterations, |_| ())).is_none()
}

#[test]
fn every_seed_gives_the_bits_of_the_serial_run() {
    let plate = Plate::new(11, 13).unwrap();
    for seed in 0..40 {
        for ranks in [2, 3, 5] {
            assert!(is_exact(Sim::seed(seed).ranks(ranks), plate, 30), "seed {seed}, {ranks} ranks");
        }
    }
}

#[test]
fn the_poorest_network_gives_the_same_bits() {
    let plate = Plate::new(9, 7).unwrap();
    for seed in 0..10 {
        let how = Sim::seed(seed).ranks(4).bare().jitter_ns(20_000).again_storm(0.05);
        assert!(is_exact(how, plate, 20), "seed {seed}");
    }
}

#[test]
fn hundreds_of_ranks_give_the_same_bits_even_those_without_rows() {
    let plate = Plate::new(150, 40).unwrap();
    assert!(is_exact(Sim::seed(1).ranks(200), plate, 20));
}
