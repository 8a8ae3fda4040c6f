//! A: addresses and bounds of global memory.

use crate::exchange::{exchange_all, next};
use crate::expected_error::{ended, misused};
use tasuki::onesided::bootstrap_memory;
use tasuki::{GlobalPtr, Job, Rank, Result};

/// The size of bootstrap memory, as documented.
const BOOTSTRAP_MEMORY_BYTES: usize = 64 * 1024;

/// A1: the memory of every rank has an address of its own. The address is not null, gives the rank
/// back, and is the same on all ranks.
pub fn a1_addresses_differ_and_name_their_rank(job: &Job) -> Result<()> {
    let table = job.alloc::<u32>(3)?;
    let mut all: Vec<GlobalPtr<u8>> = Vec::new();
    for rank in job.ranks() {
        let own = [bootstrap_memory(job, rank)?, table.on(rank).cast(), table.on(rank).at(2).cast()];
        for address in own {
            assert!(!address.is_null() && address.rank() == rank, "{address} should be of rank {rank}");
            assert!(!all.contains(&address), "{address} is given twice");
        }
        all.extend(own);
    }
    for others in exchange_all(job, table.pointer())?.into_iter().zip(job.ranks()) {
        assert_eq!(others.0, table.on(others.1), "all ranks give the same place the same address");
    }
    misused(job, bootstrap_memory(job, Rank(job.size())), &[&format!("there is no rank {}: ", job.size())]);
    Ok(())
}

/// A2: bootstrap memory is zero at the start. Allocated memory is zero, too, even where other
/// memory was freed.
pub fn a2_memory_is_zero_at_first(job: &Job) -> Result<()> {
    let mut found = vec![1_u8; BOOTSTRAP_MEMORY_BYTES];
    for rank in job.ranks() {
        job.get(bootstrap_memory(job, rank)?, &mut found)?;
        assert!(found.iter().all(|&byte| byte == 0), "bootstrap memory of rank {rank} is not zero");
    }
    job.barrier()?;
    for _ in 0..3 {
        let (shared, own) = (job.alloc::<u8>(100_000)?, job.alloc_local::<u8>(100_000)?);
        let is_zero = |memory: Vec<u8>| memory.iter().all(|&byte| byte == 0);
        assert!(is_zero(shared.to_vec()?), "new shared memory is not zero");
        assert!(is_zero(own.to_vec()?), "new local memory is not zero");
        shared.fill(0xff)?;
        own.fill(0xff)?;
        job.barrier()?;
    }
    Ok(())
}

/// A3: every rank can access bootstrap memory up to its last byte, and no further.
pub fn a3_bootstrap_memory_ends(job: &Job) -> Result<()> {
    let peer = next(job);
    let start = bootstrap_memory(job, peer)?;
    job.put(start.at(BOOTSTRAP_MEMORY_BYTES - 1), &[job.rank().0 as u8 + 1])?;
    job.barrier()?;
    let mut last = [0];
    job.get(bootstrap_memory(job, job.rank())?.at(BOOTSTRAP_MEMORY_BYTES - 1), &mut last)?;
    assert_eq!(usize::from(last[0]), (job.rank().0 + job.size() - 1) % job.size() + 1);
    misused(
        job,
        job.put(start.at(BOOTSTRAP_MEMORY_BYTES), &[1]),
        &["are not inside one registration", "hint:"],
    );
    misused(job, job.put(start.at(BOOTSTRAP_MEMORY_BYTES - 1), &[1, 2]), &["2 bytes", "hint:"]);
    Ok(())
}

/// A3: the first and last byte of a registration can be accessed, the bytes before and behind it
/// cannot.
pub fn a3_bounds_of_registrations(job: &Job) -> Result<()> {
    const LEN: usize = 1000;
    let shared = job.alloc::<u8>(LEN)?;
    let local = job.alloc_local::<u8>(LEN)?;
    let own = job.register(vec![0_u8; LEN])?;
    let places = [shared.pointer(), local.pointer(), own.pointer()];
    let lists = crate::exchange::exchange_lists(job, &places)?;
    for peer in [next(job), job.rank()] {
        for place in &lists[peer.index()] {
            for (offset, len) in [(0, 1), (LEN - 1, 1), (0, LEN)] {
                job.put(place.at(offset), &vec![7; len])?;
                job.get(place.at(offset), &mut vec![7; len])?;
            }
            let before =
                GlobalPtr::<u8>::new(tasuki::onesided::GlobalAddress::from_bits(place.address().bits() - 1));
            for (address, len) in [(before, 1), (before, 2), (place.at(LEN), 1), (place.at(LEN - 1), 2)] {
                let outside = ["are not inside one registration", "hint:"];
                misused(job, job.put(address, &vec![1; len]), &outside);
                misused(job, job.get(address, &mut vec![1; len]), &outside);
            }
        }
        job.barrier()?;
    }
    assert!(shared.to_vec()?.iter().all(|&byte| byte == 7));
    assert!(own.to_vec().iter().all(|&byte| byte == 7));
    Ok(())
}

/// A6: memory of zero size is neither allocated nor registered.
pub fn a6_zero_size_is_refused(job: &Job) -> Result<()> {
    let texts = ["at least one byte"];
    misused(job, job.alloc::<u64>(0), &texts);
    misused(job, job.alloc::<[u8; 0]>(5), &texts);
    misused(job, job.alloc_local::<u64>(0), &texts);
    misused(job, job.register(Vec::<u64>::new()), &texts);
    job.barrier()?;
    let after = job.alloc::<u8>(1)?;
    job.put(after.on(next(job)), &[1])?;
    job.barrier()
}

/// A7: every call refuses the null address, whatever its other arguments are, and changes nothing.
pub fn a7_null_is_refused(job: &Job) -> Result<()> {
    let null = GlobalPtr::<u64>::NULL;
    let texts = ["the global address is null", "hint:"];
    let signal = job.signal()?;
    let table = job.alloc::<u64>(2)?;
    let good = table.on(next(job));
    let mut kept = [5_u64; 2];
    misused(job, job.put(null, &[1]), &texts);
    misused(job, job.get(null, &mut kept), &texts);
    misused(job, job.get_value(null), &texts);
    misused(job, job.fetch_add(null, 1), &texts);
    misused(job, job.store(null, 1), &texts);
    misused(job, job.put_signal(null, &[1], signal.on(next(job)), 1), &texts);
    misused(job, ended(job.copy(null, good, 2, tasuki::onesided::After::Nothing)), &texts);
    misused(job, ended(job.copy(good, null, 2, tasuki::onesided::After::Nothing)), &texts);
    misused(job, ended(job.iput(null, vec![1], tasuki::onesided::After::Nothing)), &texts);
    misused(job, ended(job.iget(null, vec![1], tasuki::onesided::After::Nothing)), &texts);
    misused(job, ended(job.istore(null, 1, tasuki::onesided::After::Nothing)), &texts);
    job.barrier()?;
    assert_eq!(
        (kept, table.to_vec()?, signal.value()),
        ([5; 2], vec![0; 2], 0),
        "a refused call changed something"
    );
    Ok(())
}
