//! The events of one start of a schedule, and their additions to signals. All starts are alike.

use super::CheckReport;
use super::fault::{Fault, FaultSite};
use crate::{
    BufferDecl, BufferKind, BufferSpan, Contract, Location, RankPart, START, Schedule, SignalId, Step,
    StepEffect, StepKind, StepTrigger,
};
use std::collections::BTreeMap;

/// The events of a start; events of one kind have consecutive numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    /// The program of the rank starts, after it has written its inputs.
    Begin(usize),
    /// The start is over for the rank, whose program then reads its outputs.
    End(usize),
    /// A step of the rank, by its index.
    Step(usize, usize),
}

/// An addition of an event to a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Addition {
    /// The event, within its start.
    pub(super) event: usize,
    /// The index of the effect.
    pub(super) slot: usize,
    /// The amount.
    pub(super) amount: u64,
    /// The stream: additions of one queue to one signal happen in their order.
    pub(super) stream: usize,
    /// The position in the stream, within its start.
    pub(super) place: usize,
}

/// One start of a schedule.
#[derive(Debug)]
pub(super) struct Unrolled {
    pub(super) parts: Vec<RankPart>,
    pub(super) contracts: Vec<Contract>,
    /// The number of the first step of each rank.
    first_step: Vec<usize>,
    steps: usize,
    /// The additions to each signal, by rank and signal.
    additions: BTreeMap<(usize, SignalId), Vec<Addition>>,
    /// The additions of each stream in a start: event and effect.
    pub(super) streams: Vec<Vec<(usize, usize)>>,
    /// For each step the previous event in its queue, in the same start; and the last step of each queue.
    before: Vec<Option<usize>>,
    last: BTreeMap<(usize, u16), usize>,
    /// The previous reduction in the queue, and true if it belongs to the start before; `None` for steps that are no
    /// reductions. It is the step itself if its queue has no other reduction.
    reduction_before: Vec<Option<(usize, bool)>>,
}

impl Unrolled {
    pub(super) fn lay_out(schedule: &Schedule) -> Result<Unrolled, Box<Fault>> {
        let ranks = schedule.ranks();
        let parts: Vec<RankPart> = (0..ranks).map(|rank| schedule.part(rank)).collect();
        let contracts = (0..ranks).map(|rank| schedule.contract(rank)).collect();
        let mut first_step = Vec::with_capacity(ranks);
        let mut steps = 0;
        for part in &parts {
            first_step.push(steps);
            steps += part.steps().len();
        }
        let mut world = Unrolled {
            parts,
            contracts,
            first_step,
            steps,
            additions: BTreeMap::new(),
            streams: Vec::new(),
            before: Vec::new(),
            last: BTreeMap::new(),
            reduction_before: Vec::new(),
        };
        world.check_names()?;
        world.chain_queues();
        world.chain_reductions();
        world.collect_additions();
        world.check_sums()?;
        Ok(world)
    }

    pub(super) fn ranks(&self) -> usize {
        self.parts.len()
    }

    /// Number of events of one start.
    pub(super) fn events(&self) -> usize {
        2 * self.ranks() + self.steps
    }

    /// The number of an event within its start.
    pub(super) fn number(&self, event: Event) -> usize {
        match event {
            Event::Begin(rank) => rank,
            Event::End(rank) => self.ranks() + rank,
            Event::Step(rank, step) => 2 * self.ranks() + self.first_step[rank] + step,
        }
    }

    /// The event with that number.
    pub(super) fn event(&self, number: usize) -> Event {
        let ranks = self.ranks();
        if number < ranks {
            return Event::Begin(number);
        }
        if number < 2 * ranks {
            return Event::End(number - ranks);
        }
        let step = number - 2 * ranks;
        let rank = self.first_step.partition_point(|&first| first <= step) - 1;
        Event::Step(rank, step - self.first_step[rank])
    }

    /// The step of an event, if it is one.
    pub(super) fn step(&self, number: usize) -> Option<&Step> {
        match self.event(number) {
            Event::Step(rank, step) => Some(&self.parts[rank].steps()[step]),
            _ => None,
        }
    }

    /// The effects of an event.
    pub(super) fn effects(&self, number: usize) -> Vec<StepEffect> {
        match self.event(number) {
            Event::Begin(rank) => vec![START.on(rank, 1)],
            Event::End(_) => Vec::new(),
            Event::Step(rank, step) => self.parts[rank].steps()[step].effects().collect(),
        }
    }

