//! The state of a communicator's fuzzy barriers, and one instance.

use super::departure::FuzzyDeparture;
use crate::dissemination::{Dissemination, DisseminationArrival};
use crate::failure::monitor::FailureMonitor;
use crate::failure::published_wait::Lane;
use std::fmt;
use std::sync::Arc;
use std::task::{Poll, Waker};
use tasuki_core::base::error_hint::FUZZY_BARRIERS;
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Result};
use tasuki_core::engine::{
    AwaitedCondition, Condition, Deadline, LocalQueue, WaitEvent, Worker, scoped_wait_probe,
    scoped_wait_probe_about,
};
use tasuki_message::FinalizeHook;

/// Most instances that a member may have under way if there are more than two members. Its queue has room for so many.
pub const FUZZY_MAX: u64 = 128;

/// The fuzzy barriers of a communicator, as one member sees them.
#[derive(Debug)]
pub(crate) struct Fuzzy {
    worker: Arc<Worker>,
    monitor: Arc<FailureMonitor>,
    /// The name of the communicator.
    communicator: Arc<str>,
    stages: Arc<Dissemination>,
    /// The queue with the notifications that cannot be sent yet; None with two members or fewer.
    queue: Option<Arc<LocalQueue>>,
    started: Arc<AtomicU64>,
    departure: Arc<FuzzyDeparture>,
    is_over: AtomicBool,
}

/// An instance of a fuzzy barrier that this member has started. Any thread may test it or wait for it. It may be
/// dropped at any time, which does not end the instance.
#[derive(Clone)]
pub struct FuzzyBarrier {
    pub(super) fuzzy: Arc<Fuzzy>,
    pub(super) instance: u64,
}

impl fmt::Debug for FuzzyBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FuzzyBarrier({})", self.instance)
    }
}

impl FuzzyBarrier {
    /// Returns true if all members have started it, or cannot any more, so that [`FuzzyBarrier::wait`] returns at once.
    /// Never waits. Costs a load for each stage once the instance is complete, and makes progress before that.
    #[inline]
    pub fn test(&self) -> bool {
        let Fuzzy { worker, stages, monitor, .. } = &*self.fuzzy;
        if stages.have_reached(worker, self.instance) {
            return true;
        }
        monitor.is_failed() || !matches!(worker.test(&self.arrival(), &String::new), Ok(false))
    }

    /// Returns `Ready` if [`FuzzyBarrier::test`] returns true; otherwise the task of `waker` is woken when it does.
    pub fn poll(&self, waker: &Waker, awaited: &mut AwaitedCondition) -> Poll<()> {
        let Fuzzy { worker, monitor, .. } = &*self.fuzzy;
        if self.test() || monitor.look(worker).is_some() {
            return Poll::Ready(());
        }
        awaited.set(worker, monitor.awaited(worker, self.arrival(), self.about()), waker);
        Poll::Pending
    }

