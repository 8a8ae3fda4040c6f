//! D19: arguments and results of handlers that are too long for the lines of a call and its reply.

use super::handlers::{Desk, PANICS, SUM, desk};
use crate::exchange::{effort, next};
use crate::expected_error::refused;
use crate::wait_until::stay_away;
use bytemuck::{Pod, Zeroable};
use std::sync::atomic::Ordering;
use tasuki::onesided::RemoteSignal;
use tasuki::{ErrorKind, Handler, HandlerCx, Handlers, Job, Rank, Request, Result};

/// Bytes of the blocks in which long values lie, without the line that each begins with.
const BLOCK: usize = 64 * 1024 - 64;

/// A value that is too long for a line, with a large alignment.
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[repr(C)]
struct Wide([u128; 40]);

/// An argument that is passed on from rank to rank.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Parcel {
    hops: u64,
    done: RemoteSignal,
    content: [u64; 100],
}

const MIRROR_BYTES: Handler<[u8], [u8]> =
    Handler::new("mirror bytes", |cx, bytes| mirrored(bytes, cx.rank()));
const MIRROR_WIDE: Handler<Wide, Wide> =
    Handler::new("mirror wide", |_, wide| Wide(std::array::from_fn(|at| wide.0[39 - at])));
/// Returns that many bytes.
const BYTES: Handler<u64, [u8]> = Handler::new("bytes", |_, &len| vec![7; len as usize]);
const CARRY: Handler<Parcel, ()> = Handler::fallible("carry", carry).follow_ups(3, 1);
const TAKE: Handler<[u8], ()> = Handler::new("take", |cx, bytes| {
    assert!(bytes.iter().all(|&byte| byte == bytes[0]));
    cx.local::<Desk>().ran.fetch_add(1, Ordering::Relaxed);
});

fn mirrored(bytes: &[u8], by: Rank) -> Vec<u8> {
    bytes.iter().rev().map(|byte| byte ^ by.0 as u8).collect()
}

fn carry(cx: &HandlerCx<'_>, parcel: &Parcel) -> Result<()> {
    assert!(parcel.content.iter().all(|&word| word == parcel.content[0]));
    match parcel.hops.checked_sub(1) {
        None => cx.raise(parcel.done, 1),
        Some(hops) => CARRY.forward(cx, Rank((cx.rank().0 + 1) % cx.size()), &Parcel { hops, ..*parcel }),
    }
}

pub(super) fn add_to(handlers: Handlers) -> Handlers {
    handlers.add(MIRROR_BYTES).add(MIRROR_WIDE).add(BYTES).add(CARRY).add(TAKE)
}

/// Arguments and results of every length arrive whole, from every rank, several at a time.
pub fn d19_long_arguments_and_results(job: &Job) -> Result<()> {
    let lens = [0, 1, 8, 9, 47, 48, 49, 4_096, BLOCK - 1, BLOCK, BLOCK + 1, 1 << 16, 1 << 20, (1 << 20) + 1];
    for to in job.ranks() {
        let sent = |len| -> Vec<u8> { (0..len).map(|at| (at * 7 + job.rank().0) as u8).collect() };
        let replies = lens.map(|len| MIRROR_BYTES.call(job, to, &sent(len)));
        for (len, reply) in lens.into_iter().zip(replies) {
            assert!(reply?.wait()? == mirrored(&sent(len), to), "{len} bytes, mirrored by rank {to}");
        }
        let wide = Wide(std::array::from_fn(|at| (at as u128) << 64 | to.0 as u128));
        assert_eq!(
            MIRROR_WIDE.call(job, to, &wide)?.wait()?,
            Wide(std::array::from_fn(|at| wide.0[39 - at]))
        );
        let sum = SUM.call(job, to, &vec![3; 300_000])?.wait()?;
        assert_eq!(sum, [900_000, 300_000, job.rank().0 as u64]);
    }
    job.barrier()
}

