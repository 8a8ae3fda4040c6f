//! Trinaryx3: a broadcast along three trees through a three-dimensional torus. Each tree carries a third of the message
//! and has an engine of its own. No two trees use the same link in the same direction.
//!
//! **The trees.** Coordinates are relative to the root, upward in each dimension. The first tree has the order X, Y, Z:
//! it goes along X from the root; from those nodes along Y; from those along Z. But it leaves the root along X only:
//! the nodes at the root's own coordinate x = 0 are reached from their neighbours at x = 1. The second tree does this
//! in the order Y, Z, X, the third in Z, X, Y. So the three trees reach each node along three different dimensions, and
//! no link is used twice. A node has at most three children in a tree, hence the name.
//!
//! **Depth.** The sum of the largest hop counts of the dimensions, (X - 1) + (Y - 1) + (Z - 1), as rings are not used
//! backward; one more if a dimension has two nodes, for the nodes reached by the way back to 0.
//!
//! **Few dimensions.** In a mesh with k dimensions of more than one node, a corner has k links, so at most k trees
//! without common links can reach it. A third tree of a two-dimensional torus would have to go around its rings
//! backward, which would double the depth. So there are k trees, and the three paths use them in turn: paths with the
//! same tree share its links. On one node there is no tree, and the paths only copy inside the node.

use crate::RankPart;
use crate::algorithm::bcast::session_mode::{Inner, PROGRESS_MAX, Paths, Session};
use crate::algorithm::{Algorithm, CollectiveKind, Make};
use crate::shape::Shape;

/// Bucket relay inside the nodes.
pub(crate) const BUCKET: Algorithm = algorithm(
    "trinaryx3 bucket",
    Make::Cut(|shape, segments, part| make(shape, segments, part, Inner::Bucket)),
);
/// Two phases: between nodes, then inside.
pub(crate) const TWO_PHASE: Algorithm = algorithm(
    "trinaryx3 two-phase",
    Make::Cut(|shape, segments, part| make(shape, segments, part, Inner::TwoPhase)),
);

const fn algorithm(name: &'static str, make: Make) -> Algorithm {
    Algorithm { name, collective: CollectiveKind::Bcast, fits, make }
}

fn fits(shape: &Shape) -> bool {
    let placement = shape.placement;
    let nodes: usize = placement.torus.iter().product();
    nodes > 0 && nodes * placement.per_node == shape.ranks
}

fn make(shape: &Shape, segments: u64, part: &mut RankPart, inner: Inner) {
    let paths = Torus { sides: shape.placement.torus, root: shape.root / shape.placement.per_node };
    let segments = segments.max(1);
    Session { shape, paths: &paths, inner, segments, progress_max: PROGRESS_MAX }.prepare(part);
}

/// The coordinates of a node relative to the root.
type Coordinates = [usize; 3];

/// The trees of a torus.
#[derive(Clone, Copy, Debug)]
struct Torus {
    sides: [usize; 3],
    /// The root's node.
    root: usize,
}

/// Number of paths, whatever the number of trees.
const PATHS: usize = 3;

impl Torus {
    fn place(&self, node: usize) -> Coordinates {
        let mut place = [0; 3];
        let (mut node, mut root) = (node, self.root);
        for (at, side) in place.iter_mut().zip(self.sides) {
            *at = (node % side + side - root % side) % side;
            (node, root) = (node / side, root / side);
        }
        place
    }

    fn node(&self, place: Coordinates) -> usize {
        let (mut node, mut root, mut stride) = (0, self.root, 1);
        for (at, side) in place.into_iter().zip(self.sides) {
            node += (at + root % side) % side * stride;
            (root, stride) = (root / side, stride * side);
        }
        node
    }

    /// The dimensions with more than one node, in the order of a path.
    fn order(&self, path: usize) -> Vec<usize> {
        let mut long: Vec<usize> = (0..3).filter(|&dimension| self.sides[dimension] > 1).collect();
        if !long.is_empty() {
            let first = path % long.len();
            long.rotate_left(first);
        }
        long
    }

    fn parent_of(order: &[usize], place: Coordinates) -> Option<Coordinates> {
        let last = order.iter().rev().find(|&&dimension| place[dimension] > 0)?;
        let first = order.first()?;
        let mut parent = place;
        if place[*first] == 0 {
            parent[*first] = 1;
        } else {
            parent[*last] -= 1;
        }
        Some(parent)
    }
}

impl Paths for Torus {
    fn count(&self) -> usize {
        PATHS
    }

    fn parent(&self, path: usize, node: usize) -> Option<usize> {
        Torus::parent_of(&self.order(path), self.place(node)).map(|parent| self.node(parent))
    }

    fn children_max(&self) -> u64 {
        3
    }

