//! A member of a communicator, and who a call of a communicator means.

use crate::data::single_value_data;
use crate::engine::Cause;
use crate::{Error, Pod, Rank, Result, Zeroable};
use std::fmt;
use tasuki_message::Context;

/// A member of a communicator, by its number there: `0 .. communicator.size()`.
///
/// In [`Job::world`](crate::Job::world) each member has the number of its [`Rank`]. In other communicators it may have
/// another one ([`Communicator::split`](crate::Communicator::split)).
/// [`Communicator::members`](crate::Communicator::members) translates.
///
/// A member is a number, and a call takes it as one of its own communicator: `world.send` to a member of a grid that was
/// split off goes to another rank, and nothing says so. Between communicators pass the [`Rank`], which each translates.
///
/// ```
/// use tasuki::{Member, Rank, Slot, Sum};
/// tasuki::local(4, |job| {
///     let odd = job.world().split(job.rank().index() % 2)?; // ranks 0 and 2, ranks 1 and 3
///     let peer = Member(1 - odd.rank().index());
///     let mut got = 0;
///     odd.sendrecv(&job.rank().index(), peer, &mut got, peer, Slot(0))?;
///     assert_eq!(odd.members().rank_of(peer), Some(Rank(got)));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Pod, Zeroable)]
#[bytemuck(crate = "bytemuck")]
#[repr(transparent)]
pub struct Member(pub usize);

impl Member {
    /// Nobody: the source that a receive from `None` reports. No communicator has this member.
    ///
    /// ```
    /// use tasuki::{Member, Slot};
    /// tasuki::local(1, |job| {
    ///     let mut halo = [7];
    ///     let received = job.world().recv(&mut halo, None::<Member>, Slot(0))?;
    ///     assert_eq!((received.source, received.count, halo), (Member::NONE, 0, [7]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub const NONE: Member = Member(usize::MAX);

    /// Returns the number as an index into a table.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(3, |job| {
    ///     let names = job.world().allgather(&(100 + job.rank().index()))?;
    ///     let mut value = 0;
    ///     let got = job.world().sendrecv(&1, job.rank_after(1), &mut value, job.rank_after(-1), Slot(0))?;
    ///     assert_eq!(names[got.source.index()], 100 + job.rank_after(-1).index());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn index(self) -> usize {
        self.0
    }

    /// The member as messages and collective calls name it.
    #[inline(always)]
    pub(crate) fn place(self) -> Rank {
        Rank(self.0)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Allows `communicator.rank() == 0`.
impl PartialEq<usize> for Member {
    fn eq(&self, number: &usize) -> bool {
        self.0 == *number
    }
}

impl From<usize> for Member {
    fn from(number: usize) -> Member {
        Member(number)
    }
}

/// Who a call of a communicator means: a [`Member`] of it, or a [`Rank`] of the job, which the call translates. A rank
/// that is no member is an error ([`Cause::NotAMember`]).
///
/// An `Option` of either may be `None`, which is nobody (MPI_PROC_NULL). A send to nobody and a receive from nobody
/// return at once; the receive leaves its buffer alone and reports no values from [`Member::NONE`]. A collective call
/// needs a root: there, `None` is an error.
///
/// ```
/// use tasuki::{Member, Rank, Slot};
/// tasuki::local(3, |job| {
///     let (world, me) = (job.world(), job.rank().0);
///     let (before, after) = (me.checked_sub(1).map(Rank), (me < 2).then_some(Rank(me + 1))); // a line with two ends
///     let (own, mut from_before) = ([me], [7_usize]);
///     world.scope(|s| {
///         s.send(&own, after, Slot(0))?;
///         s.recv(&mut from_before, before, Slot(0)).map(drop)
///     })?;
///     assert_eq!(from_before, [[7], [0], [1]][me]);
///
///     let reversed = world.split((0, -(me as isize)))?;
///     let mut first = [me];
///     reversed.bcast(&mut first, Member(0))?;             // the first member, which is rank 2
///     assert_eq!(first, [2]);
///     reversed.bcast(&mut first, Rank(2))                 // the same
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a member of a communicator",
    note = "pass a `Rank` of the job, as `Rank(1)`, a `Member` of the communicator, as `Member(1)`, or an `Option` of either"
)]
pub trait Peer: Copy + sealed::SealedPeer {
    /// Returns the member that this is in a communicator with these messages.
    #[doc(hidden)]
    fn member(self, of: &Context) -> Result<Option<Member>, Cause>;

    /// True if this names a member by its number, not by its rank.
    #[doc(hidden)]
    const IS_MEMBER: bool;
}

impl Peer for Member {
    const IS_MEMBER: bool = true;

    #[inline(always)]
    fn member(self, _: &Context) -> Result<Option<Member>, Cause> {
        Ok(Some(self))
    }
}

impl Peer for Rank {
    const IS_MEMBER: bool = false;

    #[inline(always)]
    fn member(self, of: &Context) -> Result<Option<Member>, Cause> {
        of.peer(self).map(|member| Some(Member(member.0)))
    }
}

impl Peer for Option<Member> {
    const IS_MEMBER: bool = true;

    #[inline(always)]
    fn member(self, _: &Context) -> Result<Option<Member>, Cause> {
        Ok(self)
    }
}

impl Peer for Option<Rank> {
    const IS_MEMBER: bool = false;

    #[inline(always)]
    fn member(self, of: &Context) -> Result<Option<Member>, Cause> {
        self.map_or(Ok(None), |rank| rank.member(of))
    }
}

