//! What a rank that leaves owes besides messages: it says that it is leaving, pays, and only then is gone.

use super::pump::Pump;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError};
use tasuki_core::base::Result;
use tasuki_core::engine::Machine;

/// Something that goes on without its owner, but not without the owner's rank.
pub(crate) trait Debt: Send + Sync + Debug {
    /// Whether nothing is owed at the moment.
    fn is_paid(&self, machine: &Machine) -> bool;

    /// Waits until what is owed has gone, or cannot go, and gives its memory back. Nothing new is begun after it.
    fn pay(&self, machine: &Machine) -> Result<()>;
}

impl Pump {
    /// The rank pays that when it leaves. What nobody else holds any more, and is paid, is given back now.
    pub(crate) fn owe(&self, machine: &Machine, debt: Arc<dyn Debt>) -> Result<()> {
        let mut over = Vec::new();
        {
            let mut debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
            let all = std::mem::take(&mut *debts);
            let (held, free): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|debt| Arc::strong_count(debt) > 1);
            *debts = held;
            debts.push(debt);
            over.extend(free);
        }
        for debt in over {
            if debt.is_paid(machine) {
                debt.pay(machine)?;
            } else {
                self.debts.lock().unwrap_or_else(PoisonError::into_inner).push(debt);
            }
        }
        Ok(())
    }

    /// Pays all.
    pub(super) fn pay_debts(&self, machine: &Machine) -> Result<()> {
        let debts = std::mem::take(&mut *self.debts.lock().unwrap_or_else(PoisonError::into_inner));
        debts.iter().map(|debt| debt.pay(machine)).fold(Ok(()), Result::and)
    }
}
