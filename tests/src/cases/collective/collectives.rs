//! G12, G13: communicators, and collective calls whose results are compared with plain arithmetic.

use crate::exchange::effort;
use crate::random::Random;
use tasuki::collective::{And, Bool, Complex, Max, MaxAbs, Min, MinAbs, Or, Split, Xor};
use tasuki::message::slots;
use tasuki::{Communicator, Job, Member, Pod, Rank, Request, Result, Slot, Sum};

/// Numbers of values: none, few, more than fit into a line, more than fit into a chunk.
const COUNTS: [usize; 6] = [0, 1, 6, 7, 101, 9000];

/// The value of a rank at a place. It may be negative, and is small enough for sums to be exact.
fn value(rank: usize, place: usize) -> i64 {
    let mut random = Random::seed(rank as u64 * 7919 + place as u64);
    random.below(2001) as i64 - 1000
}

fn mine<T>(job: &Job, count: usize, of: impl Fn(i64) -> T) -> Vec<T> {
    (0..count).map(|place| of(value(job.rank().0, place))).collect()
}

/// The combination of all ranks' values, by a plain loop.
fn all<T: Copy>(job: &Job, count: usize, of: impl Fn(i64) -> T, combine: impl Fn(T, T) -> T) -> Vec<T> {
    let at = |place| {
        let values = (0..job.size()).map(|rank| of(value(rank, place)));
        values.reduce(&combine).expect("at least one rank")
    };
    (0..count).map(at).collect()
}

/// G12: sums of every type of number, with `reduce` and `allreduce`.
pub fn g12_reductions_of_every_type(job: &Job) -> Result<()> {
    fn integers<T: Pod + PartialEq + std::fmt::Debug>(
        job: &Job,
        of: impl Fn(i64) -> T + Copy,
        add: impl Fn(T, T) -> T + Copy,
    ) -> Result<()> {
        for (round, count) in COUNTS.into_iter().enumerate() {
            let ours = mine(job, count, of);
            let expected = all(job, count, of, add);
            assert_eq!(job.world().allreduce(&ours, add)?, expected);
            let root = Rank(round % job.size());
            let reduced = job.world().reduce(&ours, add, root)?;
            assert_eq!(reduced, (job.rank() == root).then_some(expected));
        }
        Ok(())
    }
    integers(job, |v| v as i8, i8::wrapping_add)?;
    integers(job, |v| v as u16, u16::wrapping_add)?;
    integers(job, |v| v as i32, i32::wrapping_add)?;
    integers(job, |v| v, i64::wrapping_add)?;
    integers(job, |v| v as f32, |a, b| a + b)?;
    integers(job, |v| v as f64, |a, b| a + b)?;
    integers(job, |v| Complex { re: v as f64, im: -v as f64 }, |a, b| a + b)?;
    job.barrier()
}

/// G12: the built-in operations. Extremes by absolute value keep the sign.
pub fn g12_built_in_operations_give_right_values(job: &Job) -> Result<()> {
    let (world, rank) = (job.world(), job.rank().0 as i64);
    let last = job.size() as i64 - 1;
    assert_eq!(world.allreduce(&[rank, -rank], Sum)?, [last * (last + 1) / 2, -last * (last + 1) / 2]);
    assert_eq!(world.allreduce(&[rank as f64], Max)?, [last as f64]);
    assert_eq!(world.allreduce(&[rank as u8], Min)?, [0]);
    let near = if rank == last { 3.0 } else { -5.0_f32 };
    let both = last > 0;
    assert_eq!(world.allreduce(&[near], MaxAbs)?, [if both { -5.0 } else { 3.0 }]);
    assert_eq!(world.allreduce(&[near], MinAbs)?, [3.0]);
    let z = Complex { re: near, im: 0.5 };
    assert_eq!(world.allreduce(&[z], MaxAbs)?[0].re, if both { -5.0 } else { 3.0 });
    let bits: Vec<u8> = (0..=last).map(|rank| 1 << (rank % 8) | 0x80).collect();
    let mine = [bits[rank as usize]];
    let folded = |how: fn(u8, u8) -> u8| [bits.iter().copied().reduce(how).expect("there are ranks")];
    assert_eq!(world.allreduce(&mine, And)?, folded(|a, b| a & b));
    assert_eq!(world.allreduce(&mine, Or)?, folded(|a, b| a | b));
    assert_eq!(world.allreduce(&mine, Xor)?, folded(|a, b| a ^ b));
    let truths = [Bool::from(rank == 0), Bool::from(true)];
    let all = |how: [Bool; 2]| how.map(Bool::get);
    assert_eq!(all(world.allreduce(&truths, And)?), [!both, true]);
    assert_eq!(all(world.allreduce(&truths, Or)?), [true, true]);
    assert_eq!(all(world.allreduce(&truths, Xor)?), [true, last % 2 == 0]);
    // A plan of the same operation.
    let mut plan = world.allreduce_init::<Bool>(2, And)?;
    plan.input()?.copy_from_slice(&truths);
    plan.start()?;
    plan.wait()?;
    assert_eq!(plan.result()?, [Bool::from(!both), Bool::from(true)]);
    job.barrier()
}

