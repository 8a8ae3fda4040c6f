//! Compares the selected algorithms with measurements.

use super::*;
use crate::CollectiveKind::{self, *};
use crate::Placement;
use crate::algorithm::ALGORITHMS;
use crate::collective_names::COLLECTIVES;

/// The selection on a virtual machine with two processors.
fn two_processors(ranks: usize) -> Selection {
    Selection { per_processor: ranks.div_ceil(2), ..Selection::default() }
}

/// The quickest algorithm on that machine, or one within a tenth of the quickest, with values written and read:
/// collective, ranks, bytes (docs/design/collectives/schedules.md).
const MEASURED: &[(CollectiveKind, usize, u64, &str)] = &[
    (Barrier, 2, 0, "dissemination"),
    (Barrier, 4, 0, "dissemination"),
    (Barrier, 8, 0, "central"),
    (Barrier, 16, 0, "central"),
    (Bcast, 2, 8, "eager"),
    (Bcast, 4, 8, "eager"),
    (Bcast, 8, 8, "eager"),
    (Bcast, 4, 2048, "eager"),
    (Bcast, 8, 2048, "staged"),
    (Bcast, 16, 2048, "staged"),
    (Bcast, 2, 32 << 10, "binomial"),
    (Bcast, 4, 32 << 10, "staged"),
    (Bcast, 8, 32 << 10, "staged"),
    (Bcast, 16, 256 << 10, "staged"),
    (Bcast, 2, 1 << 20, "binomial"),
    (Bcast, 4, 1 << 20, "binomial"),
    (Bcast, 8, 1 << 20, "binomial"),
    (Bcast, 2, 8 << 20, "binomial"),
    (Bcast, 4, 8 << 20, "binomial"),
    (Bcast, 8, 8 << 20, "binomial"),
    (Reduce, 2, 8, "flat"),
    (Reduce, 4, 2048, "flat"),
    (Reduce, 8, 2048, "flat"),
    (Reduce, 16, 8, "flat"),
    (Reduce, 4, 32 << 10, "tree"),
    (Reduce, 8, 32 << 10, "tree"),
    (Reduce, 16, 32 << 10, "tree"),
    (Reduce, 8, 1 << 20, "direct"),
    (Allreduce, 4, 8, "flat"),
    (Allreduce, 8, 8, "flat"),
    (Allreduce, 16, 2048, "flat"),
    (Allreduce, 2, 32 << 10, "rabenseifner"),
    (Allreduce, 4, 32 << 10, "rabenseifner"),
    (Allreduce, 8, 32 << 10, "tree"),
    (Allreduce, 2, 1 << 20, "rabenseifner"),
    (Allreduce, 4, 1 << 20, "rabenseifner"),
    (Allreduce, 8, 1 << 20, "rabenseifner"),
    (Allgather, 2, 8, "bruck"),
    (Allgather, 4, 8, "flat"),
    (Allgather, 8, 8, "flat"),
    (Allgather, 16, 8, "flat"),
    (Allgather, 4, 32 << 10, "recursive doubling"),
    (Allgather, 8, 32 << 10, "recursive doubling"),
    (Allgather, 4, 512 << 10, "recursive doubling"),
    (Allgather, 8, 512 << 10, "recursive doubling"),
    (Gather, 8, 8, "flat"),
    (Gather, 8, 512 << 10, "flat"),
    (Scatter, 2, 8, "flat"),
    (Scatter, 4, 8, "binomial"),
    (Scatter, 8, 2048, "binomial"),
    (Scatter, 16, 2048, "binomial"),
    (Scatter, 8, 32 << 10, "flat"),
    (Scatter, 16, 32 << 10, "flat"),
    (Alltoall, 4, 8, "bruck"),
    (Alltoall, 8, 8, "bruck"),
    (Alltoall, 16, 8, "bruck"),
    (Alltoall, 8, 2048, "pairwise"),
    (Alltoall, 16, 2048, "pairwise"),
    (Alltoall, 8, 512 << 10, "pairwise"),
    (ReduceScatter, 4, 8, "pairwise"),
    (ReduceScatter, 8, 32 << 10, "pairwise"),
    (ReduceScatter, 8, 512 << 10, "pairwise"),
];

