//! The leaders of nodes: the ranks that take part in an algorithm among all ranks, one rank of each node, or the ranks
//! of a node.

use std::ops::Range;

/// Consecutive ranks on nodes, each of which has a leader. If a node has one rank, all ranks are leaders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeLeaders {
    first: usize,
    ranks: usize,
    per_node: usize,
    root: usize,
    count_max: usize,
}

impl NodeLeaders {
    /// All of `ranks` ranks.
    pub(crate) fn all(ranks: usize) -> NodeLeaders {
        NodeLeaders { first: 0, ranks, per_node: 1, root: 0, count_max: ranks }
    }

    /// One leader for each node: the root on its node, the first rank on other nodes.
    pub(crate) fn of_nodes(ranks: usize, per_node: usize, root: usize) -> NodeLeaders {
        NodeLeaders { first: 0, ranks, per_node, root, count_max: ranks.div_ceil(per_node) }
    }

    /// All ranks of a node.
    pub(crate) fn on_node(&self, node: usize) -> NodeLeaders {
        let ranks = self.ranks_of(node);
        let (first, count_max) = (ranks.start, self.per_node);
        NodeLeaders { first, ranks: ranks.len(), per_node: 1, root: first, count_max }
    }

    /// Number of leaders, which is the number of nodes.
    pub(crate) fn count(&self) -> usize {
        self.ranks.div_ceil(self.per_node)
    }

    /// That number; for the ranks of a node, the number of ranks on the largest node.
    pub(crate) fn count_max(&self) -> usize {
        self.count_max
    }

    /// The node of a rank, which is the number of its leader.
    pub(crate) fn node_of(&self, rank: usize) -> usize {
        (rank - self.first) / self.per_node
    }

    /// The leader with that number.
    pub(crate) fn rank_of(&self, number: usize) -> usize {
        if number == self.node_of(self.root) { self.root } else { self.first + number * self.per_node }
    }

    /// The number of a rank, if it is a leader.
    pub(crate) fn number_of(&self, rank: usize) -> Option<usize> {
        let number = self.node_of(rank);
        (self.rank_of(number) == rank).then_some(number)
    }

    /// The leader of a rank's node.
    pub(crate) fn leader_of(&self, rank: usize) -> usize {
        self.rank_of(self.node_of(rank))
    }

    /// The ranks of a node. The last node may have fewer ranks.
    pub(crate) fn ranks_of(&self, node: usize) -> Range<usize> {
        let first = node * self.per_node;
        first..self.ranks.min(first + self.per_node)
    }

    /// The other ranks of a leader's node.
    pub(crate) fn followers(&self, leader: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        self.ranks_of(self.node_of(leader)).filter(move |&rank| rank != leader)
    }

    /// The index of a rank on its node.
    pub(crate) fn index_on_node(&self, rank: usize) -> usize {
        rank % self.per_node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_one_leader_and_the_root_is_a_leader() {
        for (ranks, per_node) in [(1, 1), (5, 2), (8, 4), (9, 4), (33, 8)] {
            for root in 0..ranks {
                let nodes = NodeLeaders::of_nodes(ranks, per_node, root);
                assert_eq!(nodes.number_of(root), Some(root / per_node));
                let leaders: Vec<usize> =
                    (0..ranks).filter(|&rank| nodes.number_of(rank).is_some()).collect();
                assert_eq!(leaders, (0..nodes.count()).map(|node| nodes.rank_of(node)).collect::<Vec<_>>());
                let led: usize = leaders.iter().map(|&leader| 1 + nodes.followers(leader).count()).sum();
                assert_eq!(led, ranks);
                assert!((0..ranks).all(|rank| nodes.node_of(nodes.leader_of(rank)) == nodes.node_of(rank)));
            }
        }
    }
}
