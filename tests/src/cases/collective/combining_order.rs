//! J: the same values give the same bits in every call, begun call and plan, at every repetition: those of a serial
//! reference in the combining order. Runners with and without helpers compare with the same reference.

use crate::exchange::effort;
use std::fmt::Debug;
use std::ops::{Add, Mul};
use tasuki::collective::{Complex, PlanReduceOp, Product, quiesce};
use tasuki::{Communicator, Job, Plan, Pod, Rank, Request, Result, Sum};

/// Number of values that are combined from the left.
const GROUP: usize = 32;
/// Calls of a kind. The first three run by messages, the others by compiled schedules.
const CALLS: usize = 6;

/// The value of a member in a column, such that the order of combining shows in the result.
fn value(member: usize, column: usize) -> f64 {
    match column % 3 {
        // 1, and half a unit in its last place for all others: added one by one nothing comes of them.
        0 if member == 0 => 1.0,
        0 => f64::EPSILON / 2.0,
        // The same in single precision.
        1 if member == 1 => 1.0,
        1 => f64::from(f32::EPSILON) / 2.0,
        // Numbers around 1 with all digits.
        _ => 0.75 + ((member * 7919 + column * 104_729) % 1013) as f64 / 2027.0,
    }
}

/// Combines values in the combining order.
fn combined<T: Copy>(mut values: Vec<T>, fold: impl Fn(T, T) -> T) -> T {
    while values.len() > 1 {
        let of_group = |group: &[T]| group.iter().copied().reduce(&fold).expect("a group has values");
        values = values.chunks(GROUP).map(of_group).collect();
    }
    values[0]
}

/// An operation, its reference, and the values of members.
struct Reference<O, V, F> {
    operation: O,
    value: V,
    fold: F,
}

impl<O, V, F> Reference<O, V, F> {
    /// The values of a member from column `first` on.
    fn of<T: Pod>(&self, member: usize, first: usize, count: usize) -> Vec<T>
    where
        V: Fn(usize, usize) -> T,
    {
        (first..first + count).map(|column| (self.value)(member, column)).collect()
    }

    /// Checks the bits of what the first `members` members combine from column `first` on.
    fn check<T: Pod + Debug>(&self, what: &str, got: &[T], members: usize, first: usize)
    where
        V: Fn(usize, usize) -> T,
        F: Fn(T, T) -> T,
    {
        for (at, got) in got.iter().enumerate() {
            let of_member = |member| (self.value)(member, first + at);
            let expected = combined((0..members).map(of_member).collect(), &self.fold);
            assert!(
                bytemuck::bytes_of(got) == bytemuck::bytes_of(&expected),
                "{what} of {members} members, value {at}: {got:?}, not {expected:?}"
            );
        }
    }
}

/// Makes all plans of a reduction, and starts each a few times.
fn plans<T: Pod + Debug + Send + Sync>(
    job: &Job,
    count: usize,
    reference: &Reference<impl PlanReduceOp<T> + Copy, impl Fn(usize, usize) -> T, impl Fn(T, T) -> T>,
) -> Result<()> {
    let (world, me, size) = (job.world(), job.rank().index(), job.size());
    let operation = reference.operation;
    let mut sum = world.allreduce_init::<T>(count, operation)?;
    let roots = [0, size / 2, size - 1];
    let mut root_sums = Vec::new();
    for root in roots {
        root_sums.push(world.reduce_init::<T>(count, operation, Rank(root))?);
    }
    let mut scan = world.scan_init::<T>(count, operation)?;
    let mut exscan = world.exscan_init::<T>(count, operation)?;
    let mut block = world.reduce_scatter_init::<T>(count, operation)?;
    for start in 0..effort(job, 3, 2) {
        let mine = reference.of(me, start, count);
        for plan in [&mut sum, &mut scan, &mut exscan].into_iter().chain(&mut root_sums) {
            plan.input()?.copy_from_slice(&mine);
            plan.start()?;
        }
        block.input()?.copy_from_slice(&reference.of(me, start, size * count));
        block.start()?;
        [&mut sum, &mut scan, &mut exscan, &mut block].into_iter().try_for_each(Plan::wait)?;
        root_sums.iter_mut().try_for_each(Plan::wait)?;
        reference.check("allreduce_init", sum.result()?, size, start);
        for (root, plan) in roots.into_iter().zip(&mut root_sums).filter(|(root, _)| *root == me) {
            reference.check(&format!("reduce_init to {root}"), plan.result()?, size, start);
        }
        reference.check("scan_init", scan.result()?, me + 1, start);
        if me > 0 {
            reference.check("exscan_init", exscan.result()?, me, start);
        }
        reference.check("reduce_scatter_init", block.result()?, size, start + me * count);
    }
    Ok(())
}

