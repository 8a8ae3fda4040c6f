//! Two ranks, each of which copies half of a block from the root's data to the other's: no byte is copied twice.
//!
//! Each rank signals that it has entered, and that it has copied its half; its start is over when both have. In calls,
//! the data are the programs' own memory, which the kernel copies between processes. This pays for long blocks, if the
//! processors are so far apart that two copies through shared memory take longer.

use crate::algorithm::{Algorithm, CollectiveKind, Make};
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// The root writes the second half to the other rank's data; that rank reads the first half from the root's data.
pub(crate) const BCAST: Algorithm = Algorithm {
    name: "put and get",
    collective: CollectiveKind::Bcast,
    fits: |shape| shape.ranks == 2,
    make: Make::Whole(bcast),
};

fn bcast(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let other = 1 - me;
    part.buffer("data", bytes);
    let (entered, moved, done) = (part.signal("entered", 1), part.signal("moved", 1), part.signal("done", 1));
    part.join(started()).then(entered.on(other, 1));
    let middle = shape.cut(bytes, 2, 1);
    let (at, bytes) = if me == root { (middle, bytes - middle) } else { (0, middle) };
    let (from, to) = (DATA.on(root, at), DATA.on(1 - root, at));
    part.copy(entered.reaches(1), from, to, bytes).then(moved.on(me, 1)).then(done.on(other, 1));
    part.finish(moved.reaches(1));
    part.finish(done.reaches(1));
}
