//! Compares each algorithm with textbook values: the longest chain of steps that copy or combine, and the most bytes
//! that one rank sends or receives.
//!
//! `p` ranks; `n` bytes of a broadcast, reduction or scan, or of a block otherwise; `l` and `c` are the logarithm of p
//! to base 2, rounded down and up. A message that is combined on arrival counts as two steps here, as one in textbooks.
//!
//! Sources: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005), for all
//! that is named as there; Patarasuk, Yuan (2009), rings of reductions; Bruck et al. (1997); Hillis, Steele (1986),
//! scans; Hensgen, Finkel, Manber (1988), the barrier; the collective interface of ACP, figure 6, lists; Karonis et al.
//! (2000), two levels: one message of each node between nodes, by the form that is best there.

use crate::algorithm::*;
use crate::shape::Placement;
use std::collections::BTreeSet;

/// The sizes that formulas use.
#[derive(Clone, Copy)]
struct TextbookSizes {
    p: usize,
    n: u64,
    /// Logarithm of p, rounded down and up.
    l: usize,
    c: usize,
    /// True if p is no power of two, so that ranks are folded before the rounds. That adds up to three steps, depending
    /// on how much the folded ranks delay each other.
    is_folded: bool,
}

impl TextbookSizes {
    fn of(p: usize, n: u64) -> TextbookSizes {
        TextbookSizes { p, n, l: p.ilog2() as usize, c: doublings(p), is_folded: !p.is_power_of_two() }
    }

    fn others(&self) -> u64 {
        self.p as u64 - 1
    }
}

/// Depth, and bytes of the busiest rank.
fn textbook(collective: CollectiveKind, name: &str, sizes: TextbookSizes) -> Option<(usize, u64)> {
    use CollectiveKind::*;
    let TextbookSizes { p, n, l, c, is_folded } = sizes;
    let others = sizes.others();
    let children = if p > 2 { 2 } else { 1 };
    let fold = if is_folded { (3, n) } else { (0, 0) };
    Some(match (collective, name) {
        (Barrier, _) => (0, 0),
        (Bcast, "binary" | "pipelined") => (l, children * n),
        (Bcast, "binomial") => (l, c as u64 * n),
        (Bcast, "chain") => (p - 1, n),
        (Bcast, "staged") => (2, others * n),
        (Bcast, "eager") => (2, others * n),
        (Bcast | Gather | Allgather | Reduce, "copy in copy out") => (2, others * n),
        // One block is copied in after the other.
        (Scatter | Alltoall, "copy in copy out") => (p, others * n),
        // The values of rank 0 are copied by ranks with at least two ranks before them.
        (Allreduce | ReduceScatter | Scan | Exscan, "copy in copy out") => {
            (if p > 2 { 3 } else { 2 }, others * n)
        }
        (Allreduce, "reduce scatter allgather") => (if p > 2 { p + 4 } else { 4 }, 2 * n / p as u64 * others),
        (Allgather, "flat") => (2, others * others.max(1) * n + others * n),
        (Reduce, "flat") => (2, others * n),
        (Reduce, "direct") => (1, others * n),
        (Bcast, "put and get") => (1, n),
        (Allreduce, "flat") => (3, others * n),
        (Bcast, "scatter+allgather") => (l + p - 1, 2 * n / p as u64 * others),
        (Allgather, "ring") => (p - 1, others * n),
        (Allgather, "recursive doubling") => (l, others * n),
        (Allgather, "bruck") => (c + 2, others * n),
        (Allgather, "command lists") => ((p - 1).ilog2() as usize + 1, others * n),
        (Reduce, "tree") => (2 * l, c as u64 * n),
        (Allreduce, "tree") => (3 * l, c as u64 * n),
        (Allreduce, "recursive doubling") => (2 * l + 1 + fold.0, l as u64 * n + fold.1),
        (Allreduce, "ring") => (3 * (p - 1), 2 * n / p as u64 * others),
        (Allreduce, "rabenseifner") => (3 * l + fold.0, 2 * n / (1 << l) * ((1 << l) - 1) + fold.1),
        (Allreduce, "pairwise") => (3, 2 * n / p as u64 * others),
        (Gather, "flat") => (1, others * n),
        (Gather, "binomial") => (l, others * n),
        (Scatter, "flat") => (1, others * n),
        (Scatter, "binomial") => (l + 1, others * n),
        (Alltoall, "pairwise") => (1, others * n),
        (Alltoall, "bruck") => {
            let travels = |round: usize| (0..p).filter(|way| way >> round & 1 == 1).count() as u64;
            (2 * c + 1, (0..c).map(travels).sum::<u64>() * n)
        }
        (ReduceScatter, "pairwise") => (2, others * n),
        (ReduceScatter, "ring") => (2 * (p - 1), others * n),
        (Scan | Exscan, "tree") => (if p > 2 { p + 1 } else { 2 }, others * n),
        (Scan, "doubling") => (scan_steps(p) + 1, c as u64 * n),
        (Exscan, "doubling") => (scan_steps(p - 1) + 2, (1 + doublings(p - 1) as u64) * n),
        _ => return None,
    })
}

