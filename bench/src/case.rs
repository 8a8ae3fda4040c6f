//! The table of cases. A row says who takes part in a case, how the case is set up, what limit its figures are divided
//! by, which other libraries run it, its usual numbers of ranks and sizes, and its bars (the figures that it is
//! required to reach). One harness (`harness/run.rs`) measures all cases.

use crate::cases::{
    Figures, Setup, blocks, collectives, commands, fuzzy_barrier, many_to_one, messages, nothing, overlap,
    words,
};
use crate::result::key::Key;
use crate::result::metric::Metric;
use crate::result::target::Demand::{AtLeast, AtMost, Below, From, UpTo};
use crate::result::target::With::{Beside, Itself, Limit as TheLimit, Message, Mpi, Others, Ucx};
use crate::result::target::{Bar, Demand, With};
use crate::sizes::{K, M};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Who takes part in a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Played {
    /// Two ranks that move words. Cases with the same text are measured in turn.
    Two(&'static str),
    /// Two ranks that have handlers: a rank with handlers polls for calls whenever it waits.
    Handlers,
    /// Two ranks that move blocks of several sizes; the buffers are in one of four states.
    Blocks,
    /// All ranks make the same call together, repeatedly.
    Collective,
    /// Each rank does something different.
    Roles,
    /// Jobs that the bench starts for the case; the two ranks of another job measure the hand-over.
    Jobs,
    /// Jobs whose ranks report how much memory they use. No time is measured.
    Memory,
}

/// What a loop without any library measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    HandOver,
    RemoteLoad,
    RemoteAdd,
    /// A copy by one processor.
    Memcpy,
    /// A copy by two processors, one half each.
    Pair,
}

/// An operation of a case, its usual sizes, and its sizes in a long run. `--sizes` does not apply to an operation with
/// only one size.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) sizes: &'static [u64],
    pub(crate) long_sizes: &'static [u64],
}

const fn operation(name: &'static str, sizes: &'static [u64], long_sizes: &'static [u64]) -> Operation {
    Operation { name, sizes, long_sizes }
}

/// A bar, and a function that returns true if the bar applies to a variant, a number of bytes and a number of ranks.
type BarRow = (With, Demand, fn(&str, u64, usize) -> bool);
/// The bar applies to all figures of the case.
const ALWAYS: fn(&str, u64, usize) -> bool = |_, _, _| true;

/// Returns the options of `tasuki run` for these processors and this number of ranks.
type JobOptions = fn(&[usize], usize) -> Vec<String>;

/// A row of the table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The description that `--list` shows.
    pub(crate) text: &'static str,
    pub(crate) played: Played,
    pub(crate) metric: Metric,
    /// Makes the figures of the case on each rank.
    pub(crate) set_up: for<'j> fn(&Setup<'j>) -> Figures<'j>,
    /// The limit that the figures are divided by.
    pub(crate) limit: Option<Limit>,
    /// Variants that other libraries run (`*`: all), with the names that the programs of those libraries use for them.
    pub(crate) peers: &'static [(&'static str, &'static str)],
    pub(crate) ranks: &'static [usize],
    pub(crate) long_ranks: &'static [usize],
    pub(crate) operations: &'static [Operation],
    /// For a case that needs a job to itself: the options with which that job is started.
    pub(crate) job: Option<JobOptions>,
    /// How many seconds the case usually takes with one number of ranks and all sizes.
    pub(crate) seconds: f64,
    pub(crate) bars: &'static [BarRow],
}

const WORD: &[u64] = &[8];
const SHORT: &[u64] = &[8, 8 * K];
const MESSAGES: &[u64] = &[8, 4 * K];
const SUMS: &[u64] = &[8, 8 * K, M];
const BROADCASTS: &[u64] = &[8, 8 * K, M, 8 * M];
const BLOCKS: &[u64] = &[64 * K, M, 16 * M];
const LONG_BLOCKS: &[u64] = &[64 * K, 256 * K, M, 4 * M, 16 * M, 64 * M];
const MEMCPY: Option<Limit> = Some(Limit::Memcpy);
const HAND_OVER: Option<Limit> = Some(Limit::HandOver);

