//! Nonblocking collective calls. The steps of each call are a future: an algorithm of
//! [`message_algorithms`](crate::message_algorithms). The messages use a context that only the nonblocking collectives
//! of the communicator use.
//!
//! All members begin these calls in the same order and number them. The number of a call selects its slot. A slot is
//! used again only when its previous call is complete on this member. All messages of this member in that call have
//! then been sent and received, so the messages of the next call come after them.

pub(crate) mod channel;
pub(crate) mod task;
pub(crate) mod vector;

use super::communicator::Communicator;
use super::current_call::{CallWord, described, size};
use crate::cached::schedule_cache::CallKind;
use crate::failure::monitor::FailureMonitor;
use crate::failure::signature::CallSignature;
use crate::message_algorithms::gather::{allgather, gather, scatter};
use crate::message_algorithms::{Peers, alltoall, barrier, bcast, reduce, scan};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use channel::CallChannel;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Waker};
pub(crate) use task::ActiveCalls;
use task::{Task, lock};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{Worker, scoped_wait_probe};
use tasuki_core::queue::reduction::Reduction;
use tasuki_message::{CallNames, Context};
use tasuki_schedule::shape::CollectiveKind;

/// Most calls of a communicator that can be under way: the slots of one bank.
pub(crate) const SLOTS: u32 = 64;

type CombineFn<T> = Box<dyn FnMut(&mut [T], &[T]) + Send>;

/// An operation that combines the right values into the left ones. Any thread of the rank that waits may call it.
pub struct BoxedCombiner<T> {
    combine: CombineFn<T>,
    known: Option<Reduction>,
}

impl<T> BoxedCombiner<T> {
    /// Makes the operation. `known` is the built-in reduction that it is, if it is one.
    pub fn new(
        combine: impl FnMut(&mut [T], &[T]) + Send + 'static,
        known: Option<Reduction>,
    ) -> BoxedCombiner<T> {
        BoxedCombiner { combine: Box::new(combine), known }
    }
}

impl<T> fmt::Debug for BoxedCombiner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoxedCombiner({:?})", self.known)
    }
}

/// The nonblocking calls of this member on a communicator.
#[derive(Debug)]
pub(crate) struct Nonblocking {
    context: Arc<Context>,
    active_calls: Arc<ActiveCalls>,
    calls: Arc<CallTable>,
}

#[derive(Debug, Default)]
struct Calls {
    /// Number of calls so far.
    number: u64,
    /// The last call on each slot.
    last: Vec<Option<BegunCall>>,
}

/// A call that was begun, and its name.
#[derive(Clone, Debug)]
struct BegunCall {
    task: Arc<Task>,
    call: Arc<str>,
}

/// The calls under way, from which a wait in a step of one reads its name.
#[derive(Debug, Default)]
struct CallTable(Mutex<Calls>);

impl CallNames for CallTable {
    fn call_on(&self, slot: u32) -> Option<String> {
        let calls = lock(&self.0);
        calls.last.get(slot as usize)?.as_ref().map(|begun| begun.call.to_string())
    }
}

impl Nonblocking {
    /// Makes the state. `context` makes the context of the messages, which reads the names of calls from its argument.
    pub(crate) fn new(
        active_calls: Arc<ActiveCalls>,
        context: impl FnOnce(Weak<dyn CallNames>) -> Context,
    ) -> Nonblocking {
        let calls: Arc<CallTable> = Arc::default();
        let names: Weak<CallTable> = Arc::downgrade(&calls);
        Nonblocking { context: Arc::new(context(names)), active_calls, calls }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

/// A nonblocking collective call. Dropping it does not end the call: the rank continues its steps while it waits in
/// other calls.
pub struct StartedCollective<R> {
    context: Arc<Context>,
    monitor: Arc<FailureMonitor>,
    task: Arc<Task>,
    result: Arc<Mutex<Option<Result<R>>>>,
    call: Arc<str>,
}

impl<R> fmt::Debug for StartedCollective<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StartedCollective({})", self.call)
    }
}

