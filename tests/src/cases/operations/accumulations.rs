//! Accumulations: the values that many ranks combine in one place, and the previous values that they get.

use crate::cases::kinds_of_memory::{Areas, KINDS, Kind};
use crate::exchange::{effort, last};
use crate::expected_error::{misused, refused};
use std::fmt::Debug;
use tasuki::collective::{And, Max, MaxAbs, Min, Or, Product, Xor};
use tasuki::onesided::{Accumulable, BuiltinOp};
use tasuki::{ErrorKind, GlobalPtr, Job, Rank, Result, Sum};

/// A type of numbers on which the cases of this file run.
trait Tested: Accumulable + Debug + PartialEq {
    fn of(value: i32) -> Self;
}

macro_rules! tested {
    ($($type:ty),*) => {$(impl Tested for $type {
        fn of(value: i32) -> $type {
            value as $type
        }
    })*};
}

tested!(i32, u32, i64, u64, f32, f64);

/// All ranks combine two values each with those of the last rank, in each kind of memory, where the values beside them
/// stay. The result is that of any order.
fn in_every_memory<T: Tested>(
    job: &Job,
    operation: impl BuiltinOp<T> + Copy,
    of_rank: fn(i32) -> [i32; 2],
) -> Result<()> {
    let size = size_of::<T>();
    let areas = Areas::new(job, 4 * size)?;
    for kind in KINDS {
        let place: GlobalPtr<T> = areas.on(kind, last(job)).cast();
        let first = [7, 1, 1, 7].map(T::of);
        if job.rank() == Rank(0) {
            job.put(place, &first)?;
        }
        job.barrier()?;
        let own = of_rank(job.rank().0 as i32).map(T::of);
        job.accumulate(place.at(1), &own, operation)?;
        job.barrier()?;
        let mut expected = first;
        for rank in 0..job.size() as i32 {
            operation.combine(&mut expected[1..3], &of_rank(rank).map(T::of));
        }
        let mut found = [T::zeroed(); 4];
        job.get(place, &mut found)?;
        assert_eq!(found, expected, "{kind:?} memory");
        job.barrier()?;
    }
    Ok(())
}

/// Accumulations of every type of number, with each kind of operation.
pub fn accumulations_lose_nothing(job: &Job) -> Result<()> {
    fn numbers<T: Tested>(job: &Job) -> Result<()>
    where
        Sum: BuiltinOp<T>,
        Product: BuiltinOp<T>,
        Min: BuiltinOp<T>,
        Max: BuiltinOp<T>,
        MaxAbs: BuiltinOp<T>,
    {
        in_every_memory::<T>(job, Sum, |rank| [rank + 1, 3 * rank])?;
        in_every_memory::<T>(job, Product, |rank| [rank + 1, 2])?;
        in_every_memory::<T>(job, Min, |rank| [5 - rank, rank])?;
        in_every_memory::<T>(job, Max, |rank| [5 - rank, rank])?;
        in_every_memory::<T>(job, MaxAbs, |rank| [rank, 20 - rank])
    }
    fn bits<T: Tested>(job: &Job) -> Result<()>
    where
        And: BuiltinOp<T>,
        Or: BuiltinOp<T>,
        Xor: BuiltinOp<T>,
    {
        in_every_memory::<T>(job, And, |rank| [!(2 << rank), 1])?;
        in_every_memory::<T>(job, Or, |rank| [2 << rank, 0])?;
        in_every_memory::<T>(job, Xor, |rank| [6 << rank, 1])
    }
    numbers::<i32>(job)?;
    numbers::<u32>(job)?;
    numbers::<i64>(job)?;
    numbers::<u64>(job)?;
    numbers::<f32>(job)?;
    numbers::<f64>(job)?;
    bits::<i32>(job)?;
    bits::<u32>(job)?;
    bits::<i64>(job)?;
    bits::<u64>(job)
}

/// All ranks add 1 to a number again and again and get each previous value exactly once, as integers do by one atomic
/// and floating-point numbers by compare and swap.
pub fn previous_values_come_once(job: &Job) -> Result<()> {
    fn counted<T: Tested>(job: &Job, to_word: fn(T) -> u64) -> Result<()>
    where
        Sum: BuiltinOp<T>,
    {
        let areas = Areas::new(job, 8)?;
        for kind in KINDS {
            let rounds = if kind == Kind::Job { effort(job, 5_000, 20) } else { effort(job, 100, 10) };
            let place: GlobalPtr<T> = areas.on(kind, Rank(0)).cast();
            job.barrier()?;
            let before = (0..rounds).map(|_| job.fetch_and_op(place, T::of(1), Sum).map(to_word));
            let before = before.collect::<Result<Vec<u64>>>()?;
            assert!(before.is_sorted(), "a rank sees the number grow");
            let mut all = job.world().allgather(&before)?;
            all.sort_unstable();
            assert!(all.iter().zip(0..).all(|(&found, expected)| found == expected), "{kind:?} memory");
            job.barrier()?;
        }
        Ok(())
    }
    counted::<u32>(job, u64::from)?;
    counted::<i64>(job, |before| before as u64)?;
    counted::<f32>(job, |before| before as u64)?;
    counted::<f64>(job, |before| before as u64)
}

/// Wrong addresses are refused. The values before the first that has no place are combined.
pub fn accumulations_outside_are_refused(job: &Job) -> Result<()> {
    let table = job.alloc::<f64>(8192)?; // whole pages
    let place = table.on(last(job));
    misused(job, job.accumulate(GlobalPtr::<f64>::NULL, &1.0, Sum), &["accumulate(", "null"]);
    misused(job, job.fetch_and_op(GlobalPtr::<i32>::NULL, 1, Max), &["fetch_and_op("]);
    let askew = place.cast::<u8>().at(3).cast::<u32>();
    misused(job, job.fetch_and_op(askew, 1, Sum), &["multiple of"]);
    job.barrier()?;
    if job.rank() == last(job) {
        refused(job, job.accumulate(place.at(8191), &[2.0, 3.0], Sum), ErrorKind::Misuse, &["accumulate("]);
        assert_eq!(table.get(8191)?, 2.0);
    }
    job.barrier()
}
