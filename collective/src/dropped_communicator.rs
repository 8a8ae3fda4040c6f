//! Frees what a communicator has used, after all its members have dropped it: memory for messages, signals, and plans.
//!
//! Other members may still send to a dropped communicator, raise its signals, or reach the memory of its plans. So the
//! communicator from which it was split keeps its [`CommunicatorMemory`] in a list of [agreed
//! frees](crate::agreed_free). The members of that communicator tell each other in the next split, or in `quiesce`,
//! which ones they no longer need. A communicator made by `recreate` is in the list of the one that had failed.
//!
//! A member still needs a dropped communicator while it has requests, plans, fuzzy barriers, buffered messages, or
//! communicators that were split from it. A communicator that has failed is never freed: messages of its failed calls
//! may still be under way.

use crate::agreed_free::{AgreedFree, MadeTogether};
use crate::dissemination::Dissemination;
use crate::failure::member::SIGNALS;
use crate::plan::registry::PlanRegistry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Result;
use tasuki_core::base::sync::Ordering;
use tasuki_core::engine::Worker;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;
use tasuki_message::Context;

/// The communicators that were split from one and are not freed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children(Arc<Mutex<AgreedFree<Child>>>);

/// A member's part of a split: the memory of its new communicator, or nothing if it got none.
#[derive(Debug)]
pub(crate) struct Child(Option<CommunicatorMemory>);

/// What a communicator uses.
#[derive(Debug)]
pub(crate) struct CommunicatorMemory {
    /// The contexts of collective calls; that of messages belongs to the plans.
    pub(crate) contexts: [Arc<Context>; 2],
    /// The first of its signals for failures.
    pub(crate) signals: u32,
    pub(crate) plans: Arc<PlanRegistry>,
    pub(crate) children: Children,
}

impl Drop for CommunicatorMemory {
    /// Drops a long chain of communicators, each made from the one before as by `recreate`, one after the other. Each
    /// inside of the one before, they would fill the stack.
    fn drop(&mut self) {
        let mut chain = vec![std::mem::take(&mut self.children)];
        while let Some(Children(children)) = chain.pop() {
            let Some(children) = Arc::into_inner(children) else { continue };
            let mut children = children.into_inner().unwrap_or_else(PoisonError::into_inner);
            for Child(memory) in children.drain().filter_map(Arc::into_inner) {
                chain.extend(memory.map(|mut memory| std::mem::take(&mut memory.children)));
            }
        }
    }
}

/// Marks a communicator as dropped by this member when it is dropped itself.
#[derive(Debug)]
pub(crate) struct DropMark {
    children: Children,
    number: u64,
}

impl Drop for DropMark {
    fn drop(&mut self) {
        self.children.lock().take(self.number);
    }
}

impl Children {
    pub(crate) fn lock(&self) -> MutexGuard<'_, AgreedFree<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a communicator that was split.
    pub(crate) fn enter(&self, memory: CommunicatorMemory) -> DropMark {
        let number = self.lock().enter(Arc::new(Child(Some(memory))));
        DropMark { children: self.clone(), number }
    }

    /// Records a split from which this member got no communicator.
    pub(crate) fn enter_none(&self) {
        let mut all = self.lock();
        let number = all.enter(Arc::new(Child(None)));
        all.take(number);
    }

    /// Takes the words of all members, and frees what no member needs any more.
    pub(crate) fn settle(&self, words: impl Iterator<Item = u64>) -> Result<()> {
        let over = self.lock().settle(words);
        over.iter().try_for_each(|child| child.free())
    }
}

impl MadeTogether for Child {
    fn is_over(&self) -> bool {
        let Some(CommunicatorMemory { contexts, plans, children, .. }) = &self.0 else {
            return true;
        };
        let mut contexts = contexts.iter().chain([plans.group.messages()]);
        Arc::strong_count(plans) == 1
            && Arc::strong_count(&plans.monitor) == 1
            && !plans.monitor.is_failed()
            && contexts.all(|context| Arc::strong_count(context) == 1 && context.is_idle())
            && plans.lock().are_over()
            && children.lock().are_over()
    }
}

impl Child {
    fn free(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), CommunicatorMemory::free)
    }
}

impl CommunicatorMemory {
    fn free(&self) -> Result<()> {
        let messages = self.plans.group.messages();
        let worker = messages.worker();
        let children = self.children.lock().all();
        children.iter().try_for_each(|child| child.free())?;
        let plans = self.plans.lock().all();
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
    for signal in first..first + count {
        let raised = worker.count_of_own(signal);
        if raised != 0 {
            worker.raise(GlobalAddress::new(worker.rank(), signal_offset(signal)), raised.wrapping_neg())?;
        }
    }
    worker.registry().free_untouched_signals(first, count);
    Ok(())
}
