//! Collectives by name.

use crate::say::misuse;
use tasuki_core::bootstrap::nearest::nearest;
use tasuki_models::collective::algorithm::ALGORITHMS;
use tasuki_models::collective::shape::Operation;

/// All of them, as they are typed.
const NAMES: &[(&str, Operation)] = &[
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

/// The one of that name for which there is an algorithm.
pub(super) fn find(name: &str) -> anyhow::Result<Operation> {
    let is_done = |operation| ALGORITHMS.iter().any(|algorithm| algorithm.operation == operation);
    let done = || NAMES.iter().filter(|(_, operation)| is_done(*operation)).map(|(name, _)| *name);
    match NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, operation)) if is_done(*operation) => Ok(*operation),
        Some(_) => {
            let there_are = done().collect::<Vec<_>>().join(", ");
            Err(misuse(format!("there is no schedule of {name:?} yet; there are those of {there_are}")))
        }
        None => {
            let hint = match nearest(name, done()) {
                Some(right) => format!("did you mean {right}?"),
                None => format!("there are {}", done().collect::<Vec<_>>().join(", ")),
            };
            Err(misuse(format!("{name:?} is no collective; {hint}")))
        }
    }
}

/// What one is called.
pub(super) fn name(operation: Operation) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == operation).map_or("collective", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_near_is_named() {
        assert_eq!(find("bcast").unwrap(), Operation::Bcast);
        assert!(find("bcats").unwrap_err().to_string().contains("did you mean bcast?"));
        assert!(find("completely").unwrap_err().to_string().contains("there are barrier, bcast"));
        for algorithm in ALGORITHMS {
            assert_eq!(find(name(algorithm.operation)).unwrap(), algorithm.operation);
        }
    }
}