/// The values that most cases of words have.
const BASE: Case = Case {
    name: "",
    text: "",
    played: Played::Two("words"),
    metric: Metric::LatencyNs,
    set_up: nothing,
    limit: None,
    peers: &[],
    ranks: &[2],
    long_ranks: &[2],
    operations: &[operation("", WORD, WORD)],
    job: None,
    seconds: 1.0,
    bars: &[],
};
const BLOCK: Case = Case {
    played: Played::Blocks,
    metric: Metric::BandwidthBytesPerS,
    limit: MEMCPY,
    operations: &[operation("", BLOCKS, LONG_BLOCKS)],
    seconds: 6.0,
    ..BASE
};
const COLLECTIVE: Case = Case {
    played: Played::Collective,
    metric: Metric::TimeNs,
    set_up: collectives::call,
    ranks: &[2, 4],
    long_ranks: &[2, 4, 8],
    ..BASE
};
const JOBS: Case = Case {
    played: Played::Jobs,
    metric: Metric::TimeNs,
    ranks: &[4],
    long_ranks: &[4],
    operations: &[operation("", &[0], &[0])],
    ..BASE
};
const OVERLAP: Case = Case {
    played: Played::Roles,
    metric: Metric::TimeNs,
    set_up: overlap::copies,
    operations: &[operation("", &[M], &[M])],
    seconds: 5.0,
    bars: &[
        (Beside, AtMost(1.02), |variant, _, _| variant == "work_beside"),
        (Beside, AtLeast(0.9), |variant, _, _| variant == "copy_beside"),
    ],
    ..BASE
};

