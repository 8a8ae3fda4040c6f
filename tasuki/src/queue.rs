//! Command queues: work that goes on without the rank that prepared it.

use crate::command::Command;
use crate::data::single_value_data;
use crate::job::Job;
use crate::{Error, Rank, Result, Signal};
use std::borrow::Borrow;
use std::sync::Arc;
use tasuki_core::base::Cause;
/// What [`Queue::stats`] returns.
///
/// ```
/// use tasuki::Command;
/// use tasuki::engine::QueueStats;
/// tasuki::local(1, |job| {
///     let (queue, done) = (job.queue(8)?, job.signal()?);
///     queue.post(Command::nothing().then(done.on(job.rank()).add(1)))?;
///     done.wait_at_least(1)?;
///     let QueueStats { waiting, failed, .. } = queue.stats();
///     assert_eq!((waiting, failed), (0, 0));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub use tasuki_core::engine::QueueStats;
use tasuki_core::engine::{LocalQueue, QueueName, Worker};
use tasuki_core::queue::encoding::EncodedCommand;

/// A command queue of this rank. Made by [`Job::queue`] or [`Queue::session`].
///
/// A command runs when its trigger is met; [who runs it](crate::engine#progress). While a rank computes, other ranks
/// run its queues, except for commands that only one rank may run ([`Command::by_source`],
/// [`Command::by_destination`]). Triggers are signals of the queue's own rank.
///
/// Dropping a queue waits for all commands that can run: those without a trigger and those whose trigger is met. A
/// command whose trigger is not met never fires after that, and its signals are poisoned. Calls are delivered to
/// their ranks, but dropping does not wait for their handlers. Any thread may make any call, several threads at once.
///
/// ```
/// use tasuki::Command;
/// tasuki::local(1, |job| {
///     let (queue, ready, done) = (job.queue(60)?, job.signal()?, job.signal()?);
///     assert_eq!(queue.capacity(), 64); // rounded up
///     let (me, table) = (job.rank(), job.alloc::<u64>(2)?);
///     let first = queue.post(Command::store(table.on(me), 7).when(ready.reaches(1)).then(done.on(me).add(1)))?;
///     let second = Command::store(table.on(me).at(1), 8).when(ready.reaches(2));
///     let second = queue.post(second)?;
///     assert!(queue.cancel(second)?); // its trigger is not met
///     job.raise(ready.on(me), 1)?;
///     done.wait_at_least(1)?;
///     assert_eq!((table.to_vec()?, queue.stats().failed), (vec![7, 0], 0));
///     assert!(!queue.cancel(first)?);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct Queue {
    worker: Arc<Worker>,
    own: Arc<LocalQueue>,
}

/// The name of a rank's queue, with which other ranks post to it. It has 8 bytes and may be sent to any rank.
///
/// ```
/// use tasuki::Command;
/// tasuki::local(2, |job| {
///     let (queue, done, table) = (job.queue(8)?, job.signal()?, job.alloc::<u64>(2)?);
///     let names = job.world().allgather(&[queue.remote()])?; // names of queues are plain values
///     let peer = job.rank_after(1);
///     let at = table.on(peer);
///     let commands = [Command::store(at, 5), Command::store(at.at(1), 6).then(done.on(peer).add(1))];
///     names[peer.index()].post_many(job, &commands)?; // a queue of the peer
///     done.wait_at_least(1)?;
///     job.barrier()?;
///     assert_eq!(table.to_vec()?, [5, 6]);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct RemoteQueue(QueueName);

/// Names a posted command so that it can be cancelled. Only the queue's own rank can cancel it ([`Queue::cancel`]).
/// It has 16 bytes and may be sent there.
///
/// ```
/// use tasuki::engine::Posted;
/// use tasuki::{Command, Request};
/// tasuki::local(1, |job| {
///     let (queue, go, word) = (job.queue(4)?, job.signal()?, job.alloc::<u64>(1)?);
///     let store = Command::store(word.pointer(), 7).when(go.reaches(1));
///     let posted: Posted = queue.post(store)?;
///     assert!(queue.cancel(posted)?); // it has not fired
///     job.raise(go.on(job.rank()), 1)?;
///     go.reaches(1).wait()?;
///     assert_eq!(word.get(0)?, 0);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Posted {
    queue: QueueName,
    position: u64,
}

