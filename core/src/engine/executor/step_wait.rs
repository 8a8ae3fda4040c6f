//! How an execution waits, and who has the processor meanwhile where ranks share processors.
//!
//! There the number of turns decides: a switch between two processes takes longer than most steps. A rank that waits
//! offers its processor at once if one of those that it waits for needs this very one; else it looks for about as long
//! as a switch takes, because to be switched out and in again for nothing takes two.
//!
//! A rank whose last call ended with giving something offers it at once, too. Who shares its processor has something
//! to do now, and is ready for what comes next when that comes: in a row of broadcasts whose root goes around, the next
//! but one gets its turn while the next gives, and not after it.

use super::ResolvedStep;
use crate::base::{Rank, Result};
use crate::engine::worker::Worker;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a thread offers its processor before it sees to everything else, where ranks share processors.
const OFFERS: u32 = 8;
/// How often it looks before that for what a rank with another processor is to bring: about as long as a turn takes.
const LOOKS_BEFORE_OFFER: u32 = 100;

/// Whether a call of a rank ended with giving something, and it has not waited for its turn since. A hint: threads that
/// note it at the same time lose nothing.
#[derive(Debug, Default)]
pub(in crate::engine) struct YieldHint(AtomicBool);

impl YieldHint {
    #[inline(always)]
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> bool {
        let was_set = self.0.load(Ordering::Relaxed);
        self.0.store(false, Ordering::Relaxed);
        was_set
    }
}

/// Looks so often whether it is so; whether it was.
#[inline]
fn spins_until(looks: u32, is_so: impl Fn() -> bool) -> bool {
    (0..looks).any(|_| {
        let is_so = is_so();
        if !is_so {
            std::hint::spin_loop();
        }
        is_so
    })
}

impl Worker {
    /// Waits for what the first of these steps waits for.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_step(
        &self,
        steps: &[ResolvedStep],
        pass: u64,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let Some(wait) = steps.first().and_then(|step| step.wait.as_ref()) else { return Ok(()) };
        let is_crowded = !self.platform().has_processor();
        if !is_crowded && spins_until(self.platform().spins(), || wait.is_over_now(pass)) {
            return Ok(());
        }
        let mut is_anothers_turn = is_crowded && self.yield_hint().take() && self.shares_its_processor();
        for _ in 0..if is_crowded { OFFERS } else { 0 } {
            let is_on_another_processor =
                !std::mem::take(&mut is_anothers_turn) && !self.needs_this_processor(steps, pass);
            if is_on_another_processor && spins_until(LOOKS_BEFORE_OFFER, || wait.is_over_now(pass)) {
                return Ok(());
            }
            self.platform().offer();
            if wait.is_over_now(pass) {
                return Ok(());
            }
        }
        self.wait(&wait.condition(pass), None, call)
    }

    /// Whether one of the ranks that are waited for before these steps tell others anything needs this very processor
    /// to go on.
    fn needs_this_processor(&self, steps: &[ResolvedStep], pass: u64) -> bool {
        let is_near = |step: &ResolvedStep| {
            let unmet = step.wait.as_ref().filter(|wait| !wait.is_over_now(pass));
            unmet.is_some_and(|wait| self.platform().shares_processor(wait.by))
        };
        let first_raise = steps.iter().position(|step| !step.raises.is_empty());
        steps[..first_raise.map_or(steps.len(), |at| at + 1)].iter().any(is_near)
    }

    /// Whether another rank of the job was last seen on this very processor.
    fn shares_its_processor(&self) -> bool {
        let mut others = (0..self.size() as u32).map(Rank).filter(|&rank| rank != self.rank());
        others.any(|rank| self.platform().shares_processor(rank))
    }
}
