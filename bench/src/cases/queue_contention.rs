//! queue_contention: many ranks post to one queue of one rank, as fast as it takes commands.

use crate::harness::measure::{Measure, wrong};
use crate::harness::stopwatch::Stopwatch;
use std::time::Duration;
use tasuki::{Array, AtomicOp, Cause, Command, Job, Queue, Rank, RemoteQueue, Signal};

/// Ranks: the one that the queue belongs to, and those that post.
pub(crate) const RANKS: usize = 17;
/// Places of the queue: far fewer than commands, so that it is full again and again. They are all the memory there is.
const PLACES: usize = 1_024;
/// The rank of the queue; all others post.
const OWNER: Rank = Rank(0);
/// How long a rank serves before it tries a full queue again.
const SERVE: Duration = Duration::from_micros(10);
/// This part of the commands goes before, and does not count.
const WARM_UP: u64 = 10;

/// Commands a second that a queue takes from all other ranks, each of which adds one to a word. Full is an ordinary
/// answer: whoever gets it serves and tries again, and in the end none may be lost.
pub(crate) struct QueueContention<'j> {
    job: &'j Job,
    commands: u64,
    word: Array<u64>,
    /// Raised for each rank that has posted all, on the owner.
    done: Signal<'j>,
    /// Nobody raises it: to serve is to wait for it for a while.
    never: Signal<'j>,
    /// What the word and the signal have come to.
    counted: u64,
    ended: u64,
    _queue: Option<Queue>,
    theirs: RemoteQueue,
}

impl<'j> QueueContention<'j> {
    /// Collective, of two ranks or more. `commands` commands in all, evenly from all ranks but the first.
    pub(crate) fn new(job: &'j Job, commands: u64) -> tasuki::Result<QueueContention<'j>> {
        let names = job.alloc::<RemoteQueue>(1)?;
        let queue = (job.rank() == OWNER).then(|| job.queue(PLACES)).transpose()?;
        queue.iter().try_for_each(|queue| names.set(0, queue.remote()))?;
        let (word, done, never) = (job.alloc(1)?, job.signal()?, job.signal()?);
        job.barrier()?;
        let theirs = job.get_value(names.on(OWNER))?;
        job.barrier()?; // the name's memory goes with its owner's `names`
        Ok(QueueContention { job, commands, word, done, never, counted: 0, ended: 0, _queue: queue, theirs })
    }

    /// Posts as soon as there is room.
    fn post(&self, command: &Command) -> tasuki::Result<()> {
        loop {
            match self.job.post(self.theirs, command) {
                Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                    match self.never.wait_timeout(1, SERVE) {
                        Err(error) if error.is_timeout() => {}
                        ended => return ended,
                    }
                }
                posted => return posted.map(drop),
            }
        }
    }

    /// This rank's commands, and one that says that these were all.
    fn post_all(&self, commands: u64) -> tasuki::Result<()> {
        let add = Command::atomic(self.word.on(OWNER), AtomicOp::Add(1));
        (0..commands).try_for_each(|_| self.post(&add))?;
        self.post(&Command::nothing().then(self.done.on(OWNER).add(1)))
    }

    /// So many commands of each rank; how long they all took, on the owner.
    fn round(&mut self, each: u64) -> tasuki::Result<u64> {
        let posters = self.job.size() as u64 - 1;
        (self.counted, self.ended) = (self.counted + each * posters, self.ended + posters);
        self.job.barrier()?;
        let watch = Stopwatch::start();
        self.job.barrier()?; // part of the time: who leaves it first posts at once
        if self.job.rank() != OWNER {
            return self.post_all(each).map(|()| 0);
        }
        self.done.wait_at_least(self.ended)?;
        let took = watch.ns(0);
        if self.word.get(0)? != self.counted {
            return Err(wrong("queue_contention"));
        }
        Ok(took)
    }
}

impl Measure for QueueContention<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let posters = self.job.size() as u64 - 1;
        let each = (self.commands / posters).max(1);
        self.round(each.div_ceil(WARM_UP))?;
        let took = self.round(each)?;
        self.job.barrier()?;
        Ok((each * posters) as f64 / (took.max(1) as f64 / 1e9))
    }
}
