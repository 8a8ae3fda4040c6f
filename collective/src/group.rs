//! The members of a communicator, as one of them sees them.

use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;
use tasuki_message::Context;

/// An ordered group of members. A member is named by its place.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    messages: Arc<Context>,
    place: Rank,
    size: usize,
}

impl Group {
    /// Makes the group of the members of a context, as the one at `place` sees it.
    pub(crate) fn new(messages: Arc<Context>, place: Rank) -> Group {
        let size = messages.size();
        Group { messages, place, size }
    }

    /// Returns the context for messages between the members.
    #[inline(always)]
    pub(crate) fn messages(&self) -> &Arc<Context> {
        &self.messages
    }

    #[inline(always)]
    pub(crate) fn worker(&self) -> &Arc<Worker> {
        self.messages.worker()
    }

    /// Returns this member's place.
    #[inline(always)]
    pub(crate) fn place(&self) -> Rank {
        self.place
    }

    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns the member `steps` places after `member`, wrapping around at most once.
    pub(crate) fn after(&self, member: Rank, steps: usize) -> Rank {
        let at = member.index() + steps;
        Rank(if at < self.size { at } else { at - self.size })
    }

    /// Returns the rank of a member in the job.
    pub(crate) fn rank_of(&self, member: Rank) -> Result<Rank, Cause> {
        self.messages.rank_of(member).ok_or_else(|| self.messages.no_such_member(member))
    }

    /// Returns the ranks of the members, in order.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        Rank::all(self.size).filter_map(|member| self.messages.rank_of(member))
    }

    /// Returns the signal that this member raises in a stage of a [dissemination](crate::dissemination), and the rank
    /// that notifies this member. `first` holds the number of the first signal of each member.
    pub(crate) fn neighbours(
        &self,
        stage: u32,
        first: impl Fn(Rank) -> u32,
    ) -> Result<(GlobalAddress, Rank), Cause> {
        let step = 1 << stage;
        let (to, from) = (self.after(self.place, step), self.after(self.place, self.size - step));
        let to_signal = signal_offset(first(to) + stage);
        Ok((GlobalAddress::new(self.rank_of(to)?, to_signal), self.rank_of(from)?))
    }
}
