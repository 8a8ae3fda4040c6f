//! Who exchanges with whom, where it is not everybody.

/// A block that a rank gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// To whom.
    pub to: usize,
    /// Which of the blocks that one gets it is there.
    pub slot: usize,
    /// Its bytes.
    pub bytes: u64,
}

/// A block that a rank gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Got {
    /// From whom.
    pub from: usize,
    /// Which of the blocks that one gives.
    pub number: usize,
    /// Where it begins among those.
    pub there: u64,
    /// Where it begins among those that are got.
    pub at: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Who exchanges blocks with whom. Each rank gives one block for each of its edges, one behind the other, and gets one
/// for each edge that leads to it, one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighbourGraph {
    gives: Vec<Vec<Edge>>,
    /// From whom each block comes, which of those it gives it is there, and its bytes.
    gets: Vec<Vec<(usize, usize, u64)>>,
    /// The most blocks that a rank gives. Kept, because every part asks for it.
    most: usize,
}

impl NeighbourGraph {
    /// A graph: for each rank whom it gives a block, and of how many bytes; and from whom it gets one, in the order in
    /// which they are to lie. Of several blocks between the same two the first given is the first got. `None`: the two
    /// do not fit together, or name ranks that are not there.
    pub fn graph(gives: &[Vec<(usize, u64)>], gets: &[Vec<usize>]) -> Option<NeighbourGraph> {
        let ranks = gives.len();
        if gets.len() != ranks {
            return None;
        }
        let mut taken: Vec<Vec<bool>> = gets.iter().map(|from| vec![false; from.len()]).collect();
        let mut edges = vec![Vec::new(); ranks];
        for (rank, targets) in gives.iter().enumerate() {
            for &(to, bytes) in targets {
                let free = |&(slot, &from): &(usize, &usize)| from == rank && !taken[to][slot];
                let (slot, _) = gets.get(to)?.iter().enumerate().find(free)?;
                taken[to][slot] = true;
                edges[rank].push(Edge { to, slot, bytes });
            }
        }
        let all = taken.iter().flatten().all(|&taken| taken);
        all.then(|| NeighbourGraph::of_edges(edges))
    }

    /// A grid of ranks, the last dimension changing fastest; each exchanges `bytes` with the one before and the one
    /// after it along each dimension, around the end where that is `periodic`. Blocks lie in that order: before and
    /// after along the first dimension, then the second. `None`: no ranks.
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

    fn of_edges(gives: Vec<Vec<Edge>>) -> NeighbourGraph {
        let mut gets: Vec<Vec<(usize, usize, u64)>> = vec![Vec::new(); gives.len()];
        for edge in gives.iter().flatten() {
            let slots = &mut gets[edge.to];
            slots.resize(slots.len().max(edge.slot + 1), (0, 0, 0));
        }
        for (rank, edges) in gives.iter().enumerate() {
            for (number, edge) in edges.iter().enumerate() {
                gets[edge.to][edge.slot] = (rank, number, edge.bytes);
            }
        }
        let most = gives.iter().map(Vec::len).max().unwrap_or(0);
        NeighbourGraph { gives, gets, most }
    }

    /// CombineWith many ranks there are.
    pub fn ranks(&self) -> usize {
        self.gives.len()
    }

    /// The most blocks that a rank gives.
    pub fn given_max(&self) -> usize {
        self.most
    }

    /// What a rank gives: the edge, and where its block begins among all.
    pub fn given(&self, rank: usize) -> impl Iterator<Item = (Edge, u64)> + '_ {
        self.gives[rank].iter().scan(0, |at, &edge| {
            *at += edge.bytes;
            Some((edge, *at - edge.bytes))
        })
    }

    /// What a rank gets.
    pub fn got(&self, rank: usize) -> impl Iterator<Item = Got> + '_ {
        self.gets[rank].iter().scan(0, |at, &(from, number, bytes)| {
            *at += bytes;
            let there = self.gives[from][..number].iter().map(|edge| edge.bytes).sum();
            Some(Got { from, number, there, at: *at - bytes, bytes })
        })
    }

    /// Where a block begins among those that a rank gets.
    pub fn slot_offset(&self, rank: usize, slot: usize) -> u64 {
        self.gets[rank][..slot].iter().map(|&(_, _, bytes)| bytes).sum()
    }

    /// Bytes that a rank gives, and that it gets.
    pub fn bytes(&self, rank: usize) -> [u64; 2] {
        let given = self.gives[rank].iter().map(|edge| edge.bytes).sum();
        [given, self.gets[rank].iter().map(|&(_, _, bytes)| bytes).sum()]
    }
}

/// The blocks of a rank of a grid, by dimension and side: twice the dimension, and one more for the side after it; and
/// whom each is for. A block sent to one side is got from the other.
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
    fn around_two_ranks_each_gets_from_the_other_side() {
        let ring = NeighbourGraph::cartesian(&[2], &[true], 8).expect("there are ranks");
        // What goes before comes from after.
        let given: Vec<(usize, usize)> = ring.given(0).map(|(edge, _)| (edge.to, edge.slot)).collect();
        assert_eq!(given, [(1, 1), (1, 0)]);
        let got: Vec<(usize, u64)> = ring.got(1).map(|got| (got.from, got.there)).collect();
        assert_eq!(got, [(0, 8), (0, 0)]);
    }

    #[test]
    fn a_corner_of_an_open_grid_has_two_neighbours() {
        let grid = NeighbourGraph::cartesian(&[3, 4], &[false, false], 1).expect("there are ranks");
        assert_eq!(grid.given(0).map(|(edge, _)| edge.to).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(grid.given(5).map(|(edge, _)| edge.to).collect::<Vec<_>>(), [1, 9, 4, 6]);
        assert_eq!(grid.bytes(11), [2, 2]);
    }

    #[test]
    fn a_graph_must_fit_together() {
        assert!(NeighbourGraph::graph(&[vec![(1, 5)], vec![]], &[vec![], vec![0]]).is_some());
        assert!(NeighbourGraph::graph(&[vec![(1, 5)], vec![]], &[vec![], vec![]]).is_none(), "not expected");
        assert!(NeighbourGraph::graph(&[vec![], vec![]], &[vec![], vec![0]]).is_none(), "not given");
        assert!(NeighbourGraph::graph(&[vec![(2, 5)], vec![]], &[vec![], vec![0]]).is_none(), "no such rank");
    }
}
