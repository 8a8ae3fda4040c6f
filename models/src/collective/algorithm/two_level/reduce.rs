//! Each node's values at its leader, and those up a binomial tree of leaders. Where the order counts, to the first node
//! and from there to the root.

use super::super::reduce::climb_to_root;
use super::inside::Inside;
use super::{Algorithm, Operation, TURNS, algorithm, leaders};
use crate::collective::shape::Shape;
use crate::schedule::Part;

pub(in super::super) const REDUCE: Algorithm = algorithm(Operation::Reduce, reduce);

fn reduce(shape: &Shape, part: &mut Part) {
    let nodes = leaders(shape, shape.root);
    part.buffer("data", shape.bytes_of(0));
    let had = Inside::name(shape, nodes, TURNS, part).combine(part);
    climb_to_root(shape, &nodes, had, part);
    if nodes.number_of(part.rank()).is_none() {
        part.finish(had);
    }
}
