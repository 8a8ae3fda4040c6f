//! C: the change that each atomic makes and the value it returns, for every type, in every kind of
//! memory.

use crate::cases::kinds_of_memory::{Areas, KINDS};
use crate::exchange::{bytes_at, last};
use crate::expected_error::{ended, misused};
use std::fmt::Debug;
use tasuki::onesided::{After, AtomicOp, Word};
use tasuki::{GlobalPtr, Job, Rank, Result};

/// A type of words on which the cases of this file run.
trait Tested: Word + Debug + Copy {
    fn of(value: u64) -> Self;
}

macro_rules! tested {
    ($($type:ty),*) => {$(impl Tested for $type {
        fn of(value: u64) -> $type {
            value as $type
        }
    })*};
}

tested!(u32, i32, u64, i64);

/// Rank 0 runs `body` with a word in each kind of memory, of rank 0 and of the last rank.
/// Collective.
fn on_words(job: &Job, body: impl Fn(GlobalPtr<u64>) -> Result<()>) -> Result<()> {
    let areas = Areas::new(job, 24)?;
    for kind in KINDS.into_iter().filter(|_| job.rank() == Rank(0)) {
        for owner in [Rank(0), last(job)] {
            let word = areas.on(kind, owner).at(8);
            job.put(areas.on(kind, owner), &[0xff; 24])?;
            body(word.cast())?;
            let mut found = [0; 24];
            job.get(areas.on(kind, owner), &mut found)?;
            let beside = found[..8].iter().chain(&found[16..]).all(|&byte| byte == 0xff);
            assert!(beside, "an atomic changed bytes beside its word: {found:?}");
        }
    }
    job.barrier()
}

/// Runs `body` with the lower four bytes of a word. The upper four bytes must not change.
fn on_half(job: &Job, word: GlobalPtr<u64>, body: impl Fn(GlobalPtr<u64>) -> Result<()>) -> Result<()> {
    job.store(word, 0x1234_5678_0000_0000)?;
    body(word)?;
    assert_eq!(job.load(word)? >> 32, 0x1234_5678, "the upper half changed");
    Ok(())
}

/// Applies an operation in each of its forms: blocking, nonblocking with a result, and nonblocking
/// without. The word must change from `before` to `after`, and the result must be `before`.
fn each_form<W: Tested>(
    job: &Job,
    word: GlobalPtr<u64>,
    change: AtomicOp<W>,
    before: W,
    after: W,
) -> Result<()> {
    let word = word.cast::<W>();
    let result = job.alloc_local::<W>(2)?;
    let put = || job.store(word, before);
    put()?;
    assert!(job.load(word)? == before, "store and load {before:?}");
    let fetched = job.atomic(word, change)?;
    assert!(fetched == before && job.load(word)? == after, "{change:?} on {before:?} fetched {fetched:?}");
    put()?;
    result.fill(W::of(0x5555_5555_5555_5555))?;
    job.complete(job.iatomic(word, change, result.pointer(), After::Nothing)?.handle())?;
    let stored = result.get(0)?;
    assert!(result.get(1)? == W::of(0x5555_5555_5555_5555), "{change:?} stored more than its word");
    assert!(stored == before && job.load(word)? == after, "{change:?} on {before:?} stored {stored:?}");
    put()?;
    job.complete(job.iatomic(word, change, GlobalPtr::NULL, After::Nothing)?.handle())?;
    assert!(job.load(word)? == after, "{change:?} on {before:?}, not fetching");
    Ok(())
}

/// C1: 100 + 100, for each width and sign. A word of four bytes leaves the four bytes beside it
/// unchanged.
pub fn c1_add(job: &Job) -> Result<()> {
    fn one<W: Tested>(job: &Job, word: GlobalPtr<u64>) -> Result<()> {
        each_form(job, word, AtomicOp::Add(W::of(100)), W::of(100), W::of(200))?;
        assert!(job.fetch_add(word.cast::<W>(), W::of(1))? == W::of(200));
        Ok(())
    }
    on_words(job, |word| {
        one::<u64>(job, word)?;
        one::<i64>(job, word)?;
        on_half(job, word, |half| one::<u32>(job, half))?;
        on_half(job, word, |half| one::<i32>(job, half))
    })
}

/// C2: compare and swap, with a value that is equal and with one that is not.
pub fn c2_compare_swap(job: &Job) -> Result<()> {
    fn one<W: Tested>(job: &Job, word: GlobalPtr<u64>) -> Result<()> {
        let change = |expected, new| AtomicOp::CompareSwap { expected: W::of(expected), new: W::of(new) };
        let max = u64::MAX;
        for (change, before, after) in
            [(change(5, 9), 5, 9), (change(6, 9), 5, 5), (change(0, max), 0, max), (change(max, 0), max, 0)]
        {
            each_form(job, word, change, W::of(before), W::of(after))?;
        }
        job.store(word.cast::<W>(), W::of(1))?;
        assert!(job.compare_swap(word.cast::<W>(), W::of(1), W::of(2))? == W::of(1));
        assert!(job.compare_swap(word.cast::<W>(), W::of(1), W::of(3))? == W::of(2));
        Ok(())
    }
    on_words(job, |word| {
        one::<u64>(job, word)?;
        one::<i64>(job, word)?;
        on_half(job, word, |half| one::<u32>(job, half))?;
        on_half(job, word, |half| one::<i32>(job, half))
    })
}

