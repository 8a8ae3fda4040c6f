//! The processes of peers from and to which the kernel may copy (process_vm).
#![allow(unsafe_code)]
//! Unsafe: a read of another process's memory into a word of ours.
//!
//! A process number names another process in another PID namespace, and most numbers exist in all
//! namespaces. A copy to the wrong process would overwrite its memory, or return its bytes, without
//! an error. So a peer's number is used only if both ranks are in one namespace, and only after
//! this rank has used it to read the peer's cookie: a random number at an address that the peer has
//! published on the node state. If either check fails, the peer gets requests to copy by itself
//! ([`crate::owner_requests`]). Both are checked once for each peer.

use crate::Options;
use tasuki_core::base::sync::{AtomicU32, Ordering};
use tasuki_core::base::{Rank, Result};
use tasuki_core::node::node_state::{NodeState, ProcessIdentity, RankStage};
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::process_vm::{self, CopyRefusal, Direction};
use tasuki_core::os::{process, random};

/// This rank has not tried to reach that peer's process.
const UNTRIED: u32 = 0;
/// The kernel does not copy from and to it, or the process could not be identified.
const REFUSED: u32 = u32::MAX;

/// The processes of all ranks of the node, as far as this rank can reach them.
#[derive(Debug)]
pub(crate) struct Processes {
    rank: Rank,
    /// The number that peers read to identify this process.
    _cookie: Box<u64>,
    /// By rank: [`UNTRIED`], [`REFUSED`], or the process number. Any thread of this rank writes it;
    /// all write the same value.
    pids: Box<[AtomicU32]>,
    disabled: DisabledFeatures,
}

impl Processes {
    /// Publishes the identity of this rank's process.
    pub(crate) fn join(node_state: &NodeState, rank: Rank, options: Options) -> Result<Processes> {
        let cookie = Box::new(u64::from_le_bytes(random::bytes()?));
        node_state.rank_state(rank).publish_process_identity(ProcessIdentity {
            pid: std::process::id(),
            pid_namespace: process::pid_namespace(),
            cookie_at: &raw const *cookie as u64,
            cookie: *cookie,
        });
        let first = if options.request_owner || options.disabled.process_vm { REFUSED } else { UNTRIED };
        let pids = (0..node_state.size()).map(|_| AtomicU32::new(first)).collect();
        Ok(Processes { rank, _cookie: cookie, pids, disabled: options.disabled })
    }

    /// Returns the number of a peer's process. Errors: the kernel may not copy from and to it, or the process is gone.
    #[inline]
    pub(crate) fn pid(&self, node_state: &NodeState, peer: Rank) -> Result<u32, CopyRefusal> {
        match self.pids[peer.index()].load(Ordering::Relaxed) {
            UNTRIED => self.identify(node_state, peer),
            REFUSED => Err(CopyRefusal::Permission),
            pid => Ok(pid),
        }
    }

    /// Records that the kernel has refused a copy from or to that peer's process: it is not tried again.
    pub(crate) fn refuse(&self, peer: Rank) {
        self.pids[peer.index()].store(REFUSED, Ordering::Relaxed);
    }

    /// Finds out whether the process number that a peer has published names that peer's process here.
    #[cold]
    fn identify(&self, node_state: &NodeState, peer: Rank) -> Result<u32, CopyRefusal> {
        let rank_state =
            |rank| (node_state.rank_state(rank).pid(), node_state.rank_state(rank).process_identity());
        // If a peer has not published its identity yet, this copy is requested from it, and the next one checks again.
        let ((seen, Some(ours)), (their_seen, Some(theirs))) = (rank_state(self.rank), rank_state(peer))
        else {
            return Err(CopyRefusal::Permission);
        };
        if !is_one_namespace((seen, ours), (their_seen, theirs)) {
            self.refuse(peer);
            return Err(CopyRefusal::Permission);
        }
        let mut found = 0_u64;
        let len = size_of_val(&found);
        // SAFETY: `found` is a local word of `len` bytes.
        let read = unsafe {
            let found = (&raw mut found).cast();
            process_vm::copy(Direction::Read, theirs.pid, found, theirs.cookie_at, len, self.disabled)
        };
        if read.is_ok() && found == theirs.cookie {
            self.pids[peer.index()].store(theirs.pid, Ordering::Relaxed);
            return Ok(theirs.pid);
        }
        // A rank that has left has freed the memory of its cookie.
        if read == Err(CopyRefusal::Gone) || node_state.rank_state(peer).stage() >= RankStage::Leaving {
            return Err(CopyRefusal::Gone);
        }
        self.refuse(peer);
        Err(CopyRefusal::Permission)
    }
}

