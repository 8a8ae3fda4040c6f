//! Suggests the valid word that is closest to an unknown one: a variable, program or value.

/// Returns the candidate closest to `word`, if one is close enough to be what was meant.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let limit = (word.chars().count() / 3).max(1);
    let rated = candidates.into_iter().map(|candidate| (strsim::osa_distance(word, candidate), candidate));
    rated.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_candidates_are_suggested() {
        let words = ["TASUKI_LOG", "TASUKI_WAKE", "TASUKI_DISABLE"];
        assert_eq!(nearest("TASUKI_LGO", words), Some("TASUKI_LOG"));
        assert_eq!(nearest("TASUKI_AWAKE", words), Some("TASUKI_WAKE"));
        assert_eq!(nearest("COMPLETELY_DIFFERENT", words), None);
        assert_eq!(nearest("x", []), None);
    }
}
