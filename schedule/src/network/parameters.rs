//! The cost parameters of the network: LogGP's, those of engines and of links.
//!
//! Sources: Alexandrov, Ionescu, Schauser, Scheiman, "LogGP: incorporating long messages into the LogP model" (1995);
//! the values are those that Morie and others used for FX100 in their study of broadcasts run by its interface.

use super::time::Time;

/// The cost parameters of a network.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Network, Parameters, Time, Topology};
/// let mut network = Network::new(Topology::Crossbar(4), 1);
/// let usual = network.parameters.transfer_time(1, 1 << 20);
/// network.parameters = Parameters { latency: Time::nanoseconds(50_000), ..network.parameters };
/// assert!(network.parameters.transfer_time(1, 1 << 20) > usual);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// L: latency of a hop.
    pub latency: Time,
    /// G: time of an engine for a byte between nodes.
    pub byte: Time,
    /// G if both ends are on one node.
    pub byte_inside: Time,
    /// g: time of an engine for a step, besides its bytes.
    pub gap: Time,
    /// o: host time of a call.
    pub overhead: Time,
    /// Time of a link for a byte.
    pub link_byte: Time,
    /// Time to combine a byte with another, at the destination.
    pub reduce_byte: Time,
    /// Engines of a node, each of which runs one step at a time.
    pub engines: u32,
}

impl Default for Parameters {
    /// L = 100 ns, G = 0.104762 ns, g = 1 ns, four engines, links of 12.5 GB/s. The study has no overhead, and no
    /// reductions: the 0.05 ns for a combined byte (20 GB/s) are assumed.
    fn default() -> Parameters {
        let byte = Time::femtoseconds(104_762);
        Parameters {
            latency: Time::nanoseconds(100),
            byte,
            byte_inside: byte,
            gap: Time::nanoseconds(1),
            overhead: Time::ZERO,
            link_byte: Time::femtoseconds(80_000),
            reduce_byte: Time::femtoseconds(50_000),
            engines: 4,
        }
    }
}

impl Parameters {
    /// Time from a step's beginning to the arrival of its last byte, without contention: `hops` L + m G. Inside a
    /// node at least one L, as a transfer passes the engine there, too.
    pub fn transfer_time(&self, hops: u64, bytes: u64) -> Time {
        let byte = if hops == 0 { self.byte_inside } else { self.byte };
        self.latency * hops.max(1) + byte * bytes
    }

    /// Time that a step takes of an engine: m G + g.
    pub fn occupied(&self, hops: u64, bytes: u64) -> Time {
        let byte = if hops == 0 { self.byte_inside } else { self.byte };
        byte * bytes + self.gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_formulas() {
        let costs = Parameters::default();
        assert_eq!(costs.transfer_time(4, 0), Time::nanoseconds(400));
        assert_eq!(costs.transfer_time(2, 1000), Time::femtoseconds(200_000_000 + 104_762_000));
        assert_eq!(costs.transfer_time(0, 1000), costs.transfer_time(1, 1000));
        assert_eq!(costs.occupied(3, 1000), Time::femtoseconds(104_762_000 + 1_000_000));
        let faster = Parameters { byte_inside: Time::femtoseconds(50_000), ..costs };
        assert_eq!(faster.transfer_time(0, 1000), Time::nanoseconds(150));
        assert_eq!(faster.transfer_time(1, 1000), costs.transfer_time(1, 1000));
    }
}
