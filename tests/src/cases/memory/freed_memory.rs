//! Protocols 22 and 23: accesses to memory that is being freed or was freed.

use crate::exchange::{effort, exchange_all, exchange_lists, is_simulated, next};
use crate::expected_error::{ended, misused};
use crate::wait_until::Idle;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::onesided::{After, AtomicOp, Registered};
use tasuki::{Array, GlobalPtr, Job, Rank, Result, Signal};

/// The word that peers put, perhaps too late.
const LATE: u64 = 0xeeee_eeee_eeee_eeee;
/// The word that the owner writes into memory after `unregister` has returned it.
const TAKEN: u64 = 1;

/// (i) If the free happened before an access begins, the access fails, on every rank and with every
/// call. It changes nothing, not even the signal that should follow the bytes.
pub fn after_the_free_every_access_fails(job: &Job) -> Result<()> {
    let signal = job.signal()?;
    let shared = job.alloc::<u64>(4)?;
    let local = job.alloc_local::<u64>(4)?;
    let own = job.register(vec![1_u64; 4])?;
    let live = job.alloc::<u64>(4)?;
    let lists = exchange_lists(job, &[shared.pointer(), local.pointer(), own.pointer()])?;
    for place in lists.iter().flatten() {
        job.get_value(*place)?;
    }
    job.barrier()?;
    drop((shared, local));
    assert_eq!(own.unregister(), [1; 4]);
    job.barrier()?;
    let good = live.pointer();
    for peer in [next(job), job.rank()] {
        for &stale in &lists[peer.index()] {
            let texts = ["was freed", "hint: synchronize"];
            let mut kept = [3_u64];
            misused(job, job.put(stale, &[9]), &texts);
            misused(job, job.get(stale, &mut kept), &texts);
            misused(job, job.fetch_add(stale, 1), &texts);
            misused(job, job.put_signal(stale, &[9], signal.on(peer), 1), &texts);
            misused(job, ended(job.copy(stale, good, 1, After::Nothing)), &texts);
            misused(job, ended(job.copy(good, stale, 1, After::Nothing)), &texts);
            misused(job, ended(job.iatomic(stale, AtomicOp::Swap(1), good, After::Nothing)), &texts);
            misused(job, ended(job.iput(stale, vec![9], After::Nothing)), &texts);
            assert_eq!(kept, [3]);
        }
    }
    job.barrier()?;
    assert_eq!(signal.value(), 0, "a signal was raised for bytes that were refused");
    assert_eq!(live.to_vec()?, [0; 4]);
    Ok(())
}

/// (i) A signal orders the free before the access. The access fails and changes nothing.
pub fn a_signal_orders_the_free_before_the_access(job: &Job) -> Result<()> {
    let freed = job.signal()?;
    for round in 1..=effort(job, 200, 20) as u64 {
        let own = job.register(vec![round; 100])?;
        let theirs = exchange_all(job, own.pointer())?[next(job).index()];
        assert_eq!(job.get_value(theirs.at(99))?, round);
        job.barrier()?;
        own.unregister();
        let previous = crate::exchange::previous(job);
        job.raise(freed.on(previous), 1)?;
        freed.wait_at_least(round)?;
        misused(job, job.get_value(theirs), &["was freed"]);
    }
    job.barrier()
}

/// (ii) A put that races with the free of job memory fails or writes into the freed memory. It
/// never shows up in the next allocation.
pub fn late_puts_never_reach_memory_given_to_others(job: &Job) -> Result<()> {
    Hammered::race(job, |peers| {
        for round in 0..effort(job, 300, 30) {
            let old = job.alloc_local::<u64>(Hammered::WORDS)?;
            peers.publish_address(job, old.pointer())?;
            job.compute(Duration::from_micros(30));
            peers.let_each_write(job, round)?;
            drop(old);
            let new = job.alloc_local::<u64>(Hammered::WORDS)?;
            for _ in 0..4 {
                assert!(new.to_vec()?.iter().all(|&word| word == 0), "a late put arrived in new memory");
                job.compute(Duration::from_micros(10));
            }
            peers.let_each_be_refused(job, round)?;
        }
        peers.stop(job)
    })
}