/// Memory of long values is used again: after replies that were read, replies that were dropped, handlers that failed,
/// and calls without a reply.
pub fn d19_memory_of_long_values_is_used_again(job: &Job) -> Result<()> {
    // 256 unread replies, 16 MiB of arguments, and blocks that were allocated with the last of these.
    const MOST: u64 = (256 + 256 + 2 * 16) * (1 << 16);
    assert_eq!(job.memory().calls, 0, "nothing is allocated before the first long value");
    job.barrier()?;
    for _ in 0..effort(job, 1_000, 400) {
        drop(BYTES.call(job, next(job), &100)?);
        TAKE.post(job, next(job), &[1; 100])?;
    }
    for number in 0..effort(job, 600, 300) {
        assert_eq!(BYTES.call(job, next(job), &100)?.wait()?, [7; 100]);
        assert!(number % 8 != 0 || PANICS.call(job, next(job), &[1; 100])?.wait().is_err());
    }
    job.flush_calls()?;
    job.barrier()?;
    let used = job.memory();
    assert!(used.calls > 0 && used.calls <= MOST && used.local >= used.calls, "{used:?}");
    job.barrier()
}

/// A rank that makes no waiting call gets long arguments until the memory for them is used up. Then a caller gets an
/// error, or waits.
pub fn d19_long_arguments_wait_for_room(job: &Job) -> Result<()> {
    const CALLS: u64 = 40;
    let (back, long) = (job.signal()?, vec![5_u8; 1 << 20]);
    job.barrier()?;
    if job.rank() == 0 {
        let mut taken = 0;
        let call = || TAKE.try_call(job, Rank(1), &long).map(drop);
        // At least one call is left for a post, so that the flush below has something to wait for.
        let is_refused = (1..CALLS).find_map(|_| call().map(|()| taken += 1).err());
        assert!(
            is_refused
                .is_none_or(|error| error.is_full() && error.to_string().contains("memory for arguments"))
        );
        assert!(taken >= 15, "{taken}");
        job.raise(back.on(Rank(1)), 1)?;
        for _ in taken..CALLS {
            TAKE.post(job, Rank(1), &long)?;
        }
        job.flush_calls()?;
        assert!(job.memory().calls <= 17 << 20, "{:?}", job.memory());
    } else if job.rank() == 1 {
        while back.value() == 0 {
            stay_away(job);
        }
    }
    job.barrier()?;
    assert_eq!(desk(job).ran.load(Ordering::Relaxed), if job.rank() == 1 { CALLS } else { 0 });
    job.barrier()
}

/// All ranks send each other long arguments, and nobody makes any other call.
pub fn d19_long_rings_do_not_lock_up(job: &Job) -> Result<()> {
    let (calls, long) = (effort(job, 600, 40) as u64, vec![6_u8; 200_000]);
    for number in 0..calls {
        let len = (number * 997 % 200_000 + 1) as usize;
        TAKE.post(job, next(job), &long[..len])?;
    }
    job.flush_calls()?;
    job.barrier()?;
    assert_eq!(desk(job).ran.load(Ordering::Relaxed), calls);
    job.barrier()
}

/// Handlers forward long arguments.
pub fn d19_long_arguments_are_forwarded(job: &Job) -> Result<()> {
    let (done, parcels) = (job.signal()?, effort(job, 500, 10) as u64);
    for number in 0..parcels {
        let parcel = Parcel { hops: 3, done: done.on(job.rank()), content: [number; 100] };
        CARRY.post(job, next(job), &parcel)?;
    }
    done.wait_at_least(parcels)?;
    job.flush_calls()?;
    job.barrier()
}

/// A rank may leave although others have not read yet its long results, and although it has not read its replies. A
/// long result that is read later is whole, or the error says that the rank has left, where memory is not mapped.
pub fn d19_long_values_of_ranks_that_leave(job: &Job) -> Result<()> {
    let called = job.signal()?;
    job.barrier()?;
    if job.rank() == 0 {
        let mut kept = Vec::new();
        for to in job.ranks() {
            TAKE.post(job, to, &[1; 70_000])?;
            drop(BYTES.call(job, to, &70_000)?);
            std::mem::forget(BYTES.call(job, to, &100)?);
            kept.push(BYTES.call(job, to, &70_000)?);
            job.raise(called.on(to), 1)?;
        }
        (0..1_000).for_each(|_| stay_away(job)); // the others leave, unless they wait for this rank
        for mut reply in kept {
            match reply.wait() {
                Ok(result) => assert_eq!(result, vec![7; 70_000]),
                left => drop(refused(job, left, ErrorKind::PeerFailed, &["has left the job"])),
            }
        }
        return Ok(());
    }
    while called.value() == 0 {
        stay_away(job);
    }
    Ok(())
}
