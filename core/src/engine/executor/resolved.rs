//! Steps whose operands and signals are resolved to memory that this process has mapped.
#![allow(unsafe_code)]
//! Unsafe: pointers to job memory, which the fabric keeps mapped while it lives.

use super::kernel_copy::KernelCopy;
use super::operand::ResolvedOperand;
use super::start_tags::{SeenSignal, TAGS, Tags};
use super::step::{FlagSpec, Operand, PerStart, StepAction, WaitSpec};
use crate::base::sync::Ordering;
use crate::base::{Cause, Rank};
use crate::engine::sync::inline_flag::InlineFlag;
use crate::engine::wait::condition::Condition;
use crate::engine::worker::Worker;
use crate::fabric::{DirectCell, SignalCell, certainly_reached};
use crate::segment::GlobalAddress;
use std::ptr::NonNull;

/// A step. `E` is what its driver does when the action is done: which signals it raises, and how.
#[derive(Debug)]
pub(in crate::engine) struct ResolvedStep<E> {
    pub(in crate::engine) wait: Option<ResolvedWait>,
    pub(in crate::engine) action: ResolvedAction,
    pub(in crate::engine) effects: E,
}

#[derive(Debug)]
pub(in crate::engine) struct ResolvedWait {
    pub(in crate::engine) cell: DirectCell,
    /// The place of the value last read among those that the driver keeps, if it keeps any.
    pub(super) seen: usize,
    count: PerStart,
    starts_ago: usize,
    pub(super) by: Option<Rank>,
    pub(super) flag: Option<ResolvedFlag>,
}

/// What a step that waits has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WaitState {
    Met,
    Unmet,
    /// The condition is met by a raise or a flag with another tag: the rank behind it is in another call.
    OtherTag,
}

/// An inline flag, resolved to its word.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResolvedFlag {
    word: NonNull<InlineFlag>,
    pub(super) number: PerStart,
}

/// An action with resolved operands.
#[derive(Debug)]
pub(in crate::engine) enum ResolvedAction {
    Nothing,
    /// From, to, and the number of bytes. True if another rank probably reads the bytes next.
    Copy(ResolvedOperand, ResolvedOperand, usize, bool),
    /// From, into, and the number of bytes. True if the values at the first operand are the left ones.
    Combine(ResolvedOperand, ResolvedOperand, usize, bool),
    /// A copy from or into a buffer that another rank exposes. Its driver runs it.
    KernelCopy(KernelCopy),
    /// The step has to be run as a command, which may also use memory that is not mapped.
    AsCommand,
}

// SAFETY: a pointer to an atomic in shared memory that stays mapped while the fabric lives.
unsafe impl Send for ResolvedFlag {}
// SAFETY: a pointer to an atomic in shared memory that stays mapped while the fabric lives.
unsafe impl Sync for ResolvedFlag {}

impl ResolvedWait {
    /// Returns whether the condition is met. The flag or the raise must have the tag of its start. Reads the signal
    /// only if its last seen value does not show that the condition is met; the tags of later starts, which were seen
    /// with it, are compared when steps wait for these.
    #[inline(always)]
    pub(super) fn state(&self, pass: u64, seen: &mut [SeenSignal], tags: &Tags) -> WaitState {
        if let Some(flag) = &self.flag {
            return match flag.word().tag_of(flag.number.in_pass(pass)) {
                None => WaitState::Unmet,
                Some(tag) if tag == tags.of(0) => WaitState::Met,
                Some(_) => WaitState::OtherTag,
            };
        }
        let (count, seen) = (self.count.in_pass(pass), &mut seen[self.seen]);
        if !certainly_reached(seen.value, count) {
            seen.value = self.cell.counter().load(Ordering::Acquire); // SYNC signal-raise
            seen.tags = self.cell.tags();
            if !certainly_reached(seen.value, count) {
                return WaitState::Unmet;
            }
        }
        let is_other = |tag: u32| self.starts_ago < TAGS && tag != tags.of(self.starts_ago);
        let start = tags.start().wrapping_sub(self.starts_ago as u32);
        if seen.tags.of(start).is_some_and(is_other) { WaitState::OtherTag } else { WaitState::Met }
    }

