//! The one function that waits, for all kinds of conditions.

pub(super) mod alarm;
pub(super) mod awaited;
pub(super) mod block_on;
mod call_limit;
pub(super) mod condition;
pub(super) mod deadline;
pub(super) mod helper_control;
pub(super) mod helper_thread;
#[cfg(not(loom))]
pub(super) mod node_platform;
pub(super) mod platform;
pub(super) mod probe;
mod progress;

use crate::base::sync::Ordering;
use crate::base::{Cause, Rank, Result};
use crate::engine::command_queue::QueuePoller;
use crate::engine::wait::condition::{Condition, OneOf, WaitEvent};
use crate::engine::wait::deadline::Deadline;
use crate::engine::wait::platform::Pause;
use crate::engine::wait::probe::wait_probe_is_urgent;
use crate::engine::worker::Worker;
use crate::fabric::{SignalCell, certainly_reached, reached};
use crate::node::node_state::{EndedBy, PublishedWait, RankStage, UnderWay};
use crate::os::process;

/// Waits shorter than this are not published, because no reader could see them in time.
const PUBLISH_AFTER_NS: u64 = 1_000_000;

impl Worker {
    /// Waits until the own signal at `cell` has reached `threshold`. `from` is the only rank that
    /// can raise it, if that is known; `call` names the wait in errors and reports.
    #[inline]
    pub fn wait_signal(
        &self,
        cell: SignalCell,
        threshold: u64,
        from: Option<Rank>,
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
        self.wait(&Condition::Signal(cell, threshold, from), self.call_deadline(), call)
    }

    /// Waits until `condition` is met. Meanwhile makes progress for this rank and its peers, and
    /// publishes the wait on the node state. Errors: the deadline is reached, a rank has died, or
    /// the condition can no longer be met.
    #[cold]
    pub fn wait(&self, condition: &Condition, deadline: Deadline, call: &dyn Fn() -> String) -> Result<()> {
        if !self.fork_guard().is_alive() {
            return Err(self.fault(self.fork_guard().why_not(), call));
        }
        match self.recorder() {
            None => self.wait_loop(condition, deadline, call),
            Some(recorder) => self.wait_and_record(recorder, condition, deadline, call),
        }
    }

    /// Waits for `condition` without recording a trace event. Only for a rank that has not left.
    pub(in crate::engine) fn wait_loop(
        &self,
        condition: &Condition,
        deadline: Deadline,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let start = self.platform().now_ns();
        let until_ns = deadline.until_ns();
        let mut published = PublishedWaitGuard { worker: self, by_us: false, has_asked: false };
        let poller = QueuePoller::new(self);
        let (mut last_useful_ns, mut alarm_at_ns) = (start, start + PUBLISH_AFTER_NS);
        loop {
            self.progress();
            if self.commands().are_used() && self.poll_on(&|| self.met(condition)) {
                last_useful_ns = self.platform().now_ns();
            }
            if self.has_shared_copies() {
                self.copy_shared_chunk();
            }
            if self.met(condition) {
                self.platform().waited(start);
                return Ok(());
            }
            if let Some(cause) = self.end_of_job(condition) {
                return Err(self.fault(cause, call));
            }
            let now = self.platform().now_ns();
            let is_alarm_due = now >= alarm_at_ns;
            if is_alarm_due {
                alarm_at_ns = now + PUBLISH_AFTER_NS;
            }
            if self.alarm().handle(self.fabric(), is_alarm_due)
                && condition.can_be_abandoned()
                && let Some(cause) = self.wait_probes().failure()
            {
                return Err(self.fault(cause, call));
            }
            if now >= until_ns {
                let peer = self.ended_by(condition).map(EndedBy::rank);
                return Err(self.fault(Cause::TimedOut { after: deadline.limit() }, call).with_peer(peer));
            }
            if now - start > PUBLISH_AFTER_NS {
                if condition.is_reported() {
                    published.publish(condition, deadline, call, start);
                }
                if condition.can_be_abandoned() {
                    published.has_asked = true;
                    if let Some(cause) = self.wait_probes().error() {
                        return Err(self.fault(cause, call));
                    }
                }
            }
            self.fail_commands_of_departed_ranks();
            self.node_helper().replace(self.node_state());
            let waited_ns = now.saturating_sub(last_useful_ns); // a thread that had something to do stays awake
            let until_ns = until_ns.min(self.agent().map_or(u64::MAX, |agent| agent.again_at_ns()));
            let until_ns = self.publish_deadline(self.commands().until_room(until_ns, now), start, now);
            let met = |condition: &Condition| {
                self.met(condition)
                    || self.poisoned(condition).is_some()
                    || self.queues_look_ready(false)
                    || self.has_shared_copies()
            };
            let work = || self.has_work();
            let (suspend, resume) = (|| poller.suspend(), || poller.resume());
            let (met, work, suspend, resume) = (&met, &work, &suspend, &resume);
            self.platform().pause(Pause { condition, waited_ns, until_ns, met, work, suspend, resume });
        }
    }

