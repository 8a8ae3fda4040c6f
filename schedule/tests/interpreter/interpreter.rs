//! Runs several starts of a plan by the rules of docs/guide/plan-files.md, in an order that follows
//! from a seed.
//!
//! The interpreter shares no code with the proof. Memory holds symbols: for each byte, which rank
//! gave it in which start, or which bytes were combined in which order. An *actor* is the program
//! of a rank, a queue, a step in progress, or the stream of effects of one queue on one signal.
//! Actors have priorities. Of the actors that can act, the one with the highest priority acts next.
//! Some priorities change during a run. So in some runs a rank is as far ahead as triggers allow;
//! in others a copy or an effect comes as late as possible.

use crate::json_plan::{Act, Place, Plan, When};
use crate::random::{Random, mixed};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// An error that a run has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    /// A rank gets a wrong byte.
    Wrong { rank: usize, start: u64, buffer: usize, offset: u64 },
    /// No actor can act, but some events have not happened.
    Deadlock,
    /// A start was over for a rank before another rank had started.
    NotMet { rank: usize, start: u64 },
    /// A signal has a wrong count at the end of the run.
    Overrun { rank: usize, signal: usize },
    /// A step names bytes, a rank or a signal that does not exist.
    Nowhere,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Wrong { rank, start, buffer, offset } => {
                write!(f, "rank {rank} got a wrong byte {offset} of buffer {buffer} in start {start}")
            }
            Finding::Deadlock => f.write_str("no actor can act, but some events have not happened"),
            Finding::NotMet { rank, start } => {
                write!(f, "start {start} was over for rank {rank} before all ranks had begun it")
            }
            Finding::Overrun { rank, signal } => {
                write!(f, "signal {signal} of rank {rank} has a wrong count at the end")
            }
            Finding::Nowhere => f.write_str("a step names bytes, a rank or a signal that does not exist"),
        }
    }
}

/// The symbolic value of a byte: an input byte, or a combination of input bytes. Two fingerprints
/// stand for the expression: `set` ignores how the bytes were combined; `tree` includes the order and
/// the brackets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Symbol {
    set: u64,
    tree: u64,
    /// Number of combined bytes; 0 for bytes that nobody gave.
    count: u64,
}

/// Number of values that are combined from the left, by the definition of the combining order.
const GROUP: usize = 32;

impl Symbol {
    fn given(rank: usize, buffer: usize, offset: u64, start: u64) -> Symbol {
        let name = mixed(mixed(mixed(mixed(rank as u64 + 1) ^ (buffer as u64 + 1)) ^ offset) ^ start);
        Symbol { set: name, tree: name, count: 1 }
    }

    fn before(self, other: Symbol) -> Symbol {
        Symbol {
            set: self.set.wrapping_add(other.set),
            tree: mixed(mixed(self.tree).wrapping_add(other.tree)),
            count: if self.count == 0 || other.count == 0 { 0 } else { self.count + other.count },
        }
    }

    /// Combines values in the combining order. Returns `None` if there are none.
    fn combined(mut values: Vec<Symbol>) -> Option<Symbol> {
        while values.len() > 1 {
            let of_group = |group: &[Symbol]| group.iter().copied().reduce(Symbol::before);
            values = values.chunks(GROUP).filter_map(of_group).collect();
        }
        values.pop()
    }

    /// Returns true if both values are equal. How their bytes were combined counts only if
    /// `in_order`.
    fn is(self, other: Symbol, in_order: bool) -> bool {
        self.count == other.count && if in_order { self.tree == other.tree } else { self.set == other.set }
    }
}

/// Consecutive bytes that are moved at once.
#[derive(Clone, Debug)]
struct Piece {
    from: usize,
    to: usize,
    bytes: usize,
    /// The values that were read; `None` before.
    read: Option<Vec<Symbol>>,
}

/// A step in progress.
#[derive(Debug)]
struct RunningStep {
    act: Act,
    from: Vec<Piece>,
    /// The memory that the step reads and the memory that it writes.
    memories: [usize; 2],
    is_reduction_of: Option<usize>,
    number: usize,
}

