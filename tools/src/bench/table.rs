//! The figures as a table for people, 100 columns wide.

use super::bar::Bar;
use super::case::Case;
use super::row::{Library, Metric, Row};
use super::sizes;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use std::fmt::Write;
use std::ops::Range;

/// What the figures are of and how far they can be trusted.
pub(super) struct Circumstances {
    /// The machine.
    pub(super) machine: String,
    /// How the hand-over was done, if it was.
    pub(super) hand_over_way: Option<String>,
    /// Cases without figures, and why.
    pub(super) failures: Vec<(Case, String)>,
    /// Remarks on the whole.
    pub(super) remarks: Vec<String>,
}

/// The whole text. Limits have a table of their own, where they were asked for.
pub(super) fn show(rows: &[Row], limits_too: bool, around: &Circumstances) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", around.machine);
    if let Some(hand_over) = rows.iter().find(|row| row.variant == "hand_over") {
        let way = around.hand_over_way.as_deref().unwrap_or_default();
        let median = amount(hand_over.median, hand_over.metric);
        let _ = writeln!(text, "hand-over {median} ({}; {way})", range(hand_over));
    }
    let (limits, cases): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.library == Library::Limit);
    if limits_too {
        let head = ["limit", "buffers", "size", "median", "min - max", ""];
        let lines = limits.into_iter().map(|row| limit_cells(row).to_vec());
        append(&mut text, &head, lines, 2..5);
    }
    if !cases.is_empty() || !around.failures.is_empty() {
        let head = ["case", "variant", "size", "median", "min - max", "limit", "x limit", "bar", ""];
        let missing = around.failures.iter().map(|(case, _)| missing(*case).to_vec());
        let lines = cases.into_iter().map(|row| cells(row).to_vec());
        append(&mut text, &head, lines.chain(missing), 2..7);
    }
    for remark in remarks(rows, around) {
        let _ = write!(text, "\n{remark}");
    }
    text
}

/// Adds a table; the columns in `numbers` are aligned to the right.
fn append(text: &mut String, head: &[&str], lines: impl Iterator<Item = Vec<String>>, numbers: Range<usize>) {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_style(TableComponent::HeaderLines, '-');
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.to_vec()).add_rows(lines);
    for column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text.push('\n');
    table.lines().for_each(|line| text.extend([line.trim_end(), "\n"]));
}

fn limit_cells(row: &Row) -> [String; 6] {
    let steady = if row.steady { "" } else { "unsteady" };
    let (size, median) = (sizes::show(row.bytes), amount(row.median, row.metric));
    [row.variant.clone(), row.setting.clone(), size, median, range(row), steady.into()]
}

fn cells(row: &Row) -> [String; 9] {
    let size = if row.bytes > 0 { sizes::show(row.bytes) } else { String::new() };
    [
        row.case.to_string(),
        row.variant.clone(),
        size,
        amount(row.median, row.metric),
        range(row),
        row.limit.map(|limit| Scale::of(row.median, row.metric).number(limit)).unwrap_or_default(),
        row.ratio_to_limit.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        row.bar.map(|bar| bar.to_string()).unwrap_or_default(),
        verdict(row).into(),
    ]
}

/// A case that has no figure.
fn missing(case: Case) -> [String; 9] {
    let mut cells = [const { String::new() }; 9];
    cells[0] = case.to_string();
    cells[3] = "none".into();
    cells[8] = "missed".into();
    cells
}

fn verdict(row: &Row) -> &'static str {
    match row.is_met() {
        _ if !row.steady => "unsteady",
        Some(true) => "met",
        Some(false) => "missed",
        None if matches!(row.bar, Some(Bar::RatioAtMost(_) | Bar::RatioAtLeast(_))) => "unsteady",
        None => "",
    }
}

/// The least and the most, in the unit of the median, which stands beside.
fn range(row: &Row) -> String {
    let scale = Scale::of(row.median, row.metric);
    format!("{} - {}", scale.number(row.min), scale.number(row.max))
}

/// A number with the unit that makes it short.
pub(super) fn amount(value: f64, metric: Metric) -> String {
    let scale = Scale::of(value, metric);
    format!("{} {}", scale.number(value), scale.unit)
}

/// The unit that makes a number short.
#[derive(Clone, Copy)]
struct Scale {
    factor: f64,
    unit: &'static str,
}

