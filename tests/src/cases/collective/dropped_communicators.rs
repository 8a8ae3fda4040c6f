//! J: communicators that all members have dropped leave no memory behind.

use crate::exchange::effort;
use crate::expected_error::refused;
use std::any::Any;
use std::time::Duration;
use tasuki::collective::quiesce;
use tasuki::engine::fabric;
use tasuki::schedule::{ALGORITHMS, CollectiveKind, Shape};
use tasuki::{Communicator, ErrorKind, Job, Rank, Request, Result, Slot, Sum};

/// Makes calls of every kind on a communicator: first calls and cached ones, nonblocking ones, messages, plans, and
/// fuzzy barriers.
fn use_all(part: &Communicator, seed: u64) -> Result<()> {
    let (me, size) = (part.rank(), part.size() as u64);
    for call in 0..5 {
        assert_eq!(part.allreduce(&[seed + call], Sum)?, [(seed + call) * size]);
    }
    assert_eq!(part.iallreduce(vec![seed], Sum)?.wait()?, [seed * size]);
    let (to, from) = (part.members().after(1), part.members().after(-1));
    for len in [1, 700] {
        let mut receive = part.irecv(vec![0_u64; len], from, Slot(3))?;
        part.send(&vec![seed + me.0 as u64; len], to, Slot(3))?;
        assert_eq!(receive.wait()?.0, vec![seed + from.0 as u64; len]);
    }
    part.fuzzy_barrier()?.wait()?;
    let mut plan = part.allreduce_init::<u64>(2, Sum)?;
    plan.input()?.copy_from_slice(&[seed, 1]);
    plan.start()?;
    plan.wait()?;
    assert_eq!(plan.result()?, [seed * size, size]);
    Ok(())
}

/// Returns true if the job is simulated. The simulator needs much time for each round, so a case makes fewer rounds
/// there.
fn is_simulated(job: &Job) -> bool {
    fabric(job) == "sim"
}

/// The memory of messages and plans is the same after many communicators that were used and dropped.
pub fn j_dropped_communicators_are_freed(job: &Job) -> Result<()> {
    let used = || {
        let memory = job.memory();
        (memory.slot_banks, memory.plans)
    };
    for turn in 0..3 {
        let part = job.world().split(turn)?;
        use_all(&part, turn as u64)?;
    }
    quiesce(job.world())?;
    let before = used();
    let mut most = before;
    for turn in 0..if is_simulated(job) { 6 } else { 20 } {
        let part = job.world().split(turn % 2)?;
        use_all(&part, turn as u64)?;
        let inner = part.split(part.rank().0 % 2)?;
        use_all(&inner, turn as u64)?;
        if turn == 3 {
            most = used();
        }
    }
    let after = used();
    assert!(after.0 <= most.0 && after.1 <= most.1, "{before:?} {most:?} {after:?}");
    quiesce(job.world())?;
    assert_eq!(used(), before, "after quiesce");
    job.barrier()
}

/// The signals of fuzzy barriers come back with their communicators: the memory file does not grow with their number.
pub fn j_fuzzy_barriers_of_dropped_communicators_are_freed(job: &Job) -> Result<()> {
    let world = job.world();
    let mut before = 0;
    for turn in 0..450 {
        if turn == 50 {
            before = job.memory().file;
        }
        world.dup()?.fuzzy_barrier()?.wait()?;
        if turn % 10 == 9 {
            quiesce(world)?;
        }
    }
    let more = job.memory().file - before;
    assert!(more < 40 << 10, "the file has grown by {more} bytes"); // of tables of addresses
    job.barrier()
}

/// Communicators with different members are in use at once. Each member drops them at a different time and uses them
/// until then.
pub fn j_communicators_are_dropped_at_different_times(job: &Job) -> Result<()> {
    let mut random = job.rank().0 as u64 + 1;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut kept = Vec::new();
    for turn in 0..if is_simulated(job) { 12 } else { 40 } {
        let colour = draw(3) as usize;
        if let Some(part) = job.world().split((colour < 2).then_some(colour))? {
            let sums = part.allreduce(&[1_u64, turn], Sum)?;
            assert_eq!(sums, [part.size() as u64, turn * part.size() as u64]);
            let all = part.allgather(&[job.rank().0])?;
            assert!(all.is_sorted() && all.contains(&job.rank().0), "{all:?}");
            kept.push(part);
        }
        if draw(2) == 0 && !kept.is_empty() {
            kept.swap_remove(draw(kept.len() as u64) as usize);
        }
    }
    drop(kept);
    quiesce(job.world())?;
    job.barrier()
}

