//! The part of one rank in a schedule: its buffers, its signals, and its steps.

use super::step::{BufferId, Location, QueueId, START, SignalId, Step, StepEffect, StepKind, StepTrigger};

/// The name of a buffer or signal.
pub type Name = std::borrow::Cow<'static, str>;

/// What a buffer is for, and how many copies of it exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferKind {
    /// Belongs to the program, which writes the inputs before each start and reads the outputs after it.
    User,
    /// Scratch memory of the schedule, in this many copies. Start number k uses copy k modulo their number, so a later
    /// start does not overwrite bytes that a step of an earlier start still reads.
    Turns(u32),
    /// Scratch memory of the schedule that two ranks swap at each start. Each of the two ranks, the lower one first in
    /// the array, has one buffer of equal size. In starts with an odd number, a location in the buffer of one names the
    /// memory of the other, whichever rank names it. So a rank writes in one start where it has read in the start
    /// before, and each cache line moves from one processor to the other once for an exchange, not twice. No other rank
    /// accesses these buffers.
    Swapped([u32; 2]),
}

impl BufferKind {
    /// Returns where the buffer of `rank` lies in start number `start`: the rank that holds it, and the index of the
    /// copy.
    pub fn home(self, rank: u32, start: u64) -> (u32, u64) {
        match self {
            BufferKind::User => (rank, 0),
            BufferKind::Turns(turns) => (rank, start % u64::from(turns.max(1))),
            BufferKind::Swapped(both) if start & 1 == 1 => (BufferKind::partner(both, rank), 0),
            BufferKind::Swapped(_) => (rank, 0),
        }
    }

    /// The other one of the two ranks that swap a buffer.
    pub fn partner([one, other]: [u32; 2], rank: u32) -> u32 {
        if rank == one { other } else { one }
    }

    /// A buffer that these two ranks swap.
    pub fn swapped(one: u32, other: u32) -> BufferKind {
        BufferKind::Swapped([one.min(other), one.max(other)])
    }

    /// Returns true if two ranks swap the buffer.
    pub(crate) fn is_swapped(self) -> bool {
        matches!(self, BufferKind::Swapped(_))
    }

    /// The number of copies that a rank has.
    pub fn times(self) -> u64 {
        if let BufferKind::Turns(turns) = self { turns.max(1).into() } else { 1 }
    }

    /// The number of starts after which the buffer lies at the same address again.
    pub fn period(self) -> u64 {
        if self.is_swapped() { 2 } else { self.times() }
    }
}

/// The declaration of a buffer of one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferDecl {
    /// The name, equal on all ranks.
    pub name: Name,
    /// Size of each copy on this rank, in bytes.
    pub bytes: u64,
    /// What the buffer is for.
    pub kind: BufferKind,
}

/// The declaration of a signal of one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignalDecl {
    /// The name, equal on all ranks.
    pub name: Name,
    /// The total that all steps of all ranks add to the signal in each start.
    pub per_start: u64,
}

/// The part of one rank.
///
/// All ranks declare buffers and signals in the same order, also those that they do not use, so that a rank can name a
/// location on another rank without asking it.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{CollectiveKind, RankPart, Schedule, Shape, started};
/// fn part(part: &mut RankPart) {
///     let (me, data) = (part.rank(), part.buffer("data", 64));
///     let ready = part.signal("ready", u64::from(me == 0)); // rank 1 has started
///     let arrived = part.signal("arrived", 1);
///     if me == 0 {
///         part.copy(ready.reaches(1), data.on(0, 0), data.on(1, 0), 64).then(arrived.on(1, 1)).then(arrived.on(0, 1));
///     } else {
///         part.join(started()).then(ready.on(0, 1));
///     }
///     part.finish(arrived.reaches(1));
/// }
/// let shape = Shape::new(CollectiveKind::Bcast, 2, 0, 64);
/// let schedule = Schedule::new("by hand", 2, part, move |rank| shape.contract(rank));
/// assert_eq!(schedule.check()?.steps, 2);
/// # Ok::<(), Box<tasuki::schedule::Fault>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankPart {
    rank: usize,
    buffers: Vec<BufferDecl>,
    signals: Vec<SignalDecl>,
    steps: Vec<Step>,
    finish: Vec<StepTrigger>,
    queue: QueueId,
}

impl RankPart {
    /// Creates an empty part.
    pub fn new(rank: usize) -> RankPart {
        RankPart {
            rank,
            buffers: Vec::new(),
            signals: vec![SignalDecl { name: "start".into(), per_start: 1 }],
            steps: Vec::new(),
            finish: Vec::new(),
            queue: QueueId(0),
        }
    }

