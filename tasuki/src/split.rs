//! How the members of a communicator are divided into new ones.

use crate::Communicator;

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
    pub const fn colour(colour: usize) -> Split {
        Split { colour, key: 0, slots: Communicator::SLOTS as usize }
    }

    /// Orders the members of the part by these keys, and by their present numbers where keys are equal. The key is 0 if
    /// none is given.
    #[must_use]
    pub const fn key(self, key: isize) -> Split {
        Split { key, ..self }
    }

    /// Gives the part this number of slots, 1 to 2^20, for each pair and direction. All members of a part give the same
    /// number; it is 1024 if none is given.
    #[must_use]
    pub const fn slots(self, slots: usize) -> Split {
        Split { slots, ..self }
    }
}

/// What a member passes to [`Communicator::split`]: a colour, `(colour, key)`, or a [`Split`], and gets its
/// [`Communicator`]; or an `Option` of one of them, and gets an `Option`: with `None` it is in no part.
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
