//! A8: transfers longer than 32-bit lengths.

use crate::exchange::tell_all;
use std::fs;
use tasuki::{After, GlobalPtr, Job, Rank, Registered, Result};

/// The lengths to move, in bytes: above 2 GiB and above 4 GiB, at no round number.
const SIZES: [usize; 2] = [(2 << 30) + 12_345, (4 << 30) + 54_321];

/// Moves them from rank 0 to rank 1 and back by each call that moves bytes, between kinds of memory, as far as this
/// machine has room: what does not fit is said in a line and skipped.
pub fn a8_transfers_beyond_32_bits(job: &Job) -> Result<()> {
    for size in SIZES {
        // Job memory on both, one area of either's own, and what the system needs beside them.
        let wanted = 4 * size as u64 + (2 << 30);
        let available = tell_all(job, available_bytes())?[0];
        if available < wanted {
            if job.rank() == MOVER {
                eprintln!("a8: skipped {size} bytes: {wanted} of memory wanted, {available} available");
            }
            continue;
        }
        by_each_call(job, size)?;
    }
    job.barrier()
}

const MOVER: Rank = Rank(0);
const OWNER: Rank = Rank(1);

fn by_each_call(job: &Job, size: usize) -> Result<()> {
    let shared = job.alloc::<u8>(size)?;
    let own = (job.rank() == OWNER).then(|| job.register(vec![0_u8; size])).transpose()?;
    let pointer = own.as_ref().map_or(GlobalPtr::NULL, Registered::pointer);
    let far = tell_all(job, pointer)?[OWNER.index()];
    let seen = |seed: u8, what: &str| -> Result<()> {
        job.barrier()?;
        if job.rank() == OWNER {
            check(&mut |at| shared.get(at), size, seed, &format!("{what} job memory"))?;
            check(&mut |at| job.get_value(far.at(at)), size, seed, &format!("{what} own memory"))?;
        }
        job.barrier()
    };
    if job.rank() == MOVER {
        mark(&mut |at, byte| shared.set(at, byte), size, 1)?;
        job.complete(job.copy(shared.pointer(), shared.on(OWNER), size, After::Nothing)?)?;
        job.complete(job.copy(shared.pointer(), far, size, After::Nothing)?)?;
    }
    seen(1, "copied into")?;
    if job.rank() == MOVER {
        let mut values = job.iget(far, vec![0; size], After::Nothing)?.wait()?;
        check(&mut |at| Ok(values[at]), size, 1, "got from own memory")?;
        values.fill(0);
        job.get(shared.on(OWNER), &mut values)?;
        check(&mut |at| Ok(values[at]), size, 1, "got from job memory")?;
        let mut store = |at: usize, byte| {
            values[at] = byte;
            Ok(())
        };
        mark(&mut store, size, 2)?;
        job.put(shared.on(OWNER), &values)?;
        job.put(far, &values)?;
    }
    seen(2, "put into")
}

/// Places whose bytes are told apart: both ends, around 2 GiB and 4 GiB, and some between.
fn places(size: usize) -> impl Iterator<Item = usize> {
    let around =
        [0, 1 << 31, 1 << 32, size].into_iter().flat_map(|edge: usize| edge.saturating_sub(70)..edge + 70);
    around.chain((0..size).step_by(64 * 1024 + 1)).filter(move |&at| at < size)
}

fn mark(set: &mut dyn FnMut(usize, u8) -> Result<()>, size: usize, seed: u8) -> Result<()> {
    places(size).try_for_each(|at| set(at, seed.wrapping_add((at % 251) as u8)))
}

fn check(get: &mut dyn FnMut(usize) -> Result<u8>, size: usize, seed: u8, what: &str) -> Result<()> {
    for at in places(size) {
        assert_eq!(get(at)?, seed.wrapping_add((at % 251) as u8), "byte {at} of {size}, {what}");
    }
    Ok(())
}

/// What the machine says it has.
fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
