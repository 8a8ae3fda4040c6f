//! Collective calls that are begun, and waited for later, or awaited.
//!
//! The steps of a call are sends and receives that are begun, in a context that no message of the program and no other
//! call meets. Calls of a communicator are begun in the same order on all members, and each has a slot of that context,
//! by its number. What has come lets a call go on when its member asks: in [`Collective::wait`],
//! [`Collective::is_finished`], or where a task awaits it.

use crate::communicator::Slot;
use crate::operation::Operation;
use crate::pending::{Receiving, Sending};
use crate::{Cause, Communicator, PlanOperation, Pod, Rank, Result};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{self, Poll, Wake, Waker};
use tasuki_core::base::Rank as Place;
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Machine};
use tasuki_models::collective::BEGUN_MAX;
use tasuki_models::message::Context;

/// A collective call that was begun. [`Collective::wait`] or `.await` gives what the call gives.
///
/// Whoever asks moves it on. A member that drops it does no more of its steps, and others wait in vain until that
/// member leaves.
#[must_use = "its steps go on when it is waited for"]
pub struct Collective<R> {
    steps: Pin<Box<dyn Future<Output = Result<R>> + Send>>,
    /// What it gives, until somebody has it.
    done: Option<Result<R>>,
    machine: Arc<Machine>,
    call: &'static str,
    /// While it is under way.
    place: Option<Held>,
}

impl<R> fmt::Debug for Collective<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collective({}, {})", self.call, if self.place.is_none() { "over" } else { "under way" })
    }
}

/// Which slots calls have that are under way, and how many calls there were.
#[derive(Debug, Default)]
pub(crate) struct Places {
    calls: AtomicU64,
    taken: AtomicU64,
}

const _: () = assert!(BEGUN_MAX == u64::BITS);

/// A slot, until the call is over or dropped.
struct Held {
    places: Arc<Places>,
    slot: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.places.taken.fetch_and(!(1 << self.slot), Ordering::Release);
    }
}

/// That a task was woken, for a thread that waits instead of one.
#[derive(Debug)]
struct Woken {
    is_so: AtomicBool,
    machine: Arc<Machine>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_so.store(true, Ordering::Release); // SYNC begun-woken
        self.machine.stir();
    }
}

impl Event for Woken {
    fn happened(&self) -> bool {
        self.is_so.load(Ordering::Acquire) // SYNC begun-woken
    }

    fn hopeless_from(&self) -> Option<(Place, Stage)> {
        None // the message that it waits for knows
    }
}

impl<R> Collective<R> {
    /// Whether it is over. Moves it on.
    pub fn is_finished(&mut self) -> bool {
        self.machine.progress();
        self.go_on(&mut task::Context::from_waker(Waker::noop()));
        self.place.is_none()
    }

    /// Waits until it is over for this member: what the call gives. Serves peers meanwhile.
    ///
    /// Errors: members disagree about the number of bytes; a member died, or left without having begun it.
    pub fn wait(mut self) -> Result<R> {
        loop {
            let woken = Arc::new(Woken { is_so: AtomicBool::new(false), machine: self.machine.clone() });
            self.go_on(&mut task::Context::from_waker(&Waker::from(woken.clone())));
            if let Some(done) = self.done.take() {
                return done;
            }
            let call = self.call;
            self.machine.wait(&Condition::Event(woken), None, &|| format!("{call}: wait"))?;
        }
    }

    fn go_on(&mut self, task: &mut task::Context<'_>) {
        if self.place.is_some()
            && let Poll::Ready(done) = self.steps.as_mut().poll(task)
        {
            self.done = Some(done);
            self.place = None;
        }
    }
}

impl<R> Drop for Collective<R> {
    fn drop(&mut self) {
        std::mem::forget(self.place.take()); // what is left in the middle keeps its slot
    }
}

impl<R: Unpin> Future for Collective<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.go_on(task);
        self.done.take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// One member's way through a call.
struct Steps {
    context: Arc<Context>,
    slot: Slot,
    me: usize,
    size: usize,
}

impl Steps {
    /// The member so many places further on, around the end.
    fn after(&self, steps: usize) -> usize {
        (self.me + steps) % self.size
    }

    async fn send<T: Pod + Send>(&self, values: Vec<T>, to: usize) -> Result<Vec<T>> {
        Sending::new(&self.context, values, Rank(to as u32), self.slot)?.await
    }

    fn expect<T: Pod>(&self, count: usize, from: usize) -> Result<Receiving<T>> {
        Receiving::new(&self.context, vec![T::zeroed(); count], Rank(from as u32), self.slot)
    }