    /// The rank that the part belongs to.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Declares a buffer of the program with `bytes` bytes on this rank.
    pub fn buffer(&mut self, name: impl Into<Name>, bytes: u64) -> BufferId {
        self.declare_buffer(BufferDecl { name: name.into(), bytes, kind: BufferKind::User })
    }

    /// Declares a scratch buffer of the schedule in `turns` copies of `bytes` bytes.
    pub fn scratch(&mut self, name: impl Into<Name>, bytes: u64, turns: u32) -> BufferId {
        self.declare_buffer(BufferDecl { name: name.into(), bytes, kind: BufferKind::Turns(turns) })
    }

    /// Declares a scratch buffer that this rank and rank `with` swap at each start ([`BufferKind::Swapped`]).
    pub fn swapped(&mut self, name: impl Into<Name>, bytes: u64, with: usize) -> BufferId {
        let kind = BufferKind::swapped(self.rank as u32, with as u32);
        self.declare_buffer(BufferDecl { name: name.into(), bytes, kind })
    }

    pub(super) fn declare_buffer(&mut self, decl: BufferDecl) -> BufferId {
        self.buffers.push(decl);
        BufferId((self.buffers.len() - 1) as u32)
    }

    /// Declares a signal. `per_start` is the total that all steps of all ranks add to it on this rank in each start.
    pub fn signal(&mut self, name: impl Into<Name>, per_start: u64) -> SignalId {
        self.signals.push(SignalDecl { name: name.into(), per_start });
        SignalId((self.signals.len() - 1) as u32)
    }

    /// Puts the steps added from here on into queue `queue`. The default is queue 0.
    pub fn in_queue(&mut self, queue: u16) {
        self.queue = QueueId(queue);
    }

    /// Adds a step that copies `bytes` bytes once `trigger` is met. With 0 bytes the step moves no data, but still
    /// applies its effects.
    pub fn copy(&mut self, trigger: StepTrigger, from: Location, to: Location, bytes: u64) -> &mut Step {
        self.step(trigger, if bytes > 0 { StepKind::Copy { from, to, bytes } } else { StepKind::Nothing })
    }

    /// Adds a step that combines the values at `from` with those at `to` once `trigger` is met. `in_front` puts the
    /// source values on the left.
    pub fn reduce(
        &mut self,
        trigger: StepTrigger,
        from: Location,
        to: Location,
        bytes: u64,
        in_front: bool,
    ) -> &mut Step {
        let action = StepKind::Reduce { from, to, bytes, in_front };
        self.step(trigger, if bytes > 0 { action } else { StepKind::Nothing })
    }

    /// Adds a step that only applies effects once `trigger` is met.
    pub fn join(&mut self, trigger: StepTrigger) -> &mut Step {
        self.step(trigger, StepKind::Nothing)
    }

    /// Adds a step with any action.
    pub fn step(&mut self, trigger: StepTrigger, action: StepKind) -> &mut Step {
        self.steps.push(Step { queue: self.queue, trigger, action, effects: [None; 2] });
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    /// Adds a completion condition: the rank's start is over when all conditions are met. Without any, it is over at
    /// once.
    pub fn finish(&mut self, condition: StepTrigger) {
        self.finish.push(condition);
    }

    /// The buffers in the order of declaration.
    pub fn buffer_decls(&self) -> &[BufferDecl] {
        &self.buffers
    }

    /// The buffers with their identifiers, in the order of declaration.
    pub fn buffers(&self) -> impl Iterator<Item = (BufferId, &BufferDecl)> {
        (0..).map(BufferId).zip(&self.buffers)
    }

    /// The signals in the order of declaration; the first is [`START`].
    pub fn signal_decls(&self) -> &[SignalDecl] {
        &self.signals
    }

    /// The steps in the order in which they were added.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The completion conditions of a start.
    pub fn finish_conditions(&self) -> &[StepTrigger] {
        &self.finish
    }
}

/// The trigger that is met when the rank has started. No step begins sooner, so it stands for "no further condition".
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{RankPart, started};
/// let mut part = RankPart::new(1);
/// let ready = part.signal("ready", 1);
/// part.join(started()).then(ready.on(0, 1)); // tells rank 0 that this rank has started
/// assert_eq!(part.steps()[0].trigger, started());
/// ```
pub fn started() -> StepTrigger {
    START.reaches(1)
}

impl Step {
    /// Adds an effect. A step has at most two.
    pub fn then(&mut self, effect: StepEffect) -> &mut Step {
        let free = self.effects.iter_mut().find(|slot| slot.is_none());
        debug_assert!(free.is_some(), "a step has two effects at most");
        if let Some(slot) = free {
            *slot = Some(effect);
        }
        self
    }
}
