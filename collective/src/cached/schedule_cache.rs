//! Calls that are made again and again: from some call of a kind on its steps are arranged, and run as they stand.
//!
//! Calls of a kind are alike in operation, bytes and bytes of a value. The first few go by messages, which find members
//! that disagree about them; then the members prepare a walk together, among more than two one for each root. Which
//! calls have one, and which lose it to others, follows from the order of calls on the communicator and from what is
//! equal on all members: so all do alike, whatever other threads do on other communicators.
//!
//! Two members have one walk for both roots, with a way for each: where roots change, who comes to give has just taken
//! something from the very place where it lays that out (`algorithm/copy_in_copy_out.rs`).
//!
//! Long values go in pieces, which have walks of their own.

use crate::cached::autotune::VariantTrial;
use crate::communicator::Communicator;
use crate::mismatch::call_log::MismatchCheck;
use crate::plan::{PlanKind, PreparedPlan};
use std::sync::{MutexGuard, PoisonError};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::executor::{COMBINED_MAX, CallBuffers, Execution};
use tasuki_schedule::Schedule;
use tasuki_schedule::algorithm::ALGORITHMS;
use tasuki_schedule::selection::{
    BLOCKS_BYTES_MAX, CHUNK_BYTES, MEMBERS_MAX, MESSAGE_BYTES_MAX, inline_schedule,
};
use tasuki_schedule::shape::{CollectiveKind, Shape};

// What schedules let members combine for themselves, the executor has room for.
const _: () = assert!(COMBINED_MAX as u64 == tasuki_schedule::selection::VALUE_BYTES_MAX);

/// Calls of a kind that go by messages.
const BY_MESSAGES: u32 = 3;
/// Once in so many calls two members compare roots.
const COMPARED_EVERY: u64 = 32;
/// Kinds that are counted.
const KINDS_MAX: usize = 32;
/// Walks of a communicator.
const ENTRIES_MAX: usize = 128;
/// Bytes of memory that they take on a member, about.
const BYTES_MAX: u64 = 64 << 20;

/// A call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallKind {
    pub(crate) collective: CollectiveKind,
    pub(crate) root: usize,
    /// Of what a member gives, or of a block.
    pub(crate) bytes: usize,
    pub(crate) value_bytes: usize,
}

/// Steps that members have arranged.
#[derive(Debug)]
pub(crate) struct CachedSchedule {
    /// By which they are given up.
    pub(crate) number: u64,
    execution: Execution,
}

/// What calls of a kind go by.
#[derive(Debug)]
struct CacheEntry {
    now: CachedSchedule,
    bytes: u64,
    /// How that compares with another way, if there is one.
    trial: Option<VariantTrial>,
}

/// What is usual on a communicator.
#[derive(Debug, Default)]
pub(crate) struct ScheduleCache {
    /// Calls that could be done so, counted.
    calls: u64,
    /// How often each of the latest kinds was called, and when the last time.
    kinds: Vec<(u64, u32, u64)>,
    /// What walks are for; when they were last used; they, unless nobody can have one.
    keys: Vec<u64>,
    used: Vec<u64>,
    entries: Vec<Option<CacheEntry>>,
    /// A walk was left in the middle.
    is_broken: bool,
}

impl CallKind {
    /// Of so many values on each member, or in a block.
    pub(crate) fn of<T>(collective: CollectiveKind, root: Rank, values: usize) -> CallKind {
        let value_bytes = size_of::<T>();
        CallKind { collective, root: root.index(), bytes: values * value_bytes, value_bytes }
    }

    /// It in a word, without the root. None: such a call is not worth it, or too large.
    fn word(&self) -> Option<u64> {
        let fits = (1..=COMBINED_MAX).contains(&self.value_bytes) && self.bytes < 1 << 32;
        let word = (self.collective as u64) << 60 | (self.value_bytes as u64) << 47 | self.bytes as u64;
        fits.then_some(word)
    }

    /// The same with the root, unless the walk of so many ranks has a way for each.
    fn key(&self, ranks: usize) -> Option<u64> {
        Some(self.word()? | if ranks == 2 { 0 } else { (self.root as u64) << 32 })
    }

    /// Which way its walk goes.
    fn variant(&self, ranks: usize) -> usize {
        if ranks == 2 { self.root } else { 0 }
    }

    /// The schedules of its walk, one for each way, if there is one for each.
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

    /// A call that only prepares something.
    pub(crate) const OTHER: u64 = 0xf << 44;
    /// One that a panic has ended.
    pub(crate) const PANICKED: u64 = CallKind::OTHER | 1;

    /// It in 48 bits, as members note it: operation, root, something of the size of a value, bytes.
    #[inline]
    pub(crate) fn log_word(&self) -> u64 {
        let value = (self.value_bytes as u64).min(0x7f);
        (self.collective as u64) << 44
            | (self.root as u64 & 0x1f) << 39
            | value << 32
            | self.bytes as u64 & 0xffff_ffff
    }

