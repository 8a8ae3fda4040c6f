//! Command queues: work that goes on without the rank that prepared it.

use crate::command::Command;
use crate::job::Job;
use crate::{Error, Rank, Result, Signal};
use std::borrow::Borrow;
use std::sync::Arc;
use tasuki_core::base::Cause;
pub use tasuki_core::engine::QueueStats;
use tasuki_core::engine::{LocalQueue, QueueName, Worker};

/// A queue of commands of this rank. Made by [`Job::queue`] or [`Job::session_queue`].
///
/// Commands run when their triggers are met: by the rank that raised the signal, by ranks of the node that wait, by a
/// rank that posts. A rank that computes has its queues run by others, for all but what only it may do
/// ([`Command::by_source`]). The signals of triggers are the queue's rank's own.
///
/// Dropping a queue waits for all that can run: what was posted without a trigger, or with one that is met, still does.
/// What waits for its trigger then never fires, and poisons its signals. Calls are handed to their ranks; handlers are
/// not waited for. Any thread may make any call, several at once.
#[derive(Debug)]
pub struct Queue {
    worker: Arc<Worker>,
    own: Arc<LocalQueue>,
}

/// A queue of some rank, as others post to it: 8 bytes, may be sent to anyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct RemoteQueue(QueueName);

/// A command that was posted, to take it back by. Its queue's rank does that ([`Queue::cancel`]): 16 bytes, may be sent
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Posted {
    queue: QueueName,
    position: u64,
}

impl RemoteQueue {
    /// Whose queue it is.
    pub fn rank(self) -> Rank {
        self.0.address().rank()
    }
}

impl Job {
    /// Makes a queue with `capacity` places, rounded up to a power of two, up to 2^20; [`Queue::capacity`] tells. A
    /// command takes one; two if it carries more than 8 bytes, fetches, compares, or has a second effect or trigger.
    /// Commands that wait for their triggers, as many as there are places, and those under way have room of their own:
    /// a queue may take more than its capacity before it is full.
    ///
    /// Not collective. Errors: `capacity` is 0 or too large; no room. Costs a system call, and 216 bytes a place and
    /// 17 KiB of this rank's job memory.
    pub fn queue(&self, capacity: usize) -> Result<Queue> {
        self.helper.start();
        let own = self.worker.make_queue(capacity, None);
        let own = own.map_err(|cause| self.worker.fault(cause, || format!("queue({capacity})")))?;
        Ok(Queue { worker: self.worker.clone(), own })
    }

    /// Makes a queue whose head waits until `credit` lets it go on: the n-th command runs when that signal, as this
    /// rank has it, has counted n. Each raise by n lets n more commands run, in their order.
    ///
    /// Source: Tofu2, session mode; `credit` is the scheduling pointer.
    pub fn session_queue(&self, capacity: usize, credit: &Signal<'_>) -> Result<Queue> {
        let call = || format!("session_queue({capacity})");
        if !std::ptr::eq(credit.job(), self) {
            let cause = Cause::Argument("its credit is a signal of another job".into());
            return Err(self.worker.fault(cause, call));
        }
        self.helper.start();
        let own = self.worker.make_queue(capacity, Some(credit.index()));
        let own = own.map_err(|cause| self.worker.fault(cause, call))?;
        Ok(Queue { worker: self.worker.clone(), own })
    }

    /// Posts a command to a queue of any rank. As [`Queue::post`].
    pub fn post(&self, queue: RemoteQueue, command: impl Borrow<Command>) -> Result<Posted> {
        self.post_many(queue, std::slice::from_ref(command.borrow()))
    }

    /// Posts commands to a queue of any rank. As [`Queue::post_many`].
    pub fn post_many(&self, queue: RemoteQueue, commands: &[Command]) -> Result<Posted> {
        let posted = match check(&self.worker, commands) {
            Ok(()) => self.worker.post_commands(queue.0, commands.iter().map(Command::lines)),
            Err(cause) => Err(cause),
        };
        match posted {
            Ok(position) => Ok(Posted { queue: queue.0, position }),
            Err(cause) => Err(refusal(&self.worker, cause, commands, queue.rank())),
        }
    }
}

