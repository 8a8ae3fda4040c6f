//! The simulated machines on which every case runs: what a fabric may lack, and how badly it may order things.
//!
//! Each stands for a way through the library that others do not take, so a case that holds on one may fail on the
//! next; README.md says which case was seen to fail on which.

use tasuki::Sim;

/// A kind of simulated machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// What a failing test calls it.
    pub name: &'static str,
    /// Makes it of the simulator's defaults.
    pub of: fn(Sim) -> Sim,
}

/// All kinds, the plain one first.
pub const MACHINES: [Machine; 7] = [
    // Like a good network card, with operations that overtake each other.
    Machine { name: "plain", of: |sim| sim },
    // No capability at all: requests to owners, signals that their target raises, flushes.
    Machine { name: "bare", of: Sim::bare },
    // Job memory is mapped, as on one node: copies are done before their call returns, signals are not.
    // Long receives are registered there, short ones staged.
    Machine { name: "mapped", of: |sim| sim.map(true).direct_from(20_000) },
    // A copy between two other ranks does not come by here.
    Machine { name: "third party", of: |sim| sim.third_party(true) },
    // Delays that differ more than any operation takes: whatever can overtake, does.
    Machine { name: "far", of: |sim| sim.third_party(true).latency_ns(20_000).jitter_ns(200_000) },
    // Room for few and short operations, and refusals: most operations are in pieces and wait to be posted.
    Machine {
        name: "narrow",
        of: |sim| sim.outstanding_max(3).transfer_bytes_max(1_000).again_storm(0.02).connect_ns(30_000),
    },
    // What has ended need not have arrived, and nothing overtakes: order by chance must not hide a missing flush.
    Machine { name: "early", of: |sim| sim.remote_completion(false).native_put_signal(false) },
];

/// Networks with a barrier and a multicast of their own, for the cases that could use them.
pub const OFFERING: [Machine; 4] = [
    Machine { name: "offering", of: offering },
    Machine { name: "offering, bare", of: |sim| offering(sim.bare()) },
    Machine { name: "offering, far", of: |sim| offering(sim).latency_ns(20_000).jitter_ns(200_000) },
    // Short broadcasts only, and refusals.
    Machine {
        name: "offering, narrow",
        of: |sim| {
            let sim = sim.barrier(true).multicast_bytes_max(100).outstanding_max(3).transfer_bytes_max(1_000);
            sim.again_storm(0.02).connect_ns(30_000)
        },
    },
];

/// A network with both.
pub fn offering(sim: Sim) -> Sim {
    sim.barrier(true).multicast_bytes_max(4_096)
}