    /// What comes, which is to be as much as there is room for.
    async fn take<T: Pod + Send>(&self, expected: Receiving<T>, count: usize) -> Result<Vec<T>> {
        let (values, got) = expected.await?;
        if got.count == count {
            return Ok(values);
        }
        let bytes = |count: usize| (count * size_of::<T>()) as u64;
        let (one, other) = (bytes(got.count), bytes(count));
        let cause = Cause::Disagree { what: "bytes", least: one.min(other), most: one.max(other) };
        Err(self.context.machine().fault(cause, || format!("a part with member {}", got.source)))
    }

    async fn recv<T: Pod + Send>(&self, count: usize, from: usize) -> Result<Vec<T>> {
        self.take(self.expect(count, from)?, count).await
    }

    /// Gives a block to each of some members, and gets one of each of others, all at once: in the order of `from`.
    async fn swap<T: Pod + Send>(
        &self,
        blocks: Vec<(usize, Vec<T>)>,
        from: &[usize],
        count: usize,
    ) -> Result<Vec<Vec<T>>> {
        let begun: Result<Vec<_>> = from.iter().map(|&from| self.expect(count, from)).collect();
        let begin = |(to, block)| Sending::new(&self.context, block, Rank(to as u32), self.slot);
        let sent: Result<Vec<_>> = blocks.into_iter().map(begin).collect();
        let mut got = Vec::with_capacity(from.len());
        for expected in begun? {
            got.push(self.take(expected, count).await?);
        }
        for sent in sent? {
            sent.await?;
        }
        Ok(got)
    }

    /// Down a binomial tree, the largest part first.
    async fn bcast<T: Pod + Send>(&self, mut values: Vec<T>, root: usize) -> Result<Vec<T>> {
        let place = (self.me + self.size - root) % self.size;
        let of_place = |place: usize| (place + root) % self.size;
        let level = if place == 0 { 0 } else { place.ilog2() as usize + 1 };
        if place > 0 {
            values = self.recv(values.len(), of_place(place - (1 << (level - 1)))).await?;
        }
        let children: Vec<usize> = (level..usize::BITS as usize)
            .map(|k| place + (1 << k))
            .take_while(|&at| at < self.size)
            .collect();
        let blocks = children.iter().rev().map(|&child| (of_place(child), values.clone())).collect();
        self.swap(blocks, &[], 0).await?;
        Ok(values)
    }

    /// Up a tree to the first member, neighbours first, in the order of members; there they are the result.
    async fn reduce<T: Pod + Send>(
        &self,
        mut values: Vec<T>,
        operation: &(impl Operation<T> + Sync),
    ) -> Result<Vec<T>> {
        let mut step = 1;
        while step < self.size {
            if self.me & step != 0 {
                return self.send(values, self.me - step).await;
            }
            if self.me + step < self.size {
                let part = self.recv(values.len(), self.me + step).await?;
                operation.combine(&mut values, &part);
            }
            step *= 2;
        }
        Ok(values)
    }

    /// What the values of the members from `first` up to this one come to, by doubling.
    async fn scan<T: Pod + Send>(
        &self,
        mut values: Vec<T>,
        first: usize,
        operation: &(impl Operation<T> + Sync),
    ) -> Result<Vec<T>> {
        let mut step = 1;
        while first + step < self.size && self.me >= first {
            if let Some(mut before) = self.hand_on(values.clone(), step, first).await? {
                operation.combine(&mut before, &values);
                values = before;
            }
            step *= 2;
        }
        Ok(values)
    }

    /// Gives values to the member so many places further on, and gets those of the one as many before, from `first` on.
    async fn hand_on<T: Pod + Send>(
        &self,
        values: Vec<T>,
        step: usize,
        first: usize,
    ) -> Result<Option<Vec<T>>> {
        let count = values.len();
        let to = Some(self.me + step).filter(|&to| to < self.size);
        let from: Vec<usize> = self.me.checked_sub(step).filter(|&from| from >= first).into_iter().collect();
        let got = self.swap(to.map(|to| (to, values)).into_iter().collect(), &from, count).await?;
        Ok(got.into_iter().next())
    }
}

impl Communicator {
    /// Begins a barrier: it is over when all members have begun it. Not bound to what was sent before.
    ///
    /// Collective, as are all calls below: members begin them in the same order, one thread of each at a time, in any
    /// order to the collective calls that return when they are over. At most 64 may be under way; one more is an error
    /// that has begun nothing ([`Cause::Full`](crate::Cause::Full)). They go on when somebody asks for them. Costs
    /// ceil(log2 P) rounds of a message each.
    pub fn ibarrier(&self) -> Result<Collective<()>> {
        self.begin("ibarrier", |steps| async move {
            let mut step = 1;
            while step < steps.size {
                let (to, from) = (steps.after(step), steps.after(steps.size - step));
                steps.swap::<u8>(vec![(to, Vec::new())], &[from], 0).await?;
                step *= 2;
            }
            Ok(())
        })
    }