    /// The triggers of an event, with its rank.
    pub(super) fn triggers(&self, number: usize) -> (usize, &[StepTrigger]) {
        match self.event(number) {
            Event::Begin(rank) => (rank, &[]),
            Event::End(rank) => (rank, self.parts[rank].finish_conditions()),
            Event::Step(rank, step) => (rank, std::slice::from_ref(&self.parts[rank].steps()[step].trigger)),
        }
    }

    /// The total that is added to a signal in each start.
    pub(super) fn per_start(&self, rank: usize, signal: SignalId) -> u64 {
        self.parts[rank].signal_decls()[signal.index()].per_start
    }

    /// The additions to a signal in each start.
    pub(super) fn additions(&self, rank: usize, signal: SignalId) -> &[Addition] {
        self.additions.get(&(rank, signal)).map_or(&[], Vec::as_slice)
    }

    /// The previous event in the queue, and true if it belongs to the start before.
    pub(super) fn before(&self, number: usize) -> Option<(usize, bool)> {
        let Event::Step(rank, step) = self.event(number) else { return None };
        let queue = self.parts[rank].steps()[step].queue.0;
        Some(match self.before[number - 2 * self.ranks()] {
            Some(before) => (before, false),
            None => (self.last[&(rank, queue)], true),
        })
    }

    /// The kind of the buffer at that location.
    pub(super) fn kind(&self, place: &Location) -> BufferKind {
        self.parts[place.rank as usize].buffer_decls()[place.buffer.index()].kind
    }

    /// Describes an event for a fault.
    pub(super) fn place(&self, number: usize, start: usize) -> FaultSite {
        match self.event(number) {
            Event::Begin(rank) => FaultSite { rank, start, step: None, is_end: false },
            Event::End(rank) => FaultSite { rank, start, step: None, is_end: true },
            Event::Step(rank, step) => FaultSite { rank, start, step: Some(step), is_end: false },
        }
    }

