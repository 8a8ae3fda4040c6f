//! Places that each two ranks swap, where each rank gives something of its own to each other one.
//!
//! What a rank lays out for another lies where it has taken something of that one: in its caches, if it is in any. And
//! who comes to lay something there has taken what was there itself, so nobody needs to tell that it is free.

use crate::shape::Shape;
use crate::{Buffer, Part, Place};

/// A buffer for each rank; for the rank itself one of nothing.
pub(super) struct Pairs(Vec<Buffer>);

impl Pairs {
    /// Of blocks of the shape. None: they are not all as long.
    pub(super) fn set(shape: &Shape, part: &mut Part) -> Option<Pairs> {
        let (me, ranks) = (part.rank(), shape.ranks);
        // Two ranks know theirs by the sum of their numbers.
        let place = |sum: usize| match (sum + ranks - me) % ranks {
            with if with == me => part.scratch("own", 0, 1),
            with => part.swapped("pair", shape.block(me, with), with),
        };
        shape.is_even().then(|| Pairs((0..ranks).map(place).collect()))
    }

    /// Where `from` lays out something for another rank.
    pub(super) fn place(&self, from: usize, to: usize) -> Place {
        self.0[(from + to) % self.0.len()].on(from, 0)
    }
}
