//! Networks that have a barrier and a multicast: the cases that could use them, the promises of
//! these two operations, and the promise that every call ends, whatever other members do.

use tasuki::engine::Cause;
use tasuki::{Communicator, Job, Member, Rank, Result, Sim, Sum};
use tasuki_tests::simulated_machines::{OFFERING, offering};
use tasuki_tests::watchdog::Watchdog;
use tasuki_tests::{case_runner, each_case};

macro_rules! test_of {
    (Everywhere collectives $name:ident) => {
        test_of!($name);
    };
    (Everywhere plans $name:ident) => {
        test_of!($name);
    };
    (Everywhere cached_schedules $name:ident) => {
        test_of!($name);
    };
    (Everywhere nonblocking_collectives $name:ident) => {
        test_of!($name);
    };
    (Everywhere fuzzy_barriers $name:ident) => {
        test_of!($name);
    };
    ($name:ident) => {
        #[test]
        fn $name() {
            case_runner::on_offering_sim(stringify!($name), 0..1);
        }
    };
    ($ways:ident $module:ident $name:ident) => {};
}

macro_rules! tests {
    ($($ways:ident $id:literal $least:literal..=$most:literal $module:ident::$name:ident;)*) => {
        mod sim_fabric_collectives {
            use super::case_runner;
            $(test_of!($ways $module $name);)*
        }
    };
}

each_case!(tests);

/// Broadcasts from each root, some short enough for the multicast and some too long. Barriers
/// between them order puts of neighbours. Returns the number of wrong results.
fn rounds(job: &Job, world: &Communicator) -> Result<usize> {
    let (me, size) = (world.rank().0, world.size());
    let causes = job.alloc::<u64>(1)?;
    let mut wrong = 0;
    for round in 0..3 * size.max(4) {
        let root = Rank(round % size);
        let len = [0, 1, 7, 500, 60, 3, 2000][round % 7];
        let of = |rank: usize| (0..len).map(move |at| (round * 100 + rank) as u64 + at);
        let mut values: Vec<u64> = of(me).collect();
        world.bcast(&mut values, root)?;
        wrong += usize::from(!values.into_iter().eq(of(root.0)));
        if round % 3 != 0 {
            let after = Rank((job.rank().0 + 1) % job.size());
            job.put(causes.on(after), &[round as u64])?;
            world.barrier()?;
            wrong += usize::from(causes.get(0)? != round as u64);
            world.barrier()?;
        }
    }
    job.barrier()?;
    Ok(wrong)
}

#[test]
fn broadcasts_and_barriers_in_turn() {
    for (machine, ranks) in OFFERING.iter().flat_map(|machine| [1, 2, 3, 9].map(|ranks| (machine, ranks))) {
        for seed in 0..4 {
            let what = format!("{}, {ranks} ranks, seed {seed}", machine.name);
            let _watched = Watchdog::over(what.clone());
            let wrong =
                tasuki::sim((machine.of)(Sim::seed(seed).ranks(ranks)), |job| rounds(job, job.world()));
            assert_eq!(
                wrong
                    .unwrap_or_else(|error| panic!("{what}: {error}"))
                    .values
                    .iter()
                    .flatten()
                    .sum::<usize>(),
                0
            );
        }
    }
}

/// Asserts that `rounds` notices a machine that breaks what the library relies on.
fn notices(fault: fn(Sim) -> Sim) {
    let fails = |seed| {
        let sim = fault(offering(Sim::seed(seed).ranks(3))).time_max_ns(1_000_000_000);
        tasuki::sim(sim, |job| rounds(job, job.world()))
            .map_or(true, |run| run.values.iter().flatten().sum::<usize>() > 0)
    };
    assert!((0..30).any(fails));
}

#[test]
fn meetings_that_end_too_early_are_noticed() {
    notices(|sim| sim.early_barriers(true));
}

#[test]
fn multicasts_whose_signals_come_first_are_noticed() {
    notices(|sim| sim.unordered_signals(true));
}

