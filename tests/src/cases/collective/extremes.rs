//! G12, D: the least and the greatest of values with NaN, zeros of both signs and infinities. Every call, plan and
//! command gives the same bits.

use crate::exchange::effort;
use std::fmt::Debug;
use tasuki::collective::{Complex, Max, MaxAbs, MaxLoc, Min, MinAbs, MinLoc, PlanReduceOp, ValueLoc};
use tasuki::engine::{Combine, RemoteQueue};
use tasuki::{Command, Communicator, Job, Pod, Rank, Request, Result};

/// The bits of every NaN that a call returns.
const NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0000);

/// Calls of a kind. The first three run by messages, the others by compiled schedules.
const CALLS: usize = 6;

/// The value of a rank in a column. NaNs have signs and payloads of their own.
fn value(ranks: usize, holder: usize, rank: usize, column: usize) -> f64 {
    let holds = rank == holder;
    match column % 4 {
        0 if holds => f64::from_bits(NAN.to_bits() | (rank as u64 + 1) | (rank as u64 % 2) << 63),
        1 => {
            if holds {
                -0.0
            } else {
                0.0
            }
        }
        2 => {
            if holds {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        3 => {
            if (rank + holder).is_multiple_of(2) {
                2.0
            } else {
                -2.0
            }
        }
        _ => ((rank + column) % ranks) as f64 - 1.0,
    }
}

fn or_nan(is_better: impl Fn(f64, f64) -> bool) -> impl Fn(f64, f64) -> f64 {
    move |a, b| {
        if a.is_nan() || b.is_nan() {
            NAN
        } else if is_better(a, b) {
            b
        } else {
            a
        }
    }
}

/// All calls and plans combine the members' values of a column as `fold` does.
fn agree<T: Pod + Debug + Send + Sync>(
    world: &Communicator,
    operation: impl PlanReduceOp<T> + Copy,
    value: impl Fn(usize, usize) -> T,
    fold: impl Fn(T, T) -> T,
) -> Result<()> {
    let (me, size) = (world.rank().index(), world.size());
    for count in [1, 5, 3000] {
        let mut plan = world.allreduce_init::<T>(count, operation)?;
        for call in 0..CALLS {
            let of = |rank: usize, count: usize| -> Vec<T> {
                (call..call + count).map(|at| value(rank, at)).collect()
            };
            let folded = |ranks: std::ops::RangeInclusive<usize>, count: usize| -> Vec<T> {
                let at =
                    |at| ranks.clone().map(|rank| value(rank, at)).reduce(&fold).expect("there are ranks");
                (call..call + count).map(at).collect()
            };
            let (mine, all) = (of(me, count), folded(0..=size - 1, count));
            let check = |what: &str, got: &[T], expected: &[T]| {
                let bits = |values: &[T]| bytemuck::cast_slice::<T, u8>(values).to_vec();
                let wrong =
                    got.iter().zip(expected).find(|(got, expected)| bits(&[**got]) != bits(&[**expected]));
                assert!(
                    wrong.is_none() && got.len() == expected.len(),
                    "{what} of {count}, call {call}: {wrong:?}"
                );
            };
            check("allreduce", &world.allreduce(&mine, operation)?, &all);
            check("iallreduce", &world.iallreduce(mine.clone(), operation)?.wait()?, &all);
            check("scan", &world.scan(&mine, operation)?, &folded(0..=me, count));
            for root in (0..size).map(Rank) {
                if let Some(got) = world.reduce(&mine, operation, root)? {
                    check("reduce", &got, &all);
                }
            }
            plan.input()?.copy_from_slice(&mine);
            plan.start()?;
            plan.wait()?;
            check("a plan", plan.result()?, &all);
            let block = folded(0..=size - 1, size * count)[me * count..][..count].to_vec();
            check("reduce_scatter", &world.reduce_scatter(&of(me, size * count), operation)?, &block);
        }
    }
    Ok(())
}

/// G12: the result does not depend on the call, its root, its length, or which member holds the NaN.
pub fn g12_nan_and_zeros_in_every_call(job: &Job) -> Result<()> {
    let size = job.size();
    for holder in size - effort(job, size, 1)..size {
        let world = job.world().split((0, job.rank().0 as isize))?;
        let of = |rank, column| value(size, holder, rank, column);
        match holder % 2 {
            0 => agree(&world, Min, of, or_nan(|a, b| b.total_cmp(&a).is_lt()))?,
            _ => agree(&world, Max, of, or_nan(|a, b| b.total_cmp(&a).is_gt()))?,
        }
    }
    job.barrier()
}

/// G12: if values are equally far from zero, the value of the lowest member is the result; if values with locations are
/// equal, the lowest location is.
pub fn g12_nan_and_ties_in_every_call(job: &Job) -> Result<()> {
    let size = job.size();
    for holder in size - effort(job, size, 1)..size {
        let world = job.world().split((0, job.rank().0 as isize))?;
        let of = |rank, column| value(size, holder, rank, column);
        let complex = |rank, column: usize| {
            let (one, other) = (value(size, holder, rank, column), (rank % 2) as f64);
            if column % 8 < 4 { Complex { re: one, im: other } } else { Complex { re: other, im: one } }
        };
        let located =
            |rank, column| ValueLoc { value: of(rank, column), at: (rank as u64 + 3) % size as u64 };
        let locate = |least: bool| {
            move |a: ValueLoc<f64>, b: ValueLoc<f64>| match (a.value.is_nan(), b.value.is_nan()) {
                (false, false) => match a.value.total_cmp(&b.value) {
                    std::cmp::Ordering::Equal => ValueLoc { at: a.at.min(b.at), ..a },
                    order => {
                        if order.is_lt() == least {
                            a
                        } else {
                            b
                        }
                    }
                },
                (true, true) => ValueLoc { value: NAN, at: a.at.min(b.at) },
                (true, false) => ValueLoc { value: NAN, ..a },
                (false, true) => ValueLoc { value: NAN, ..b },
            }
        };
        match holder % 5 {
            0 => agree(&world, MinAbs, of, or_nan(|a, b| b.abs() < a.abs()))?,
            1 => agree(&world, MaxLoc, located, locate(false))?,
            2 => agree(&world, MinLoc, located, locate(true))?,
            3 => agree(&world, MaxAbs, of, or_nan(|a, b| b.abs() > a.abs()))?,
            _ => agree(&world, MaxAbs, complex, |a, b| {
                let sizes = [a, b].map(|z| z.re.abs() + z.im.abs());
                match sizes.iter().any(|size| size.is_nan()) {
                    true => Complex { re: NAN, im: NAN },
                    false if sizes[1] > sizes[0] => b,
                    false => a,
                }
            })?,
        }
    }
    job.barrier()
}

/// D: commands of all ranks combine their values in any order. The result has the same bits as that of a collective
/// call.
pub fn d_commands_combine_nan_as_calls_do(job: &Job) -> Result<()> {
    const COUNT: usize = 300;
    let (name, done, me, root) = (job.alloc::<RemoteQueue>(1)?, job.signal()?, job.rank(), Rank(0));
    let (parts, results) = (job.alloc::<f64>(COUNT)?, job.alloc::<f64>(COUNT)?);
    let queue = job.queue(64)?;
    job.put(name.on(me), &[queue.remote()])?;
    job.barrier()?;
    let mut theirs = [queue.remote()];
    job.get(name.on(root), &mut theirs)?;
    let mut rounds = 0;
    for holder in 0..job.size() {
        let mine: Vec<f64> = (0..COUNT).map(|at| value(job.size(), holder, me.index(), at)).collect();
        for (combine, first) in [(Combine::Min, f64::INFINITY), (Combine::Max, f64::NEG_INFINITY)] {
            job.put(parts.on(me), &mine)?;
            results.fill(first)?;
            job.barrier()?;
            let reduce = Command::reduce(parts.on(me), results.on(root), COUNT, combine);
            theirs[0].post(job, reduce.then(done.on(root).add(1)))?;
            rounds += 1;
            let expected = match combine {
                Combine::Min => job.world().allreduce(&mine, Min)?,
                _ => job.world().allreduce(&mine, Max)?,
            };
            if me == root {
                done.wait_at_least(rounds * job.size() as u64)?;
                let got = results.to_vec()?;
                // One member's allreduce combines nothing, so a NaN keeps its own bits there.
                let same = |(got, expected): (&f64, &f64)| {
                    got.to_bits() == expected.to_bits() || (got.is_nan() && job.size() == 1)
                };
                assert!(got.iter().zip(&expected).all(same), "{combine:?}, holder {holder}");
            }
            job.barrier()?;
        }
    }
    drop(queue);
    job.barrier()
}