    /// It in a word, where roots may be many.
    #[inline]
    pub(crate) fn notice_word(&self) -> u64 {
        self.log_word() | (self.root as u64 >> 5) << 48
    }

    /// The name of a call that was noted; none if it prepares something.
    pub(crate) fn name_of(noted: u64) -> Option<&'static str> {
        let of = |name: &CollectiveKind| *name as u64 == noted >> 44 & 0xf;
        let operations = ALGORITHMS.iter().map(|algorithm| algorithm.operation);
        operations.filter(of).map(CollectiveKind::name).next()
    }

    pub(crate) fn root_of(noted: u64) -> u64 {
        noted >> 39 & 0x1f
    }

    pub(crate) fn bytes_of(noted: u64) -> u64 {
        noted & 0xffff_ffff
    }

    fn shape(&self, ranks: usize) -> Shape {
        let shape = Shape::new(self.collective, ranks, self.root, self.bytes as u64);
        Shape { value_bytes: self.value_bytes as u64, in_order: true, ..shape }
    }

    /// Bytes that are moved in one go.
    fn piece(&self) -> usize {
        let is_short = self.bytes <= CHUNK_BYTES as usize - COMBINED_MAX; // as most are, of any values
        match is_short || !self.collective.is_divisible() {
            true => self.bytes,
            false => self.bytes.min(CHUNK_BYTES as usize / self.value_bytes * self.value_bytes),
        }
    }

    /// Bytes that a walk of it takes on a member, about.
    fn memory(&self, ranks: usize) -> u64 {
        let shape = self.shape(ranks);
        let places = if ranks == 2 { 1 } else { 4 };
        places * if self.collective.is_divisible() { shape.bytes_of(0) } else { shape.bytes_of_all() }
    }
}

impl CacheEntry {
    /// The numbers of all that it has.
    fn numbers(self) -> impl Iterator<Item = u64> {
        let usual = self.trial.as_ref().and_then(VariantTrial::usual).map(|usual| usual.number);
        usual.into_iter().chain([self.now.number])
    }
}

impl ScheduleCache {
    /// One more call of that kind. Whether it is usual.
    fn is_frequent(&mut self, word: u64) -> bool {
        let calls = self.calls;
        if let Some((_, times, last)) = self.kinds.iter_mut().find(|(known, ..)| *known == word) {
            (*times, *last) = (times.saturating_add(1), calls);
            return *times > BY_MESSAGES;
        }
        if self.kinds.len() == KINDS_MAX {
            let oldest = (0..KINDS_MAX).min_by_key(|&at| self.kinds[at].2).unwrap_or(0);
            self.kinds.swap_remove(oldest);
        }
        self.kinds.push((word, 1, calls));
        false
    }

    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        self.keys.iter().position(|&known| known == key)
    }

    fn enter(&mut self, key: u64, entry: Option<CacheEntry>) -> usize {
        self.keys.push(key);
        self.used.push(self.calls);
        self.entries.push(entry);
        self.keys.len() - 1
    }

    /// Room for a walk of so many bytes: the numbers of plans that are given up for it.
    fn make_room(&mut self, bytes: u64) -> Vec<u64> {
        let mut given_up = Vec::new();
        loop {
            let all: u64 = self.entries.iter().flatten().map(|entry| entry.bytes).sum();
            let is_enough = self.keys.len() < ENTRIES_MAX && (all + bytes <= BYTES_MAX || all == 0);
            if is_enough {
                return given_up;
            }
            let oldest = (0..self.keys.len()).min_by_key(|&at| self.used[at]).unwrap_or(0);
            self.keys.swap_remove(oldest);
            self.used.swap_remove(oldest);
            given_up.extend(self.entries.swap_remove(oldest).into_iter().flat_map(CacheEntry::numbers));
        }
    }
}

impl Communicator {
    fn lock_cache(&self) -> MutexGuard<'_, ScheduleCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a call that has begun by its walk, if it is a usual one. Whether it was.
    #[inline]
    pub(crate) fn runs_cached(
        &self,
        kind: &CallKind,
        lent: CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        Ok(self.may_use_cache(kind) && self.run_if_frequent(kind, &lent, call)?)
    }

    /// Whether members would rather walk than send each other messages.
    #[inline]
    fn may_use_cache(&self, kind: &CallKind) -> bool {
        let (ranks, bytes) = (self.size(), kind.bytes as u64);
        let is_much = ranks > 2 || bytes > MESSAGE_BYTES_MAX || kind.collective.is_mutual();
        let is_little =
            kind.collective.is_divisible() || bytes.saturating_mul(ranks as u64) <= BLOCKS_BYTES_MAX;
        let is_something = bytes > 0 || kind.collective == CollectiveKind::Barrier;
        let is_among_few = (2..=MEMBERS_MAX).contains(&ranks);
        is_much && is_little && is_something && is_among_few && self.worker().reaches_words()
    }

