//! Gather algorithms: the root gets the blocks of all ranks.

use super::{Algorithm, CollectiveKind, Make, doublings, signal_all};
use crate::algorithm::layout::subtree_blocks::SubtreeBlocks;
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// Each rank writes its block to the root.
pub(super) const FLAT: Algorithm =
    Algorithm { name: "flat", collective: CollectiveKind::Gather, fits: |_| true, make: Make::Whole(flat) };
/// Each rank sends the blocks of its subtree up a binomial tree.
///
/// Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).
pub(super) const BINOMIAL: Algorithm = Algorithm {
    name: "binomial",
    collective: CollectiveKind::Gather,
    fits: |_| true,
    make: Make::Whole(binomial),
};

fn flat(shape: &Shape, part: &mut RankPart) {
    let (me, root, others) = (part.rank(), shape.root, shape.ranks as u64 - 1);
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let is_root = me == root;
    let ready = part.signal("ready", u64::from(!is_root));
    let arrived = part.signal("arrived", if is_root { others } else { 0 });
    let sent = part.signal("sent", u64::from(!is_root));
    if is_root {
        signal_all(part, (0..shape.ranks).filter(|&rank| rank != root).map(|rank| ready.on(rank, 1)));
        part.finish(arrived.reaches(others));
    } else {
        part.copy(ready.reaches(1), DATA.on(me, 0), DATA.on(root, shape.offset_of(me)), shape.bytes_of(me))
            .then(arrived.on(root, 1))
            .then(sent.on(me, 1));
        part.finish(sent.reaches(1));
    }
}

/// Number of copies of a row, used by successive starts in turn.
const TURNS: u32 = 2;

fn binomial(shape: &Shape, part: &mut RankPart) {
    let (me, root) = (part.rank(), shape.root);
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let mut rows = SubtreeBlocks { shape, row: DATA };
    // A rank without children sends its block from the data.
    let has_row = me != root && rows.size(me) > 1;
    rows.row = part.scratch("row", if has_row { rows.row_bytes(me) } else { 0 }, TURNS);
    let children = rows.children(me);
    let pieces = if me == root { Vec::new() } else { rows.pieces(me, DATA) };
    let sends = pieces.len() as u64;
    let free = part.signal("free", u64::from(me != root));
    let sent = part.signal("sent", sends);
    // One signal for each child, the nearest first: a sum would not tell which child has sent.
    let child_index = |rank: usize| rows.place(rank).trailing_zeros() as usize;
    let mut arrived: Vec<u64> = vec![0; doublings(shape.ranks)];
    for &child in &children {
        arrived[child_index(child)] = rows.pieces(child, DATA).len() as u64;
    }
    let counts = arrived.clone();
    let arrived: Vec<_> = arrived.into_iter().map(|count| part.signal("arrived", count)).collect();
    let all_there = |part: &mut RankPart| {
        for &child in &children {
            part.join(arrived[child_index(child)].reaches(counts[child_index(child)]));
        }
    };
    let Some(parent) = rows.parent(me) else {
        signal_all(part, children.iter().map(|&child| free.on(child, 1)));
        for &child in &children {
            part.finish(arrived[child_index(child)].reaches(counts[child_index(child)]));
        }
        return;
    };
    all_there(part);
    // The root's data are free when it has started; a row is free when its blocks were forwarded two starts before.
    let may_write = free.reaches(1);
    let may_write = if parent == root { may_write } else { may_write.lagging(TURNS) };
    for (at, (above, below, bytes)) in pieces.into_iter().enumerate() {
        let trigger = if at == 0 { may_write } else { started() };
        part.copy(trigger, below, above, bytes)
            .then(arrived[child_index(me)].on(parent, 1))
            .then(sent.on(me, 1));
    }
    if !children.is_empty() {
        part.join(sent.reaches(sends));
        signal_all(part, children.iter().map(|&child| free.on(child, 1)));
    }
    part.finish(sent.reaches(sends));
}
