//! What a figure is asked to be.

use super::case::Case;
use std::fmt;

/// A bar of the issue; they hold for the rank counts and sizes that it names, on two processors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Bar {
    /// At most this many times the limit.
    RatioAtMost(f64),
    /// At least this part of the limit.
    RatioAtLeast(f64),
    /// Less than this many nanoseconds.
    TimeBelow(f64),
    /// Just as many bytes.
    Exactly(f64),
}

/// Block sizes for which a bandwidth is asked for.
const BLOCKS: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 20;

impl Bar {
    /// What is asked of a case.
    pub(super) fn of(case: Case, bytes: u64, ranks: usize) -> Option<Bar> {
        match case {
            Case::PutNear => Some(Bar::RatioAtMost(1.15)),
            Case::Put => Some(Bar::RatioAtMost(1.6)),
            Case::Get | Case::Atomic => Some(Bar::RatioAtMost(1.25)),
            Case::BandwidthPut => BLOCKS.contains(&bytes).then_some(Bar::RatioAtLeast(0.9)),
            Case::Startup => (ranks == 64).then_some(Bar::TimeBelow(1e9)),
            Case::Idle => (ranks == 4).then_some(Bar::TimeBelow(20e6)),
            Case::Death => (ranks == 4).then_some(Bar::TimeBelow(2e9)),
            Case::Memory | Case::Limit => None,
        }
    }

    /// Whether a figure meets it; `None` if that takes a ratio and there is none.
    pub(super) fn is_met(self, figure: f64, ratio: Option<f64>) -> Option<bool> {
        match self {
            Bar::RatioAtMost(most) => ratio.map(|ratio| ratio <= most),
            Bar::RatioAtLeast(least) => ratio.map(|ratio| ratio >= least),
            Bar::TimeBelow(limit) => Some(figure < limit),
            Bar::Exactly(wanted) => Some(figure == wanted),
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Bar::RatioAtMost(most) => write!(f, "<= {most:.2} x"),
            Bar::RatioAtLeast(least) => write!(f, ">= {least:.2} x"),
            Bar::TimeBelow(ns) if ns >= 1e9 => write!(f, "< {} s", ns / 1e9),
            Bar::TimeBelow(ns) => write!(f, "< {} ms", ns / 1e6),
            Bar::Exactly(bytes) => write!(f, "= {bytes} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_met_from_their_own_side() {
        assert_eq!(Bar::RatioAtMost(1.15).is_met(0.0, Some(1.15)), Some(true));
        assert_eq!(Bar::RatioAtMost(1.15).is_met(0.0, Some(1.16)), Some(false));
        assert_eq!(Bar::RatioAtLeast(0.9).is_met(0.0, Some(0.89)), Some(false));
        assert_eq!(Bar::RatioAtLeast(0.9).is_met(0.0, None), None);
        assert_eq!(Bar::TimeBelow(2e9).is_met(2e9, None), Some(false));
        assert_eq!(Bar::Exactly(5.0).is_met(5.0, None), Some(true));
    }

    #[test]
    fn bars_are_those_of_their_ranks_and_sizes() {
        assert_eq!(Bar::of(Case::Startup, 0, 64).unwrap().to_string(), "< 1 s");
        assert_eq!(Bar::of(Case::Idle, 0, 4).unwrap().to_string(), "< 20 ms");
        assert_eq!(Bar::of(Case::Startup, 0, 8), None);
        assert_eq!(Bar::of(Case::BandwidthPut, 8, 2), None);
        assert_eq!(Bar::of(Case::BandwidthPut, 1 << 20, 2).unwrap().to_string(), ">= 0.90 x");
    }
}
