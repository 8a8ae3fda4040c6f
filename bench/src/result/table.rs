//! The figures as a table for people, 100 columns wide.

use crate::case::{Case, Kind};
use crate::result::comparison::{Comparison, Verdict};
use crate::result::library::Library;
use crate::result::library_table;
use crate::result::row::{Metric, Row};
use crate::sizes;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use std::fmt::Write;
use std::ops::Range;

/// What the figures are of and how far they can be trusted.
pub(crate) struct Circumstances {
    /// The machine.
    pub(crate) machine: String,
    /// Which values of this machine the library uses.
    pub(crate) tuning: String,
    /// What other libraries are measured.
    pub(crate) peers: Vec<String>,
    /// How the hand-over was done, if it was.
    pub(crate) hand_over_way: Option<String>,
    /// Cases without figures, and why.
    pub(crate) failures: Vec<(Case, String)>,
    /// Remarks on the whole.
    pub(crate) remarks: Vec<String>,
}

/// The whole text. Limits have a table of their own, where they were asked for.
pub(crate) fn show(rows: &[Row], limits_too: bool, around: &Circumstances) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}\n{}", around.machine, around.tuning);
    around.peers.iter().for_each(|peer| text.extend([peer, "\n"]));
    if let Some(hand_over) = rows.iter().find(|row| row.variant == "hand_over") {
        let way = around.hand_over_way.as_deref().unwrap_or_default();
        let median = amount(hand_over.median, hand_over.metric);
        let _ = writeln!(text, "hand-over {median} ({}; {way})", range(hand_over));
    }
    let of = |library| rows.iter().filter(move |row| row.library == library);
    if limits_too {
        let head = ["limit", "buffers", "size", "median", "min - max", ""];
        let lines = of(Library::Limit).map(|row| limit_cells(row).to_vec());
        append(&mut text, &head, lines, 2..5);
    }
    if !around.peers.is_empty() {
        let head = library_table::head();
        append(
            &mut text,
            &head,
            library_table::lines(rows).into_iter(),
            2..4 + library_table::LIBRARIES.len(),
        );
    }
    if of(Library::Tasuki).next().is_some() || !around.failures.is_empty() {
        let head = ["case", "variant", "size", "median", "min - max", "beside", "its", "ratio", "bar", ""];
        let missing = around.failures.iter().map(|(case, _)| missing(*case).to_vec());
        let lines = of(Library::Tasuki).filter(|row| row.is_shown()).flat_map(lines_of);
        append(&mut text, &head, lines.chain(missing), 2..9);
    }
    for remark in remarks(rows, around) {
        let _ = write!(text, "\n{remark}");
    }
    text
}

/// Columns from which on they stand close together.
const WIDE: usize = 9;

/// Adds a table; the columns in `numbers` are aligned to the right.
fn append(text: &mut String, head: &[&str], lines: impl Iterator<Item = Vec<String>>, numbers: Range<usize>) {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_style(TableComponent::HeaderLines, '-');
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.to_vec()).add_rows(lines);
    for (index, column) in table.column_iter_mut().enumerate() {
        if numbers.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        // The widest figures there are leave no room for more within 100 columns.
        column.set_padding((0, if head.len() > WIDE { 1 } else { 2 }));
    }
    text.push('\n');
    table.lines().for_each(|line| text.extend([line.trim_end(), "\n"]));
}

fn limit_cells(row: &Row) -> [String; 6] {
    let steady = if row.steady { "" } else { "unsteady" };
    let (size, median) = (sizes::show(row.bytes), amount(row.median, row.metric));
    [row.variant.clone(), row.setting.clone(), size, median, range(row), steady.into()]
}

/// A line for each of its comparisons; the figure itself stands in the first.
fn lines_of(row: &Row) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = row.comparisons.iter().map(|one| compared(row, one)).collect();
    if lines.is_empty() {
        lines.push(vec![String::new(); 10]);
    }
    let first = [row.case.to_string(), variant(row), size(row), amount(row.median, row.metric), range(row)];
    for (cell, text) in lines[0].iter_mut().zip(first) {
        *cell = text;
    }
    if !row.steady && lines[0][9].is_empty() {
        lines[0][9] = "unsteady".into();
    }
    lines
}

fn compared(row: &Row, one: &Comparison) -> Vec<String> {
    let mut cells = vec![String::new(); 10];
    cells[5].clone_from(&one.name);
    let its = |median| Scale::of(row.median, row.metric).number(median);
    cells[6] = one.median.map(its).unwrap_or_default();
    cells[7] = one.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    cells[8] = one.bar.map(|bar| bar.to_string()).unwrap_or_default();
    cells[9] = match one.verdict {
        Verdict::None => "",
        Verdict::Met => "met",
        Verdict::Missed => "missed",
        Verdict::Off => "peer off",
        Verdict::Unsteady => "unsteady",
    }
    .into();
    cells
}

