//! bandwidth_job: messages from job memory to job memory.

use super::arena::Arena;
use super::{Block, Carrier, pages};
use crate::bench::clock::Stopwatch;
use crate::bench::limit::Side;
use tasuki::Slot;

const SLOT: Slot = Slot(3);

pub(super) struct Job<'a>(pub(super) &'a Arena<'a>);

impl Job<'_> {
    fn send(&self, block: Block) -> tasuki::Result<()> {
        let from = self.0.job_source()?.pointer().at(block.first);
        self.0.job.world().send_from(from, block.values, self.0.peer, SLOT)
    }

    fn recv(&self, block: Block) -> tasuki::Result<()> {
        let into = self.0.job_target()?.pointer().at(block.first);
        self.0.job.world().recv_into(into, block.values, self.0.peer, SLOT).map(drop)
    }
}

impl Carrier for Job<'_> {
    fn write(&self, block: Block) -> tasuki::Result<()> {
        pages::write(self.0.job_source()?, block)
    }

    /// The receives are posted when the other side may already be looking: there is no call that begins one into job
    /// memory.
    #[inline(never)]
    fn ping_pong(&self, block: Block) -> tasuki::Result<u64> {
        self.0.meet()?;
        let watch = Stopwatch::start();
        match self.0.side {
            Side::Lead => {
                self.send(block)?;
                self.recv(block)?;
            }
            Side::Follow => {
                self.recv(block)?;
                self.send(block)?;
            }
        }
        Ok(watch.ns(self.0.clock_ns))
    }

    fn read(&self, block: Block) -> tasuki::Result<()> {
        pages::read(self.0.job_target()?, block)
    }
}
