//! Alltoall: each member sends a block to each other member. In step k it sends to the member k places after it and
//! receives from the member k places before it, so that no member receives from two at once.

use crate::blocking::channel::ONE_LINE_MAX;
use crate::cached::schedule_cache::CallKind;
use crate::communicator::Communicator;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::executor::CallBuffers;

use tasuki_schedule::shape::CollectiveKind;

impl Communicator {
    /// Sends block `k` of `values` to member `k`, and receives the block of member `k` for this one as block `k` of
    /// `all`.
    pub fn alltoall<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        let count = values.len() / self.size();
        let kind = CallKind::of::<T>(CollectiveKind::Alltoall, Rank(0), count);
        let call = || self.call(&kind);
        self.check_room(values.len(), count, &call)?;
        self.check_room(all.len(), count, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            let (values, all) = (bytemuck::cast_slice(values), bytemuck::cast_slice_mut(all));
            if self.try_cached(&kind, CallBuffers::between(values, all), &call)? {
                return Ok(());
            }
            self.swap_blocks(values, all).map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Exchanges blocks by messages. In step k this member sends to the member k places after it and receives from
    /// the member k places before it.
    pub(crate) fn swap_blocks(&self, values: &[u8], all: &mut [u8]) -> Result<()> {
        let (me, size) = (self.rank(), self.size());
        let bytes = values.len() / size;
        let block = |member: Rank| member.index() * bytes..(member.index() + 1) * bytes;
        all[block(me)].copy_from_slice(&values[block(me)]);
        if bytes > ONE_LINE_MAX {
            return self.exchange_with_each(|to| &values[block(to)], all);
        }
        let pairs = (1..size).map(|steps| (self.after(me, steps), self.after(me, size - steps)));
        for (to, from) in pairs.clone() {
            self.channel.expect(from)?;
            self.channel.send(&values[block(to)], to)?;
        }
        for (_, from) in pairs {
            self.channel.recv(&mut all[block(from)], from)?;
        }
        Ok(())
    }

    /// Exchanges long blocks with one pair of members at a time, in the steps of [`swap_blocks`](Self::swap_blocks).
    /// The received blocks lie in `all` in the order of members.
    pub(crate) fn exchange_with_each<'v>(
        &self,
        given: impl Fn(Rank) -> &'v [u8],
        all: &mut [u8],
    ) -> Result<()> {
        let (me, size) = (self.rank(), self.size());
        let bytes = all.len() / size;
        for steps in 1..size {
            let (to, from) = (self.after(me, steps), self.after(me, size - steps));
            let into = &mut all[from.index() * bytes..][..bytes];
            self.channel.exchange(given(to), to, into, from)?;
        }
        Ok(())
    }
}
