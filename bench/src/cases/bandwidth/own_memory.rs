//! bandwidth_own: messages between memory that the two programs merely own.

use super::buffers::Arena;
use super::{Block, Carrier};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use tasuki::Slot;

const SLOT: Slot = Slot(3);

pub(super) struct Own<'a>(pub(super) &'a Arena<'a>);

impl Carrier for Own<'_> {
    fn write(&self, block: Block) -> tasuki::Result<()> {
        self.0.own_source()?.write(block);
        Ok(())
    }

    #[inline(never)]
    fn ping_pong(&self, block: Block) -> tasuki::Result<u64> {
        let (arena, peer, world) = (self.0, self.0.peer, self.0.job.world());
        let (mut source, mut target) = (arena.own_source()?, arena.own_target()?);
        let (source, target) = (source.block(block), target.block(block));
        world.scope(|scope| {
            scope.recv(target, peer, SLOT)?;
            arena.meet()?;
            let watch = Stopwatch::start();
            if arena.side == Side::Lead {
                world.send(source, peer, SLOT)?;
            }
            scope.wait_recv::<u64>(peer, SLOT)?;
            if arena.side == Side::Follow {
                world.send(source, peer, SLOT)?;
            }
            Ok(watch.ns(arena.clock_ns))
        })
    }

    fn read(&self, block: Block) -> tasuki::Result<()> {
        self.0.own_target()?.read(block)
    }
}
