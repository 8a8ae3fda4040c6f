//! Jobs that must fail. In every way of starting them, every rank that waits must get an error that
//! names the cause.

use crate::blocked_operation::{Gate, KEEPER};
use crate::cases::handlers::{COMES_APART, NOTHING};
use crate::exchange::exchange_all;
use crate::leak::forget;
use crate::wait_until::{Idle, stay_away};
use crate::{Body, Ways};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::{Strided, StridedMut, channel_from, channel_to, set_send_buffer};
use tasuki::onesided::{After, AtomicOp, Handle, PayloadSignal};
use tasuki::{Error, GlobalPtr, Handler, Handlers, Job, Rank, Request, Result, Signal, Slot};

/// A job that must fail, and how.
#[derive(Clone, Debug)]
pub struct Failing {
    /// Name of the function and the number of ranks, and of the tests that run the job.
    pub name: &'static str,
    /// The number of ranks.
    pub ranks: usize,
    /// The ways in which the job can be started.
    pub ways: Ways,
    /// Texts that the job's error must contain.
    pub says: &'static [&'static str],
    /// The function that every rank runs.
    pub body: Body,
}

impl Failing {
    /// The handlers with which the job is started.
    pub fn handlers(&self) -> Handlers {
        let handlers = crate::cases::handlers::handlers;
        if self.name.starts_with("calling_without_the_same") {
            let name = format!("of process {}", std::process::id());
            handlers().add(Handler::<(), ()>::new(name.leak(), |_, ()| ()))
        } else if self.name.starts_with("calling") {
            handlers()
        } else {
            Handlers::new()
        }
    }
}

/// Hands the list of failing jobs to the macro `$with`, as lines `ways ranks name [text, ..];`.
#[macro_export]
macro_rules! each_failing_job {
    ($with:ident) => {
        $with! {
            Everywhere 2 a_panic_ends_all ["rank 1", "out of order 17"];
            Everywhere 5 a_panic_ends_all ["rank 4", "out of order 17"];
            Everywhere 1 an_error_ends_all ["rank 0", "not today"];
            Everywhere 4 an_error_ends_all ["rank 3", "not today"];
            Everywhere 8 every_wait_ends_when_a_rank_dies ["rank 1", "the keeper is gone"];
            Everywhere 2 held_operations_do_not_hide_the_cause ["rank 1", "the keeper is gone"];
            Everywhere 2 who_leaves_a_barrier_is_named ["rank 0: job.barrier()", "rank 1 has left", "hint: a rank may leave"];
            Everywhere 5 who_leaves_a_barrier_is_named ["barrier", "rank 4 has left", "hint: a rank may leave"];
            Everywhere 3 a_signal_that_nobody_can_raise ["rank 0: wait(signal", "has left", "hint: a rank may leave"];
            Everywhere 3 a_line_whose_writer_left ["rank 0: payload signal", "rank 2 has left", "hint: a rank may leave"];
            Everywhere 2 asking_a_rank_that_left ["rank 0: fetch_add(", "rank 1 has left", "hint:"];
            Everywhere 2 a_rank_that_leaves_unanswered ["rank 0: ", "add(", ", 8 bytes): rank 1 has left", "hint:"];
            Everywhere 2 failures_are_reported_at_the_end ["rank 0: put", "are not inside one registration", "hint:"];
            Everywhere 2 a_message_that_nobody_sends ["recv(slot 3 from rank 1)", "rank 1 has left", "hint:"];
            Everywhere 2 a_message_that_nobody_receives ["send(slot 3 to rank 1)", "rank 1 has left", "hint:"];
            Everywhere 3 a_message_that_nobody_takes ["2 messages were never received; the first was for rank 2 on slot 4"];
            Everywhere 1 a_message_to_itself_is_not_taken ["1 message was never received; the first was for rank 0 on slot 7"];
            Everywhere 2 a_message_to_itself_is_not_taken ["1 message was never received; the first was for rank 0 on slot 7"];
            Everywhere 2 calling_a_rank_that_left ["rank 0: post(handler \"nothing\" of rank 1)", "rank 1 has left", "hint:"];
            Everywhere 2 calling_what_panics_beyond_its_call ["rank 1", "it comes apart"];
            Processes 3 calling_without_the_same_handlers ["registering handlers", "different handlers", "is \"of process"];
            Everywhere 8 every_message_ends_when_a_rank_dies ["rank 1", "the keeper is gone"];
            Everywhere 5 strided_messages_end_when_a_rank_dies ["rank 1", "the keeper is gone"];
            Everywhere 5 any_source_messages_end_when_a_rank_dies ["rank 1", "the keeper is gone"];
            Everywhere 5 channels_end_when_a_rank_dies ["rank 1", "the keeper is gone"];
            Everywhere 2 a_channel_that_nobody_receives ["1 message was never received; the first was for rank 0 on slot 6"];
            Everywhere 2 an_any_source_message_that_nobody_sends ["rank 0: recv_any(slot 3 from any rank)", "rank 1 has left", "hint:"];
            Everywhere 2 any_source_messages_that_are_left ["rank 1: leave(): 2 messages were sent to this rank by send_any and never received; the first was from rank 0 on slot 3", "hint: receive each message by a recv_any"];
            Everywhere 3 any_source_messages_that_are_left ["rank 1: leave(): 2 messages were sent to this rank by send_any and never received; the first was from rank 0 on slot 3", "hint: receive each message by a recv_any"];
            Everywhere 2 an_any_source_message_that_nobody_takes ["rank 0: send_any(slot 3 to rank 1", "rank 1 has left", "hint:"];
        }
    };
}

