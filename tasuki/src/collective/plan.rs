//! Plans: collectives that are prepared once and started many times.

use crate::collective::blocking::name_type;
use crate::collective::{BlockCount, BlockCounts};
use crate::message::Peer;
use crate::reduction::reduce_op::{self, OnBytes};
use crate::request::{Request, finish_limited, future_by_request};
use crate::{Communicator, Error, Pod, Rank, Result};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{self, Poll};
use tasuki_collective::{ChunkShape, PlanValues};
use tasuki_core::base::ValueKind;
use tasuki_core::engine::AwaitedCondition;
use tasuki_core::queue::reduction::{ReduceOperation, SharedOperation};
use tasuki_core::segment::layout::RANGE_BYTES;
use tasuki_schedule::{BufferId, CollectiveKind, Counts, Shape};

/// A collective of values of one type that the members of a communicator have prepared. MPI calls it a persistent
/// collective.
///
/// A plan has buffers of its own. The program writes this member's values into its [`input`](Plan::input) and reads its
/// [`result`](Plan::result). From [`start`](Plan::start) until [`wait`](Request::wait) returns, the plan owns both and
/// the program may compute. Nothing is reset between starts: the input stays as it is, also that of a reduction. A
/// member may be one start ahead of another that has not read its result yet: the result is not overwritten.
///
/// Who moves a started plan on depends on what its steps are ([progress](crate::engine#progress)). With a helper they
/// are commands, which go on as their data arrive; so are those of the program's own schedules and of plans that only
/// move long blocks. Otherwise, if the members share a node, each member runs its own steps in its calls: this is as
/// fast as the blocking call, but data that a computing member should forward wait until its next call.
///
/// All members make their plans in the same order ([rules](crate::collective#rules)). They may start different plans in
/// different orders, and several plans may be active at the same time. Dropping a plan, also during a start, frees its
/// memory as soon as no member can access it any more ([`quiesce`](crate::collective::quiesce)).
///
/// ```
/// use tasuki::{Rank, Request};
/// tasuki::local(3, |job| {
///     let mut weights = job.world().bcast_init::<f32>(1000, Rank(1))?;
///     for step in 0..10 {
///         if job.rank() == 1 {
///             weights.input()?.fill(step as f32);
///         }
///         weights.start()?;
///         let inner: u64 = (0..1000).sum();                 // work that does not need the weights
///         weights.wait()?;
///         assert_eq!((weights.result()?[999], inner), (step as f32, 499_500));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// A start is complete on this member when its result is in place and its input may be written again. If no start is
/// active, a wait returns at once. Errors of a wait: a member died, or left without having started the plan; a step
/// failed, for instance because the program's operation panicked.
///
/// # Cancel safety
///
/// Dropping a future of a wait, `&mut plan`, changes nothing. A plan that is dropped is freed when no member uses it.
///
/// Source: persistent collectives of MPI-4; Morie et al., persistent collectives run by Tofu2.
pub struct Plan<T> {
    inner: tasuki_collective::Plan,
    /// The layout of the buffers, if they hold equal blocks.
    chunk_shape: Option<Box<ChunkShape>>,
    /// The error that a test has found and the next wait returns.
    failed: Option<Error>,
    awaited: AwaitedCondition,
    of: PhantomData<T>,
}

impl<T> fmt::Debug for Plan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Pod> Plan<T> {
    /// A plan, with the layout of its buffers if they hold equal blocks.
    pub(crate) fn new(inner: tasuki_collective::Plan, chunk_shape: Option<ChunkShape>) -> Plan<T> {
        let (failed, awaited, chunk_shape) = (None, AwaitedCondition::default(), chunk_shape.map(Box::new));
        Plan { inner, chunk_shape, failed, awaited, of: PhantomData }
    }

