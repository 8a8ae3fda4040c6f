//! Keeps the memory of dropped plans until no member can reach it any more.
//!
//! A plan can be freed when all members have dropped it and all starts of all members have run. Members make plans
//! together, so a plan has the same number on all members. Each member sends one word to all others when they make the
//! next plan, or in [quiesce](crate::Communicator::quiesce). Let `base` be the number of the first plan that is not
//! freed. Bit n of the word is set if the member no longer needs plan `base` + n.

use crate::plan::PlanState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The plans of a communicator, and those that wait to be freed.
#[derive(Debug, Default)]
pub(crate) struct DeferredFree {
    /// The number of the next plan.
    next: u64,
    /// All plans with smaller numbers are freed or lost.
    base: u64,
    /// Bit n: plan `base` + n is freed or lost.
    over: u64,
    /// The plans that this member has not freed.
    plans: BTreeMap<u64, DroppedPlan>,
    /// The plans that can never be freed: their memory stays.
    lost: Vec<Arc<PlanState>>,
}

#[derive(Debug)]
struct DroppedPlan {
    plan: Arc<PlanState>,
    /// True if this member has dropped it.
    is_dropped: bool,
}

/// Number of plans in a word.
const WINDOW: u64 = u64::BITS as u64;

impl DeferredFree {
    /// Adds a plan that was made. Returns its number.
    pub(crate) fn enter(&mut self, plan: Arc<PlanState>) -> u64 {
        self.next += 1;
        self.plans.insert(self.next - 1, DroppedPlan { plan, is_dropped: false });
        self.next - 1
    }

    /// Marks a plan as dropped by this member.
    pub(crate) fn take(&mut self, number: u64) {
        if let Some(entry) = self.plans.get_mut(&number) {
            entry.is_dropped = true;
        }
    }

    /// Returns the plans that this member has not freed.
    pub(crate) fn all(&self) -> Vec<Arc<PlanState>> {
        self.plans.values().map(|entry| entry.plan.clone()).collect()
    }

    /// Returns a word with the bits of the plans that this member has dropped.
    pub(crate) fn dropped_word(&self) -> u64 {
        let window = self.plans.range(self.base..self.base.saturating_add(WINDOW));
        window.filter(|(_, entry)| entry.is_dropped).fold(0, |word, (n, _)| word | 1 << (n - self.base))
    }

    /// Returns the plans whose bits are set in a word.
    pub(crate) fn among(&self, word: u64) -> Vec<(u64, Arc<PlanState>)> {
        let numbers = (0..WINDOW).filter(|at| word >> at & 1 != 0).map(|at| self.base + at);
        numbers.filter_map(|number| Some((number, self.plans.get(&number)?.plan.clone()))).collect()
    }

    /// Records that a plan can never be freed. All members must record it.
    pub(crate) fn lose(&mut self, number: u64) {
        self.lost.extend(self.plans.remove(&number).map(|entry| entry.plan));
        self.advance(1 << (number - self.base));
    }

    /// Returns a word with the bits of the plans that this member has dropped and whose starts have all run.
    pub(crate) fn word(&self) -> u64 {
        let window = self.plans.range(self.base..self.base.saturating_add(WINDOW));
        let done = window.filter(|(_, entry)| entry.is_dropped && entry.plan.has_run_all());
        done.fold(0, |word, (number, _)| word | 1 << (number - self.base))
    }

    /// Takes the words of all members, and returns the plans that no member needs any more.
    pub(crate) fn settle(&mut self, words: impl Iterator<Item = u64>) -> Vec<Arc<PlanState>> {
        let all = words.fold(u64::MAX, |all, word| all & word);
        let numbers = (0..WINDOW).filter(|at| all >> at & 1 != 0).map(|at| self.base + at);
        let over = numbers.filter_map(|number| Some(self.plans.remove(&number)?.plan)).collect();
        self.advance(all);
        over
    }

    fn advance(&mut self, over: u64) {
        self.over |= over;
        let run = u64::from(self.over.trailing_ones());
        self.over = self.over.checked_shr(run as u32).unwrap_or(0);
        self.base += run;
    }
}
