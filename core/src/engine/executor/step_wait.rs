//! How an execution waits, and which rank gets the processor meanwhile if ranks share processors.
//!
//! If they do, the number of context switches decides the time, because a switch between two processes takes longer
//! than most steps. A rank that waits yields its processor at once if a rank that it waits for needs this very
//! processor. Otherwise it spins for about as long as a switch takes, because being switched out and in again for
//! nothing costs two switches.
//!
//! A rank whose last call ended by providing data yields at once, too. The rank that shares its processor can use the
//! data now, and will then be ready for the next call. For example, in a row of broadcasts with rotating roots, the
//! root after the next one runs while the next root provides its data, and not after that.

use super::in_call::CallStep;
use crate::base::{Rank, Result};
use crate::engine::worker::Worker;

/// How often a thread yields its processor before it makes progress on its other work, if ranks share processors.
const OFFERS: u32 = 8;
/// How often a thread reads the awaited word before each yield, if a rank on another processor is to raise it. This
/// takes about as long as a context switch.
const LOOKS_BEFORE_OFFER: u32 = 100;

/// Evaluates `is_so` up to `looks` times, until it returns true. Returns true if it did.
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
    /// Waits until the wait condition of the first of these steps is met.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_step(
        &self,
        steps: &[CallStep],
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
        self.wait(&wait.condition(pass), self.call_deadline(), call)
    }

    /// Returns true if one of the ranks on which these steps wait before they next raise a signal needs this very
    /// processor to go on.
    fn needs_this_processor(&self, steps: &[CallStep], pass: u64) -> bool {
        let is_near = |step: &CallStep| {
            let unmet = step.wait.as_ref().filter(|wait| !wait.is_over_now(pass));
            unmet.is_some_and(|wait| wait.by.is_some_and(|by| self.platform().shares_processor(by)))
        };
        let first_raise = steps.iter().position(|step| !step.effects.raises.is_empty());
        steps[..first_raise.map_or(steps.len(), |at| at + 1)].iter().any(is_near)
    }

    /// Returns true if another rank of the job was last seen on this very processor.
    fn shares_its_processor(&self) -> bool {
        let mut others = Rank::all(self.size()).filter(|&rank| rank != self.rank());
        others.any(|rank| self.platform().shares_processor(rank))
    }
}
