//! How closely a rank follows those who post to it.
//!
//! A reader who is as fast as the posters looks at the very line that is being written: the line then travels twice for
//! each command, and whoever writes it waits for that. So a reader that finds one command after the other falls behind
//! on purpose: it looks at a line some way ahead, which nobody writes yet, until that is there, or until it has looked
//! often enough. Single commands are read as soon as they are seen.

use crate::queue::area::Queue;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Lines that a reader falls behind.
const BEHIND: u64 = 16;
/// Looks that it does so at most: a command waits that much longer, if no other comes.
const PATIENCE: u32 = 16;
/// What a look that finds something adds to the heat; one that does not takes 1 away.
const FOUND: u32 = 8;
/// From that heat on posts are a stream.
const STREAM: u32 = 4 * FOUND;
const HOTTEST: u32 = 8 * FOUND;

/// What the threads of a rank remember of one queue's posts. Hints: they may race.
#[derive(Debug, Default)]
pub(super) struct Pace {
    heat: AtomicU32,
    /// Looks for which the reader still stays behind.
    patience: AtomicU32,
}

impl Pace {
    /// Whether to look for posts now.
    #[inline(always)]
    pub(super) fn lets_look(&self, queue: &Queue<'_>) -> bool {
        let left = self.patience.load(Relaxed);
        if left == 0 {
            return true;
        }
        let ahead = queue.reader().read() + BEHIND.min(queue.capacity() / 2);
        let left = if queue.line(ahead).holds(ahead) { 0 } else { left - 1 };
        self.patience.store(left, Relaxed);
        left == 0
    }

    /// What came of a look.
    #[inline(always)]
    pub(super) fn looked(&self, found: bool) {
        let heat = self.heat.load(Relaxed);
        let heat = if found { (heat + FOUND).min(HOTTEST) } else { heat.saturating_sub(1) };
        self.heat.store(heat, Relaxed);
        if found && heat >= STREAM {
            self.patience.store(PATIENCE, Relaxed);
        }
    }
}