macro_rules! as_table {
    ($($ways:ident $ranks:literal $name:ident [$($text:literal),*];)*) => {
        /// All failing jobs.
        pub const FAILING: &[Failing] = &[$(Failing {
            name: concat!(stringify!($name), "_of_", $ranks),
            ranks: $ranks,
            ways: Ways::$ways,
            says: &[$($text),*],
            body: $name,
        }),*];
    };
}

each_failing_job!(as_table);

/// The failing jobs that can be started in every way.
pub fn everywhere() -> impl Iterator<Item = &'static Failing> {
    FAILING.iter().filter(|failing| failing.ways == Ways::Everywhere)
}

/// The failing job of that name.
pub fn find(name: &str) -> Option<&'static Failing> {
    FAILING.iter().find(|failing| failing.name == name)
}

fn last(job: &Job) -> Rank {
    Rank(job.size() - 1)
}

/// Asserts that a call failed because `peer` died, and returns its error.
#[track_caller]
fn ended_by<T>(job: &Job, peer: Rank, outcome: Result<T>) -> Result<()> {
    let Err(error) = outcome else { panic!("a call succeeded although rank {peer} died") };
    let text = error.to_string();
    assert_eq!(error.kind(), tasuki::ErrorKind::PeerFailed, "{text}");
    assert!(error.rank() == Some(job.rank()) && !error.call().is_empty(), "{text}");
    assert!(matches!(error.cause(), Cause::PeerDied { peer: named, .. } if *named == peer), "{text}");
    Err(error)
}

/// The last rank panics while the others wait for it.
fn a_panic_ends_all(job: &Job) -> Result<()> {
    job.barrier()?;
    if job.rank() == last(job) {
        job.compute(Duration::from_millis(5));
        panic!("out of order 17");
    }
    ended_by(job, last(job), job.barrier())
}

/// The last rank returns an error while the others wait for it.
fn an_error_ends_all(job: &Job) -> Result<()> {
    job.barrier()?;
    if job.rank() == last(job) {
        return Err(Error::argument("not today"));
    }
    ended_by(job, last(job), job.barrier())
}

/// The keeper of a gate dies while each of the other ranks is in a different kind of wait. Every
/// wait must end with an error.
fn every_wait_ends_when_a_rank_dies(job: &Job) -> Result<()> {
    let (gate, ready, never) = (Gate::new(job)?, job.signal()?, job.signal()?);
    let line = PayloadSignal::<u64>::new(job)?;
    let waits = || job.raise(ready.on(KEEPER), 1);
    let long = Duration::from_secs(3600);
    let ends = |outcome: Result<()>| ended_by(job, KEEPER, outcome);
    match job.rank().0 {
        1 => keeper_dies(job, &gate, ready),
        0 => {
            let held = gate.close(job)?;
            waits()?;
            ends(complete_until_death(job, &gate, held, || gate.close(job)))
        }
        2 => waits().and_then(|()| ends(never.wait_at_least(1))),
        3 => waits().and_then(|()| ends(never.reaches(1).wait_timeout(long).map(drop))),
        4 => waits().and_then(|()| ends(job.barrier())),
        5 => waits().and_then(|()| ends(pollster::block_on(line.reader(None)).map(drop))),
        6 => waits().and_then(|()| ends(job.alloc::<u64>(1).map(drop))),
        _ => request_until_death(job, &gate, waits),
    }
}

