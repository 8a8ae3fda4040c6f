//! Operators of a rank's own, with which it combines values: numbers stand for them in its commands.

use crate::engine::machine::Machine;
use crate::queue::reduction::{Operator, Reduction};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// The operators of a rank.
#[derive(Default)]
pub(super) struct Operators(RwLock<Vec<Option<Arc<dyn Operator>>>>);

impl fmt::Debug for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Operators({})", all.iter().flatten().count())
    }
}

impl Machine {
    /// Commands of this rank's own queues may combine values with that operator from now on: its number.
    pub fn add_operator(&self, operator: Arc<dyn Operator>) -> u32 {
        let mut all = self.operators().0.write().unwrap_or_else(PoisonError::into_inner);
        let free = all.iter().position(Option::is_none).unwrap_or(all.len());
        if free == all.len() {
            all.push(None);
        }
        all[free] = Some(operator);
        free as u32
    }

    /// No command needs that operator any more.
    pub fn remove_operator(&self, number: u32) {
        let mut all = self.operators().0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = all.get_mut(number as usize) {
            *place = None;
        }
    }

    /// Combines values as a reduction says. False: its operator is not there.
    pub(super) fn combine(&self, how: Reduction, into: &mut [u8], from: &mut [u8]) -> bool {
        let Some(number) = how.operator() else {
            how.apply(into, from, None);
            return true;
        };
        let operator = {
            let all = self.operators().0.read().unwrap_or_else(PoisonError::into_inner);
            all.get(number as usize).cloned().flatten()
        };
        operator.is_some_and(|operator| {
            how.apply(into, from, Some(&*operator));
            true
        })
    }
}
