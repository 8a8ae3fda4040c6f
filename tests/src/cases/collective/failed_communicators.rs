//! J: a call that fails on one member makes the communicator fail on all members. A communicator
//! that is created again works.

use crate::exchange::is_simulated;
use crate::expected_error::refused;
use crate::wait_until::may_be_helped;
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

/// Rank 0 allocates while the others are in a barrier of the job, or other values than they. All get an error that names
/// both calls, nobody passes the barrier, and nobody has allocated. The ranks are still in step.
pub fn j_calls_of_the_job_that_differ_get_errors(job: &Job) -> Result<()> {
    let (is_first, before) = (job.rank() == 0, job.memory().symmetric);
    let peer = if is_first { Rank(1) } else { Rank(0) };
    let others = if job.size() == 2 { "rank 1 in" } else { "rank 1 and others in" };
    let differ = |outcome: Result<()>, first: &str, theirs: &str| {
        let texts = [&*format!("rank 0 in {first}"), &*format!("{others} {theirs}")];
        let error = refused(job, outcome, ErrorKind::Disagreement, &texts);
        assert_eq!(error.peer(), Some(peer), "{error}");
    };
    let of_u64 = |count| job.alloc::<u64>(count).map(drop);
    differ(if is_first { of_u64(4) } else { job.barrier() }, "job.alloc(4 x u64)", "job.barrier()");
    differ(if is_first { job.barrier() } else { of_u64(4) }, "job.barrier()", "job.alloc(4 x u64)");
    differ(of_u64(if is_first { 4 } else { 5 }), "job.alloc(4 x u64)", "job.alloc(5 x u64)");
    let of_f64 = || job.alloc::<f64>(4).map(drop);
    differ(if is_first { of_u64(4) } else { of_f64() }, "job.alloc(4 x u64)", "job.alloc(4 x f64)");
    let of_pairs = || job.alloc::<Pair<6>>(3).map(drop);
    let theirs = "job.alloc(3 x a type of the program)";
    differ(if is_first { of_u64(6) } else { of_pairs() }, "job.alloc(6 x u64)", theirs);
    assert_eq!(job.memory().symmetric, before, "nothing was allocated");
    let array = job.alloc::<u64>(1)?;
    job.put(array.on(job.rank_after(1)), &7_u64)?;
    job.barrier()?;
    assert_eq!(array.get(0)?, 7);
    let dup = job.world().dup()?;
    let refused_on = |outcome: Result<()>, theirs: &str| {
        refused(job, outcome, ErrorKind::Disagreement, &["alloc_on(", &format!("rank {peer}"), theirs]);
    };
    let of_f64 = || job.alloc_on::<f64>(&dup, 4).map(drop);
    let of_u64 = || job.alloc_on::<u64>(&dup, 4).map(drop);
    refused_on(if is_first { of_u64() } else { of_f64() }, if is_first { "4 x f64" } else { "4 x u64" });
    of_u64()?;
    job.barrier()
}

