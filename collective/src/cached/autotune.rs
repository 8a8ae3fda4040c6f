//! Chooses at run time between two variants for long calls of two members: the root copies the values into memory
//! that both map, or each member exposes its buffer to the other
//! (`schedule/src/algorithm/bcast/put_and_get.rs`).
//!
//! With exposed buffers nothing is copied twice, but each copy is a system call that must get access to the memory of
//! another process. The faster variant depends on the distance between the two processors, which changes when a rank
//! moves to another one. So both variants are timed for some calls: first when a kind of calls is frequent, and again
//! each time its number of calls has doubled.
//!
//! Times are measured from the begin of one call to the begin of the next, because a member that sends completes a call
//! soon and waits in the next one. The longest third of the times is left out, because a processor may have been
//! preempted in them. The time of the slower member counts. Both members count the same calls and compare the same
//! times, so they choose the same variant.

use crate::cached::entry::CachedSchedule;
use crate::cached::variant_trial::{TIMED, VariantTrial};
use crate::call_kind::CallKind;
use crate::communicator::Communicator;
use tasuki_core::base::{Rank, Result};
use tasuki_schedule::selection::Pieces;

/// The fraction of the time by which the other variant must be faster to replace the usual one.
const MARGIN: (u64, u64) = (1, 10);

impl Communicator {
    /// Performs the step of the comparison that is due: begins to try the other variant, or makes the faster one the
    /// usual one. All members do this before the same call.
    #[cold]
    pub(crate) fn continue_trial(
        &self,
        trial: &mut VariantTrial,
        present: &mut CachedSchedule,
        kind: &CallKind,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        match trial.usual {
            Some(_) => self.decide(trial, present, kind, call),
            None => self.try_other_variant(trial, present, kind, call),
        }
    }

    fn try_other_variant(
        &self,
        trial: &mut VariantTrial,
        present: &mut CachedSchedule,
        kind: &CallKind,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let other = match trial.is_exposed {
            true => kind.schedules(self.size(), |pieces| Some(pieces.schedules())),
            false if self.can_expose(call)? => kind.schedules(self.size(), Pieces::exposed_schedules),
            false => None,
        };
        let compiled = other
            .map(|schedules| self.compile_variants(schedules, !trial.is_exposed, call))
            .transpose()?
            .flatten();
        match compiled {
            Some(other) => {
                trial.usual = Some(std::mem::replace(present, other));
                (trial.left, trial.last_began) = (TIMED, None); // the time of compiling must not count
                trial.is_exposed = !trial.is_exposed;
            }
            None => trial.rest(),
        }
        Ok(())
    }

    fn decide(
        &self,
        trial: &mut VariantTrial,
        present: &mut CachedSchedule,
        kind: &CallKind,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let [before, now] = trial.times();
        let times = match (self.agreed.is_forced(kind.collective, "put and get"), trial.is_exposed) {
            (true, true) => [u64::MAX, 0],
            (true, false) => [0, u64::MAX],
            (false, _) => [before, now],
        };
        let words = self.allgather_steps(&times).map_err(|error| self.step_failed(error, call))?;
        let longest =
            |variant: usize| words.chunks_exact(2).map(|times| times[variant]).max().unwrap_or(u64::MAX);
        let [before, now] = [longest(0), longest(1)];
        let Some(mut loser) = trial.usual.take() else { return Ok(()) };
        if now >= before - before / MARGIN.1 * MARGIN.0 {
            std::mem::swap(present, &mut loser);
            trial.is_exposed = !trial.is_exposed;
        }
        self.plans().give_up(loser.number);
        trial.rest();
        Ok(())
    }

    /// Returns true if each of the two members can copy from the other's memory through the kernel. Collective.
    fn can_expose(&self, call: &dyn Fn() -> String) -> Result<bool> {
        let allgather =
            |word: u64| self.allgather_steps(&[word]).map_err(|error| self.step_failed(error, call));
        let (worker, other) = (self.worker(), 1 - self.rank().index());
        let probes = allgather(worker.probe())?;
        let rank = self.messages().rank_of(Rank(other));
        let can = rank.is_some_and(|rank| worker.finds_probe(rank, probes[other]));
        Ok(allgather(can.into())?.into_iter().all(|can| can != 0))
    }
}
