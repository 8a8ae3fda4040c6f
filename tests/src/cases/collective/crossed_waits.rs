//! J: members that wait for each other, each for something that the other one has not begun, get errors. Members that
//! are only late do not.

use crate::exchange::{effort, is_simulated};
use crate::expected_error::refused;
use std::time::Duration;
use tasuki::collective::{CollectiveRequest, FuzzyBarrier};
use tasuki::{Communicator, ErrorKind, Job, Plan, Request, Result, Sum, block_on};

const LATE: Duration = Duration::from_millis(20);

/// A communicator with two plans.
struct Part {
    communicator: Communicator,
    plans: [Plan<u64>; 2],
}

/// Something that a member begins and waits for.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Thing {
    Call,
    Nonblocking,
    NonblockingTask,
    Fuzzy,
    FuzzyTask,
    Start(usize),
    StartTask(usize),
}

use Thing::{Call, Fuzzy, FuzzyTask, Nonblocking, NonblockingTask, Start, StartTask};

impl Thing {
    /// Returns true if members that wait for these two are in no order that a log of calls shows.
    fn crosses(self, other: Thing) -> bool {
        self.name() != other.name() || matches!((self, other), (Start(one), Start(other)) if one != other)
    }

    /// Returns its name, as errors show it.
    fn name(self) -> &'static str {
        match self {
            Call | Nonblocking | NonblockingTask => "allreduce(",
            Fuzzy | FuzzyTask => "fuzzy_barrier(",
            Start(_) | StartTask(_) => "plan",
        }
    }
}

impl Part {
    fn new(job: &Job) -> Result<Part> {
        Part::of(job.world().split(0)?)
    }

    fn of(communicator: Communicator) -> Result<Part> {
        communicator.fuzzy_barrier()?.wait()?; // the first one is also a call, in which members exchange addresses
        let plans =
            [communicator.allreduce_init::<u64>(1, Sum)?, communicator.allreduce_init::<u64>(2, Sum)?];
        Ok(Part { communicator, plans })
    }

    fn run(&mut self, thing: Thing) -> Result<()> {
        let Part { communicator, plans } = self;
        match thing {
            Call => communicator.allreduce(&1_u64, Sum).map(drop),
            Nonblocking => communicator.iallreduce(1_u64, Sum)?.wait().map(drop),
            NonblockingTask => block_on(communicator.iallreduce(1_u64, Sum)?).map(drop),
            Fuzzy => communicator.fuzzy_barrier()?.wait(),
            FuzzyTask => block_on(communicator.fuzzy_barrier()?),
            Start(plan) => {
                plans[plan].start()?;
                plans[plan].wait()
            }
            StartTask(plan) => {
                plans[plan].start()?;
                block_on(&mut plans[plan])
            }
        }
    }
}

/// Returns true if members cannot read each other's words.
fn cannot_compare(job: &Job) -> bool {
    is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some()
}

/// Member `odd` waits for `one`, the others for `other`. All get an error.
fn cross(job: &Job, odd: usize, before: usize, (one, other): (Thing, Thing)) -> Result<()> {
    let mut part = Part::new(job)?;
    for _ in 0..before {
        part.run(one)?;
        part.run(other)?;
    }
    job.barrier()?; // a failure also ends calls that were right and are still under way
    let outcome = part.run(if job.rank().0 == odd { one } else { other });
    refused(job, outcome, ErrorKind::Disagreement, &[one.name(), other.name()]);
    refused(job, part.run(Fuzzy), ErrorKind::Disagreement, &["has failed", one.name(), other.name()]);
    job.barrier()
}

/// Each pair, in all forms, as the first calls of a communicator and after others.
pub fn j_members_that_wait_for_different_things_get_errors(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    let all = [Call, Nonblocking, NonblockingTask, Fuzzy, FuzzyTask, Start(0), StartTask(0), Start(1)];
    let pairs = all
        .into_iter()
        .enumerate()
        .flat_map(|(at, one)| all[at + 1..].iter().map(move |&other| (one, other)));
    for pair in pairs.filter(|(one, other)| one.crosses(*other)) {
        for (odd, before) in [(0, 0), (job.size() - 1, 5)] {
            cross(job, odd, before, pair)?;
        }
    }
    Ok(())
}

