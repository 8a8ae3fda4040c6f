//! Algorithms that the user has chosen, regardless of the cost model.

use crate::collective_names::{COLLECTIVES, typed};
use crate::{Algorithm, CollectiveKind};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Algorithms by collective, as in `bcast=binomial,allreduce=ring`. One that does not fit a shape is ignored for it, as
/// a ring where the combining order must be kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Forced(BTreeMap<CollectiveKind, &'static str>);

impl Forced {
    /// The algorithm chosen for a collective.
    pub fn of(&self, collective: CollectiveKind) -> Option<&'static Algorithm> {
        let name = self.0.get(&collective)?;
        collective.algorithms().find(|algorithm| algorithm.name == *name)
    }
}

impl FromStr for Forced {
    type Err = String;

    /// The error lists the accepted names.
    fn from_str(text: &str) -> Result<Forced, String> {
        let mut all = BTreeMap::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (what, how) = pair
                .split_once('=')
                .ok_or_else(|| format!("'{pair}' is no COLLECTIVE=ALGORITHM, as in bcast=binomial"))?;
            let what = what.trim().to_lowercase().replace('-', "_");
            let names = || COLLECTIVES.iter().map(|(name, _)| (*name).to_string());
            let collective =
                CollectiveKind::named(&what).ok_or_else(|| none("collective", &what, names().collect()))?;
            let how = typed(how.trim());
            let names = || collective.algorithms().map(|algorithm| typed(algorithm.name));
            let found = collective.algorithms().find(|algorithm| typed(algorithm.name) == how);
            let kind = format!("algorithm for {what}");
            let found = found.ok_or_else(|| none(&kind, &how, names().collect()))?;
            if all.insert(collective, found.name).is_some() {
                return Err(format!("{what} is there twice"));
            }
        }
        Ok(Forced(all))
    }
}

impl fmt::Display for Forced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (collective, name)) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{}={}", collective.name(), typed(name))?;
        }
        Ok(())
    }
}

/// The name most similar to `word`, if one is similar enough to suggest.
fn nearest<'n>(word: &str, names: &'n [String]) -> Option<&'n str> {
    let limit = (word.chars().count() / 3).max(1);
    let rated = names.iter().map(|name| (strsim::osa_distance(word, name), name.as_str()));
    rated.filter(|(distance, _)| *distance <= limit).min().map(|(_, name)| name)
}

/// The text of the error for an unknown name, with a suggestion and all known names.
fn none(kind: &str, word: &str, names: Vec<String>) -> String {
    let meant = nearest(word, &names);
    let meant = meant.map_or(String::new(), |right| format!(" (did you mean '{right}'?)"));
    format!("there is no {kind} '{word}'{meant}: choose from {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forced_algorithms_are_parsed_and_formatted() {
        let expected: Forced = "bcast=Scatter+Allgather, allreduce=recursive doubling,".parse().unwrap();
        assert_eq!(expected.to_string(), "bcast=scatter+allgather,allreduce=recursive-doubling");
        assert_eq!(expected.to_string().parse(), Ok(expected.clone()));
        assert_eq!(expected.of(CollectiveKind::Bcast).map(|one| one.name), Some("scatter+allgather"));
        assert!(expected.of(CollectiveKind::Scan).is_none());
        assert_eq!("".parse(), Ok(Forced::default()));
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_known_ones() {
        let fault = |text: &str| text.parse::<Forced>().unwrap_err();
        let text = fault("bcats=binomial");
        assert!(text.contains("'bcast'?") && text.contains("allreduce, gather"), "{text}");
        let text = fault("barrier=tree");
        let expected = "there is no algorithm for barrier 'tree': choose from dissemination, central";
        assert!(text.starts_with(expected), "{text}");
        assert!(fault("bcast").contains("COLLECTIVE=ALGORITHM"));
        assert!(fault("bcast=chain,bcast=chain").contains("twice"));
    }
}
