//! What the network knows of a group that uses its barrier and its multicast.

use tasuki_core::base::Rank;
use tasuki_core::fabric::{FabricGroup, FabricGroupMember};

/// The network's state of a group.
#[derive(Debug)]
pub(crate) struct CollectiveState {
    pub(super) members: Vec<FabricGroupMember>,
    pub(super) bytes: u64,
    pub(super) states: Vec<MemberState>,
    /// Number of barriers that have ended.
    pub(super) over: u64,
    /// When the latest arrival so far came, in ns.
    pub(super) last_arrival_ns: u64,
}

/// The state of a member.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MemberState {
    pub(super) is_open: bool,
    /// Barriers that the member has entered, that it has arrived at, and that it was notified of.
    pub(super) entered: u64,
    pub(super) arrived: u64,
    pub(super) notified: u64,
}

impl CollectiveState {
    pub(super) fn new(group: &FabricGroup<'_>) -> CollectiveState {
        let states = vec![MemberState::default(); group.members.len()];
        CollectiveState {
            members: group.members.into(),
            bytes: group.bytes,
            states,
            over: 0,
            last_arrival_ns: 0,
        }
    }

    pub(super) fn rank(&self, member: usize) -> Rank {
        self.members[member].barrier_signal.rank()
    }

    pub(super) fn member(&self, rank: Rank) -> Option<usize> {
        let found = (0..self.members.len()).find(|&member| self.rank(member) == rank)?;
        self.states[found].is_open.then_some(found)
    }

    /// Returns true if `needed` members have arrived at the next barrier.
    pub(super) fn is_complete(&self, needed: usize) -> bool {
        self.states.iter().filter(|one| one.arrived > self.over).count() >= needed
    }
}
