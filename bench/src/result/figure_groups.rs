//! Figures that may be compared with each other, from all jobs that took them.

use crate::harness::repetition::{Level, Series};
use crate::result::figure::Key;
use crate::result::row::Row;

/// Groups by their names, in the order in which they were heard of.
#[derive(Default)]
pub(crate) struct Groups(Vec<Group>);

struct Group {
    name: String,
    figures: Vec<(Key, Series)>,
}

impl Groups {
    /// Repetitions of a figure, beside those that other jobs have told.
    pub(crate) fn add(&mut self, name: String, key: Key, series: Series) {
        let at = self.0.iter().position(|group| group.name == name).unwrap_or_else(|| {
            self.0.push(Group { name, figures: Vec::new() });
            self.0.len() - 1
        });
        let figures = &mut self.0[at].figures;
        match figures.iter_mut().find(|(known, _)| *known == key) {
            Some((_, all)) => all.append(series),
            None => figures.push((key, series)),
        }
    }

    /// A row for each figure: what counts was taken in the state of the machine that prevailed in its group.
    pub(crate) fn rows(self, ranks: usize) -> Vec<Row> {
        self.0.into_iter().flat_map(|group| group.rows(ranks)).collect()
    }
}

impl Group {
    fn rows(mut self, ranks: usize) -> impl Iterator<Item = Row> {
        let all: Vec<_> = self.figures.iter().flat_map(|(_, series)| series.all()).copied().collect();
        let level = Level::prevailing(&all);
        self.figures.iter_mut().for_each(|(_, series)| series.only_at(level));
        self.figures
            .into_iter()
            .filter_map(move |(key, series)| Some(Row::new(key, ranks, series.summary()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::harness::repetition::Repetition;

    fn series(hand_over: f64, figures: &[f64]) -> Series {
        let mut series = Series::default();
        for &figure in figures {
            series.push(Repetition { figure, before: hand_over, after: hand_over });
        }
        series
    }

    #[test]
    fn jobs_add_up_and_the_state_that_prevails_counts() {
        let (key, limit) = (Key::ours(Case::Get, "", 8), Key::limit("remote_load"));
        let mut groups = Groups::default();
        for (hand_over, figures) in [(50.0, [1.0, 2.0, 3.0].as_slice()), (90.0, &[7.0]), (50.0, &[4.0, 5.0])]
        {
            groups.add("words".into(), key.clone(), series(hand_over, figures));
        }
        groups.add("words".into(), limit, series(50.0, &[1.0; 6]));
        groups.add("hand-over".into(), Key::limit("hand_over"), series(90.0, &[90.0; 5]));
        let rows = groups.rows(2);
        let medians: Vec<(f64, bool)> = rows.iter().map(|row| (row.median, row.steady)).collect();
        assert_eq!(medians, [(3.0, true), (1.0, true), (90.0, true)]);
    }
}
