//! Reductions for one rank, up a tree.
//!
//! Each rank combines its own values with those of each child, the nearest first, and hands the sum on. What comes in
//! goes to a place of its own for each child, which two starts take in turns; a child writes there again when its
//! parent has combined what it wrote two starts before.

use super::{Algorithm, CollectiveKind, Make};
use crate::algorithm::layout::leaders::Leaders;
use crate::algorithm::layout::tree::Tree;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};

/// Up a binomial tree. Where the order counts, to rank 0 and from there to the root.
pub(super) const TREE: Algorithm =
    Algorithm { name: "tree", operation: CollectiveKind::Reduce, fits: |_| true, make: Make::Whole(tree) };

/// Starts that an incoming place serves in turn.
const TURNS: u32 = 2;

fn tree(shape: &Shape, part: &mut RankPart) {
    part.buffer("data", shape.bytes_of(0));
    climb_to_root(shape, &Leaders::all(shape.ranks), started(), part);
}

/// Up a tree of ranks, and to the root. Each of these has its values when `had` says so; those of others have gone
/// then.
pub(super) fn climb_to_root(shape: &Shape, among: &Leaders, had: StepTrigger, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    let number = if shape.in_order { 0 } else { among.node_of(shape.root) };
    let first = among.rank_of(number);
    let up = Up::name(among, number, bytes, part);
    let is_direct = first == shape.root;
    let given = part.signal("given", u64::from(me == first && !is_direct));
    let handed = part.signal("handed", u64::from(me == first && !is_direct));
    let result = part.signal("result", u64::from(me == shape.root && !is_direct));
    let is_one = among.number_of(me).is_some();
    let summed = if is_one { up.climb(had, bytes, part) } else { None };
    if me == shape.root && !is_direct {
        // Its own values have gone: the result may take their place.
        let gone = if is_one { up.sent.reaches(1) } else { had };
        part.join(gone).then(given.on(first, 1));
        part.finish(result.reaches(1));
    }
    let Some(summed) = summed else { return };
    if is_direct {
        part.finish(summed);
    } else {
        part.join(given.reaches(1));
        part.copy(summed, DATA.on(me, 0), DATA.on(shape.root, 0), bytes)
            .then(result.on(shape.root, 1))
            .then(handed.on(me, 1));
        part.finish(handed.reaches(1));
    }
}

/// A reduction up a binomial tree, as one rank has it.
pub(super) struct Up {
    /// The parent, and which of its children this is, the nearest first.
    parent: Option<(usize, usize)>,
    /// The nearest first, so that what is combined comes in the order of ranks.
    pub(super) children: Vec<usize>,
    incoming: BufferId,
    free: SignalId,
    summed: SignalId,
    pub(super) sent: SignalId,
    arrived: Vec<SignalId>,
}

impl Up {
    /// Names what it needs. The tree is that of ranks from number `root` on, around the end.
    pub(super) fn name(among: &Leaders, root: usize, bytes: u64, part: &mut RankPart) -> Up {
        let count = among.count();
        let rank_of = |place: usize| among.rank_of((place + root) % count);
        let place = among.number_of(part.rank()).map(|number| (number + count - root) % count);
        let parent = place.and_then(|place| {
            let parent = Tree::Binomial.parent(place)?;
            Some((rank_of(parent), place.trailing_zeros() as usize))
        });
        let children = place.map(|place| Tree::Binomial.children(place, count)).unwrap_or_default();
        let children: Vec<usize> = children.into_iter().rev().map(rank_of).collect();
        let incoming = part.scratch("incoming", bytes * children.len() as u64, TURNS);
        let above = u64::from(parent.is_some());
        let free = part.signal("free", above);
        let summed = part.signal("summed", u64::from(!children.is_empty()));
        let sent = part.signal("sent", above);
        let arrived = (0..among.levels()).map(|at| part.signal("arrived", u64::from(at < children.len())));
        let arrived = arrived.collect();
        Up { parent, children, incoming, free, summed, sent, arrived }
    }

    /// Combines what comes in with the own values, there when `had` says so, and hands it on. At the root: when all is
    /// combined.
    pub(super) fn climb(&self, had: StepTrigger, bytes: u64, part: &mut RankPart) -> Option<StepTrigger> {
        let me = part.rank();
        for (at, (&child, arrived)) in self.children.iter().zip(&self.arrived).enumerate() {
            let from = self.incoming.on(me, at as u64 * bytes);
            let step = part.reduce(arrived.reaches(1), from, DATA.on(me, 0), bytes, false);
            step.then(self.free.on(child, 1));
            if at + 1 == self.children.len() {
                step.then(self.summed.on(me, 1));
            }
        }
        let summed = if self.children.is_empty() { had } else { self.summed.reaches(1) };
        let Some((parent, turn)) = self.parent else { return Some(summed) };
        part.join(self.free.reaches(1).lagging(TURNS));
        part.copy(summed, DATA.on(me, 0), self.incoming.on(parent, turn as u64 * bytes), bytes)
            .then(self.arrived[turn].on(parent, 1))
            .then(self.sent.on(me, 1));
        part.finish(self.sent.reaches(1));
        None
    }
}
