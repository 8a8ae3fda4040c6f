//! get and atomic: one operation at a time on words that their owner wrote last.

use crate::cases::pointer_chase::{PointerChain, STEP, next, pass};
use crate::harness::measure::{Measure, peer, side, wrong};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::{Access, Side};
use tasuki::{Array, GlobalPtr, Job, Signal};

/// Values from one visited word to the next: 128 bytes, as in the limit.
const STRIDE: usize = 16;

/// The follower owns the words and rewrites them for each pass, then waits; the lead visits each once.
pub(crate) struct Remote<'j> {
    job: &'j Job,
    side: Side,
    table: Array<u64>,
    rewritten: Signal<'j>,
    visited: Signal<'j>,
    words: usize,
    passes: u64,
    pass: u64,
    access: Access,
}

impl<'j> Remote<'j> {
    /// Collective.
    pub(crate) fn new(job: &'j Job, words: usize, passes: u64, access: Access) -> tasuki::Result<Remote<'j>> {
        let (table, rewritten, visited) = (job.alloc(words * STRIDE)?, job.signal()?, job.signal()?);
        Ok(Remote { job, side: side(job), table, rewritten, visited, words, passes, pass: 0, access })
    }

    fn rewrite(&self) -> tasuki::Result<()> {
        let chain = PointerChain::random(self.words, self.pass);
        for (index, word) in chain.words(self.pass).enumerate() {
            self.table.set(index * STRIDE, word)?;
        }
        self.job.raise(self.rewritten.on(peer(self.job)), 1)?;
        self.visited.wait_at_least(self.pass)?;
        let added = u64::from(self.access == Access::Add);
        for index in 0..self.words {
            if pass(self.table.get(index * STRIDE)?) != self.pass + added {
                return Err(wrong("atomic"));
            }
        }
        Ok(())
    }

    fn visit(&self) -> tasuki::Result<u64> {
        self.rewritten.wait_at_least(self.pass)?;
        let first = self.table.on(peer(self.job));
        let watch = Stopwatch::start();
        match self.access {
            Access::Load => get_all(self.job, first, self.words, self.pass)?,
            Access::Add => add_all(self.job, first, self.words, self.pass)?,
        }
        let took = watch.ns(0);
        self.job.raise(self.visited.on(peer(self.job)), 1)?;
        Ok(took)
    }
}

impl Measure for Remote<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let mut total = 0;
        for counted in 0..=self.passes {
            self.pass += 1;
            match (self.side, counted) {
                (Side::Follow, _) => self.rewrite()?,
                (Side::Lead, 0) => drop(self.visit()?),
                (Side::Lead, _) => total += self.visit()?,
            }
        }
        Ok(total as f64 / (self.passes * self.words as u64) as f64)
    }
}

#[inline(never)]
fn get_all(job: &Job, first: GlobalPtr<u64>, words: usize, now: u64) -> tasuki::Result<()> {
    let mut at = 0;
    for _ in 0..words {
        let word = job.get_value(first.at(at * STRIDE))?;
        if pass(word) != now {
            return Err(wrong("get"));
        }
        at = next(word);
    }
    Ok(())
}

#[inline(never)]
fn add_all(job: &Job, first: GlobalPtr<u64>, words: usize, now: u64) -> tasuki::Result<()> {
    let mut at = 0;
    for _ in 0..words {
        let word = job.fetch_add(first.at(at * STRIDE), STEP)?;
        if pass(word) != now {
            return Err(wrong("atomic"));
        }
        at = next(word);
    }
    Ok(())
}
