//! The one function that waits, for everything.

pub(super) mod helper;
#[cfg(not(loom))]
pub(super) mod node_platform;
pub(super) mod platform;
pub(super) mod probe;
mod progress;

use crate::base::{Cause, Rank, Result};
use crate::engine::command_queue::QueuePoller;
use crate::engine::wait::platform::Pause;
use crate::engine::worker::Worker;
use crate::fabric::{SignalCell, certainly_reached, reached};
use crate::node::node_state::{EndedBy, PublishedWait, Stage, UnderWay};
use crate::os::process;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Something that a thread waits for and that only a model knows.
pub trait WaitEvent: Send + Sync + Debug {
    /// Whether a wait for it should end: it has happened, or the waiting thread itself can move it on now. What
    /// other threads of the rank may change without a call is to be looked at last.
    fn happened(&self) -> bool;

    /// The one rank that can make it happen, and from which stage of its life on it will not.
    fn impossible_after(&self) -> Option<(Rank, Stage)>;

    /// The one rank whose program has to send or to receive a message before it can happen, if that is known.
    fn needs_message_of(&self) -> Option<Rank> {
        None
    }
}

/// What a thread of a rank waits for.
#[derive(Clone, Debug)]
pub enum Condition {
    /// An own signal has reached a value. If only one rank can raise it, its leaving ends the wait.
    Signal(SignalCell, u64, Option<Rank>),
    /// That operation has ended.
    Finished(u64),
    /// That operation and all before it have ended.
    FinishedThrough(u64),
    /// Another operation may be issued.
    Room,
    /// Nothing will: a pause only.
    Never,
    /// All ranks have reached a stage of their lives.
    AllReached(Stage),
    /// All that this rank sent has arrived.
    Settled,
    /// Something has happened that a model knows.
    Event(Arc<dyn WaitEvent>),
}

/// Waits shorter than this are not published: nobody could read them in time.
const PUBLISH_AFTER_NS: u64 = 1_000_000;

impl Worker {
    /// Waits until the own signal at `cell` has reached `threshold`. `from` is the one rank that can raise it, if
    /// that is known; `call` names the wait where it is told.
    #[inline]
    pub fn wait_signal(
        &self,
        cell: SignalCell,
        threshold: u64,
        from: Option<Rank>,
        limit: Option<Duration>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        if !self.fork_guard().is_alive() {
            return Err(self.fault(self.fork_guard().why_not(), call));
        }
        if let SignalCell::Direct(word) = &cell {
            let spins = self.spins(from);
            if self.commands().are_used() {
                if self.wait_and_poll(spins, &|| {
                    certainly_reached(word.counter().load(Ordering::Acquire), threshold)
                }) {
                    return Ok(()); // SYNC signal-raise
                }
            } else {
                for _ in 0..spins {
                    if certainly_reached(word.counter().load(Ordering::Acquire), threshold) {
                        return Ok(()); // SYNC signal-raise
                    }
                    std::hint::spin_loop();
                }
            }
        }
        self.wait(&Condition::Signal(cell, threshold, from), limit, call)
    }

    /// Waits until `condition` holds. Meanwhile moves this rank's operations on, serves its peers, and tells the
    /// node state what it waits for. Ends with an error when the time runs out or a rank dies.
    #[cold]
    pub fn wait(
        &self,
        condition: &Condition,
        limit: Option<Duration>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        if !self.fork_guard().is_alive() {
            return Err(self.fault(self.fork_guard().why_not(), call));
        }
        match self.recorder() {
            None => self.wait_alive(condition, limit, call),
            Some(recorder) => self.wait_and_record(recorder, condition, limit, call),
        }
    }

