//! Rabenseifner's algorithm: a reduce-scatter by recursive halving, followed by an allgather by recursive doubling.
//!
//! In round i, a rank sends half of its remaining part to the rank 2^i away, and combines the other half. In the end it
//! holds one part of the result; the rounds in reverse distribute it to all ranks. Partners hold values of adjacent
//! ranks.
//!
//! Source: Rabenseifner, "Optimization of collective reduction operations" (2004); Thakur, Rabenseifner, Gropp (2005).

use super::super::doublings;
use super::fold::{Fold, Role};
use super::{Algorithm, TURNS, algorithm};
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::combining_order::is_any_grouping;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};
use std::ops::Range;

pub(in super::super) const RABENSEIFNER: Algorithm = algorithm("rabenseifner", is_any_grouping, rabenseifner);

/// The buffers and signals of a rank that takes part in the rounds.
struct Declarations {
    places: BufferId,
    combined: SignalId,
    sent: SignalId,
    arrived: Vec<SignalId>,
    gathered: Vec<SignalId>,
}

impl Declarations {
    /// Declares them for a rank that takes part in the rounds (`active`), or for one that is folded.
    fn declare(
        shape: &Shape,
        fold: &Fold,
        active: Option<(usize, u64)>,
        part: &mut RankPart,
    ) -> Declarations {
        let rounds = doublings(fold.active_ranks);
        let once = u64::from(active.is_some());
        let (times, before) = (once * rounds as u64, active.map_or(0, |(_, before)| before));
        let bytes = active.map_or(0, |(number, _)| receive_offset(shape, fold.active_ranks, number, rounds));
        let places = part.scratch("incoming", bytes, TURNS);
        let combined = part.signal("combined", before + times);
        let sent = part.signal("sent", 2 * times);
        let arrived = (0..rounds).map(|_| part.signal("arrived", once)).collect();
        let gathered = (0..rounds).map(|_| part.signal("gathered", once)).collect();
        Declarations { places, combined, sent, arrived, gathered }
    }
}

fn rabenseifner(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    part.buffer("data", bytes);
    let fold = Fold::declare(NodeLeaders::all(shape.ranks), bytes, TURNS, part);
    let rounds = doublings(fold.active_ranks);
    match fold.role(me) {
        Role::Folded(to) => {
            Declarations::declare(shape, &fold, None, part);
            fold.send_values(to, started(), part);
        }
        Role::Active(number, folded) => {
            let before = u64::from(folded.is_some());
            let declared = Declarations::declare(shape, &fold, Some((number, before)), part);
            if folded.is_some() {
                fold.combine_folded(declared.combined, part);
            }
            reduce_scatter(shape, &fold, (number, before), &declared, part);
            allgather(shape, &fold, (number, before), &declared, part);
            if rounds > 0 {
                part.finish(declared.gathered[0].reaches(1));
                part.finish(declared.sent.reaches(2 * rounds as u64));
            }
            if let Some(other) = folded {
                let done =
                    if rounds > 0 { declared.gathered[0].reaches(1) } else { declared.combined.reaches(1) };
                fold.send_result(other, done, (DATA.on(me, 0), DATA), part);
            }
        }
    }
}

/// The range of bytes that a rank holds before a round.
fn held_range(shape: &Shape, whole: usize, number: usize, round: usize) -> Range<u64> {
    let (mut first, mut parts) = (0, whole);
    for earlier in 0..round {
        parts /= 2;
        first += if number >> earlier & 1 == 1 { parts } else { 0 };
    }
    let cut = |at: usize| shape.cut(shape.bytes_of(0), whole as u64, at as u64);
    cut(first)..cut(first + parts)
}

/// Offset of the receive buffer of a round, behind those of earlier rounds.
fn receive_offset(shape: &Shape, whole: usize, number: usize, round: usize) -> u64 {
    (1..=round)
        .map(|earlier| held_range(shape, whole, number, earlier))
        .map(|range| range.end - range.start)
        .sum()
}

fn reduce_scatter(
    shape: &Shape,
    fold: &Fold,
    (number, before): (usize, u64),
    declared: &Declarations,
    part: &mut RankPart,
) {
    let me = part.rank();
    for (round, arrived) in declared.arrived.iter().enumerate() {
        let other = number ^ (1 << round);
        let partner = fold.rank_of(other);
        let (keeps, gives) = (
            held_range(shape, fold.active_ranks, number, round + 1),
            held_range(shape, fold.active_ranks, other, round + 1),
        );
        let counted = before + round as u64;
        let ready = if counted > 0 { declared.combined.reaches(counted) } else { started() };
        part.copy(
            ready,
            DATA.on(me, gives.start),
            declared.places.on(partner, receive_offset(shape, fold.active_ranks, other, round)),
            gives.end - gives.start,
        )
        .then(arrived.on(partner, 1))
        .then(declared.sent.on(me, 1));
        let (from, to) = (
            declared.places.on(me, receive_offset(shape, fold.active_ranks, number, round)),
            DATA.on(me, keeps.start),
        );
        part.reduce(arrived.reaches(1), from, to, keeps.end - keeps.start, partner < me)
            .then(declared.combined.on(me, 1));
    }
}

fn allgather(
    shape: &Shape,
    fold: &Fold,
    (number, before): (usize, u64),
    declared: &Declarations,
    part: &mut RankPart,
) {
    let (me, rounds) = (part.rank(), declared.arrived.len());
    let mut ready: StepTrigger = declared.combined.reaches(before + rounds as u64);
    for (round, gathered) in declared.gathered.iter().enumerate().rev() {
        let partner = fold.rank_of(number ^ (1 << round));
        let has = held_range(shape, fold.active_ranks, number, round + 1);
        part.copy(ready, DATA.on(me, has.start), DATA.on(partner, has.start), has.end - has.start)
            .then(gathered.on(partner, 1))
            .then(declared.sent.on(me, 1));
        ready = gathered.reaches(1);
    }
}
