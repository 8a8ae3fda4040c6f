//! Groups: ranks among which a fabric has a barrier and a multicast of its own, as networks have that combine packets
//! on their way.

use crate::segment::GlobalAddress;

/// Where a member of a group is told things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FabricGroupMember {
    /// Its signal that meetings raise.
    pub met: GlobalAddress,
    /// Its signal that multicasts of others raise.
    pub brought: GlobalAddress,
    /// Its memory that they write, as many bytes as the group has; null if those are none.
    pub place: GlobalAddress,
}

/// A group, as each member describes it when it opens it: alike but for `me`.
#[derive(Clone, Copy, Debug)]
pub struct FabricGroup<'g> {
    /// Its name, which no other group of the job has or had.
    pub key: u64,
    /// All members, on as many ranks.
    pub members: &'g [FabricGroupMember],
    /// Which of them this rank is.
    pub me: usize,
    /// Bytes of each member's place.
    pub bytes: u64,
}
