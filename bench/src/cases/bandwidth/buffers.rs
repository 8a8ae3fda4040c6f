//! Memory of all sizes and states for the cases that are asked for, and how two ranks meet before a block.

use super::block_memory::Pages;
use super::shared_copy::Commands;
use crate::case::Case;
use crate::harness::measure::{peer, side};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use std::cell::{Cell, RefCell, RefMut};
use tasuki::{Array, Error, Job, Rank, Signal};

/// Which memory cases need.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Areas {
    own_source: bool,
    own_target: bool,
    job_source: bool,
    job_target: bool,
    commands: bool,
}

impl Areas {
    /// Those of these cases; `None` if none has blocks.
    pub(crate) fn of(cases: &[Case]) -> Option<Areas> {
        let has = |wanted: &[Case]| wanted.iter().any(|case| cases.contains(case));
        let areas = Areas {
            own_source: has(&[Case::BandwidthPut, Case::BandwidthOwn, Case::BandwidthStream]),
            own_target: has(&[Case::BandwidthOwn, Case::BandwidthStream]),
            job_source: has(&[Case::BandwidthJob, Case::SharedCopy]),
            job_target: has(&[Case::BandwidthPut, Case::BandwidthJob, Case::SharedCopy]),
            commands: has(&[Case::SharedCopy]),
        };
        (areas != Areas::default()).then_some(areas)
    }
}

/// Memory and signals of all sizes and states.
pub(crate) struct Arena<'j> {
    pub(super) job: &'j Job,
    pub(super) side: Side,
    pub(super) peer: Rank,
    own_source: Option<RefCell<Pages>>,
    own_target: Option<RefCell<Pages>>,
    job_source: Option<Array<u64>>,
    job_target: Option<Array<u64>>,
    commands: Option<Commands<'j>>,
    pub(super) arrived: Signal<'j>,
    ready: Signal<'j>,
    /// Blocks so far.
    number: Cell<u64>,
    /// Blocks that have been put by each side.
    put: Cell<u64>,
    /// Times that the follower was ready for another.
    readied: Cell<u64>,
    pub(super) clock_ns: u64,
}

impl<'j> Arena<'j> {
    /// Collective. Touches whatever is going to be touched.
    pub(crate) fn new(job: &'j Job, areas: Areas, bytes: usize) -> tasuki::Result<Arena<'j>> {
        let values = bytes / size_of::<u64>();
        let own = |wanted: bool| wanted.then(|| RefCell::new(Pages::new(values)));
        let of_job = |wanted: bool| wanted.then(|| job.alloc::<u64>(values)).transpose();
        let arena = Arena {
            job,
            side: side(job),
            peer: peer(job),
            own_source: own(areas.own_source),
            own_target: own(areas.own_target),
            job_source: of_job(areas.job_source)?,
            job_target: of_job(areas.job_target)?,
            commands: areas.commands.then(|| Commands::new(job)).transpose()?,
            arrived: job.signal()?,
            ready: job.signal()?,
            number: Cell::new(0),
            put: Cell::new(0),
            readied: Cell::new(0),
            clock_ns: Stopwatch::cost_ns(),
        };
        arena.touch(values)?;
        job.barrier()?;
        Ok(arena)
    }

    /// Writes the sources here, and the target at the other rank.
    fn touch(&self, values: usize) -> tasuki::Result<()> {
        let ones = Pages::new(if self.own_source.is_some() { 0 } else { values });
        if let Some(target) = &self.job_target {
            let to = target.on(self.peer);
            match &self.own_source {
                Some(source) => self.job.put(to, source.borrow_mut().values())?,
                None => self.job.put(to, RefCell::new(ones).borrow_mut().values())?,
            }
        }
        self.job_source.as_ref().map_or(Ok(()), |source| source.fill(1))
    }

    pub(super) fn own_source(&self) -> tasuki::Result<RefMut<'_, Pages>> {
        self.own_source.as_ref().map(RefCell::borrow_mut).ok_or_else(absent)
    }

    pub(super) fn own_target(&self) -> tasuki::Result<RefMut<'_, Pages>> {
        self.own_target.as_ref().map(RefCell::borrow_mut).ok_or_else(absent)
    }

    pub(super) fn job_source(&self) -> tasuki::Result<&Array<u64>> {
        self.job_source.as_ref().ok_or_else(absent)
    }

    pub(super) fn job_target(&self) -> tasuki::Result<&Array<u64>> {
        self.job_target.as_ref().ok_or_else(absent)
    }

    pub(super) fn commands(&self) -> tasuki::Result<&Commands<'j>> {
        self.commands.as_ref().ok_or_else(absent)
    }

    /// The number of the next block.
    pub(super) fn next(&self) -> u64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    /// How often the signal has been raised when the next block that is put has arrived.
    pub(super) fn next_put(&self) -> u64 {
        self.put.set(self.put.get() + 1);
        self.put.get()
    }

    /// Both have read what they were sent, and written what they are going to send.
    pub(super) fn meet(&self) -> tasuki::Result<()> {
        self.readied.set(self.readied.get() + 1);
        match self.side {
            Side::Lead => self.ready.wait_at_least(self.readied.get()),
            Side::Follow => self.job.raise(self.ready.on(self.peer), 1),
        }
    }
}

#[cold]
fn absent() -> Error {
    Error::new(tasuki::Cause::Program("the arena has no memory of that kind".into()))
}
