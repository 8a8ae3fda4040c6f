//! Plans whose starts take any values of the program's, as many as it likes: they pass through the plan's own buffers,
//! piece by piece.

use crate::{Plan, Pod, Result};
use std::fmt;
use tasuki_collective::ChunkedRun;

/// A plan whose starts take values of the program's, any number of them. Made of a plan of equal blocks by
/// [`Plan::chunked`].
///
/// Where the plan has blocks of `count` values the program's may have any number, as many on all members: they pass
/// through the plan's buffers in pieces of `count`, one after the other. They lie as in the plan's buffer, with that
/// number in place of `count`, and what is gotten takes their place: also where the plan has a result apart from what
/// is given, as in an exchange, with room for the more blocks of the two.
///
/// [`start`](ChunkedPlan::start) takes a vector, and [`wait`](ChunkedPlan::wait) gives it back; a slice is lent inside a
/// scope by [`Scope::start`](crate::Scope::start), or for the time of a call by [`run`](ChunkedPlan::run). The first
/// piece goes on while the program computes; later ones begin in whichever call of the rank waits. Different plans
/// may be started, and waited for, in different orders on different members. A start that is under way when it is
/// dropped goes on in calls of the rank until it leaves, for others wait for it.
///
/// ```
/// use tasuki::Rank;
/// tasuki::local(3, |job| {
///     let mut news = job.world().bcast_init::<u16>(100, Rank(2))?.chunked()?;
///     for length in [1, 100, 12_345] {
///         let mine = if job.rank() == 2 { vec![7; length] } else { vec![0; length] };
///         news.start(mine)?;
///         let inner: u64 = (0..1000).sum();                  // work that needs no news
///         assert_eq!((news.wait()?, inner), (Some(vec![7; length]), 499_500));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Source: the buffered collectives of the ACP library (Honda et al.).
pub struct ChunkedPlan<T: Pod + Send>(ChunkedRun<T>);

impl<T: Pod + Send> fmt::Debug for ChunkedPlan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Pod + Send> Plan<T> {
    /// A plan whose starts take any number of values, which pass through this one's buffers: the more values these
    /// hold, the fewer pieces. Local; all members do it, or those that do not start as often as there are pieces.
    ///
    /// Errors: blocks differ in length, or are empty; it is a plan of a schedule of one's own; a start is under way.
    pub fn chunked(self) -> Result<ChunkedPlan<T>> {
        let (plan, passed) = self.into_parts();
        if plan.is_active() {
            return Err(plan.refused("buffered", "a start is under way: wait for it first"));
        }
        match passed {
            Some(passed) => Ok(ChunkedPlan(ChunkedRun::new(plan, passed))),
            None => {
                let text =
                    "values pass only where all blocks are as long, not empty, and the library's own plan's";
                Err(plan.refused("buffered", text))
            }
        }
    }
}

impl<T: Pod + Send> ChunkedPlan<T> {
    /// Starts it with these values, which are as many blocks as the plan has. Returns at once.
    ///
    /// Members must come with blocks of as many values: one that comes with more pieces than others waits until these
    /// start again, or leave. Errors: the values are not as many blocks; the start before has not been waited for; the
    /// job is over. Costs a copy of the first piece, and what a start of the plan costs.
    pub fn start(&mut self, values: Vec<T>) -> Result<()> {
        self.0.start(values)
    }

    /// Returns when the start is over for this member, and gives its values back: with what it got. `None` where none
    /// is under way. Errors as of [`Plan::wait`]; then the plan is of no more use.
    pub fn wait(&mut self) -> Result<Option<Vec<T>>> {
        self.0.wait()
    }

    /// The same if the start is over for this member, else `None`. Never waits.
    pub fn test(&mut self) -> Result<Option<Vec<T>>> {
        self.0.test()
    }

    /// Starts it with these values and returns when it is over: they are what it got. Costs a copy of them besides.
    pub fn run(&mut self, values: &mut [T]) -> Result<()> {
        self.0.start(values.to_vec())?;
        self.finish_into(values)
    }

    /// Whether a start is under way: not waited for.
    pub fn is_active(&self) -> bool {
        self.0.is_active()
    }

    /// Waits, and puts what it got there.
    pub(crate) fn finish_into(&mut self, values: &mut [T]) -> Result<()> {
        if let Some(got) = self.0.wait()? {
            values[..got.len()].copy_from_slice(&got);
        }
        Ok(())
    }
}
