//! A: registrations of the program's memory: raw registrations, and large numbers of registrations.
#![allow(unsafe_code)]
//! Unsafe: raw registrations of vectors that outlive them and are not accessed by reference
//! meanwhile, and calls with invalid ranges, which must be refused before anything accesses the
//! range.

use crate::blocked_operation::{Gate, ISSUER, KEEPER};
use crate::exchange::{effort, exchange_all, exchange_lists, next, previous};
use crate::expected_error::{check_error, misused};
use tasuki::onesided::{Handle, RawRegistration, Registered};
use tasuki::{Error, ErrorKind, GlobalPtr, Job, Result};

/// The number of regions that a rank registers.
fn region_count(job: &Job) -> usize {
    effort(job, 10_000, 300)
}

/// A3: the address of each byte of a raw registration can be asked for, and of no byte beside it.
pub fn a3_addresses_of_pointers(job: &Job) -> Result<()> {
    let (mut ours, others) = (vec![0_u8; 100], vec![0_u8; 100]);
    let start = ours.as_mut_ptr();
    // SAFETY: the vector outlives the registration and is not touched while it lives.
    let raw = unsafe { job.register_raw(start, 100)? };
    let at = |offset: isize| start.cast_const().wrapping_offset(offset);
    assert_eq!(raw.address_of(at(0))?, raw.address());
    assert_eq!(raw.address_of(at(99))?, raw.address().add(99));
    for byte in [at(-1), at(100), others.as_ptr(), std::ptr::null()] {
        misused(job, raw.address_of(byte), &["is not one of the 100 bytes registered"]);
    }
    Ok(())
}

/// A5: one buffer is registered twice. A write through either address is visible through both.
pub fn a5_one_buffer_registered_twice(job: &Job) -> Result<()> {
    let mut buffer = vec![0_u64; 64];
    let start = buffer.as_mut_ptr().cast::<u8>();
    // SAFETY: the vector outlives both registrations and is read again after they have ended.
    let raw: [RawRegistration; 2] = unsafe { [job.register_raw(start, 512)?, job.register_raw(start, 512)?] };
    let own = [raw[0].address(), raw[1].address()];
    assert_ne!(own[0], own[1]);
    let peer = exchange_lists(job, &own)?[next(job).index()].clone();
    let views: Vec<GlobalPtr<u64>> = peer.into_iter().map(GlobalPtr::new).collect();
    let me = job.rank().0 as u64;
    job.put(views[0].at(3), &[me + 10])?;
    job.put(views[1].at(60), &[me + 20])?;
    for view in &views {
        assert_eq!((job.get_value(view.at(3))?, job.get_value(view.at(60))?), (me + 10, me + 20));
    }
    job.barrier()?;
    let [first, second] = raw;
    drop(first);
    job.barrier()?;
    misused(job, job.put(views[0], &[1]), &["was freed"]);
    job.put(views[1].at(4), &[me + 30])?;
    job.barrier()?;
    drop(second);
    let from = previous(job).0 as u64;
    assert_eq!((buffer[3], buffer[4], buffer[60]), (from + 10, from + 30, from + 20));
    Ok(())
}

/// A6, A7: ranges that are not memory cannot be registered: at null, of zero bytes, or longer than
/// an address space.
pub fn a6_a7_senseless_ranges_are_refused(job: &Job) -> Result<()> {
    let mut byte = vec![0_u8; 4096];
    let start = byte.as_mut_ptr();
    let before = job.memory();
    for (start, bytes) in [(std::ptr::null_mut(), 8), (start, 0)] {
        // SAFETY: the range has no bytes, or is null, so there is nothing to keep valid.
        misused(job, unsafe { job.register_raw(start, bytes) }, &["at least one byte", "not null"]);
    }
    for bytes in [isize::MAX as usize, usize::MAX - 4096, usize::MAX] {
        // SAFETY: no such range exists, so the call must refuse it; nobody gets its address.
        let outcome = unsafe { job.register_raw(start, bytes) };
        assert!(outcome.is_err(), "{bytes} bytes were registered");
    }
    let after = job.memory();
    let kept = (after.registered, after.registrations);
    assert_eq!(
        kept,
        (before.registered, before.registrations),
        "a refused registration left something behind"
    );
    let live = job.register(vec![1_u8])?;
    assert_eq!(job.get_value(live.pointer())?, 1);
    Ok(())
}

/// A4: a third of 10,000 regions is unregistered, and an equal number of new regions is registered. Old addresses are
/// refused on every rank, also on ranks that have used them before. The other regions can still be accessed, and no
/// address is given twice.
pub fn a4_stale_addresses_are_refused(job: &Job) -> Result<()> {
    let base = (job.rank().0 as u64) << 32;
    let mut regions: Vec<Option<Registered<u64>>> = Vec::new();
    for index in 0..region_count(job) as u64 {
        regions.push(Some(job.register(vec![base + index])?));
    }
    let own: Vec<_> = regions.iter().flatten().map(Registered::pointer).collect();
    let peer = next(job);
    let theirs = exchange_lists(job, &own)?[peer.index()].clone();
    let value = |index: usize| ((peer.0 as u64) << 32) + index as u64;
    for (index, &at) in theirs.iter().enumerate() {
        assert_eq!(job.get_value(at)?, value(index), "region {index} before");
    }
    job.barrier()?;
    for (index, region) in regions.iter_mut().enumerate().filter(|(index, _)| index % 3 == 0) {
        let values = region.take().map(Registered::unregister);
        assert_eq!(values, Some(vec![base + index as u64]));
    }
    let count = region_count(job).div_ceil(3) as u64;
    let again: Result<Vec<_>> = (0..count).map(|n| job.register(vec![!n])).collect();
    let again = again?;
    let fresh: Vec<_> = again.iter().map(Registered::pointer).collect();
    assert!(fresh.iter().all(|at| !own.contains(at)), "an address was given twice");
    let fresh = exchange_lists(job, &fresh)?[peer.index()].clone();
    for (index, &at) in theirs.iter().enumerate() {
        if index % 3 == 0 {
            misused(job, job.get_value(at), &["was freed", "hint:"]);
            misused(job, job.put(at, &[0]), &["was freed", "hint:"]);
        } else {
            assert_eq!(job.get_value(at)?, value(index), "region {index} after");
        }
    }
    for (number, &at) in fresh.iter().enumerate() {
        assert_eq!(job.get_value(at)?, !(number as u64));
    }
    for &at in own.iter().step_by(3) {
        misused(job, job.get_value(at), &["was freed"]);
    }
    job.barrier()
}

