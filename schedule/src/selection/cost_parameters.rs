//! The parameters of the cost model, measured on a machine.

use std::fmt;
use std::str::FromStr;

/// The parameters of the cost model. Whole numbers, so that all members calculate with identical values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CostParameters {
    /// Time from a write of one rank until another rank sees it, each on a processor of its own, in ns.
    pub hand_over_ns: u64,
    /// Time from a write of one rank until a rank on another node sees it, in ns.
    pub between_ns: u64,
    /// The turn of a rank on a shared processor: it is scheduled, polls, and yields to the next rank, in ns.
    pub turn_ns: u64,
    /// A step of compiled commands, without the bytes that it moves, in ns.
    pub step_ns: u64,
    /// Bytes that a rank copies in a microsecond.
    pub copied_per_us: u64,
    /// Bytes that a rank combines in a microsecond.
    pub combined_per_us: u64,
    /// Bytes that a node sends or receives in a microsecond.
    pub carried_per_us: u64,
}

/// A parameter: its name, and access to its field.
type Parameter = (&'static str, fn(&mut CostParameters) -> &mut u64);

/// Number of parameters.
pub(super) const COUNT: usize = 7;
const PARAMETERS: [Parameter; COUNT] = [
    ("hand_over_ns", |costs| &mut costs.hand_over_ns),
    ("turn_ns", |costs| &mut costs.turn_ns),
    ("step_ns", |costs| &mut costs.step_ns),
    ("copied_per_us", |costs| &mut costs.copied_per_us),
    ("combined_per_us", |costs| &mut costs.combined_per_us),
    ("between_ns", |costs| &mut costs.between_ns),
    ("carried_per_us", |costs| &mut costs.carried_per_us),
];
/// The largest value accepted; a larger one must be a typing error.
const MOST: u64 = 1_000_000_000;

impl Default for CostParameters {
    /// Fitted to 270 measurements of 2 to 16 ranks on a virtual machine with two processors
    /// (docs/design/collectives/schedules.md). The parameters between nodes are assumed, not measured: three hops of
    /// the simulated network's 100 ns, and the rate of one of its links (`crate::network::Parameters`).
    fn default() -> CostParameters {
        CostParameters {
            hand_over_ns: 70,
            between_ns: 300,
            turn_ns: 700,
            step_ns: 25,
            copied_per_us: 25_000,
            combined_per_us: 9500,
            carried_per_us: 12_500,
        }
    }
}

impl CostParameters {
    /// All parameters with their names.
    pub fn named(mut self) -> [(&'static str, u64); PARAMETERS.len()] {
        PARAMETERS.map(|(name, place)| (name, *place(&mut self)))
    }

    /// The price of each cost, in ns: a hand-over, a hand-over between nodes, a turn, a step, a byte copied, a byte
    /// combined, a byte carried.
    pub(super) fn prices(self) -> [f64; COUNT] {
        let [hand_over, between, turn, step] =
            [self.hand_over_ns, self.between_ns, self.turn_ns, self.step_ns].map(|ns| ns as f64);
        let [copied, combined, carried] =
            [self.copied_per_us, self.combined_per_us, self.carried_per_us].map(|rate| 1000.0 / rate as f64);
        [hand_over, between, turn, step, copied, combined, carried]
    }

    /// The parameters for these prices, each clamped to the accepted range.
    pub(super) fn at(prices: [f64; COUNT]) -> CostParameters {
        let whole = |value: f64| value.round().clamp(1.0, MOST as f64) as u64;
        let [hand_over, between, turn, step, copied, combined, carried] = prices;
        CostParameters {
            hand_over_ns: whole(hand_over),
            between_ns: whole(between),
            turn_ns: whole(turn),
            step_ns: whole(step),
            copied_per_us: whole(1000.0 / copied),
            combined_per_us: whole(1000.0 / combined),
            carried_per_us: whole(1000.0 / carried),
        }
    }

    /// Returns the parameters with one of them changed.
    ///
    /// Errors: no parameter has that name (the message lists the names), or the value is out of range.
    pub fn with(mut self, name: &str, value: u64) -> Result<CostParameters, String> {
        let names = || PARAMETERS.map(|(name, _)| name).join(", ");
        let found = PARAMETERS.iter().find(|(known, _)| *known == name);
        let (_, place) =
            found.ok_or_else(|| format!("there is no cost '{name}': choose from {}", names()))?;
        if !(1..=MOST).contains(&value) {
            return Err(format!("{name}={value}: allowed is 1 to {MOST}"));
        }
        *place(&mut self) = value;
        Ok(self)
    }
}

impl FromStr for CostParameters {
    type Err = String;

    /// Parameters that are not named keep their defaults.
    fn from_str(text: &str) -> Result<CostParameters, String> {
        text.split(',').filter(|pair| !pair.is_empty()).try_fold(CostParameters::default(), |costs, pair| {
            let read = pair.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
            let (name, value) = read.ok_or_else(|| format!("'{pair}' is no NAME=NUMBER"))?;
            costs.with(name, value)
        })
    }
}

impl fmt::Display for CostParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.named().map(|(name, value)| format!("{name}={value}"));
        f.write_str(&pairs.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_formatted_and_parsed() {
        let costs = CostParameters { turn_ns: 77, ..CostParameters::default() };
        assert_eq!(costs.to_string().parse(), Ok(costs));
        assert_eq!("turn_ns=77".parse(), Ok(costs));
        for wrong in ["turn_ns", "turn_ns=x", "turn_ns=0", "turn_ns=-1", "turns=5", "turn_ns=1000000001"] {
            assert!(wrong.parse::<CostParameters>().is_err(), "{wrong}");
        }
        assert!("turns=5".parse::<CostParameters>().unwrap_err().contains("hand_over_ns, turn_ns"));
    }
}
