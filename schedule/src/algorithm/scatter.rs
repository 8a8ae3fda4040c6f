//! Scatter algorithms: each rank gets its block of the root's data.

use super::{Algorithm, CollectiveKind, Make, doublings, signal_all};
use crate::algorithm::layout::subtree_blocks::SubtreeBlocks;
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// The root writes each block to its rank.
pub(super) const FLAT: Algorithm =
    Algorithm { name: "flat", collective: CollectiveKind::Scatter, fits: |_| true, make: Make::Whole(flat) };
/// Each rank sends the blocks of its children's subtrees down a binomial tree.
///
/// Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).
pub(super) const BINOMIAL: Algorithm = Algorithm {
    name: "binomial",
    collective: CollectiveKind::Scatter,
    fits: |_| true,
    make: Make::Whole(binomial),
};

fn flat(shape: &Shape, part: &mut RankPart) {
    let (me, root, others) = (part.rank(), shape.root, shape.ranks as u64 - 1);
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let is_root = me == root;
    let ready = part.signal("ready", if is_root { others } else { 0 });
    let arrived = part.signal("arrived", u64::from(!is_root));
    let sent = part.signal("sent", if is_root { others } else { 0 });
    if !is_root {
        part.join(started()).then(ready.on(root, 1));
        part.finish(arrived.reaches(1));
        return;
    }
    for rank in (0..shape.ranks).filter(|&rank| rank != root) {
        part.copy(
            ready.reaches(others),
            DATA.on(me, shape.offset_of(rank)),
            DATA.on(rank, 0),
            shape.bytes_of(rank),
        )
        .then(arrived.on(rank, 1))
        .then(sent.on(me, 1));
    }
    if others > 0 {
        part.finish(sent.reaches(others));
    }
}

/// Number of copies of a row, used by successive starts in turn.
const TURNS: u32 = 2;

fn binomial(shape: &Shape, part: &mut RankPart) {
    let (me, root) = (part.rank(), shape.root);
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let mut rows = SubtreeBlocks { shape, row: DATA };
    rows.row = part.scratch("row", rows.row_bytes(me), TURNS);
    let children = rows.children(me);
    // All blocks of a subtree arrive in the row of its first rank, including that rank's own block.
    let pieces: Vec<_> = children.iter().map(|&child| (child, rows.pieces(child, rows.row))).collect();
    let sends = pieces.iter().map(|(_, pieces)| pieces.len() as u64).sum();
    let incoming_pieces = if me == root { 0 } else { rows.pieces(me, rows.row).len() as u64 };
    let arrived = part.signal("arrived", incoming_pieces);
    let sent = part.signal("sent", sends);
    let taken = part.signal("copied_out", u64::from(me != root));
    // One signal for each child, the nearest first: in a sum, a child that is ahead would count for another.
    let child_index = |rank: usize| rows.place(rank).trailing_zeros() as usize;
    let has = |at: usize| children.iter().any(|&child| child_index(child) == at);
    let free: Vec<_> = (0..doublings(shape.ranks)).map(|at| part.signal("free", has(at).into())).collect();
    if me != root {
        part.join(arrived.reaches(incoming_pieces));
    }
    for (child, pieces) in pieces {
        part.join(free[child_index(child)].reaches(1).lagging(TURNS));
        for (above, below, bytes) in pieces {
            part.copy(started(), above, below, bytes).then(arrived.on(child, 1)).then(sent.on(me, 1));
        }
    }
    if let Some(parent) = rows.parent(me) {
        part.copy(started(), rows.row.on(me, 0), DATA.on(me, 0), shape.bytes_of(me)).then(taken.on(me, 1));
        part.join(sent.reaches(sends));
        part.join(taken.reaches(1));
        signal_all(part, std::iter::once(free[child_index(me)].on(parent, 1)));
        part.finish(taken.reaches(1));
    }
    if sends > 0 {
        part.finish(sent.reaches(sends));
    }
}
