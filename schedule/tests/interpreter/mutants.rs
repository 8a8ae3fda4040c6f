//! Mutations of a plan, each at a place that is drawn.

use crate::json_plan::{Act, Effect, Plan, Step, When};
use crate::random::Random;

/// A mutation: its name and its function, which returns `None` if the plan has no place for it.
pub(crate) type Mutation = (&'static str, fn(&mut Plan, &mut Random) -> Option<()>);

/// The trigger that is met when the rank has started.
pub(crate) const START: When = When { signal: 0, count: 1, lag: 0 };

pub(crate) const MUTATIONS: &[Mutation] = &[
    ("one trigger that lags is the own start", |plan, random| {
        let step = step(plan, random, |step| step.when.lag > 0)?;
        step.when = START;
        Some(())
    }),
    ("all triggers of a rank that lag are the own start", |plan, random| {
        let rank = rank(plan, random);
        let mut steps = plan.parts[rank].steps.iter_mut().filter(|step| step.when.lag > 0).peekable();
        steps.peek()?;
        steps.for_each(|step| step.when = START);
        Some(())
    }),
    ("all triggers that lag are the own start", |plan, _| {
        let all = plan.parts.iter_mut().flat_map(|part| &mut part.steps);
        let mut steps = all.filter(|step| step.when.lag > 0).peekable();
        steps.peek()?;
        steps.for_each(|step| step.when = START);
        Some(())
    }),
    ("a step that only hands on waits for the own start", |plan, random| {
        step(plan, random, |step| step.act == Act::Nothing && step.when.signal > 0)?.when = START;
        Some(())
    }),
    ("a step that moves waits for the own start", |plan, random| {
        step(plan, random, |step| step.act != Act::Nothing && step.when.signal > 0)?.when = START;
        Some(())
    }),
    ("threshold lower", |plan, random| {
        step(plan, random, |step| step.when.signal > 0 && step.when.count > 0)?.when.count -= 1;
        Some(())
    }),
    ("threshold higher", |plan, random| {
        step(plan, random, |step| step.when.signal > 0)?.when.count += 1;
        Some(())
    }),
    ("threshold of a part", |plan, random| {
        let step = step(plan, random, |step| step.when.count > 1)?;
        step.when.count = 1;
        Some(())
    }),
    ("looks back further", |plan, random| {
        step(plan, random, |step| step.when.signal > 0)?.when.lag += 1;
        Some(())
    }),
    ("looks back much further", |plan, random| {
        let more = 2 + random.below(3) as u32;
        step(plan, random, |step| step.when.lag > 0)?.when.lag += more;
        Some(())
    }),
    ("looks back less", |plan, random| {
        step(plan, random, |step| step.when.lag > 0)?.when.lag -= 1;
        Some(())
    }),
    ("waits for another signal", |plan, random| {
        let rank = rank(plan, random);
        let part = &mut plan.parts[rank];
        let number = random.below(part.steps.len().max(1));
        let signal = random.below(part.signals.len());
        let step = part.steps.get_mut(number).filter(|step| step.when.signal != signal)?;
        step.when.signal = signal;
        Some(())
    }),
    ("an effect is missing", |plan, random| {
        let step = step(plan, random, |step| !step.then.is_empty())?;
        let gone = random.below(step.then.len());
        step.then.remove(gone);
        plan.recount();
        Some(())
    }),
    ("an effect is missing, and expected", |plan, random| {
        step(plan, random, |step| !step.then.is_empty())?.then.pop();
        Some(())
    }),
    ("an effect comes a step sooner", |plan, random| move_effect(plan, random, -1)),
    ("an effect comes a step later", |plan, random| move_effect(plan, random, 1)),
    ("an effect raises another signal", |plan, random| {
        let signals = plan.parts[0].signals.len();
        let signal = 1 + random.below(signals.saturating_sub(1).max(1));
        if signal >= signals {
            return None;
        }
        let effect = step(plan, random, |step| !step.then.is_empty())?.then.first_mut()?;
        if effect.signal == signal {
            return None;
        }
        effect.signal = signal;
        plan.recount();
        Some(())
    }),
    ("an effect raises at another rank", |plan, random| {
        let rank = rank(plan, random);
        let step = step(plan, random, |step| step.then.iter().any(|effect| effect.rank != rank))?;
        let effect = step.then.iter_mut().find(|effect| effect.rank != rank)?;
        effect.rank = rank;
        plan.recount();
        Some(())
    }),
    ("an effect raises more", |plan, random| {
        step(plan, random, |step| !step.then.is_empty())?.then.first_mut()?.amount += 1;
        plan.recount();
        Some(())
    }),
    ("an effect raises much more", |plan, random| {
        step(plan, random, |step| !step.then.is_empty())?.then.last_mut()?.amount += 10;
        plan.recount();
        Some(())
    }),
    ("an effect raises more than is expected", |plan, random| {
        step(plan, random, |step| !step.then.is_empty())?.then.first_mut()?.amount += 1;
        Some(())
    }),
    ("two steps change places", |plan, random| {
        let (rank, number) = pair(plan, random)?;
        plan.parts[rank].steps.swap(number, number + 1);
        Some(())
    }),
    ("two steps wait for each other's trigger", |plan, random| {
        let (rank, number) = pair(plan, random)?;
        let steps = &mut plan.parts[rank].steps;
        let (one, other) = (steps[number].when, steps[number + 1].when);
        (steps[number].when, steps[number + 1].when) = (other, one);
        (one != other).then_some(())
    }),
    ("two steps raise each other's effects", |plan, random| {
        let (rank, number) = pair(plan, random)?;
        let (before, after) = plan.parts[rank].steps.split_at_mut(number + 1);
        std::mem::swap(&mut before[number].then, &mut after[0].then);
        Some(())
    }),
    ("a step is in a queue of its own", |plan, random| {
        step(plan, random, |_| true)?.queue = 999;
        Some(())
    }),
    ("all that comes behind is in another queue", |plan, random| {
        let (rank, number) = pair(plan, random)?;
        plan.parts[rank].steps[number + 1..].iter_mut().for_each(|step| step.queue += 500);
        Some(())
    }),
    ("all steps of a rank are in one queue", |plan, random| {
        let rank = rank(plan, random);
        let steps = &mut plan.parts[rank].steps;
        let first = steps.first()?.queue;
        if steps.iter().all(|step| step.queue == first) {
            return None;
        }
        steps.iter_mut().for_each(|step| step.queue = first);
        Some(())
    }),
    ("the source lies elsewhere", |plan, random| {
        let (from, ..) = step(plan, random, |step| step.act.moves().is_some())?.act.places_mut()?;
        from.offset = if from.offset > 0 { from.offset - 1 } else { 1 };
        Some(())
    }),
    ("the destination lies elsewhere", |plan, random| {
        let (_, to, _) = step(plan, random, |step| step.act.moves().is_some())?.act.places_mut()?;
        to.offset = if to.offset > 0 { to.offset - 1 } else { 1 };
        Some(())
    }),
    ("a byte less", |plan, random| {
        let (.., bytes) = step(plan, random, |step| step.act.moves().is_some())?.act.places_mut()?;
        *bytes -= 1;
        Some(())
    }),
    ("a byte more", |plan, random| {
        let (.., bytes) = step(plan, random, |step| step.act.moves().is_some())?.act.places_mut()?;
        *bytes += 1;
        Some(())
    }),
    ("a buffer takes a turn less", |plan, random| {
        let turns = turns(plan, random)?;
        *turns = turns.checked_sub(1).filter(|&turns| turns > 0)?;
        Some(())
    }),
    ("a buffer takes some turns more", |plan, random| {
        let more = 1 + random.below(3) as u32;
        *turns(plan, random)? += more;
        Some(())
    }),
    ("a buffer takes no turns", |plan, random| {
        let turns = turns(plan, random).filter(|turns| **turns > 1)?;
        *turns = 1;
        Some(())
    }),
    ("two ranks keep what they should swap", |plan, random| {
        let buffer = swapped(plan, random)?;
        for part in &mut plan.parts {
            (part.buffers[buffer].swapped, part.buffers[buffer].turns) = (None, Some(1));
        }
        Some(())
    }),
    ("two ranks take turns where they should swap", |plan, random| {
        let buffer = swapped(plan, random)?;
        for part in &mut plan.parts {
            (part.buffers[buffer].swapped, part.buffers[buffer].turns) = (None, Some(3));
        }
        Some(())
    }),
    ("two ranks swap what takes turns", |plan, random| {
        let part = rank(plan, random);
        let buffer = random.below(plan.parts[part].buffers.len().max(1));
        let bytes = plan.parts.iter().filter_map(|part| Some(part.buffers.get(buffer)?.bytes)).max()?;
        if plan.ranks != 2 || plan.parts[part].buffers.get(buffer)?.turns.is_none() {
            return None;
        }
        for (rank, part) in plan.parts.iter_mut().enumerate() {
            let buffer = &mut part.buffers[buffer];
            (buffer.turns, buffer.swapped, buffer.bytes) = (None, Some(1 - rank as u32), bytes);
        }
        Some(())
    }),
    ("the source is another rank's", |plan, random| {
        let rank = rank(plan, random);
        let (from, ..) = step(plan, random, |step| step.act.moves().is_some())?.act.places_mut()?;
        let is_other = from.rank != rank;
        from.rank = rank;
        is_other.then_some(())
    }),
    ("the destination is another rank's", |plan, random| {
        let rank = rank(plan, random);
        let (_, to, _) = step(plan, random, |step| step.act.moves().is_some())?.act.places_mut()?;
        let is_other = to.rank != rank;
        to.rank = rank;
        is_other.then_some(())
    }),
    ("another buffer is used", |plan, random| {
        let buffers = plan.parts[0].buffers.len();
        let buffer = random.below(buffers.max(1));
        let is_source = random.one_in(2);
        let (from, to, _) = step(plan, random, |step| step.act.moves().is_some())?.act.places_mut()?;
        let place = if is_source { from } else { to };
        let is_other = place.buffer != buffer;
        place.buffer = buffer;
        is_other.then_some(())
    }),
    ("source and destination change places", |plan, random| {
        let (from, to, _) = step(plan, random, |step| step.act.moves().is_some())?.act.places_mut()?;
        std::mem::swap(from, to);
        Some(())
    }),
    ("a reduction copies", |plan, random| {
        let step = step(plan, random, |step| step.act.is_reduction())?;
        let (from, to, bytes) = step.act.moves()?;
        step.act = Act::Copy { from, to, bytes };
        Some(())
    }),
    ("a copy reduces", |plan, random| {
        let step = step(plan, random, |step| matches!(step.act, Act::Copy { .. }))?;
        let (from, to, bytes) = step.act.moves()?;
        step.act = Act::Reduce { from, to, bytes, in_front: false };
        Some(())
    }),
    ("a reduction combines the other way round", |plan, random| {
        let step = step(plan, random, |step| step.act.is_reduction())?;
        if let Act::Reduce { in_front, .. } = &mut step.act {
            *in_front = !*in_front;
        }
        Some(())
    }),
    ("a step does nothing", |plan, random| {
        step(plan, random, |step| step.act.moves().is_some())?.act = Act::Nothing;
        Some(())
    }),
    ("a step is missing", |plan, random| {
        let (rank, number) = any(plan, random, |_| true)?;
        plan.parts[rank].steps.remove(number);
        plan.recount();
        Some(())
    }),
    ("a step comes twice", |plan, random| {
        let (rank, number) = any(plan, random, |_| true)?;
        let again = plan.parts[rank].steps[number].clone();
        plan.parts[rank].steps.insert(number, again);
        plan.recount();
        Some(())
    }),
    ("a step moves twice, and signals once", |plan, random| {
        let (rank, number) = any(plan, random, |step| step.act.moves().is_some())?;
        let again = Step { then: vec![], ..plan.parts[rank].steps[number].clone() };
        plan.parts[rank].steps.insert(number, again);
        Some(())
    }),
    ("a condition of the end is missing", |plan, random| {
        let rank = rank(plan, random);
        let finish = &mut plan.parts[rank].finish;
        if finish.is_empty() {
            return None;
        }
        finish.remove(random.below(finish.len()));
        Some(())
    }),
    ("the end waits for less", |plan, random| {
        finish(plan, random, |when| when.count > 0)?.count -= 1;
        Some(())
    }),
    ("the end waits for the start before", |plan, random| {
        finish(plan, random, |when| when.signal > 0)?.lag += 1;
        Some(())
    }),
    ("two signals are one", |plan, random| {
        let signals = plan.parts.iter().map(|part| part.signals.len()).min()?;
        if signals < 3 {
            return None;
        }
        let (kept, gone) = (1 + random.below(signals - 1), 1 + random.below(signals - 1));
        if kept == gone {
            return None;
        }
        let is_one = |signal: &mut usize| {
            if *signal == gone {
                *signal = kept;
            }
        };
        for part in &mut plan.parts {
            for step in &mut part.steps {
                is_one(&mut step.when.signal);
                step.then.iter_mut().for_each(|effect| is_one(&mut effect.signal));
            }
            part.finish.iter_mut().for_each(|when| is_one(&mut when.signal));
        }
        plan.recount();
        Some(())
    }),
];

/// Returns true if the mutation of that name removes a wait that keeps a start from overtaking
/// another.
pub(crate) fn is_flow_control(name: &str) -> bool {
    name.ends_with("the own start") && name.contains("lag")
}

fn rank(plan: &Plan, random: &mut Random) -> usize {
    random.below(plan.parts.len())
}

/// Draws a step for which `is_it` holds. Returns its rank and number.
fn any(plan: &Plan, random: &mut Random, is_it: impl Fn(&Step) -> bool) -> Option<(usize, usize)> {
    let of_rank = |(rank, part): (usize, &crate::json_plan::Part)| {
        let steps = part.steps.iter().enumerate().filter(|(_, step)| is_it(step));
        steps.map(|(number, _)| (rank, number)).collect::<Vec<_>>()
    };
    let all: Vec<(usize, usize)> = plan.parts.iter().enumerate().flat_map(of_rank).collect();
    random.pick(&all).copied()
}

fn step<'p>(plan: &'p mut Plan, random: &mut Random, is_it: impl Fn(&Step) -> bool) -> Option<&'p mut Step> {
    let (rank, number) = any(plan, random, is_it)?;
    plan.parts[rank].steps.get_mut(number)
}

