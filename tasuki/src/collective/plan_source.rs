//! The schedules of the program that plans run.

use crate::collective::PlanReduceOp;
use crate::collective::blocking::name_type;
use crate::collective::plan::{plan_values, shared};
use crate::engine::Cause;
use crate::schedule::Schedule;
use crate::{Communicator, Plan, Pod, Result};
use tasuki_core::queue::reduction::{ReduceOperation, SharedOperation};
use tasuki_schedule::StepKind;

/// What [`Communicator::plan`] prepares: `&schedule`, which moves bytes; or `(&schedule, operation)`, whose steps
/// combine values of one type.
///
/// ```
/// use tasuki::schedule::{CollectiveKind, Shape};
/// use tasuki::{Plan, Request, Sum};
/// tasuki::local(2, |job| {
///     let bcast = Shape::new(CollectiveKind::Bcast, 2, 0, 8).build("my broadcast", |b| {
///         let data = b.buffer("data", b.bytes());
///         b.copy(data.on(0), data.on(1));
///     });
///     let reduce = Shape::new(CollectiveKind::Reduce, 2, 0, 8).build("my reduction", |b| {
///         let data = b.buffer("data", b.bytes());
///         b.reduce(data.on(1), data.on(0), false);
///     });
///     let mut bytes: Plan<u8> = job.world().plan(&bcast)?;
///     let mut sum: Plan<f64> = job.world().plan((&reduce, Sum))?;
///     bytes.start()?;
///     sum.input()?[0] = 0.5;
///     sum.start()?;
///     bytes.wait()?;
///     sum.wait()?;
///     assert!(job.rank() != 0 || sum.result()? == [1.0]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a schedule for a plan of `{T}`",
    note = "pass `&schedule`, for a plan of bytes, or `(&schedule, operation)`"
)]
pub trait PlanSource<T: Pod>: sealed::SealedSource {
    /// Prepares the plan.
    #[doc(hidden)]
    fn plan(self, on: &Communicator) -> Result<Plan<T>>;
}

impl PlanSource<u8> for &Schedule {
    fn plan(self, on: &Communicator) -> Result<Plan<u8>> {
        on.plan_of(self, None, ReduceOperation::Nothing)
    }
}

impl<T: Pod, O: PlanReduceOp<T>> PlanSource<T> for (&Schedule, O) {
    fn plan(self, on: &Communicator) -> Result<Plan<T>> {
        on.plan_of(self.0, Some(size_of::<T>() as u64), shared::<T>(self.1))
    }
}

impl Communicator {
    /// Prepares a schedule of the program. All members pass the same schedule: `&schedule`, for a plan of bytes; or
    /// `(&schedule, operation)`, whose steps combine values of one type by the operation.
    ///
    /// If the schedule was not proved correct before, each member now proves it for the whole group, which takes memory
    /// that grows with the square of the number of its steps ([`Schedule::check`](crate::schedule::Schedule::check)).
    /// [`Schedule::trusted`](crate::schedule::Schedule::trusted) omits the proof. A plan of an incorrect schedule may
    /// never complete, or leave any bytes in its buffers.
    ///
    /// Errors: the first fault of the schedule; members pass different schedules; a member has no room; the operation
    /// is a closure, and a step combines values in the memory of a rank other than the one that has the step; a step
    /// combines bytes that are not whole values.
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// use tasuki::schedule::{Builder, CollectiveKind, Shape};
    ///
    /// fn reduce_to_first(b: &mut Builder) {
    ///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
    ///     for &rank in &ranks[1..] {
    ///         let before = b.last_write(data.on(ranks[0]));
    ///         b.reduce(data.on(rank), data.on(ranks[0]), false).after(before);
    ///     }
    /// }
    /// tasuki::local(3, |job| {
    ///     let sum = Shape::new(CollectiveKind::Reduce, 3, 0, 16).build("my reduction", reduce_to_first);
    ///     let mut plan = job.world().plan((&sum.driven_by(2), Sum))?; // rank 2 runs all steps
    ///     plan.input()?.copy_from_slice(&[1.5, job.rank().0 as f64]);
    ///     plan.start()?;
    ///     plan.wait()?;
    ///     assert!(job.rank().0 != 0 || plan.result()? == [4.5, 3.0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn plan<T: Pod>(&self, schedule: impl PlanSource<T>) -> Result<Plan<T>> {
        schedule.plan(self)
    }

    /// Prepares a schedule. With `value_bytes` its steps combine values of that size.
    fn plan_of<T: Pod>(
        &self,
        schedule: &Schedule,
        value_bytes: Option<u64>,
        operation: SharedOperation,
    ) -> Result<Plan<T>> {
        let call = || format!("plan({})", schedule.name());
        let refused = |text| self.inner().refuse(Cause::Argument(text), "plan", &call);
        if !schedule.is_trusted() {
            schedule.check().map_err(|fault| refused(fault.to_string()))?;
        }
        if let Some(text) = value_bytes.and_then(|bytes| partial_values(schedule, bytes)) {
            return Err(refused(text));
        }
        Ok(Plan::new(
            self.inner()
                .plan(schedule, plan_values::<T>(operation), &|| self.start_helper())
                .map_err(name_type::<T>)?,
            None,
        ))
    }
}

/// Returns the text that a step combines bytes that are not whole values, if one does.
fn partial_values(schedule: &Schedule, value_bytes: u64) -> Option<String> {
    (0..schedule.ranks()).find_map(|rank| {
        let part = schedule.part(rank);
        part.steps().iter().enumerate().find_map(|(number, step)| match step.action {
            StepKind::Reduce { bytes, .. } if !bytes.is_multiple_of(value_bytes.max(1)) => Some(format!(
                "step {number} of rank {rank} combines {bytes} bytes, which are not a multiple of the value size \
                 {value_bytes}"
            )),
            _ => None,
        })
    })
}

mod sealed {
    use crate::schedule::Schedule;

    pub trait SealedSource {}
    impl SealedSource for &Schedule {}
    impl<O> SealedSource for (&Schedule, O) {}
}
