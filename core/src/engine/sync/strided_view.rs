//! Blocks of equal length at equal distances in user memory: the columns and tiles of a matrix. Their bytes, one block
//! behind the other, are the *packed* bytes. A copy of packed bytes consists of at most three runs of equal blocks.

use crate::engine::sync::revocable_buffer::BufferView;

/// Where blocks lie, in bytes. The first one begins at 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StrideLayout {
    blocks: usize,
    block: usize,
    stride: usize,
}

/// Equal blocks in a layout: the place of the first one, the bytes of each, and their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRun {
    pub at: usize,
    pub block: usize,
    pub count: usize,
}

/// Equal blocks that two layouts have in the same packed bytes: the places of the first one and the distances of two, in
/// each of the layouts, the bytes of a block, and the number of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockPairs {
    pub places: [usize; 2],
    pub strides: [usize; 2],
    pub block: usize,
    pub count: usize,
}

impl StrideLayout {
    /// Makes the layout of `blocks` blocks of `block` bytes, of which each begins `stride` bytes after the one before.
    /// `None`: no memory is so long.
    pub fn new(blocks: usize, block: usize, stride: usize) -> Option<StrideLayout> {
        if blocks == 0 || block == 0 {
            return Some(StrideLayout { blocks: 0, block: 0, stride: 0 });
        }
        let last = (blocks - 1).checked_mul(stride)?;
        let span = last.checked_add(block).filter(|&span| span <= isize::MAX as usize)?;
        blocks.checked_mul(block)?;
        debug_assert!(span > 0);
        Some(StrideLayout { blocks, block, stride })
    }

    /// Returns the number of packed bytes.
    pub fn len(self) -> usize {
        self.blocks * self.block
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(self) -> bool {
        self.blocks == 0
    }

    /// Returns the bytes from the start of the first block to the end of the last one.
    pub fn span(self) -> usize {
        self.blocks.checked_sub(1).map_or(0, |others| others * self.stride + self.block)
    }

    /// Returns the layout of the packed bytes: one block.
    pub fn packed(self) -> StrideLayout {
        let len = self.len();
        if len == 0 { self } else { StrideLayout { blocks: 1, block: len, stride: len } }
    }

    /// Returns the bytes of a block.
    pub fn block(self) -> usize {
        self.block
    }

    /// Returns the distance of two blocks.
    pub fn stride(self) -> usize {
        self.stride
    }

    /// Returns true if the blocks lie one behind the other.
    pub fn is_contiguous(self) -> bool {
        self.blocks <= 1 || self.stride == self.block
    }

    /// Returns the blocks that this layout and another one of as many packed bytes have in common. If blocks of both have
    /// the same length, or one of them is contiguous, it is one run.
    pub fn pairs(self, other: StrideLayout) -> impl Iterator<Item = BlockPairs> {
        debug_assert_eq!(self.len(), other.len(), "two layouts of the same bytes");
        let whole = if self.block == other.block {
            Some((self.block, self.blocks, [self.stride, other.stride]))
        } else if other.is_contiguous() {
            Some((self.block, self.blocks, [self.stride, self.block]))
        } else if self.is_contiguous() {
            Some((other.block, other.blocks, [other.block, other.stride]))
        } else {
            None
        };
        let (mut at, end) = (0, self.len());
        std::iter::from_fn(move || {
            let left = end.checked_sub(at).filter(|&left| left > 0)?;
            if let Some((block, count, strides)) = whole {
                at = end;
                return Some(BlockPairs { places: [0, 0], strides, block, count });
            }
            let rest = |layout: StrideLayout| layout.block - at % layout.block;
            let block = left.min(rest(self)).min(rest(other));
            let places = [self, other].map(|layout| at / layout.block * layout.stride + at % layout.block);
            at += block;
            Some(BlockPairs { places, strides: [block; 2], block, count: 1 })
        })
    }

    /// Returns the runs of blocks that `len` packed bytes from `at` on consist of: the end of a block, whole blocks, the
    /// beginning of a block.
    pub fn runs(self, mut at: usize, len: usize) -> impl Iterator<Item = BlockRun> {
        let end = at + len;
        std::iter::from_fn(move || {
            let left = end.checked_sub(at).filter(|&left| left > 0)?;
            let (number, within) = (at / self.block, at % self.block);
            let (block, count) = match left / self.block {
                whole @ 1.. if within == 0 => (self.block, whole),
                _ => (left.min(self.block - within), 1),
            };
            at += block * count;
            Some(BlockRun { at: number * self.stride + within, block, count })
        })
    }
}

/// A view of blocks in user memory, valid like a [`BufferView`].
#[derive(Clone, Copy, Debug)]
pub struct StridedView<'v> {
    span: BufferView<'v>,
    layout: StrideLayout,
}

