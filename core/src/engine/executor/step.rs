//! Specifications of the steps of an execution. They name global addresses and signal numbers, which the executor
//! resolves to mapped memory.

use crate::base::Rank;
use crate::segment::GlobalAddress;

/// The memory that a step reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// Job memory at this address.
    At(GlobalAddress),
    /// A buffer that the call lends: the buffer's number, and an offset in it.
    CallBuffers(usize, u64),
    /// The first buffer that another rank's call lends. That rank exposes it by the
    /// [`ExposedBuffer`](super::ExposedBuffer) at this address. The number is an offset in the buffer.
    ExposedBuffer(GlobalAddress, u64),
}

/// The action of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepAction {
    /// The step only waits and raises.
    Nothing,
    /// Copies from the first operand to the second: the number of bytes. At least one operand is memory of this rank.
    Copy(Operand, Operand, u64),
    /// Combines the values at the first operand into those at the second, which the call must lend: the number of
    /// bytes, and true if the values at the first operand are the left ones.
    Combine(Operand, Operand, u64, bool),
}

/// A number that grows by the same amount in each pass through the execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerStart {
    /// The number in the first pass.
    pub first: u64,
    /// What each further pass adds.
    pub more: u64,
}

/// An inline flag: a word of job memory in the same cache line as the data that it announces. The writer stores the
/// number of the pass's data into it after the data, and before it raises a signal that announces them. Until then
/// the word has another value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlagSpec {
    /// Address of the word.
    pub at: GlobalAddress,
    /// Number that marks the data of a pass.
    pub number: PerStart,
}

/// The condition for which a step waits: a signal of this rank has reached a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitSpec {
    /// Number of the signal.
    pub signal: u32,
    /// The count that the signal must reach.
    pub count: PerStart,
    /// The only rank that raises the signal.
    pub by: Rank,
    /// The inline flag of the data that the step reads. A rank that sees the flag need not read the signal.
    pub flag: Option<FlagSpec>,
}

/// A step: it waits, acts, sets an inline flag and raises signals, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepSpec {
    /// The condition for which the step waits.
    pub wait: Option<WaitSpec>,
    /// The action after the wait.
    pub action: StepAction,
    /// The inline flag that the step sets after the action, in the cache line of the bytes that it wrote.
    pub flag: Option<FlagSpec>,
    /// The signals of other ranks that the step raises last. Each has the total by which it is then higher than when
    /// the execution was made. No other rank raises them.
    pub raises: Vec<(GlobalAddress, PerStart)>,
}

impl PerStart {
    #[inline(always)]
    pub(super) fn in_pass(self, pass: u64) -> u64 {
        self.first.wrapping_add(pass.wrapping_mul(self.more))
    }
}
