//! D8, step by step: on the simulator a command is cancelled at every moment from its post until
//! after its effect.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tasuki::onesided::AtomicOp;
use tasuki::{Command, Handler, Handlers, Job, Rank, Request, Result, Sim};
use tasuki_tests::simulated_machines::MACHINES;
use tasuki_tests::watchdog::Watchdog;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TestAction {
    /// Changes a word on the other rank.
    Atomic,
    /// Copies bytes to the other rank, in pieces on machines with short transfers.
    Copy,
    /// Calls a handler on the other rank.
    Call,
    /// Like `Atomic`, but with two triggers, which are met one after the other.
    Join,
}

/// The states of the trigger and of the command at the moment of the cancellation.
type Moment = (&'static str, &'static str);

/// For each moment, how often the command was cancelled and how often it fired.
type Met = BTreeMap<Moment, [u32; 2]>;

/// The number of steps after which the trigger is raised; the second trigger is raised as many
/// steps later.
const RAISED: u32 = 32;
const STEPS: u32 = 150;
const LEN: usize = 3_000;

const COUNT: Handler<(), ()> = Handler::new("count", |cx, ()| {
    cx.local::<AtomicU64>().fetch_add(1, Ordering::Relaxed);
});

/// Rank 0 posts a command and cancels it after `delay`. Rank 1 raises the trigger meanwhile. Rank 0
/// returns the moment that the cancellation met, and whether the command was cancelled.
fn taken_back(
    job: &Job,
    action: TestAction,
    step: Duration,
    delay: Duration,
) -> Result<Option<(Moment, bool)>> {
    let (word, bytes) = (job.alloc::<u64>(1)?, job.alloc::<u8>(LEN)?);
    let (go, also, done, never) = (job.signal()?, job.signal()?, job.signal()?, job.signal()?);
    let (me, other) = (job.rank(), Rank(1));
    let queue = job.queue(4)?;
    let doing = match action {
        TestAction::Atomic | TestAction::Join => Command::atomic(word.on(other), AtomicOp::Add(1)),
        TestAction::Copy => Command::copy(bytes.on(me), bytes.on(other), LEN),
        TestAction::Call => COUNT.command(other, &()),
    };
    bytes.fill(if me == Rank(0) { 1 } else { 0 })?;
    job.barrier()?;
    if me == other {
        job.compute(RAISED * step);
        job.raise(go.on(Rank(0)), 1)?;
        if action == TestAction::Join {
            job.compute(RAISED * step);
            job.raise(also.on(Rank(0)), 1)?;
        }
        job.barrier()?;
        let called = job.local::<AtomicU64>().map_or(0, |count| count.load(Ordering::Relaxed));
        let happened = [word.get(0)?, u64::from(bytes.to_vec()?.iter().all(|&byte| byte == 1)), called];
        assert!(bytes.get(0)? == bytes.get(LEN - 1)?, "either all bytes or none were copied");
        job.put(word.on(Rank(0)), &[happened.iter().sum()])?;
        job.barrier()?;
        return Ok(None);
    }
    let waits = doing.when(go.reaches(1)).then(done.on(me).add(1));
    let posted = queue.post(if action == TestAction::Join { waits.when(also.reaches(1)) } else { waits })?;
    job.compute(delay);
    let is_met = go.value() >= 1 && (action != TestAction::Join || also.value() >= 1);
    let (is_over, stats) = (done.value() == 1, queue.stats());
    let place = match (stats.unread, stats.waiting, stats.in_flight) {
        _ if is_over => "over",
        (1.., _, _) => "not read",
        (_, 1.., _) => "waits",
        (_, _, 1..) => "under way",
        // The command is in no list: some thread is checking its next trigger, or its effect is
        // under way.
        _ => "in hand",
    };
    let cancelled = queue.cancel(posted)?;
    assert!(!queue.cancel(posted)?, "a command was cancelled twice");
    if !cancelled {
        done.wait_at_least(1)?;
    }
    job.barrier()?; // the trigger is raised by now
    assert!(never.reaches(1).wait_timeout(Duration::from_millis(2))?.is_none());
    job.barrier()?;
    let fired = u64::from(!cancelled);
    assert_eq!((word.get(0)?, done.value()), (fired, fired), "{place}, cancelled: {cancelled}");
    assert_eq!(queue.stats(), tasuki::engine::QueueStats::default());
    Ok(Some(((if is_met { "met" } else { "not met" }, place), cancelled)))
}

