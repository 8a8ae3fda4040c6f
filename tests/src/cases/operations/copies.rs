//! B: copies between any two ranks and any two kinds of memory: sizes, overlap, and guard bytes
//! that a copy must not change.

use crate::cases::kinds_of_memory::{Areas, KINDS};
use crate::exchange::{effort, last};
use crate::expected_error::{ended, misused};
use crate::pattern::{self, GUARD};
use crate::wait_until::stay_away;
use std::collections::BTreeSet;
use tasuki::onesided::After;
use tasuki::{GlobalPtr, Job, Rank, Request, Result};

/// Sizes next to the sizes of words, lines, pages and pieces.
const SIZES: [usize; 17] =
    [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 65_537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1];

/// The sizes for this fabric. Comparing megabytes takes long on many simulated machines, and pieces
/// are shorter there.
fn sizes(job: &Job) -> &'static [usize] {
    &SIZES[..effort(job, SIZES.len(), 14)]
}

/// The number of guard bytes before and after a range.
const ZONE: usize = 64;

/// B1: copies from each of the ranks 0, 1, 2 and last to each of them, issued by rank 0 and by a
/// rank that is neither end, between all kinds of memory.
pub fn b1_any_rank_to_any_rank(job: &Job) -> Result<()> {
    const LEN: usize = 500;
    let areas = Areas::new(job, 2 * LEN)?;
    let ends: BTreeSet<Rank> = [0, 1, 2].into_iter().map(Rank).chain([last(job)]).collect();
    let ends: Vec<Rank> = ends.into_iter().filter(|rank| rank.index() < job.size()).collect();
    let mut round = 0;
    for &from in &ends {
        for &to in &ends {
            let third = job.ranks().rev().find(|&rank| rank != from && rank != to && rank != Rank(0));
            for issuer in [Some(Rank(0)), third].into_iter().flatten() {
                for (source, target) in KINDS.into_iter().flat_map(|a| KINDS.map(|b| (a, b))) {
                    round += 1;
                    if job.rank() == from {
                        let image = [pattern::bytes(round, LEN), vec![0; LEN]].concat();
                        areas.set(job, source, &image)?;
                    }
                    job.barrier()?;
                    if job.rank() == issuer {
                        let (source, target) = (areas.on(source, from), areas.on(target, to).at(LEN));
                        job.complete(job.copy(source, target, LEN, After::Nothing)?.handle())?;
                    }
                    job.barrier()?;
                    if job.rank() == to {
                        let what = format!("{source:?} of {from} to {target:?} of {to} by {issuer}");
                        pattern::check(&areas.image(target)?[LEN..], round, &what);
                    }
                }
            }
        }
    }
    job.barrier()
}

/// B3: a copy of job memory between two other ranks, which make no call before the copy has ended.
pub fn b3_ends_that_make_no_call(job: &Job) -> Result<()> {
    const LEN: usize = 70_000;
    let (source, issuer, target) = (Rank(2), Rank(1), Rank(0));
    let (bytes, ended) = (job.alloc::<u8>(LEN)?, job.alloc::<u64>(1)?);
    if job.rank() == source {
        bytes.write(0, &pattern::bytes(3, LEN))?;
    }
    job.barrier()?;
    if job.rank() == issuer {
        job.complete(job.copy(bytes.on(source), bytes.on(target), LEN, After::Nothing)?.handle())?;
        job.put(ended.on(source), &[1])?;
        job.put(ended.on(target), &[1])?;
    } else if [source, target].contains(&job.rank()) {
        while ended.get(0)? == 0 {
            stay_away(job);
        }
    }
    job.barrier()?;
    if job.rank() == target {
        pattern::check(&bytes.to_vec()?, 3, "copied by a third rank");
    }
    job.barrier()
}

