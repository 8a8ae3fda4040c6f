//! Plans: collectives that are prepared once and started many times.

use crate::reduction::reduce_op::{self, OnBytes};
use crate::{Communicator, Pod, Rank, Result};
use std::fmt;
use std::marker::PhantomData;
use tasuki_collective::{ChunkShape, Combining};
use tasuki_core::segment::layout::RANGE_BYTES;
use tasuki_schedule::{BufferId, Schedule, StepKind};
use tasuki_schedule::{CollectiveKind, Shape};

/// A collective that the members of a communicator have prepared, of values of one type.
///
/// It has buffers of its own, in which the program leaves what it gives, and finds what it gets. Between
/// [`start`](Plan::start) and the end of [`wait`](Plan::wait) they are the plan's, and the program computes. Nothing is
/// reset from start to start, and a member may be a start ahead of another that has not taken its data out yet: these
/// are not overwritten.
///
/// Meanwhile what arrives lets the plan go on, if there is a helper (`tasuki run --helper node`), and for schedules of
/// one's own whoever is there, a rank that waits, too. Where the members share a node without a helper each moves its
/// own part of other plans on in its calls alone, those that wait or test anything: that is as quick as the blocking
/// call, and what a member that computes has to hand on waits until it comes back. Plans that only move long blocks, in
/// one copy, go on by whoever is there.
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
    inner: tasuki_collective::Plan,
    /// Where the program leaves what it gives, and finds what it gets.
    gives: BufferId,
    gets: BufferId,
    /// What lies there, if it is equal blocks.
    passed: Option<ChunkShape>,
    of: PhantomData<T>,
}

impl<T> fmt::Debug for Plan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Pod> Plan<T> {
    /// One with a buffer for what is given, and another for what is got.
    pub(crate) fn of_two(inner: tasuki_collective::Plan, passed: Option<ChunkShape>) -> Plan<T> {
        Plan { inner, gives: tasuki_schedule::DATA, gets: tasuki_schedule::RESULT, passed, of: PhantomData }
    }

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
    /// step failed, as by an operation of the program's own that panicked.
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

    /// The same into any buffer of a schedule of one's own.
    pub fn write_to(&mut self, buffer: BufferId, first: usize, values: &[T]) -> Result<()> {
        self.inner.write(buffer, offset_of::<T>(first), bytemuck::cast_slice(values))
    }

    /// The same out of any buffer of a schedule of one's own.
    pub fn read_from(&self, buffer: BufferId, first: usize, into: &mut [T]) -> Result<()> {
        self.inner.read(buffer, offset_of::<T>(first), bytemuck::cast_slice_mut(into))
    }

    /// A copy of all that this member got.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let count = self.inner.bytes(self.gets) as usize / size_of::<T>().max(1);
        let mut values = vec![T::zeroed(); count];
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// It, and what lies in its buffers, if it is equal blocks.
    pub(crate) fn into_parts(self) -> (tasuki_collective::Plan, Option<ChunkShape>) {
        (self.inner, self.passed)
    }
}

/// An operation that a plan may keep.
pub trait PlanReduceOp<T>: reduce_op::ReduceOp<T> + Send + Sync + 'static {}

impl<T, O: reduce_op::ReduceOp<T> + Send + Sync + 'static> PlanReduceOp<T> for O {}

pub(crate) fn offset_of<T>(first: usize) -> u64 {
    (first as u64).saturating_mul(size_of::<T>() as u64)
}

/// How a plan combines values by that operation.
fn combining<T: Pod>(operation: impl PlanReduceOp<T>) -> Combining {
    match operation.known() {
        Some(how) => Combining::Known(how),
        None => {
            let operator = std::sync::Arc::new(OnBytes::<T, _>::new(operation));
            Combining::Own(operator, size_of::<T>() as u32)
        }
    }
}

impl Communicator {
    /// Prepares a schedule, one's own or any. All members call it with the same one.
    ///
    /// It was proven before, or is proven now, by each member for the whole group, which takes memory that grows with
    /// the square of the number of its steps ([`Schedule::check`]). Errors: the first fault; members came with
    /// different schedules; one had no room.
    pub fn plan(&self, schedule: &Schedule) -> Result<Plan<u8>> {
        self.prove(schedule)?;
        self.plan_unchecked(schedule)
    }

