//! Requests of every kind: they are tested, waited for, waited for with a limit, awaited, mixed with others, and
//! dropped.

use crate::blocked_operation::{Gate, ISSUER, KEEPER};
use crate::exchange::{is_simulated, next, previous};
use crate::expected_error::refused;
use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;
use tasuki::engine::{AnyRequest, Cause};
use tasuki::message::{RecvRequest, set_send_buffer};
use tasuki::nicam::Transfers;
use tasuki::onesided::{After, AtomicOp, PayloadSignal, PayloadWriter, TransferRequest};
use tasuki::{
    ErrorKind, GlobalPtr, Job, Plan, Rank, Request, Result, Slot, Sum, block_on, dims_create, wait_all,
    wait_any, wait_any_timeout,
};

/// How a case ends a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Wait,
    Test,
    Limit,
    BlockOn,
    /// An executor that knows nothing of requests.
    Pollster,
    /// Among others that do not finish.
    Any,
    Drop,
}

const WAYS: [Way; 7] = [Way::Wait, Way::Test, Way::Limit, Way::BlockOn, Way::Pollster, Way::Any, Way::Drop];

const SHORT: Duration = Duration::from_micros(50);
const LONG: Duration = Duration::from_secs(3600);

/// Ends a request. Returns `None` if it was dropped.
fn end<R, V>(job: &Job, way: Way, mut request: R) -> Result<Option<V>>
where
    R: Request<Value = V> + Future<Output = Result<V>>,
{
    match way {
        Way::Wait => request.wait().map(Some),
        Way::Test => {
            while !request.test() {
                job.compute(Duration::from_micros(1));
            }
            request.wait().map(Some)
        }
        Way::Limit => request.wait_timeout(LONG),
        Way::BlockOn => block_on(request).map(Some),
        Way::Pollster => pollster::block_on(request).map(Some),
        Way::Any => {
            let mut never = [job.signal()?.reaches(1), job.signal()?.reaches(2)];
            let [before, after] = &mut never;
            assert_eq!(wait_any([before as &mut dyn AnyRequest, &mut request, after])?, 1);
            assert!(request.test(), "the request that wait_any has named is finished");
            request.wait().map(Some)
        }
        Way::Drop => Ok(None),
    }
}

/// Ends a request of one kind in each way. `begin` begins it in a round; `None` on a rank that begins it in `give`.
/// `give` does what other ranks' requests need. `check` looks at the value; it is `None` if the request was dropped.
/// `is_held`: no request finishes before `give`.
fn in_each_way<R, V>(
    job: &Job,
    is_held: bool,
    mut begin: impl FnMut(usize) -> Result<Option<R>>,
    mut give: impl FnMut(usize, &mut Option<R>) -> Result<()>,
    mut check: impl FnMut(usize, Option<V>) -> Result<()>,
) -> Result<()>
where
    R: Request<Value = V> + Future<Output = Result<V>>,
{
    for (round, way) in WAYS.into_iter().enumerate() {
        let mut request = begin(round)?;
        job.barrier()?;
        if let Some(request) = request.as_mut().filter(|_| is_held) {
            assert!(!request.test(), "{way:?}: it is finished before its end");
            assert!(request.wait_timeout(SHORT)?.is_none(), "{way:?}: it ended before its end");
            assert!(wait_any_timeout([&mut *request], SHORT)?.is_none());
            if way == Way::Pollster {
                // A poll that is given up leaves nothing behind that would end the next one.
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                assert!(request.poll_finished(&mut context).is_pending());
            }
        }
        job.barrier()?;
        // Even ranks give first, so the others wait while nothing has been given.
        let gives_first = job.rank().index().is_multiple_of(2) || request.is_none();
        if gives_first {
            job.compute(Duration::from_micros(if round % 2 == 0 { 0 } else { 300 }));
            give(round, &mut request)?;
        }
        let mut slot = None;
        if !gives_first && way == Way::Drop {
            slot = request.take();
            give(round, &mut slot)?;
        }
        let ended = match request.take().or(slot) {
            Some(request) => end(job, way, request)?,
            None => None,
        };
        if !gives_first && way != Way::Drop {
            give(round, &mut None)?;
        }
        check(round, ended)?;
        job.barrier()?;
    }
    Ok(())
}

