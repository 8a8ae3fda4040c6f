//! Schedules driven by one rank: each algorithm is proven in that form, too, and its size is checked.

use crate::algorithm::ALGORITHMS;
use crate::shape::{CollectiveKind, Shape};
use crate::{Fault, Schedule, StepKind};

fn named(collective: CollectiveKind, name: &str, shape: &Shape) -> Schedule {
    let mut all = ALGORITHMS.iter().filter(|one| one.collective == collective);
    let algorithm = all.find(|one| one.name == name).expect("it is there");
    algorithm.schedule(shape, 2)
}

/// A proof that takes more memory is left out.
const LARGE_BYTES: u64 = 1 << 21;

fn prove_all(ranks: usize, bytes: u64) {
    for algorithm in ALGORITHMS.iter().filter(|one| one.collective != CollectiveKind::Neighbours) {
        for in_order in [false, true] {
            let plain = Shape::new(algorithm.collective, ranks, ranks / 3, bytes);
            let shape = Shape { in_order, ..plain };
            if !(algorithm.fits)(&shape) {
                continue;
            }
            for by in [shape.root, ranks - 1] {
                let driven = algorithm.schedule(&shape, 2).driven_by(by);
                if driven.check_bytes(LARGE_BYTES) >= LARGE_BYTES {
                    continue;
                }
                if let Err(fault) = driven.check() {
                    panic!("{} of {shape:?} by rank {by}: {fault}", algorithm.name);
                }
                let others = (0..ranks).filter(|&rank| rank != by);
                assert!(
                    others.clone().all(|rank| driven.part(rank).steps().len() <= 1),
                    "{}",
                    algorithm.name
                );
            }
        }
    }
}

#[test]
fn all_algorithms_are_proven_when_driven_by_one_rank() {
    for ranks in 1..=6 {
        prove_all(ranks, 333);
    }
}

#[test]
fn all_algorithms_are_proven_when_driven_by_one_of_11_ranks() {
    prove_all(11, 64);
}

/// J9: the driver moves what the original schedule moves, each copy once.
#[test]
fn j9_the_driver_makes_the_copies_of_all_ranks() {
    let shape = Shape::new(CollectiveKind::Bcast, 7, 0, 40);
    let original = named(CollectiveKind::Bcast, "binary", &shape);
    let moves = |schedule: &Schedule| {
        let parts = (0..7).map(|rank| schedule.part(rank));
        let mut all: Vec<String> = parts
            .flat_map(|part| part.steps().to_vec())
            .filter(|step| step.action != StepKind::Nothing)
            .map(|step| format!("{:?}", step.action))
            .collect();
        all.sort_unstable();
        all
    };
    let driven = original.driven_by(0);
    assert_eq!(moves(&driven), moves(&original));
    // The published tree, except that the copies without a predecessor wait until all ranks have started.
    let list: Vec<(u32, u32, u64)> = driven
        .part(0)
        .steps()
        .iter()
        .filter_map(|step| match step.action {
            StepKind::Copy { from, to, .. } => {
                let is_done =
                    driven.part(0).signal_decls()[step.trigger.signal.index()].name == "steps are done";
                Some((to.rank, from.rank, if is_done { step.trigger.count } else { 0 }))
            }
            _ => None,
        })
        .collect();
    assert_eq!(list, [(1, 0, 0), (2, 0, 0), (3, 1, 1), (4, 1, 1), (5, 2, 2), (6, 2, 2)]);
}

/// J12: 64 bytes for a copy, 64 bytes for each two ranks to signal, and 8 bytes for each of three signals and the
/// start.
#[test]
fn j12_the_list_has_one_step_for_each_copy() {
    for ranks in [7, 127, 100_000] {
        let shape = Shape::new(CollectiveKind::Bcast, ranks, 0, 8192);
        let part = named(CollectiveKind::Bcast, "binary", &shape).driven_by(0).part(0);
        let copies = part.steps().iter().filter(|step| step.action != StepKind::Nothing).count();
        let inner = (ranks - 2) / 2; // they have children; the driver is not signalled
        assert_eq!((copies, part.steps().len() - copies), (ranks - 1, inner.div_ceil(2)), "{ranks} ranks");
    }
}

/// A schedule driven by a rank that does not exist does nothing.
#[test]
fn a_list_without_a_driver_is_refused() {
    let shape = Shape::new(CollectiveKind::Bcast, 4, 0, 40);
    let fault = named(CollectiveKind::Bcast, "binary", &shape).driven_by(4).check().err().map(|fault| *fault);
    assert!(matches!(fault, Some(Fault::WrongBytes { .. })), "{fault:?}");
}
