//! Copies by key: the source names its data and a key, the destination its buffer and the same key. The side that
//! comes second starts the copy.
//!
//! A side that comes first waits in a list at the source. There is one list for each pair of source and destination,
//! which both ranks can access. A lock protects it: a word that is taken by compare-and-swap and held for a few
//! accesses, never during a wait. Of equal keys the side that came first is matched first. Only one side of a key is
//! in the list at a time, because a match is removed at once.

use super::flag::sizes_differ;
use super::{RemoteFlag, STEP, Transfers};
use crate::engine::Cause;
use crate::onesided::GlobalAddress;
use crate::{Array, Command, GlobalPtr, Job, Pod, Rank, Result};
use tasuki_core::base::error_hint::COPIES_BY_KEY;

/// The number of sides that may wait in one list.
pub(super) const SIDES_MAX: usize = 16;
/// Words before the entries: the lock, and the number of sides that have come.
const HEAD: usize = 8;
/// Words of an entry.
const WORDS: usize = 8;

/// The lists of all pairs of which this rank is the source.
#[derive(Debug)]
pub(super) struct MatchLists {
    words: Array<u64>,
}

/// One side of a copy, as an entry of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Side {
    /// The entry's number in the order of arrival, from 1 on; 0 for a free entry.
    number: u64,
    /// 1: the source, 2: the destination.
    side: u64,
    key: u64,
    address: GlobalAddress,
    bytes: u64,
    flag: RemoteFlag,
    value: u64,
}

const _: () = assert!(size_of::<Side>() == WORDS * 8);

const SOURCE: u64 = 1;
const DESTINATION: u64 = 2;

impl MatchLists {
    pub(super) fn new(job: &Job) -> Result<MatchLists> {
        Ok(MatchLists { words: job.alloc(job.size() * (HEAD + SIDES_MAX * WORDS))? })
    }

    /// The list of a pair.
    fn of(&self, source: Rank, destination: Rank) -> GlobalPtr<u64> {
        self.words.on(source).at(destination.index() * (HEAD + SIDES_MAX * WORDS))
    }
}

