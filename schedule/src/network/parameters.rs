//! What things cost: the parameters of LogGP, an engine's and a link's.
//!
//! Sources: Alexandrov, Ionescu, Schauser, Scheiman, "LogGP: incorporating long messages into the LogP model" (1995);
//! the values are those that Morie and others used for FX100 in their study of broadcasts run by its interface.

use super::time::Time;

/// What a network's parts cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// L: a hop's latency.
    pub latency: Time,
    /// G: an engine's time for a byte between nodes.
    pub byte: Time,
    /// G where both ends are on one node.
    pub byte_inside: Time,
    /// g: what an engine needs for a command besides its bytes.
    pub gap: Time,
    /// o: what a call takes of the host's time.
    pub overhead: Time,
    /// A link's time for a byte.
    pub link_byte: Time,
    /// What it takes to combine a byte with another, at the destination.
    pub reduce_byte: Time,
    /// Engines of a node, each of which does one command at a time.
    pub engines: u32,
}

impl Default for Parameters {
    /// L = 100 ns, G = 0.104762 ns, g = 1 ns, four engines, links of 12.5 GB/s. The study has no overhead, and combines
    /// nothing: a byte combined is taken for 0.05 ns, 20 GB/s.
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
    /// What lies between a command's beginning and the arrival of its last byte, if nobody is in the way: `hops` L
    /// + m G. Inside a node at least one L, as a transfer passes the engine there, too.
    pub fn flight(&self, hops: u64, bytes: u64) -> Time {
        let byte = if hops == 0 { self.byte_inside } else { self.byte };
        self.latency * hops.max(1) + byte * bytes
    }

    /// How long an engine is taken by a command: m G + g.
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
        assert_eq!(costs.flight(4, 0), Time::nanoseconds(400));
        assert_eq!(costs.flight(2, 1000), Time::femtoseconds(200_000_000 + 104_762_000));
        assert_eq!(costs.flight(0, 1000), costs.flight(1, 1000));
        assert_eq!(costs.occupied(3, 1000), Time::femtoseconds(104_762_000 + 1_000_000));
        let faster = Parameters { byte_inside: Time::femtoseconds(50_000), ..costs };
        assert_eq!(faster.flight(0, 1000), Time::nanoseconds(150));
        assert_eq!(faster.flight(1, 1000), costs.flight(1, 1000));
    }
}
