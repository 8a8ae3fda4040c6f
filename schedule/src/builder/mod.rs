//! Builds a schedule from a description of all ranks at once: the copies and reductions, and their order. The signals
//! for the order and for readiness follow from it.
//!
//! One rank prepares each step, and signals the ranks that wait for the step when it is done. A step that reads or
//! writes the memory of another rank waits until that rank has started, unless an earlier step in its chain has waited
//! for that. The start of a rank is over when all steps that read or write its memory and all steps that it prepares
//! are done: a rank that runs steps for others is needed until then. So a schedule that is correct in one start is
//! correct in any number of starts. Missing order, such as two unordered steps that write the same bytes, is found by
//! [`Schedule::check`].

mod emit_parts;
mod last_writes;
mod rank_set;
mod single_driver;

use super::rank_part::{BufferDecl, BufferKind, RankPart};
use super::step::{BufferId, Location, StepKind};
use super::{Contract, Schedule};
use emit_parts::AllParts;
use last_writes::Writes;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The identifier of a step of a builder.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Shape, StepId};
/// fn relay(b: &mut Builder) {
///     let data = b.buffer("data", b.bytes());
///     let first: StepId = b.copy(data.on(0), data.on(1)).id();
///     b.copy(data.on(1), data.on(2)).after([first]);
/// }
/// assert_eq!(Shape::new(CollectiveKind::Bcast, 3, 0, 64).build("relay", relay).check()?.depth, 2);
/// # Ok::<(), Box<tasuki::schedule::Fault>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StepId(usize);

/// A range of bytes in a buffer of one rank.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Region, Shape};
/// fn in_halves(b: &mut Builder) {
///     let data = b.buffer("data", b.bytes());
///     for bytes in [0..32, 32..64] {
///         let [from, to]: [Region; 2] = [0, 1].map(|rank| data.on(rank).part(bytes.clone()));
///         b.copy(from, to);
///     }
/// }
/// Shape::new(CollectiveKind::Bcast, 2, 0, 64).build("in halves", in_halves).check()?;
/// # Ok::<(), Box<tasuki::schedule::Fault>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    place: Location,
    bytes: u64,
}

/// A buffer that all ranks have.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, NamedBuffer, Shape};
/// fn direct(b: &mut Builder) {
///     let data: NamedBuffer = b.buffer("data", b.bytes());
///     b.copy(data.on(0), data.on(1)); // the whole buffer of each
/// }
/// Shape::new(CollectiveKind::Bcast, 2, 0, 64).build("direct", direct).check()?;
/// # Ok::<(), Box<tasuki::schedule::Fault>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedBuffer {
    buffer: BufferId,
    bytes: u64,
}

impl NamedBuffer {
    /// The whole buffer on `rank`.
    pub fn on(self, rank: usize) -> Region {
        Region { place: self.buffer.on(rank, 0), bytes: self.bytes }
    }
}

impl Region {
    /// The bytes at these offsets within the region; offsets beyond its end are cut off.
    pub fn part(self, bytes: Range<u64>) -> Region {
        let end = bytes.end.min(self.bytes);
        let start = bytes.start.min(end);
        let place = Location { offset: self.place.offset + start, ..self.place };
        Region { place, bytes: end - start }
    }

    /// Size in bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    fn overlaps(&self, other: &Region) -> bool {
        (self.place.rank, self.place.buffer) == (other.place.rank, other.place.buffer)
            && self.place.offset < other.place.offset + other.bytes
            && other.place.offset < self.place.offset + self.bytes
    }
}

/// A step under construction: the rank that prepares it, and the steps that it comes after.
#[derive(Clone, Debug)]
struct Draft {
    by: usize,
    action: StepKind,
    after: BTreeSet<usize>,
}

