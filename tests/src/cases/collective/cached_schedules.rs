//! J: collective calls that are repeated. The first calls of a kind use messages; later calls run a
//! cached schedule.

use crate::exchange::{effort, is_simulated};
use crate::expected_error::{disagreed, misused, refused};
use std::time::Duration;
use tasuki::collective::{Max, MaxAbs, MinAbs, quiesce};
use tasuki::{Blocks, Communicator, ErrorKind, Job, Member, Pod, Rank, Result, Slot, Sum, Uneven};

/// A number of calls of one kind after which the library has begun to use a cached schedule. The first calls use
/// messages.
const CALLS: usize = 9;

/// A value that tells its rank, its call and its place.
fn value(rank: usize, call: usize, at: usize) -> u64 {
    (rank * 1_000_003 + call * 10_007 + at % 8191) as u64
}

fn values(rank: usize, call: usize, count: usize) -> Vec<u64> {
    (0..count).map(|at| value(rank, call, at)).collect()
}

fn sums(ranks: impl Iterator<Item = usize> + Clone, call: usize, count: usize) -> Vec<u64> {
    (0..count).map(|at| ranks.clone().map(|rank| value(rank, call, at)).sum()).collect()
}

/// The values of all ranks, one rank after the other.
fn all(ranks: usize, call: usize, count: usize) -> Vec<u64> {
    (0..ranks).flat_map(|rank| values(rank, call, count)).collect()
}

/// Makes every call with `count` values; the root changes with the number of the call.
fn calls(world: &Communicator, count: usize, call: usize) -> Result<()> {
    let (me, ranks) = (world.rank().index(), world.size());
    let root = call % ranks;
    let mine = values(me, call, count);
    let (everybody, at) = (sums(0..ranks, call, count), Rank(root));

    let mut data = if me == root { mine.clone() } else { vec![7; count] };
    world.bcast(&mut data, at)?;
    assert_eq!(data, values(root, call, count), "bcast of {count} from {root}");

    let reduced = world.reduce(&mine, Sum, at)?;
    assert_eq!(reduced, (me == root).then(|| everybody.clone()), "reduce of {count} to {root}");
    let mut data = mine.clone();
    world.reduce(&mut data, Sum, at)?;
    assert_eq!(data, if me == root { everybody.clone() } else { mine.clone() });

    assert_eq!(world.allreduce(&mine, Sum)?, everybody, "allreduce of {count}");
    assert_eq!(world.scan(&mine, Sum)?, sums(0..me + 1, call, count), "scan of {count}");
    assert_eq!(world.exscan(&mine, Sum)?, (me > 0).then(|| sums(0..me, call, count)), "exscan of {count}");
    world.barrier()
}

/// Makes every call with blocks of `count` values.
fn block_calls(world: &Communicator, count: usize, call: usize) -> Result<()> {
    let (me, ranks) = (world.rank().index(), world.size());
    let root = call % ranks;
    let (mine, at, everybody) = (values(me, call, count), Rank(root), all(ranks, call, count));

    assert_eq!(world.gather(&mine, at)?, (me == root).then(|| everybody.clone()), "gather of {count}");
    assert_eq!(world.allgather(&mine)?, everybody, "allgather of {count}");
    let given = if me == root { everybody.clone() } else { vec![] };
    assert_eq!(world.scatter(&given, count, at)?, mine, "scatter of {count} from {root}");

    // The block for member `to` has the values of call `call + to`, so all blocks differ.
    let given: Vec<u64> = (0..ranks).flat_map(|to| values(me, call + to, count)).collect();
    let got: Vec<u64> = (0..ranks).flat_map(|from| values(from, call + me, count)).collect();
    assert_eq!(world.alltoall(&given)?, got, "alltoall of {count}");
    assert_eq!(world.reduce_scatter(&given, Sum)?, sums(0..ranks, call + me, count), "reduce_scatter");
    world.barrier()
}

/// Every operation, many times: with no value, with one, with values that are split into segments,
/// and with values that are sent in pieces, the last one shorter.
pub fn j_repeated_calls_get_cached_schedules(job: &Job) -> Result<()> {
    let world = job.world();
    let counts = [0, 1, 6, 7, 1000, 5001, effort(job, 70_001, 6000)];
    for count in counts {
        for call in 0..effort(job, CALLS + job.size(), CALLS) {
            calls(world, count, call)?;
        }
    }
    for count in [0, 1, 7, 1000, effort(job, 40_000, 2000)] {
        for call in 0..effort(job, CALLS + job.size(), CALLS) {
            block_calls(world, count, call)?;
        }
    }
    Ok(())
}

