//! Polling: a rank runs its own queues while a thread of it waits, and publishes that it does so.

use crate::base::Rank;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::run::readiness::RingState;
use crate::engine::wait::helper_control::HelperScope;
use crate::engine::worker::Worker;
use crate::queue::directory::{PollerKind, QueueDirectory};
use std::cell::Cell;

/// A waiting thread polls the ring once per this number of polls of signals. More polls would cost
/// posters time: a poll fetches the ring's cache line, and the next poster has to fetch it back.
/// Consecutive posts are read together anyway.
const POLLS_PER_RING_POLL: u32 = 4;
/// Number of polls of a wait before it registers as a poller, which costs two locked instructions.
const QUICK_POLLS: u32 = 16;

/// How often in a row a waiting thread may find work before it checks for a timeout or a failure.
const BUSY_POLLS_MAX: u32 = 256;

/// A waiting thread that polls the rank's queues or, as a helper, the queues of the whole node. When it is dropped,
/// also by a panic, it leaves the poll state; if it was the last poller and does not panic, it polls the queues once
/// more.
pub(in crate::engine) struct QueuePoller<'m> {
    worker: &'m Worker,
    scope: Option<HelperScope>,
    is_registered: Cell<bool>,
}

impl<'m> QueuePoller<'m> {
    /// A thread of the program begins to poll. It is not registered if it shares its processor: commands that other
    /// ranks leave to it would have to wait until it is scheduled.
    pub(in crate::engine) fn new(worker: &'m Worker) -> QueuePoller<'m> {
        let is_registered = worker.commands().are_used() && worker.has_processor();
        if is_registered {
            worker.commands().directory().poll_state.begin(PollerKind::OwnRank);
        }
        QueuePoller { worker, scope: None, is_registered: is_registered.into() }
    }

    /// A helper begins to poll.
    pub(in crate::engine) fn of_helper(worker: &'m Worker, help: HelperScope) -> QueuePoller<'m> {
        let poller = QueuePoller { worker, scope: Some(help), is_registered: false.into() };
        poller.resume();
        poller
    }

    /// The other ranks whose queues this thread polls.
    fn others(&self) -> impl Iterator<Item = (Rank, &'m QueueDirectory)> + use<'m> {
        let worker = self.worker;
        let all = if self.scope == Some(HelperScope::Node) { worker.size() } else { 0 };
        let others = Rank::all(all).filter(move |&rank| rank != worker.rank());
        others.filter_map(move |rank| Some((rank, worker.commands().directory_of(rank)?)))
    }

    /// Leaves the poll state before the thread sleeps. The thread has to check for work once more after this.
    pub(in crate::engine) fn suspend(&self) {
        if self.is_registered.replace(false) {
            self.worker.commands().directory().poll_state.end(PollerKind::OwnRank);
            self.others().for_each(|(_, directory)| {
                directory.poll_state.end(PollerKind::OtherRank);
            });
        }
    }

    /// Registers again after the sleep.
    pub(in crate::engine) fn resume(&self) {
        let polls = self.scope.is_some() || self.worker.commands().are_used() && self.worker.has_processor();
        if polls && !self.is_registered.replace(true) {
            self.worker.commands().directory().poll_state.begin(PollerKind::OwnRank);
            self.others().for_each(|(_, directory)| directory.poll_state.begin(PollerKind::OtherRank));
        }
    }

    /// Runs the queues of other ranks that look ready. Returns true if this made progress.
    pub(in crate::engine) fn poll_other_ranks(&self) -> bool {
        let mut progressed = false;
        for resolved in self.queues_of_others() {
            if self.worker.commands().looks_ready(&resolved, true, false) {
                progressed |= self.worker.run_queue_and_ready(&resolved);
            }
        }
        progressed
    }

    /// Returns true if [`QueuePoller::poll_other_ranks`] might find work.
    pub(in crate::engine) fn has_work(&self) -> bool {
        self.queues_of_others().any(|resolved| self.worker.commands().looks_ready(&resolved, true, true))
    }

    fn queues_of_others(&self) -> impl Iterator<Item = ResolvedQueue<'m>> + use<'m> {
        let worker = self.worker;
        let queues = move |(rank, directory): (Rank, &'m QueueDirectory)| {
            directory.numbers().filter_map(move |number| worker.commands().find_queue(rank, number))
        };
        self.others().flat_map(queues)
    }
}

impl Drop for QueuePoller<'_> {
    fn drop(&mut self) {
        if !self.is_registered.replace(false) {
            return;
        }
        self.others().for_each(|(_, directory)| {
            directory.poll_state.end(PollerKind::OtherRank);
        });
        let is_last =
            self.worker.commands().directory().poll_state.end(PollerKind::OwnRank) || self.scope.is_some();
        // A panicking thread does not poll again, because it may have panicked while it polled.
        if is_last && !std::thread::panicking() {
            self.worker.final_poll();
            self.worker.final_poll_of(|| self.queues_of_others());
        }
    }
}

/// The result of polling.
struct PollResult {
    /// True if the condition of the wait is met.
    met: bool,
    /// True if anything was run.
    progressed: bool,
}

impl Worker {
    /// Polls the condition `met` and the rank's own queues, until the condition is met or neither it nor the queues
    /// made progress in `spins` polls. Returns true if the condition is met.
    pub(in crate::engine) fn wait_and_poll(&self, spins: u32, met: &dyn Fn() -> bool) -> bool {
        if met() {
            return true;
        }
        // A wait that is about to end need not register. Until it does, other ranks do not leave commands to this rank.
        for _ in 0..QUICK_POLLS.min(spins) {
            if self.queues_look_ready(false) {
                break;
            }
            std::hint::spin_loop();
            if met() {
                return true;
            }
        }
        let _poller = QueuePoller::new(self);
        self.poll_until(spins, spins, met).met
    }

    /// Runs the queues that are ready, and polls on for a while. Returns true if anything was run.
    pub(in crate::engine) fn poll_on(&self, met: &dyn Fn() -> bool) -> bool {
        self.poll_until(POLLS_PER_RING_POLL, self.spins(None), met).progressed
    }

    /// Polls `polls` times, and `again` more times after each poll that found work. Stops after [`BUSY_POLLS_MAX`] of
    /// those, because the caller has to check for its timeout and for failures.
    #[inline]
    fn poll_until(&self, polls: u32, again: u32, met: &dyn Fn() -> bool) -> PollResult {
        let (mut left, mut progressed, mut uses) = (polls, false, 0);
        while left > 0 {
            if met() {
                return PollResult { met: true, progressed };
            }
            let with_ring = left.is_multiple_of(POLLS_PER_RING_POLL);
            let shared = self.has_shared_copies() && self.copy_shared_chunk();
            if self.run_calls().is_any() | self.forward_taken() | self.poll_ready(with_ring) | shared {
                uses += 1;
                (left, progressed) = (if uses < BUSY_POLLS_MAX { again } else { 0 }, true);
            } else {
                left -= 1;
                std::hint::spin_loop();
            }
        }
        PollResult { met: false, progressed }
    }

    /// Runs the rank's own queues that look ready, and continues the long actions that the rank runs for any queue.
    pub(in crate::engine) fn poll_queues(&self) {
        self.commands().use_inbox();
        if self.commands().has_long_actions() {
            self.advance_in_flight();
        }
        self.collect_offloaded();
        self.poll_ready(true);
        for resolved in self.commands().own_queues().filter(|resolved| resolved.queue.for_room() > 0) {
            self.run_queue_and_ready(&resolved);
        }
    }

    /// Runs the rank's own queues that look ready. Checks for new posts only if `with_ring`. Returns true if this made
    /// progress.
    #[inline]
    fn poll_ready(&self, with_ring: bool) -> bool {
        let mut progressed = self.commands().has_remote_note() && self.run_remote_notes();
        for resolved in self.commands().own_queues() {
            if self.commands().looks_ready(&resolved, with_ring, false) {
                progressed |= self.run_queue_and_ready(&resolved);
            }
        }
        progressed
    }

    /// Returns true if [`Worker::poll_queues`] might find work. `strict`: positions that are reserved and not written
    /// count as work, too.
    pub(in crate::engine) fn queues_look_ready(&self, strict: bool) -> bool {
        self.commands().has_remote_note()
            || self.commands().inbox_has_commands()
            || self.commands().are_used()
                && (self.calls_look_ready()
                    || self.commands().has_to_forward()
                    || self.have_offloaded_ended()
                    || self
                        .commands()
                        .own_queues()
                        .any(|resolved| self.commands().looks_ready(&resolved, true, strict)))
    }

    /// Polls the rank's queues for the last time before the thread stops polling.
    fn final_poll(&self) {
        self.run_calls();
        self.forward_taken();
        self.poll_queues();
        self.final_poll_of(|| self.commands().own_queues());
    }

    /// The last poll of these queues. Commands that other ranks left to this thread are run, or the lease is marked so
    /// that its holder runs them.
    fn final_poll_of<'q, Q: Iterator<Item = ResolvedQueue<'q>>>(&self, queues: impl Fn() -> Q) {
        let is_unwritten = |is: bool, resolved: ResolvedQueue<'_>| is | self.final_poll_queue(&resolved);
        if queues().fold(false, is_unwritten) {
            // A poster that writes after this barrier sees that no thread polls; one that wrote before it is read
            // below.
            self.platform().barrier();
            queues().for_each(|resolved| {
                self.run_queue_and_ready(&resolved);
            });
        }
    }

    /// The last poll of a queue. Returns true if it found positions that are reserved and not written.
    fn final_poll_queue(&self, resolved: &ResolvedQueue<'_>) -> bool {
        if !resolved.queue.lease().snapshot().is_free() || self.commands().is_ready(resolved, false, false) {
            self.run_queue_and_ready(resolved);
        }
        loop {
            match self.commands().unread(resolved, true) {
                RingState::Unwritten => return true,
                // It can be read now, so it was posted after the check above.
                RingState::Readable if self.run_queue_and_ready(resolved) => {}
                _ => return false,
            }
        }
    }
}
