//! What one repetition of each case does. The files reach the library through the crate `tasuki` only; the table of
//! cases (`case.rs`) says which function sets a case up.
//!
//! ```text
//! words          put_near, put, get, atomic (pointer_chase: the order in which remote words are visited)
//! messages       message, posted, oversubscribed, rate, outstanding
//! commands       post, chain, handler, queue_contention
//! blocks         bandwidths and shared_copy (block_memory: the buffers)
//! collectives    calls, plans, nonblocking calls (collective_data: what is given and checked)
//! fuzzy_barrier  fuzzy, fuzzy_hidden
//! overlap        work beside copies and plans
//! whole_jobs     startup, idle, death: the bench itself starts the jobs
//! memory         bytes of a rank, its messages and its plans, against the formulas
//! ```

pub(crate) mod block_memory;
pub(crate) mod blocks;
pub(crate) mod collective_data;
pub(crate) mod collectives;
pub(crate) mod commands;
pub(crate) mod fuzzy_barrier;
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
use tasuki::{Cause, Communicator, Error, Job, Rank};

/// Where the bytes of a bandwidth case are when they are copied.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// The case rotates through more buffers than caches hold; else it uses one pair of buffers.
    pub(crate) cold: bool,
    /// The sender has just written every line, and the receiver reads every line; else both leave them alone.
    pub(crate) fresh: bool,
}

impl State {
    /// All four.
    pub(crate) const ALL: [State; 4] = [
        State { cold: false, fresh: false },
        State { cold: false, fresh: true },
        State { cold: true, fresh: false },
        State { cold: true, fresh: true },
    ];

    /// The state that a variant names, or hot and reused.
    pub(crate) fn named(variant: &str) -> State {
        State::ALL.into_iter().find(|state| state.to_string() == variant).unwrap_or_default()
    }

    /// `hot` or `cold`.
    pub(crate) fn temperature(self) -> &'static str {
        if self.cold { "cold" } else { "hot" }
    }

    /// `reused` or `fresh`.
    pub(crate) fn buffers(self) -> &'static str {
        if self.fresh { "fresh" } else { "reused" }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.temperature(), self.buffers())
    }
}

/// What a case is set up with, on each rank.
pub(crate) struct Setup<'j> {
    pub(crate) job: &'j Job,
    pub(crate) effort: Effort,
    /// Which of the case's operations, if it has several.
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

    /// The other one of two ranks.
    pub(crate) fn peer(&self) -> Rank {
        Rank(1 - self.job.rank().0)
    }

    pub(crate) fn side(&self) -> Side {
        side(self.job)
    }

    pub(crate) fn is_lead(&self) -> bool {
        self.job.rank() == Rank(0)
    }

    /// 64-bit words of a block.
    pub(crate) fn words(&self) -> usize {
        self.bytes as usize / size_of::<u64>()
    }
}

/// What a rank is in a measurement of two.
pub(crate) fn side(job: &Job) -> Side {
    if job.rank() == Rank(0) { Side::Lead } else { Side::Follow }
}

/// One repetition on this rank. The first rank's figure counts.
pub(crate) type Repeat<'j> = Box<dyn FnMut() -> tasuki::Result<f64> + 'j>;

/// One figure of a case, ready to be repeated. All ranks make the same figures in the same order.
pub(crate) struct Figure<'j> {
    pub(crate) variant: String,
    /// By which calls, if there are several ways. The best counts.
    pub(crate) way: &'static str,
    /// Bytes of a block, if they are not those of the group.
    pub(crate) bytes: Option<u64>,
    pub(crate) repeat: Repeat<'j>,
}

/// What setting up a case gives.
pub(crate) type Figures<'j> = tasuki::Result<Vec<Figure<'j>>>;

/// A figure of that variant.
pub(crate) fn figure<'j>(
    variant: impl Into<String>,
    repeat: impl FnMut() -> tasuki::Result<f64> + 'j,
) -> Figure<'j> {
    Figure { variant: variant.into(), way: "", bytes: None, repeat: Box::new(repeat) }
}

/// A case that ranks do not set up.
pub(crate) fn nothing<'j>(_: &Setup<'j>) -> Figures<'j> {
    Ok(Vec::new())
}

/// What arrived was not what was sent: a fault of the bench or of the library.
#[cold]
pub(crate) fn wrong(what: &str) -> Error {
    Error::new(Cause::Program(format!("{what}: what arrived is not what was sent")))
}

/// Checks that a value is the one that was sent.
#[inline(always)]
pub(crate) fn expect<T: PartialEq>(got: T, sent: T, what: &str) -> tasuki::Result<()> {
    if got == sent { Ok(()) } else { Err(wrong(what)) }
}

/// The next `count` values of a rising counter.
pub(crate) fn advance(counter: &mut u64, count: u64) -> Range<u64> {
    let first = *counter;
    *counter += count;
    first..*counter
}

/// Half the time of a round trip in ns, after a warm-up of a tenth of the rounds.
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
    /// Starts it.
    #[inline(always)]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Nanoseconds since the start, less `cost_ns`.
    #[inline(always)]
    pub(crate) fn ns(self, cost_ns: u64) -> u64 {
        (self.0.elapsed().as_nanos() as u64).saturating_sub(cost_ns)
    }

    /// What it shows when nothing happens: the median of many.
    pub(crate) fn cost_ns() -> u64 {
        let mut costs: Vec<u64> = (0..1001).map(|_| Stopwatch::start().ns(0)).collect();
        costs.sort_unstable();
        costs[costs.len() / 2]
    }
}