/// Makes all calls and begun calls of a reduction once.
fn calls<T: Pod + Debug + Send + Sync>(
    world: &Communicator,
    count: usize,
    reference: &Reference<impl PlanReduceOp<T> + Copy, impl Fn(usize, usize) -> T, impl Fn(T, T) -> T>,
) -> Result<()> {
    let (me, size, operation) = (world.rank().index(), world.size(), reference.operation);
    let mine = reference.of(me, 0, count);
    reference.check("allreduce", &world.allreduce(&mine, operation)?, size, 0);
    reference.check("iallreduce", &world.iallreduce(mine.clone(), operation)?.wait()?, size, 0);
    for root in [0, size / 2, size - 1].map(Rank) {
        if let Some(got) = world.reduce(&mine, operation, root)? {
            reference.check("reduce", &got, size, 0);
        }
        if let Some(got) = world.ireduce(mine.clone(), operation, root)?.wait()? {
            reference.check("ireduce", &got, size, 0);
        }
    }
    reference.check("scan", &world.scan(&mine, operation)?, me + 1, 0);
    reference.check("iscan", &world.iscan(mine.clone(), operation)?.wait()?, me + 1, 0);
    if let Some(got) = world.exscan(&mine, operation)? {
        reference.check("exscan", &got, me, 0);
    }
    if let Some(got) = world.iexscan(mine, operation)?.wait()? {
        reference.check("iexscan", &got, me, 0);
    }
    let blocks = reference.of(me, 0, size * count);
    reference.check("reduce_scatter", &world.reduce_scatter(&blocks, operation)?, size, me * count);
    let mut begun = world.ireduce_scatter(blocks, operation)?;
    reference.check("ireduce_scatter", &begun.wait()?, size, me * count);
    Ok(())
}

/// Runs `$body` for sum and product of every type of floating-point numbers, with a reference as its argument.
macro_rules! of_every_type {
    ($body:expr) => {
        of_every_type!(@one $body, |member, column| value(member, column) as f32);
        of_every_type!(@one $body, value);
        of_every_type!(@one $body, |member, column| Complex::<f32> {
            re: value(member, column) as f32,
            im: value(member, column + 1) as f32,
        });
        of_every_type!(@one $body, |member, column| Complex::<f64> {
            re: value(member, column),
            im: value(member, column + 1),
        });
    };
    (@one $body:expr, $value:expr) => {
        $body(&Reference { operation: Sum, value: $value, fold: |a, b| Add::add(a, b) })?;
        $body(&Reference { operation: Product, value: $value, fold: |a, b| Mul::mul(a, b) })?;
    };
}

/// Every kind of plan.
pub fn j_plans_keep_the_combining_order(job: &Job) -> Result<()> {
    for &count in &[20, 3000][..effort(job, 2, 1)] {
        of_every_type!(|reference| plans(job, count, reference));
    }
    Ok(())
}

/// Every kind of call, blocking and begun, at the first repetitions and after `quiesce`.
pub fn j_calls_keep_the_combining_order(job: &Job) -> Result<()> {
    for &count in &[20, 3000][..effort(job, 2, 1)] {
        let world = job.world().split((0, job.rank().0 as isize))?;
        for call in 0..effort(job, CALLS + 2, 5) {
            if call == effort(job, CALLS, 4) {
                quiesce(&world)?;
            }
            of_every_type!(|reference| calls(&world, count, reference));
        }
    }
    Ok(())
}
