//! Gathering everybody's blocks at one rank.

use super::{Algorithm, CollectiveKind, Make, doublings, signal_all};
use crate::algorithm::layout::subtree_blocks::SubtreeBlocks;
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// Everybody puts its block where it belongs.
pub(super) const FLAT: Algorithm =
    Algorithm { name: "flat", operation: CollectiveKind::Gather, fits: |_| true, make: Make::Whole(flat) };
/// Up a binomial tree, with all blocks of those below.
///
/// Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).
pub(super) const BINOMIAL: Algorithm = Algorithm {
    name: "binomial",
    operation: CollectiveKind::Gather,
    fits: |_| true,
    make: Make::Whole(binomial),
};

fn flat(shape: &Shape, part: &mut RankPart) {
    let (me, root, others) = (part.rank(), shape.root, shape.ranks as u64 - 1);
    part.buffer("data", shape.rooms(me)[0]);
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

/// Starts that a row serves in turn.
const TURNS: u32 = 2;

fn binomial(shape: &Shape, part: &mut RankPart) {
    let (me, root) = (part.rank(), shape.root);
    part.buffer("data", shape.rooms(me)[0]);
    let mut rows = SubtreeBlocks { shape, row: DATA };
    // A rank without children sends its block from where it is.
    let has_row = me != root && rows.size(me) > 1;
    rows.row = part.scratch("row", if has_row { rows.row_bytes(me) } else { 0 }, TURNS);
    let children = rows.children(me);
    let pieces = if me == root { Vec::new() } else { rows.pieces(me, DATA) };
    let sends = pieces.len() as u64;
    let free = part.signal("free", u64::from(me != root));
    let sent = part.signal("sent", sends);
    // Which child has sent, no sum would say; the nearest has the first signal.
    let turn = |rank: usize| rows.place(rank).trailing_zeros() as usize;
    let mut arrived: Vec<u64> = vec![0; doublings(shape.ranks)];
    for &child in &children {
        arrived[turn(child)] = rows.pieces(child, DATA).len() as u64;
    }
    let counts = arrived.clone();
    let arrived: Vec<_> = arrived.into_iter().map(|count| part.signal("arrived", count)).collect();
    let all_there = |part: &mut RankPart| {
        for &child in &children {
            part.join(arrived[turn(child)].reaches(counts[turn(child)]));
        }
    };
    let Some(parent) = rows.parent(me) else {
        signal_all(part, children.iter().map(|&child| free.on(child, 1)));
        for &child in &children {
            part.finish(arrived[turn(child)].reaches(counts[turn(child)]));
        }
        return;
    };
    all_there(part);
    // The root's data are free when it has started, a row when it was sent on two starts before.
    let is_free = free.reaches(1);
    let is_free = if parent == root { is_free } else { is_free.lagging(TURNS) };
    for (at, (above, below, bytes)) in pieces.into_iter().enumerate() {
        let trigger = if at == 0 { is_free } else { started() };
        part.copy(trigger, below, above, bytes).then(arrived[turn(me)].on(parent, 1)).then(sent.on(me, 1));
    }
    if !children.is_empty() {
        part.join(sent.reaches(sends));
        signal_all(part, children.iter().map(|&child| free.on(child, 1)));
    }
    part.finish(sent.reaches(sends));
}
