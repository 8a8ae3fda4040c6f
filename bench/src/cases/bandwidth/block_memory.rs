//! Memory of blocks: the program's own or the job's, with blocks written and read alike.

use super::Block;
use crate::harness::measure::wrong;
use tasuki::Array;

/// Values of eight bytes in a cache line.
const LINE: usize = 8;
/// Values that are moved in one go: a page.
const PAGE: usize = 512;

/// Values that begin on a page, as those of the limit do and those of other benchmarks.
pub(super) struct Pages {
    all: Vec<u64>,
    first: usize,
}

impl Pages {
    /// Touched throughout.
    pub(super) fn new(values: usize) -> Pages {
        let all = vec![1_u64; values + PAGE];
        let first = all.as_ptr().align_offset(PAGE * size_of::<u64>());
        Pages { all, first }
    }

    /// All of them.
    pub(super) fn values(&mut self) -> &mut [u64] {
        let end = self.all.len() - PAGE + self.first;
        &mut self.all[self.first..end]
    }

    /// Those of a block.
    pub(super) fn block(&mut self, block: Block) -> &mut [u64] {
        &mut self.values()[block.first..block.first + block.values]
    }

    /// Writes every line, or both ends.
    pub(super) fn write(&mut self, block: Block) {
        let values = self.block(block);
        if block.fresh {
            values.iter_mut().step_by(LINE).for_each(|value| *value = block.number);
        }
        (values[0], values[block.values - 1]) = (block.number, block.number);
    }

    /// Reads every line, or both ends.
    pub(super) fn read(&mut self, block: Block) -> tasuki::Result<()> {
        let values = self.block(block);
        let is_fresh = !block.fresh || values.iter().step_by(LINE).all(|&value| value == block.number);
        let ends = (values[0], values[block.values - 1]);
        if is_fresh && ends == (block.number, block.number) { Ok(()) } else { Err(wrong("bandwidth")) }
    }
}

/// Writes every line of job memory, or both ends.
pub(super) fn write(memory: &Array<u64>, block: Block) -> tasuki::Result<()> {
    if block.fresh {
        let page = [block.number; PAGE];
        for at in (0..block.values).step_by(PAGE) {
            memory.write(block.first + at, &page[..PAGE.min(block.values - at)])?;
        }
    }
    memory.set(block.first, block.number)?;
    memory.set(block.first + block.values - 1, block.number)
}

/// Reads every line of job memory, or both ends.
pub(super) fn read(memory: &Array<u64>, block: Block) -> tasuki::Result<()> {
    let mut is_right = true;
    if block.fresh {
        let mut page = [0; PAGE];
        for at in (0..block.values).step_by(PAGE) {
            let page = &mut page[..PAGE.min(block.values - at)];
            memory.read(block.first + at, page)?;
            is_right &= page.iter().step_by(LINE).all(|&value| value == block.number);
        }
    }
    let ends = (memory.get(block.first)?, memory.get(block.first + block.values - 1)?);
    if is_right && ends == (block.number, block.number) { Ok(()) } else { Err(wrong("bandwidth")) }
}
