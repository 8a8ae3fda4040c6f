//! Fuzzy barriers: each member starts an instance and goes on; the instance is complete when all members have started
//! it.
//!
//! Dissemination: in stage i, for i = 0 .. ceil(log2 P) - 1, member n notifies the member 2^i places after it that the
//! 2^i members up to n have started. Member n knows this when it has started and was notified in all stages before i.
//! Each stage has its own signal at each member. One other member raises this signal by one for each instance. So a
//! member was notified of instance k in stage i when that signal has reached k. No signal is ever reset, and the
//! signal counts correctly even if its raiser is several instances ahead.
//!
//! If a member cannot notify in a stage yet when it starts, it posts a command that will. The command of stage 1 fires
//! when the signal of stage 0 has reached k. The command of a later stage fires when the signal of the previous stage
//! has reached k *and* the previous commands have fired. One signal for both events would not do, because two raises
//! by one of them would count as one by each. So such a command has two triggers. With more than 8 members, a *token*
//! counts how often the member has notified in a stage; it is a signal that only the member itself raises. Commands
//! may fire in another order, so a count of k, of a token or at a peer, may include instances after k. This does no
//! harm: if all members up to n have started a later instance, they have started instance k too.
//!
//! The rank that raises the signal that a command waits for also runs the command, so stages advance while the member
//! computes. A member that starts last posts no command, and with two members no command is ever posted.
//!
//! Other members may wait for the notifications of a member's commands. So a member that leaves the job stays until
//! the instances that it has started are complete, or cannot complete. Its stage is *leaving* meanwhile, so ranks that
//! wait for anything else from it get an error at once.
//!
//! Source: Matsuda, Tanaka, Kubota, Sato, "Network Interface Active Messages for SMP clusters"; for any number of
//! members: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988).

use crate::communicator::Communicator;
use crate::dissemination::{Dissemination, DisseminationArrival};
use crate::failure::monitor::FailureMonitor;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Result};
use tasuki_core::engine::{Condition, LocalQueue, Worker, scoped_wait_probe};
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
    started: AtomicU64,
    is_over: AtomicBool,
}

/// An instance of a fuzzy barrier that this member has started. Any thread may test it or wait for it. It may be
/// dropped at any time, which does not end the instance.
#[derive(Clone)]
pub struct FuzzyBarrier {
    fuzzy: Arc<Fuzzy>,
    instance: u64,
}

impl fmt::Debug for FuzzyBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FuzzyBarrier({})", self.instance)
    }
}

impl FuzzyBarrier {
    /// Returns true if all members have started it. Never waits. Costs a load for each stage once the instance is
    /// complete, and makes progress before that.
    ///
    /// Errors: a rank died, or a member left without having started it.
    #[inline]
    pub fn is_done(&self) -> Result<bool> {
        let worker = &self.fuzzy.worker;
        if self.fuzzy.stages.have_reached(worker, self.instance) {
            return Ok(true);
        }
        self.fuzzy.monitor.check().map_err(|cause| worker.fault(cause, || self.call()))?;
        worker.test(&self.arrival(), &|| self.call())
    }