/// Depth and bytes of the two-level algorithms with `per_node` ranks on a node: the part between nodes, a tree or a
/// copy inside the nodes before, and one copy after.
fn two_levels(
    collective: CollectiveKind,
    per_node: usize,
    TextbookSizes { p, n, .. }: TextbookSizes,
) -> (usize, u64) {
    let nodes = p.div_ceil(per_node);
    let TextbookSizes { l, c, is_folded, .. } = TextbookSizes::of(nodes, n);
    let followers = per_node as u64 - 1;
    let fold = if is_folded { (3, n) } else { (0, 0) };
    let inner = TextbookSizes::of(per_node, n);
    match collective {
        // The root's own node waits for one more copy, the other nodes for the last leader's copy.
        CollectiveKind::Bcast => (l + 1, (followers + c as u64) * n),
        CollectiveKind::Reduce => {
            // The longest chain begins at a leaf of the leaders' tree. If the tree is complete, only the last node is
            // so deep, and it has fewer ranks.
            let last = (p - 1) % per_node + 1;
            let least = if is_folded { inner.l } else { (last.ilog2() as usize).max(inner.l - 1) };
            (2 * l + 2 * least, (inner.c + c) as u64 * n)
        }
        CollectiveKind::Allreduce => (2 * inner.l + 2 * l + 1 + fold.0, (followers + l as u64) * n + fold.1),
        CollectiveKind::Allgather => (c + 2, (followers * p as u64 + ((nodes - 1) * per_node) as u64) * n),
        _ => (0, 0),
    }
}

/// The depth of a scan's rounds: each is two steps, but the last one only combines, unless its source has been through
/// all other rounds, too.
fn scan_steps(ranks: usize) -> usize {
    2 * doublings(ranks) - usize::from(!ranks.is_power_of_two())
}

/// Bytes that all algorithms cut into equal parts.
fn bytes(ranks: usize) -> u64 {
    64 * ranks as u64 * ranks.next_power_of_two() as u64
}

#[test]
fn depth_and_bytes_are_those_of_the_textbook() {
    for ranks in 2..=33 {
        for algorithm in ALGORITHMS {
            let shape = Shape::new(algorithm.collective, ranks, 0, bytes(ranks));
            let Some(expected) =
                textbook(algorithm.collective, algorithm.name, TextbookSizes::of(ranks, bytes(ranks)))
            else {
                continue; // it has tests of its own
            };
            if !(algorithm.fits)(&shape) {
                continue;
            }
            let checked = algorithm.schedule(&shape, 1).check();
            let what = format!("{:?} by {} among {ranks}", algorithm.collective, algorithm.name);
            let checked = checked.unwrap_or_else(|fault| panic!("{what}: {fault}"));
            assert_eq!(checked.busiest_bytes, expected.1, "{what}");
            let folded =
                ["recursive doubling", "rabenseifner"].contains(&algorithm.name) && !ranks.is_power_of_two();
            if folded {
                assert!((expected.0 - 2..=expected.0).contains(&checked.depth), "{what}: {}", checked.depth);
            } else {
                assert_eq!(checked.depth, expected.0, "{what}");
            }
        }
    }
}

#[test]
fn depth_and_bytes_of_two_levels_are_those_of_the_textbook() {
    for (ranks, per_node) in (2..=33).flat_map(|ranks| [2, 3, 4, 8].map(|per_node| (ranks, per_node))) {
        let placement = Placement { per_node, ..Placement::SPREAD };
        for algorithm in ALGORITHMS.iter().filter(|one| one.name == "two-level") {
            let shape = Shape { placement, ..Shape::new(algorithm.collective, ranks, 0, bytes(ranks)) };
            assert_eq!((algorithm.fits)(&shape), per_node < ranks);
            if per_node >= ranks {
                continue;
            }
            let expected = two_levels(algorithm.collective, per_node, TextbookSizes::of(ranks, bytes(ranks)));
            let checked = algorithm.schedule(&shape, 1).check();
            let what = format!("{:?} among {ranks}, {per_node} on a node", algorithm.collective);
            let checked = checked.unwrap_or_else(|fault| panic!("{what}: {fault}"));
            assert_eq!(checked.busiest_bytes, expected.1, "{what}");
            let is_folded = algorithm.collective == CollectiveKind::Allreduce
                && !ranks.div_ceil(per_node).is_power_of_two();
            let least = if is_folded { expected.0 - 2 } else { expected.0 };
            assert!(
                (least..=expected.0).contains(&checked.depth),
                "{what}: {} not {}",
                checked.depth,
                expected.0
            );
        }
    }
}

#[test]
fn the_barrier_takes_as_many_rounds_as_doublings() {
    for ranks in 2..=33 {
        let shape = Shape::new(CollectiveKind::Barrier, ranks, 0, 0);
        let checked = barrier::DISSEMINATION.schedule(&shape, 1).check().expect("it is right");
        assert_eq!(checked.queue_steps_max, doublings(ranks), "{ranks} ranks");
    }
}

#[test]
fn each_name_stands_for_another_schedule() {
    for (ranks, per_node) in [5, 8, 12, 16].into_iter().flat_map(|ranks| [1, 2, 3, 4, 8].map(|k| (ranks, k)))
    {
        let mut seen = BTreeSet::new();
        let placement = Placement { per_node, ..Placement::SPREAD };
        for algorithm in ALGORITHMS {
            let shape = Shape { placement, ..Shape::new(algorithm.collective, ranks, 1, bytes(ranks)) };
            if !(algorithm.fits)(&shape) {
                continue;
            }
            let schedule = algorithm.schedule(&shape, 4);
            let parts: Vec<_> = (0..ranks).map(|rank| format!("{:?}", schedule.part(rank))).collect();
            let what = (format!("{:?}", algorithm.collective), parts);
            assert!(seen.insert(what), "{} among {ranks}: another has the same steps", algorithm.name);
        }
    }
}