    // What the call lends stays where the caller has it: words that were just stored by halves are slow to copy.
    fn run_if_frequent(
        &self,
        kind: &CallKind,
        lent: &CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        let Some(word) = kind.word() else { return Ok(false) };
        let mut cache = self.lock_cache();
        if cache.is_broken {
            return self.refuse_broken(call);
        }
        cache.calls += 1;
        if cache.calls.is_multiple_of(COMPARED_EVERY) {
            self.compare_roots(kind, call)?;
        }
        let piece = kind.piece();
        if piece < kind.bytes {
            return self.run_in_pieces(&mut cache, kind, piece, lent, call);
        }
        let Some(at) = self.cached_for(&mut cache, kind, Some(word), call)? else { return Ok(false) };
        self.run_cached(&mut cache, at, kind, lent, call).map(|()| true)
    }

    /// Whether a panic has left a walk in the middle.
    pub(crate) fn was_left_by_panic(&self) -> bool {
        self.cache.is_poisoned()
    }

    /// A walk was left in the middle: by a panic, and then others wait for its steps; or since a member has gone.
    #[cold]
    fn refuse_broken(&self, call: &dyn Fn() -> String) -> Result<bool> {
        if !self.was_left_by_panic() {
            return Ok(false);
        }
        let text = "the operation of an earlier call panicked: this communicator is of no more use, or until quiesce()";
        Err(self.worker().fault(Cause::Argument(text.into()), call))
    }

    /// Two members that both are the root wait for nothing, so nobody would look whether they disagree.
    #[cold]
    fn compare_roots(&self, kind: &CallKind, call: &dyn Fn() -> String) -> Result<()> {
        let mismatch_check = self.mismatch_check.get().and_then(Option::as_ref);
        let mismatch_check = mismatch_check.filter(|_| self.size() == 2 && kind.collective.is_rooted());
        let probe_error = mismatch_check.and_then(MismatchCheck::mismatch_of_two);
        probe_error.map_or(Ok(()), |cause| Err(self.worker().fault(cause, call)))
    }

    #[inline(never)]
    fn run_in_pieces(
        &self,
        cache: &mut ScheduleCache,
        kind: &CallKind,
        piece: usize,
        lent: &CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        let Some([first, last]) = self.cached_for_pieces(cache, kind, piece, call)? else { return Ok(false) };
        for from in (0..kind.bytes).step_by(piece) {
            let to = kind.bytes.min(from + piece);
            let at = if to - from == piece { first } else { last };
            self.run_cached(cache, at, kind, &lent.piece(from..to), call)?;
        }
        Ok(true)
    }

    /// Goes once through the walk that stands there.
    #[inline]
    fn run_cached(
        &self,
        cache: &mut ScheduleCache,
        at: usize,
        kind: &CallKind,
        lent: &CallBuffers<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let Some(CacheEntry { now: CachedSchedule { execution, .. }, .. }) = &mut cache.entries[at] else {
            let cause = Cause::Bug("a cached execution that was found is gone".into());
            return Err(self.worker().fault(cause, call));
        };
        cache.is_broken = true; // unless it comes to its end
        execution.choose_variant(kind.variant(self.size()));
        self.worker().execute(execution, lent, call)?;
        cache.is_broken = false;
        Ok(())
    }

    /// The walk of pieces, and that of the last one.
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
        // The other one may have changed its place, or lost it.
        let first = first.key(self.size()).and_then(|key| cache.find(key));
        Ok(first.map(|first| [first, at]))
    }

    /// The walk of a kind, or of a piece. Where there is none it is arranged, if calls of the kind of that word are
    /// usual, or no word is given. None: they are not, or nobody can have one.
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
        cache.used[at] = cache.calls;
        if let Some(CacheEntry { now, trial: Some(trial), .. }) = &mut cache.entries[at]
            && trial.count(|| self.worker().now_ns())
        {
            let continued = self.continue_trial(trial, now, kind, call);
            cache.is_broken |= continued.is_err(); // members may not go the same way any more
            continued?;
        }
        Ok(cache.entries[at].is_some().then_some(at))
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
        for number in cache.make_room(bytes) {
            self.give_up(number);
        }
        let schedules =
            kind.variant_schedules(self.size(), |shape| Some(inline_schedule(shape))).unwrap_or_default();
        let compiled = self.compile_variants(schedules, false, call)?;
        let known = compiled.map(|now| CacheEntry { now, bytes, trial: VariantTrial::of(kind, self.size()) });
        Ok(cache.enter(key, known))
    }

    /// The steps of those schedules, one for each way. None: nobody can have them.
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
                self.give_up(number);
                Ok(None)
            }
            // Members who came with another call.
            Err(cause @ Cause::Argument(_)) => Err(self.worker().fault(cause, call)),
            Err(_) => Ok(None),
        }
    }

    /// Forgets all walks. Collective.
    pub(crate) fn clear_cache(&self) {
        let cache = std::mem::take(&mut *self.lock_cache());
        self.cache.clear_poison();
        cache
            .entries
            .into_iter()
            .flatten()
            .flat_map(CacheEntry::numbers)
            .for_each(|number| self.give_up(number));
    }
}
