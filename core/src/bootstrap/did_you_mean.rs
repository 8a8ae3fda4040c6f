//! The right word nearest to a wrong one: for variables, programs, values.

/// The candidate that `word` most likely was meant to be, if one is near enough to be worth naming.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let limit = (word.chars().count() / 3).max(1);
    let rated = candidates.into_iter().map(|candidate| (strsim::osa_distance(word, candidate), candidate));
    rated.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_named() {
        let words = ["TASUKI_LOG", "TASUKI_WAKE", "TASUKI_DISABLE"];
        assert_eq!(nearest("TASUKI_LGO", words), Some("TASUKI_LOG"));
        assert_eq!(nearest("TASUKI_AWAKE", words), Some("TASUKI_WAKE"));
        assert_eq!(nearest("COMPLETELY_DIFFERENT", words), None);
        assert_eq!(nearest("x", []), None);
    }
}