/// Completes an operation that a closed gate holds. On the simulator gates do not hold; there this
/// function issues the operation again and again until one is under way when the keeper dies.
fn complete_until_death(
    job: &Job,
    gate: &Gate,
    mut held: Handle,
    issue: impl Fn() -> Result<Handle>,
) -> Result<()> {
    loop {
        job.complete(held)?;
        if gate.is_tight(job) {
            return Ok(());
        }
        held = issue()?;
    }
}

/// Waits for a request that is ordered after a closed gate, and reissues it as
/// [`complete_until_death`] does.
fn request_until_death(job: &Job, gate: &Gate, waits: impl Fn() -> Result<()>) -> Result<()> {
    let near = job.alloc_local::<u64>(1)?;
    let issue = || {
        let closed = gate.close(job)?;
        job.iput(near.pointer(), vec![1_u64], After::Exact(closed))
    };
    let mut put = issue()?;
    waits()?;
    loop {
        let outcome = put.wait();
        if !gate.is_tight(job) {
            outcome?;
            put = issue()?;
            continue;
        }
        let error =
            outcome.expect_err("a request succeeded although it was ordered after one that cannot end");
        assert_eq!(near.get(0)?, 0);
        return Err(error);
    }
}

/// The keeper dies when all other ranks are about to wait.
fn keeper_dies(job: &Job, gate: &Gate, ready: Signal<'_>) -> Result<()> {
    gate.go_away(job)?;
    while ready.value() < job.size() as u64 - 1 {
        stay_away(job);
    }
    job.compute(Duration::from_millis(20));
    panic!("the keeper is gone");
}

/// A rank has a chain of operations that cannot start any more. Its error names the death, not the
/// order of the operations.
fn held_operations_do_not_hide_the_cause(job: &Job) -> Result<()> {
    let (gate, ready) = (Gate::new(job)?, job.signal()?);
    if job.rank() == KEEPER {
        return keeper_dies(job, &gate, ready);
    }
    let near = job.alloc_local::<u64>(2)?;
    let chain = || {
        (0..100).try_fold(gate.close(job)?, |end, _| {
            Ok(job.copy(near.pointer(), near.pointer().at(1), 1, After::Exact(end))?.handle())
        })
    };
    let end = chain()?;
    job.raise(ready.on(KEEPER), 1)?;
    ended_by(job, KEEPER, complete_until_death(job, &gate, end, chain))
}

/// The last rank leaves while the others enter a barrier.
fn who_leaves_a_barrier_is_named(job: &Job) -> Result<()> {
    job.barrier()?;
    if job.rank() == last(job) {
        return Ok(());
    }
    job.barrier()
}

/// All other ranks leave while rank 0 waits for a signal.
fn a_signal_that_nobody_can_raise(job: &Job) -> Result<()> {
    let signal = job.signal()?;
    if job.rank() != Rank(0) {
        return job.raise(signal.on(Rank(0)), 1);
    }
    signal.wait_at_least(2)?;
    signal.wait_at_least(3)
}

/// The only writer of a payload signal leaves while the other ranks stay.
fn a_line_whose_writer_left(job: &Job) -> Result<()> {
    let (line, end) = (PayloadSignal::<u64>::new(job)?, job.signal()?);
    if job.rank() == last(job) {
        return line.writer(Rank(0))?.put(&5_u64);
    }
    if job.rank() != Rank(0) {
        return end.wait_at_least(1);
    }
    let mut reader = line.reader(Some(last(job)));
    assert_eq!(reader.wait()?, 5, "what the writer wrote before it left is there");
    let left = reader.wait().map(drop);
    job.ranks().filter(|&rank| rank != last(job)).try_for_each(|rank| job.raise(end.on(rank), 1))?;
    left
}

/// A rank leaves whose memory is still registered. Another rank then asks it for an atomic that
/// only the owner can carry out.
fn asking_a_rank_that_left(job: &Job) -> Result<()> {
    let word = forgotten_word(job)?;
    if job.rank() == KEEPER {
        return Ok(());
    }
    while job.barrier().is_ok() {}
    job.fetch_add(word, 1).map(drop)
}

