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
//! wait for anything else from it get an error at once, also in a wait for an instance that it has not started
//! ([`departure`]).
//!
//! Source: Matsuda, Tanaka, Kubota, Sato, "Network Interface Active Messages for SMP clusters"; for any number of
//! members: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988).

pub(crate) mod departure;
pub(crate) mod state;

use crate::communicator::Communicator;
use crate::dissemination::Dissemination;
use departure::FuzzyDeparture;
use state::{Fuzzy, call};
use std::sync::Arc;
use tasuki_core::base::sync::Ordering;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::LocalQueue;

pub use state::{FUZZY_MAX, FuzzyBarrier};

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
        self.worker().check().map_err(fault)?; // what is made here is freed when the rank leaves
        let (departure, queue) = match &self.fuzzy_departure {
            Some(departure) => (departure.clone(), self.fuzzy_queue(prepare)?),
            None => {
                let (all, queue) = self.exchange_fuzzy(prepare)?;
                (self.new_departure(|member| all[member.index()] as u32).map_err(fault)?, queue)
            }
        };
        let fuzzy = Arc::new(Fuzzy::new(self.messages().worker(), self.name(), departure, queue));
        self.messages().add_finalize_hook(fuzzy.clone())?;
        let _ = self.fuzzy.set(fuzzy); // one thread at a time makes it
        Ok(())
    }

    /// Makes the stages of fuzzy barriers, and what this member tells of them when it leaves. `first` returns the number
    /// of the first signal of each member.
    pub(crate) fn new_departure(&self, first: impl Fn(Rank) -> u32) -> Result<Arc<FuzzyDeparture>, Cause> {
        let stages = Dissemination::of_fuzzy_barriers(self.group(), first)?;
        Ok(FuzzyDeparture::new(self.worker(), stages, self.monitor()))
    }

    /// Allocates this member's signals and queue. Returns the first signals of all members.
    fn exchange_fuzzy(&self, prepare: &dyn Fn()) -> Result<(Vec<u64>, Option<Arc<LocalQueue>>)> {
        const FAILED: u64 = u64::MAX;
        let signals = Dissemination::fuzzy_signals(Dissemination::count(self.size()));
        let first = self.worker().registry().untouched_signals(signals);
        let ours = first.and_then(|first| Ok((first, self.fuzzy_queue(prepare)?)));
        let first = ours.as_ref().map_or(FAILED, |(first, _)| u64::from(*first));
        let call = || self.call_on("fuzzy_barrier()");
        let notified = self.begin_named("fuzzy_barrier", &call).and_then(|guard| {
            guard.run(|| self.allgather_steps(&[first]).map_err(|error| self.step_failed(error, &call)))
        });
        let (first, queue) = ours.map_err(|error| error.in_call(call).on_rank(self.worker().rank()))?;
        let failed = match notified {
            Ok(all) if !all.contains(&FAILED) => {
                let _ = self.plans().fuzzy_signal.set(first); // freed with the communicator
                return Ok((all, queue));
            }
            Ok(_) => {
                let text = "another member found no room for its part of the barrier";
                self.worker().fault(Cause::no_room_at(None, text), call)
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
}
