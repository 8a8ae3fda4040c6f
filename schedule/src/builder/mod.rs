//! Schedules written down as a whole: who moves what, and what comes after what. The signals that say so, and those
//! that say that a rank is ready, follow from it.
//!
//! A step is prepared by a rank, which tells those who wait for it when it is done. Whoever reads or writes in the
//! memory of another rank waits until that has started, unless what it waits for says so already; a rank's start is
//! over when all is done that reads or writes there, and all that it prepares: who runs a list for others is needed
//! until then. So what is right in one start is right in any number of them. What is not said, two steps that write the
//! same bytes in no order, say, the proof finds ([`Schedule::check`]).

mod emit;
mod last_writes;
mod rank_set;
mod single_driver;

use super::rank_part::{BufferDecl, BufferKind, RankPart};
use super::step::{BufferId, Location, StepKind};
use super::{Contract, Schedule};
use emit::AllParts;
use last_writes::Writes;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A step that was written down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StepId(usize);

/// Bytes of a buffer of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    place: Location,
    bytes: u64,
}

/// A buffer that all ranks have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedBuffer {
    buffer: BufferId,
    bytes: u64,
}

impl NamedBuffer {
    /// All of it, on that rank.
    pub fn on(self, rank: usize) -> Region {
        Region { place: self.buffer.on(rank, 0), bytes: self.bytes }
    }
}

impl Region {
    /// Some of these bytes, counted from the first of them; no more than there are.
    pub fn part(self, bytes: Range<u64>) -> Region {
        let end = bytes.end.min(self.bytes);
        let start = bytes.start.min(end);
        let place = Location { offset: self.place.offset + start, ..self.place };
        Region { place, bytes: end - start }
    }

    /// How many bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    fn overlaps(&self, other: &Region) -> bool {
        (self.place.rank, self.place.buffer) == (other.place.rank, other.place.buffer)
            && self.place.offset < other.place.offset + other.bytes
            && other.place.offset < self.place.offset + self.bytes
    }
}

/// A step, with who prepares it and what it comes after.
#[derive(Clone, Debug)]
struct Draft {
    by: usize,
    action: StepKind,
    after: BTreeSet<usize>,
}

impl Draft {
    /// Whose memory it reads or writes.
    fn touches(&self) -> impl Iterator<Item = usize> + use<> {
        let ranks = match self.action {
            StepKind::Nothing => [None, None],
            StepKind::Copy { from, to, .. } | StepKind::Reduce { from, to, .. } => {
                [Some(from.rank), Some(to.rank).filter(|&rank| rank != from.rank)]
            }
        };
        ranks.into_iter().flatten().map(|rank| rank as usize)
    }

    /// Whose start is not over before it is done: who prepares it, and whose memory it reads or writes.
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

/// A schedule that is being written down.
#[derive(Debug)]
pub struct Builder {
    ranks: usize,
    first: usize,
    bytes: u64,
    rooms: Vec<BufferDecl>,
    drafts: Vec<Draft>,
    writes: Writes,
    by: Option<usize>,
}

/// The step that was written down last, to which something may be added.
#[derive(Debug)]
pub struct AddedStep<'b>(&'b mut Builder);

impl AddedStep<'_> {
    /// It begins when that has ended. More than one may be named, and none.
    pub fn after(self, step: impl IntoIterator<Item = StepId>) -> Self {
        if let Some(draft) = self.0.drafts.last_mut() {
            draft.after.extend(step.into_iter().map(|step| step.0));
        }
        self
    }

    /// What others may come after.
    pub fn written(self) -> StepId {
        StepId(self.0.drafts.len() - 1)
    }
}

impl Builder {
    fn new(ranks: usize, first: usize, bytes: u64) -> Builder {
        let writes = Writes::default();
        Builder { ranks, first, bytes, rooms: Vec::new(), drafts: Vec::new(), writes, by: None }
    }

    /// All ranks, the first of them, who gives or gets where that is one, at the beginning.
    pub fn ranks(&self) -> Vec<usize> {
        (0..self.ranks).map(|place| (self.first + place) % self.ranks).collect()
    }

    /// Bytes that are asked for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A buffer of the program's, of so many bytes on each rank. The first one named is what a program writes and
    /// reads.
    pub fn buffer(&mut self, name: &'static str, bytes: u64) -> NamedBuffer {
        self.room(name, bytes, BufferKind::User)
    }

    /// A buffer of the schedule's own.
    pub fn scratch(&mut self, name: &'static str, bytes: u64) -> NamedBuffer {
        self.room(name, bytes, BufferKind::Turns(1))
    }

    fn room(&mut self, name: &'static str, bytes: u64, used: BufferKind) -> NamedBuffer {
        self.rooms.push(BufferDecl { name: name.into(), bytes, used });
        NamedBuffer { buffer: BufferId((self.rooms.len() - 1) as u32), bytes }
    }

    /// Steps from here on are prepared by that rank, whoever has the memory; `None`: each by who has what is moved, or
    /// what is combined. A copy between two others goes between them straight.
    pub fn by(&mut self, rank: Option<usize>) {
        self.by = rank;
    }

    /// Bytes are moved, as many as both regions have.
    pub fn copy(&mut self, from: Region, to: Region) -> AddedStep<'_> {
        let bytes = from.bytes.min(to.bytes);
        let action = StepKind::Copy { from: from.place, to: to.place, bytes };
        self.draft(from.place.rank, if bytes > 0 { action } else { StepKind::Nothing })
    }

    /// Values are combined with those at the destination, where the result stays: in front of those, or behind.
    pub fn reduce(&mut self, from: Region, to: Region, in_front: bool) -> AddedStep<'_> {
        let bytes = from.bytes.min(to.bytes);
        let action = StepKind::Reduce { from: from.place, to: to.place, bytes, in_front };
        self.draft(to.place.rank, if bytes > 0 { action } else { StepKind::Nothing })
    }

    /// A step of that rank that does nothing, for others to come after.
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

    /// The step that was the last to write into that region; `None`: so far nobody has. Takes no longer the more was
    /// written elsewhere.
    pub fn last_write(&self, region: Region) -> Option<StepId> {
        self.writes.last(&region).map(StepId)
    }

    fn is_ours(&self, draft: &Draft) -> bool {
        draft.by < self.ranks && draft.touches().all(|rank| rank < self.ranks)
    }
}

impl Schedule {
    /// A schedule that `write` writes down as a whole, among so many ranks, of which `first` is asked to give or get
    /// where that is one; of so many bytes. `contract` says what each rank gives and gets. Written down once, when it
    /// is first asked for: takes time and memory for all ranks, in chains and trees little more than in proportion to
    /// the steps.
    ///
    /// A step of a rank that is not there is left out, which the proof finds.
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
                let is_wrong = |draft: &Draft| !builder.is_ours(draft);
                let wrong: Vec<usize> =
                    (0..builder.drafts.len()).filter(|&number| is_wrong(&builder.drafts[number])).collect();
                for number in wrong {
                    builder.drafts[number] =
                        Draft { by: 0, action: StepKind::Nothing, after: BTreeSet::new() };
                }
                AllParts::make(builder)
            });
            *part = whole.parts[part.rank()].clone();
        };
        Schedule::new(name, ranks, part, contract)
    }
}

#[cfg(test)]
mod acp_tests;
#[cfg(test)]
mod tests;