/// Which figure of the case; where it is played by any number of ranks, by how many.
pub(crate) fn variant(row: &Row) -> String {
    match row.case.kind() {
        Kind::Collective if row.variant.is_empty() => format!("{} ranks", row.ranks),
        Kind::Collective => format!("{} of {}", row.variant, row.ranks),
        _ if row.case == Case::Memory => format!("{} of {} ranks", row.variant, row.ranks),
        _ => row.variant.clone(),
    }
}

/// Bytes of a block; nothing where none is moved.
pub(crate) fn size(row: &Row) -> String {
    let is_barrier = row.case.kind() == Kind::Collective && !row.case.has_sizes();
    let is_barrier = is_barrier || (row.case == Case::Persistent && row.variant.ends_with("barrier"));
    if row.bytes > 0 && !is_barrier { sizes::show(row.bytes) } else { String::new() }
}

/// A case that has no figure.
fn missing(case: Case) -> [String; 10] {
    let mut cells = [const { String::new() }; 10];
    cells[0] = case.to_string();
    cells[3] = "none".into();
    cells[9] = "missed".into();
    cells
}

/// The least and the most, in the unit of the median, which stands beside.
fn range(row: &Row) -> String {
    let scale = Scale::of(row.median, row.metric);
    format!("{} - {}", scale.number(row.min), scale.number(row.max))
}

/// A number with the unit that makes it short.
pub(crate) fn amount(value: f64, metric: Metric) -> String {
    let scale = Scale::of(value, metric);
    format!("{} {}", scale.number(value), scale.unit)
}

/// The unit that makes a number short.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    factor: f64,
    /// Its name.
    pub(crate) unit: &'static str,
}

impl Scale {
    /// For a figure like that one.
    pub(crate) fn of(value: f64, metric: Metric) -> Scale {
        let units: &[(f64, &str)] = match metric {
            Metric::LatencyNs | Metric::TimeNs => &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
            Metric::BandwidthBytesPerS => &[(1e9, "GB/s"), (1e6, "MB/s"), (1.0, "B/s")],
            Metric::RatePerS => &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
            Metric::Bytes => &[(1.0, "B")],
        };
        let fits = units.iter().find(|(factor, _)| value >= *factor).or(units.last());
        fits.map_or(Scale { factor: 1.0, unit: "" }, |&(factor, unit)| Scale { factor, unit })
    }

    /// So many of it.
    pub(crate) fn number(self, value: f64) -> String {
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
    use super::*;
    use crate::cases::buffer_state::State;
    use crate::harness::repetition::Summary;
    use crate::result::comparison::{Field, Off, compare};
    use crate::result::figure::Key;

    fn row(key: Key, median: f64, steady: bool) -> Row {
        let summary = Summary { median, min: median / 1.3, max: median * 1.3, repetitions: 9, steady };
        Row::new(key, 2, summary)
    }

    #[test]
    fn the_table_says_what_is_met_and_fits_100_columns() {
        let mut rows = vec![
            row(Key::ours(Case::PutNear, "", 8), 41.0, true),
            row(Key::ours(Case::Put, "", 8), 90.0, true),
            row(Key::ours(Case::Atomic, "", 8), 90.0, false),
            row(Key::ours(Case::BandwidthPut, "cold_reused", 256 << 10), 123.4e9, true),
            row(Key::ours(Case::BandwidthStream, "cold_reused", 256 << 10), 12.3e9, true),
            row(Key::copy_limit("memcpy", State { cold: true, fresh: false }, 256 << 10), 65.4e9, true),
            row(Key::ours(Case::Message, "", 8), 48.0, true),
            row(Key { library: Library::Intel, ..Key::ours(Case::Message, "", 8) }, 160.0, true),
            row(Key { library: Library::Ucx, ..Key::ours(Case::Message, "", 8) }, 100.0, true),
            row(Key::limit("hand_over"), 40.0, true),
        ];
        let off = vec![Off { library: Library::Mpich, case: None, ranks: 2, why: "absent".into() }];
        let asked = vec![Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx];
        compare(&mut rows, &Field { asked, off });
        let around = Circumstances {
            tuning: "long messages by built-in values".into(),
            machine: "a machine".into(),
            peers: vec!["beside mpich 5.0".into()],
            hand_over_way: Some("release store, no pause".into()),
            failures: vec![(Case::Death, "it did not die".into())],
            remarks: vec!["The machine was busy.".into()],
        };
        let text = show(&rows, true, &around);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        assert!(line("put_near").ends_with("met") && line("put_near").contains("<= 1.15"));
        assert!(line("put ").ends_with("missed") && line("put ").contains("2.25"));
        assert!(line("atomic").ends_with("unsteady"));
        assert!(line("intel").ends_with("peer off") && line("intel").contains("160"), "{text}");
        assert!(line("ucx").ends_with("met") && line("ucx").contains("0.48"), "{text}");
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
