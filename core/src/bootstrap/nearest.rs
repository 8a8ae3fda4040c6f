//! The right word nearest to a wrong one: for variables, programs, values.

/// The candidate that `word` most likely was meant to be, if one is near enough to be worth naming.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let limit = (word.chars().count() / 3).max(1);
    let rated = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate));
    rated.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

/// How many characters must be put in, taken out, replaced, or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_slips() {
        assert_eq!(distance("heat", "heat"), 0);
        assert_eq!(distance("haet", "heat"), 1);
        assert_eq!(distance("het", "heat"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn only_what_is_near_is_named() {
        let words = ["TASUKI_LOG", "TASUKI_WAKE", "TASUKI_DENY"];
        assert_eq!(nearest("TASUKI_LGO", words), Some("TASUKI_LOG"));
        assert_eq!(nearest("TASUKI_AWAKE", words), Some("TASUKI_WAKE"));
        assert_eq!(nearest("COMPLETELY_DIFFERENT", words), None);
        assert_eq!(nearest("x", []), None);
    }
}
