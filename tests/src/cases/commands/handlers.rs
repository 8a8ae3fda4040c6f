//! D19: handlers that other ranks call.

use crate::exchange::{effort, next};
use crate::expected_error::check_error;
use crate::wait_until::{Idle, stay_away};
use bytemuck::{Pod, Zeroable};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::onesided::RemoteSignal;
use tasuki::{
    Command, Error, ErrorKind, GlobalPtr, Handler, HandlerCx, Handlers, Job, Rank, Request, Result,
};

/// State that the handlers of a rank share with its cases.
#[derive(Default)]
pub(in crate::cases) struct Desk {
    /// For each rank, the next number that should come from it.
    expected: Mutex<Vec<u64>>,
    /// The number of calls that came out of order.
    disordered: AtomicU64,
    pub(super) ran: AtomicU64,
    /// For each rank, the number of its calls of `COUNT_ABOVE` that have run.
    counted: Mutex<Vec<u64>>,
    /// For each rank, what `COLLECT` has got from it last: the sum and the number of the values.
    collected: Mutex<Vec<[u64; 2]>>,
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

pub(super) const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
pub(crate) const NOTHING: Handler<(), ()> = Handler::new("nothing", |cx, ()| {
    cx.local::<Desk>().ran.fetch_add(1, Ordering::Relaxed);
});
const MIRROR: Handler<[u64; 6], [u64; 6]> =
    Handler::new("mirror", |cx, words| std::array::from_fn(|at| words[5 - at] + cx.rank().0 as u64));
/// Returns the sum and the number of the values, and the calling rank.
pub(super) const SUM: Handler<[u32], [u64; 3]> = Handler::new("sum", |cx, values| {
    let sum = values.iter().copied().map(u64::from).sum();
    [sum, values.len() as u64, cx.from().0 as u64]
});
const IN_ORDER: Handler<u64, ()> = Handler::new("in order", in_order);
const SPREAD: Handler<Spread, ()> = Handler::fallible("spread", spread).follow_ups(3, 3);
const TOO_DEEP: Handler<(), ()> = Handler::fallible("too deep", |cx, ()| NOTHING.forward(cx, cx.from(), &()));
const TOO_MANY: Handler<(), ()> =
    Handler::fallible("too many", |cx, ()| (0..3).try_for_each(|_| NOTHING.forward(cx, cx.from(), &())))
        .follow_ups(1, 2);
pub(super) const PANICS: Handler<[u8], ()> =
    Handler::new("panics", |cx, _| assert!(cx.size() == 0, "there are ranks"));
pub(crate) const COMES_APART: Handler<(), ()> =
    Handler::new("comes apart", |_, ()| std::panic::panic_any(ComesApart));
const DELIVER: Handler<Delivery, ()> = Handler::fallible("deliver", |cx, order: &Delivery| {
    cx.post(&Command::copy(order.from, order.to, order.count as usize).then(order.done.add(1)))
})
.follow_ups(0, 1);
/// Fails with a text of that many characters.
const FAILS: Handler<u64, ()> = Handler::fallible("fails", |_, &len| Err("x".repeat(len as usize).into()));
/// Its calls are in a queue that is read after the queue of `COUNTED`.
const COUNT_ABOVE: Handler<(), ()> =
    Handler::new("count above", |cx, ()| *of_caller(cx, &mut locked(&cx.local::<Desk>().counted)) += 1)
        .follow_ups(1, 0);
const COUNTED: Handler<(), u64> =
    Handler::new("counted", |cx, ()| *of_caller(cx, &mut locked(&cx.local::<Desk>().counted)));
const COLLECT: Handler<[u32], ()> = Handler::new("collect", |cx, values| {
    let sum = values.iter().copied().map(u64::from).sum();
    *of_caller(cx, &mut locked(&cx.local::<Desk>().collected)) = [sum, values.len() as u64];
});
const COLLECTED: Handler<(), [u64; 2]> =
    Handler::new("collected", |cx, ()| *of_caller(cx, &mut locked(&cx.local::<Desk>().collected)));

fn locked<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().expect("no handler panics here")
}

