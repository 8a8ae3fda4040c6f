//! Waiting on real processors: spin, yield, doze, sleep.
//!
//! Several threads of a rank share its park line through its [`Waiters`](crate::node::waiters::Waiters).

use crate::base::Rank;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::engine::wait::condition::Condition;
use crate::engine::wait::platform::{Pause, Platform};
use crate::node::node_state::{NodeState, RankState};
use crate::node::park::{ASLEEP, DOZING, Epoch, ParkLine, WakeMode};
use crate::node::waiters::{WaiterRole, Waiters};
use crate::os::futex::{self, Scope};
use crate::os::membarrier::{self, FenceScope};
use crate::os::{affinity, clock, process};
use std::sync::Arc;
use std::time::Duration;

/// How long to spin before the processor is offered to others. If each rank has a processor: longer than any hand-over
/// under load. If ranks share processors, the rank that is to raise the signal may need this processor.
const SPIN_NS: u64 = 20_000;
/// How long to stay awake if each rank has a processor, which is offered to others meanwhile. A wake-up costs 5 us, and
/// 50 us if a hypervisor has to resume the processor: as long as the copy of some MiB.
const AWAKE_NS: u64 = 2_000_000;
/// The longest time awake, in ns. A rank stays awake for twice its last wait, up to this; after a longer wait it sleeps
/// as early as usual. A copy of 64 MiB takes 7 ms.
const AWAKE_NS_MAX: u64 = 20_000_000;
/// How long to offer the processor before sleeping if ranks share processors: sleeping lets the others work.
const YIELD_OVERSUBSCRIBED_NS: u64 = 50_000;
/// The length of a doze: the most that a wake-up lost between two stores can cost.
const DOZE: Duration = Duration::from_micros(100);
/// The longest sleep before conditions are checked again.
const SLEEP: Duration = Duration::from_millis(500);
/// How often to read a signal before the first pause: about 1 us.
const SPINS: u32 = 100;
/// How often to read a signal before the first pause if ranks share processors.
const SPINS_OVERSUBSCRIBED: u32 = 5;
/// How often to read a signal before the first pause if ranks share processors, but the signal
/// comes from a rank on another processor: about as long as a switch to another rank and back, 1.5
/// us.
const SPINS_OTHER_PROCESSOR: u32 = 40;

/// The platform of a rank that is a process or a thread of this computer.
#[derive(Debug)]
pub struct NodePlatform {
    rank: Rank,
    node_state: Arc<NodeState>,
    mode: WakeMode,
    fence_scope: FenceScope,
    waiters: Waiters<Condition>,
    /// How long to stay awake in the next wait, in ns.
    awake_ns: AtomicU64,
}

impl NodePlatform {
    /// Creates the platform of `rank`. All ranks that its membarriers must reach have registered
    /// with the scope `fence_scope`.
    pub fn new(rank: Rank, node_state: Arc<NodeState>, fence_scope: FenceScope) -> NodePlatform {
        NodePlatform {
            rank,
            mode: node_state.wake_mode(),
            node_state,
            fence_scope,
            waiters: Waiters::default(),
            awake_ns: AtomicU64::new(AWAKE_NS),
        }
    }

    fn rank_state(&self) -> &RankState {
        self.node_state.rank_state(self.rank)
    }

    fn is_oversubscribed(&self) -> bool {
        self.mode == WakeMode::Fence
    }

    /// Sleeps as the rank's parker, or as a follower.
    fn sleep(&self, pause: Pause<'_>) {
        let left = Duration::from_nanos(pause.until_ns.saturating_sub(self.now_ns()));
        let wake = |word: &AtomicU32| futex::wake(word, 1, Scope::Private);
        (pause.suspend)();
        match self.waiters.enter(pause.condition.clone()) {
            WaiterRole::Follower(waiter) => {
                if !(pause.met)(pause.condition) && !(pause.work)() {
                    futex::wait(waiter.word(), 0, left.min(SLEEP), Scope::Private);
                }
                self.waiters.leave(&waiter, pause.met, wake);
            }
            WaiterRole::Parker(waiter) => {
                self.park(&pause, left);
                self.waiters.leave_as_parker(&waiter, pause.met, wake);
            }
        }
        (pause.resume)();
    }