/// (iii) `unregister` waits for accesses that are under way: after it has returned, the memory
/// never changes.
pub fn unregister_waits_for_accesses_under_way(job: &Job) -> Result<()> {
    Hammered::race(job, |peers| peers.register_and_unregister(job, |limit| peers.idle.serve(limit)))
}

/// (iii) One thread unregisters the memory while another thread of the rank serves the requests of peers. After
/// `unregister` has returned, the memory never changes.
pub fn unregister_waits_for_what_another_thread_serves(job: &Job) -> Result<()> {
    Hammered::race(job, |peers| {
        let over = AtomicBool::new(false);
        let outcomes = job.threads(2, |thread| {
            if thread == 0 {
                let _over = Sets(&over);
                return peers.register_and_unregister(job, |limit| {
                    job.compute(limit);
                    Ok(())
                });
            }
            peers.idle.until(|| Ok(over.load(Relaxed)))
        })?;
        outcomes.into_iter().collect()
    })
}

/// Sets a flag when it is dropped, even by a panic.
struct Sets<'flag>(&'flag AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// One rank that allocates and frees memory again and again, and others that put to the last
/// address they were given.
struct Hammered<'job> {
    address: Array<u64>,
    /// Counts the ranks whose first put has arrived.
    written: Signal<'job>,
    refused: Signal<'job>,
    idle: Idle<'job>,
}

impl<'job> Hammered<'job> {
    const OWNER: Rank = Rank(0);
    /// 128 KiB: long enough for a put to be interrupted in the middle.
    const WORDS: usize = 16 * 1024;
    const STOP: u64 = u64::MAX;

    fn new(job: &'job Job) -> Result<Hammered<'job>> {
        let (written, refused) = (job.signal()?, job.signal()?);
        Ok(Hammered { address: job.alloc::<u64>(1)?, written, refused, idle: Idle::new(job)? })
    }

    /// Collective: the owner runs `own`, which ends with [`Hammered::stop`], while all other ranks
    /// put to its memory.
    fn race(job: &'job Job, own: impl FnOnce(&Hammered<'job>) -> Result<()>) -> Result<()> {
        let peers = Hammered::new(job)?;
        if job.rank() == Hammered::OWNER {
            own(&peers)?
        } else {
            peers.hammer(job)?
        }
        job.barrier()
    }

    /// The owner's part for registered memory, which must not change after `unregister`. Peers put
    /// while the owner does `meanwhile`.
    fn register_and_unregister(&self, job: &Job, meanwhile: impl Fn(Duration) -> Result<()>) -> Result<()> {
        let mut values = vec![0_u64; Hammered::WORDS];
        let mut reached = 0;
        for round in 0..effort(job, 200, 30) {
            values.fill(0);
            let old = job.register(values)?;
            self.publish_address(job, old.pointer())?;
            // This delay is mostly too short for a put that the owner must carry out, but sometimes long enough on any
            // machine.
            meanwhile(Duration::from_micros(if round % 8 == 0 { 5_000 } else { 50 }))?;
            self.let_each_write(job, round)?;
            values = old.unregister();
            // The owner writes at once and from the end: a put that is still in flight would overwrite some of these
            // words.
            (0..Hammered::WORDS).step_by(512).rev().for_each(|index| values[index] = TAKEN);
            reached += u64::from(values.contains(&LATE));
            let given_back = values.clone();
            let taken = given_back.iter().step_by(512).all(|&word| word == TAKEN);
            assert!(taken, "a put was still under way after unregister");
            for _ in 0..4 {
                job.compute(Duration::from_micros(10));
                assert!(values == given_back, "memory changed after unregister");
            }
            self.let_each_be_refused(job, round)?;
        }
        assert!(reached > 0, "no put ever reached the memory, so the case showed nothing");
        self.stop(job)
    }