/// An effect that waits for its step to end.
#[derive(Debug)]
struct Pending {
    run: usize,
    amount: u64,
}

struct Program {
    /// Number of starts that have begun, and of those that are over.
    begun: u64,
    over: u64,
    /// True if the inputs of the next start are written.
    has_given: bool,
}

struct Queue {
    rank: usize,
    steps: Vec<usize>,
    begun: usize,
    /// True while its last reduction is in progress.
    reduces: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Actor {
    Program(usize),
    Queue(usize),
    /// A step, of any start.
    Step(usize, usize),
    Stream(usize),
}

pub(crate) struct Interpreter<'p> {
    plan: &'p Plan,
    starts: u64,
    random: Random,
    programs: Vec<Program>,
    queues: Vec<Queue>,
    running: BTreeMap<usize, RunningStep>,
    runs_begun: usize,
    /// The runs of each step that are in progress, the oldest first.
    of_step: BTreeMap<(usize, usize), VecDeque<usize>>,
    /// For each queue and signal: the rank and the signal, and the effects that have not arrived.
    streams: Vec<((usize, usize), VecDeque<Pending>)>,
    stream_of: BTreeMap<(usize, usize, usize), usize>,
    counts: Vec<Vec<u64>>,
    memories: Vec<Vec<Symbol>>,
    /// For each buffer of each rank, the index of its first memory.
    memory_of: Vec<Vec<usize>>,
    garbage: u64,
    /// All actors, in descending order of priority.
    actors: Vec<Actor>,
}

/// Runs `starts` starts of a plan.
pub(crate) fn run(plan: &Plan, starts: u64, seed: u64) -> Result<(), Finding> {
    Interpreter::new(plan, starts, seed)?.go()
}

