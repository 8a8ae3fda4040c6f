//! EventKind is simulated: how many ranks, what their fabric can do, how long things take, what goes wrong.

use tasuki_core::base::Rank;
use tasuki_core::base::log::Level;
use tasuki_core::fabric::{Capabilities, Limits};

/// The description of a run. The same description and the same program give the same run, event by event.
///
/// Without further words: 2 ranks with separate memories, a fabric like a good network card (puts carry signals,
/// completion means visibility, atomics agree with the processor; no mapping, no third party), 1 us of latency and
/// as much jitter, 10 GB/s, operations overtaking each other, no faults.
#[derive(Clone, Debug)]
pub struct Sim {
    pub(crate) seed: u64,
    pub(crate) ranks: usize,
    pub(crate) can: Capabilities,
    pub(crate) limits: Limits,
    pub(crate) network: Network,
    pub(crate) faults: Faults,
    pub(crate) twins: BrokenPromises,
    pub(crate) stack_bytes: usize,
    pub(crate) time_max_ns: u64,
    pub(crate) in_step: bool,
    pub(crate) keeps_trace: bool,
    pub(crate) log: Level,
}

/// How long things take on the way.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) latency_ns: u64,
    pub(crate) jitter_ns: u64,
    pub(crate) bytes_per_s: u64,
    pub(crate) reorder: bool,
    pub(crate) connect_ns: u64,
    pub(crate) passive_targets: bool,
}

/// EventKind goes wrong though nobody is to blame.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) again: f64,
    pub(crate) deaf: Vec<Rank>,
    pub(crate) deaths: Vec<Death>,
    pub(crate) detection_ns: u64,
}

/// The end of a rank at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) rank: Rank,
    pub(crate) at_ns: u64,
    /// Nobody is told.
    pub(crate) silent: bool,
}

/// Promises of the fabric that are broken on purpose.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct BrokenPromises {
    pub(crate) unordered_signals: bool,
    pub(crate) early_flush: bool,
    pub(crate) early_ends: bool,
    pub(crate) torn_lines: bool,
    pub(crate) torn_atomics: bool,
    pub(crate) early_meetings: bool,
}