#[test]
fn the_measured_quickest_algorithm_is_selected() {
    for &(collective, ranks, bytes, name) in MEASURED {
        let chosen = two_processors(ranks).choose(&Shape::new(collective, ranks, 0, bytes));
        assert_eq!(chosen.name, name, "{collective:?} of {bytes} bytes among {ranks}");
    }
}

/// The quickest algorithm without helpers: collective, ranks, bytes.
const MEASURED_WITHOUT_HELPER: &[(CollectiveKind, usize, u64, &str)] = &[
    (Bcast, 2, 8, "copy in copy out"),
    (Bcast, 2, 2048, "copy in copy out"),
    (Bcast, 2, 4 << 10, "binomial"),
    (Gather, 2, 8 << 10, "flat"),
    (Scatter, 2, 8 << 10, "flat"),
    (Bcast, 4, 8 << 10, "copy in copy out"),
    (Bcast, 4, 1 << 20, "binomial"),
    (Bcast, 8, 1 << 20, "copy in copy out"),
    (Allgather, 2, 64 << 10, "copy in copy out"),
    (Allgather, 4, 256 << 10, "recursive doubling"),
    (Alltoall, 8, 64 << 10, "copy in copy out"),
    (Alltoall, 2, 256 << 10, "pairwise"),
    (Reduce, 2, 2048, "copy in copy out"),
    (Reduce, 2, 8 << 10, "direct"),
    (Reduce, 2, 1 << 20, "direct"),
    (Reduce, 8, 8 << 10, "copy in copy out"),
    (Reduce, 4, 32 << 10, "direct"),
    (Reduce, 16, 64 << 10, "direct"),
    (Allreduce, 2, 1 << 20, "reduce scatter allgather"),
];

#[test]
fn without_helpers_long_blocks_are_read_in_place() {
    for &(collective, ranks, bytes, name) in MEASURED_WITHOUT_HELPER {
        let selection = Selection { has_no_helper: true, ..two_processors(ranks) };
        let chosen = selection.choose(&Shape::new(collective, ranks, 0, bytes));
        assert_eq!(chosen.name, name, "{} of {ranks} ranks, {bytes} bytes", collective.name());
    }
}

#[test]
fn with_a_processor_for_each_rank_scalable_algorithms_are_selected() {
    let chosen =
        |collective, ranks, bytes| Selection::default().choose(&Shape::new(collective, ranks, 0, bytes)).name;
    assert_eq!(chosen(Barrier, 1000, 0), "dissemination");
    assert_eq!(chosen(Bcast, 1000, 8), "binomial");
    assert_eq!(chosen(Bcast, 64, 64 << 20), "scatter+allgather");
    assert_eq!(chosen(Allreduce, 1000, 8), "recursive doubling");
    assert_eq!(chosen(Allreduce, 64, 64 << 20), "rabenseifner");
    assert_eq!(chosen(Allgather, 1000, 8), "bruck");
    assert_eq!(chosen(Alltoall, 64, 1 << 20), "pairwise");
}

#[test]
fn with_several_ranks_on_each_node_two_levels_are_selected() {
    let placed = |per_node, collective, ranks, bytes| {
        let placement = Placement { per_node, ..Placement::SPREAD };
        let shape = Shape { placement, ..Shape::new(collective, ranks, 0, bytes) };
        Selection::default().choose(&shape).name
    };
    for collective in [Bcast, Reduce, Allreduce, Allgather] {
        assert_eq!(placed(12, collective, 768, 8), "two-level", "{collective:?}");
        // On one node, or with an unknown placement, there is no work between nodes.
        for bytes in [8, 1024, 1 << 20] {
            let usual = Selection::default().choose(&Shape::new(collective, 16, 0, bytes)).name;
            assert_eq!((placed(16, collective, 16, bytes), placed(1, collective, 16, bytes)), (usual, usual));
        }
    }
    assert_eq!(placed(16, Barrier, 1024, 0), "two-level");
    assert_eq!(placed(16, Allreduce, 1024, 16 << 20), "rabenseifner");
}

