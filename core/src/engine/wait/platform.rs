//! The platform of a rank: a clock and a wait strategy. On real processors, or in a simulator's virtual time.

use crate::base::Rank;
use crate::engine::wait::condition::Condition;
use std::fmt::Debug;

/// One pause of a waiting thread, between two checks of its condition.
pub struct Pause<'p> {
    /// What the calling thread waits for.
    pub condition: &'p Condition,
    /// How long it has waited without having anything to do, in ns.
    pub waited_ns: u64,
    /// When the pause must end, in ns of the platform's clock.
    pub until_ns: u64,
    /// Returns true if a condition, of this thread or of another of the same rank, is met.
    pub met: &'p dyn Fn(&Condition) -> bool,
    /// Returns true if something else needs the rank: a peer's request, a completion, the end of the job.
    pub work: &'p dyn Fn() -> bool,
    /// Called before the thread sleeps, but not before it only yields: other ranks must not rely on
    /// the thread then. `work` is called after that.
    pub suspend: &'p dyn Fn(),
    /// Called after the thread has slept.
    pub resume: &'p dyn Fn(),
}

/// The clock and the wait strategy of one rank.
pub trait Platform: Send + Sync + Debug {
    /// Returns the time in ns since a moment that all ranks of the node share.
    fn now_ns(&self) -> u64;

    /// Returns the time for an observer such as a trace. Not a scheduling point, so it cannot change a simulated run.
    fn observer_now_ns(&self) -> u64 {
        self.now_ns()
    }

    /// Returns when the condition may have changed, or earlier for no reason. Spins, yields or sleeps, depending on how
    /// long the thread has waited.
    fn pause(&self, pause: Pause<'_>);

    /// Pauses a helper, whose condition is its end. The helper sleeps when it has had nothing to do for `awake_ns`; see
    /// [`RankState::helper`](crate::node::node_state::RankState::helper) for who wakes it.
    fn pause_helper(&self, pause: Pause<'_>, _awake_ns: u64) {
        self.pause(pause);
    }

    /// Lets a helper sleep on standby, whatever happens to its rank, until a command was written
    /// for the rank, the job is over, `over` is met, or the helper is activated. May return earlier
    /// for no reason.
    fn keep_on_standby(&self, _over: &Condition) {}

    /// Wakes the rank's helper if it is on standby.
    fn activate_standby(&self) {}

    /// Records that a wait that began at `since_ns` has succeeded; it may determine how long the next waits stay awake.
    fn waited(&self, since_ns: u64);

    /// Returns how often to read a word before the first pause. Constant.
    fn spins(&self) -> u32;

    /// Returns how often to read a word that only `from` writes, before the first pause of a rank
    /// that has no processor of its own.
    fn spins_for(&self, _from: Rank) -> u32 {
        self.spins()
    }

    /// Returns true if `with` is known to need this rank's processor to do what this rank waits for.
    fn shares_processor(&self, _with: Rank) -> bool {
        false
    }

    /// Returns true if the rank has a processor of its own, so that a rank that waits for it waits for no third one.
    fn has_processor(&self) -> bool;

    /// Called between two checks of a waiting thread: yields the processor if ranks share processors.
    fn offer(&self) {
        std::hint::spin_loop();
    }

    /// Executes a full fence on all processors that run ranks of the node, if writers do not execute fences themselves;
    /// otherwise does nothing.
    fn barrier(&self) {}

    /// Simulates work: uses `ns` of processor time or of virtual time.
    fn compute(&self, ns: u64);

    /// Returns true if a thread of this rank may sleep other than in `pause` and be woken by another thread.
    fn lets_threads_sleep(&self) -> bool {
        true
    }

    /// Starts a thread of this rank.
    fn spawn(&self, body: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn FnOnce() + Send>>;
}
