//! Where the counters of the shares are, and which senders use which share.
//!
//! A network is cut into equal blocks, one for each share: a torus or mesh along its longest sides, any other network
//! in the order of its nodes, so that each block of a fat tree lies below switches of its own. The counters are in the
//! middle of their block, and the senders of a block use them.

use tasuki_schedule::network::Topology;

/// Blocks of nodes, one for each share.
pub(super) struct ShareBlocks {
    sides: Vec<u64>,
    cuts: Vec<u64>,
    last_node: u64,
}

impl ShareBlocks {
    /// Cuts the first `nodes` nodes of a network into `shares` blocks, a power of two.
    pub(super) fn new(topology: &Topology, nodes: u64, shares: u64) -> ShareBlocks {
        let sides = match topology {
            Topology::Grid(grid) => grid.sides().to_vec(),
            _ => vec![nodes],
        };
        let mut cuts = vec![1; sides.len()];
        while cuts.iter().product::<u64>() < shares {
            let parts = |side: usize| sides[side] as f64 / cuts[side] as f64;
            let longest = (0..sides.len()).max_by(|&a, &b| parts(a).total_cmp(&parts(b))).unwrap_or(0);
            cuts[longest] *= 2;
        }
        ShareBlocks { sides, cuts, last_node: nodes - 1 }
    }

    /// The share that a node uses.
    pub(super) fn share_of(&self, node: u64) -> u64 {
        let (mut rest, mut share, mut stride) = (node, 0, 1);
        for (&side, &cut) in self.sides.iter().zip(&self.cuts) {
            share += rest % side * cut / side * stride;
            (rest, stride) = (rest / side, stride * cut);
        }
        share
    }

    /// The node with the counters of a share. A block without nodes has its counters on the last one.
    pub(super) fn home_of(&self, share: u64) -> u64 {
        let (mut rest, mut node, mut stride) = (share, 0, 1);
        for (&side, &cut) in self.sides.iter().zip(&self.cuts) {
            node += (2 * (rest % cut) + 1) * side / (2 * cut) * stride;
            (rest, stride) = (rest / cut, stride * side);
        }
        node.min(self.last_node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_equal_and_hold_their_counters() {
        for (topology, nodes) in [("torus:8x8x16", 1024), ("fat-tree:4", 1024), ("crossbar", 1024)] {
            let topology = Topology::parse(topology, nodes).expect("a topology");
            for shares in [1, 4, 16, 64] {
                let blocks = ShareBlocks::new(&topology, nodes, shares);
                let mut members = vec![0; shares as usize];
                (0..nodes).for_each(|node| members[blocks.share_of(node) as usize] += 1);
                assert!(members.iter().all(|&count| count == nodes / shares), "{topology}: {members:?}");
                assert!((0..shares).all(|share| blocks.share_of(blocks.home_of(share)) == share));
            }
        }
    }
}