/// All cases, in the order in which they are measured.
pub(crate) static CASES: [Case; 47] = [
    Case {
        name: "limit",
        text: "What bare loops reach: hand-over, remote load and add, memcpy by one and by two",
        operations: &[operation("", BLOCKS, LONG_BLOCKS)],
        ..BASE
    },
    Case {
        name: "put_near",
        text: "8 bytes and their signal in one cache line, one way",
        set_up: words::put_near,
        limit: HAND_OVER,
        bars: &[(TheLimit, AtMost(1.15), ALWAYS)],
        ..BASE
    },
    Case {
        name: "put",
        text: "8 bytes, the signal on another page, one way",
        set_up: words::put,
        limit: HAND_OVER,
        bars: &[(TheLimit, AtMost(1.6), ALWAYS)],
        ..BASE
    },
    Case {
        name: "message",
        text: "A message of 8 bytes whose receive is posted, one way",
        played: Played::Two("messages"),
        set_up: messages::message,
        limit: HAND_OVER,
        peers: &[("", "message")],
        bars: &[(TheLimit, AtMost(1.35), ALWAYS), (Mpi, AtMost(0.7), ALWAYS), (Ucx, AtMost(0.75), ALWAYS)],
        ..BASE
    },
    Case {
        name: "anysource",
        text: "A message of 8 bytes through a receive queue, from an unnamed sender, one way",
        played: Played::Two("messages"),
        set_up: messages::anysource,
        limit: HAND_OVER,
        peers: &[("", "anysource")],
        bars: &[(TheLimit, AtMost(2.5), ALWAYS), (Mpi, AtMost(0.9), ALWAYS)],
        ..BASE
    },
    Case {
        name: "posted",
        text: "The same with 600 more receives outstanding; and the time from posting to posting",
        played: Played::Two("messages"),
        set_up: messages::posted,
        limit: HAND_OVER,
        peers: &[("", "posted"), ("post_gap", "post_gap")],
        bars: &[
            (Message, AtMost(1.1), |variant, _, _| variant.is_empty()),
            (TheLimit, AtMost(1.0), |variant, _, _| variant == "post_gap"),
        ],
        ..BASE
    },
    Case {
        name: "oversubscribed",
        text: "The same as message while 6 more ranks wait on the same two processors",
        played: Played::Two("messages"),
        set_up: messages::oversubscribed,
        ranks: &[8],
        long_ranks: &[8],
        job: Some(spread),
        bars: &[(Message, AtMost(1.3), ALWAYS)],
        ..BASE
    },
    Case {
        name: "await",
        text: "A message that block_on or a tokio executor awaits, beside blocking calls (--sizes)",
        set_up: messages::awaited,
        ranks: &[2],
        long_ranks: &[2],
        operations: &[
            operation("block_on", SHORT, SHORT),
            operation("tokio_current", SHORT, SHORT),
            operation("tokio_multi", SHORT, SHORT),
        ],
        bars: &[(Beside, AtMost(1.5), |variant, _, _| variant == "block_on")],
        ..COLLECTIVE
    },
    Case {
        name: "rate",
        text: "Messages of 8 bytes a second: 64 receives posted, 64 sends, one answer",
        played: Played::Two("rate"),
        metric: Metric::RatePerS,
        set_up: messages::rate,
        peers: &[("", "rate")],
        bars: &[(Others, AtLeast(1.2), ALWAYS)],
        ..BASE
    },
    Case {
        name: "channel",
        text: "Elements of 64 bytes a second, filled and read in place in a channel",
        played: Played::Two("rate"),
        metric: Metric::RatePerS,
        set_up: messages::channel,
        operations: &[operation("", &[64], &[64])],
        peers: &[("", "channel")],
        bars: &[(Others, AtLeast(1.5), ALWAYS)],
        ..BASE
    },
    Case {
        name: "outstanding",
        text: "A message of 400 bytes with 64, 1,024 and 16,384 in flight, completed in 3 orders",
        played: Played::Two("outstanding"),
        metric: Metric::TimeNs,
        set_up: messages::outstanding,
        operations: &[operation("", &[400], &[400])],
        seconds: 5.0,
        bars: &[
            (Itself, UpTo(2e3), ALWAYS),
            (Beside, AtMost(2.0), |variant, _, _| variant.starts_with("16384")),
        ],
        ..BASE
    },
    Case {
        name: "incast",
        text: "Messages of all other ranks to one: rate, slowest share, its growth (--ranks)",
        metric: Metric::RatePerS,
        set_up: many_to_one::incast,
        peers: &[
            ("", "incast"),
            ("slowest_share", "incast_share"),
            ("receiver_growth_bytes", "incast_growth"),
        ],
        ranks: &[3, 8],
        long_ranks: &[3, 8, 16],
        operations: &[operation("", MESSAGES, MESSAGES)],
        seconds: 6.0,
        bars: &[
            (Mpi, AtLeast(1.5), |variant, _, _| variant.is_empty()),
            (Itself, From(0.5), |variant, _, _| variant == "slowest_share"),
        ],
        ..COLLECTIVE
    },
    Case {
        name: "flood",
        text: "The same with messages of 4 KiB to one that sleeps first (--ranks)",
        metric: Metric::RatePerS,
        set_up: many_to_one::flood,
        peers: &[("", "flood"), ("slowest_share", "flood_share"), ("receiver_growth_bytes", "flood_growth")],
        ranks: &[8],
        long_ranks: &[16],
        operations: &[operation("", &[4 * K], &[4 * K])],
        seconds: 4.0,
        bars: &[
            (Mpi, AtLeast(1.5), |variant, _, _| variant.is_empty()),
            (Itself, From(0.5), |variant, _, _| variant == "slowest_share"),
            (Itself, UpTo(512.0 * K as f64), |variant, _, _| variant == "receiver_growth_bytes"),
        ],
        ..COLLECTIVE
    },
    Case {
        name: "get",
        text: "Get 8 bytes that their owner wrote last",
        set_up: words::get,
        limit: Some(Limit::RemoteLoad),
        bars: &[(TheLimit, AtMost(1.25), ALWAYS)],
        ..BASE
    },
    Case {
        name: "atomic",
        text: "Fetch-add on a word that its owner wrote last",
        set_up: words::atomic,
        limit: Some(Limit::RemoteAdd),
        bars: &[(TheLimit, AtMost(1.25), ALWAYS)],
        ..BASE
    },
    Case {
        name: "post",
        text: "Commands posted to a queue that another rank drains, one by one and 50 in a call",
        played: Played::Two("commands"),
        metric: Metric::TimeNs,
        set_up: commands::post,
        limit: HAND_OVER,
        bars: &[
            (TheLimit, AtMost(0.5), |variant, _, _| variant == "by_50"),
            (TheLimit, AtMost(0.8), |variant, _, _| variant != "by_50"),
        ],
        ..BASE
    },
    Case {
        name: "chain",
        text: "64 copies of 8 bytes to and fro between two ranks, each letting the next one go",
        played: Played::Two("commands"),
        metric: Metric::TimeNs,
        set_up: commands::chain,
        limit: HAND_OVER,
        bars: &[(TheLimit, AtMost(2.5), |variant, _, _| variant == "by_source")],
        ..BASE
    },
    Case {
        name: "handler",
        text: "A handler of the other rank is given 8 bytes, and answers 8",
        played: Played::Handlers,
        metric: Metric::TimeNs,
        set_up: commands::handler,
        limit: HAND_OVER,
        peers: &[("", "handler")],
        bars: &[(TheLimit, AtMost(3.5), ALWAYS), (Ucx, AtMost(1.0), ALWAYS)],
        ..BASE
    },
    Case {
        name: "handler_idle",
        text: "The same of a rank whose executor is idle, 1 ms after the call before",
        played: Played::Handlers,
        metric: Metric::TimeNs,
        set_up: commands::handler_idle,
        bars: &[(Itself, UpTo(1e6), ALWAYS)],
        ..BASE
    },
    Case {
        name: "bandwidth_put",
        text: "Put with signal of large blocks, one in flight",
        set_up: blocks::bandwidth_put,
        bars: &[(TheLimit, AtLeast(0.9), |_, bytes, _| (64 * K..=64 * M).contains(&bytes))],
        ..BLOCK
    },
    Case {
        name: "bandwidth_job",
        text: "Messages of large blocks from job memory to job memory, one in flight",
        set_up: blocks::bandwidth_job,
        peers: &[("*", "bandwidth_job")],
        bars: &[
            (TheLimit, AtLeast(0.9), |_, bytes, _| (64 * K..=64 * M).contains(&bytes)),
            (Mpi, AtLeast(1.0), |_, bytes, _| (64 * K..=64 * M).contains(&bytes)),
        ],
        ..BLOCK
    },
    Case {
        name: "bandwidth_own",
        text: "Messages of large blocks in memory that the program merely owns, one in flight",
        set_up: blocks::bandwidth_own,
        peers: &[("*", "bandwidth_own")],
        operations: &[operation(
            "",
            &[4 * K, 64 * K, M, 16 * M],
            &[4 * K, 16 * K, 64 * K, 256 * K, M, 4 * M, 16 * M, 64 * M],
        )],
        bars: &[
            (Mpi, AtLeast(1.2), |_, bytes, _| (4 * K..=4 * M).contains(&bytes)),
            (Mpi, AtLeast(1.0), |_, bytes, _| bytes > 4 * M && bytes <= 64 * M),
        ],
        ..BLOCK
    },
    Case {
        name: "bandwidth_stream",
        text: "The same in windows of 64 with an answer each",
        set_up: blocks::bandwidth_stream,
        peers: &[("*", "bandwidth_stream")],
        operations: &[operation("", &[64 * K, M], &[64 * K, 256 * K, M, 4 * M])],
        ..BLOCK
    },
    Case {
        name: "shared_copy",
        text: "Commands that copy large blocks of job memory while both ranks wait, one in flight",
        set_up: blocks::shared_copy,
        limit: Some(Limit::Pair),
        // Other libraries have no copy that both ranks share. They move a block in one direction, in their fastest way.
        peers: &[("*", "bandwidth_job")],
        operations: &[operation("", &[M, 16 * M], &[M, 4 * M, 16 * M, 64 * M])],
        bars: &[
            (TheLimit, AtLeast(0.9), |_, bytes, _| (M..=64 * M).contains(&bytes)),
            (Mpi, AtLeast(1.4), |_, bytes, _| (M..=64 * M).contains(&bytes)),
        ],
        ..BLOCK
    },
    Case {
        name: "barrier",
        text: "Barriers back to back (--ranks)",
        peers: &[("", "barrier")],
        operations: &[operation("barrier", WORD, WORD)],
        bars: &[(Mpi, AtMost(0.6), |_, _, ranks| ranks == 2), (Mpi, AtMost(0.7), |_, _, ranks| ranks != 2)],
        ..COLLECTIVE
    },
    Case {
        name: "bcast",
        text: "Broadcasts back to back, the root another rank in each (--ranks, --sizes)",
        peers: &[("", "bcast")],
        operations: &[operation("bcast", SHORT, BROADCASTS)],
        bars: &[(Mpi, AtMost(0.7), |_, bytes, _| BROADCASTS.contains(&bytes))],
        ..COLLECTIVE
    },
    Case {
        name: "reduce",
        text: "Sums at a root, likewise (--ranks, --sizes)",
        peers: &[("", "reduce")],
        operations: &[operation("reduce", SHORT, SHORT)],
        bars: &[(Mpi, AtMost(0.7), |_, bytes, _| bytes == 8 * K)],
        ..COLLECTIVE
    },
    Case {
        name: "allreduce",
        text: "Sums everywhere (--ranks, --sizes)",
        peers: &[("", "allreduce")],
        operations: &[operation("allreduce", SHORT, SUMS)],
        bars: &[(Mpi, AtMost(0.7), |_, bytes, _| SUMS.contains(&bytes))],
        ..COLLECTIVE
    },
    Case {
        name: "gather",
        text: "A block of each rank at a root, another one in each (--ranks, --sizes)",
        peers: &[("", "gather")],
        operations: &[operation("gather", SHORT, SHORT)],
        ..COLLECTIVE
    },
    Case {
        name: "allgather",
        text: "A block of each rank everywhere (--ranks, --sizes)",
        peers: &[("", "allgather")],
        operations: &[operation("allgather", SHORT, SHORT)],
        bars: &[(Mpi, AtMost(0.7), |_, bytes, _| SHORT.contains(&bytes))],
        ..COLLECTIVE
    },
    Case {
        name: "alltoall",
        text: "A block of each rank for each other (--ranks, --sizes)",
        peers: &[("", "alltoall")],
        operations: &[operation("alltoall", SHORT, SHORT)],
        bars: &[(Mpi, AtMost(0.7), |_, bytes, _| SHORT.contains(&bytes))],
        ..COLLECTIVE
    },
    Case {
        name: "scatter",
        text: "A block for each rank from a root, another one in each (--ranks, --sizes)",
        peers: &[("", "scatter")],
        operations: &[operation("scatter", SHORT, SHORT)],
        ..COLLECTIVE
    },
    Case {
        name: "reduce_scatter",
        text: "A block of the sum at each rank (--ranks, --sizes)",
        peers: &[("", "reduce_scatter")],
        operations: &[operation("reduce_scatter", SHORT, SHORT)],
        ..COLLECTIVE
    },
    Case {
        name: "nonblocking",
        text: "Nonblocking calls that are waited for at once, beside blocking calls (--ranks)",
        set_up: collectives::nonblocking,
        long_ranks: &[2, 4],
        operations: &[
            operation("ibarrier", WORD, WORD),
            operation("ibcast", WORD, WORD),
            operation("iallreduce", WORD, WORD),
        ],
        bars: &[(Beside, AtMost(1.5), |variant, _, _| !variant.ends_with("_call"))],
        ..COLLECTIVE
    },
    Case {
        name: "persistent",
        text: "Plans of collectives, started and waited for, beside calls (--ranks, --sizes)",
        set_up: collectives::persistent,
        peers: &[
            ("barrier", "barrier_init"),
            ("bcast", "bcast_init"),
            ("reduce", "reduce_init"),
            ("allreduce", "allreduce_init"),
            ("allgather", "allgather_init"),
            ("alltoall", "alltoall_init"),
        ],
        operations: &[
            operation("bcast", SHORT, SUMS),
            operation("allreduce", SHORT, SUMS),
            operation("reduce", SHORT, SHORT),
            operation("allgather", SHORT, SHORT),
            operation("alltoall", SHORT, SHORT),
            operation("barrier", WORD, WORD),
        ],
        seconds: 5.0,
        bars: &[
            (Beside, AtMost(1.03), |variant, bytes, _| !variant.contains('_') && SUMS.contains(&bytes)),
            (Mpi, AtMost(0.5), |variant, bytes, _| !variant.contains('_') && SUMS.contains(&bytes)),
            // The bar applies to jobs with more than two ranks.
            (Beside, AtMost(0.5), |variant, bytes, ranks| {
                variant.starts_with("last_") && SUMS.contains(&bytes) && ranks > 2
            }),
        ],
        ..COLLECTIVE
    },
    Case {
        name: "single_driver",
        text: "Plans by a list of one rank, beside lists of all ranks (--ranks, --sizes)",
        set_up: collectives::single_driver,
        long_ranks: &[2, 4, 8, 16],
        operations: &[operation("bcast", SHORT, SUMS), operation("allgather", SHORT, SUMS)],
        seconds: 2.0,
        ..COLLECTIVE
    },
    Case {
        name: "fuzzy",
        text: "Start a fuzzy barrier that all others have started, and find it over (--ranks)",
        set_up: fuzzy_barrier::late,
        limit: HAND_OVER,
        peers: &[("", "fuzzy")],
        bars: &[
            (TheLimit, AtMost(2.0), |_, _, ranks| ranks == 2),
            (Mpi, AtMost(0.3), |_, _, ranks| [2, 4, 8].contains(&ranks)),
        ],
        ..COLLECTIVE
    },
    Case {
        name: "fuzzy_hidden",
        text: "A fuzzy barrier beside 20 us of work, without that work (--ranks)",
        set_up: fuzzy_barrier::hidden,
        peers: &[("", "fuzzy_hidden")],
        bars: &[(Mpi, AtMost(0.25), |_, _, ranks| ranks == 2)],
        ..COLLECTIVE
    },
    Case {
        name: "queue_contention",
        text: "Commands a second that 16 ranks post to one queue of 1,024 places",
        metric: Metric::RatePerS,
        set_up: commands::queue_contention,
        ranks: &[17],
        long_ranks: &[17],
        bars: &[],
        operations: &[operation("", WORD, WORD)],
        ..OVERLAP
    },
    Case {
        name: "overlap_copy",
        text: "Copies of 1 MiB from a rank that works and makes no call, by the other one",
        ..OVERLAP
    },
    Case {
        name: "thirdparty",
        text: "The same from that rank to one that sleeps, by a third one",
        ranks: &[3],
        long_ranks: &[3],
        ..OVERLAP
    },
    Case {
        name: "overlap_coll",
        text: "Processor time of plans of two ranks that work on one processor, with a helper",
        set_up: overlap::plans,
        ranks: &[2],
        long_ranks: &[2],
        job: Some(|processors, _| overlap::options(processors)),
        seconds: 12.0,
        bars: &[(Beside, AtMost(0.1), |variant, _, _| variant.ends_with("_beside"))],
        ..JOBS
    },
    Case {
        name: "startup",
        text: "Start 64 ranks that meet and leave, exec to exit (--ranks)",
        ranks: &[64],
        long_ranks: &[64],
        seconds: 5.0,
        bars: &[(Itself, Below(1e9), |_, _, ranks| ranks == 64)],
        ..JOBS
    },
    Case {
        name: "idle",
        text: "Processor time of a job of 4 that waits for 10 s, launcher included (--ranks)",
        seconds: 10.0,
        bars: &[(Itself, Below(20e6), |_, _, ranks| ranks == 4)],
        ..JOBS
    },
    Case {
        name: "blacs",
        text: "BLACS and ScaLAPACK of Debian, on Tasuki and on Open MPI (--ranks, --sizes)",
        ranks: &[2, 4, 8],
        long_ranks: &[2, 4, 8],
        operations: &[
            operation("contiguous", &[8, 64 * K, M, 16 * M], &[8, 64 * K, M, 16 * M]),
            operation("submatrix", BLOCKS, BLOCKS),
            operation("trapezoid", BLOCKS, BLOCKS),
            operation("bcast", SUMS, SUMS),
            operation("sum", SUMS, SUMS),
            operation("grids", &[0], &[0]),
            operation("n2000", &[0], &[0]),
            operation("n4000", &[0], &[0]),
        ],
        seconds: 120.0,
        bars: &[
            (Mpi, AtMost(0.4), |variant, bytes, _| variant == "contiguous" && bytes == 8),
            (Mpi, AtMost(0.67), |variant, _, _| ["submatrix", "trapezoid"].contains(&variant)),
            (Mpi, AtMost(0.6), |variant, _, _| ["bcast", "sum"].contains(&variant)),
            (Mpi, AtMost(0.2), |variant, _, _| variant == "grids"),
            (Mpi, AtMost(0.95), |variant, _, ranks| variant.starts_with('n') && ranks == 2),
            (Mpi, AtMost(0.8), |variant, _, ranks| variant.starts_with('n') && ranks == 4),
        ],
        ..JOBS
    },
    Case {
        name: "death",
        text: "From SIGKILL of a rank, or the launcher, until the last process is gone (--ranks)",
        seconds: 3.0,
        bars: &[(Itself, Below(2e9), |_, _, ranks| ranks == 4)],
        ..JOBS
    },
    Case {
        name: "footprint",
        text: "Bytes that a rank takes, against the documented formula (--ranks)",
        played: Played::Memory,
        metric: Metric::Bytes,
        ranks: &[4, 64],
        long_ranks: &[4, 64, 1024], // the last are simulated
        seconds: 2.0,
        ..JOBS
    },
];

