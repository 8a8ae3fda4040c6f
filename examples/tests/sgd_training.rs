//! The training on ranks that are threads or simulated: losses and weights equal those of the serial run in every
//! bit.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use tasuki::{Sim, local, sim};
use tasuki_examples::sgd::{Recipe, ReductionMethod, Task, Training, serial, train};
use tempfile::TempDir;

const METHODS: [ReductionMethod; 2] = [ReductionMethod::Blocking, ReductionMethod::Persistent];

/// A training whose batch no number of ranks divides.
fn recipe() -> Recipe {
    let task = Task { inputs: 7, classes: 3, seed: 4 };
    Recipe { task, hidden: 11, batch: 75, steps: 40, rate: 0.3 }
}

/// Checks that the training equals the serial one and that the network learned something.
fn check_training(training: &Training) {
    let (losses, weights) = serial(&recipe(), |_| ());
    assert_eq!(training.losses, losses);
    assert_eq!([&training.network.first, &training.network.last].map(|layer| layer.weights()), weights);
    assert!(losses[39] < 0.8 * losses[0], "{losses:?}");
    assert!(training.accuracy(&recipe().task) > 0.5);
}

#[test]
fn losses_and_weights_equal_the_serial_run_on_threads() {
    for method in METHODS {
        for ranks in [1, 2, 3, 7] {
            let trainings = local(ranks, |job| train(method, job, &recipe(), |_| ())).unwrap();
            trainings.iter().for_each(check_training);
        }
    }
}

#[test]
fn losses_and_weights_equal_the_serial_run_in_the_simulator() {
    for seed in 0..3 {
        for method in METHODS {
            let outcome = sim(Sim::seed(seed).ranks(3), |job| train(method, job, &recipe(), |_| ())).unwrap();
            check_training(outcome.values[2].as_ref().unwrap());
        }
    }
}

#[test]
fn all_ranks_stop_when_the_weights_diverge() {
    let wild = Recipe { rate: 1e6, ..recipe() };
    let trainings = local(3, |job| train(ReductionMethod::Persistent, job, &wild, |_| ())).unwrap();
    let steps: Vec<usize> = trainings.iter().map(|training| training.losses.len()).collect();
    assert!(steps[0] < 40 && steps.iter().all(|&step| step == steps[0]), "{steps:?}");
}

fn run(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_sgd");
    let output = Command::new(program).args(arguments).current_dir(folder.path()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_program_prints_both_methods_and_draws_the_loss() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(&folder, &["--steps", "20", "--hidden", "16"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("blocking calls") && out.contains("persistent plans"), "{out}");
    assert!(out.contains("losses and weights bit for bit as the serial run; see sgd.svg"), "{out}");
    assert!(std::fs::read_to_string(folder.path().join("sgd.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn wrong_arguments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, named) in [
        (["--hidden", "0"], 2, "1..=4096"),
        (["--rate", "fast"], 2, "not a number"),
        (["--rate", "-1"], 2, "above 0"),
        (["--by", "post"], 2, "blocking, persistent, both"),
        (["--step", "3"], 2, "--steps"),
        (["--output", "no/sgd.svg"], 1, "cannot write no/sgd.svg: No such file or directory"),
        (["--rate", "1000"], 1, "choose a --rate below 1000"),
    ] {
        let (found, _, err) = run(&folder, &arguments);
        assert!(found == Some(code) && err.contains(named), "{arguments:?}: {err}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