impl Queue {
    /// Posts a command. It fires when its trigger is met, now if that is so already, and does not hold up others.
    ///
    /// What it names is read when it runs; until then the memory must stay. Errors: the queue is full
    /// ([`Cause::Full`]), which is an ordinary answer: nothing was posted, and later there is room; the command is
    /// wrong in itself. What goes wrong when it runs poisons its signals. Costs a compare-and-swap and a line written.
    pub fn post(&self, command: impl Borrow<Command>) -> Result<Posted> {
        self.post_many(std::slice::from_ref(command.borrow()))
    }

    /// Posts several commands, one behind the other, or none of them. The first of them, the only one that can be taken
    /// back; cheaper than one by one.
    pub fn post_many(&self, commands: &[Command]) -> Result<Posted> {
        let posted = match check(&self.worker, commands) {
            Ok(()) => self.worker.post_own(&self.own, commands.iter().map(Command::lines)),
            Err(cause) => Err(cause),
        };
        match posted {
            Ok(position) => Ok(Posted { queue: self.own.name(), position }),
            Err(cause) => Err(refusal(&self.worker, cause, commands, self.worker.rank())),
        }
    }

    /// ArgumentSize a command back, whoever posted it. True: it never fires, and its signals are left alone. False: it has
    /// fired, or will, once.
    ///
    /// Waits only for whoever runs the queue at the moment, for microseconds. Errors: the command is of another queue;
    /// the queue begins anew ([`Queue::repeat`]).
    pub fn cancel(&self, posted: Posted) -> Result<bool> {
        let of_this = posted.queue == self.own.name();
        let cancelled = if of_this {
            self.worker.cancel(&self.own, posted.position)
        } else {
            Err(Cause::Argument("a command of another queue".into()))
        };
        cancelled.map_err(|cause| self.worker.fault(cause, || "cancel".into()))
    }

    /// A session queue begins anew after the commands posted up to now, again and again: credits go on counting, and
    /// nothing is reset. No command may have run, none can be posted any more ([`Cause::QueueRepeats`]).
    pub fn repeat(&self) -> Result<()> {
        self.worker.repeat(&self.own).map_err(|cause| self.worker.fault(cause, || "repeat".into()))
    }

    /// How others name it: 8 bytes, which may be sent to anyone.
    pub fn remote(&self) -> RemoteQueue {
        RemoteQueue(self.own.name())
    }

    /// Places that it has: what was asked for, rounded up to a power of two.
    pub fn capacity(&self) -> usize {
        self.own.capacity() as usize
    }

    /// What is in it at the moment.
    pub fn standing(&self) -> QueueStats {
        self.worker.standing(&self.own)
    }

    /// The first failure of one of its commands, if one failed: of the command itself ([`Cause::Failed`]), or of one
    /// before it ([`Cause::Poisoned`]). A failed command with effects poisons their signals, too.
    pub fn failure(&self) -> Option<Error> {
        let cause = self.worker.first_failure(&self.own)?;
        Some(self.worker.fault(cause, || "a command of a queue".into()))
    }

    /// The same as whatever comes after that command is told it.
    pub(crate) fn failure_cause(&self) -> Option<Cause> {
        Some(match self.worker.first_failure(&self.own)? {
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

/// Whether the machine takes such commands.
#[inline]
fn check(worker: &Arc<Worker>, commands: &[Command]) -> Result<(), Cause> {
    let serial = worker.serial();
    commands.iter().try_for_each(|command| command.check(serial))
}

#[cold]
fn refusal(worker: &Worker, cause: Cause, commands: &[Command], owner: Rank) -> Error {
    worker.fault(cause, || match commands {
        [one] => format!("post({one} to a queue of rank {owner})"),
        many => {
            let wrong = many.iter().position(Command::is_wrong);
            let which = wrong.map_or(String::new(), |at| format!(", with [{at}] {},", many[at]));
            format!("post_many({} commands{which} to a queue of rank {owner})", many.len())
        }
    })
}