    /// Checks that all signals and buffers named exist, and that all locations lie within their buffers.
    fn check_names(&self) -> Result<(), Box<Fault>> {
        for (rank, part) in self.parts.iter().enumerate() {
            for (number, step) in part.steps().iter().enumerate() {
                let at = FaultSite { rank, start: 0, step: Some(number), is_end: false };
                let has_signal = |rank: usize, signal: SignalId| {
                    self.parts.get(rank).is_some_and(|part| signal.index() < part.signal_decls().len())
                };
                let effects_are_there = step
                    .effects()
                    .all(|effect| effect.amount > 0 && has_signal(effect.rank as usize, effect.signal));
                if !effects_are_there || !has_signal(rank, step.trigger.signal) {
                    return Err(Box::new(Fault::NoSignal { at }));
                }
                let (StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. }) =
                    step.action
                else {
                    continue;
                };
                for place in [from, to] {
                    if !self.is_there(rank, &place, bytes) {
                        return Err(Box::new(Fault::OutOfBuffer { at, place, bytes }));
                    }
                }
            }
            for trigger in part.finish_conditions() {
                if trigger.signal.index() >= part.signal_decls().len() {
                    let at = FaultSite { rank, start: 0, step: None, is_end: true };
                    return Err(Box::new(Fault::NoSignal { at }));
                }
            }
        }
        self.check_contracts()
    }

    /// Checks that inputs and outputs lie within buffers.
    fn check_contracts(&self) -> Result<(), Box<Fault>> {
        for (rank, contract) in self.contracts.iter().enumerate() {
            let inputs = contract.inputs.iter().map(|span| (span, false));
            let outputs = contract.outputs.iter().map(|(span, _)| (span, true));
            for (&BufferSpan { buffer, offset, bytes }, is_end) in inputs.chain(outputs) {
                let place = Location { rank: rank as u32, buffer, offset };
                // Only the program's own buffers hold inputs and outputs.
                if bytes > 0 && !(self.is_there(rank, &place, bytes) && self.kind(&place) == BufferKind::User)
                {
                    let at = FaultSite { rank, start: 0, step: None, is_end };
                    return Err(Box::new(Fault::OutOfBuffer { at, place, bytes }));
                }
            }
        }
        Ok(())
    }

    /// Returns true if the bytes exist for the rank: only the two ranks that swap a buffer may access it.
    fn is_there(&self, by: usize, place: &Location, bytes: u64) -> bool {
        let decl = |rank: u32| self.parts.get(rank as usize)?.buffer_decls().get(place.buffer.index());
        let Some(kind) = decl(place.rank).map(|decl| decl.kind) else { return false };
        let fits = |decl: &BufferDecl| place.offset.checked_add(bytes).is_some_and(|end| end <= decl.bytes);
        let is_known = |rank: u32| !kind.is_swapped() || decl(rank).is_some_and(|decl| decl.kind == kind);
        let mut homes = [0, 1].map(|start| kind.home(place.rank, start).0).into_iter();
        is_known(by as u32) && homes.all(|home| is_known(home) && decl(home).is_some_and(fits))
    }

    fn chain_queues(&mut self) {
        for (rank, part) in self.parts.iter().enumerate() {
            for (number, step) in part.steps().iter().enumerate() {
                let event = 2 * self.parts.len() + self.first_step[rank] + number;
                self.before.push(self.last.insert((rank, step.queue.0), event));
            }
        }
    }

    fn chain_reductions(&mut self) {
        let queue = |event: usize| {
            let step = self.step(event).filter(|step| matches!(step.action, StepKind::Reduce { .. }))?;
            Some((event, (self.triggers(event).0, step.queue.0)))
        };
        let reductions: Vec<(usize, (usize, u16))> =
            (2 * self.ranks()..self.events()).filter_map(queue).collect();
        let last: BTreeMap<(usize, u16), usize> =
            reductions.iter().map(|&(event, queue)| (queue, event)).collect();
        let mut before: BTreeMap<(usize, u16), usize> = BTreeMap::new();
        self.reduction_before = vec![None; self.steps];
        for (event, queue) in reductions {
            let earlier = before.insert(queue, event).map(|earlier| (earlier, false));
            let first = 2 * self.ranks();
            self.reduction_before[event - first] = Some(earlier.unwrap_or((last[&queue], true)));
        }
    }

    /// The previous reduction in the queue, and true if it belongs to the start before.
    pub(super) fn reduction_before(&self, number: usize) -> Option<(usize, bool)> {
        self.reduction_before.get(number.checked_sub(2 * self.ranks())?).copied().flatten()
    }

    fn collect_additions(&mut self) {
        let mut numbers: BTreeMap<(usize, Option<u16>, u32, SignalId), usize> = BTreeMap::new();
        for event in 0..self.events() {
            let queue = self.step(event).map(|step| step.queue.0);
            let rank = self.triggers(event).0;
            for (slot, effect) in self.effects(event).into_iter().enumerate() {
                let fresh = self.streams.len();
                let stream = *numbers.entry((rank, queue, effect.rank, effect.signal)).or_insert(fresh);
                if stream == fresh {
                    self.streams.push(Vec::new());
                }
                let place = self.streams[stream].len();
                self.streams[stream].push((event, slot));
                let addition = Addition { event, slot, amount: effect.amount, stream, place };
                self.additions.entry((effect.rank as usize, effect.signal)).or_default().push(addition);
            }
        }
    }

    /// Checks that the additions to a signal in a start make up the total that its rank declares.
    fn check_sums(&self) -> Result<(), Box<Fault>> {
        for (rank, part) in self.parts.iter().enumerate() {
            for (number, counter) in part.signal_decls().iter().enumerate() {
                let added = self
                    .additions(rank, SignalId(number as u32))
                    .iter()
                    .map(|addition| addition.amount)
                    .sum();
                if added != counter.per_start {
                    let (signal, said) = (counter.name.clone(), counter.per_start);
                    return Err(Box::new(Fault::WrongSum { rank, signal, said, added }));
                }
            }
        }
        Ok(())
    }

    /// The report about a correct schedule.
    pub(super) fn numbers(&self, depth: usize) -> CheckReport {
        let mut queues: BTreeMap<(usize, u16), usize> = BTreeMap::new();
        let mut moved = vec![[0_u64; 2]; self.ranks()];
        for (rank, part) in self.parts.iter().enumerate() {
            for step in part.steps() {
                *queues.entry((rank, step.queue.0)).or_default() += 1;
                if let StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. } =
                    step.action
                    && from.rank != to.rank
                {
                    moved[from.rank as usize][0] += bytes;
                    moved[to.rank as usize][1] += bytes;
                }
            }
        }
        CheckReport {
            ranks: self.ranks(),
            steps: self.steps,
            depth,
            busiest_bytes: moved.iter().map(|[out, into]| *out.max(into)).max().unwrap_or(0),
            queue_steps_max: queues.into_values().max().unwrap_or(0),
        }
    }
}