/// The entry of the calling rank in a list.
fn of_caller<'l, T: Clone + Default>(cx: &HandlerCx<'_>, list: &'l mut Vec<T>) -> &'l mut T {
    list.resize(cx.size(), T::default());
    &mut list[cx.from().index()]
}

fn in_order(cx: &HandlerCx<'_>, &number: &u64) {
    let desk = cx.local::<Desk>();
    let mut expected = locked(&desk.expected);
    let place = of_caller(cx, &mut expected);
    desk.disordered.fetch_add(u64::from(number != *place), Ordering::Relaxed);
    *place = number + 1;
}

fn spread(cx: &HandlerCx<'_>, &Spread { levels, done }: &Spread) -> Result<()> {
    cx.local::<Desk>().ran.fetch_add(1, Ordering::Relaxed);
    cx.raise(done, 1)?;
    let Some(levels) = levels.checked_sub(1) else { return Ok(()) };
    (1..=BRANCHES).try_for_each(|branch| {
        SPREAD.forward(cx, Rank((cx.rank().0 + branch) % cx.size()), &Spread { levels, done })
    })
}

/// Runs so long that a call with a limit ends meanwhile.
const BUSY: Handler<u64, u64> = Handler::new("busy", |_, value| {
    std::thread::sleep(Duration::from_millis(300));
    *value
});

/// The handlers of all cases that need some.
pub(crate) fn handlers() -> Handlers {
    let handlers = Handlers::new()
        .local(Desk::default)
        .add(DOUBLE)
        .add(NOTHING)
        .add(MIRROR)
        .add(SUM)
        .add(IN_ORDER)
        .add(SPREAD)
        .add(TOO_DEEP)
        .add(TOO_MANY)
        .add(PANICS)
        .add(COMES_APART)
        .add(DELIVER)
        .add(FAILS)
        .add(COUNT_ABOVE)
        .add(COUNTED)
        .add(COLLECT)
        .add(COLLECTED)
        .add(BUSY);
    super::super::messaging::objects::add_to(super::long_calls::add_to(handlers))
}

pub(super) fn desk(job: &Job) -> &Desk {
    job.local().expect("the handlers of these cases have one")
}

/// A reply comes from the rank and the handler that were called, and is the result for the given
/// argument, for every size.
pub fn d19_calls_are_answered(job: &Job) -> Result<()> {
    for to in job.ranks() {
        for value in 0..effort(job, 200, 3) as u64 {
            let mut first = DOUBLE.call(job, to, &value)?;
            let mut second = DOUBLE.try_call(job, to, &(value + 1))?;
            assert_eq!((second.wait()?, first.wait()?), (2 * value + 2, 2 * value));
        }
        let words = MIRROR.call(job, to, &[1, 2, 3, 4, 5, 6])?.wait()?;
        assert_eq!(words, [6, 5, 4, 3, 2, 1].map(|word| word + to.0 as u64));
        let () = NOTHING.call(job, to, &())?.wait()?;
        assert_eq!(SUM.call(job, to, &[5; 12])?.wait()?, [60, 12, job.rank().0 as u64]);
    }
    job.barrier()
}

