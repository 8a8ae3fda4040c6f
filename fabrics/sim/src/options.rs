//! The description of a run: number of ranks, capabilities of the fabric, durations, faults.

use std::ops::Range;
use tasuki_core::base::Rank;
use tasuki_core::base::log::Level;
use tasuki_core::fabric::{Capabilities, Limits};

/// The description of a run. The same description and the same program give the same run, event by event.
///
/// Defaults: 2 ranks with separate memories; a fabric like a good network card (puts carry signals, completion means
/// visibility, atomics agree with the processor; no mapping, no copies between two other ranks); 1 us of latency and
/// up to 1 us of jitter; 10 GB/s; operations may overtake each other; no faults.
#[derive(Clone, Debug)]
pub struct Sim {
    pub(crate) seeds: Range<u64>,
    pub(crate) ranks: usize,
    pub(crate) can: Capabilities,
    pub(crate) limits: Limits,
    pub(crate) network: Network,
    pub(crate) faults: Faults,
    pub(crate) broken: BrokenPromises,
    pub(crate) stack_bytes: usize,
    pub(crate) time_max_ns: u64,
    pub(crate) in_step: bool,
    pub(crate) keeps_trace: bool,
    pub(crate) log: Level,
}

/// Durations of the network.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) latency_ns: u64,
    pub(crate) jitter_ns: u64,
    pub(crate) bytes_per_s: u64,
    pub(crate) reorder: bool,
    pub(crate) connect_ns: u64,
    pub(crate) passive_targets: bool,
}

/// Faults that no rank causes.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) again: f64,
    pub(crate) never_ready: Vec<Rank>,
    pub(crate) deaths: Vec<Death>,
    pub(crate) detection_ns: u64,
}

/// The death of a rank at a given time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) rank: Rank,
    pub(crate) at_ns: u64,
    /// No other rank is informed.
    pub(crate) silent: bool,
}

