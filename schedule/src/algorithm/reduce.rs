//! Reduce up a tree.
//!
//! Each rank combines its own values with those of each child, the nearest first, and sends the result to its parent.
//! The parent has a receive buffer for each child, in two copies that successive starts use in turn. A child writes to
//! a copy again when the parent has combined what it wrote there two starts before.

use super::{Algorithm, CollectiveKind, Make};
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::algorithm::layout::tree::Tree;
use crate::combining_order;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};

/// Up a binomial tree. If the order matters, up the tree of the combining order to rank 0, and from there to the root.
pub(super) const TREE: Algorithm =
    Algorithm { name: "tree", collective: CollectiveKind::Reduce, fits: |_| true, make: Make::Whole(tree) };

/// Number of copies of a receive buffer, used by successive starts in turn.
const TURNS: u32 = 2;

fn tree(shape: &Shape, part: &mut RankPart) {
    part.buffer("data", shape.bytes_of(0));
    reduce_to_root(shape, &NodeLeaders::all(shape.ranks), started(), part);
}

/// Adds a reduction up the tree of `among`, and from its root to the root of the shape. Members of `among` have their
/// values once `values_ready` is met; other ranks have sent theirs by then.
pub(super) fn reduce_to_root(
    shape: &Shape,
    among: &NodeLeaders,
    values_ready: StepTrigger,
    part: &mut RankPart,
) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    let number = if shape.in_order { 0 } else { among.node_of(shape.root) };
    let first = among.rank_of(number);
    let up = ReductionTree::declare(shape, among, number, part);
    let is_direct = first == shape.root;
    let may_overwrite = part.signal("may_overwrite", u64::from(me == first && !is_direct));
    let result_sent = part.signal("result_sent", u64::from(me == first && !is_direct));
    let result = part.signal("result", u64::from(me == shape.root && !is_direct));
    let is_member = among.number_of(me).is_some();
    let summed = if is_member { up.add_steps(values_ready, bytes, part) } else { None };
    if me == shape.root && !is_direct {
        // The root's own values have been sent, so the result may overwrite them.
        let gone = if is_member { up.sent.reaches(1) } else { values_ready };
        part.join(gone).then(may_overwrite.on(first, 1));
        part.finish(result.reaches(1));
    }
    let Some(summed) = summed else { return };
    if is_direct {
        part.finish(summed);
    } else {
        part.join(may_overwrite.reaches(1));
        part.copy(summed, DATA.on(me, 0), DATA.on(shape.root, 0), bytes)
            .then(result.on(shape.root, 1))
            .then(result_sent.on(me, 1));
        part.finish(result_sent.reaches(1));
    }
}

/// One rank's part of a reduction up a tree.
pub(super) struct ReductionTree {
    /// The parent, and the index of this rank among its children, the nearest first.
    parent: Option<(usize, usize)>,
    /// The children, the nearest first: the order in which their values are combined.
    children: Vec<usize>,
    incoming: BufferId,
    free: SignalId,
    summed: SignalId,
    pub(super) sent: SignalId,
    arrived: Vec<SignalId>,
}

impl ReductionTree {
    /// Declares the buffers and signals. The tree is rooted at member number `root`; numbers wrap around.
    pub(super) fn declare(
        shape: &Shape,
        among: &NodeLeaders,
        root: usize,
        part: &mut RankPart,
    ) -> ReductionTree {
        let tree = if combining_order::is_demanded(shape) { Tree::GROUPS } else { Tree::BINOMIAL };
        let (count, bytes) = (among.count(), shape.bytes_of(0));
        let rank_of = |place: usize| among.rank_of((place + root) % count);
        let place = among.number_of(part.rank()).map(|number| (number + count - root) % count);
        let parent = place.and_then(|place| {
            let parent = tree.parent(place)?;
            Some((rank_of(parent), tree.child_index(place)))
        });
        let children = place.map(|place| tree.children(place, count)).unwrap_or_default();
        let children: Vec<usize> = children.into_iter().rev().map(rank_of).collect();
        let incoming = part.scratch("incoming", bytes * children.len() as u64, TURNS);
        let above = u64::from(parent.is_some());
        let free = part.signal("free", above);
        let summed = part.signal("summed", u64::from(!children.is_empty()));
        let sent = part.signal("sent", above);
        let arrived = 0..tree.children_max(among.count_max());
        let arrived = arrived.map(|at| part.signal("arrived", u64::from(at < children.len()))).collect();
        ReductionTree { parent, children, incoming, free, summed, sent, arrived }
    }

    /// Combines incoming values with the own values, which are present once `values_ready` is met,
    /// and sends the result to the parent. At the root, returns the trigger that is met when all
    /// values are combined.
    pub(super) fn add_steps(
        &self,
        values_ready: StepTrigger,
        bytes: u64,
        part: &mut RankPart,
    ) -> Option<StepTrigger> {
        let me = part.rank();
        for (at, (&child, arrived)) in self.children.iter().zip(&self.arrived).enumerate() {
            let from = self.incoming.on(me, at as u64 * bytes);
            let step = part.reduce(arrived.reaches(1), from, DATA.on(me, 0), bytes, false);
            step.then(self.free.on(child, 1));
            if at + 1 == self.children.len() {
                step.then(self.summed.on(me, 1));
            }
        }
        let summed = if self.children.is_empty() { values_ready } else { self.summed.reaches(1) };
        let Some((parent, child_index)) = self.parent else { return Some(summed) };
        part.join(self.free.reaches(1).lagging(TURNS));
        part.copy(summed, DATA.on(me, 0), self.incoming.on(parent, child_index as u64 * bytes), bytes)
            .then(self.arrived[child_index].on(parent, 1))
            .then(self.sent.on(me, 1));
        part.finish(self.sent.reaches(1));
        None
    }
}
