//! Repeated collective calls: from the fourth call of a kind on, the members keep compiled steps and run those.
//!
//! Calls of one kind have the same collective, bytes, and bytes of a value. The first three calls of a kind use
//! messages, which find members that disagree. Then the members compile an execution together; if there are more than
//! two members, one for each root. The order of calls on the communicator, and values that are equal on all members,
//! decide which calls have an entry in the cache and which entry is evicted. So all members decide alike, whatever
//! their other threads do on other communicators.
//!
//! Between two members, one execution serves both roots. It has one variant of the steps for each root. The variants
//! use the same buffers: a rank that becomes the root writes to the buffer that it has just read, whose lines are in
//! its cache (`schedule/src/algorithm/copy_in_copy_out.rs`).
//!
//! Long values are handled in pieces, which have executions of their own.

use crate::cached::autotune::VariantTrial;
use crate::cached::kind_cache::KindCache;
use crate::communicator::Communicator;
use crate::failure::call_log::CallLog;
use crate::failure::signature::{element_code, reduction_code};
use crate::plan::{PlanKind, PreparedPlan};
use std::sync::{MutexGuard, PoisonError};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::executor::{COMBINED_MAX, CallBuffers, Execution};
use tasuki_core::queue::reduction::Reduction;
use tasuki_schedule::Schedule;
use tasuki_schedule::selection::{
    BLOCKS_BYTES_MAX, CHUNK_BYTES, MEMBERS_MAX, MESSAGE_BYTES_MAX, calling_thread_schedule,
};
use tasuki_schedule::shape::{CollectiveKind, Shape};

// The executor has room for the longest value that schedules let members combine on their own.
const _: () = assert!(COMBINED_MAX as u64 == tasuki_schedule::selection::VALUE_BYTES_MAX);
// A key has eleven bits for the root.
const _: () = assert!(MEMBERS_MAX <= 1 << 11);

/// Two members compare roots once in this number of calls.
const COMPARED_EVERY: u64 = 32;
/// What calls must have in common to use the same compiled steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallKind {
    pub(crate) collective: CollectiveKind,
    pub(crate) root: usize,
    /// Bytes of a member's values, or of a block.
    pub(crate) bytes: usize,
    pub(crate) value_bytes: usize,
    /// The codes of the element type and the reduction, as in the [signature](crate::failure::signature).
    pub(crate) element: u8,
    pub(crate) reduction: u8,
}

/// An execution that the members have compiled together.
#[derive(Debug)]
pub(crate) struct CachedSchedule {
    /// The number of its plan, which is needed to free it.
    pub(crate) number: u64,
    execution: Execution,
}

/// The steps for calls of one kind.
#[derive(Debug)]
pub(crate) struct CacheEntry {
    now: CachedSchedule,
    /// The comparison with another variant, if there is one for this kind.
    trial: Option<VariantTrial>,
}

/// The executions of a communicator.
pub(crate) type ScheduleCache = KindCache<CacheEntry>;

