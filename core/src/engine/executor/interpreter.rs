//! The interpreter: runs compiled steps one after the other, until one must wait.
#![allow(unsafe_code)]
//! Unsafe: copies between ranges of job memory and buffers that a call lends. The job memory was resolved with the
//! steps and stays mapped while the fabric lives. The caller lends its own memory for the call.

use super::call_buffers::CallBuffers;
use super::operand::ResolvedOperand;
use super::resolved::{ResolvedAction, ResolvedStep, ResolvedWait};
use crate::engine::worker::Worker;
use crate::os::{copy, prefetch, store_policy};

/// Most bytes that are prefetched for a step: they must fit into the first-level cache beside other data.
const PREFETCH_BYTES_MAX: usize = 16 << 10;

/// A driver of steps: a call of the rank, or the rank of a repeating queue that holds its lease.
pub(in crate::engine) trait Driver {
    /// What the driver does when the action of a step is done.
    type Effects;

    /// Returns true if the condition of a step is met.
    fn is_over(&mut self, wait: &ResolvedWait, pass: u64) -> bool;

    /// Runs an action that only this kind of driver can run. Returns false if the steps cannot go on now.
    fn run_special(&mut self, action: &ResolvedAction) -> bool;

    /// Raises the signals of a step, whose action is done, and notes that it has run.
    fn complete(&mut self, effects: &Self::Effects, pass: u64);
}

impl Worker {
    /// Runs steps, the first of which has the number `begin`, until one cannot run. Returns the number of that step,
    /// or `None` if all have run.
    #[inline(always)]
    pub(in crate::engine) fn run_steps<D: Driver>(
        &self,
        (begin, steps): (usize, &[ResolvedStep<D::Effects>]),
        pass: u64,
        call_buffers: &CallBuffers<'_>,
        driver: &mut D,
    ) -> Option<usize> {
        for (at, step) in (begin..).zip(steps) {
            if let Some(wait) = &step.wait
                && !driver.is_over(wait, pass)
            {
                return Some(at);
            }
            if !self.run_step_action(&step.action, call_buffers) && !driver.run_special(&step.action) {
                return Some(at);
            }
            driver.complete(&step.effects, pass);
        }
        None
    }

    /// Returns the address that a step reads. If the step reads many bytes that another rank has written, and
    /// processors are far from each other (this rank then uses non-temporal stores), prefetches them.
    #[inline(always)]
    fn prefetch_source(
        &self,
        from: ResolvedOperand,
        call_buffers: &CallBuffers<'_>,
        len: usize,
    ) -> *const u8 {
        let place = call_buffers.place(from, len);
        if len >= store_policy::SHORT
            && matches!(from, ResolvedOperand::Mapped(_))
            && self.store_policy().is_non_temporal()
        {
            let lines = (0..len.min(PREFETCH_BYTES_MAX)).step_by(copy::LINE);
            lines.for_each(|at| prefetch::for_reading(place.wrapping_add(at)));
        }
        place
    }

    /// Runs an action. Returns false if only the driver can run it.
    #[inline(always)]
    fn run_step_action(&self, action: &ResolvedAction, call_buffers: &CallBuffers<'_>) -> bool {
        match *action {
            ResolvedAction::Nothing => {}
            ResolvedAction::KernelCopy(_) | ResolvedAction::AsCommand => return false,
            ResolvedAction::Copy(from, to, len, is_passed_on) => {
                let from = self.prefetch_source(from, call_buffers, len);
                // SAFETY: each range is either job memory, resolved for `len` bytes and still mapped, or a range that
                // `part` or `part_mut` has checked to be inside a buffer lent by the caller. A lent buffer is not job
                // memory that a step names; two ranges of job memory may overlap only if the schedule is wrong, and
                // then `copy` still writes only the destination.
                unsafe {
                    match to {
                        ResolvedOperand::Mapped(to) if is_passed_on => {
                            self.store_policy().copy(from, to.as_ptr(), len)
                        }
                        ResolvedOperand::Mapped(to) => copy::copy(from, to.as_ptr(), len),
                        ResolvedOperand::CallBuffers(buffer, at) => {
                            copy::copy(from, call_buffers.buffers[buffer].part_mut(at, len as u64), len);
                        }
                    }
                }
                copy::fence_after_copy(len);
            }
            ResolvedAction::Combine(from, ResolvedOperand::CallBuffers(buffer, at), len, in_front) => {
                let from = self.prefetch_source(from, call_buffers, len);
                call_buffers.combine(from, call_buffers.own_mut(buffer, at, len), in_front);
            }
            ResolvedAction::Combine(from, ResolvedOperand::Mapped(to), len, in_front) => {
                let Some(how) = call_buffers.operation.builtin() else { return false };
                let (from, how) = (call_buffers.place(from, len), how.with_incoming_first(in_front));
                // SAFETY: both ranges were resolved for `len` bytes of job memory, which stays mapped.
                unsafe { how.combine_between(from, to.as_ptr(), len) };
            }
        }
        true
    }
}