/// A member that leaves right after the split in which a communicator is freed does not disturb the others.
pub fn j_a_member_leaves_while_communicators_are_freed(job: &Job) -> Result<()> {
    let world = job.world();
    let rest = world.split((job.rank() != Rank(0)).then_some(1))?;
    for turn in 0..3 {
        let part = world.split(turn)?;
        assert_eq!(part.alltoall(&vec![turn; job.size()])?, vec![turn; job.size()]);
    }
    let Some(rest) = rest else { return Ok(()) };
    // The last communicator that includes rank 0 is never freed; the last ones of the other members are.
    for turn in 0..3 {
        let part = rest.split(turn)?;
        assert_eq!(part.allreduce(&[turn], Sum)?, [turn * rest.size()]);
    }
    quiesce(&rest)
}

/// What members of a communicator may have begun when a call on it fails.
const BEGUN: usize = 9;
/// The one of them whose operation panics.
const PANICS: usize = 8;

/// Begins something on a communicator that will never be complete, because one member does not take part. Returns what
/// the program holds of it.
fn begin(job: &Job, part: &Communicator, which: usize) -> Result<Vec<Box<dyn Any>>> {
    let (takes_part, size) = (part.rank().0 != 1, part.size());
    let shape = Shape { value_bytes: 8, ..Shape::new(CollectiveKind::Allreduce, size, 0, 8 * 3000) };
    let flat = || {
        let mut all = ALGORITHMS.iter();
        let flat = all.find(|one| (one.collective, one.name) == (CollectiveKind::Allreduce, "flat"));
        flat.expect("there is an algorithm flat").schedule(&shape, 1)
    };
    Ok(match which {
        // Nothing, or cached calls.
        0 => Vec::new(),
        1 => {
            (0..6).try_for_each(|call| part.allreduce(&[call, 1_u64], Sum).map(drop))?;
            (0..6).try_for_each(|call| part.iallreduce(vec![call, 1_u64], Sum)?.wait().map(drop))?;
            Vec::new()
        }
        // Nonblocking calls, short and long.
        2 if !takes_part => Vec::new(),
        2 => vec![
            Box::new(part.ialltoall(vec![1_u8; size])?),
            Box::new(part.ialltoall(vec![1_u64; 9000 * size])?),
            Box::new(part.iallreduce(vec![1_u64; 50_000], Sum)?),
        ],
        // Fuzzy barriers.
        3 => {
            part.fuzzy_barrier()?.wait()?;
            if takes_part {
                vec![Box::new(part.fuzzy_barrier()?), Box::new(part.fuzzy_barrier()?)]
            } else {
                Vec::new()
            }
        }
        // A start of a plan, short and long; in chunks.
        4 | 5 => {
            let mut plan = part.allreduce_init::<u64>(if which == 4 { 1 } else { 70_000 }, Sum)?;
            if takes_part {
                plan.start()?;
            }
            vec![Box::new(plan)]
        }
        6 => {
            let mut plan = part.allgather_init::<u8>(100)?.chunked()?;
            if takes_part {
                plan.start(vec![1; 1000 * size])?;
            }
            vec![Box::new(plan)]
        }
        PANICS => {
            let some = |a: u64, b: u64| if a + b > 1000 { panic!("on purpose") } else { a + b };
            let mut plan = part.plan::<u64>((&flat(), some))?;
            plan.input()?.fill(1000);
            job.barrier()?; // a failure also ends calls that were right and are still under way
            let started = plan.start();
            assert!(started.and_then(|()| plan.wait()).is_err());
            vec![Box::new(plan)]
        }
        // A plan of the program's own schedule, which any rank may run.
        _ => {
            let mut plan = part.plan::<u64>((&flat(), Sum))?;
            plan.start()?;
            plan.wait()?;
            if takes_part {
                plan.start()?;
            }
            vec![Box::new(plan)]
        }
    })
}

/// Lets a call fail on a communicator on which members have begun something.
fn fail(job: &Job, part: &Communicator, which: usize) -> Result<()> {
    let begun = begin(job, part, which)?;
    job.barrier()?; // all have begun it before a call fails
    let count = if part.rank().0 == 1 { 2 } else { 1 };
    let failed = part.allreduce(&vec![1_u64; count], Sum);
    let kind = if which == PANICS { ErrorKind::Program } else { ErrorKind::Disagreement };
    refused(job, failed.and_then(|_| part.barrier()), kind, &[]);
    drop(begun);
    Ok(())
}

