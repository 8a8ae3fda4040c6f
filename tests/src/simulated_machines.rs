//! The simulated machines on which every case runs. They differ in the capabilities of their
//! network and in how much the network reorders operations.
//!
//! Each machine makes the library take code paths that the other machines do not use. So a case
//! that passes on one machine may fail on the next.

use tasuki::Sim;

/// A configuration of the simulator.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Its name in messages of failing tests.
    pub name: &'static str,
    /// Changes the simulator's default settings to those of this machine.
    pub of: fn(Sim) -> Sim,
}

/// All machines, the plain one first.
pub const MACHINES: [Machine; 7] = [
    // This machine resembles a good network card: operations overtake each other.
    Machine { name: "plain", of: |sim| sim },
    // The fabric has no optional capability: the owner of memory carries out atomics, the target raises signals, and
    // flushes are needed.
    Machine { name: "bare", of: Sim::bare },
    // Job memory is mapped, as on one node: copies are done before their call returns, signals are
    // not. Long receives are registered on this machine, and short ones are staged.
    Machine { name: "mapped", of: |sim| sim.map(true).direct_from(20_000) },
    // The network copies between two other ranks without moving the bytes through the issuer.
    Machine { name: "third party", of: |sim| sim.third_party(true) },
    // Delays vary by more than any operation takes, so everything that may overtake does.
    Machine { name: "far", of: |sim| sim.third_party(true).latency_ns(20_000).jitter_ns(200_000) },
    // Only a few short operations fit into the fabric, and it sometimes refuses posts. So most operations are split and
    // wait to be posted.
    Machine {
        name: "narrow",
        of: |sim| sim.outstanding_max(3).transfer_bytes_max(1_000).again_storm(0.02).connect_ns(30_000),
    },
    // An operation that has ended may not have arrived yet. Nothing overtakes, so accidental order
    // must not hide a missing flush.
    Machine { name: "early", of: |sim| sim.remote_completion(false).native_put_signal(false) },
];

/// Networks with a barrier and a multicast of their own, for cases that could use them.
pub const OFFERING: [Machine; 4] = [
    Machine { name: "offering", of: offering },
    Machine { name: "offering, bare", of: |sim| offering(sim.bare()) },
    Machine { name: "offering, far", of: |sim| offering(sim).latency_ns(20_000).jitter_ns(200_000) },
    // The network offers only short broadcasts, and refuses some posts.
    Machine {
        name: "offering, narrow",
        of: |sim| {
            let sim = sim.barrier(true).multicast_bytes_max(100).outstanding_max(3).transfer_bytes_max(1_000);
            sim.again_storm(0.02).connect_ns(30_000)
        },
    },
];

/// Gives the network a barrier and a multicast.
pub fn offering(sim: Sim) -> Sim {
    sim.barrier(true).multicast_bytes_max(4_096)
}