    /// Begins a broadcast: the root's values, on every member; `values` are as many on each. Costs ceil(log2 P)
    /// messages, and a copy of the values for each.
    ///
    /// ```
    /// use tasuki::{Rank, Sum};
    /// tasuki::local(3, |job| {
    ///     let (world, me) = (job.world(), u64::from(job.rank().0));
    ///     let settings = world.ibcast(vec![me; 2], Rank(1))?;
    ///     let total = world.iallreduce(vec![me + 1], Sum)?;
    ///     let inner: u64 = (0..1000).sum();                          // work that needs neither
    ///     assert_eq!((total.wait()?, settings.wait()?, inner), (vec![6], vec![1, 1], 499_500));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ibcast<T: Pod + Send>(&self, values: Vec<T>, root: Rank) -> Result<Collective<Vec<T>>> {
        self.check_place(root, "ibcast")?;
        self.begin("ibcast", move |steps| async move { steps.bcast(values, root.index()).await })
    }

    /// Begins a reduction: all members' values, combined in the order of members, on the root; `None` elsewhere. Costs
    /// a tree of messages.
    pub fn ireduce<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl PlanOperation<T>,
        root: Rank,
    ) -> Result<Collective<Option<Vec<T>>>> {
        self.check_place(root, "ireduce")?;
        let root = root.index();
        self.begin("ireduce", move |steps| async move {
            let (me, count) = (steps.me, values.len());
            let mut values = steps.reduce(values, &operation).await?;
            if root != 0 && me == 0 {
                values = steps.send(values, root).await?;
            } else if root != 0 && me == root {
                values = steps.recv(count, 0).await?;
            }
            Ok((me == root).then_some(values))
        })
    }

    /// Begins a reduction for all: the same to the bit on every member. Costs a reduction and a broadcast.
    pub fn iallreduce<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl PlanOperation<T>,
    ) -> Result<Collective<Vec<T>>> {
        self.begin("iallreduce", move |steps| async move {
            let values = steps.reduce(values, &operation).await?;
            steps.bcast(values, 0).await
        })
    }

    /// Begins a gather: all members' values one behind the other, on the root; as many of each. Costs a message from
    /// each member.
    pub fn igather<T: Pod + Send>(&self, values: Vec<T>, root: Rank) -> Result<Collective<Option<Vec<T>>>> {
        self.check_place(root, "igather")?;
        let root = root.index();
        self.begin("igather", move |steps| async move {
            if steps.me != root {
                return steps.send(values, root).await.map(|_| None);
            }
            let others: Vec<usize> = (0..steps.size).filter(|&from| from != root).collect();
            let mut blocks = steps.swap(Vec::new(), &others, values.len()).await?;
            blocks.insert(root, values);
            Ok(Some(blocks.concat()))
        })
    }

    /// Begins a scatter: each member's block of the root's values, which are as many blocks of `count` values as there
    /// are members; `values` are not looked at elsewhere. Costs a message to each member.
    pub fn iscatter<T: Pod + Send>(
        &self,
        values: Vec<T>,
        count: usize,
        root: Rank,
    ) -> Result<Collective<Vec<T>>> {
        self.check_place(root, "iscatter")?;
        let (is_root, root) = (self.rank() == root, root.index());
        self.check_blocks(is_root && values.len() != count * self.size(), values.len(), "iscatter")?;
        self.begin("iscatter", move |steps| async move {
            if steps.me != root {
                return steps.recv(count, root).await;
            }
            let (own, blocks) = split_off(&steps, &values, count);
            steps.swap(blocks, &[], 0).await?;
            Ok(own)
        })
    }

    /// Begins an allgather: all members' values one behind the other, on every member; as many of each. Costs a message
    /// to each member.
    pub fn iallgather<T: Pod + Send>(&self, values: Vec<T>) -> Result<Collective<Vec<T>>> {
        let count = values.len();
        self.begin("iallgather", move |steps| async move {
            let others = (1..steps.size).map(|step| (steps.after(step), values.clone())).collect();
            let sources: Vec<usize> = (0..steps.size).filter(|&from| from != steps.me).collect();
            let mut blocks = steps.swap(others, &sources, count).await?;
            blocks.insert(steps.me, values);
            Ok(blocks.concat())
        })
    }

    /// Begins an exchange: a block from each member, in their order; `values` are as many blocks of this member's for
    /// all of them. Costs a message to each member.
    pub fn ialltoall<T: Pod + Send>(&self, values: Vec<T>) -> Result<Collective<Vec<T>>> {
        let count = values.len() / self.size();
        self.check_blocks(values.len() != count * self.size(), values.len(), "ialltoall")?;
        self.begin("ialltoall", move |steps| async move {
            blocks_of_all(&steps, values, count).await.map(|blocks| blocks.concat())
        })
    }

    /// Begins a reduction of which each member gets its block: `values` are as many blocks as there are members. Costs
    /// a message to each member.
    pub fn ireduce_scatter<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl PlanOperation<T>,
    ) -> Result<Collective<Vec<T>>> {
        let count = values.len() / self.size();
        self.check_blocks(values.len() != count * self.size(), values.len(), "ireduce_scatter")?;
        self.begin("ireduce_scatter", move |steps| async move {
            let mut blocks = blocks_of_all(&steps, values, count).await?.into_iter();
            let mut sum = blocks.next().unwrap_or_default();
            blocks.for_each(|block| operation.combine(&mut sum, &block));
            Ok(sum)
        })
    }

    /// Begins a scan: what the values of the members up to this one come to, combined in their order. Costs ceil(log2
    /// P) rounds of a message each way.
    pub fn iscan<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl PlanOperation<T>,
    ) -> Result<Collective<Vec<T>>> {
        self.begin("iscan", move |steps| async move { steps.scan(values, 0, &operation).await })
    }

    /// Begins the same of the members before this one; `None` on the first one. Costs a round more.
    pub fn iexscan<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl PlanOperation<T>,
    ) -> Result<Collective<Option<Vec<T>>>> {
        self.begin("iexscan", move |steps| async move {
            let before = steps.hand_on(values, 1, 0).await?;
            let Some(before) = before else { return Ok(None) };
            steps.scan(before, 1, &operation).await.map(Some)
        })
    }

    fn begin<R, F>(&self, call: &'static str, make: impl FnOnce(Steps) -> F) -> Result<Collective<R>>
    where
        F: Future<Output = Result<R>> + Send + 'static,
    {
        let machine = self.messages().machine().clone();
        machine.check().map_err(|cause| machine.fault(cause, || call.into()))?;
        let places = self.places();
        let number = places.calls.load(Ordering::Relaxed);
        let slot = (number % u64::from(BEGUN_MAX)) as u32;
        if places.taken.fetch_or(1 << slot, Ordering::Acquire) & 1 << slot != 0 {
            let cause = Cause::Full { what: "collective calls under way", capacity: BEGUN_MAX as usize };
            return Err(machine.fault(cause, || call.into()));
        }
        places.calls.store(number + 1, Ordering::Relaxed);
        let (context, me, size) = (self.inner().begun().clone(), self.rank().index(), self.size());
        let steps = Box::pin(make(Steps { context, slot: Slot(slot), me, size }));
        let place = Held { places: places.clone(), slot };
        let mut begun = Collective { steps, done: None, machine, call, place: Some(place) };
        begun.go_on(&mut task::Context::from_waker(Waker::noop()));
        Ok(begun)
    }

    fn check_place(&self, root: Rank, call: &'static str) -> Result<()> {
        if root.index() < self.size() {
            return Ok(());
        }
        let cause = Cause::NoSuchRank { rank: root, size: self.size() };
        Err(self.messages().machine().fault(cause, || call.into()))
    }

    fn check_blocks(&self, is_wrong: bool, values: usize, call: &'static str) -> Result<()> {
        if !is_wrong {
            return Ok(());
        }
        let text = format!("{values} values are not a block for each of {} members", self.size());
        Err(self.messages().machine().fault(Cause::Argument(text), || call.into()))
    }
}

/// Each member gives each its block, and gets one of each: in the order of members.
async fn blocks_of_all<T: Pod + Send>(steps: &Steps, values: Vec<T>, count: usize) -> Result<Vec<Vec<T>>> {
    let (own, blocks) = split_off(steps, &values, count);
    let sources: Vec<usize> = (0..steps.size).filter(|&from| from != steps.me).collect();
    let mut got = steps.swap(blocks, &sources, count).await?;
    got.insert(steps.me, own);
    Ok(got)
}

/// This member's block of so many values, and those of the others, the next one's first.
fn split_off<T: Pod>(steps: &Steps, values: &[T], count: usize) -> (Vec<T>, Vec<(usize, Vec<T>)>) {
    let block = |of: usize| values[of * count..][..count].to_vec();
    let others = (1..steps.size).map(|step| steps.after(step));
    (block(steps.me), others.map(|to| (to, block(to))).collect())
}