/// C3: swap, exclusive or, or, and, from binary 1111.
pub fn c3_swap_and_bits(job: &Job) -> Result<()> {
    fn one<W: Tested>(job: &Job, word: GlobalPtr<u64>) -> Result<()> {
        let (before, by) = (W::of(0b1111), W::of(0b11_0101));
        let changes = [
            (AtomicOp::Swap(by), 0b11_0101),
            (AtomicOp::Xor(by), 0b11_1010),
            (AtomicOp::Or(by), 0b11_1111),
            (AtomicOp::And(by), 0b00_0101),
        ];
        for (change, after) in changes {
            each_form(job, word, change, before, W::of(after))?;
        }
        assert!(job.swap(word.cast::<W>(), W::of(3))? == W::of(0b00_0101));
        job.complete(job.istore(word.cast::<W>(), W::of(4), After::Nothing)?.handle())?;
        assert!(job.load(word.cast::<W>())? == W::of(4));
        Ok(())
    }
    on_words(job, |word| {
        one::<u64>(job, word)?;
        one::<i64>(job, word)?;
        on_half(job, word, |half| one::<u32>(job, half))?;
        on_half(job, word, |half| one::<i32>(job, half))
    })
}

/// C4: additions wrap, for every sign, and do not carry into neighbouring bytes.
pub fn c4_wraps(job: &Job) -> Result<()> {
    on_words(job, |word| {
        each_form(job, word, AtomicOp::Add(2), u64::MAX, 1)?;
        each_form(job, word, AtomicOp::Add(u64::MAX), 5, 4)?;
        each_form(job, word, AtomicOp::Add(1), i64::MAX, i64::MIN)?;
        each_form(job, word, AtomicOp::Add(-6), -5_i64, -11)?;
        on_half(job, word, |half| {
            each_form(job, half, AtomicOp::Add(2), u32::MAX, 1)?;
            each_form(job, half, AtomicOp::Add(1), i32::MAX, i32::MIN)?;
            each_form(job, half, AtomicOp::Add(-1), 0_i32, -1)
        })
    })
}

/// C5: the result of an atomic may be stored only in registered memory of the issuing rank.
pub fn c5_results_go_to_own_memory(job: &Job) -> Result<()> {
    let table = job.alloc::<u64>(2)?;
    let word = table.on(last(job));
    let change = AtomicOp::Add(1);
    let issue = |result| job.iatomic(word, change, result, After::Nothing);
    for other in job.ranks().filter(|&rank| rank != job.rank()) {
        misused(job, issue(table.on(other).at(1)), &["is memory of rank", "not of rank"]);
    }
    misused(job, issue(table.pointer().at(2)), &["are not inside one registration", "hint:"]);
    let short = bytes_at(table.pointer(), 12).cast();
    misused(job, issue(short), &["are not inside one registration", "hint:"]);
    misused(job, issue(bytes_at(table.pointer(), 4).cast()), &["is not a multiple of 8"]);
    let freed = job.alloc_local::<u64>(1)?.pointer();
    misused(job, issue(freed), &["was freed", "hint:"]);
    job.barrier()?;
    assert_eq!(table.to_vec()?, [0, 0], "a refused atomic was carried out");
    job.barrier()
}

/// C6: a word must lie at a multiple of its size; otherwise the call is refused and changes
/// nothing.
pub fn c6_misaligned_words(job: &Job) -> Result<()> {
    let areas = Areas::new(job, 64)?;
    for kind in KINDS.into_iter().filter(|_| job.rank() == Rank(0)) {
        for owner in [Rank(0), last(job)] {
            let start = areas.on(kind, owner);
            let start = start.at(start.address().bits().wrapping_neg() as usize % 8);
            for shift in 1..8 {
                let wide: GlobalPtr<u64> = start.at(shift).cast();
                let texts = ["is not a multiple of 8"];
                misused(job, job.fetch_add(wide, 1), &texts);
                misused(job, job.swap(wide, 1), &texts);
                misused(job, job.compare_swap(wide, 0, 1), &texts);
                misused(job, job.store(wide, 1), &texts);
                misused(job, job.load(wide), &texts);
                misused(job, ended(job.istore(wide, 1, After::Nothing)), &texts);
                misused(
                    job,
                    ended(job.iatomic(wide, AtomicOp::Or(1), GlobalPtr::NULL, After::Nothing)),
                    &texts,
                );
                let narrow: GlobalPtr<u32> = start.at(shift).cast();
                match shift {
                    4 => assert_eq!(job.fetch_add(narrow, 0)?, 0),
                    _ => drop(misused(job, job.fetch_add(narrow, 1), &["is not a multiple of 4"])),
                }
            }
        }
    }
    job.barrier()?;
    for kind in KINDS {
        assert!(areas.image(kind)?.iter().all(|&byte| byte == 0), "a misaligned atomic was carried out");
    }
    job.barrier()
}
