//! Alltoall algorithms: each rank sends one block to each rank.

use super::{Algorithm, CollectiveKind, Make, doublings, signal_all};
use crate::algorithm::neighbour_exchange::BlockToSend;
use crate::shape::{Counts, DATA, RESULT, Shape};
use crate::{BufferId, Location, RankPart, SignalId, started};

/// Each rank writes each block to its destination, beginning with the block for the next rank.
pub(super) const PAIRWISE: Algorithm = algorithm("pairwise", |_| true, pairwise);
/// Bruck's algorithm: in round i, a rank forwards to the rank 2^i after it all blocks whose remaining distance has bit
/// i set. Few messages; a block passes several ranks.
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
    Algorithm { name, collective: CollectiveKind::Alltoall, fits, make: Make::Whole(make) }
}

fn pairwise(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    name_buffers(shape, part);
    put_all(part, shape.ranks, |to| BlockToSend {
        to,
        from: shape.send_offset(me, to),
        into: shape.recv_offset(me, to),
        bytes: shape.block(me, to),
    });
}

/// Writes one block to each rank, as soon as all ranks are ready.
pub fn put_all(part: &mut RankPart, ranks: usize, block: impl Fn(usize) -> BlockToSend) {
    let (me, others) = (part.rank(), ranks as u64 - 1);
    let ready = part.signal("ready", others);
    let arrived = part.signal("arrived", ranks as u64);
    let sent = part.signal("sent", others);
    signal_all(part, (1..ranks).map(|step| ready.on((me + step) % ranks, 1)));
    for step in 0..ranks {
        let BlockToSend { to, from, into, bytes } = block((me + step) % ranks);
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
    let [data, result] = shape.buffer_bytes(part.rank());
    part.buffer("data", data);
    part.buffer("result", result);
}

/// Copies of the buffers, used by successive starts in turn. Two suffice: between two uses of one copy, each rank has
/// heard from all ranks.
const TURNS: u32 = 2;

/// The buffers in which blocks are packed for sending, and those in which they arrive.
struct BruckBuffers {
    packed: BufferId,
    incoming: BufferId,
    copied_in: SignalId,
    sent: SignalId,
    placed: SignalId,
    arrived: Vec<SignalId>,
}

fn bruck(shape: &Shape, part: &mut RankPart) {
    let (ranks, me, bytes) = (shape.ranks, part.rank(), shape.block(0, 0));
    name_buffers(shape, part);
    let rounds = doublings(ranks);
    let ways = |round: usize| (0..ranks).filter(move |way| way >> round & 1 == 1);
    let all: u64 = (0..rounds).map(|round| ways(round).count() as u64).sum();
    let declared = BruckBuffers {
        packed: part.scratch("packed", all * bytes, TURNS),
        incoming: part.scratch("incoming", all * bytes, TURNS),
        copied_in: part.signal("copied_in", all),
        sent: part.signal("sent", rounds as u64),
        placed: part.signal("placed", ranks as u64),
        arrived: (0..rounds).map(|_| part.signal("arrived", 1)).collect(),
    };
    // The current location of the block for the rank `way` after this one.
    let mut places: Vec<Location> =
        (0..ranks).map(|way| DATA.on(me, shape.send_offset(me, (me + way) % ranks))).collect();
    let mut packed_count = 0;
    for (round, arrived) in declared.arrived.iter().enumerate() {
        let (to, first) = ((me + (1 << round)) % ranks, packed_count);
        for way in ways(round) {
            part.copy(started(), places[way], declared.packed.on(me, packed_count * bytes), bytes)
                .then(declared.copied_in.on(me, 1));
            places[way] = declared.incoming.on(me, packed_count * bytes);
            packed_count += 1;
        }
        let (from, into) = (declared.packed.on(me, first * bytes), declared.incoming.on(to, first * bytes));
        part.copy(declared.copied_in.reaches(packed_count), from, into, (packed_count - first) * bytes)
            .then(arrived.on(to, 1))
            .then(declared.sent.on(me, 1));
        part.join(arrived.reaches(1));
    }
    for (way, &place) in places.iter().enumerate() {
        let from = (me + ranks - way) % ranks;
        part.copy(started(), place, RESULT.on(me, shape.recv_offset(from, me)), bytes)
            .then(declared.placed.on(me, 1));
    }
    part.finish(declared.sent.reaches(rounds as u64));
    part.finish(declared.placed.reaches(ranks as u64));
}
