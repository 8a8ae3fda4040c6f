//! Copies by key: the source names what it has, the destination where it wants it; who comes second starts the copy.
//!
//! What waits for its other side lies at the source, in a list for each destination that both sides reach. Whoever
//! looks at it has its lock: a word that is taken by compare-and-swap, held for a few accesses, and by nobody who
//! waits. Of equal keys the one that came first is taken first. At most one side of a key has anything in the list, for
//! what fits is taken out at once.

use super::flag::disagree;
use super::{RemoteFlag, STEP, Transfers};
use crate::{Array, Cause, Command, GlobalAddress, GlobalPtr, Job, Pod, Rank, Result};

/// Sides that may wait in one list.
pub(super) const OFFERS: usize = 16;
/// Words before them: the lock, and how many came.
const HEAD: usize = 8;
/// Words of one.
const WORDS: usize = 8;

/// The lists of all pairs of which this rank is the source.
#[derive(Debug)]
pub(super) struct Meetings {
    words: Array<u64>,
}

/// One side of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Offer {
    /// The how manieth it is, from 1 on; 0: there is none.
    number: u64,
    /// 1: the source, 2: the destination.
    side: u64,
    key: u64,
    address: GlobalAddress,
    bytes: u64,
    flag: RemoteFlag,
    value: u64,
}

const _: () = assert!(size_of::<Offer>() == WORDS * 8);

const SOURCE: u64 = 1;
const DESTINATION: u64 = 2;

impl Meetings {
    pub(super) fn new(job: &Job) -> Result<Meetings> {
        Ok(Meetings { words: job.alloc(job.size() * (HEAD + OFFERS * WORDS))? })
    }

    /// The list of a pair.
    fn of(&self, source: Rank, destination: Rank) -> GlobalPtr<u64> {
        self.words.on(source).at(destination.index() * (HEAD + OFFERS * WORDS))
    }
}

impl Transfers<'_> {
    /// The source's side: `count` values at `from`, memory of this rank, go to `to` as soon as that asks for `key`.
    /// Then `flag`, of this rank's own, is set to `value`.
    ///
    /// Either side may come first; neither waits. Equal keys of one pair meet in the order in which each side named
    /// them, others in any. Errors: as of the class; [`Cause::Full`]: 16 of the pair wait for their other sides, and
    /// this one was not taken; [`Cause::Disagree`]: the other side named another size, and is told so by its flag.
    /// Costs a few accesses to a list at the source. Source: NICAM, `nicam_bcopy_src`.
    ///
    /// ```
    /// # use tasuki::Rank;
    /// tasuki::local(2, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<u32>(8)?, job.flags(1)?, job.transfers()?);
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
        let offer = self.offer(&call, SOURCE, key, (from, count), (flag, value))?;
        self.meet(&call, self.job.rank(), to, offer)
    }

    /// The destination's side: `count` values go to `to`, memory of this rank. As [`Transfers::copy_source`]. Source:
    /// NICAM, `nicam_bcopy_dst`.
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
        let offer = self.offer(&call, DESTINATION, key, (to, count), (flag, value))?;
        self.meet(&call, from, self.job.rank(), offer)
    }

    /// One side, if its memory and its flag are this rank's.
    fn offer<T>(
        &self,
        call: &str,
        side: u64,
        key: u64,
        (place, count): (GlobalPtr<T>, usize),
        (flag, value): (RemoteFlag, u64),
    ) -> Result<Offer> {
        self.check_sound(call)?;
        self.check(call, &[(place, count)])?;
        self.check_flag(call, flag)?;
        if let Some(other) = [place.rank(), flag.rank()].into_iter().find(|&rank| rank != self.job.rank()) {
            return Err(self.fault(format!("its memory or flag is of rank {other}"), call));
        }
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        Ok(Offer { number: 0, side, key, address: place.address(), bytes, flag, value })
    }

    fn meet(&self, call: &str, source: Rank, destination: Rank, mine: Offer) -> Result<()> {
        let worker = &self.job.worker;
        for rank in [source, destination] {
            worker.check_rank(rank).map_err(|cause| worker.fault(cause, || call.into()))?;
        }
        let list = self.meetings.of(source, destination);
        while self.job.compare_swap(list, 0, u64::from(self.job.rank().0) + 1)? != 0 {
            worker.relax(call)?;
        }
        let found = self.match_or_leave(list, mine);
        self.job.store(list, 0)?;
        let full = || Cause::Full { what: "the list of copies by key that wait", capacity: OFFERS };
        match found? {
            Found::Nothing => Ok(()),
            Found::NoRoom => Err(worker.fault(full(), || call.into())),
            Found::Other(other) if other.bytes != mine.bytes => {
                other.flag.fail(self.job, mine.key, mine.bytes, other.bytes)?;
                Err(disagree(self.job, mine.bytes, other.bytes, call))
            }
            Found::Other(other) if mine.side == SOURCE => self.start(call, mine, other),
            Found::Other(other) => self.start(call, other, mine),
        }
    }

    /// ArgumentSize the other side out of the list, or leaves this one there. Under the list's lock.
    fn match_or_leave(&self, list: GlobalPtr<u64>, mine: Offer) -> Result<Found> {
        let places = list.at(HEAD).cast::<Offer>();
        let mut offers = [bytemuck::Zeroable::zeroed(); OFFERS];
        self.job.get(places, &mut offers)?;
        let fits = |offer: &Offer| offer.number != 0 && offer.side != mine.side && offer.key == mine.key;
        let first = offers.iter().enumerate().filter(|(_, offer)| fits(offer)).min_by_key(|(_, o)| o.number);
        if let Some((at, &other)) = first {
            self.job.put(places.at(at).cast::<u64>(), &[0])?;
            return Ok(Found::Other(other));
        }
        let Some(free) = offers.iter().position(|offer| offer.number == 0) else { return Ok(Found::NoRoom) };
        let came = self.job.get_value(list.at(1))? + 1;
        self.job.put(list.at(1), &[came])?;
        self.job.put(places.at(free), &[Offer { number: came, ..mine }])?;
        Ok(Found::Nothing)
    }

    /// Both sides are there.
    fn start(&self, call: &str, source: Offer, destination: Offer) -> Result<()> {
        let (from, to) = (GlobalPtr::<u8>::new(source.address), GlobalPtr::new(destination.address));
        let ticket = self.ticket(call)?;
        let lane = self.announce(to.rank());
        let told =
            |side: Offer, part| side.flag.set(side.value).when(ticket.has_copied()).then(ticket.add(part));
        self.post(&[
            Command::copy(from, to, source.bytes as usize).then(ticket.add(1)).then(lane),
            told(destination, 1),
            told(source, STEP - 2),
        ])
    }
}

/// What was in a list.
enum Found {
    /// Nothing that fits: this side waits there now.
    Nothing,
    NoRoom,
    Other(Offer),
}
