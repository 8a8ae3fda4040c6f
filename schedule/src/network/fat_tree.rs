//! Fat trees: switches with equal numbers of ports down and up, in as many levels as needed. The way up follows the
//! digits of the destination, so all traffic to a node comes down over the same links (D-mod-k).
//!
//! Source: Zahavi, "Fat-trees routing and node ordering providing contention free traffic for MPI global collectives"
//! (2011), where the routing has that name.

use std::fmt;

/// A fat tree: nodes below switches.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{FatTree, Topology};
/// let tree = FatTree::new(16, 1000);
/// assert_eq!((tree.levels(), tree.nodes() >= 1000), (3, true));
/// assert!(Topology::FatTree(tree).hops(0, 999) > 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FatTree {
    arity: u64,
    levels: u32,
}

impl FatTree {
    /// Creates a fat tree of switches with `arity` ports down, at least 2, with as few levels as `nodes` nodes need.
    pub fn new(arity: u64, nodes: u64) -> FatTree {
        let mut levels = 1;
        let mut below = arity;
        while below < nodes {
            below = below.saturating_mul(arity);
            levels += 1;
        }
        FatTree { arity, levels }
    }

    /// Number of levels of switches.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Number of ports down of a switch.
    pub fn arity(&self) -> u64 {
        self.arity
    }

    /// Number of nodes that the tree has room for.
    pub fn nodes(&self) -> u64 {
        self.arity.saturating_pow(self.levels)
    }

    /// All link numbers are below this: at each level there are as many links up as nodes, and as many down.
    pub(super) fn links(&self) -> u64 {
        self.nodes().saturating_mul(2 * u64::from(self.levels))
    }

    pub(super) fn hops(&self, from: u64, to: u64) -> u64 {
        2 * u64::from(self.climb(from, to))
    }

    /// Number of levels up to the lowest switch above both nodes.
    fn climb(&self, from: u64, to: u64) -> u32 {
        let (mut from, mut to, mut levels) = (from, to, 0);
        while from != to {
            (from, to, levels) = (from / self.arity, to / self.arity, levels + 1);
        }
        levels
    }

    /// The link up at a level leaves the subtree that holds the source, chosen by the last digits of the destination;
    /// the way down is the destination's own.
    pub(super) fn route(&self, from: u64, to: u64, links: &mut Vec<u64>) {
        let (climb, mut part) = (self.climb(from, to), 1);
        for level in 0..climb {
            let up = from / part * part + to % part;
            links.push(2 * u64::from(level) * self.nodes() + up);
            part *= self.arity;
        }
        links.extend((0..climb).rev().map(|level| (2 * u64::from(level) + 1) * self.nodes() + to));
    }

    pub(super) fn name(&self, link: u64) -> String {
        let (level, place) = (link / self.nodes(), link % self.nodes());
        let way = if level.is_multiple_of(2) { "up" } else { "down" };
        format!("link {place} {way} at level {}", level / 2)
    }
}

impl fmt::Display for FatTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fat-tree:{}", self.arity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn routes_climb_no_further_than_needed() {
        // Arity 2, 8 nodes, 3 levels, 16 links a level: up from 0, down from 8.
        let tree = FatTree::new(2, 8);
        assert_eq!((tree.levels(), tree.nodes(), tree.links()), (3, 8, 48));
        let route = |from, to| {
            let mut links = Vec::new();
            tree.route(from, to, &mut links);
            assert_eq!(links.len() as u64, tree.hops(from, to));
            links
        };
        assert!(route(3, 3).is_empty());
        assert_eq!(route(0, 1), [0, 8 + 1]);
        // 0 to 6: up from node 0; of the two links above nodes 0 and 1 the one for even destinations; of the four above
        // nodes 0 to 3 that of 6 % 4; then down.
        assert_eq!(route(0, 6), [0, 16, 32 + 2, 40 + 6, 24 + 6, 8 + 6]);
    }

    #[test]
    fn a_shift_of_all_nodes_has_no_contention() {
        let tree = FatTree::new(4, 64);
        for shift in 1..64 {
            let mut links = Vec::new();
            (0..64).for_each(|node| tree.route(node, (node + shift) % 64, &mut links));
            let distinct: BTreeSet<u64> = links.iter().copied().collect();
            assert_eq!(distinct.len(), links.len(), "shift {shift}");
        }
    }

    #[test]
    fn levels_are_as_few_as_fit() {
        assert_eq!(FatTree::new(36, 36).levels(), 1);
        assert_eq!(FatTree::new(36, 37).levels(), 2);
        assert_eq!(FatTree::new(36, 1).to_string(), "fat-tree:36");
    }
}