    /// Starts the plan: from now on it may read this member's input and write its result. Returns at once.
    ///
    /// Errors: the previous start is not complete ([`wait`](Request::wait) or [`test`](Request::test) completes it);
    /// the job is over; there is no memory for a copy of the input. Cost: one raised signal, and the steps that can run
    /// at once; one copy of the input, if the plan is a reduction, or if the input has changed and the plan's buffers
    /// are in job memory ([`input`](Plan::input)).
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(2, |job| {
    ///     let mut sum = job.world().allreduce_init::<f64>(1, Sum)?;
    ///     sum.input()?[0] = 0.5;
    ///     sum.start()?;
    ///     let product: u64 = (1..10).product(); // work that does not need the sum
    ///     sum.wait()?;
    ///     assert_eq!((sum.result()?[0], product), (1.0, 362_880));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn start(&mut self) -> Result<()> {
        self.inner.start()
    }

    /// Returns true if a start is active, as far as this member knows.
    ///
    /// ```
    /// use tasuki::{Rank, Request, Slot};
    /// tasuki::local(2, |job| {
    ///     let mut barrier = job.world().barrier_init()?;
    ///     if job.rank() == 0 {
    ///         barrier.start()?;
    ///         assert!(barrier.is_active()); // rank 1 has not started it yet
    ///         job.world().send(&1, Rank(1), Slot(0))?;
    ///     } else {
    ///         job.world().recv(&mut [0], Rank(0), Slot(0))?;
    ///         barrier.start()?;
    ///     }
    ///     barrier.wait()?;
    ///     assert!(!barrier.is_active());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn is_active(&self) -> bool {
        self.inner.is_active()
    }

    /// This member's input, zeros at first: its own values in a reduction, its own block in a gather, all its blocks in
    /// an exchange; the root's values in a broadcast and its blocks in a scatter, and nothing on the other members. The
    /// plan never changes it. A program that changes one value writes one value.
    ///
    /// Errors: a start is active; the plan is of the program's own schedule, and its inputs are not one behind the
    /// other in one buffer ([`buffer_mut`](Plan::buffer_mut)), or do not begin at a whole value; there is no memory for
    /// a copy.
    ///
    /// Cost: none, if the plan runs in the calls of its members; the slice is the plan's buffer. If the plan is in
    /// command queues, its buffers are in job memory, which other ranks can write. The slice is then a copy in private
    /// memory, which the next start writes there. A reduction has a copy of its input in either form, which each start
    /// writes to where its steps combine values.
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(3, |job| {
    ///     let mut sum = job.world().allreduce_init::<u64>(2, Sum)?;
    ///     sum.input()?.copy_from_slice(&[1, 10]);
    ///     for start in 0..4 {
    ///         sum.input()?[1] = start;                              // the first value stays 1
    ///         sum.start()?;
    ///         sum.wait()?;
    ///         assert_eq!(sum.result()?, [3, 3 * start]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn input(&mut self) -> Result<&mut [T]> {
        values_mut(self.inner.input()?)
    }

    /// This member's result in the last start: all values in an allreduce, the combined block in a reduce-scatter, all
    /// blocks in an allgather. Nothing on a member that gets none, as on all members but the root in a reduction to the
    /// root, and on the first member in an exclusive scan. Before the first start its values are unspecified.
    ///
    /// Errors: those of [`input`](Plan::input). Cost: none, if the plan runs in the calls of its members; if it is in
    /// command queues, one copy of the result after each start. A result is read between two starts only:
    ///
    /// ```compile_fail,E0499
    /// use tasuki::{Request, Sum};
    /// tasuki::local(1, |job| {
    ///     let mut sum = job.world().allreduce_init::<u64>(1, Sum)?;
    ///     let result = sum.result()?;
    ///     sum.start()?;                                            // the steps write the result
    ///     assert_eq!(result, [0]);
    ///     sum.wait()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn result(&mut self) -> Result<&[T]> {
        values(self.inner.result()?)
    }