    fn children(&self, path: usize, node: usize) -> Vec<usize> {
        let (order, place) = (self.order(path), self.place(node));
        let upward = order.iter().map(|&dimension| (dimension, place[dimension] + 1));
        let downward = order.first().map(|&first| (first, place[first].wrapping_sub(1)));
        let neighbours = upward.chain(downward).filter(|&(dimension, at)| at < self.sides[dimension]);
        let children = neighbours.map(|(dimension, at)| {
            let mut child = place;
            child[dimension] = at;
            child
        });
        let is_child = |child: &Coordinates| Torus::parent_of(&order, *child) == Some(place);
        children.filter(is_child).map(|child| self.node(child)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::ALGORITHMS;
    use crate::shape::Placement;
    use std::collections::BTreeSet;

    fn torus(sides: [usize; 3], root: usize) -> Torus {
        Torus { sides, root }
    }

    fn depth(torus: &Torus, path: usize, node: usize) -> usize {
        torus.parent(path, node).map_or(0, |parent| 1 + depth(torus, path, parent))
    }

    #[test]
    fn trees_reach_all_nodes_and_share_no_link() {
        for sides in [[2, 2, 3], [2, 2, 2], [3, 3, 3], [4, 2, 5], [5, 4, 3], [3, 2, 1], [1, 4, 4], [7, 1, 1]]
        {
            let nodes: usize = sides.iter().product();
            let long = sides.iter().filter(|&&side| side > 1).count();
            for root in [0, nodes / 2, nodes - 1] {
                let torus = torus(sides, root);
                for node in 0..nodes {
                    assert_eq!(torus.node(torus.place(node)), node);
                    let parents: Vec<_> = (0..PATHS).map(|path| torus.parent(path, node)).collect();
                    assert!(parents.iter().all(|parent| parent.is_none() == (node == root)));
                    // A tree's link into a node is identified by the parent.
                    let distinct: BTreeSet<_> = parents.iter().collect();
                    assert!(node == root || distinct.len() == long.min(PATHS), "{sides:?}: {parents:?}");
                    for (path, parent) in parents.into_iter().enumerate() {
                        let children = torus.children(path, node);
                        assert!(children.len() as u64 <= torus.children_max());
                        assert!(children.iter().all(|&child| torus.parent(path, child) == Some(node)));
                        assert!(parent.is_none_or(|parent| torus.children(path, parent).contains(&node)));
                    }
                }
                let deepest = (0..PATHS).flat_map(|path| (0..nodes).map(move |node| (path, node)));
                let deepest = deepest.map(|(path, node)| depth(&torus, path, node)).max().unwrap();
                let hops: usize = sides.iter().map(|side| side - 1).sum();
                let way_back = usize::from(long > 1 && sides.contains(&2));
                assert_eq!(deepest, hops + way_back, "{sides:?}");
            }
        }
    }

    fn shape(sides: [usize; 3], per_node: usize, root: usize, bytes: u64) -> Shape {
        let ranks = sides.iter().product::<usize>() * per_node;
        let placement = Placement { per_node, torus: sides };
        Shape { placement, ..Shape::new(CollectiveKind::Bcast, ranks, root, bytes) }
    }

    #[test]
    fn both_are_proven_for_small_tori() {
        let sides = [[2, 2, 3], [1, 1, 1], [2, 1, 1], [3, 2, 1]];
        for algorithm in [BUCKET, TWO_PHASE] {
            for (sides, per_node) in
                sides.into_iter().flat_map(|sides| [1, 2, 3, 4].map(|many| (sides, many)))
            {
                let ranks = shape(sides, per_node, 0, 0).ranks;
                for (root, bytes, segments) in [(0, 4096, 2), (ranks - 1, 1000, 1), (ranks / 2, 1, 3)] {
                    let shape = shape(sides, per_node, root, bytes);
                    assert!((algorithm.fits)(&shape));
                    let checked = algorithm.schedule(&shape, segments).check();
                    checked.unwrap_or_else(|fault| panic!("{} {shape:?}: {fault}", algorithm.name));
                }
            }
        }
    }

    #[test]
    fn both_are_proven_for_full_nodes() {
        for algorithm in [BUCKET, TWO_PHASE] {
            for (sides, root) in [([2, 2, 3], 7), ([1, 1, 1], 0), ([2, 1, 1], 16), ([3, 2, 1], 40)] {
                for per_node in [17, 32] {
                    let shape = shape(sides, per_node, root, 1000);
                    let checked = algorithm.schedule(&shape, 1).check();
                    checked.unwrap_or_else(|fault| panic!("{} {shape:?}: {fault}", algorithm.name));
                }
            }
        }
    }

    #[test]
    fn they_fit_only_where_ranks_fill_a_torus() {
        let of = |shape: &Shape| {
            let ours = ALGORITHMS.iter().filter(|one| one.name.starts_with("trinaryx3"));
            ours.filter(|one| (one.fits)(shape)).count()
        };
        let full = shape([2, 2, 3], 2, 0, 8);
        assert_eq!(of(&full), 2);
        assert_eq!(of(&Shape { ranks: 23, ..full }), 0);
        assert_eq!(of(&Shape::new(CollectiveKind::Bcast, 12, 0, 8)), 0);
    }
}
