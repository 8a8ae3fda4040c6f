//! What is taken for calls that members make together: by sizes, for nobody may read or write the data of another.

use crate::collective::algorithm::{ALGORITHMS, Algorithm};
use crate::collective::shape::{Operation, Shape};

/// Bytes that two members rather tell each other in a message than lay out.
pub(in crate::collective) const TOLD_MAX: u64 = 48;
/// Bytes of each segment of what is laid out: the first is taken while the next is laid. Among two, and among more,
/// each of which is to be told.
const LAID_MIN: [u64; 2] = [4 << 10, 16 << 10];
/// Most segments.
const SEGMENTS_MAX: u64 = 8;
/// Bytes of all members' values that everybody combines for itself rather than in shares.
const OWN_MAX: u64 = 32 << 10;

/// The algorithm, with the number of its segments.
pub(in crate::collective) fn for_calls(shape: &Shape) -> (&'static Algorithm, u64) {
    let bytes = shape.bytes_of(0);
    let name = match shape.operation {
        Operation::Barrier => "told",
        Operation::Allreduce if bytes * shape.ranks as u64 > OWN_MAX => "shared",
        _ => "laid",
    };
    let found = ALGORITHMS.iter().find(|one| (one.operation, one.name) == (shape.operation, name));
    let least = LAID_MIN[usize::from(shape.ranks > 2)];
    (found.expect("each operation has one for calls"), (bytes / least).clamp(1, SEGMENTS_MAX))
}
