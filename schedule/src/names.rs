//! Operations and algorithms as they are typed.

use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::shape::CollectiveKind;

/// All operations, each with what it is called.
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
    /// The one that is called so.
    pub fn named(word: &str) -> Option<CollectiveKind> {
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
            assert_eq!((operation.name(), CollectiveKind::named(name)), (name, Some(operation)));
            assert!(operation.algorithms().next().is_some(), "{name}");
        }
    }
}