    /// Waits as a rank that has not left.
    pub(in crate::engine) fn wait_alive(
        &self,
        condition: &Condition,
        limit: Option<Duration>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let start = self.platform().now_ns();
        let until_ns = limit.map_or(u64::MAX, |limit| {
            start.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
        });
        let mut told = PublishedWaitGuard { worker: self, by_us: false };
        let attendance = QueuePoller::new(self);
        let mut useful_at = start;
        loop {
            self.progress();
            if self.commands().are_used() && self.poll_on(&|| self.met(condition)) {
                useful_at = self.platform().now_ns();
            }
            if self.has_shares() {
                self.share();
            }
            if self.met(condition) {
                self.platform().waited(start);
                return Ok(());
            }
            if let Some(cause) = self.end_of_job(condition) {
                return Err(self.fault(cause, call));
            }
            let now = self.platform().now_ns();
            if now >= until_ns {
                return Err(self.fault(Cause::TimedOut { after: limit.unwrap_or_default() }, call));
            }
            if now - start > PUBLISH_AFTER_NS {
                told.publish(condition, limit, call, start);
                if let Some(cause) = self.probe_error() {
                    return Err(self.fault(cause, call));
                }
            }
            self.end_what_only_the_left_could_run();
            self.replace_helper();
            let waited_ns = now.saturating_sub(useful_at); // who is of use stays awake
            let until_ns = self.until_asked(self.until_room(until_ns, now), start, now);
            let met = |condition: &Condition| {
                self.met(condition)
                    || self.poisoned(condition).is_some()
                    || self.queues_look_ready(false)
                    || self.has_shares()
            };
            let work = || self.has_work();
            let (rest, rise) = (|| attendance.rest(), || attendance.rise());
            let (met, work, rest, rise) = (&met, &work, &rest, &rise);
            self.platform().pause(Pause { condition, waited_ns, until_ns, met, work, rest, rise });
        }
    }

    /// WaitSpec when a thread pauses: it publishes a wait that has become a long one, though nothing wakes it, and asks a
    /// watch that is urgent. Where threads do not sleep but are simulated, nobody reads what they wait for before all
    /// have looked around.
    fn until_asked(&self, until_ns: u64, start: u64, now: u64) -> u64 {
        let long_at = start.saturating_add(PUBLISH_AFTER_NS + 1);
        let is_asked = self.wait_probe_is_urgent() || self.platform().lets_threads_sleep();
        if is_asked && now < long_at { until_ns.min(long_at) } else { until_ns }
    }

    /// Who alone can end a wait for that.
    fn ended_by(&self, condition: &Condition) -> Option<EndedBy> {
        match condition {
            Condition::Signal(_, _, Some(by)) if *by != self.rank() => Some(EndedBy::Signal(*by)),
            Condition::Event(event) => event.needs_message_of().map(EndedBy::Message),
            _ => None,
        }
    }

    /// What goes on in this rank while its program waits for that.
    fn under_way(&self, condition: &Condition) -> UnderWay {
        let awaited = if let Condition::Event(event) = condition { Some(event) } else { None };
        let own = self.agent().map_or(UnderWay::default(), |agent| agent.under_way(awaited));
        UnderWay { signals: own.signals || self.commands().are_used(), ..own }
    }

    /// Whether `condition` holds, or never will, which is an error. Moves this rank's operations on; never waits.
    pub fn test(&self, condition: &Condition, call: &dyn Fn() -> String) -> Result<bool> {
        self.progress();
        if self.met(condition) {
            return Ok(true);
        }
        self.end_of_job(condition).map_or(Ok(false), |cause| Err(self.fault(cause, call)))
    }

