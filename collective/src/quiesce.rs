//! Frees what all members of a communicator have dropped: plans, cached schedules, and communicators that were split
//! from it.

use crate::communicator::Communicator;
use crate::plan::state::{NO_PART, PlanState};
use std::sync::Arc;
use tasuki_core::base::{Cause, Result};

/// Plans with their numbers.
type DroppedPlans = Vec<(u64, Arc<PlanState>)>;

impl Communicator {
    /// Frees all plans of this communicator that all members have dropped, its cached schedules, and the communicators
    /// that were split from it, or from which it was recreated, and that all their members have dropped. Returns when that
    /// is done. Collective.
    ///
    /// Error: some members have started one of these plans more often than others, or a start of it has failed, so it
    /// will never be complete. Its memory stays; the other plans are freed by the next call.
    pub fn quiesce(&self) -> Result<()> {
        let call = || self.call_on("quiesce()");
        // The inner error, which all members have, is about starts of plans and no failure: quiesce may be called
        // again.
        self.begin_named("quiesce", &call)?.run(|| {
            self.clear_cache();
            self.clear_scheduled().map_err(|error| self.step_failed(error, &call))?;
            let word = || {
                let dropped = match self.dropped_by_all(&call)? {
                    Ok(dropped) => dropped,
                    Err(error) => return Ok(Err(error)),
                };
                let settled = self.settle_all(&dropped, &call)?;
                Ok(settled.map(|()| self.plans().lock().word()))
            };
            let settle = |words: Vec<u64>| {
                self.plans().free_what_is_over(words.into_iter());
                Ok(())
            };
            let freed = self.free_in_windows(&|| self.plans().lock().windows(), &word, &settle);
            if let Err(error) = freed.map_err(|error| self.step_failed(error, &call))? {
                return Ok(Err(error));
            }
            self.free_children().map_err(|error| self.step_failed(error, &call))?;
            Ok(Ok(()))
        })?
    }

    /// Returns the plans that all members have dropped. Error: members have started one of them a different number of
    /// times.
    fn dropped_by_all(&self, call: &dyn Fn() -> String) -> Result<Result<DroppedPlans>> {
        let allgather =
            |word: u64| self.allgather_steps(&[word]).map_err(|error| self.step_failed(error, call));
        let word = self.plans().lock().dropped_word();
        let words = allgather(word)?;
        let all = words.iter().fold(u64::MAX, |all, word| all & word);
        let dropped = self.plans().lock().among(all);
        for (number, plan) in &dropped {
            let own = plan.starts();
            let starts = allgather(own)?;
            let (least, most) = starts
                .iter()
                .filter(|&&starts| starts != NO_PART)
                .fold((u64::MAX, 0), |(least, most), &starts| (least.min(starts), most.max(starts)));
            if least < most {
                self.plans().lock().lose(*number);
                let differs = |&starts: &u64| own != NO_PART && starts != NO_PART && starts != own;
                let member = starts.iter().position(differs);
                let cause = Cause::Disagree { member, what: "the number of starts of a plan", least, most };
                return Ok(Err(self.worker().fault(cause, call)));
            }
        }
        Ok(Ok(dropped))
    }

    /// Waits until all starts of those plans are complete on all members. Error: one of the starts has failed on a
    /// member.
    fn settle_all(&self, dropped: &[(u64, Arc<PlanState>)], call: &dyn Fn() -> String) -> Result<Result<()>> {
        let any = |is_so: bool| {
            let words = self.allgather_steps(&[u64::from(is_so)]);
            words.map(|words| words.contains(&1)).map_err(|error| self.step_failed(error, call))
        };
        let mut outcome = Ok(());
        for (number, plan) in dropped {
            // A wait for steps that another member has abandoned would never end.
            let is_vain = any(plan.is_broken())? && any(!plan.is_at_rest())?;
            let settled = if is_vain { Ok(()) } else { plan.settle() };
            if is_vain || any(settled.is_err())? {
                self.plans().lock().lose(*number);
                let text = "a start of a plan that all members have dropped has failed on a member";
                let failed = || Err(self.worker().fault(Cause::Program(text.into()), call));
                outcome = settled.and_then(|()| failed());
            }
        }
        Ok(outcome)
    }

    /// Returns the word that tells other members which communicators this member no longer needs.
    pub(crate) fn children_word(&self) -> Result<u64> {
        self.messages().progress().drop_finalized_hooks(self.worker())?; // those of fuzzy barriers
        self.children().word()
    }

    /// Frees all communicators that were split from this one, or from which it was recreated, and that no member needs any
    /// more. A step of a collective call.
    fn free_children(&self) -> Result<()> {
        let children = self.children();
        let windows = || if children.lock().is_empty() { 0 } else { children.lock().windows() };
        let settle = |words: Vec<u64>| children.settle(words.into_iter());
        self.free_in_windows(&windows, &|| self.children_word().map(Ok), &settle).map(drop)
    }

    /// Lets the members tell each other what they no longer need, one window of a [agreed free](crate::agreed_free)
    /// after the other, until nothing was freed in all `windows`. `word` returns the word of this member, and `settle`
    /// takes those of all. The inner error is one that all members have.
    fn free_in_windows(
        &self,
        windows: &dyn Fn() -> usize,
        word: &dyn Fn() -> Result<Result<u64>>,
        settle: &dyn Fn(Vec<u64>) -> Result<()>,
    ) -> Result<Result<()>> {
        let mut windows_without = 0; // since the last one in which something was freed
        while windows_without < windows() {
            // The lock is not held between: something may be dropped meanwhile.
            let word = match word()? {
                Ok(word) => word,
                Err(error) => return Ok(Err(error)),
            };
            let words = self.allgather_steps(&[word])?;
            let is_any_over = words.iter().fold(u64::MAX, |all, word| all & word) != 0;
            windows_without = if is_any_over { 0 } else { windows_without + 1 };
            settle(words)?;
        }
        Ok(Ok(()))
    }
}
