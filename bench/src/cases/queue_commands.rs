//! post and chain: commands posted to a queue that another rank drains, and commands that let each other go.

use crate::harness::measure::{Measure, peer, side, wrong};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use tasuki::{Array, Command, Job, Queue, RemoteQueue, Signal};

/// Commands that are posted in a row, and places of the queue.
const POSTS: usize = 1_000;
const PLACES: usize = 2_048;
/// Copies that depend on each other.
const HOPS: u64 = 64;
/// Words from one hop's to the next: blocks of 128 bytes.
const APART: usize = 16;

/// Time per command that is posted to the other rank's queue, while that rank waits.
pub(crate) struct Post<'j> {
    job: &'j Job,
    side: Side,
    batch: usize,
    rounds: u64,
    word: Array<u64>,
    done: Signal<'j>,
    /// Rounds that were measured.
    past: u64,
    _queue: Queue,
    theirs: RemoteQueue,
}

impl<'j> Post<'j> {
    /// Collective. `batch` commands go in one call.
    pub(crate) fn new(job: &'j Job, batch: usize, rounds: u64) -> tasuki::Result<Post<'j>> {
        let (queue, names) = (job.queue(PLACES)?, job.alloc::<RemoteQueue>(1)?);
        job.put(names.on(peer(job)), &[queue.remote()])?;
        job.barrier()?;
        let theirs = names.get(0)?;
        let (word, done) = (job.alloc(1)?, job.signal()?);
        Ok(Post { job, side: side(job), batch, rounds, word, done, past: 0, _queue: queue, theirs })
    }

    /// One row of posts; how long it took.
    fn row(&self, first: u64) -> tasuki::Result<u64> {
        let (me, peer) = (self.job.rank(), peer(self.job));
        let mut values = first..first + POSTS as u64;
        let store = |value| Command::store(self.word.on(peer), value);
        let batches: Vec<Vec<Command>> =
            (0..POSTS / self.batch).map(|_| values.by_ref().take(self.batch).map(store).collect()).collect();
        let last = Command::nothing().then(self.done.on(peer).add(1)).then(self.done.on(me).add(1));
        let watch = Stopwatch::start();
        match self.batch {
            1 => batches.iter().try_for_each(|one| self.job.post(self.theirs, &one[0]).map(drop))?,
            _ => batches.iter().try_for_each(|some| self.job.post_many(self.theirs, some).map(drop))?,
        }
        let took = watch.ns(0);
        self.job.post(self.theirs, &last)?;
        Ok(took)
    }
}

impl Measure for Post<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let mut took = 0;
        for round in 0..self.rounds {
            self.past += 1;
            let first = self.past * POSTS as u64;
            if self.side == Side::Lead {
                took += self.row(first)?;
            }
            self.done.wait_at_least(self.past)?;
            if self.side == Side::Follow && self.word.get(0)? != first + POSTS as u64 - 1 {
                return Err(wrong("post"));
            }
            self.job.barrier()?;
            took = if round == 0 { 0 } else { took }; // the first warms up
        }
        Ok(took as f64 / ((self.rounds - 1) * POSTS as u64) as f64)
    }
}

/// Time per hop of copies of 8 bytes to and fro between two ranks, each of which lets the next one go.
pub(crate) struct Chain<'j> {
    job: &'j Job,
    side: Side,
    bound: bool,
    rounds: u64,
    words: Array<u64>,
    queue: Queue,
    go: Signal<'j>,
    end: Signal<'j>,
    past: u64,
}

impl<'j> Chain<'j> {
    /// Collective. `bound`: each is run by the rank that owns its source.
    pub(crate) fn new(job: &'j Job, bound: bool, rounds: u64) -> tasuki::Result<Chain<'j>> {
        let (queue, words) = (job.queue(PLACES)?, job.alloc((HOPS as usize + 1) * APART)?);
        let (go, end) = (job.signal()?, job.signal()?);
        Ok(Chain { job, side: side(job), bound, rounds, words, queue, go, end, past: 0 })
    }

    /// Posts this rank's half of a chain.
    fn prepare(&self) -> tasuki::Result<()> {
        let (me, peer) = (self.job.rank(), peer(self.job));
        let first = u64::from(self.side == Side::Follow);
        for hop in (first..HOPS).step_by(2) {
            let (from, to) = (hop as usize * APART, (hop as usize + 1) * APART);
            let copy = Command::copy(self.words.on(me).at(from), self.words.on(peer).at(to), 1);
            let copy = copy.when(self.go.reaches(self.past * HOPS / 2 + hop / 2 + 1));
            let next = if hop + 1 == HOPS { self.end } else { self.go };
            let copy = copy.then(next.on(peer).add(1));
            self.queue.post(&if self.bound { copy.by_source() } else { copy })?;
        }
        self.job.barrier()
    }

    fn round(&mut self) -> tasuki::Result<u64> {
        self.prepare()?;
        self.past += 1;
        let (me, value) = (self.job.rank(), !self.past);
        if self.side == Side::Follow {
            self.go.wait_at_least(self.past * HOPS / 2)?;
            return self.job.barrier().map(|()| 0);
        }
        self.job.put(self.words.on(me), &[value])?;
        let watch = Stopwatch::start();
        self.job.raise(self.go.on(me), 1)?;
        self.end.wait_at_least(self.past)?;
        let took = watch.ns(0);
        if self.words.get(HOPS as usize * APART)? != value {
            return Err(wrong("chain"));
        }
        self.job.barrier().map(|()| took)
    }
}

impl Measure for Chain<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let mut took = 0;
        for round in 0..self.rounds {
            let one = self.round()?;
            took += if round == 0 { 0 } else { one };
        }
        Ok(took as f64 / ((self.rounds - 1) * HOPS) as f64)
    }
}
