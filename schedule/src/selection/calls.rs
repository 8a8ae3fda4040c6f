//! What is taken for calls that members make together, and for plans that each of them runs alone: by sizes, for nobody
//! may read or write the data of another.

use super::Selection;
use crate::Schedule;
use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::shape::{CollectiveKind, Counts, Shape};

/// Most bytes of one value of a combining operation that members run alone; the executor has room for no more.
pub const VALUE_BYTES_MAX: u64 = 4096;
/// Members of which each has to do with all others.
pub const MEMBERS_MAX: usize = 32;
/// Bytes that one of two members rather tells the other in a message than lays out.
pub const TOLD_MAX: u64 = 48;
/// Bytes of values that are moved in one go, where they can be cut.
pub const PIECE: u64 = 256 << 10;
/// Most bytes of blocks of which all lie side by side.
pub const BLOCKS_MAX: u64 = 4 << 20;
/// Bytes of each segment of what is laid out: the first is taken while the next is laid. Among two, and among more,
/// each of which is to be told.
const LAID_MIN: [u64; 2] = [4 << 10, 16 << 10];
/// Most segments.
const SEGMENTS_MAX: u64 = 8;
/// Bytes of all members' values that everybody combines for itself rather than in shares.
const OWN_MAX: u64 = 32 << 10;

/// Bytes of a block from which on plans that only move blocks are programs, whose data others reach: one copy is less
/// than two, but needs more signals. Between a root and one other, where that holds for values that the root combines,
/// too, and else.
const ONE_COPY_MIN: [u64; 2] = [4 << 10, 256 << 10];
/// Bytes of values from which on a root combines them where they lie, among more ranks that share processors: places
/// for them would fill caches.
const COMBINED_IN_CROWD_MIN: u64 = 32 << 10;
/// Bytes from which on two members may show each other what is lent to their calls: to move fewer takes longer so.
const SHOWN_MIN: u64 = 128 << 10;
/// Most ranks of such a broadcast: in a tree of more, ranks wait for turns.
const ONE_COPY_BCAST_MAX: usize = 4;

/// A collective as members run it alone: cut into pieces, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// CombineWith many pieces there are.
    pub count: u64,
    /// The shape of one piece.
    pub one: Shape,
}

impl Cut {
    /// None: it is too large for that, or nothing.
    fn of(shape: &Shape) -> Option<Cut> {
        let Counts::Equal(bytes) = shape.counts else { return None };
        let (value, ranks) = (shape.value_bytes, shape.ranks as u64);
        if !(1..=VALUE_BYTES_MAX).contains(&value) || !bytes.is_multiple_of(value) {
            return None;
        }
        if !shape.operation.is_divisible() {
            let is_some = bytes > 0 || shape.operation == CollectiveKind::Barrier;
            let is_little = bytes.saturating_mul(ranks) <= BLOCKS_MAX;
            return (is_some && is_little).then(|| Cut { count: 1, one: shape.clone() });
        }
        let (values, count) = (bytes / value, bytes.div_ceil(PIECE));
        let each = if count > 0 { values.div_ceil(count) } else { return None };
        let one = Shape { counts: Counts::Equal(each * value), ..shape.clone() };
        Some(Cut { count: values.div_ceil(each), one })
    }

    /// The schedule of one.
    pub fn schedule(&self) -> Schedule {
        for_calls(&self.one)
    }
}

impl Selection {
    /// The pieces in which members run a plan of a shape, each its own steps in its own calls. None: others go on with
    /// it, too, or another algorithm is wanted; it reads long blocks where they lie; it is too large for that, or
    /// nothing.
    ///
    /// What combines values by an operation of the members' own stays a walk: where that panics, only the member that
    /// called it has to do with it.
    pub fn walk(&self, shape: &Shape, has_own_operation: bool) -> Option<Cut> {
        let is_wanted = self.forced.of(shape.operation).is_none_or(|forced| !(forced.fits)(shape));
        let is_among_few = (2..=MEMBERS_MAX).contains(&shape.ranks);
        let can_be =
            self.has_no_helper && is_wanted && is_among_few && shape.operation != CollectiveKind::Neighbours;
        let is_program = is_moved_once(shape) || self.is_combined_there(shape) && !has_own_operation;
        (can_be && !is_program).then(|| Cut::of(shape)).flatten()
    }

    /// What a plan of a shape runs, by operations that everybody knows: its schedule, and, where the ranks run it inline
    /// in their own calls, into how many pieces it is cut, of which the schedule does one.
    pub fn schedule(&self, shape: &Shape) -> (Schedule, Option<u64>) {
        match self.walk(shape, false) {
            Some(cut) => (cut.schedule(), Some(cut.count)),
            None => (self.choose(shape).schedule(shape, 1), None),
        }
    }

    /// What calls of a shape that come again and again try besides, inline: two members show each other their buffers.
    pub fn tried_by_calls(shape: &Shape) -> Option<&'static Algorithm> {
        let is_equal = matches!(shape.counts, Counts::Equal(_));
        let is_tried = is_equal && shape.ranks == 2 && shown_for_calls(shape).is_some();
        is_tried.then(|| named(shape.operation, "split copy"))
    }

    /// Whether a root rather combines values of its plan where they lie.
    pub(super) fn is_combined_there(&self, shape: &Shape) -> bool {
        let least = match shape.ranks {
            2 => ONE_COPY_MIN[0],
            _ if self.per_processor > 1 => COMBINED_IN_CROWD_MIN,
            _ => return false, // all others do more than one can
        };
        self.has_no_helper && shape.operation == CollectiveKind::Reduce && shape.bytes_of(0) >= least
    }
}

/// Whether a plan rather moves its blocks in one copy.
fn is_moved_once(shape: &Shape) -> bool {
    let is_between_two = shape.ranks == 2 && shape.operation.is_rooted();
    let least = ONE_COPY_MIN[usize::from(!is_between_two)];
    let is_long = matches!(shape.counts, Counts::Equal(bytes) if bytes >= least);
    let is_among_few = shape.operation != CollectiveKind::Bcast || shape.ranks <= ONE_COPY_BCAST_MAX;
    is_long && is_among_few && !shape.operation.combines()
}

/// The schedule for calls of a shape.
pub fn for_calls(shape: &Shape) -> Schedule {
    let least = LAID_MIN[usize::from(shape.ranks > 2)];
    algorithm(shape).schedule(shape, (shape.bytes_of(0) / least).clamp(1, SEGMENTS_MAX))
}

/// The schedule for calls of a shape by two members who show each other what is lent to them. None: too little is
/// moved, or there is none.
pub fn shown_for_calls(shape: &Shape) -> Option<Schedule> {
    let halves = (shape.operation == CollectiveKind::Bcast).then(|| named(shape.operation, "split copy"))?;
    ((halves.fits)(shape) && shape.bytes_of(0) >= SHOWN_MIN).then(|| halves.schedule(shape, 1))
}

/// The algorithm for calls of a shape.
pub(super) fn algorithm(shape: &Shape) -> &'static Algorithm {
    let name = match shape.operation {
        CollectiveKind::Barrier => "all to all",
        CollectiveKind::Allreduce if shape.bytes_of(0) * shape.ranks as u64 > OWN_MAX => {
            "reduce scatter allgather"
        }
        _ => "copy in copy out",
    };
    named(shape.operation, name)
}

/// An algorithm that there is.
pub(super) fn named(operation: CollectiveKind, name: &str) -> &'static Algorithm {
    let found = ALGORITHMS.iter().find(|one| (one.operation, one.name) == (operation, name));
    found.expect("the algorithm of that name")
}
