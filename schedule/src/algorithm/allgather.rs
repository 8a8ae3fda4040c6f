//! Allgather algorithms: all ranks get the blocks of all ranks.

use super::{Algorithm, CollectiveKind, Make};
use crate::algorithm::barrier::{barrier, declare_rounds};
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// Ring: each rank forwards the block that it received last to the next rank.
pub(super) const RING: Algorithm = algorithm("ring", |_| true, ring);
/// Recursive doubling: pairs of ranks exchange all blocks that they have, at doubling distances.
///
/// Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).
pub(super) const DOUBLING: Algorithm =
    algorithm("recursive doubling", |shape| shape.ranks.is_power_of_two(), doubling);
/// Bruck's algorithm: as recursive doubling, for any number of ranks. Each rank has a row of blocks that begins with
/// its own and sends it to ranks before it.
///
/// Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
/// message-passing systems" (1997).
pub(super) const BRUCK: Algorithm = algorithm("bruck", |_| true, bruck);
/// Each rank runs a list of commands that move its own block down a tree: from rank k after it to ranks 2k and 2k + 1
/// after it, by copies between other ranks.
///
/// Source: the collective interface of the ACP library, figure 6.
pub(super) const LISTS: Algorithm = algorithm("command lists", |_| true, lists);

const fn algorithm(
    name: &'static str,
    fits: fn(&Shape) -> bool,
    make: fn(&Shape, &mut RankPart),
) -> Algorithm {
    Algorithm { name, collective: CollectiveKind::Allgather, fits, make: Make::Whole(make) }
}

fn ring(shape: &Shape, part: &mut RankPart) {
    let (ranks, me) = (shape.ranks, part.rank());
    let steps = ranks as u64 - 1;
    let (next, before) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let arrived = part.signal("arrived", steps);
    let ready = part.signal("ready", u64::from(ranks > 1));
    let sent = part.signal("sent", steps);
    if ranks == 1 {
        return;
    }
    part.join(started()).then(ready.on(before, 1));
    part.join(ready.reaches(1));
    for step in 0..ranks - 1 {
        let block = (me + ranks - step) % ranks;
        let at = shape.offset_of(block);
        part.copy(arrived.reaches(step as u64), DATA.on(me, at), DATA.on(next, at), shape.bytes_of(block))
            .then(arrived.on(next, 1))
            .then(sent.on(me, 1));
    }
    part.finish(arrived.reaches(steps));
    part.finish(sent.reaches(steps));
}

fn doubling(shape: &Shape, part: &mut RankPart) {
    let (ranks, me) = (shape.ranks, part.rank());
    let rounds = ranks.trailing_zeros() as usize;
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let sent = part.signal("sent", rounds as u64);
    // One signal for each round: a sum would not tell which partner is ready or has sent.
    let ready: Vec<_> = (0..rounds).map(|_| part.signal("ready", 1)).collect();
    let arrived: Vec<_> = (0..rounds).map(|_| part.signal("arrived", 1)).collect();
    for (round, ready) in ready.iter().enumerate() {
        part.join(started()).then(ready.on(me ^ (1 << round), 1));
    }
    for round in 0..rounds {
        let partner = me ^ (1 << round);
        let first = me >> round << round;
        let (from, to) = (shape.offset_of(first), shape.offset_of(first + (1 << round)));
        if round > 0 {
            part.join(arrived[round - 1].reaches(1));
        }
        part.copy(ready[round].reaches(1), DATA.on(me, from), DATA.on(partner, from), to - from)
            .then(arrived[round].on(partner, 1))
            .then(sent.on(me, 1));
    }
    arrived.iter().for_each(|arrived| part.finish(arrived.reaches(1)));
    part.finish(sent.reaches(rounds as u64));
}

fn bruck(shape: &Shape, part: &mut RankPart) {
    let (ranks, me) = (shape.ranks, part.rank());
    let rounds = ranks.next_power_of_two().trailing_zeros() as usize;
    // The offset of block number `blocks` in the row of `rank`.
    let row = |rank: usize, blocks: usize| {
        (0..blocks).map(|block| shape.bytes_of((rank + block) % ranks)).sum::<u64>()
    };
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let blocks = part.scratch("row", shape.bytes_of_all(), 2);
    let copied_in = part.signal("own", 1);
    let sent = part.signal("sent", rounds as u64);
    let placed = part.signal("placed", ranks as u64 - 1);
    let arrived: Vec<_> = (0..rounds).map(|_| part.signal("arrived", 1)).collect();
    let own = shape.offset_of(me);
    part.copy(started(), DATA.on(me, own), blocks.on(me, 0), shape.bytes_of(me)).then(copied_in.on(me, 1));
    let mut ready = copied_in.reaches(1);
    for (round, arrived) in arrived.iter().enumerate() {
        let have = 1 << round;
        let to = (me + ranks - have) % ranks;
        let count = have.min(ranks - have);
        part.copy(ready, blocks.on(me, 0), blocks.on(to, row(to, have)), row(me, count))
            .then(arrived.on(to, 1))
            .then(sent.on(me, 1));
        ready = arrived.reaches(1);
    }
    for block in 1..ranks {
        let of = (me + block) % ranks;
        part.copy(ready, blocks.on(me, row(me, block)), DATA.on(me, shape.offset_of(of)), shape.bytes_of(of))
            .then(placed.on(me, 1));
    }
    part.finish(sent.reaches(rounds as u64));
    part.finish(placed.reaches(ranks as u64 - 1));
    part.finish(copied_in.reaches(1));
    arrived.iter().for_each(|arrived| part.finish(arrived.reaches(1)));
}

