//! Members of a communicator, and who a call of a communicator means.

use crate::engine::Cause;
use crate::{Communicator, Error, Pod, Rank, Result, Zeroable};
use std::fmt;
use tasuki_message::Context;

/// A member of a communicator, by its number there: `0 .. communicator.size()`.
///
/// In [`Job::world`](crate::Job::world) each member has the number of its [`Rank`]. In other communicators it may have
/// another one ([`Communicator::split`]). [`Communicator::members`] translates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Pod, Zeroable)]
#[bytemuck(crate = "bytemuck")]
#[repr(transparent)]
pub struct Member(pub usize);

impl Member {
    /// Nobody: the source that a receive from `None` reports. No communicator has this member.
    pub const NONE: Member = Member(usize::MAX);

    /// Returns the number as an index into a table.
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
///     let mut from_before = [7];
///     world.scope(|s| {
///         s.send(&[me], after, Slot(0))?;
///         s.recv(&mut from_before, before, Slot(0))
///     })?;
///     assert_eq!(from_before, [[7], [0], [1]][me]);
///
///     let reversed = world.split(Some(0), -(me as i64))?.expect("a member");
///     let mut first = [me];
///     reversed.bcast(&mut first, Member(0))?;             // the first member, which is rank 2
///     assert_eq!(first, [2]);
///     reversed.bcast(&mut first, Rank(2))                 // the same
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait Peer: Copy + sealed::Sealed {
    /// Returns the member that this is in a communicator with these messages.
    #[doc(hidden)]
    fn member(self, of: &Context) -> Result<Option<Member>, Cause>;
}

impl Peer for Member {
    #[inline(always)]
    fn member(self, _: &Context) -> Result<Option<Member>, Cause> {
        Ok(Some(self))
    }
}

impl Peer for Rank {
    #[inline(always)]
    fn member(self, of: &Context) -> Result<Option<Member>, Cause> {
        of.peer(self).map(|member| Some(Member(member.0)))
    }
}

impl Peer for Option<Member> {
    #[inline(always)]
    fn member(self, _: &Context) -> Result<Option<Member>, Cause> {
        Ok(self)
    }
}

impl Peer for Option<Rank> {
    #[inline(always)]
    fn member(self, of: &Context) -> Result<Option<Member>, Cause> {
        self.map_or(Ok(None), |rank| rank.member(of))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Member {}
    impl Sealed for super::Rank {}
    impl Sealed for Option<super::Member> {}
    impl Sealed for Option<super::Rank> {}
}

/// Returns the place of the peer of a message in `context`; `None` for nobody. `call` names the call.
#[inline(always)]
pub(crate) fn place_of(context: &Context, peer: impl Peer, call: &'static str) -> Result<Option<Rank>> {
    match peer.member(context) {
        Ok(member) => Ok(member.map(Member::place)),
        Err(cause) => Err(refused(context, cause, call)),
    }
}

#[cold]
#[inline(never)]
fn refused(context: &Context, cause: Cause, call: &'static str) -> Error {
    context.worker().fault(cause, || call.into())
}

impl Communicator {
    /// The members of this communicator, in order.
    pub fn members(&self) -> Members<'_> {
        Members(self)
    }

    /// Returns the member that is the root. `call` names the call.
    #[inline]
    pub(crate) fn root(&self, root: impl Peer, call: &'static str) -> Result<Member> {
        let root = place_of(self.messages(), root, call)?;
        root.map(|place| Member(place.0)).ok_or_else(|| {
            let text = "the root is None: a collective call needs a member as its root";
            refused(self.messages(), Cause::Argument(text.into()), call)
        })
    }
}

/// The members of a communicator. Made by [`Communicator::members`].
///
/// ```
/// use tasuki::{Member, Rank};
/// tasuki::local(5, |job| {
///     let colour = (job.rank().0 % 2) as u64;
///     let part = job.world().split(Some(colour), 0)?.expect("every rank has a colour");
///     if colour == 1 {
///         let members = part.members();
///         let ranks: Vec<_> = members.iter().filter_map(|member| members.rank_of(member)).collect();
///         assert_eq!(ranks, [Rank(1), Rank(3)]);
///         assert_eq!((members.member_of(Rank(3)), members.member_of(Rank(2))), (Some(Member(1)), None));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Members<'c>(&'c Communicator);

impl Members<'_> {
    /// All members, in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Member> + DoubleEndedIterator + Clone + use<> {
        (0..self.0.size()).map(Member)
    }

    /// The rank of a member in the job; `None` if there is no such member.
    pub fn rank_of(self, member: Member) -> Option<Rank> {
        self.0.messages().rank_of(member.place())
    }

    /// The member that a rank of the job is; `None` if it is no member. Cost: that of a search in a sorted list, which
    /// the first call makes, unless this is the communicator of all ranks.
    pub fn member_of(self, rank: Rank) -> Option<Member> {
        self.0.messages().member_of(rank).map(|member| Member(member.0))
    }

    /// The member `steps` after this one, counted around the end. Negative steps go back.
    pub fn after(self, steps: isize) -> Member {
        let size = self.0.size();
        Member((self.0.rank().0 + steps.rem_euclid(size as isize) as usize) % size)
    }
}

impl IntoIterator for Members<'_> {
    type Item = Member;
    type IntoIter = std::iter::Map<std::ops::Range<usize>, fn(usize) -> Member>;

    fn into_iter(self) -> Self::IntoIter {
        (0..self.0.size()).map(Member)
    }
}
