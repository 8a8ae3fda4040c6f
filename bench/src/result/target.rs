//! What a figure is asked to be.

use crate::case::Case;
use crate::cases::collective::persistent;
use crate::result::library::Library;
use crate::sizes::{BROADCASTS, SHORT, SUMS};
use std::fmt;

/// A bar of the issue; they hold for the rank counts and sizes that it names, on two processors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bar {
    /// What the figure is divided by.
    pub(crate) with: With,
    /// What the quotient is to be; of [`With::Itself`], the figure.
    pub(crate) demand: Demand,
}

/// What a figure is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum With {
    /// Its limit.
    Limit,
    /// The best of the MPI libraries.
    Mpi,
    /// UCX.
    Ucx,
    /// The best of all other libraries.
    Others,
    /// The case message: the same without what this one adds.
    Message,
    /// The same alone: its variant that ends with [`ALONE`] instead of [`BESIDE`].
    Alone,
    /// The same by the call that returns when it is over.
    Calls,
    /// The same by lists of all ranks: its variant of [`single_driver::Form::Spread`](crate::cases::collective::single_driver::Form).
    Spread,
    /// Nothing: the figure counts.
    Itself,
}

/// Ends of the names of variants: with something else going on, and without.
const BESIDE: &str = "_beside";
const ALONE: &str = "_alone";

impl With {
    /// The other libraries that belong to it.
    pub(crate) fn peers(self) -> &'static [Library] {
        match self {
            With::Mpi => &[Library::Mpich, Library::Openmpi, Library::Intel],
            With::Ucx => &[Library::Ucx],
            With::Others => &[Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx],
            _ => &[],
        }
    }

    /// The variant that one stands beside as [`With::Alone`], if it has one.
    pub(crate) fn alone(variant: &str) -> Option<String> {
        Some(format!("{}{ALONE}", variant.strip_suffix(BESIDE)?))
    }
}

/// What is demanded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Demand {
    /// At most this many times what it is compared with.
    AtMost(f64),
    /// At least this part of it.
    AtLeast(f64),
    /// Less than this many nanoseconds.
    TimeBelow(f64),
    /// Just as many bytes.
    Exactly(f64),
    /// Fewer bytes.
    BytesBelow(u64),
}

/// Block sizes for which a bandwidth is asked for; own memory also below,
const BLOCKS: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 20;
const OWN_BLOCKS: std::ops::RangeInclusive<u64> = 4 << 10..=64 << 20;
/// where it is to be better than others up to this size, and as good above.
const OWN_BETTER: u64 = 4 << 20;
/// Blocks that are long enough for two processors.
const SHARED_BLOCKS: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 20;

impl Bar {
    /// What is asked of a figure.
    pub(crate) fn of(case: Case, variant: &str, bytes: u64, ranks: usize) -> Vec<Bar> {
        use Demand::{AtLeast, AtMost, TimeBelow};
        let demands: &[(With, Demand)] = match (case, ranks) {
            (Case::PutNear, _) => &[(With::Limit, AtMost(1.15))],
            (Case::Put, _) => &[(With::Limit, AtMost(1.6))],
            (Case::Message, _) => {
                &[(With::Limit, AtMost(1.35)), (With::Mpi, AtMost(0.7)), (With::Ucx, AtMost(0.75))]
            }
            (Case::Posted, _) if variant.is_empty() => &[(With::Message, AtMost(1.1))],
            (Case::Posted, _) => &[(With::Limit, AtMost(1.0))],
            (Case::Oversubscribed, _) => &[(With::Message, AtMost(1.3))],
            (Case::Rate, _) => &[(With::Others, AtLeast(1.2))],
            (Case::Get | Case::Atomic, _) => &[(With::Limit, AtMost(1.25))],
            (Case::Post, _) if variant == "by_50" => &[(With::Limit, AtMost(0.5))],
            (Case::Post, _) => &[(With::Limit, AtMost(0.8))],
            (Case::Chain, _) if variant == "by_source" => &[(With::Limit, AtMost(2.5))],
            (Case::Handler, _) => &[(With::Limit, AtMost(3.5)), (With::Ucx, AtMost(1.0))],
            (Case::BandwidthPut, _) if BLOCKS.contains(&bytes) => &[(With::Limit, AtLeast(0.9))],
            (Case::BandwidthJob, _) if BLOCKS.contains(&bytes) => {
                &[(With::Limit, AtLeast(0.9)), (With::Mpi, AtLeast(1.0))]
            }
            (Case::BandwidthOwn, _) if !OWN_BLOCKS.contains(&bytes) => &[],
            (Case::BandwidthOwn, _) if bytes <= OWN_BETTER => &[(With::Mpi, AtLeast(1.2))],
            (Case::BandwidthOwn, _) => &[(With::Mpi, AtLeast(1.0))],
            (Case::SharedCopy, _) if SHARED_BLOCKS.contains(&bytes) => {
                &[(With::Limit, AtLeast(0.9)), (With::Mpi, AtLeast(1.4))]
            }
            (Case::Barrier, 2) => &[(With::Mpi, AtMost(0.6))],
            (Case::Barrier, _) => &[(With::Mpi, AtMost(0.7))],
            (Case::Bcast, _) if BROADCASTS.contains(&bytes) => &[(With::Mpi, AtMost(0.7))],
            (Case::Allreduce, _) if SUMS.contains(&bytes) => &[(With::Mpi, AtMost(0.7))],
            (Case::Reduce, _) if bytes == SHORT[1] => &[(With::Mpi, AtMost(0.7))],
            (Case::Allgather | Case::Alltoall, _) if SHORT.contains(&bytes) => &[(With::Mpi, AtMost(0.7))],
            (Case::Persistent, _) if !SUMS.contains(&bytes) => &[],
            (Case::Persistent, _) if persistent::is_of_calls(variant) => &[],
            (Case::Persistent, _) if persistent::operation_of(variant).is_some() => {
                &[(With::Calls, AtMost(1.03)), (With::Mpi, AtMost(0.5))]
            }
            (Case::Persistent, 2) => &[], // it is asked from four ranks on
            (Case::Persistent, _) => &[(With::Calls, AtMost(0.5))],
            (Case::OverlapColl, _) => match variant.strip_suffix(BESIDE) {
                Some(_) => &[(With::Alone, AtMost(0.1))],
                None => &[],
            },
            (Case::Fuzzy, 2) => &[(With::Limit, AtMost(2.0)), (With::Mpi, AtMost(0.3))],
            (Case::Fuzzy, 4 | 8) => &[(With::Mpi, AtMost(0.3))],
            (Case::FuzzyHidden, 2) => &[(With::Mpi, AtMost(0.25))],
            (Case::OverlapCopy | Case::Thirdparty, _) => match variant {
                "work_beside" => &[(With::Alone, AtMost(1.02))],
                "copy_beside" => &[(With::Alone, AtLeast(0.9))],
                _ => &[],
            },
            (Case::Startup, 64) => &[(With::Itself, TimeBelow(1e9))],
            (Case::Idle, 4) => &[(With::Itself, TimeBelow(20e6))],
            (Case::Death, 4) => &[(With::Itself, TimeBelow(2e9))],
            _ => &[],
        };
        demands.iter().map(|&(with, demand)| Bar { with, demand }).collect()
    }

