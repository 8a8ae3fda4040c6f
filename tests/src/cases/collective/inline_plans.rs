//! J: plans that each rank executes inline, in its own calls.

use crate::cases::plans::{sums, values};
use crate::exchange::effort;
use crate::expected_error::refused;
use crate::wait_until::may_be_helped;
use tasuki::collective::quiesce;
use tasuki::{Error, ErrorKind, Job, Rank, Request, Result, Sum};

/// Values that pass in several pieces, the last one shorter, while members wait for other plans.
/// The operation panics on values that no member gave.
pub fn j_inline_plans_pass_long_values_in_pieces(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let least = |a: i64, b: i64| {
        assert!(a > 0 && b > 0, "{a} and {b}: no member gave one of these");
        a.min(b)
    };
    let given = |rank: usize, start: usize, count: usize| -> Vec<i64> {
        values(rank, start, count).into_iter().map(|value| value + 1).collect()
    };
    for count in [effort(job, 65_537, 70), effort(job, 100_003, 40)] {
        let root = Rank(count % ranks);
        let mut first = world.bcast_init::<i64>(count, root)?;
        let mut second = world.allreduce_init::<i64>(count, least)?;
        let mut third = world.allreduce_init::<i64>(count, Sum)?;
        for start in 0..effort(job, 6, 2) {
            let mine = given(me, start, count);
            if me == root.index() {
                first.input()?.copy_from_slice(&mine);
            }
            second.input()?.copy_from_slice(&mine);
            third.input()?.copy_from_slice(&mine);
            let mut plans = [&mut first, &mut second, &mut third];
            plans.rotate_left(me % 3);
            plans.iter_mut().try_for_each(|plan| plan.start())?;
            plans.iter_mut().try_for_each(|plan| plan.wait())?;
            assert!(first.result()? == given(root.index(), start, count), "broadcast {start} of {count}");
            assert!(second.result()? == given(0, start, count), "the least, {start} of {count}");
            let all: Vec<i64> = sums(ranks, start, count).into_iter().map(|sum| sum + ranks as i64).collect();
            assert!(third.result()? == all, "sum {start} of {count}");
        }
    }
    Ok(())
}

/// The size of this machine's memory.
fn bytes_of_this_machine() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").expect("/proc/meminfo can be read");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .expect("/proc/meminfo has a line MemTotal");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("MemTotal is a number");
    kib << 10
}

/// Plans for which there is not enough memory are refused on all members, for every number of
/// values. A smaller plan can still be made.
pub fn j_plans_beyond_memory_are_refused(job: &Job) -> Result<()> {
    let world = job.world();
    let machine = 2 * bytes_of_this_machine() / size_of::<u64>();
    for count in [usize::MAX, usize::MAX / size_of::<u64>(), 1 << 37, machine] {
        let refused: [Option<Error>; 7] = [
            world.dup()?.bcast_init::<u64>(count, Rank(0)).err(),
            world.dup()?.allreduce_init::<f64>(count, Sum).err(),
            world.dup()?.reduce_scatter_init::<u64>(count, Sum).err(),
            world.dup()?.allgather_init::<u64>(count).err(),
            world.dup()?.alltoall_init::<u64>(count).err(),
            world.dup()?.gather_init::<u64>(count, Rank(0)).err(),
            world.dup()?.allgather_init::<u64>(tasuki::Uneven(count)).err(),
        ];
        for (at, error) in refused.into_iter().enumerate() {
            let text = error.expect("there is not enough memory").to_string();
            let reasons = ["not enough memory for", "found no room", "more bytes than memory can have"];
            // A member that still learns the lengths of blocks may hear that one which knows them has given up.
            let is_of_other = at == 6 && text.contains("the system refused something");
            assert!(
                is_of_other || reasons.iter().any(|reason| text.contains(reason)),
                "{at}, {count} values: {text}"
            );
        }
    }
    let mut sum = world.allreduce_init::<u64>(1, Sum)?;
    sum.input()?.copy_from_slice(&[1]);
    sum.start()?;
    sum.wait()?;
    assert_eq!(sum.result()?, [job.size() as u64]);
    Ok(())
}

/// A root combines long values in the members' buffers. The members may use their buffers again
/// once the root is done. Starts of plans with other roots, in another order on each rank, do not
/// disturb it.
pub fn j_roots_combine_values_in_the_buffers_of_members(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    for count in [effort(job, 1_025, 513), effort(job, 9_001, 600)] {
        let plan = |root| world.reduce_init::<i64>(count, Sum, root);
        let mut plans = job.ranks().map(plan).collect::<Result<Vec<_>>>()?;
        for start in 0..effort(job, 8, 3) {
            let order = |at: usize| if start % 2 == 0 { at } else { (at + me) % ranks };
            for root in (0..ranks).map(order) {
                plans[root].input()?.copy_from_slice(&values(me, start + root, count));
                plans[root].start()?;
            }
            for root in (0..ranks).rev().map(order) {
                plans[root].wait()?;
                let is_right = me != root || plans[root].result()? == sums(ranks, start + root, count);
                assert!(is_right, "{count} values for rank {root}, start {start}");
            }
        }
    }
    Ok(())
}

/// An operation panics in the call of the rank that executes it. The plan becomes unusable, and can
/// be dropped like any other. Plans that other ranks execute, too, end with an error on all members
/// (see `plan_lifetime`).
pub fn j_inline_plans_report_a_panicking_operation(job: &Job) -> Result<()> {
    if may_be_helped(job) || std::env::var_os("TASUKI_DIRECT_SIGNALS").is_some() {
        return Ok(());
    }
    [3, 5000].into_iter().try_for_each(|count| operation_panics(job, count))
}

fn operation_panics(job: &Job, count: usize) -> Result<()> {
    let (world, me) = (job.world().split(0)?, job.rank());
    let some = |a: i64, b: i64| if a + b > 100 { panic!("on purpose") } else { a + b };
    let mut plan = world.reduce_init::<i64>(count, some, Rank(0))?;
    for value in [1, 200] {
        job.barrier()?; // a failure also ends calls that were right and are still under way
        plan.input()?.fill(value);
        let run = || plan.start().and_then(|()| plan.wait());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        assert_eq!(outcome.is_err(), me == 0 && value == 200, "{value}");
    }
    if me == 0 {
        refused(job, plan.wait(), ErrorKind::Program, &["cannot be used any more"]);
        refused(job, plan.start(), ErrorKind::Program, &["start(", "panicked"]);
    }
    drop(plan);
    refused(job, quiesce(&world), ErrorKind::Program, &["quiesce(", "panicked"]);
    job.barrier()
}