impl Scale {
    fn of(value: f64, metric: Metric) -> Scale {
        let units: &[(f64, &str)] = match metric {
            Metric::LatencyNs | Metric::TimeNs => &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
            Metric::BandwidthBytesPerS => &[(1e9, "GB/s"), (1e6, "MB/s"), (1.0, "B/s")],
            Metric::Bytes => &[(1.0, "B")],
        };
        let fits = units.iter().find(|(factor, _)| value >= *factor).or(units.last());
        fits.map_or(Scale { factor: 1.0, unit: "" }, |&(factor, unit)| Scale { factor, unit })
    }

    fn number(self, value: f64) -> String {
        let number = value / self.factor;
        let digits = if number < 100.0 && number.fract() != 0.0 { 1 } else { 0 };
        format!("{number:.digits$}")
    }
}

fn remarks(rows: &[Row], around: &Circumstances) -> Vec<String> {
    let mut remarks: Vec<String> =
        around.failures.iter().map(|(case, why)| format!("{case} has no figure: {why}\n")).collect();
    if rows.iter().any(|row| !row.steady) {
        remarks.push(
            "unsteady: in fewer than five repetitions the hand-over was the same (within 10 %) before and\n\
             after, and that of the figures compared with. The figure is of all repetitions and compared\n\
             with nothing. Run it on a quiet machine.\n"
                .into(),
        );
    }
    if let Some(hand_over) = rows.iter().find(|row| row.variant == "hand_over")
        && hand_over.max > SPREAD * hand_over.min
    {
        remarks.push(format!("The hand-over varied ({}): the machine was not quiet.\n", range(hand_over)));
    }
    remarks.extend(around.remarks.iter().map(|remark| format!("{remark}\n")));
    remarks
}

/// Hand-overs of a quiet machine are closer together than this.
const SPREAD: f64 = 1.25;

#[cfg(test)]
mod tests {
    use super::super::figure::Key;
    use super::super::repetition::Summary;
    use super::super::row::relate;
    use super::*;

    fn row(key: Key, median: f64, steady: bool) -> Row {
        let summary = Summary { median, min: median / 1.3, max: median * 1.3, repetitions: 9, steady };
        Row::new(key, 2, summary)
    }

    #[test]
    fn the_table_says_what_is_met_and_fits_100_columns() {
        let mut rows = vec![
            row(Key::of_two(Case::PutNear, "", 8), 41.0, true),
            row(Key::of_two(Case::Put, "", 8), 90.0, true),
            row(Key::of_two(Case::Atomic, "", 8), 90.0, false),
            row(Key::of_two(Case::BandwidthPut, "cold_reused", 256 << 10), 123.4e9, true),
            row(Key::limit("hand_over"), 40.0, true),
        ];
        relate(&mut rows);
        let around = Circumstances {
            machine: "a machine".into(),
            hand_over_way: Some("release store, no pause".into()),
            failures: vec![(Case::Death, "it did not die".into())],
            remarks: vec!["The machine was busy.".into()],
        };
        let text = show(&rows, true, &around);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        assert!(line("put_near").ends_with("met") && line("put_near").contains("<= 1.15 x"));
        assert!(line("put ").ends_with("missed") && line("put ").contains("2.25"));
        assert!(line("atomic").ends_with("unsteady"));
        assert!(line("death").contains("none") && text.contains("it did not die"));
        assert!(text.contains("hand-over 40 ns (30.8 - 52; release store, no pause)"), "{text}");
        assert!(text.contains("hand_over  "));
        assert!(!show(&rows, false, &around).contains("hand_over  "));
    }

    #[test]
    fn amounts_have_short_units() {
        for (value, metric, text) in [
            (41.26, Metric::LatencyNs, "41.3 ns"),
            (141.26, Metric::LatencyNs, "141 ns"),
            (1_500.0, Metric::TimeNs, "1.5 us"),
            (2.5e9, Metric::TimeNs, "2.5 s"),
            (0.0, Metric::TimeNs, "0 ns"),
            (51.2e9, Metric::BandwidthBytesPerS, "51.2 GB/s"),
            (20480.0, Metric::Bytes, "20480 B"),
        ] {
            assert_eq!(amount(value, metric), text);
        }
    }
}
