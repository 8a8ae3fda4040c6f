//! J: a collective call that one member's library refuses because of an argument fails the communicator on all members.
//! Nobody waits for that member, and nobody combines its next call with another one.

use crate::exchange::{effort, is_simulated};
use crate::expected_error::{check_error, disagreed};
use crate::random::Random;
use tasuki::collective::Split;
use tasuki::engine::Cause;
use tasuki::schedule::{ALGORITHMS, CollectiveKind, Shape};
use tasuki::{
    Blocks, Cartesian, Communicator, Error, ErrorKind, Job, Member, Rank, Request, Result, Sum, Uneven,
};

/// A call, in the name that errors have for it, made with right arguments or, on member `at`, with a wrong one.
type Call = (&'static str, fn(&Communicator, at: usize, is_wrong: bool) -> Result<()>);

/// Returns the blocks of this member for all, of which there is one too many if they are wrong.
fn blocks(on: &Communicator, is_wrong: bool) -> Blocks<u64> {
    let count = on.size() + usize::from(is_wrong);
    Blocks::new(vec![1; count], &vec![1; count]).expect("the blocks are the values")
}

const CALLS: [Call; 24] = [
    ("allgather", |on, _, is_wrong| {
        let mut room = vec![0_u64; 2 * on.size() + usize::from(is_wrong)];
        on.allgather((&[5, 6], &mut room))?;
        assert_eq!(room, [5, 6].repeat(on.size()));
        Ok(())
    }),
    ("allgather", |on, _, is_wrong| {
        let room = vec![0_u64; 2 * on.size() + usize::from(is_wrong)];
        assert_eq!(on.iallgather(([5, 6], room))?.wait()?, [5, 6].repeat(on.size()));
        Ok(())
    }),
    ("bcast", |on, _, is_wrong| on.bcast(&mut [1_u64], Rank(if is_wrong { on.size() } else { 0 }))),
    ("bcast", |on, _, is_wrong| on.bcast(&mut [1_u64], Member(if is_wrong { on.size() } else { 0 }))),
    ("reduce", |on, _, is_wrong| {
        on.reduce(&1_u64, Sum, if is_wrong { None } else { Some(Member(0)) }).map(drop)
    }),
    ("bcast", |on, _, is_wrong| {
        on.ibcast(vec![1_u64], Member(if is_wrong { on.size() } else { 0 }))?.wait().map(drop)
    }),
    ("alltoall", |on, _, is_wrong| on.alltoall(&blocks(on, is_wrong)).map(drop)),
    ("alltoall", |on, _, is_wrong| on.ialltoall(blocks(on, is_wrong))?.wait().map(drop)),
    ("scatter", |on, at, is_wrong| {
        let values = vec![1_u64; 2 * on.size() + usize::from(is_wrong)];
        on.scatter(&values, &mut [0; 2], Rank(at))
    }),
    ("scatter", |on, at, is_wrong| on.scatter(&blocks(on, is_wrong), (), Rank(at)).map(drop)),
    ("scatter", |on, at, is_wrong| on.iscatter(blocks(on, is_wrong), (), Rank(at))?.wait().map(drop)),
    ("scatter", |on, at, is_wrong| {
        let count = if is_wrong { 1 << 60 } else { 1 };
        on.scatter(&vec![1_u64; on.size()], count, Rank(at)).map(drop)
    }),
    ("gather", |on, at, is_wrong| {
        let mut room = vec![0_u64; 2 * on.size() + usize::from(is_wrong)];
        on.gather((&[1, 2], &mut room), Rank(at)).map(drop)
    }),
    ("allreduce", |on, _, is_wrong| {
        let mut room = vec![0_u64; 2 + usize::from(is_wrong)];
        on.allreduce((&[1, 2], &mut room), Sum)
    }),
    ("reduce_scatter", |on, _, is_wrong| {
        let mut room = vec![0_u64; 2 + usize::from(is_wrong)];
        on.reduce_scatter((&vec![1; 2 * on.size()], &mut room), Sum)
    }),
    ("reduce_scatter", |on, _, is_wrong| {
        let room = vec![0_u64; 2 + usize::from(is_wrong)];
        on.ireduce_scatter((vec![1; 2 * on.size()], room), Sum)?.wait().map(drop)
    }),
    ("scan", |on, _, is_wrong| on.scan((&[1_u64], &mut vec![0; if is_wrong { 2 } else { 1 }]), Sum)),
    ("bcast_init", |on, _, is_wrong| {
        on.bcast_init::<u64>(2, Member(if is_wrong { on.size() } else { 0 })).map(drop)
    }),
    ("scatter_init", |on, at, is_wrong| {
        on.scatter_init::<u64>(&vec![1; on.size() + usize::from(is_wrong)], Rank(at)).map(drop)
    }),
    ("gather_init", |on, at, is_wrong| {
        on.gather_init::<u64>(Uneven(if is_wrong { usize::MAX } else { 1 }), Rank(at)).map(drop)
    }),
    ("plan", |on, _, is_wrong| {
        let members = on.size() + usize::from(is_wrong);
        let shape = Shape::new(CollectiveKind::Bcast, members, 0, 8);
        let chain = ALGORITHMS.iter().find(|one| one.name == "chain");
        on.plan(&chain.expect("there is an algorithm chain").schedule(&shape, 1).trusted()).map(drop)
    }),
    ("split", |on, _, is_wrong| on.split(Split::colour(0).slots(if is_wrong { 0 } else { 1 })).map(drop)),
    ("Cartesian::new", |on, _, is_wrong| {
        Cartesian::new(on, [on.size() + usize::from(is_wrong)], [true]).map(drop)
    }),
    ("neighbor_alltoall", |on, _, is_wrong| {
        let ring = Cartesian::new(on, [on.size()], [true])?;
        ring.neighbor_alltoall(&vec![1_u8; if is_wrong { 3 } else { 2 }]).map(drop)
    }),
];

fn is_failure(error: &Error) -> bool {
    matches!(error.cause(), Cause::CommunicatorFailed { .. })
}

/// Asserts that the communicator has failed. Where members read each other's records, the error names the first
/// failure.
#[track_caller]
fn failed<T>(job: &Job, outcome: Result<T>, first: &[&str]) {
    let Err(error) = outcome else {
        panic!("a call on a communicator that has failed was made, after {first:?}")
    };
    let texts = if cannot_read_records(job) { &[] } else { first };
    check_error(job, &error, error.kind(), &[&["has failed"], texts].concat());
    assert!(is_failure(&error), "{error}");
}

fn cannot_read_records(job: &Job) -> bool {
    is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some()
}

/// One member passes a wrong argument, in a first call or when calls run compiled steps. It gets its error. All calls
/// of all members fail from then on.
pub fn j_refused_calls_fail_the_communicator(job: &Job) -> Result<()> {
    let (me, size) = (job.rank().index(), job.size());
    let at = size - 1;
    for ((name, call), before) in CALLS.into_iter().flat_map(|call| [0, 5].map(|before| (call, before))) {
        let part = job.world().dup()?;
        for number in 0..before {
            call(&part, at, false)?;
            assert_eq!(part.allreduce(&[number], Sum)?, [number * size as u64]);
        }
        job.barrier()?; // the failure also ends calls before it that are still under way
        match call(&part, at, me == at) {
            Err(error) if me == at => assert!(!is_failure(&error), "{name}: {error}"),
            outcome if me == at => panic!("{name}: the wrong argument was not refused: {outcome:?}"),
            Ok(()) => {} // this member needs nothing from that one
            Err(error) => check_error(job, &error, error.kind(), &[]),
        }
        let sum = part.allreduce(&[1_u64], Sum);
        job.barrier()?; // after calls that all members have refused together, each one notes the failure
        let by = format!("failed on rank {at}");
        let agreed = ["scatter_init", "gather_init", "Cartesian::new"].contains(&name);
        let first = [&format!("{name}(")[..], if agreed { "failed on rank" } else { &by }];
        failed(job, sum, &first);
        failed(job, part.iallreduce(vec![1_u64], Sum).and_then(|mut sum| sum.wait()), &first);
        failed(job, part.barrier(), &first);
        failed(job, part.dup(), &first);
        failed(job, part.barrier_init(), &first);
        let again = part.recreate()?;
        call(&again, at, false)?;
        assert_eq!(again.allreduce(&[1_u64], Sum)?, [size as u64], "{name}");
    }
    job.barrier()
}

/// Calls and starts of plans that members wait for end when another member is refused a call.
pub fn j_calls_under_way_end_when_one_is_refused(job: &Job) -> Result<()> {
    let (me, size) = (job.rank(), job.size());
    for before in [0, 5] {
        let part = job.world().dup()?;
        let mut plan = part.allreduce_init::<u64>(2, Sum)?;
        for number in 0..before {
            assert_eq!(part.iallreduce([number], Sum)?.wait()?, [number * size as u64]);
        }
        job.barrier()?;
        if me == 0 {
            let refused = part.gather((&[1_u64], &mut [0; 9]), me);
            check_error(job, &refused.expect_err("the room is wrong"), ErrorKind::Misuse, &["gather"]);
            failed(job, plan.start(), &["gather(", "rank 0"]);
        } else {
            // The failure may come before each of these calls.
            let sum = part.iallreduce([1_u64], Sum);
            let started = plan.start();
            failed(job, started.and_then(|()| plan.wait()), &["gather(", "rank 0"]);
            failed(job, sum.and_then(|mut sum| sum.wait()), &["gather(", "rank 0"]);
            failed(job, part.gather(&[1_u64], Rank(0)), &["gather(", "rank 0"]);
        }
        job.barrier()?;
        assert_eq!(part.recreate()?.allreduce(&[1_u64], Sum)?, [size as u64]);
    }
    job.barrier()
}

/// Some members make a communicator and others a plan: all get an error, and nobody has a communicator of some members.
pub fn j_calls_of_other_names_do_not_match(job: &Job) -> Result<()> {
    let is_last = job.rank().index() == job.size() - 1;
    type Make = fn(&Communicator) -> Result<()>;
    let makes: [(Make, Make); 4] = [
        (|on| on.dup().map(drop), |on| on.barrier_init().map(drop)),
        (|on| on.split(0).map(drop), |on| on.allreduce_init::<u64>(1, Sum).map(drop)),
        (|on| on.dup().map(drop), |on| on.split(0).map(drop)),
        (|on| on.barrier_init().map(drop), |on| Cartesian::new(on, [on.size()], [true]).map(drop)),
    ];
    for ((most, last), has_plan) in makes.into_iter().flat_map(|make| [false, true].map(|has| (make, has))) {
        let part = job.world().dup()?;
        let _plan = has_plan.then(|| part.bcast_init::<u64>(1, Rank(0))).transpose()?;
        job.barrier()?;
        let outcome = if is_last { last(&part) } else { most(&part) };
        let error = disagreed(job, outcome, &[]);
        assert!(!error.to_string().contains("TASUKI_COLLECTIVES"), "{error}");
        failed(job, part.barrier(), &["failed on rank"]);
        assert_eq!(part.recreate()?.allreduce(&[1_u64], Sum)?, [job.size() as u64]);
    }
    job.barrier()
}

/// Members of one colour disagree about slots: the split fails for the other colours, too.
pub fn j_all_parts_of_a_split_are_refused(job: &Job) -> Result<()> {
    let (me, part) = (job.rank().index(), job.world().dup()?);
    let own = (me != 2).then_some(Split::colour(me / 3).slots(if me == 1 { 20 } else { 10 }));
    disagreed(job, part.split(own), &["split", "disagree about slots: the smallest is 10, the largest 20"]);
    failed(job, part.barrier(), &["split("]);
    part.recreate()?.barrier()?;
    job.barrier()
}

/// Members make a random program of calls, and one of them is refused one. No call returns a wrong value, none waits
/// for ever, and the last call of all members fails.
pub fn j_random_calls_with_wrong_arguments(job: &Job) -> Result<()> {
    let (me, size) = (job.rank().index(), job.size());
    for round in 0..effort(job, 60, 5) as u64 {
        let mut random = Random::seed(round);
        let part = job.world().dup()?;
        let (wrong_call, wrong_member) = (random.below(12) as usize, random.below(size as u64) as usize);
        let kinds: Vec<usize> = (0..3).map(|_| random.below(CALLS.len() as u64) as usize).collect();
        let (mut begun, mut is_over) = (Vec::new(), false);
        for number in 0..12 {
            let (name, call) = CALLS[kinds[random.below(3) as usize]];
            let outcome = call(&part, wrong_member, (number, me) == (wrong_call, wrong_member));
            assert!(outcome.is_err() || !is_over, "round {round}: {name} after a failure");
            is_over |= outcome.is_err();
            let value = random.below(1000);
            match part.allreduce(&[value + me as u64], Sum) {
                Ok(sum) => {
                    assert_eq!(sum, [value * size as u64 + (size * (size - 1) / 2) as u64], "round {round}");
                    assert!(number < wrong_call && !is_over, "round {round}: a sum after {name} was refused");
                }
                Err(error) => {
                    assert!(is_failure(&error), "round {round}: {error}");
                    is_over = true;
                }
            }
            if random.below(2) == 0
                && let Ok(sum) = part.iallreduce([value], Sum)
            {
                begun.push((sum, value));
            }
        }
        for (mut sum, value) in begun {
            if let Ok(sum) = sum.wait() {
                assert_eq!(sum, [value * size as u64], "round {round}");
            }
        }
        failed(job, part.barrier(), &["failed on rank"]);
        assert_eq!(part.recreate()?.allreduce(&[1_u64], Sum)?, [size as u64]);
    }
    job.barrier()
}
