//! Up a binomial tree to rank 0, and the result down the same tree.
//!
//! A rank's values have been read when its parent has combined them, so the result may take their place without asking.

use super::{Algorithm, algorithm};
use crate::algorithm::layout::leaders::Leaders;
use crate::algorithm::layout::tree::Tree;
use crate::algorithm::reduce::Up;
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

pub(in super::super) const TREE: Algorithm = algorithm("tree", |_| true, tree);

fn tree(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    part.buffer("data", bytes);
    let up = Up::name(&Leaders::all(shape.ranks), 0, bytes, part);
    let children = Tree::Binomial.children(me, shape.ranks);
    let below = children.len() as u64;
    let result = part.signal("result", u64::from(me > 0));
    let told = part.signal("available", below);
    let ready = up.climb(started(), bytes, part).unwrap_or(result.reaches(1));
    for child in children {
        part.copy(ready, DATA.on(me, 0), DATA.on(child, 0), bytes)
            .then(result.on(child, 1))
            .then(told.on(me, 1));
    }
    if me > 0 {
        part.finish(result.reaches(1));
    }
    if below > 0 {
        part.finish(told.reaches(below));
    }
}