/// The buffer of a call by a command arrives whole, and may be overwritten once the effect has happened.
pub fn d19_calls_bring_buffers(job: &Job) -> Result<()> {
    const MOST: usize = 100_000;
    let (values, done, queue) = (job.alloc::<u32>(MOST)?, job.signal()?, job.queue(8)?);
    let mut expected = 0;
    let mut collect = |to, from: GlobalPtr<u32>, count| {
        queue.post(COLLECT.command_at(to, from.slice(count)).then(done.on(job.rank()).add(1)))?;
        expected += 1;
        done.wait_at_least(expected)?;
        COLLECTED.call(job, to, &())?.wait()
    };
    for (round, count) in [0, 1, 13, MOST].into_iter().enumerate() {
        for to in job.ranks() {
            let value = (to.0 + 1 + round) as u32;
            values.fill(value)?;
            assert_eq!(
                collect(to, values.pointer(), count)?,
                [u64::from(value) * count as u64, count as u64]
            );
        }
    }
    let registered = job.register(vec![7; 3])?;
    assert_eq!(collect(next(job), registered.pointer(), 3)?, [21, 3]);
    let nowhere = GlobalPtr::<u32>::new(values.pointer().address().add(1 << 35));
    let error = collect(next(job), nowhere, 4).expect_err("there is no memory");
    assert!(error.to_string().contains("registration"), "{error}");
    let two = queue.post(DOUBLE.command_at(next(job), GlobalPtr::NULL.slice(2)));
    assert!(two.is_err_and(|error| error.to_string().contains("takes one value, not 2")));
    job.barrier()
}

/// Calls from one rank to another run in the order in which they were made, even if they are many.
pub fn d19_calls_keep_their_order(job: &Job) -> Result<()> {
    let rounds = effort(job, 5_000, 15) as u64;
    for number in 0..rounds {
        job.ranks().try_for_each(|to| IN_ORDER.post(job, to, &number))?;
    }
    job.flush_calls()?;
    job.barrier()?;
    assert_eq!(desk(job).disordered.load(Ordering::Relaxed), 0);
    assert_eq!(*desk(job).expected.lock().expect("nobody panicked"), vec![rounds; job.size()]);
    job.barrier()
}

