//! Tori and meshes of any number of dimensions. Each node has a link to its neighbour in both directions of each
//! dimension. Routes go along the first dimension to their end, then along the next (dimension order). In a torus they
//! take the shorter way around, and go upward if both ways are equal.

use std::fmt;

/// The most dimensions: twice Tofu's six.
pub const DIMENSIONS_MAX: usize = 12;

/// Nodes in a torus or mesh; the first dimension changes fastest from one node to the next.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Grid, Topology};
/// let (torus, mesh) = (Grid::torus(&[4, 4]), Grid::mesh(&[4, 4]));
/// assert_eq!((torus.nodes(), torus.is_torus()), (16, true));
/// assert_eq!(Topology::Grid(torus).hops(0, 3), 1); // around
/// assert_eq!(Topology::Grid(mesh).hops(0, 3), 3);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    sides: Vec<u64>,
    wraps: bool,
}

/// A hop of a route.
#[derive(Clone, Copy, Debug)]
struct Way {
    hops: u64,
    upward: bool,
}

impl Grid {
    /// Creates a torus with these sides: 1 to [`DIMENSIONS_MAX`] of them, none 0.
    pub fn torus(sides: &[u64]) -> Grid {
        Grid { sides: sides.to_vec(), wraps: true }
    }

    /// Creates a mesh: a torus without the links that close the rings.
    pub fn mesh(sides: &[u64]) -> Grid {
        Grid { sides: sides.to_vec(), wraps: false }
    }

    /// Creates a three-dimensional torus for at least `nodes` nodes: among those whose sides differ little, the one
    /// with the fewest nodes, and among these the one with the shortest sides.
    pub fn near_cubic(nodes: u64) -> Grid {
        let root = (nodes as f64).cbrt();
        let mut best: Option<(u64, u64, [u64; 3])> = None;
        for x in (root * 0.6).ceil().max(1.0) as u64..=root.ceil().max(1.0) as u64 {
            let most = (nodes as f64 / x as f64).sqrt().ceil() as u64;
            for y in x..=most.max(x) {
                let z = nodes.div_ceil(x * y).max(y);
                let rated = (x * y * z, x + y + z, [x, y, z]);
                if best.is_none_or(|best| rated < best) {
                    best = Some(rated);
                }
            }
        }
        Grid::torus(&best.map_or([1, 1, nodes], |(_, _, sides)| sides))
    }

    /// The sides.
    pub fn sides(&self) -> &[u64] {
        &self.sides
    }

