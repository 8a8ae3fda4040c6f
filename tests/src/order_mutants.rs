//! Order mutants: programs that rely on one claim about order, each in a form that keeps the order
//! and a form without it.
//!
//! Each program counts how often it found stale data. The form with the order must find none, under
//! any seed. The form without it must find stale data under some seed; otherwise the simulator
//! reorders too little, and the case that checks the claim proves nothing.

use crate::blocked_operation::{ISSUER, KEEPER};
use crate::exchange::last;
use crate::pattern;
use crate::wait_until::Idle;
use crate::watchdog::Watchdog;
use std::ops::Range;
use std::time::Duration;
use tasuki::onesided::{After, AtomicOp, Handle, TransferRequest};
use tasuki::schedule::{BufferId, BufferSpan, Contract, Origin, RankPart, Schedule, started};
use tasuki::{Array, Command, Job, Request, Result, Sim};

/// A program in both forms. Returns how often it found stale data.
pub type Twin = fn(&Job, Order) -> Result<usize>;

/// Selects the form of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Operations are ordered as the claim says.
    Kept,
    /// Operations are issued without the order.
    Dropped,
}

impl Order {
    fn after(self, order: After) -> After {
        match self {
            Order::Kept => order,
            Order::Dropped => After::Nothing,
        }
    }
}

const ROUNDS: u64 = 5;
const LEN: usize = 700;

/// Runs both forms under the same seeds. The form with the order must find nothing stale; the form
/// without it must find something stale under at least one seed.
pub fn needs_its_order(name: &str, twin: Twin, ranks: usize, seeds: Range<u64>) {
    let _watched = Watchdog::over(format!("twins of {name}"));
    let stale = |seed: u64, order: Order| -> usize {
        let sim = Sim::seed(seed).ranks(ranks).third_party(seed.is_multiple_of(2));
        let sim = sim.native_put_signal(!seed.is_multiple_of(3));
        let outcome = tasuki::sim(sim, |job| twin(job, order));
        let simulated = outcome.unwrap_or_else(|error| panic!("{name}, {order:?}, seed {seed}: {error}"));
        simulated.values.into_iter().flatten().sum()
    };
    for seed in seeds.clone() {
        assert_eq!(stale(seed, Order::Kept), 0, "{name}: stale data in spite of the order, seed {seed}");
    }
    let shown = seeds.clone().filter(|&seed| stale(seed, Order::Dropped) > 0).count();
    assert!(shown > 0, "{name}: no seed of {seeds:?} shows stale data without the order");
    eprintln!("{name}: {shown} of {} seeds show stale data without the order", seeds.count());
}

/// D1: a signal that the put itself raises, or a signal raised by a separate call.
pub fn d1_signal_with_its_bytes(job: &Job, order: Order) -> Result<usize> {
    let (inbox, arrived, taken) = (job.alloc::<u8>(LEN)?, job.signal()?, job.signal()?);
    let mut stale = 0;
    for round in 1..=ROUNDS {
        if job.rank() == ISSUER {
            let bytes = pattern::bytes(round, LEN);
            if order == Order::Kept {
                job.put_signal(inbox.on(KEEPER), &bytes, arrived.on(KEEPER), 1)?;
            } else {
                let mut put = job.iput(inbox.on(KEEPER), bytes, After::Nothing)?;
                job.raise(arrived.on(KEEPER), 1)?;
                put.wait()?;
            }
            taken.wait_at_least(round)?;
        } else if job.rank() == KEEPER {
            arrived.wait_at_least(round)?;
            stale += usize::from(inbox.to_vec()? != pattern::bytes(round, LEN));
            job.raise(taken.on(ISSUER), 1)?;
        }
    }
    job.barrier()?;
    Ok(stale)
}