    /// Returns when a pause must end so that a wait that has become long is published and an urgent
    /// probe is called, though nothing wakes the thread. In the simulator published waits are read
    /// only when no event is left, so no pause ends for them.
    fn publish_deadline(&self, until_ns: u64, start: u64, now: u64) -> u64 {
        let long_at = start.saturating_add(PUBLISH_AFTER_NS + 1);
        let is_asked = wait_probe_is_urgent() || self.platform().lets_threads_sleep();
        if is_asked && now < long_at { until_ns.min(long_at) } else { until_ns }
    }

    /// Returns the only rank that can end a wait for `condition`, if that is known.
    fn ended_by(&self, condition: &Condition) -> Option<EndedBy> {
        match condition {
            Condition::Signal(_, _, Some(by)) if *by != self.rank() => Some(EndedBy::Signal(*by)),
            Condition::Event(event) => event.needs_message_of().map(EndedBy::Message),
            _ => None,
        }
    }

    /// Returns what is in progress in this rank while its program waits for `condition`.
    fn under_way(&self, condition: &Condition) -> UnderWay {
        let awaited = if let Condition::Event(event) = condition { Some(event) } else { None };
        let own = self.agent().map_or(UnderWay::default(), |agent| agent.under_way(awaited));
        UnderWay { signals: own.signals || self.commands().are_used(), ..own }
    }

    /// Returns true if `condition` is met; an error if it can no longer be. Makes progress; never waits.
    pub fn test(&self, condition: &Condition, call: &dyn Fn() -> String) -> Result<bool> {
        self.progress();
        if self.met(condition) {
            return Ok(true);
        }
        self.end_of_job(condition).map_or(Ok(false), |cause| Err(self.fault(cause, call)))
    }

    /// Returns true if a condition is met, or can no longer be met. Makes no progress.
    pub fn is_decided(&self, condition: &Condition) -> bool {
        self.met(condition)
            || self.check().is_err()
            || self.poisoned(condition).is_some()
            || self.peers_left(condition).is_some()
    }

    /// Returns true if an event has happened or can no longer happen. Makes no progress.
    pub fn is_event_decided(&self, event: &dyn WaitEvent) -> bool {
        event.happened() || self.check().is_err() || self.left_before(event).is_some()
    }

