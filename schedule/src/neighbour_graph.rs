//! Neighbour graphs: the pairs of ranks that exchange blocks.

/// A block that a rank sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The receiver.
    pub to: usize,
    /// Index of the block among those that the receiver gets.
    pub slot: usize,
    /// Size in bytes.
    pub bytes: u64,
}

/// A block that a rank receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedBlock {
    /// The sender.
    pub from: usize,
    /// Index of the block among those that the sender sends.
    pub number: usize,
    /// Offset in the send buffer, in bytes.
    pub there: u64,
    /// Offset in the receive buffer, in bytes.
    pub at: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// The graph of ranks that exchange blocks. Each rank sends one block for each of its outgoing edges and receives one
/// for each incoming edge. Blocks lie one behind the other in both buffers.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::NeighbourGraph;
/// let ring = NeighbourGraph::cartesian(&[4], &[true], 64).expect("it is a grid");
/// assert_eq!((ring.ranks(), ring.sent_blocks(0).count()), (4, 2));
/// let (to, _) = ring.sent_blocks(0).next().expect("there are two");
/// assert!([1, 3].contains(&to.to));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighbourGraph {
    sends: Vec<Vec<Edge>>,
    /// For each block received: the sender, the index of the block at the sender, and its size in bytes.
    receives: Vec<Vec<(usize, usize, u64)>>,
    /// The largest number of blocks that any rank sends. Stored, because every part needs it.
    most: usize,
}

impl NeighbourGraph {
    /// Creates a graph. `sends[rank]` lists the receivers of a rank with the sizes of the blocks in bytes;
    /// `receives[rank]` lists the senders of a rank in the order in which their blocks are to lie. Several blocks
    /// between the same two ranks keep their order. Returns `None` if the two lists do not match, or name a rank that
    /// does not exist.
    pub fn graph(sends: &[Vec<(usize, u64)>], receives: &[Vec<usize>]) -> Option<NeighbourGraph> {
        let ranks = sends.len();
        if receives.len() != ranks {
            return None;
        }
        let mut taken: Vec<Vec<bool>> = receives.iter().map(|from| vec![false; from.len()]).collect();
        let mut edges = vec![Vec::new(); ranks];
        for (rank, targets) in sends.iter().enumerate() {
            for &(to, bytes) in targets {
                let free = |&(slot, &from): &(usize, &usize)| from == rank && !taken[to][slot];
                let (slot, _) = receives.get(to)?.iter().enumerate().find(free)?;
                taken[to][slot] = true;
                edges[rank].push(Edge { to, slot, bytes });
            }
        }
        let all = taken.iter().flatten().all(|&taken| taken);
        all.then(|| NeighbourGraph::of_edges(edges))
    }

    /// Creates a Cartesian grid of ranks whose last dimension changes fastest. Each rank exchanges `bytes` bytes with
    /// the rank before and the rank after it along each dimension, around the end where the dimension is `periodic`.
    /// Blocks lie in this order: before and after along the first dimension, then along the second. Returns `None` if
    /// there are no ranks.
    ///
    /// Source: MPI-4, neighbourhood collectives on Cartesian topologies.
    pub fn cartesian(dims: &[usize], periodic: &[bool], bytes: u64) -> Option<NeighbourGraph> {
        let ranks = dims.iter().product::<usize>();
        if ranks == 0 || dims.len() != periodic.len() {
            return None;
        }
        let sides = |rank| sides(dims, periodic, rank);
        let edge = |(side, to): (usize, usize)| {
            let slot = sides(to).iter().position(|&(theirs, _)| theirs == side ^ 1)?;
            Some(Edge { to, slot, bytes })
        };
        let edges = (0..ranks).map(|rank| sides(rank).into_iter().filter_map(edge).collect());
        Some(NeighbourGraph::of_edges(edges.collect()))
    }

    fn of_edges(sends: Vec<Vec<Edge>>) -> NeighbourGraph {
        let mut receives: Vec<Vec<(usize, usize, u64)>> = vec![Vec::new(); sends.len()];
        for edge in sends.iter().flatten() {
            let slots = &mut receives[edge.to];
            slots.resize(slots.len().max(edge.slot + 1), (0, 0, 0));
        }
        for (rank, edges) in sends.iter().enumerate() {
            for (number, edge) in edges.iter().enumerate() {
                receives[edge.to][edge.slot] = (rank, number, edge.bytes);
            }
        }
        let most = sends.iter().map(Vec::len).max().unwrap_or(0);
        NeighbourGraph { sends, receives, most }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.sends.len()
    }

