//! bandwidth_put: half a ping-pong of large blocks by put with signal, one in flight, into job memory.

use super::clock::Stopwatch;
use super::limit::Side;
use super::measure::{Measure, peer, side, wrong};
use super::state::State;
use std::cell::{Cell, RefCell};
use tasuki::{Array, Job, Rank, Signal};

/// Values of eight bytes in a cache line.
const LINE: usize = 8;
/// Values that are read in one go: a page.
const PAGE: usize = 512;

/// Memory and signals of all sizes and states.
pub(super) struct Arena<'j> {
    job: &'j Job,
    side: Side,
    peer: Rank,
    source: RefCell<Source>,
    target: Array<u64>,
    arrived: Signal<'j>,
    ready: Signal<'j>,
    /// Blocks that each side has sent.
    sent: Cell<u64>,
    /// Times that the follower was ready for another.
    readied: Cell<u64>,
    clock_ns: u64,
}

/// Values that begin on a page, as those of the limit do and those of other benchmarks.
struct Source {
    all: Vec<u64>,
    first: usize,
}

impl Source {
    fn new(values: usize) -> Source {
        let all = vec![1_u64; values + PAGE];
        let first = all.as_ptr().align_offset(PAGE * size_of::<u64>());
        Source { all, first }
    }

    fn values(&mut self) -> &mut [u64] {
        let end = self.all.len() - PAGE + self.first;
        &mut self.all[self.first..end]
    }
}

impl<'j> Arena<'j> {
    /// Collective. Touches whatever is going to be touched.
    pub(super) fn new(job: &'j Job, bytes: usize) -> tasuki::Result<Arena<'j>> {
        let values = bytes / size_of::<u64>();
        let arena = Arena {
            job,
            side: side(job),
            peer: peer(job),
            source: RefCell::new(Source::new(values)),
            target: job.alloc(values)?,
            arrived: job.signal()?,
            ready: job.signal()?,
            sent: Cell::new(0),
            readied: Cell::new(0),
            clock_ns: Stopwatch::cost_ns(),
        };
        job.put(arena.target.on(arena.peer), arena.source.borrow_mut().values())?;
        job.barrier()?;
        Ok(arena)
    }

    /// Sends the values from `first` on, which are the next block.
    fn send(&self, first: usize, values: &[u64]) -> tasuki::Result<()> {
        let to = self.target.on(self.peer).at(first);
        self.job.put_signal(to, values, self.arrived.on(self.peer), 1)
    }

    /// Looks at both ends of a block.
    fn read_ends(&self, first: usize, values: usize, number: u64) -> tasuki::Result<()> {
        let ends = (self.target.get(first)?, self.target.get(first + values - 1)?);
        if ends == (number, number) { Ok(()) } else { Err(wrong("bandwidth_put")) }
    }

    /// Reads every line of a block.
    fn read_lines(&self, first: usize, values: usize, number: u64) -> tasuki::Result<()> {
        let mut page = [0; PAGE];
        for at in (0..values).step_by(PAGE) {
            let page = &mut page[..PAGE.min(values - at)];
            self.target.read(first + at, page)?;
            if page.iter().step_by(LINE).any(|&value| value != number) {
                return Err(wrong("bandwidth_put"));
            }
        }
        Ok(())
    }

    /// Both have read what they were sent, and written what they are going to send.
    fn meet(&self) -> tasuki::Result<()> {
        self.readied.set(self.readied.get() + 1);
        match self.side {
            Side::Lead => self.ready.wait_at_least(self.readied.get()),
            Side::Follow => self.job.raise(self.ready.on(self.peer), 1),
        }
    }
}

/// Blocks of one size in one state.
pub(super) struct BandwidthPut<'a> {
    arena: &'a Arena<'a>,
    values: usize,
    slots: usize,
    fresh: bool,
    blocks: u64,
}

impl<'a> BandwidthPut<'a> {
    /// `blocks` blocks of `bytes` bytes in each direction, rotating through `slots` buffers.
    pub(super) fn new(arena: &'a Arena<'a>, (bytes, slots): (u64, usize), state: State, blocks: u64) -> Self {
        BandwidthPut { arena, values: bytes as usize / size_of::<u64>(), slots, fresh: state.fresh, blocks }
    }

    /// That many ping-pongs; what they took in ns. Writing before and reading after are no part of the time.
    fn exchange(&self, blocks: u64) -> tasuki::Result<u64> {
        let (arena, values) = (self.arena, self.values);
        let mut source = arena.source.borrow_mut();
        let source = source.values();
        let mut took = 0;
        for _ in 0..blocks {
            let number = arena.sent.get() + 1;
            arena.sent.set(number);
            let first = (number as usize % self.slots) * values;
            let block = &mut source[first..first + values];
            if self.fresh {
                block.iter_mut().step_by(LINE).for_each(|value| *value = number);
            }
            (block[0], block[values - 1]) = (number, number);
            arena.meet()?;
            took += self.ping_pong(first, block, number)?;
            if self.fresh {
                arena.read_lines(first, values, number)?;
            }
            arena.read_ends(first, values, number)?;
        }
        Ok(took)
    }

    #[inline(never)]
    fn ping_pong(&self, first: usize, block: &[u64], number: u64) -> tasuki::Result<u64> {
        let watch = Stopwatch::start();
        match self.arena.side {
            Side::Lead => {
                self.arena.send(first, block)?;
                self.arena.arrived.wait_at_least(number)?;
            }
            Side::Follow => {
                self.arena.arrived.wait_at_least(number)?;
                self.arena.send(first, block)?;
            }
        }
        Ok(watch.ns(self.arena.clock_ns))
    }
}

impl Measure for BandwidthPut<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        self.exchange(self.slots as u64 + 1)?;
        let took = self.exchange(self.blocks)?;
        let moved = 2 * self.blocks * (self.values * size_of::<u64>()) as u64;
        Ok(moved as f64 / (took as f64 / 1e9))
    }
}
