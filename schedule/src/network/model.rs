//! A network with ranks on its nodes.

use super::parameters::Parameters;
use super::topology::Topology;

/// The network between the ranks of a program.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Network, Topology};
/// let network = Network::new(Topology::Crossbar(4), 2); // 4 nodes with 2 ranks each
/// assert_eq!((network.ranks(), network.node_of(7)), (8, 3));
/// assert_eq!(network.hops(6, 7), 0); // on one node
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// The topology of the nodes.
    pub topology: Topology,
    /// The parameters.
    pub parameters: Parameters,
    /// Ranks on each node, in consecutive blocks; at least 1.
    pub per_node: u64,
}

impl Network {
    /// Creates a network with the default parameters.
    pub fn new(topology: Topology, per_node: u64) -> Network {
        Network { topology, parameters: Parameters::default(), per_node: per_node.max(1) }
    }

    /// Number of ranks that the network has room for.
    pub fn ranks(&self) -> u64 {
        self.topology.nodes().saturating_mul(self.per_node)
    }

    /// The node of a rank.
    pub fn node_of(&self, rank: u64) -> u64 {
        rank / self.per_node
    }

    /// The links between two ranks; none within a node.
    pub fn hops(&self, from: u64, to: u64) -> u64 {
        self.topology.hops(self.node_of(from), self.node_of(to))
    }
}
