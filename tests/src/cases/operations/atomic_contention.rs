//! C: all ranks change the same word at the same time.

use crate::cases::kinds_of_memory::{Areas, KINDS, Kind};
use crate::exchange::{effort, last};
use crate::wait_until::Idle;
use std::time::Duration;
use tasuki::onesided::{After, AtomicOp, Handle};
use tasuki::{GlobalPtr, Job, Rank, Result};

/// C7: all ranks add 1 to one word. Together they fetch each number from 0 on exactly once, and the
/// numbers that one rank fetches grow.
pub fn c7_fetch_adds_are_exact(job: &Job) -> Result<()> {
    let areas = Areas::new(job, 8)?;
    for kind in KINDS {
        let each = if kind == Kind::Job { effort(job, 100_000, 300) } else { effort(job, 2_000, 100) };
        let results = job.alloc::<u64>(each)?;
        let word: GlobalPtr<u64> = areas.on(kind, last(job)).cast();
        job.barrier()?;
        let fetched: Result<Vec<u64>> = (0..each).map(|_| job.fetch_add(word, 1)).collect();
        let fetched = fetched?;
        assert!(fetched.is_sorted_by(|a, b| a < b), "the numbers that one rank fetched must grow");
        results.write(0, &fetched)?;
        job.barrier()?;
        if job.rank() == Rank(0) {
            let mut all = Vec::new();
            for rank in job.ranks() {
                let mut theirs = vec![0; each];
                job.get(results.on(rank), &mut theirs)?;
                all.append(&mut theirs);
            }
            all.sort_unstable();
            let wrong = all.iter().enumerate().find(|&(index, &value)| value != index as u64);
            assert_eq!(wrong, None, "{kind:?} memory: a number was fetched twice or never");
            assert_eq!(job.load(word)?, (each * job.size()) as u64);
        }
        job.barrier()?;
    }
    Ok(())
}

/// C7: nonblocking atomics, many of them under way. When they are completed, all results of the
/// rank have been stored.
pub fn c7_nonblocking_adds_are_exact(job: &Job) -> Result<()> {
    let areas = Areas::new(job, 8)?;
    let each = effort(job, 1000, 50);
    for kind in KINDS {
        let word: GlobalPtr<u64> = areas.on(kind, last(job)).cast();
        let results = job.alloc::<u64>(each)?;
        results.fill(u64::MAX)?;
        let mut end = Handle::NULL;
        for index in 0..each {
            end = job.iatomic(word, AtomicOp::Add(1), results.pointer().at(index), After::Nothing)?.handle();
        }
        job.complete(end)?;
        assert!(results.to_vec()?.iter().all(|&value| value != u64::MAX), "a result is missing");
        job.barrier()?;
        if job.rank() == Rank(0) {
            let mut all = vec![0; each * job.size()];
            for (rank, part) in job.ranks().zip(all.chunks_mut(each)) {
                job.get(results.on(rank), part)?;
            }
            all.sort_unstable();
            assert!(all.iter().enumerate().all(|(index, &value)| value == index as u64), "{kind:?} memory");
        }
        job.barrier()?;
    }
    Ok(())
}

/// C7: all ranks change bits of one word, each its own bits. No change is lost.
pub fn c7_bits_of_one_word(job: &Job) -> Result<()> {
    let areas = Areas::new(job, 8)?;
    for kind in KINDS {
        let rounds = if kind == Kind::Job { effort(job, 20_000, 60) } else { effort(job, 300, 20) };
        let word: GlobalPtr<u64> = areas.on(kind, Rank(0)).cast();
        let bit = 1_u64 << (job.rank().0 * 3);
        for _ in 0..rounds {
            assert_eq!(job.atomic(word, AtomicOp::Or(bit))? & bit, 0, "another rank set this rank's bit");
            assert_eq!(
                job.atomic(word, AtomicOp::Xor(bit | bit << 1))? & bit,
                bit,
                "this rank's bit was lost"
            );
            assert_eq!(job.atomic(word, AtomicOp::And(!(bit << 1)))? & (bit << 1), bit << 1);
        }
        job.barrier()?;
        assert_eq!(job.load(word)?, 0);
        job.barrier()?;
    }
    Ok(())
}

/// C9: a lock by compare and swap excludes other ranks, its next holder sees what it protects, and
/// every rank gets it.
pub fn c9_lock_excludes_and_starves_nobody(job: &Job) -> Result<()> {
    let (areas, idle) = (Areas::new(job, 32)?, Idle::new(job)?);
    let turns = effort(job, 500, 20) as u64;
    for kind in KINDS {
        let home = areas.on(kind, last(job));
        let (lock, left, right): (GlobalPtr<u64>, _, _) = (home.cast(), home.at(8), home.at(16));
        let me = job.rank().0 as u64 + 1;
        for _ in 0..turns {
            while job.compare_swap(lock, 0, me)? != 0 {
                idle.serve(Duration::from_micros(2))?;
            }
            // Two plain words always change together; a torn or lost update makes them differ.
            let mut pair = [0_u64; 2];
            job.get(left.cast(), &mut pair)?;
            assert_eq!(pair[0], pair[1], "another rank held the lock, too, or its update was not visible");
            job.put(left.cast(), &[pair[0] + 1])?;
            job.put(right.cast(), &[pair[1] + 1])?;
            assert_eq!(job.swap(lock, 0)?, me, "the lock changed hands while it was held");
        }
        job.barrier()?;
        assert_eq!(job.get_value::<u64>(left.cast())?, turns * job.size() as u64);
        job.barrier()?;
    }
    Ok(())
}
