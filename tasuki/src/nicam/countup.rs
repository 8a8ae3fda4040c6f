//! Counted arrivals: each destination has one counter, and a flag that is set when the requested number of copies has
//! arrived.
//!
//! The counter is a signal, which only grows. NICAM subtracts `count` when the flag is set; here the next threshold
//! is higher by `count`. So arrivals that are early for the next phase are counted, and nothing is reset.

use super::{RemoteFlag, STEP, Transfers};
use crate::{Command, GlobalPtr, Job, Pod, Result, Signal};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(super) struct Counter<'job> {
    arrived: Signal<'job>,
    /// Counts how often the flag was set.
    fired: Signal<'job>,
    armed: Mutex<Armed>,
}

#[derive(Debug, Default)]
struct Armed {
    /// How often the counter was armed.
    times: u64,
    /// The latest threshold.
    threshold: u64,
}

impl<'job> Counter<'job> {
    pub(super) fn new(job: &'job Job) -> Result<Counter<'job>> {
        Ok(Counter { arrived: job.signal()?, fired: job.signal()?, armed: Mutex::default() })
    }
}

impl Transfers<'_> {
    /// Copies, and counts the arrival at the destination.
    ///
    /// Source: NICAM, `nicam_bcopy_countup`.
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<u64>(4)?, Flags::new(job, 1)?, Transfers::new(job)?);
    ///     let (me, peer) = (job.rank(), job.rank_after(1));
    ///     transfers.set_counter(flags.at(0).on(me), 2)?; // two copies are to come
    ///     data.write(0, &[3, 4])?;
    ///     for index in 0..2 {
    ///         transfers.copy_countup(data.pointer().at(index), data.on(peer).at(2 + index), 1)?;
    ///     }
    ///     flags.at(0).wait(1)?; // both have arrived
    ///     assert_eq!(data.to_vec()?, [3, 4, 3, 4]);
    ///     transfers.sync().wait()?;
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn copy_countup<T: Pod>(&self, from: GlobalPtr<T>, to: GlobalPtr<T>, count: usize) -> Result<()> {
        self.check("copy_countup", &[(from, count), (to, count)])?;
        let ticket = self.ticket("copy_countup")?;
        let lane = self.announce(to.rank());
        let arrived = self.counter.arrived.on(to.rank()).add(1);
        self.post(&[
            Command::copy(from, to, count).then(ticket.add(1)).then(lane),
            Command::nothing().when(ticket.has_copied()).then(arrived).then(ticket.add(STEP - 1)),
        ])
    }

    /// Arms this rank's counter: `flag`, a flag of this rank, is set to 1 when `count` copies have arrived that no
    /// earlier call has counted, perhaps at once. For another phase set the flag to 0 first, then arm the counter
    /// again.
    ///
    /// Errors: the counter is armed and its flag is not set yet; the flag belongs to another rank; `count` is 0.
    /// Source: NICAM, `nicam_set_counter`.
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// use tasuki::{Rank, Request};
    /// tasuki::local(3, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<u64>(3)?, Flags::new(job, 1)?, Transfers::new(job)?);
    ///     let me = job.rank();
    ///     if me == 0 {
    ///         transfers.set_counter(flags.at(0).on(me), 2)?; // one copy of each other rank
    ///         flags.at(0).wait(1)?;
    ///         assert_eq!(data.to_vec()?, [0, 1, 2]);
    ///     } else {
    ///         let own = data.pointer().at(me.index());
    ///         job.store(own, me.index() as u64)?;
    ///         transfers.copy_countup(own, data.on(Rank(0)).at(me.index()), 1)?;
    ///     }
    ///     transfers.sync().wait()?;
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn set_counter(&self, flag: RemoteFlag, count: u64) -> Result<()> {
        self.check_no_failure("set_counter")?;
        self.check_flag("set_counter", flag)?;
        if flag.rank() != self.job.rank() {
            return Err(self.fault(format!("the flag belongs to rank {}", flag.rank()), "set_counter"));
        }
        if count == 0 || count > u64::from(u32::MAX) {
            return Err(
                self.fault(format!("{count} arrivals: a counter counts 1 to 2^32 - 1"), "set_counter")
            );
        }
        let counter = &self.counter;
        let fired = counter.fired.value();
        let threshold = {
            let mut armed = counter.armed.lock().unwrap_or_else(PoisonError::into_inner);
            if armed.times != fired {
                let text = "the counter is armed: wait for its flag before you set the counter again";
                return Err(self.fault(text.into(), "set_counter"));
            }
            *armed = Armed { times: armed.times + 1, threshold: armed.threshold.wrapping_add(count) };
            armed.threshold
        };
        let count_fired = counter.fired.on(self.job.rank()).add(1);
        self.post(&[flag.set(1).when(counter.arrived.reaches(threshold)).then(count_fired)])
    }
}