    /// Whether a figure, or its ratio to what it is compared with, meets it.
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self.demand {
            Demand::AtMost(most) => value <= most,
            Demand::AtLeast(least) => value >= least,
            Demand::TimeBelow(limit) => value < limit,
            Demand::Exactly(wanted) => value == wanted,
            Demand::BytesBelow(limit) => value < limit as f64,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.demand {
            Demand::AtMost(most) => write!(f, "<= {most:.2}"),
            Demand::AtLeast(least) => write!(f, ">= {least:.2}"),
            Demand::TimeBelow(ns) if ns >= 1e9 => write!(f, "< {} s", ns / 1e9),
            Demand::TimeBelow(ns) => write!(f, "< {} ms", ns / 1e6),
            Demand::Exactly(bytes) => write!(f, "= {bytes} B"),
            Demand::BytesBelow(bytes) => write!(f, "< {} KiB", bytes >> 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_met_from_their_own_side() {
        let is_met = |demand, value| Bar { with: With::Limit, demand }.is_met(value);
        assert!(is_met(Demand::AtMost(1.15), 1.15) && !is_met(Demand::AtMost(1.15), 1.16));
        assert!(is_met(Demand::AtLeast(0.9), 0.9) && !is_met(Demand::AtLeast(0.9), 0.89));
        assert!(!is_met(Demand::TimeBelow(2e9), 2e9) && is_met(Demand::Exactly(5.0), 5.0));
    }

    #[test]
    fn plans_are_held_against_calls_and_others() {
        let among = |ranks, variant, bytes| -> Vec<String> {
            let bars = Bar::of(Case::Persistent, variant, bytes, ranks);
            bars.iter().map(|bar| format!("{:?} {bar}", bar.with)).collect()
        };
        let of = |variant, bytes| among(4, variant, bytes);
        assert_eq!(of("bcast", 8), ["Calls <= 1.03", "Mpi <= 0.50"]);
        assert_eq!(of("last_barrier", 8), ["Calls <= 0.50"]);
        assert_eq!((among(2, "last_barrier", 8), among(2, "barrier", 8).len()), (vec![], 2));
        assert_eq!((of("bcast_call", 8), of("bcast", 64)), (vec![], vec![]));
    }

    #[test]
    fn bars_are_those_of_their_ranks_and_sizes() {
        let of = |case, bytes, ranks| -> Vec<String> {
            Bar::of(case, "", bytes, ranks).iter().map(|bar| format!("{:?} {bar}", bar.with)).collect()
        };
        assert_eq!(of(Case::Startup, 0, 64), ["Itself < 1 s"]);
        assert_eq!(of(Case::Idle, 0, 4), ["Itself < 20 ms"]);
        assert_eq!(of(Case::Startup, 0, 8), [""; 0]);
        assert_eq!(of(Case::BandwidthPut, 8, 2), [""; 0]);
        assert_eq!(of(Case::BandwidthJob, 1 << 20, 2), ["Limit >= 0.90", "Mpi >= 1.00"]);
        assert_eq!(of(Case::BandwidthOwn, 16 << 20, 2), ["Mpi >= 1.00"]);
        assert_eq!(of(Case::SharedCopy, 64 << 10, 2), [""; 0]);
        assert_eq!(of(Case::SharedCopy, 1 << 20, 2), ["Limit >= 0.90", "Mpi >= 1.40"]);
        assert_eq!(of(Case::Barrier, 8, 2), ["Mpi <= 0.60"]);
        assert_eq!((of(Case::Barrier, 8, 16), of(Case::Reduce, 8, 4)), (vec!["Mpi <= 0.70".into()], vec![]));
        assert_eq!(of(Case::Bcast, 8 << 20, 4), ["Mpi <= 0.70"]);
        assert_eq!(of(Case::Fuzzy, 8, 8), ["Mpi <= 0.30"]);
        assert_eq!(of(Case::Message, 8, 2), ["Limit <= 1.35", "Mpi <= 0.70", "Ucx <= 0.75"]);
    }
}