/// A rank that makes no waiting call accepts calls only until its call queue is full. Then a caller
/// gets an error, or waits, and nothing is lost.
pub fn d19_full_at_the_poster(job: &Job) -> Result<()> {
    const CALLS: u64 = 600;
    let back = job.signal()?;
    if job.rank() == 0 {
        // With a helper, or on a simulated card, the rank runs calls although it makes none itself,
        // and may never be full.
        let mut taken = 0;
        let call = || NOTHING.try_call(job, Rank(1), &()).map(drop);
        let refused = (0..CALLS).find_map(|_| call().map(|()| taken += 1).err());
        let is_full =
            |error: &Error| error.is_full() && matches!(error.cause(), Cause::Full { capacity: 256, .. });
        assert!(refused.as_ref().is_none_or(is_full), "{refused:?}");
        assert!(taken >= 256, "{taken}");
        job.raise(back.on(Rank(1)), 1)?;
        for _ in taken..CALLS {
            NOTHING.post(job, Rank(1), &())?;
        }
        job.flush_calls()?;
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

/// All ranks call each other until the queues are full, and nobody makes any other call: by calls that wait for room,
/// and by calls that are refused and made again.
pub fn d19_full_rings_do_not_lock_up(job: &Job) -> Result<()> {
    let calls = effort(job, 3_000, 300) as u64;
    for number in 0..calls {
        match number % 3 {
            0 => NOTHING.post(job, next(job), &())?,
            1 => drop(NOTHING.call(job, next(job), &())?),
            _ => loop {
                match NOTHING.try_call(job, next(job), &()) {
                    Err(error) if error.is_full() => drop(job.serve()?),
                    called => break drop(called?),
                }
            },
        }
    }
    job.flush_calls()?;
    job.barrier()?;
    assert_eq!(desk(job).ran.load(Ordering::Relaxed), calls);
    job.barrier()
}

/// A rank that only serves runs the handlers that the others wait for, and is told when it ran some.
pub fn d19_serving_is_enough(job: &Job) -> Result<()> {
    let calls = effort(job, 1_000, 20) as u64;
    let wanted = calls * (job.size() as u64 - 1);
    job.barrier()?;
    if job.rank() == 0 {
        while desk(job).ran.load(Ordering::Relaxed) < wanted {
            let before = desk(job).ran.load(Ordering::Relaxed);
            let ran = job.serve()?;
            assert!(!ran || desk(job).ran.load(Ordering::Relaxed) > before, "it says that it ran some");
            stay_away(job);
        }
    } else {
        (0..calls).try_for_each(|_| NOTHING.call(job, Rank(0), &())?.wait())?;
    }
    job.barrier()
}

/// Handlers make calls whose handlers make calls, on all ranks at once, into full queues. All of
/// them run.
pub fn d19_follow_ups_do_not_lock_up(job: &Job) -> Result<()> {
    let (done, me) = (job.signal()?, job.rank());
    let calls = effort(job, 1_000, 1) as u64;
    let spread = Spread { levels: LEVELS, done: done.on(me) };
    for _ in 0..calls {
        SPREAD.post(job, next(job), &spread)?;
    }
    done.wait_at_least(calls * RUNS)?;
    job.flush_calls()?;
    job.barrier()?;
    let all = job.world().allreduce(&[desk(job).ran.load(Ordering::Relaxed)], tasuki::Sum)?;
    assert_eq!(all, [calls * RUNS * job.size() as u64]);
    job.barrier()
}

/// Handlers that fail, and calls that cannot be made: the caller gets an error, and the ranks
/// continue.
pub fn d19_failures_are_reported(job: &Job) -> Result<()> {
    const NOBODY: Handler<(), ()> = Handler::new("nobody", |_, ()| ());
    const OTHER_TYPES: Handler<f64, u64> = Handler::new("double", |_, _| 0);
    let (done, to) = (job.signal()?, next(job));
    let says = |outcome: Result<()>, text: &str| {
        let error = outcome.expect_err(text).to_string();
        assert!(error.contains(text), "{text:?} is not in: {error}");
    };
    says(PANICS.call(job, to, &[])?.wait(), "handler \"panics\" failed: panicked: there are ranks");
    says(PANICS.call(job, to, &[1; 100])?.wait(), &format!("failed on rank {to}"));
    says(TOO_DEEP.call(job, to, &())?.wait(), "deeper than its follow_ups allow");
    says(TOO_MANY.call(job, to, &())?.wait(), "more in one run than its follow_ups allow");
    says(NOBODY.post(job, to, &()), "there is no handler \"nobody\": the job has double");
    says(
        OTHER_TYPES.post(job, to, &1.0),
        "other types; the job has \"double\", which takes u64, returns u64",
    );
    says(DOUBLE.post(job, Rank(job.size()), &1), "there is no rank");
    for (len, reported) in [(40, 40), (4_000, 4_000), (10_000, 4_096)] {
        let error = FAILS.call(job, to, &len)?.wait().expect_err("it fails").to_string();
        assert_eq!(error.matches('x').count(), reported, "{error}");
    }
    PANICS.post_then(job, to, &[], done.on(job.rank()).add(1))?;
    let poisoned = done.wait_at_least(1).expect_err("the signal is poisoned");
    assert!(matches!(poisoned.cause(), Cause::Poisoned { origin, .. } if *origin == to), "{poisoned}");
    let texts = [
        "an earlier command failed",
        &format!("rank {to}: handler \"panics\" failed"),
        "hint: see the output of that rank",
    ];
    check_error(job, &poisoned, ErrorKind::Program, &texts);
    job.flush_calls()?;
    job.barrier()
}

/// A flush returns when all calls have run that this rank has posted, and its error is the first failure of these.
pub fn d19_flush_waits_for_all_calls(job: &Job) -> Result<()> {
    job.flush_calls()?;
    let calls = effort(job, 1_000, 20) as u64;
    for round in 1..=3 {
        for to in job.ranks() {
            (0..calls).try_for_each(|_| COUNT_ABOVE.post(job, to, &()))?;
        }
        job.flush_calls()?;
        for to in job.ranks() {
            assert_eq!(COUNTED.call(job, to, &())?.wait()?, round * calls);
        }
    }
    let last = job.rank_after(-1);
    for len in [0, 49, 100_000] {
        PANICS.post(job, last, &vec![0; len])?;
        FAILS.post(job, last, &7)?;
        let () = NOTHING.call(job, last, &())?.wait()?; // its reply does not take the failure
        let failed = job.flush_calls().expect_err("two calls have failed");
        let texts =
            ["flush_calls(): failed on rank", &format!("{last}: handler \"panics\" failed: panicked: there")];
        check_error(job, &failed, ErrorKind::Program, &texts);
        NOTHING.post(job, last, &())?;
        job.flush_calls()?; // a failure is reported once
    }
    job.barrier()
}

/// A command that is a call fires when its trigger is met, whichever rank meets it. Its effects
/// follow the run of the handler.
pub fn d19_calls_fire_in_queues(job: &Job) -> Result<()> {
    let (go, done, me, to) = (job.signal()?, job.signal()?, job.rank(), next(job));
    let queue = job.queue(64)?;
    let idle = Idle::new(job)?;
    let rounds = effort(job, 2_000, 10) as u64;
    for number in 0..rounds {
        let call = IN_ORDER.command(to, &number).when(go.reaches(number + 1)).then(done.on(me).add(1));
        crate::cases::command_queues::post(&queue, &idle, &call)?;
        if number % 8 == 7 {
            job.raise(go.on(me), 8)?;
        }
    }
    job.raise(go.on(me), 8)?;
    done.wait_at_least(rounds)?;
    let two = [IN_ORDER.command(to, &rounds), Command::nothing(), IN_ORDER.command(to, &(rounds + 1))];
    queue.post_many(&two.map(|command| command.then(done.on(me).add(1))))?;
    done.wait_at_least(rounds + 3)?;
    job.barrier()?;
    assert_eq!(done.value(), rounds + 3, "each command had one effect");
    let before = job.rank_after(-1).index();
    let expected = desk(job).expected.lock().expect("no handler panics here").get(before).copied();
    assert_eq!(expected, Some(rounds + 2));
    assert_eq!(desk(job).disordered.load(Ordering::Relaxed), 0);
    const NOBODY: Handler<u64, ()> = Handler::new("nobody", |_, _| ());
    let wrong = queue.post(NOBODY.command(to, &1)).expect_err("there is no such handler").to_string();
    assert!(
        wrong.contains("post(call(handler \"nobody\" of rank") && wrong.contains("there is no handler"),
        "{wrong}"
    );
    let (panics, nothing) = (job.alloc::<u8>(1)?, job.signal()?);
    let panics = PANICS.command_at(to, panics.pointer().slice(1)).then(nothing.on(me).add(1));
    queue.post(panics)?;
    assert!(nothing.wait_at_least(1).is_err_and(|error| error.kind() == ErrorKind::Program));
    job.barrier()
}

/// Commands that handlers post are run. Here they copy values straight to where the caller wants them.
pub fn d19_handlers_post_commands(job: &Job) -> Result<()> {
    const COUNT: usize = 3_000;
    let (there, here, arrived) = (job.alloc::<u64>(COUNT)?, job.alloc::<u64>(COUNT)?, job.signal()?);
    let (me, to) = (job.rank(), next(job));
    for round in 1..=effort(job, 50, 3) as u64 {
        there.fill(round * 1000 + me.0 as u64)?;
        job.barrier()?;
        let done = arrived.on(me);
        let order = Delivery { from: there.on(to), to: here.on(me), done, count: COUNT as u64 };
        DELIVER.call(job, to, &order)?.wait()?;
        arrived.wait_at_least(round)?;
        assert_eq!(here.to_vec()?, vec![round * 1000 + to.0 as u64; COUNT]);
        job.barrier()?;
    }
    Ok(())
}

/// Replies that nobody waits for do not get in the way of others.
pub fn d19_answers_are_dropped(job: &Job) -> Result<()> {
    for _ in 0..effort(job, 2_000, 270) {
        drop(DOUBLE.call(job, next(job), &1)?);
    }
    assert_eq!(DOUBLE.call(job, next(job), &4)?.wait()?, 8);
    job.barrier()
}

/// As many replies as a rank has lines for may be unread. One more is refused, also by a call that waits for room.
pub fn d19_unread_answers_are_counted(job: &Job) -> Result<()> {
    let mut unread = Vec::new();
    let refused = loop {
        match DOUBLE.call(job, next(job), &(unread.len() as u64)) {
            Ok(reply) => unread.push(reply),
            Err(error) => break error,
        }
    };
    assert!(refused.is_full() && unread.len() == 256, "{}: {refused}", unread.len());
    for (value, mut reply) in (0..).zip(unread) {
        assert_eq!(reply.wait()?, 2 * value);
    }
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
            drop(DOUBLE.call(job, Rank(1), &1)?);
        }
        let kept = (0..50_u64).map(|value| DOUBLE.call(job, Rank(2), &value));
        let mut kept = kept.collect::<Result<Vec<_>>>()?;
        idle.until(|| Ok(kept.iter_mut().all(Request::test)))?;
        job.raise(back.on(Rank(1)), 1)?;
        assert_eq!(DOUBLE.call(job, Rank(1), &7)?.wait()?, 14);
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
            assert_eq!(DOUBLE.call(job, to, &value)?.wait()?, 2 * value);
            COUNT_ABOVE.post(job, to, &())?;
        }
        job.flush_calls()
    })?;
    outcomes.into_iter().collect::<Result<()>>()?;
    job.flush_calls()?;
    let mut counted = 0;
    for to in job.ranks() {
        counted += COUNTED.call(job, to, &())?.wait()?;
    }
    assert_eq!(counted, 8 * asks);
    job.barrier()
}