/// Returns true if the processes of two ranks have their numbers in one namespace. Each comes with
/// the number by which the launcher knows it. If a rank cannot determine its namespace, the ranks
/// count as in one namespace if each has the same number for itself as the launcher has for it.
fn is_one_namespace(ours: (u32, ProcessIdentity), theirs: (u32, ProcessIdentity)) -> bool {
    if ours.1.pid_namespace != 0 && theirs.1.pid_namespace != 0 {
        return ours.1.pid_namespace == theirs.1.pid_namespace;
    }
    [ours, theirs].iter().all(|(seen, identity)| *seen == identity.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a node state on which this process has joined as all ranks.
    fn joined(ranks: usize) -> (NodeState, Vec<Processes>) {
        let node_state = NodeState::create(ranks).unwrap();
        let join = |rank| {
            node_state.rank_state(rank).set_pid(std::process::id());
            node_state.rank_state(rank).set_stage(RankStage::Joined);
            Processes::join(&node_state, rank, Options::default()).unwrap()
        };
        let processes = Rank::all(ranks).map(join).collect();
        (node_state, processes)
    }

    /// Changes the identity that rank 1 has published.
    fn change(node_state: &NodeState, change: impl FnOnce(&mut ProcessIdentity)) {
        let mut identity = node_state.rank_state(Rank(1)).process_identity().unwrap();
        change(&mut identity);
        node_state.rank_state(Rank(1)).publish_process_identity(identity);
    }

    #[test]
    fn a_peer_whose_cookie_is_found_is_reached() {
        if !process_vm::permitted(DisabledFeatures::default()) {
            return;
        }
        let (node_state, processes) = joined(2);
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Ok(std::process::id()));
        change(&node_state, |identity| identity.cookie += 1);
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Ok(std::process::id()), "the cookie is read once");
        processes[0].refuse(Rank(1));
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Err(CopyRefusal::Permission));
    }

    #[test]
    fn a_process_with_another_cookie_or_none_is_not_the_peer() {
        let (node_state, processes) = joined(2);
        change(&node_state, |identity| identity.cookie += 1);
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Err(CopyRefusal::Permission));
        let (node_state, processes) = joined(2);
        change(&node_state, |identity| identity.cookie_at = 16);
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Err(CopyRefusal::Permission));
    }

    #[test]
    fn a_peer_in_another_namespace_is_not_reached() {
        let (node_state, processes) = joined(2);
        change(&node_state, |identity| identity.pid_namespace = 7);
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Err(CopyRefusal::Permission));
    }

    #[test]
    fn without_namespaces_numbers_are_compared_with_those_that_the_launcher_knows() {
        if !process_vm::permitted(DisabledFeatures::default()) {
            return;
        }
        let (node_state, processes) = joined(2);
        change(&node_state, |identity| identity.pid_namespace = 0);
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Ok(std::process::id()));
        let (node_state, processes) = joined(2);
        change(&node_state, |identity| identity.pid_namespace = 0);
        node_state.rank_state(Rank(1)).set_pid(std::process::id() + 1);
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Err(CopyRefusal::Permission));
    }

    #[test]
    fn a_peer_that_has_said_nothing_is_looked_for_again() {
        if !process_vm::permitted(DisabledFeatures::default()) {
            return;
        }
        let node_state = NodeState::create(2).unwrap();
        let first = Processes::join(&node_state, Rank(0), Options::default()).unwrap();
        assert_eq!(first.pid(&node_state, Rank(1)), Err(CopyRefusal::Permission));
        let _second = Processes::join(&node_state, Rank(1), Options::default()).unwrap();
        assert_eq!(first.pid(&node_state, Rank(1)), Ok(std::process::id()));
    }
}
