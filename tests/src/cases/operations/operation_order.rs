//! B, C10: operations that wait for other operations, and operations that must not wait for others.

use crate::blocked_operation::{Gate, ISSUER, KEEPER};
use crate::cases::kinds_of_memory::{Areas, KINDS, Kind};
use crate::exchange::{effort, last};
use crate::pattern;
use crate::wait_until::stay_away;
use tasuki::onesided::{After, AtomicOp, LocalArray, TransferRequest};
use tasuki::{GlobalPtr, Job, Request, Result};

/// Copies of the issuer go from word i to word [`TO`] + i. Word i has the value i + 1, and the
/// words from [`TO`] on are zero.
const TO: usize = 8;

fn words(job: &Job) -> Result<LocalArray<u64>> {
    let words = job.alloc_local::<u64>(2 * TO)?;
    (0..TO).try_for_each(|index| words.set(index, index as u64 + 1))?;
    Ok(words)
}

/// Copies word `index` to its place behind [`TO`].
fn copy_word(job: &Job, words: &LocalArray<u64>, index: usize, after: After) -> Result<TransferRequest<()>> {
    job.copy(words.pointer().at(index), words.pointer().at(TO + index), 1, after)
}

fn has_arrived(words: &LocalArray<u64>, index: usize) -> Result<bool> {
    words.get(TO + index).map(|word| word == index as u64 + 1)
}

/// Waits for a copy without completing the operations before it.
fn arrival(job: &Job, words: &LocalArray<u64>, index: usize, copy: &mut TransferRequest<()>) -> Result<()> {
    while !has_arrived(words, index)? {
        copy.test();
        stay_away(job);
    }
    Ok(())
}

/// Asserts that an operation ordered after a closed gate does not start, however often operations
/// make progress.
fn stays_away(
    job: &Job,
    gate: &Gate,
    words: &LocalArray<u64>,
    index: usize,
    copy: &mut TransferRequest<()>,
) -> Result<()> {
    if gate.is_tight(job) {
        for _ in 0..50 {
            assert!(!copy.test(), "an operation behind a closed gate counts as finished");
            assert!(!has_arrived(words, index)?, "an operation started before the one it was ordered after");
            stay_away(job);
        }
    }
    Ok(())
}

/// B4: copies from the last rank to a, to b, to c, each after the one before. In the end c has the
/// bytes of the last rank, for every kind of memory.
pub fn b4_chain_by_handles(job: &Job) -> Result<()> {
    let len = effort(job, 100_000, 20_000);
    let areas = Areas::new(job, 3 * len)?;
    for round in 1..=effort(job, 20, 4) as u64 {
        for (remote, hop) in KINDS.into_iter().flat_map(|remote| KINDS.map(|hop| (remote, hop))) {
            if job.rank() == last(job) {
                areas.set(job, remote, &pattern::bytes(round, 3 * len))?;
            }
            job.barrier()?;
            if job.rank() == ISSUER {
                areas.fill(job, 0)?;
                let a = areas.on(hop, ISSUER);
                let (b, c) = (areas.on(Kind::Job, KEEPER), areas.on(hop, ISSUER).at(2 * len));
                let first = job.copy(areas.on(remote, last(job)), a, len, After::Nothing)?.handle();
                let second = job.copy(a, b, len, After::Exact(first))?.handle();
                let third = job.copy(b, c, len, After::Exact(second))?.handle();
                job.complete(third)?;
                pattern::check(&areas.image(hop)?[2 * len..], round, &format!("{remote:?} by {hop:?}"));
            }
            job.barrier()?;
        }
    }
    Ok(())
}

/// B4: the first of three chained copies is delayed. No copy of the chain starts early.
pub fn b4_chain_waits_for_its_head(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let line = job.alloc_local::<u64>(4)?;
        line.set(0, 9)?;
        let step = |from: usize, after| {
            job.copy(line.pointer().at(from), line.pointer().at(from + 1), 1, After::Exact(after))
        };
        let first = step(0, gate.close(job)?)?.handle();
        let mut third = step(2, step(1, first)?.handle())?;
        for _ in 0..50 {
            assert!(!gate.is_tight(job) || (!third.test() && line.to_vec()? == [9, 0, 0, 0]));
            stay_away(job);
        }
        gate.open(job)?;
        third.wait()?;
        assert_eq!(line.to_vec()?, [9; 4]);
        Ok(())
    })
}

/// B5: an operation ordered after a prefix starts only when all operations of the prefix have ended. An operation
/// ordered after exactly one operation starts when that operation has ended.
pub fn b5_prefix_and_exact(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let words = words(job)?;
        gate.close(job)?;
        let mut fast = copy_word(job, &words, 0, After::Nothing)?;
        arrival(job, &words, 0, &mut fast)?;
        let mut prefix = copy_word(job, &words, 1, After::Prefix(fast.handle()))?;
        let mut exact = copy_word(job, &words, 2, After::Exact(fast.handle()))?;
        arrival(job, &words, 2, &mut exact)?;
        stays_away(job, gate, &words, 1, &mut prefix)?;
        gate.open(job)?;
        job.complete(prefix.handle())?;
        assert!(has_arrived(&words, 1)?);
        Ok(())
    })
}

