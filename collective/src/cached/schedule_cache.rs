//! Repeated collective calls: from the fourth call of a kind on, the members keep compiled steps and run those. The
//! cache itself is [`ScheduleCache`], in `entry.rs`.
//!
//! Calls of one kind have the same collective, bytes, class of the type of values and
//! reduction. The first three calls of a kind use
//! messages, which find members that disagree. Then the members compile an execution together; if there are more than
//! two members, one for each root. The order of calls on the communicator, and values that are equal on all members,
//! decide which calls have an entry in the cache and which entry is evicted. So all members decide alike, whatever
//! their other threads do on other communicators.
//!
//! Between two members, one execution serves both roots. It has one variant of the steps for each root. The variants
//! use the same buffers: a rank that becomes the root writes to the buffer that it has just read, whose lines are in
//! its cache (`schedule/src/algorithm/copy_in_copy_out.rs`).

use crate::cached::entry::{CacheEntry, CachedSchedule, ScheduleCache};
use crate::cached::variant_trial::VariantTrial;
use crate::call_kind::{CallKind, CallSchedules};
use crate::communicator::Communicator;
use crate::plan::{PlanKind, PreparedPlan};
use std::sync::{MutexGuard, PoisonError};
use tasuki_core::base::{Cause, Result, ValueKind};
use tasuki_core::engine::executor::CallBuffers;
use tasuki_schedule::selection::MESSAGE_BYTES_MAX;

impl Communicator {
    fn lock_cache(&self) -> MutexGuard<'_, ScheduleCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the cached execution of a call that has begun. Returns false if there is none.
    #[inline]
    pub(crate) fn try_cached(
        &self,
        kind: &CallKind,
        buffers: CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        Ok(self.may_use_cache(kind) && self.run_if_frequent(kind, &buffers, call)?)
    }

    /// Returns true if compiled steps are expected to be faster for such calls than messages.
    #[inline]
    fn may_use_cache(&self, kind: &CallKind) -> bool {
        let (ranks, bytes) = (self.size(), kind.bytes as u64);
        let is_much = ranks > 2 || bytes > MESSAGE_BYTES_MAX || kind.collective.is_mutual();
        is_much && kind.can_be_compiled(ranks) && self.worker().reaches_words()
    }

    // The call's buffers are passed by reference: a copy would load words right after parts of them were stored,
    // which is slow.
    fn run_if_frequent(
        &self,
        kind: &CallKind,
        buffers: &CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        let Some(word) = kind.word() else { return Ok(false) };
        let mut cache = self.lock_cache();
        cache.count();
        let Some(at) = self.cached_for(&mut cache, kind, word, call)? else { return Ok(false) };
        self.run_entry(&mut cache, at, kind, buffers, call).map(|()| true)
    }

    /// Runs the execution of an entry once.
    #[inline]
    fn run_entry(
        &self,
        cache: &mut ScheduleCache,
        at: usize,
        kind: &CallKind,
        buffers: &CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let Some(CacheEntry { now: CachedSchedule { execution, .. }, .. }) = cache.at(at) else {
            let cause = Cause::Bug("a cached execution that was found is gone".into());
            return Err(self.worker().fault(cause, call));
        };
        execution.begin_call(kind.variant(self.size()), self.channel.tag());
        self.worker().execute(execution, buffers, call)
    }

    /// Returns the entry for a kind, which `word` names. If there is none, and calls of that kind are frequent, the
    /// members compile one. None: these are not frequent, or the members cannot have an entry.
    #[inline(always)]
    fn cached_for(
        &self,
        cache: &mut ScheduleCache,
        kind: &CallKind,
        word: u64,
        call: &dyn Fn() -> String,
    ) -> Result<Option<usize>> {
        let Some(key) = kind.key(self.size()) else { return Ok(None) };
        let at = match cache.find(key) {
            Some(at) => at,
            None if !cache.is_frequent(word) => return Ok(None),
            None => self.compile_for_cache(cache, key, kind, call)?,
        };
        let Some(CacheEntry { now, trial }) = cache.used(at) else { return Ok(None) };
        if let Some(trial) = trial
            && trial.count(|| self.worker().now_ns())
        {
            self.continue_trial(trial, now, kind, call)?;
        }
        Ok(Some(at))
    }

    #[cold]
    fn compile_for_cache(
        &self,
        cache: &mut ScheduleCache,
        key: u64,
        kind: &CallKind,
        call: &dyn Fn() -> String,
    ) -> Result<usize> {
        let bytes = kind.memory(self.size());
        cache.make_room(bytes).into_iter().for_each(|entry| self.evict(entry));
        let schedules = kind.schedules(self.size(), |pieces| Some(pieces.schedules()));
        let compiled = match schedules {
            Some(schedules) => self.compile_variants(schedules, false, call)?,
            None => None,
        };
        let known = compiled.map(|now| CacheEntry { now, trial: VariantTrial::of(kind, self.size()) });
        Ok(cache.enter(key, bytes, known))
    }

    /// Compiles those schedules. None: the members cannot have compiled steps.
    pub(crate) fn compile_variants(
        &self,
        schedules: CallSchedules,
        are_exposed: bool,
        call: &dyn Fn() -> String,
    ) -> Result<Option<CachedSchedule>> {
        let schedule = schedules.all[0].clone();
        let part = schedule.part(self.rank().index());
        match self.negotiate(
            (&schedule, ValueKind::BYTES),
            &part,
            PlanKind::Calls(schedules, are_exposed),
            call,
        )? {
            Ok(PreparedPlan { number, execution: Some(execution), .. }) => {
                Ok(Some(CachedSchedule { number, execution }))
            }
            Ok(PreparedPlan { number, execution: None, .. }) => {
                self.plans().give_up(number);
                Ok(None)
            }
            // Another member is in another call, so this one cannot compile with it.
            Err(cause @ Cause::Mismatch { .. }) => Err(self.worker().fault(cause, call)),
            Err(_) => Ok(None),
        }
    }

    /// Frees all executions. Collective.
    pub(crate) fn clear_cache(&self) {
        let cache = std::mem::take(&mut *self.lock_cache());
        self.cache.clear_poison();
        cache.into_entries().for_each(|entry| self.evict(entry));
    }

    fn evict(&self, entry: CacheEntry) {
        entry.numbers().for_each(|number| self.plans().give_up(number));
    }
}