/// Rank 0 has left out a start of the second plan. An error names the plan, and how many starts each has made.
pub fn j_a_start_that_is_missing_is_named(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    let mut part = Part::new(job)?;
    for _ in 0..2 {
        part.run(Start(1))?;
    }
    job.barrier()?;
    let outcome = part.run(if job.rank().0 == 0 { Start(0) } else { Start(1) });
    let text = refused(job, outcome, ErrorKind::Disagreement, &["plan"]).to_string();
    let texts = match job.rank().0 {
        0 => [
            "start 1 of plan 1 here and start 3 of plan 2 of member",
            "this member has made 2 starts of that plan",
        ],
        _ => [
            "start 3 of plan 2 here and start 1 of plan 1 of member 0",
            "this member has made 0 starts of that plan",
        ],
    };
    // The member that looks last finds it; the others learn of it.
    let is_named = texts.iter().all(|part| text.contains(part));
    assert!(job.world().allreduce(&u64::from(is_named), Sum)? > 0, "{text}");
    Ok(())
}

/// One thing that each member has begun before, and that is not the one that it waits for, changes nothing.
pub fn j_members_in_one_wait_beside_others_get_errors(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    for (one, other) in [(Call, Start(0)), (Fuzzy, Start(0)), (NonblockingTask, Fuzzy)] {
        let mut part = Part::new(job)?;
        let mut request = part.communicator.iallreduce(7_u64, Sum)?;
        part.plans[1].start()?;
        job.barrier()?;
        if job.rank() == 1 {
            job.compute(LATE); // the others sleep by now
        }
        let outcome = part.run(if job.rank() == 0 { one } else { other });
        refused(job, outcome, ErrorKind::Disagreement, &[one.name(), other.name()]);
        let _ = request.wait(); // it may have been complete
        job.barrier()?;
    }
    Ok(())
}

/// The first half of the ranks is in a call of the job, and the others come to something of the world. All get errors,
/// and afterwards calls of the job still meet.
fn beside_calls_of_the_job(job: &Job, call: fn(&Job) -> Result<()>, name: &str, thing: Thing) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    let (mut part, apart) = (Part::of(job.world().clone())?, job.world().dup()?);
    let is_in_call = job.rank().0 < job.size() / 2;
    apart.barrier()?; // a failure also ends calls of the job that are still under way
    let outcome = if is_in_call {
        call(job)
    } else {
        job.compute(LATE);
        part.run(thing)
    };
    refused(job, outcome, ErrorKind::Disagreement, &[name, thing.name()]);
    let again = job.world().recreate()?;
    for round in 1..4 {
        job.barrier()?; // some ranks had begun the first one
        assert_eq!(again.allreduce(&round, Sum)?, round * job.size());
    }
    job.barrier()
}

/// Barriers of the job beside nonblocking calls.
pub fn j_job_barriers_beside_awaited_calls_get_errors(job: &Job) -> Result<()> {
    beside_calls_of_the_job(job, Job::barrier, "job.barrier(", Nonblocking)
}

/// Barriers of the job beside starts of a plan.
pub fn j_job_barriers_beside_starts_get_errors(job: &Job) -> Result<()> {
    beside_calls_of_the_job(job, Job::barrier, "job.barrier(", Start(0))
}

/// Allocations of the job beside nonblocking calls in a task.
pub fn j_job_allocations_beside_awaited_tasks_get_errors(job: &Job) -> Result<()> {
    beside_calls_of_the_job(job, |job| job.alloc::<u64>(8).map(drop), "job.alloc(", NonblockingTask)
}

/// Allocations of the job beside fuzzy barriers.
pub fn j_job_allocations_beside_fuzzy_barriers_get_errors(job: &Job) -> Result<()> {
    beside_calls_of_the_job(job, |job| job.alloc::<u64>(8).map(drop), "job.alloc(", Fuzzy)
}

