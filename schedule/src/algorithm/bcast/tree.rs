//! Broadcasts down a tree.
//!
//! Readiness signals climb the tree first: a rank signals its parent when its own buffer is free and all its children
//! have signalled. So only the root waits, and a segment on its way never meets a rank that is not ready.

use crate::algorithm::layout::tree::Tree;
use crate::algorithm::{Algorithm, CollectiveKind, Make};
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// Binary tree, whole message.
pub(crate) const BINARY: Algorithm =
    algorithm("binary", Make::Whole(|shape, part| down(shape, 1, part, Tree::Binary)));
/// Binomial tree, whole message.
pub(crate) const BINOMIAL: Algorithm =
    algorithm("binomial", Make::Whole(|shape, part| down(shape, 1, part, Tree::BINOMIAL)));
/// Chain, in segments.
pub(crate) const CHAIN: Algorithm =
    algorithm("chain", Make::Cut(|shape, segments, part| down(shape, segments, part, Tree::Chain)));
/// Binary tree, in segments.
pub(crate) const PIPELINED: Algorithm =
    algorithm("pipelined", Make::Cut(|shape, segments, part| down(shape, segments, part, Tree::Binary)));

const fn algorithm(name: &'static str, make: Make) -> Algorithm {
    Algorithm { name, collective: CollectiveKind::Bcast, fits: |_| true, make }
}

fn down(shape: &Shape, segments: u64, part: &mut RankPart, tree: Tree) {
    let (ranks, root) = (shape.ranks, shape.root);
    let rank_of = |place: usize| (place + root) % ranks;
    let (me, place) = (part.rank(), (part.rank() + ranks - root) % ranks);
    let (parent, children) = (tree.parent(place), tree.children(place, ranks));
    let below = children.len() as u64;

    part.buffer("data", shape.buffer_bytes(me)[0]);
    let arrived = part.signal("arrived", if parent.is_some() { segments } else { 0 });
    let ready = part.signal("ready", below);
    let sent = part.signal("sent", below * segments);

    // A rank's buffer is free when the rank has started.
    let is_ready = if below > 0 { ready.reaches(below) } else { started() };
    if let Some(parent) = parent {
        part.join(is_ready).then(ready.on(rank_of(parent), 1));
        part.in_queue(1);
    }
    let bytes = shape.buffer_bytes(me)[0];
    for segment in 0..segments {
        let trigger = if parent.is_some() { arrived.reaches(segment + 1) } else { is_ready };
        let (from, to) = (shape.cut(bytes, segments, segment), shape.cut(bytes, segments, segment + 1));
        for &child in &children {
            let child = rank_of(child);
            part.copy(trigger, DATA.on(me, from), DATA.on(child, from), to - from)
                .then(arrived.on(child, 1))
                .then(sent.on(me, 1));
        }
    }
    if parent.is_some() {
        part.finish(arrived.reaches(segments));
    }
    if below > 0 {
        part.finish(sent.reaches(below * segments));
    }
}