    /// A buffer of the program's own schedule on this member, as the last start has left it.
    ///
    /// Errors: a start is active; the plan is of the library, or the schedule has no such buffer for the program; there
    /// is no memory for a copy. Cost: one copy of the buffer after each start.
    ///
    /// ```
    /// use tasuki::schedule::{BufferId, CollectiveKind, Shape};
    /// use tasuki::{Plan, Request};
    /// tasuki::local(2, |job| {
    ///     let bcast = Shape::new(CollectiveKind::Bcast, 2, 0, 4).build("my broadcast", |b| {
    ///         let data = b.buffer("data", b.bytes());
    ///         b.copy(data.on(0), data.on(1));
    ///     });
    ///     let mut plan: Plan<u8> = job.world().plan(&bcast)?;
    ///     if job.rank() == 0 {
    ///         plan.input()?.fill(7);
    ///     }
    ///     plan.start()?;
    ///     plan.wait()?;
    ///     assert_eq!(plan.buffer(BufferId::FIRST)?, [7; 4]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn buffer(&mut self, buffer: BufferId) -> Result<&[T]> {
        values(self.inner.buffer(buffer, false)?)
    }

    /// A buffer of the program's own schedule on this member, to be changed before the next start, which writes the
    /// whole buffer. If the program also uses [`input`](Plan::input), the input replaces what the buffer has in its
    /// place.
    ///
    /// Errors and cost: those of [`buffer`](Plan::buffer), and one more copy in the next start.
    ///
    /// ```
    /// use tasuki::schedule::{BufferId, CollectiveKind, Shape};
    /// use tasuki::{Plan, Request};
    /// tasuki::local(2, |job| {
    ///     let bcast = Shape::new(CollectiveKind::Bcast, 2, 0, 8).build("my broadcast", |b| {
    ///         let data = b.buffer("data", b.bytes());
    ///         b.copy(data.on(0), data.on(1));
    ///     });
    ///     let mut plan: Plan<u8> = job.world().plan(&bcast)?;
    ///     plan.buffer_mut(BufferId::FIRST)?.fill(job.rank().0 as u8 + 5);
    ///     plan.start()?;
    ///     plan.wait()?;
    ///     assert_eq!(plan.buffer(BufferId::FIRST)?, [5; 8]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn buffer_mut(&mut self, buffer: BufferId) -> Result<&mut [T]> {
        values_mut(self.inner.buffer(buffer, true)?)
    }

    /// The inner plan, and the layout of its buffers if they hold equal blocks.
    pub(crate) fn into_parts(self) -> (tasuki_collective::Plan, Option<ChunkShape>) {
        (self.inner, self.chunk_shape.map(|chunk_shape| *chunk_shape))
    }
}

impl<T: Pod> Request for Plan<T> {
    type Value = ();

    fn test(&mut self) -> bool {
        let tested = if self.failed.is_some() { Ok(true) } else { self.inner.test() };
        tested.unwrap_or_else(|error| {
            self.failed = Some(error);
            true
        })
    }

    #[inline]
    fn wait(&mut self) -> Result<()> {
        if self.failed.is_none() && self.inner.has_limit() {
            finish_limited(self)?;
        }
        match self.failed.take() {
            None => self.inner.wait(),
            Some(error) => Err(error),
        }
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if self.failed.is_some() {
            return Poll::Ready(());
        }
        let polled = self.inner.poll(context.waker(), &mut self.awaited);
        polled.map(|over| self.failed = over.err())
    }
}

future_by_request!([T: Pod] Plan<T>);

/// The whole values that these bytes are. Error: they do not begin at a whole value.
#[inline]
fn values<T: Pod>(bytes: &[u8]) -> Result<&[T]> {
    bytemuck::try_cast_slice(&bytes[..whole::<T>(bytes.len())]).map_err(|_| not_whole())
}

#[inline]
fn values_mut<T: Pod>(bytes: &mut [u8]) -> Result<&mut [T]> {
    let whole = whole::<T>(bytes.len());
    bytemuck::try_cast_slice_mut(&mut bytes[..whole]).map_err(|_| not_whole())
}

/// The number of bytes of the whole values in that many bytes.
fn whole<T>(bytes: usize) -> usize {
    bytes - bytes.checked_rem(size_of::<T>()).unwrap_or(bytes)
}

#[cold]
fn not_whole() -> Error {
    Error::argument(
        "the values of this plan do not begin at a whole value of its type: use a schedule of bytes",
    )
}

