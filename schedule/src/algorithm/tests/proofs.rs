//! Proves every algorithm: for all numbers of ranks up to 33 with all variations, and for many ranks if the proof grows
//! slowly. Odd sizes make uneven cuts. Memory and time of a proof grow with the square of the steps, some with the
//! cube, so larger numbers of ranks have fewer cases.

use crate::algorithm::*;
use crate::combining_order::is_demanded;
use crate::neighbour_graph::NeighbourGraph;
use crate::shape::{Counts, Placement};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes and segments.
const SIZES: [(u64, u64); 5] = [(0, 1), (1, 4), (333, 3), (1000, 1), (4097, 4)];
/// A proof that takes less memory runs for every root.
const CHEAP_BYTES: u64 = 1 << 21;
/// A proof that takes more memory is left out.
const LARGE_BYTES: u64 = 1 << 28;

/// Shapes of a collective with equal blocks of `bytes` bytes.
fn equal(collective: CollectiveKind, ranks: usize, roots: &[usize], bytes: u64) -> Vec<Shape> {
    let roots = if collective.is_rooted() { roots } else { &roots[..1] };
    let orders = if collective.combines() { &[false, true][..] } else { &[false] };
    let shape = |&root: &usize| {
        let shape = Shape::new(collective, ranks, root, bytes);
        orders.iter().map(move |&in_order| Shape { in_order, ..shape.clone() })
    };
    roots.iter().flat_map(shape).collect()
}

/// Shapes with uneven blocks, and graphs of neighbours.
fn uneven(collective: CollectiveKind, ranks: usize) -> Vec<Shape> {
    let odd = |at: usize| (at * 37 % 5 * 8) as u64;
    let shape = |counts| Shape { counts, ..Shape::new(collective, ranks, ranks / 2, 8) };
    match collective {
        CollectiveKind::Gather
        | CollectiveKind::Scatter
        | CollectiveKind::Allgather
        | CollectiveKind::ReduceScatter => {
            vec![shape(Counts::Each((0..ranks).map(odd).collect()))]
        }
        CollectiveKind::Alltoall => vec![shape(Counts::Matrix((0..ranks * ranks).map(odd).collect()))],
        CollectiveKind::Neighbours => {
            graphs(ranks).map(|graph| shape(Counts::Graph(Arc::new(graph)))).collect()
        }
        _ => Vec::new(),
    }
}

fn graphs(ranks: usize) -> impl Iterator<Item = NeighbourGraph> {
    let grids = [([1, ranks], [true, true]), ([ranks, 1], [false, false])];
    let grids =
        grids.map(|(dims, wraps)| NeighbourGraph::cartesian(&dims, &wraps, 24).expect("there are ranks"));
    // Rank r sends to each rank t where r + 1 divides t + 1, twice if r is even; blocks may be empty.
    let targets = |rank: usize| -> Vec<(usize, u64)> {
        let all = (0..ranks).filter(|to| (to + 1).is_multiple_of(rank + 1));
        all.flat_map(|to| vec![(to, 8 * (to % 3) as u64); 1 + (rank + 1) % 2]).collect()
    };
    let gives: Vec<_> = (0..ranks).map(targets).collect();
    let mut gets = vec![Vec::new(); ranks];
    for (rank, targets) in gives.iter().enumerate().rev() {
        targets.iter().for_each(|&(to, _)| gets[to].push(rank));
    }
    grids.into_iter().chain([NeighbourGraph::graph(&gives, &gets).expect("they fit")])
}

/// Proves the algorithm for a shape that it supports. Returns true if it supports the shape.
fn prove(algorithm: &Algorithm, shape: &Shape, segments: u64) -> bool {
    if !(algorithm.fits)(shape) {
        return false;
    }
    if let Err(fault) = algorithm.schedule(shape, segments).check() {
        panic!("{} of {shape:?} in {segments} segments: {fault}", algorithm.name);
    }
    true
}

/// Proves all algorithms for `ranks` ranks and these sizes.
fn prove_all(ranks: usize, sizes: &[(u64, u64)]) {
    for algorithm in ALGORITHMS {
        let collective = algorithm.collective;
        for shape in uneven(collective, ranks) {
            prove(algorithm, &shape, 1);
        }
        if collective == CollectiveKind::Neighbours {
            continue;
        }
        for &(bytes, segments) in sizes {
            let every: Vec<usize> = (0..ranks).collect();
            let few = [0, ranks / 2, ranks - 1];
            let shape = Shape::new(collective, ranks, 0, bytes);
            let is_cheap = (algorithm.fits)(&shape)
                && algorithm.schedule(&shape, segments).check_bytes(CHEAP_BYTES) < CHEAP_BYTES;
            for shape in equal(collective, ranks, if is_cheap { &every } else { &few }, bytes) {
                prove(algorithm, &shape, segments);
            }
        }
    }
}

#[test]
fn all_algorithms_are_proven_up_to_17_ranks() {
    (1..=17).for_each(|ranks| prove_all(ranks, &SIZES));
}

/// More ranks than those of the exhaustive proof: around powers of two, and a few between, in two tests that run side
/// by side.
#[test]
fn all_algorithms_are_proven_for_some_even_ranks_up_to_32() {
    [18, 20, 24, 32].into_iter().for_each(|ranks| prove_all(ranks, &SIZES[2..]));
}

#[test]
fn all_algorithms_are_proven_for_some_odd_ranks_up_to_33() {
    [19, 25, 33].into_iter().for_each(|ranks| prove_all(ranks, &SIZES[2..]));
}