impl Sim {
    /// A run whose every decision follows from `seed`.
    pub fn seed(seed: u64) -> Sim {
        let can = Capabilities {
            map: false,
            third_party: false,
            native_put_signal: true,
            cpu_atomics: true,
            remote_completion: true,
            direct_from: 0,
            barrier: false,
            multicast_bytes_max: 0,
        };
        let network = Network {
            latency_ns: 1_000,
            jitter_ns: 1_000,
            bytes_per_s: 10_000_000_000,
            reorder: true,
            connect_ns: 0,
            passive_targets: false,
        };
        let faults = Faults { again: 0.0, deaf: Vec::new(), deaths: Vec::new(), detection_ns: 1_000_000 };
        Sim {
            seed,
            ranks: 2,
            can,
            limits: Limits { transfer_bytes_max: 1 << 30, outstanding_max: 1024 },
            network,
            faults,
            twins: BrokenPromises::default(),
            stack_bytes: 2 << 20, // as Rust's other threads have
            time_max_ns: 600_000_000_000,
            in_step: false,
            keeps_trace: false,
            log: Level::Warn,
        }
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(mut self, ranks: usize) -> Sim {
        self.ranks = ranks;
        self
    }

    /// From one rank to another, in ns of virtual time.
    #[must_use]
    pub fn latency_ns(mut self, ns: u64) -> Sim {
        self.network.latency_ns = ns;
        self
    }

    /// The most that is added to the latency, drawn for each way; now and then it is eight times as much.
    #[must_use]
    pub fn jitter_ns(mut self, ns: u64) -> Sim {
        self.network.jitter_ns = ns;
        self
    }

    /// Bytes that a rank sends in a second of virtual time. At least 1.
    #[must_use]
    pub fn bandwidth(mut self, bytes_per_s: u64) -> Sim {
        self.network.bytes_per_s = bytes_per_s.max(1);
        self
    }

    /// Whether operations of one rank for the same peer overtake each other. The bytes of one operation arrive in
    /// no order in either case.
    #[must_use]
    pub fn reorder(mut self, yes: bool) -> Sim {
        self.network.reorder = yes;
        self
    }

    /// How long the way to a peer takes to be made when it is first used; operations are refused meanwhile.
    #[must_use]
    pub fn connect_ns(mut self, ns: u64) -> Sim {
        self.network.connect_ns = ns;
        self
    }

    /// Peers' job memory is mapped: [`Fabric::map`](tasuki_core::fabric::Fabric::map) gives pointers, and copies
    /// between job memories are done before the call returns. Lines and signals still pass through the fabric.
    #[must_use]
    pub fn map(mut self, yes: bool) -> Sim {
        self.can.map = yes;
        self.can.direct_from = if yes { u64::MAX } else { 0 };
        self
    }

    /// From how many bytes on receives in memory that its owner merely owns are written by their senders; shorter ones
    /// are staged, which needs mapped memory.
    #[must_use]
    pub fn direct_from(mut self, bytes: u64) -> Sim {
        self.can.direct_from = if self.can.map { bytes } else { 0 };
        self
    }

    /// A rank may copy between two others.
    #[must_use]
    pub fn third_party(mut self, yes: bool) -> Sim {
        self.can.third_party = yes;
        self
    }

    /// The network has a barrier: it counts who has come half-way between the ranks, and tells all when everybody has.
    #[must_use]
    pub fn barrier(mut self, yes: bool) -> Sim {
        self.can.barrier = yes;
        self
    }

    /// The network has a multicast of up to so many bytes; 0: none. They leave their sender once, and travel to each
    /// member as a put does.
    #[must_use]
    pub fn multicast_bytes_max(mut self, bytes: u64) -> Sim {
        self.can.multicast_bytes_max = bytes;
        self
    }

    /// Puts carry signals. Otherwise the target raises them, in its next call.
    #[must_use]
    pub fn native_put_signal(mut self, yes: bool) -> Sim {
        self.can.native_put_signal = yes;
        self
    }

    /// The fabric's atomics agree with the processor's. Otherwise a card keeps a word to itself for a while and
    /// then writes it back over whatever its owner stored; words must be of domain FABRIC.
    #[must_use]
    pub fn cpu_atomics(mut self, yes: bool) -> Sim {
        self.can.cpu_atomics = yes;
        self
    }

    /// EventKind has ended is visible at its target. Otherwise a put ends when its source has been read, long before its
    /// bytes arrive, and only a flush tells of those.
    #[must_use]
    pub fn remote_completion(mut self, yes: bool) -> Sim {
        self.can.remote_completion = yes;
        self
    }

    /// Longest single operation.
    #[must_use]
    pub fn transfer_bytes_max(mut self, bytes: u64) -> Sim {
        self.limits.transfer_bytes_max = bytes.max(1);
        self
    }

    /// Operations of one rank that may be under way at a time.
    #[must_use]
    pub fn outstanding_max(mut self, operations: usize) -> Sim {
        self.limits.outstanding_max = operations.max(1);
        self
    }

    /// Every capability off: what the poorest network offers.
    #[must_use]
    pub fn bare(self) -> Sim {
        self.map(false)
            .third_party(false)
            .barrier(false)
            .multicast_bytes_max(0)
            .native_put_signal(false)
            .cpu_atomics(false)
            .remote_completion(false)
            .passive_targets(true)
    }

    /// A target makes progress only in its own calls: what arrives while it computes waits for the next one.
    #[must_use]
    pub fn passive_targets(mut self, yes: bool) -> Sim {
        self.network.passive_targets = yes;
        self
    }

    /// Each operation is refused with that probability, and then others to the same peer for up to 20 us.
    #[must_use]
    pub fn again_storm(mut self, probability: f64) -> Sim {
        self.faults.again = probability;
        self
    }

    /// Every operation for `rank` is refused, for ever, as if there were never room.
    #[must_use]
    pub fn again_for_ever(mut self, rank: Rank) -> Sim {
        self.faults.deaf.push(rank);
        self
    }

    /// Rank `rank` dies at `at_ns`: its calls unwind, what it has sent still arrives, and after the detection time
    /// the others are told.
    #[must_use]
    pub fn kill(mut self, rank: Rank, at_ns: u64) -> Sim {
        self.faults.deaths.push(Death { rank, at_ns, silent: false });
        self
    }

    /// Like [`Sim::kill`], but nobody is ever told: operations for it neither end nor fail.
    #[must_use]
    pub fn silent_death(mut self, rank: Rank, at_ns: u64) -> Sim {
        self.faults.deaths.push(Death { rank, at_ns, silent: true });
        self
    }

    /// From a death to the node state's telling of it, in ns of virtual time.
    #[must_use]
    pub fn detection_ns(mut self, ns: u64) -> Sim {
        self.faults.detection_ns = ns;
        self
    }

    /// Twin: a put's signal may be raised before its bytes are there. EventKind rests on that order must fail.
    #[must_use]
    pub fn unordered_signals(mut self, yes: bool) -> Sim {
        self.twins.unordered_signals = yes;
        self
    }

    /// Twin: a flush ends without looking whether anything has arrived.
    #[must_use]
    pub fn early_flush(mut self, yes: bool) -> Sim {
        self.twins.early_flush = yes;
        self
    }

    /// Twin: operations end before their bytes are visible although the capabilities say otherwise. EventKind rests on
    /// completion, such as order handles, must fail.
    #[must_use]
    pub fn early_ends(mut self, yes: bool) -> Sim {
        self.twins.early_ends = yes;
        self
    }

    /// Twin: the counter of a line arrives before its payload.
    #[must_use]
    pub fn torn_lines(mut self, yes: bool) -> Sim {
        self.twins.torn_lines = yes;
        self
    }

    /// Twin: an atomic reads its word, and writes it some time later.
    #[must_use]
    pub fn torn_atomics(mut self, yes: bool) -> Sim {
        self.twins.torn_atomics = yes;
        self
    }

    /// Twin: a meeting is over when all members but one have come.
    #[must_use]
    pub fn early_meetings(mut self, yes: bool) -> Sim {
        self.twins.early_meetings = yes;
        self
    }

    /// Stack of each thread, in bytes of address range; memory is taken as it is touched.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Sim {
        self.stack_bytes = bytes;
        self
    }

    /// When the run is given up, in ns of virtual time; ten minutes if nothing is said.
    #[must_use]
    pub fn time_max_ns(mut self, ns: u64) -> Sim {
        self.time_max_ns = ns;
        self
    }

    /// Takes the threads of all ranks in the strict order of virtual time. Otherwise one may run ahead of those of
    /// other ranks by the latency, which no program can tell but by what ranks share besides the fabric, such as the
    /// node state; it saves nine changes of thread in ten.
    #[must_use]
    pub fn in_step(mut self, yes: bool) -> Sim {
        self.in_step = yes;
        self
    }

    /// Keeps a line of text for each event, for looking at a short run. They are in
    /// [`Report::trace`](crate::Report::trace) and in the `trace` of what `tasuki::sim` returns; the error of a run that
    /// fails ends with the last of them.
    #[must_use]
    pub fn keep_trace(mut self, yes: bool) -> Sim {
        self.keeps_trace = yes;
        self
    }

    /// How much the simulator says on standard error.
    #[must_use]
    pub fn log(mut self, level: Level) -> Sim {
        self.log = level;
        self
    }
}
