//! D19: handlers that other ranks call.

use crate::exchange::{effort, next};
use crate::expected_error::check_error;
use crate::wait_until::{Idle, stay_away};
use bytemuck::{Pod, Zeroable};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::onesided::RemoteSignal;
use tasuki::{Command, Error, ErrorKind, GlobalPtr, HandlerCx, Handlers, Job, Rank, Request, Result};

/// State that the handlers of a rank share with its cases.
#[derive(Default)]
pub(in crate::cases) struct Desk {
    /// For each rank, the next number that should come from it.
    expected: Mutex<Vec<u64>>,
    /// The number of calls that came out of order.
    disordered: AtomicU64,
    ran: AtomicU64,
}

/// A copy that the handler `deliver` should make, and the signal to raise when it is done.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Delivery {
    from: GlobalPtr<u64>,
    to: GlobalPtr<u64>,
    done: RemoteSignal,
    count: u64,
}

/// A call whose handler makes two further calls, and so on for `levels` levels.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Spread {
    levels: u64,
    done: RemoteSignal,
}

const BRANCHES: usize = 2;
const LEVELS: u64 = 3;
/// The number of handler runs that one call causes, including its own.
const RUNS: u64 = 15;

/// A panic payload that panics when it is dropped.
struct ComesApart;

impl Drop for ComesApart {
    fn drop(&mut self) {
        panic!("it comes apart");
    }
}

fn in_order(cx: &HandlerCx<'_>, number: u64) {
    let desk = cx.local::<Desk>();
    let mut expected = desk.expected.lock().expect("no handler panics here");
    expected.resize(cx.size(), 0);
    let place = &mut expected[cx.from().index()];
    desk.disordered.fetch_add(u64::from(number != *place), Ordering::Relaxed);
    *place = number + 1;
}

fn spread(cx: &HandlerCx<'_>, Spread { levels, done }: Spread) -> Result<()> {
    cx.local::<Desk>().ran.fetch_add(1, Ordering::Relaxed);
    let Some(levels) = levels.checked_sub(1) else { return Ok(()) };
    for branch in 1..=BRANCHES {
        let to = Rank((cx.rank().0 + branch) % cx.size());
        cx.call_then(to, "spread", &Spread { levels, done }, done.add(1))?;
    }
    Ok(())
}

/// The handlers of all cases that need some.
pub(crate) fn handlers() -> Handlers {
    Handlers::new()
        .local(Desk::default)
        .add("double", |_: &HandlerCx<'_>, value: u64| 2 * value)
        .add("nothing", |cx: &HandlerCx<'_>, ()| {
            cx.local::<Desk>().ran.fetch_add(1, Ordering::Relaxed);
        })
        .add("mirror", |cx: &HandlerCx<'_>, words: [u64; 6]| -> [u64; 6] {
            std::array::from_fn(|at| words[5 - at] + cx.rank().0 as u64)
        })
        .add_many("sum", |cx: &HandlerCx<'_>, values: &[u32]| -> [u64; 3] {
            let sum = values.iter().copied().map(u64::from).sum();
            [sum, values.len() as u64, cx.from().0 as u64]
        })
        .add("in order", in_order)
        .add_fallible("spread", spread)
        .follow_ups(3, 2)
        .add_fallible("too deep", |cx: &HandlerCx<'_>, ()| cx.call(cx.from(), "nothing", &()))
        .add_fallible("too many", |cx: &HandlerCx<'_>, ()| {
            (0..3).try_for_each(|_| cx.call(cx.from(), "nothing", &()))
        })
        .follow_ups(1, 2)
        .add("panics", |cx: &HandlerCx<'_>, ()| assert!(cx.size() == 0, "there are ranks"))
        .add("comes apart", |_: &HandlerCx<'_>, ()| -> () { std::panic::panic_any(ComesApart) })
        .add_fallible("deliver", |cx: &HandlerCx<'_>, order: Delivery| {
            cx.post(&Command::copy(order.from, order.to, order.count as usize).then(order.done.add(1)))
        })
        .follow_ups(0, 1)
}

fn desk(job: &Job) -> &Desk {
    job.local().expect("the handlers of these cases have one")
}

/// Makes a call, and serves peers while there is no room for it.
fn patiently(idle: &Idle<'_>, call: impl Fn() -> Result<()>) -> Result<()> {
    loop {
        match call() {
            Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                idle.serve(Duration::from_micros(10))?
            }
            other => return other,
        }
    }
}