/// Receives: short ones, long ones, and receives of any slot. A message to a dropped receive goes to the next one.
pub fn receives_end_in_each_way(job: &Job) -> Result<()> {
    let world = job.world();
    for (len, slot) in [(1, Slot(1)), (1000, Slot(1)), (60_000, Slot(1)), (2, Slot::ANY)] {
        let values = |rank: Rank, round: usize| vec![(rank.0 * 100 + round) as u64; len];
        in_each_way(
            job,
            true,
            |_| world.irecv(vec![0_u64; len], previous(job), slot).map(Some),
            |round, _| world.isend(values(job.rank(), round), next(job), Slot(1)).map(drop),
            |round, got| {
                let got = match got {
                    Some((got, received)) => {
                        assert_eq!((received.count, received.slot), (len, Slot(1)));
                        got
                    }
                    None => world.irecv(vec![0; len], previous(job), Slot(1))?.wait()?.0,
                };
                assert_eq!(got, values(previous(job), round), "{len} values in round {round}");
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// Sends that wait for their receive. One that is dropped ends by itself.
pub fn sends_end_in_each_way(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let world = job.world();
    for len in [5, 75_000] {
        let got = RefCell::new(vec![0_u64; len]);
        in_each_way(
            job,
            true,
            |round| world.isend(vec![round as u64 + 1; len], next(job), Slot(2)).map(Some),
            |round, _| {
                let got = &mut *got.borrow_mut();
                world.recv(got, previous(job), Slot(2))?;
                assert_eq!(*got, vec![round as u64 + 1; len]);
                Ok(())
            },
            |round, sent: Option<Vec<u64>>| {
                assert!(sent.is_none_or(|sent| sent == vec![round as u64 + 1; len]));
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// Signals and payload signals.
pub fn signals_end_in_each_way(job: &Job) -> Result<()> {
    let signal = job.signal()?;
    in_each_way(
        job,
        true,
        |round| Ok(Some(signal.reaches(round as u64 + 1))),
        |_, _| job.raise(signal.on(next(job)), 1),
        |round, _| signal.wait_at_least(round as u64 + 1),
    )?;
    let line = PayloadSignal::<[u64; 3]>::new(job)?;
    let mut writer = line.writer(next(job))?;
    let mut reader = line.reader(Some(previous(job)));
    for round in 0..30_u64 {
        assert!(!reader.test() && reader.wait_timeout(Duration::ZERO)?.is_none());
        job.barrier()?;
        writer.put(&[round; 3])?;
        let value = match round % 4 {
            0 => reader.wait()?,
            1 => block_on(&mut reader)?,
            2 => pollster::block_on(&mut reader)?,
            _ => reader.wait_timeout(LONG)?.expect("it was written"),
        };
        assert_eq!(value, [round; 3]);
        job.barrier()?;
    }
    Ok(())
}

/// Collective calls by messages and by compiled steps, fuzzy barriers, and plans: rank 0 comes late.
pub fn collectives_end_in_each_way(job: &Job) -> Result<()> {
    let (world, is_late, ranks) = (job.world(), job.rank() == 0, job.size());
    let is_held = ranks > 1;
    for len in [1, 70_000] {
        let begin = |round: usize| world.iallreduce(vec![round as i64; len], Sum);
        in_each_way(
            job,
            is_held,
            |round| (!is_late).then(|| begin(round)).transpose(),
            |round, request| {
                *request = if is_late { Some(begin(round)?) } else { request.take() };
                Ok(())
            },
            |round, got| {
                assert!(got.is_none_or(|got| got == vec![(round * ranks) as i64; len]));
                Ok(())
            },
        )?;
    }
    in_each_way(
        job,
        is_held,
        |_| (!is_late).then(|| world.fuzzy_barrier()).transpose(),
        |_, request| {
            *request = if is_late { Some(world.fuzzy_barrier()?) } else { request.take() };
            Ok(())
        },
        |_, _| Ok(()),
    )?;
    let plan = |round: usize| -> Result<Plan<i64>> {
        let mut plan = world.allreduce_init::<i64>(10, Sum)?;
        plan.input()?.fill(round as i64);
        Ok(plan)
    };
    let late = RefCell::new(None);
    in_each_way(
        job,
        is_held,
        |round| {
            let mut plan = plan(round)?;
            if is_late {
                *late.borrow_mut() = Some(plan);
                return Ok(None);
            }
            plan.start()?;
            Ok(Some(plan))
        },
        |_, request| {
            if let Some(mut plan) = late.borrow_mut().take() {
                plan.start()?;
                *request = Some(plan);
            }
            Ok(())
        },
        |_, _| Ok(()),
    )?;
    let late = RefCell::new(None);
    in_each_way(
        job,
        is_held,
        |round| {
            let mut plan = plan(round)?.chunked()?;
            if is_late {
                *late.borrow_mut() = Some(plan);
                return Ok(None);
            }
            plan.start(vec![round as i64; 35])?;
            Ok(Some(plan))
        },
        |round, request| {
            if let Some(mut plan) = late.borrow_mut().take() {
                plan.start(vec![round as i64; 35])?;
                *request = Some(plan);
            }
            Ok(())
        },
        |round, got| {
            assert!(got.is_none_or(|got| got == vec![(round * ranks) as i64; 35]));
            Ok(())
        },
    )
}

/// Puts, gets, copies, atomic operations and stores that a closed gate holds.
pub fn transfers_end_in_each_way(job: &Job) -> Result<()> {
    let words = job.alloc::<u64>(8)?;
    for (round, way) in WAYS.into_iter().enumerate() {
        let gate = Gate::new(job)?;
        gate.held(job, |gate| {
            let (far, value) = (words.on(KEEPER), round as u64 + 1);
            let after = After::Exact(gate.close(job)?);
            let mut put = job.iput(far, vec![value, value], after)?;
            let get = job.iget(far, vec![0_u64; 2], After::Exact(put.handle()))?;
            let mut copy = job.copy(far, words.pointer(), 2, After::Exact(put.handle()))?;
            let add =
                job.iatomic(far.at(1), AtomicOp::Add(1), GlobalPtr::NULL, After::Exact(copy.handle()))?;
            let store = job.istore(far.at(2), value, After::Exact(add.handle()))?;
            let last = store.handle();
            if gate.is_tight(job) {
                assert!(!put.test() && !copy.test());
                assert!(put.wait_timeout(SHORT)?.is_none() && copy.wait_timeout(SHORT)?.is_none());
            }
            gate.open(job)?;
            assert!(end(job, way, put)?.is_none_or(|values| values == [value; 2]));
            assert!(end(job, way, get)?.is_none_or(|values| values[0] == value));
            let ended: Vec<TransferRequest<()>> = vec![copy, add, store];
            ended.into_iter().try_for_each(|transfer| end(job, way, transfer).map(drop))?;
            job.complete(last)?;
            assert_eq!(words.to_vec()?[..2], [value; 2]);
            assert_eq!(job.get_value(far.at(2))?, value);
            Ok(())
        })?;
    }
    if job.rank() == ISSUER {
        let mut once = job.iput(words.on(KEEPER), vec![1], After::Nothing)?;
        once.wait()?;
        assert!(once.test(), "what was waited for is finished");
        refused(job, once.wait(), ErrorKind::Misuse, &["was waited for already"]);
    }
    job.barrier()
}

/// `nicam::Sync`, and the replies of handlers.
pub fn syncs_end_in_each_way(job: &Job) -> Result<()> {
    let (data, transfers) = (job.alloc::<u64>(2000)?, Transfers::new(job)?);
    for way in WAYS {
        data.fill(0)?;
        job.barrier()?;
        transfers.copy(data.pointer(), data.on(next(job)).at(1000), 1000)?;
        if end(job, way, transfers.sync())?.is_none() {
            transfers.sync().wait()?;
        }
        job.barrier()?;
    }
    Ok(())
}

/// Of several requests of different kinds, `wait_any` names the one that has finished.
pub fn any_of_different_kinds(job: &Job) -> Result<()> {
    let (world, signal, line) = (job.world(), job.signal()?, PayloadSignal::<u64>::new(job)?);
    let mut writer = line.writer(next(job))?;
    let mut values = line.reader(Some(previous(job)));
    for round in 0..6_u64 {
        let mut message =
            world.irecv(vec![0_u64; if round < 3 { 2 } else { 2000 }], previous(job), Slot(0))?;
        let mut raised = signal.reaches(round + 1);
        job.barrier()?;
        let give = |kind: u64, writer: &mut PayloadWriter<'_, u64>| match kind {
            0 => world.isend(vec![round; if round < 3 { 2 } else { 2000 }], next(job), Slot(0)).map(drop),
            1 => job.raise(signal.on(next(job)), 1),
            _ => writer.put(&round),
        };
        let mut all: [&mut dyn AnyRequest; 3] = [&mut message, &mut raised, &mut values];
        assert_eq!(wait_any_timeout(all.iter_mut().map(|one| &mut **one), SHORT)?, None);
        job.barrier()?;
        let first = round % 3;
        give(first, &mut writer)?;
        let found = wait_any(all.iter_mut().map(|one| &mut **one))?;
        assert_eq!(found as u64, first, "the request that was given is the one that has finished");
        job.barrier()?;
        (0..3).filter(|&kind| kind != first).try_for_each(|kind| give(kind, &mut writer))?;
        let ((got, _), (), value) = wait_all((message, raised, &mut values))?;
        assert_eq!((got[0], value), (round, round));
        job.barrier()?;
    }
    let none: [&mut RecvRequest<u8>; 0] = [];
    let error = wait_any(none).expect_err("there is nothing to wait for");
    assert_eq!((error.kind(), error.call(), error.rank()), (ErrorKind::Misuse, "wait_any", Some(job.rank())));
    let error = dims_create(6, [4, 0]).expect_err("4 does not divide 6");
    assert_eq!((error.kind(), error.rank()), (ErrorKind::Misuse, Some(job.rank())));
    Ok(())
}

/// `wait_all` waits for all requests, also if some fail, and returns the first error.
pub fn all_are_waited_for_though_some_fail(job: &Job) -> Result<()> {
    let world = job.world();
    let receive = |room: usize, slot: usize| world.irecv(vec![0_u8; room], previous(job), Slot(slot));
    for form in 0..3 {
        let (first, second, third) = (receive(100, 0)?, receive(10, 1)?, receive(20, 2)?);
        let fourth = receive(100, 3)?;
        job.barrier()?;
        let sends = (0..4).map(|slot| world.isend(vec![slot as u8; 100], next(job), Slot(slot)));
        let sends = sends.collect::<Result<Vec<_>>>()?;
        let failed = match form {
            0 => wait_all((first, second, third, fourth)).map(drop),
            1 => wait_all([first, second, third, fourth]).map(drop),
            _ => wait_all(vec![first, second, third, fourth]).map(drop),
        };
        let error = refused(job, failed, ErrorKind::Disagreement, &["100 bytes", "only 10"]);
        assert!(matches!(error.cause(), Cause::Truncated { room: 10, .. }), "the first error: {error}");
        wait_all(sends).expect_err("two sends were too long for their receives");
        job.barrier()?;
        // All four receives are over: their slots are free, and none of them takes the next messages.
        let sends = (0..4).map(|slot| world.isend(vec![9 + slot as u8; 100], next(job), Slot(slot)));
        let sends = sends.collect::<Result<Vec<_>>>()?;
        let again = (0..4).map(|slot| receive(100, slot)).collect::<Result<Vec<_>>>()?;
        for (slot, (got, _)) in wait_all(again)?.into_iter().enumerate() {
            assert_eq!(got, vec![9 + slot as u8; 100]);
        }
        wait_all(sends)?;
    }
    Ok(())
}

/// Requests of a scope: short and long messages, which are tested, awaited, and waited for once. Values that are passed
/// by value live until they are sent.
pub fn scopes_have_requests_and_keep_temporaries(job: &Job) -> Result<()> {
    let (world, to, from, me) = (job.world(), next(job), previous(job), job.rank().0 as u64);
    for len in [1, 5, 100, 90_000] {
        for way in 0..5 {
            let (mut got, mut array, mut number, mut vector) =
                (vec![0_u64; len], [0_u64; 6], [0_u64], vec![0_u64; 2 * len]);
            let own = vec![me; len];
            world.scope(|s| {
                // The sends come first, so that most of them must keep their values.
                let mut sends = [
                    s.send(&own, to, Slot(0))?,
                    s.send([me + 1; 6], to, Slot(1))?,
                    s.send(me + 2, to, Slot(2))?,
                    s.send(vec![me + 3; 2 * len], to, Slot(3))?,
                ];
                let blocks: Vec<Vec<u64>> = (0..10).map(|_| vec![0xdd; 2 * len]).collect();
                if way < 3 {
                    job.barrier()?;
                }
                let mut receives = [
                    s.recv(&mut got, from, Slot(0))?,
                    s.recv(&mut array, from, Slot(1))?,
                    s.recv(&mut number, from, Slot(2))?,
                    s.recv(&mut vector, from, Slot(3))?,
                ];
                let counts = [len, 6, 1, 2 * len];
                for (receive, count) in receives.iter_mut().zip(counts) {
                    let received = match way {
                        0 => receive.wait()?,
                        1 => receive.wait_timeout(LONG)?.expect("it is sent"),
                        2 => block_on(&mut *receive)?,
                        3 => pollster::block_on(&mut *receive)?,
                        _ => {
                            while !receive.test() {
                                job.compute(Duration::from_micros(1));
                            }
                            receive.wait()?
                        }
                    };
                    assert_eq!((received.count, received.source.0), (count, from.0));
                    refused(job, receive.wait(), ErrorKind::Misuse, &["was waited for already"]);
                }
                for send in &mut sends {
                    match way {
                        0 => send.wait()?,
                        1 => assert!(send.wait_timeout(LONG)?.is_some()),
                        2 => block_on(&mut *send)?,
                        3 => pollster::block_on(&mut *send)?,
                        _ => continue,
                    }
                    refused(job, send.wait(), ErrorKind::Misuse, &["was waited for already"]);
                }
                s.wait_all()?;
                assert!(blocks.iter().flatten().all(|&value| value == 0xdd));
                // A request of an earlier message is not mistaken for one of a later message on the same slot.
                let mut later = s.send(me, to, Slot(2))?;
                for send in &mut sends {
                    assert!(send.test());
                    refused(job, send.wait(), ErrorKind::Misuse, &["wait_all"]);
                }
                let mut own = [0_u64];
                world.recv(&mut own, from, Slot(2))?;
                later.wait()
            })?;
            let before = from.0 as u64;
            assert_eq!((got, array, number), (vec![before; len], [before + 1; 6], [before + 2]));
            assert_eq!(vector, vec![before + 3; 2 * len]);
            job.barrier()?;
        }
    }
    // Nothing arrives, and the limit ends the wait.
    let mut into = [7_u64; 2];
    world.scope(|s| {
        let mut never = s.recv(&mut into, from, Slot(5))?;
        assert!(!never.test() && never.wait_timeout(SHORT)?.is_none());
        job.barrier()?;
        drop(world.isend(vec![me; 2], to, Slot(5))?);
        assert_eq!(never.wait_timeout(LONG)?.map(|received| received.count), Some(2));
        Ok(())
    })?;
    assert_eq!(into, [from.0 as u64; 2]);
    job.barrier()
}

/// A future that awaits something else than a request, besides requests, under `block_on`: a thread wakes it.
pub fn block_on_is_woken_by_other_threads(job: &Job) -> Result<()> {
    if is_simulated(job) {
        return Ok(()); // threads of the standard library would stop virtual time
    }
    let signal = job.signal()?;
    for round in 0..20_u64 {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let helper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(200));
            sender.send(round).expect("the receiver waits");
        });
        let mut raised = signal.reaches(round + 1);
        let got = block_on(async {
            // Both are pending at once: the thread waits for the signal, and the channel's waker ends that wait.
            let got = tokio::select! {
                _ = &mut raised => panic!("nobody has raised the signal"),
                got = receiver.recv() => got,
            };
            job.raise(signal.on(job.rank()), 1)?;
            raised.await?;
            Ok::<_, tasuki::Error>(got)
        })?;
        assert_eq!(got, Some(round));
        helper.join().expect("the helper thread does not panic");
    }
    job.barrier()
}

/// A send that fails and is only tested, or found by `wait_any`, and then dropped: the scope's end has the error.
pub fn scopes_report_sends_that_were_only_tested(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let (world, to, from) = (job.world(), next(job), previous(job));
    for by_test in [true, false] {
        let (long, mut short) = ([1_u64; 100], [0_u64; 50]);
        let mut is_received = false;
        let outcome = world.scope(|s| {
            let mut send = s.send(long, to, Slot(0))?;
            let received = world.recv(&mut short, from, Slot(0));
            refused(job, received, ErrorKind::Disagreement, &["800 bytes"]);
            is_received = true;
            if by_test {
                while !send.test() {
                    job.compute(Duration::from_micros(1));
                }
            } else {
                assert_eq!(wait_any([&mut send as &mut dyn AnyRequest])?, 0);
            }
            Ok(())
        });
        assert!(is_received);
        refused(job, outcome, ErrorKind::Disagreement, &["800 bytes"]);
        job.barrier()?;
    }
    Ok(())
}

/// A send of a scope that `wait_any` has found to be finished holds its slot until it is waited for. So a request never
/// stands for a later message of its slot.
pub fn finished_sends_of_scopes_hold_their_slot(job: &Job) -> Result<()> {
    let (world, to, from) = (job.world(), next(job), previous(job));
    let own = job.alloc_local::<u64>(20_000)?;
    for len in [3, 60, 20_000] {
        let mut got = [vec![0_u64; len], vec![0_u64; len]];
        own.fill(1)?;
        world.scope(|s| {
            let [first, second] = &mut got;
            let mut receive = s.recv(first, from, Slot(0))?;
            let mut send = s.send_from(own.pointer().slice(len), to, Slot(0))?;
            assert_eq!(wait_any([&mut send as &mut dyn AnyRequest])?, 0);
            let again = s.send_from(own.pointer().slice(len), to, Slot(0)).map(drop);
            refused(job, again, ErrorKind::Misuse, &["has not waited for an earlier send"]);
            send.wait()?;
            receive.wait()?;
            own.fill(2)?;
            s.recv(second, from, Slot(0))?;
            let mut send = s.send_from(own.pointer().slice(len), to, Slot(0))?;
            send.wait()
        })?;
        assert_eq!(got, [vec![1; len], vec![2; len]]);
        job.barrier()?;
    }
    Ok(())
}