/// Draws two consecutive steps.
fn pair(plan: &Plan, random: &mut Random) -> Option<(usize, usize)> {
    let (rank, number) = any(plan, random, |_| true)?;
    (number + 1 < plan.parts[rank].steps.len()).then_some((rank, number))
}

fn move_effect(plan: &mut Plan, random: &mut Random, by: isize) -> Option<()> {
    let (rank, number) = any(plan, random, |step| !step.then.is_empty())?;
    let steps = &mut plan.parts[rank].steps;
    let other =
        number.checked_add_signed(by).filter(|&other| other < steps.len() && steps[other].then.len() < 2)?;
    let effect: Effect = steps[number].then.pop()?;
    steps[other].then.push(effect);
    Some(())
}

fn turns<'p>(plan: &'p mut Plan, random: &mut Random) -> Option<&'p mut u32> {
    let buffers = plan.parts.iter().enumerate();
    let all: Vec<(usize, usize)> = buffers
        .flat_map(|(rank, part)| {
            let own = part.buffers.iter().enumerate();
            let own = own.filter(|(_, buffer)| buffer.turns.is_some() && buffer.bytes > 0);
            own.map(move |(number, _)| (rank, number)).collect::<Vec<_>>()
        })
        .collect();
    let &(rank, number) = random.pick(&all)?;
    plan.parts[rank].buffers[number].turns.as_mut()
}

fn swapped(plan: &Plan, random: &mut Random) -> Option<usize> {
    let buffers = plan.parts[0].buffers.iter().enumerate();
    let all: Vec<usize> =
        buffers.filter(|(_, buffer)| buffer.swapped.is_some()).map(|(number, _)| number).collect();
    random.pick(&all).copied()
}

fn finish<'p>(
    plan: &'p mut Plan,
    random: &mut Random,
    is_it: impl Fn(&When) -> bool,
) -> Option<&'p mut When> {
    let rank = rank(plan, random);
    plan.parts[rank].finish.iter_mut().find(|when| is_it(when))
}
