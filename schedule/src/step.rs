//! A step of a schedule: an action, a trigger, and effects.

/// The identifier of a buffer. Every rank has a buffer with this identifier; sizes may differ between ranks.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{RankPart, BufferId};
/// let mut part = RankPart::new(0);
/// let (data, arrived) = (part.buffer("data", 64), part.signal("arrived", 1));
/// let first: BufferId = data; // has this number on every rank
/// assert_eq!((first.index(), arrived.index() > 0), (0, true));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BufferId(pub(super) u32);

/// The identifier of a signal. Every rank has a signal with this identifier.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{RankPart, SignalId, started};
/// let mut part = RankPart::new(0);
/// let (data, arrived) = (part.buffer("data", 64), part.signal("arrived", 1));
/// let signal: SignalId = arrived;
/// part.copy(started(), data.on(0, 0), data.on(1, 0), 64).then(signal.on(1, 1)); // raises it at rank 1
/// assert_eq!(part.steps()[0].effects().count(), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SignalId(pub(super) u32);

/// A queue of a rank. A step begins only after the step before it in the queue has begun, so it also waits for the
/// triggers of all steps before it. Steps may overlap, but their effects on one signal happen in queue order. A
/// reduction begins when the nearest reduction before it in the queue has ended, over all starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct QueueId(pub u16);

/// The signal that a rank's start raises by one. A step that waits for it begins with the start.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{START, started};
/// assert_eq!(started(), START.reaches(1));
/// ```
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
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Location, RankPart};
/// let data = RankPart::new(0).buffer("data", 64);
/// let middle: Location = data.on(3, 32); // byte 32 of the buffer of rank 3
/// assert_eq!((middle.rank, middle.offset), (3, 32));
/// ```
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
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{RankPart, StepTrigger};
/// let mut part = RankPart::new(1);
/// let (data, arrived) = (part.buffer("data", 64), part.signal("arrived", 1));
/// let trigger: StepTrigger = arrived.reaches(1); // one raise of this start
/// part.copy(trigger, data.on(1, 0), data.on(2, 0), 64);
/// assert_eq!(part.steps()[0].trigger.count, 1);
/// ```
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
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{RankPart, StepEffect, started};
/// let mut part = RankPart::new(0);
/// let arrived = part.signal("arrived", 1);
/// let effect: StepEffect = arrived.on(1, 1); // raises the signal of rank 1 by 1
/// part.join(started()).then(effect);
/// assert_eq!(part.steps()[0].effects().next().map(|effect| effect.rank), Some(1));
/// ```
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
