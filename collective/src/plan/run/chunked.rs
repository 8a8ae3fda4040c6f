//! Chunked plans: a start takes any number of values and passes them through the plan's buffers in chunks.
//!
//! One start by the program becomes a series of starts of the plan, one for each chunk. This rank begins the next one
//! in any call in which it waits, not only in the wait for this plan: members may wait for several plans in different
//! orders, or for something else first.

use crate::neighbourhood::Neighbourhood;
use crate::plan::state::PlanOver;
use crate::plan::{Plan, PlanState};
use bytemuck::Pod;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::task::{Poll, Waker};
use tasuki_core::base::{Error, Result};
use tasuki_core::engine::{AwaitedCondition, Condition, apart_from_call};
use tasuki_message::{Context, Continuation};
use tasuki_schedule::BufferId;
use tasuki_schedule::shape::{CollectiveKind, Counts, DATA, RESULT, Shape};

/// The blocks that a member of a plan sends and receives, all of equal length.
#[derive(Clone, Debug)]
pub struct ChunkShape {
    /// Number of values of a block in the plan's buffers.
    room: usize,
    /// The numbers of the blocks that it sends; the numbers of those that it receives, and the buffer for them.
    given: Vec<usize>,
    received: Vec<usize>,
    result: BufferId,
    /// Number of blocks in the buffer that it sends from, and in the one that it receives into.
    count: [usize; 2],
    /// True if values are combined with those of other members.
    combines: bool,
}

impl ChunkShape {
    /// Returns the blocks of a member in a collective on values of `value_bytes` bytes. None: blocks differ in length
    /// or are empty.
    pub fn of(shape: &Shape, member: usize, value_bytes: usize) -> Option<ChunkShape> {
        use CollectiveKind::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        let Counts::Equal(bytes) = shape.counts else { return None };
        let room = bytes as usize / value_bytes.max(1);
        if room == 0 {
            return None;
        }
        let blocks = |offset: u64, len: u64| (offset / bytes) as usize..((offset + len) / bytes) as usize;
        let contract = shape.contract(member);
        let [own, apart] = shape.buffer_bytes(member).map(|all| blocks(0, all).len());
        let result = contract.outputs.iter().map(|(span, _)| span.buffer).find(|&buffer| buffer != DATA);
        Some(ChunkShape {
            room,
            given: contract.inputs.iter().flat_map(|span| blocks(span.offset, span.bytes)).collect(),
            received: contract.outputs.iter().flat_map(|(span, _)| blocks(span.offset, span.bytes)).collect(),
            result: result.unwrap_or(DATA),
            count: if result.is_some() { [own, apart] } else { [own, own] },
            combines: matches!(shape.collective, Reduce | Allreduce | ReduceScatter | Scan | Exscan),
        })
    }

    /// Returns the blocks of a member that exchanges blocks of `room` values with its neighbours. None: they are empty.
    pub fn exchanged(room: usize, with: &Neighbourhood) -> Option<ChunkShape> {
        let ([given, received], count) = (with.present().map(<[usize]>::to_vec), with.blocks());
        (room > 0).then_some(ChunkShape { room, given, received, result: RESULT, count, combines: false })
    }

    /// Returns the number of blocks into which the program's values are divided.
    fn most(&self) -> usize {
        self.count[0].max(self.count[1])
    }

    /// Returns the number of values of each block of the program's `values` values. None: they cannot be divided into
    /// blocks.
    fn len(&self, values: usize) -> Option<usize> {
        match self.most() {
            0 => (values == 0).then_some(0),
            most => values.is_multiple_of(most).then(|| values / most),
        }
    }
}

/// A chunked plan.
pub struct ChunkedRun<T: Pod + Send>(Arc<ChunkedState<T>>);

struct ChunkedState<T> {
    plan_state: Arc<PlanState>,
    messages: Arc<Context>,
    state: Mutex<ChunkProgress<T>>,
}

struct ChunkProgress<T> {
    plan: Plan,
    shape: ChunkShape,
    /// The start that is under way.
    cursor: Option<ChunkCursor>,
    /// The values of that start.
    values: Vec<T>,
    /// Buffer for a padded chunk of values to combine.
    made: Vec<T>,
    /// The error of a start that ended while no thread waited for it.
    failed: Option<Error>,
}

/// The progress of a start.
#[derive(Clone, Copy)]
struct ChunkCursor {
    /// Number of values of a block.
    len: usize,
    /// First value, in each block, of the chunk under way.
    at: usize,
}