/// Cancels the command after each number of steps. A step is too short for two events of a command. Each `round` has
/// seeds of its own.
fn at_every_moment(name: &str, action: TestAction, step: Duration, round: u32) -> Met {
    let machine = MACHINES.iter().find(|machine| machine.name == name).expect("there is such a machine");
    let handlers = Handlers::new().local(AtomicU64::default).add(COUNT);
    let mut met = Met::new();
    for at in 0..STEPS {
        let seed = u64::from(round * STEPS + at);
        let sim = (machine.of)(Sim::seed(seed).ranks(2));
        let delay = step * at;
        let outcome = tasuki::sim_with(sim, &handlers, |job| taken_back(job, action, step, delay));
        let outcome =
            outcome.unwrap_or_else(|error| panic!("{action:?} on {name}, {delay:?}, seed {seed}: {error}"));
        let (moment, cancelled) =
            outcome.values.into_iter().flatten().flatten().next().expect("rank 0 returns the moment");
        met.entry(moment).or_default()[usize::from(!cancelled)] += 1;
    }
    eprintln!("{action:?} on {name}, cancelled and fired: {met:?}");
    met
}

/// How often all actions are tried until all moments have occurred. Some are short, and whether a seed meets them
/// depends on the times of everything before.
const ROUNDS: u32 = 6;

/// Tries all actions on one machine. A command may be cancelled only before it has fired, and all
/// of `moments` must have occurred.
fn on(name: &str, step: Duration, moments: &[Moment]) {
    let _watched = Watchdog::over(format!("commands taken back at every moment, {name}"));
    let mut all = Met::new();
    for round in 0..ROUNDS {
        for action in [TestAction::Atomic, TestAction::Copy, TestAction::Call, TestAction::Join] {
            for (moment, [cancelled, fired]) in at_every_moment(name, action, step, round) {
                let may_wait = matches!(moment, (_, "waits" | "not read"))
                    || action == TestAction::Join && moment.1 == "in hand";
                assert!(cancelled == 0 || may_wait, "{action:?} was cancelled at {moment:?}");
                let sum = all.entry(moment).or_default();
                *sum = [sum[0] + cancelled, sum[1] + fired];
            }
        }
        if ALWAYS.iter().chain(moments).all(|moment| all.contains_key(moment)) {
            return;
        }
    }
    for moment in ALWAYS.iter().chain(moments) {
        assert!(all.contains_key(moment), "{name}: never {moment:?}: {all:?}");
    }
}

const ALWAYS: [Moment; 5] = [
    ("not met", "not read"),
    ("not met", "waits"),
    ("met", "under way"),
    ("met", "in hand"),
    ("met", "over"),
];
/// The trigger has been raised, and no thread has looked at it yet.
const UNSEEN: Moment = ("met", "waits");

#[test]
fn at_every_moment_on_a_plain_machine() {
    on("plain", Duration::from_nanos(251), &[UNSEEN]);
}

#[test]
fn at_every_moment_where_memory_is_mapped() {
    on("mapped", Duration::from_nanos(251), &[UNSEEN]);
}

#[test]
fn at_every_moment_on_a_bare_machine() {
    on("bare", Duration::from_nanos(1_009), &[]);
}

#[test]
fn at_every_moment_on_a_narrow_machine() {
    on("narrow", Duration::from_nanos(601), &[]);
}
