//! Wrong arguments: each gives an error that names the rank, the call and the remedy, and says
//! whose fault it is. Nothing is changed, and the job continues.

use crate::cases::kinds_of_memory::{Areas, KINDS};
use crate::exchange::{next, previous};
use crate::expected_error::{disagreed, ended, misused, refused};
use tasuki::onesided::{After, AtomicOp, GlobalAddress, RemoteSignal, bootstrap_memory};
use tasuki::{Array, ErrorKind, GlobalPtr, Job, Pod, Rank, Request, Result};

/// Asserts that all ranks can still communicate after calls were refused.
fn goes_on(job: &Job) -> Result<()> {
    job.barrier()?;
    let (inbox, arrived) = (job.alloc::<usize>(1)?, job.signal()?);
    job.put_signal(inbox.on(next(job)), &[job.rank().0 + 1], arrived.on(next(job)), 1)?;
    arrived.wait_at_least(1)?;
    assert_eq!(inbox.get(0)?, previous(job).0 + 1);
    job.barrier()
}

fn signal_at(bits: u64) -> RemoteSignal {
    bytemuck::cast(bits)
}

/// Asserts that every call that takes an address refuses this one.
fn all_calls_refuse<T: Pod + PartialEq + std::fmt::Debug>(
    job: &Job,
    bad: GlobalPtr<T>,
    good: &Array<T>,
    texts: &[&str],
) -> Result<()> {
    let signal = job.signal()?;
    let own = good.pointer();
    let values = good.to_vec()?;
    let mut kept = values.clone();
    let word: GlobalPtr<u64> = bad.cast();
    misused(job, job.put(bad, &values), texts);
    misused(job, job.get(bad, &mut kept), texts);
    misused(job, job.get_value(bad), texts);
    misused(job, job.put_signal(bad, &values, signal.on(bad.rank()), 1), texts);
    misused(job, ended(job.copy(bad, own, 1, After::Nothing)), texts);
    misused(job, ended(job.copy(own, bad, 1, After::Nothing)), texts);
    misused(job, ended(job.copy(bad, bad, 1, After::Nothing)), texts);
    misused(job, ended(job.iput(bad, values.clone(), After::Nothing)), texts);
    misused(job, ended(job.iget(bad, values.clone(), After::Nothing)), texts);
    misused(job, job.atomic(word, AtomicOp::Add(1)), texts);
    misused(job, job.load(word), texts);
    misused(job, job.store(word, 1), texts);
    misused(job, ended(job.istore(word, 1, After::Nothing)), texts);
    misused(job, ended(job.iatomic(word, AtomicOp::Swap(1), GlobalPtr::NULL, After::Nothing)), texts);
    assert_eq!(kept, values, "a refused get wrote its buffer");
    Ok(())
}

/// Ranks that the job does not have, also numbers that do not fit into an address.
pub fn no_such_rank(job: &Job) -> Result<()> {
    let good = job.alloc::<u64>(1)?;
    let signal = job.signal()?;
    let size = job.size();
    for rank in [size, size + 1, 1000, (1 << 24) - 1].map(Rank) {
        let texts = [
            "there is no rank",
            &if size == 1 { "the only rank is 0".into() } else { format!("the ranks are 0 to {}", size - 1) },
        ];
        all_calls_refuse(job, good.on(rank), &good, &texts)?;
        misused(job, job.raise(signal.on(rank), 1), &texts);
        misused(job, bootstrap_memory(job, rank), &texts);
    }
    for rank in [1 << 24, (1 << 24) + 1, 1 << 32, (1 << 40) + 1, usize::MAX].map(Rank) {
        misused(job, job.put(good.on(rank), &[1]), &[]);
        misused(job, job.raise(signal.on(rank), 1), &[]);
    }
    assert_eq!(
        (good.get(0)?, signal.value()),
        (0, 0),
        "an access to a rank that does not exist reached another rank"
    );
    goes_on(job)
}

/// Addresses at which nothing is registered: beyond all memory, in the library's own tables, and random ones.
pub fn addresses_of_nothing(job: &Job) -> Result<()> {
    let good = job.alloc::<u64>(1)?;
    let peer = next(job);
    let mut random = crate::random::Random::seed(5);
    let tables = [8, 1 << 16, 1 << 20, 64 << 20, 128 << 20, (192 << 20) - 8, (192 << 20) + (64 << 10)];
    let free = [(512 << 30) - 8, 512 << 30, (1 << 40) - 8, (768 << 30) - 8, 256 << 30];
    let wild: Vec<u64> = (0..20).map(|_| (600 << 30) + (random.below(100 << 30) & !7)).collect();
    for &offset in tables.iter().chain(&free).chain(&wild) {
        let bad = GlobalPtr::<u64>::new(GlobalAddress::new(peer, offset));
        all_calls_refuse(job, bad, &good, &["are not inside one registration", "hint:"])?;
    }
    goes_on(job)
}

/// Ranges that begin inside a registration and end outside, and lengths beyond all limits.
pub fn ranges_that_end_outside(job: &Job) -> Result<()> {
    let areas = Areas::new(job, 100)?;
    let good = job.alloc::<u8>(20)?;
    for kind in KINDS {
        let start = areas.on(kind, next(job));
        let texts = ["are not inside one registration", "hint:"];
        let values = [1; 20];
        misused(job, job.put(start.at(81), &values), &texts);
        misused(job, job.get(start.at(100), &mut [0; 1]), &texts);
        for count in [101, usize::MAX, usize::MAX / 2 + 2, 1 << 40] {
            misused(job, ended(job.copy(start, good.pointer(), count, After::Nothing)), &texts);
        }
        let words = [usize::MAX / 8 + 1, usize::MAX / 4, usize::MAX];
        for count in words {
            let wide: GlobalPtr<u64> = start.cast();
            misused(job, ended(job.copy(wide, good.pointer().cast(), count, After::Nothing)), &texts);
        }
        for beyond in [1 << 40, usize::MAX, usize::MAX / 2] {
            assert!(start.at(beyond).is_null());
            misused(job, job.put(start.at(beyond), &values), &["null", "hint:"]);
        }
    }
    job.barrier()?;
    assert!(good.to_vec()?.iter().all(|&byte| byte == 0));
    goes_on(job)
}