    /// Returns when all members have started it. Makes progress for this rank and its peers meanwhile. Errors: as for
    /// [`FuzzyBarrier::is_done`].
    pub fn wait(&self) -> Result<()> {
        let Fuzzy { worker, stages, .. } = &*self.fuzzy;
        // Do not spin long if the missing member shares this processor.
        let Some(missing) = stages.missing(worker, self.instance) else { return Ok(()) };
        for _ in 0..worker.spins(Some(missing)) {
            if stages.have_reached(worker, self.instance) {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let _monitored = scoped_wait_probe(self.fuzzy.monitor.probe());
        worker.wait(&self.arrival(), None, &|| self.call())
    }

    /// Returns the number of the instance on its communicator, from 1 on.
    pub fn instance(&self) -> u64 {
        self.instance
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

impl Communicator {
    /// Starts a fuzzy barrier. `prepare` is called before a queue is made.
    #[inline]
    pub fn fuzzy_barrier(&self, prepare: &dyn Fn()) -> Result<FuzzyBarrier> {
        let fuzzy = match self.fuzzy.get() {
            Some(fuzzy) => fuzzy,
            None => self.first_fuzzy(prepare)?,
        };
        let instance = fuzzy.start().map_err(|cause| self.worker().fault(cause, call))?;
        Ok(FuzzyBarrier { fuzzy: fuzzy.clone(), instance })
    }

    /// Makes the state of fuzzy barriers. If members do not know each other's signals, all members must make it
    /// together. Another thread that calls meanwhile waits.
    #[cold]
    fn first_fuzzy(&self, prepare: &dyn Fn()) -> Result<&Arc<Fuzzy>> {
        while self.is_making_fuzzy.swap(true, Ordering::Acquire) {
            self.worker().relax("fuzzy_barrier()")?; // SYNC fuzzy-made
        }
        let made = if self.fuzzy.get().is_none() { self.make_fuzzy(prepare) } else { Ok(()) };
        self.is_making_fuzzy.store(false, Ordering::Release); // SYNC fuzzy-made
        made?;
        self.fuzzy.get().ok_or_else(|| self.worker().fault(Cause::Bug("it was just made".into()), call))
    }

    fn make_fuzzy(&self, prepare: &dyn Fn()) -> Result<()> {
        let fault = |cause| self.worker().fault(cause, call);
        let (first, queue, all) = match self.fuzzy_signals {
            Some(first) => (first, self.fuzzy_queue(prepare)?, vec![first.into(); self.size()]),
            None => self.exchange_fuzzy(prepare)?,
        };
        let fuzzy = self.joined_fuzzy(first, queue, &all).map_err(fault)?;
        self.messages().add_finalize_hook(fuzzy.clone())?;
        let _ = self.fuzzy.set(fuzzy); // one thread at a time makes it
        Ok(())
    }

    /// Allocates this member's signals and queue, and exchanges the first signals of all members.
    fn exchange_fuzzy(&self, prepare: &dyn Fn()) -> Result<(u32, Option<Arc<LocalQueue>>, Vec<u64>)> {
        const FAILED: u64 = u64::MAX;
        let signals = Dissemination::signals(Dissemination::count(self.size()));
        let first = self.worker().registry().untouched_signals(signals);
        let ours = first.and_then(|first| Ok((first, self.fuzzy_queue(prepare)?)));
        let first = ours.as_ref().map_or(FAILED, |(first, _)| u64::from(*first));
        let call = || self.call_on("fuzzy_barrier()");
        let notified = self.begin(None, &call).and_then(|guard| {
            guard.run(|| self.allgather_steps(&[first]).map_err(|error| self.step_failed(error, &call)))
        });
        let (first, queue) = ours.map_err(|error| error.in_call(call).on_rank(self.worker().rank()))?;
        let failed = match notified {
            Ok(all) if !all.contains(&FAILED) => return Ok((first, queue, all)),
            Ok(_) => {
                let text = "another member found no room for its part of the barrier";
                self.worker().fault(Cause::Unsupported(text.into()), call)
            }
            Err(error) => error,
        };
        queue.iter().for_each(|own| self.worker().drop_queue(own));
        Err(failed)
    }

    /// Makes the queue for commands, if there can be any.
    fn fuzzy_queue(&self, prepare: &dyn Fn()) -> Result<Option<Arc<LocalQueue>>> {
        let stages = Dissemination::count(self.size());
        if stages < 2 {
            return Ok(None);
        }
        prepare();
        let lines = Dissemination::lines(stages) * FUZZY_MAX;
        let queue = self.worker().make_queue(lines as usize, None);
        queue.map(Some).map_err(|cause| self.worker().fault(cause, call))
    }

    /// Makes the state from the first signals of all members.
    fn joined_fuzzy(
        &self,
        first: u32,
        queue: Option<Arc<LocalQueue>>,
        all: &[u64],
    ) -> Result<Arc<Fuzzy>, Cause> {
        let neighbours = |stage| self.group().neighbours(stage, |member| all[member.index()] as u32);
        let worker = self.messages().worker().clone();
        let stages = Dissemination::new(&worker, first, Dissemination::count(self.size()), neighbours)?;
        let (started, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let (communicator, stages) = (self.name().clone(), Arc::new(stages));
        let monitor = self.monitor().clone();
        Ok(Arc::new(Fuzzy { worker, monitor, communicator, stages, queue, started, is_over }))
    }
}

fn call() -> String {
    "fuzzy_barrier()".into()
}

impl Fuzzy {
    /// Starts the next instance: sends the notifications that can be sent now, and posts commands for the others.
    #[inline]
    fn start(&self) -> Result<u64, Cause> {
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
                return Err(Cause::Full {
                    what: "the list of fuzzy barriers under way",
                    capacity: FUZZY_MAX as usize,
                });
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
        Condition::Event(Arc::new(DisseminationArrival { stages, fabric, instance }))
    }
}

impl FinalizeHook for Fuzzy {
    fn is_finalized(&self, worker: &Worker) -> bool {
        let started = self.started.load(Ordering::Relaxed);
        self.stages.have_reached(worker, started)
    }

    fn finalize(&self, worker: &Worker) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        let started = self.started.load(Ordering::Relaxed);
        // This wait fails if a member leaves without having started the instance. That is no failure of this member.
        let over = worker.wait(&self.arrival(started), None, &|| "leave(): fuzzy barriers".into());
        let Some(queue) = &self.queue else { return Ok(()) };
        // All triggers are met now, but the ranks that raised the last signals may not have run the queue yet.
        while over.is_ok() && worker.check().is_ok() && !is_empty(worker, queue) {
            worker.pause();
        }
        worker.drop_queue(queue);
        Ok(())
    }
}

fn is_empty(worker: &Worker, queue: &LocalQueue) -> bool {
    let stats = worker.queue_stats(queue);
    stats.unread + stats.waiting + stats.in_flight == 0
}
