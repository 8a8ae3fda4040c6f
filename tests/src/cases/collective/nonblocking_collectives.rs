//! J: nonblocking collective calls, whose results are compared with plain arithmetic.

use crate::exchange::{effort, is_simulated, next, previous};
use crate::expected_error::refused;
use std::time::Duration;
use tasuki::collective::{CollectiveRequest, Max, quiesce};
use tasuki::engine::Cause;
use tasuki::{ErrorKind, Job, Rank, Request, Result, Slot, Sum, wait_all};

/// Numbers of values of 8 bytes: none, one, few, more than fit into a line, more than fit into a
/// chunk.
const COUNTS: [usize; 5] = [0, 1, 7, 125, 8750];

fn value(rank: usize, place: usize) -> u64 {
    (rank * 1009 + place) as u64
}

fn of_rank(rank: usize, count: usize) -> Vec<u64> {
    (0..count).map(|place| value(rank, place)).collect()
}

/// An operation that does not commute, so the result shows the order of the values.
fn string(a: u64, b: u64) -> u64 {
    a.wrapping_mul(31).wrapping_add(b.rotate_left(7))
}

/// The sums of the values of these ranks.
fn total(ranks: std::ops::Range<usize>, count: usize) -> Vec<u64> {
    let sum = |place| ranks.clone().map(|rank| value(rank, place)).sum();
    (0..count).map(sum).collect()
}

/// Starts every call with `count` values before it waits for any.
fn every_call(job: &Job, count: usize, root: Rank) -> Result<()> {
    let (world, size, me) = (job.world(), job.size(), job.rank().index());
    let mine = of_rank(me, count);
    let blocks: Vec<u64> = (0..size).flat_map(|to| of_rank(me * 10 + to, count)).collect();
    let at_root = job.rank() == root;
    let mut bcast = world.ibcast(mine.clone(), root)?;
    let mut reduce = world.ireduce(mine.clone(), Sum, root)?;
    let mut allreduce = world.iallreduce(mine.clone(), Sum)?;
    let mut gather = world.igather(mine.clone(), root)?;
    let mut scatter = world.iscatter(if at_root { blocks.clone() } else { Vec::new() }, count, root)?;
    let mut allgather = world.iallgather(mine.clone())?;
    let mut alltoall = world.ialltoall(blocks.clone())?;
    let mut reduce_scatter = world.ireduce_scatter(blocks, Sum)?;
    let mut scan = world.iscan(mine.clone(), Sum)?;
    let mut exscan = world.iexscan(mine.clone(), Sum)?;
    let mut barrier = world.ibarrier()?;
    let everybodys: Vec<u64> = (0..size).flat_map(|rank| of_rank(rank, count)).collect();
    barrier.wait()?;
    assert_eq!(exscan.wait()?, (me > 0).then(|| total(0..me, count)));
    assert_eq!(scan.wait()?, total(0..me + 1, count));
    let block = |place| (0..size).map(|from| value(from * 10 + me, place)).sum::<u64>();
    assert_eq!(reduce_scatter.wait()?, (0..count).map(block).collect::<Vec<_>>());
    let expected: Vec<u64> = (0..size).flat_map(|from| of_rank(from * 10 + me, count)).collect();
    assert_eq!(alltoall.wait()?, expected);
    assert_eq!(allgather.wait()?, everybodys);
    assert_eq!(scatter.wait()?, of_rank(root.index() * 10 + me, count));
    assert_eq!(gather.wait()?, at_root.then_some(everybodys));
    assert_eq!(allreduce.wait()?, total(0..size, count));
    assert_eq!(reduce.wait()?, at_root.then(|| total(0..size, count)));
    assert_eq!(bcast.wait()?, of_rank(root.index(), count));
    Ok(())
}

/// Every call, with every length and several roots, waited for in the reverse order of their
/// starts.
pub fn j_nonblocking_calls_of_every_kind(job: &Job) -> Result<()> {
    for (round, count) in COUNTS.into_iter().enumerate() {
        for root in job.ranks().take(effort(job, 5, 2)) {
            every_call(job, count, Rank((root.index() + round) % job.size()))?;
        }
    }
    job.barrier()
}