impl RemoteQueue {
    /// Posts a command to a queue of any rank. See [`Queue::post`].
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, done, word) = (job.queue(4)?, job.signal()?, job.alloc::<u64>(1)?);
    ///     let queues = job.world().allgather(&queue.remote())?;
    ///     let peer = job.rank_after(1);
    ///     let store = Command::store(word.on(peer), 7).then(done.on(peer).add(1));
    ///     queues[peer.index()].post(job, store)?; // to the queue of the peer
    ///     done.wait_at_least(1)?;
    ///     assert_eq!(word.get(0)?, 7);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn post(self, job: &Job, command: impl Borrow<Command>) -> Result<Posted> {
        self.post_many(job, std::slice::from_ref(command.borrow()))
    }

    /// Posts several commands to a queue of any rank. See [`Queue::post_many`].
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, done, words) = (job.queue(16)?, job.signal()?, job.alloc::<u64>(4)?);
    ///     let queues = job.world().allgather(&queue.remote())?;
    ///     let peer = job.rank_after(1);
    ///     let store = |index| Command::store(words.on(peer).at(index), 7).then(done.on(peer).add(1));
    ///     let stores: Vec<Command> = (0..4).map(store).collect();
    ///     queues[peer.index()].post_many(job, &stores)?; // all four, or none
    ///     done.wait_at_least(4)?;
    ///     assert_eq!(words.to_vec()?, [7; 4]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn post_many(self, job: &Job, commands: &[Command]) -> Result<Posted> {
        match post_all(&job.worker, PostTo::Queue(self.0), commands) {
            Ok(position) => Ok(Posted { queue: self.0, position }),
            Err(cause) => Err(refusal(&job.worker, cause, commands, self.rank())),
        }
    }

    /// The rank that owns the queue.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let queue = job.queue(4)?;
    ///     let queues = job.world().allgather(&queue.remote())?;
    ///     assert_eq!(queues[1].rank(), tasuki::Rank(1));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn rank(self) -> Rank {
        self.0.address().rank()
    }
}

impl Job {
    /// Makes a queue with `capacity` places, 1 to 2^20, rounded up to a power of two ([`Queue::capacity`] returns the
    /// result).
    ///
    /// A command takes one place. It takes two if it carries more than 8 bytes, fetches, compares, or has a second
    /// effect or trigger. Commands that wait for their triggers, up to as many as there are places, and commands in
    /// flight are stored elsewhere, so a queue may accept more commands than its capacity before it is full.
    ///
    /// Not collective. Errors: `capacity` is 0 or too large; there is no room. Cost: a system call, and 216 bytes for
    /// each place and 17 KiB of this rank's job memory.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, done, word) = (job.queue(100)?, job.signal()?, job.alloc::<u64>(1)?);
    ///     let peer = job.rank_after(1);
    ///     queue.post(Command::store(word.on(peer), 7).then(done.on(peer).add(1)))?;
    ///     done.wait_at_least(1)?;
    ///     assert_eq!((word.get(0)?, queue.capacity()), (7, 128)); // rounded up
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn queue(&self, capacity: usize) -> Result<Queue> {
        self.helper.start();
        let own = self.worker.make_queue(capacity, None);
        let own = own.map_err(|cause| self.worker.fault(cause, || format!("queue({capacity})")))?;
        Ok(Queue { worker: self.worker.clone(), own })
    }
}

