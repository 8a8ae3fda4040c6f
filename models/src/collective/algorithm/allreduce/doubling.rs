//! Recursive doubling: in round i a rank exchanges all that it has with the one 2^i away, and both combine.
//!
//! What a rank has come to it combines *into* the place where its partner's values arrived, so what it sends is never
//! changed while it is read, and no round waits for what was sent to be gone.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).

use super::super::doublings;
use super::fold::{Fold, Role};
use super::{Algorithm, TURNS, algorithm};
use crate::collective::shape::{DATA, Shape};
use crate::schedule::{Part, Signal, started};

pub(in super::super) const DOUBLING: Algorithm = algorithm("recursive doubling", |_| true, doubling);

fn doubling(shape: &Shape, part: &mut Part) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    part.buffer("data", bytes);
    let fold = Fold::name(shape, TURNS, part);
    let rounds = doublings(fold.whole);
    let Role::In(number, folded) = fold.role(me) else {
        name(0, 0, rounds, bytes, part);
        if let Role::Out(to) = fold.role(me) {
            fold.hand_out(to, shape, part);
        }
        return;
    };
    let before = u64::from(folded.is_some());
    let (places, [combined, sent, done], arrived) = name(rounds as u64, before, rounds, bytes, part);
    if folded.is_some() {
        fold.take_in(combined, shape, part);
    }
    let mut have = DATA.on(me, 0);
    for (round, arrived) in arrived.iter().enumerate() {
        let partner = fold.rank_of(number ^ (1 << round));
        let at = round as u64 * bytes;
        let ready =
            if before + round as u64 > 0 { combined.reaches(before + round as u64) } else { started() };
        part.copy(ready, have, places.on(partner, at), bytes)
            .then(arrived.on(partner, 1))
            .then(sent.on(me, 1));
        let into = places.on(me, at);
        part.reduce(arrived.reaches(1), have, into, bytes, me < partner).then(combined.on(me, 1));
        have = into;
    }
    if rounds > 0 {
        part.join(sent.reaches(rounds as u64));
        let ready = combined.reaches(before + rounds as u64);
        part.copy(ready, have, DATA.on(me, 0), bytes).then(done.on(me, 1));
        part.finish(done.reaches(1));
    }
    if let Some(other) = folded {
        fold.hand_back(other, done.reaches(1), shape, part);
    }
}

/// Places for what comes in, signals, and one signal a round.
fn name(
    sends: u64,
    before: u64,
    rounds: usize,
    bytes: u64,
    part: &mut Part,
) -> (crate::schedule::Buffer, [Signal; 3], Vec<Signal>) {
    let places = part.scratch("places", bytes * sends, TURNS);
    let combined = part.signal("combined", before + sends);
    let sent = part.signal("sent", sends);
    let done = part.signal("done", u64::from(sends > 0));
    let arrived = (0..rounds).map(|_| part.signal("arrived", u64::from(sends > 0))).collect();
    (places, [combined, sent, done], arrived)
}