    fn publish_address(&self, job: &Job, place: GlobalPtr<u64>) -> Result<()> {
        for peer in job.ranks().filter(|&rank| rank != Hammered::OWNER) {
            job.store(self.address.on(peer), place.address().bits())?;
        }
        Ok(())
    }

    /// In the first round, waits until each peer has put, however slow it is. On the simulator,
    /// every second round lets puts end that need calls of the owner.
    fn let_each_write(&self, job: &Job, round: usize) -> Result<()> {
        match round {
            0 => self.written.wait_at_least(job.size() as u64 - 1),
            _ if is_simulated(job) && round.is_multiple_of(2) => self.idle.serve(Duration::from_micros(30)),
            _ => Ok(()),
        }
    }

    /// In the first round, waits until each peer has had a put refused.
    fn let_each_be_refused(&self, job: &Job, round: usize) -> Result<()> {
        if round == 0 { self.refused.wait_at_least(job.size() as u64 - 1) } else { Ok(()) }
    }

    fn stop(&self, job: &Job) -> Result<()> {
        self.publish_address(job, GlobalPtr::new(tasuki::onesided::GlobalAddress::from_bits(Hammered::STOP)))
    }

    fn hammer(&self, job: &Job) -> Result<()> {
        let late = vec![LATE; Hammered::WORDS];
        let (mut arrived, mut refused) = (0_u64, 0_u64);
        loop {
            match job.load(self.address.pointer())? {
                Hammered::STOP => break,
                0 => job.compute(Duration::from_micros(1)),
                bits => {
                    match job.put(GlobalPtr::new(tasuki::onesided::GlobalAddress::from_bits(bits)), &late) {
                        Ok(()) => {
                            arrived += 1;
                            if arrived == 1 {
                                job.raise(self.written.on(Hammered::OWNER), 1)?;
                            }
                        }
                        Err(error) => {
                            refused += 1;
                            if refused == 1 {
                                job.raise(self.refused.on(Hammered::OWNER), 1)?;
                            }
                            let expected =
                                matches!(error.cause(), Cause::Stale { .. } | Cause::OutOfRange { .. });
                            assert!(expected, "a late put should find freed memory: {error}");
                        }
                    }
                }
            }
        }
        assert!(arrived > 0 && refused > 0, "{arrived} puts arrived, {refused} were refused: no race");
        Ok(())
    }
}

/// Memory is allocated and freed while other ranks work. Afterwards the same number of bytes is in
/// use as before.
pub fn freed_memory_is_given_back(job: &Job) -> Result<()> {
    job.barrier()?;
    let before = job.memory();
    for _ in 0..effort(job, 20, 4) {
        let (shared, local) = (job.alloc::<u8>(300_000)?, job.alloc_local::<u8>(3_000_000)?);
        let own: Registered<u8> = job.register(vec![0; 1000])?;
        let used = job.memory();
        assert_eq!(used.symmetric, before.symmetric + 300_000);
        assert_eq!((used.local, used.registered), (before.local + 3_000_000, before.registered + 1000));
        assert_eq!(used.registrations, before.registrations + 3);
        assert!(used.file >= before.file + 3_300_000, "{} after {}", used.file, before.file);
        job.put(shared.on(next(job)), &[1])?;
        job.barrier()?;
        drop((shared, local, own));
    }
    let after = job.memory();
    assert_eq!(
        (after.symmetric, after.local, after.registered),
        (before.symmetric, before.local, before.registered)
    );
    assert_eq!(after.registrations, before.registrations);
    assert!(
        after.file < before.file + 3_000_000,
        "{} after {}: freed memory is kept",
        after.file,
        before.file
    );
    Ok(())
}