/// D2: a flag stored after the copy that it announces, or without an order between them.
pub fn d2_store_after_copy(job: &Job, order: Order) -> Result<usize> {
    let (inbox, outbox) = (job.alloc::<u8>(LEN)?, job.alloc_local::<u8>(LEN)?);
    let (flag, idle) = (job.alloc::<u64>(1)?, Idle::new(job)?);
    let mut stale = 0;
    for round in 1..=ROUNDS {
        if job.rank() == ISSUER {
            outbox.write(0, &pattern::bytes(round, LEN))?;
            let sent = job.copy(outbox.pointer(), inbox.on(KEEPER), LEN, After::Nothing)?.handle();
            let flag_store = job.istore(flag.on(KEEPER), round, order.after(After::Exact(sent)))?.handle();
            job.complete(flag_store)?;
        } else if job.rank() == KEEPER {
            idle.until(|| job.load(flag.pointer()).map(|value| value == round))?;
            stale += usize::from(inbox.to_vec()? != pattern::bytes(round, LEN));
        }
        job.barrier()?;
    }
    Ok(stale)
}

/// B4: three copies in a row, each after the one before, or all at once.
pub fn b4_chain(job: &Job, order: Order) -> Result<usize> {
    let areas = job.alloc::<u8>(3 * LEN)?;
    let mut stale = 0;
    for round in 1..=ROUNDS {
        if job.rank() == last(job) {
            areas.write(0, &pattern::bytes(round, LEN))?;
        }
        job.barrier()?;
        if job.rank() == ISSUER {
            let [a, b, c] = [areas.on(ISSUER), areas.on(KEEPER).at(LEN), areas.on(ISSUER).at(2 * LEN)];
            let first = job.copy(areas.on(last(job)), a, LEN, After::Nothing)?.handle();
            let second = job.copy(a, b, LEN, order.after(After::Exact(first)))?.handle();
            job.complete(job.copy(b, c, LEN, order.after(After::Exact(second)))?.handle())?;
            stale += usize::from(areas.to_vec()?[2 * LEN..] != pattern::bytes(round, LEN));
        }
        job.barrier()?;
    }
    Ok(stale)
}

/// The issuer starts a copy from the last rank and then a put. `end` should move the copied bytes
/// on after both operations have ended. Returns how often it moved other bytes.
fn two_under_way(
    job: &Job,
    end: impl Fn(&Array<u8>, TransferRequest<Vec<u8>>) -> Result<()>,
) -> Result<usize> {
    let areas = job.alloc::<u8>(2 * LEN)?;
    let mut stale = 0;
    for round in 1..=ROUNDS {
        if job.rank() == last(job) {
            areas.write(0, &pattern::bytes(round, LEN))?;
        }
        job.barrier()?;
        if job.rank() == ISSUER {
            let far = job.copy(areas.on(last(job)), areas.on(ISSUER), LEN, After::Nothing)?.handle();
            let near = job.iput(areas.on(KEEPER).at(LEN), vec![1], After::Nothing)?;
            end(&areas, near)?;
            stale += usize::from(areas.to_vec()?[LEN..] != pattern::bytes(round, LEN));
            job.complete(far)?;
        }
        job.barrier()?;
    }
    Ok(stale)
}

/// B5: a copy ordered after all operations up to the second, or after the second operation only.
pub fn b5_prefix(job: &Job, order: Order) -> Result<usize> {
    two_under_way(job, |areas, mut near| {
        let second = near.handle();
        let after = if order == Order::Kept { After::Prefix(second) } else { After::Exact(second) };
        let copy = job.copy(areas.pointer(), areas.pointer().at(LEN), LEN, after)?.handle();
        job.complete(copy)?;
        near.wait().map(drop)
    })
}

/// B6: a copy ordered after all operations, or after none.
pub fn b6_all(job: &Job, order: Order) -> Result<usize> {
    two_under_way(job, |areas, mut near| {
        let copy = job.copy(areas.pointer(), areas.pointer().at(LEN), LEN, order.after(After::All))?.handle();
        job.complete(copy)?;
        near.wait().map(drop)
    })
}

/// B8: completing the second operation also completes the first; waiting only for the second does
/// not.
pub fn b8_completion(job: &Job, order: Order) -> Result<usize> {
    two_under_way(job, |areas, mut near| {
        if order == Order::Kept {
            job.complete(near.handle())?;
        }
        near.wait()?;
        let arrived = areas.to_vec()?;
        areas.write(LEN, &arrived[..LEN])
    })
}

