//! A network with ranks on its nodes.

use super::parameters::Parameters;
use super::topology::Topology;

/// What the ranks of a program have between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// How nodes are linked.
    pub topology: Topology,
    /// What its parts cost.
    pub parameters: Parameters,
    /// Ranks on each node, one block after the other; at least 1.
    pub per_node: u64,
}

impl Network {
    /// With the usual parameters.
    pub fn new(topology: Topology, per_node: u64) -> Network {
        Network { topology, parameters: Parameters::default(), per_node: per_node.max(1) }
    }

    /// Ranks that there is room for.
    pub fn ranks(&self) -> u64 {
        self.topology.nodes().saturating_mul(self.per_node)
    }

    /// Where a rank is.
    pub fn node_of(&self, rank: u64) -> u64 {
        rank / self.per_node
    }

    /// Links between two ranks; none on a node.
    pub fn hops(&self, from: u64, to: u64) -> u64 {
        self.topology.hops(self.node_of(from), self.node_of(to))
    }
}
