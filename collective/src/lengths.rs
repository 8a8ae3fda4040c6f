//! How two members that exchange blocks find out, both of them, that they disagree about a length.
//!
//! Only who gives a block and who gets it know how long it is, each for itself. So each tells each of its partners
//! first how long the blocks between the two are, as it knows it, in a message that fits in a line; no block is on its
//! way then. Costs a hand-over more than the blocks alone.

use super::communicator::Communicator;
use bytemuck::{Pod, Zeroable};
use std::hash::{DefaultHasher, Hash, Hasher};
use tasuki_core::base::{Cause, Rank, Result};

/// What a member knows of the blocks between it and a partner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lengths {
    partner: Rank,
    gives: Side,
    gets: Side,
}

/// The blocks that go one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct Side {
    /// Of all together.
    bytes: u64,
    /// Which stands for the length of each, where there are several.
    division: u64,
}

impl Side {
    fn of<T>(counts: &[usize]) -> Side {
        let mut division = DefaultHasher::new();
        counts.hash(&mut division);
        let bytes = counts.iter().map(|&count| (count * size_of::<T>()) as u64).sum();
        Side { bytes, division: if counts.len() > 1 { division.finish() } else { 0 } }
    }
}

impl Lengths {
    /// With that partner, of blocks of so many values.
    pub(super) fn of<T>(partner: Rank, gives: &[usize], gets: &[usize]) -> Lengths {
        Lengths { partner, gives: Side::of::<T>(gives), gets: Side::of::<T>(gets) }
    }

    /// In what the partner, which tells what it gives and gets, disagrees.
    fn differ_from(&self, [gives, gets]: [Side; 2]) -> Option<Cause> {
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
    /// Tells all partners what this member knows of the blocks between them, and hears what they do.
    pub(super) fn agree_on_lengths(&self, with: &[Lengths]) -> Result<()> {
        // Neither of two is to wait for the other's receive.
        with.iter().try_for_each(|own| self.link.expect(own.partner))?;
        let tell = |own: &Lengths| self.link.send(bytemuck::bytes_of(&[own.gives, own.gets]), own.partner);
        with.iter().try_for_each(tell)?;
        with.iter().try_for_each(|own| {
            let mut theirs = [Side::zeroed(); 2];
            self.link.recv(bytemuck::bytes_of_mut(&mut theirs), own.partner)?;
            let fault = |cause| self.machine().fault(cause, || format!("a part with member {}", own.partner));
            own.differ_from(theirs).map_or(Ok(()), |cause| Err(fault(cause)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_say_of_their_blocks_is_compared() {
        let lengths = |gives: &[usize], gets: &[usize]| Lengths::of::<u32>(Rank(1), gives, gets);
        let here = lengths(&[2], &[0, 9]);
        let told = |gives: &[usize], gets: &[usize]| {
            let Lengths { gives, gets, .. } = lengths(gives, gets);
            here.differ_from([gives, gets])
        };
        assert_eq!(told(&[0, 9], &[2]), None);
        assert_eq!(told(&[0, 8], &[2]), Some(Cause::Disagree { what: "bytes", least: 32, most: 36 }));
        assert_eq!(told(&[0, 9], &[3]), Some(Cause::Disagree { what: "bytes", least: 8, most: 12 }));
        assert!(matches!(told(&[9, 0], &[2]), Some(Cause::Argument(_))));
    }
}
