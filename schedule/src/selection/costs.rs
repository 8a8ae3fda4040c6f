//! What things cost on a machine: the measured parameters of the model.

use std::fmt;
use std::str::FromStr;

/// What things cost. Whole numbers, so that all members reckon with the same ones, however they were told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Costs {
    /// From what a rank writes to another's seeing it, each on a processor of its own, in ns.
    pub hand_over_ns: u64,
    /// The same where the other is on another node, in ns.
    pub between_ns: u64,
    /// A rank's turn on a processor that it shares: it is let on, looks around, and offers it to the next, in ns.
    pub turn_ns: u64,
    /// A step of a program, beside the bytes that it moves, in ns.
    pub step_ns: u64,
    /// Bytes that a rank copies in a microsecond.
    pub copied_per_us: u64,
    /// Bytes that a rank combines with others in a microsecond.
    pub combined_per_us: u64,
    /// Bytes that go out of a node, or into it, in a microsecond.
    pub carried_per_us: u64,
}

/// A parameter: its name, and where it is.
type Parameter = (&'static str, fn(&mut Costs) -> &mut u64);

/// CombineWith many there are.
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
/// Larger values are slips of the pen.
const MOST: u64 = 1_000_000_000;

impl Default for Costs {
    /// Fitted to 270 figures of 2 to 16 ranks on a guest with two processors (docs/design/schedules.md).
    /// What is between nodes is assumed, as nothing was measured there: three hops of the simulated network's 100 ns,
    /// and one of its links (`crate::network::Parameters`).
    fn default() -> Costs {
        Costs {
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

impl Costs {
    /// All of them by name.
    pub fn named(mut self) -> [(&'static str, u64); PARAMETERS.len()] {
        PARAMETERS.map(|(name, place)| (name, *place(&mut self)))
    }

    /// The price of one of each, in ns: a hand-over, one between nodes, a turn, a step, a byte copied, a byte combined,
    /// a byte carried.
    pub(super) fn prices(self) -> [f64; COUNT] {
        let [hand_over, between, turn, step] =
            [self.hand_over_ns, self.between_ns, self.turn_ns, self.step_ns].map(|ns| ns as f64);
        let [copied, combined, carried] =
            [self.copied_per_us, self.combined_per_us, self.carried_per_us].map(|rate| 1000.0 / rate as f64);
        [hand_over, between, turn, step, copied, combined, carried]
    }

    /// Costs at such prices, each brought into what is allowed.
    pub(super) fn at(prices: [f64; COUNT]) -> Costs {
        let whole = |value: f64| value.round().clamp(1.0, MOST as f64) as u64;
        let [hand_over, between, turn, step, copied, combined, carried] = prices;
        Costs {
            hand_over_ns: whole(hand_over),
            between_ns: whole(between),
            turn_ns: whole(turn),
            step_ns: whole(step),
            copied_per_us: whole(1000.0 / copied),
            combined_per_us: whole(1000.0 / combined),
            carried_per_us: whole(1000.0 / carried),
        }
    }

    /// These, with one of them changed. The error says what there is, or what is allowed.
    pub fn with(mut self, name: &str, value: u64) -> Result<Costs, String> {
        let names = || PARAMETERS.map(|(name, _)| name).join(", ");
        let found = PARAMETERS.iter().find(|(known, _)| *known == name);
        let (_, place) = found.ok_or_else(|| format!("there is no cost '{name}': there are {}", names()))?;
        if !(1..=MOST).contains(&value) {
            return Err(format!("{name}={value}: allowed is 1 to {MOST}"));
        }
        *place(&mut self) = value;
        Ok(self)
    }
}

impl FromStr for Costs {
    type Err = String;

    /// What is not named is as it is by default.
    fn from_str(text: &str) -> Result<Costs, String> {
        text.split(',').filter(|pair| !pair.is_empty()).try_fold(Costs::default(), |costs, pair| {
            let read = pair.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
            let (name, value) = read.ok_or_else(|| format!("'{pair}' is no NAME=NUMBER"))?;
            costs.with(name, value)
        })
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.named().map(|(name, value)| format!("{name}={value}"));
        f.write_str(&pairs.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_written_and_read() {
        let costs = Costs { turn_ns: 77, ..Costs::default() };
        assert_eq!(costs.to_string().parse(), Ok(costs));
        assert_eq!("turn_ns=77".parse(), Ok(costs));
        for wrong in ["turn_ns", "turn_ns=x", "turn_ns=0", "turn_ns=-1", "turns=5", "turn_ns=1000000001"] {
            assert!(wrong.parse::<Costs>().is_err(), "{wrong}");
        }
        assert!("turns=5".parse::<Costs>().unwrap_err().contains("hand_over_ns, turn_ns"));
    }
}