    /// The same for a schedule that combines values, of one type, by that operation. Error besides: an operation that
    /// is not known to everybody (a closure) combines in the memory of whoever has the step alone; a step combines
    /// bytes that are not whole values.
    ///
    /// ```
    /// use tasuki::Sum;
    /// use tasuki::schedule::{Builder, CollectiveKind, Shape};
    ///
    /// fn to_the_first(b: &mut Builder) {
    ///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
    ///     for &rank in &ranks[1..] {
    ///         let before = b.last_write(data.on(ranks[0]));
    ///         b.reduce(data.on(rank), data.on(ranks[0]), false).after(before);
    ///     }
    /// }
    /// tasuki::local(3, |job| {
    ///     let sum = Shape::new(CollectiveKind::Reduce, 3, 0, 16).build("mine", to_the_first);
    ///     let mut plan = job.world().plan_with(&sum.rooted(2), Sum)?; // rank 2 adds up in the memory of rank 0
    ///     plan.write(0, &[1.5, f64::from(job.rank().0)])?;
    ///     plan.start()?;
    ///     plan.wait()?;
    ///     assert!(job.rank().0 != 0 || plan.to_vec()? == [4.5, 3.0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn plan_with<T: Pod>(&self, schedule: &Schedule, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        self.prove(schedule)?;
        self.check_values(schedule, size_of::<T>() as u64)?;
        let inner = self.inner().plan(schedule, combining(operation), &|| self.start_helper())?;
        Ok(Plan {
            inner,
            gives: tasuki_schedule::DATA,
            gets: tasuki_schedule::DATA,
            passed: None,
            of: PhantomData,
        })
    }

    fn prove(&self, schedule: &Schedule) -> Result<()> {
        schedule.check().map(drop).map_err(|fault| {
            let cause = crate::Cause::Argument(fault.to_string());
            self.messages().worker().fault(cause, || format!("plan({})", schedule.name()))
        })
    }

    /// That whole values are combined.
    fn check_values(&self, schedule: &Schedule, value_bytes: u64) -> Result<()> {
        for rank in 0..schedule.ranks() {
            for (number, step) in schedule.part(rank).steps().iter().enumerate() {
                if let StepKind::Reduce { bytes, .. } = step.action
                    && !bytes.is_multiple_of(value_bytes.max(1))
                {
                    let text = format!(
                        "step {number} of rank {rank} combines {bytes} bytes, which are not whole values of \
                         {value_bytes}"
                    );
                    let call = || format!("plan({})", schedule.name());
                    return Err(self.messages().worker().fault(crate::Cause::Argument(text), call));
                }
            }
        }
        Ok(())
    }

    /// [`plan`](Communicator::plan) without the proof. A schedule that is wrong may never end, or leave anything in its
    /// buffers.
    pub fn plan_unchecked(&self, schedule: &Schedule) -> Result<Plan<u8>> {
        let inner = self.inner().plan(schedule, Combining::Nothing, &|| self.start_helper())?;
        Ok(Plan {
            inner,
            gives: tasuki_schedule::DATA,
            gets: tasuki_schedule::DATA,
            passed: None,
            of: PhantomData,
        })
    }

    /// Prepares a barrier: a start is over when all members have started.
    pub fn barrier_init(&self) -> Result<Plan<u8>> {
        self.prepare(&self.shape::<u8>(CollectiveKind::Barrier, Rank(0), 0), Combining::Nothing)
    }

    /// Prepares a broadcast of `count` values: all members find those that the root has written.
    pub fn bcast_init<T: Pod>(&self, count: usize, root: Rank) -> Result<Plan<T>> {
        self.prepare(&self.shape::<T>(CollectiveKind::Bcast, root, count), Combining::Nothing)
    }

    /// Prepares a reduction of `count` values: the root finds what all members' values come to, in place of its own.
    /// What members have written is used up: they write it anew before each start.
    ///
    /// The operation need not commute: values are combined in the order of members. What is known to everybody
    /// ([`Sum`](crate::Sum) of `f64`, say) whoever is there combines; a closure only this rank's threads call.
    pub fn reduce_init<T: Pod>(
        &self,
        count: usize,
        operation: impl PlanReduceOp<T>,
        root: Rank,
    ) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::Reduce, root, count), operation)
    }

    /// Prepares a reduction of `count` values for all: each member finds what they come to, in place of its own, the
    /// same to the bit.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(3, |job| {
    ///     let mut sum = job.world().allreduce_init::<f64>(2, Sum)?;
    ///     for step in 0..4 {
    ///         sum.write(0, &[f64::from(job.rank().0), f64::from(step)])?;
    ///         sum.start()?;
    ///         sum.wait()?;
    ///         assert_eq!(sum.to_vec()?, [3.0, 3.0 * f64::from(step)]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn allreduce_init<T: Pod>(&self, count: usize, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::Allreduce, Rank(0), count), operation)
    }

    /// Prepares a reduction of `count` values for each member: it finds its block of the result in place of its own
    /// values for it, from value `rank * count` on.
    pub fn reduce_scatter_init<T: Pod>(
        &self,
        count: usize,
        operation: impl PlanReduceOp<T>,
    ) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::ReduceScatter, Rank(0), count), operation)
    }

    /// Prepares a scan: each member finds what the values of the members up to it come to, in place of its own.
    pub fn scan_init<T: Pod>(&self, count: usize, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::Scan, Rank(0), count), operation)
    }

    /// Prepares an exclusive scan: each member finds what the values of the members before it come to, in place of its
    /// own; the first one finds nothing of use.
    pub fn exscan_init<T: Pod>(&self, count: usize, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::Exscan, Rank(0), count), operation)
    }

    /// Prepares a gather of `count` values from each member. The root writes its own from value `rank * count` on,
    /// where it finds those of the others; other members write theirs at the beginning.
    pub fn gather_init<T: Pod>(&self, count: usize, root: Rank) -> Result<Plan<T>> {
        self.prepare(&self.shape::<T>(CollectiveKind::Gather, root, count), Combining::Nothing)
    }

    /// Prepares a scatter of `count` values for each member, which the root writes one behind the other. Members find
    /// theirs at the beginning, the root its own where it wrote them.
    pub fn scatter_init<T: Pod>(&self, count: usize, root: Rank) -> Result<Plan<T>> {
        self.prepare(&self.shape::<T>(CollectiveKind::Scatter, root, count), Combining::Nothing)
    }

    /// Prepares an allgather of `count` values from each member. A member writes its own from value `rank * count` on,
    /// where all find them.
    pub fn allgather_init<T: Pod>(&self, count: usize) -> Result<Plan<T>> {
        self.prepare(&self.shape::<T>(CollectiveKind::Allgather, Rank(0), count), Combining::Nothing)
    }

    /// Prepares an exchange of `count` values between each two members: a member writes those for member `r` from value
    /// `r * count` on, and reads those of member `r` there.
    pub fn alltoall_init<T: Pod>(&self, count: usize) -> Result<Plan<T>> {
        self.prepare(&self.shape::<T>(CollectiveKind::Alltoall, Rank(0), count), Combining::Nothing)
    }

    pub(crate) fn shape<T>(&self, operation: CollectiveKind, root: Rank, count: usize) -> Shape {
        let value_bytes = size_of::<T>().max(1) as u64;
        let shape = Shape::new(operation, self.size(), root.index(), offset_of::<T>(count));
        Shape { value_bytes, ..shape }
    }

    fn combine<T: Pod>(&self, shape: Shape, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        let shape = Shape { in_order: operation.in_order(), ..shape };
        self.prepare(&shape, combining(operation))
    }

    pub(crate) fn prepare<T: Pod>(&self, shape: &Shape, how: Combining) -> Result<Plan<T>> {
        let call = || format!("{:?}_init", shape.operation).to_lowercase();
        if shape.root >= self.size() {
            let cause = crate::Cause::NoSuchRank { rank: Rank(shape.root as u32), size: self.size() };
            return Err(self.messages().worker().fault(cause, call));
        }
        let bytes = shape.bytes_at_most();
        if bytes.is_none_or(|bytes| bytes >= RANGE_BYTES) {
            let (wanted, limit) = (bytes.unwrap_or(u64::MAX), "the address range of a rank".into());
            let cause = crate::Cause::NoMemory { wanted, available: RANGE_BYTES - 1, limit };
            return Err(self.messages().worker().fault(cause, call));
        }
        let inner = self.inner().plan_for(shape, how, &|| self.start_helper())?;
        let passed = ChunkShape::of(shape, self.rank().index(), size_of::<T>());
        if shape.operation == CollectiveKind::Alltoall {
            return Ok(Plan::of_two(inner, passed));
        }
        Ok(Plan { inner, gives: tasuki_schedule::DATA, gets: tasuki_schedule::DATA, passed, of: PhantomData })
    }

    /// Returns when all that members have dropped of this communicator's plans is freed, and what it keeps for
    /// collective calls that were made again and again: they are arranged anew when they come again. Collective.
    ///
    /// Error: a plan that all have dropped was started more often by some members than by others, or a start of it
    /// has failed, so it will never be over. Its memory stays as long as the job; the next call frees what else there
    /// is.
    pub fn quiesce(&self) -> Result<()> {
        self.inner().quiesce()
    }
}