/// Values that are not signals, and a put whose signal is on another rank than the bytes.
pub fn signals_that_are_none(job: &Job) -> Result<()> {
    let (inbox, signal) = (job.alloc::<u64>(1)?, job.signal()?);
    let real: u64 = bytemuck::cast(signal.on(next(job)));
    for bits in [real + 8, real + 1, inbox.on(next(job)).address().bits(), 8] {
        misused(job, job.raise(signal_at(bits), 1), &["no signal lies at"]);
        misused(job, job.put_signal(inbox.on(next(job)), &[1], signal_at(bits), 1), &["signal"]);
    }
    misused(job, job.raise(signal_at(0), 1), &["null", "hint:"]);
    for other in job.ranks().filter(|&rank| rank != next(job)) {
        let split = job.put_signal(inbox.on(next(job)), &[1], signal.on(other), 1);
        misused(job, split, &["both must be the same rank's"]);
    }
    job.barrier()?;
    assert_eq!((inbox.get(0)?, signal.value()), (0, 0));
    goes_on(job)
}

/// Allocations for which no machine has room are refused on every rank, before any memory is taken.
pub fn no_room(job: &Job) -> Result<()> {
    let before = job.memory();
    let texts = ["not enough memory for", "leaves", "hint: allocate less"];
    for count in [1 << 39, 1 << 45, 1 << 60] {
        refused(job, job.alloc::<u8>(count), ErrorKind::NoMemory, &texts);
        refused(job, job.alloc_local::<u8>(count), ErrorKind::NoMemory, &texts);
    }
    for count in [usize::MAX, usize::MAX / 8 + 1] {
        misused(job, job.alloc::<u64>(count), &["exceed the address space"]);
        misused(job, job.alloc_local::<u64>(count), &["exceed the address space"]);
    }
    let after = job.memory();
    assert_eq!((after.symmetric, after.local), (before.symmetric, before.local));
    let (one, other) = (job.alloc::<u64>(1)?, job.alloc_local::<u64>(1)?);
    job.put(one.on(next(job)), &[1])?;
    other.set(0, 1)?;
    goes_on(job)
}

/// Ranks that disagree about a collective call all get an error that says how. Then they can
/// continue together.
pub fn ranks_that_disagree(job: &Job) -> Result<()> {
    let me = job.rank().index();
    for odd in [0, job.size() - 1] {
        for (usual, other) in [(10, 11), (1 << 20, 1)] {
            let count = if me == odd { other } else { usual };
            let both = [usual, other].map(|count| format!("job.alloc({count} x u8)"));
            let texts = ["different calls of the job", &*both[0], &*both[1], "hint: all ranks"];
            disagreed(job, job.alloc::<u8>(count), &texts);
            goes_on(job)?;
        }
    }
    Ok(())
}

/// One rank asks for zero bytes, or for more memory than there can be, while the others ask for an ordinary amount.
/// Every rank gets an error, and they can continue together.
pub fn one_rank_asks_for_nothing(job: &Job) -> Result<()> {
    for senseless in [0, usize::MAX] {
        for odd in [0, job.size() - 1] {
            let count = if job.rank().index() == odd { senseless } else { 5 };
            let outcome = job.alloc::<u64>(count).map(drop);
            let texts: &[&str] =
                if job.rank().index() == odd { &[] } else { &["different calls of the job"] };
            disagreed(job, outcome, texts);
            goes_on(job)?;
        }
    }
    Ok(())
}

/// Indexes outside of a rank's part of an array, also ones that overflow.
pub fn indexes_outside_of_an_array(job: &Job) -> Result<()> {
    let array = job.alloc::<u64>(10)?;
    for (first, count) in [(10, 1), (9, 2), (0, 11), (usize::MAX, 1), (usize::MAX - 1, 3), (11, 0)] {
        let texts = ["exceed the array of 10 values"];
        misused(job, array.read(first, &mut vec![0; count]), &texts);
        misused(job, array.write(first, &vec![1; count]), &texts);
    }
    misused(job, array.get(10), &["exceed the array of 10 values"]);
    misused(job, array.set(usize::MAX / 8, 1), &["exceed the array of 10 values"]);
    array.read(10, &mut [])?;
    assert_eq!(array.to_vec()?, [0; 10]);
    goes_on(job)
}

/// A transfer of no values moves nothing and is no error, for every address.
pub fn zero_counts_move_nothing(job: &Job) -> Result<()> {
    let array = job.alloc::<u64>(1)?;
    for place in [array.on(next(job)), array.on(next(job)).at(1), GlobalPtr::NULL] {
        job.put(place, &[])?;
        job.get(place, &mut [])?;
        job.complete(job.copy(place, place, 0, After::All)?.handle())?;
        assert!(job.iput(place, vec![], After::Nothing)?.wait()?.is_empty());
        assert!(job.iget(place, vec![], After::All)?.wait()?.is_empty());
    }
    assert_eq!(array.get(0)?, 0);
    goes_on(job)
}
