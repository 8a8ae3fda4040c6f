//! Which algorithm is taken for a shape where nobody says.
//!
//! By sizes alone, so that all members choose alike. Measured on one node with two processors, 2 to 8 ranks
//! ([docs/design/schedules.md](../../../docs/design/schedules.md)): there what counts is how often ranks must take
//! their turn on a processor, and one rank in the middle needs the fewest turns. Among many ranks that one would do
//! all the work, and trees and rings are taken.

use super::algorithm::{ALGORITHMS, Algorithm};
use super::shape::{Operation, Shape};

/// Ranks of which one may have to do with all others.
const FEW: usize = 32;
/// Bytes that are rather sent twice than waited for.
const SHORT: u64 = 2048;
/// Bytes that are laid out once for all.
const STAGED_MAX: u64 = 1 << 20;

/// Bytes that two members rather tell each other in a message than lay out.
pub(super) const TOLD_MAX: u64 = 48;
/// Bytes of each segment of what is laid out: the first is taken while the next is laid.
const LAID_MIN: u64 = 16 << 10;
/// Most segments.
const SEGMENTS_MAX: u64 = 8;
/// Bytes of all members' values that everybody combines for itself rather than in shares.
const OWN_MAX: u64 = 32 << 10;

/// What is taken for calls that members make together, with the number of its segments: nobody reads or writes the data
/// of another.
pub(super) fn for_calls(shape: &Shape) -> (&'static Algorithm, u64) {
    let bytes = shape.bytes_of(0);
    let name = match shape.operation {
        Operation::Barrier => "told",
        Operation::Allreduce if bytes * shape.ranks as u64 > OWN_MAX => "shared",
        _ => "laid",
    };
    let found = ALGORITHMS.iter().find(|one| (one.operation, one.name) == (shape.operation, name));
    (found.expect("each operation has one for calls"), (bytes / LAID_MIN).clamp(1, SEGMENTS_MAX))
}

/// What is taken.
pub(super) fn choose(shape: &Shape) -> &'static Algorithm {
    let of_it = || ALGORITHMS.iter().filter(|algorithm| algorithm.operation == shape.operation);
    let named = |name: &str| of_it().find(|algorithm| algorithm.name == name && (algorithm.fits)(shape));
    let liked = named(liked(shape));
    let fits = || of_it().find(|algorithm| (algorithm.fits)(shape));
    liked.or_else(fits).expect("each operation has an algorithm for all shapes")
}

fn liked(shape: &Shape) -> &'static str {
    let few = shape.ranks <= FEW;
    let (bytes, all) = (shape.bytes_of(0), shape.bytes_of_all());
    match shape.operation {
        Operation::Barrier if few && shape.ranks > 2 => "central",
        Operation::Barrier => "dissemination",
        Operation::Bcast if few && bytes <= SHORT => "eager",
        Operation::Bcast if few && bytes <= STAGED_MAX => "staged",
        Operation::Bcast if bytes <= STAGED_MAX => "binomial",
        Operation::Bcast => "scatter+allgather",
        Operation::Reduce if few && bytes <= SHORT => "flat",
        Operation::Reduce => "tree",
        Operation::Allreduce if few && shape.ranks > 2 && bytes <= SHORT => "flat",
        Operation::Allreduce if bytes <= SHORT => "recursive doubling",
        Operation::Allreduce => "rabenseifner",
        Operation::Allgather if few && all <= SHORT => "flat",
        Operation::Allgather if all <= SHORT => "bruck",
        Operation::Allgather => "ring",
        Operation::Alltoall if !few && bytes <= 64 => "bruck",
        Operation::Alltoall => "pairwise",
        Operation::ReduceScatter if few => "pairwise",
        Operation::ReduceScatter => "ring",
        Operation::Gather | Operation::Scatter if few => "flat",
        Operation::Gather | Operation::Scatter => "binomial",
        Operation::Scan | Operation::Exscan => "doubling",
        Operation::Neighbours => "direct",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_for_every_shape() {
        for algorithm in ALGORITHMS.iter().filter(|one| one.operation != Operation::Neighbours) {
            for ranks in [1, 2, 3, 8, 33, 100] {
                for bytes in [0, 8, 4096, 1 << 24] {
                    for in_order in [false, true] {
                        let shape = Shape { in_order, ..Shape::new(algorithm.operation, ranks, 0, bytes) };
                        assert!((choose(&shape).fits)(&shape), "{shape:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_liked_is_there() {
        let operations: Vec<Operation> = ALGORITHMS.iter().map(|algorithm| algorithm.operation).collect();
        for operation in operations {
            for (ranks, bytes) in [(2, 8), (4, 8), (4, 1 << 16), (4, 1 << 22), (64, 8), (64, 1 << 22)] {
                let name = liked(&Shape::new(operation, ranks, 0, bytes));
                let is_it = |one: &&Algorithm| one.operation == operation && one.name == name;
                assert!(ALGORITHMS.iter().any(|one| is_it(&one)), "{operation:?} by {name}");
            }
        }
    }
}