impl<T: Pod + Send> fmt::Debug for ChunkedRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> fmt::Debug for ChunkedState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkedRun").field("plan_state", &self.plan_state).finish_non_exhaustive()
    }
}

impl<T: Pod + Send> ChunkedRun<T> {
    /// Makes a chunked plan of a plan that has no start under way.
    pub fn new(mut plan: Plan, shape: ChunkShape) -> ChunkedRun<T> {
        plan.drop_copies(); // each chunk is written into the plan's buffers
        let (plan_state, messages) = (plan.plan_state.clone(), plan.messages.clone());
        let (values, made) = (Vec::new(), Vec::new());
        let state = Mutex::new(ChunkProgress { plan, shape, cursor: None, values, made, failed: None });
        ChunkedRun(Arc::new(ChunkedState { plan_state, messages, state }))
    }

    /// Starts it with the given values.
    pub fn start(&mut self, values: Vec<T>) -> Result<()> {
        let mut state = self.0.lock();
        state.begin(values)?;
        if state.cursor.is_some_and(ChunkCursor::has_more) {
            self.0.messages.progress().add_continuation(self.0.clone());
        }
        Ok(())
    }

    /// Waits for the start and returns its values. Error: the start has failed, or none is under way.
    pub fn wait(&mut self) -> Result<Vec<T>> {
        let mut state = self.0.lock();
        let Some(ChunkCursor { len, .. }) = state.cursor else {
            return Err(state.plan.already_returned());
        };
        let outcome = state.resume(true);
        self.0.messages.progress().remove_continuation(&*self.0);
        outcome?;
        state.cursor = None;
        let mut values = std::mem::take(&mut state.values);
        values.truncate(len * state.shape.count[1]);
        Ok(values)
    }

    /// Returns true if [`ChunkedRun::wait`] would return at once. Never waits.
    pub fn test(&mut self) -> bool {
        let mut state = self.0.lock();
        state.cursor.is_none() || state.is_over()
    }

    /// Returns `Ready` if [`ChunkedRun::test`] returns true; otherwise the task of `waker` is woken when it does.
    pub fn poll(&mut self, waker: &Waker, awaited: &mut AwaitedCondition) -> Poll<()> {
        let mut state = self.0.lock();
        if state.cursor.is_none() || state.is_over() {
            return Poll::Ready(());
        }
        let worker = &self.0.plan_state.worker;
        if let Err(error) = self.0.plan_state.look(&state.plan.monitor, &|| state.plan.start_under_way()) {
            state.failed = Some(state.plan.failed(error));
            return Poll::Ready(());
        }
        let over = PlanOver { plan_state: self.0.plan_state.clone(), call: state.plan.start_under_way() };
        let next = state.plan.monitor.awaited(worker, Condition::Event(Arc::new(over)), state.plan.about());
        drop(state); // another thread may continue the start
        awaited.set(worker, next, waker);
        Poll::Pending
    }

    /// Returns true if this thread's calls have a time limit.
    pub fn has_limit(&self) -> bool {
        self.0.plan_state.worker.has_limit()
    }

    /// Returns true if a start has not been waited for.
    pub fn is_active(&self) -> bool {
        self.0.lock().cursor.is_some()
    }
}

impl<T: Pod + Send> Drop for ChunkedRun<T> {
    /// A start under way continues in later calls of the rank, because other members wait for it.
    fn drop(&mut self) {
        let state = self.0.lock();
        if state.passes() {
            state.plan.mark_dropped();
        } else {
            self.0.messages.progress().remove_continuation(&*self.0);
        }
    }
}

impl<T> ChunkedState<T> {
    /// Locks the state. Makes progress while it waits for the lock, because the thread that holds it may wait for
    /// copies.
    fn lock(&self) -> MutexGuard<'_, ChunkProgress<T>> {
        loop {
            match self.state.try_lock() {
                Ok(state) => return state,
                Err(TryLockError::Poisoned(state)) => return state.into_inner(),
                Err(TryLockError::WouldBlock) => self.plan_state.worker.pause(),
            }
        }
    }
}

impl<T: Pod + Send> Continuation for ChunkedState<T> {
    fn can_resume(&self) -> bool {
        // False while another thread holds the state, which then continues the start itself.
        // After a failure of the communicator the start ends with an error, also if nobody waits for it any more.
        let has_failed = self.state.try_lock().ok().map(|state| state.plan.monitor.is_failed());
        has_failed.is_some_and(|has_failed| has_failed || self.plan_state.is_over())
    }

