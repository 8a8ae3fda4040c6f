//! Collective calls that are begun and waited for later. The steps of each are a future over messages of a context of
//! the communicator's own, which no message of the program and no other collective call meets.
//!
//! Members begin them in the same order, and count: the call that was begun as so many gets a slot by its number, and a
//! slot serves a call again only when that one is over on this member. Then all its messages of this member have gone,
//! and been taken, so the next call's go behind them.

mod blocks;
mod rounds;
mod talk;
mod task;
mod trees;
mod uneven;

use super::communicator::Communicator;
use bytemuck::Pod;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use talk::Talk;
pub(crate) use task::Going;
use task::{Task, lock};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_message::Context;

/// Calls of a communicator that can be under way: the slots of one page.
pub(super) const SLOTS: u32 = 64;

/// Combines values: the left becomes left with right. Whichever thread of the rank waits calls it.
pub type Combiner<T> = Box<dyn FnMut(&mut [T], &[T]) + Send>;

/// The calls that this member has begun on a communicator.
#[derive(Debug)]
pub(super) struct Begun {
    context: Arc<Context>,
    going: Arc<Going>,
    calls: Mutex<Calls>,
}

#[derive(Debug)]
struct Calls {
    /// How many there were.
    number: u64,
    /// The last one on each slot.
    last: Vec<Option<Arc<Task>>>,
}

impl Begun {
    pub(super) fn new(context: Arc<Context>, going: Arc<Going>) -> Begun {
        Begun { context, going, calls: Mutex::new(Calls { number: 0, last: Vec::new() }) }
    }
}

/// A collective call that was begun. Dropping it ends nothing: its steps go on in waiting calls of the rank.
pub struct Started<R> {
    context: Arc<Context>,
    task: Arc<Task>,
    result: Arc<Mutex<Option<Result<R>>>>,
    call: Arc<str>,
}

impl<R> fmt::Debug for Started<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Started({})", self.call)
    }
}

impl<R> Started<R> {
    /// Whether it is over on this member. Moves it on; never waits.
    pub fn is_finished(&self) -> bool {
        self.context.machine().progress();
        self.task.step();
        self.task.is_over()
    }

    /// Waits until it is over on this member. Once.
    pub fn wait(&self) -> Result<R> {
        self.task.wait(&|| format!("wait({})", self.call))?;
        self.take()
    }

    /// Ready when it is over on this member; otherwise `waker` is woken then.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<R>> {
        self.task.poll_over(waker).map(|over| over.and_then(|()| self.take()))
    }

    fn take(&self) -> Result<R> {
        let result = lock(&self.result).take();
        result.unwrap_or_else(|| Err(task::lost(&self.context, &|| self.call.to_string())))
    }
}

impl<R> Drop for Started<R> {
    fn drop(&mut self) {
        self.task.forget_waker();
    }
}

impl Communicator {
    /// Begins a call, whose steps are a future.
    fn start<R, F>(&self, call: String, steps: impl FnOnce(Talk) -> F) -> Result<Started<R>>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
    {
        let Begun { context, going, calls } = &self.begun;
        let call: Arc<str> = call.into();
        let fault = |cause| self.machine().fault(cause, || call.to_string());
        self.machine().check().map_err(fault)?;
        let mut calls = lock(calls);
        let slot = calls.number % u64::from(SLOTS);
        let last = calls.last.get(slot as usize).and_then(Option::as_ref);
        if last.is_some_and(|last| !last.is_over()) {
            let what = "collective calls of this communicator that were begun";
            return Err(fault(Cause::Full { what, capacity: SLOTS as usize }));
        }
        let (awaited, result) = (Arc::default(), Arc::<Mutex<_>>::default());
        let talk = Talk::new(context, slot as u32, Arc::clone(&awaited), self.rank().index(), self.size());
        let (steps, into, named) = (steps(talk), result.clone(), call.clone());
        let steps = async move {
            let done = steps.await.map_err(|error| error.note(format!("in {named}")));
            *lock(&into) = Some(done);
        };
        let task = Task::new(context, going, awaited, steps);
        calls.number += 1;
        calls.last.resize(SLOTS as usize, None);
        calls.last[slot as usize] = Some(task.clone());
        drop(calls);
        task.step();
        Ok(Started { context: context.clone(), task, result, call })
    }

    /// Begins a barrier.
    pub fn start_barrier(&self) -> Result<Started<()>> {
        self.start("ibarrier()".into(), |talk| async move { rounds::barrier(&talk).await })
    }