/// B6: an operation ordered after all operations starts only when all operations issued before it have ended. It does
/// not wait for later ones.
pub fn b6_all(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let words = words(job)?;
        gate.close(job)?;
        let mut fast = copy_word(job, &words, 0, After::Nothing)?;
        let mut all = copy_word(job, &words, 1, After::All)?;
        let mut later = copy_word(job, &words, 2, After::Nothing)?;
        arrival(job, &words, 0, &mut fast)?;
        arrival(job, &words, 2, &mut later)?;
        stays_away(job, gate, &words, 1, &mut all)?;
        gate.open(job)?;
        job.complete(all.handle())?;
        assert!(has_arrived(&words, 1)?);
        Ok(())
    })
}

/// B7: `Cont` on another path acts as `All`.
pub fn b7_cont_on_another_path(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let words = words(job)?;
        gate.close(job)?;
        let mut cont = copy_word(job, &words, 1, After::Cont)?;
        stays_away(job, gate, &words, 1, &mut cont)?;
        gate.open(job)?;
        job.complete(cont.handle())?;
        assert!(has_arrived(&words, 1)?);
        Ok(())
    })
}

/// B7: `Cont` on the same path keeps order: of many copies to one place the last remains.
pub fn b7_cont_on_one_path(job: &Job) -> Result<()> {
    let len = effort(job, 5_000, 500);
    let areas = Areas::new(job, 20 * len)?;
    for kind in KINDS {
        let gate = Gate::new(job)?;
        if job.rank() == ISSUER {
            for round in 1..20 {
                job.put(areas.on(Kind::Job, ISSUER).at(round * len), &pattern::bytes(round as u64, len))?;
            }
            let mut end = gate.close(job)?;
            for round in 1..20 {
                let from = areas.on(Kind::Job, ISSUER).at(round * len);
                end = job.copy(from, areas.on(kind, KEEPER), len, After::Cont)?.handle();
            }
            gate.open(job)?;
            job.complete(end)?;
        }
        if job.rank() == KEEPER {
            gate.keep(job)?;
        }
        job.barrier()?;
        if job.rank() == KEEPER {
            pattern::check(&areas.image(kind)?[..len], 19, "the last of twenty copies");
        }
        job.barrier()?;
    }
    Ok(())
}

/// B10: an operation that waits for its order does not delay operations without order, nor others
/// that this rank issues.
pub fn b10_unmet_order_delays_nobody(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    let far = job.alloc::<u64>(1)?;
    gate.held(job, |gate| {
        let words = words(job)?;
        let closed = gate.close(job)?;
        let mut held = copy_word(job, &words, 0, After::Exact(closed))?;
        for index in 1..TO {
            let mut free = copy_word(job, &words, index, After::Nothing)?;
            arrival(job, &words, index, &mut free)?;
        }
        job.put(far.on(KEEPER), &[1])?;
        assert_eq!(job.fetch_add(far.on(KEEPER), 1)?, 1);
        let mut request = job.iget(far.on(KEEPER), vec![0_u64], After::Nothing)?;
        assert_eq!(request.wait()?, [2], "a request waits only for its own operation");
        stays_away(job, gate, &words, 0, &mut held)?;
        gate.open(job)?;
        job.complete(held.handle())
    })
}

/// B10: operations that a full peer refuses do not delay operations to other ranks.
pub fn b10_refusals_delay_nobody(job: &Job) -> Result<()> {
    let (gate, areas) = (Gate::new(job)?, Areas::new(job, 8)?);
    gate.held(job, |gate| {
        let words = words(job)?;
        // More operations than the keeper has room for while it makes no call.
        (0..effort(job, 200, 20)).try_for_each(|_| gate.close(job).map(drop))?;
        let elsewhere = areas.on(Kind::Program, last(job)).cast::<u64>();
        let other = job.iatomic(elsewhere, AtomicOp::Add(1), GlobalPtr::NULL, After::Nothing)?.handle();
        let mut after = copy_word(job, &words, 1, After::Exact(other))?;
        arrival(job, &words, 1, &mut after)?;
        assert!(!gate.is_tight(job) || !gate.has_ended(), "the copy waited for the gate");
        gate.open(job)?;
        job.complete(after.handle())
    })
}

/// C10: the result of an atomic is stored before an operation ordered after it starts.
pub fn c10_result_before_dependent_copy(job: &Job) -> Result<()> {
    let areas = Areas::new(job, 8)?;
    for kind in KINDS {
        for round in 0..effort(job, 500, 20) as u64 {
            if job.rank() == ISSUER {
                let words = job.alloc_local::<u64>(2)?;
                words.fill(u64::MAX)?;
                let (result, copied) = (words.pointer(), words.pointer().at(1));
                let add = AtomicOp::Add(3);
                let atomic =
                    job.iatomic(areas.on(kind, last(job)).cast(), add, result, After::Nothing)?.handle();
                job.complete(job.copy(result, copied, 1, After::Exact(atomic))?.handle())?;
                assert_eq!(words.to_vec()?, [3 * round; 2], "{kind:?} memory, round {round}");
            }
        }
        job.barrier()?;
    }
    Ok(())
}
