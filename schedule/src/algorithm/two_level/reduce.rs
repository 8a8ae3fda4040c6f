//! The values of each node go up a binomial tree to its leader, and those of leaders up a binomial tree of leaders.

use super::{Algorithm, CollectiveKind, algorithm, declare_node_tree, leaders};
use crate::algorithm::reduce::reduce_to_root;
use crate::shape::Shape;
use crate::{RankPart, started};

pub(in super::super) const REDUCE: Algorithm = algorithm(CollectiveKind::Reduce, reduce);

fn reduce(shape: &Shape, part: &mut RankPart) {
    let bytes = shape.bytes_of(0);
    let nodes = leaders(shape, shape.root);
    part.buffer("data", bytes);
    let up = declare_node_tree(shape, &nodes, part);
    let combined = up.add_steps(started(), bytes, part);
    reduce_to_root(shape, &nodes, combined.unwrap_or(up.sent.reaches(1)), part);
}
