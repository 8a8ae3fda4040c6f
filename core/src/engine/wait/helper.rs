//! A helper: a thread beside the program's own that moves a rank's work on, or that of all ranks of a node, while they
//! compute. It sleeps when there is nothing to do.

use crate::base::Rank;
use crate::engine::command_queue::QueuePoller;
use crate::engine::wait::platform::Pause;
use crate::engine::wait::{Condition, WaitEvent};
use crate::engine::worker::Worker;
use crate::node::node_state::Stage;
use crate::os::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// For whom a helper works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HelperScope {
    /// Its own rank: queues, requests of peers, messages.
    Rank,
    /// That, and the queues of all ranks of the node, as far as any may run them.
    Node,
}

/// A helper's end: asked for, and come.
#[derive(Debug, Default)]
pub struct HelperControl {
    asked: Arc<OnceEvent>,
    come: Arc<OnceEvent>,
    /// Nobody needs it yet.
    stands_by: AtomicBool,
}

impl HelperControl {
    /// Of a helper that only stands by until it is called up, or another rank has sent a command.
    pub fn of_one_standing_by() -> HelperControl {
        HelperControl { stands_by: AtomicBool::new(true), ..HelperControl::default() }
    }
}

/// What a helper's thread is named, so that it is told from threads of the program.
pub const HELPER_THREAD: &str = "tasuki-helper";

/// Something that one thread of the rank lets happen, and another waits for.
#[derive(Debug, Default)]
struct OnceEvent(AtomicBool);

impl OnceEvent {
    fn let_happen(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl WaitEvent for OnceEvent {
    fn happened(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        None
    }
}

/// What starts the node's helper in this rank when the one that had it has left.
#[derive(Default)]
pub(in crate::engine) struct NodeHelper(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl std::fmt::Debug for NodeHelper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeHelper({})", self.0.get().is_some())
    }
}

/// Lets the end of a helper come, also when it panics: whoever ends it waits for that.
struct HelperExit<'h> {
    worker: &'h Worker,
    end: &'h HelperControl,
}

impl Drop for HelperExit<'_> {
    fn drop(&mut self) {
        self.end.come.let_happen();
        self.worker.wake_own_threads();
    }
}

/// How long a helper goes on looking after it last had something to do, in ns. Waking it costs whoever does 3 to 6 us.
const AWAKE_NS: u64 = 50_000;
/// The same of one that was given a processor: ranks that compute for less find it awake.
const AWAKE_BOUND_NS: u64 = 200_000_000;
/// The longest that a helper sleeps while messages of its rank are under way, in ns: peers that move them on do not
/// wake it, which would cost each of them a look at its line.
const NAP_NS: u64 = 500_000;

impl Worker {
    /// When the rank that had the node's helper has left, and this one waits, `start` is called: it may start one here.
    pub fn set_helper_successor(&self, start: Box<dyn Fn() + Send + Sync>) {
        let first = self.node_helper().0.set(start).is_ok();
        debug_assert!(first, "a rank has one helper");
    }

    /// Starts the node's helper here, if the rank that had it has left.
    pub(in crate::engine) fn replace_helper(&self) {
        if self.node_state().lacks_helper()
            && let Some(start) = self.node_helper().0.get()
        {
            start();
        }
    }

    /// The life of a helper, perhaps one that is bound to a processor; returns when its end is asked for.
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
        let over = Condition::Event(end.asked.clone());
        let _gone = HelperExit { worker: self, end };
        let is_free = || !end.asked.happened() && !self.inbox_has_come() && self.check().is_ok();
        while end.stands_by.load(Ordering::Acquire) && is_free() {
            self.platform().keep_on_standby(&over);
        }
        let attendance = QueuePoller::of_helper(self, help);
        let mut useful_at = self.platform().now_ns();
        while !end.asked.happened() && self.check().is_ok() {
            self.progress();
            let now = self.platform().now_ns();
            if attendance.poll_other_ranks() | (self.has_shares() && self.share()) {
                useful_at = now;
                continue;
            }
            let met =
                |condition: &Condition| self.met(condition) || attendance.has_work() || self.has_shares();
            let work =
                || self.has_work() || attendance.has_work() || self.has_shares() || end.asked.happened();
            let (rest, rise) = (|| attendance.rest(), || attendance.rise());
            let (met, work, rest, rise) = (&met, &work, &rest, &rise);
            let waited_ns = now - useful_at;
            // Virtual time brings the news itself, and must not go on for naps where nothing happens any more.
            let naps = self.agent_is_busy() && self.platform().lets_threads_sleep();
            let until_ns = self.until_room(if naps { now + NAP_NS } else { u64::MAX }, now);
            let pause = Pause { condition: &over, waited_ns, until_ns, met, work, rest, rise };
            self.platform().pause_helper(pause, awake_ns);
        }
    }

    /// A helper that stands by is needed from now on.
    pub fn activate_helper(&self, end: &HelperControl) {
        if end.stands_by.swap(false, Ordering::AcqRel) {
            self.platform().activate_standby();
        }
    }

    /// Ends a helper of this rank, and waits until it has. For the thread that started it.
    pub fn end_helper(&self, end: &HelperControl) {
        end.asked.let_happen();
        let come = Condition::Event(end.come.clone());
        while !end.come.happened() {
            self.notify_helper(self.rank());
            // An error says that the job is over: the helper finds that out, too, unless it sleeps.
            if self.wait(&come, None, &|| "leave()".into()).is_err() {
                let until_ns = self.platform().now_ns() + NAP_NS;
                let (met, work, rest) = (|condition: &Condition| self.met(condition), || true, || ());
                let (condition, met, work, rest, rise) = (&come, &met, &work, &rest, &rest);
                self.platform().pause(Pause { condition, waited_ns: 0, until_ns, met, work, rest, rise });
            }
        }
    }

    /// Wakes this rank's own helper, if it has one and that sleeps: there is something under way for it to look at.
    #[inline]
    pub fn notify_own_helper(&self) {
        self.notify_helper(self.rank());
    }

    /// Wakes the helper of a rank, if it has one and that sleeps. What it is to look at has been stored before.
    pub(in crate::engine) fn notify_helper(&self, rank: Rank) {
        self.node_state().rank_state(rank).notify_helper(self.node_state().wake_mode());
    }

    /// Wakes the helper that looks at this rank's queues, its own or the node's, if there is one that sleeps. Whether
    /// there was.
    pub(in crate::engine) fn wakes_helper(&self) -> bool {
        let mode = self.node_state().wake_mode();
        [self.rank(), Rank(0)].into_iter().any(|rank| self.node_state().rank_state(rank).notify_helper(mode))
    }
}
