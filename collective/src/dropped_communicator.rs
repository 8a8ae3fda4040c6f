//! Frees what a communicator has used, after all its members have dropped it: memory for messages, signals, and plans.
//!
//! Other members may still send to a dropped communicator, raise its signals, or reach the memory of its plans. So the
//! communicator from which it was split keeps its [`CommunicatorMemory`] in a list of [agreed
//! frees](crate::agreed_free). The members of that communicator tell each other in the next split, or in `quiesce`,
//! which ones they no longer need.
//!
//! A member still needs a dropped communicator while it has requests, plans, fuzzy barriers, buffered messages, or
//! communicators that were split from it.
//!
//! *Recreated communicators.* A communicator that has failed makes no more splits. So one that `recreate` has made
//! takes its place: both are in one [`RecreateChain`], which is one entry in the list of the communicator from which
//! the first of them was split. The others of a chain need not wait until that one makes a split: the members also free
//! those before a communicator when they recreate it, split it, or call its `quiesce`. The world was not split, so it is
//! in no chain, and keeps what it has until the job ends.
//!
//! *A failed communicator.* Its calls have ended at different steps on different members, so some of what they have
//! begun never ends by itself. When a member has dropped such a communicator and holds nothing of it any more, it
//! *gives up* what it has begun there ([`CommunicatorMemory::give_up`]), and only then says that it needs it no longer.
//! These writes could reach memory of other members late, and none does after that word:
//!
//! - Messages of its calls. A call that ends with an error withdraws its receives and its sends that have met no receive.
//!   A message that has met its receive goes on until it is complete, or the receive turns out to be withdrawn; until
//!   then its slot is in use, and the member does not say the word. The lines of a pair belong to nobody else before
//!   both ranks have closed them ([`Context::free`]).
//! - Notices of the failure, and what members publish about their calls. Only a call, a wait or a handle of the
//!   communicator makes this member write them, and it has none any more.
//! - Steps of plans that the member runs in its calls. [Stopping](crate::plan::state::PlanState::stop) the plan lets no
//!   step run any more. Cached steps run only in calls.
//! - Commands of plans and of fuzzy barriers. Any rank may run them, but only out of the queues of this member. To drop a
//!   queue waits for the commands that have fired, and removes the others.
//! - What the fabric has accepted of all this and not delivered: the member waits for that at last
//!   ([`Worker::settle_poisons`]).
//!
//! A member that has not noticed the failure says the word when all that it has begun is complete, as without a failure.
//! The word of the member that has failed comes after its notices have arrived, so the counters of signals are final
//! when they are [reset](free_signals). Commands that failed, or were removed, have poisoned signals; those are sound
//! again when they are freed.

use crate::agreed_free::{AgreedFree, MadeTogether};
use crate::dissemination::Dissemination;
use crate::failure::member::SIGNALS;
use crate::plan::registry::PlanRegistry;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tasuki_core::base::Result;
use tasuki_core::base::sync::{AtomicBool, Ordering};
use tasuki_core::engine::Worker;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;
use tasuki_message::Context;

/// The communicators that were split from one and are not freed, and those from which that one was recreated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children(Arc<Mutex<AgreedFree<Child>>>);

/// What members free together.
#[derive(Debug)]
pub(crate) enum Child {
    /// A member's part of a split from which it got no communicator.
    Nothing,
    /// The communicator that the member got from a split, and those recreated from it.
    Split(RecreateChain),
    /// Those before that number in the chain of the communicator that has the list.
    Before(Weak<Chain>, u64),
}

/// The memory of communicators by their numbers in a chain.
type Chain = Mutex<BTreeMap<u64, Arc<CommunicatorMemory>>>;

/// A communicator, and those that `recreate` has made from it, one from the other: those of them that are not freed.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecreateChain(Arc<Chain>);

