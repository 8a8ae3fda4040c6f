//! What a rank that leaves owes besides messages: it says that it is leaving, pays, and only then is gone.

use super::pump::Pump;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Machine};

/// Something that goes on without its owner, but not without the owner's rank.
pub trait Debt: Send + Sync + Debug {
    /// Whether nothing is owed at the moment.
    fn is_paid(&self, machine: &Machine) -> bool;

    /// Does its part in the leave of several ranks, which need each other until all have come so far. Whether that is
    /// done; an error: in vain. Asked again when it [goes on](Debt::goes_on), in turn with others.
    fn take_leave(&self, _machine: &Machine) -> Result<bool> {
        Ok(true)
    }

    /// That there is something to do for a leave that is not done.
    fn goes_on(&self) -> Option<Arc<dyn Event>> {
        None
    }

    /// Waits until what is owed has gone, or cannot go, and gives its memory back. Nothing new is begun after it.
    fn pay(&self, machine: &Machine) -> Result<()>;
}

impl Pump {
    /// The rank pays that when it leaves. What nobody else holds any more, and is paid, is given back now.
    pub fn owe(&self, machine: &Machine, debt: Arc<dyn Debt>) -> Result<()> {
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
        take_leave(machine, debts.iter().collect());
        debts.iter().map(|debt| debt.pay(machine)).fold(Ok(()), Result::and)
    }
}

/// Does this rank's part in the leaves that it takes together with others, all of them at once: each may be held up by
/// a rank that is held up in another.
fn take_leave(machine: &Machine, mut leaves: Vec<&Arc<dyn Debt>>) {
    let call = || "leave(): plans of others".to_string();
    loop {
        leaves.retain(|leave| matches!(leave.take_leave(machine), Ok(false)));
        let events: Vec<Arc<dyn Event>> = leaves.iter().filter_map(|leave| leave.goes_on()).collect();
        if events.is_empty() {
            return;
        }
        if machine.wait(&Condition::Event(Arc::new(Any(events))), None, &call).is_err() {
            // One at least is in vain: who is gone has not taken it.
            let is_vain = |event| machine.test(&Condition::Event(event), &call).is_err();
            leaves.retain(|leave| !leave.goes_on().is_none_or(is_vain));
        }
    }
}

/// That one of these has happened.
#[derive(Debug)]
struct Any(Vec<Arc<dyn Event>>);

impl Event for Any {
    fn happened(&self) -> bool {
        self.0.iter().any(|event| event.happened())
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        self.0.first()?.hopeless_from()
    }
}