/// A reply comes from the rank and the handler that were called, and is the result for the given
/// argument, for every size.
pub fn d19_calls_are_answered(job: &Job) -> Result<()> {
    let double = job.handler("double")?;
    for to in job.ranks() {
        for value in 0..effort(job, 200, 3) as u64 {
            let mut by_number = job.call_with_reply::<_, u64>(to, double, &value)?;
            let mut by_name = job.call_with_reply::<_, u64>(to, "double", &(value + 1))?;
            assert_eq!((by_name.wait()?, by_number.wait()?), (2 * value + 2, 2 * value));
        }
        let words: [u64; 6] = job.call_with_reply(to, "mirror", &[1_u64, 2, 3, 4, 5, 6])?.wait()?;
        assert_eq!(words, [6, 5, 4, 3, 2, 1].map(|word| word + to.0 as u64));
        let () = job.call_with_reply(to, "nothing", &())?.wait()?;
        let many: [u64; 3] = job.call_with_reply(to, "sum", &[5_u32; 12])?.wait()?;
        assert_eq!(many, [60, 12, job.rank().0 as u64]);
    }
    job.barrier()
}

/// The buffer of a call arrives whole, and may be overwritten once the effect has happened.
pub fn d19_calls_bring_buffers(job: &Job) -> Result<()> {
    const MOST: usize = 16 * 1024;
    let (values, done) = (job.alloc::<u32>(MOST)?, job.signal()?);
    let mut own = vec![0_u32; 3];
    for (round, count) in [0, 13, MOST].into_iter().enumerate() {
        for to in job.ranks() {
            let value = (to.0 + 1 + round) as u32;
            values.fill(value)?;
            let sum: [u64; 3] = job.call_buffer_with_reply(to, "sum", values.pointer(), count)?.wait()?;
            assert_eq!(sum, [u64::from(value) * count as u64, count as u64, job.rank().0 as u64]);
        }
    }
    own.fill(7);
    let registered = job.register(own)?;
    let sum: [u64; 3] = job.call_buffer_with_reply(next(job), "sum", registered.pointer(), 3)?.wait()?;
    assert_eq!(sum[..2], [21, 3]);
    let me = job.rank();
    job.call_with(next(job), "sum", values.pointer(), MOST, done.on(me).add(1))?;
    done.wait_at_least(1)?;
    let long = job.call_buffer_with_reply::<_, [u64; 3]>(next(job), "sum", values.pointer(), MOST + 1);
    assert!(long.is_err_and(|error| error.to_string().contains("65536")));
    let nowhere = GlobalPtr::<u32>::new(values.pointer().address().add(1 << 35));
    let nowhere = job.call_buffer_with_reply::<_, [u64; 3]>(next(job), "sum", nowhere, 4)?.wait();
    assert!(nowhere.is_err_and(|error| error.to_string().contains("registration")));
    job.barrier()
}

/// Calls from one rank to another run in the order in which they were made, even if they are many.
pub fn d19_calls_keep_their_order(job: &Job) -> Result<()> {
    let (done, idle) = (job.signal()?, Idle::new(job)?);
    let rounds = effort(job, 5_000, 15) as u64;
    for number in 0..rounds {
        for to in job.ranks() {
            patiently(&idle, || job.call_then(to, "in order", &number, done.on(job.rank()).add(1)))?;
        }
    }
    done.wait_at_least(rounds * job.size() as u64)?;
    job.barrier()?;
    assert_eq!(desk(job).disordered.load(Ordering::Relaxed), 0);
    assert_eq!(*desk(job).expected.lock().expect("nobody panicked"), vec![rounds; job.size()]);
    assert!(job.call_failure().is_none());
    job.barrier()
}

/// A rank that makes no waiting call accepts calls only until its call queue is full. Then the
/// caller gets an error, and nothing is lost.
pub fn d19_full_at_the_poster(job: &Job) -> Result<()> {
    const CALLS: u64 = 600;
    let (back, done, idle) = (job.signal()?, job.signal()?, Idle::new(job)?);
    let call = || job.call_then(Rank(1), "nothing", &(), done.on(Rank(0)).add(1));
    if job.rank() == 0 {
        // With a helper, or on a simulated card, the rank runs calls although it makes none itself,
        // and may never be full.
        let mut taken = 0;
        let refused = (0..CALLS).find_map(|_| call().map(|()| taken += 1).err());
        let is_full = |error: &Error| matches!(error.cause(), Cause::Full { capacity: 256, .. });
        assert!(refused.as_ref().is_none_or(is_full), "{refused:?}");
        assert!(taken >= 256, "{taken}");
        job.raise(back.on(Rank(1)), 1)?;
        for _ in taken..CALLS {
            patiently(&idle, call)?;
        }
        done.wait_at_least(CALLS)?;
    } else if job.rank() == 1 {
        while back.value() == 0 {
            stay_away(job);
        }
    }
    job.barrier()?;
    let ran = desk(job).ran.load(Ordering::Relaxed);
    assert_eq!(ran, if job.rank() == 1 { CALLS } else { 0 });
    job.barrier()
}

