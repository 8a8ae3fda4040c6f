//! Calls that move values without combining them.

use crate::call_kind::CallKind;
use crate::communicator::Communicator;
use crate::current_call::CallWord;
use crate::message_algorithms::alltoall::alltoall;
use crate::message_algorithms::barrier::barrier;
use crate::message_algorithms::bcast::bcast;
use crate::message_algorithms::gather::{allgather, gather, scatter};
use crate::message_algorithms::{Peers, run_now};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use std::borrow::Cow;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::executor::CallBuffers;
use tasuki_schedule::shape::CollectiveKind;

impl Communicator {
    /// Returns when all members have called it. What any member wrote before is visible to all members afterwards.
    pub fn barrier(&self) -> Result<()> {
        let kind = CallKind::of::<u8>(CollectiveKind::Barrier, Rank(0), 0);
        let call = || self.call(&kind);
        self.begin(&kind, &call)?.run(|| {
            self.worker().settle(&call)?; // unfinished puts could arrive after the notification
            if self.try_cached(&kind, CallBuffers::nothing(), &call)? {
                return Ok(());
            }
            if let Some(turn) = self.fabric_collectives(&call)? {
                return turn.barrier();
            }
            self.by_messages(barrier(&self.channel), &call)
        })
    }

    /// Copies the root's `values` to all members.
    pub fn bcast<T: Pod>(&self, values: &mut [T], root: Rank) -> Result<()> {
        let bytes = size_of_val(values);
        let kind = CallKind::of::<T>(CollectiveKind::Bcast, root, values.len());
        let call = || self.call(&kind);
        self.check_root(root, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            let values = cast_slice_mut(values);
            if self.try_cached(&kind, CallBuffers::moved(values, self.rank() == root), &call)? {
                return Ok(());
            }
            if let Some(turn) = self.fabric_collectives(&call)?
                && turn.takes(bytes)
            {
                return turn.bcast(values, root);
            }
            self.by_messages(bcast(&self.channel, values, root.index()), &call)
        })
    }

    /// Gathers the values of all members on this member, the root, into `all` in the order of members. All members
    /// give equal numbers of values. Without `values`, those of this member are in their place in `all`.
    pub fn gather_here<T: Pod>(&self, values: Option<&[T]>, all: &mut [T]) -> Result<()> {
        let (root, count) = (self.rank(), self.count_of(values, all));
        let kind = CallKind::of::<T>(CollectiveKind::Gather, root, count);
        let call = || self.call(&kind);
        self.check_room(all.len(), count, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            values.iter().for_each(|values| self.place_own(values, all));
            if self.try_cached(&kind, CallBuffers::moved(cast_slice_mut(all), false), &call)? {
                return Ok(());
            }
            let own = self.own_values(values, all);
            let gathered = self.by_messages(gather(&self.channel, &own, root.index()), &call)?;
            gathered.iter().for_each(|gathered| all.copy_from_slice(gathered));
            Ok(())
        })
    }

    /// Sends this member's `values` to another member, the root.
    pub fn gather_to<T: Pod>(&self, values: &[T], root: Rank) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Gather, root, values.len());
        let call = || self.call(&kind);
        self.check_root(root, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            if self.try_cached(&kind, CallBuffers::read(cast_slice(values)), &call)? {
                return Ok(());
            }
            self.by_messages(gather(&self.channel, values, root.index()), &call).map(drop)
        })
    }

    /// Sends each member its block of `values`. This member is the root; its own block is copied to `block`.
    pub fn scatter_here<T: Pod>(&self, values: &[T], block: &mut [T]) -> Result<()> {
        let (count, root) = (block.len(), self.rank());
        let kind = CallKind::of::<T>(CollectiveKind::Scatter, root, count);
        let call = || self.call(&kind);
        self.check_room(values.len(), count, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            block.copy_from_slice(&values[root.index() * count..][..count]);
            if self.try_cached(&kind, CallBuffers::read(cast_slice(values)), &call)? {
                return Ok(());
            }
            self.by_messages(scatter(&self.channel, cast_slice(values)), &call)
        })
    }

    /// Receives this member's block from another member, the root.
    pub fn scatter_from<T: Pod>(&self, block: &mut [T], root: Rank) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Scatter, root, block.len());
        let call = || self.call(&kind);
        self.check_root(root, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            let block = cast_slice_mut(block);
            if self.try_cached(&kind, CallBuffers::moved(block, false), &call)? {
                return Ok(());
            }
            self.by_messages(self.channel.recv(block, root.index()), &call)
        })
    }

    /// Gathers the values of all members on all members, into `all` in the order of members. All members give equal
    /// numbers of values. Without `values`, those of this member are in their place in `all`.
    pub fn allgather<T: Pod>(&self, values: Option<&[T]>, all: &mut [T]) -> Result<()> {
        let count = self.count_of(values, all);
        let kind = CallKind::of::<T>(CollectiveKind::Allgather, Rank(0), count);
        let call = || self.call(&kind);
        self.check_room(all.len(), count, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            values.iter().for_each(|values| self.place_own(values, all));
            if self.try_cached(&kind, CallBuffers::moved(cast_slice_mut(all), false), &call)? {
                return Ok(());
            }
            let own = self.own_values(values, all);
            self.by_messages(allgather(&self.channel, cast_slice(&own), cast_slice_mut(all)), &call)
        })
    }

    /// Sends block `k` of `values` to member `k`, and receives the block of member `k` for this one as block `k` of
    /// `all`.
    pub fn alltoall<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        let count = values.len() / self.size();
        let kind = CallKind::of::<T>(CollectiveKind::Alltoall, Rank(0), count);
        let call = || self.call(&kind);
        self.check_room(values.len(), count, CallWord::of(&kind))?;
        self.check_room(all.len(), count, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            let (values, all) = (cast_slice(values), cast_slice_mut(all));
            if self.try_cached(&kind, CallBuffers::between(values, all), &call)? {
                return Ok(());
            }
            self.by_messages(alltoall(&self.channel, values, all), &call)
        })
    }

    /// Exchanges blocks like [`alltoall`](Self::alltoall) by messages, inside a call that has already begun.
    pub(crate) fn alltoall_steps<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); values.len()];
        run_now(alltoall(&self.channel, cast_slice(values), cast_slice_mut(&mut all)))?;
        Ok(all)
    }

    /// Returns the number of values of this member in a gather into `all`.
    fn count_of<T>(&self, values: Option<&[T]>, all: &[T]) -> usize {
        values.map_or(all.len() / self.size(), <[T]>::len)
    }

    /// Returns this member's values in a gather into `all`, as messages need them: apart from `all`.
    fn own_values<'v, T: Pod>(&self, values: Option<&'v [T]>, all: &[T]) -> Cow<'v, [T]> {
        let own = || {
            let count = all.len() / self.size();
            Cow::Owned(all[self.rank().index() * count..][..count].to_vec())
        };
        values.map_or_else(own, Cow::Borrowed)
    }

    pub(crate) fn place_own<T: Pod>(&self, values: &[T], all: &mut [T]) {
        all[self.rank().index() * values.len()..][..values.len()].copy_from_slice(values);
    }
}