impl<'v> StridedView<'v> {
    /// Returns a view of the blocks in `span`. Panics if they do not fill it.
    pub fn new(span: BufferView<'v>, layout: StrideLayout) -> StridedView<'v> {
        assert_eq!(span.len(), layout.span(), "a strided view ends with its last block");
        StridedView { span, layout }
    }

    /// Returns a view of one block.
    pub fn whole(bytes: BufferView<'v>) -> StridedView<'v> {
        let (block, blocks) = (bytes.len(), usize::from(!bytes.is_empty()));
        StridedView { span: bytes, layout: StrideLayout { blocks, block, stride: block } }
    }

    /// Returns the number of packed bytes.
    pub fn len(self) -> usize {
        self.layout.len()
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(self) -> bool {
        self.layout.is_empty()
    }

    /// Returns the layout.
    pub fn layout(self) -> StrideLayout {
        self.layout
    }

    /// Returns the memory from the first block to the last one.
    pub fn span(self) -> BufferView<'v> {
        self.span
    }

    /// Returns the bytes as one range, if the blocks lie one behind the other.
    pub fn contiguous(self) -> Option<BufferView<'v>> {
        self.layout.is_contiguous().then_some(self.span)
    }

    /// Copies packed bytes out, from `at` on.
    pub fn read(self, at: usize, into: &mut [u8]) {
        let len = into.len();
        self.pack(at, BufferView::of_mut(into), len);
    }

    /// Copies packed bytes in, from `at` on.
    pub fn write(self, at: usize, bytes: &[u8]) {
        self.unpack(at, BufferView::of(bytes), bytes.len());
    }

    /// Copies `len` packed bytes, from `at` on, to the start of a view.
    pub fn pack(self, at: usize, into: BufferView<'_>, len: usize) {
        let mut to = 0;
        for run in self.layout.runs(at, len) {
            self.span.copy_blocks((run.at, self.layout.stride), into, (to, run.block), run.block, run.count);
            to += run.block * run.count;
        }
    }

    /// Copies the first `len` bytes of a view to the packed bytes from `at` on.
    pub fn unpack(self, at: usize, from: BufferView<'_>, len: usize) {
        let mut begin = 0;
        for run in self.layout.runs(at, len) {
            from.copy_blocks(
                (begin, run.block),
                self.span,
                (run.at, self.layout.stride),
                run.block,
                run.count,
            );
            begin += run.block * run.count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the packed bytes from `at` on, by the runs.
    fn places(layout: StrideLayout, at: usize, len: usize) -> Vec<usize> {
        let places = |run: BlockRun| {
            (0..run.count).flat_map(move |number| {
                let begin = run.at + number * layout.stride;
                begin..begin + run.block
            })
        };
        layout.runs(at, len).flat_map(places).collect()
    }

    #[test]
    fn runs_have_each_packed_byte_once_in_order() {
        for (blocks, block, stride) in [(1, 5, 9), (4, 1, 1), (4, 1, 3), (5, 3, 3), (3, 7, 10), (6, 2, 0)] {
            let layout = StrideLayout::new(blocks, block, stride).unwrap();
            let all: Vec<usize> =
                (0..blocks).flat_map(|number| number * stride..number * stride + block).collect();
            assert_eq!(layout.len(), all.len());
            assert_eq!(Some(layout.span()), all.last().map(|last| last + 1));
            for at in 0..=all.len() {
                for len in 0..=all.len() - at {
                    assert_eq!(places(layout, at, len), all[at..at + len], "{layout:?}: {len} from {at}");
                    assert!(layout.runs(at, len).count() <= 3);
                }
            }
        }
    }

    #[test]
    fn pairs_have_each_packed_byte_once_in_order() {
        let layouts = [(1, 12, 12), (12, 1, 3), (4, 3, 3), (3, 4, 9), (6, 2, 5), (2, 6, 7), (4, 3, 8)];
        let layouts =
            layouts.map(|(blocks, block, stride)| StrideLayout::new(blocks, block, stride).unwrap());
        for (one, other) in layouts.iter().flat_map(|one| layouts.iter().map(move |other| (*one, *other))) {
            let of = |side: usize| -> Vec<usize> {
                let places = |pairs: BlockPairs| {
                    (0..pairs.count).flat_map(move |number| {
                        let begin = pairs.places[side] + number * pairs.strides[side];
                        begin..begin + pairs.block
                    })
                };
                one.pairs(other).flat_map(places).collect()
            };
            assert_eq!((of(0), of(1)), (places(one, 0, 12), places(other, 0, 12)), "{one:?} {other:?}");
        }
    }

    #[test]
    fn layouts_without_bytes_and_beyond_all_memory() {
        for (blocks, block) in [(0, 4), (4, 0)] {
            let layout = StrideLayout::new(blocks, block, usize::MAX).unwrap();
            assert!(
                layout.packed().is_empty()
                    && layout.is_empty()
                    && layout.is_contiguous()
                    && layout.span() == 0
            );
            assert_eq!(layout.runs(0, 0).count(), 0);
        }
        assert_eq!(StrideLayout::new(3, 1, usize::MAX / 2), None);
        assert_eq!(StrideLayout::new(2, usize::MAX, 0), None);
    }

    #[test]
    fn packed_bytes_go_out_and_in_and_gaps_stay() {
        let bytes: Vec<u8> = (0..40).collect();
        for block in [1, 3, 4, 8] {
            let layout = StrideLayout::new(4, block, 9).unwrap();
            let view = StridedView::new(BufferView::of(&bytes[..layout.span()]), layout);
            let mut packed = vec![0; layout.len() - 1];
            view.read(1, &mut packed);
            let expected: Vec<u8> =
                (0..4_u8).flat_map(|number| number * 9..number * 9 + block as u8).skip(1).collect();
            assert_eq!(packed, expected);
            let mut copy = [255_u8; 40];
            StridedView::new(BufferView::of_mut(&mut copy[..layout.span()]), layout).write(1, &packed);
            for (at, byte) in copy.into_iter().enumerate() {
                let is_in = expected.contains(&(at as u8));
                assert_eq!(byte, if is_in { at as u8 } else { 255 }, "block {block}, at {at}");
            }
        }
    }

    #[test]
    fn words_that_are_not_aligned_are_copied_like_others() {
        let bytes: Vec<u8> = (0..=255).collect();
        for begin in 0..8 {
            let layout = StrideLayout::new(7, 8, 24).unwrap();
            let span = BufferView::of(&bytes[begin..begin + layout.span()]);
            let mut packed = vec![0; layout.len()];
            StridedView::new(span, layout).read(0, &mut packed);
            let expected: Vec<u8> = (0..7)
                .flat_map(|number| (0..8).map(move |byte| (begin + number * 24 + byte) as u8))
                .collect();
            assert_eq!(packed, expected);
        }
    }
}