impl<R> StartedCollective<R> {
    /// Returns true if the call is complete on this member. Makes progress, and never waits.
    pub fn is_finished(&self) -> bool {
        self.context.worker().progress();
        self.step();
        self.task.is_over()
    }

    /// Runs the steps as far as possible, or ends them if the communicator has failed.
    fn step(&self) {
        match self.monitor.check() {
            Ok(()) => self.task.step(),
            Err(_) => self.task.abandon(),
        }
    }

    /// Waits until the call is complete on this member, and returns its result. It can be called once.
    pub fn wait(&self) -> Result<R> {
        let _monitored = scoped_wait_probe(self.monitor.probe());
        let waited = self.task.wait(&|| self.call.to_string());
        if self.monitor.check().is_err() {
            self.task.abandon();
        } else {
            waited?;
        }
        self.take()
    }

    /// Returns `Ready` if the call is complete on this member; otherwise wakes `waker` when it is.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<R>> {
        if self.monitor.check().is_err() {
            self.task.abandon();
        }
        self.task.poll_over(waker).map(|over| over.and_then(|()| self.take()))
    }

    fn take(&self) -> Result<R> {
        let result = lock(&self.result).take();
        let call = || self.call.to_string();
        result.unwrap_or_else(|| match self.monitor.check() {
            Ok(()) => Err(task::lost(&self.context, &call)),
            Err(cause) => Err(self.context.worker().fault(cause, call)),
        })
    }
}

impl<R> Drop for StartedCollective<R> {
    fn drop(&mut self) {
        self.task.forget_waker();
    }
}

/// Makes the communicator fail if the call fails.
struct FailingCall {
    monitor: Arc<FailureMonitor>,
    worker: Arc<Worker>,
    call: CallWord,
}

impl FailingCall {
    fn new(communicator: &Communicator, call: CallWord) -> FailingCall {
        let (monitor, worker) = (communicator.monitor().clone(), communicator.messages().worker().clone());
        FailingCall { monitor, worker, call }
    }

    fn end<R>(&self, outcome: &Result<R>) {
        if let Err(error) = outcome {
            self.monitor.report(&self.worker, self.call, error.cause());
        }
    }
}

impl Drop for FailingCall {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.monitor.report_panic(&self.worker, self.call);
        }
    }
}

/// Returns the word that names a call in errors, and the signature for the call log.
fn words_of(kind: &CallKind) -> (CallWord, CallSignature) {
    (CallWord::of(kind), CallSignature::of(kind).nonblocking())
}

fn bytes<T>(values: &[T]) -> u64 {
    size_of_val(values) as u64
}

impl Communicator {
    /// Begins a call whose steps are a future.
    fn start<R, F>(
        &self,
        (word, signature): (CallWord, CallSignature),
        call: String,
        steps: impl FnOnce(Arc<CallChannel>) -> F,
    ) -> Result<StartedCollective<R>>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
    {
        let Nonblocking { context, active_calls, calls } = &self.nonblocking;
        let call: Arc<str> = self.call_on(&call).into();
        let fault = |cause| self.worker().fault(cause, || call.to_string());
        self.worker().check().map_err(fault)?;
        self.monitor().check().map_err(fault)?;
        let mut calls = lock(&calls.0);
        let slot = calls.number % u64::from(SLOTS);
        let last = calls.last.get(slot as usize).and_then(Option::as_ref);
        if last.is_some_and(|last| !last.task.is_over()) {
            let what = "nonblocking collective calls of this communicator";
            return Err(fault(Cause::Full { what, capacity: SLOTS as usize }));
        }
        let (awaited, result) = (Arc::default(), Arc::<Mutex<_>>::default());
        let channel = CallChannel::new(
            context,
            slot as u32,
            (signature, calls.number),
            Arc::clone(&awaited),
            self.rank().index(),
        );
        let channel = Arc::new(channel);
        let (steps, into, named) = (steps(channel.clone()), result.clone(), call.clone());
        let failing = FailingCall::new(self, word);
        let steps = async move {
            let done = match steps.await {
                Ok(result) => channel.flush().await.map(|()| result),
                Err(error) => Err(error),
            };
            let done = done.map_err(|error| error.note(format!("in {named}")));
            failing.end(&done);
            *lock(&into) = Some(done);
        };
        let task = Task::new(context, active_calls, awaited, steps);
        calls.number += 1;
        calls.last.resize(SLOTS as usize, None);
        calls.last[slot as usize] = Some(BegunCall { task: task.clone(), call: call.clone() });
        self.monitor().note(signature);
        drop(calls);
        self.monitor().add_task(&task);
        task.step();
        let monitor = self.monitor().clone();
        Ok(StartedCollective { context: context.clone(), monitor, task, result, call })
    }

