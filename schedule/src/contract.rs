//! What a schedule must achieve: the inputs of each rank, and the outputs that it must have in the end. A contract does
//! not depend on the algorithm, so a mistake of an algorithm cannot hide in it.

use super::step::BufferId;

/// A range of bytes in a buffer of one rank.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{BufferSpan, CollectiveKind, DATA, Shape};
/// let contract = Shape::new(CollectiveKind::Bcast, 2, 0, 64).contract(0);
/// assert_eq!(contract.inputs, [BufferSpan { buffer: DATA, offset: 0, bytes: 64 }]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferSpan {
    /// The buffer.
    pub buffer: BufferId,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Where the bytes of an output come from: the same range of the buffer of each of these ranks, combined. Where the
/// order matters, it is the combining order of this list.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{CollectiveKind, Origin, Shape};
/// let contract = Shape::new(CollectiveKind::Reduce, 3, 0, 64).contract(0);
/// let (_, origin): &(_, Origin) = &contract.outputs[0];
/// assert_eq!(origin.ranks, [0, 1, 2]); // the values of all three, combined
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The contributing ranks; one rank where nothing is combined.
    pub ranks: Vec<u32>,
    /// The source buffer.
    pub buffer: BufferId,
    /// Offset of the first byte in it.
    pub offset: u64,
}

/// The inputs and outputs of one rank.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{CollectiveKind, Contract, Shape};
/// let contract: Contract = Shape::new(CollectiveKind::Barrier, 4, 0, 0).contract(1);
/// assert!(contract.synchronizes && contract.inputs.is_empty() && contract.outputs.is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contract {
    /// Ranges that the program has written before the start.
    pub inputs: Vec<BufferSpan>,
    /// Ranges that the program reads after the start, each with its origin.
    pub outputs: Vec<(BufferSpan, Origin)>,
    /// True if values must be combined in the combining order ([`crate::combining_order`]), grouping included.
    /// Otherwise any order will do.
    pub in_order: bool,
    /// True if no rank's start may end before all ranks have started.
    pub synchronizes: bool,
}
