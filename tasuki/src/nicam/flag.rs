//! Flags: words that any rank sets and their owner waits for, with a signal that wakes the owner.
//!
//! The flag's value is a word, so it may be set to any value repeatedly, and reading it is a load. The signal only
//! grows, and it is raised after the word was stored. A waiter reads the signal, then the word, and then waits until
//! the signal exceeds what it has read, so it cannot miss a wake-up. All flags of a block share one signal.

use crate::engine::Cause;
use crate::onesided::RemoteSignal;
use crate::{Array, Command, GlobalPtr, Job, Rank, Result, Signal};
use tasuki_core::base::error_hint::BYTES_BY_KEY;

/// Words of a flag: its value; and, if the two sides of a copy by key that should set the flag gave different sizes:
/// the size that the other rank gave, plus one; the other rank's number together with the size that this rank gave;
/// the key.
const WORDS: usize = 4;
const THEIR_SIZE: usize = 1;
const PEER_AND_OUR_SIZE: usize = 2;
const KEY: usize = 3;
/// Bits of a size: the memory of both sides lies in the address range of one rank.
const SIZE_BITS: u32 = 40;

/// A block of flags on every rank, each 0 at first. Made by [`Flags::new`].
///
/// ```
/// use tasuki::nicam::{Flags, Transfers};
/// tasuki::local(2, |job| {
///     let (flags, transfers) = (Flags::new(job, 2)?, Transfers::new(job)?); // two flags on every rank
///     let peer = job.rank_after(1);
///     transfers.write_one(flags.at(0).on(peer), 5)?;
///     transfers.write_one(flags.at(1).on(peer), 6)?;
///     flags.at(1).wait(6)?;
///     assert_eq!(flags.at(0).value()?, 5); // it was requested before
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct Flags<'job> {
    job: &'job Job,
    words: Array<u64>,
    set: Signal<'job>,
}

/// One flag of this rank.
///
/// ```
/// use tasuki::nicam::{Flag, Flags, Transfers};
/// tasuki::local(2, |job| {
///     let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
///     let turn: Flag<'_> = flags.at(0);
///     let peer = job.rank_after(1);
///     for round in 1..4 {
///         transfers.write_one(turn.on(peer), round)?;
///         turn.wait_at_least(round)?; // the peer has come to this round
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Flag<'f> {
    flags: &'f Flags<'f>,
    index: usize,
}

/// The flag of a particular rank, as other ranks set it: 16 bytes, which may be sent to any rank.
///
/// ```
/// use tasuki::Rank;
/// use tasuki::nicam::{Flags, RemoteFlag, Transfers};
/// tasuki::local(2, |job| {
///     let (flags, transfers) = (Flags::new(job, 4)?, Transfers::new(job)?);
///     let mut where_to = [flags.at(job.rank().index() + 2).on(job.rank())];
///     job.world().bcast(&mut where_to, Rank(0))?; // rank 0 says which flag it waits for
///     let [flag]: [RemoteFlag; 1] = where_to;
///     if job.rank() == 1 {
///         transfers.write_one(flag, 7)?;
///     } else {
///         flags.at(2).wait(7)?;
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct RemoteFlag {
    word: GlobalPtr<u64>,
    set: RemoteSignal,
}

