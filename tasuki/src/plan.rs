//! Plans: collectives that are prepared once and started many times.

use crate::{Communicator, Pod, Rank, Result};
use std::fmt;
use std::marker::PhantomData;
use tasuki_models::collective::{self, Algorithm, Operation, Shape};
use tasuki_models::schedule::{Buffer, Schedule};

/// A collective that the members of a communicator have prepared, of values of one type.
///
/// It has buffers of its own, in which the program leaves what it gives, and finds what it gets. Between
/// [`start`](Plan::start) and the end of [`wait`](Plan::wait) they are the plan's, and the program computes: what
/// arrives lets the plan go on, whoever is there to do it, a rank that waits or a helper. Nothing is reset from start to
/// start, and a member may be a start ahead of another that has not taken its data out yet: these are not overwritten.
///
/// Plans are made in the same order on all members. Different plans may be started in different orders on different
/// members, and be under way at the same time. Dropping a plan frees all, as soon as no member can reach it any more
/// ([`Communicator::quiesce`]), also while a start is under way.
///
/// ```
/// use tasuki::Rank;
/// tasuki::local(3, |job| {
///     let mut weights = job.world().bcast_init::<f32>(1000, Rank(1))?;
///     for step in 0..10 {
///         if job.rank() == 1 {
///             weights.write(0, &[step as f32; 1000])?;
///         }
///         weights.start()?;
///         let inner: u64 = (0..1000).sum();                 // work that needs no weights
///         weights.wait()?;
///         assert_eq!((weights.to_vec()?[999], inner), (step as f32, 499_500));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Source: persistent collectives of MPI-4; Morie et al., persistent collectives run by Tofu2.
pub struct Plan<T> {
    inner: collective::Plan,
    /// Where the program leaves what it gives, and finds what it gets.
    gives: Buffer,
    gets: Buffer,
    of: PhantomData<T>,
}

impl<T> fmt::Debug for Plan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Pod> Plan<T> {
    /// Starts it: what this member gives may be read from now on, what it gets be written. Returns at once.
    ///
    /// Errors: the start before has not ended, as [`wait`](Plan::wait) or [`test`](Plan::test) tell; the job is over.
    /// Costs a raised signal, and what can be done at once.
    #[inline]
    pub fn start(&mut self) -> Result<()> {
        self.inner.start()
    }

    /// Returns when the start is over for this member: what it gets is there, what it gave may be written anew. At once
    /// where none is under way. Serves peers meanwhile. Errors: a member died, or left without having started it; a
    /// step failed.
    #[inline]
    pub fn wait(&mut self) -> Result<()> {
        self.inner.wait()
    }

    /// Whether the start is over for this member. Never waits; moves this rank's work on. Errors as of
    /// [`wait`](Plan::wait).
    pub fn test(&mut self) -> Result<bool> {
        self.inner.test()
    }

    /// Whether a start is under way, as far as this member knows.
    pub fn is_active(&self) -> bool {
        self.inner.is_active()
    }

    /// Copies values into what this member gives, from value number `first` on. Errors: a start is under way; there is
    /// no room for so many.
    pub fn write(&mut self, first: usize, values: &[T]) -> Result<()> {
        self.inner.write(self.gives, offset_of::<T>(first), bytemuck::cast_slice(values))
    }

    /// Copies values out of what this member got, from value number `first` on.
    pub fn read(&self, first: usize, into: &mut [T]) -> Result<()> {
        self.inner.read(self.gets, offset_of::<T>(first), bytemuck::cast_slice_mut(into))
    }

    /// A copy of all that this member got.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let count = self.inner.bytes(self.gets) as usize / size_of::<T>().max(1);
        let mut values = vec![T::zeroed(); count];
        self.read(0, &mut values)?;
        Ok(values)
    }
}

fn offset_of<T>(first: usize) -> u64 {
    (first as u64).saturating_mul(size_of::<T>() as u64)
}

impl Communicator {
    /// Prepares a schedule, one's own or any. All members call it with the same one.
    ///
    /// It was proven before, or is proven now, by each member for the whole group, which takes memory that grows with
    /// the square of the number of its steps ([`Schedule::check`]). Errors: the first fault; members came with different schedules; one had
    /// no room.
    pub fn plan(&self, schedule: &Schedule) -> Result<Plan<u8>> {
        if let Err(fault) = schedule.check() {
            let cause = crate::Cause::Argument(fault.to_string());
            return Err(self.messages().machine().fault(cause, || format!("plan({})", schedule.name())));
        }
        self.plan_unchecked(schedule)
    }

    /// The same without the proof. A schedule that is wrong may never end, or leave anything in its buffers.
    pub fn plan_unchecked(&self, schedule: &Schedule) -> Result<Plan<u8>> {
        let inner = self.inner().plan(schedule, None, &|| self.start_helper())?;
        Ok(Plan { inner, gives: collective::DATA, gets: collective::DATA, of: PhantomData })
    }

    /// Prepares a barrier: a start is over when all members have started.
    pub fn barrier_init(&self) -> Result<Plan<u8>> {
        self.init(&Shape::new(Operation::Barrier, self.size(), 0, 0))
    }

    /// Prepares a broadcast of `count` values: all members find those that the root has written.
    pub fn bcast_init<T: Pod>(&self, count: usize, root: Rank) -> Result<Plan<T>> {
        self.init(&Shape::new(Operation::Bcast, self.size(), root.index(), offset_of::<T>(count)))
    }

    /// Prepares an allgather of `count` values from each member. A member writes them where they belong: from value
    /// `rank * count` on.
    pub fn allgather_init<T: Pod>(&self, count: usize) -> Result<Plan<T>> {
        self.init(&Shape::new(Operation::Allgather, self.size(), 0, offset_of::<T>(count)))
    }

    fn init<T: Pod>(&self, shape: &Shape) -> Result<Plan<T>> {
        let schedule = Algorithm::choose(shape).schedule(shape, 1);
        let inner = self.inner().plan(&schedule, None, &|| self.start_helper())?;
        Ok(Plan { inner, gives: collective::DATA, gets: collective::DATA, of: PhantomData })
    }

    /// Returns when all that members have dropped of this communicator's plans is freed. Collective.
    pub fn quiesce(&self) -> Result<()> {
        self.inner().quiesce()
    }
}