/// What a communicator uses.
#[derive(Debug)]
pub(crate) struct CommunicatorMemory {
    /// The contexts of collective calls; that of messages belongs to the plans.
    pub(crate) contexts: [Arc<Context>; 2],
    /// The first of its signals for failures.
    pub(crate) signals: u32,
    pub(crate) plans: Arc<PlanRegistry>,
    pub(crate) children: Children,
    /// True once this member has dropped it.
    pub(crate) is_dropped: Arc<AtomicBool>,
}

impl Drop for CommunicatorMemory {
    /// Drops a long row of communicators, each split from the one before, one after the other. Each inside of the one
    /// before, they would fill the stack.
    fn drop(&mut self) {
        let mut left = vec![std::mem::take(&mut self.children)];
        while let Some(Children(children)) = left.pop() {
            let Some(children) = Arc::into_inner(children) else { continue };
            let mut children = children.into_inner().unwrap_or_else(PoisonError::into_inner);
            for child in children.drain().filter_map(Arc::into_inner) {
                let Child::Split(RecreateChain(chain)) = child else { continue };
                let chain = Arc::into_inner(chain).map(|chain| chain.into_inner());
                let all =
                    chain.map(|chain| chain.unwrap_or_else(PoisonError::into_inner)).unwrap_or_default();
                let memories = all.into_values().filter_map(Arc::into_inner);
                left.extend(memories.map(|mut memory| std::mem::take(&mut memory.children)));
            }
        }
    }
}

/// Marks a communicator as dropped by this member when it is dropped itself.
#[derive(Debug)]
pub(crate) struct DropMark(pub(crate) Arc<AtomicBool>);

impl Drop for DropMark {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Children {
    pub(crate) fn lock(&self) -> MutexGuard<'_, AgreedFree<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what members will free together.
    pub(crate) fn enter(&self, child: Child) {
        let mut all = self.lock();
        let number = all.enter(Arc::new(child));
        all.take(number); // the memory itself says whether it is dropped
    }

    /// Returns the word that tells other members what this member no longer needs.
    pub(crate) fn word(&self) -> Result<u64> {
        let all = {
            let all = self.lock();
            all.among(all.dropped_word())
        };
        // Not under the lock: it may wait.
        all.iter().try_for_each(|(_, child)| child.give_up())?;
        Ok(self.lock().word())
    }

    /// Takes the words of all members, and frees what no member needs any more.
    pub(crate) fn settle(&self, words: impl Iterator<Item = u64>) -> Result<()> {
        let over = self.lock().settle(words);
        over.iter().try_for_each(|child| child.free())
    }

    /// Returns the communicators that were split.
    fn split(&self) -> Vec<Arc<Child>> {
        let mut all = self.lock().all();
        all.retain(|child| matches!(**child, Child::Split(_)));
        all
    }
}

impl RecreateChain {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<CommunicatorMemory>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the communicator of that number. Those before it are freed with its own list, too.
    pub(crate) fn enter(&self, number: u64, memory: CommunicatorMemory) {
        if number > 0 {
            memory.children.enter(Child::Before(Arc::downgrade(&self.0), number));
        }
        self.lock().insert(number, Arc::new(memory));
    }

    /// Returns those before that number that are not freed.
    fn before(&self, number: u64) -> Vec<Arc<CommunicatorMemory>> {
        self.lock().range(..number).map(|(_, memory)| memory.clone()).collect()
    }

    /// Returns true if this member needs none of those before that number any more.
    pub(crate) fn are_over_before(&self, number: u64) -> Result<bool> {
        let all = self.before(number);
        all.iter().try_for_each(|memory| memory.give_up())?;
        Ok(all.iter().all(|memory| memory.is_over()))
    }

    /// Frees those before that number. No member may need them any more.
    pub(crate) fn free_before(&self, number: u64) -> Result<()> {
        let all = self.before(number);
        self.lock().retain(|&other, _| other >= number);
        all.iter().try_for_each(|memory| memory.free())
    }
}

impl MadeTogether for Child {
    fn is_over(&self) -> bool {
        self.all().iter().all(|memory| memory.is_over())
    }
}

impl Child {
    /// Returns the chain, and the number at which the part ends that this is.
    fn part(&self) -> Option<(RecreateChain, u64)> {
        match self {
            Child::Nothing => None,
            Child::Split(chain) => Some((chain.clone(), u64::MAX)),
            Child::Before(chain, number) => Some((RecreateChain(chain.upgrade()?), *number)),
        }
    }