/// A rank that has left takes no calls. The caller gets an error at once, even after many calls.
fn calling_a_rank_that_left(job: &Job) -> Result<()> {
    job.barrier()?;
    if job.rank() == KEEPER {
        return Ok(());
    }
    while job.barrier().is_ok() {}
    loop {
        NOTHING.post(job, KEEPER, &())?;
    }
}

/// A handler panics, and the panic is caught. But the value of that panic panics again when it is
/// dropped: in the rank's helper if the helper runs the handler, otherwise in a waiting call of the
/// rank. In both cases the rank dies.
fn calling_what_panics_beyond_its_call(job: &Job) -> Result<()> {
    let (never, queue) = (job.signal()?, job.queue(1)?);
    job.barrier()?;
    if job.rank() == KEEPER {
        (0..1000).for_each(|_| stay_away(job));
        return never.wait_at_least(1);
    }
    let outcome = COMES_APART.call(job, KEEPER, &())?.wait();
    drop(queue);
    ended_by(job, KEEPER, outcome)
}

/// Each rank registers a different handler, so the job does not start.
fn calling_without_the_same_handlers(job: &Job) -> Result<()> {
    job.barrier()
}

/// A rank leaves that was asked for an atomic and never made a waiting call.
fn a_rank_that_leaves_unanswered(job: &Job) -> Result<()> {
    let (word, asked) = (forgotten_word(job)?, job.signal()?);
    if job.rank() == KEEPER {
        while asked.value() == 0 {
            stay_away(job);
        }
        return Ok(());
    }
    let request = job.iatomic(word, AtomicOp::Add(1), GlobalPtr::NULL, After::Nothing)?.handle();
    job.raise(asked.on(KEEPER), 1)?;
    let outcome = job.complete(request);
    // The keeper may have carried it out after all, at the latest when it left. Then a later one
    // must fail.
    outcome?;
    loop {
        job.fetch_add(word, 1)?;
    }
}

/// A word in the keeper's memory that stays registered for ever.
fn forgotten_word(job: &Job) -> Result<GlobalPtr<u64>> {
    let own = job.register(vec![0_u64])?;
    let word = exchange_all(job, own.pointer())?[KEEPER.index()];
    forget(own);
    Ok(word)
}

/// An operation failed, and nobody waited for it. The end of its rank reports the failure.
fn failures_are_reported_at_the_end(job: &Job) -> Result<()> {
    let (gate, table, idle) = (Gate::new(job)?, job.alloc::<u64>(1)?, Idle::new(job)?);
    gate.held(job, |gate| {
        let closed = gate.close(job)?;
        let mut request = job.iput(table.on(KEEPER).at(1), vec![1], After::Exact(closed))?;
        gate.open(job)?;
        idle.until(|| Ok(request.test()))
    })
}

/// Rank 0 waits for a long message, then for a short one. The sender has left.
fn a_message_that_nobody_sends(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() != Rank(0) {
        return world.send(&[7_u64; 100], Rank(0), Slot(2));
    }
    let mut got = [0_u64; 100];
    world.recv(&mut got, KEEPER, Slot(2))?; // it was sent before the sender left
    assert_eq!(got, [7; 100]);
    let long = world.recv(&mut got, KEEPER, Slot(2)).expect_err("the sender has left");
    assert!(matches!(long.cause(), Cause::PeerLeft { peer: KEEPER }), "{long}");
    world.recv(&mut got[..1], KEEPER, Slot(3)).map(drop)
}

/// All other ranks have left without a message on that slot.
fn an_any_source_message_that_nobody_sends(job: &Job) -> Result<()> {
    if job.rank() != Rank(0) {
        return job.world().send_any(&7, Rank(0), Slot(2));
    }
    job.world().recv_any_vec::<i32>(Slot(3)).map(drop)
}

/// The receiver leaves while its queue is full, or a long message waits.
/// Rank 1 receives one of three messages.
fn any_source_messages_that_are_left(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == Rank(0) {
        for slot in [3, 4, 3] {
            world.send_any(&[slot as u64; 9], Rank(1), Slot(slot))?;
        }
    }
    job.barrier()?;
    if job.rank() == Rank(1) {
        let (got, _) = world.recv_any_vec::<u64>(Slot(4))?;
        assert_eq!(got, [4; 9]);
    }
    Ok(())
}