/// A4: a program may register and unregister for as long as it runs, if its ranks meet in a barrier
/// now and then. Neither table entries nor addresses run out.
pub fn a4_registering_never_ends(job: &Job) -> Result<()> {
    let mut small = vec![7_u8];
    for round in 0..effort(job, 1_100_000, 0) {
        small = registered_once(job, small).map_err(|error| error.note(format!("in round {round}")))?;
    }
    let mut large = vec![7_u8; 1 << 20];
    for round in 0..effort(job, 300_000, 0) {
        if round % 50_000 == 0 {
            job.barrier()?;
        }
        large =
            registered_once(job, large).map_err(|error| error.note(format!("in round {round} of 1 MiB")))?;
    }
    let live = job.register(large)?;
    let theirs = exchange_all(job, live.pointer())?[next(job).index()];
    assert_eq!(job.get_value(theirs.at((1 << 20) - 1))?, 7);
    job.barrier()
}

/// A4: without barriers, freed addresses cannot be used again, and the error says so. Two barriers make them available.
/// One is not enough, because it may have begun before they were freed.
pub fn a4_meeting_gives_addresses_back(job: &Job) -> Result<()> {
    for _ in 0..3 {
        let refused = use_up(job);
        check_error(
            job,
            &refused,
            ErrorKind::NoMemory,
            &["not enough memory for", "two more barriers", "hint:"],
        );
        job.barrier()?;
        assert!(address_range(job, LONG).is_err(), "one barrier made freed addresses available");
        job.barrier()?;
    }
    address_range(job, LONG)
}

/// A4: a barrier that a rank enters with an unfinished operation does not make freed addresses
/// available, because the operation may still use them.
pub fn a4_unfinished_operations_keep_addresses(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    let mut slow = Handle::NULL;
    use_up(job);
    match job.rank() {
        ISSUER => {
            // The keeper carries out the operation in its next waiting call, and the issuer learns that in its next
            // waiting call. For both ranks that call is the barrier.
            slow = gate.close(job)?;
            gate.open(job)?;
        }
        KEEPER => gate.keep(job)?,
        _ => {}
    }
    job.barrier()?;
    job.complete(slow)?;
    job.barrier()?;
    let kept = address_range(job, LONG).is_err();
    assert!(
        kept || !gate.is_tight(job),
        "a barrier made addresses available though an operation was unfinished"
    );
    job.barrier()?;
    address_range(job, LONG)
}

/// A4: a place that is used again does not disturb its neighbours, even if it fills all of its
/// granule.
pub fn a4_used_again_beside_the_living(job: &Job) -> Result<()> {
    const LEN: usize = 64 * 1024;
    let mut buffer = vec![7_u8; LEN + 4096];
    let start = buffer.as_mut_ptr();
    let start = start.wrapping_add(start.align_offset(4096));
    // SAFETY: the buffer outlives the registrations and is not accessed while they live.
    let register = || unsafe { job.register_raw(start, LEN) };
    let [before, freed, after] = [register()?, register()?, register()?];
    let place = freed.address();
    drop(freed);
    use_up(job);
    job.barrier()?;
    job.barrier()?;
    let again = register()?;
    assert_eq!(again.address(), place, "the first free place was not used again");
    for live in [before, again, after] {
        let bytes: GlobalPtr<u8> = GlobalPtr::new(live.address());
        assert_eq!([job.get_value(bytes)?, job.get_value(bytes.at(LEN - 1))?], [7; 2]);
    }
    job.barrier()
}

/// A length so large that the addresses do not suffice for a thousand registrations.
const LONG: usize = 512 << 20;

/// Registers and frees until all addresses have been used, and returns the error that says so.
fn use_up(job: &Job) -> Error {
    let refused = [LONG, 16 << 20, 1 << 20, 64 << 10].map(|bytes| {
        let refused = (0..1000).find_map(|_| address_range(job, bytes).err());
        refused.expect("the addresses are used up at last")
    });
    let [first, ..] = refused;
    first
}

/// Registers `bytes` bytes, and unregisters them at once.
fn address_range(job: &Job, bytes: usize) -> Result<()> {
    // SAFETY: the address is registered but never accessed; nobody gets it before the registration
    // ends.
    unsafe { job.register_raw(std::ptr::without_provenance_mut(1 << 30), bytes) }.map(drop)
}

fn registered_once(job: &Job, values: Vec<u8>) -> Result<Vec<u8>> {
    job.register(values).map(Registered::unregister)
}
