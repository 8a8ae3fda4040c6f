//! What a figure is required to be, and what it is compared with.

use super::library::Library;
use super::metric::Metric;
use std::fmt;

/// What a figure is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum With {
    /// The limit of the machine.
    Limit,
    /// The best of MPICH, Open MPI and Intel MPI.
    Mpi,
    Ucx,
    /// The best of all other libraries.
    Others,
    /// The case `message`.
    Message,
    /// Another variant of the same case: see [`beside`].
    Beside,
    /// Nothing: the demand applies to the figure itself.
    Itself,
}

impl With {
    /// Returns the libraries that must have been measured.
    pub(crate) fn peers(self) -> &'static [Library] {
        match self {
            With::Mpi => &[Library::Mpich, Library::Openmpi, Library::Intel],
            With::Ucx => &[Library::Ucx],
            With::Others => &[Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx],
            _ => &[],
        }
    }
}

/// Returns the variant with which this one is compared, and the word that tables show for it. A figure beside work is
/// compared with the figure without work; a plan that one rank runs, with the plan that all ranks run; 16,384 messages,
/// with 64; and a plan or a nonblocking call, with the blocking call.
pub(crate) fn beside(variant: &str) -> Option<(String, &'static str)> {
    if ["_alone", "_spread", "_call"].iter().any(|ending| variant.ends_with(ending)) {
        return None;
    }
    let replaced = |ending, other: &'static str| {
        variant.strip_suffix(ending).map(|name| (format!("{name}_{other}"), other))
    };
    let fewest = || {
        let (count, order) = variant.split_once('_')?;
        count.parse::<u64>().ok().map(|_| (format!("64_{order}"), "64"))
    };
    let call = || (format!("{}_call", variant.strip_prefix("last_").unwrap_or(variant)), "call");
    Some(replaced("_beside", "alone").or(replaced("_driven", "spread")).or_else(fewest).unwrap_or_else(call))
}

/// What is required of a ratio or, with [`With::Itself`], of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Demand {
    AtMost(f64),
    AtLeast(f64),
    /// In the unit of the figure.
    UpTo(f64),
    From(f64),
    Below(f64),
    Exactly(f64),
}

/// A demand, and the comparison to which it applies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bar {
    pub(crate) with: With,
    pub(crate) demand: Demand,
}

impl Bar {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self.demand {
            Demand::AtMost(most) | Demand::UpTo(most) => value <= most,
            Demand::AtLeast(least) | Demand::From(least) => value >= least,
            Demand::Below(end) => value < end,
            Demand::Exactly(wanted) => value == wanted,
        }
    }

    /// Returns the text that tables show for a figure with this metric.
    pub(crate) fn show(self, metric: Metric) -> String {
        match self.demand {
            Demand::AtMost(most) => format!("<= {most:.2}"),
            Demand::AtLeast(least) => format!(">= {least:.2}"),
            Demand::UpTo(most) => format!("<= {}", metric.show(most)),
            Demand::From(least) => format!(">= {}", metric.show(least)),
            Demand::Below(end) => format!("< {}", metric.show(end)),
            Demand::Exactly(wanted) => format!("= {}", metric.show(wanted)),
        }
    }
}

/// Whether a figure meets its bar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// There is no bar, or the user did not ask for all libraries that the bar names.
    None,
    Met,
    Missed,
    /// The bar is missed because a library that might have been better could not be measured.
    Off,
    /// One of the two figures is not steady.
    Unsteady,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::None => "",
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::Off => "peer off",
            Verdict::Unsteady => "unsteady",
        })
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
        assert!(!is_met(Demand::Below(2e9), 2e9) && is_met(Demand::UpTo(2e3), 2e3));
    }

    #[test]
    fn variants_stand_beside_others() {
        let name = |variant| beside(variant).map(|(other, _)| other).unwrap_or_default();
        assert_eq!(
            ["copy_beside", "bcast_driven", "bcast"].map(name),
            ["copy_alone", "bcast_spread", "bcast_call"]
        );
        assert_eq!(["last_bcast", "16384_random", "bcast_call"].map(name), ["bcast_call", "64_random", ""]);
    }
}