/// Returns the options that bind the ranks to the processors in turn.
pub(crate) fn spread(processors: &[usize], ranks: usize) -> Vec<String> {
    let list: Vec<String> = (0..ranks).map(|rank| processors[rank % processors.len()].to_string()).collect();
    vec!["--bind".into(), list.join(",")]
}

/// Returns the case with this name.
pub(crate) fn named(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).unwrap_or(&CASES[0])
}

impl Case {
    /// Returns the index of the case in the table.
    pub(crate) fn place(&self) -> usize {
        CASES.iter().position(|case| case == self).unwrap_or(0)
    }

    /// Returns true if two ranks run the case, each on its own processor.
    pub(crate) fn is_for_two(&self) -> bool {
        matches!(self.played, Played::Two(_) | Played::Handlers | Played::Blocks)
    }

    /// Returns true if `--ranks` applies to the case.
    pub(crate) fn has_ranks(&self) -> bool {
        matches!(self.played, Played::Collective | Played::Jobs | Played::Memory) && self.job.is_none()
    }

    /// Returns true if `--sizes` applies to the case.
    pub(crate) fn has_sizes(&self) -> bool {
        self.operations.iter().any(|operation| operation.sizes.len() > 1)
    }

    /// Returns true if `--against` applies to the case, even if other libraries have no such operation.
    pub(crate) fn is_shown_beside(&self) -> bool {
        !self.peers.is_empty() || self.played == Played::Two("commands") || self.name == "blacs"
    }

