//! Allreduce algorithms: all ranks get the combined values, in place.

mod doubling;
mod fold;
mod pairwise;
mod rabenseifner;
mod ring;
mod tree;

pub(super) use doubling::{DOUBLING, Doubling};
pub(super) use fold::Role;
pub(super) use pairwise::PAIRWISE;
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
    Algorithm { name, collective: CollectiveKind::Allreduce, fits, make: Make::Whole(make) }
}

/// Number of copies of a receive buffer, used by successive starts in turn. Two suffice: a rank that writes to a copy
/// again has heard in the start in between that its owner was done with the start before.
const TURNS: u32 = 2;
