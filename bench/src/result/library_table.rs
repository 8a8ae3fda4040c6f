//! All libraries side by side: the table that has a column for each.

use crate::result::library::Library;
use crate::result::row::Row;
use crate::result::table::{Scale, size, variant};

/// The columns.
pub(crate) const LIBRARIES: [Library; 5] =
    [Library::Tasuki, Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx];

/// The head of the table.
pub(crate) fn head() -> Vec<&'static str> {
    vec!["case", "variant", "size", "unit", "tasuki", "mpich", "openmpi", "intel", "ucx"]
}

/// A line for each figure that others have, or might have.
pub(crate) fn lines(rows: &[Row]) -> Vec<Vec<String>> {
    let ours = rows.iter().filter(|row| row.library == Library::Tasuki);
    let ours = ours.filter(|row| row.has_peers() || row.case.is_shown_beside() && !row.case.has_peers());
    ours.map(|row| line(row, rows)).collect()
}

/// The figures of one case; each unsteady one with a mark.
fn line(ours: &Row, rows: &[Row]) -> Vec<String> {
    let is_like = |row: &&Row| {
        (row.case, &row.variant, row.bytes, row.ranks) == (ours.case, &ours.variant, ours.bytes, ours.ranks)
    };
    let scale = Scale::of(ours.median, ours.metric);
    let mut cells = vec![ours.case.to_string(), variant(ours), size(ours), scale.unit.to_string()];
    for library in LIBRARIES {
        let found = rows.iter().filter(is_like).find(|row| row.library == library);
        let text = found.map(|row| {
            let mark = if row.steady { "" } else { "?" };
            format!("{}{mark}", scale.number(row.median))
        });
        cells.push(text.unwrap_or_else(|| "-".into()));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::harness::repetition::Summary;
    use crate::result::figure::Key;

    #[test]
    fn each_library_has_its_column() {
        let row = |library, median, steady| {
            let key = Key { library, ..Key::ours(Case::Barrier, "", 8) };
            Row::new(key, 4, Summary { median, min: 1.0, max: 2.0, repetitions: 5, steady })
        };
        let rows = [row(Library::Tasuki, 1500.0, true), row(Library::Intel, 3210.0, false)];
        assert_eq!(lines(&rows), [["barrier", "4 ranks", "", "us", "1.5", "-", "-", "3.2?", "-"]]);
        let key = Key::ours(Case::Post, "by_50", 8);
        let summary = Summary { median: 20.0, min: 1.0, max: 30.0, repetitions: 5, steady: true };
        let alone = ["post", "by_50", "8 B", "ns", "20", "-", "-", "-", "-"];
        assert_eq!(lines(&[Row::new(key, 2, summary)]), [alone]);
        assert_eq!(head().len(), 4 + LIBRARIES.len());
    }
}
