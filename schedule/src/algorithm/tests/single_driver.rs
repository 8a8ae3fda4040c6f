//! Schedules by one list: that each algorithm is right in that form, too, and what it takes.

use crate::algorithm::ALGORITHMS;
use crate::shape::{CollectiveKind, Shape};
use crate::{Fault, Schedule, StepKind};

fn named(operation: CollectiveKind, name: &str, shape: &Shape) -> Schedule {
    let mut all = ALGORITHMS.iter().filter(|one| one.operation == operation);
    let algorithm = all.find(|one| one.name == name).expect("it is there");
    algorithm.schedule(shape, 2)
}

/// A proof that takes more is left to fewer ranks.
const LARGE_BYTES: u64 = 1 << 21;

fn prove_all(ranks: usize, bytes: u64) {
    for algorithm in ALGORITHMS.iter().filter(|one| one.operation != CollectiveKind::Neighbours) {
        for in_order in [false, true] {
            let plain = Shape::new(algorithm.operation, ranks, ranks / 3, bytes);
            let shape = Shape { in_order, ..plain };
            if !(algorithm.fits)(&shape) {
                continue;
            }
            for by in [shape.root, ranks - 1] {
                let rooted = algorithm.schedule(&shape, 2).driven_by(by);
                if rooted.check_bytes(LARGE_BYTES) >= LARGE_BYTES {
                    continue;
                }
                if let Err(fault) = rooted.check() {
                    panic!("{} of {shape:?} by rank {by}: {fault}", algorithm.name);
                }
                let idle = (0..ranks).filter(|&rank| rank != by);
                assert!(idle.clone().all(|rank| rooted.part(rank).steps().len() <= 1), "{}", algorithm.name);
            }
        }
    }
}

#[test]
fn all_algorithms_are_right_by_one_list() {
    for ranks in 1..=6 {
        prove_all(ranks, 333);
    }
}

#[test]
fn all_algorithms_are_right_by_one_list_among_more() {
    prove_all(11, 64);
}

/// J9: what moves is what the spread form moves, each once.
#[test]
fn j9_the_list_has_the_moves_of_all() {
    let shape = Shape::new(CollectiveKind::Bcast, 7, 0, 40);
    let spread = named(CollectiveKind::Bcast, "binary", &shape);
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
    let rooted = spread.driven_by(0);
    assert_eq!(moves(&rooted), moves(&spread));
    // The tree as the paper prints it, but the copies that come after none of the list wait for all to have started.
    let list: Vec<(u32, u32, u64)> = rooted
        .part(0)
        .steps()
        .iter()
        .filter_map(|step| match step.action {
            StepKind::Copy { from, to, .. } => {
                let is_done =
                    rooted.part(0).counters()[step.trigger.signal.index()].name == "commands are done";
                Some((to.rank, from.rank, if is_done { step.trigger.count } else { 0 }))
            }
            _ => None,
        })
        .collect();
    assert_eq!(list, [(1, 0, 0), (2, 0, 0), (3, 1, 1), (4, 1, 1), (5, 2, 2), (6, 2, 2)]);
}

/// J12: 64 bytes a copy, and as much for each four of them to tell ranks; 8 for each of three signals and the start.
#[test]
fn j12_a_command_a_copy() {
    for ranks in [7, 127, 100_000] {
        let shape = Shape::new(CollectiveKind::Bcast, ranks, 0, 8192);
        let part = named(CollectiveKind::Bcast, "binary", &shape).driven_by(0).part(0);
        let copies = part.steps().iter().filter(|step| step.action != StepKind::Nothing).count();
        let inner = (ranks - 2) / 2; // they have children, and the one that runs the list is not told
        assert_eq!((copies, part.steps().len() - copies), (ranks - 1, inner.div_ceil(2)), "{ranks} ranks");
    }
}

/// By a rank that is not there nothing is done.
#[test]
fn a_list_that_nobody_runs_is_refused() {
    let shape = Shape::new(CollectiveKind::Bcast, 4, 0, 40);
    let fault = named(CollectiveKind::Bcast, "binary", &shape).driven_by(4).check().err().map(|fault| *fault);
    assert!(matches!(fault, Some(Fault::WrongBytes { .. })), "{fault:?}");
}