/// The map from x to a x + b, packed into a word. Maps do not commute.
#[derive(Clone, Copy)]
struct Affine {
    a: u32,
    b: u32,
}

impl Affine {
    fn then(self, next: Affine) -> Affine {
        let b = next.a.wrapping_mul(self.b).wrapping_add(next.b);
        Affine { a: self.a.wrapping_mul(next.a), b }
    }

    fn word(self) -> u64 {
        u64::from(self.a) << 32 | u64::from(self.b)
    }

    fn of(word: u64) -> Affine {
        Affine { a: (word >> 32) as u32, b: word as u32 }
    }
}

fn after(one: u64, next: u64) -> u64 {
    Affine::of(one).then(Affine::of(next)).word()
}

/// Operations of the program, which do not commute. Values must be combined in the order of
/// members, by messages as well as by cached schedules, and with the same bits.
pub fn j_cached_schedules_combine_in_member_order(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let map =
        |rank: usize, call: usize| Affine { a: 2 * rank as u32 + 3, b: (call * 7 + rank) as u32 }.word();
    let product = |ranks: std::ops::Range<usize>, call: usize| {
        ranks.map(|rank| map(rank, call)).reduce(after).unwrap_or_default()
    };
    for call in 0..CALLS {
        let mine = [map(me, call); 700];
        assert_eq!(world.allreduce(&mine, after)?, [product(0..ranks, call); 700]);
        assert_eq!(world.scan(&mine, after)?, [product(0..me + 1, call); 700]);
        let root = Rank(call % ranks);
        if let Some(got) = world.reduce(&mine, after, root)? {
            assert_eq!(got, [product(0..ranks, call); 700]);
        }
    }
    // Built-in operations, too: if values are equally far from zero, the value of the lowest member
    // is the result.
    let ties = |rank: usize| -> Vec<i32> {
        (0..700).map(|at| if (rank + at).is_multiple_of(2) { at as i32 } else { -(at as i32) }).collect()
    };
    for call in 0..CALLS {
        let root = Rank(call % ranks);
        assert_eq!(world.allreduce(&ties(me), MaxAbs)?, ties(0));
        assert_eq!(world.scan(&ties(me), MinAbs)?, ties(0));
        let got = world.reduce(&ties(me), MinAbs, root)?;
        assert!(got.is_none_or(|got| got == ties(0)));
    }
    let parts: Vec<f64> = (0..3000).map(|at| 1.0 / (3.0 + (at * (me + 1)) as f64)).collect();
    let first = world.allreduce(&parts, Sum)?;
    for _ in 0..CALLS {
        let again = world.allreduce(&parts, Sum)?;
        let all = world.allgather(&again)?;
        assert!(
            all.chunks(again.len()).all(|other| other == again),
            "the members have results with different bits"
        );
        assert!(again == first, "the result by messages has different bits");
    }
    Ok(())
}

fn far<T: Pod + PartialEq + std::fmt::Debug>(world: &Communicator, value: T, count: usize) -> Result<()> {
    let mut data = vec![if world.rank() == 0 { value } else { T::zeroed() }; count];
    world.bcast(&mut data, Member(0))?;
    assert_eq!(data, vec![value; count]);
    Ok(())
}

/// More kinds of calls than the cache can hold, with values of many types, on two communicators.
/// After `quiesce` all memory of the cache is free again.
pub fn j_cached_schedules_are_evicted_and_freed(job: &Job) -> Result<()> {
    let world = job.world();
    let other = world.split((0, -(job.rank().0 as isize)))?;
    let before = job.memory().plans;
    for round in 0..effort(job, 3, 2) {
        for count in (1..effort(job, 150, 20)).map(|at| at * 13) {
            for _ in 0..5 {
                far(world, 0x1234_5678_u32 + round as u32, count)?;
                far(&other, 1.5_f64, count)?;
            }
            far(world, [1_u8, 2, 3], count)?;
        }
        calls(world, 100, round)?;
        let cached_executions =
            !is_simulated(job) && job.size() > 1 && std::env::var_os("TASUKI_DIRECT_SIGNALS").is_none();
        assert_eq!(job.memory().plans > before, cached_executions);
        assert!(job.memory().plans < 130 << 20, "{:?}", job.memory());
        quiesce(world)?;
        quiesce(&other)?;
        assert_eq!(job.memory().plans, before, "`quiesce` left bytes of cached schedules");
    }
    Ok(())
}