    fn all(&self) -> Vec<Arc<CommunicatorMemory>> {
        self.part().map_or_else(Vec::new, |(chain, until)| chain.before(until))
    }

    fn give_up(&self) -> Result<()> {
        self.all().iter().try_for_each(|memory| memory.give_up())
    }

    fn free(&self) -> Result<()> {
        self.part().map_or(Ok(()), |(chain, until)| chain.free_before(until))
    }
}

impl CommunicatorMemory {
    /// Returns true if this member has dropped the communicator and holds nothing of it any more.
    fn is_unused(&self) -> bool {
        let CommunicatorMemory { contexts, plans, is_dropped, .. } = self;
        let mut contexts = contexts.iter().chain([plans.group.messages()]);
        is_dropped.load(Ordering::Acquire)
            && Arc::strong_count(plans) == 1
            && Arc::strong_count(&plans.monitor) == 1
            && contexts.all(|context| Arc::strong_count(context) == 1)
    }

    /// Gives up what this member has begun, if the communicator has failed and is unused. Returns when nothing of that
    /// is on its way to other members.
    fn give_up(&self) -> Result<()> {
        let CommunicatorMemory { plans, children, is_dropped, .. } = self;
        if !is_dropped.load(Ordering::Acquire) {
            return Ok(());
        }
        children.split().iter().try_for_each(|child| child.give_up())?;
        if plans.is_given_up.load(Ordering::Relaxed) || !plans.monitor.end_calls_if_failed() {
            return Ok(());
        }
        plans.group.worker().progress(); // ends starts in chunks, and messages
        if !self.is_unused() {
            return Ok(());
        }
        let all = plans.lock().all_with_lost();
        all.iter().for_each(|plan| plan.stop());
        plans.group.worker().settle_poisons(&|| "the end of a communicator that has failed".into())?;
        plans.is_given_up.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn is_over(&self) -> bool {
        let CommunicatorMemory { contexts, plans, children, .. } = self;
        let mut contexts = contexts.iter().chain([plans.group.messages()]);
        self.is_unused()
            && (!plans.monitor.is_failed() || plans.is_given_up.load(Ordering::Relaxed))
            && contexts.all(|context| context.is_idle())
            && plans.lock().are_over()
            && children.split().iter().all(|child| child.is_over())
    }

    fn free(&self) -> Result<()> {
        let messages = self.plans.group.messages();
        let worker = messages.worker();
        self.children.split().iter().try_for_each(|child| child.free())?;
        let plans = self.plans.lock().all_with_lost();
        plans.iter().for_each(|plan| plan.free(messages));
        self.plans.free_nonblocking();
        self.plans.is_freed.store(true, Ordering::Relaxed); // its finalize hooks have nothing more to do
        self.contexts.iter().chain([messages]).try_for_each(|context| context.free())?;
        free_signals(worker, self.signals, SIGNALS)?;
        let stages = Dissemination::count(messages.size());
        for (first, count) in [
            (self.plans.shutdown_signal.get(), stages),
            (self.plans.fuzzy_signal.get(), Dissemination::fuzzy_signals(stages)),
        ] {
            first.map_or(Ok(()), |&first| free_signals(worker, first, count))?;
        }
        Ok(())
    }
}

/// Frees signals whose counts the next user expects to be 0.
fn free_signals(worker: &Worker, first: u32, count: u32) -> Result<()> {
    worker.cure_signals(first, count)?;
    for signal in first..first + count {
        let raised = worker.count_of_own(signal);
        if raised != 0 {
            worker.raise(GlobalAddress::new(worker.rank(), signal_offset(signal)), raised.wrapping_neg())?;
        }
    }
    worker.registry().free_untouched_signals(first, count);
    Ok(())
}
