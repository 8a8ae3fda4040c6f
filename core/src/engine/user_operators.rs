//! Operators of the program with which a rank's commands combine values. The commands name them by numbers.
//!
//! If an operator panics, the panic is caught. The command that called it fails, as do all that follow from it, so
//! other ranks get an error. Values may be half combined then, so the operator is not called again.

use crate::base::log::{Level, Log};
use crate::base::{Cause, Rank, panic_message};
use crate::queue::reduction::{Operator, Reduction};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

/// The operators of a rank, by number.
#[derive(Default)]
pub struct UserOperators(RwLock<Vec<OperatorEntry>>);

/// The state of a number.
#[derive(Clone)]
enum OperatorEntry {
    /// No operator has the number.
    Free,
    /// An operator that may be called.
    Taken(Arc<dyn Operator + Send + Sync>),
    /// An operator that has panicked.
    Panicked,
}

impl fmt::Debug for UserOperators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        write!(
            f,
            "UserOperators({})",
            all.iter().filter(|entry| !matches!(entry, OperatorEntry::Free)).count()
        )
    }
}

impl UserOperators {
    /// Adds an operator for commands of this rank's own queues. Returns its number.
    pub fn add(&self, operator: Arc<dyn Operator + Send + Sync>) -> u32 {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let free = all.iter().position(|entry| matches!(entry, OperatorEntry::Free)).unwrap_or(all.len());
        if free == all.len() {
            all.push(OperatorEntry::Free);
        }
        all[free] = OperatorEntry::Taken(operator);
        free as u32
    }

    /// Removes an operator that no command uses any more.
    pub fn remove(&self, number: u32) {
        self.set(number, OperatorEntry::Free);
    }

    fn set(&self, number: u32, new: OperatorEntry) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(number as usize).into_iter().for_each(|entry| *entry = new.clone());
    }

    fn get(&self, number: u32) -> OperatorEntry {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(number as usize).cloned().unwrap_or(OperatorEntry::Free)
    }

    /// Combines values by a reduction. Returns false if its operator does not exist or has panicked; `log` gets the
    /// panic.
    pub(super) fn combine(&self, how: Reduction, into: &mut [u8], from: &mut [u8], log: &Log) -> bool {
        let Some(number) = how.operator() else {
            how.apply(into, from, None);
            return true;
        };
        let OperatorEntry::Taken(operator) = self.get(number) else { return false };
        let combined = catch_unwind(AssertUnwindSafe(|| how.apply(into, from, Some(&*operator))));
        if let Err(panic) = &combined {
            let why = panic_message(&**panic);
            log.say(Level::Info, format_args!("an operation of the program's own panicked: {why}"));
            self.set(number, OperatorEntry::Panicked);
        }
        combined.is_ok()
    }

    /// Returns why values cannot be combined by that reduction.
    pub(super) fn why_not_combined(&self, how: Reduction, rank: Rank) -> Cause {
        match how.operator().map(|number| self.get(number)) {
            Some(OperatorEntry::Panicked) => Cause::OperationPanicked { rank },
            _ => Cause::mismatch(None, format!("{how}: this rank has no such operator")),
        }
    }
}
