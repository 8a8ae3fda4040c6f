//! Runs one start by itself, in any order that its triggers allow, with all earlier starts over. Signals only grow, so
//! an event that never happens in this run happens in no run.
//!
//! That holds for any number of starts. When all starts before start k are over, each signal has counted k times its
//! total of one start. So a trigger waits for the same additions of start k, whatever k is; or for none, if it looks
//! back beyond the first start. So starts can run one after the other, each in the order found here. In any other run
//! of as many starts, at least as much happens: an event that is possible stays possible when others happen first.

use super::fault::Fault;
use super::unrolled::{Event, Unrolled};
use crate::{SignalId, StepTrigger, started};
use std::collections::BTreeMap;

/// An order in which all events of a start can happen.
#[derive(Debug)]
pub(super) struct DryRun {
    /// The events, in the order in which they happened.
    pub(super) order: Vec<usize>,
}

/// The state of the run.
struct DryRunner<'w> {
    world: &'w Unrolled,
    /// The count of each signal in this start.
    counts: BTreeMap<(usize, SignalId), u64>,
    /// The events of each queue and each program, in their order, as far as they have happened.
    lines: Vec<StepQueue>,
    order: Vec<usize>,
}

/// A sequence of events: a queue, or the program of a rank.
struct StepQueue {
    events: Vec<usize>,
    done: usize,
}

impl StepQueue {
    /// The next event.
    fn next(&self) -> Option<usize> {
        self.events.get(self.done).copied()
    }
}

/// An unmet trigger.
struct UnmetTrigger {
    trigger: StepTrigger,
    /// The count of the signal, and the count that it needs, in the start that the trigger looks back to.
    reached: u64,
    wanted: u64,
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
    /// Lets the next event of a line happen, if it can. Returns the ranks whose signals it raised.
    fn advance(&mut self, line: usize) -> Option<Vec<usize>> {
        let event = self.lines[line].next()?;
        if self.unmet(event).is_some() {
            return None;
        }
        self.lines[line].done += 1;
        self.order.push(event);
        let effects = self.world.effects(event);
        for effect in &effects {
            *self.counts.entry((effect.rank as usize, effect.signal)).or_default() += effect.amount;
        }
        Some(effects.iter().map(|effect| effect.rank as usize).collect())
    }

    /// What the event still waits for.
    fn unmet(&self, event: usize) -> Option<UnmetTrigger> {
        let (rank, triggers) = self.world.triggers(event);
        // No step begins before its rank has started.
        let first = self.world.step(event).map(|_| started());
        first.iter().chain(triggers).find_map(|&trigger| {
            let before = self.world.per_start(rank, trigger.signal).saturating_mul(trigger.lag.into());
            let count = self.counts.get(&(rank, trigger.signal)).copied().unwrap_or(0);
            let (reached, wanted) = (count.saturating_add(before), trigger.count);
            (reached < wanted).then_some(UnmetTrigger { trigger, reached, wanted })
        })
    }

    /// The reason why not all events happened: a trigger whose count is never reached, or else a cycle.
    fn stuck(&self) -> Option<Fault> {
        let world = self.world;
        let waiting: Vec<usize> = self.lines.iter().filter_map(StepQueue::next).collect();
        let first = *waiting.iter().min()?;
        for &event in &waiting {
            let Some(UnmetTrigger { trigger, reached, wanted }) = self.unmet(event) else { continue };
            let rank = world.triggers(event).0;
            let most = world.per_start(rank, trigger.signal).saturating_mul(u64::from(trigger.lag) + 1);
            if wanted > most {
                let signal = world.parts[rank].signal_decls()[trigger.signal.index()].name.clone();
                let at = world.place(event, trigger.lag as usize);
                return Some(Fault::NeverMet { at, signal, reached, wanted });
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
        // Triggers that look back are met at once in the first starts.
        let lags = through.iter().filter_map(|&event| Some(self.unmet(event)?.trigger.lag));
        let start = lags.max().unwrap_or(0) as usize;
        Some(Fault::Cycle { through: through.into_iter().map(|event| world.place(event, start)).collect() })
    }

    /// An event that has not happened and that this one waits for.
    fn waits_for(&self, event: usize) -> Option<usize> {
        let signal = self.unmet(event)?.trigger.signal;
        let rank = self.world.triggers(event).0;
        let additions = self.world.additions(rank, signal);
        // The first waiting event of the line that holds the addition.
        let is_missing = |line: &&StepQueue| {
            additions.iter().any(|addition| line.events[line.done..].contains(&addition.event))
        };
        self.lines.iter().filter(is_missing).filter_map(StepQueue::next).min()
    }
}