/// Values are combined in the order of members, although the operation does not commute.
pub fn j_nonblocking_calls_combine_in_member_order(job: &Job) -> Result<()> {
    // Multiplication of two-by-two matrices.
    let multiply = |a: [u64; 4], b: [u64; 4]| {
        let at = |row: usize, column: usize| {
            let product = |k: usize| a[2 * row + k].wrapping_mul(b[2 * k + column]);
            product(0).wrapping_add(product(1))
        };
        [at(0, 0), at(0, 1), at(1, 0), at(1, 1)]
    };
    let (world, size, me) = (job.world(), job.size(), job.rank().index());
    let of = |rank: usize| [1 + rank as u64, string(3, rank as u64), 2, 5 + rank as u64];
    let product = |ranks: std::ops::Range<usize>| ranks.map(of).reduce(multiply);
    let many = |ranks: std::ops::Range<usize>| product(ranks).map(|one| vec![one; 9]);
    for root in job.ranks() {
        let mine = vec![of(me); 9];
        let mut all = world.iallreduce(mine.clone(), multiply)?;
        let mut one = world.ireduce(mine.clone(), multiply, root)?;
        let mut through = world.iscan(mine.clone(), multiply)?;
        let mut before = world.iexscan(mine, multiply)?;
        let mut block = world.ireduce_scatter(vec![of(me); size], multiply)?;
        assert_eq!(Some(block.wait()?), product(0..size).map(|one| vec![one]));
        assert_eq!(before.wait()?, many(0..me));
        assert_eq!(Some(through.wait()?), many(0..me + 1));
        assert_eq!(one.wait()?, many(0..size).filter(|_| job.rank() == root));
        assert_eq!(Some(all.wait()?), many(0..size));
    }
    job.barrier()
}

/// Nonblocking calls are outstanding around a barrier of the job. One member begins both calls before the barrier, and
/// waits there for the first one, because one member is late; the others begin the second one after the barrier. A
/// member that waits long finds others in a barrier of the job that it has not begun, and that is no error.
pub fn j_nonblocking_calls_around_barriers_of_the_job(job: &Job) -> Result<()> {
    let (world, size) = (job.world(), job.size());
    // Each kind has both forms: first calls by messages, later ones by compiled steps.
    for round in 0..effort(job, 12, 6) {
        let place = (job.rank().index() + round) % size;
        if place == 1 {
            job.compute(Duration::from_millis(10));
        }
        let mut sum = world.iallreduce(vec![round as u64; 10], Sum)?;
        let expected = vec![(round * size) as u64; 10];
        if place == 0 {
            let mut barrier = world.ibarrier()?;
            assert_eq!(sum.wait()?, expected);
            job.barrier()?;
            barrier.wait()?;
            continue;
        }
        job.barrier()?;
        let mut barrier = world.ibarrier()?;
        if place.is_multiple_of(2) {
            barrier.wait()?;
            assert_eq!(sum.wait()?, expected);
        } else {
            assert_eq!(sum.wait()?, expected);
            barrier.wait()?;
        }
    }
    job.barrier()
}

