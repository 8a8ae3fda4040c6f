//! Flags: words in the memory of who waits for them, set by anyone, and a signal that wakes whoever waits.
//!
//! The word is what a flag says, so it may be set to anything, again and again, and looking at it is a load. The signal
//! only grows: it is raised after the word was stored, so who looks at the signal, then at the word, and then waits for
//! the signal to go on, sleeps through nothing. One signal serves all flags of a block.

use crate::{Array, Cause, Command, GlobalPtr, Job, Rank, RemoteSignal, Result, Signal};
use tasuki_core::base::hint::BYTES_BY_KEY;

/// Words of a flag: its value; where a copy by key was to set it and the two sides named different sizes, one more than
/// the size that the other rank named, that rank with the size that this one named, and the key.
const WORDS: usize = 4;
const THEIR_SIZE: usize = 1;
const THEY_AND_OUR_SIZE: usize = 2;
const KEY: usize = 3;
/// Bits of a size: both sides' memory lies in a rank's range.
const SIZE_BITS: u32 = 40;

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
        // One that is not there has no word: behind these flags lies memory of somebody else's.
        let word = self.first_word().map_or(GlobalPtr::NULL, |word| self.flags.words.on(rank).at(word));
        RemoteFlag { word, set: self.flags.set.on(rank) }
    }

    /// What this rank's flag says; what was copied before it was set so is visible. Costs two loads.
    ///
    /// Errors: the sizes of the two sides of a copy by key differ that was to set it, [`Cause::Disagree`], until this
    /// rank has set the flag itself ([`Flag::set`]).
    pub fn value(&self) -> Result<u64> {
        let own = self.own()?;
        self.check_sizes(own)?;
        self.flags.job.load(own)
    }

    /// This rank sets its own flag, as before it is used again: at once.
    pub fn set(&self, value: u64) -> Result<()> {
        let own = self.own()?;
        self.flags.job.store(own.at(THEIR_SIZE), 0)?;
        self.flags.job.store(own, value)?;
        self.flags.job.raise(self.flags.set.on(own.rank()), 1)
    }

    /// Waits until this rank's flag says `value`. A value that is overwritten before this rank looks is missed: where
    /// the next one may come meanwhile, let values grow and use [`Flag::wait_at_least`]: those that one thread of a
    /// rank asks for come in its order ([`Transfers::copy_notify`](super::Transfers::copy_notify)).
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
        let own = self.own()?;
        loop {
            let seen = self.flags.set.value();
            if done(self.flags.job.load(own)?) {
                return Ok(());
            }
            self.check_sizes(own)?;
            let call = || format!("wait for flag {}", self.index);
            self.flags.set.wait_in_call(seen.wrapping_add(1), &call)?;
        }
    }

    /// Where its words begin in a rank's part.
    fn first_word(&self) -> Option<usize> {
        self.index.checked_mul(WORDS).filter(|&word| word < self.flags.words.len())
    }

    fn own(&self) -> Result<GlobalPtr<u64>> {
        if let Some(word) = self.first_word() {
            return Ok(self.flags.words.pointer().at(word));
        }
        let (index, count) = (self.index, self.flags.words.len() / WORDS);
        let last = count.checked_sub(1).map_or_else(String::new, |last| format!(" (0 to {last})"));
        let text = format!("there is no flag {index}: these are {count}{last}");
        Err(self.flags.job.worker.fault(Cause::Argument(text), || format!("flag {index} of {count}")))
    }

    fn check_sizes(&self, own: GlobalPtr<u64>) -> Result<()> {
        let job = self.flags.job;
        let Some(theirs) = job.load(own.at(THEIR_SIZE))?.checked_sub(1) else { return Ok(()) };
        // These were written before.
        let (they, key) = (job.load(own.at(THEY_AND_OUR_SIZE))?, job.load(own.at(KEY))?);
        let (ours, peer) = (they & ((1 << SIZE_BITS) - 1), they >> SIZE_BITS);
        let call = format!("flag {} of a copy by key {key} with rank {peer}", self.index);
        Err(disagree(job, theirs, ours, &call))
    }
}

impl RemoteFlag {
    /// Whose flag it is.
    pub fn rank(self) -> Rank {
        self.set.rank()
    }

    pub(super) fn word(self) -> GlobalPtr<u64> {
        self.word
    }

    /// The command that sets it.
    pub(super) fn set(self, value: u64) -> Command {
        Command::store(self.word, value).then(self.set.add(1))
    }

    /// The copy by that key that was to set it has failed: this rank named `here` bytes, the flag's `there`.
    pub(super) fn fail(self, job: &Job, key: u64, here: u64, there: u64) -> Result<()> {
        job.store(self.word.at(KEY), key)?;
        job.store(self.word.at(THEY_AND_OUR_SIZE), u64::from(job.rank().0) << SIZE_BITS | there)?;
        job.store(self.word.at(THEIR_SIZE), here + 1)?;
        job.raise(self.set, 1)
    }
}

/// The sizes of the two sides of a copy by key differ.
pub(super) fn disagree(job: &Job, one: u64, other: u64, call: &str) -> crate::Error {
    let cause = Cause::Disagree { what: BYTES_BY_KEY, least: one.min(other), most: one.max(other) };
    job.worker.fault(cause, || call.into())
}
