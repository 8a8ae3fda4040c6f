//! Groups: sets of ranks for which a fabric offers a barrier and a multicast of its own, as networks with in-network
//! combining do.

use crate::segment::GlobalAddress;

/// The global addresses through which the fabric reports to one member of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FabricGroupMember {
    /// This member's signal that barriers of the group raise.
    pub barrier_signal: GlobalAddress,
    /// This member's signal that multicasts of other members raise.
    pub multicast_signal: GlobalAddress,
    /// This member's buffer that multicasts write, of [`FabricGroup::bytes`] bytes; null if `bytes` is 0.
    pub buffer: GlobalAddress,
}

/// A group, as a member describes it when it opens it. All members give equal values, except for `me`.
#[derive(Clone, Copy, Debug)]
pub struct FabricGroup<'g> {
    /// Identifies the group. No other group of the job has, or ever had, this key.
    pub key: u64,
    /// All members, each on a rank of its own.
    pub members: &'g [FabricGroupMember],
    /// Index of this rank in `members`.
    pub me: usize,
    /// Bytes of each member's buffer.
    pub bytes: u64,
}