    /// Returns true if the condition is met. Always reads the flag or the signal.
    #[inline(always)]
    pub(in crate::engine) fn is_over_now(&self, pass: u64) -> bool {
        if let Some(flag) = &self.flag {
            return flag.word().tag_of(flag.number.in_pass(pass)).is_some();
        }
        certainly_reached(self.cell.counter().load(Ordering::Acquire), self.count.in_pass(pass)) // SYNC signal-raise
    }

    pub(super) fn condition(&self, pass: u64) -> Condition {
        Condition::Signal(SignalCell::Direct(self.cell), self.count.in_pass(pass), self.by)
    }
}

impl ResolvedFlag {
    #[inline(always)]
    pub(super) fn word(&self) -> &InlineFlag {
        // SAFETY: an aligned word of job memory that stays mapped while the fabric lives. Executions access it only
        // as an atomic.
        unsafe { self.word.as_ref() }
    }
}

impl Worker {
    /// Resolves the wait of a step, if it has one. `signals` are the sorted numbers of the signals whose last seen
    /// values the driver keeps. Returns the outer `None` if this rank does not reach the signal by loads.
    pub(in crate::engine) fn find_wait(
        &self,
        wait: Option<WaitSpec>,
        signals: &[u32],
    ) -> Result<Option<Option<ResolvedWait>>, Cause> {
        let Some(WaitSpec { signal, count, starts_ago, by, flag }) = wait else { return Ok(Some(None)) };
        let SignalCell::Direct(cell) = self.fabric().own_signal(signal)? else { return Ok(None) };
        let seen = signals.partition_point(|&other| other < signal);
        let flag = self.find_flag(flag)?;
        let starts_ago = starts_ago as usize;
        Ok(Some(Some(ResolvedWait { cell, seen, count, starts_ago, by, flag })))
    }

    pub(super) fn find_flag(&self, flag: Option<FlagSpec>) -> Result<Option<ResolvedFlag>, Cause> {
        let Some(FlagSpec { at, number }) = flag else { return Ok(None) };
        let place = self
            .place(at, size_of::<InlineFlag>() as u64)
            .filter(|place| place.cast::<InlineFlag>().is_aligned());
        let unseen = || Cause::Bug("an inline flag outside of mapped memory".into());
        Ok(Some(ResolvedFlag { word: place.ok_or_else(unseen)?.cast(), number }))
    }

    pub(super) fn place(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        self.fabric().mapped(at, len).or_else(|| self.fabric().map(at, len))
    }

    /// Resolves an action. `is_passed_on`: another rank probably reads the bytes next. Returns `None` if this rank does
    /// not reach the operands by loads and stores.
    pub(in crate::engine) fn find_action(
        &self,
        action: StepAction,
        is_passed_on: bool,
    ) -> Result<Option<ResolvedAction>, Cause> {
        let place = |operand: Operand, len: u64| match operand {
            Operand::CallBuffers(buffer, at) => Some(ResolvedOperand::CallBuffers(buffer, at)),
            Operand::At(at) => self.place(at, len).map(ResolvedOperand::Mapped),
            Operand::ExposedBuffer(..) => None,
        };
        if let Some(kernel_copy) = KernelCopy::of(self, action)? {
            return Ok(Some(ResolvedAction::KernelCopy(kernel_copy)));
        }
        let (from, to, len) = match action {
            StepAction::Nothing | StepAction::Copy(_, _, 0) | StepAction::Combine(_, _, 0, _) => {
                return Ok(Some(ResolvedAction::Nothing));
            }
            StepAction::Copy(from, to, len) | StepAction::Combine(from, to, len, _) => (from, to, len),
        };
        let (Some(from), Some(to)) = (place(from, len), place(to, len)) else { return Ok(None) };
        let len = len as usize;
        Ok(Some(match action {
            StepAction::Combine(_, _, _, in_front) => ResolvedAction::Combine(from, to, len, in_front),
            _ => ResolvedAction::Copy(from, to, len, is_passed_on),
        }))
    }
}
