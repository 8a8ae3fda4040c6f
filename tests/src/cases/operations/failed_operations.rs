//! B11: operations that fail, and operations ordered after them.

use crate::blocked_operation::{Gate, KEEPER};
use crate::exchange::next;
use crate::expected_error::check_error;
use tasuki::engine::Cause;
use tasuki::onesided::{After, Handle, TransferRequest};
use tasuki::{Array, ErrorKind, GlobalPtr, Job, Request, Result};

/// An address behind the end of a registration; only the start of an operation detects that.
fn nowhere(memory: &Array<u64>) -> GlobalPtr<u64> {
    memory.on(KEEPER).at(memory.len() + 1)
}

/// Asserts that `error` is the failure of a copy to `nowhere`.
fn is_out_of_range(job: &Job, error: &tasuki::Error) {
    check_error(job, error, ErrorKind::Misuse, &["copy(", "are not inside one registration", "hint:"]);
}

/// Successors of a failed operation do not start. Each fails with the failure that was the cause.
pub fn b11_successors_do_not_start(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    let memory = job.alloc::<u64>(4)?;
    memory.set(0, 5)?;
    gate.held(job, |gate| {
        let closed = gate.close(job)?;
        let bad = job.copy(memory.pointer(), nowhere(&memory), 1, After::Exact(closed))?.handle();
        let copied = job.copy(memory.pointer(), memory.on(KEEPER).at(1), 1, After::Exact(bad))?.handle();
        let mut put = job.iput(memory.on(KEEPER).at(2), vec![6], After::Exact(copied))?;
        let mut got = job.iget(memory.on(KEEPER).at(0), vec![0_u64], After::Prefix(put.handle()))?;
        let mut free = job.iput(memory.on(KEEPER).at(3), vec![8], After::Exact(closed))?;
        gate.open(job)?;
        assert_eq!(free.wait()?, [8], "an operation not ordered after the failure is carried out");
        for error in [got.wait().err(), put.wait().err()] {
            let error = error.expect("a successor of a failed operation succeeded");
            check_error(
                job,
                &error,
                ErrorKind::PeerFailed,
                &["ordered after", "are not inside one registration"],
            );
            assert!(matches!(error.cause(), Cause::Predecessor { .. }), "{error}");
        }
        is_out_of_range(job, &job.complete(copied).expect_err("complete returns the failure"));
        job.complete(copied)
    })?;
    if job.rank() == KEEPER {
        assert_eq!(memory.to_vec()?, [5, 0, 0, 8]);
    }
    job.barrier()
}

/// The first call that completes a handle returns the first failure up to that handle, once. The
/// job continues.
pub fn b11_a_failure_is_reported_once_by_complete(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    let memory = job.alloc::<u64>(4)?;
    gate.held(job, |gate| {
        let closed = gate.close(job)?;
        let good = job.copy(memory.pointer(), memory.on(KEEPER), 1, After::Exact(closed))?.handle();
        let bad = job.copy(memory.pointer(), nowhere(&memory), 1, After::Exact(good))?.handle();
        let more = job.copy(nowhere(&memory), memory.pointer(), 1, After::Exact(good))?.handle();
        gate.open(job)?;
        job.complete(good)?;
        let error = job.complete(more).expect_err("two operations failed");
        is_out_of_range(job, &error);
        assert!(error.to_string().contains("1 more"), "the other failure is mentioned: {error}");
        for handle in [bad, more, good] {
            job.complete(handle)?;
        }
        Ok(())
    })?;
    let peer = next(job);
    job.put(memory.on(peer).at(3), &[7])?;
    job.barrier()?;
    assert_eq!(memory.get(3)?, 7);
    Ok(())
}

/// An operation that ends after another one failed is independent of that failure. Waiting for it
/// does not return the failure, and operations ordered after it start.
pub fn b11_others_do_not_inherit_a_failure(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    let memory = job.alloc::<u64>(4)?;
    let idle = crate::wait_until::Idle::new(job)?;
    gate.held(job, |gate| {
        let closed = gate.close(job)?;
        let mut bad = job.copy(memory.pointer(), nowhere(&memory), 1, After::Exact(closed))?;
        gate.open(job)?;
        idle.until(|| Ok(bad.test()))?;
        let mut good = job.iput(memory.on(KEEPER), vec![1], After::Nothing)?;
        let handle = good.handle();
        assert_eq!(good.wait().expect("wait returned the failure of another operation"), [1]);
        let mut after = job.iput(memory.on(KEEPER).at(1), vec![2], After::Exact(handle))?;
        assert_eq!(after.wait().expect("the operation before it has succeeded"), [2]);
        is_out_of_range(job, &job.complete(bad.handle()).expect_err("complete returns the failure"));
        Ok(())
    })?;
    if job.rank() == KEEPER {
        assert_eq!(memory.to_vec()?[..2], [1, 2]);
    }
    job.barrier()
}

