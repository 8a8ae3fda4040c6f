//! Reductions for all ranks. In place: the result stands where a rank's own values were.

mod doubling;
mod fold;
mod rabenseifner;
mod ring;
mod tree;

pub(super) use doubling::{DOUBLING, Doubling};
pub(super) use fold::Role;
pub(super) use rabenseifner::RABENSEIFNER;
pub(super) use ring::RING;
pub(super) use tree::TREE;

use super::{Algorithm, CollectiveKind, Make};
use crate::RankPart;
use crate::shape::Shape;

const fn algorithm(
    name: &'static str,
    fits: fn(&Shape) -> bool,
    make: fn(&Shape, &mut RankPart),
) -> Algorithm {
    Algorithm { name, operation: CollectiveKind::Allreduce, fits, make: Make::Whole(make) }
}

/// Starts that a place for what comes in serves in turn: who writes there again has heard of the start in between that
/// its owner was through with the one before.
const TURNS: u32 = 2;