    fn park(&self, pause: &Pause<'_>, left: Duration) {
        let line = self.rank_state().park();
        let (epoch, limit) = self.begin_sleep(line);
        if !(pause.work)() && !self.waiters.any(pause.met) {
            futex::wait(line.futex(), epoch.0, left.min(limit), Scope::Shared);
        } else if self.is_oversubscribed() {
            process::yield_now(); // the work may be for another thread, which needs this processor
        }
        line.end_sleep();
    }

    /// Begins to sleep as deeply as the wake mode and the node's limit on membarriers allow.
    /// Returns the longest sleep, too.
    fn begin_sleep(&self, line: &ParkLine) -> (Epoch, Duration) {
        if self.mode == WakeMode::Fence {
            return (line.begin_sleep(ASLEEP, || ()), SLEEP);
        }
        if !self.node_state.take_barrier_token(self.now_ns()) {
            return (line.begin_sleep(DOZING, || ()), DOZE);
        }
        (line.begin_sleep(ASLEEP, || membarrier::fence(self.fence_scope)), SLEEP)
    }
}

impl Platform for NodePlatform {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn pause(&self, pause: Pause<'_>) {
        if self.is_oversubscribed() {
            self.rank_state().park().set_processor(affinity::current());
            return if pause.waited_ns < YIELD_OVERSUBSCRIBED_NS {
                process::yield_now()
            } else {
                self.sleep(pause)
            };
        }
        if pause.waited_ns >= self.awake_ns.load(Ordering::Relaxed) {
            return self.sleep(pause);
        }
        if pause.waited_ns >= SPIN_NS {
            process::yield_now();
        }
        // Spins with pauses, because the awaited rank may run on the other hardware thread of this core.
        for _ in 0..self.spins() {
            if (pause.met)(pause.condition) {
                return;
            }
            std::hint::spin_loop();
        }
    }

    fn pause_helper(&self, pause: Pause<'_>, awake_ns: u64) {
        if pause.waited_ns < awake_ns && self.is_oversubscribed() {
            return process::yield_now(); // the helper may share its processor, too
        }
        if pause.waited_ns < awake_ns {
            for _ in 0..self.spins() {
                if (pause.met)(pause.condition) {
                    return;
                }
                std::hint::spin_loop();
            }
            return;
        }
        let line = self.rank_state().helper();
        let begin_sleep = |line: &ParkLine| match pause.until_ns {
            u64::MAX => self.begin_sleep(line),
            // A nap: the longest delay that a wake-up lost between two stores can cause.
            until => {
                (line.begin_sleep(DOZING, || ()), Duration::from_nanos(until.saturating_sub(self.now_ns())))
            }
        };
        if let Some((epoch, limit)) = line.sleep_unless(pause.suspend, begin_sleep, pause.work) {
            futex::wait(line.futex(), epoch.0, limit, Scope::Shared);
        }
        line.end_sleep();
        (pause.resume)();
    }

    fn waited(&self, since_ns: u64) {
        if !self.is_oversubscribed() {
            let took = self.now_ns().saturating_sub(since_ns);
            let next = if 2 * took <= AWAKE_NS_MAX { AWAKE_NS.max(2 * took) } else { AWAKE_NS };
            self.awake_ns.store(next, Ordering::Relaxed);
        }
    }

    fn spins(&self) -> u32 {
        if self.is_oversubscribed() { SPINS_OVERSUBSCRIBED } else { SPINS }
    }

    fn spins_for(&self, from: Rank) -> u32 {
        match self.rank_state().park().shares_processor_with(self.node_state.rank_state(from).park()) {
            Some(true) => 0,
            Some(false) => SPINS_OTHER_PROCESSOR,
            None => SPINS_OVERSUBSCRIBED,
        }
    }

    fn shares_processor(&self, with: Rank) -> bool {
        self.rank_state().park().shares_processor_with(self.node_state.rank_state(with).park()) == Some(true)
    }

    fn offer(&self) {
        if self.is_oversubscribed() {
            self.rank_state().park().set_processor(affinity::current());
            process::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }

    fn barrier(&self) {
        if self.mode == WakeMode::Membarrier {
            membarrier::fence(self.fence_scope);
        }
    }

    fn has_processor(&self) -> bool {
        !self.is_oversubscribed()
    }

    fn compute(&self, ns: u64) {
        let end = self.now_ns().saturating_add(ns);
        while self.now_ns() < end {
            std::hint::spin_loop();
        }
    }

    fn spawn(&self, body: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn FnOnce() + Send>> {
        let thread = std::thread::Builder::new().spawn(body)?;
        Ok(Box::new(move || drop(thread.join())))
    }
}
