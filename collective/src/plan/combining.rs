//! How a plan combines values.

use std::sync::Arc;
use tasuki_core::queue::reduction::{Operator, Reduction};

/// How a plan combines values.
pub enum PlanCombining {
    /// It combines none.
    Nothing,
    /// By a built-in reduction.
    Known(Reduction),
    /// By an operation of the program, on values of the given number of bytes.
    Own(Arc<dyn Operator>, u32),
}

impl PlanCombining {
    /// Returns a text that must be equal on all members.
    pub(super) fn name(&self) -> String {
        match self {
            PlanCombining::Nothing => String::new(),
            PlanCombining::Known(how) => format!("{how:?}"),
            PlanCombining::Own(_, bytes) => format!("their own, of {bytes} bytes"),
        }
    }
}
