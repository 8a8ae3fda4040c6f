//! Private memory of a plan, which only this rank can reach.

use bytemuck::{Pod, Zeroable};
use std::collections::TryReserveError;
use tasuki_core::base::{Cause, Result};
use tasuki_core::segment::check_available;

/// A buffer in private memory that is aligned for values of any type.
pub(crate) struct AlignedBuffer {
    lines: Vec<CacheLine>,
    bytes: usize,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u64; 8]);

/// From this size on, the memory limits of machine and container are checked before a buffer is allocated; the check
/// takes 50 us.
const LOOKED_UP_FROM: u64 = 1 << 20;

/// Returns the number of cache lines of a buffer.
fn lines_of(bytes: u64) -> usize {
    (bytes as usize).div_ceil(size_of::<CacheLine>())
}

impl AlignedBuffer {
    /// Allocates a buffer of zeros. Error: machine or container has no room for it.
    pub(crate) fn new(bytes: u64) -> Result<AlignedBuffer, Cause> {
        let wanted = AlignedBuffer::memory(bytes);
        if wanted >= LOOKED_UP_FROM {
            check_available(wanted).map_err(|error| error.cause().clone())?;
        }
        let (mut lines, count) = (Vec::new(), lines_of(bytes));
        let refused = |why: TryReserveError| Cause::System { call: "allocation", why: why.to_string() };
        lines.try_reserve_exact(count).map_err(refused)?;
        lines.resize(count, CacheLine([0; 8]));
        Ok(AlignedBuffer { lines, bytes: bytes as usize })
    }

    /// Returns the bytes of memory that a buffer takes.
    pub(crate) fn memory(bytes: u64) -> u64 {
        (lines_of(bytes) * size_of::<CacheLine>()) as u64
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.bytes]
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.bytes]
    }
}
