//! Lets two members that exchange blocks both find out that they disagree about a length.
//!
//! Only the sender and the receiver of a block know its length. So before any block is sent, each member sends each of
//! its partners the lengths that it expects, in a message of one cache line. This costs one message latency more than
//! the blocks alone.

use crate::communicator::Communicator;
use bytemuck::{Pod, Zeroable};
use std::hash::{DefaultHasher, Hash, Hasher};
use tasuki_core::base::{Cause, Rank, Result};

/// What a member knows about the lengths of the blocks between it and a partner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockLengths {
    partner: Rank,
    gives: SideLengths,
    gets: SideLengths,
}

/// The lengths of the blocks that go in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct SideLengths {
    /// Bytes of all blocks together.
    bytes: u64,
    /// Hash of the lengths of the blocks; 0 if there is at most one.
    division: u64,
}

impl SideLengths {
    fn of<T>(counts: &[usize]) -> SideLengths {
        let mut division = DefaultHasher::new();
        counts.hash(&mut division);
        let bytes = counts.iter().map(|&count| (count * size_of::<T>()) as u64).sum();
        SideLengths { bytes, division: if counts.len() > 1 { division.finish() } else { 0 } }
    }
}

impl BlockLengths {
    /// Makes the lengths of the blocks that are sent to `partner` (`gives`, in values) and received from it (`gets`).
    pub(crate) fn of<T>(partner: Rank, gives: &[usize], gets: &[usize]) -> BlockLengths {
        BlockLengths { partner, gives: SideLengths::of::<T>(gives), gets: SideLengths::of::<T>(gets) }
    }

    /// Returns the disagreement with the lengths that the partner has sent, if any.
    fn differ_from(&self, [gives, gets]: [SideLengths; 2]) -> Option<Cause> {
        let (ours, theirs) =
            [(self.gets, gives), (self.gives, gets)].into_iter().find(|(ours, theirs)| ours != theirs)?;
        if ours.bytes == theirs.bytes {
            let text = format!("member {} divides the same bytes into other blocks", self.partner);
            return Some(Cause::Argument(text));
        }
        let (least, most) = (ours.bytes.min(theirs.bytes), ours.bytes.max(theirs.bytes));
        Some(Cause::Disagree { what: "bytes", least, most })
    }
}

impl Communicator {
    /// Sends this member's lengths to all partners, and compares theirs with them.
    pub(crate) fn agree_on_lengths(&self, with: &[BlockLengths]) -> Result<()> {
        // Prepost, so that neither of two partners waits for the other's receive.
        with.iter().try_for_each(|own| self.channel.expect(own.partner))?;
        let send_lengths =
            |own: &BlockLengths| self.channel.send(bytemuck::bytes_of(&[own.gives, own.gets]), own.partner);
        with.iter().try_for_each(send_lengths)?;
        with.iter().try_for_each(|own| {
            let mut theirs = [SideLengths::zeroed(); 2];
            self.channel.recv(bytemuck::bytes_of_mut(&mut theirs), own.partner)?;
            let fault = |cause| self.worker().fault(cause, || format!("a part with member {}", own.partner));
            own.differ_from(theirs).map_or(Ok(()), |cause| Err(fault(cause)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_the_partner_knows_differently_is_found() {
        let lengths = |gives: &[usize], gets: &[usize]| BlockLengths::of::<u32>(Rank(1), gives, gets);
        let here = lengths(&[2], &[0, 9]);
        let differs = |gives: &[usize], gets: &[usize]| {
            let BlockLengths { gives, gets, .. } = lengths(gives, gets);
            here.differ_from([gives, gets])
        };
        assert_eq!(differs(&[0, 9], &[2]), None);
        assert_eq!(differs(&[0, 8], &[2]), Some(Cause::Disagree { what: "bytes", least: 32, most: 36 }));
        assert_eq!(differs(&[0, 9], &[3]), Some(Cause::Disagree { what: "bytes", least: 8, most: 12 }));
        assert!(matches!(differs(&[9, 0], &[2]), Some(Cause::Argument(_))));
    }
}