/// Ranks on each node, chosen to distinguish the algorithms that use the placement.
const PER_NODE: [usize; 4] = [2, 3, 4, 8];

/// Proves the algorithms that use the placement, with `per_node` ranks on each node.
fn prove_on_nodes(ranks: usize, per_node: usize, sizes: &[u64]) {
    let placement = Placement { per_node, ..Placement::SPREAD };
    for algorithm in ALGORITHMS.iter().filter(|one| one.name == "two-level") {
        let collective = algorithm.collective;
        let roots: Vec<usize> = match ranks {
            ..=17 => (0..ranks).collect(),
            _ => BTreeSet::from([0, per_node - 1, ranks / 2, ranks - 1]).into_iter().collect(),
        };
        let shapes = sizes.iter().flat_map(|&bytes| equal(collective, ranks, &roots, bytes));
        for shape in shapes.chain(uneven(collective, ranks)) {
            let is_proven = prove(algorithm, &Shape { placement, ..shape.clone() }, 1);
            assert_eq!(is_proven, !is_demanded(&shape), "{per_node} on a node of {ranks}");
        }
    }
}

#[test]
fn two_level_algorithms_are_proven_for_nodes_of_any_size() {
    for per_node in PER_NODE {
        (per_node + 1..=17).for_each(|ranks| prove_on_nodes(ranks, per_node, &[0, 1, 333]));
        (18..=33).for_each(|ranks| prove_on_nodes(ranks, per_node, &[1000, 4097]));
    }
    for (ranks, per_node) in [(47, 5), (64, 16), (100, 12)] {
        prove_on_nodes(ranks, per_node, &[4097]);
    }
}

#[test]
fn algorithms_are_proven_for_some_dozens_of_ranks() {
    let mut proven = 0;
    for algorithm in ALGORITHMS.iter().filter(|one| one.collective != CollectiveKind::Neighbours) {
        for (ranks, segments, in_order) in [(47, 1, false), (64, 2, false), (34, 2, true), (70, 1, true)] {
            let shape = Shape { in_order, ..Shape::new(algorithm.collective, ranks, ranks / 3, 4097) };
            let fits = (algorithm.fits)(&shape);
            if fits && algorithm.schedule(&shape, segments).check_bytes(LARGE_BYTES) < LARGE_BYTES {
                proven += usize::from(prove(algorithm, &shape, segments));
            }
        }
    }
    assert!(proven > ALGORITHMS.len(), "{proven}");
}

/// Algorithms with few steps for each rank, with the number of ranks that a proof of some seconds allows.
const SLOW_GROWTH: &[(CollectiveKind, &str, usize)] = &[
    (CollectiveKind::Barrier, "dissemination", 512),
    (CollectiveKind::Barrier, "central", 1024),
    (CollectiveKind::Bcast, "binary", 1024),
    (CollectiveKind::Bcast, "binomial", 1024),
    (CollectiveKind::Bcast, "chain", 1024),
    (CollectiveKind::Bcast, "pipelined", 512),
    (CollectiveKind::Bcast, "staged", 512),
    (CollectiveKind::Bcast, "eager", 512),
    (CollectiveKind::Allgather, "recursive doubling", 256),
    (CollectiveKind::Reduce, "tree", 1024),
    (CollectiveKind::Reduce, "flat", 512),
    (CollectiveKind::Allreduce, "tree", 1024),
    (CollectiveKind::Allreduce, "recursive doubling", 512),
    (CollectiveKind::Allreduce, "rabenseifner", 256),
    (CollectiveKind::Allreduce, "flat", 1024),
    (CollectiveKind::Gather, "binomial", 1024),
    (CollectiveKind::Gather, "flat", 1024),
    (CollectiveKind::Scatter, "binomial", 512),
    (CollectiveKind::Scan, "doubling", 128),
    (CollectiveKind::Exscan, "doubling", 128),
    (CollectiveKind::Scan, "tree", 512),
    (CollectiveKind::Exscan, "tree", 512),
];

/// Proves these for `fewer` ranks less than their largest number.
fn prove_large(fewer: usize, bytes: u64, segments: u64) {
    for &(collective, name, most) in SLOW_GROWTH {
        let is_it = |one: &&Algorithm| one.collective == collective && one.name == name;
        let algorithm = ALGORITHMS.iter().find(is_it).unwrap_or_else(|| panic!("{collective:?} by {name}"));
        let ranks = most - fewer;
        let shape = Shape::new(collective, ranks, ranks / 3, bytes);
        let is_proven = prove(algorithm, &shape, segments);
        assert!(is_proven || !ranks.is_power_of_two(), "{name} takes {ranks} ranks");
        if collective.combines() {
            prove(algorithm, &Shape { in_order: true, ..shape }, segments);
        }
    }
}

/// Three levels of groups.
#[test]
fn the_combining_order_is_kept_by_more_than_a_thousand_ranks() {
    for algorithm in ALGORITHMS.iter().filter(|one| one.name == "tree") {
        let shape = Shape { in_order: true, ..Shape::new(algorithm.collective, 1058, 33, 8) };
        assert!(prove(algorithm, &shape, 1));
    }
}

#[test]
fn slowly_growing_proofs_hold_for_a_thousand_ranks() {
    prove_large(0, 4096, 2);
}

#[test]
fn slowly_growing_proofs_hold_for_nearly_a_thousand_ranks() {
    prove_large(1, 999, 2);
}
