//! Flags: words in the memory of who waits for them, set by anyone, and a signal that wakes whoever waits.
//!
//! The word is what a flag says, so it may be set to anything, again and again, and looking at it is a load. The signal
//! only grows: it is raised after the word was stored, so who looks at the signal, then at the word, and then waits for
//! the signal to go on, sleeps through nothing. One signal serves all flags of a block.

use crate::{Array, Cause, Command, GlobalPtr, Job, Rank, RemoteSignal, Result, Signal};

/// Words of a flag: its value; where what was to set it has failed for two different sizes, one more than each of them.
const WORDS: usize = 4;
const FIRST_SIZE: usize = 1;
const SECOND_SIZE: usize = 2;

/// Flags on every rank, each 0 at first. Made by [`Job::flags`].
#[derive(Debug)]
pub struct Flags<'job> {
    job: &'job Job,
    words: Array<u64>,
    set: Signal<'job>,
}

/// One of this rank's flags.
#[derive(Clone, Copy, Debug)]
pub struct Flag<'f> {
    flags: &'f Flags<'f>,
    index: usize,
}

/// A flag of some rank, as others set it: 16 bytes, may be sent to anyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct RemoteFlag {
    word: GlobalPtr<u64>,
    set: RemoteSignal,
}

impl Job {
    /// Makes `count` flags on every rank. Collective; errors and cost as of [`Job::alloc`] for 32 bytes a flag, and a
    /// signal.
    pub fn flags(&self, count: usize) -> Result<Flags<'_>> {
        Ok(Flags { job: self, words: self.alloc(count.saturating_mul(WORDS))?, set: self.signal()? })
    }
}

impl Flags<'_> {
    /// One of them. One that is not there is an error when it is used.
    pub fn at(&self, index: usize) -> Flag<'_> {
        Flag { flags: self, index }
    }
}

impl Flag<'_> {
    /// The flag as `rank` has it, to be set.
    pub fn on(&self, rank: Rank) -> RemoteFlag {
        RemoteFlag { word: self.flags.words.on(rank).at(self.index * WORDS), set: self.flags.set.on(rank) }
    }

    /// What this rank's flag says; what was copied before it was set so is visible. Costs a load.
    ///
    /// Errors: the sizes of the two sides of a copy by key differ, [`Cause::Disagree`].
    pub fn value(&self) -> Result<u64> {
        let own = self.own();
        let value = self.flags.job.load(own)?;
        if value == 0 {
            self.check_sizes(own)?;
        }
        Ok(value)
    }

    /// This rank sets its own flag, as before it is used again: at once.
    pub fn set(&self, value: u64) -> Result<()> {
        let own = self.own();
        [FIRST_SIZE, SECOND_SIZE].iter().try_for_each(|&word| self.flags.job.store(own.at(word), 0))?;
        self.flags.job.store(own, value)?;
        self.flags.job.raise(self.flags.set.on(own.rank()), 1)
    }

    /// Waits until this rank's flag says `value`. A value that is overwritten before this rank looks is missed: where
    /// the next one may come meanwhile, let values grow and use [`Flag::wait_at_least`]: those that one thread of a rank
    /// asks for come in its order ([`Transfers::copy_notify`](super::Transfers::copy_notify)).
    ///
    /// Errors: as of [`Flag::value`] and [`Signal::wait_at_least`]; a transfer failed that was to set this flag, or
    /// another one of this rank's that was made with it: they share what wakes who waits.
    pub fn wait(&self, value: u64) -> Result<()> {
        self.wait_until(|now| now == value)
    }

    /// Waits until this rank's flag says `value` or more.
    pub fn wait_at_least(&self, value: u64) -> Result<()> {
        self.wait_until(|now| now >= value)
    }

    fn wait_until(&self, done: impl Fn(u64) -> bool) -> Result<()> {
        loop {
            let seen = self.flags.set.value();
            if done(self.value()?) {
                return Ok(());
            }
            let call = || format!("wait for flag {}", self.index);
            self.flags.set.wait_in_call(seen.wrapping_add(1), &call)?;
        }
    }

    fn own(&self) -> GlobalPtr<u64> {
        self.flags.words.pointer().at(self.index * WORDS)
    }

    fn check_sizes(&self, own: GlobalPtr<u64>) -> Result<()> {
        let job = self.flags.job;
        // The second one is written first.
        let first = job.load(own.at(FIRST_SIZE))?;
        if first == 0 {
            return Ok(());
        }
        let second = job.load(own.at(SECOND_SIZE))?;
        Err(disagree(job, first - 1, second.wrapping_sub(1), "flag"))
    }
}

impl RemoteFlag {
    /// Whose flag it is.
    pub fn rank(self) -> Rank {
        self.word.rank()
    }

    pub(super) fn word(self) -> GlobalPtr<u64> {
        self.word
    }

    /// The command that sets it.
    pub(super) fn set(self, value: u64) -> Command {
        Command::store(self.word, value).then(self.set.add(1))
    }

    /// What was to set it has failed.
    pub(super) fn fail(self, job: &Job, sizes: [u64; 2]) -> Result<()> {
        job.store(self.word.at(SECOND_SIZE), sizes[1].wrapping_add(1))?;
        job.store(self.word.at(FIRST_SIZE), sizes[0].wrapping_add(1))?;
        job.raise(self.set, 1)
    }
}

/// The sizes of the two sides differ.
pub(super) fn disagree(job: &Job, one: u64, other: u64, call: &str) -> crate::Error {
    let cause = Cause::Disagree { what: "bytes", least: one.min(other), most: one.max(other) };
    job.machine.fault(cause, || call.into())
}
