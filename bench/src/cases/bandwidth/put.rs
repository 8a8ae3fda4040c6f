//! bandwidth_put: put with signal, into job memory.

use super::buffers::Arena;
use super::{Block, Carrier, block_memory};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;

pub(super) struct PutCarrier<'a>(pub(super) &'a Arena<'a>);

impl PutCarrier<'_> {
    fn send(&self, block: Block, values: &[u64]) -> tasuki::Result<()> {
        let to = self.0.job_target()?.on(self.0.peer).at(block.first);
        self.0.job.put_signal(to, values, self.0.arrived.on(self.0.peer), 1)
    }
}

impl Carrier for PutCarrier<'_> {
    fn write(&self, block: Block) -> tasuki::Result<()> {
        self.0.own_source()?.write(block);
        Ok(())
    }

    #[inline(never)]
    fn ping_pong(&self, block: Block) -> tasuki::Result<u64> {
        let (arena, number) = (self.0, self.0.next_put());
        let mut source = arena.own_source()?;
        let values = source.block(block);
        arena.meet()?;
        let watch = Stopwatch::start();
        match arena.side {
            Side::Lead => {
                self.send(block, values)?;
                arena.arrived.wait_at_least(number)?;
            }
            Side::Follow => {
                arena.arrived.wait_at_least(number)?;
                self.send(block, values)?;
            }
        }
        Ok(watch.ns(arena.clock_ns))
    }

    fn read(&self, block: Block) -> tasuki::Result<()> {
        block_memory::read(self.0.job_target()?, block)
    }
}
