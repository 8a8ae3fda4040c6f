//! One run of all starts, in any order that their triggers allow. Signals only grow, so what never happens in this one
//! happens in none.

use super::fault::Fault;
use super::unrolled::{Event, Unrolled};
use crate::{SignalId, started};
use std::collections::BTreeMap;

/// An order in which everything can happen.
#[derive(Debug)]
pub(super) struct DryRun {
    /// Start and event, as they came.
    pub(super) order: Vec<(usize, usize)>,
}

/// How far the run is.
struct DryRunner<'w> {
    world: &'w Unrolled,
    /// What each signal has counted.
    counts: BTreeMap<(usize, SignalId), u64>,
    /// Each queue's and each program's events in their order, as far as they have happened.
    lines: Vec<StepQueue>,
    order: Vec<(usize, usize)>,
}

/// What happens one after the other: a queue, or the program of a rank.
struct StepQueue {
    events: Vec<usize>,
    done: usize,
}

impl StepQueue {
    /// The start and event that are next.
    fn next(&self, starts: usize) -> Option<(usize, usize)> {
        let start = self.done / self.events.len();
        (start < starts).then(|| (start, self.events[self.done % self.events.len()]))
    }
}

pub(super) fn run(world: &Unrolled) -> Result<DryRun, Box<Fault>> {
    let mut running = DryRunner { world, counts: BTreeMap::new(), lines: lines(world), order: Vec::new() };
    let mut ready: Vec<usize> = (0..running.lines.len()).rev().collect();
    let of_rank = lines_of_ranks(world, &running.lines);
    while let Some(line) = ready.pop() {
        while let Some(raised) = running.advance(line) {
            ready.extend(raised.iter().flat_map(|&rank| &of_rank[rank]));
        }
    }
    match running.stuck() {
        Some(fault) => Err(Box::new(fault)),
        None => Ok(DryRun { order: running.order }),
    }
}

fn lines(world: &Unrolled) -> Vec<StepQueue> {
    let mut queues: BTreeMap<(usize, u16), Vec<usize>> = BTreeMap::new();
    for (rank, part) in world.parts.iter().enumerate() {
        for (number, step) in part.steps().iter().enumerate() {
            queues.entry((rank, step.queue.0)).or_default().push(world.number(Event::Step(rank, number)));
        }
    }
    let programs = (0..world.ranks()).map(|rank| vec![Event::Begin(rank), Event::End(rank)]);
    let programs = programs.map(|events| events.into_iter().map(|event| world.number(event)).collect());
    programs.chain(queues.into_values()).map(|events| StepQueue { events, done: 0 }).collect()
}

fn lines_of_ranks(world: &Unrolled, lines: &[StepQueue]) -> Vec<Vec<usize>> {
    let mut of_rank = vec![Vec::new(); world.ranks()];
    for (number, line) in lines.iter().enumerate() {
        of_rank[world.triggers(line.events[0]).0].push(number);
    }
    of_rank
}

impl DryRunner<'_> {
    /// Lets the next event of a line happen, if it can: whose signals it raised.
    fn advance(&mut self, line: usize) -> Option<Vec<usize>> {
        let (start, event) = self.lines[line].next(self.world.starts)?;
        if self.unmet(start, event).is_some() {
            return None;
        }
        self.lines[line].done += 1;
        self.order.push((start, event));
        let effects = self.world.effects(event);
        for effect in &effects {
            *self.counts.entry((effect.rank as usize, effect.signal)).or_default() += effect.amount;
        }
        Some(effects.iter().map(|effect| effect.rank as usize).collect())
    }

    /// A signal that has not come as far as the event wants: signal, how far, how far it should.
    fn unmet(&self, start: usize, event: usize) -> Option<(SignalId, u64, u64)> {
        let (rank, triggers) = self.world.triggers(event);
        // No step begins before its rank has started.
        let first = self.world.step(event).map(|_| started());
        first.iter().chain(triggers).find_map(|trigger| {
            let wanted = self.world.threshold(rank, trigger, start)?;
            let count = self.counts.get(&(rank, trigger.signal)).copied().unwrap_or(0);
            (count < wanted).then_some((trigger.signal, count, wanted))
        })
    }

    /// Why not everything has happened: a trigger for which nobody adds enough, or else a circle.
    fn stuck(&self) -> Option<Fault> {
        let world = self.world;
        let heads = self.lines.iter().filter_map(|line| line.next(world.starts));
        let waiting: Vec<(usize, usize)> = heads.collect();
        let first = *waiting.iter().min()?;
        for &(start, event) in &waiting {
            let Some((signal, reached, wanted)) = self.unmet(start, event) else { continue };
            let rank = world.triggers(event).0;
            if wanted > (world.starts as u64) * world.per_start(rank, signal) {
                let signal = world.parts[rank].counters()[signal.index()].name.clone();
                return Some(Fault::NeverMet { at: world.place(event, start), signal, reached, wanted });
            }
        }
        let mut through = vec![first];
        while let Some(next) = self.waits_for(*through.last()?) {
            if let Some(begin) = through.iter().position(|&one| one == next) {
                through.drain(..begin);
                break;
            }
            through.push(next);
        }
        let through = through.into_iter().map(|(start, event)| world.place(event, start)).collect();
        Some(Fault::Cycle { through })
    }

    /// An event that has not happened, and for which this one waits.
    fn waits_for(&self, (start, event): (usize, usize)) -> Option<(usize, usize)> {
        let (signal, ..) = self.unmet(start, event)?;
        let rank = self.world.triggers(event).0;
        let additions = self.world.additions(rank, signal);
        // The head of the line in which the addition is: that is what waits.
        let is_missing = |line: &&StepQueue| {
            let holds = |number: usize| line.events.contains(&number);
            additions.iter().any(|addition| holds(addition.event)) && line.next(self.world.starts).is_some()
        };
        let lines = self.lines.iter().filter(is_missing).filter_map(|line| line.next(self.world.starts));
        lines.min()
    }
}