/// Members wait in different orders, and make blocking calls, messages and fuzzy barriers in
/// between.
pub fn j_nonblocking_calls_mix_with_other_calls(job: &Job) -> Result<()> {
    let (world, size, me) = (job.world(), job.size(), job.rank().index());
    let half = world.split(me % 2)?;
    for round in 0..effort(job, 100, 4) {
        let count = COUNTS[round % COUNTS.len()];
        let root = Rank(round % size);
        let mut begun: Vec<(usize, CollectiveRequest<Vec<u64>>)> = Vec::new();
        for call in 0..12 {
            let started = match call % 3 {
                0 => world.iallreduce(vec![(call + me) as u64; count], Sum)?,
                1 => world.ibcast(vec![(call + me) as u64; count], root)?,
                _ => world.iscan(vec![call as u64; count], Max)?,
            };
            begun.push((call, started));
            if call == 5 {
                assert_eq!(world.allreduce(&[1_u64], Sum)?, [size as u64]);
            }
        }
        let mut in_half = half.iallgather(vec![me as u64; count])?;
        let mut sent = world.isend(vec![me as u64; count], next(job), Slot(1))?;
        let mut got = vec![0_u64; count];
        world.recv(&mut got, previous(job), Slot(1))?;
        assert_eq!(got, vec![previous(job).index() as u64; count]);
        let mut fuzzy = world.fuzzy_barrier()?;
        // Each member waits in its own order.
        begun.rotate_left(me % 12);
        if me % 2 == 1 {
            begun.reverse();
        }
        for (call, mut started) in begun {
            let sum: usize = (0..size).map(|rank| call + rank).sum();
            let expected = [sum, call + root.index(), call][call % 3];
            assert_eq!(started.wait()?, vec![expected as u64; count], "call {call} of round {round}");
        }
        let members: Vec<u64> = (0..size).filter(|rank| rank % 2 == me % 2).map(|rank| rank as u64).collect();
        let expected: Vec<u64> = members.iter().flat_map(|&rank| vec![rank; count]).collect();
        assert_eq!(in_half.wait()?, expected);
        fuzzy.wait()?;
        sent.wait()?;
    }
    job.barrier()
}

/// Calls whose requests are dropped continue for the other members, also if more calls are made
/// than there are slots.
pub fn j_dropped_nonblocking_calls_continue_for_others(job: &Job) -> Result<()> {
    let (world, size, me) = (job.world(), job.size(), job.rank().index());
    for round in 0..effort(job, 200, 20) {
        let count = COUNTS[round % COUNTS.len()];
        let mut begun = loop {
            match world.iallreduce(vec![(round + me) as u64; count], Sum) {
                Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                    job.compute(Duration::from_micros(10));
                    let _ = job.world().irecv(vec![0_u8], next(job), Slot(9))?.test();
                }
                begun => break begun?,
            }
        };
        if round % size == me && size > 1 {
            drop(begun);
        } else {
            let sum: usize = (0..size).map(|rank| round + rank).sum();
            assert_eq!(begun.wait()?, vec![sum as u64; count]);
        }
    }
    job.barrier()
}

/// One call more than can be under way is refused; it can be made again once the oldest has ended.
pub fn j_too_many_nonblocking_calls_are_refused(job: &Job) -> Result<()> {
    let world = job.world();
    if job.rank() == 0 {
        let mut begun: Vec<CollectiveRequest<()>> =
            (0..64).map(|_| world.ibarrier()).collect::<Result<_>>()?;
        let full = refused(job, world.ibarrier(), ErrorKind::Full, &["ibarrier(world)", "64"]);
        assert!(matches!(full.cause(), Cause::Full { capacity: 64, .. }));
        job.barrier()?;
        begun.remove(0).wait()?;
        begun.push(world.ibarrier()?);
        wait_all(begun)?;
    } else {
        job.barrier()?;
        for _ in 0..65 {
            world.ibarrier()?.wait()?;
        }
    }
    job.barrier()
}

/// Several requests are awaited at once, under an executor that knows nothing of messages.
pub fn j_nonblocking_calls_are_awaited(job: &Job) -> Result<()> {
    let (world, size, me) = (job.world(), job.size(), job.rank().index());
    for count in COUNTS {
        let sum = world.iallreduce(of_rank(me, count), Sum)?;
        let all = world.iallgather(vec![me as u64; count])?;
        let barrier = world.ibarrier()?;
        let (all, sum) = pollster::block_on(async {
            barrier.await?;
            Ok::<_, tasuki::Error>((all.await?, sum.await?))
        })?;
        assert_eq!(sum, total(0..size, count));
        assert_eq!(all, (0..size as u64).flat_map(|rank| vec![rank; count]).collect::<Vec<_>>());
    }
    job.barrier()
}

