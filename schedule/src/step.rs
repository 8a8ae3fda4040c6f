//! A step of a schedule: an action, a trigger, and effects.

/// The identifier of a buffer. Every rank has a buffer with this identifier; sizes may differ between ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BufferId(pub(super) u32);

/// The identifier of a signal. Every rank has a signal with this identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SignalId(pub(super) u32);

/// A queue of a rank. A step begins only after the step before it in the queue has begun, so it also waits for the
/// triggers of all steps before it. Steps may overlap, but their effects on one signal happen in queue order. A
/// reduction begins when the nearest reduction before it in the queue has ended, over all starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct QueueId(pub u16);

/// The signal that a rank's start raises by one. A step that waits for it begins with the start.
pub const START: SignalId = SignalId(0);

impl BufferId {
    /// The buffer that is declared first.
    pub const FIRST: BufferId = BufferId(0);
    /// The buffer that is declared second.
    pub const SECOND: BufferId = BufferId(1);

    /// The location at `offset`, in bytes, in the buffer of `rank`.
    pub fn on(self, rank: usize, offset: u64) -> Location {
        Location { rank: rank as u32, buffer: self, offset }
    }

    /// The index of the buffer in the order of declaration.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl SignalId {
    /// The effect that adds `amount` to the signal of `rank`.
    pub fn on(self, rank: usize, amount: u64) -> StepEffect {
        StepEffect { rank: rank as u32, signal: self, amount }
    }

    /// The trigger that is met once the rank's own signal has counted `count` in this start.
    pub fn reaches(self, count: u64) -> StepTrigger {
        StepTrigger { signal: self, count, lag: 0 }
    }

    /// The index of the signal in the order of declaration; 0 is [`START`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A location in the memory of a rank: a named buffer and an offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    /// The rank that owns the memory.
    pub rank: u32,
    /// The buffer.
    pub buffer: BufferId,
    /// Offset in bytes from the beginning of the buffer.
    pub offset: u64,
}

/// The action of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Moves no data: waits for the trigger, then applies the effects.
    Nothing,
    /// Copies bytes.
    Copy {
        /// Source.
        from: Location,
        /// Destination.
        to: Location,
        /// Length in bytes.
        bytes: u64,
    },
    /// Combines source values with those at the destination.
    Reduce {
        /// Source values.
        from: Location,
        /// Destination values, replaced by the result.
        to: Location,
        /// Length of each operand in bytes.
        bytes: u64,
        /// True if the source is the left operand, for operations that do not commute.
        in_front: bool,
    },
}

/// The condition that a step waits for: the count of a signal of its own rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepTrigger {
    /// The signal.
    pub signal: SignalId,
    /// The count within the start.
    pub count: u64,
    /// Number of starts to look back: the count must be reached for the start `lag` starts before this one. Met at once
    /// if there was no such start.
    pub lag: u32,
}

impl StepTrigger {
    /// Returns this trigger, looking back `starts` starts.
    pub fn lagging(self, starts: u32) -> StepTrigger {
        StepTrigger { lag: starts, ..self }
    }
}

/// An addition to a signal, applied when the step is done and its bytes are visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepEffect {
    /// The rank that owns the signal.
    pub rank: u32,
    /// The signal.
    pub signal: SignalId,
    /// The amount added.
    pub amount: u64,
}

/// The most effects of a step: as many as a command has.
pub const EFFECTS_MAX: usize = 2;

/// A step of a rank; the rank prepares it as a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The queue of the rank that holds the step.
    pub queue: QueueId,
    /// The condition that the step waits for.
    pub trigger: StepTrigger,
    /// The action.
    pub action: StepKind,
    /// The signals that the step raises when it is done.
    pub effects: [Option<StepEffect>; EFFECTS_MAX],
}

impl Step {
    /// The effects of the step.
    pub fn effects(&self) -> impl Iterator<Item = StepEffect> + '_ {
        self.effects.iter().flatten().copied()
    }
}