mod sealed {
    pub trait SealedPeer {}
    impl SealedPeer for super::Member {}
    impl SealedPeer for super::Rank {}
    impl SealedPeer for Option<super::Member> {}
    impl SealedPeer for Option<super::Rank> {}
}

/// Returns the place of the peer of a message in `context`; `None` for nobody. `call` names the call.
#[inline(always)]
pub(crate) fn place_of(context: &Context, peer: impl Peer, call: &'static str) -> Result<Option<Rank>> {
    match peer.member(context) {
        Ok(member) => Ok(member.map(Member::place)),
        Err(cause) => Err(refused(context, cause, call)),
    }
}

/// Returns the error of a call that named this peer: if there is no such peer, it speaks of members or of ranks, as the
/// call did. In the communicator of all ranks, messages know no difference.
#[cold]
pub(crate) fn about<P: Peer>(_: P, error: Error) -> Error {
    if P::IS_MEMBER { error.of_member() } else { error }
}

#[cold]
#[inline(never)]
fn refused(context: &Context, cause: Cause, call: &'static str) -> Error {
    context.worker().fault(cause, || call.into())
}

single_value_data! { [] Member; }

#[cfg(test)]
mod tests {
    use crate::message::{close, recv_into, send_from, set_send_buffer};
    use crate::{Job, Member, Rank, Result, Slot, Sum, local};
    use std::time::Duration;

    /// In the communicator of all ranks, too, where each member has the number of its rank.
    #[test]
    fn errors_speak_of_members_where_the_call_does() -> Result<()> {
        let app = |job: &Job| {
            let (world, member, rank, slot) = (job.world(), Member(9), Rank(9), Slot(0));
            let memory = job.alloc_local::<u64>(10)?;
            let slice = || memory.pointer().slice(10);
            let mut into = [0_u64; 9];
            let of_members = [
                world.send(&[1_u64], member, slot),
                world.send(&[1_u64; 9], Some(member), slot),
                world.recv(&mut into, member, slot).map(drop),
                world.isend(vec![1_u64], member, slot).map(drop),
                world.irecv(vec![1_u64], member, slot).map(drop),
                world.scope(|s| s.send([1_u64], member, slot).map(drop)),
                world.scope(|s| s.recv(&mut into, member, slot).map(drop)),
                world.scope(|s| s.send_from(slice(), member, slot).map(drop)),
                world.scope(|s| s.recv_into(slice(), member, slot).map(drop)),
                send_from(world, slice(), member, slot),
                recv_into(world, slice(), member, slot).map(drop),
                close(world, member),
                world.dup()?.bcast(&mut 1_u64, member),
                world.dup()?.reduce(&1_u64, Sum, member).map(drop),
            ];
            for (number, outcome) in of_members.into_iter().enumerate() {
                let text = outcome.expect_err("there is no such member").headline();
                let expected = "there is no member 9: the members are 0 to 1";
                assert!(text.ends_with(expected), "{number}: {text}");
            }
            let of_ranks = [
                world.send(&[1_u64], rank, slot),
                world.dup()?.bcast(&mut 1_u64, rank),
                world.dup()?.gather(&1_u64, Some(rank)).map(drop),
                world.dup()?.iscatter(vec![1_u64], 1, rank).map(drop),
                world.dup()?.reduce_init::<u64>(1, Sum, rank).map(drop),
            ];
            for (number, outcome) in of_ranks.into_iter().enumerate() {
                let text = outcome.expect_err("there is no such rank").headline();
                assert!(text.ends_with("there is no rank 9: the ranks are 0 to 1"), "{number}: {text}");
            }
            job.barrier()
        };
        local(2, app).map(drop)
    }

    #[test]
    fn errors_name_the_peer() -> Result<()> {
        let app = |job: &Job| {
            let (world, other, me) = (job.world(), Rank(1 - job.rank().0), job.rank().0);
            set_send_buffer(job, 0, None)?; // sends wait for their receives
            let reversed = world.split((0, -(me as isize)))?;
            let late = world.within(Duration::from_millis(2));
            let mut errors = vec![
                late.recv(&mut [0_u64], other, Slot(0)).map(drop),
                late.recv(&mut [0_u64; 100], other, Slot(0)).map(drop),
                late.send(&[0_u64; 100], other, Slot(1)),
            ];
            job.barrier()?;
            // Too long, another type, and both in a communicator where members have other numbers than ranks.
            for on in [world, &reversed] {
                for len in [2, 100] {
                    errors.push(match me {
                        0 => on.send(&vec![1_u64; len], other, Slot(2)),
                        _ => on.recv(&mut vec![0_u64; len - 1], other, Slot(2)).map(drop),
                    });
                    errors.push(match me {
                        0 => on.send(&vec![1_u64; len], other, Slot(3)),
                        _ => on.recv(&mut vec![0_f64; len], other, Slot(3)).map(drop),
                    });
                }
            }
            for (number, outcome) in errors.into_iter().enumerate() {
                let error = outcome.expect_err("it cannot succeed");
                assert_eq!(error.peer(), Some(other), "{number}: {error}");
            }
            let different = reversed.allgather(&vec![0_u64; 1 + me]).expect_err("the lengths differ");
            assert_eq!(different.peer(), Some(other), "{different}");
            assert!(different.headline().ends_with(&format!("; member {me} differs from this one")));
            job.barrier()?; // so that both find the difference themselves
            let different = world.allgather(&vec![0_u64; 1 + me]).expect_err("the lengths differ");
            assert_eq!(different.peer(), Some(other), "{different}");
            assert!(different.headline().ends_with(&format!("; member {other} differs from this one")));
            Ok(())
        };
        local(2, app).map(drop)
    }
}
