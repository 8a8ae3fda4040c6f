//! The piece of global memory that a thread was in last.
//!
//! An address says at which places to look for its bytes: five loads, one after the other, and whoever chases pointers
//! through global memory waits for all of them each time. That an access goes where the last one went is a guess
//! that the processor makes with the comparison, and does not wait for. What is remembered is a thread's own: nothing
//! that two of them write.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use tasuki_core::segment::PieceView;

#[derive(Clone, Copy)]
struct Recent {
    /// Whose, by [`number`]: views of a fabric that is gone are never looked at.
    fabric: u64,
    piece: u64,
    view: Option<PieceView>,
}

const NOWHERE: Recent = Recent { fabric: 0, piece: 0, view: None };

thread_local! {
    static RECENT: Cell<Recent> = const { Cell::new(NOWHERE) };
    /// Where it was before that: who copies goes to and fro.
    static BEFORE: Cell<Recent> = const { Cell::new(NOWHERE) };
}

/// A number for a fabric; no other in this process gets it.
pub(crate) fn number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The piece of that number, if this thread was in it last.
#[inline(always)]
pub(crate) fn of(fabric: u64, piece: u64) -> Option<PieceView> {
    let recent = RECENT.get();
    if recent.fabric == fabric && recent.piece == piece { recent.view } else { None }
}

/// The piece of that number, if this thread was in it before the last; it is there now.
#[inline]
pub(crate) fn again(fabric: u64, piece: u64) -> Option<PieceView> {
    let before = BEFORE.get();
    if before.fabric != fabric || before.piece != piece {
        return None;
    }
    BEFORE.set(RECENT.replace(before));
    before.view
}

/// This thread is in that piece now.
#[inline]
pub(crate) fn remember(fabric: u64, piece: u64, view: PieceView) {
    BEFORE.set(RECENT.replace(Recent { fabric, piece, view: Some(view) }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_core::segment::{MappedRange, layout};

    #[test]
    fn a_piece_is_remembered_for_one_fabric_and_one_thread() {
        let window = MappedRange::new(MappedRange::create_file().unwrap(), 0);
        let offset = layout::STARTER;
        window.at(offset, offset, 8).unwrap();
        window.system().unwrap();
        let (ours, theirs, view) = (number(), number(), window.view(offset).unwrap());
        assert!(of(ours, 0).is_none());
        remember(ours, 0, view);
        assert!(of(ours, 0).is_some() && of(ours, 1).is_none() && of(theirs, 0).is_none());
        assert!(std::thread::spawn(move || of(ours, 0).is_none()).join().unwrap());
        remember(theirs, 0, view);
        assert!(of(ours, 0).is_none(), "the last alone is at hand");
        assert!(again(ours, 0).is_some() && of(ours, 0).is_some());
        assert!(again(theirs, 0).is_some() && again(theirs, 0).is_none());
    }
}
