//! What a rank stands on: a clock and a way to pause. Real processors, or a simulator's virtual time.

use crate::base::Rank;
use crate::engine::wait::Condition;
use std::fmt::Debug;

/// One step of waiting, between two looks.
pub struct Pause<'p> {
    /// What the calling thread waits for.
    pub condition: &'p Condition,
    /// How long it has waited, in ns.
    pub waited_ns: u64,
    /// When it will give up, in ns of the host's clock.
    pub until_ns: u64,
    /// Whether a condition, this thread's or another's of the same rank, is met.
    pub met: &'p dyn Fn(&Condition) -> bool,
    /// Whether something else needs the rank: a peer's request, a completion, the end of the job.
    pub work: &'p dyn Fn() -> bool,
    /// Called before the thread sleeps, other than for a moment of the processor's: nobody shall count on it. `work` is
    /// asked after that.
    pub rest: &'p dyn Fn(),
    /// Called after it has slept.
    pub rise: &'p dyn Fn(),
}

/// Clock and pause of one rank.
pub trait Platform: Send + Sync + Debug {
    /// Nanoseconds since a moment that all ranks of the node share.
    fn now_ns(&self) -> u64;

    /// The same for what only watches: no call of the rank, so nothing that happens depends on it.
    fn glance_ns(&self) -> u64 {
        self.now_ns()
    }

    /// Returns when the condition may have changed, or sooner for no reason. Spins, yields or sleeps, according to
    /// how long the thread has waited.
    fn pause(&self, pause: Pause<'_>);

    /// The same for a helper, whose end is the condition. It sleeps when it has not been of use for `awake_ns`, and is
    /// woken as [`RankState::helper`](crate::node::node_state::RankState::helper) says; threads of the program's do not count on it.
    fn pause_helper(&self, pause: Pause<'_>, _awake_ns: u64) {
        self.pause(pause);
    }

    /// A helper that nobody needs yet sleeps, whatever happens to its rank, until a command has been written for that,
    /// the job is over, `over` holds, or it is called up; or for no reason returns sooner.
    fn keep_on_standby(&self, _over: &Condition) {}

    /// Wakes the rank's helper if it stands by.
    fn activate_standby(&self) {}

    /// A wait that began at `since_ns` ended well: how long to stay awake in the next ones may follow.
    fn waited(&self, since_ns: u64);

    /// How many times to look at a word, whoever writes it, before the first pause. Always the same.
    fn spins(&self) -> u32;

    /// The same at a word that `from` writes, where the rank has no processor of its own.
    fn spins_for(&self, _from: Rank) -> u32 {
        self.spins()
    }

    /// Whether `with` needs this rank's processor to do what this rank waits for, as far as that is known.
    fn shares_processor(&self, _with: Rank) -> bool {
        false
    }

    /// Whether the rank has a processor of its own: another that waits for it waits for no third.
    fn has_processor(&self) -> bool;

    /// A moment for others, between two looks of a thread that waits: of the processor, where ranks share processors.
    fn offer(&self) {
        std::hint::spin_loop();
    }

    /// A full fence on all processors that run ranks of the node, where sleepers are found so; else nothing, because
    /// writers execute fences.
    fn barrier(&self) {}

    /// Lets `ns` of work pass: burns processor time, or virtual time.
    fn compute(&self, ns: u64);

    /// Whether a thread of this rank may sleep other than in `pause`, and be woken by another.
    fn lets_threads_sleep(&self) -> bool {
        true
    }

    /// Starts a thread of this rank.
    fn spawn(&self, body: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn FnOnce() + Send>>;
}
