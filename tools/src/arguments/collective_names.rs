//! Finds collectives and algorithms by the names that users type.

use tasuki_command::misuse;
use tasuki_core::bootstrap::did_you_mean::nearest;
use tasuki_schedule::algorithm::Algorithm;
use tasuki_schedule::collective_names::COLLECTIVES;
pub(crate) use tasuki_schedule::collective_names::typed;
use tasuki_schedule::shape::CollectiveKind;

/// Collectives with blocks of different sizes.
const UNEVEN: &str = "gatherv, scatterv, allgatherv, alltoallv";

/// The collective called `word`, and true if it is the form with blocks of different sizes.
pub(super) fn collective(word: &str) -> anyhow::Result<(CollectiveKind, bool)> {
    let flat = word.replace('-', "_");
    if let Some(collective) = CollectiveKind::named(&flat) {
        return Ok((collective, false));
    }
    if let Some(collective) = flat.strip_suffix('v').and_then(CollectiveKind::named) {
        return Ok((collective, true));
    }
    let names = COLLECTIVES.iter().map(|(name, _)| *name);
    Err(misuse(match nearest(&flat, names.clone()) {
        Some(right) => format!("there is no collective '{word}'; did you mean '{right}'?"),
        None => {
            let names = names.collect::<Vec<_>>().join(", ");
            format!(
                "there is no collective '{word}': there are {names}; with blocks of different sizes {UNEVEN}"
            )
        }
    }))
}

/// The algorithm called `word`; any separator between its words is accepted.
pub(crate) fn algorithm<'a>(word: &str, all: &[&'a Algorithm], what: &str) -> anyhow::Result<&'a Algorithm> {
    let flat = typed(word);
    if let Some(found) = all.iter().find(|one| typed(one.name) == flat) {
        return Ok(found);
    }
    let names: Vec<String> = all.iter().map(|one| typed(one.name)).collect();
    Err(misuse(match nearest(&flat, names.iter().map(String::as_str)) {
        Some(right) => format!("there is no algorithm '{word}' for {what}; did you mean '{right}'?"),
        None if names.is_empty() => format!("there is no algorithm for {what}"),
        None => format!("there is no algorithm '{word}' for {what}: there are {}", names.join(", ")),
    }))
}

/// `1 rank` or `N ranks`.
pub(crate) fn ranks(count: usize) -> String {
    if count == 1 { "1 rank".into() } else { format!("{count} ranks") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::algorithm::ALGORITHMS;

    #[test]
    fn collectives_are_found_by_name() {
        assert_eq!(collective("reduce-scatter").unwrap(), (CollectiveKind::ReduceScatter, false));
        assert_eq!(collective("gatherv").unwrap(), (CollectiveKind::Gather, true));
        assert!(collective("bcats").unwrap_err().to_string().contains("'bcast'"));
        assert!(collective("everything").unwrap_err().to_string().contains("there are barrier, bcast"));
        for uneven in UNEVEN.split(", ") {
            assert!(collective(uneven).is_ok_and(|(_, blocks_differ)| blocks_differ), "{uneven}");
        }
        for algorithm in ALGORITHMS {
            assert_eq!(collective(algorithm.collective.name()).unwrap(), (algorithm.collective, false));
        }
    }
}
