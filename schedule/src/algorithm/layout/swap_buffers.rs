//! Places that each two ranks swap, where each rank gives something of its own to each other one.
//!
//! What a rank lays out for another lies where it has taken something of that one: in its caches, if it is in any. And
//! who comes to lay something there has taken what was there itself, so nobody needs to tell that it is free.

use crate::shape::Shape;
use crate::{BufferId, Location, RankPart};

/// A buffer for each rank; for the rank itself one of nothing.
pub(crate) struct SwapBuffers(Vec<BufferId>);

impl SwapBuffers {
    /// Of blocks of the shape. None: they are not all as long.
    pub(crate) fn set(shape: &Shape, part: &mut RankPart) -> Option<SwapBuffers> {
        let (me, ranks) = (part.rank(), shape.ranks);
        // Two ranks know theirs by the sum of their numbers.
        let place = |sum: usize| match (sum + ranks - me) % ranks {
            with if with == me => part.scratch("own", 0, 1),
            with => part.swapped("pair", shape.block(me, with), with),
        };
        shape.is_even().then(|| SwapBuffers((0..ranks).map(place).collect()))
    }

    /// FaultSite `from` lays out something for another rank.
    pub(crate) fn place(&self, from: usize, to: usize) -> Location {
        self.0[(from + to) % self.0.len()].on(from, 0)
    }
}