impl Transfers<'_> {
    /// The source's side: `count` values at `from`, in this rank's memory, are copied to `to` when that rank asks for
    /// `key`. Then `flag`, a flag of this rank, is set to `value`.
    ///
    /// Either side may come first; neither waits. The sides of equal keys of a pair are matched in the order in which
    /// each rank named them; different keys are not ordered. Errors: those of [`Transfers`]; 16 sides of the pair
    /// wait for their partners, and this one was not accepted ([`Cause::Full`]); the other side gave another size
    /// ([`Cause::Disagree`]), which its flag reports to it. Cost: a few accesses to a list at the source. Source:
    /// NICAM, `nicam_bcopy_src`.
    ///
    /// ```
    /// # use tasuki::Rank;
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<usize>(8)?, Flags::new(job, 1)?, Transfers::new(job)?);
    ///     let (here, flag) = (data.pointer(), flags.at(0).on(job.rank()));
    ///     data.fill(job.rank().0)?;
    ///     if job.rank() == Rank(0) {
    ///         transfers.copy_source(77, Rank(1), here, 8, flag, 1)?;
    ///     } else {
    ///         transfers.copy_destination(77, Rank(0), here, 8, flag, 1)?;
    ///     }
    ///     flags.at(0).wait(1)?;
    ///     assert_eq!(data.to_vec()?, [0; 8]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn copy_source<T: Pod>(
        &self,
        key: u64,
        to: Rank,
        from: GlobalPtr<T>,
        count: usize,
        flag: RemoteFlag,
        value: u64,
    ) -> Result<()> {
        let call = format!("copy_source(key {key} to rank {to})");
        let entry = self.side_entry(&call, SOURCE, key, (from, count), (flag, value))?;
        self.match_side(&call, self.job.rank(), to, entry)
    }

    /// The destination's side: `count` values are copied to `to`, in this rank's memory. As
    /// [`Transfers::copy_source`]. Source: NICAM, `nicam_bcopy_dst`.
    ///
    /// ```
    /// use tasuki::Rank;
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<u64>(4)?, Flags::new(job, 1)?, Transfers::new(job)?);
    ///     let done = flags.at(0);
    ///     if job.rank() == 0 {
    ///         transfers.copy_destination(5, Rank(1), data.pointer(), 4, done.on(Rank(0)), 1)?;
    ///         done.wait(1)?; // the values of rank 1 are here
    ///         assert_eq!(data.to_vec()?, [7; 4]);
    ///     } else {
    ///         data.fill(7)?;
    ///         transfers.copy_source(5, Rank(0), data.pointer(), 4, done.on(Rank(1)), 1)?;
    ///         done.wait(1)?;
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn copy_destination<T: Pod>(
        &self,
        key: u64,
        from: Rank,
        to: GlobalPtr<T>,
        count: usize,
        flag: RemoteFlag,
        value: u64,
    ) -> Result<()> {
        let call = format!("copy_destination(key {key} from rank {from})");
        let entry = self.side_entry(&call, DESTINATION, key, (to, count), (flag, value))?;
        self.match_side(&call, from, self.job.rank(), entry)
    }

    /// The entry of one side, if its memory and its flag belong to this rank.
    fn side_entry<T>(
        &self,
        call: &str,
        side: u64,
        key: u64,
        (place, count): (GlobalPtr<T>, usize),
        (flag, value): (RemoteFlag, u64),
    ) -> Result<Side> {
        self.check_no_failure(call)?;
        self.check(call, &[(place, count)])?;
        self.check_flag(call, flag)?;
        if let Some(other) = [place.rank(), flag.rank()].into_iter().find(|&rank| rank != self.job.rank()) {
            return Err(self.fault(format!("its memory or flag belongs to rank {other}"), call));
        }
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        Ok(Side { number: 0, side, key, address: place.address(), bytes, flag, value })
    }

    fn match_side(&self, call: &str, source: Rank, destination: Rank, own: Side) -> Result<()> {
        let worker = &self.job.worker;
        for rank in [source, destination] {
            worker.check_rank(rank).map_err(|cause| worker.fault(cause, || call.into()))?;
        }
        let list = self.match_lists.of(source, destination);
        while self.job.compare_swap(list, 0, self.job.rank().0 as u64 + 1)? != 0 {
            worker.relax(call)?;
        }
        let found = self.match_or_leave(list, own);
        self.job.store(list, 0)?;
        let full = || Cause::Full { what: COPIES_BY_KEY, capacity: SIDES_MAX };
        match found? {
            Found::Nothing => Ok(()),
            Found::NoRoom => Err(worker.fault(full(), || call.into())),
            Found::Other(other) if other.bytes != own.bytes => {
                other.flag.fail(self.job, own.key, own.bytes, other.bytes)?;
                Err(sizes_differ(self.job, own.bytes, other.bytes, call).with_peer(Some(other.flag.rank())))
            }
            Found::Other(other) if own.side == SOURCE => self.start(call, own, other),
            Found::Other(other) => self.start(call, other, own),
        }
    }

    /// Removes the other side from the list, or enters this one. The caller holds the list's lock.
    fn match_or_leave(&self, list: GlobalPtr<u64>, own: Side) -> Result<Found> {
        let entries = list.at(HEAD).cast::<Side>();
        let mut sides = [bytemuck::Zeroable::zeroed(); SIDES_MAX];
        self.job.get(entries, &mut sides)?;
        let fits = |other: &Side| other.number != 0 && other.side != own.side && other.key == own.key;
        let first = sides.iter().enumerate().filter(|(_, side)| fits(side)).min_by_key(|(_, o)| o.number);
        if let Some((at, &other)) = first {
            self.job.put(entries.at(at).cast::<u64>(), &[0])?;
            return Ok(Found::Other(other));
        }
        let Some(free) = sides.iter().position(|side| side.number == 0) else { return Ok(Found::NoRoom) };
        let number = self.job.get_value(list.at(1))? + 1;
        self.job.put(list.at(1), &[number])?;
        self.job.put(entries.at(free), &[Side { number, ..own }])?;
        Ok(Found::Nothing)
    }

    /// Starts the copy of two matched sides.
    fn start(&self, call: &str, source: Side, destination: Side) -> Result<()> {
        let (from, to) = (GlobalPtr::<u8>::new(source.address), GlobalPtr::new(destination.address));
        let ticket = self.ticket(call)?;
        let lane = self.announce(to.rank());
        let set_flag =
            |side: Side, part| side.flag.set(side.value).when(ticket.has_copied()).then(ticket.add(part));
        self.post(&[
            Command::copy(from, to, source.bytes as usize).then(ticket.add(1)).then(lane),
            set_flag(destination, 1),
            set_flag(source, STEP - 2),
        ])
    }
}

/// The result of a search in a list.
enum Found {
    /// No partner: this side waits in the list now.
    Nothing,
    NoRoom,
    Other(Side),
}
