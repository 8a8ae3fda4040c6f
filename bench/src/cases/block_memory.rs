//! Memory of the bandwidth cases: memory that the program owns and job memory. Blocks of both are written and read in
//! the same way. The two ranks also synchronise here before a block is sent.

use super::{Setup, Stopwatch, expect};
use std::cell::{Cell, RefCell, RefMut};
use tasuki::{Array, Job, Queue, Rank, Signal};

/// Number of words in a cache line, and in a page.
const LINE: usize = 8;
const PAGE: usize = 512;
/// Number of places in the queue of `shared_copy`.
const PLACES: usize = 8;

/// One block of a rotation: the index of its first word, its number of words, and the number that is written into it.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) first: usize,
    pub(super) words: usize,
    pub(super) number: u64,
    /// True if each line is written before the block is sent and read after it has arrived; false if only the first and
    /// the last word are.
    pub(super) fresh: bool,
}

/// Memory that the program owns; it begins at a page boundary.
pub(super) struct Pages {
    all: Vec<u64>,
    first: usize,
}

impl Pages {
    fn new(words: usize) -> Pages {
        let all = vec![1_u64; words + PAGE];
        let first = all.as_ptr().align_offset(PAGE * size_of::<u64>());
        Pages { all, first }
    }

    pub(super) fn words(&mut self) -> &mut [u64] {
        let end = self.all.len() - PAGE + self.first;
        &mut self.all[self.first..end]
    }

    pub(super) fn block(&mut self, block: Block) -> &mut [u64] {
        &mut self.words()[block.first..block.first + block.words]
    }

    pub(super) fn write(&mut self, block: Block) {
        let words = self.block(block);
        if block.fresh {
            words.iter_mut().step_by(LINE).for_each(|word| *word = block.number);
        }
        (words[0], words[block.words - 1]) = (block.number, block.number);
    }

    pub(super) fn read(&mut self, block: Block) -> tasuki::Result<()> {
        let words = self.block(block);
        let lines = !block.fresh || words.iter().step_by(LINE).all(|&word| word == block.number);
        expect((lines, words[0], words[block.words - 1]), (true, block.number, block.number), "bandwidth")
    }
}

/// Writes a block of job memory.
pub(super) fn write(memory: &Array<u64>, block: Block) -> tasuki::Result<()> {
    if block.fresh {
        let page = [block.number; PAGE];
        for at in (0..block.words).step_by(PAGE) {
            memory.write(block.first + at, &page[..PAGE.min(block.words - at)])?;
        }
    }
    memory.set(block.first, block.number)?;
    memory.set(block.first + block.words - 1, block.number)
}

/// Reads and checks a block of job memory.
pub(super) fn read(memory: &Array<u64>, block: Block) -> tasuki::Result<()> {
    let mut lines = true;
    if block.fresh {
        let mut page = [0; PAGE];
        for at in (0..block.words).step_by(PAGE) {
            let page = &mut page[..PAGE.min(block.words - at)];
            memory.read(block.first + at, page)?;
            lines &= page.iter().step_by(LINE).all(|&word| word == block.number);
        }
    }
    let ends = (memory.get(block.first)?, memory.get(block.first + block.words - 1)?);
    expect((lines, ends), (true, (block.number, block.number)), "bandwidth")
}

/// Which memory areas the cases of a job need.
#[derive(Clone, Copy, Default)]
pub(crate) struct Areas {
    pub(crate) own_source: bool,
    pub(crate) own_target: bool,
    pub(crate) job_source: bool,
    pub(crate) job_target: bool,
}

/// The memory areas of a rank, and the signals and counters with which it synchronises with the other rank. An area
/// that no case needs is empty.
pub(crate) struct BlockMemory<'j> {
    pub(super) job: &'j Job,
    pub(super) is_lead: bool,
    pub(super) peer: Rank,
    own_source: RefCell<Pages>,
    own_target: RefCell<Pages>,
    pub(super) job_source: Array<u64>,
    pub(super) job_target: Array<u64>,
    pub(super) queue: Queue,
    pub(super) ended: Signal<'j>,
    pub(super) arrived: Signal<'j>,
    ready: Signal<'j>,
    readied: Cell<u64>,
    pub(super) blocks: Cell<u64>,
    pub(super) puts: Cell<u64>,
    pub(super) copies: Cell<u64>,
    pub(super) clock_ns: u64,
}

impl<'j> BlockMemory<'j> {
    /// Allocates the memory and touches it. Collective.
    pub(crate) fn new(s: &Setup<'j>, areas: Areas, bytes: usize) -> tasuki::Result<BlockMemory<'j>> {
        let (job, words) = (s.job, bytes / size_of::<u64>());
        let room = |is_needed: bool| if is_needed { words } else { 1 };
        let own = |is_needed| RefCell::new(Pages::new(room(is_needed)));
        let memory = BlockMemory {
            job,
            is_lead: s.is_lead(),
            peer: s.peer(),
            own_source: own(areas.own_source),
            own_target: own(areas.own_target),
            job_source: job.alloc(room(areas.job_source))?,
            job_target: job.alloc(room(areas.job_target))?,
            queue: job.queue(PLACES)?,
            ended: job.signal()?,
            arrived: job.signal()?,
            ready: job.signal()?,
            readied: Cell::new(0),
            blocks: Cell::new(0),
            puts: Cell::new(0),
            copies: Cell::new(0),
            clock_ns: Stopwatch::cost_ns(),
        };
        // The system assigns the pages of a target to the processor that writes them first. So each rank writes the
        // target of the other rank here, as it will during the measurement.
        let mut ones = Pages::new(if areas.own_source { 0 } else { room(areas.job_target) });
        match areas.own_source {
            true => job.put(
                memory.job_target.on(memory.peer),
                &memory.own_source().words()[..room(areas.job_target)],
            )?,
            false => job.put(memory.job_target.on(memory.peer), ones.words())?,
        }
        memory.job_source.fill(1)?;
        job.barrier().map(|()| memory)
    }

    pub(super) fn own_source(&self) -> RefMut<'_, Pages> {
        self.own_source.borrow_mut()
    }

    pub(super) fn own_target(&self) -> RefMut<'_, Pages> {
        self.own_target.borrow_mut()
    }

    /// Returns on the lead when the follower is ready.
    pub(super) fn meet(&self) -> tasuki::Result<()> {
        match self.is_lead {
            true => self.ready.wait_at_least(count(&self.readied)),
            false => self.job.raise(self.ready.on(self.peer), 1),
        }
    }
}

/// Adds one to a counter and returns its new value.
pub(super) fn count(counter: &Cell<u64>) -> u64 {
    counter.set(counter.get() + 1);
    counter.get()
}
