//! The members of a communicator, and their ranks in the job.

use crate::{Communicator, Member, Rank};

impl Communicator {
    /// The members of this communicator, in order.
    ///
    /// ```
    /// use tasuki::{Member, Rank};
    /// tasuki::local(4, |job| {
    ///     let half = job.world().split(job.rank().index() / 2)?; // ranks 0 and 1, ranks 2 and 3
    ///     assert_eq!(half.members().rank_of(Member(1)), Some(Rank(job.rank().index() | 1)));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn members(&self) -> Members<'_> {
        Members(self)
    }
}

/// The members of a communicator. Made by [`Communicator::members`].
///
/// ```
/// use tasuki::{Member, Rank};
/// tasuki::local(5, |job| {
///     let colour = job.rank().0 % 2;
///     let part = job.world().split(colour)?;
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
    ///
    /// ```
    /// use tasuki::{Member, Slot};
    /// tasuki::local(3, |job| {
    ///     let world = job.world();
    ///     if world.rank() == 0 {
    ///         for to in world.members().iter().skip(1) {
    ///             world.send(&to.index(), to, Slot(0))?;
    ///         }
    ///     } else {
    ///         let mut got = 0;
    ///         world.recv(&mut got, Member(0), Slot(0))?;
    ///         assert_eq!(world.rank(), got);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iter(self) -> impl ExactSizeIterator<Item = Member> + DoubleEndedIterator + Clone + use<> {
        (0..self.0.size()).map(Member)
    }

    /// The rank of a member in the job; `None` if there is no such member.
    ///
    /// ```
    /// use tasuki::{Member, Rank};
    /// tasuki::local(3, |job| {
    ///     let backwards = job.world().split((0, -(job.rank().index() as isize)))?; // a colour and a key
    ///     assert_eq!(backwards.members().rank_of(Member(0)), Some(Rank(2)));
    ///     assert_eq!(backwards.members().rank_of(Member(3)), None);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn rank_of(self, member: Member) -> Option<Rank> {
        self.0.messages().rank_of(member.place())
    }

    /// The member that a rank of the job is; `None` if it is no member. Cost: that of a search in a sorted list, which
    /// the first call makes, unless this is the communicator of all ranks.
    ///
    /// ```
    /// use tasuki::{Member, Rank};
    /// tasuki::local(3, |job| {
    ///     let part = job.world().split(usize::from(job.rank() == 0))?; // ranks 1 and 2, rank 0
    ///     if job.rank() != 0 {
    ///         assert_eq!(part.members().member_of(Rank(2)), Some(Member(1)));
    ///         assert_eq!(part.members().member_of(Rank(0)), None);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn member_of(self, rank: Rank) -> Option<Member> {
        self.0.messages().member_of(rank).map(|member| Member(member.0))
    }

    /// The member `steps` after this one, counted around the end. Negative steps go back.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(3, |job| {
    ///     let (world, mut got) = (job.world(), 0);
    ///     let (next, before) = (world.members().after(1), world.members().after(-1));
    ///     world.sendrecv(&world.rank().index(), next, &mut got, before, Slot(0))?;
    ///     assert_eq!(before, got);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
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
