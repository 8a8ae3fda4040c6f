//! The helper: a thread besides the program's own that makes progress for a rank, or for all ranks
//! of a node, while they compute. It sleeps when there is nothing to do.

use crate::base::Rank;
use crate::base::sync::Ordering;
use crate::engine::command_queue::QueuePoller;
use crate::engine::wait::condition::{Condition, WaitEvent};
use crate::engine::wait::deadline::Deadline;
use crate::engine::wait::helper_control::{HelperControl, HelperScope};
use crate::engine::wait::platform::Pause;
use crate::engine::worker::Worker;
use crate::os::process;

/// The name of helper threads, which distinguishes them from threads of the program.
pub const HELPER_THREAD: &str = "tasuki-helper";

/// Confirms the end of a helper, also when it panics, because another thread waits for that.
struct HelperExit<'h> {
    worker: &'h Worker,
    end: &'h HelperControl,
}

impl Drop for HelperExit<'_> {
    fn drop(&mut self) {
        self.end.stopped.set();
        self.worker.wake_own_threads();
    }
}

/// How long a helper keeps polling after it last had something to do, in ns. Waking it costs the waker 3 to 6 us.
const AWAKE_NS: u64 = 50_000;
/// How long a helper with a processor of its own keeps polling, in ns: a rank that computes for a
/// shorter time finds it awake.
const AWAKE_BOUND_NS: u64 = 200_000_000;
/// The longest that a helper sleeps while messages of its rank are in progress, in ns. Peers that complete them do not
/// wake it, because that would cost each of them a read of its park line.
const NAP_NS: u64 = 500_000;

impl Worker {
    /// Runs a helper until its end is requested. `is_bound`: its thread is bound to a processor.
    pub fn help(&self, help: HelperScope, is_bound: bool, end: &HelperControl) {
        let awake_ns = match is_bound {
            true => AWAKE_BOUND_NS,
            false if self.has_processor() => AWAKE_NS,
            false => 0,
        };
        if let Some(recorder) = self.recorder() {
            recorder.name_thread("helper");
        }
        if self.platform().lets_threads_sleep() {
            process::name_thread(HELPER_THREAD);
        }
        let over = Condition::Event(end.stop_requested.clone());
        let _gone = HelperExit { worker: self, end };
        let is_free = || {
            !end.stop_requested.happened() && !self.commands().inbox_has_commands() && self.check().is_ok()
        };
        while end.on_standby.load(Ordering::Acquire) && is_free() {
            self.platform().keep_on_standby(&over);
        }
        let poller = QueuePoller::of_helper(self, help);
        let mut last_useful_ns = self.platform().now_ns();
        while !end.stop_requested.happened() && self.check().is_ok() {
            self.progress();
            let now = self.platform().now_ns();
            if poller.poll_other_ranks() | (self.has_shared_copies() && self.copy_shared_chunk()) {
                last_useful_ns = now;
                continue;
            }
            let met =
                |condition: &Condition| self.met(condition) || poller.has_work() || self.has_shared_copies();
            let work = || {
                self.has_work()
                    || poller.has_work()
                    || self.has_shared_copies()
                    || end.stop_requested.happened()
            };
            let (suspend, resume) = (|| poller.suspend(), || poller.resume());
            let (met, work, suspend, resume) = (&met, &work, &suspend, &resume);
            let waited_ns = now - last_useful_ns;
            // Virtual time advances by itself to the next event, and must not advance by naps when no event is left.
            let naps = self.agent_is_busy() && self.platform().lets_threads_sleep();
            let until_ns = self.commands().until_room(if naps { now + NAP_NS } else { u64::MAX }, now);
            let pause = Pause { condition: &over, waited_ns, until_ns, met, work, suspend, resume };
            self.platform().pause_helper(pause, awake_ns);
        }
    }

    /// Activates a helper that waits on standby.
    pub fn activate_helper(&self, end: &HelperControl) {
        if end.on_standby.swap(false, Ordering::AcqRel) {
            self.platform().activate_standby();
        }
    }

    /// Ends a helper of this rank and waits until it has ended. For the thread that started it.
    pub fn end_helper(&self, end: &HelperControl) {
        end.stop_requested.set();
        let stopped = Condition::Event(end.stopped.clone());
        while !end.stopped.happened() {
            self.node_state().notify_helper(self.rank());
            // An error means that the job is over. The helper detects that too, unless it sleeps.
            if self.wait(&stopped, Deadline::NEVER, &|| "leave()".into()).is_err() {
                let until_ns = self.platform().now_ns() + NAP_NS;
                let (met, work, suspend) = (|condition: &Condition| self.met(condition), || true, || ());
                let (condition, met, work, suspend, resume) = (&stopped, &met, &work, &suspend, &suspend);
                self.platform().pause(Pause {
                    condition,
                    waited_ns: 0,
                    until_ns,
                    met,
                    work,
                    suspend,
                    resume,
                });
            }
        }
    }

    /// Wakes this rank's own helper, if it has one that sleeps, to work on what has just been started.
    #[inline]
    pub fn notify_own_helper(&self) {
        self.node_state().notify_helper(self.rank());
    }

    /// Wakes the helper that runs this rank's queues, its own or the node's, if it sleeps. Returns
    /// true if one was woken.
    pub(in crate::engine) fn wakes_helper(&self) -> bool {
        [self.rank(), Rank(0)].into_iter().any(|rank| self.node_state().notify_helper(rank))
    }
}
