//! A block of everybody's for everybody.

use super::{Algorithm, CollectiveKind, Make, doublings, signal_all};
use crate::algorithm::neighbours::GivenBlock;
use crate::shape::{Counts, DATA, RESULT, Shape};
use crate::{BufferId, Location, RankPart, SignalId, started};

/// Everybody puts each block where it belongs, beginning with its neighbour's.
pub(super) const PAIRWISE: Algorithm = algorithm("pairwise", |_| true, pairwise);
/// In round i a rank hands all blocks on that have a way to go in which 2^i counts, to the one 2^i after it: few
/// messages, with blocks that go by several ranks.
///
/// Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
/// message-passing systems" (1997).
pub(super) const BRUCK: Algorithm =
    algorithm("bruck", |shape| matches!(shape.counts, Counts::Equal(_)), bruck);

const fn algorithm(
    name: &'static str,
    fits: fn(&Shape) -> bool,
    make: fn(&Shape, &mut RankPart),
) -> Algorithm {
    Algorithm { name, operation: CollectiveKind::Alltoall, fits, make: Make::Whole(make) }
}

fn pairwise(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    name_buffers(shape, part);
    put_all(part, shape.ranks, |to| GivenBlock {
        to,
        from: shape.sent_before(me, to),
        into: shape.got_before(me, to),
        bytes: shape.block(me, to),
    });
}

/// Gives all ranks their blocks, as soon as all are ready.
pub fn put_all(part: &mut RankPart, ranks: usize, block: impl Fn(usize) -> GivenBlock) {
    let (me, others) = (part.rank(), ranks as u64 - 1);
    let ready = part.signal("ready", others);
    let arrived = part.signal("arrived", ranks as u64);
    let sent = part.signal("sent", others);
    signal_all(part, (1..ranks).map(|step| ready.on((me + step) % ranks, 1)));
    for step in 0..ranks {
        let GivenBlock { to, from, into, bytes } = block((me + step) % ranks);
        let trigger = if step == 0 { started() } else { ready.reaches(others) };
        let copy = part.copy(trigger, DATA.on(me, from), RESULT.on(to, into), bytes);
        copy.then(arrived.on(to, 1));
        if step > 0 {
            copy.then(sent.on(me, 1));
        }
    }
    part.finish(arrived.reaches(ranks as u64));
    part.finish(sent.reaches(others));
}

fn name_buffers(shape: &Shape, part: &mut RankPart) {
    let [data, result] = shape.rooms(part.rank());
    part.buffer("data", data);
    part.buffer("result", result);
}

/// Starts that a place serves in turn: everybody has heard of everybody in the one between.
const TURNS: u32 = 2;

/// Where blocks are packed to travel, and where they arrive, round after round.
struct Rounds {
    packed: BufferId,
    incoming: BufferId,
    laid: SignalId,
    sent: SignalId,
    placed: SignalId,
    arrived: Vec<SignalId>,
}

fn bruck(shape: &Shape, part: &mut RankPart) {
    let (ranks, me, bytes) = (shape.ranks, part.rank(), shape.block(0, 0));
    name_buffers(shape, part);
    let rounds = doublings(ranks);
    let travels = |round: usize| (0..ranks).filter(move |way| way >> round & 1 == 1);
    let all: u64 = (0..rounds).map(|round| travels(round).count() as u64).sum();
    let names = Rounds {
        packed: part.scratch("packed", all * bytes, TURNS),
        incoming: part.scratch("incoming", all * bytes, TURNS),
        laid: part.signal("copied_in", all),
        sent: part.signal("sent", rounds as u64),
        placed: part.signal("placed", ranks as u64),
        arrived: (0..rounds).map(|_| part.signal("arrived", 1)).collect(),
    };
    // Where the block is now that has so far to go from here.
    let mut places: Vec<Location> =
        (0..ranks).map(|way| DATA.on(me, shape.sent_before(me, (me + way) % ranks))).collect();
    let mut laid = 0;
    for (round, arrived) in names.arrived.iter().enumerate() {
        let (to, first) = ((me + (1 << round)) % ranks, laid);
        for way in travels(round) {
            part.copy(started(), places[way], names.packed.on(me, laid * bytes), bytes)
                .then(names.laid.on(me, 1));
            places[way] = names.incoming.on(me, laid * bytes);
            laid += 1;
        }
        let (from, into) = (names.packed.on(me, first * bytes), names.incoming.on(to, first * bytes));
        part.copy(names.laid.reaches(laid), from, into, (laid - first) * bytes)
            .then(arrived.on(to, 1))
            .then(names.sent.on(me, 1));
        part.join(arrived.reaches(1));
    }
    for (way, &place) in places.iter().enumerate() {
        let from = (me + ranks - way) % ranks;
        part.copy(started(), place, RESULT.on(me, shape.got_before(from, me)), bytes)
            .then(names.placed.on(me, 1));
    }
    part.finish(names.sent.reaches(rounds as u64));
    part.finish(names.placed.reaches(ranks as u64));
}
