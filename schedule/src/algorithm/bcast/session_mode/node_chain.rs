//! A chain of nodes with one or several streams along it: the case that the formulas of the study describe.

use super::{Inner, PROGRESS_MAX, Paths, Session};
use crate::Schedule;
use crate::shape::Shape;

/// Paths that all go from each node to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeChain {
    pub(crate) nodes: usize,
    pub(crate) paths: usize,
}

impl Paths for NodeChain {
    fn count(&self) -> usize {
        self.paths
    }

    fn parent(&self, _: usize, node: usize) -> Option<usize> {
        node.checked_sub(1)
    }

    fn children_max(&self) -> u64 {
        1
    }

    fn children(&self, _: usize, node: usize) -> Vec<usize> {
        (node + 1 < self.nodes).then_some(node + 1).into_iter().collect()
    }
}

/// A broadcast from rank 0 along the X side of the shape's placement, in `paths` streams of `segments` segments, each
/// with an engine of its own. Inside the nodes it uses two phases, or bucket relay.
pub fn streams(shape: &Shape, paths: usize, segments: u64, two_phase: bool) -> Schedule {
    let (of, for_contract) = (shape.clone(), shape.clone());
    let row = NodeChain { nodes: shape.placement.torus[0], paths };
    let inner = if two_phase { Inner::TwoPhase } else { Inner::Bucket };
    let prepare = move |part: &mut crate::RankPart| {
        let segments = segments.max(1);
        Session { shape: &of, paths: &row, inner, segments, progress_max: PROGRESS_MAX }.prepare(part);
    };
    Schedule::new("streams", shape.ranks, prepare, move |rank| for_contract.contract(rank))
}