/// A reduction operation that a plan can store.
///
/// ```
/// use tasuki::collective::{Max, PlanReduceOp};
/// use tasuki::{Communicator, Request, Sum};
/// /// Combines 1, 2, 3, ...
/// fn combine(world: &Communicator, operation: impl PlanReduceOp<i64>) -> tasuki::Result<i64> {
///     let mut plan = world.allreduce_init(1, operation)?;
///     plan.input()?[0] = world.rank().index() as i64 + 1;
///     plan.start()?;
///     plan.wait()?;
///     Ok(plan.result()?[0])
/// }
/// tasuki::local(3, |job| {
///     assert_eq!(combine(job.world(), Sum)?, 6);
///     assert_eq!(combine(job.world(), Max)?, 3);
///     assert_eq!(combine(job.world(), |a, b| 10 * a + b)?, 123);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait PlanReduceOp<T>: reduce_op::ReduceOp<T> + Send + Sync + 'static {}

impl<T, O: reduce_op::ReduceOp<T> + Send + Sync + 'static> PlanReduceOp<T> for O {}

pub(crate) fn offset_of<T>(first: usize) -> u64 {
    (first as u64).saturating_mul(size_of::<T>() as u64)
}

/// The sizes in bytes of these numbers of values.
pub(crate) fn byte_counts<T>(counts: &[usize]) -> Vec<usize> {
    counts.iter().map(|&count| byte_count::<T>(count)).collect()
}

pub(crate) fn byte_count<T>(count: usize) -> usize {
    count.saturating_mul(size_of::<T>())
}

/// The values of a plan of type `T`.
pub(crate) fn plan_values<T: Pod>(operation: SharedOperation) -> PlanValues {
    PlanValues { kind: ValueKind::of::<T>(), operation }
}

/// The operation, in the form in which a plan owns it.
pub(crate) fn shared<T: Pod>(operation: impl PlanReduceOp<T>) -> SharedOperation {
    OnBytes::<T, _>::new(operation).owned(|operation| Arc::new(operation) as _)
}

impl Communicator {
    /// Prepares a barrier: a start is complete when all members have started.
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(3, |job| {
    ///     let mut barrier = job.world().barrier_init()?;
    ///     for _ in 0..3 {
    ///         barrier.start()?;
    ///         barrier.wait()?; // all members have started it
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn barrier_init(&self) -> Result<Plan<u8>> {
        self.prepare(&self.shape::<u8>(CollectiveKind::Barrier, Rank(0), 0), ReduceOperation::Nothing)
    }

    /// Prepares a broadcast of `count` values: the root writes them, all members read them.
    ///
    /// ```
    /// use tasuki::{Rank, Request};
    /// tasuki::local(3, |job| {
    ///     let mut limits = job.world().bcast_init::<f64>(2, Rank(2))?;
    ///     for step in 0..3 {
    ///         if job.rank() == 2 {
    ///             limits.input()?.copy_from_slice(&[f64::from(step), 0.5]);
    ///         }
    ///         limits.start()?;
    ///         limits.wait()?;
    ///         assert_eq!(limits.result()?, [f64::from(step), 0.5]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn bcast_init<T: Pod>(&self, count: usize, root: impl Peer) -> Result<Plan<T>> {
        let root = self.root(root, "bcast_init")?;
        self.prepare(&self.shape::<T>(CollectiveKind::Bcast, root.place(), count), ReduceOperation::Nothing)
    }

    /// Prepares a reduction of `count` values: the root reads the combined values of all members.
    ///
    /// Values are combined in the combining order ([`ReduceOp`](crate::collective::ReduceOp)). If the operation is one
    /// of the library for a type that it knows ([`Sum`](crate::Sum) of `f64`, for instance), any rank or helper may
    /// combine. A closure is called only by this rank's threads.
    ///
    /// ```
    /// use tasuki::collective::Max;
    /// use tasuki::{Rank, Request};
    /// tasuki::local(3, |job| {
    ///     let mut most = job.world().reduce_init::<u64>(2, Max, Rank(0))?;
    ///     most.input()?.copy_from_slice(&[job.rank().0 as u64, 7]);
    ///     most.start()?;
    ///     most.wait()?;
    ///     if job.rank() == 0 {
    ///         assert_eq!(most.result()?, [2, 7]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn reduce_init<T: Pod>(
        &self,
        count: usize,
        operation: impl PlanReduceOp<T>,
        root: impl Peer,
    ) -> Result<Plan<T>> {
        let root = self.root(root, "reduce_init")?;
        self.combine(self.shape::<T>(CollectiveKind::Reduce, root.place(), count), operation)
    }

