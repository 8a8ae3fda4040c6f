//! Nonblocking collective calls.
//!
//! The first calls of a kind, and calls that have no compiled schedule, are tasks: their steps are a future, an
//! algorithm of [`message_algorithms`](crate::message_algorithms). The messages use a context that only the
//! nonblocking collectives of the communicator use. From the fourth call of a kind on, calls run compiled steps
//! ([`scheduled`]).
//!
//! All members begin these calls in the same order and number them. The number of a call selects its slot. A slot is
//! used again only when its previous call is complete on this member. All messages of this member in that call have
//! then been sent and received, so the messages of the next call come after them.

pub(crate) mod call_data;
pub(crate) mod calls;
pub(crate) mod channel;
pub(crate) mod scheduled;
pub(crate) mod started;
pub(crate) mod task;
pub(crate) mod vector;

use super::communicator::Communicator;
use super::current_call::CallWord;
use crate::call_kind::CallKind;
use crate::failure::signature::CallSignature;
use crate::plan::setup::negotiate::{PlanKind, PreparedPlan};
use bytemuck::Pod;
use call_data::{AnyCallData, CallData};
use calls::{BegunCall, Calls, Nonblocking, TaskMaker};
use channel::{CallChannel, SLOTS};
use scheduled::{MakeTask, ScheduledCalls};
pub use started::StartedCollective;
use std::sync::{Arc, Mutex, MutexGuard};
use task::{Task, lock};
use tasuki_core::base::error_hint::CALLS_OF_COMMUNICATOR;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::queue::reduction::BoxedOperation;
use tasuki_schedule::shape::CollectiveKind;

/// Makes the result of a call from its values.
pub trait ValuesToResult<T, R>: Fn(Vec<T>) -> R + Send + Sync + 'static {}

impl<T, R, F: Fn(Vec<T>) -> R + Send + Sync + 'static> ValuesToResult<T, R> for F {}

/// Returns the word of a nonblocking call of that kind.
fn word_of(kind: &CallKind) -> CallWord {
    CallWord::of(kind).nonblocking()
}

impl Communicator {
    fn task_maker(&self) -> TaskMaker {
        let Nonblocking { context, active_calls, .. } = &self.nonblocking;
        TaskMaker {
            context: context.clone(),
            active_calls: active_calls.clone(),
            plans: self.plans().clone(),
        }
    }

    /// Returns an error unless a nonblocking call may begin.
    fn check_call(&self, name: &dyn Fn() -> String) -> Result<()> {
        let check = self.worker().check().and_then(|()| self.monitor().check());
        check.map_err(|cause| self.worker().fault(cause, name))
    }

    fn too_many(&self, name: &dyn Fn() -> String) -> Error {
        let what = CALLS_OF_COMMUNICATOR;
        self.worker().fault(Cause::Full { what, capacity: SLOTS as usize }, name)
    }

    /// Begins a call whose steps are a future.
    fn start<R, F>(
        &self,
        (word, signature): (CallWord, CallSignature),
        steps: impl FnOnce(Arc<CallChannel>) -> F,
    ) -> Result<StartedCollective<R>>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
    {
        let name = || self.call_of(word);
        self.check_call(&name)?;
        let calls = lock(&self.nonblocking.calls.0);
        self.start_in(calls, (word, signature), name().into(), steps)
    }

    fn start_in<R, F>(
        &self,
        mut calls: MutexGuard<'_, Calls>,
        (word, signature): (CallWord, CallSignature),
        name: Arc<str>,
        steps: impl FnOnce(Arc<CallChannel>) -> F,
    ) -> Result<StartedCollective<R>>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
    {
        let slot = calls.next().ok_or_else(|| self.too_many(&|| name.to_string()))?;
        let mark = self.monitor().note(signature);
        let about = self.monitor().about_latest();
        let result = Arc::<Mutex<_>>::default();
        let into = Arc::clone(&result);
        let done = move |outcome| *lock(&into) = Some(outcome);
        let words = (word, mark.header(signature));
        let task = self.task_maker().make(slot, words, name.clone(), steps, done);
        calls.enter(Some(BegunCall::Task(task.clone(), name.clone())));
        drop(calls);
        task.step();
        Ok(StartedCollective::by_task(self.plans().clone(), task, result, name, about))
    }

