//! The combination of values that all ranks have sent to one rank, each to a place of its own.

use crate::combining_order::{Combination, combinations};
use crate::{Location, RankPart, Step, StepTrigger};

/// Combines the values of all `ranks` ranks at the place of this rank, in the combining order. `place` returns where
/// the values of a rank lie, and `arrived` the trigger that is met when they are there; the own values are there
/// already. `then` is called for each step with the rank whose place the step was the last to read, and with true for
/// the step that completes the result.
///
/// The results of the ranks before this one arise in their receive buffers, so nothing is copied.
pub(crate) fn combine_incoming(
    (ranks, bytes): (usize, u64),
    place: impl Fn(usize) -> Location,
    arrived: impl Fn(usize) -> StepTrigger,
    part: &mut RankPart,
    mut then: impl FnMut(&mut Step, usize, bool),
) {
    let me = part.rank();
    let mut is_awaited: Vec<bool> = (0..ranks).map(|rank| rank == me).collect();
    for (number, Combination { from, to, in_front }) in combinations(ranks, me).into_iter().enumerate() {
        let mut triggers =
            [from, to].into_iter().filter(|&rank| !std::mem::replace(&mut is_awaited[rank], true));
        let trigger = triggers.next().map_or(crate::started(), &arrived);
        if let Some(second) = triggers.next() {
            part.join(arrived(second));
        }
        let step = part.reduce(trigger, place(from), place(to), bytes, in_front);
        then(step, from, number + 2 == ranks);
    }
}
