//! C8: the owner of a word changes it with processor atomics while other ranks change it with
//! remote atomics.
#![allow(unsafe_code)]
//! Unsafe: words of an array are used as atomics through its pointer, and only the fabric
//! accesses them otherwise; a registered word is an atomic that outlives its registration.

use crate::exchange::{effort, exchange_all};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use tasuki::engine::capabilities;
use tasuki::{GlobalPtr, Job, Rank, Result};

/// C8: the owner adds to its words with processor atomics while all others add through the fabric.
/// No addition is lost, in words of eight bytes and of four, in job memory and in registered
/// memory.
pub fn c8_owner_and_remote_atomics_agree(job: &Job) -> Result<()> {
    if !capabilities(job).cpu_atomics {
        return Ok(()); // then the owner, too, must use the fabric's atomics
    }
    let shared = job.alloc::<u64>(2)?;
    let private = [AtomicU64::new(0), AtomicU64::new(0)];
    // SAFETY: the words are atomics, which outlive the registration.
    let raw = unsafe { job.register_raw(private.as_ptr().cast_mut().cast(), 16)? };
    let owner = Rank(0);
    let far: GlobalPtr<u64> = GlobalPtr::new(exchange_all(job, raw.address())?[owner.index()]);
    let (each, slow) = (effort(job, 30_000, 100) as u64, effort(job, 500, 50) as u64);
    job.barrier()?;
    if job.rank() == owner {
        // SAFETY: the array is alive, aligned and two words long; all accesses to it are atomic.
        let words = unsafe { &*(std::ptr::from_ref(shared.as_slice()).cast::<[AtomicU64; 2]>()) };
        // SAFETY: the second word is used only as atomics of four bytes.
        let half = unsafe { &*std::ptr::from_ref(&words[1]).cast::<AtomicU32>() };
        for step in 0..each {
            words[0].fetch_add(1, SeqCst);
            half.fetch_add(1, SeqCst);
            if step < slow {
                private[0].fetch_add(1, SeqCst);
            }
        }
    } else {
        for step in 0..each {
            job.fetch_add(shared.on(owner), 1)?;
            job.fetch_add(shared.on(owner).at(1).cast::<u32>(), 1)?;
            if step < slow {
                job.fetch_add(far, 1)?;
            }
        }
    }
    job.barrier()?;
    let ranks = job.size() as u64;
    assert_eq!(job.load(shared.on(owner))?, each * ranks);
    assert_eq!(job.load(shared.on(owner).at(1))?, each * ranks, "the half words");
    assert_eq!(job.load(far)?, slow * ranks, "own memory");
    job.barrier()
}