/// Communicators are created and dropped; each returns the memory that it used for the network's
/// operations.
#[test]
fn communicators_of_parts_come_and_go() {
    for seed in 0..4 {
        let run = tasuki::sim(offering(Sim::seed(seed).ranks(5)), |job| {
            let before = job.memory().local;
            for round in 0..6 {
                let part = job.world().split((job.rank().0 + round) % 2)?;
                let mut values = [part.rank().0 + 7; 10];
                part.bcast(&mut values, Member(1))?;
                assert_eq!(values, [8; 10]);
                part.barrier()?;
            }
            assert_eq!(job.memory().local, before);
            job.barrier()
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// A member dies at any moment; all calls of the others must end.
#[test]
fn deaths_end_all_calls() {
    for machine in &OFFERING {
        // On the other machines the setup takes longer, and it exchanges messages; deaths during
        // the setup are not tested here.
        let first_ns = if machine.name == "offering" { 5_000 } else { 5_000_000 };
        for at in (0..40).map(|step| first_ns + step * 7_919) {
            let what = format!("{}, a death at {at} ns", machine.name);
            let _watched = Watchdog::over(what.clone());
            let sim = (machine.of)(Sim::seed(at).ranks(4)).kill(Rank(2), at).time_max_ns(1_000_000_000);
            let run = tasuki::sim(sim, |job| {
                loop {
                    job.world().bcast(&mut [0_u8; 50], Rank(1))?;
                    job.world().barrier()?;
                }
            });
            let error = run.map(|run: tasuki::engine::Simulated<()>| run.values).expect_err(&what);
            assert!(matches!(error.cause(), Cause::PeerDied { peer: Rank(2), .. }), "{what}: {error}");
        }
    }
}

/// A call that one member makes while the others make another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TestAction {
    Barrier,
    Bcast(usize, usize),
    Allreduce,
    Gather,
    Leave,
}

const ACTIONS: [TestAction; 8] = [
    TestAction::Barrier,
    TestAction::Bcast(4, 0),
    TestAction::Bcast(5, 0),
    TestAction::Bcast(4, 1),
    TestAction::Bcast(2000, 0),
    TestAction::Allreduce,
    TestAction::Gather,
    TestAction::Leave,
];

fn is_of_the_network(action: TestAction) -> bool {
    matches!(action, TestAction::Barrier | TestAction::Bcast(..1000, _))
}

fn act(world: &Communicator, action: TestAction) -> Result<()> {
    match action {
        TestAction::Barrier => world.barrier(),
        TestAction::Bcast(len, root) => world.bcast(&mut vec![0_u64; len], Rank(root)),
        TestAction::Allreduce => world.allreduce(&[1_u64; 3], Sum).map(drop),
        TestAction::Gather => world.gather(&[1_u64; 3], Rank(0)).map(drop),
        TestAction::Leave => Ok(()),
    }
}

/// One member makes a different call than the others. Then all make further calls, unless a member
/// leaves. Returns what failed.
fn disagree(job: &Job, odd: Rank, actions: [TestAction; 2]) -> Result<Option<Cause>> {
    let world = job.world();
    world.bcast(&mut [0_u8; 3], Rank(0))?;
    world.barrier()?;
    job.barrier()?;
    let action = actions[usize::from(job.rank() != odd)];
    let mut outcome = act(world, action);
    if action != TestAction::Leave && actions.contains(&TestAction::Leave) {
        return Ok(outcome.err().map(|error| error.cause().clone()));
    }
    for _ in 0..2 {
        outcome = if action == TestAction::Leave { outcome } else { outcome.and(world.barrier()) };
    }
    Ok(outcome.err().map(|error| error.cause().clone()))
}

#[test]
fn members_in_different_calls_get_an_error() {
    let pairs = ACTIONS.into_iter().flat_map(|one| ACTIONS.map(|other| [one, other]));
    for actions in pairs.filter(|[one, other]| one != other && *other != TestAction::Leave) {
        for (ranks, odd) in [(2, 0), (2, 1), (3, 0), (3, 1), (11, 0), (11, 4)] {
            let what = format!("{actions:?}, rank {odd} of {ranks}");
            let _watched = Watchdog::over(what.clone());
            let sim = offering(Sim::seed(3).ranks(ranks)).time_max_ns(10_000_000_000);
            let run = tasuki::sim(sim, |job| disagree(job, Rank(odd), actions));
            let causes = run.unwrap_or_else(|error| panic!("{what}: {error}")).values;
            let is_it = |cause: &Cause| {
                matches!(
                    cause,
                    Cause::Disagree { .. }
                        | Cause::Mismatch { .. }
                        | Cause::PeerLeft { .. }
                        | Cause::CommunicatorFailed { .. }
                )
            };
            let causes: Vec<Option<Cause>> = causes.into_iter().flatten().collect();
            assert!(causes.iter().flatten().all(is_it), "{what}: {causes:?}");
            // Messages may happen to fit, and a root need not notice that another member has left.
            let must_be = match actions.contains(&TestAction::Leave) {
                true => actions.contains(&TestAction::Barrier),
                false => actions.into_iter().any(is_of_the_network),
            };
            let has_error = causes.iter().any(Option::is_some) || !must_be;
            assert!(has_error, "{what}: no member got an error");
        }
    }
}
