//! A figure as a row of the output, and as a line of JSON.

use super::bar::Bar;
use super::case::Case;
use super::figure::Key;
use super::repetition::Summary;
use serde::Serialize;

/// Who was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Library {
    /// Ours.
    Tasuki,
    /// Bare loops.
    Limit,
}

/// What a figure means; smaller is better but for bandwidths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Metric {
    /// One operation, or one way.
    LatencyNs,
    /// A whole.
    TimeNs,
    /// Bytes that arrive, by time.
    BandwidthBytesPerS,
    /// Memory.
    Bytes,
}

impl Metric {
    fn of(key: &Key) -> Metric {
        match key.case {
            Case::BandwidthPut => Metric::BandwidthBytesPerS,
            Case::Limit if key.variant.starts_with("memcpy") || key.variant.starts_with("pair") => {
                Metric::BandwidthBytesPerS
            }
            Case::Startup | Case::Idle | Case::Death => Metric::TimeNs,
            Case::Memory => Metric::Bytes,
            _ => Metric::LatencyNs,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Metric::LatencyNs | Metric::TimeNs => "ns",
            Metric::BandwidthBytesPerS => "B/s",
            Metric::Bytes => "B",
        }
    }
}

/// One row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) case: Case,
    pub(super) library: Library,
    pub(super) variant: String,
    pub(super) setting: String,
    pub(super) ranks: usize,
    pub(super) bytes: u64,
    pub(super) metric: Metric,
    pub(super) unit: &'static str,
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) repetitions: usize,
    pub(super) steady: bool,
    /// This median divided by that of the limit; only where both are steady and it has a meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio_to_limit: Option<f64>,
    /// The same for the limit's median.
    #[serde(skip)]
    pub(super) limit: Option<f64>,
    /// What the issue asks for.
    #[serde(skip)]
    pub(super) bar: Option<Bar>,
}

impl Row {
    /// A row without limit or bar.
    pub(super) fn new(key: Key, ranks: usize, summary: Summary) -> Row {
        let metric = Metric::of(&key);
        let library = if key.case == Case::Limit { Library::Limit } else { Library::Tasuki };
        let bar = Bar::of(key.case, key.bytes, ranks);
        Row {
            case: key.case,
            library,
            variant: key.variant,
            setting: key.setting,
            ranks,
            bytes: key.bytes,
            metric,
            unit: metric.unit(),
            median: summary.median,
            min: summary.min,
            max: summary.max,
            repetitions: summary.repetitions,
            steady: summary.steady,
            ratio_to_limit: None,
            limit: None,
            bar,
        }
    }

    /// What it is a figure of.
    pub(super) fn key(&self) -> Key {
        let (variant, setting) = (self.variant.clone(), self.setting.clone());
        Key { case: self.case, variant, setting, bytes: self.bytes }
    }

    /// Whether the bar is met; `None` without a bar, or without a steady figure to hold against it.
    pub(super) fn is_met(&self) -> Option<bool> {
        let bar = self.bar?;
        bar.is_met(self.steady.then_some(self.median)?, self.ratio_to_limit)
    }
}

/// Divides each row by its limit, where both are steady.
pub(super) fn relate(rows: &mut [Row]) {
    let limits: Vec<(Key, f64, bool)> = rows
        .iter()
        .filter(|row| row.library == Library::Limit)
        .map(|row| (row.key(), row.median, row.steady))
        .collect();
    for row in rows.iter_mut() {
        let wanted = row.key().bounded_by();
        let found = limits.iter().find(|(key, ..)| Some(key) == wanted.as_ref());
        if let Some((_, median, steady)) = found {
            row.limit = Some(*median);
            row.ratio_to_limit = (row.steady && *steady).then_some(row.median / median);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: Key, median: f64, steady: bool) -> Row {
        Row::new(key, 2, Summary { median, min: 1.0, max: 2.0, repetitions: 5, steady })
    }

    #[test]
    fn rows_are_divided_by_their_limit() {
        let put = Key::of_two(Case::Put, "", 8);
        let mut rows = [row(put.clone(), 60.0, true), row(Key::limit("hand_over"), 40.0, true)];
        relate(&mut rows);
        assert_eq!((rows[0].ratio_to_limit, rows[0].is_met()), (Some(1.5), Some(true)));
        assert_eq!((rows[1].ratio_to_limit, rows[1].is_met()), (None, None));
        let mut rows = [row(put, 60.0, false), row(Key::limit("hand_over"), 40.0, true)];
        relate(&mut rows);
        assert_eq!((rows[0].ratio_to_limit, rows[0].is_met()), (None, None));
    }

    #[test]
    fn json_has_the_fields_that_measure_md_names_and_no_null() {
        let mut rows =
            [row(Key::of_two(Case::PutNear, "", 8), 41.5, true), row(Key::limit("hand_over"), 40.0, true)];
        let names = "case library variant setting ranks bytes metric unit median min max repetitions steady";
        let without = serde_json::to_value(&rows[0]).unwrap();
        let fields: Vec<&str> = without.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected: Vec<&str> = names.split(' ').collect();
        expected.sort_unstable();
        assert_eq!(
            {
                let mut f = fields;
                f.sort_unstable();
                f
            },
            expected
        );
        relate(&mut rows);
        let with = serde_json::to_value(&rows[0]).unwrap();
        assert_eq!(with["ratio_to_limit"], 41.5 / 40.0);
        assert_eq!((&with["case"], &with["library"]), (&"put_near".into(), &"tasuki".into()));
        assert_eq!(with["metric"], "latency_ns");
    }
}