impl<'p> Interpreter<'p> {
    fn new(plan: &'p Plan, starts: u64, seed: u64) -> Result<Interpreter<'p>, Finding> {
        let mut memories = Vec::new();
        let mut garbage = 0;
        let mut memory_of = Vec::new();
        for part in &plan.parts {
            let mut first = Vec::new();
            for buffer in &part.buffers {
                first.push(memories.len());
                for _ in 0..buffer.turns.unwrap_or(1).max(1) {
                    let mut fresh = || {
                        garbage += 1;
                        Symbol { set: mixed(garbage), tree: mixed(garbage), count: 0 }
                    };
                    memories.push((0..buffer.bytes).map(|_| fresh()).collect());
                }
            }
            memory_of.push(first);
        }
        let mut queues: Vec<Queue> = Vec::new();
        let mut stream_of = BTreeMap::new();
        let mut streams = Vec::new();
        let mut actors = Vec::new();
        for (rank, part) in plan.parts.iter().enumerate() {
            actors.push(Actor::Program(rank));
            let mut of_rank: BTreeMap<u16, usize> = BTreeMap::new();
            for (number, step) in part.steps.iter().enumerate() {
                let queue = *of_rank.entry(step.queue).or_insert_with(|| {
                    actors.push(Actor::Queue(queues.len()));
                    queues.push(Queue { rank, steps: Vec::new(), begun: 0, reduces: false });
                    queues.len() - 1
                });
                queues[queue].steps.push(number);
                if step.act.moves().is_some() {
                    actors.push(Actor::Step(rank, number));
                }
                for effect in &step.then {
                    let target = plan.parts.get(effect.rank).ok_or(Finding::Nowhere)?;
                    if effect.signal >= target.signals.len() {
                        return Err(Finding::Nowhere);
                    }
                    stream_of.entry((queue, effect.rank, effect.signal)).or_insert_with(|| {
                        actors.push(Actor::Stream(streams.len()));
                        streams.push(((effect.rank, effect.signal), VecDeque::new()));
                        streams.len() - 1
                    });
                }
            }
        }
        for part in &plan.parts {
            let spans = part.contract.gives.iter().map(|give| (give.buffer, give.offset + give.bytes));
            let spans =
                spans.chain(part.contract.gets.iter().map(|gets| (gets.buffer, gets.offset + gets.bytes)));
            for (buffer, end) in spans {
                if part.buffers.get(buffer).is_none_or(|buffer| buffer.bytes < end) {
                    return Err(Finding::Nowhere);
                }
            }
        }
        let program = || Program { begun: 0, over: 0, has_given: false };
        let mut interpreter = Interpreter {
            plan,
            starts,
            random: Random::new(seed),
            programs: plan.parts.iter().map(|_| program()).collect(),
            queues,
            running: BTreeMap::new(),
            runs_begun: 0,
            of_step: BTreeMap::new(),
            streams,
            stream_of,
            counts: plan.parts.iter().map(|part| vec![0; part.signals.len()]).collect(),
            memories,
            memory_of,
            garbage,
            actors,
        };
        interpreter.order_actors();
        Ok(interpreter)
    }

    /// Sets the priorities, of a kind that follows from the seed.
    fn order_actors(&mut self) {
        let by_rank = self.random.one_in(3);
        let late = self.random.below(4); // neither, moves, effects, or both come last
        let salt = self.random.next();
        let rank_of = |actor: Actor| match actor {
            Actor::Program(rank) | Actor::Step(rank, _) => rank,
            Actor::Queue(queue) => self.queues[queue].rank,
            Actor::Stream(stream) => self.streams[stream].0.0,
        };
        let key = |actor: Actor, number: usize| {
            let kind = match actor {
                Actor::Step(..) if late & 1 != 0 => 1,
                Actor::Stream(_) if late & 2 != 0 => 1,
                _ => 0,
            };
            let rank = if by_rank { mixed(salt ^ rank_of(actor) as u64) } else { 0 };
            (rank, kind, mixed(salt.wrapping_add(number as u64)))
        };
        let mut keyed: Vec<_> =
            self.actors.iter().enumerate().map(|(number, &actor)| (key(actor, number), actor)).collect();
        keyed.sort_unstable();
        self.actors = keyed.into_iter().map(|(_, actor)| actor).collect();
    }

    fn go(mut self) -> Result<(), Finding> {
        // In one run of four, the actor is drawn anew each time; in the others, priorities change
        // now and then.
        let is_drawn = self.random.one_in(4);
        let patience = 1 + self.random.below(400);
        loop {
            if is_drawn {
                let first = self.random.below(self.actors.len());
                self.actors.rotate_left(first);
            } else if self.random.one_in(patience) {
                let (one, other) =
                    (self.random.below(self.actors.len()), self.random.below(self.actors.len()));
                let moved = self.actors.remove(one);
                self.actors.insert(other.min(self.actors.len()), moved);
            }
            let mut has_acted = false;
            for place in 0..self.actors.len() {
                if self.act(self.actors[place])? {
                    has_acted = true;
                    break;
                }
            }
            if !has_acted {
                return self.end();
            }
        }
    }

    /// Checks the final state, after which no actor can act any more.
    fn end(self) -> Result<(), Finding> {
        let all_over = self.programs.iter().all(|program| program.over == self.starts);
        let all_begun =
            self.queues.iter().all(|queue| queue.begun as u64 == queue.steps.len() as u64 * self.starts);
        if !all_over || !all_begun || !self.running.is_empty() {
            return Err(Finding::Deadlock);
        }
        for (rank, counts) in self.counts.iter().enumerate() {
            for (signal, &count) in counts.iter().enumerate() {
                if count != self.plan.parts[rank].signals[signal].per_start * self.starts {
                    return Err(Finding::Overrun { rank, signal });
                }
            }
        }
        Ok(())
    }

    /// Lets an actor act, if it can. Returns true if it has acted.
    fn act(&mut self, actor: Actor) -> Result<bool, Finding> {
        match actor {
            Actor::Program(rank) => self.act_program(rank),
            Actor::Queue(queue) => self.act_queue(queue),
            Actor::Step(rank, step) => Ok(self.act_step(rank, step)),
            Actor::Stream(stream) => Ok(self.act_stream(stream)),
        }
    }

    fn is_met(&self, rank: usize, when: When, start: u64) -> bool {
        let Some(start) = start.checked_sub(when.lag.into()) else { return true };
        let Some(signal) = self.plan.parts[rank].signals.get(when.signal) else { return false };
        self.counts[rank][when.signal] >= start * signal.per_start + when.count
    }

    fn act_program(&mut self, rank: usize) -> Result<bool, Finding> {
        let plan = self.plan;
        let (begun, over) = (self.programs[rank].begun, self.programs[rank].over);
        if begun == over {
            if begun == self.starts {
                return Ok(false);
            }
            if !self.programs[rank].has_given {
                self.scramble(rank);
                self.give(rank, begun);
                self.programs[rank].has_given = true;
                return Ok(true);
            }
            self.programs[rank].begun += 1;
            self.counts[rank][0] += 1;
            return Ok(true);
        }
        if !plan.parts[rank].finish.iter().all(|&when| self.is_met(rank, when, over)) {
            return Ok(false);
        }
        self.look(rank, over)?;
        self.programs[rank].over += 1;
        self.programs[rank].has_given = false;
        // The program may use its buffers for something else at once.
        self.scramble(rank);
        if self.random.one_in(2) && over + 1 < self.starts {
            self.give(rank, over + 1);
            self.programs[rank].has_given = true;
        }
        Ok(true)
    }

    /// Writes arbitrary values into all buffers of the program.
    fn scramble(&mut self, rank: usize) {
        for (buffer, room) in self.plan.parts[rank].buffers.iter().enumerate() {
            if room.turns.is_none() && room.swapped.is_none() {
                for byte in &mut self.memories[self.memory_of[rank][buffer]] {
                    self.garbage += 1;
                    *byte = Symbol { set: mixed(self.garbage), tree: mixed(self.garbage), count: 0 };
                }
            }
        }
    }

    fn give(&mut self, rank: usize, start: u64) {
        for span in &self.plan.parts[rank].contract.gives {
            let memory = &mut self.memories[self.memory_of[rank][span.buffer]];
            for offset in span.offset..span.offset + span.bytes {
                memory[offset as usize] = Symbol::given(rank, span.buffer, offset, start);
            }
        }
    }

    /// Compares the outputs of a rank with its contract.
    fn look(&self, rank: usize, start: u64) -> Result<(), Finding> {
        let contract = &self.plan.parts[rank].contract;
        if contract.meets && self.programs.iter().any(|program| program.begun <= start) {
            return Err(Finding::NotMet { rank, start });
        }
        for gets in &contract.gets {
            let memory = &self.memories[self.memory_of[rank][gets.buffer]];
            for at in 0..gets.bytes {
                let given = |&of: &usize| Symbol::given(of, gets.from.buffer, gets.from.offset + at, start);
                let wanted = Symbol::combined(gets.from.ranks.iter().map(given).collect());
                let offset = gets.offset + at;
                if !wanted.is_some_and(|wanted| memory[offset as usize].is(wanted, contract.in_order)) {
                    return Err(Finding::Wrong { rank, start, buffer: gets.buffer, offset });
                }
            }
        }
        Ok(())
    }

    fn act_queue(&mut self, queue: usize) -> Result<bool, Finding> {
        let plan = self.plan;
        let Queue { rank, ref steps, begun, reduces } = self.queues[queue];
        let (start, number) = ((begun / steps.len()) as u64, steps[begun % steps.len()]);
        let step = &plan.parts[rank].steps[number];
        if start == self.starts || self.programs[rank].begun <= start || step.act.is_reduction() && reduces {
            return Ok(false);
        }
        if !self.is_met(rank, step.when, start) {
            return Ok(false);
        }
        self.queues[queue].begun += 1;
        let run = self.runs_begun;
        self.runs_begun += 1;
        for effect in &step.then {
            let stream = self.stream_of[&(queue, effect.rank, effect.signal)];
            self.streams[stream].1.push_back(Pending { run, amount: effect.amount });
        }
        if let Some((from, to, bytes)) = step.act.moves().filter(|&(.., bytes)| bytes > 0) {
            let memories = [self.memory(from, bytes, start)?, self.memory(to, bytes, start)?];
            let pieces = self.cut(from.offset as usize, to.offset as usize, bytes as usize);
            let is_reduction_of = step.act.is_reduction().then_some(queue);
            self.queues[queue].reduces |= is_reduction_of.is_some();
            let running_step = RunningStep { act: step.act, from: pieces, memories, is_reduction_of, number };
            self.running.insert(run, running_step);
            self.of_step.entry((rank, number)).or_default().push_back(run);
        }
        Ok(true)
    }

    /// The memory that holds a location in a start.
    fn memory(&self, place: Place, bytes: u64, start: u64) -> Result<usize, Finding> {
        let buffer = |rank: usize| self.plan.parts.get(rank).and_then(|part| part.buffers.get(place.buffer));
        let named = buffer(place.rank).ok_or(Finding::Nowhere)?;
        let (rank, turn) = match (named.turns, named.swapped) {
            (Some(turns), _) => (place.rank, start % u64::from(turns.max(1))),
            (_, Some(with)) if start % 2 == 1 => (with as usize, 0),
            _ => (place.rank, 0),
        };
        let there = buffer(rank).ok_or(Finding::Nowhere)?;
        if place.offset.checked_add(bytes).is_none_or(|end| end > there.bytes) {
            return Err(Finding::Nowhere);
        }
        Ok(self.memory_of[rank][place.buffer] + turn as usize)
    }

    /// Cuts bytes into pieces, in a random order.
    fn cut(&mut self, from: usize, to: usize, bytes: usize) -> Vec<Piece> {
        let mut cuts = vec![0, bytes, self.random.below(bytes + 1), self.random.below(bytes + 1)];
        cuts.sort_unstable();
        cuts.dedup();
        let piece = |cut: &[usize]| Piece {
            from: from + cut[0],
            to: to + cut[0],
            bytes: cut[1] - cut[0],
            read: None,
        };
        let mut pieces: Vec<Piece> = cuts.windows(2).map(piece).collect();
        for last in (1..pieces.len()).rev() {
            let other = self.random.below(last + 1);
            pieces.swap(last, other);
        }
        pieces
    }

    /// Lets a step in progress move some bytes: it reads them, or writes the values that it has
    /// read.
    fn act_step(&mut self, rank: usize, step: usize) -> bool {
        let Some(runs) = self.of_step.get(&(rank, step)).filter(|runs| !runs.is_empty()) else {
            return false;
        };
        // A run of this step in a later start may move its bytes first.
        let number = runs[self.random.below(runs.len())];
        let Some(run) = self.running.get_mut(&number) else { return false };
        let place = self.random.below(run.from.len());
        let [from, to] = run.memories;
        let piece = &mut run.from[place];
        let (source, target) = (piece.from..piece.from + piece.bytes, piece.to..piece.to + piece.bytes);
        match piece.read.take() {
            None => {
                let mut read = self.memories[from][source].to_vec();
                if let Act::Reduce { in_front, .. } = run.act {
                    for (come, &there) in read.iter_mut().zip(&self.memories[to][target]) {
                        *come = if in_front { come.before(there) } else { there.before(*come) };
                    }
                }
                piece.read = Some(read);
            }
            Some(read) => {
                self.memories[to][target].copy_from_slice(&read);
                run.from.swap_remove(place);
            }
        }
        if run.from.is_empty() {
            let (number, reduced) = (number, run.is_reduction_of);
            debug_assert_eq!(run.number, step);
            self.running.remove(&number);
            if let Some(runs) = self.of_step.get_mut(&(rank, step)) {
                runs.retain(|&one| one != number);
            }
            if let Some(queue) = reduced {
                self.queues[queue].reduces = false;
            }
        }
        true
    }

    /// Applies the next effect of a queue on one signal, if its step has ended.
    fn act_stream(&mut self, stream: usize) -> bool {
        let ((rank, signal), pending) = &mut self.streams[stream];
        let Some(first) = pending.front().filter(|first| !self.running.contains_key(&first.run)) else {
            return false;
        };
        self.counts[*rank][*signal] += first.amount;
        pending.pop_front();
        true
    }
}