    /// Begins a broadcast.
    pub fn start_bcast<T: Pod + Send>(&self, values: Vec<T>, root: Rank) -> Result<Started<Vec<T>>> {
        let call = format!("ibcast({} bytes from rank {root})", size_of_val(&values[..]));
        self.check_root(root, &|| call.clone())?;
        self.start(call, |talk| async move { trees::bcast(&talk, values, root.index()).await })
    }

    /// Begins a reduction to the root.
    pub fn start_reduce<T: Pod + Send>(
        &self,
        values: Vec<T>,
        combine: Combiner<T>,
        root: Rank,
    ) -> Result<Started<Option<Vec<T>>>> {
        let call = format!("ireduce({} bytes to rank {root})", size_of_val(&values[..]));
        self.check_root(root, &|| call.clone())?;
        self.start(call, |talk| async move { trees::reduce(&talk, values, combine, root.index()).await })
    }

    /// Begins a reduction to all members.
    pub fn start_allreduce<T: Pod + Send>(
        &self,
        values: Vec<T>,
        combine: Combiner<T>,
    ) -> Result<Started<Vec<T>>> {
        let call = format!("iallreduce({} bytes)", size_of_val(&values[..]));
        self.start(call, |talk| async move { trees::allreduce(&talk, values, combine).await })
    }

    /// Begins a gather to the root.
    pub fn start_gather<T: Pod + Send>(&self, values: Vec<T>, root: Rank) -> Result<Started<Option<Vec<T>>>> {
        let call = format!("igather({} bytes to rank {root})", size_of_val(&values[..]));
        self.check_root(root, &|| call.clone())?;
        self.start(call, |talk| async move { trees::gather(&talk, values, root.index()).await })
    }

    /// Begins a scatter of the root's values.
    pub fn start_scatter<T: Pod + Send>(
        &self,
        values: Vec<T>,
        count: usize,
        root: Rank,
    ) -> Result<Started<Vec<T>>> {
        let call = format!("iscatter({} bytes from rank {root})", count * size_of::<T>());
        self.check_root(root, &|| call.clone())?;
        if self.rank() == root {
            self.check_room(values.len(), count, &|| call.clone())?;
        }
        self.start(call, |talk| async move { trees::scatter(&talk, values, count, root.index()).await })
    }

    /// Begins a gather to all members.
    pub fn start_allgather<T: Pod + Send>(&self, values: Vec<T>) -> Result<Started<Vec<T>>> {
        let call = format!("iallgather({} bytes)", size_of_val(&values[..]));
        self.start(call, |talk| async move { rounds::allgather(&talk, values).await })
    }

    /// Begins an exchange of blocks.
    pub fn start_alltoall<T: Pod + Send>(&self, values: Vec<T>) -> Result<Started<Vec<T>>> {
        let call = format!("ialltoall({} bytes)", size_of_val(&values[..]));
        self.check_room(values.len(), values.len() / self.size(), &|| call.clone())?;
        self.start(call, |talk| async move { rounds::alltoall(&talk, values).await })
    }

    /// Begins a reduction of which each member gets a block.
    pub fn start_reduce_scatter<T: Pod + Send>(
        &self,
        values: Vec<T>,
        combine: Combiner<T>,
    ) -> Result<Started<Vec<T>>> {
        let call = format!("ireduce_scatter({} bytes)", size_of_val(&values[..]));
        self.check_room(values.len(), values.len() / self.size(), &|| call.clone())?;
        self.start(call, |talk| async move { rounds::reduce_scatter(&talk, values, combine).await })
    }

    /// Begins a scan.
    pub fn start_scan<T: Pod + Send>(&self, values: Vec<T>, combine: Combiner<T>) -> Result<Started<Vec<T>>> {
        let call = format!("iscan({} bytes)", size_of_val(&values[..]));
        let through = |(through, _)| through;
        self.start(call, move |talk| async move { rounds::scan(&talk, values, combine).await.map(through) })
    }

    /// Begins a scan of the members before this one.
    pub fn start_exscan<T: Pod + Send>(
        &self,
        values: Vec<T>,
        combine: Combiner<T>,
    ) -> Result<Started<Option<Vec<T>>>> {
        let call = format!("iexscan({} bytes)", size_of_val(&values[..]));
        let before = |(_, before)| before;
        self.start(call, move |talk| async move { rounds::scan(&talk, values, combine).await.map(before) })
    }
}