    /// Returns when all members have started it. Makes progress for this rank and its peers meanwhile. Errors: a rank
    /// died; a member left without having started it; the communicator has failed.
    pub fn wait(&self) -> Result<()> {
        let Fuzzy { worker, stages, .. } = &*self.fuzzy;
        // Do not spin long if the missing member shares this processor.
        let Some(missing) = stages.missing(worker, self.instance) else { return Ok(()) };
        self.fuzzy.monitor.check().map_err(|cause| worker.fault(cause, || self.call()))?;
        for _ in 0..worker.spins(Some(missing)) {
            if stages.have_reached(worker, self.instance) {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let _monitored = scoped_wait_probe_about(self.fuzzy.monitor.probe(), self.about());
        worker.wait(&self.arrival(), worker.call_deadline(), &|| self.call())
    }

    /// Returns the number of the instance on its communicator, from 1 on.
    pub fn instance(&self) -> u64 {
        self.instance
    }

    fn about(&self) -> u32 {
        Lane::FuzzyBarrier.about(self.instance)
    }

    #[cold]
    fn arrival(&self) -> Condition {
        self.fuzzy.arrival(self.instance)
    }

    #[cold]
    fn call(&self) -> String {
        format!("fuzzy_barrier({}, instance {})", self.fuzzy.communicator, self.instance)
    }
}

pub(super) fn call() -> String {
    "fuzzy_barrier()".into()
}

impl Fuzzy {
    pub(super) fn new(
        worker: &Arc<Worker>,
        communicator: &Arc<str>,
        departure: Arc<FuzzyDeparture>,
        queue: Option<Arc<LocalQueue>>,
    ) -> Fuzzy {
        Fuzzy {
            worker: worker.clone(),
            monitor: departure.monitor.clone(),
            communicator: communicator.clone(),
            stages: departure.stages.clone(),
            queue,
            started: departure.started.clone(),
            departure,
            is_over: AtomicBool::new(false),
        }
    }

    /// Starts the next instance: sends the notifications that can be sent now, and posts commands for the others.
    #[inline]
    pub(super) fn start(&self) -> Result<u64, Cause> {
        let worker = &*self.worker;
        worker.check()?;
        self.monitor.check()?;
        let instance = match &self.queue {
            None => self.started.fetch_add(1, Ordering::Relaxed) + 1,
            Some(_) => self.claim(worker)?,
        };
        let notified =
            self.stages.notify_partners(worker, instance).map_err(|error| error.cause().clone())?;
        if notified < self.stages.len() {
            self.post_later_stages(worker, notified, instance)?;
        }
        Ok(instance)
    }

    /// Returns the number of the next instance, if the queue has room for its commands.
    fn claim(&self, worker: &Worker) -> Result<u64, Cause> {
        let mut started = self.started.load(Ordering::Relaxed);
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return Err(Cause::JobOver);
            }
            if started >= FUZZY_MAX && !self.stages.have_reached(worker, started + 1 - FUZZY_MAX) {
                return Err(Cause::Full { what: FUZZY_BARRIERS, capacity: FUZZY_MAX as usize });
            }
            let next = started + 1;
            match self.started.compare_exchange_weak(started, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(next),
                Err(other) => started = other,
            }
        }
    }

    /// Posts the commands that notify in stage `from` and all later stages.
    fn post_later_stages(&self, worker: &Worker, from: usize, instance: u64) -> Result<(), Cause> {
        let Some(queue) = &self.queue else { return Ok(()) };
        for stage in from..self.stages.len() {
            let command = self.stages.command(worker.rank(), stage, from, instance).encode();
            while let Err(cause) = worker.post_own(queue, std::iter::once(&command)) {
                // The oldest instance is complete, but the rank that completed it may not have run its commands yet.
                let Cause::Full { .. } = cause else { return Err(cause) };
                worker.pause();
            }
        }
        Ok(())
    }

    fn arrival(&self, instance: u64) -> Condition {
        let (stages, fabric) = (self.stages.clone(), self.worker.shared_fabric().clone());
        let until = stages.len();
        Condition::Event(Arc::new(DisseminationArrival { stages, fabric, instance, until }))
    }
}

impl FinalizeHook for Fuzzy {
    fn is_finalized(&self, worker: &Worker) -> bool {
        let started = self.started.load(Ordering::Relaxed);
        self.monitor.is_failed() || self.stages.have_reached(worker, started)
    }

    fn will_leave(&self, worker: &Worker) {
        self.is_over.store(true, Ordering::Relaxed);
        self.departure.will_leave(worker);
    }

    fn announce_finalize(&self, worker: &Worker) -> Result<bool> {
        self.departure.announce_finalize(worker)
    }

    fn next_event(&self) -> Option<Arc<dyn WaitEvent>> {
        self.departure.next_event()
    }

    fn finalize(&self, worker: &Worker) -> Result<()> {
        self.will_leave(worker); // a member that has dropped the communicator leaves only later
        let started = self.started.load(Ordering::Relaxed);
        // This wait fails if a member leaves without having started the instance, or if the communicator has failed.
        // That is no failure of this member.
        let _monitored = scoped_wait_probe(self.monitor.probe());
        let over = worker.wait(&self.arrival(started), Deadline::NEVER, &|| "leave(): fuzzy barriers".into());
        let Some(queue) = &self.queue else { return Ok(()) };
        // All triggers are met now, but the ranks that raised the last signals may not have run the queue yet.
        while over.is_ok() && worker.check().is_ok() && !is_empty(queue) {
            worker.pause();
        }
        worker.drop_queue(queue);
        Ok(())
    }
}

fn is_empty(queue: &LocalQueue) -> bool {
    let stats = queue.stats();
    stats.unread + stats.waiting + stats.in_flight == 0
}