/// Rank 0 is in a barrier of the job, and the last one in a call of the world. With more ranks, the others come to the
/// barrier when the world has failed; at times they have entered it before. All get the error once, and then all are in
/// step: no barrier lets a rank pass before all others have entered it.
pub fn j_barriers_of_the_job_are_in_step_after_a_failure(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    let (me, size) = (job.rank(), job.size());
    let (entered, apart) = (job.alloc::<u64>(1)?, job.world().dup()?);
    apart.barrier()?; // a failure also ends calls of the job that are still under way
    let is_last = me.0 == size - 1;
    if me != 0 && !is_last && me.0.is_multiple_of(2) {
        job.compute(Duration::from_millis(30));
    }
    let outcome = if is_last { job.world().allreduce(&[1_u64], Sum).map(drop) } else { job.barrier() };
    refused(job, outcome, ErrorKind::Disagreement, &["call"]);
    for round in 1..=4 {
        if me.0 == round % size {
            job.compute(Duration::from_millis(20));
        }
        entered.set(0, round as u64)?;
        job.barrier()?;
        for other in Rank::all(size) {
            let mut read = [0];
            job.get(entered.on(other), &mut read)?;
            assert!(read[0] >= round as u64, "{other} has not entered barrier {round}: {read:?}");
        }
    }
    refused(job, job.world().barrier(), ErrorKind::Disagreement, &["has failed", "job.barrier"]);
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

/// A call for which this member waits for nobody, if it is the only one that makes it.
fn lonely(part: &Communicator, which: usize) -> Result<()> {
    let (me, other) = (part.rank(), Rank((part.rank().0 + 1) % part.size()));
    match which {
        0 => part.bcast(&mut [7_u64], me),
        1 => part.reduce(&[7_u64], Sum, other).map(drop),
        2 => part.gather(&[7_u64], other).map(drop),
        3 => part.scatter(&vec![7_u64; part.size()], &mut [0], me),
        _ => part.ireduce(vec![7_u64], Sum, other).map(drop),
    }
}

/// A call whose result each member can check: the values of members are `number` and those after it.
fn checked(part: &Communicator, which: usize, number: u64) -> Result<()> {
    let (me, size) = (part.rank().0 as u64, part.size() as u64);
    let own = number * 10 + me;
    let sum_of_first = |members: u64| members * number * 10 + (0..members).sum::<u64>();
    let all: Vec<u64> = (0..size).map(|member| number * 10 + member).collect();
    match which {
        0 => assert_eq!(part.allreduce(&[own], Sum)?, [sum_of_first(size)]),
        1 => assert_eq!(part.allreduce(&vec![own; 1000], Sum)?, vec![sum_of_first(size); 1000]),
        2 => assert_eq!(part.scan(&[own], Sum)?, [sum_of_first(me + 1)]),
        3 => assert_eq!(part.allgather(&[own])?, all),
        4 => assert_eq!(part.iallreduce(vec![own], Sum)?.wait()?, [sum_of_first(size)]),
        5 => {
            let mut values = [own; 40];
            part.bcast(&mut values, Rank((number % size) as usize))?;
            assert_eq!(values, [number * 10 + number % size; 40]);
        }
        6 => {
            let got = part.gather(&[own], Rank(0))?;
            assert_eq!(got, (me == 0).then_some(all));
        }
        _ => assert_eq!(part.alltoall(&vec![own; size as usize])?, all),
    }
    Ok(())
}

/// One member makes a call of its own, instead of a call of the others or besides, for which it waits for nobody. No
/// later call returns wrong values: soon all members get errors, also if all of them are in equal calls by then.
pub fn j_a_call_of_one_member_never_leads_to_wrong_values(job: &Job) -> Result<()> {
    let me = job.rank();
    let forms =
        (0..5).flat_map(|lonely| (0..8).flat_map(move |later| [0, 5].map(|before| (lonely, later, before))));
    for (which, later, before) in forms {
        let part = job.world().split(0)?;
        for number in 0..before {
            checked(&part, later, number)?;
        }
        job.barrier()?; // a failure also ends calls that were right and are still under way
        let mut outcome = Ok(());
        if me == 0 {
            outcome = lonely(&part, which);
        } else if which % 2 == 0 {
            outcome = checked(&part, later, before);
        }
        let mut numbers = before + 1..before + 100;
        while outcome.is_ok()
            && let Some(number) = numbers.next()
        {
            outcome = checked(&part, later, number);
        }
        let text = format!("{which} then {later} after {before}");
        let error = refused(job, outcome, ErrorKind::Disagreement, &[]);
        assert!(part.barrier().is_err(), "{text}: {error}");
        job.barrier()?;
    }
    job.barrier()
}

/// One member waits in a fuzzy barrier, the others are in another call. All get an error.
pub fn j_fuzzy_barriers_are_calls_of_the_communicator(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    for before in [0, 5] {
        let part = job.world().split(0)?;
        for number in 0..before {
            part.fuzzy_barrier()?.wait()?;
            checked(&part, 0, number)?;
        }
        job.barrier()?;
        let outcome = match job.rank() == 0 {
            true => part.fuzzy_barrier().and_then(|mut barrier| barrier.wait()),
            false => part.barrier(),
        };
        refused(job, outcome, ErrorKind::Disagreement, &[]);
        assert!(part.fuzzy_barrier().is_err());
        job.barrier()?;
    }
    Ok(())
}

/// Threads of a rank may start fuzzy barriers beside its other calls: a wait for one is no error if this rank has
/// started it, or makes the call of the others later.
pub fn j_fuzzy_barriers_beside_other_calls(job: &Job) -> Result<()> {
    let part = job.world().split(0)?;
    for number in 0..3 {
        let mut barrier = part.fuzzy_barrier()?;
        if job.rank() == 0 {
            barrier.wait()?; // the others have started it, and wait in the next call
        }
        job.compute(Duration::from_millis(5));
        checked(&part, 0, number)?;
        barrier.wait()?;
    }
    job.barrier()
}

/// Rank 0 starts a chunked plan with another number of values than the others, in as many chunks or in more. No member
/// that receives anything of rank 0 in that start returns it, and all members get an error, wherever the chunks run.
pub fn j_chunked_starts_of_different_lengths_get_errors(job: &Job) -> Result<()> {
    const ROOM: usize = 10;
    if cannot_compare(job) {
        return Ok(()); // there members do not read the tags of each other's starts
    }
    let (me, size, last) = (job.rank(), job.size(), Rank(job.size() - 1));
    let lengths = [(9, 10), (10, 9), (11, 10), (20, 10), (10, 20), (13, 12), (30, 1)];
    for (number, (odd, others)) in lengths.into_iter().cycle().take(4 * lengths.len()).enumerate() {
        let part = job.world().split(0)?;
        let which = number / lengths.len();
        let (blocks, plan) = match which {
            0 => (1, part.allreduce_init::<u64>(ROOM, Sum)?),
            1 => (1, part.bcast_init::<u64>(ROOM, last)?),
            2 => (1, part.reduce_init::<u64>(ROOM, Sum, Rank(0))?),
            _ => (size, part.alltoall_init::<u64>(ROOM)?),
        };
        let mut plan = plan.chunked()?;
        for length in [30, 7] {
            plan.start(vec![1; length * blocks])?;
            let expected = if which == 0 || which == 2 && me == 0 { size as u64 } else { 1 };
            assert_eq!(plan.wait()?, vec![expected; length * blocks]);
        }
        job.barrier()?;
        let length = if me == 0 { odd } else { others };
        let outcome = plan.start(vec![1; length * blocks]).and_then(|()| plan.wait());
        // These receive nothing, or nothing of rank 0, and may return before rank 0 has started.
        if me != 0
            && (which == 1 || which == 2)
            && let Ok(values) = &outcome
        {
            assert_eq!(*values, vec![1; length]);
        } else {
            refused(job, outcome, ErrorKind::Disagreement, &[]);
        }
        job.barrier()?; // by now every member that was waiting has an error
        refused(job, part.barrier(), ErrorKind::Disagreement, &["has failed"]);
        drop(plan);
        job.barrier()?;
    }
    Ok(())
}

/// The operation of a plan panics while its member waits with a time limit. The communicator fails on all members.
pub fn j_a_panic_in_a_wait_with_a_limit_fails_the_communicator(job: &Job) -> Result<()> {
    if may_be_helped(job) {
        return Ok(());
    }
    let (part, me) = (job.world().split(0)?, job.rank());
    let some = |a: i64, b: i64| if a + b > 100 { panic!("on purpose") } else { a + b };
    let mut plan = part.allreduce_init::<i64>(1, some)?;
    plan.input()?.fill(200);
    job.barrier()?; // a failure also ends calls that were right and are still under way
    if me == 0 {
        job.compute(Duration::from_millis(2));
    }
    let run = || plan.start().and_then(|()| plan.wait_timeout(Duration::from_secs(20)));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    assert!(!matches!(outcome, Ok(Ok(_))), "the operation panics on each member");
    let error = part.barrier().expect_err("the communicator has failed");
    assert!(matches!(error.cause(), Cause::CommunicatorFailed { .. }), "{error}");
    drop(plan);
    job.barrier()
}

/// The program's operation panics on one member, in a wait or in a call that knows nothing of the plan. The communicator
/// fails on all members, and the plan says so afterwards.
pub fn j_a_panic_of_one_member_fails_the_communicator(job: &Job) -> Result<()> {
    if may_be_helped(job) {
        return Ok(()); // a helper's plan has steps that run in no call
    }
    let me = job.rank();
    let panics_here = me == 1 || cannot_compare(job); // there member 1 may not combine anything
    for round in 0..30 {
        let (part, beside) = (job.world().split(0)?, job.world().split(0)?);
        let panics = move |a: f64, b: f64| if panics_here { panic!("on purpose") } else { a + b };
        let mut plan = part.allreduce_init::<f64>(1, panics)?;
        job.barrier()?;
        if me != 1 {
            job.compute(Duration::from_micros(100 * (round % 5)));
        }
        job.set_timeout((round % 2 == 0).then_some(Duration::from_secs(30)));
        // Each call panics, or fails, or this member has its sum without the other one's operation.
        let caught = |call: &mut dyn FnMut() -> Result<()>| {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        };
        caught(&mut || plan.start());
        if round % 3 == 0 {
            caught(&mut || beside.barrier());
        }
        caught(&mut || plan.wait());
        job.barrier()?;
        let barrier = part.barrier().expect_err("the communicator has failed");
        let start = plan.start().expect_err("the plan has failed");
        let input = if plan.is_active() { plan.input().map(drop).err() } else { None };
        for error in [barrier, start].iter().chain(&input) {
            assert!(matches!(error.cause(), Cause::CommunicatorFailed { .. }), "{round}: {error}");
            assert!(error.to_string().contains("rank 1") || cannot_compare(job), "{round}: {error}");
        }
        job.set_timeout(None);
        job.barrier()?;
    }
    Ok(())
}

/// A member fails and leaves the job at once, while the others wait for it. Their errors name its failure, and not only
/// that it has left.
pub fn j_a_failure_is_reported_although_its_member_has_left(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(()); // there the error of a member that has left does not wait for notices
    }
    let part = job.world().split(0)?;
    for number in 0..5 {
        checked(&part, 0, number)?;
    }
    job.barrier()?;
    if job.rank().0 == 1 {
        job.compute(Duration::from_millis(5)); // the others are waiting by now
        refused(job, part.bcast(&mut [1_u64], Rank(99)), ErrorKind::Misuse, &[]);
        return Ok(());
    }
    let error = part.allreduce(&[1_u64], Sum).expect_err("a member has failed");
    assert!(matches!(error.cause(), Cause::CommunicatorFailed { .. }), "{error}");
    Ok(())
}

