//! Algorithms whose steps the calling thread runs: in collective calls, and in plans whose members each run their own
//! part. The choice goes by sizes alone, because no member may access the data of another.

use super::Selection;
use crate::Schedule;
use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::combining_order::{GROUP, is_from_the_left};
use crate::shape::{CollectiveKind, Counts, Shape};

/// The largest value, in bytes, of a reduction that calling threads run; the executor has no room for more.
pub const VALUE_BYTES_MAX: u64 = 4096;
/// The most members for algorithms in which each member exchanges with all others. They combine from the left, which is
/// the combining order of so many members.
///
/// It also limits how many members read each other's words to detect failures. Among more members, calls are compared
/// by notices that members pass on, not by the call log; and a member that waits long does not look at what each other
/// member waits for, nor at how many starts of a plan a member had made when it left.
pub const MEMBERS_MAX: usize = GROUP;
/// Up to this number of bytes, one of two members sends the data in a message instead of a staging buffer.
pub const MESSAGE_BYTES_MAX: u64 = 48;
/// Most bytes of a piece, where data can be cut.
pub const PIECE_BYTES_MAX: u64 = 256 << 10;
/// Bytes of all blocks together up to which they pass through the staging buffers at once.
pub const BLOCKS_BYTES_MAX: u64 = 4 << 20;
/// The smallest segment in bytes: readers copy the first segment out while the next is copied in. For two members, and
/// for more, each of which must be signalled.
const SEGMENT_BYTES_MIN: [u64; 2] = [4 << 10, 16 << 10];
/// The most segments.
const SEGMENTS_MAX: u64 = 8;
/// Bytes of all members' values up to which each member combines all of them itself, rather than a share.
const COMBINE_ALL_BYTES_MAX: u64 = 32 << 10;

/// Block size in bytes from which plans that only move blocks use compiled commands on data that others can access: one
/// copy instead of two, but more signals. First for a root and one other member, which also applies to values that the
/// root combines; then for all other cases.
const ONE_COPY_MIN: [u64; 2] = [4 << 10, 256 << 10];
/// Bytes of values from which a root of three or more ranks that share processors combines them in place: staging
/// buffers would fill the caches.
const IN_PLACE_BYTES_MIN: u64 = 32 << 10;
/// Bytes from which two members may expose their call buffers to each other: for fewer it takes longer.
const EXPOSED_BYTES_MIN: u64 = 128 << 10;
/// The most ranks of a broadcast in one copy: in a deeper tree, ranks wait for their turns on the processor.
const ONE_COPY_BCAST_MAX: usize = 4;

/// A collective cut into pieces that calling threads run one after the other. Their lengths differ by at most one
/// value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pieces {
    /// Number of pieces.
    pub count: u64,
    /// The first so many pieces have the shape; the others have one value less.
    pub longer: u64,
    /// The shape of the first piece.
    pub shape: Shape,
}

impl Pieces {
    /// Cuts a shape. Returns `None` if it is too large or moves nothing.
    pub fn of(shape: &Shape) -> Option<Pieces> {
        let Counts::Equal(bytes) = shape.counts else { return None };
        let (value, ranks) = (shape.value_bytes, shape.ranks as u64);
        if !(1..=VALUE_BYTES_MAX).contains(&value) || !bytes.is_multiple_of(value) {
            return None;
        }
        if !shape.collective.is_divisible() {
            let is_some = bytes > 0 || shape.collective == CollectiveKind::Barrier;
            let is_little = bytes.saturating_mul(ranks) <= BLOCKS_BYTES_MAX;
            return (is_some && is_little).then(|| Pieces { count: 1, longer: 1, shape: shape.clone() });
        }
        let (values, count) = (bytes / value, bytes.div_ceil(PIECE_BYTES_MAX));
        let values_each = if count > 0 { values.div_ceil(count) } else { return None };
        let piece = Shape { counts: Counts::Equal(values_each * value), ..shape.clone() };
        Some(Pieces { count, longer: values - count * (values_each - 1), shape: piece })
    }

    /// The shapes of pieces: one, or those of the longer and of the shorter pieces.
    fn shapes(&self) -> impl Iterator<Item = Shape> {
        let shorter = (self.longer < self.count).then(|| {
            let bytes = self.shape.bytes_of(0) - self.shape.value_bytes;
            Shape { counts: Counts::Equal(bytes), ..self.shape.clone() }
        });
        [self.shape.clone()].into_iter().chain(shorter)
    }

    /// The schedules of pieces: one, or those of the longer and of the shorter pieces. Both have the same steps, on
    /// other numbers of bytes.
    pub fn schedules(&self) -> Vec<Schedule> {
        let (algorithm, segments) = algorithm_in_segments(&self.shape);
        self.shapes().map(|shape| algorithm.schedule(&shape, segments)).collect()
    }

