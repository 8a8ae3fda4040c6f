//! The alarm of a rank: a signal by which another rank tells it that something has failed.
//!
//! A wait ends when its condition is met. If another rank finds that the condition will never be met, it raises the
//! alarm of the waiting rank. The rank's threads wake up, one of them calls the [`AlarmHandler`], and each asks the
//! [`WaitProbe`](super::probe::WaitProbe) that it has selected whether its own wait has failed. A rank whose alarm was
//! never raised pays one load in each round of a long wait.

use crate::base::sync::{AtomicU64, Ordering};
use crate::fabric::{Fabric, SignalCell};
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

/// What a rank does when its alarm was raised.
pub trait AlarmHandler: Send + Sync + Debug {
    /// Called by a waiting thread after a raise, once or more often. Must not wait.
    fn alarm_raised(&self);
}

/// The alarm of a rank, once it is set.
#[derive(Debug, Default)]
pub struct Alarm(OnceLock<SetAlarm>);

#[derive(Debug)]
struct SetAlarm {
    cell: SignalCell,
    initial: u64,
    /// The count that the handler was called for last.
    handled: AtomicU64,
    handler: Arc<dyn AlarmHandler>,
}

impl Alarm {
    /// Makes the own signal at `cell` the alarm of this rank. Called at most once, before anybody raises the signal.
    pub fn set(&self, fabric: &dyn Fabric, cell: SignalCell, handler: Arc<dyn AlarmHandler>) {
        let initial = cell.read(fabric);
        let alarm = SetAlarm { cell, initial, handled: AtomicU64::new(initial), handler };
        let is_first = self.0.set(alarm).is_ok();
        debug_assert!(is_first, "a rank has one alarm");
    }

    /// Calls the handler if the alarm was raised since the last call. Returns true if it was ever raised. A signal
    /// that takes a call of the fabric is read only if that `is_due`.
    pub(super) fn handle(&self, fabric: &dyn Fabric, is_due: bool) -> bool {
        let Some(alarm) = self.0.get() else { return false };
        if matches!(alarm.cell, SignalCell::Via(_)) && !is_due {
            return false;
        }
        let count = alarm.cell.read(fabric);
        let is_new = alarm.handled.load(Ordering::Relaxed) != count;
        if is_new && alarm.handled.swap(count, Ordering::Relaxed) != count {
            alarm.handler.alarm_raised();
        }
        count != alarm.initial
    }

    /// Returns true if the alarm was raised and no thread has handled it. `may_sleep`: threads of this rank may sleep.
    pub(super) fn is_unhandled(&self, fabric: &dyn Fabric, may_sleep: bool) -> bool {
        let is_unhandled = |alarm: &SetAlarm| match &alarm.cell {
            SignalCell::Direct(cell) => {
                cell.counter().load(Ordering::Acquire) != alarm.handled.load(Ordering::Relaxed) // SYNC signal-raise
            }
            // A rank that sleeps is woken by the raise; one that is about to sleep must see it. Where no thread sleeps,
            // the next round of the wait reads it.
            SignalCell::Via(_) if may_sleep => {
                alarm.cell.read(fabric) != alarm.handled.load(Ordering::Relaxed)
            }
            SignalCell::Via(_) => false,
        };
        self.0.get().is_some_and(is_unhandled)
    }
}