/// B7: of many copies to one place the last one must remain, if each continues the one before.
pub fn b7_last_of_many(job: &Job, order: Order) -> Result<usize> {
    let (inbox, outbox) = (job.alloc::<u64>(1)?, job.alloc_local::<u64>(20)?);
    outbox.write(0, &(1..=20).collect::<Vec<u64>>())?;
    if job.rank() == ISSUER {
        let mut end = Handle::NULL;
        for index in 0..20 {
            let from = outbox.pointer().at(index);
            end = job.copy(from, inbox.on(KEEPER), 1, order.after(After::Cont))?.handle();
        }
        job.complete(end)?;
    }
    job.barrier()?;
    Ok(usize::from(job.rank() == KEEPER && inbox.get(0)? != 20))
}

/// C10: a copy of an atomic's result, ordered after the atomic or not.
pub fn c10_result_before_dependent_copy(job: &Job, order: Order) -> Result<usize> {
    let word = job.alloc::<u64>(1)?;
    let mut stale = 0;
    for round in (0..ROUNDS).filter(|_| job.rank() == ISSUER) {
        let words = job.alloc_local::<u64>(2)?;
        words.fill(u64::MAX)?;
        let (result, copied) = (words.pointer(), words.pointer().at(1));
        let atomic = job.iatomic(word.on(KEEPER), AtomicOp::Add(1), result, After::Nothing)?.handle();
        job.complete(job.copy(result, copied, 1, order.after(After::Exact(atomic)))?.handle())?;
        stale += usize::from(words.get(1)? != round);
    }
    job.barrier()?;
    Ok(stale)
}

/// G11b: a sender that compares the number of the posting, or one that resets the slot after it has
/// sent, as the drawing in the FMPL paper does. Counts lost postings.
pub fn g11b_reset_after_sending(job: &Job, order: Order) -> Result<usize> {
    const POLLS_MAX: usize = 5000;
    let (slot, arrived) = (job.alloc::<u64>(1)?, job.signal()?);
    let mut lost = 0;
    for round in 1..=ROUNDS {
        if job.rank() == KEEPER {
            job.put(slot.on(ISSUER), &[round])?;
            arrived.wait_at_least(round)?;
        } else if job.rank() == ISSUER {
            let is_posted = |word: u64| if order == Order::Kept { word == round } else { word != 0 };
            let mut polls = 0;
            while !is_posted(slot.get(0)?) && polls < POLLS_MAX {
                job.compute(Duration::from_nanos(100));
                polls += 1;
            }
            lost += usize::from(polls == POLLS_MAX);
            job.raise(arrived.on(KEEPER), 1)?;
            if order == Order::Dropped {
                slot.set(0, 0)?;
            }
        }
    }
    job.barrier()?;
    Ok(lost)
}

/// D16: long and short segments by turns. The count of arrived segments says which of them are
/// there. The copies are commands of one queue, whose effects happen in the order in which the
/// commands fire, or of two queues. Counts segments that were announced but not there.
pub fn d16_one_stream(job: &Job, order: Order) -> Result<usize> {
    const SEGMENTS: usize = 6;
    let (inbox, arrived) = (job.alloc::<u8>(SEGMENTS * LEN)?, job.signal()?);
    let queues = [job.queue(16)?, job.queue(16)?];
    let mut stale = 0;
    for round in 0..ROUNDS {
        let bytes = pattern::bytes(round, SEGMENTS * LEN);
        let lengths = (0..SEGMENTS).map(|at| if at % 2 == 0 { LEN } else { 8 });
        if job.rank() == ISSUER {
            inbox.write(0, &bytes)?;
            for (at, len) in lengths.clone().enumerate() {
                let copy = Command::copy(inbox.on(ISSUER).at(at * LEN), inbox.on(KEEPER).at(at * LEN), len);
                let queue = if order == Order::Kept { 0 } else { at % 2 };
                queues[queue].post(copy.then(arrived.on(KEEPER).add(1)))?;
            }
        } else if job.rank() == KEEPER {
            for (at, len) in lengths.enumerate() {
                arrived.wait_at_least(round * SEGMENTS as u64 + at as u64 + 1)?;
                let place = at * LEN..at * LEN + len;
                stale += usize::from(inbox.to_vec()?[place.clone()] != bytes[place]);
            }
        }
        job.barrier()?;
    }
    Ok(stale)
}