fn an_any_source_message_that_nobody_takes(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() != Rank(0) {
        job.compute(Duration::from_millis(5));
        return Ok(());
    }
    let long = world.send_any(&[7_u64; 1000], KEEPER, Slot(2)).expect_err("the receiver leaves");
    assert!(matches!(long.cause(), Cause::PeerLeft { peer: KEEPER }), "{long}");
    loop {
        world.send_any(&[7_u64; 9], KEEPER, Slot(3))?;
    }
}

/// Sends, receives and exchanges of blocks wait while a rank dies. What lies between the blocks stays.
fn strided_messages_end_when_a_rank_dies(job: &Job) -> Result<()> {
    let (world, ready) = (job.world(), job.signal()?);
    let waits = || job.raise(ready.on(KEEPER), 1);
    let ends = |outcome: Result<()>| ended_by(job, KEEPER, outcome);
    let mut matrix = vec![3_u64; 60_000];
    let outcome = match job.rank().0 {
        1 => {
            ready.wait_at_least(job.size() as u64 - 1)?;
            job.compute(Duration::from_millis(20));
            panic!("the keeper is gone");
        }
        0 => waits().and_then(|()| {
            ends(world.recv(&mut StridedMut::column(&mut matrix, 3, 1), KEEPER, Slot(1)).map(drop))
        }),
        2 => waits().and_then(|()| ends(world.send(&Strided::column(&matrix, 3, 1), KEEPER, Slot(1)))),
        3 => waits().and_then(|()| {
            ends(world.recv(&mut StridedMut::new(&mut matrix, 5, 1, 2), KEEPER, Slot(1)).map(drop))
        }),
        _ => {
            let ([column], [mut other]) =
                StridedMut::submatrices(&mut matrix, 3, [[0..20_000, 0..1]], [[0..20_000, 1..2]]);
            let outcome = world.scope(|s| {
                s.recv(&mut other, KEEPER, Slot(1))?;
                s.send(column, KEEPER, Slot(1))?;
                waits()?;
                s.wait_all()
            });
            ends(outcome)
        }
    };
    assert!(matrix.iter().all(|&value| value == 3), "nothing has come");
    outcome
}

/// Receives, requests and sends of any-source messages wait while a rank dies.
fn any_source_messages_end_when_a_rank_dies(job: &Job) -> Result<()> {
    let (world, ready) = (job.world(), job.signal()?);
    let others = world.split(usize::from(job.rank() == KEEPER))?;
    let waits = || job.raise(ready.on(KEEPER), 1);
    let ends = |outcome: Result<()>| ended_by(job, KEEPER, outcome);
    match job.rank().0 {
        1 => {
            ready.wait_at_least(job.size() as u64 - 1)?;
            job.compute(Duration::from_millis(20));
            panic!("the keeper is gone");
        }
        0 => waits().and_then(|()| ends(world.recv_any_vec::<u8>(Slot(1)).map(drop))),
        2 => waits().and_then(|()| ends(others.irecv_any::<u8>(Slot::ANY).wait().map(drop))),
        3 => waits().and_then(|()| ends(world.send_any(&[1; 10_000], KEEPER, Slot(1)))),
        _ => {
            waits()?;
            let full = || loop {
                world.send_any(&[1; 9], KEEPER, Slot(1))?;
            };
            ends(full())
        }
    }
}

