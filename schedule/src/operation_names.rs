//! Names of operations and algorithms, as a user types them.

use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::shape::CollectiveKind;

/// All operations with their names.
pub const OPERATIONS: [(&str, CollectiveKind); 12] = [
    ("barrier", CollectiveKind::Barrier),
    ("bcast", CollectiveKind::Bcast),
    ("reduce", CollectiveKind::Reduce),
    ("allreduce", CollectiveKind::Allreduce),
    ("gather", CollectiveKind::Gather),
    ("scatter", CollectiveKind::Scatter),
    ("allgather", CollectiveKind::Allgather),
    ("alltoall", CollectiveKind::Alltoall),
    ("reduce_scatter", CollectiveKind::ReduceScatter),
    ("scan", CollectiveKind::Scan),
    ("exscan", CollectiveKind::Exscan),
    ("neighbours", CollectiveKind::Neighbours),
];

impl CollectiveKind {
    /// Finds the operation of that name.
    pub fn named(word: &str) -> Option<CollectiveKind> {
        OPERATIONS.iter().find(|(name, _)| *name == word).map(|(_, operation)| *operation)
    }

    /// The algorithms of this operation.
    pub fn algorithms(self) -> impl Iterator<Item = &'static Algorithm> {
        ALGORITHMS.iter().filter(move |algorithm| algorithm.operation == self)
    }
}

/// Joins a name of several words by hyphens, in lower case.
pub fn typed(name: &str) -> String {
    name.to_lowercase().replace([' ', '_'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_name_and_an_algorithm() {
        for (name, operation) in OPERATIONS {
            assert_eq!((operation.name(), CollectiveKind::named(name)), (name, Some(operation)));
            assert!(operation.algorithms().next().is_some(), "{name}");
        }
    }
}