impl<'job> Flags<'job> {
    /// Makes `count` flags on every rank. Collective. Errors and cost: those of [`Job::alloc`] for 32 bytes a flag,
    /// and a signal.
    ///
    /// ```
    /// use tasuki::nicam::Flags;
    /// tasuki::local(2, |job| {
    ///     let flags = Flags::new(job, 2)?;
    ///     assert_eq!((flags.at(0).value()?, flags.at(1).value()?), (0, 0));
    ///     assert!(flags.at(2).value().is_err()); // there are two
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn new(job: &'job Job, count: usize) -> Result<Flags<'job>> {
        Ok(Flags { job, words: job.alloc(count.saturating_mul(WORDS))?, set: job.signal()? })
    }
}

impl Flags<'_> {
    /// The flag with that index. If there is none, using it is an error.
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(3, |job| {
    ///     let (flags, transfers) = (Flags::new(job, job.size())?, Transfers::new(job)?);
    ///     for to in job.ranks() {
    ///         transfers.write_one(flags.at(job.rank().index()).on(to), 1)?; // a flag for each sender
    ///     }
    ///     for from in job.ranks() {
    ///         flags.at(from.index()).wait(1)?;
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn at(&self, index: usize) -> Flag<'_> {
        Flag { flags: self, index }
    }
}

impl Flag<'_> {
    /// The flag of `rank`, to be set.
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
    ///     transfers.write_one(flags.at(0).on(job.rank_after(1)), 9)?;
    ///     flags.at(0).wait(9)?; // the peer has set it
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn on(&self, rank: Rank) -> RemoteFlag {
        // A flag that does not exist gets a null address: the memory behind these flags belongs to others.
        let word = self.first_word().map_or(GlobalPtr::NULL, |word| self.flags.words.on(rank).at(word));
        RemoteFlag { word, set: self.flags.set.on(rank) }
    }

    /// The value of this rank's flag. Data that were copied before the flag was set to this value are visible. Cost:
    /// two loads.
    ///
    /// Errors: the two sides of a copy by key that should set the flag gave different sizes ([`Cause::Disagree`]);
    /// the error remains until this rank sets the flag itself ([`Flag::set`]).
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
    ///     transfers.write_one(flags.at(0).on(job.rank_after(1)), 9)?;
    ///     flags.at(0).wait_at_least(1)?;
    ///     assert_eq!(flags.at(0).value()?, 9);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn value(&self) -> Result<u64> {
        let own = self.own()?;
        self.check_sizes(own)?;
        self.flags.job.load(own)
    }

    /// Sets this rank's own flag at once, for instance before it is used again.
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (flags, transfers, peer) = (Flags::new(job, 1)?, Transfers::new(job)?, job.rank_after(1));
    ///     for _ in 0..3 {
    ///         transfers.write_one(flags.at(0).on(peer), 1)?;
    ///         flags.at(0).wait(1)?;
    ///         flags.at(0).set(0)?; // for the next round
    ///         job.barrier()?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn set(&self, value: u64) -> Result<()> {
        let own = self.own()?;
        self.flags.job.store(own.at(THEIR_SIZE), 0)?;
        self.flags.job.store(own, value)?;
        self.flags.job.raise(self.flags.set.on(own.rank()), 1)
    }

    /// Waits until this rank's flag has the value `value`. A value that is overwritten before this rank reads it is
    /// missed. If the next value may come early, use growing values and [`Flag::wait_at_least`]: the values that one
    /// thread of a rank requests arrive in order ([`Transfers::copy_notify`](super::Transfers::copy_notify)).
    ///
    /// Errors: those of [`Flag::value`] and [`Signal::wait_at_least`]; a transfer failed that should set this flag,
    /// or another flag of this rank in the same block, because they share a signal.
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
    ///     let (data, me, peer) = (job.alloc::<u64>(2)?, job.rank(), job.rank_after(1));
    ///     data.set(0, me.index() as u64)?;
    ///     transfers.copy_notify(data.on(me), data.on(peer).at(1), 1, flags.at(0).on(peer), 3)?;
    ///     flags.at(0).wait(3)?; // the peer's value is here
    ///     assert_eq!(data.get(1)?, peer.index() as u64);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn wait(&self, value: u64) -> Result<()> {
        self.wait_until(|now| now == value)
    }

    /// Waits until this rank's flag has the value `value` or a larger one.
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// use tasuki::{Rank, Request};
    /// tasuki::local(2, |job| {
    ///     let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
    ///     if job.rank() == 0 {
    ///         for step in 1..10 {
    ///             transfers.write_one(flags.at(0).on(Rank(1)), step)?; // does not wait for rank 1
    ///         }
    ///         transfers.sync().wait()?;
    ///     } else {
    ///         flags.at(0).wait_at_least(5)?; // rank 0 has done five steps, or more
    ///         assert!(flags.at(0).value()? >= 5);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
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

    /// The index of its first word in a rank's part.
    fn first_word(&self) -> Option<usize> {
        self.index.checked_mul(WORDS).filter(|&word| word < self.flags.words.len())
    }

    fn own(&self) -> Result<GlobalPtr<u64>> {
        if let Some(word) = self.first_word() {
            return Ok(self.flags.words.pointer().at(word));
        }
        let (index, count) = (self.index, self.flags.words.len() / WORDS);
        let last = count.checked_sub(1).map_or_else(String::new, |last| format!(" (0 to {last})"));
        let text = format!("there is no flag {index}: the block has {count}{last}");
        Err(self.flags.job.worker.fault(Cause::Argument(text), || format!("flag {index} of {count}")))
    }

    fn check_sizes(&self, own: GlobalPtr<u64>) -> Result<()> {
        let job = self.flags.job;
        let theirs = job.load(own.at(THEIR_SIZE))?;
        if theirs == 0 {
            return Ok(());
        }
        // These words were written before THEIR_SIZE.
        let (peer_and_size, key) = (job.load(own.at(PEER_AND_OUR_SIZE))?, job.load(own.at(KEY))?);
        check_words(job, [0, theirs, peer_and_size, key], &format!("flag {}", self.index))
    }
}

