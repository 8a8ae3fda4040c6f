//! What one repetition of each case does. The files use the library through the crate `tasuki` only. The table of cases
//! (`case.rs`) says which function sets a case up.
//!
//! ```text
//! words          put_near, put, get, atomic (pointer_chase: the order in which remote words are visited)
//! messages       message, anysource, posted, oversubscribed, rate, channel, outstanding
//! many_to_one    incast, flood
//! commands       post, chain, handler, queue_contention
//! blocks         bandwidths and shared_copy (block_memory: the buffers)
//! collectives    calls, plans, nonblocking calls (collective_data: the values that are contributed and checked)
//! fuzzy_barrier  fuzzy, fuzzy_hidden
//! overlap        work beside copies and plans
//! whole_jobs     startup, idle, death: the bench itself starts the jobs
//! blacs          BLACS and ScaLAPACK: the bench starts the jobs of a program that knows neither Tasuki nor an MPI
//! memory         bytes of a rank, of its messages and of its plans, compared with the formulas
//! ```

pub(crate) mod blacs;
pub(crate) mod block_memory;
pub(crate) mod blocks;
pub(crate) mod collective_data;
pub(crate) mod collectives;
pub(crate) mod commands;
pub(crate) mod fuzzy_barrier;
pub(crate) mod many_to_one;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod overlap;
pub(crate) mod pointer_chase;
pub(crate) mod whole_jobs;
pub(crate) mod words;

use crate::harness::effort::Effort;
use crate::limit::Side;
use block_memory::BlockMemory;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;
use tasuki::engine::Cause;
use tasuki::{Communicator, Error, Job, Rank};

/// The state of the buffers of a bandwidth case when they are copied.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// True if the case rotates through more buffers than the caches hold; false if it uses one pair of buffers.
    pub(crate) cold: bool,
    /// True if the sender has just written every line and the receiver reads every line; false if neither does.
    pub(crate) fresh: bool,
}

impl State {
    /// All four states.
    pub(crate) const ALL: [State; 4] = [
        State { cold: false, fresh: false },
        State { cold: false, fresh: true },
        State { cold: true, fresh: false },
        State { cold: true, fresh: true },
    ];

    /// Returns the state that a variant names, or hot and reused if it names none.
    pub(crate) fn named(variant: &str) -> State {
        State::ALL.into_iter().find(|state| state.to_string() == variant).unwrap_or_default()
    }

    /// Returns `hot` or `cold`.
    pub(crate) fn temperature(self) -> &'static str {
        if self.cold { "cold" } else { "hot" }
    }

    /// Returns `reused` or `fresh`.
    pub(crate) fn buffers(self) -> &'static str {
        if self.fresh { "fresh" } else { "reused" }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.temperature(), self.buffers())
    }
}

/// What a rank needs to set a case up.
pub(crate) struct Setup<'j> {
    pub(crate) job: &'j Job,
    pub(crate) effort: Effort,
    /// The operation that is measured, if the case has several.
    pub(crate) operation: &'j str,
    pub(crate) bytes: u64,
    pub(crate) state: State,
    /// Memory of the bandwidth cases.
    pub(crate) blocks: Option<Rc<BlockMemory<'j>>>,
}

impl<'j> Setup<'j> {
    pub(crate) fn world(&self) -> &'j Communicator {
        self.job.world()
    }

    /// Returns the other of the two ranks.
    pub(crate) fn peer(&self) -> Rank {
        Rank(1 - self.job.rank().0)
    }

    pub(crate) fn side(&self) -> Side {
        side(self.job)
    }

    pub(crate) fn is_lead(&self) -> bool {
        self.job.rank() == Rank(0)
    }

    /// Returns the number of 64-bit words in a block.
    pub(crate) fn words(&self) -> usize {
        self.bytes as usize / size_of::<u64>()
    }
}

/// Returns which side this rank is in a measurement with two ranks.
pub(crate) fn side(job: &Job) -> Side {
    if job.rank() == Rank(0) { Side::Lead } else { Side::Follow }
}

/// Makes one repetition on this rank and returns its result. Only the result of the first rank counts.
pub(crate) type Repeat<'j> = Box<dyn FnMut() -> tasuki::Result<f64> + 'j>;

/// One figure of a case, ready to be repeated. All ranks make the same figures in the same order.
pub(crate) struct Figure<'j> {
    pub(crate) variant: String,
    /// The calls that are used, if there are several ways to do the same. The best way counts.
    pub(crate) way: &'static str,
    /// Bytes of a block, if they differ from those of the group.
    pub(crate) bytes: Option<u64>,
    pub(crate) repeat: Repeat<'j>,
}

/// What the function that sets a case up returns.
pub(crate) type Figures<'j> = tasuki::Result<Vec<Figure<'j>>>;

/// Makes a figure of this variant.
pub(crate) fn figure<'j>(
    variant: impl Into<String>,
    repeat: impl FnMut() -> tasuki::Result<f64> + 'j,
) -> Figure<'j> {
    Figure { variant: variant.into(), way: "", bytes: None, repeat: Box::new(repeat) }
}

/// Makes no figures: for a case that ranks do not set up.
pub(crate) fn nothing<'j>(_: &Setup<'j>) -> Figures<'j> {
    Ok(Vec::new())
}

/// Returns the error for data that differ from what was sent. It means a fault of the bench or of the library.
#[cold]
pub(crate) fn wrong(what: &str) -> Error {
    Error::new(Cause::Program(format!("{what}: what arrived is not what was sent")))
}

/// Checks that a value is the one that was sent.
#[inline(always)]
pub(crate) fn expect<T: PartialEq>(got: T, sent: T, what: &str) -> tasuki::Result<()> {
    if got == sent { Ok(()) } else { Err(wrong(what)) }
}

/// Advances a counter by `count` and returns the values that it passed.
pub(crate) fn advance(counter: &mut u64, count: u64) -> Range<u64> {
    let first = *counter;
    *counter += count;
    first..*counter
}

/// Returns half the time of a round trip in ns, measured after a warm-up of a tenth of the rounds.
pub(crate) fn one_way(
    rounds: u64,
    mut exchange: impl FnMut(u64) -> tasuki::Result<()>,
) -> tasuki::Result<f64> {
    exchange(rounds / 10 + 1)?;
    let watch = Stopwatch::start();
    exchange(rounds)?;
    Ok(watch.ns(0) as f64 / rounds as f64 / 2.0)
}

/// A running clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts the clock.
    #[inline(always)]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Returns the nanoseconds since the start, less `cost_ns`.
    #[inline(always)]
    pub(crate) fn ns(self, cost_ns: u64) -> u64 {
        (self.0.elapsed().as_nanos() as u64).saturating_sub(cost_ns)
    }

    /// Returns the time that the clock shows when nothing happens between start and reading: the median of many
    /// readings.
    pub(crate) fn cost_ns() -> u64 {
        let mut costs: Vec<u64> = (0..1001).map(|_| Stopwatch::start().ns(0)).collect();
        costs.sort_unstable();
        costs[costs.len() / 2]
    }
}