/// An operation panics in the call of the rank that executes it, here the one that starts or waits.
pub fn j_nonblocking_calls_report_a_panicking_operation(job: &Job) -> Result<()> {
    let only_me = job.world().split(job.rank().0)?;
    // A single member combines nothing; its own values are the result.
    assert_eq!(only_me.iallreduce(vec![1_u8], |_: u8, _| panic!("never called"))?.wait()?, [1]);
    if job.size() > 1 {
        let pair = job.world().split((job.rank().0 < 2).then_some(0))?;
        if let Some(pair) = pair {
            let on_purpose = |_: u8, _| -> u8 { panic!("on purpose") };
            let begin_and_wait = || pair.ireduce(vec![1_u8], on_purpose, Rank(0))?.wait();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(begin_and_wait));
            assert_eq!(outcome.is_err(), pair.rank() == 0);
        }
    }
    job.barrier()
}

/// Members that disagree about a length, and a root that does not exist.
pub fn j_nonblocking_calls_that_disagree_get_errors(job: &Job) -> Result<()> {
    let world = job.world();
    let none = tasuki::Member(job.size());
    refused(job, world.dup()?.ibcast(vec![0_u8], none), ErrorKind::Misuse, &["ibcast(1 bytes from member"]);
    for (short, long) in [(1, 2), (3, 1000), (1000, 3), (20_000, 20_001)] {
        let part = world.split(0)?;
        let count = if part.rank() == 0 { short } else { long };
        // Another member may have detected the disagreement before this one begins.
        let ended = part.ibcast(vec![0_u8; count], Rank(0)).and_then(|mut begun| begun.wait());
        if part.rank() != 0 {
            refused(job, ended, ErrorKind::Disagreement, &["disagree", "ibcast"]);
        } // The root may not notice: a short message has been sent already.
        job.barrier()?;
    }
    job.barrier()
}

/// Two members both begin a broadcast as the root, and only test or await it. Neither waits for the other's values, so
/// only a comparison of their calls finds that.
pub fn j_tested_and_awaited_calls_with_two_roots_get_errors(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    if is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there members cannot compare their calls through shared memory
    }
    if let Some(pair) = world.split((me.0 < 2).then_some(0))? {
        let outcome = pair.ibcast(vec![1_u64], pair.rank()).and_then(|mut request| {
            while !request.test() {}
            request.wait()
        });
        refused(job, outcome, ErrorKind::Disagreement, &["bcast"]);
    }
    // The same in a call that a task awaits.
    if let Some(pair) = world.split((me.0 < 2).then_some(0))? {
        let outcome = pair.ibcast(vec![1_u64], pair.rank()).and_then(pollster::block_on);
        refused(job, outcome, ErrorKind::Disagreement, &["bcast"]);
    }
    job.barrier()
}

/// One member begins a nonblocking call, and the others make the blocking one. All are told both calls, whoever finds it.
pub fn j_nonblocking_calls_beside_blocking_ones_are_both_named(job: &Job) -> Result<()> {
    if is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there members cannot compare their calls through shared memory
    }
    for _ in 0..effort(job, 20, 5) {
        let part = job.world().split(0)?;
        let outcome = match job.rank() == 0 {
            true => part.ibcast(1_u64, Rank(0)).and_then(|mut begun| begun.wait()).map(drop),
            false => part.bcast(&mut 1_u64, Rank(0)),
        };
        // The root of a broadcast may have sent its values before it can know.
        let outcome = outcome.and_then(|()| part.barrier());
        refused(job, outcome, ErrorKind::Disagreement, &[" ibcast(8 bytes of u64", " bcast(8 bytes of u64"]);
        job.barrier()?;
    }
    Ok(())
}

/// Number of calls of a kind after which calls run compiled steps, where members can have them.
const COMPILED_AFTER: usize = 5;

