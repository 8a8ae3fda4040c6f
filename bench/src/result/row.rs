//! A figure as a row of the output, and as a line of JSON.

use super::comparison::Comparison;
use super::key::Key;
use super::library::Library;
use super::metric::Metric;
use super::target::{Bar, With};
use crate::case::{Case, Played};
use crate::harness::repetition::Summary;
use serde::Serialize;
use std::cmp::Ordering;

/// The quantity that a figure with this key measures.
fn metric_of(key: &Key) -> Metric {
    let begins = |start| key.variant.starts_with(start);
    match key.case.played {
        _ if key.library == Library::Limit && (begins("memcpy") || begins("pair")) => {
            Metric::BandwidthBytesPerS
        }
        Played::Roles if begins("copy") => Metric::BandwidthBytesPerS,
        _ if begins("post_gap") => Metric::TimeNs,
        _ if begins("slowest_share") => Metric::Share,
        _ if begins("receiver_growth_bytes") => Metric::Bytes,
        _ => key.case.metric,
    }
}

/// A figure, how it was measured, and what it is compared with.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) case: &'static Case,
    pub(crate) library: Library,
    pub(crate) variant: String,
    pub(crate) setting: String,
    pub(crate) ranks: usize,
    pub(crate) bytes: u64,
    pub(crate) metric: Metric,
    pub(crate) unit: &'static str,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) repetitions: usize,
    pub(crate) steady: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio_to_limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio_to_best: Option<f64>,
    #[serde(skip)]
    pub(crate) bars: Vec<Bar>,
    #[serde(skip)]
    pub(crate) comparisons: Vec<Comparison>,
}

impl Row {
    pub(crate) fn new(key: Key, ranks: usize, summary: Summary) -> Row {
        let metric = metric_of(&key);
        let bars = if key.library == Library::Tasuki { key.case.bars(&key, ranks) } else { Vec::new() };
        let Key { case, library, variant, setting, bytes } = key;
        let Summary { median, min, max, repetitions, steady } = summary;
        Row {
            case,
            library,
            variant,
            setting,
            ranks,
            bytes,
            metric,
            unit: metric.unit(),
            median,
            min,
            max,
            repetitions,
            steady,
            ratio_to_limit: None,
            ratio_to_best: None,
            bars,
            comparisons: Vec::new(),
        }
    }

    pub(crate) fn key(&self) -> Key {
        let (case, library, bytes) = (self.case, self.library, self.bytes);
        Key { case, library, variant: self.variant.clone(), setting: self.setting.clone(), bytes }
    }

    /// Returns true if the row is a line of the table; false if it is only shown beside another row.
    pub(crate) fn is_shown(&self) -> bool {
        let is_spread = self.case.name == "single_driver" && self.variant.ends_with("_spread");
        !is_spread && !self.variant.ends_with("_call")
    }

    pub(crate) fn comparison(&self, with: With) -> Option<&Comparison> {
        self.comparisons.iter().find(|one| one.with == with)
    }

    /// Returns this median divided by that of another figure, if both are steady.
    pub(crate) fn ratio(&self, other: &Row) -> Option<f64> {
        (self.steady && other.steady).then_some(self.median / other.median)
    }

    /// Orders by steadiness, then by figure.
    pub(crate) fn better_first(a: &Row, b: &Row) -> Ordering {
        let by_figure = a.median.total_cmp(&b.median);
        b.steady.cmp(&a.steady).then(if a.metric.is_rate() { by_figure.reverse() } else { by_figure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Limit, named};
    use crate::cases::State;
    use crate::result::comparison::{Field, compare};

    #[test]
    fn json_has_the_documented_fields_and_no_null() {
        let row = |key, median| {
            Row::new(key, 2, Summary { median, min: 1.0, max: 2.0, repetitions: 5, steady: true })
        };
        let hand_over = Key::limit(Limit::HandOver, State::default(), 8);
        let mut rows = [row(Key::ours(named("put_near"), "", 8), 41.5), row(hand_over, 40.0)];
        let fields = |row: &Row| -> Vec<String> {
            serde_json::to_value(row).unwrap().as_object().unwrap().keys().cloned().collect()
        };
        let mut expected: Vec<&str> =
            "case library variant setting ranks bytes metric unit median min max repetitions steady"
                .split(' ')
                .collect();
        expected.sort_unstable();
        assert_eq!(fields(&rows[0]), expected);
        compare(&mut rows, &Field::default());
        let json = serde_json::to_value(&rows[0]).unwrap();
        assert_eq!(
            (&json["case"], &json["library"], &json["metric"]),
            (&"put_near".into(), &"tasuki".into(), &"latency_ns".into())
        );
        assert_eq!((json["ratio_to_limit"].as_f64(), json.get("ratio_to_best")), (Some(41.5 / 40.0), None));
    }

    #[test]
    fn amounts_have_short_units() {
        for (value, metric, text) in [
            (41.26, Metric::LatencyNs, "41.3 ns"),
            (141.26, Metric::LatencyNs, "141 ns"),
            (2.5e9, Metric::TimeNs, "2.5 s"),
            (0.0, Metric::TimeNs, "0 ns"),
            (51.2e9, Metric::BandwidthBytesPerS, "51.2 GB/s"),
            (20480.0, Metric::Bytes, "20 KiB"),
        ] {
            assert_eq!(metric.show(value), text);
        }
    }
}
