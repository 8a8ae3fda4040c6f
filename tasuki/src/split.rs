//! How the members of a communicator are divided into new ones.

use crate::engine::Cause;
use crate::{Communicator, Result};

/// The largest number of slots of a communicator, for each pair and direction.
const SLOTS_MAX: usize = 1 << 20;

impl Communicator {
    /// Divides the members into new communicators, one for each colour. A member passes a colour, `(colour, key)` or a
    /// [`Split`], and gets its communicator; or an `Option` of one of them, and gets `None` for
    /// `None`. The members of a new communicator are ordered by their keys, then by their numbers here.
    ///
    /// ```
    /// tasuki::local(4, |job| {
    ///     let me = job.rank().0;
    ///     let row = job.world().split(me / 2)?;                                // ranks 0 1, ranks 2 3
    ///     let column = job.world().split((me % 2, -(me as isize)))?;           // ranks 2 0, ranks 3 1
    ///     assert_eq!((row.rank().0, column.rank().0), (me % 2, 1 - me / 2));
    ///     let first = job.world().split((me > 0).then_some(0))?;               // without rank 0
    ///     assert_eq!(first.map(|part| part.size()), (me > 0).then_some(3));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). Messages of one communicator never match receives of another. A
    /// pair takes memory when it exchanges its first message. When all members have dropped the communicator, and the
    /// requests and plans that they made on it, its memory is freed by the next `split` or
    /// [`quiesce`](crate::collective::quiesce) of this one. Errors: those of [`Communicator::allgather`]; the number of
    /// slots is out of range; the members of a part give different numbers of slots, which is an error on all. Cost: an
    /// allgather of 40 bytes.
    pub fn split<S: SplitBy>(&self, by: S) -> Result<S::Output> {
        let part = by.part();
        if let Some(Split { slots, .. }) = part
            && !(1..=SLOTS_MAX).contains(&slots)
        {
            let text = format!("{slots} slots: a communicator has 1 to {SLOTS_MAX}");
            return Err(self.refused(Cause::Argument(text), "split"));
        }
        let (key, slots) = part.map_or((0, 0), |part| (part.key as i64, part.slots as u32));
        let made = self.inner().split(part.map(|part| part.colour as u64), key, slots)?;
        S::output(made.map(|inner| self.another(inner))).ok_or_else(|| {
            self.refused(Cause::Bug("a member with a colour got no communicator".into()), "split")
        })
    }

    /// Makes a communicator of the same members, in the same order, with a message space of its own (MPI_Comm_dup).
    /// Libraries use it to keep their messages and collective calls apart from those of the program.
    ///
    /// Collective ([rules](crate::collective#rules)). Errors and cost: those of [`Communicator::split`].
    ///
    /// ```
    /// use tasuki::{Rank, Request, Slot};
    /// tasuki::local(2, |job| {
    ///     let (world, apart) = (job.world(), job.world().dup()?);
    ///     if job.rank() == 0 {
    ///         world.isend(vec![1], Rank(1), Slot(0))?.wait()?;
    ///         apart.send(&2, Rank(1), Slot(0))?;
    ///     } else {
    ///         let (mut of_world, mut of_apart) = (0, 0);
    ///         world.scope(|s| {
    ///             s.recv(&mut of_world, Rank(0), Slot(0))?;                // not the message on `apart`
    ///             apart.recv(&mut of_apart, Rank(0), Slot(0)).map(drop)
    ///         })?;
    ///         assert_eq!((of_world, of_apart), (1, 2));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn dup(&self) -> Result<Communicator> {
        Ok(self.another(self.inner().dup()?))
    }
}

/// The part of [`Communicator::split`] that a member wants to be in.
///
/// ```
/// use tasuki::collective::Split;
/// tasuki::local(3, |job| {
///     let me = job.rank().0;
///     let reversed = Split::colour(0).key(-(me as isize)).slots(16);
///     assert_eq!(job.world().split(reversed)?.rank(), 2 - me);
///     let first_two = (me < 2).then(|| Split::colour(0));                  // rank 2 gets no communicator
///     assert_eq!(job.world().split(first_two)?.is_some(), me < 2);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    pub(crate) colour: usize,
    pub(crate) key: isize,
    pub(crate) slots: usize,
}

