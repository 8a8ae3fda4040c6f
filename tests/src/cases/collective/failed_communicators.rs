//! J: a call that fails on one member makes the communicator fail on all members. A communicator
//! that is created again works.

use crate::exchange::is_simulated;
use crate::expected_error::refused;
use std::time::Duration;
use tasuki::collective::Max;
use tasuki::engine::Cause;
use tasuki::{Communicator, ErrorKind, Job, Pod, Rank, Request, Result, Sum, Zeroable};

/// Types of one size.
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[bytemuck(crate = "tasuki::bytemuck")]
#[repr(transparent)]
struct Pair<const N: usize>([u64; 2]);

/// A collective call in which one member passes other arguments than the others.
fn different(part: &Communicator, which: usize, is_odd: bool) -> Result<()> {
    let count = if is_odd { 2 } else { 1 };
    match which {
        0 => part.allreduce(&vec![1_u64; count], Sum).map(drop),
        1 => part.allgather(&vec![1_u64; count]).map(drop),
        2 => part.scan(&vec![1_u64; count], Sum).map(drop),
        3 => part.reduce(&vec![1_u64; count], Sum, Rank(0)).map(drop),
        4 if is_odd => part.allreduce(&[1_u64], Max).map(drop),
        4 => part.allreduce(&[1_u64], Sum).map(drop),
        5 if is_odd => part.allreduce(&[1_i64], Sum).map(drop),
        5 => part.allreduce(&[1_u64], Sum).map(drop),
        6 if is_odd => part.allgather(&[1_u64]).map(drop),
        6 => part.allreduce(&[1_u64], Sum).map(drop),
        7 if is_odd => part.iallreduce(vec![1_u64], Max)?.wait().map(drop),
        8 if is_odd => part.bcast(&mut 1.0_f64, Rank(0)),
        8 => part.bcast(&mut 1_u64, Rank(0)),
        9 if is_odd => part.gather(&[Pair::<0>([1; 2])], Rank(0)).map(drop),
        9 => part.gather(&[Pair::<1>([1; 2])], Rank(0)).map(drop),
        10 if is_odd => part.allreduce(&[Pair::<2>([1; 2])], |a: Pair<2>, _| a).map(drop),
        10 => part.allreduce(&[Pair::<3>([1; 2])], |a: Pair<3>, _| a).map(drop),
        11 if is_odd => part.ialltoall(vec![1.0_f32; 8 * part.size()])?.wait().map(drop),
        11 => part.ialltoall(vec![1_u32; 8 * part.size()])?.wait().map(drop),
        12 if is_odd => part.bcast(&mut [Pair::<4>([1; 2]); 2000], Rank(0)),
        12 => part.bcast(&mut [Pair::<5>([1; 2]); 2000], Rank(0)),
        _ => part.iallreduce(vec![1_u64], Sum)?.wait().map(drop),
    }
}

/// One member's call differs, either in the first call of the communicator or after cached calls. Then every later call
/// fails on all members with this failure, and none returns a value. A communicator that is created afterwards works.
pub fn j_a_failed_call_fails_the_communicator(job: &Job) -> Result<()> {
    let (me, size) = (job.rank(), job.size() as u64);
    for (which, before) in (0..13).flat_map(|which| [0, 5].map(|before| (which, before))) {
        let part = job.world().split(0)?;
        for call in 0..before {
            assert_eq!(part.allreduce(&[call], Sum)?, [call * size]);
        }
        job.barrier()?; // a failure also ends calls that were right and are still under way
        let first = different(&part, which, me == 1);
        job.barrier()?; // by now every member that was waiting in the call has an error
        let texts = [first.is_err().to_string()];
        refused(job, part.barrier(), ErrorKind::Disagreement, &["barrier"]); // this call may detect the difference itself
        let later = [
            part.barrier(),
            part.allreduce(&[1_u64], Sum).map(drop),
            part.iallreduce(vec![1_u64], Sum).and_then(|mut request| request.wait()).map(drop),
            part.split(0).map(drop),
        ];
        for outcome in later {
            let error = refused(job, outcome, ErrorKind::Disagreement, &["has failed"]);
            assert!(matches!(error.cause(), Cause::CommunicatorFailed { .. }), "{which} {texts:?}: {error}");
        }
        let again = part.recreate()?;
        assert_eq!((again.rank(), again.size()), (part.rank(), part.size()));
        for call in 0..6 {
            assert_eq!(again.allreduce(&[call], Sum)?, [call * size], "{which}");
        }
        assert!(part.recreate().is_err(), "a communicator is recreated once");
    }
    job.barrier()
}

