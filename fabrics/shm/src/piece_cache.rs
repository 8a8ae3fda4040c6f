//! A cache of the pieces of global memory that a thread accessed last.
//!
//! The lookup of an address is a chain of dependent loads: the list of ranges, the range of the rank, the table of the
//! piece, and the piece. A program that follows pointers through global memory waits for all of them each time. The
//! guess that an access goes to the same piece as the last one costs a comparison, which the processor predicts without
//! waiting. Each thread has its own cache, so no two threads write the same memory.

use std::cell::Cell;
use tasuki_core::base::sync::{Ordering, RealAtomicU64};
use tasuki_core::segment::PieceView;

#[derive(Clone, Copy)]
struct CachedPiece {
    /// The number of the fabric, from [`number`]: views of a fabric that is gone are never used.
    fabric: u64,
    piece: u64,
    view: Option<PieceView>,
}

const NO_PIECE: CachedPiece = CachedPiece { fabric: 0, piece: 0, view: None };

thread_local! {
    static LAST_PIECE: Cell<CachedPiece> = const { Cell::new(NO_PIECE) };
    /// The piece before the last: a copy alternates between two pieces.
    static PREVIOUS_PIECE: Cell<CachedPiece> = const { Cell::new(NO_PIECE) };
}

/// Returns a number for a fabric that no other in this process gets.
pub(crate) fn number() -> u64 {
    static LAST: RealAtomicU64 = RealAtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Returns the piece of that number if this thread accessed it last.
#[inline(always)]
pub(crate) fn last(fabric: u64, piece: u64) -> Option<PieceView> {
    let recent = LAST_PIECE.get();
    if recent.fabric == fabric && recent.piece == piece { recent.view } else { None }
}

/// Returns the piece of that number if this thread accessed it before the last; it becomes the last one.
#[inline]
pub(crate) fn previous(fabric: u64, piece: u64) -> Option<PieceView> {
    let before = PREVIOUS_PIECE.get();
    if before.fabric != fabric || before.piece != piece {
        return None;
    }
    PREVIOUS_PIECE.set(LAST_PIECE.replace(before));
    before.view
}

/// Records that this thread has accessed that piece.
#[inline]
pub(crate) fn remember(fabric: u64, piece: u64, view: PieceView) {
    PREVIOUS_PIECE.set(LAST_PIECE.replace(CachedPiece { fabric, piece, view: Some(view) }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_core::segment::{MappedRange, layout};

    #[test]
    fn a_piece_is_remembered_for_one_fabric_and_one_thread() {
        let range = MappedRange::new(MappedRange::create_file().unwrap(), 0);
        let offset = layout::BOOTSTRAP_MEMORY;
        range.at(offset, offset, 8).unwrap();
        range.system().unwrap();
        let (ours, theirs, view) = (number(), number(), range.view(offset).unwrap());
        assert!(last(ours, 0).is_none());
        remember(ours, 0, view);
        assert!(last(ours, 0).is_some() && last(ours, 1).is_none() && last(theirs, 0).is_none());
        assert!(std::thread::spawn(move || last(ours, 0).is_none()).join().unwrap());
        remember(theirs, 0, view);
        assert!(last(ours, 0).is_none(), "only the last piece is returned");
        assert!(previous(ours, 0).is_some() && last(ours, 0).is_some());
        assert!(previous(theirs, 0).is_some() && previous(theirs, 0).is_none());
    }
}