    /// Prepares a reduction of `count` values to all members: each member reads the combined values, equal in every
    /// bit, also to those of a call. [`AnyOrder`](crate::collective::AnyOrder) gives that up for speed.
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(3, |job| {
    ///     let mut sum = job.world().allreduce_init::<f64>(2, Sum)?;
    ///     for step in 0..4 {
    ///         sum.input()?.copy_from_slice(&[job.rank().0 as f64, f64::from(step)]);
    ///         sum.start()?;
    ///         sum.wait()?;
    ///         assert_eq!(sum.result()?, [3.0, 3.0 * f64::from(step)]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn allreduce_init<T: Pod>(&self, count: usize, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::Allreduce, Rank(0), count), operation)
    }

    /// Prepares a reduction of `count` values for each member: a member writes a block for each member, one behind the
    /// other, and reads its own block of the combined values.
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(3, |job| {
    ///     let mut sum = job.world().reduce_scatter_init::<u64>(1, Sum)?;
    ///     sum.input()?.copy_from_slice(&[1, 10, 100]); // a block for each member
    ///     sum.start()?;
    ///     sum.wait()?;
    ///     assert_eq!(sum.result()?, [[3], [30], [300]][job.rank().0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn reduce_scatter_init<T: Pod>(
        &self,
        count: usize,
        operation: impl PlanReduceOp<T>,
    ) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::ReduceScatter, Rank(0), count), operation)
    }

    /// Prepares a scan: each member reads the combined values of the members from the first to itself.
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::collective::Product;
    /// tasuki::local(3, |job| {
    ///     let mut scan = job.world().scan_init::<u64>(1, Product)?;
    ///     scan.input()?[0] = job.rank().0 as u64 + 1;
    ///     scan.start()?;
    ///     scan.wait()?;
    ///     assert_eq!(scan.result()?, [[1], [2], [6]][job.rank().0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn scan_init<T: Pod>(&self, count: usize, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::Scan, Rank(0), count), operation)
    }

    /// Prepares an exclusive scan: each member reads the combined values of the members before it. The first member has
    /// no result.
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(3, |job| {
    ///     let mut before = job.world().exscan_init::<u64>(1, Sum)?;
    ///     before.input()?[0] = 10;
    ///     before.start()?;
    ///     assert!(before.is_active());
    ///     before.wait()?;
    ///     let expected: [&[u64]; 3] = [&[], &[10], &[20]];
    ///     assert_eq!(before.result()?, expected[job.rank().0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn exscan_init<T: Pod>(&self, count: usize, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        self.combine(self.shape::<T>(CollectiveKind::Exscan, Rank(0), count), operation)
    }

    /// Prepares a gather of `count` values from each member, or of `Uneven(count)` values, which may differ between
    /// members. Each member writes its own values; the root reads those of all members in their order.
    ///
    /// ```
    /// use tasuki::{Rank, Request, Uneven};
    /// tasuki::local(3, |job| {
    ///     let count = [1, 0, 2][job.rank().index()];
    ///     let mut rows = job.world().gather_init::<u32>(Uneven(count), Rank(0))?;
    ///     for step in 0..3 {
    ///         rows.input()?.copy_from_slice(&[10 * step + 2, 10 * step + 3][..count]);
    ///         rows.start()?;
    ///         rows.wait()?;
    ///         assert!(job.rank() != 0 || rows.result()? == [2, 2, 3].map(|value| 10 * step + value));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Errors, on all members, none of which gets a plan: members name different roots; some pass a count and others
    /// `Uneven`; a member has no room. Cost of uneven blocks, besides that of any plan: an allgather of 24 bytes, and
    /// during the call 8 bytes of memory for each member.
    pub fn gather_init<T: Pod>(&self, count: impl BlockCount, root: impl Peer) -> Result<Plan<T>> {
        let root = self.root(root, "gather_init")?;
        self.prepare_gather(CollectiveKind::Gather, count, Some(root.place()))
    }

    /// Prepares a scatter of `count` values for each member, or, with `&counts`, of one number of values for each. The
    /// root writes all blocks one behind the other. Each member reads its own block. Only the root's `&counts` are
    /// used; the others learn the lengths.
    ///
    /// ```
    /// use tasuki::{Rank, Request};
    /// tasuki::local(3, |job| {
    ///     let counts: &[usize] = if job.rank() == 0 { &[0, 2, 1] } else { &[] };
    ///     let mut blocks = job.world().scatter_init::<u32>(counts, Rank(0))?;
    ///     if job.rank() == 0 {
    ///         blocks.input()?.copy_from_slice(&[5, 6, 7]);
    ///     }
    ///     blocks.start()?;
    ///     blocks.wait()?;
    ///     assert_eq!(blocks.result()?, [&[][..], &[5, 6], &[7]][job.rank().index()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Errors and cost: those of [`Communicator::gather_init`], and a broadcast of 8 bytes for each member; the root
    /// has not one count for each member.
    pub fn scatter_init<T: Pod>(&self, counts: impl BlockCounts, root: impl Peer) -> Result<Plan<T>> {
        let root = self.root(root, "scatter_init")?.place();
        let counts = match counts.counts() {
            Ok(count) => {
                let shape = self.shape::<T>(CollectiveKind::Scatter, root, count);
                return self.prepare(&shape, ReduceOperation::Nothing);
            }
            Err(counts) => counts.iter().map(|&count| offset_of::<T>(count)).collect::<Vec<u64>>(),
        };
        let blocks = self.inner().learn_blocks(CollectiveKind::Scatter, &counts, root)?;
        self.prepare_blocks(CollectiveKind::Scatter, blocks, root)
    }

    /// Prepares an allgather of `count` values from each member, or of `Uneven(count)` values, which may differ between
    /// members. Each member writes its own values. All members read all values in the order of the members.
    ///
    /// Errors and cost: those of [`Communicator::gather_init`].
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(3, |job| {
    ///     let mut sizes = job.world().allgather_init::<usize>(1)?;
    ///     for step in 0..3 {
    ///         sizes.input()?[0] = 10 * step + job.rank().index();
    ///         sizes.start()?;
    ///         sizes.wait()?;
    ///         assert_eq!(sizes.result()?, [10 * step, 10 * step + 1, 10 * step + 2]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn allgather_init<T: Pod>(&self, count: impl BlockCount) -> Result<Plan<T>> {
        self.prepare_gather(CollectiveKind::Allgather, count, None)
    }

    /// Prepares an exchange of `count` values between each two members: a member writes the values for member `r`
    /// from value `r * count` on, and reads the values of member `r` there. With `&counts`, the numbers of values for
    /// each member, it writes its blocks one behind the other, and reads those of the members in the same way.
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(2, |job| {
    ///     let me = job.rank().index();
    ///     let mut exchange = job.world().alltoall_init(&[1, 2])?;
    ///     for step in 0..3 {
    ///         exchange.input()?.copy_from_slice(&[10 * me + step, 1, 2]);   // one value for rank 0, two for rank 1
    ///         exchange.start()?;
    ///         exchange.wait()?;
    ///         let wanted = if me == 0 { vec![step, 10 + step] } else { vec![1, 2, 1, 2] };
    ///         assert_eq!(exchange.result()?, wanted);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Errors with `&counts`, on all members, none of which gets a plan: a member has not one count for each member, or
    /// no room. Cost of it, besides that of any plan: messages of 8 and of 40 bytes to each member, and during the call
    /// some dozens of bytes of memory for each member. No member learns the lengths of blocks between other members.
    pub fn alltoall_init<T: Pod>(&self, counts: impl BlockCounts) -> Result<Plan<T>> {
        match counts.counts() {
            Ok(count) => {
                let shape = self.shape::<T>(CollectiveKind::Alltoall, Rank(0), count);
                self.prepare(&shape, ReduceOperation::Nothing)
            }
            Err(counts) => {
                let counts = byte_counts::<T>(counts);
                let inner =
                    self.inner().plan_alltoall_v(&counts, ValueKind::of::<T>(), &|| self.start_helper())?;
                Ok(Plan::new(inner, None))
            }
        }
    }

    fn prepare_gather<T: Pod>(
        &self,
        collective: CollectiveKind,
        count: impl BlockCount,
        root: Option<Rank>,
    ) -> Result<Plan<T>> {
        let (count, is_uneven) = count.count();
        if !is_uneven {
            let shape = self.shape::<T>(collective, root.unwrap_or(Rank(0)), count);
            return self.prepare(&shape, ReduceOperation::Nothing);
        }
        let blocks = self.inner().agree_on_blocks(collective, offset_of::<T>(count), root)?;
        self.prepare_blocks(collective, blocks, root.unwrap_or(Rank(0)))
    }

    /// Prepares a collective of blocks with these numbers of bytes.
    fn prepare_blocks<T: Pod>(
        &self,
        collective: CollectiveKind,
        blocks: Arc<[u64]>,
        root: Rank,
    ) -> Result<Plan<T>> {
        let shape = self.shape::<T>(collective, root, 0);
        self.prepare(&Shape { counts: Counts::Each(blocks), ..shape }, ReduceOperation::Nothing)
    }

    pub(crate) fn shape<T>(&self, collective: CollectiveKind, root: Rank, count: usize) -> Shape {
        let value_bytes = size_of::<T>().max(1) as u64;
        let shape = Shape::new(collective, self.size(), root.index(), offset_of::<T>(count));
        Shape { value_bytes, ..shape }
    }

    fn combine<T: Pod>(&self, shape: Shape, operation: impl PlanReduceOp<T>) -> Result<Plan<T>> {
        let shape = Shape { in_order: operation.in_order(), ..shape };
        self.prepare(&shape, shared::<T>(operation))
    }

    pub(crate) fn prepare<T: Pod>(&self, shape: &Shape, operation: SharedOperation) -> Result<Plan<T>> {
        let call = || format!("{}_init", shape.collective.name());
        if shape.root >= self.size() {
            let cause = crate::engine::Cause::NoSuchMember { member: shape.root, size: self.size() };
            return Err(self.inner().refuse(cause, &call(), &call));
        }
        let bytes = shape.bytes_at_most();
        if bytes.is_none_or(|bytes| bytes >= RANGE_BYTES) {
            let (wanted, limit) = (bytes.unwrap_or(u64::MAX), "the address range of a rank".into());
            let cause = crate::engine::Cause::NoMemory { wanted, available: RANGE_BYTES - 1, limit };
            return Err(self.inner().refuse(cause, &call(), &call));
        }
        let inner = self.inner().plan_for(shape, plan_values::<T>(operation), &|| self.start_helper());
        let inner = inner.map_err(name_type::<T>)?;
        let chunk_shape = ChunkShape::of(shape, self.rank().index(), size_of::<T>());
        Ok(Plan::new(inner, chunk_shape))
    }
}

/// Returns when all plans of a communicator that all members have dropped are freed, and also its cached
/// schedules of repeated collective calls, which are compiled again when the calls come again. It also frees the
/// communicators that were split from it, or from which it was recreated, and that all their members have dropped.
///
/// Collective ([rules](crate::collective#rules)). It frees the compiled schedules of nonblocking calls, too, if all
/// members have begun the same number of these calls and all of them are complete. No other thread may begin one
/// meanwhile.
///
/// Error: a plan that all members have dropped was started more often by some members than by others, or a start
/// of it failed, so that it can never complete. Its memory stays allocated as long as the job, or is freed with its
/// communicator if that has failed; the next call frees the other plans.
///
/// ```
/// use tasuki::collective::quiesce;
/// tasuki::local(3, |job| {
///     let world = job.world();
///     let before = job.memory().plans;
///     let plan = world.allreduce_init::<u64>(1000, tasuki::Sum)?;
///     drop(plan);
///     quiesce(world)?;
///     assert!(job.memory().plans <= before);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn quiesce(communicator: &Communicator) -> Result<()> {
    communicator.inner().quiesce()
}