/// A failure that a call has returned still keeps its successors from starting, whichever other operations are in
/// flight.
pub fn b11_a_reported_failure_still_stops_successors(job: &Job) -> Result<()> {
    let memory = job.alloc::<u64>(4)?;
    for busy in [false, true] {
        let (first, second) = (Gate::new(job)?, Gate::new(job)?);
        let mut bad = Handle::NULL;
        first.held(job, |gate| {
            let closed = gate.close(job)?;
            bad = job.copy(memory.pointer(), nowhere(&memory), 1, After::Exact(closed))?.handle();
            gate.open(job)?;
            is_out_of_range(job, &job.complete(bad).expect_err("the copy failed"));
            Ok(())
        })?;
        second.held(job, |gate| {
            let other = if busy { gate.close(job)? } else { Handle::NULL };
            let late = job.iput(memory.on(KEEPER), vec![1], After::Exact(bad));
            let outcome = late.and_then(|mut late| late.wait());
            let error = outcome.err().unwrap_or_else(|| panic!("a successor started (busy: {busy})"));
            assert!(matches!(error.cause(), Cause::Predecessor { .. }), "{error}");
            gate.open(job)?;
            job.complete(other)
        })?;
        assert_eq!(memory.get(0)?, 0);
    }
    Ok(())
}

/// Many failures: each keeps its successors from starting, and the first is not forgotten.
pub fn b11_many_failures(job: &Job) -> Result<()> {
    const MANY: usize = 1000;
    let gate = Gate::new(job)?;
    let memory = job.alloc::<u64>(2)?;
    gate.held(job, |gate| {
        let closed = gate.close(job)?;
        let bad = |_| job.copy(memory.pointer(), nowhere(&memory), 1, After::Exact(closed));
        let mut all = (0..MANY).map(bad).collect::<Result<Vec<_>>>()?;
        gate.open(job)?;
        while !all.iter_mut().all(Request::test) {
            crate::wait_until::stay_away(job);
        }
        let bad: Vec<Handle> = all.iter().map(TransferRequest::handle).collect();
        for index in [0, 1, MANY / 2, MANY - 1] {
            let late = job.iput(memory.on(KEEPER), vec![1], After::Exact(bad[index]));
            let late = late.and_then(|mut late| late.wait());
            assert!(late.is_err(), "the successor of failure {index} of {MANY} started");
        }
        is_out_of_range(job, &job.complete(bad[0]).expect_err("the first of many failures was forgotten"));
        let rest = job.complete(bad[MANY - 1]).expect_err("the other failures were forgotten");
        assert!(rest.to_string().contains(&format!("{} more", MANY - 2)), "{rest}");
        Ok(())
    })?;
    assert_eq!(memory.get(0)?, 0);
    Ok(())
}

/// A failed atomic that was not issued at once leaves its result unchanged.
pub fn b11_failed_atomics_leave_the_result(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    let memory = job.alloc::<u64>(2)?;
    gate.held(job, |gate| {
        let closed = gate.close(job)?;
        memory.set(1, 77)?;
        let result = memory.pointer().at(1);
        let add = tasuki::onesided::AtomicOp::Add(1);
        let bad = job.iatomic(nowhere(&memory), add, result, After::Exact(closed))?.handle();
        gate.open(job)?;
        let error = job.complete(bad).expect_err("there is no such word");
        check_error(job, &error, ErrorKind::Misuse, &["atomic add", "are not inside one registration"]);
        assert_eq!(memory.get(1)?, 77);
        Ok(())
    })?;
    Ok(())
}

/// Errors of atomics name the call that the program has made, and those of accesses behind an array's end the array.
pub fn b11_errors_name_the_call_and_the_array(job: &Job) -> Result<()> {
    let array = job.alloc::<u64>(8)?;
    for behind in [8, 9] {
        let at = array.on(job.rank_after(1)).at(behind);
        let named = |outcome: Result<()>, call: &str| {
            let error = outcome.expect_err("it is behind the end");
            let there = format!(
                "(the array or other memory there has 64 bytes at {})",
                array.on(job.rank_after(1)).address()
            );
            check_error(job, &error, ErrorKind::Misuse, &[&there, "are not inside one registration"]);
            assert!(error.call().starts_with(call), "{call}: {error}");
        };
        named(job.fetch_add(at, 1).map(drop), "fetch_add(");
        named(job.swap(at, 1).map(drop), "swap(");
        named(job.compare_swap(at, 1, 2).map(drop), "compare_swap(");
        named(job.load(at).map(drop), "load(");
        named(job.store(at, 1), "store(");
        named(job.atomic(at, tasuki::onesided::AtomicOp::Add(1)).map(drop), "atomic add(");
        named(job.put(at, &[1]), "put(");
        named(job.get(at, &mut [0]), "get(");
    }
    job.barrier()
}
