//! Names of collectives and algorithms, as a user types them.

use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::shape::CollectiveKind;

/// All collectives with their names.
pub const COLLECTIVES: [(&str, CollectiveKind); 12] = [
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
    /// Finds the collective of that name.
    pub fn named(word: &str) -> Option<CollectiveKind> {
        COLLECTIVES.iter().find(|(name, _)| *name == word).map(|(_, collective)| *collective)
    }

    /// The algorithms of this collective.
    pub fn algorithms(self) -> impl Iterator<Item = &'static Algorithm> {
        ALGORITHMS.iter().filter(move |algorithm| algorithm.collective == self)
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
    fn each_collective_has_a_name_and_an_algorithm() {
        for (name, collective) in COLLECTIVES {
            assert_eq!((collective.name(), CollectiveKind::named(name)), (name, Some(collective)));
            assert!(collective.algorithms().next().is_some(), "{name}");
        }
    }
}