/// The root of long broadcasts runs ahead of the others, so that they see its raises only after the next ones.
pub fn j_a_root_that_is_ahead_never_leads_to_wrong_values(job: &Job) -> Result<()> {
    let me = job.rank().0;
    for values in [1000, 38_400] {
        let part = job.world().split(0)?;
        for number in 0..5_u64 {
            part.bcast(&mut vec![number; values], Rank(0))?;
            part.reduce(&[1_u64], Sum, Rank(0))?;
        }
        job.barrier()?; // a failure also ends calls that were right and are still under way
        let mut outcome = match me == 0 {
            true => part.bcast(&mut vec![9_u64; values], Rank(0)),
            false => part.reduce(&[1_u64], Sum, Rank(0)).map(drop),
        };
        for number in 10..40_u64 {
            let mut got = vec![if me == 0 { number } else { 0 }; values];
            outcome = outcome.and_then(|()| part.bcast(&mut got, Rank(0)));
            assert!(outcome.is_err() || got == vec![number; values], "{} instead of {number}", got[0]);
        }
        refused(job, outcome, ErrorKind::Disagreement, &[]);
        job.barrier()?;
    }
    Ok(())
}

/// An allocation on the members matches no exchange of words that the program makes.
pub fn j_allocations_on_members_match_no_other_call(job: &Job) -> Result<()> {
    let part = job.world().split(0)?;
    job.barrier()?;
    let outcome = match job.rank().0 == 0 {
        true => part.allgather(&[1_u64, 10]).map(drop),
        false => job.alloc_on::<u64>(&part, 10).map(drop),
    };
    assert!(outcome.is_err() || part.barrier().is_err(), "the calls differ");
    job.barrier()
}

/// A service may recreate its communicator again and again. The last one is dropped with all of those before, without a
/// deep stack.
pub fn j_a_long_chain_of_recreated_communicators_is_dropped(job: &Job) -> Result<()> {
    let mut last = job.world().dup()?;
    for _ in 0..5_000 {
        last = last.recreate()?;
    }
    assert_eq!(last.allreduce(&1_usize, Sum)?, job.size());
    drop(last);
    job.barrier()
}
