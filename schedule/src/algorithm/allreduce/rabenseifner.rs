//! Rabenseifner's algorithm: a reduce-scatter by recursive halving, and an allgather by recursive doubling back.
//!
//! In round i a rank gives the half of what it still has to the one 2^i away, and combines the other half. So it comes
//! to have one part of the result, and goes the rounds back to hand it to all. Partners' values are those of
//! neighbours, so they are combined in the order of ranks.
//!
//! Source: Rabenseifner, "Optimization of collective reduction operations" (2004); Thakur, Rabenseifner, Gropp (2005).

use super::super::doublings;
use super::fold::{Fold, Role};
use super::{Algorithm, TURNS, algorithm};
use crate::algorithm::layout::leaders::Leaders;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};
use std::ops::Range;

pub(in super::super) const RABENSEIFNER: Algorithm = algorithm("rabenseifner", |_| true, rabenseifner);

/// Signals and places of a rank that goes on.
struct Names {
    places: BufferId,
    combined: SignalId,
    sent: SignalId,
    arrived: Vec<SignalId>,
    gathered: Vec<SignalId>,
}

impl Names {
    /// Of a rank that goes on with a number, or does not.
    fn name(shape: &Shape, fold: &Fold, goes_on: Option<(usize, u64)>, part: &mut RankPart) -> Names {
        let rounds = doublings(fold.whole);
        let once = u64::from(goes_on.is_some());
        let (times, before) = (once * rounds as u64, goes_on.map_or(0, |(_, before)| before));
        let bytes = goes_on.map_or(0, |(number, _)| place(shape, fold.whole, number, rounds));
        let places = part.scratch("places", bytes, TURNS);
        let combined = part.signal("combined", before + times);
        let sent = part.signal("sent", 2 * times);
        let arrived = (0..rounds).map(|_| part.signal("arrived", once)).collect();
        let gathered = (0..rounds).map(|_| part.signal("gathered", once)).collect();
        Names { places, combined, sent, arrived, gathered }
    }
}

fn rabenseifner(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    part.buffer("data", bytes);
    let fold = Fold::name(Leaders::all(shape.ranks), bytes, TURNS, part);
    let rounds = doublings(fold.whole);
    match fold.role(me) {
        Role::Out(to) => {
            Names::name(shape, &fold, None, part);
            fold.hand_out(to, started(), part);
        }
        Role::In(number, folded) => {
            let before = u64::from(folded.is_some());
            let names = Names::name(shape, &fold, Some((number, before)), part);
            if folded.is_some() {
                fold.take_in(names.combined, part);
            }
            halve(shape, &fold, (number, before), &names, part);
            double(shape, &fold, (number, before), &names, part);
            if rounds > 0 {
                part.finish(names.gathered[0].reaches(1));
                part.finish(names.sent.reaches(2 * rounds as u64));
            }
            if let Some(other) = folded {
                let done = if rounds > 0 { names.gathered[0].reaches(1) } else { names.combined.reaches(1) };
                fold.hand_back(other, done, (DATA.on(me, 0), DATA), part);
            }
        }
    }
}

/// What a rank has of the values before a round, as bytes.
fn had(shape: &Shape, whole: usize, number: usize, round: usize) -> Range<u64> {
    let (mut first, mut parts) = (0, whole);
    for earlier in 0..round {
        parts /= 2;
        first += if number >> earlier & 1 == 1 { parts } else { 0 };
    }
    let cut = |at: usize| shape.cut(shape.bytes_of(0), whole as u64, at as u64);
    cut(first)..cut(first + parts)
}

/// Where what comes in a round lies: behind what came in those before.
fn place(shape: &Shape, whole: usize, number: usize, round: usize) -> u64 {
    (1..=round).map(|earlier| had(shape, whole, number, earlier)).map(|had| had.end - had.start).sum()
}

fn halve(shape: &Shape, fold: &Fold, (number, before): (usize, u64), names: &Names, part: &mut RankPart) {
    let me = part.rank();
    for (round, arrived) in names.arrived.iter().enumerate() {
        let other = number ^ (1 << round);
        let partner = fold.rank_of(other);
        let (keeps, gives) =
            (had(shape, fold.whole, number, round + 1), had(shape, fold.whole, other, round + 1));
        let counted = before + round as u64;
        let ready = if counted > 0 { names.combined.reaches(counted) } else { started() };
        part.copy(
            ready,
            DATA.on(me, gives.start),
            names.places.on(partner, place(shape, fold.whole, other, round)),
            gives.end - gives.start,
        )
        .then(arrived.on(partner, 1))
        .then(names.sent.on(me, 1));
        let (from, to) =
            (names.places.on(me, place(shape, fold.whole, number, round)), DATA.on(me, keeps.start));
        part.reduce(arrived.reaches(1), from, to, keeps.end - keeps.start, partner < me)
            .then(names.combined.on(me, 1));
    }
}

fn double(shape: &Shape, fold: &Fold, (number, before): (usize, u64), names: &Names, part: &mut RankPart) {
    let (me, rounds) = (part.rank(), names.arrived.len());
    let mut ready: StepTrigger = names.combined.reaches(before + rounds as u64);
    for (round, gathered) in names.gathered.iter().enumerate().rev() {
        let partner = fold.rank_of(number ^ (1 << round));
        let has = had(shape, fold.whole, number, round + 1);
        part.copy(ready, DATA.on(me, has.start), DATA.on(partner, has.start), has.end - has.start)
            .then(gathered.on(partner, 1))
            .then(names.sent.on(me, 1));
        ready = gathered.reaches(1);
    }
}
