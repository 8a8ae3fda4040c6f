//! Several ranks in a few words.

/// `rank 3` or `ranks 0-2, 5`.
pub(crate) fn names(ranks: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let runs: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, runs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_named_in_runs() {
        assert_eq!(names(&[3]), "rank 3");
        assert_eq!(names(&[0, 1, 2, 5, 7, 8]), "ranks 0-2, 5, 7, 8");
    }
}