    /// Begins a call of one of the kinds of collectives. `result` makes its result from its data.
    fn start_kind<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        data: CallData<T>,
        result: impl Fn(CallData<T>) -> R + Send + Sync + 'static,
    ) -> Result<StartedCollective<R>> {
        let kind = *data.kind();
        let (word, signature) = (word_of(&kind), CallSignature::of(&kind).nonblocking());
        let name = || self.call_of(word);
        self.check_call(&name)?;
        let mut calls = lock(&self.nonblocking.calls.0);
        // Checked first: a call that is refused must not count as a call of its kind.
        let slot = calls.next().ok_or_else(|| self.too_many(&name))?;
        let mark = self.monitor().mark_of_next(signature);
        let words = (word, mark.header(signature));
        let found = self.scheduled_for(&mut calls, &kind, slot, words);
        if let Err(error) = found {
            drop(calls); // a report ends other calls, whose errors read names from the table
            if !matches!(error.cause(), Cause::Full { .. }) {
                self.monitor().report(self.worker(), word, error.cause());
            }
            return Err(error);
        }
        let Some(scheduled) = found? else {
            return self.start_in(calls, (word, signature), name().into(), |peers| async move {
                let mut data = data;
                data.by_messages(&peers).await?;
                Ok(result(data))
            });
        };
        let by_messages = |number| self.by_messages_later(&scheduled, number, slot, words);
        let (number, may_use_messages, begun) =
            scheduled.begin(Box::new(data), (word, kind.variant(self.size()), mark.tag()), by_messages);
        calls.enter(may_use_messages.then(|| BegunCall::Scheduled(scheduled.clone(), (number, word))));
        self.monitor().note(signature);
        let about = self.monitor().about_latest();
        drop(calls);
        scheduled.run_begun(begun);
        Ok(StartedCollective::scheduled(scheduled, (number, word), about, result))
    }

    /// Returns the calls of a kind that run compiled steps. None: calls of this kind are not frequent, or cannot have
    /// such steps. For a new kind, begins to compile the steps.
    fn scheduled_for(
        &self,
        calls: &mut Calls,
        kind: &CallKind,
        slot: u32,
        words: (CallWord, u64),
    ) -> Result<Option<Arc<ScheduledCalls>>> {
        let size = self.size();
        if !kind.can_be_compiled(size) || !self.worker().reaches_words() {
            return Ok(None);
        }
        let (Some(word), Some(key)) = (kind.word(), kind.key(size)) else { return Ok(None) };
        if let Some(index) = calls.scheduled.find(key) {
            let scheduled = calls.scheduled.at(index).cloned();
            if scheduled.as_ref().is_some_and(|scheduled| scheduled.is_full()) {
                return Err(self.too_many(&|| self.call_of(word_of(kind))));
            }
            calls.scheduled.count();
            calls.scheduled.used(index);
            return Ok(scheduled);
        }
        calls.scheduled.count();
        if !calls.scheduled.is_frequent(word) {
            return Ok(None);
        }
        let name: Arc<str> = self.call_of(word_of(kind)).into();
        let bytes = kind.memory(size);
        if !calls.scheduled.has_room(bytes) {
            // Nothing is evicted: another member may still run steps whose memory that would free.
            return Ok(None);
        }
        let scheduled = ScheduledCalls::new(self.plans().clone());
        calls.scheduled.enter(key, bytes, Some(scheduled.clone()));
        scheduled.compile_by(&self.compile_task(&scheduled, *kind, slot, words, name));
        Ok(Some(scheduled))
    }

    /// Makes the task that compiles the steps for a kind, together with all members.
    fn compile_task(
        &self,
        scheduled: &Arc<ScheduledCalls>,
        kind: CallKind,
        slot: u32,
        words: (CallWord, u64),
        name: Arc<str>,
    ) -> Arc<Task> {
        let (plans, scheduled) = (self.plans().clone(), Arc::downgrade(scheduled));
        let of_communicator = self.name().to_string();
        let steps = |peers: Arc<CallChannel>| {
            async move {
                let group = &plans.group;
                let schedules = kind.schedules(group.size(), |chunks| Some(chunks.schedules()));
                let Some(schedules) = schedules else { return Ok(None) };
                let schedule = schedules.all[0].clone();
                let part = schedule.part(group.place().index());
                let plan_kind = PlanKind::NonblockingCalls(schedules);
                let text = word_of(&kind).text(&of_communicator).unwrap_or_default();
                match plans.negotiate(&*peers, (&schedule, kind.of), &part, plan_kind, &text).await? {
                    // Another member is in another call, so this one cannot compile with it.
                    Err(cause @ Cause::Mismatch { .. }) => {
                        Err(group.worker().fault(cause, || "plan()".into()))
                    }
                    prepared => Ok(prepared.ok()),
                }
            }
        };
        let done = move |outcome: Result<Option<PreparedPlan>>| {
            let Some(scheduled) = scheduled.upgrade() else { return };
            match outcome {
                Ok(Some(PreparedPlan { execution: Some(execution), .. })) => scheduled.compiled(execution),
                Ok(_) => scheduled.refused(),
                Err(error) => scheduled.compile_failed(error),
            }
        };
        self.task_maker().make(slot, words, name, steps, done)
    }

    /// Returns what makes the task of a scheduled call if it must go by messages.
    fn by_messages_later(
        &self,
        scheduled: &Arc<ScheduledCalls>,
        number: u64,
        slot: u32,
        words: (CallWord, u64),
    ) -> MakeTask {
        let (maker, calls) = (self.task_maker(), Arc::downgrade(scheduled));
        Box::new(move |data: Box<dyn AnyCallData>| {
            let name = calls.upgrade().map_or_else(String::new, |calls| calls.name(words.0)).into();
            let steps = |peers: Arc<CallChannel>| async move {
                let mut data = data;
                data.by_messages(&peers).await.map(|()| data)
            };
            let done = move |outcome| {
                if let Some(calls) = calls.upgrade() {
                    calls.end_by_messages(number, outcome);
                }
            };
            maker.make(slot, words, name, steps, done)
        })
    }

    /// Frees the compiled steps of nonblocking calls, if all members have begun the same number of such calls and all
    /// of these are over. Otherwise a member might still run the steps, and members would not agree which calls compile
    /// steps again. A step of a collective call.
    pub(crate) fn clear_scheduled(&self) -> Result<()> {
        let own = {
            let calls = lock(&self.nonblocking.calls.0);
            let is_idle = calls.scheduled.entries().all(|scheduled| scheduled.are_over())
                && calls.last.iter().flatten().all(BegunCall::is_over);
            [calls.number, u64::from(is_idle)]
        };
        let all = self.allgather_steps(&own)?;
        if own[1] == 1 && all.chunks_exact(own.len()).all(|other| other == own) {
            let mut calls = lock(&self.nonblocking.calls.0);
            let (cache, last) = (std::mem::take(&mut calls.scheduled), std::mem::take(&mut calls.last));
            drop(calls);
            drop((cache, last)); // without the lock
            self.plans().free_nonblocking();
        }
        Ok(())
    }

    fn data_of<T: Pod>(
        &self,
        collective: CollectiveKind,
        root: Rank,
        count: usize,
        values: Vec<T>,
    ) -> CallData<T> {
        CallData::new(CallKind::of::<T>(collective, root, count), self.rank().index(), values)
    }

    /// Returns the data of a reduction of `count` values, or of blocks of `count` values.
    fn reduction_of<T: Pod>(
        &self,
        collective: CollectiveKind,
        root: Rank,
        count: usize,
        values: Vec<T>,
        operation: BoxedOperation,
    ) -> CallData<T> {
        let kind = CallKind::of::<T>(collective, root, count).combined(operation.builtin());
        CallData::new(kind, self.rank().index(), values).combined(operation)
    }

    /// Begins a barrier.
    pub fn start_barrier(&self) -> Result<StartedCollective<()>> {
        self.start_kind(self.data_of::<u8>(CollectiveKind::Barrier, Rank(0), 0, Vec::new()), drop)
    }

    /// Begins a broadcast.
    pub fn start_bcast<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        root: Rank,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let data = self.data_of(CollectiveKind::Bcast, root, values.len(), values);
        self.check_root_of(&data)?;
        self.start_kind(data, move |data| result(data.values))
    }

    /// Begins a reduction to the root.
    pub fn start_reduce<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        operation: BoxedOperation,
        root: Rank,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<Option<R>>> {
        let data = self.reduction_of(CollectiveKind::Reduce, root, values.len(), values, operation);
        self.check_root_of(&data)?;
        self.start_kind(data, move |data| data.is_root().then(|| result(data.values)))
    }

    /// Begins a reduction to all members.
    pub fn start_allreduce<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        operation: BoxedOperation,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let data = self.reduction_of(CollectiveKind::Allreduce, Rank(0), values.len(), values, operation);
        self.start_kind(data, move |data| result(data.values))
    }

    /// Begins a gather to the root, into `room` if it passes one.
    pub fn start_gather<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        room: Option<Vec<T>>,
        root: Rank,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<Option<R>>> {
        let kind = CallKind::of::<T>(CollectiveKind::Gather, root, values.len());
        self.check_root(root, word_of(&kind))?;
        let values = if self.rank() == root { self.placed_in(room, &values, &kind)? } else { values };
        let data = CallData::new(kind, self.rank().index(), values);
        self.start_kind(data, move |data| data.is_root().then(|| result(data.values)))
    }

    /// Begins a scatter of the root's values. This member's block fills `room`.
    pub fn start_scatter<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        room: Vec<T>,
        root: Rank,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let (is_root, count) = (self.rank() == root, room.len());
        let (values, room) = if is_root { (values, room) } else { (room, Vec::new()) };
        let data = self.data_of(CollectiveKind::Scatter, root, count, values).with_room(room);
        self.check_root_of(&data)?;
        if is_root {
            self.check_blocks_of(&data)?;
        }
        self.start_kind(data, move |data| {
            result(if data.is_root() { data.into_own_block() } else { data.values })
        })
    }

    /// Begins a gather to all members, into `room` if it is passed.
    pub fn start_allgather<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        room: Option<Vec<T>>,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let kind = CallKind::of::<T>(CollectiveKind::Allgather, Rank(0), values.len());
        let all = self.placed_in(room, &values, &kind)?;
        self.start_kind(CallData::new(kind, self.rank().index(), all), move |data| result(data.values))
    }

    /// Begins an exchange of blocks, into `room` if it is passed.
    pub fn start_alltoall<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        room: Option<Vec<T>>,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let count = values.len() / self.size();
        let room = room.unwrap_or_else(|| vec![T::zeroed(); values.len()]);
        let data = self.data_of(CollectiveKind::Alltoall, Rank(0), count, values).with_room(room);
        self.check_blocks_of(&data)?;
        self.check_room(data.result.len(), count, word_of(data.kind()))?;
        self.start_kind(data, move |data| result(data.result))
    }

    /// Begins a reduction whose result is scattered: each member gets a block, in `room` if it passes one.
    pub fn start_reduce_scatter<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        room: Option<Vec<T>>,
        operation: BoxedOperation,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let count = values.len() / self.size();
        let room = room.unwrap_or_else(|| vec![T::zeroed(); count]);
        let data = self.reduction_of(CollectiveKind::ReduceScatter, Rank(0), count, values, operation);
        let data = data.with_room(room);
        self.check_blocks_of(&data)?;
        self.check_block(data.result.len(), count, word_of(data.kind()))?;
        self.start_kind(data, move |data| result(data.into_own_block()))
    }

    /// Begins a scan.
    pub fn start_scan<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        operation: BoxedOperation,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let data = self.reduction_of(CollectiveKind::Scan, Rank(0), values.len(), values, operation);
        self.start_kind(data, move |data| result(data.values))
    }

    /// Begins an exclusive scan, over the members before this one. The result of the first member is None.
    pub fn start_exscan<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        operation: BoxedOperation,
        result: impl ValuesToResult<T, R>,
    ) -> Result<StartedCollective<Option<R>>> {
        let data = self.reduction_of(CollectiveKind::Exscan, Rank(0), values.len(), values, operation);
        self.start_kind(data, move |data| (!data.is_first()).then(|| result(data.values)))
    }

    /// Returns room for the values of all members, with this member's values in their place. Error: the program's room
    /// has another length.
    fn placed_in<T: Pod>(&self, room: Option<Vec<T>>, values: &[T], kind: &CallKind) -> Result<Vec<T>> {
        let mut all = room.unwrap_or_else(|| vec![T::zeroed(); self.size() * values.len()]);
        self.check_room(all.len(), values.len(), word_of(kind))?;
        self.place_own(values, &mut all);
        Ok(all)
    }

    fn check_root_of<T: Pod>(&self, data: &CallData<T>) -> Result<()> {
        let kind = data.kind();
        self.check_root(Rank(kind.root), word_of(kind))
    }

    /// Returns an error unless the values hold a block for each member.
    fn check_blocks_of<T: Pod>(&self, data: &CallData<T>) -> Result<()> {
        let kind = data.kind();
        let count = kind.bytes / size_of::<T>().max(1);
        self.check_room(data.values.len(), count, word_of(kind))
    }
}
