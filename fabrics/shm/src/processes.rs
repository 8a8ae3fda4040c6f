//! Which peers' processes the kernel may copy from and to (process_vm).
#![allow(unsafe_code)]
//! Unsafe: a read of another process's memory into a word of ours.
//!
//! A process number means another process in another PID namespace, and most numbers exist in all of them: a copy to
//! the wrong process overwrites its memory, or brings its bytes, without an error. So a peer's number is used only
//! where both ranks are in one namespace, and only after this rank has read the peer's cookie through it: a random
//! number at an address that the peer has published on the node state. A peer that fails either is asked to copy by itself
//! ([`crate::requests`]). Both are checked once for each peer.

use crate::Options;
use std::sync::atomic::{AtomicU32, Ordering};
use tasuki_core::base::{Rank, Result};
use tasuki_core::node::node_state::{NodeState, ProcessIdentity, Stage};
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::process_vm::{self, CopyRefusal, Direction};
use tasuki_core::os::{process, random};

/// Nobody has tried to reach that peer's process.
const UNTRIED: u32 = 0;
/// The kernel does not copy from and to it, or it could not be told from others.
const REFUSED: u32 = u32::MAX;

/// The processes of all ranks of the node, as far as this one reaches them.
#[derive(Debug)]
pub(crate) struct Processes {
    rank: Rank,
    /// What peers read to be sure of this process.
    _cookie: Box<u64>,
    /// By rank: [`UNTRIED`], [`REFUSED`], or the number of the process. Any thread of this rank writes it; all write
    /// the same.
    pids: Box<[AtomicU32]>,
    denied: DisabledFeatures,
}

impl Processes {
    /// Publishes what this rank's process is.
    pub(crate) fn join(node_state: &NodeState, rank: Rank, options: Options) -> Result<Processes> {
        let cookie = Box::new(u64::from_le_bytes(random::bytes()?));
        node_state.rank_state(rank).publish_process_identity(ProcessIdentity {
            pid: std::process::id(),
            pid_namespace: process::pid_namespace(),
            cookie_at: &raw const *cookie as u64,
            cookie: *cookie,
        });
        let first = if options.ask_owners || options.denied.process_vm { REFUSED } else { UNTRIED };
        let pids = (0..node_state.size()).map(|_| AtomicU32::new(first)).collect();
        Ok(Processes { rank, _cookie: cookie, pids, denied: options.denied })
    }

    /// The number of a peer's process. Errors: the kernel may not copy from and to it, or it is gone.
    #[inline]
    pub(crate) fn pid(&self, node_state: &NodeState, peer: Rank) -> Result<u32, CopyRefusal> {
        match self.pids[peer.index()].load(Ordering::Relaxed) {
            UNTRIED => self.find(node_state, peer),
            REFUSED => Err(CopyRefusal::Permission),
            pid => Ok(pid),
        }
    }

    /// The kernel has refused a copy from or to that peer's process: it is not asked again.
    pub(crate) fn refuse(&self, peer: Rank) {
        self.pids[peer.index()].store(REFUSED, Ordering::Relaxed);
    }

    /// Finds out whether the number that a peer says is its own is that peer's process here.
    #[cold]
    fn find(&self, node_state: &NodeState, peer: Rank) -> Result<u32, CopyRefusal> {
        let rank_state =
            |rank| (node_state.rank_state(rank).pid(), node_state.rank_state(rank).process_identity());
        // A peer that has said nothing yet is asked this time, and looked at again next time.
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
        // SAFETY: a word of ours.
        let read = unsafe {
            let found = (&raw mut found).cast();
            process_vm::copy(Direction::Read, theirs.pid, found, theirs.cookie_at, len, self.denied)
        };
        if read.is_ok() && found == theirs.cookie {
            self.pids[peer.index()].store(theirs.pid, Ordering::Relaxed);
            return Ok(theirs.pid);
        }
        // A rank that has left has given its cookie's memory back.
        if read == Err(CopyRefusal::Gone) || node_state.rank_state(peer).stage() >= Stage::Leaving {
            return Err(CopyRefusal::Gone);
        }
        self.refuse(peer);
        Err(CopyRefusal::Permission)
    }
}

/// Whether two ranks' processes have their numbers in one namespace. Each comes with the number by which whoever let the
/// rank in knows it: where a rank cannot find out its namespace, two ranks that both have there the number that they
/// have for themselves count as in one.
fn is_one_namespace(ours: (u32, ProcessIdentity), theirs: (u32, ProcessIdentity)) -> bool {
    if ours.1.pid_namespace != 0 && theirs.1.pid_namespace != 0 {
        return ours.1.pid_namespace == theirs.1.pid_namespace;
    }
    [ours, theirs].iter().all(|(seen, identity)| *seen == identity.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node state on which this process is all ranks.
    fn joined(ranks: usize) -> (NodeState, Vec<Processes>) {
        let node_state = NodeState::create(ranks).unwrap();
        let join = |rank| {
            node_state.rank_state(rank).set_pid(std::process::id());
            node_state.rank_state(rank).set_stage(Stage::Joined);
            Processes::join(&node_state, rank, Options::default()).unwrap()
        };
        let processes = Rank::all(ranks).map(join).collect();
        (node_state, processes)
    }

    /// Changes what rank 1 says of its process.
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
        assert_eq!(processes[0].pid(&node_state, Rank(1)), Ok(std::process::id()), "it is looked for once");
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