    /// The schedules of pieces of two members that expose their call buffers to each other. Returns `None` if too
    /// little is moved, or there is no such algorithm.
    pub fn exposed_schedules(&self) -> Option<Vec<Schedule>> {
        let put_and_get = (self.shape.collective == CollectiveKind::Bcast)
            .then(|| named(self.shape.collective, "put and get"))?;
        let shapes = || self.shapes().filter(|shape| (put_and_get.fits)(shape));
        let is_much =
            self.shape.bytes_of(0) >= EXPOSED_BYTES_MIN && shapes().count() == self.shapes().count();
        is_much.then(|| shapes().map(|shape| put_and_get.schedule(&shape, 1)).collect())
    }
}

impl Selection {
    /// The pieces of a plan whose steps calling threads run, each those of its own member. Returns `None` if helpers
    /// run the plan too, if another algorithm is forced, if long blocks are better read in place, or if the shape is
    /// too large or moves nothing.
    ///
    /// Without a helper, calling threads run a plan with a user-defined operation even where others combine in place: a
    /// panic of the operation then concerns only the member that called it.
    pub fn calling_thread_pieces(&self, shape: &Shape, has_user_operation: bool) -> Option<Pieces> {
        let is_free_choice = self.forced.of(shape.collective).is_none_or(|forced| !(forced.fits)(shape));
        let is_among_few = (2..=MEMBERS_MAX).contains(&shape.ranks);
        let can_be = self.has_no_helper
            && is_free_choice
            && is_among_few
            && shape.collective != CollectiveKind::Neighbours;
        let uses_commands = is_copied_once(shape) || self.is_combined_in_place(shape) && !has_user_operation;
        (can_be && !uses_commands).then(|| Pieces::of(shape)).flatten()
    }

    /// What a plan of a shape runs with built-in operations: its schedule, and the number of pieces if calling threads
    /// run it; the schedule then moves one piece.
    pub fn schedule(&self, shape: &Shape) -> (Schedule, Option<u64>) {
        match self.calling_thread_pieces(shape, false) {
            Some(pieces) => (calling_thread_schedule(&pieces.shape), Some(pieces.count)),
            None => (self.choose(shape).schedule(shape, 1), None),
        }
    }

    /// The second algorithm that repeated calls of a shape try: two members expose their buffers to each other.
    /// Returns `None` if there is none for the shape.
    pub fn tried_by_calls(shape: &Shape) -> Option<&'static Algorithm> {
        let is_equal = matches!(shape.counts, Counts::Equal(_));
        let is_tried = is_equal
            && shape.ranks == 2
            && Pieces::of(shape).and_then(|pieces| pieces.exposed_schedules()).is_some();
        is_tried.then(|| named(shape.collective, "put and get"))
    }

    /// Returns true if the root combines the values of a plan where they lie.
    pub(super) fn is_combined_in_place(&self, shape: &Shape) -> bool {
        let least = match shape.ranks {
            2 => ONE_COPY_MIN[0],
            _ if self.per_processor > 1 => IN_PLACE_BYTES_MIN,
            _ => return false, // many ranks combine faster than one
        };
        self.has_no_helper
            && shape.collective == CollectiveKind::Reduce
            && is_from_the_left(shape)
            && shape.bytes_of(0) >= least
    }
}

/// Returns true if a plan moves its blocks in one copy.
fn is_copied_once(shape: &Shape) -> bool {
    let is_between_two = shape.ranks == 2 && shape.collective.is_rooted();
    let least = ONE_COPY_MIN[usize::from(!is_between_two)];
    let is_long = matches!(shape.counts, Counts::Equal(bytes) if bytes >= least);
    let is_among_few = shape.collective != CollectiveKind::Bcast || shape.ranks <= ONE_COPY_BCAST_MAX;
    is_long && is_among_few && !shape.collective.combines()
}

/// Returns the schedule with which the calling threads run calls of a shape.
pub fn calling_thread_schedule(shape: &Shape) -> Schedule {
    let (algorithm, segments) = algorithm_in_segments(shape);
    algorithm.schedule(shape, segments)
}

fn algorithm_in_segments(shape: &Shape) -> (&'static Algorithm, u64) {
    let least = SEGMENT_BYTES_MIN[usize::from(shape.ranks > 2)];
    (algorithm(shape), (shape.bytes_of(0) / least).clamp(1, SEGMENTS_MAX))
}

/// The algorithm of calls of a shape, whose steps the calling thread runs.
pub(super) fn algorithm(shape: &Shape) -> &'static Algorithm {
    let name = match shape.collective {
        CollectiveKind::Barrier => "all to all",
        CollectiveKind::Allreduce if shape.bytes_of(0) * shape.ranks as u64 > COMBINE_ALL_BYTES_MAX => {
            "reduce scatter allgather"
        }
        _ => "copy in copy out",
    };
    named(shape.collective, name)
}

/// The algorithm of that name; panics if there is none.
pub(super) fn named(collective: CollectiveKind, name: &str) -> &'static Algorithm {
    let found = ALGORITHMS.iter().find(|one| (one.collective, one.name) == (collective, name));
    found.expect("the algorithm of that name")
}
