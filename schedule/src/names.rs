//! Operations and algorithms as they are typed.

use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::shape::Operation;

/// All operations, each with what it is called.
pub const OPERATIONS: [(&str, Operation); 12] = [
    ("barrier", Operation::Barrier),
    ("bcast", Operation::Bcast),
    ("reduce", Operation::Reduce),
    ("allreduce", Operation::Allreduce),
    ("gather", Operation::Gather),
    ("scatter", Operation::Scatter),
    ("allgather", Operation::Allgather),
    ("alltoall", Operation::Alltoall),
    ("reduce_scatter", Operation::ReduceScatter),
    ("scan", Operation::Scan),
    ("exscan", Operation::Exscan),
    ("neighbours", Operation::Neighbours),
];

impl Operation {
    /// The one that is called so.
    pub fn named(word: &str) -> Option<Operation> {
        OPERATIONS.iter().find(|(name, _)| *name == word).map(|(_, operation)| *operation)
    }

    /// Its algorithms.
    pub fn algorithms(self) -> impl Iterator<Item = &'static Algorithm> {
        ALGORITHMS.iter().filter(move |algorithm| algorithm.operation == self)
    }
}

/// A name of several words as one.
pub fn typed(name: &str) -> String {
    name.to_lowercase().replace([' ', '_'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_name_and_an_algorithm() {
        for (name, operation) in OPERATIONS {
            assert_eq!((operation.name(), Operation::named(name)), (name, Some(operation)));
            assert!(operation.algorithms().next().is_some(), "{name}");
        }
    }
}
