//! The quantities that figures measure, and how their values are shown.

use serde::Serialize;

/// The quantity that a figure measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    LatencyNs,
    TimeNs,
    BandwidthBytesPerS,
    RatePerS,
    Bytes,
    /// A quotient of two figures.
    Share,
}

impl Metric {
    /// Returns true if larger values are better.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self, Metric::BandwidthBytesPerS | Metric::RatePerS | Metric::Share)
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Metric::LatencyNs | Metric::TimeNs => "ns",
            Metric::BandwidthBytesPerS => "B/s",
            Metric::RatePerS => "1/s",
            Metric::Bytes => "B",
            Metric::Share => "1",
        }
    }

    /// Returns a factor and a unit in which a value has few digits.
    pub(crate) fn scale(self, value: f64) -> (f64, &'static str) {
        let units: &[(f64, &str)] = match self {
            Metric::LatencyNs | Metric::TimeNs => &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
            Metric::BandwidthBytesPerS => &[(1e9, "GB/s"), (1e6, "MB/s"), (1.0, "B/s")],
            Metric::RatePerS => &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
            Metric::Bytes => &[(1048576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")],
            Metric::Share => &[(0.01, "%")],
        };
        *units.iter().find(|(factor, _)| value >= *factor).unwrap_or(&units[units.len() - 1])
    }

    /// Returns a value with its unit.
    pub(crate) fn show(self, value: f64) -> String {
        let (factor, unit) = self.scale(value);
        format!("{} {unit}", digits(value / factor))
    }
}

/// Returns a number with only the digits that are significant.
pub(crate) fn digits(number: f64) -> String {
    let digits = if number < 100.0 && number.fract() != 0.0 { 1 } else { 0 };
    format!("{number:.digits$}")
}