/// B2: all sizes at odd offsets, by every call that moves bytes. The bytes arrive, and the bytes
/// beside them do not change.
pub fn b2_sizes_and_guards(job: &Job) -> Result<()> {
    let mover = Rank(0);
    let far = last(job);
    let areas = Areas::new(job, sizes(job)[sizes(job).len() - 1] + 2 * ZONE + 8)?;
    for kind in KINDS {
        for (number, &size) in sizes(job).iter().enumerate() {
            for (way, shift) in [(Way::Put, 1), (Way::Iput, 3), (Way::CopyOut, 5)] {
                let round = (number * 7 + shift) as u64;
                if job.rank() == far {
                    areas.fill(job, GUARD)?;
                }
                job.barrier()?;
                if job.rank() == mover {
                    way.out(job, areas.on(kind, far).at(ZONE + shift), pattern::bytes(round, size))?;
                }
                job.barrier()?;
                if job.rank() == far {
                    let image = areas.image(kind)?;
                    let what = format!("{way:?} of {size} bytes to {kind:?} memory at {}", ZONE + shift);
                    pattern::check_image(&image, &guarded(round, size, ZONE + shift, image.len()), &what);
                }
                job.barrier()?;
            }
        }
    }
    gets(job, &areas, mover, far)
}

/// B2: calls that bring bytes to this rank. The bytes arrive, and the bytes beside them do not
/// change.
fn gets(job: &Job, areas: &Areas, mover: Rank, far: Rank) -> Result<()> {
    for kind in KINDS {
        if job.rank() == far {
            areas.set(job, kind, &pattern::bytes(9, sizes(job)[sizes(job).len() - 1] + 2 * ZONE + 8))?;
        }
        job.barrier()?;
        for &size in sizes(job).iter().filter(|_| job.rank() == mover) {
            for shift in [1, 2, 5, 7] {
                let source = areas.on(kind, far).at(shift);
                let expected = &pattern::bytes(9, shift + size)[shift..];
                let mut found = vec![GUARD; size + 2 * ZONE];
                job.get(source, &mut found[ZONE..ZONE + size])?;
                let guards = [&found[..ZONE], &found[ZONE + size..]];
                assert!(guards.iter().all(|guard| guard.iter().all(|&byte| byte == GUARD)), "get of {size}");
                pattern::check_image(&found[ZONE..ZONE + size], expected, "get");
                let found = job.iget(source, vec![GUARD; size], After::Nothing)?.wait()?;
                pattern::check_image(&found, expected, "iget");
                let near = job.alloc_local::<u8>(size + 2 * ZONE)?;
                near.fill(GUARD)?;
                job.complete(job.copy(source, near.pointer().at(ZONE), size, After::Nothing)?.handle())?;
                let (found, frame) = (near.to_vec()?, [GUARD; ZONE]);
                pattern::check_image(&found, &[&frame, expected, &frame].concat(), "copy in");
            }
        }
        job.barrier()?;
    }
    Ok(())
}

/// Calls that move bytes to another rank.
#[derive(Clone, Copy, Debug)]
enum Way {
    Put,
    Iput,
    CopyOut,
}

impl Way {
    fn out(self, job: &Job, to: GlobalPtr<u8>, bytes: Vec<u8>) -> Result<()> {
        match self {
            Way::Put => job.put(to, &bytes),
            Way::Iput => {
                let back = job.iput(to, bytes.clone(), After::Nothing)?.wait()?;
                assert!(back == bytes, "iput returned other bytes");
                Ok(())
            }
            Way::CopyOut => {
                let near = job.alloc_local::<u8>(bytes.len().max(1))?;
                near.write(0, &bytes)?;
                job.complete(job.copy(near.pointer(), to, bytes.len(), After::Nothing)?.handle())
            }
        }
    }
}

/// An area of `total` guard bytes with the bytes of `round` at `offset`.
fn guarded(round: u64, size: usize, offset: usize, total: usize) -> Vec<u8> {
    let mut image = vec![GUARD; total];
    image[offset..offset + size].copy_from_slice(&pattern::bytes(round, size));
    image
}