/// Members call with different lengths, or make different calls. Each member has a cached schedule for its call. All
/// members must get an error, and none may wait for ever.
pub fn j_cached_calls_that_disagree_get_errors(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    if is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there calls use messages
    }
    for call in 0..CALLS {
        calls(world, 1000, call)?;
        calls(world, 2000, call)?;
    }
    for bytes in [true, false] {
        let part = world.split(0)?;
        for call in 0..CALLS {
            calls(&part, 1000, call)?;
            calls(&part, 2000, call)?;
        }
        job.barrier()?; // a failure also ends calls that were right and are still under way
        let outcome = match (me == 0, bytes) {
            (true, true) => part.allreduce(&[1_u64; 2000], Sum).map(drop),
            (false, true) => part.allreduce(&[1_u64; 1000], Sum).map(drop),
            (true, false) => part.barrier(),
            (false, false) => part.allreduce(&[1_u64; 1000], Sum).map(drop),
        };
        let texts: &[&str] = if bytes { &["allreduce", "8000", "16000"] } else { &["allreduce"] };
        disagreed(job, outcome, texts);
        world.barrier()?;
    }
    Ok(())
}

/// Two members both call as the root, so neither waits for data. Both must get an error nevertheless.
pub fn j_cached_calls_with_two_roots_get_errors(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    if is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there calls use messages
    }
    let pair = world.split((me.0 < 2).then_some(0))?;
    if let Some(pair) = &pair {
        for call in 0..CALLS {
            calls(pair, 1000, call)?;
        }
        let mut calls = (0..200).map(|_| pair.bcast(&mut [1_u64; 1000], pair.rank()));
        let outcome = calls.find(Result::is_err).unwrap_or(Ok(()));
        disagreed(job, outcome, &["bcast"]);
    }
    world.barrier()
}

/// In the first call of a kind, each member passes a different root, so all members wait.
pub fn j_first_calls_with_different_roots_get_errors(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    if is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there members cannot compare their calls through shared memory
    }
    let all = world.split(0)?;
    all.barrier()?; // a failure of the world would also end the split
    let after = Rank((me.0 + 1) % job.size());
    let count = if job.size().is_multiple_of(2) { 1 } else { 100 };
    disagreed(job, world.bcast(&mut vec![1_u32; count], after), &["bcast"]);
    all.barrier() // a member that left would cause another error
}

/// Long broadcasts between two members, repeated until the library has tried its variants and chosen one. The
/// broadcasts are long enough to be sent in pieces. In some series the root changes, in others it stays, and other
/// calls come between them.
pub fn j_long_calls_of_two_try_other_variants(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    let calls = if is_simulated(job) { 2 } else { 200 };
    for (bytes, changes) in [(150_001, true), (150_001, false), (700_000, true)] {
        let mut values = vec![0_u8; bytes];
        for call in 0..calls {
            let root = Rank(if changes { call % 3 % 2 } else { 1 });
            let byte = |at: usize| (at % 251) as u8 ^ call as u8;
            if me == root {
                values.iter_mut().enumerate().for_each(|(at, value)| *value = byte(at));
            } else {
                values.fill(0);
            }
            world.bcast(&mut values, root)?;
            let wrong = values.iter().enumerate().position(|(at, &value)| value != byte(at));
            assert_eq!(wrong, None, "{bytes} bytes, call {call}");
            if call % 50 == 0 {
                assert_eq!(world.allreduce(&[1_u64; 3], Sum)?, [2; 3]);
            }
        }
    }
    Ok(())
}

/// Two members both call as the root in long broadcasts, which expose their buffers to each other.
/// Both must get an error, and keep their own values.
pub fn j_long_calls_of_two_with_two_roots_get_errors(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    if is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there calls use messages
    }
    let all = world.split(0)?;
    let mut values = vec![1_u8; 200_000];
    (0..40).try_for_each(|call| world.bcast(&mut values, Rank(call % 2)))?;
    values.fill(7 + me.0 as u8);
    let outcome = (0..200).map(|_| world.bcast(&mut values, me)).find(Result::is_err);
    disagreed(job, outcome.expect("no member receives"), &["bcast"]);
    assert!(values.iter().all(|&value| value == 7 + me.0 as u8));
    all.barrier()
}

/// One of two members leaves after many long broadcasts. The library may use any of its variants by then.
pub fn j_long_calls_of_two_fail_when_one_leaves(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    let mut values = vec![1_u8; 200_000];
    for call in 0..if is_simulated(job) { 2 } else { 40 } {
        world.bcast(&mut values, Rank(call % 2))?;
    }
    if me == 1 {
        return Ok(());
    }
    let outcome = (0..4).map(|_| world.bcast(&mut values, Rank(1))).find(Result::is_err);
    refused(job, outcome.expect("the root has left"), ErrorKind::PeerFailed, &["has left"]);
    Ok(())
}