impl Queue {
    /// Makes a queue whose commands run in order and by credit: command number n runs when the counter of `credit` on
    /// this rank has reached n. Each raise by n lets n more commands run.
    ///
    /// Source: Tofu2, session mode; `credit` is the scheduling pointer.
    ///
    /// ```
    /// use tasuki::onesided::AtomicOp;
    /// use tasuki::{Command, Queue};
    /// tasuki::local(1, |job| {
    ///     let (credit, done, me) = (job.signal()?, job.signal()?, job.rank());
    ///     let count = job.alloc::<u64>(1)?;
    ///     let queue = Queue::session(job, 4, &credit)?;
    ///     let one = Command::atomic(count.on(me), AtomicOp::Add(1)).then(done.on(me).add(1));
    ///     queue.post_many(&[one.clone(), one])?;
    ///     queue.repeat()?; // these two commands, again and again
    ///     job.raise(credit.on(me), 5)?; // lets five commands run
    ///     done.wait_at_least(5)?;
    ///     assert_eq!(count.get(0)?, 5);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn session(job: &Job, capacity: usize, credit: &Signal<'_>) -> Result<Queue> {
        let call = || format!("Queue::session({capacity})");
        if credit.job().worker.serial() != job.worker.serial() {
            let cause = Cause::Argument("the credit is a signal of another job".into());
            return Err(job.worker.fault(cause, call));
        }
        job.helper.start();
        let own = job.worker.make_queue(capacity, Some(credit.index()));
        let own = own.map_err(|cause| job.worker.fault(cause, call))?;
        Ok(Queue { worker: job.worker.clone(), own })
    }

    /// Posts a command. It fires when its trigger is met, immediately if it is met already, and does not delay other
    /// commands.
    ///
    /// The memory that the command names is read when the command runs and must stay allocated until then. Errors:
    /// the queue is full ([`Cause::Full`]), in which case nothing was posted and the caller may try again later; the
    /// command is invalid. A failure when the command runs poisons its signals. Cost: a compare-and-swap and one
    /// written cache line.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(1, |job| {
    ///     let (queue, first, second) = (job.queue(4)?, job.signal()?, job.signal()?);
    ///     let (words, me) = (job.alloc::<u64>(2)?, job.rank());
    ///     let waits = Command::copy(words.on(me), words.on(me).at(1), 1).when(first.reaches(1));
    ///     queue.post(waits.then(second.on(me).add(1)))?;
    ///     queue.post(Command::store(words.on(me), 7).then(first.on(me).add(1)))?; // passes the one that waits
    ///     second.wait_at_least(1)?;
    ///     assert_eq!(words.to_vec()?, [7, 7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn post(&self, command: impl Borrow<Command>) -> Result<Posted> {
        self.post_many(std::slice::from_ref(command.borrow()))
    }

    /// Posts all of these commands, one behind the other, or none of them. Cheaper than separate posts. Returns the
    /// name of the first command; the others cannot be cancelled.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(1, |job| {
    ///     let (queue, done, me) = (job.queue(16)?, job.signal()?, job.rank());
    ///     let words = job.alloc::<u64>(8)?;
    ///     let store = |index| Command::store(words.on(me).at(index), index as u64).then(done.on(me).add(1));
    ///     queue.post_many(&(0..8).map(store).collect::<Vec<_>>())?;
    ///     done.wait_at_least(8)?;
    ///     assert_eq!(words.to_vec()?, [0, 1, 2, 3, 4, 5, 6, 7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn post_many(&self, commands: &[Command]) -> Result<Posted> {
        match post_all(&self.worker, PostTo::Own(&self.own), commands) {
            Ok(position) => Ok(Posted { queue: self.own.name(), position }),
            Err(cause) => Err(refusal(&self.worker, cause, commands, self.worker.rank())),
        }
    }

    /// Cancels a command, whichever rank posted it. Returns true if the command will never fire; its signals do not
    /// change. Returns false if it has fired or will fire.
    ///
    /// Waits for the rank that runs the queue at the moment, which takes microseconds. Errors: the command is of
    /// another queue; the queue repeats its commands ([`Queue::repeat`]).
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(1, |job| {
    ///     let (queue, go, done, me) = (job.queue(4)?, job.signal()?, job.signal()?, job.rank());
    ///     let add = |amount| Command::nothing().when(go.reaches(1)).then(done.on(me).add(amount));
    ///     let (first, _second) = (queue.post(add(100))?, queue.post(add(1))?);
    ///     assert!(queue.cancel(first)?);
    ///     job.raise(go.on(me), 1)?;
    ///     done.wait_at_least(1)?;
    ///     assert_eq!(done.value(), 1); // only the second has fired
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn cancel(&self, posted: Posted) -> Result<bool> {
        let of_this = posted.queue == self.own.name();
        let cancelled = if of_this {
            self.worker.cancel(&self.own, posted.position)
        } else {
            Err(Cause::Argument("the command was posted to another queue".into()))
        };
        cancelled.map_err(|cause| self.worker.fault(cause, || "cancel".into()))
    }

    /// Makes a session queue repeat the commands posted so far, again and again. The credits go on counting and
    /// nothing is reset. No command can be posted after it ([`Cause::QueueRepeats`]).
    ///
    /// Errors: it is no session queue; it has no commands; one of them has run already, because the credit was raised
    /// before this call.
    ///
    /// ```
    /// use tasuki::{Command, Queue};
    /// tasuki::local(1, |job| {
    ///     let (credit, done, me) = (job.signal()?, job.signal()?, job.rank());
    ///     let words = job.alloc::<u64>(2)?;
    ///     let queue = Queue::session(job, 4, &credit)?;
    ///     queue.post(Command::copy(words.on(me), words.on(me).at(1), 1).then(done.on(me).add(1)))?;
    ///     queue.repeat()?;
    ///     for step in 1..4 {
    ///         words.set(0, step)?;
    ///         job.raise(credit.on(me), 1)?; // runs the command once more
    ///         done.wait_at_least(step)?;
    ///         assert_eq!(words.get(1)?, step);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn repeat(&self) -> Result<()> {
        self.worker.repeat(&self.own).map_err(|cause| self.worker.fault(cause, || "repeat".into()))
    }

    /// The name with which other ranks post to this queue: 8 bytes, which may be sent to any rank.
    ///
    /// ```
    /// use tasuki::{Command, Rank};
    /// tasuki::local(2, |job| {
    ///     let (queue, done) = (job.queue(4)?, job.signal()?);
    ///     let mut name = queue.remote();
    ///     job.world().bcast(&mut name, Rank(0))?; // both ranks post to the queue of rank 0
    ///     name.post(job, Command::nothing().then(done.on(Rank(0)).add(1)))?;
    ///     if job.rank() == 0 {
    ///         done.wait_at_least(2)?;
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn remote(&self) -> RemoteQueue {
        RemoteQueue(self.own.name())
    }

    /// The number of places: the requested capacity, rounded up to a power of two.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     assert_eq!(job.queue(5)?.capacity(), 8);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn capacity(&self) -> usize {
        self.own.capacity() as usize
    }

    /// The number of commands in the queue at the moment, by state.
    ///
    /// ```
    /// use tasuki::{Command, Request};
    /// tasuki::local(1, |job| {
    ///     let (queue, go, done) = (job.queue(8)?, job.signal()?, job.signal()?);
    ///     queue.post(Command::nothing().when(go.reaches(1)).then(done.on(job.rank()).add(1)))?;
    ///     while queue.stats().waiting == 0 {
    ///         done.reaches(1).test(); // a rank that tests anything reads its queues
    ///     }
    ///     job.raise(go.on(job.rank()), 1)?;
    ///     done.wait_at_least(1)?;
    ///     assert_eq!((queue.stats().waiting, queue.stats().failed), (0, 0));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn stats(&self) -> QueueStats {
        self.own.stats()
    }

    /// The first failure of a command of this queue, if a command failed: of the command itself ([`Cause::Failed`]),
    /// or of a command before it ([`Cause::Poisoned`]). A failed command also poisons the signals of its effects.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(1, |job| {
    ///     let (queue, done, data) = (job.queue(4)?, job.signal()?, job.alloc::<u64>(1)?);
    ///     let outside = data.pointer().at(1 << 30);
    ///     queue.post(Command::copy(outside, data.pointer(), 1).then(done.on(job.rank()).add(1)))?;
    ///     assert!(done.wait_at_least(1).is_err(), "the signal is poisoned");
    ///     assert!(queue.failure().is_some());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn failure(&self) -> Option<Error> {
        let cause = self.own.first_failure()?;
        Some(self.worker.fault(cause, || "a command of a queue".into()))
    }

    /// The first failure, as operations that depend on the failed command report it.
    pub(crate) fn failure_cause(&self) -> Option<Cause> {
        Some(match self.own.first_failure()? {
            Cause::Failed { rank, cause } => Cause::Poisoned { origin: rank, cause },
            cause => cause,
        })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if !self.worker.fork_guard().is_forked() {
            self.worker.drop_queue(&self.own);
        }
    }
}