    /// Returns true if a condition is met now.
    pub fn met(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Signal(cell, threshold, _) => {
                let count = cell.read(self.fabric());
                let verdict = || self.commands().signal_control_of(cell)?.check_threshold(count, *threshold);
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

    /// Returns why a wait can no longer succeed. After a death, the fabric first fails the
    /// operations in flight, so that no buffer is in use when the wait for them ends.
    pub(in crate::engine) fn end_of_job(&self, condition: &Condition) -> Option<Cause> {
        if !self.fork_guard().is_alive() {
            return Some(self.fork_guard().why_not()); // another thread has made the rank leave
        }
        let Some(cause) = self.death() else {
            return self.poisoned(condition).or_else(|| self.peers_left(condition));
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

    /// Returns why no call of the rank can succeed any more, if so. Operations in flight are failed
    /// then and use no buffer.
    pub fn end_if_over(&self) -> Option<Cause> {
        let cause = self.death()?;
        self.fail_operations(&cause);
        Some(cause)
    }

    /// Returns the cause if the signal was poisoned before it reached the threshold.
    fn poisoned(&self, condition: &Condition) -> Option<Cause> {
        let Condition::Signal(cell, threshold, _) = condition else { return None };
        let (poison, stood) = self.commands().signal_control_of(cell)?.poison_and_value()?;
        (!reached(stood, *threshold)).then(|| poison.cause())
    }

    /// Returns a cause if all ranks that could raise the signal have left. Checks the condition once more after that.
    fn peers_left(&self, condition: &Condition) -> Option<Cause> {
        let is_gone = |rank: Rank| self.node_state().rank_state(rank).stage() >= RankStage::Leaving;
        let is_other = |rank: &Rank| *rank != self.rank();
        let mut others = Rank::all(self.size()).filter(is_other);
        if let Condition::Event(event) = condition {
            let last = match event.needs_one_of() {
                OneOf::NoRanks => None,
                OneOf::AllRanks => others.clone().next_back().filter(|_| others.all(is_gone)),
                OneOf::Ranks(ranks) => {
                    let mut others = ranks.iter().copied().filter(is_other);
                    others.clone().next_back().filter(|_| others.all(is_gone))
                }
            };
            let left = last.filter(|_| !event.happened()).map(|peer| Cause::PeerLeft { peer });
            return left.or_else(|| self.left_before(&**event));
        }
        let Condition::Signal(_, _, from) = condition else { return None };
        let peer = match *from {
            Some(peer) => (peer != self.rank() && is_gone(peer)).then_some(peer)?,
            None => others.clone().next_back().filter(|_| others.all(is_gone))?,
        };
        // An operation or command of this rank may still raise it.
        let is_quiet = self.is_idle() && !self.commands().are_busy();
        (is_quiet && !self.met(condition)).then_some(Cause::PeerLeft { peer })
    }

    /// Returns a cause if the only rank that can cause an event has left. Looks at the event once more after that.
    fn left_before(&self, event: &dyn WaitEvent) -> Option<Cause> {
        let (peer, stage) = event.impossible_after()?;
        let is_past = self.node_state().rank_state(peer).stage() >= stage;
        (peer != self.rank() && is_past && !event.happened()).then_some(Cause::PeerLeft { peer })
    }

    /// Makes progress and pauses for a moment; for waits that no condition describes, such as for room at a fabric.
    pub fn relax(&self, call: &str) -> Result<()> {
        self.progress();
        let checked = self.check().and_then(|()| self.check_deadline());
        checked.map_err(|cause| self.fault(cause, || call.to_string()))?;
        self.pause_briefly();
        Ok(())
    }

    /// Makes progress and lets other threads run for a moment; for waits that end soon.
    pub fn pause(&self) {
        self.progress();
        self.pause_briefly();
    }

    /// Pauses for a moment.
    pub(in crate::engine) fn pause_briefly(&self) {
        let (now, never) = (self.platform().now_ns(), Condition::Never);
        let (met, work, suspend) = (|_: &Condition| false, || true, || ());
        let (met, work, suspend, resume) = (&met, &work, &suspend, &suspend);
        self.platform().pause(Pause {
            condition: &never,
            waited_ns: 0,
            until_ns: now,
            met,
            work,
            suspend,
            resume,
        });
    }

    /// Returns true if something other than a condition needs a thread of this rank.
    pub(in crate::engine) fn has_work(&self) -> bool {
        self.fabric().has_work()
            || self.agent_has_work()
            || self.node_state().is_over()
            || self.alarm().is_unhandled(self.fabric(), self.platform().lets_threads_sleep())
            || self.queues_look_ready(true)
    }
}

/// Withdraws the published wait when the waiting ends in any way, and tells the probe.
struct PublishedWaitGuard<'m> {
    worker: &'m Worker,
    by_us: bool,
    /// True if the probe was asked.
    has_asked: bool,
}

impl PublishedWaitGuard<'_> {
    fn publish(
        &mut self,
        condition: &Condition,
        deadline: Deadline,
        call: &dyn Fn() -> String,
        since_ns: u64,
    ) {
        if !self.by_us && !self.worker.publishing_wait().swap(true, Ordering::Acquire) {
            self.by_us = true;
            let ended_by = if deadline == Deadline::NEVER { self.worker.ended_by(condition) } else { None };
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
        if self.has_asked {
            self.worker.wait_probes().wait_ended();
        }
    }
}