impl Draft {
    /// The ranks whose memory the step reads or writes.
    fn touches(&self) -> impl Iterator<Item = usize> + use<> {
        let ranks = match self.action {
            StepKind::Nothing => [None, None],
            StepKind::Copy { from, to, .. } | StepKind::Reduce { from, to, .. } => {
                [Some(from.rank), Some(to.rank).filter(|&rank| rank != from.rank)]
            }
        };
        ranks.into_iter().flatten().map(|rank| rank as usize)
    }

    /// The ranks whose start is not over before the step is done: the rank that prepares it, and those whose memory it
    /// touches.
    fn concerns(&self) -> impl Iterator<Item = usize> + use<> {
        let by = self.by;
        std::iter::once(by).chain(self.touches().filter(move |&rank| rank != by))
    }

    fn writes(&self) -> Option<Region> {
        match self.action {
            StepKind::Nothing => None,
            StepKind::Copy { to, bytes, .. } | StepKind::Reduce { to, bytes, .. } => {
                Some(Region { place: to, bytes })
            }
        }
    }
}

/// A schedule under construction.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Shape};
/// fn star(b: &mut Builder) {
///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks()); // the root comes first
///     for &rank in &ranks[1..] {
///         b.copy(data.on(ranks[0]), data.on(rank));
///     }
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 6, 2, 64).build("star", star);
/// assert_eq!(schedule.check()?.depth, 1);
/// # Ok::<(), Box<tasuki::schedule::Fault>>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    ranks: usize,
    first: usize,
    bytes: u64,
    buffers: Vec<BufferDecl>,
    drafts: Vec<Draft>,
    writes: Writes,
    by: Option<usize>,
}

/// The step added last; further dependencies can be added to it.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{AddedStep, Builder, CollectiveKind, Shape};
/// fn relay(b: &mut Builder) {
///     let data = b.buffer("data", b.bytes());
///     let first = b.copy(data.on(0), data.on(1)).id();
///     let second: AddedStep<'_> = b.copy(data.on(1), data.on(2));
///     second.after(Some(first));
/// }
/// assert_eq!(Shape::new(CollectiveKind::Bcast, 3, 0, 64).build("relay", relay).check()?.depth, 2);
/// # Ok::<(), Box<tasuki::schedule::Fault>>(())
/// ```
#[derive(Debug)]
pub struct AddedStep<'b>(&'b mut Builder);

impl AddedStep<'_> {
    /// Makes the step begin after these steps have ended. Takes any number of steps, also none.
    pub fn after(self, step: impl IntoIterator<Item = StepId>) -> Self {
        if let Some(draft) = self.0.drafts.last_mut() {
            draft.after.extend(step.into_iter().map(|step| step.0));
        }
        self
    }

    /// The identifier of the step, for later steps to come after.
    pub fn id(self) -> StepId {
        StepId(self.0.drafts.len() - 1)
    }
}

impl Builder {
    fn new(ranks: usize, first: usize, bytes: u64) -> Builder {
        let writes = Writes::default();
        Builder { ranks, first, bytes, buffers: Vec::new(), drafts: Vec::new(), writes, by: None }
    }

    /// All ranks, beginning with the root where the collective has one.
    pub fn ranks(&self) -> Vec<usize> {
        (0..self.ranks).map(|place| (self.first + place) % self.ranks).collect()
    }

    /// The size of the data in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Declares a buffer of the program with `bytes` bytes on each rank. The program writes and reads the buffer
    /// declared first.
    pub fn buffer(&mut self, name: &'static str, bytes: u64) -> NamedBuffer {
        self.declare(name, bytes, BufferKind::User)
    }

    /// Declares a scratch buffer of the schedule with `bytes` bytes on each rank.
    pub fn scratch(&mut self, name: &'static str, bytes: u64) -> NamedBuffer {
        self.declare(name, bytes, BufferKind::Turns(1))
    }

    fn declare(&mut self, name: &'static str, bytes: u64, kind: BufferKind) -> NamedBuffer {
        self.buffers.push(BufferDecl { name: name.into(), bytes, kind });
        NamedBuffer { buffer: BufferId((self.buffers.len() - 1) as u32), bytes }
    }

