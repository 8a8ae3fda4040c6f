//! Every algorithm is proven: for all numbers of ranks up to 33, for what all differ in, and those whose proof grows
//! slowly for many ranks. Odd sizes divide into nothing. A proof takes memory and time that grow with the square of the
//! steps, some with the cube, so the larger the number of ranks the fewer the cases.

use crate::algorithm::*;
use crate::neighbours::NeighbourGraph;
use crate::shape::{Counts, Placement};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes and segments.
const SIZES: [(u64, u64); 5] = [(0, 1), (1, 4), (333, 3), (1000, 1), (4097, 4)];
/// A proof that takes less is one of those that every root has.
const CHEAP_BYTES: u64 = 1 << 21;
/// A proof that takes more is left to fewer ranks.
const LARGE_BYTES: u64 = 1 << 28;

/// Shapes of an operation of blocks that are equal, of that size.
fn equal(operation: CollectiveKind, ranks: usize, roots: &[usize], bytes: u64) -> Vec<Shape> {
    let roots = if operation.is_rooted() { roots } else { &roots[..1] };
    let orders = if operation.combines() { &[false, true][..] } else { &[false] };
    let shape = |&root: &usize| {
        let shape = Shape::new(operation, ranks, root, bytes);
        orders.iter().map(move |&in_order| Shape { in_order, ..shape.clone() })
    };
    roots.iter().flat_map(shape).collect()
}

/// Shapes of blocks that differ, and graphs of neighbours.
fn uneven(operation: CollectiveKind, ranks: usize) -> Vec<Shape> {
    let odd = |at: usize| (at * 37 % 5 * 8) as u64;
    let shape = |counts| Shape { counts, ..Shape::new(operation, ranks, ranks / 2, 8) };
    match operation {
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
    // Each gives to all that it divides, more than once where it is even; blocks may be empty.
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

/// Proves it, if the algorithm does that. Whether it does.
fn prove(algorithm: &Algorithm, shape: &Shape, segments: u64) -> bool {
    if !(algorithm.fits)(shape) {
        return false;
    }
    if let Err(fault) = algorithm.schedule(shape, segments).check() {
        panic!("{} of {shape:?} in {segments} segments: {fault}", algorithm.name);
    }
    true
}

/// All algorithms among so many ranks, in shapes of so many sizes.
fn prove_all(ranks: usize, sizes: &[(u64, u64)]) {
    for algorithm in ALGORITHMS {
        let operation = algorithm.operation;
        for shape in uneven(operation, ranks) {
            prove(algorithm, &shape, 1);
        }
        if operation == CollectiveKind::Neighbours {
            continue;
        }
        for &(bytes, segments) in sizes {
            let every: Vec<usize> = (0..ranks).collect();
            let few = [0, ranks / 2, ranks - 1];
            let shape = Shape::new(operation, ranks, 0, bytes);
            let is_cheap = (algorithm.fits)(&shape)
                && algorithm.schedule(&shape, segments).check_bytes(CHEAP_BYTES) < CHEAP_BYTES;
            for shape in equal(operation, ranks, if is_cheap { &every } else { &few }, bytes) {
                prove(algorithm, &shape, segments);
            }
        }
    }
}

#[test]
fn all_are_right_among_few() {
    (1..=17).for_each(|ranks| prove_all(ranks, &SIZES));
}

#[test]
fn all_are_right_among_more() {
    (18..=32).step_by(2).for_each(|ranks| prove_all(ranks, &SIZES[2..]));
}

#[test]
fn all_are_right_among_more_of_odd_number() {
    (19..=33).step_by(2).for_each(|ranks| prove_all(ranks, &SIZES[2..]));
}

/// Ranks that share nodes: all placements that tell those apart which look at it.
const PER_NODE: [usize; 4] = [2, 3, 4, 8];

/// Those that look at nodes, with that many ranks on each, as the others are proven.
fn prove_on_nodes(ranks: usize, per_node: usize, sizes: &[u64]) {
    let placement = Placement { per_node, ..Placement::SPREAD };
    for algorithm in ALGORITHMS.iter().filter(|one| one.name == "two-level") {
        let operation = algorithm.operation;
        let roots: Vec<usize> = match ranks {
            ..=17 => (0..ranks).collect(),
            _ => BTreeSet::from([0, per_node - 1, ranks / 2, ranks - 1]).into_iter().collect(),
        };
        let shapes = sizes.iter().flat_map(|&bytes| equal(operation, ranks, &roots, bytes));
        for shape in shapes.chain(uneven(operation, ranks)) {
            assert!(prove(algorithm, &Shape { placement, ..shape }, 1), "{per_node} on a node of {ranks}");
        }
    }
}

#[test]
fn those_of_two_levels_are_right_on_nodes_of_any_size() {
    for per_node in PER_NODE {
        (per_node + 1..=17).for_each(|ranks| prove_on_nodes(ranks, per_node, &[0, 1, 333]));
        (18..=33).for_each(|ranks| prove_on_nodes(ranks, per_node, &[1000, 4097]));
    }
    for (ranks, per_node) in [(47, 5), (64, 16), (100, 12)] {
        prove_on_nodes(ranks, per_node, &[4097]);
    }
}

#[test]
fn all_are_right_among_some_dozens() {
    let mut proven = 0;
    for algorithm in ALGORITHMS.iter().filter(|one| one.operation != CollectiveKind::Neighbours) {
        for (ranks, segments) in [(47, 1), (64, 2)] {
            let shape = Shape::new(algorithm.operation, ranks, ranks / 3, 4097);
            let fits = (algorithm.fits)(&shape);
            if fits && algorithm.schedule(&shape, segments).check_bytes(LARGE_BYTES) < LARGE_BYTES {
                proven += usize::from(prove(algorithm, &shape, segments));
            }
        }
    }
    assert!(proven > ALGORITHMS.len(), "{proven}");
}

/// Those of few steps for each rank, up to as many ranks as take some seconds.
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
];

/// Proves these among the most ranks that they are proven for, less so many.
fn prove_large(fewer: usize, bytes: u64, segments: u64) {
    for &(operation, name, most) in SLOW_GROWTH {
        let is_it = |one: &&Algorithm| one.operation == operation && one.name == name;
        let algorithm = ALGORITHMS.iter().find(is_it).unwrap_or_else(|| panic!("{operation:?} by {name}"));
        let ranks = most - fewer;
        let is_proven = prove(algorithm, &Shape::new(operation, ranks, ranks / 3, bytes), segments);
        assert!(is_proven || !ranks.is_power_of_two(), "{name} takes {ranks} ranks");
    }
}

#[test]
fn those_that_grow_slowly_are_right_among_a_thousand() {
    prove_large(0, 4096, 2);
}

#[test]
fn those_that_grow_slowly_are_right_among_nearly_a_thousand() {
    prove_large(1, 999, 2);
}