/// Frees what can be freed, until the memory of all members is as it was `before`.
fn frees_all(job: &Job, world: &Communicator, before: &[u64], what: &str) -> Result<()> {
    for _ in 0..100 {
        quiesce(world)?;
        let is_more = used(job).iter().zip(before).any(|(now, before)| now > before);
        if world.allreduce(&u64::from(is_more), Sum)? > 0 {
            continue;
        }
        return Ok(());
    }
    panic!("{what}: {before:?} was used before, and {:?} after", used(job));
}

/// The memory of messages, plans and queues, and the bytes that grow with the number of signals.
fn used(job: &Job) -> [u64; 4] {
    let memory = job.memory();
    [memory.slot_banks, memory.bank_tables, memory.plans, memory.command_queues]
}

/// The size of the memory file without the rings of long messages, which stay.
fn without_rings(job: &Job) -> u64 {
    let memory = job.memory();
    memory.file.saturating_sub(memory.rings)
}

/// A call fails on a communicator, whatever members have begun on it. When all have dropped it, and the one that was
/// recreated from it, nothing of both is left.
pub fn j_failed_communicators_are_freed(job: &Job) -> Result<()> {
    let (world, size) = (job.world(), job.size() as u64);
    use_all(&world.dup()?, 1)?;
    quiesce(world)?;
    let before = used(job);
    for which in 0..BEGUN {
        let (turns, mut file) = (effort(job, 12, 2), 0);
        for turn in 0..turns {
            if turn == turns / 2 {
                file = without_rings(job);
            }
            let part = world.dup()?;
            fail(job, &part, which)?;
            let again = part.recreate()?;
            assert_eq!(again.allreduce(&[1_u64], Sum)?, [size], "{which}");
            if turn % 3 == 1 {
                fail(job, &again, which)?; // and is dropped without being recreated
            }
            drop((part, again));
            frees_all(job, world, &before, &format!("{which}, turn {turn}"))?;
        }
        let more = without_rings(job).saturating_sub(file);
        assert!(more < 100 << 10, "{which}: the file has grown by {more} bytes");
    }
    job.barrier()
}

/// A service goes on with the communicator that it has recreated, again and again. What came before is freed when that
/// one is recreated in turn. The world itself stays, and so does the last one that has failed.
pub fn j_recreated_worlds_are_freed(job: &Job) -> Result<()> {
    let turns = BEGUN * effort(job, 11, 2);
    let mut world = job.world().clone();
    for splits in [false, true] {
        let mut before = [0; 4];
        for turn in 0..turns {
            fail(job, &world, turn % BEGUN)?;
            world = world.recreate()?;
            assert_eq!(world.allreduce(&1_usize, Sum)?, job.size());
            if splits {
                let part = world.dup()?; // is freed with it
                assert_eq!(part.allreduce(&1_usize, Sum)?, job.size());
            }
            if turn == BEGUN - 1 {
                before = used(job);
            }
        }
        let most = before.map(|one| 2 * one); // one more failed communicator may be left
        let after = used(job);
        assert!(after.iter().zip(most).all(|(&after, most)| after <= most), "{splits}: {before:?} {after:?}");
    }
    quiesce(&world)?;
    job.barrier()
}

/// Requests of calls that have failed are dropped, and so is the communicator. The job ends without a word about their
/// messages: no member would have received them.
pub fn j_failed_calls_leave_no_message_behind(job: &Job) -> Result<()> {
    for turn in 0..effort(job, 60, 2) {
        let part = job.world().dup()?;
        let (takes_part, size) = (part.rank().0 != 1, part.size());
        let first = part.iallgather(vec![turn; 9])?;
        job.barrier()?;
        // These may be refused: another member may have noticed already that they differ.
        let second = part.iallgather(vec![turn; if takes_part { 9 } else { 10 }]);
        let long = part.ialltoall(vec![1_u8; size * if takes_part { 400_000 } else { 8 }]);
        drop((first, second));
        if takes_part {
            job.compute(Duration::from_micros(200)); // so that some are in the long call when it fails
        }
        refused(job, part.barrier().and_then(|()| part.barrier()), ErrorKind::Disagreement, &[]);
        drop((part, long));
    }
    job.barrier()
}