/// The queue to which commands are posted.
#[derive(Clone, Copy)]
enum PostTo<'q> {
    Own(&'q LocalQueue),
    Queue(QueueName),
}

impl PostTo<'_> {
    #[inline]
    fn post<'c>(
        self,
        worker: &Worker,
        commands: impl Iterator<Item = &'c EncodedCommand> + Clone,
    ) -> Result<u64, Cause> {
        match self {
            PostTo::Own(queue) => worker.post_own(queue, commands),
            PostTo::Queue(name) => worker.post_commands(name, commands),
        }
    }
}

/// Posts these commands, or none of them if the worker does not accept one.
#[inline]
fn post_all(worker: &Worker, to: PostTo<'_>, commands: &[Command]) -> Result<u64, Cause> {
    let serial = worker.serial();
    commands.iter().try_for_each(|command| command.check(serial))?;
    match commands {
        [call] if call.is_call() => to.post(worker, std::iter::once(&call.encoded_for(worker)?)),
        _ if commands.iter().any(Command::is_call) => {
            let encoded = commands.iter().map(|command| command.encoded_for(worker));
            to.post(worker, encoded.collect::<Result<Vec<_>, _>>()?.iter())
        }
        _ => to.post(worker, commands.iter().map(Command::encoded)),
    }
}

#[cold]
fn refusal(worker: &Worker, cause: Cause, commands: &[Command], owner: Rank) -> Error {
    worker.fault(cause, || match commands {
        [one] => format!("post({one} to a queue of rank {owner})"),
        many => {
            let invalid = many.iter().position(Command::is_invalid);
            let which = invalid.map_or(String::new(), |at| format!(", with [{at}] {},", many[at]));
            format!("post_many({} commands{which} to a queue of rank {owner})", many.len())
        }
    })
}

single_value_data! { [] RemoteQueue; }