    /// Begins a barrier.
    pub fn start_barrier(&self) -> Result<StartedCollective<()>> {
        let kind = CallKind::of::<u8>(CollectiveKind::Barrier, Rank(0), 0);
        self.start(
            words_of(&kind),
            "ibarrier()".into(),
            |peers| async move { barrier::barrier(&*peers).await },
        )
    }

    /// Begins a broadcast.
    pub fn start_bcast<T: Pod + Send + Sync>(
        &self,
        mut values: Vec<T>,
        root: Rank,
    ) -> Result<StartedCollective<Vec<T>>> {
        let kind = CallKind::of::<T>(CollectiveKind::Bcast, root, values.len());
        let call = format!("ibcast({})", described(CollectiveKind::Bcast, root.index(), bytes(&values)));
        self.check_root(root, &|| call.clone())?;
        self.start(words_of(&kind), call, |peers| async move {
            bcast::bcast(&*peers, cast_slice_mut(&mut values), root.index()).await?;
            Ok(values)
        })
    }

    /// Begins a reduction to the root.
    pub fn start_reduce<T: Pod + Send + Sync>(
        &self,
        mut values: Vec<T>,
        mut combine: BoxedCombiner<T>,
        root: Rank,
    ) -> Result<StartedCollective<Option<Vec<T>>>> {
        let kind = CallKind::of::<T>(CollectiveKind::Reduce, root, values.len()).combined(combine.known);
        let call = format!("ireduce({})", described(CollectiveKind::Reduce, root.index(), bytes(&values)));
        self.check_root(root, &|| call.clone())?;
        self.start(words_of(&kind), call, move |peers| async move {
            let combine = &mut combine.combine;
            if peers.place() == root.index() {
                reduce::reduce_here(&*peers, &mut values, combine).await?;
                return Ok(Some(values));
            }
            reduce::reduce_to(&*peers, &values, combine, root.index()).await.map(|()| None)
        })
    }

    /// Begins a reduction to all members.
    pub fn start_allreduce<T: Pod + Send + Sync>(
        &self,
        mut values: Vec<T>,
        mut combine: BoxedCombiner<T>,
    ) -> Result<StartedCollective<Vec<T>>> {
        let kind =
            CallKind::of::<T>(CollectiveKind::Allreduce, Rank(0), values.len()).combined(combine.known);
        let call = format!("iallreduce({})", size(bytes(&values)));
        self.start(words_of(&kind), call, |peers| async move {
            reduce::allreduce(&*peers, &mut values, &mut combine.combine).await?;
            Ok(values)
        })
    }