/// Promises of the fabric that the simulator breaks on purpose.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct BrokenPromises {
    pub(crate) unordered_signals: bool,
    pub(crate) early_flush: bool,
    pub(crate) early_ends: bool,
    pub(crate) torn_lines: bool,
    pub(crate) torn_atomics: bool,
    pub(crate) early_barriers: bool,
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
        let faults =
            Faults { again: 0.0, never_ready: Vec::new(), deaths: Vec::new(), detection_ns: 1_000_000 };
        Sim {
            seeds: seed..seed.saturating_add(1),
            ranks: 2,
            can,
            limits: Limits { transfer_bytes_max: 1 << 30, outstanding_max: 1024 },
            network,
            faults,
            broken: BrokenPromises::default(),
            stack_bytes: 2 << 20, // the default of Rust's threads
            time_max_ns: 600_000_000_000,
            in_step: false,
            keeps_trace: false,
            log: Level::Warn,
        }
    }

    /// Runs, one for each seed, which end with the first that fails. Its error says how to repeat it alone.
    pub fn seeds(seeds: Range<u64>) -> Sim {
        Sim { seeds, ..Sim::seed(0) }
    }

    /// The seeds of the runs.
    pub fn seed_range(&self) -> Range<u64> {
        self.seeds.clone()
    }

    /// The same run with one seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Sim {
        Sim { seeds: Sim::seed(seed).seeds, ..self.clone() }
    }

    /// Sets the number of ranks.
    #[must_use]
    pub fn ranks(mut self, ranks: usize) -> Sim {
        self.ranks = ranks;
        self
    }

    /// Sets the time from one rank to another, in ns of virtual time.
    #[must_use]
    pub fn latency_ns(mut self, ns: u64) -> Sim {
        self.network.latency_ns = ns;
        self
    }

    /// Sets the most that is added to the latency, in ns; drawn for each message. One message in 16 takes up to eight
    /// times as much.
    #[must_use]
    pub fn jitter_ns(mut self, ns: u64) -> Sim {
        self.network.jitter_ns = ns;
        self
    }

    /// Sets the bytes that a rank sends in a second of virtual time. At least 1.
    #[must_use]
    pub fn bandwidth(mut self, bytes_per_s: u64) -> Sim {
        self.network.bytes_per_s = bytes_per_s.max(1);
        self
    }

    /// Sets whether operations of one rank for the same peer may overtake each other. The bytes of one operation arrive
    /// in any order in either case.
    #[must_use]
    pub fn reorder(mut self, yes: bool) -> Sim {
        self.network.reorder = yes;
        self
    }

    /// Sets the time that the first connection to a peer takes, in ns. Operations are refused meanwhile.
    #[must_use]
    pub fn connect_ns(mut self, ns: u64) -> Sim {
        self.network.connect_ns = ns;
        self
    }

    /// Maps the job memory of peers: [`Fabric::map`](tasuki_core::fabric::Fabric::map) returns pointers, and a copy
    /// between job memories is complete when the call returns. Lines and signals still go through the fabric.
    #[must_use]
    pub fn map(mut self, yes: bool) -> Sim {
        self.can.map = yes;
        self.can.direct_from = if yes { u64::MAX } else { 0 };
        self
    }

    /// Sets the least length, in bytes, of a receive that its sender writes directly when the
    /// buffer is registered memory of the program's own. Shorter receives are staged. Needs mapped
    /// memory.
    #[must_use]
    pub fn direct_from(mut self, bytes: u64) -> Sim {
        self.can.direct_from = if self.can.map { bytes } else { 0 };
        self
    }

    /// Lets a rank copy between two other ranks.
    #[must_use]
    pub fn third_party(mut self, yes: bool) -> Sim {
        self.can.third_party = yes;
        self
    }

    /// Gives the network a barrier: the network counts arrivals in its middle and notifies all members when all have
    /// arrived.
    #[must_use]
    pub fn barrier(mut self, yes: bool) -> Sim {
        self.can.barrier = yes;
        self
    }

    /// Sets the most bytes of the network's multicast; 0: the network has no multicast. The bytes
    /// leave their sender once and travel to each member like a put.
    #[must_use]
    pub fn multicast_bytes_max(mut self, bytes: u64) -> Sim {
        self.can.multicast_bytes_max = bytes;
        self
    }

    /// Sets whether puts carry signals. Otherwise the target raises the signals in its next call.
    #[must_use]
    pub fn native_put_signal(mut self, yes: bool) -> Sim {
        self.can.native_put_signal = yes;
        self
    }

    /// Sets whether the fabric's atomics agree with the processor's. Otherwise a network card keeps
    /// a word for a while and then writes it back over what its owner stored meanwhile; words must
    /// be of domain FABRIC.
    #[must_use]
    pub fn cpu_atomics(mut self, yes: bool) -> Sim {
        self.can.cpu_atomics = yes;
        self
    }

    /// Sets whether an operation that has ended is visible at its target. Otherwise a put ends when its source has been
    /// read, long before its bytes arrive, and only a flush waits for the bytes.
    #[must_use]
    pub fn remote_completion(mut self, yes: bool) -> Sim {
        self.can.remote_completion = yes;
        self
    }

    /// Sets the longest single operation, in bytes.
    #[must_use]
    pub fn transfer_bytes_max(mut self, bytes: u64) -> Sim {
        self.limits.transfer_bytes_max = bytes.max(1);
        self
    }

    /// Sets how many operations of one rank may be in flight at a time.
    #[must_use]
    pub fn outstanding_max(mut self, operations: usize) -> Sim {
        self.limits.outstanding_max = operations.max(1);
        self
    }

    /// Switches every capability off, as in the least capable network.
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

    /// Lets a target make progress only in its own calls: what arrives while it computes waits for its next call.
    #[must_use]
    pub fn passive_targets(mut self, yes: bool) -> Sim {
        self.network.passive_targets = yes;
        self
    }

    /// Refuses each operation with that probability, and half of the time all others to the same peer for up to 20 us.
    #[must_use]
    pub fn again_storm(mut self, probability: f64) -> Sim {
        self.faults.again = probability;
        self
    }

    /// Refuses every operation for `rank` for ever, as if there were never room.
    #[must_use]
    pub fn again_for_ever(mut self, rank: Rank) -> Sim {
        self.faults.never_ready.push(rank);
        self
    }

    /// Kills rank `rank` at `at_ns` ns of virtual time: its calls unwind, what it has sent still
    /// arrives, and the others are informed after the detection time.
    #[must_use]
    pub fn kill(mut self, rank: Rank, at_ns: u64) -> Sim {
        self.faults.deaths.push(Death { rank, at_ns, silent: false });
        self
    }

    /// Like [`Sim::kill`], but no rank is ever informed: operations for the dead rank neither end nor fail.
    #[must_use]
    pub fn silent_death(mut self, rank: Rank, at_ns: u64) -> Sim {
        self.faults.deaths.push(Death { rank, at_ns, silent: true });
        self
    }

    /// Sets the time from a death until the node state reports it, in ns of virtual time.
    #[must_use]
    pub fn detection_ns(mut self, ns: u64) -> Sim {
        self.faults.detection_ns = ns;
        self
    }

    /// Broken promise: the signal of a put may be raised before its bytes are visible. Code that
    /// relies on that order must fail.
    #[must_use]
    pub fn unordered_signals(mut self, yes: bool) -> Sim {
        self.broken.unordered_signals = yes;
        self
    }

    /// Broken promise: a flush ends without waiting for the operations before it.
    #[must_use]
    pub fn early_flush(mut self, yes: bool) -> Sim {
        self.broken.early_flush = yes;
        self
    }

    /// Broken promise: operations end before their bytes are visible although the capabilities say otherwise. Code that
    /// relies on completion, such as order handles, must fail.
    #[must_use]
    pub fn early_ends(mut self, yes: bool) -> Sim {
        self.broken.early_ends = yes;
        self
    }

    /// Broken promise: the counter of a signal line arrives before its payload.
    #[must_use]
    pub fn torn_lines(mut self, yes: bool) -> Sim {
        self.broken.torn_lines = yes;
        self
    }

    /// Broken promise: an atomic reads its word and writes it some time later.
    #[must_use]
    pub fn torn_atomics(mut self, yes: bool) -> Sim {
        self.broken.torn_atomics = yes;
        self
    }

    /// Broken promise: a barrier ends when all members but one have arrived.
    #[must_use]
    pub fn early_barriers(mut self, yes: bool) -> Sim {
        self.broken.early_barriers = yes;
        self
    }

    /// Sets the stack of each thread, in bytes of address range; pages are allocated when they are touched.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Sim {
        self.stack_bytes = bytes;
        self
    }

    /// Sets when the run is given up, in ns of virtual time. Default: ten minutes.
    #[must_use]
    pub fn time_max_ns(mut self, ns: u64) -> Sim {
        self.time_max_ns = ns;
        self
    }

    /// Runs the threads of all ranks in the strict order of virtual time. Otherwise a thread may
    /// run ahead of threads of other ranks by the latency. A program can notice that only through
    /// what ranks share besides the fabric, such as the node state. Running ahead saves nine of ten
    /// switches between threads.
    #[must_use]
    pub fn in_step(mut self, yes: bool) -> Sim {
        self.in_step = yes;
        self
    }

    /// Keeps a line of text for each event. Meant for short runs. The lines are in
    /// [`Report::trace`](crate::Report::trace) and in the `trace` of what `tasuki::sim` returns;
    /// the error of a run that fails ends with the last of them.
    #[must_use]
    pub fn keep_trace(mut self, yes: bool) -> Sim {
        self.keeps_trace = yes;
        self
    }

    /// Sets how much the simulator logs to standard error.
    #[must_use]
    pub fn log(mut self, level: Level) -> Sim {
        self.log = level;
        self
    }
}