impl CallKind {
    /// The kind of a call with `values` values on each member, or in a block.
    #[inline]
    pub(crate) fn of<T: 'static>(collective: CollectiveKind, root: Rank, values: usize) -> CallKind {
        let (value_bytes, element) = (size_of::<T>(), element_code::<T>());
        let bytes = values * value_bytes;
        CallKind { collective, root: root.index(), bytes, value_bytes, element, reduction: 0 }
    }

    /// Returns the kind of a call that combines values by that reduction, or by an operation of the program.
    #[inline]
    pub(crate) fn combined(self, known: Option<Reduction>) -> CallKind {
        CallKind { reduction: reduction_code(known), ..self }
    }

    /// Returns this kind as a word, without the root. None: the cache does not serve such calls. Calls with different
    /// element types or reductions have separate entries, even if their steps are equal. So members that disagree about
    /// these wait for each other, and a wait finds the mismatch.
    pub(crate) fn word(&self) -> Option<u64> {
        let fits = (1..=COMBINED_MAX).contains(&self.value_bytes) && self.bytes < 1 << 32;
        // The element type determines the bytes of a value, if the type has a code.
        let value =
            if self.element == 0 { self.value_bytes } else { COMBINED_MAX + usize::from(self.element) };
        let how = (self.collective as u64) << 60 | (value as u64) << 47 | u64::from(self.reduction) << 43;
        fits.then_some(how | self.bytes as u64)
    }

    /// Returns the word, with the root unless the execution has a variant for each root.
    pub(crate) fn key(&self, ranks: usize) -> Option<u64> {
        Some(self.word()? | if ranks == 2 { 0 } else { (self.root as u64) << 32 })
    }

    /// Returns the variant of the execution for this root.
    pub(crate) fn variant(&self, ranks: usize) -> usize {
        if ranks == 2 { self.root } else { 0 }
    }

    /// Returns the schedules of the execution, one for each variant. None if `of` returns none for a variant.
    pub(crate) fn variant_schedules(
        &self,
        ranks: usize,
        of: impl Fn(&Shape) -> Option<Schedule>,
    ) -> Option<Vec<Schedule>> {
        let roots = match self.collective.is_rooted() && ranks == 2 {
            true => 0..2,
            false => self.root..self.root + 1,
        };
        roots.map(|root| of(&CallKind { root, ..*self }.shape(ranks))).collect()
    }

    fn shape(&self, ranks: usize) -> Shape {
        let shape = Shape::new(self.collective, ranks, self.root, self.bytes as u64);
        Shape { value_bytes: self.value_bytes as u64, in_order: true, ..shape }
    }

    /// Returns true if members that reach each other's memory may compile steps for such calls.
    #[inline]
    pub(crate) fn can_be_compiled(&self, ranks: usize) -> bool {
        let is_little = self.collective.is_divisible()
            || (self.bytes as u64).saturating_mul(ranks as u64) <= BLOCKS_BYTES_MAX;
        let is_something = self.bytes > 0 || self.collective == CollectiveKind::Barrier;
        is_little && is_something && (2..=MEMBERS_MAX).contains(&ranks)
    }

    /// Returns the bytes of a piece.
    pub(crate) fn piece(&self) -> usize {
        // True for most calls, which then need no division.
        let is_short = self.bytes <= CHUNK_BYTES as usize - COMBINED_MAX;
        match is_short || !self.collective.is_divisible() {
            true => self.bytes,
            false => self.bytes.min(CHUNK_BYTES as usize / self.value_bytes * self.value_bytes),
        }
    }

    /// Returns the bytes that an execution for this kind uses on a member, approximately.
    pub(crate) fn memory(&self, ranks: usize) -> u64 {
        let shape = self.shape(ranks);
        let places = if ranks == 2 { 1 } else { 4 };
        places * if self.collective.is_divisible() { shape.bytes_of(0) } else { shape.bytes_of_all() }
    }
}