    /// Whether a condition holds now.
    pub fn met(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Signal(cell, threshold, _) => {
                let count = cell.read(self.fabric());
                let verdict = || self.signal_control_of(cell)?.check_threshold(count, *threshold);
                certainly_reached(count, *threshold) || verdict() == Some(Ok(()))
            }
            Condition::Finished(number) => self.operations().is_finished(*number),
            Condition::FinishedThrough(number) => self.operations().is_finished_through(*number),
            Condition::Never => false,
            Condition::Room => self.operations().has_room(),
            Condition::Settled => self.fabric().is_quiescent(),
            Condition::Event(event) => event.happened(),
            Condition::AllReached(stage) => {
                Rank::all(self.size()).all(|rank| self.node_state().rank_state(rank).stage() >= *stage)
            }
        }
    }

    /// Why a wait cannot end well any more. OperationSet under way are failed by their fabric first, so that no
    /// buffer is in use when the wait for them ends.
    fn end_of_job(&self, condition: &Condition) -> Option<Cause> {
        if !self.fork_guard().is_alive() {
            return Some(self.fork_guard().why_not()); // another thread has left for the rank
        }
        let Some(cause) = self.death() else {
            return self.poisoned(condition).or_else(|| self.left(condition));
        };
        match condition {
            Condition::Finished(_) | Condition::FinishedThrough(_) => {
                self.fail_operations(&cause);
                None
            }
            Condition::Event(_) => {
                self.fail_operations(&cause);
                Some(cause)
            }
            _ => Some(cause),
        }
    }

    /// Why no call of the rank ends well any more, if so. OperationSet under way are failed then, and use no buffer.
    pub fn end_if_over(&self) -> Option<Cause> {
        let cause = self.death()?;
        self.fail_operations(&cause);
        Some(cause)
    }

    /// That what was to raise the signal failed before it had come that far, if so.
    fn poisoned(&self, condition: &Condition) -> Option<Cause> {
        let Condition::Signal(cell, threshold, _) = condition else { return None };
        let (poison, stood) = self.signal_control_of(cell)?.poison_and_value()?;
        (!reached(stood, *threshold)).then(|| poison.cause())
    }

    /// That the ranks which could raise the signal have left, if so. What they did before is looked at once more.
    fn left(&self, condition: &Condition) -> Option<Cause> {
        let is_past = |rank: Rank, stage: Stage| self.node_state().rank_state(rank).stage() >= stage;
        if let Condition::Event(event) = condition {
            let (peer, stage) = event.impossible_after()?;
            let vain = peer != self.rank() && is_past(peer, stage) && !self.met(condition);
            return vain.then_some(Cause::PeerLeft { peer });
        }
        let Condition::Signal(_, _, from) = condition else { return None };
        let is_gone = |rank: Rank| is_past(rank, Stage::Leaving);
        let mut others = Rank::all(self.size()).filter(|&rank| rank != self.rank());
        let peer = match *from {
            Some(peer) => (peer != self.rank() && is_gone(peer)).then_some(peer)?,
            None => others.clone().next_back().filter(|_| others.all(is_gone))?,
        };
        // What this rank has under way itself may raise it yet.
        let is_quiet = self.is_idle() && !self.queues_are_busy();
        (is_quiet && !self.met(condition)).then_some(Cause::PeerLeft { peer })
    }

    /// One step of waiting for something that no condition describes, such as room at a fabric.
    pub fn relax(&self, call: &str) -> Result<()> {
        self.progress();
        self.check().map_err(|cause| self.fault(cause, || call.to_string()))?;
        self.breathe();
        Ok(())
    }

    /// Lets others run for a moment, moving this rank's operations on: where something is about to be over.
    pub fn pause(&self) {
        self.progress();
        self.breathe();
    }

    /// A short pause.
    pub(in crate::engine) fn breathe(&self) {
        let (now, never) = (self.platform().now_ns(), Condition::Never);
        let (met, work, rest) = (|_: &Condition| false, || true, || ());
        let (met, work, rest, rise) = (&met, &work, &rest, &rest);
        self.platform().pause(Pause {
            condition: &never,
            waited_ns: 0,
            until_ns: now,
            met,
            work,
            rest,
            rise,
        });
    }

    /// Whether something other than a condition needs a thread of this rank.
    pub(in crate::engine) fn has_work(&self) -> bool {
        self.fabric().has_work()
            || self.agent_has_work()
            || self.node_state().is_over()
            || self.queues_look_ready(true)
    }
}

/// Takes the published wait back when the waiting ends, however it ends.
struct PublishedWaitGuard<'m> {
    worker: &'m Worker,
    by_us: bool,
}

impl PublishedWaitGuard<'_> {
    fn publish(
        &mut self,
        condition: &Condition,
        limit: Option<Duration>,
        call: &dyn Fn() -> String,
        since_ns: u64,
    ) {
        if !self.by_us && !self.worker.publishing_wait().swap(true, Ordering::Acquire) {
            self.by_us = true;
            let ended_by = if limit.is_none() { self.worker.ended_by(condition) } else { None };
            let (under_way, thread) = (self.worker.under_way(condition), process::thread_id());
            let wait = PublishedWait { call: call(), since_ns, ended_by, under_way, thread };
            self.worker.rank_state().publish_wait(&wait);
        }
    }
}

impl Drop for PublishedWaitGuard<'_> {
    fn drop(&mut self) {
        if self.by_us {
            self.worker.rank_state().end_wait();
            self.worker.publishing_wait().store(false, Ordering::Release);
        }
    }
}