/// A member recreates a communicator that has not failed, while the others wait in it. They get errors, recreate it,
/// too, and it works. If they do nothing, its own limit ends the call.
pub fn j_recreation_beside_other_calls_ends_them(job: &Job) -> Result<()> {
    if cannot_compare(job) {
        return Ok(());
    }
    for thing in [Call, Nonblocking, NonblockingTask, Fuzzy, FuzzyTask, Start(0), StartTask(0)] {
        for odd in [0, job.size() - 1] {
            let mut part = Part::new(job)?;
            job.barrier()?;
            if job.rank().0 != odd {
                refused(job, part.run(thing), ErrorKind::Disagreement, &["recreate(", thing.name()]);
            }
            let again = part.communicator.recreate()?;
            assert_eq!(again.allreduce(&1_usize, Sum)?, job.size());
            job.barrier()?;
        }
    }
    let part = job.world().split(0)?;
    job.barrier()?;
    if job.rank() == 0 {
        let error = part.within(LATE).recreate().expect_err("nobody else recreates it");
        assert!(error.is_timeout(), "{error}");
    }
    job.barrier()
}

/// What a member has begun and not waited for.
struct Begun<'p>(CollectiveRequest<u64>, FuzzyBarrier, &'p mut [Plan<u64>; 2]);

impl Begun<'_> {
    fn wait(&mut self, which: usize) -> Result<()> {
        match which % 4 {
            0 => self.0.wait().map(drop),
            1 => self.1.wait(),
            plan => self.2[plan - 2].wait(),
        }
    }
}

/// All members begin the same things, starts in other places than the others, and wait for them in orders of their own.
/// One member is late at each point. There is no error.
pub fn j_late_members_wait_in_any_order(job: &Job) -> Result<()> {
    let (me, size) = (job.rank().0, job.size());
    let mut part = Part::new(job)?;
    for late in 0..size {
        for point in 0..6 {
            let pause = |at: usize| {
                if late == me && point == at {
                    job.compute(LATE);
                }
            };
            let Part { communicator, plans } = &mut part;
            if me % 2 == 0 {
                plans[0].start()?;
            }
            pause(0);
            let request = communicator.iallreduce(me as u64, Sum)?;
            plans[1].start()?;
            pause(1);
            let barrier = communicator.fuzzy_barrier()?;
            if me % 2 == 1 {
                plans[0].start()?;
            }
            let mut begun = Begun(request, barrier, plans);
            for at in 0..4 {
                begun.wait(me + at + point)?;
                pause(2 + at);
            }
            part.run([Call, NonblockingTask, FuzzyTask, StartTask(0)][point % 4])?;
        }
    }
    // One after the other, with a late member at each.
    for thing in [Call, Start(0), Fuzzy, Nonblocking, StartTask(1), FuzzyTask, NonblockingTask, Call] {
        for late in 0..size {
            if late == me {
                job.compute(LATE);
            }
            part.run(thing)?;
        }
    }
    job.barrier()?;
    drop(part);
    job.barrier()
}

/// Each rank has two threads, which use a communicator in orders of their own. There is no error, whichever thread of
/// which member is late.
pub fn j_threads_wait_in_orders_of_their_own(job: &Job) -> Result<()> {
    let things = [[Fuzzy, Call], [Start(0), Nonblocking], [Start(0), Fuzzy], [Start(1), Call]];
    for things in things {
        for late in (0..2 * job.size()).take(effort(job, 8, 2)) {
            let part = Part::new(job)?;
            let parts = [
                Part { communicator: part.communicator.clone(), plans: part.plans },
                Part::of(part.communicator)?,
            ];
            let parts = parts.map(std::sync::Mutex::new);
            let outcomes = job.threads(2, |thread| -> Result<()> {
                let mut part = parts[thread].lock().expect("it is this thread's own");
                for round in 0..2 {
                    if late == 2 * job.rank().0 + (thread + job.rank().0 + round) % 2 {
                        job.compute(LATE);
                    }
                    part.run(things[thread])?;
                }
                Ok(())
            })?;
            outcomes.into_iter().collect::<Result<()>>()?;
        }
    }
    job.barrier()
}