/// A rank runs all calls that it has accepted before it leaves.
pub fn d19_taken_calls_are_run(job: &Job) -> Result<()> {
    let (done, called) = (job.signal()?, job.signal()?);
    job.barrier()?;
    if job.rank() == 0 {
        for to in job.ranks().skip(1) {
            NOTHING.post_then(job, to, &(), done.on(Rank(0)).add(1))?;
            job.raise(called.on(to), 1)?;
        }
        return done.wait_at_least(job.size() as u64 - 1);
    }
    while called.value() == 0 {
        stay_away(job);
    }
    Ok(())
}

/// A wait for a reply, a flush, and a call that waits for room end when the limit is reached. The calls that were made
/// run all the same.
pub fn d19_calls_end_by_limits(job: &Job) -> Result<()> {
    const SHORT: Duration = Duration::from_millis(2);
    let (limited, last) = (job.within(SHORT), Rank(job.size() - 1));
    let is_late = |outcome: Result<()>| {
        let error = outcome.expect_err("the handler takes longer");
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    };
    if job.rank() == 0 {
        let mut reply = BUSY.call(job, last, &7)?;
        assert!(reply.wait_timeout(SHORT)?.is_none());
        job.set_timeout(Some(SHORT));
        is_late(reply.wait().map(drop));
        job.set_timeout(None);
        assert_eq!(reply.wait()?, 7);
        BUSY.post(job, last, &8)?;
        is_late(limited.flush_calls());
        job.flush_calls()?;
        BUSY.post(job, last, &9)?;
        is_late((0..1_000_000).try_for_each(|_| NOTHING.post(&limited, last, &())));
        job.flush_calls()?;
    }
    job.barrier()
}

/// A rank that makes no call of the library runs handlers if it serves in the background. It is shown to fail without
/// that where no helper runs, as with as many ranks as processors.
pub fn d19_idle_ranks_serve_in_background(job: &Job) -> Result<()> {
    let (done, last) = (job.signal()?, Rank(job.size() - 1));
    if job.rank() == last {
        job.serve_in_background()?;
        while done.value() < last.0 as u64 {
            std::thread::sleep(Duration::from_millis(1));
        }
    } else {
        for value in 0..20 {
            std::thread::sleep(Duration::from_millis(value % 4)); // the thread sleeps after 2 ms
            let answer = DOUBLE.call(job, last, &value)?.wait_timeout(Duration::from_secs(20))?;
            assert_eq!(answer, Some(2 * value), "the rank does not serve");
        }
        job.raise(done.on(last), 1)?;
    }
    job.barrier()
}