    /// Returns true if the rings are closed.
    pub fn is_torus(&self) -> bool {
        self.wraps
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u64 {
        self.sides.iter().product()
    }

    /// All link numbers are below this.
    pub(super) fn links(&self) -> u64 {
        self.nodes() * 2 * self.sides.len() as u64
    }

    pub(super) fn hops(&self, from: u64, to: u64) -> u64 {
        let (mut from, mut to, mut hops) = (from, to, 0);
        for &side in &self.sides {
            hops += self.way(from % side, to % side, side).hops;
            (from, to) = (from / side, to / side);
        }
        hops
    }

    /// The hops along one dimension.
    fn way(&self, from: u64, to: u64, side: u64) -> Way {
        let upward = (to + side - from) % side;
        let downward = side - upward;
        if !self.wraps {
            return Way { hops: from.abs_diff(to), upward: to > from };
        }
        if upward <= downward {
            Way { hops: upward, upward: true }
        } else {
            Way { hops: downward, upward: false }
        }
    }

    /// The number of a link that leaves a node: each node has two for each dimension, the upward one first.
    pub(super) fn route(&self, from: u64, to: u64, links: &mut Vec<u64>) {
        let (mut node, mut rest, mut stride) = (from, to, 1);
        for (dimension, &side) in self.sides.iter().enumerate() {
            let (mut at, target) = (node / stride % side, rest % side);
            let way = self.way(at, target, side);
            for _ in 0..way.hops {
                let link = 2 * (node * self.sides.len() as u64 + dimension as u64) + u64::from(!way.upward);
                links.push(link);
                let next = if way.upward { (at + 1) % side } else { (at + side - 1) % side };
                node = node - at * stride + next * stride;
                at = next;
            }
            (rest, stride) = (rest / side, stride * side);
        }
    }

    /// Describes a link.
    pub(super) fn name(&self, link: u64) -> String {
        let sides = self.sides.len() as u64;
        let (dimension, node) = (link / 2 % sides, link / 2 / sides);
        let mut rest = node;
        let place: Vec<String> = self
            .sides
            .iter()
            .map(|side| {
                let at = rest % side;
                rest /= side;
                at.to_string()
            })
            .collect();
        let sign = if link.is_multiple_of(2) { '+' } else { '-' };
        let axis = match (sides, dimension) {
            (1..=3, 0..=2) => ["X", "Y", "Z"][dimension as usize].to_string(),
            _ => format!("dimension {}", dimension + 1),
        };
        format!("node ({}) to {sign}{axis}", place.join(","))
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides: Vec<String> = self.sides.iter().map(u64::to_string).collect();
        write!(f, "{}:{}", if self.wraps { "torus" } else { "mesh" }, sides.join("x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(grid: &Grid, from: u64, to: u64) -> Vec<u64> {
        let mut links = Vec::new();
        grid.route(from, to, &mut links);
        assert_eq!(links.len() as u64, grid.hops(from, to));
        links
    }

    #[test]
    fn a_torus_goes_the_shorter_way_around_and_a_mesh_cannot() {
        // Nodes 0 to 4 in a ring: 0 to 4 is one hop down, link 1; in a mesh four hops up, links 0, 2, 4, 6.
        assert_eq!(route(&Grid::torus(&[5]), 0, 4), [1]);
        assert_eq!(route(&Grid::mesh(&[5]), 0, 4), [0, 2, 4, 6]);
        assert_eq!(route(&Grid::mesh(&[5]), 4, 2), [9, 7]);
        // Both ways are equal: up.
        assert_eq!(route(&Grid::torus(&[4]), 1, 3), [2, 4]);
    }

    #[test]
    fn routes_go_dimension_by_dimension() {
        // 2 x 2 x 3: node 0 is (0,0,0), node 11 (1,1,2). X up from node 0, Y up from 1, Z down from 3.
        let grid = Grid::torus(&[2, 2, 3]);
        assert_eq!(route(&grid, 0, 11), [0, 2 * (3 + 1), 2 * (3 * 3 + 2) + 1]);
        assert_eq!(grid.name(2 * (3 * 3 + 2) + 1), "node (1,1,0) to -Z");
        assert_eq!(route(&Grid::mesh(&[2, 2, 3]), 0, 11).len(), 4);
        // Tofu's six dimensions.
        let tofu = Grid::torus(&[4, 3, 2, 2, 3, 2]);
        assert_eq!((tofu.nodes(), tofu.links()), (288, 288 * 12));
        assert_eq!(tofu.hops(0, 287), 1 + 1 + 1 + 1 + 1 + 1);
        assert!(route(&tofu, 5, 200).iter().all(|&link| link < tofu.links()));
    }

    #[test]
    fn every_route_ends_where_it_should() {
        for grid in [Grid::torus(&[3, 1, 4]), Grid::mesh(&[2, 5]), Grid::torus(&[1])] {
            let mut all = 0;
            for from in 0..grid.nodes() {
                for to in 0..grid.nodes() {
                    let links = route(&grid, from, to);
                    assert!(links.iter().all(|&link| link < grid.links()));
                    all += usize::from(links.is_empty());
                }
            }
            assert_eq!(all as u64, grid.nodes(), "only to itself there is nothing to go");
        }
    }

    #[test]
    fn near_cubic_sides_fit() {
        let sides = |nodes| Grid::near_cubic(nodes).sides().to_vec();
        assert_eq!(sides(1), [1, 1, 1]);
        assert_eq!(sides(12), [2, 2, 3]);
        assert_eq!(sides(1000), [10, 10, 10]);
        assert_eq!(sides(1_000_000), [100, 100, 100]);
        for nodes in 1..400 {
            let grid = Grid::near_cubic(nodes);
            assert!(grid.nodes() >= nodes && grid.nodes() <= nodes + nodes / 4 + 2, "{nodes}: {grid}");
        }
    }
}