    /// Makes `rank` prepare the steps added from here on, wherever their memory is. `None`: the source's rank prepares
    /// a copy, and the destination's rank a reduction. A copy between two other ranks moves the bytes directly between
    /// them.
    pub fn prepared_by(&mut self, rank: Option<usize>) {
        self.by = rank;
    }

    /// Adds a copy of the bytes of `from` to `to`, as many as both regions have.
    pub fn copy(&mut self, from: Region, to: Region) -> AddedStep<'_> {
        let bytes = from.bytes.min(to.bytes);
        let action = StepKind::Copy { from: from.place, to: to.place, bytes };
        self.draft(from.place.rank, if bytes > 0 { action } else { StepKind::Nothing })
    }

    /// Adds a reduction: combines the values of `from` with those of `to`, which holds the result. `in_front` puts the
    /// source values on the left.
    pub fn reduce(&mut self, from: Region, to: Region, in_front: bool) -> AddedStep<'_> {
        let bytes = from.bytes.min(to.bytes);
        let action = StepKind::Reduce { from: from.place, to: to.place, bytes, in_front };
        self.draft(to.place.rank, if bytes > 0 { action } else { StepKind::Nothing })
    }

    /// Adds a step of `rank` that moves no data, for others to come after.
    pub fn join(&mut self, rank: usize) -> AddedStep<'_> {
        self.draft(rank as u32, StepKind::Nothing)
    }

    fn draft(&mut self, by: u32, action: StepKind) -> AddedStep<'_> {
        let by = self.by.unwrap_or(by as usize);
        let draft = Draft { by, action, after: BTreeSet::new() };
        if let Some(region) = draft.writes() {
            self.writes.add(region, self.drafts.len());
        }
        self.drafts.push(draft);
        AddedStep(self)
    }

    /// The last step added that writes to `region`; `None` if there is none. The time does not depend on writes
    /// elsewhere.
    pub fn last_write(&self, region: Region) -> Option<StepId> {
        self.writes.last(&region).map(StepId)
    }

    fn names_known_ranks(&self, draft: &Draft) -> bool {
        draft.by < self.ranks && draft.touches().all(|rank| rank < self.ranks)
    }
}

impl Schedule {
    /// Creates a schedule that `write` describes for all ranks at once. The tuple holds the number of ranks, the root,
    /// and the size of the data in bytes. `contract` returns the inputs and outputs of each rank. `write` runs once,
    /// when the first part is asked for. It takes time and memory for all ranks; for chains and trees not much more
    /// than in proportion to the steps.
    ///
    /// A step that names a rank that does not exist is replaced by an empty one; [`Schedule::check`] reports what is
    /// then missing.
    pub fn build(
        name: impl Into<String>,
        (ranks, first, bytes): (usize, usize, u64),
        write: impl Fn(&mut Builder) + Send + Sync + 'static,
        contract: impl Fn(usize) -> Contract + Send + Sync + 'static,
    ) -> Schedule {
        let whole: Arc<OnceLock<AllParts>> = Arc::default();
        let part = move |part: &mut RankPart| {
            let whole = whole.get_or_init(|| {
                let mut builder = Builder::new(ranks, first, bytes);
                write(&mut builder);
                let is_wrong = |draft: &Draft| !builder.names_known_ranks(draft);
                let wrong: Vec<usize> =
                    (0..builder.drafts.len()).filter(|&number| is_wrong(&builder.drafts[number])).collect();
                for number in wrong {
                    builder.drafts[number] =
                        Draft { by: 0, action: StepKind::Nothing, after: BTreeSet::new() };
                }
                AllParts::emit(builder)
            });
            *part = whole.parts[part.rank()].clone();
        };
        Schedule::new(name, ranks, part, contract)
    }
}

#[cfg(test)]
mod acp_list_tests;
#[cfg(test)]
mod tests;