impl CacheEntry {
    /// Returns the numbers of the plans that its executions belong to.
    fn numbers(self) -> impl Iterator<Item = u64> {
        let usual = self.trial.as_ref().and_then(VariantTrial::usual).map(|usual| usual.number);
        usual.into_iter().chain([self.now.number])
    }
}

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
        if cache.count().is_multiple_of(COMPARED_EVERY) {
            self.compare_roots(kind, call)?;
        }
        let piece = kind.piece();
        if piece < kind.bytes {
            return self.run_in_pieces(&mut cache, kind, piece, buffers, call);
        }
        let Some(at) = self.cached_for(&mut cache, kind, Some(word), call)? else { return Ok(false) };
        self.run_entry(&mut cache, at, kind, buffers, call).map(|()| true)
    }

    /// Compares the roots of two members. If both are the root, neither waits, so no wait probe finds the mismatch.
    #[cold]
    fn compare_roots(&self, kind: &CallKind, call: &dyn Fn() -> String) -> Result<()> {
        let log = self.monitor().log().filter(|_| self.size() == 2 && kind.collective.is_rooted());
        let probe_error = log.and_then(CallLog::mismatch_of_two);
        probe_error.map_or(Ok(()), |cause| Err(self.worker().fault(cause, call)))
    }

    #[inline(never)]
    fn run_in_pieces(
        &self,
        cache: &mut ScheduleCache,
        kind: &CallKind,
        piece: usize,
        buffers: &CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        let Some([first, last]) = self.cached_for_pieces(cache, kind, piece, call)? else { return Ok(false) };
        for from in (0..kind.bytes).step_by(piece) {
            let to = kind.bytes.min(from + piece);
            let at = if to - from == piece { first } else { last };
            self.run_entry(cache, at, kind, &buffers.piece(from..to), call)?;
        }
        Ok(true)
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
        execution.choose_variant(kind.variant(self.size()));
        self.worker().execute(execution, buffers, call)
    }

    /// Returns the entries for pieces of full length and for the last piece.
    fn cached_for_pieces(
        &self,
        cache: &mut ScheduleCache,
        kind: &CallKind,
        piece: usize,
        call: &dyn Fn() -> String,
    ) -> Result<Option<[usize; 2]>> {
        let (first, rest) = (CallKind { bytes: piece, ..*kind }, kind.bytes % piece);
        let Some(at) = self.cached_for(cache, &first, kind.word(), call)? else { return Ok(None) };
        if rest == 0 {
            return Ok(Some([at; 2]));
        }
        let last = CallKind { bytes: rest, ..*kind };
        let Some(at) = self.cached_for(cache, &last, None, call)? else { return Ok(None) };
        // Making room for the second entry may have moved or removed the first.
        let first = first.key(self.size()).and_then(|key| cache.find(key));
        Ok(first.map(|first| [first, at]))
    }

    /// Returns the entry for a kind, or for a piece. If there is none, the members compile one; but if `counted` is a
    /// kind, only once calls of that kind are frequent. None: these are not frequent, or the members cannot have an
    /// entry.
    #[inline(always)]
    fn cached_for(
        &self,
        cache: &mut ScheduleCache,
        kind: &CallKind,
        counted: Option<u64>,
        call: &dyn Fn() -> String,
    ) -> Result<Option<usize>> {
        let Some(key) = kind.key(self.size()) else { return Ok(None) };
        let at = match cache.find(key) {
            Some(at) => at,
            None if counted.is_some_and(|word| !cache.is_frequent(word)) => return Ok(None),
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
        let schedules = kind
            .variant_schedules(self.size(), |shape| Some(calling_thread_schedule(shape)))
            .unwrap_or_default();
        let compiled = self.compile_variants(schedules, false, call)?;
        let known = compiled.map(|now| CacheEntry { now, trial: VariantTrial::of(kind, self.size()) });
        Ok(cache.enter(key, bytes, known))
    }

    /// Compiles those schedules, one for each variant. None: the members cannot have compiled steps.
    pub(crate) fn compile_variants(
        &self,
        mut schedules: Vec<Schedule>,
        are_exposed: bool,
        call: &dyn Fn() -> String,
    ) -> Result<Option<CachedSchedule>> {
        let schedule = schedules.remove(0);
        let part = schedule.part(self.rank().index());
        match self.negotiate(&schedule, &part, PlanKind::Calls(schedules, are_exposed), call)? {
            Ok(PreparedPlan { number, execution: Some(execution), .. }) => {
                Ok(Some(CachedSchedule { number, execution }))
            }
            Ok(PreparedPlan { number, execution: None, .. }) => {
                self.plans().give_up(number);
                Ok(None)
            }
            // Another member is in another call, so this one cannot compile with it.
            Err(cause @ Cause::Argument(_)) => Err(self.worker().fault(cause, call)),
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
