//! Bandwidth: large blocks between two ranks, one in flight or in windows, by put, by
//! messages and by commands.
//!
//! ```text
//! buffers       memory of all sizes and states, and how two ranks meet before a block
//! block_memory  the two kinds of memory: the job's, and memory of the program
//! put, job_memory, own_memory, shared_copy    half a ping-pong, by one call each
//! windows       several blocks in flight
//! ```

mod block_memory;
mod buffers;
mod job_memory;
mod own_memory;
mod put;
mod shared_copy;
mod windows;

pub(crate) use buffers::{Areas, Arena};
pub(crate) use windows::{MessageStream, WINDOW};

use crate::case::Case;
use crate::cases::buffer_state::State;
use crate::harness::measure::Measure;

/// Blocks of one size in one state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bytes of a block.
    pub(crate) bytes: u64,
    /// Buffers through which blocks rotate.
    pub(crate) slots: usize,
    /// Whether the sender writes every line before, and the receiver reads every line after.
    pub(crate) fresh: bool,
}

impl Shape {
    /// Blocks of `bytes` bytes in a state that rotates through `slots` buffers.
    pub(crate) fn new(bytes: u64, slots: usize, state: State) -> Shape {
        Shape { bytes, slots, fresh: state.fresh }
    }

    fn values(&self) -> usize {
        self.bytes as usize / size_of::<u64>()
    }

    /// Where block `number` begins, in values.
    fn first(&self, number: u64) -> usize {
        (number as usize % self.slots) * self.values()
    }
}

/// A block in its place: what is sent and where it arrives.
#[derive(Clone, Copy)]
struct Block {
    first: usize,
    values: usize,
    number: u64,
    fresh: bool,
}

/// How a block gets from one rank to the other.
trait Carrier {
    /// Writes the block that is going to be sent.
    fn write(&self, block: Block) -> tasuki::Result<()>;
    /// The two meet, then each sends its block to the other, the lead first; the time from there in ns.
    fn ping_pong(&self, block: Block) -> tasuki::Result<u64>;
    /// Looks at the block that arrived.
    fn read(&self, block: Block) -> tasuki::Result<()>;
}

/// Half a ping-pong of blocks, one in flight.
pub(crate) struct Bandwidth<'a> {
    arena: &'a Arena<'a>,
    carrier: Box<dyn Carrier + 'a>,
    shape: Shape,
    blocks: u64,
}

impl<'a> Bandwidth<'a> {
    /// `blocks` blocks in each direction by what `case` says; the arena has the areas of that case.
    pub(crate) fn new(arena: &'a Arena<'a>, case: Case, shape: Shape, blocks: u64) -> Bandwidth<'a> {
        let carrier: Box<dyn Carrier + 'a> = match case {
            Case::BandwidthJob => Box::new(job_memory::Job(arena)),
            Case::SharedCopy => Box::new(shared_copy::SharedCopyCarrier(arena)),
            Case::BandwidthOwn => Box::new(own_memory::Own(arena)),
            _ => Box::new(put::PutCarrier(arena)),
        };
        Bandwidth { arena, carrier, shape, blocks }
    }

    /// That many ping-pongs; what they took in ns. Writing before and reading after are no part of the time.
    fn exchange(&self, blocks: u64) -> tasuki::Result<u64> {
        let mut took = 0;
        for _ in 0..blocks {
            let number = self.arena.next();
            let (values, fresh) = (self.shape.values(), self.shape.fresh);
            let block = Block { first: self.shape.first(number), values, number, fresh };
            self.carrier.write(block)?;
            took += self.carrier.ping_pong(block)?;
            self.carrier.read(block)?;
        }
        Ok(took)
    }
}

impl Measure for Bandwidth<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        self.exchange(self.shape.slots as u64 + 1)?;
        let took = self.exchange(self.blocks)?;
        let moved = 2 * self.blocks * self.shape.bytes;
        Ok(moved as f64 / (took as f64 / 1e9))
    }
}