/// Handlers make calls whose handlers make calls, on all ranks at once, into full queues. All of
/// them run.
pub fn d19_follow_ups_do_not_lock_up(job: &Job) -> Result<()> {
    let (done, idle, me) = (job.signal()?, Idle::new(job)?, job.rank());
    let calls = effort(job, 1_000, 1) as u64;
    let spread = Spread { levels: LEVELS, done: done.on(me) };
    for _ in 0..calls {
        patiently(&idle, || job.call_then(next(job), "spread", &spread, done.on(me).add(1)))?;
    }
    done.wait_at_least(calls * RUNS)?;
    job.barrier()?;
    let all = job.world().allreduce(&[desk(job).ran.load(Ordering::Relaxed)], tasuki::Sum)?;
    assert_eq!(all, [calls * RUNS * job.size() as u64]);
    job.barrier()
}

/// Handlers that fail, and calls that cannot be made: the caller gets an error, and the ranks
/// continue.
pub fn d19_failures_are_reported(job: &Job) -> Result<()> {
    let (done, to) = (job.signal()?, next(job));
    let says = |outcome: Result<()>, text: &str| {
        let error = outcome.expect_err(text).to_string();
        assert!(error.contains(text), "{text:?} is not in: {error}");
    };
    says(job.call_with_reply(to, "panics", &())?.wait(), "there are ranks");
    says(job.call_with_reply(to, "panics", &())?.wait(), &format!("on rank {to}"));
    says(job.call_with_reply(to, "too deep", &())?.wait(), "deeper than its follow_ups allow");
    says(job.call_with_reply(to, "too many", &())?.wait(), "more in one run than its follow_ups allow");
    says(job.call(to, "nobody", &()), "there is no handler \"nobody\": the job has double");
    says(job.call(to, "double", &1_u32), "takes 8 bytes; the call has 4");
    says(job.call_with_reply::<_, ()>(to, "double", &1_u64).map(drop), "returns 8 bytes, not 0");
    says(job.call(Rank(job.size()), "double", &1_u64), "there is no rank");
    says(job.call(to, "mirror", &[0_u64; 7]), "56 bytes: a call carries at most 48");
    assert!(job.call_failure().is_none());
    job.call(to, "panics", &())?;
    job.call_with_reply::<_, u64>(to, "double", &1_u64)?.wait()?; // runs after the failed call
    let idle = Idle::new(job)?;
    idle.until(|| Ok(job.call_failure().is_some()))?;
    let failed = job.call_failure().expect("the rank has a failed call");
    let texts = [
        "call(..): failed on rank",
        &format!("{to}: handler \"panics\" failed"),
        "hint: see the output of that rank",
    ];
    check_error(job, &failed, ErrorKind::Program, &texts);
    job.call_then(to, "panics", &(), done.on(job.rank()).add(1))?;
    let poisoned = done.wait_at_least(1).expect_err("the signal is poisoned");
    assert!(matches!(poisoned.cause(), Cause::Poisoned { origin, .. } if *origin == to), "{poisoned}");
    let texts = [
        "an earlier command failed",
        &format!("rank {to}: handler \"panics\" failed"),
        "hint: see the output of that rank",
    ];
    check_error(job, &poisoned, ErrorKind::Program, &texts);
    job.barrier()
}

/// A command that is a call fires when its trigger is met, whichever rank meets it. Its effects
/// follow the run of the handler.
pub fn d19_calls_fire_in_queues(job: &Job) -> Result<()> {
    let (go, done, me, to) = (job.signal()?, job.signal()?, job.rank(), next(job));
    let (handler, queue) = (job.handler("in order")?, job.queue(64)?);
    let idle = Idle::new(job)?;
    let rounds = effort(job, 2_000, 10) as u64;
    for number in 0..rounds {
        let call = Command::call(to, handler, &number);
        let call = call.when(go.reaches(number + 1)).then(done.on(me).add(1));
        crate::cases::command_queues::post(&queue, &idle, &call)?;
        if number % 8 == 7 {
            job.raise(go.on(me), 8)?;
        }
    }
    job.raise(go.on(me), 8)?;
    done.wait_at_least(rounds)?;
    job.barrier()?;
    assert_eq!(done.value(), rounds, "each command had one effect");
    let before = job.rank_after(-1).index();
    assert_eq!(desk(job).expected.lock().expect("no handler panics here").get(before), Some(&rounds));
    assert_eq!(desk(job).disordered.load(Ordering::Relaxed), 0);
    let wrong = queue.post(Command::call(to, handler, &1_u8));
    assert!(wrong.is_err_and(|error| error.to_string().contains("takes 8 bytes; the call has 1")));
    let panics = job.handler("panics")?;
    queue.post(Command::call(to, panics, &()).then(go.on(me).add(1)))?;
    let mut poisoned = go.reaches(1 << 40);
    idle.until(|| Ok(poisoned.test()))?;
    poisoned.wait().expect_err("the handler panicked");
    job.barrier()
}