    /// Begins a gather to the root.
    pub fn start_gather<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        root: Rank,
    ) -> Result<StartedCollective<Option<Vec<T>>>> {
        let kind = CallKind::of::<T>(CollectiveKind::Gather, root, values.len());
        let call = format!("igather({})", described(CollectiveKind::Gather, root.index(), bytes(&values)));
        self.check_root(root, &|| call.clone())?;
        self.start(words_of(&kind), call, |peers| async move { gather(&*peers, &values, root.index()).await })
    }

    /// Begins a scatter of the root's values.
    pub fn start_scatter<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        count: usize,
        root: Rank,
    ) -> Result<StartedCollective<Vec<T>>> {
        let kind = CallKind::of::<T>(CollectiveKind::Scatter, root, count);
        let call = format!(
            "iscatter({})",
            described(CollectiveKind::Scatter, root.index(), (count * size_of::<T>()) as u64)
        );
        self.check_root(root, &|| call.clone())?;
        if self.rank() == root {
            self.check_room(values.len(), count, &|| call.clone())?;
        }
        self.start(words_of(&kind), call, move |peers| async move {
            if peers.place() == root.index() {
                scatter(&*peers, cast_slice(&values)).await?;
                return Ok(values[root.index() * count..][..count].to_vec());
            }
            let mut block = vec![T::zeroed(); count];
            peers.recv(cast_slice_mut(&mut block), root.index()).await?;
            Ok(block)
        })
    }

    /// Begins a gather to all members.
    pub fn start_allgather<T: Pod + Send + Sync>(&self, values: Vec<T>) -> Result<StartedCollective<Vec<T>>> {
        let kind = CallKind::of::<T>(CollectiveKind::Allgather, Rank(0), values.len());
        let call = format!("iallgather({})", size(bytes(&values)));
        self.start(words_of(&kind), call, |peers| async move {
            let mut all = vec![T::zeroed(); peers.size() * values.len()];
            allgather(&*peers, cast_slice(&values), cast_slice_mut(&mut all)).await?;
            Ok(all)
        })
    }

    /// Begins an exchange of blocks.
    pub fn start_alltoall<T: Pod + Send + Sync>(&self, values: Vec<T>) -> Result<StartedCollective<Vec<T>>> {
        let kind = CallKind::of::<T>(CollectiveKind::Alltoall, Rank(0), values.len() / self.size());
        let call = format!("ialltoall({})", size(bytes(&values)));
        self.check_room(values.len(), values.len() / self.size(), &|| call.clone())?;
        self.start(words_of(&kind), call, |peers| async move {
            let mut all = vec![T::zeroed(); values.len()];
            alltoall::alltoall(&*peers, cast_slice(&values), cast_slice_mut(&mut all)).await?;
            Ok(all)
        })
    }

    /// Begins a reduction whose result is scattered: each member gets a block.
    pub fn start_reduce_scatter<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        mut combine: BoxedCombiner<T>,
    ) -> Result<StartedCollective<Vec<T>>> {
        let kind = CallKind::of::<T>(CollectiveKind::ReduceScatter, Rank(0), values.len() / self.size())
            .combined(combine.known);
        let call = format!("ireduce_scatter({})", size(bytes(&values)));
        self.check_room(values.len(), values.len() / self.size(), &|| call.clone())?;
        self.start(words_of(&kind), call, |peers| async move {
            reduce::reduce_scatter(&*peers, &values, &mut combine.combine).await
        })
    }

    /// Begins a scan.
    pub fn start_scan<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        combine: BoxedCombiner<T>,
    ) -> Result<StartedCollective<Vec<T>>> {
        self.start_prefix(CollectiveKind::Scan, "iscan", values, combine, |values| values)
    }

    /// Begins an exclusive scan, over the members before this one. The result of the first member is None.
    pub fn start_exscan<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        combine: BoxedCombiner<T>,
    ) -> Result<StartedCollective<Option<Vec<T>>>> {
        let is_first = self.rank() == Rank(0);
        let result = move |values| (!is_first).then_some(values);
        self.start_prefix(CollectiveKind::Exscan, "iexscan", values, combine, result)
    }

    fn start_prefix<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        collective: CollectiveKind,
        name: &str,
        mut values: Vec<T>,
        mut combine: BoxedCombiner<T>,
        result: impl FnOnce(Vec<T>) -> R + Send + 'static,
    ) -> Result<StartedCollective<R>> {
        let kind = CallKind::of::<T>(collective, Rank(0), values.len()).combined(combine.known);
        let call = format!("{name}({})", size(bytes(&values)));
        let is_inclusive = collective == CollectiveKind::Scan;
        self.start(words_of(&kind), call, move |peers| async move {
            scan::scan(&*peers, &mut values, is_inclusive, &mut combine.combine).await?;
            Ok(result(values))
        })
    }
}