/// Members that prepare a plan for values of different types all get an error, and the communicator has failed.
pub fn j_plans_of_different_types_are_refused(job: &Job) -> Result<()> {
    let is_odd = job.rank() == 1;
    let sum = |world: &Communicator, is_odd: bool| match is_odd {
        true => world.allreduce_init::<f64>(4, Sum).map(drop),
        false => world.allreduce_init::<u64>(4, Sum).map(drop),
    };
    let exchange = |world: &Communicator, is_odd: bool| match is_odd {
        true => world.alltoall_init::<Pair<0>>(2).map(drop),
        false => world.alltoall_init::<Pair<1>>(2).map(drop),
    };
    let uneven = |world: &Communicator, is_odd: bool| match is_odd {
        true => world.alltoall_init::<i64>(&vec![2; job.size()]).map(drop),
        false => world.alltoall_init::<u64>(&vec![2; job.size()]).map(drop),
    };
    type Prepare<'p> = &'p dyn Fn(&Communicator, bool) -> Result<()>;
    let plans: [Prepare<'_>; 3] = [&sum, &exchange, &uneven];
    for plan in plans {
        let world = job.world().dup()?;
        refused(job, plan(&world, is_odd), ErrorKind::Disagreement, &["type of values"]);
        refused(job, plan(&world, false), ErrorKind::Disagreement, &["has failed", "_init"]);
        plan(&world.recreate()?, false)?;
    }
    job.barrier()
}

/// A rank is in a barrier of the job, the others are in a call of the world. All get an error, and afterwards barriers
/// and allocations of the job still meet.
pub fn j_barriers_of_the_job_are_calls_of_the_world(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    let outcome = match job.rank() == 0 {
        true => job.barrier(),
        false => job.world().allreduce(&[1_u64], Sum).map(drop),
    };
    refused(job, outcome, ErrorKind::Disagreement, &["call"]);
    calls_of_the_job_still_meet(job)
}

/// The same with an allocation.
pub fn j_allocations_of_the_job_are_calls_of_the_world(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    let outcome = match job.rank() == 0 {
        true => job.alloc::<u64>(100).map(drop),
        false => job.world().barrier(),
    };
    refused(job, outcome, ErrorKind::Disagreement, &["call"]);
    calls_of_the_job_still_meet(job)
}

/// Returns true if members cannot read each other's words.
fn cannot_compare(job: &Job) -> bool {
    is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some()
}

fn calls_of_the_job_still_meet(job: &Job) -> Result<()> {
    let again = job.world().recreate()?;
    job.barrier()?; // rank 0 had begun it
    for round in 0..5 {
        let values = job.alloc::<u64>(100)?;
        values.set(0, round)?;
        job.barrier()?;
        let next = Rank((job.rank().0 + 1) % job.size());
        let mut read = [0];
        job.get(values.on(next), &mut read)?;
        assert_eq!(read, [round]);
        job.barrier()?;
        assert_eq!(again.allreduce(&[1_u64], Sum)?, [job.size() as u64]);
    }
    Ok(())
}

/// A plan outlives its communicator. The failure of another communicator, made later, does not reach it.
pub fn j_a_plan_outlives_its_communicator(job: &Job) -> Result<()> {
    let me = job.rank();
    let part = job.world().split(0)?;
    let mut plan = part.allreduce_init::<u64>(1, Sum)?;
    drop(part);
    let other = job.world().split(0)?;
    assert!(different(&other, 0, me == 1).is_err());
    job.barrier()?;
    for start in 0..3 {
        plan.input()?.copy_from_slice(&[start]);
        if me == 1 {
            job.compute(Duration::from_millis(3)); // the others wait for long
        }
        plan.start()?;
        plan.wait()?;
        assert_eq!(plan.result()?, [start * job.size() as u64]);
    }
    job.barrier()
}