fn lists(shape: &Shape, part: &mut RankPart) {
    let (ranks, me) = (shape.ranks, part.rank());
    let others = ranks as u64 - 1;
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let (ready, done_everywhere) = (declare_rounds(ranks, part), declare_rounds(ranks, part));
    let done = part.signal("done", others);
    barrier(ranks, &ready, started(), part);
    let (at, bytes) = (shape.offset_of(me), shape.bytes_of(me));
    for place in 1..ranks {
        // From the rank itself to the next one, from there to the two after it, and so on: k to 2k and 2k + 1.
        let source = place / 2;
        let (from, to) = ((me + source) % ranks, (me + place) % ranks);
        part.copy(done.reaches(source as u64), DATA.on(from, at), DATA.on(to, at), bytes)
            .then(done.on(me, 1));
    }
    // The lists of other ranks access this rank's memory; all of them are done after this barrier.
    barrier(ranks, &done_everywhere, done.reaches(others), part);
    done_everywhere.into_iter().for_each(|round| part.finish(round.reaches(1)));
    part.finish(done.reaches(others));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepKind;

    /// The published list for 7 ranks, as (receiver, sender, index of the copy that it comes after), relative to the
    /// list's rank.
    const PRINTED: [(usize, usize, Option<usize>); 6] =
        [(1, 0, None), (2, 1, Some(0)), (3, 1, Some(1)), (4, 2, Some(1)), (5, 2, Some(2)), (6, 3, Some(2))];

    /// J11: the published tree for any number of ranks: k sends to 2k and 2k + 1. Each rank moves its own block by its
    /// own list.
    #[test]
    fn j11_the_lists_are_the_published_ones() {
        for ranks in [1, 2, 3, 5, 7, 8] {
            let shape = Shape::new(CollectiveKind::Allgather, ranks, 0, 24);
            let schedule = LISTS.schedule(&shape, 1);
            schedule.check().unwrap_or_else(|fault| panic!("{ranks} ranks: {fault}"));
            for me in 0..ranks {
                let part = schedule.part(me);
                let moves: Vec<_> =
                    part.steps().iter().filter(|step| step.action != StepKind::Nothing).collect();
                assert_eq!(moves.len(), ranks - 1);
                for (number, step) in moves.iter().enumerate() {
                    let place = number + 1;
                    let on = |place: usize| DATA.on((me + place) % ranks, 24 * me as u64);
                    let action = StepKind::Copy { from: on(place / 2), to: on(place), bytes: 24 };
                    assert_eq!(step.action, action, "copy {number} of rank {me} of {ranks}");
                    // The trigger counts as many copies as it takes until the block has arrived at the source.
                    let is_done = part.signal_decls()[step.trigger.signal.index()].name == "done";
                    assert_eq!((is_done, step.trigger.count), (true, (place / 2) as u64));
                }
            }
        }
    }

    /// The published commands 2 and 4 wait for more copies than the data require. No command here waits for more than
    /// the published one.
    #[test]
    fn j11_no_command_waits_for_more_than_the_printed_one() {
        let shape = Shape::new(CollectiveKind::Allgather, 7, 0, 24);
        let part = LISTS.schedule(&shape, 1).part(0);
        let moves = part.steps().iter().filter_map(|step| match step.action {
            StepKind::Copy { from, to, .. } => {
                Some((to.rank as usize, from.rank as usize, step.trigger.count))
            }
            _ => None,
        });
        let ours: Vec<_> = moves.collect();
        let printed = PRINTED.map(|(to, from, after)| (to, from, after.map_or(0, |step| step as u64 + 1)));
        for (command, (ours, printed)) in ours.iter().zip(printed).enumerate() {
            assert_eq!((ours.0, ours.1), (printed.0, printed.1), "command {command}");
            let fewer = printed.2 - ours.2;
            assert_eq!(fewer, u64::from([2, 4].contains(&command)), "command {command}");
        }
    }
}
