//! Waiting on real processors: spin, yield, doze, sleep.
//!
//! Several threads of a rank share its park line through its [`Waiters`](crate::node::waiters::Waiters).

use crate::base::Rank;
use crate::engine::wait::Condition;
use crate::engine::wait::platform::{Pause, Platform};
use crate::node::node_state::{NodeState, RankState};
use crate::node::park::{ASLEEP, DOZING, Epoch, ParkLine, WakeMode};
use crate::node::waiters::{WaiterRole, Waiters};
use crate::os::futex::{self, Scope};
use crate::os::membarrier::{self, FenceScope};
use crate::os::{affinity, clock, process};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How long to spin before the processor is offered to others. Ranks with a processor each: longer than any
/// hand-over under load. Ranks that share processors: whoever is to raise the signal may need this very one.
const SPIN_NS: u64 = 20_000;
/// How long to stay awake, if each rank has a processor, which is offered to others meanwhile. A wake-up costs 5 us,
/// and 50 where a hypervisor has to bring the processor back: as long as some MiB take to copy.
const AWAKE_NS: u64 = 2_000_000;
/// The most that a rank stays awake because its last wait took half as long; after a longer one it sleeps as soon as
/// ever. 64 MiB take 7 ms.
const AWAKE_MOST_NS: u64 = 20_000_000;
/// How long to offer the processor before sleeping where ranks share processors: sleeping is what lets the others work.
const YIELD_CROWDED_NS: u64 = 50_000;
/// A doze: the most that a wake-up lost between two stores can cost.
const DOZE: Duration = Duration::from_micros(100);
/// The longest sleep before looking around.
const SLEEP: Duration = Duration::from_millis(500);
/// Looks at a signal before the first pause: about 1 us.
const SPINS: u32 = 100;
/// The same where ranks share processors.
const SPINS_CROWDED: u32 = 5;
/// There, where what is waited for comes from a rank that runs on another processor: about as long as it takes to let
/// another rank have this one and come back, 1.5 us.
const SPINS_ACROSS: u32 = 40;

/// The host of a rank that is a process or a thread of this machine.
#[derive(Debug)]
pub struct NodePlatform {
    rank: Rank,
    node_state: Arc<NodeState>,
    mode: WakeMode,
    group: FenceScope,
    room: Waiters<Condition>,
    /// How long to stay awake in the next wait.
    awake_ns: AtomicU64,
}

impl NodePlatform {
    /// The host of `rank`. `group` is whom its membarrier reaches: all ranks must have registered with it.
    pub fn new(rank: Rank, node_state: Arc<NodeState>, group: FenceScope) -> NodePlatform {
        NodePlatform {
            rank,
            mode: node_state.wake_mode(),
            node_state,
            group,
            room: Waiters::default(),
            awake_ns: AtomicU64::new(AWAKE_NS),
        }
    }

    fn rank_state(&self) -> &RankState {
        self.node_state.rank_state(self.rank)
    }

    fn is_crowded(&self) -> bool {
        self.mode == WakeMode::Fence
    }

    /// Sleeps as the rank's parker, or as one of its other threads.
    fn sleep(&self, pause: Pause<'_>) {
        let left = Duration::from_nanos(pause.until_ns.saturating_sub(self.now_ns()));
        let wake = |word: &AtomicU32| futex::wake(word, 1, Scope::Private);
        (pause.rest)();
        match self.room.enter(pause.condition.clone()) {
            WaiterRole::Follower(waiter) => {
                if !(pause.met)(pause.condition) && !(pause.work)() {
                    futex::wait(waiter.word(), 0, left.min(SLEEP), Scope::Private);
                }
                self.room.leave(&waiter, pause.met, wake);
            }
            WaiterRole::Parker(waiter) => {
                self.park(&pause, left);
                self.room.leave_as_parker(&waiter, pause.met, wake);
            }
        }
        (pause.rise)();
    }

    fn park(&self, pause: &Pause<'_>, left: Duration) {
        let line = self.rank_state().park();
        let (epoch, limit) = self.begin_sleep(line);
        if !(pause.work)() && !self.room.any(pause.met) {
            futex::wait(line.futex(), epoch.0, left.min(limit), Scope::Shared);
        } else if self.is_crowded() {
            process::yield_now(); // what is to be done may be another thread's, which needs this processor for it
        }
        line.end_sleep();
    }

    /// Lies down as deep as the wake mode and the node's bucket of barriers allow; for how long at most.
    fn begin_sleep(&self, line: &ParkLine) -> (Epoch, Duration) {
        if self.mode == WakeMode::Fence {
            return (line.begin_sleep(ASLEEP, || ()), SLEEP);
        }
        if !self.node_state.take_barrier_token(self.now_ns()) {
            return (line.begin_sleep(DOZING, || ()), DOZE);
        }
        (line.begin_sleep(ASLEEP, || membarrier::fence(self.group)), SLEEP)
    }
}

impl Platform for NodePlatform {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn pause(&self, pause: Pause<'_>) {
        if self.is_crowded() {
            self.rank_state().park().set_processor(affinity::current());
            return if pause.waited_ns < YIELD_CROWDED_NS { process::yield_now() } else { self.sleep(pause) };
        }
        if pause.waited_ns >= self.awake_ns.load(Ordering::Relaxed) {
            return self.sleep(pause);
        }
        if pause.waited_ns >= SPIN_NS {
            process::yield_now();
        }
        // Mostly spinning, gently: the processor that this rank waits for may be the other half of its core.
        for _ in 0..self.spins() {
            if (pause.met)(pause.condition) {
                return;
            }
            std::hint::spin_loop();
        }
    }

    fn pause_helper(&self, pause: Pause<'_>, awake_ns: u64) {
        if pause.waited_ns < awake_ns && self.is_crowded() {
            return process::yield_now(); // it may share its processor all the same
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
            // A nap: the most that a wake-up lost between two stores can cost.
            until => {
                (line.begin_sleep(DOZING, || ()), Duration::from_nanos(until.saturating_sub(self.now_ns())))
            }
        };
        if let Some((epoch, limit)) = line.sleep_unless(pause.rest, begin_sleep, pause.work) {
            futex::wait(line.futex(), epoch.0, limit, Scope::Shared);
        }
        line.end_sleep();
        (pause.rise)();
    }

    fn waited(&self, since_ns: u64) {
        if !self.is_crowded() {
            let took = self.now_ns().saturating_sub(since_ns);
            let next = if 2 * took <= AWAKE_MOST_NS { AWAKE_NS.max(2 * took) } else { AWAKE_NS };
            self.awake_ns.store(next, Ordering::Relaxed);
        }
    }

    fn spins(&self) -> u32 {
        if self.is_crowded() { SPINS_CROWDED } else { SPINS }
    }

    fn spins_for(&self, from: Rank) -> u32 {
        match self.rank_state().park().shares_processor_with(self.node_state.rank_state(from).park()) {
            Some(true) => 0,
            Some(false) => SPINS_ACROSS,
            None => SPINS_CROWDED,
        }
    }

    fn shares_processor(&self, with: Rank) -> bool {
        self.rank_state().park().shares_processor_with(self.node_state.rank_state(with).park()) == Some(true)
    }

    fn offer(&self) {
        if self.is_crowded() {
            self.rank_state().park().set_processor(affinity::current());
            process::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }

    fn barrier(&self) {
        if self.mode == WakeMode::Membarrier {
            membarrier::fence(self.group);
        }
    }

    fn has_processor(&self) -> bool {
        !self.is_crowded()
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
