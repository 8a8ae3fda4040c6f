//! Each node's values up a binomial tree to its leader, and those up one of leaders. Where the order counts, leaders
//! are the first ranks of all nodes, and the result goes from the first one to the root.

use super::{Algorithm, CollectiveKind, algorithm, leaders, name_up};
use crate::algorithm::reduce::climb_to_root;
use crate::shape::Shape;
use crate::{RankPart, started};

pub(in super::super) const REDUCE: Algorithm = algorithm(CollectiveKind::Reduce, reduce);

fn reduce(shape: &Shape, part: &mut RankPart) {
    let bytes = shape.bytes_of(0);
    let nodes = leaders(shape, if shape.in_order { 0 } else { shape.root });
    part.buffer("data", bytes);
    let up = name_up(&nodes, bytes, part);
    let summed = up.climb(started(), bytes, part);
    climb_to_root(shape, &nodes, summed.unwrap_or(up.sent.reaches(1)), part);
}
