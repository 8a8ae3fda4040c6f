//! Scatter and allgather: the root's bytes are scattered down a binomial tree, a part for each rank, and the parts are
//! gathered around a ring. No rank sends much more than twice the message.
//!
//! Parts are received at their final location. The root begins when all ranks are ready; readiness signals climb the
//! tree.
//!
//! Source: van de Geijn, "Global combine operations" (1994), as in Thakur, Rabenseifner, Gropp, "Optimization of
//! collective communication operations in MPICH" (2005).

use crate::algorithm::layout::subtree_blocks::SubtreeBlocks;
use crate::algorithm::{Algorithm, CollectiveKind, Make};
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// Scatter, then allgather.
pub(crate) const SCATTER_ALLGATHER: Algorithm = Algorithm {
    name: "scatter+allgather",
    collective: CollectiveKind::Bcast,
    fits: |_| true,
    make: Make::Whole(scatter_allgather),
};

fn scatter_allgather(shape: &Shape, part: &mut RankPart) {
    let (ranks, me, bytes) = (shape.ranks, part.rank(), shape.bytes_of(0));
    let tree = SubtreeBlocks { shape, row: DATA };
    let (place, parent, children) = (tree.place(me), tree.parent(me), tree.children(me));
    // Offset and size of the parts of `count` positions from `place` on.
    let cut = |place: usize| shape.cut(bytes, ranks as u64, place as u64);
    let parts = |place: usize, count: usize| (cut(place), cut(place + count) - cut(place));
    let (below, steps) = (children.len() as u64, ranks as u64 - 1);
    part.buffer("data", bytes);
    let ready = part.signal("ready", below);
    let arrived = part.signal("arrived", u64::from(parent.is_some()));
    let gathered = part.signal("gathered", steps);
    let sent = part.signal("sent", below + steps);
    let all_ready = if below > 0 { ready.reaches(below) } else { started() };
    if let Some(parent) = parent {
        part.join(all_ready).then(ready.on(parent, 1));
        part.in_queue(1);
    }
    let has = if parent.is_some() { arrived.reaches(1) } else { all_ready };
    for child in children {
        let (at, len) = parts(tree.place(child), tree.size(child));
        part.copy(has, DATA.on(me, at), DATA.on(child, at), len)
            .then(arrived.on(child, 1))
            .then(sent.on(me, 1));
    }
    let next = tree.rank((place + 1) % ranks);
    for step in 0..ranks - 1 {
        let (at, len) = parts((place + ranks - step) % ranks, 1);
        let trigger = if step == 0 { has } else { gathered.reaches(step as u64) };
        part.copy(trigger, DATA.on(me, at), DATA.on(next, at), len)
            .then(gathered.on(next, 1))
            .then(sent.on(me, 1));
    }
    if ranks > 1 {
        part.finish(gathered.reaches(steps));
        part.finish(sent.reaches(below + steps));
    }
}
