//! Selects the algorithm of a plan by data that all members have agreed on.

use crate::agreement::{MemberSelection, selection_of_all};
use crate::communicator::Communicator;
use crate::plan::init_of;
use tasuki_core::base::{Cause, Result};
use tasuki_core::os::affinity;
use tasuki_schedule::{Selection, Shape};

impl Communicator {
    /// Returns the data from which all members choose. The first call exchanges them and is collective. Errors name the
    /// call that prepares a plan of `shape`: members force different algorithms; a member died or left.
    pub(crate) fn select(&self, shape: &Shape) -> Result<&Selection> {
        let agreed = &self.agreed;
        if let Some(all) = agreed.all.get() {
            return Ok(all);
        }
        let what = init_of(shape);
        let call = || self.call_on(&format!("{what}()"));
        let all = self.begin_named(&what, &call)?.run_agreed(|| {
            let has_no_helper = agreed.own.has_no_helper && self.worker().can_execute();
            let own = Selection { has_no_helper, ..(*agreed.own).clone() };
            let words = self.allgather_steps(&[MemberSelection::of(&own, &affinity::allowed())]);
            let words = words.map_err(|error| self.step_failed(error, &call))?;
            Ok(selection_of_all(&agreed.own, &words).map_err(|other| {
                let text = format!(
                    "members {} and {other} have different TASUKI_COLLECTIVES: set it alike on all",
                    other - 1
                );
                self.worker().fault(Cause::mismatch(Some(other), text), call)
            }))
        })?;
        Ok(agreed.all.get_or_init(|| all))
    }
}