/// Both ends of channels wait, at each stage, while the rank at the other end dies.
fn channels_end_when_a_rank_dies(job: &Job) -> Result<()> {
    let (world, ready) = (job.world(), job.signal()?);
    let waits = || job.raise(ready.on(KEEPER), 1);
    let ends = |outcome: Result<()>| ended_by(job, KEEPER, outcome);
    match job.rank().0 {
        1 => {
            let mut full = channel_from::<u64>(world, Rank(2), Slot(0), 2)?;
            let mut empty = channel_to::<u64>(world, Rank(3), Slot(0))?;
            assert_eq!(full.peek()?[0], 7);
            empty.reserve(1)?[0] = 8;
            empty.commit(1)?;
            ready.wait_at_least(job.size() as u64 - 1)?;
            job.compute(Duration::from_millis(20));
            panic!("the keeper is gone");
        }
        0 => {
            let mut offered = channel_to::<u64>(world, KEEPER, Slot(1))?;
            waits().and_then(|()| ends(offered.reserve(1).map(drop)))
        }
        2 => {
            let mut full = channel_to::<u64>(world, KEEPER, Slot(0))?;
            for _ in 0..2 {
                full.reserve(1)?[0] = 7;
                full.commit(1)?;
            }
            waits().and_then(|()| ends(full.reserve(1).map(drop)))
        }
        3 => {
            let mut empty = channel_from::<u64>(world, KEEPER, Slot(0), 2)?;
            assert_eq!(empty.peek()?, [8]);
            empty.release(1)?;
            waits().and_then(|()| ends(empty.peek().map(drop)))
        }
        _ => {
            let mut unanswered = channel_from::<u64>(world, KEEPER, Slot(1), 2)?;
            waits().and_then(|()| ends(pollster::block_on(unanswered.ready())))
        }
    }
}

/// A receiver makes its end, and the other rank never does.
fn a_channel_that_nobody_receives(job: &Job) -> Result<()> {
    if job.rank() != Rank(0) {
        drop(channel_from::<u64>(job.world(), Rank(0), Slot(6), 10)?);
    }
    job.barrier() // before it, the other rank could have left already
}

/// Rank 0 sends without buffering, and its receiver leaves.
fn a_message_that_nobody_receives(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() != Rank(0) {
        return Ok(());
    }
    set_send_buffer(job, 0, None)?;
    let long = world.send(&[7_u64; 100], KEEPER, Slot(2)).expect_err("the receiver has left");
    assert!(matches!(long.cause(), Cause::PeerLeft { peer: KEEPER }), "{long}");
    world.send(&[7_u64], KEEPER, Slot(3))
}

/// A rank has three buffered sends. The receiver takes one message and leaves.
fn a_message_that_nobody_takes(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == Rank(0) {
        set_send_buffer(job, 10_000, Some(Duration::ZERO))?;
        for slot in [4, 5, 6] {
            world.send(&[slot as u64; 100], Rank(2), Slot(slot))?;
        }
    }
    job.barrier()?;
    if job.rank() == Rank(2) {
        let mut got = [0_u64; 100];
        world.recv(&mut got, Rank(0), Slot(5))?;
        assert_eq!(got, [5; 100]);
    }
    Ok(())
}

fn a_message_to_itself_is_not_taken(job: &Job) -> Result<()> {
    job.barrier()?;
    if job.rank() == Rank(0) {
        drop(job.world().isend(vec![7_u64; 100], Rank(0), Slot(7))?);
    }
    Ok(())
}

/// One rank dies while each of the other ranks is in a different kind of wait for a message.
fn every_message_ends_when_a_rank_dies(job: &Job) -> Result<()> {
    let (world, ready) = (job.world(), job.signal()?);
    let half = world.split(0)?;
    let waits = || job.raise(ready.on(KEEPER), 1);
    let ends = |outcome: Result<()>| ended_by(job, KEEPER, outcome);
    let mut long = vec![0_u8; 100_000];
    match job.rank().0 {
        1 => {
            ready.wait_at_least(job.size() as u64 - 1)?;
            job.compute(Duration::from_millis(20));
            panic!("the keeper is gone");
        }
        0 => waits().and_then(|()| ends(world.recv(&mut [0_u8], KEEPER, Slot(1)).map(drop))),
        2 => waits().and_then(|()| ends(world.recv(&mut long, Rank(0), Slot(1)).map(drop))),
        3 => waits().and_then(|()| ends(world.send(&long, KEEPER, Slot(1)))),
        4 => waits().and_then(|()| {
            ends(world.within(Duration::from_secs(3600)).recv(&mut long, KEEPER, Slot(1)).map(drop))
        }),
        5 => {
            let mut short = [0_u8];
            let outcome = world.scope(|s| {
                s.recv(&mut short, KEEPER, Slot(1))?;
                s.recv(&mut long, Rank(0), Slot(1))?;
                waits()?;
                s.wait_all()
            });
            ends(outcome)
        }
        6 => {
            let mut receive = world.irecv(long, Rank(0), Slot(1))?;
            waits()?;
            ends(receive.wait().map(drop))
        }
        _ => waits().and_then(|()| ends(half.barrier())),
    }
}