    /// Returns the name that the programs of other libraries use for a variant.
    pub(crate) fn peer_case(&self, variant: &str) -> Option<&'static str> {
        self.peers.iter().find(|(of, _)| [variant, "*"].contains(of)).map(|(_, name)| *name)
    }

    /// Returns true if the figures of a variant do not depend on the number of bytes.
    pub(crate) fn is_without_block(&self, variant: &str) -> bool {
        self.played == Played::Collective && (!self.has_sizes() || variant.ends_with("barrier"))
    }

    /// Returns the numbers of ranks of the case: those that the user asked for, if `--ranks` applies to the case.
    pub(crate) fn ranks<'r>(&'r self, asked: &'r [usize], is_long: bool) -> &'r [usize] {
        match is_long {
            _ if self.has_ranks() && !asked.is_empty() => asked,
            true => self.long_ranks,
            false => self.ranks,
        }
    }

    /// Returns the bars of a figure.
    pub(crate) fn bars(&self, key: &Key, ranks: usize) -> Vec<Bar> {
        let is_for = |row: &&BarRow| row.2(&key.variant, key.bytes, ranks);
        self.bars.iter().filter(is_for).map(|&(with, demand, _)| Bar { with, demand }).collect()
    }
}

impl Operation {
    /// Returns the sizes of the operation: those that the user asked for, unless the operation has only one size.
    pub(crate) fn sizes<'s>(&'s self, asked: &'s [u64], is_long: bool) -> &'s [u64] {
        match (self.sizes.len(), asked.is_empty(), is_long) {
            (2.., false, _) => asked,
            (_, _, true) => self.long_sizes,
            _ => self.sizes,
        }
    }
}

