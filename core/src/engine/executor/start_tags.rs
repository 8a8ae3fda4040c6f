//! The tags by which an execution finds out that another rank is in another call: its own of the last starts, and those
//! that it has read beside signals.

use crate::fabric::signal_line::RaiseTags;

/// Number of starts whose tags an execution keeps.
pub(super) const TAGS: usize = 8;

/// The tags of the present start of an execution and of those before it. The tag of a call is equal on all ranks that
/// are in it.
#[derive(Debug, Default)]
pub(super) struct Tags {
    /// The tag of each start at its number modulo the length.
    tags: [u32; TAGS],
    /// The number of the present start.
    start: usize,
}

impl Tags {
    /// Returns the number of the present start, which is the same on all ranks.
    #[inline(always)]
    pub(super) fn start(&self) -> u32 {
        self.start as u32
    }

    /// Returns the tag of the start that was so many starts ago: less than [`TAGS`].
    #[inline(always)]
    pub(super) fn of(&self, starts_ago: usize) -> u32 {
        self.tags[self.start.wrapping_sub(starts_ago) % TAGS]
    }

    /// Sets the tag of the present start.
    #[inline(always)]
    pub(super) fn set(&mut self, tag: u32) {
        self.tags[self.start % TAGS] = tag;
    }

    /// Moves on to the next start, which has the same tag until it is set.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        let tag = self.of(0);
        self.start = self.start.wrapping_add(1);
        self.set(tag);
    }
}

/// A signal as it was last read.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenSignal {
    pub(super) value: u64,
    pub(super) tags: RaiseTags,
}

impl SeenSignal {
    /// A signal that stands at a value and has not been read.
    pub(super) fn unread(value: u64) -> SeenSignal {
        SeenSignal { value, tags: RaiseTags::none() }
    }
}
