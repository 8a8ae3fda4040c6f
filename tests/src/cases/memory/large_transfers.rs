//! A8: transfers whose length does not fit into 32 bits.

use crate::cases::kinds_of_memory::{KINDS, Kind};
use crate::exchange::exchange_all;
use std::fs;
use tasuki::onesided::{After, Registered};
use tasuki::{Array, GlobalPtr, Job, Rank, Request, Result};

/// Lengths above 2 GiB, the limit of signed 32-bit numbers.
pub fn a8_transfers_beyond_31_bits(job: &Job) -> Result<()> {
    if_there_is_room(job, (2 << 30) + 12_345)
}

/// Lengths above 4 GiB, the limit of unsigned 32-bit numbers.
pub fn a8_transfers_beyond_32_bits(job: &Job) -> Result<()> {
    if_there_is_room(job, (4 << 30) + 54_321)
}

/// Moves `size` bytes from rank 0 to rank 1 and back, by each call that moves bytes, between kinds
/// of memory. If the machine does not have enough memory, it prints a line and does nothing.
fn if_there_is_room(job: &Job, size: usize) -> Result<()> {
    // Both ends of a transfer, and a reserve for the system.
    let wanted = 2 * size as u64 + (3 << 30);
    let available = exchange_all(job, available_bytes())?[0];
    if available >= wanted {
        KINDS.into_iter().try_for_each(|kind| by_each_call(job, size, kind))?;
    } else if job.rank() == MOVER {
        eprintln!("a8: skipped {size} bytes: {wanted} of memory wanted, {available} available");
    }
    job.barrier()
}

const MOVER: Rank = Rank(0);
const OWNER: Rank = Rank(1);

/// Moves the bytes into the owner's memory of that kind, and back. Besides that memory, at most one other area exists
/// at a time.
fn by_each_call(job: &Job, size: usize, kind: Kind) -> Result<()> {
    let owner = job.rank() == OWNER;
    let local = (owner && kind == Kind::Job).then(|| job.alloc_local::<u8>(size)).transpose()?;
    let own = (owner && kind == Kind::Program).then(|| job.register(vec![0_u8; size])).transpose()?;
    let place = local.as_ref().map(Array::pointer).or(own.as_ref().map(Registered::pointer));
    let far = exchange_all(job, place.unwrap_or(GlobalPtr::NULL))?[OWNER.index()];
    let seen = |seed: u8, what: &str| -> Result<()> {
        job.barrier()?;
        if owner {
            check(&mut |at| job.get_value(far.at(at)), size, seed, &format!("{what} {kind:?} memory"))?;
        }
        job.barrier()
    };
    if job.rank() == MOVER {
        copy_out(job, far, size)?;
    }
    seen(1, "copied into")?;
    if job.rank() == MOVER {
        get_and_put(job, far, size)?;
    }
    seen(2, "put into")
}

fn copy_out(job: &Job, far: GlobalPtr<u8>, size: usize) -> Result<()> {
    let near = job.alloc_local::<u8>(size)?;
    mark(&mut |at, byte| near.set(at, byte), size, 1)?;
    job.complete(job.copy(near.pointer(), far, size, After::Nothing)?.handle())
}

fn get_and_put(job: &Job, far: GlobalPtr<u8>, size: usize) -> Result<()> {
    let mut values = job.iget(far, vec![0; size], After::Nothing)?.wait()?;
    check(&mut |at| Ok(values[at]), size, 1, "got by a request")?;
    places(size).for_each(|at| values[at] = 0);
    job.get(far, &mut values)?;
    check(&mut |at| Ok(values[at]), size, 1, "got")?;
    let mut store = |at: usize, byte| {
        values[at] = byte;
        Ok(())
    };
    mark(&mut store, size, 2)?;
    job.put(far, &values)
}

/// The places that are compared: both ends, around 2 GiB and 4 GiB, and some between.
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

/// The available memory of this machine.
fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
