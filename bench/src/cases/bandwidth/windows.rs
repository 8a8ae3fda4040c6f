//! bandwidth_stream: windows of blocks in memory that the two programs merely own, with one answer each.
//!
//! In hot memory all blocks of a window are the same one, as in OSU's programs. No two receives can borrow one buffer,
//! so only as many are outstanding as there are buffers; all sends are.

use super::buffers::Arena;
use super::{Block, Shape};
use crate::cases::message_rate::{self, slots};
use crate::harness::measure::{Measure, wrong};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use tasuki::Slot;

/// Blocks of a window.
pub(crate) const WINDOW: u64 = message_rate::WINDOW as u64;
const ANSWER: Slot = Slot(2);

/// Windows of one shape.
pub(crate) struct MessageStream<'a> {
    arena: &'a Arena<'a>,
    shape: Shape,
    windows: u64,
}

impl<'a> MessageStream<'a> {
    /// `windows` windows from lead to follower.
    pub(crate) fn new(arena: &'a Arena<'a>, shape: Shape, windows: u64) -> MessageStream<'a> {
        MessageStream { arena, shape, windows }
    }

    /// Buffers that a window uses.
    fn used(&self) -> usize {
        self.shape.slots.min(message_rate::WINDOW)
    }

    /// The block in buffer `slot`.
    fn block(&self, slot: usize, number: u64) -> Block {
        let values = self.shape.values();
        Block { first: slot * values, values, number, fresh: self.shape.fresh }
    }

    /// Buffers in the order of a window; whole runs of [`Stream::used`], so that a run begins where buffers do.
    fn first_slot(&self, number: u64) -> usize {
        let runs = self.shape.slots / self.used();
        (number as usize % runs) * self.used()
    }

    fn run(&self, windows: u64) -> tasuki::Result<u64> {
        let mut took = 0;
        for _ in 0..windows {
            let number = self.arena.next();
            match self.arena.side {
                Side::Lead => took += self.send(number)?,
                Side::Follow => self.receive(number)?,
            }
        }
        Ok(took)
    }

    #[inline(never)]
    fn send(&self, number: u64) -> tasuki::Result<u64> {
        let (arena, world) = (self.arena, self.arena.job.world());
        let (first, mut source, mut answer) = (self.first_slot(number), arena.own_source()?, [0]);
        for slot in first..first + self.used() {
            source.write(self.block(slot, number));
        }
        let source: &[u64] = source.values();
        let took = world.scope(|scope| {
            scope.recv(&mut answer, arena.peer, ANSWER)?;
            arena.meet()?;
            let watch = Stopwatch::start();
            for (index, slot) in slots().enumerate() {
                let block = self.block(first + index % self.used(), number);
                scope.send(&source[block.first..block.first + block.values], arena.peer, slot)?;
            }
            scope.wait_all()?;
            Ok(watch.ns(arena.clock_ns))
        })?;
        if answer[0] == number { Ok(took) } else { Err(wrong("bandwidth_stream")) }
    }

    #[inline(never)]
    fn receive(&self, number: u64) -> tasuki::Result<()> {
        let (arena, world, used) = (self.arena, self.arena.job.world(), self.used());
        let (first, mut target) = (self.first_slot(number), arena.own_target()?);
        let values = self.shape.values();
        let all: Vec<Slot> = slots().collect();
        for (run, slots) in all.chunks(used).enumerate() {
            let blocks = target.values()[first * values..].chunks_exact_mut(values);
            world.scope(|scope| {
                for (block, &slot) in blocks.zip(slots) {
                    scope.recv(block, arena.peer, slot)?;
                }
                if run == 0 { arena.meet() } else { Ok(()) }
            })?;
        }
        world.send(&[number], arena.peer, ANSWER)?;
        (first..first + used).try_for_each(|slot| target.read(self.block(slot, number)))
    }
}

impl Measure for MessageStream<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        self.run(1)?;
        let took = self.run(self.windows)?;
        let moved = self.windows * WINDOW * self.shape.bytes;
        Ok(moved as f64 / (took as f64 / 1e9))
    }
}