impl Split {
    /// The part of all members that give this colour, which may be any number.
    ///
    /// ```
    /// use tasuki::{Sum, collective::Split};
    /// tasuki::local(4, |job| {
    ///     let row = job.world().split(Split::colour(job.rank().index() / 2))?; // ranks 0 and 1, ranks 2 and 3
    ///     assert_eq!(row.allreduce(&job.rank().index(), Sum)?, [1, 1, 5, 5][job.rank().index()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub const fn colour(colour: usize) -> Split {
        Split { colour, key: 0, slots: Communicator::SLOTS as usize }
    }

    /// Orders the members of the part by these keys, and by their present numbers where keys are equal. The key is 0 if
    /// none is given.
    ///
    /// ```
    /// use tasuki::collective::Split;
    /// tasuki::local(3, |job| {
    ///     let weight = [5, 9, 2][job.rank().index()];
    ///     let sorted = job.world().split(Split::colour(0).key(weight))?;
    ///     assert_eq!(sorted.rank(), [1, 2, 0][job.rank().index()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[must_use]
    pub const fn key(self, key: isize) -> Split {
        Split { key, ..self }
    }

    /// Gives the part this number of slots, 1 to 2^20, for each pair and direction. All members of a part give the same
    /// number; it is 1024 if none is given.
    ///
    /// ```
    /// use tasuki::{Slot, collective::Split};
    /// tasuki::local(2, |job| {
    ///     let wide = job.world().split(Split::colour(0).slots(5000))?;
    ///     let (peer, mut got) = (job.rank_after(1), 0);
    ///     wide.sendrecv(&7, peer, &mut got, peer, Slot(4999))?;
    ///     assert_eq!(got, 7);
    ///     assert!(job.world().send(&7, peer, Slot(4999)).is_err()); // the world has 1024
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[must_use]
    pub const fn slots(self, slots: usize) -> Split {
        Split { slots, ..self }
    }
}

/// What a member passes to [`Communicator::split`]: a colour, `(colour, key)`, or a [`Split`], and gets its
/// [`Communicator`]; or an `Option` of one of them, and gets an `Option`: with `None` it is in no part.
///
/// ```
/// use tasuki::{Communicator, collective::Split};
/// tasuki::local(3, |job| {
///     let (world, me) = (job.world(), job.rank().index());
///     let pair: Communicator = world.split(me / 2)?; // a colour
///     let reversed: Communicator = world.split((0, -(me as isize)))?; // a colour and a key
///     let some: Option<Communicator> = world.split((me > 0).then_some(Split::colour(0)))?;
///     assert_eq!((pair.size(), some.map(|part| part.size())), [(2, None), (2, Some(2)), (1, Some(2))][me]);
///     assert_eq!(reversed.rank(), 2 - me);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a part of a communicator",
    note = "pass a colour, `(colour, key)`, `Split::colour(..)`, or an `Option` of one of them"
)]
pub trait SplitBy: sealed::SealedSplit {
    /// The new communicator, or an `Option` of it.
    type Output;

    /// The part, if the member wants to be in one.
    #[doc(hidden)]
    fn part(self) -> Option<Split>;

    /// The result for that communicator. None: there must be one.
    #[doc(hidden)]
    fn output(made: Option<Communicator>) -> Option<Self::Output>;
}

impl SplitBy for usize {
    type Output = Communicator;

    fn part(self) -> Option<Split> {
        Some(Split::colour(self))
    }

    fn output(made: Option<Communicator>) -> Option<Communicator> {
        made
    }
}

impl SplitBy for (usize, isize) {
    type Output = Communicator;

    fn part(self) -> Option<Split> {
        Some(Split::colour(self.0).key(self.1))
    }

    fn output(made: Option<Communicator>) -> Option<Communicator> {
        made
    }
}

impl SplitBy for Split {
    type Output = Communicator;

    fn part(self) -> Option<Split> {
        Some(self)
    }

    fn output(made: Option<Communicator>) -> Option<Communicator> {
        made
    }
}

impl<S: SplitBy<Output = Communicator>> SplitBy for Option<S> {
    type Output = Option<Communicator>;

    fn part(self) -> Option<Split> {
        self.and_then(S::part)
    }

    fn output(made: Option<Communicator>) -> Option<Option<Communicator>> {
        Some(made)
    }
}

mod sealed {
    pub trait SealedSplit {}
    impl SealedSplit for usize {}
    impl SealedSplit for (usize, isize) {}
    impl SealedSplit for super::Split {}
    impl<S: SealedSplit> SealedSplit for Option<S> {}
}
