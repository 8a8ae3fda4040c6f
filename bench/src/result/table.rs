//! Rows as lines of a table for users. The lines are printed as soon as their rows are complete.

use super::comparison::Comparison;
use super::library::Library;
use super::metric::digits;
use super::row::Row;
use crate::case::Played;
use crate::sizes;

/// Returns the head of the table.
pub(crate) fn head() -> String {
    line(["case         variant", "size", "median", "min - max", "beside", "its", "ratio", "bar", ""])
}

/// Joins cells to a line. Numbers are aligned to the right of their columns; a line is 100 characters wide.
fn line(cells: [&str; 9]) -> String {
    let [name, size, median, range, beside, its, ratio, bar, verdict] = cells;
    // A long name uses part of the next columns.
    let taken = name.chars().count();
    let room = 39_usize.saturating_sub(taken).max(size.chars().count() + usize::from(!size.is_empty()));
    let next = 9_usize.saturating_sub((taken + room).saturating_sub(39));
    let text = format!(
        "{name}{size:>room$} {median:>next$} {range:>13} {beside:<7} {its:>5} {ratio:>5} {bar:>7} {verdict}"
    );
    text.trim_end().to_owned() + "\n"
}

/// Returns the lines for the rows of a group: limits if they are wanted, each row of Tasuki with the figures that it is
/// compared with, and below it the rows of other libraries for the same figure.
pub(crate) fn lines(rows: &[Row], limits_too: bool) -> String {
    let of = |library: Library| rows.iter().filter(move |row| row.library == library);
    let limits = of(Library::Limit).filter(|row| limits_too && row.variant != "hand_over");
    let mut text: String = limits.map(|row| plain(row, &row.setting)).collect();
    for row in of(Library::Tasuki).filter(|row| row.is_shown()) {
        text += &lines_of(row);
        let is_alike = |other: &&Row| other.key().is_alike(&row.key());
        let others = Library::PEERS.into_iter().flat_map(|library| of(library).filter(is_alike));
        others.for_each(|other| text += &plain(other, &other.setting));
    }
    text
}

/// Returns the line of a row that is compared with nothing. A row of another library stands below the row of Tasuki.
fn plain(row: &Row, setting: &str) -> String {
    let name = match row.library {
        Library::Limit => format!("{:<12} {} {setting}", "limit", row.variant),
        library => format!("  {library:<10} {setting}"),
    };
    let unsteady = if row.steady { "" } else { "unsteady" };
    line([&name, &size(row), &row.metric.show(row.median), &varied(row), "", "", "", "", unsteady])
}

fn lines_of(row: &Row) -> String {
    let mut text = String::new();
    for number in 0..row.comparisons.len().max(1) {
        let cells = row.comparisons.get(number).map(|one| compared(row, one)).unwrap_or_default();
        let [beside, its, ratio, bar, mut verdict] = cells;
        if number > 0 {
            text += &line(["", "", "", "", &beside, &its, &ratio, &bar, &verdict]);
            continue;
        }
        if !row.steady && verdict.is_empty() {
            verdict = "unsteady".into();
        }
        let name = format!("{:<12} {}", row.case.name, variant(row));
        let (size, median) = (size(row), row.metric.show(row.median));
        text += &line([&name, &size, &median, &varied(row), &beside, &its, &ratio, &bar, &verdict]);
    }
    text
}

fn compared(row: &Row, one: &Comparison) -> [String; 5] {
    let its = |median: f64| digits(median / row.metric.scale(row.median).0);
    [
        one.name.to_string(),
        one.median.map(its).unwrap_or_default(),
        one.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        one.bar.map(|bar| bar.show(row.metric)).unwrap_or_default(),
        one.verdict.to_string(),
    ]
}

fn variant(row: &Row) -> String {
    let variant = row.variant.trim_end_matches("_driven");
    match row.case.played {
        Played::Collective if variant.is_empty() => format!("{} ranks", row.ranks),
        Played::Collective => format!("{variant} of {}", row.ranks),
        _ => row.variant.clone(),
    }
}

/// Returns the bytes of a block or, if the case moves no data, the number of ranks.
fn size(row: &Row) -> String {
    match row.case.played {
        Played::Memory | Played::Jobs if row.bytes == 0 => format!("{} ranks", row.ranks),
        _ if row.case.is_without_block(&row.variant) => String::new(),
        _ => sizes::show(row.bytes),
    }
}

/// Returns the range of the repetitions, or an empty text if they are all equal.
fn varied(row: &Row) -> String {
    if row.min == row.max { String::new() } else { range(row) }
}

/// Returns the smallest and the largest repetition that counts.
pub(crate) fn range(row: &Row) -> String {
    let show = |value: f64| digits(value / row.metric.scale(row.median).0);
    format!("{} - {}", show(row.min), show(row.max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{CASES, named};
    use crate::harness::repetition::Summary;
    use crate::result::comparison::{Field, Off, compare};
    use crate::result::key::Key;

    fn row(library: Library, case: &str, variant: &str, bytes: u64, median: f64) -> Row {
        let key = Key { library, ..Key::ours(named(case), variant, bytes) };
        let (min, max) = (median / 1.3, median * 1.3);
        Row::new(key, 2, Summary { median, min, max, repetitions: 9, steady: true })
    }

    #[test]
    fn the_table_says_what_is_met_and_fits_100_columns() {
        let mut rows = vec![
            row(Library::Tasuki, "put_near", "", 8, 41.0),
            row(Library::Tasuki, "put", "", 8, 90.0),
            row(Library::Tasuki, "bandwidth_stream", "cold_reused", 256 << 10, 123.4e9),
            row(Library::Limit, "limit", "memcpy_cold", 256 << 10, 165.4e9),
            row(Library::Limit, "limit", "hand_over", 8, 40.0),
            row(Library::Tasuki, "message", "", 8, 48.0),
            row(Library::Intel, "message", "", 8, 160.0),
            row(Library::Ucx, "message", "", 8, 100.0),
        ];
        rows[3].setting = "reused".into();
        let off = vec![Off { library: Library::Mpich, case: None, why: "absent".into() }];
        compare(&mut rows, &Field { asked: Library::PEERS.to_vec(), off });
        let text = head() + &lines(&rows, true);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        assert!(line("put_near").ends_with("met") && line("put_near").contains("<= 1.15"), "{text}");
        assert!(line("put ").ends_with("missed") && line("put ").contains("2.25"), "{text}");
        assert!(text.contains("intel     160") && text.contains("peer off"), "{text}");
        assert!(
            line("ucx       100").ends_with("met") && line("limit").contains("memcpy_cold reused"),
            "{text}"
        );
        assert!(!lines(&rows, false).contains("memcpy_cold"));
    }

    #[test]
    fn every_case_has_a_line() {
        for case in CASES.iter().filter(|case| case.name != "limit") {
            assert!(lines(&[row(Library::Tasuki, case.name, "", 8, 5.0)], false).starts_with(case.name));
        }
    }
}
