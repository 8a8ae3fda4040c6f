//! The layout of a rank's part: its buffers are consecutive in one block of its memory, and its signals have
//! consecutive numbers. Given the part and the [`PlanAddress`] of a rank, any member computes addresses in that rank's
//! memory.

use crate::plan::compile::owner_only_steps::late_signals;
use bytemuck::{Pod, Zeroable};
use tasuki_core::base::Rank;
use tasuki_core::engine::executor::EXPOSED_BYTES;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;
use tasuki_schedule::{BufferId, BufferKind, RankPart, SignalId};

/// Alignment of buffers, so that no two share a cache line or a pair of adjacent lines.
const ALIGN: u64 = 128;

/// The address of a rank's part, which the rank sends to the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PlanAddress {
    /// Offset of its block in the rank's address range; 0 if it has none.
    pub(crate) block: u64,
    /// The number of its first signal.
    pub(crate) signals: u32,
    /// The signal that the previous member raises to publish its number of starts when it leaves; 0 if the part is not
    /// compiled to queues.
    pub(crate) starts: u32,
}

/// The memory of the buffers that the program uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DataPlacement {
    /// In the memory of the plan.
    OfPlan,
    /// Buffers that each call passes.
    CallBuffers,
    /// Buffers that each call passes, and that the other member can reach. The plan's buffer holds their address.
    ExposedBuffer,
}

/// The offsets of the buffers of a part in its block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    rooms: Box<[BufferOffset]>,
    /// Bytes of the block.
    pub(crate) bytes: u64,
    /// Number of starts after which all buffers are back at their first copy.
    pub(crate) turns: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BufferOffset {
    offset: u64,
    /// Bytes from one copy of the buffer to the next.
    stride: u64,
    turns: u64,
    kind: BufferKind,
}

impl Layout {
    pub(crate) fn of(part: &RankPart, data: DataPlacement) -> Layout {
        let (mut bytes, mut all) = (0, 1);
        let rooms = part.buffer_decls().iter().map(|room| {
            let turns = room.kind.times();
            let bytes_here = match data {
                DataPlacement::CallBuffers if room.kind == BufferKind::User => 0,
                DataPlacement::ExposedBuffer if room.kind == BufferKind::User => EXPOSED_BYTES,
                _ => room.bytes,
            };
            let stride = bytes_here.next_multiple_of(ALIGN);
            let place = BufferOffset { offset: bytes, stride, turns, kind: room.kind };
            bytes += place.stride * turns;
            all = common_multiple(all, room.kind.period());
            place
        });
        let rooms = rooms.collect();
        Layout { rooms, bytes, turns: all }
    }

    /// Returns the rank whose memory holds `rank`'s buffer in that start.
    pub(crate) fn home(&self, buffer: BufferId, rank: u32, start: u64) -> u32 {
        self.rooms[buffer.index()].kind.home(rank, start).0
    }

    /// Returns the offset in the block of byte `at` of a buffer in that start.
    pub(crate) fn offset(&self, buffer: BufferId, at: u64, start: u64) -> u64 {
        let BufferOffset { offset, stride, turns, .. } = self.rooms[buffer.index()];
        offset + start % turns * stride + at
    }
}

/// A part with its rank and address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PlacedPart {
    pub(crate) rank: Rank,
    pub(crate) base: PlanAddress,
    pub(crate) layout: Layout,
    /// Bytes of further buffers that no other rank reaches.
    pub(crate) beside: u64,
    /// For each of its signals: true if nothing in the same start waits for it.
    pub(crate) late: Box<[bool]>,
}

impl PlacedPart {
    pub(crate) fn new(rank: Rank, base: PlanAddress, part: &RankPart, data: DataPlacement) -> PlacedPart {
        PlacedPart { rank, base, layout: Layout::of(part, data), beside: 0, late: late_signals(part) }
    }

    /// Returns the address of a byte of a buffer in that start.
    pub(crate) fn byte(&self, buffer: BufferId, at: u64, start: u64) -> GlobalAddress {
        GlobalAddress::new(self.rank, self.base.block + self.layout.offset(buffer, at, start))
    }

    /// Returns the number of a signal at its rank.
    pub(crate) fn number(&self, signal: SignalId) -> u32 {
        self.base.signals + signal.index() as u32
    }

    /// Returns the address of a signal.
    pub(crate) fn signal(&self, signal: SignalId) -> GlobalAddress {
        GlobalAddress::new(self.rank, signal_offset(self.number(signal)))
    }
}

/// Returns the least common multiple.
pub(crate) fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_consecutive_and_their_copies_are_used_in_turn() {
        let mut part = RankPart::new(0);
        let (data, first, second) =
            (part.buffer("data", 100), part.scratch("first", 10, 2), part.scratch("second", 129, 3));
        let layout = Layout::of(&part, DataPlacement::OfPlan);
        assert_eq!((layout.bytes, layout.turns), (128 + 2 * 128 + 3 * 256, 6));
        assert_eq!(Layout::of(&part, DataPlacement::CallBuffers).bytes, 2 * 128 + 3 * 256);
        assert_eq!(Layout::of(&part, DataPlacement::ExposedBuffer).bytes, 128 + 2 * 128 + 3 * 256);
        assert_eq!((layout.offset(data, 7, 0), layout.offset(data, 7, 5)), (7, 7));
        assert_eq!((layout.offset(first, 0, 4), layout.offset(first, 0, 5)), (128, 256));
        assert_eq!(layout.offset(second, 1, 5), 384 + 2 * 256 + 1);
    }

    #[test]
    fn a_swapped_buffer_is_at_the_other_rank_in_every_second_start() {
        let mut part = RankPart::new(0);
        let (own, stage) = (part.scratch("own", 10, 1), part.swapped("stage", 10, 1));
        let layout = Layout::of(&part, DataPlacement::CallBuffers);
        assert_eq!((layout.bytes, layout.turns), (256, 2));
        assert_eq!((layout.offset(stage, 3, 4), layout.offset(stage, 3, 5)), (131, 131));
        let homes =
            |buffer: BufferId| [0, 1].map(|rank| [4, 5].map(|start| layout.home(buffer, rank, start)));
        assert_eq!((homes(stage), homes(own)), ([[0, 1], [1, 0]], [[0, 0], [1, 1]]));
    }
}