    /// The largest number of blocks that any rank sends.
    pub fn sent_blocks_max(&self) -> usize {
        self.most
    }

    /// The blocks that a rank sends, each with its offset in the send buffer.
    pub fn sent_blocks(&self, rank: usize) -> impl Iterator<Item = (Edge, u64)> + '_ {
        self.sends[rank].iter().scan(0, |at, &edge| {
            *at += edge.bytes;
            Some((edge, *at - edge.bytes))
        })
    }

    /// The blocks that a rank receives.
    pub fn received_blocks(&self, rank: usize) -> impl Iterator<Item = ReceivedBlock> + '_ {
        self.receives[rank].iter().scan(0, |at, &(from, number, bytes)| {
            *at += bytes;
            let there = self.sends[from][..number].iter().map(|edge| edge.bytes).sum();
            Some(ReceivedBlock { from, number, there, at: *at - bytes, bytes })
        })
    }

    /// Offset of the block with index `slot` in the receive buffer of `rank`.
    pub fn slot_offset(&self, rank: usize, slot: usize) -> u64 {
        self.receives[rank][..slot].iter().map(|&(_, _, bytes)| bytes).sum()
    }

    /// Bytes that a rank sends, and bytes that it receives.
    pub fn bytes(&self, rank: usize) -> [u64; 2] {
        let sent = self.sends[rank].iter().map(|edge| edge.bytes).sum();
        [sent, self.receives[rank].iter().map(|&(_, _, bytes)| bytes).sum()]
    }
}

/// The neighbours of a rank in a grid, each as (side, neighbour). The side is twice the dimension, plus one for the
/// neighbour after the rank. A block sent to one side is received from the opposite side.
pub fn sides(dims: &[usize], periodic: &[bool], rank: usize) -> Vec<(usize, usize)> {
    let mut sides = Vec::new();
    let mut stride = dims.iter().product::<usize>();
    for (dim, (&len, &wraps)) in dims.iter().zip(periodic).enumerate() {
        stride /= len;
        let at = rank / stride % len;
        for (side, step) in [len - 1, 1].into_iter().enumerate() {
            let is_there = wraps || (if side == 0 { at > 0 } else { at + 1 < len });
            if is_there {
                sides.push((2 * dim + side, rank - at * stride + (at + step) % len * stride));
            }
        }
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_ring_of_two_each_rank_receives_from_the_opposite_side() {
        let ring = NeighbourGraph::cartesian(&[2], &[true], 8).expect("there are ranks");
        // The block for the rank before arrives there from the rank after.
        let sent: Vec<(usize, usize)> = ring.sent_blocks(0).map(|(edge, _)| (edge.to, edge.slot)).collect();
        assert_eq!(sent, [(1, 1), (1, 0)]);
        let received: Vec<(usize, u64)> =
            ring.received_blocks(1).map(|received| (received.from, received.there)).collect();
        assert_eq!(received, [(0, 8), (0, 0)]);
    }

    #[test]
    fn a_corner_of_an_open_grid_has_two_neighbours() {
        let grid = NeighbourGraph::cartesian(&[3, 4], &[false, false], 1).expect("there are ranks");
        assert_eq!(grid.sent_blocks(0).map(|(edge, _)| edge.to).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(grid.sent_blocks(5).map(|(edge, _)| edge.to).collect::<Vec<_>>(), [1, 9, 4, 6]);
        assert_eq!(grid.bytes(11), [2, 2]);
    }

    #[test]
    fn mismatched_graphs_are_refused() {
        assert!(NeighbourGraph::graph(&[vec![(1, 5)], vec![]], &[vec![], vec![0]]).is_some());
        assert!(NeighbourGraph::graph(&[vec![(1, 5)], vec![]], &[vec![], vec![]]).is_none(), "not expected");
        assert!(NeighbourGraph::graph(&[vec![], vec![]], &[vec![], vec![0]]).is_none(), "not given");
        assert!(NeighbourGraph::graph(&[vec![(2, 5)], vec![]], &[vec![], vec![0]]).is_none(), "no such rank");
    }
}
