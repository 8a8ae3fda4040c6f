//! Specifications of compiled steps. They name global addresses and signal numbers, which are resolved to mapped
//! memory for an execution, or encoded as commands for a repeating queue.

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

impl Operand {
    /// Returns the operand that begins `bytes` bytes later.
    pub fn offset_by(self, bytes: u64) -> Operand {
        match self {
            Operand::At(at) => Operand::At(at.add(bytes)),
            Operand::CallBuffers(buffer, at) => Operand::CallBuffers(buffer, at + bytes),
            Operand::ExposedBuffer(word, at) => Operand::ExposedBuffer(word, at + bytes),
        }
    }
}

/// The action of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepAction {
    /// The step only waits and raises.
    Nothing,
    /// Copies from the first operand to the second: the number of bytes. At least one operand is memory of this rank.
    Copy(Operand, Operand, u64),
    /// Combines the values at the first operand into those at the second: the number of bytes, and true if the values
    /// at the first operand are the left ones. In an execution the call lends the second operand.
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
    /// How many starts before that of the step the signal is raised to that count.
    pub starts_ago: u64,
    /// The only rank that raises the signal. `None`: there may be several. An execution must know it.
    pub by: Option<Rank>,
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
    /// The signals that the step raises last, each with the amount. In an execution they belong to other ranks, and no
    /// other rank raises them. A command of a repeating queue raises at most two.
    pub raises: Vec<(GlobalAddress, u64)>,
    /// A rank that raises the awaited signal of a repeating queue leaves the step to the queue's rank.
    pub is_left_to_owner: bool,
}

impl StepSpec {
    /// A step that does nothing.
    pub const NOTHING: StepSpec = StepSpec {
        wait: None,
        action: StepAction::Nothing,
        flag: None,
        raises: Vec::new(),
        is_left_to_owner: false,
    };

    /// Returns the number of bytes that the step copies or combines.
    pub fn moved(&self) -> u64 {
        match self.action {
            StepAction::Nothing => 0,
            StepAction::Copy(_, _, len) | StepAction::Combine(_, _, len, _) => len,
        }
    }
}

impl PerStart {
    #[inline(always)]
    pub(super) fn in_pass(self, pass: u64) -> u64 {
        self.first.wrapping_add(pass.wrapping_mul(self.more))
    }
}
