//! bandwidth_job: messages from job memory to job memory.

use super::buffers::Arena;
use super::{Block, Carrier, block_memory};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use tasuki::Slot;

const SLOT: Slot = Slot(3);

pub(super) struct Job<'a>(pub(super) &'a Arena<'a>);

impl Carrier for Job<'_> {
    fn write(&self, block: Block) -> tasuki::Result<()> {
        block_memory::write(self.0.job_source()?, block)
    }

    #[inline(never)]
    fn ping_pong(&self, block: Block) -> tasuki::Result<u64> {
        let (arena, peer, world) = (self.0, self.0.peer, self.0.job.world());
        let source = arena.job_source()?.pointer().at(block.first);
        let target = arena.job_target()?.pointer().at(block.first);
        world.scope(|scope| {
            scope.recv_into(target, block.values, peer, SLOT)?;
            arena.meet()?;
            let watch = Stopwatch::start();
            if arena.side == Side::Lead {
                world.send_from(source, block.values, peer, SLOT)?;
            }
            scope.wait_recv::<u64>(peer, SLOT)?;
            if arena.side == Side::Follow {
                world.send_from(source, block.values, peer, SLOT)?;
            }
            Ok(watch.ns(arena.clock_ns))
        })
    }

    fn read(&self, block: Block) -> tasuki::Result<()> {
        block_memory::read(self.0.job_target()?, block)
    }
}
