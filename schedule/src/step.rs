//! What a step of a schedule is: a action, what it waits for, and what it raises.

/// A buffer of a schedule. Every rank has one of that name; they may differ in size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BufferId(pub(super) u32);

/// A signal of a schedule. Every rank has one of that name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SignalId(pub(super) u32);

/// A queue of a rank: each step waits until the one before it has begun, so what it waits for comes on top of what they
/// have waited for. Steps may overlap, but what they raise at one signal comes in their order, and a reduction begins
/// when the nearest reduction before it in the queue has ended, over all starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct QueueId(pub u16);

/// The signal that a rank's start raises by one: what waits for it begins with the start.
pub const START: SignalId = SignalId(0);

impl BufferId {
    /// The one that is named first.
    pub const FIRST: BufferId = BufferId(0);
    /// The one that is named after it.
    pub const SECOND: BufferId = BufferId(1);

    /// The place of that offset, in bytes, in the buffer of that rank.
    pub fn on(self, rank: usize, offset: u64) -> Location {
        Location { rank: rank as u32, buffer: self, offset }
    }

    /// Its number, in the order in which buffers were named.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl SignalId {
    /// The effect that the signal of that rank counts `amount` more.
    pub fn on(self, rank: usize, amount: u64) -> StepEffect {
        StepEffect { rank: rank as u32, signal: self, amount }
    }

    /// The condition that the rank's own signal has counted `count` since this start began.
    pub fn reaches(self, count: u64) -> StepTrigger {
        StepTrigger { signal: self, count, lag: 0 }
    }

    /// Its number, in the order in which signals were named; 0 is [`START`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place in memory, by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    /// Whose memory.
    pub rank: u32,
    /// Which buffer.
    pub buffer: BufferId,
    /// Bytes from its beginning.
    pub offset: u64,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Nothing: it joins, or hands on what it waited for.
    Nothing,
    /// Moves bytes.
    Copy {
        /// From there.
        from: Location,
        /// To there.
        to: Location,
        /// So many.
        bytes: u64,
    },
    /// Combines values with those at the destination.
    Reduce {
        /// These.
        from: Location,
        /// With those there, where the result stays.
        to: Location,
        /// Bytes of each.
        bytes: u64,
        /// What comes stands before what is there, for operations that do not commute.
        in_front: bool,
    },
}

/// What a step waits for: that a signal of its own rank has counted so much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepTrigger {
    /// Which.
    pub signal: SignalId,
    /// What it has counted for the start.
    pub count: u64,
    /// For the start that many before this one. Met at once where there was none.
    pub lag: u32,
}

impl StepTrigger {
    /// The same of an earlier start.
    pub fn lagging(self, starts: u32) -> StepTrigger {
        StepTrigger { lag: starts, ..self }
    }
}

/// That a signal counts more when a step is done and its bytes are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepEffect {
    /// Whose.
    pub rank: u32,
    /// Which.
    pub signal: SignalId,
    /// How much.
    pub amount: u64,
}

/// Effects that a step has at most: as many as a command.
pub const EFFECTS_MAX: usize = 2;

/// A step of a rank: the command that it prepares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// In which of the rank's queues.
    pub queue: QueueId,
    /// What it waits for.
    pub trigger: StepTrigger,
    /// What it does.
    pub action: StepKind,
    /// What it raises then.
    pub effects: [Option<StepEffect>; EFFECTS_MAX],
}

impl Step {
    /// Its effects.
    pub fn effects(&self) -> impl Iterator<Item = StepEffect> + '_ {
        self.effects.iter().flatten().copied()
    }
}
