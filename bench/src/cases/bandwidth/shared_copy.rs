//! shared_copy: copies by commands, from job memory to job memory, while both ranks wait: each of them takes a part.

use super::buffers::Arena;
use super::{Block, Carrier, block_memory};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use std::cell::Cell;
use tasuki::{Command, Job, Queue, Signal};

/// Places of the queue: there is one copy at a time.
const PLACES: usize = 8;
/// Copies of a block: there, and another one back.
const WAYS: u64 = 2;

/// What commands need beside memory.
pub(super) struct Commands<'j> {
    queue: Queue,
    /// Raised on both ranks by each copy that has ended.
    ended: Signal<'j>,
    blocks: Cell<u64>,
}

impl<'j> Commands<'j> {
    /// Collective.
    pub(super) fn new(job: &'j Job) -> tasuki::Result<Commands<'j>> {
        Ok(Commands { queue: job.queue(PLACES)?, ended: job.signal()?, blocks: Cell::new(0) })
    }
}

pub(super) struct SharedCopyCarrier<'a>(pub(super) &'a Arena<'a>);

impl SharedCopyCarrier<'_> {
    /// A copy from this rank to the other.
    fn post(&self, block: Block) -> tasuki::Result<()> {
        let (arena, commands) = (self.0, self.0.commands()?);
        let from = arena.job_source()?.pointer().at(block.first);
        let to = arena.job_target()?.on(arena.peer).at(block.first);
        let copy = Command::copy(from, to, block.values)
            .then(commands.ended.on(arena.peer).add(1))
            .then(commands.ended.on(arena.job.rank()).add(1));
        commands.queue.post(&copy).map(drop)
    }
}

impl Carrier for SharedCopyCarrier<'_> {
    fn write(&self, block: Block) -> tasuki::Result<()> {
        block_memory::write(self.0.job_source()?, block)
    }

    #[inline(never)]
    fn ping_pong(&self, block: Block) -> tasuki::Result<u64> {
        let (arena, commands) = (self.0, self.0.commands()?);
        let before = commands.blocks.replace(commands.blocks.get() + 1) * WAYS;
        arena.meet()?;
        let watch = Stopwatch::start();
        if arena.side == Side::Follow {
            commands.ended.wait_at_least(before + 1)?;
        }
        self.post(block)?;
        commands.ended.wait_at_least(before + WAYS)?;
        Ok(watch.ns(arena.clock_ns))
    }

    fn read(&self, block: Block) -> tasuki::Result<()> {
        block_memory::read(self.0.job_target()?, block)
    }
}
