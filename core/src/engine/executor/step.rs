//! What the steps of an execution are to be: by addresses and numbers of signals, before they are looked up.

use crate::base::Rank;
use crate::segment::GlobalAddress;

/// Where a step reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// In memory of the job.
    At(GlobalAddress),
    /// In one of the buffers that the call lends: its number, and the offset in it.
    CallBuffers(usize, u64),
    /// In what a rank lends to its call first, and shows by the [`ExposedBuffer`](super::ExposedBuffer) at that
    /// address: the offset in it.
    ExposedBuffer(GlobalAddress, u64),
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepAction {
    /// Nothing.
    Nothing,
    /// Moves so many bytes; one of the places at least is this rank's.
    Copy(Operand, Operand, u64),
    /// Combines so many bytes of values with those at the second place, in the caller's memory: behind them, or in
    /// front.
    Combine(Operand, Operand, u64, bool),
}

/// A number that grows: from the first pass through the execution on, by as much in each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerStart {
    /// In the first pass.
    pub first: u64,
    /// More in each.
    pub more: u64,
}

/// A word of job memory behind what lies in the same line, and the number that it has when that is there. It is stored
/// before any signal is raised that tells of it, and is something else until then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlagSpec {
    /// The word.
    pub at: GlobalAddress,
    /// Its number.
    pub number: PerStart,
}

/// That a signal of the own rank has come so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitSpec {
    /// Its number.
    pub signal: u32,
    /// How far.
    pub count: PerStart,
    /// The one rank that raises it.
    pub by: Rank,
    /// The seal of what the step takes then: who sees it need not look at the signal.
    pub flag: Option<FlagSpec>,
}

/// A step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepSpec {
    /// What it waits for.
    pub wait: Option<WaitSpec>,
    /// What it does then.
    pub action: StepAction,
    /// The seal that it puts behind what it has laid out.
    pub flag: Option<FlagSpec>,
    /// The signals that it raises then, of other ranks, and by how much they are up since the execution was made:
    /// nobody else raises them.
    pub raises: Vec<(GlobalAddress, PerStart)>,
}

impl PerStart {
    #[inline(always)]
    pub(super) fn in_pass(self, pass: u64) -> u64 {
        self.first.wrapping_add(pass.wrapping_mul(self.more))
    }
}