/// B12: copies between overlapping ranges in the memory of one rank, the issuer or another, work as
/// `memmove` does.
pub fn b12_overlap_moves_as_memmove(job: &Job) -> Result<()> {
    let total = effort(job, 400_000, 150_000);
    let areas = Areas::new(job, total)?;
    let image = pattern::bytes(3, total);
    let moves = [(0, 1, 100), (100, 0, 5000), (0, 8, 70_000), (4097, 0, 140_000), (3, 65_540, 84_000)];
    let long = [(0, 1, 399_000), (1, 0, 399_000), (0, 65_536, 330_000), (70_000, 1, 330_000)];
    let moves = moves.iter().chain(long.iter().filter(|_| total == 400_000));
    for &(from, to, len) in moves {
        for (kind, owner) in KINDS.into_iter().flat_map(|kind| [(kind, Rank(0)), (kind, last(job))]) {
            if job.rank() == owner {
                areas.set(job, kind, &image)?;
            }
            job.barrier()?;
            if job.rank() == Rank(0) {
                let place = areas.on(kind, owner);
                job.complete(job.copy(place.at(from), place.at(to), len, After::Nothing)?.handle())?;
            }
            job.barrier()?;
            if job.rank() == owner {
                let mut expected = image.clone();
                expected.copy_within(from..from + len, to);
                let what = format!("{len} bytes from {from} to {to} in {kind:?} memory of rank {owner}");
                pattern::check_image(&areas.image(kind)?, &expected, &what);
            }
        }
    }
    job.barrier()
}

/// B2: a copy that is longer than its source or its destination is refused before it moves a byte.
pub fn b2_too_long_moves_nothing(job: &Job) -> Result<()> {
    const LEN: usize = 200_000;
    let areas = Areas::new(job, LEN)?;
    areas.fill(job, 1)?;
    let long = job.alloc_local::<u8>(2 * LEN)?;
    job.barrier()?;
    for kind in KINDS.into_iter().filter(|_| job.rank() == Rank(0)) {
        let far = areas.on(kind, last(job));
        let texts = ["are not inside one registration", "hint:"];
        for offset in [1, LEN - 1] {
            let len = LEN - offset + 1;
            misused(job, job.put(far.at(offset), &vec![2; len]), &texts);
            misused(job, job.get(far.at(offset), &mut vec![2; len]), &texts);
            let out = job.copy(long.pointer(), far.at(offset), len, After::Nothing);
            misused(job, ended(out), &texts);
            let back = job.copy(far.at(offset), long.pointer(), len, After::Nothing);
            misused(job, ended(back), &texts);
        }
        for count in [usize::MAX, usize::MAX / 2, 1 << 40] {
            let huge = job.copy(far, long.pointer(), count, After::Nothing);
            misused(job, ended(huge), &texts);
        }
    }
    job.barrier()?;
    for kind in KINDS {
        assert!(areas.image(kind)?.iter().all(|&byte| byte == 1), "{kind:?} memory was changed");
    }
    assert!(long.to_vec()?.iter().all(|&byte| byte == 0), "the other end was changed");
    job.barrier()
}

/// B2: counts are in values of the type, not in bytes.
pub fn b2_counts_are_values(job: &Job) -> Result<()> {
    let words = job.alloc::<u64>(8)?;
    let pairs = job.register(vec![[0_u32; 2]; 8])?;
    words.write(0, &[1, 2, 3, 4, 5, 6, 7, 8])?;
    job.complete(job.copy(words.pointer().cast(), pairs.pointer().at(1), 3, After::Nothing)?.handle())?;
    let expected = [[0, 0], [1, 0], [2, 0], [3, 0], [0, 0]];
    assert_eq!(pairs.to_vec()[..5], expected);
    let values: Vec<[u32; 2]> = job.iget(pairs.pointer().at(2), vec![[9; 2]; 2], After::Nothing)?.wait()?;
    assert_eq!(values, [[2, 0], [3, 0]]);
    job.barrier()
}
