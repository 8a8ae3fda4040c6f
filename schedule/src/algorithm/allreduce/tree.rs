//! Values go up a binomial tree to rank 0, or up the tree of the combining order if the order matters. The result goes
//! down a binomial tree.
//!
//! When rank 0 has combined all values, they have been read. So the result may overwrite them without further signals.

use super::{Algorithm, algorithm};
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::algorithm::layout::tree::Tree;
use crate::algorithm::reduce::ReductionTree;
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

pub(in super::super) const TREE: Algorithm = algorithm("tree", |_| true, tree);

fn tree(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    part.buffer("data", bytes);
    let up = ReductionTree::declare(shape, &NodeLeaders::all(shape.ranks), 0, part);
    let children = Tree::BINOMIAL.children(me, shape.ranks);
    let below = children.len() as u64;
    let result = part.signal("result", u64::from(me > 0));
    let sent = part.signal("available", below);
    let ready = up.add_steps(started(), bytes, part).unwrap_or(result.reaches(1));
    for child in children {
        part.copy(ready, DATA.on(me, 0), DATA.on(child, 0), bytes)
            .then(result.on(child, 1))
            .then(sent.on(me, 1));
    }
    if me > 0 {
        part.finish(result.reaches(1));
    }
    if below > 0 {
        part.finish(sent.reaches(below));
    }
}