/// After an operation that panicked, the next call of the member fails with an error that says so,
/// and no other member waits for ever.
pub fn j_cached_calls_report_an_earlier_panic(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    if is_simulated(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(()); // there calls use messages
    }
    let part = world.split(0)?;
    let sum = |panics: bool| {
        let combine = move |a: u64, b: u64| if panics { panic!("on purpose") } else { a.wrapping_add(b) };
        part.allreduce(&[1_u64; 100], combine).map(drop)
    };
    for _ in 0..CALLS {
        sum(false)?;
    }
    job.barrier()?; // a failure also ends calls that were right and are still under way
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sum(me == 0)));
    assert_eq!(outcome.is_err(), me == 0);
    if me == 0 {
        refused(job, sum(false), ErrorKind::Program, &["allreduce", "panicked"]);
    }
    world.barrier()
}

/// An operation panics in a call that uses messages. Its member can make no further calls on the
/// communicator. Members that wait for it get an error that names the panic or says that the member
/// has left.
pub fn j_message_calls_report_a_panicking_operation(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    let combine = move |a: u64, b: u64| if me == 0 { panic!("on purpose") } else { a.wrapping_add(b) };
    let call = || world.allreduce(&[1; 100_000], combine).map(drop);
    if me == 0 {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
        refused(job, world.barrier(), ErrorKind::Program, &["barrier", "panicked"]);
        return Ok(());
    }
    // Where each member combines all values itself, the call succeeds and only the barrier fails.
    let error = call().and_then(|()| world.barrier()).expect_err("a member is missing").to_string();
    assert!(error.contains("panicked") || error.contains("has left"), "{error}");
    Ok(())
}

/// A member leaves; the calls of the others must end with an error.
pub fn j_cached_calls_fail_when_a_member_leaves(job: &Job) -> Result<()> {
    let world = job.world();
    for call in 0..CALLS {
        calls(world, 500, call)?;
    }
    job.barrier()?; // a failure also ends calls that were right and are still under way
    if job.rank() == 0 {
        return Ok(());
    }
    job.compute(Duration::from_millis(5));
    let left = |outcome: Result<()>| match outcome {
        Ok(()) => panic!("a call succeeded although rank 0 has left"),
        Err(error) => assert!(error.to_string().contains("left"), "{error}"),
    };
    left(world.allreduce(&values(1, 1, 500), Max).map(drop));
    if job.rank() == 1 {
        left(world.recv(&mut [0_u8], Rank(0), Slot(3)).map(drop));
    }
    Ok(())
}

/// Blocks of different lengths, some of them empty. Wrong counts are refused.
pub fn j_blocks_of_different_lengths(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    for scale in [1, 7, effort(job, 3000, 300)] {
        for root in 0..ranks {
            // Member r has (r + root) % 3 * scale values.
            let count = |member: usize| (member + root) % 3 * scale;
            let counts: Vec<usize> = (0..ranks).map(count).collect();
            let everybody: Vec<u64> = (0..ranks).flat_map(|of| values(of, root, count(of))).collect();
            let (mine, at) = (values(me, root, count(me)), Rank(root));
            let of_all = Blocks::new(everybody, &counts)?;
            let gathered = world.gather(Uneven(&mine), at)?;
            assert_eq!(gathered, (me == root).then(|| of_all.clone()));
            assert_eq!(world.allgather(Uneven(&mine))?, of_all);
            let given = if me == root { of_all } else { Blocks::default() };
            assert_eq!(world.scatter(&given, (), at)?, mine);
            assert_eq!(world.scatter(&given, count(me), at)?, mine);
            let mut placed = vec![7; count(me)];
            world.scatter(&given, &mut placed, at)?;
            assert_eq!(placed, mine);
            let given: Blocks<u64> = (0..ranks).map(|to| values(me, to, count(me + to))).collect();
            let got: Blocks<u64> = (0..ranks).map(|from| values(from, me, count(me + from))).collect();
            assert_eq!(world.alltoall(&given)?, got);
        }
    }
    job.barrier()?; // a failure also ends calls that were right and are still under way
    let own = Blocks::ending_at(vec![1_u64; 3], &vec![3; ranks]); // three values for member 0
    let expected = if me == 0 { 2 } else { 1 };
    misused(
        job,
        world.scatter(&own, expected, job.rank()),
        &["for itself", &format!("its count is {expected}")],
    );
    misused(
        job,
        world.alltoall(&Blocks::ending_at(vec![1_u64; 3], &vec![3; ranks + 1])),
        &["blocks", "members"],
    );
    Ok(())
}