/// Returns the error that the words of a flag tell: the sides of a copy by key gave different sizes.
pub(crate) fn check_words(job: &Job, words: [u64; WORDS], flag: &str) -> Result<()> {
    let Some(theirs) = words[THEIR_SIZE].checked_sub(1) else { return Ok(()) };
    let (ours, peer) =
        (words[PEER_AND_OUR_SIZE] & ((1 << SIZE_BITS) - 1), words[PEER_AND_OUR_SIZE] >> SIZE_BITS);
    let call = format!("{flag} of a copy by key {} with rank {peer}", words[KEY]);
    Err(sizes_differ(job, theirs, ours, &call).with_peer(Some(Rank(peer as usize))))
}

impl RemoteFlag {
    /// The flag whose first word is there.
    pub(crate) fn of(word: GlobalPtr<u64>, set: RemoteSignal) -> RemoteFlag {
        RemoteFlag { word, set }
    }

    /// The rank whose flag it is.
    ///
    /// ```
    /// use tasuki::nicam::Flags;
    /// tasuki::local(2, |job| {
    ///     let flags = Flags::new(job, 1)?;
    ///     assert_eq!(flags.at(0).on(job.rank_after(1)).rank(), job.rank_after(1));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn rank(self) -> Rank {
        self.set.rank()
    }

    pub(super) fn word(self) -> GlobalPtr<u64> {
        self.word
    }

    /// The command that sets the flag.
    pub(super) fn set(self, value: u64) -> Command {
        Command::store(self.word, value).then(self.set.add(1))
    }

    /// Reports to the flag's rank that the copy by `key` failed: this rank gave `here` bytes, the flag's rank gave
    /// `there`.
    pub(super) fn fail(self, job: &Job, key: u64, here: u64, there: u64) -> Result<()> {
        job.store(self.word.at(KEY), key)?;
        job.store(self.word.at(PEER_AND_OUR_SIZE), (job.rank().0 as u64) << SIZE_BITS | there)?;
        job.store(self.word.at(THEIR_SIZE), here + 1)?;
        job.raise(self.set, 1)
    }
}

/// The error of a copy by key whose sides gave different sizes.
pub(super) fn sizes_differ(job: &Job, one: u64, other: u64, call: &str) -> crate::Error {
    let cause =
        Cause::Disagree { member: None, what: BYTES_BY_KEY, least: one.min(other), most: one.max(other) };
    job.worker.fault(cause, || call.into())
}
