//! What a step of a schedule is: a deed, what it waits for, and what it raises.

/// A buffer of a schedule. Every rank has one of that name; they may differ in size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Buffer(pub(super) u32);

/// A signal of a schedule. Every rank has one of that name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Signal(pub(super) u32);

/// A queue of a rank: each step waits until the one before it has begun, so what it waits for comes on top of what they
/// have waited for. Steps may overlap, but what they raise comes in their order, and reductions come one after the
/// other, each when the one before it has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Queue(pub u16);

/// The signal that a rank's start raises by one: what waits for it begins with the start.
pub const START: Signal = Signal(0);

impl Buffer {
    /// The one that is named first.
    pub const FIRST: Buffer = Buffer(0);
    /// The one that is named after it.
    pub const SECOND: Buffer = Buffer(1);

    /// The place of that offset, in bytes, in the buffer of that rank.
    pub fn on(self, rank: usize, offset: u64) -> Place {
        Place { rank: rank as u32, buffer: self, offset }
    }

    /// Its number, in the order in which buffers were named.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Signal {
    /// The effect that the signal of that rank counts `amount` more.
    pub fn on(self, rank: usize, amount: u64) -> Effect {
        Effect { rank: rank as u32, signal: self, amount }
    }

    /// The condition that the rank's own signal has counted `count` since this start began.
    pub fn reaches(self, count: u64) -> Trigger {
        Trigger { signal: self, count, lag: 0 }
    }

    /// Its number, in the order in which signals were named; 0 is [`START`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place in memory, by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Whose memory.
    pub rank: u32,
    /// Which buffer.
    pub buffer: Buffer,
    /// Bytes from its beginning.
    pub offset: u64,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Nothing: it joins, or hands on what it waited for.
    Nothing,
    /// Moves bytes.
    Copy {
        /// From there.
        from: Place,
        /// To there.
        to: Place,
        /// So many.
        bytes: u64,
    },
    /// Combines values with those at the destination.
    Reduce {
        /// These.
        from: Place,
        /// With those there, where the result stays.
        to: Place,
        /// Bytes of each.
        bytes: u64,
        /// What comes stands before what is there, for operations that do not commute.
        in_front: bool,
    },
}

/// What a step waits for: that a signal of its own rank has counted so much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// Which.
    pub signal: Signal,
    /// What it has counted for the start.
    pub count: u64,
    /// For the start that many before this one. Met at once where there was none.
    pub lag: u32,
}

impl Trigger {
    /// The same of an earlier start.
    pub fn lagging(self, starts: u32) -> Trigger {
        Trigger { lag: starts, ..self }
    }
}

/// That a signal counts more when a step is done and its bytes are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Whose.
    pub rank: u32,
    /// Which.
    pub signal: Signal,
    /// How much.
    pub amount: u64,
}

/// Effects that a step has at most: as many as a command.
pub const EFFECTS_MAX: usize = 2;

/// A step of a rank: the command that it prepares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// In which of the rank's queues.
    pub queue: Queue,
    /// What it waits for.
    pub trigger: Trigger,
    /// What it does.
    pub deed: Deed,
    /// What it raises then.
    pub effects: [Option<Effect>; EFFECTS_MAX],
}

impl Step {
    /// Its effects.
    pub fn effects(&self) -> impl Iterator<Item = Effect> + '_ {
        self.effects.iter().flatten().copied()
    }
}