    fn is_under_way(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.passes())
    }

    fn resume(&self) {
        // If another thread holds the lock, that thread continues the start.
        let Ok(mut state) = self.state.try_lock() else { return };
        let outcome = state.resume(false);
        if !matches!(outcome, Ok(false)) {
            self.messages.progress().remove_continuation(self);
        }
        state.failed = outcome.err();
        drop(state);
        self.plan_state.worker.wake_own_threads();
    }
}

impl ChunkCursor {
    fn current(self, room: usize) -> Range<usize> {
        self.at.min(self.len)..self.len.min(self.at + room)
    }

    fn has_more(self) -> bool {
        self.at < self.len
    }
}

impl<T: Pod> ChunkProgress<T> {
    fn begin(&mut self, values: Vec<T>) -> Result<()> {
        if self.cursor.is_some() {
            return Err(self.plan.start_active("start"));
        }
        let Some(len) = self.shape.len(values.len()) else {
            let text =
                format!("{} values cannot be divided into {} equal blocks", values.len(), self.shape.most());
            return Err(self.plan.refused("start", &text));
        };
        self.values = values;
        let cursor = ChunkCursor { len, at: 0 };
        self.plan.plan_state.set_chunked_starts(len.div_ceil(self.shape.room) as u64);
        self.give(cursor).inspect_err(|_| self.plan.plan_state.set_chunked_starts(0))?;
        self.cursor = Some(cursor);
        Ok(())
    }

    /// Returns true if chunks are under way or to come.
    fn passes(&self) -> bool {
        self.plan.plan_state.passes() && !self.plan.is_broken()
    }

    /// Continues the start. Returns true if all chunks have passed. If `waits`, waits until they have. Error: the start
    /// has failed, and no more chunks will pass.
    fn resume(&mut self, waits: bool) -> Result<bool> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        let outcome = self.pass_on(waits);
        if !matches!(outcome, Ok(false)) {
            self.plan.plan_state.set_chunked_starts(0);
        }
        outcome
    }

    /// Continues the start. Returns true if a wait for it returns at once.
    fn is_over(&mut self) -> bool {
        match self.resume(false) {
            Ok(is_over) => is_over,
            Err(error) => {
                self.failed = Some(error); // `wait` returns it
                true
            }
        }
    }

    fn pass_on(&mut self, waits: bool) -> Result<bool> {
        while let Some(cursor) = self.cursor.filter(|cursor| cursor.has_more()) {
            if !self.passes() {
                return Err(self.plan.refused("wait", "its start ended before all values had passed"));
            }
            if waits {
                self.plan.wait()?;
            } else if !self.plan.test()? {
                return Ok(false);
            }
            self.plan.compare_tags()?;
            // A wait may end between two chunks, but not between the end of one and the begin of the next.
            let _apart = apart_from_call();
            self.take(cursor)?;
            let next = ChunkCursor { at: cursor.at + self.shape.room, ..cursor };
            self.cursor = Some(next);
            self.give(next)?;
        }
        Ok(true)
    }

    /// Writes a chunk into the plan's buffer and starts the plan, unless no values are left.
    fn give(&mut self, cursor: ChunkCursor) -> Result<()> {
        let (chunk, room) = (cursor.current(self.shape.room), self.shape.room);
        if chunk.is_empty() {
            return Ok(());
        }
        for &block in &self.shape.given {
            let mut values = &self.values[block * cursor.len..][chunk.clone()];
            if self.shape.combines && values.len() < room {
                // The plan combines the whole block, so pad with a value that the program gave: its operation may panic
                // on other values.
                self.made.clear();
                self.made.extend_from_slice(values);
                self.made.resize(room, values[values.len() - 1]);
                values = &self.made;
            }
            let at = block * room * size_of::<T>();
            self.plan.write(DATA, at as u64, bytemuck::cast_slice(values))?;
        }
        self.plan.set_tag((cursor.len ^ cursor.len >> 32) as u32);
        self.plan.start()
    }

    /// Reads a chunk out of the plan's buffer.
    fn take(&mut self, cursor: ChunkCursor) -> Result<()> {
        let (chunk, room) = (cursor.current(self.shape.room), self.shape.room);
        for &block in &self.shape.received {
            let into = &mut self.values[block * cursor.len..][chunk.clone()];
            let at = block * room * size_of::<T>();
            self.plan.read(self.shape.result, at as u64, bytemuck::cast_slice_mut(into))?;
        }
        Ok(())
    }
}
