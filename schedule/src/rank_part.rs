//! What one rank contributes to a schedule: its buffers, its signals, and the steps that it prepares.

use super::step::{BufferId, Location, QueueId, START, SignalId, Step, StepEffect, StepKind, StepTrigger};

/// What something of a schedule is called.
pub type Name = std::borrow::Cow<'static, str>;

/// Who uses a buffer besides the steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferKind {
    /// The program: it writes before each start what it gives, and reads after it what it gets.
    User,
    /// Nobody. There are so many of it, which starts take in turns: steps of start k use the one of number k modulo
    /// that. So what a step of an earlier start still reads there, a later one does not meet.
    Turns(u32),
    /// Nobody. Two ranks, the lower one first, have one each, alike in bytes, and swap them at each start: in starts of
    /// odd number the place of one names the memory of the other, whoever names it. What a rank writes to its own in
    /// one start lies where it has read in the one before. So a line of memory passes from one processor to the other
    /// once for all that is handed over in it, not twice. No other rank names them.
    Swapped([u32; 2]),
}

impl BufferKind {
    /// Where such a buffer of `rank` lies in that start: with which rank, and in which of its turns.
    pub fn home(self, rank: u32, start: u64) -> (u32, u64) {
        match self {
            BufferKind::User => (rank, 0),
            BufferKind::Turns(turns) => (rank, start % u64::from(turns.max(1))),
            BufferKind::Swapped(both) if start & 1 == 1 => (BufferKind::partner(both, rank), 0),
            BufferKind::Swapped(_) => (rank, 0),
        }
    }

    /// The other one of two that swap a buffer.
    pub fn partner([one, other]: [u32; 2], rank: u32) -> u32 {
        if rank == one { other } else { one }
    }

    /// Swapped by these two.
    pub fn swapped(one: u32, other: u32) -> BufferKind {
        BufferKind::Swapped([one.min(other), one.max(other)])
    }

    /// Whether two ranks swap it.
    pub(crate) fn is_swapped(self) -> bool {
        matches!(self, BufferKind::Swapped(_))
    }

    /// How many of it a rank has.
    pub fn times(self) -> u64 {
        if let BufferKind::Turns(turns) = self { turns.max(1).into() } else { 1 }
    }

    /// After how many starts it lies where it did.
    pub fn period(self) -> u64 {
        if self.is_swapped() { 2 } else { self.times() }
    }
}

/// A buffer of one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferDecl {
    /// Its name, the same on all ranks.
    pub name: Name,
    /// Bytes on this rank, of each turn.
    pub bytes: u64,
    /// Who uses it.
    pub used: BufferKind,
}

/// A signal of one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignalDecl {
    /// Its name, the same on all ranks.
    pub name: Name,
    /// How much it counts in each start, all told.
    pub per_start: u64,
}

/// What one rank contributes.
///
/// Buffers and signals are named in the same order on all ranks, also where one is of no use, so that a place on
/// another rank can be named without asking it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankPart {
    rank: usize,
    rooms: Vec<BufferDecl>,
    counters: Vec<SignalDecl>,
    steps: Vec<Step>,
    finish: Vec<StepTrigger>,
    queue: QueueId,
}

impl RankPart {
    /// A part without anything.
    pub fn new(rank: usize) -> RankPart {
        RankPart {
            rank,
            rooms: Vec::new(),
            counters: vec![SignalDecl { name: "start".into(), per_start: 1 }],
            steps: Vec::new(),
            finish: Vec::new(),
            queue: QueueId(0),
        }
    }

    /// Whose it is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Names a buffer of the program's, which has so many bytes on this rank.
    pub fn buffer(&mut self, name: impl Into<Name>, bytes: u64) -> BufferId {
        self.room(BufferDecl { name: name.into(), bytes, used: BufferKind::User })
    }

    /// Names a buffer of the schedule's own, `turns` times.
    pub fn scratch(&mut self, name: impl Into<Name>, bytes: u64, turns: u32) -> BufferId {
        self.room(BufferDecl { name: name.into(), bytes, used: BufferKind::Turns(turns) })
    }

    /// Names a buffer of the schedule's own that this rank and another one swap with each start ([`BufferKind::Swapped`]).
    pub fn swapped(&mut self, name: impl Into<Name>, bytes: u64, with: usize) -> BufferId {
        let used = BufferKind::swapped(self.rank as u32, with as u32);
        self.room(BufferDecl { name: name.into(), bytes, used })
    }

    pub(super) fn room(&mut self, room: BufferDecl) -> BufferId {
        self.rooms.push(room);
        BufferId((self.rooms.len() - 1) as u32)
    }

    /// Names a signal, which counts `per_start` on this rank in each start: all that anybody's steps add there.
    pub fn signal(&mut self, name: impl Into<Name>, per_start: u64) -> SignalId {
        self.counters.push(SignalDecl { name: name.into(), per_start });
        SignalId((self.counters.len() - 1) as u32)
    }

    /// Steps from here on go to that queue; the first ones to queue 0.
    pub fn in_queue(&mut self, queue: u16) {
        self.queue = QueueId(queue);
    }

    /// A step that moves bytes once the trigger is met. More than zero bytes move: else it does nothing, and counts.
    pub fn copy(&mut self, trigger: StepTrigger, from: Location, to: Location, bytes: u64) -> &mut Step {
        self.step(trigger, if bytes > 0 { StepKind::Copy { from, to, bytes } } else { StepKind::Nothing })
    }

    /// A step that combines values with those at the destination once the trigger is met: in front of those, or behind.
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

    /// A step that only raises signals once the trigger is met.
    pub fn join(&mut self, trigger: StepTrigger) -> &mut Step {
        self.step(trigger, StepKind::Nothing)
    }

    /// Any step.
    pub fn step(&mut self, trigger: StepTrigger, action: StepKind) -> &mut Step {
        self.steps.push(Step { queue: self.queue, trigger, action, effects: [None; 2] });
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    /// The rank's start is over when all of these are met; one that names none is over at once.
    pub fn finish(&mut self, condition: StepTrigger) {
        self.finish.push(condition);
    }

    /// Its buffers, in the order of their names.
    pub fn rooms(&self) -> &[BufferDecl] {
        &self.rooms
    }

    /// The same, with what they are named by.
    pub fn buffers(&self) -> impl Iterator<Item = (BufferId, &BufferDecl)> {
        (0..).map(BufferId).zip(&self.rooms)
    }

    /// Its signals, in the order of their names; the first is [`START`].
    pub fn counters(&self) -> &[SignalDecl] {
        &self.counters
    }

    /// Its steps, in the order of their queues.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// When its start is over.
    pub fn finished(&self) -> &[StepTrigger] {
        &self.finish
    }
}

/// The condition that the rank has started: no step begins sooner, so it says that a step waits for nothing else.
pub fn started() -> StepTrigger {
    START.reaches(1)
}

impl Step {
    /// It also raises that. At most two.
    pub fn then(&mut self, effect: StepEffect) -> &mut Step {
        let free = self.effects.iter_mut().find(|slot| slot.is_none());
        debug_assert!(free.is_some(), "a step has two effects at most");
        if let Some(slot) = free {
            *slot = Some(effect);
        }
        self
    }
}
