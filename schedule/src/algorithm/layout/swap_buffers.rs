//! Staging buffers that each pair of ranks swaps at each start, for algorithms in which each rank sends something to
//! each other rank.
//!
//! A rank writes for another one where it has read that one's data before, which may still be in its caches. A rank
//! that writes has read the buffer itself, so no rank needs to signal that it is free.

use crate::shape::Shape;
use crate::{BufferId, Location, RankPart};

/// One buffer for each other rank, and an empty one for the rank itself.
pub(crate) struct SwapBuffers(Vec<BufferId>);

impl SwapBuffers {
    /// Declares buffers for blocks of the shape; `None` if the blocks differ in size.
    pub(crate) fn declare(shape: &Shape, part: &mut RankPart) -> Option<SwapBuffers> {
        let (me, ranks) = (part.rank(), shape.ranks);
        // Two ranks identify their buffer by the sum of their numbers.
        let place = |sum: usize| match (sum + ranks - me) % ranks {
            with if with == me => part.scratch("own", 0, 1),
            with => part.swapped("pair", shape.block(me, with), with),
        };
        shape.is_even().then(|| SwapBuffers((0..ranks).map(place).collect()))
    }

    /// The location where `from` writes for `to`.
    pub(crate) fn location(&self, from: usize, to: usize) -> Location {
        self.0[(from + to) % self.0.len()].on(from, 0)
    }
}
