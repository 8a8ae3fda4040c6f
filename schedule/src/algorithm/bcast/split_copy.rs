//! Two ranks, each of which moves half of a block from the one's data to the other's: no byte is moved twice.
//!
//! Each says that it has come, and that it has moved its half; its start is over when both have. In calls the
//! data are the programs' own memory, which the system copies between processes: worth it where blocks are long, and
//! processors are so far apart that two copies through memory of both take longer.

use crate::algorithm::{Algorithm, CollectiveKind, Make};
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// The root writes the second half into the other's data, which reads the first half out of the root's.
pub(crate) const BCAST: Algorithm = Algorithm {
    name: "split copy",
    operation: CollectiveKind::Bcast,
    fits: |shape| shape.ranks == 2,
    make: Make::Whole(bcast),
};

fn bcast(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let other = 1 - me;
    part.buffer("data", bytes);
    let (come, moved, done) = (part.signal("come", 1), part.signal("moved", 1), part.signal("done", 1));
    part.join(started()).then(come.on(other, 1));
    let middle = shape.cut(bytes, 2, 1);
    let (at, bytes) = if me == root { (middle, bytes - middle) } else { (0, middle) };
    let (from, to) = (DATA.on(root, at), DATA.on(1 - root, at));
    part.copy(come.reaches(1), from, to, bytes).then(moved.on(me, 1)).then(done.on(other, 1));
    part.finish(moved.reaches(1));
    part.finish(done.reaches(1));
}
