//! Pairwise: each rank combines its share of the values of all ranks, and writes the result to all others.
//!
//! Each byte is sent twice, as in a ring, but in two steps, in which each rank sends something to each other one.
//! Values can be combined in any order.
//!
//! Source: Thakur, Rabenseifner, Gropp (2005), the reduce-scatter by pairwise exchange.

use super::{Algorithm, algorithm};
use crate::RankPart;
use crate::algorithm::reduce_scatter::pairwise_steps;
use crate::shape::{DATA, Shape};

pub(in super::super) const PAIRWISE: Algorithm = algorithm("pairwise", |_| true, pairwise);

fn pairwise(shape: &Shape, part: &mut RankPart) {
    let (ranks, me, bytes) = (shape.ranks, part.rank(), shape.bytes_of(0));
    let count = ranks as u64 - 1;
    part.buffer("data", bytes);
    let cut = |share: usize| shape.cut(bytes, ranks as u64, share as u64);
    let shares: Vec<(u64, u64)> = (0..ranks).map(|share| (cut(share), cut(share + 1) - cut(share))).collect();
    let combined = pairwise_steps(&shares, part);
    let gathered = part.signal("gathered", count);
    let result_sent = part.signal("result_sent", count);
    let (at, share) = shares[me];
    // A rank whose values have been combined has sent them, so the result may overwrite them.
    for step in 1..ranks {
        let to = (me + step) % ranks;
        part.copy(combined, DATA.on(me, at), DATA.on(to, at), share)
            .then(gathered.on(to, 1))
            .then(result_sent.on(me, 1));
    }
    if count > 0 {
        part.finish(gathered.reaches(count));
        part.finish(result_sent.reaches(count));
    }
}