/// A member leaves before a call that others await or test. They get an error that says so.
pub fn j_awaited_nonblocking_calls_end_when_a_member_leaves(job: &Job) -> Result<()> {
    if is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there calls use messages, and a rank reports at its end those that the member never took
    }
    let (world, me) = (job.world(), job.rank().index());
    for call in 0..COMPILED_AFTER {
        assert_eq!(world.iallreduce(vec![call as u64], Max)?.wait()?, [call as u64]);
    }
    job.barrier()?; // a failure also ends calls that were right and are still under way
    if me == job.size() - 1 {
        return Ok(());
    }
    let outcome = world.iallreduce(vec![1_u64], Max).and_then(|mut request| {
        while me == 1 && !request.test() {}
        pollster::block_on(request)
    });
    refused(job, outcome, ErrorKind::PeerFailed, &["has left"]);
    Ok(())
}

/// Two calls of a kind with different roots. A member that has waited for the first one only must have begun the
/// second: the other member waits for it, and this one meanwhile waits for a message from there.
pub fn j_a_call_behind_another_begins_when_that_one_ends(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    let roots = [Rank(0), Rank(1)];
    for call in 0..2 * COMPILED_AFTER {
        if me == 0 {
            job.compute(Duration::from_millis(1)); // the other member begins before the values are there
        }
        let begin = |root: Rank| world.ibcast(vec![if me == root { root.0 + call } else { 99 }], root);
        let (mut first, mut second) = (begin(roots[0])?, begin(roots[1])?);
        assert_eq!(first.wait()?, [call]);
        if me == 1 {
            world.recv(&mut [0_u8], Rank(0), Slot(0))?;
        }
        assert_eq!(second.wait()?, [1 + call]);
        if me == 0 {
            world.send(&[0_u8], Rank(1), Slot(0))?;
        }
    }
    Ok(())
}

/// A request and its communicator are dropped while the call is incomplete. The other members get their results.
pub fn j_dropped_calls_outlive_their_communicator(job: &Job) -> Result<()> {
    let (me, size) = (job.rank().index(), job.size());
    for calls in [1, COMPILED_AFTER] {
        let part = job.world().split(0)?;
        // Long enough that each member has to do something after it has received from the others.
        let begin = || part.iallreduce(vec![1_u64; 4096], Sum);
        for _ in 1..calls {
            begin()?.wait()?;
        }
        if me > 0 {
            job.world().recv(&mut [0_u8], Rank(0), Slot(0))?; // the first member has begun, and dropped all
        }
        let mut request = begin()?;
        if me == 0 {
            drop((request, part));
            (1..size).try_for_each(|to| job.world().send(&[0_u8], Rank(to), Slot(0)))?;
        } else {
            assert_eq!(request.wait()?, vec![size as u64; 4096]);
        }
        job.barrier()?;
    }
    Ok(())
}

/// Many calls of several kinds are outstanding, and each member waits for them in an order of its own, so members
/// compile the steps of the kinds in different orders. Then all are freed.
pub fn j_outstanding_calls_of_many_kinds(job: &Job) -> Result<()> {
    let (me, size) = (job.rank().index(), job.size());
    for round in 0..effort(job, 20, 2) {
        let part = job.world().split(0)?;
        for batch in 0..3 {
            let mut begun = Vec::new();
            for call in 0..40_usize {
                let (count, root) = (1 + call % 3, Rank(call % size));
                let (request, expected) = match call % 4 {
                    0 => (part.iallreduce(of_rank(me, count), Sum)?, total(0..size, count)),
                    1 => (part.ibcast(of_rank(me, count), root)?, of_rank(root.index(), count)),
                    2 => (part.iscan(of_rank(me, count), Sum)?, total(0..me + 1, count)),
                    _ => (part.iallreduce(of_rank(me, 40 * count), Sum)?, total(0..size, 40 * count)),
                };
                begun.push((request, expected));
            }
            begun.rotate_left((7 * me + 11 * batch + round) % 40);
            for (mut request, expected) in begun {
                assert_eq!(request.wait()?, expected, "batch {batch} of round {round}");
            }
            quiesce(&part)?;
        }
    }
    job.barrier()
}