#[test]
fn every_shape_has_an_algorithm_with_a_finite_estimate() {
    for (_, collective) in COLLECTIVES.iter().filter(|(_, collective)| *collective != Neighbours) {
        for ranks in [1, 2, 3, 8, 33, 100, 1 << 24] {
            for bytes in [0, 8, 4096, 1 << 24] {
                for in_order in [false, true] {
                    for selection in [Selection::default(), two_processors(ranks)] {
                        let shape = Shape { in_order, ..Shape::new(*collective, ranks, 0, bytes) };
                        let chosen = selection.choose(&shape);
                        assert!((chosen.fits)(&shape), "{shape:?}");
                        let time = selection.estimate(chosen, &shape).expect("its work is known");
                        assert!(time.is_finite() && time >= 0.0, "{shape:?}: {time}");
                    }
                }
            }
        }
    }
}

#[test]
fn higher_costs_give_longer_estimates() {
    let dear =
        |name| Selection { costs: CostParameters::default().with(name, 1).unwrap(), ..two_processors(8) };
    let shape = Shape::new(Allreduce, 8, 0, 1 << 16);
    for algorithm in Allreduce.algorithms().filter(|algorithm| algorithm.work(&shape).is_some()) {
        let time = |selection: Selection| selection.estimate(algorithm, &shape).unwrap();
        let usual = time(two_processors(8));
        assert!(time(dear("turn_ns")) < usual && time(dear("step_ns")) < usual, "{}", algorithm.name);
        assert!(time(dear("copied_per_us")) > usual && time(dear("combined_per_us")) > usual);
    }
}

#[test]
fn a_forced_algorithm_is_selected_where_it_fits() {
    for algorithm in ALGORITHMS.iter().filter(|one| one.collective != Neighbours) {
        let text = format!("{}={}", algorithm.collective.name(), algorithm.name);
        let forced = Selection { forced: text.parse().unwrap(), ..Selection::default() };
        for ranks in [1, 4, 7] {
            let shape = Shape { in_order: true, ..Shape::new(algorithm.collective, ranks, 0, 64) };
            let fits = (algorithm.fits)(&shape);
            let usual = Selection::default().choose(&shape).name;
            assert_eq!(forced.choose(&shape).name, if fits { algorithm.name } else { usual }, "{text}");
        }
    }
}

/// What the cost model selects in the combining order, with a processor for each rank and helpers: collective, ranks,
/// bytes.
const IN_ORDER: &[(CollectiveKind, usize, u64, &str)] = &[
    (Reduce, 8, 8, "flat"),
    (Reduce, 8, 1 << 20, "direct"),
    (Reduce, 1024, 8, "tree"),
    (Reduce, 1024, 1 << 20, "tree"),
    (Allreduce, 8, 8, "flat"),
    (Allreduce, 8, 1 << 20, "pairwise"),
    (Allreduce, 32, 1 << 20, "pairwise"),
    (Allreduce, 33, 1 << 20, "tree"),
    (Allreduce, 1024, 8, "tree"),
    (ReduceScatter, 1024, 8, "pairwise"),
    (Scan, 8, 1 << 20, "tree"),
    (Exscan, 1024, 8, "tree"),
];

#[test]
fn in_the_combining_order_algorithms_that_keep_it_are_selected() {
    for &(collective, ranks, bytes, name) in IN_ORDER {
        let shape = Shape { in_order: true, ..Shape::new(collective, ranks, 0, bytes) };
        let chosen = Selection::default().choose(&shape);
        assert_eq!(chosen.name, name, "{} of {ranks} ranks, {bytes} bytes", collective.name());
    }
}
