//! The table of a rank's operators of the program.

use crate::queue::reduction::Operator;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// The operators of a rank, by number.
#[derive(Default)]
pub(super) struct UserOperators(pub(super) RwLock<Vec<OperatorEntry>>);

/// The state of a number.
#[derive(Clone)]
pub(super) enum OperatorEntry {
    /// No operator has the number.
    Free,
    /// An operator that may be called.
    Taken(Arc<dyn Operator>),
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
