//! Futures that wait for messages: one thread of the rank waits for all of them, as any waiting call does, and wakes
//! their tasks. It is started when a task first finds nothing, and ends when nobody waits.

use super::operation::Operation;
use super::pump::Pump;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Machine};

/// Whether the thread runs.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    runs: AtomicBool,
}

/// Makes sure that the thread runs, or waits for one more message.
pub(crate) fn set(machine: &Arc<Machine>, pump: &Arc<Pump>) -> Result<()> {
    if pump.alarm.runs.swap(true, Ordering::SeqCst) {
        machine.stir(); // it may sleep: one more message concerns it now
        return Ok(());
    }
    let (machine_there, pump_there) = (machine.clone(), Arc::downgrade(pump));
    let started = machine.host().spawn(Box::new(move || watch(&machine_there, &pump_there)));
    match started {
        Ok(join) => {
            drop(join); // nobody waits for it: it ends by itself
            Ok(())
        }
        Err(error) => {
            pump.alarm.runs.store(false, Ordering::SeqCst);
            Err(tasuki_core::base::Error::from_io("thread", &error))
        }
    }
}

/// The life of the thread.
fn watch(machine: &Arc<Machine>, pump: &Weak<Pump>) {
    let Some(pump) = pump.upgrade() else { return };
    let call = || "await".to_string();
    loop {
        let watched = pump.watched();
        if watched.is_empty() {
            pump.alarm.runs.store(false, Ordering::SeqCst);
            // Whoever came between has found it running: it is for this thread, or for the one that swaps first.
            if pump.watched().is_empty() || pump.alarm.runs.swap(true, Ordering::SeqCst) {
                return;
            }
            continue;
        }
        let event = Watched { machine: machine.clone(), pump: pump.clone(), known: watched.len() };
        let now_ns = machine.host().now_ns();
        let spool_at = |operation: &Arc<Operation>| operation.spool_at_ns().load(Ordering::Relaxed);
        let first = watched.iter().map(spool_at).min().filter(|&at| at < u64::MAX);
        let limit = first.map(|at| Duration::from_nanos(at.saturating_sub(now_ns)));
        let waited = machine.wait(&Condition::Event(Arc::new(event)), limit, &call);
        let over = waited.is_err_and(|error| !error.is_timeout());
        let now_ns = machine.host().now_ns();
        for operation in &watched {
            if over || operation.is_hopeless(machine) || spool_at(operation) <= now_ns {
                operation.wake();
            }
        }
        machine.progress();
    }
}

/// That something happened to one of the messages.
#[derive(Debug)]
struct Watched {
    machine: Arc<Machine>,
    pump: Arc<Pump>,
    known: usize,
}

impl Event for Watched {
    fn happened(&self) -> bool {
        let watched = self.pump.watched();
        let concerns =
            |operation: &Arc<Operation>| operation.happened() || operation.is_hopeless(&self.machine);
        watched.len() != self.known || watched.iter().any(concerns)
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        None
    }
}
