//! The members of a communicator, as those that watch for failures know them, and the signals that each has for that.

use tasuki_core::base::Rank;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// The signals of a member, from its first one on: the words of the call log, its record, its notice, and
/// what it waits for.
pub(crate) const SIGNALS: u32 = CALLS + 3;
/// Number of calls in the log that others can read.
pub(crate) const CALLS: u32 = 4;
/// The number of its record.
pub(crate) const RECORD: u32 = CALLS;
/// The number of its notice.
pub(crate) const NOTICE: u32 = CALLS + 1;
/// The number of the line with what it waits for.
pub(crate) const WAIT: u32 = CALLS + 2;

/// A member of the communicator: its rank and the first of its signals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MonitoredMember {
    pub(crate) rank: Rank,
    pub(crate) first: u32,
}

impl MonitoredMember {
    pub(crate) fn signal(&self, number: u32) -> GlobalAddress {
        GlobalAddress::new(self.rank, signal_offset(self.first + number))
    }
}