/// G12: an operation that does not commute is applied in the order of ranks. Here it concatenates
/// numbers.
pub fn g12_operations_apply_in_the_order_of_ranks(job: &Job) -> Result<()> {
    // Digits of base 100, concatenated; the second value counts the digits.
    let string = |a: [u64; 2], b: [u64; 2]| {
        [a[0].wrapping_mul(100_u64.wrapping_pow(b[1] as u32)).wrapping_add(b[0]), a[1] + b[1]]
    };
    let ours = [[job.rank().0 as u64 + 1, 1]];
    let expected = (1..=job.size() as u64).fold(0_u64, |all, digit| all.wrapping_mul(100) + digit);
    assert_eq!(job.world().allreduce(&ours, string)?, [[expected, job.size() as u64]]);
    for root in job.ranks() {
        let many = vec![ours[0]; 50];
        let strung = job.world().reduce(&many, string, root)?;
        assert!(strung.is_none_or(|all| all == vec![[expected, job.size() as u64]; 50]));
    }
    job.barrier()
}

/// Broadcast, gather and allgather, with every root and every length.
pub fn values_reach_everybody(job: &Job) -> Result<()> {
    let world = job.world();
    for count in COUNTS {
        let ours = mine(job, count, |v| v);
        let everybodys: Vec<i64> =
            (0..job.size()).flat_map(|rank| (0..count).map(move |place| value(rank, place))).collect();
        assert_eq!(world.allgather(&ours)?, everybodys);
        for root in job.ranks() {
            let mut values = ours.clone();
            world.bcast(&mut values, root)?;
            assert_eq!(values, everybodys[root.index() * count..][..count]);
            let gathered = world.gather(&ours, root)?;
            assert_eq!(gathered, (job.rank() == root).then(|| everybodys.clone()));
        }
    }
    job.barrier()
}

/// Many collective calls in a row, without any other synchronization of the ranks.
pub fn collective_calls_in_a_row(job: &Job) -> Result<()> {
    let (world, size) = (job.world(), job.size() as u64);
    for round in 0..effort(job, 2000, 20) as u64 {
        let root = Rank((round % size) as usize);
        let mut value = [round + job.rank().0 as u64];
        world.bcast(&mut value, root)?;
        assert_eq!(value[0], round + root.0 as u64);
        assert_eq!(world.allreduce(&value, Sum)?, [value[0] * size]);
        world.barrier()?;
    }
    job.barrier()
}