/// Segments of the chain in the programs of J1.
const SEGMENTS: u64 = 4;

/// A broadcast along a chain, in segments. `ready` says how a member announces that its buffer is
/// free.
fn chain(ranks: usize, ready: Ready) -> Schedule {
    let part = move |part: &mut RankPart| {
        let (me, last) = (part.rank(), part.rank() + 1 == ranks);
        let data = part.buffer("data", LEN as u64);
        let beside = u64::from(ready == Ready::AddedToData && !last);
        let arrived = part.signal("arrived", if me > 0 { SEGMENTS } else { 0 } + beside);
        let below = part.signal("ready", u64::from(ready == Ready::Climbs && !last));
        let sent = part.signal("sent", if last { 0 } else { SEGMENTS });
        let is_ready = if ready == Ready::Climbs && !last { below.reaches(1) } else { started() };
        if me > 0 && ready != Ready::Never {
            let signal = if ready == Ready::Climbs { below } else { arrived };
            part.join(is_ready).then(signal.on(me - 1, 1));
            part.in_queue(1);
        }
        for segment in (0..SEGMENTS).filter(|_| !last) {
            let (from, to) = (segment * LEN as u64 / SEGMENTS, (segment + 1) * LEN as u64 / SEGMENTS);
            let trigger = match me {
                0 if ready == Ready::AddedToData => arrived.reaches(1),
                0 => is_ready,
                _ => arrived.reaches(segment + 1 + beside),
            };
            part.copy(trigger, data.on(me, from), data.on(me + 1, from), to - from)
                .then(arrived.on(me + 1, 1))
                .then(sent.on(me, 1));
        }
        if me > 0 {
            part.finish(arrived.reaches(SEGMENTS + beside));
        }
        if !last {
            part.finish(sent.reaches(SEGMENTS));
        }
    };
    let contract = |rank| {
        let span = BufferSpan { buffer: BufferId::FIRST, offset: 0, bytes: LEN as u64 };
        let origin = Origin { ranks: vec![0], buffer: BufferId::FIRST, offset: 0 };
        let gives = if rank == 0 { vec![span] } else { Vec::new() };
        Contract { inputs: gives, outputs: vec![(span, origin)], ..Contract::default() }
    };
    Schedule::new("chain", ranks, part, contract)
}

/// How a member of a chain announces that its buffer may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ready {
    /// By a separate signal, once all members behind it have announced their buffers.
    Climbs,
    /// It announces nothing.
    Never,
    /// By the signal that the segments raise.
    AddedToData,
}

/// Starts the chain many times. Some members look at the received data late.
fn starts(job: &Job, ready: Ready) -> Result<usize> {
    let mut plan = job.world().plan(&chain(job.size(), ready).trusted())?;
    let mut stale = 0;
    for round in 0..3 * ROUNDS {
        let bytes = pattern::bytes(round, LEN);
        if job.rank().index() == 0 {
            plan.input()?.copy_from_slice(&bytes);
        }
        plan.start()?;
        plan.wait()?;
        if (job.rank().index() as u64 + round).is_multiple_of(2) {
            job.compute(Duration::from_micros(20));
        }
        stale += usize::from(plan.result()? != bytes);
    }
    Ok(stale)
}

/// J1: a member announces that its buffer is free before a start may write there.
pub fn j1_readiness(job: &Job, order: Order) -> Result<usize> {
    starts(job, if order == Order::Kept { Ready::Climbs } else { Ready::Never })
}

/// J1: the announcement has a signal of its own. If it shares the signal of the data, an
/// announcement can be taken for a segment.
pub fn j1_readiness_apart(job: &Job, order: Order) -> Result<usize> {
    starts(job, if order == Order::Kept { Ready::Climbs } else { Ready::AddedToData })
}
