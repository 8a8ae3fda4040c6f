//! B8: order handles, including those that name no operation.

use crate::blocked_operation::Gate;
use crate::wait_until::stay_away;
use tasuki::onesided::{After, Handle, LocalArray, TransferRequest};
use tasuki::{Job, Request, Result};

fn pair(job: &Job) -> Result<LocalArray<u64>> {
    let pair = job.alloc_local::<u64>(2)?;
    pair.set(0, 1)?;
    Ok(pair)
}

fn copy(job: &Job, pair: &LocalArray<u64>, after: After) -> Result<TransferRequest<()>> {
    job.copy(pair.pointer(), pair.pointer().at(1), 1, after)
}

/// Waits until the pair has been copied, without completing earlier operations.
fn arrival(job: &Job, pair: &LocalArray<u64>, copy: &mut TransferRequest<()>) -> Result<()> {
    while pair.get(1)? == 0 {
        copy.test();
        stay_away(job);
    }
    Ok(())
}

/// Completing a later operation completes the earlier ones. Tests agree, before and after.
pub fn b8_completion_implies_what_came_before(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let pair = pair(job)?;
        let slow = gate.close(job)?;
        let mut fast = copy(job, &pair, After::Nothing)?;
        if gate.is_tight(job) {
            assert!(fast.handle() > slow, "numbers grow in the order of issue");
            assert!(!gate.has_ended(), "an operation behind a closed gate counts as finished");
        }
        gate.open(job)?;
        job.complete(fast.handle())?;
        assert!(gate.has_ended() && fast.test());
        job.complete(slow)
    })?;
    assert!(gate.passed().is_none_or(|passed| passed == 1), "complete returned before the earlier one ended");
    Ok(())
}

/// Null handles and handles of finished operations are complete at once, whichever other operations are in flight.
pub fn b8_null_and_finished_handles(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let first = pair(job)?;
        let done = copy(job, &first, After::Nothing)?.handle();
        job.complete(done)?;
        let slow = gate.close(job)?;
        for handle in [Handle::NULL, Handle::from_number(0), done, Handle::default()] {
            job.complete(handle)?;
        }
        assert!(!gate.is_tight(job) || !gate.has_ended(), "complete waited for the gate");
        // The pairs live until the end: the last bytes of a copy may arrive after the word that is
        // checked.
        let pairs = (0..4).map(|_| pair(job)).collect::<Result<Vec<_>>>()?;
        let orders = [Handle::NULL, done].into_iter().flat_map(|h| [After::Exact(h), After::Prefix(h)]);
        for (after, pair) in orders.zip(&pairs) {
            arrival(job, pair, &mut copy(job, pair, after)?)?;
        }
        assert!(!gate.is_tight(job) || !gate.has_ended(), "a copy waited for the gate");
        gate.open(job)?;
        job.complete(slow)
    })
}

/// A handle that was never issued is complete at once, whichever operations are in flight.
pub fn b8_handles_never_issued(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let slow = gate.close(job)?;
        for number in [slow.number() + 1, slow.number() + 1000, u64::MAX / 2, u64::MAX] {
            let never = Handle::from_number(number);
            job.complete(never)?;
        }
        assert!(!gate.is_tight(job) || !gate.has_ended(), "complete waited for the gate");
        gate.open(job)?;
        job.complete(slow)
    })
}

/// An operation ordered after a handle that was never issued starts at once, even if the handle's
/// number becomes its own.
pub fn b8_order_after_handles_never_issued(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let mut end = gate.close(job)?;
        let mut pairs = Vec::new();
        for ahead in [1, 2, 1000, u64::MAX / 2] {
            for order in [After::Exact, After::Prefix] {
                let never = Handle::from_number(end.number() + ahead);
                let pair = pair(job)?;
                let mut free = copy(job, &pair, order(never))?;
                arrival(job, &pair, &mut free)?;
                end = end.max(free.handle());
                pairs.push(pair);
            }
        }
        gate.open(job)?;
        job.complete(end)
    })
}

/// Many handles may be completed in any order, and again, because handles identify operations.
pub fn b8_any_order_and_again(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    gate.held(job, |gate| {
        let words = job.alloc_local::<u64>(101)?;
        words.set(0, 7)?;
        let (mut handles, mut copies) = (vec![gate.close(job)?], Vec::new());
        for index in 0..100 {
            let after = After::Exact(handles[index]);
            let place = words.pointer().at(index);
            copies.push(job.copy(place, place.at(1), 1, after)?);
            handles.push(copies[index].handle());
        }
        gate.open(job)?;
        for &handle in handles.iter().step_by(7).rev().chain(&handles) {
            job.complete(handle)?;
            let mut up_to = copies.iter_mut().filter(|copy| copy.handle() <= handle);
            assert!(gate.has_ended() && up_to.all(|copy| copy.test()));
        }
        assert_eq!(words.to_vec()?, [7; 101]);
        Ok(())
    })
}
