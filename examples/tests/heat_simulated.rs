//! The heat equation in virtual time: rows that overtake each other and late ranks do not change the result.
#![allow(clippy::unwrap_used)]

use tasuki::{Sim, sim};
use tasuki_examples::heat::{ExchangeMethod, Plate, serial, solve_by};

/// Returns true if the solution on simulated ranks equals the serial run in every bit, for all methods to exchange
/// rows.
fn is_exact(sim_options: Sim, plate: Plate, iterations: usize) -> bool {
    let mut methods = [ExchangeMethod::Puts, ExchangeMethod::Messages, ExchangeMethod::Commands].into_iter();
    methods.all(|method| is_exact_by(method, sim_options.clone(), plate, iterations))
}

fn is_exact_by(method: ExchangeMethod, sim_options: Sim, plate: Plate, iterations: usize) -> bool {
    let outcome = sim(sim_options, |job| solve_by(method, job, plate, iterations, |_| ())).unwrap();
    let solution = outcome.values.into_iter().flatten().flatten().next().unwrap();
    solution.field.difference(&serial(plate, iterations, |_| ())).is_none()
}

#[test]
fn every_seed_gives_the_result_of_the_serial_run() {
    let plate = Plate::new(11, 13).unwrap();
    for seed in 0..40 {
        for ranks in [2, 3, 5] {
            assert!(is_exact(Sim::seed(seed).ranks(ranks), plate, 30), "seed {seed}, {ranks} ranks");
        }
    }
}

#[test]
fn a_network_with_jitter_and_refusals_gives_the_same_result() {
    let plate = Plate::new(9, 7).unwrap();
    for seed in 0..10 {
        let sim_options = Sim::seed(seed).ranks(4).bare().jitter_ns(20_000).again_storm(0.05);
        assert!(is_exact(sim_options, plate, 20), "seed {seed}");
    }
}

#[test]
fn hundreds_of_ranks_some_without_rows_give_the_same_result() {
    let plate = Plate::new(150, 40).unwrap();
    assert!(is_exact(Sim::seed(1).ranks(200), plate, 20));
}