impl PartialEq for Case {
    fn eq(&self, other: &Case) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Case {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(to)
    }
}

impl<'d> Deserialize<'d> for &'static Case {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<&'static Case, D::Error> {
        let name = String::deserialize(from)?;
        let found = CASES.iter().find(|case| case.name == name);
        found.ok_or_else(|| serde::de::Error::custom(format!("there is no case {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(name: &str, variant: &str, bytes: u64, ranks: usize) -> Vec<String> {
        let (case, metric) = (named(name), named(name).metric);
        let bars = case.bars(&Key::ours(case, variant, bytes), ranks);
        bars.into_iter().map(|bar| format!("{:?} {}", bar.with, bar.show(metric))).collect()
    }

    #[test]
    fn bars_are_those_of_their_ranks_and_sizes() {
        assert_eq!(bars("startup", "", 0, 64), ["Itself < 1 s"]);
        assert_eq!(bars("startup", "", 0, 8), [""; 0]);
        assert_eq!(bars("bandwidth_job", "hot_fresh", M, 2), ["Limit >= 0.90", "Mpi >= 1.00"]);
        assert_eq!(
            (bars("bandwidth_put", "hot_fresh", 8, 2).len(), bars("shared_copy", "", 64 * K, 2).len()),
            (0, 0)
        );
        assert_eq!(bars("bandwidth_own", "hot_fresh", 16 * M, 2), ["Mpi >= 1.00"]);
        assert_eq!(
            (bars("barrier", "", 8, 2), bars("barrier", "", 8, 16)),
            (vec!["Mpi <= 0.60".into()], vec!["Mpi <= 0.70".into()])
        );
        assert_eq!(bars("message", "", 8, 2), ["Limit <= 1.35", "Mpi <= 0.70", "Ucx <= 0.75"]);
        assert_eq!(bars("persistent", "bcast", 8, 4), ["Beside <= 1.03", "Mpi <= 0.50"]);
        assert_eq!(bars("persistent", "last_barrier", 8, 4), ["Beside <= 0.50"]);
        assert_eq!(
            (bars("persistent", "last_barrier", 8, 2).len(), bars("persistent", "bcast_call", 8, 4).len()),
            (0, 0)
        );
        assert_eq!(bars("outstanding", "16384_random", 400, 2), ["Itself <= 2 us", "Beside <= 2.00"]);
        assert_eq!(bars("nonblocking", "ibcast", 8, 4), ["Beside <= 1.50"]);
    }

    #[test]
    fn cases_have_sizes_of_their_own_unless_some_are_asked_for() {
        let sizes = |name, is_long| named(name).operations[0].sizes(&[64], is_long);
        assert_eq!((sizes("barrier", false), sizes("bcast", true)), (WORD, &[64][..]));
        assert_eq!(named("allreduce").operations[0].sizes(&[], true), SUMS);
        assert_eq!(named("startup").ranks(&[], false), [64]);
    }
}