/// Commands that handlers post are run. Here they copy a result that is too long for a reply.
pub fn d19_handlers_post_commands(job: &Job) -> Result<()> {
    const COUNT: usize = 3_000;
    let (there, here, arrived) = (job.alloc::<u64>(COUNT)?, job.alloc::<u64>(COUNT)?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    for round in 1..=effort(job, 50, 3) as u64 {
        there.fill(round * 1000 + me.0 as u64)?;
        job.barrier()?;
        let done = arrived.on(me);
        let order = Delivery { from: there.on(to), to: here.on(me), done, count: COUNT as u64 };
        let () = job.call_with_reply(to, "deliver", &order)?.wait()?;
        arrived.wait_at_least(round)?;
        assert_eq!(here.to_vec()?, vec![round * 1000 + to.0 as u64; COUNT]);
        job.barrier()?;
    }
    Ok(())
}

/// Replies that nobody waits for do not get in the way of others.
pub fn d19_answers_are_dropped(job: &Job) -> Result<()> {
    let idle = Idle::new(job)?;
    for _ in 0..effort(job, 2_000, 270) {
        patiently(&idle, || job.call_with_reply::<_, u64>(next(job), "double", &1_u64).map(drop))?;
    }
    assert_eq!(job.call_with_reply::<_, u64>(next(job), "double", &4_u64)?.wait()?, 8);
    job.barrier()
}

/// Replies that come after their request was dropped are not taken for other replies, and do not
/// overwrite them.
pub fn d19_late_answers(job: &Job) -> Result<()> {
    let (back, idle) = (job.signal()?, Idle::new(job)?);
    job.barrier()?;
    if job.rank() == Rank(1) {
        while back.value() == 0 {
            stay_away(job);
        }
    } else if job.rank() == Rank(0) {
        for _ in 0..150 {
            drop(job.call_with_reply::<_, u64>(Rank(1), "double", &1_u64)?);
        }
        let kept = (0..50_u64).map(|value| job.call_with_reply::<_, u64>(Rank(2), "double", &value));
        let mut kept = kept.collect::<Result<Vec<_>>>()?;
        idle.until(|| Ok(kept.iter_mut().all(Request::test)))?;
        job.raise(back.on(Rank(1)), 1)?;
        assert_eq!(job.call_with_reply::<_, u64>(Rank(1), "double", &7_u64)?.wait()?, 14);
        for (value, mut answer) in (0..).zip(kept) {
            assert_eq!(answer.wait()?, 2 * value);
        }
    }
    job.barrier()
}

/// Several threads of a rank make calls at the same time; each gets its own replies.
pub fn d19_eight_threads_ask(job: &Job) -> Result<()> {
    let asks = effort(job, 500, 2) as u64;
    let outcomes = job.threads(8, |thread| {
        for number in 0..asks {
            let (to, value) = (job.rank_after((thread + 1) as i64), number * 8 + thread as u64);
            assert_eq!(job.call_with_reply::<_, u64>(to, "double", &value)?.wait()?, 2 * value);
        }
        Ok(())
    })?;
    outcomes.into_iter().collect::<Result<()>>()?;
    job.barrier()
}

/// A rank runs all calls that it has accepted before it leaves.
pub fn d19_taken_calls_are_run(job: &Job) -> Result<()> {
    let (done, called) = (job.signal()?, job.signal()?);
    job.barrier()?;
    if job.rank() == 0 {
        for to in job.ranks().skip(1) {
            job.call_then(to, "nothing", &(), done.on(Rank(0)).add(1))?;
            job.raise(called.on(to), 1)?;
        }
        return done.wait_at_least(job.size() as u64 - 1);
    }
    while called.value() == 0 {
        stay_away(job);
    }
    Ok(())
}
