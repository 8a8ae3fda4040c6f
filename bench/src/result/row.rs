//! A figure as a row of the output, and as a line of JSON.

use crate::case::{Case, Kind};
use crate::cases::collective::persistent;
use crate::cases::collective::single_driver;
use crate::harness::repetition::Summary;
use crate::result::comparison::Comparison;
use crate::result::figure::Key;
use crate::result::library::Library;
use crate::result::target::{Bar, With};
use serde::Serialize;
use std::cmp::Ordering;

/// What a figure means; smaller is better but for bandwidths and rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// One operation, or one way.
    LatencyNs,
    /// A whole.
    TimeNs,
    /// Bytes that arrive, by time.
    BandwidthBytesPerS,
    /// Messages that arrive, by time.
    RatePerS,
    /// Memory.
    Bytes,
}

impl Metric {
    fn of(key: &Key) -> Metric {
        let is_copy = key.variant.starts_with("memcpy") || key.variant.starts_with("pair");
        let is_copy = is_copy || (key.case.kind() == Kind::Roles && key.variant.starts_with("copy"));
        match (key.case.kind(), key.case) {
            (Kind::Blocks, _) => Metric::BandwidthBytesPerS,
            (Kind::Limit | Kind::Roles, _) if is_copy => Metric::BandwidthBytesPerS,
            (_, Case::Rate | Case::QueueContention) => Metric::RatePerS,
            (_, Case::Posted) if !key.variant.is_empty() => Metric::TimeNs,
            (_, Case::Post | Case::Chain | Case::Handler) => Metric::TimeNs,
            (_, Case::Memory) => Metric::Bytes,
            (Kind::Collective | Kind::Whole | Kind::Roles, _) => Metric::TimeNs,
            _ => Metric::LatencyNs,
        }
    }

    /// Whether more is better.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self, Metric::BandwidthBytesPerS | Metric::RatePerS)
    }

    fn unit(self) -> &'static str {
        match self {
            Metric::LatencyNs | Metric::TimeNs => "ns",
            Metric::BandwidthBytesPerS => "B/s",
            Metric::RatePerS => "1/s",
            Metric::Bytes => "B",
        }
    }
}

/// One row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) case: Case,
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
    /// This median divided by that of the limit; only where both are steady and it has a meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio_to_limit: Option<f64>,
    /// The same for the best of other libraries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio_to_best: Option<f64>,
    /// What the issue asks for.
    #[serde(skip)]
    pub(crate) bars: Vec<Bar>,
    /// What it stands beside.
    #[serde(skip)]
    pub(crate) comparisons: Vec<Comparison>,
}

impl Row {
    /// A row that is compared with nothing yet.
    pub(crate) fn new(key: Key, ranks: usize, summary: Summary) -> Row {
        let metric = Metric::of(&key);
        let is_ours = key.library == Library::Tasuki;
        let bars = if is_ours { Bar::of(key.case, &key.variant, key.bytes, ranks) } else { Vec::new() };
        Row {
            case: key.case,
            library: key.library,
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
            ratio_to_best: None,
            bars,
            comparisons: Vec::new(),
        }
    }

    /// What it is a figure of.
    pub(crate) fn key(&self) -> Key {
        let (case, library, bytes) = (self.case, self.library, self.bytes);
        Key { case, library, variant: self.variant.clone(), setting: self.setting.clone(), bytes }
    }

    /// Whether it is the figure of that key, whatever its setting.
    pub(crate) fn is_of(&self, key: &Key) -> bool {
        (self.case, self.library, &self.variant, self.bytes)
            == (key.case, key.library, &key.variant, key.bytes)
    }

    /// Whether other libraries can have the same figure.
    pub(crate) fn has_peers(&self) -> bool {
        let is_own = self.case == Case::Persistent && persistent::operation_of(&self.variant).is_none();
        self.case.has_peers() && !is_own
    }

    /// Whether it is shown for itself, not only beside another one.
    pub(crate) fn is_shown(&self) -> bool {
        let is_beside = match self.case {
            Case::Persistent => persistent::is_of_calls(&self.variant),
            Case::SingleDriver => single_driver::beside_spread(&self.variant).is_none(),
            _ => false,
        };
        !is_beside
    }

    /// Its ratio to something.
    pub(crate) fn ratio(&self, with: With) -> Option<f64> {
        self.comparison(with)?.ratio
    }

    /// The limit's median.
    pub(crate) fn limit(&self) -> Option<f64> {
        self.comparison(With::Limit)?.median
    }

    /// What it stands beside, of that kind.
    pub(crate) fn comparison(&self, with: With) -> Option<&Comparison> {
        self.comparisons.iter().find(|one| one.with == with)
    }

    /// The steady one first, then the better one.
    pub(crate) fn better_first(a: &Row, b: &Row) -> Ordering {
        let by_figure = a.median.total_cmp(&b.median);
        let by_figure = if a.metric.is_rate() { by_figure.reverse() } else { by_figure };
        b.steady.cmp(&a.steady).then(by_figure)
    }

    /// Where it stands among others.
    pub(crate) fn place(&self) -> impl Ord + use<> {
        let buffers = if self.library == Library::Limit { self.setting.clone() } else { String::new() };
        (self.case, self.variant.clone(), buffers, self.ranks, self.bytes, self.library)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::comparison::{Field, compare};

    fn row(key: Key, median: f64, steady: bool) -> Row {
        Row::new(key, 2, Summary { median, min: 1.0, max: 2.0, repetitions: 5, steady })
    }

    #[test]
    fn json_has_the_fields_that_measure_md_names_and_no_null() {
        let mut rows =
            [row(Key::ours(Case::PutNear, "", 8), 41.5, true), row(Key::limit("hand_over"), 40.0, true)];
        let names = "case library variant setting ranks bytes metric unit median min max repetitions steady";
        let without = serde_json::to_value(&rows[0]).unwrap();
        let mut fields: Vec<&str> = without.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected: Vec<&str> = names.split(' ').collect();
        fields.sort_unstable();
        expected.sort_unstable();
        assert_eq!(fields, expected);
        compare(&mut rows, &Field::default());
        let with = serde_json::to_value(&rows[0]).unwrap();
        assert_eq!(with["ratio_to_limit"], 41.5 / 40.0);
        assert_eq!((&with["case"], &with["library"]), (&"put_near".into(), &"tasuki".into()));
        assert_eq!(with["metric"], "latency_ns");
        assert!(with.get("ratio_to_best").is_none());
    }

    #[test]
    fn the_better_one_is_less_time_or_more_by_time() {
        let better = |case, a, b| {
            let (a, b) = (row(Key::ours(case, "", 8), a, true), row(Key::ours(case, "", 8), b, true));
            Row::better_first(&a, &b).is_lt()
        };
        assert!(better(Case::Message, 1.0, 2.0) && better(Case::Rate, 2.0, 1.0));
        assert!(better(Case::BandwidthOwn, 2.0, 1.0) && better(Case::Barrier, 1.0, 2.0));
        let unsteady = row(Key::ours(Case::Message, "", 8), 1.0, false);
        assert!(Row::better_first(&row(Key::ours(Case::Message, "", 8), 2.0, true), &unsteady).is_lt());
    }
}