/// G13: communicators have ranks of their own, and a message on one never matches a receive on
/// another.
pub fn g13_messages_stay_in_their_communicator(job: &Job) -> Result<()> {
    let world = job.world();
    let odd = job.rank().0 % 2;
    // One communicator of the even ranks and one of the odd ranks, both in reverse order.
    let half = world.split((odd, -(job.rank().0 as isize)))?;
    let members = (0..job.size()).filter(|rank| rank % 2 == odd).count();
    assert_eq!(half.size(), members);
    assert_eq!(half.rank().index(), members - 1 - job.rank().index() / 2);
    let total: usize = (0..job.size()).filter(|rank| rank % 2 == odd).sum();
    assert_eq!(half.allreduce(&[job.rank().0], Sum)?, [total]);
    // Each rank sends one value to the next member, on one slot in both communicators. The received
    // values differ.
    let next = |of: &Communicator, by: usize| Member((of.rank().index() + by) % of.size());
    let (mut in_world, mut in_half) = ([0_usize], [0_usize]);
    let (of_world, of_half) = ([world.rank().0], [1000 + half.rank().0]);
    world.scope(|s| {
        s.recv(&mut in_world, next(world, world.size() - 1), Slot(4))?;
        half.scope(|t| {
            t.recv(&mut in_half, next(&half, half.size() - 1), Slot(4))?;
            t.send(of_half, next(&half, 1), Slot(4))?;
            s.send(of_world, next(world, 1), Slot(4))?;
            t.wait_all()
        })?;
        s.wait_all()
    })?;
    assert_eq!(in_world[0], next(world, world.size() - 1).0);
    assert_eq!(in_half[0], 1000 + next(&half, half.size() - 1).0);
    // Ranks 0 and 1 make a communicator; the others pass no colour and get none.
    let few = world.split((job.rank().0 < 2).then_some(0))?;
    assert_eq!(few.is_some(), job.rank().0 < 2);
    if let Some(few) = few {
        few.barrier()?;
        let nested = few.split(few.rank().0)?;
        assert_eq!((nested.size(), nested.allgather(&[7_u8])?), (1, vec![7]));
    }
    job.barrier()
}

/// G12: values that look like the announcement that the library sends before a long part.
pub fn g12_values_that_look_like_announcements(job: &Job) -> Result<()> {
    let world = job.world();
    for len in [0, 8, 16, 100, u64::MAX] {
        let value = [u64::from_le_bytes(*b"announce"), len];
        let mut got = if job.rank() == 0 { value } else { [0; 2] };
        world.bcast(&mut got, Rank(0))?;
        assert_eq!(got, value);
        assert!(world.allgather(&value)?.chunks(2).all(|part| part == value));
        assert_eq!(world.allreduce(&value, Max)?, value);
    }
    job.barrier()
}

/// G13: a duplicate has the members of its communicator in their order, its number of slots, and messages and
/// collective calls of its own.
pub fn g13_duplicates_have_messages_of_their_own(job: &Job) -> Result<()> {
    let reversed = job.world().split(Split::colour(0).key(-(job.rank().0 as isize)).slots(5))?;
    let (twin, me) = (reversed.dup()?, reversed.rank());
    assert_eq!((twin.rank(), twin.size(), slots(&twin)), (me, reversed.size(), 5));
    let ranks = |of: &Communicator| -> Vec<_> {
        of.members().iter().map(|member| of.members().rank_of(member)).collect()
    };
    assert_eq!(ranks(&twin), ranks(&reversed));
    let (before, after) = (twin.members().after(-1), twin.members().after(1));
    // The receive on the communicator was posted first, but gets the message that was sent on it.
    let mut early = reversed.irecv(vec![0_usize], before, Slot(0))?;
    let mut got = 0;
    twin.sendrecv(&(me.0 + 100), after, &mut got, before, Slot(0))?;
    reversed.isend(vec![me.0], after, Slot(0))?.wait()?;
    assert_eq!((early.wait()?.0, got), (vec![before.0], before.0 + 100));
    let mut begun = reversed.iallreduce(1_usize, Sum)?;
    assert_eq!((twin.iallreduce(2_usize, Sum)?.wait()?, begun.wait()?), (2 * twin.size(), twin.size()));
    job.barrier()?; // a failure also ends calls that were right and are still under way
    // The other one goes on after a failure.
    if job.size() > 1 {
        assert!(
            twin.allgather(&vec![0_u8; if me == 0 { 1 } else { 2 }]).and_then(|_| twin.barrier()).is_err()
        );
        assert_eq!(reversed.allreduce(&1_usize, Sum)?, reversed.size());
    }
    job.barrier()
}
