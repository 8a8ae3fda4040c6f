//! Algorithms: each makes the part of one rank of a collective, from the shape alone. One file each.

mod allgather;
mod barrier;
mod broadcast;
mod session;
mod trees;
mod trinaryx3;

pub use session::streams;

use super::shape::{Operation, Shape};
use crate::schedule::{Part, Schedule};

/// A way to do a collective.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub operation: Operation,
    /// Whether it does it for such a shape.
    pub fits: fn(&Shape) -> bool,
    /// How the part of a rank is made.
    make: Make,
}

/// How the part of a rank is made.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// What moves, moves whole.
    Whole(fn(&Shape, &mut Part)),
    /// It moves in so many segments.
    Cut(fn(&Shape, u64, &mut Part)),
}

/// All of them.
pub const ALGORITHMS: &[Algorithm] = &[
    barrier::DISSEMINATION,
    broadcast::BINARY,
    broadcast::BINOMIAL,
    broadcast::CHAIN,
    broadcast::PIPELINED,
    trinaryx3::BUCKET,
    trinaryx3::TWO_PHASE,
    allgather::RING,
    allgather::DOUBLING,
    allgather::BRUCK,
    allgather::LISTS,
];

impl Algorithm {
    /// The schedule of a shape, cut into so many segments where the algorithm cuts.
    pub fn schedule(&self, shape: &Shape, segments: u64) -> Schedule {
        let (make, of, for_contract) = (self.make, shape.clone(), shape.clone());
        let part = move |part: &mut Part| match make {
            Make::Whole(make) => make(&of, part),
            Make::Cut(make) => make(&of, segments, part),
        };
        Schedule::new(self.name, shape.ranks, part, move |rank| for_contract.contract(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_those_of_the_textbook() {
        let depth = |name: &str, operation: Operation, ranks: usize| {
            let fits = |algorithm: &&Algorithm| (algorithm.name, algorithm.operation) == (name, operation);
            let algorithm = ALGORITHMS.iter().find(fits).expect("it is there");
            let schedule = algorithm.schedule(&Shape::new(operation, ranks, 0, 64), 4);
            schedule.check().unwrap_or_else(|fault| panic!("{name}: {fault}")).depth
        };
        for ranks in [2_usize, 4, 8, 16] {
            let log = ranks.ilog2() as usize;
            assert_eq!(depth("ring", Operation::Allgather, ranks), ranks - 1);
            assert_eq!(depth("recursive doubling", Operation::Allgather, ranks), log);
            assert_eq!(depth("bruck", Operation::Allgather, ranks), log + 2); // into the row, and out of it
            assert_eq!(depth("binomial", Operation::Bcast, ranks), log);
            assert_eq!(depth("chain", Operation::Bcast, ranks), ranks - 1);
        }
    }

    #[test]
    fn all_are_right() {
        for algorithm in ALGORITHMS {
            for ranks in 1..=17 {
                for (bytes, segments) in [(0, 1), (1, 4), (1000, 1), (4096, 4)] {
                    for root in [0, ranks / 2, ranks - 1] {
                        let shape = Shape::new(algorithm.operation, ranks, root, bytes);
                        if !(algorithm.fits)(&shape) {
                            continue;
                        }
                        let schedule = algorithm.schedule(&shape, segments);
                        if let Err(fault) = schedule.check() {
                            panic!(
                                "{} on {ranks} ranks, root {root}, {bytes} bytes, {segments} segments: {fault}",
                                algorithm.name
                            );
                        }
                    }
                }
            }
        }
    }
}
