//! Exports a schedule as GOAL operations, one rank at a time.
//!
//! The operations of a rank come from its own part and from those steps of other ranks that reach it: their bytes leave
//! or arrive here, or they raise a signal here. A part does not name the steps of others that reach it. So the parts of
//! all ranks are scanned once for each *window* of ranks, and the steps that reach the window are kept. Memory is
//! bounded by the window and by the largest rank, whatever the number of ranks.
//!
//! *Tags.* Messages from one rank to another are numbered, ordered by the rank and the number of the step that they
//! belong to. Sender and receiver both see exactly these steps, so they agree on the numbers without communication.
//!
//! *Order.* An operation requires those additions to a signal without which its trigger cannot be met, in whatever
//! order the others arrive. A rank sees all additions to its own signals, so this needs no proof. If these additions
//! are not enough to meet the trigger, GOAL cannot express the dependency.

use super::{Goal, GoalOp, OpKind};
use crate::ScheduleError;
use crate::{RankPart, START, Schedule, Step, StepKind, StepTrigger};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a message that only signals: the simulator charges for one byte less than the size, so none is too few.
const WORD_BYTES: u64 = 1;
/// The most steps of others kept at a time, of some 140 bytes each. One rank may be reached by more.
pub(super) const WINDOW_STEPS: u64 = 1 << 20;

/// A step of another rank that reaches `at`.
struct Reaching {
    at: u32,
    by: u32,
    number: u32,
    step: Step,
}

/// Creates the operations of one start, in memory.
pub fn make(schedule: &Schedule) -> Result<Goal, ScheduleError> {
    let mut goal = Goal::default();
    each_rank(schedule, WINDOW_STEPS, |_, operations| {
        goal.ranks.push(operations);
        Ok(())
    })?;
    Ok(goal)
}

/// Computes the operations of each rank, in the order of ranks, and passes them on.
pub(super) fn each_rank(
    schedule: &Schedule,
    window_steps: u64,
    mut take: impl FnMut(usize, Vec<GoalOp>) -> Result<(), ScheduleError>,
) -> Result<(), ScheduleError> {
    let counts = count(schedule)?;
    let mut first = 0;
    while first < counts.len() {
        let (mut end, mut steps) = (first + 1, counts[first]);
        while end < counts.len() && steps + counts[end] <= window_steps {
            steps += counts[end];
            end += 1;
        }
        let reaching = collect(schedule, first..end, steps);
        let mut rest = &reaching[..];
        for rank in first..end {
            let (own, others) = rest.split_at(rest.partition_point(|one| one.at as usize <= rank));
            rest = others;
            take(rank, FromSchedule::of(&schedule.part(rank), own)?)?;
        }
        first = end;
    }
    Ok(())
}

/// Number of steps of others that reach each rank.
fn count(schedule: &Schedule) -> Result<Vec<u64>, ScheduleError> {
    let mut counts = vec![0_u64; schedule.ranks()];
    for rank in 0..schedule.ranks() {
        for (number, step) in schedule.part(rank).steps().iter().enumerate() {
            for at in reached(rank, step) {
                let count = counts.get_mut(at as usize);
                let no_rank =
                    || wrong(format!("step {number} of rank {rank} names rank {at}, which does not exist"));
                *count.ok_or_else(no_rank)? += 1;
            }
        }
    }
    Ok(counts)
}

/// The steps of others that reach some ranks, rank by rank, in the order of the preparing ranks.
fn collect(schedule: &Schedule, ranks: Range<usize>, count: u64) -> Vec<Reaching> {
    let mut reaching = Vec::with_capacity(count as usize);
    for by in 0..schedule.ranks() {
        for (number, step) in schedule.part(by).steps().iter().enumerate() {
            let at = reached(by, step).filter(|&at| ranks.contains(&(at as usize)));
            let of_it = |at| Reaching { at, by: by as u32, number: number as u32, step: *step };
            reaching.extend(at.map(of_it));
        }
    }
    reaching.sort_unstable_by_key(|one| (one.at, one.by, one.number));
    reaching
}

/// The other ranks that a step concerns, each once.
fn reached(by: usize, step: &Step) -> impl Iterator<Item = u32> {
    let moved = match step.action {
        StepKind::Nothing => [None; 2],
        StepKind::Copy { from, to, .. } | StepKind::Reduce { from, to, .. } => {
            [Some(from.rank), Some(to.rank)]
        }
    };
    let [one, other] = step.effects.map(|effect| effect.map(|effect| effect.rank));
    let all = [moved[0], moved[1], one, other];
    let is_new = move |&place: &usize| all[place] != Some(by as u32) && !all[..place].contains(&all[place]);
    (0..all.len()).filter(is_new).filter_map(move |place| all[place])
}

fn wrong(why: String) -> ScheduleError {
    ScheduleError::NotExpressible(why)
}

/// An operation: its rank, and its number if it is one of the rank being exported.
type OpId = (usize, Option<usize>);

/// An addition to a signal of the rank.
#[derive(Clone, Copy)]
struct SignalAddition {
    /// The sum of all additions before it in its stream.
    before: u64,
    amount: u64,
    /// The number of the step.
    number: usize,
    /// The operation with which it arrives.
    operation: usize,
}

/// A source of additions: a rank and one of its queues; `None` is the program's start. Additions of one source arrive
/// in order.
type Adder = (usize, Option<u16>);

/// A signal: its sources with their additions, and the total.
#[derive(Default)]
struct RankSignal {
    streams: BTreeMap<Adder, Vec<SignalAddition>>,
    sum: u64,
}

/// A rank being exported.
struct FromSchedule {
    rank: usize,
    operations: Vec<GoalOp>,
    /// Number of messages sent to each rank, and received from it.
    sent: BTreeMap<usize, u32>,
    received: BTreeMap<usize, u32>,
    signals: Vec<RankSignal>,
}

/// The first operation of an own step, and the last one that this rank sees: others may have to wait for them.
#[derive(Clone, Copy)]
struct Own {
    first: usize,
    over: usize,
}

/// A queue being exported.
#[derive(Default)]
struct Line {
    last: Option<usize>,
    reduction: Option<usize>,
    /// Number of additions of each stream that its steps have waited for.
    waited: BTreeMap<(usize, Adder), usize>,
}

impl FromSchedule {
    fn of(part: &RankPart, reaching: &[Reaching]) -> Result<Vec<GoalOp>, ScheduleError> {
        let rank = part.rank();
        let signals = part.signal_decls().iter().map(|_| RankSignal::default()).collect();
        let (sent, received) = (BTreeMap::new(), BTreeMap::new());
        let mut making = FromSchedule { rank, operations: Vec::new(), sent, received, signals };
        let begin = making.push("begin".into(), OpKind::Calc { units: 0 });
        making.add((rank, None), 0, START.index(), 1, begin)?;
        let (before, after) = reaching.split_at(reaching.partition_point(|one| (one.by as usize) < rank));
        for one in before {
            making.step(one.by as usize, one.number as usize, &one.step)?;
        }
        let own = part.steps().iter().enumerate();
        let own = own.map(|(number, step)| making.step(rank, number, step)).collect::<Result<Vec<_>, _>>()?;
        for one in after {
            making.step(one.by as usize, one.number as usize, &one.step)?;
        }
        making.check_sums(part)?;
        making.order(part, &own, begin)?;
        making.end(part, begin)?;
        Ok(making.operations)
    }

    /// Adds the operations of a step on this rank. Returns the first and the last of them.
    fn step(&mut self, by: usize, number: usize, step: &Step) -> Result<Own, ScheduleError> {
        let name = format!("r{by}s{number}");
        let (first, over, source) = match step.action {
            StepKind::Nothing => {
                let join = self.calc(by, &name, "", 0);
                (join, join, join)
            }
            StepKind::Copy { from, to, bytes } => {
                self.transfer(by, &name, (from.rank as usize, to.rank as usize), bytes, false)?
            }
            StepKind::Reduce { from, to, bytes, .. } => {
                self.transfer(by, &name, (from.rank as usize, to.rank as usize), bytes, true)?
            }
        };
        for (effect, raised) in step.effects().enumerate() {
            let whose = raised.rank as usize;
            let arrival = match [over, source].into_iter().find(|place| place.0 == whose) {
                Some(place) => place,
                None => {
                    let words = [format!("_raise{effect}"), format!("_raised{effect}")];
                    let (send, recv) =
                        self.message(&name, [&words[0], &words[1]], (over.0, whose), WORD_BYTES)?;
                    self.wait(send, over);
                    recv
                }
            };
            if let (_, Some(operation)) = arrival {
                let adder = (by, Some(step.queue.0));
                self.add(adder, number, raised.signal.index(), raised.amount, operation)?;
            }
        }
        let here = |places: &[OpId]| places.iter().find_map(|place| place.1).unwrap_or(0);
        Ok(Own { first: here(&[first]), over: here(&[over, source, first]) })
    }

    /// Adds a copy or reduction. Returns the first operation, the one with which the bytes have arrived, and the one
    /// with which they have been read.
    fn transfer(
        &mut self,
        by: usize,
        name: &str,
        (source, target): (usize, usize),
        bytes: u64,
        is_sum: bool,
    ) -> Result<(OpId, OpId, OpId), ScheduleError> {
        // The owner of the source moves the bytes. Another rank that prepares the step sends it a message.
        let order = if source == by {
            None
        } else {
            Some(self.message(name, ["", "_go"], (by, source), WORD_BYTES)?)
        };
        let moves = if order.is_some() { "_move" } else { "" };
        let (read, mut over) = if source == target {
            let calc = self.calc(source, name, moves, bytes);
            (calc, calc)
        } else {
            self.message(name, [moves, "_in"], (source, target), bytes)?
        };
        if is_sum && source != target {
            let sum = self.calc(target, name, "_sum", bytes);
            self.wait(sum, over);
            over = sum;
        }
        let first = match order {
            Some((send, go)) => {
                self.wait(read, go);
                send
            }
            None => read,
        };
        Ok((first, over, read))
    }

    /// Adds a message: both ends count it, whichever of them is exported.
    fn message(
        &mut self,
        name: &str,
        [sent, got]: [&str; 2],
        (from, to): (usize, usize),
        bytes: u64,
    ) -> Result<(OpId, OpId), ScheduleError> {
        let (mut send, mut recv) = ((from, None), (to, None));
        let no_tag = || wrong(format!("rank {from} sends rank {to} more messages than there are tags"));
        if from == self.rank {
            let tag = next(&mut self.sent, to).ok_or_else(no_tag)?;
            send.1 = Some(self.push(format!("{name}{sent}"), OpKind::Send { bytes, to, tag }));
        }
        if to == self.rank {
            let tag = next(&mut self.received, from).ok_or_else(no_tag)?;
            recv.1 = Some(self.push(format!("{name}{got}"), OpKind::Recv { bytes, from, tag }));
        }
        Ok((send, recv))
    }

    fn calc(&mut self, whose: usize, name: &str, suffix: &str, units: u64) -> OpId {
        let is_own = whose == self.rank;
        (whose, is_own.then(|| self.push(format!("{name}{suffix}"), OpKind::Calc { units })))
    }

    fn push(&mut self, label: String, does: OpKind) -> usize {
        self.operations.push(GoalOp { label, does, requires: Vec::new(), irequires: Vec::new() });
        self.operations.len() - 1
    }

    fn wait(&mut self, (_, what): OpId, (_, before): OpId) {
        if let (Some(what), Some(before)) = (what, before) {
            self.operations[what].requires.push(before);
        }
    }

    fn add(
        &mut self,
        adder: Adder,
        number: usize,
        signal: usize,
        amount: u64,
        operation: usize,
    ) -> Result<(), ScheduleError> {
        let (rank, by) = (self.rank, adder.0);
        let no_signal = || {
            wrong(format!("step {number} of rank {by} raises a signal of rank {rank} that does not exist"))
        };
        let signal = self.signals.get_mut(signal).ok_or_else(no_signal)?;
        signal.sum = signal.sum.saturating_add(amount);
        let stream = signal.streams.entry(adder).or_default();
        let before = stream.last().map_or(0, |last| last.before.saturating_add(last.amount));
        stream.push(SignalAddition { before, amount, number, operation });
        Ok(())
    }

    fn check_sums(&self, part: &RankPart) -> Result<(), ScheduleError> {
        let pairs = part.signal_decls().iter().zip(&self.signals);
        let unequal = pairs.into_iter().find(|(counter, signal)| counter.per_start != signal.sum);
        match unequal {
            None => Ok(()),
            Some((counter, signal)) => Err(wrong(format!(
                "the schedule is wrong: signal {:?} of rank {} counts {} in a start, but the steps add {}",
                counter.name, self.rank, counter.per_start, signal.sum
            ))),
        }
    }

    /// The dependencies of each own step.
    fn order(&mut self, part: &RankPart, own: &[Own], begin: usize) -> Result<(), ScheduleError> {
        let mut lines: BTreeMap<u16, Line> = BTreeMap::new();
        for (number, step) in part.steps().iter().enumerate() {
            let line = lines.entry(step.queue.0).or_default();
            let place = (number, step.queue.0);
            let mut requires = self.causes(part, &step.trigger, Some(place), &mut line.waited)?;
            match line.last.replace(own[number].first) {
                Some(before) => self.operations[own[number].first].irequires.push(before),
                None => requires.push(begin), // no step begins before its rank has started
            }
            if matches!(step.action, StepKind::Reduce { .. }) {
                requires.extend(line.reduction.replace(own[number].over));
            }
            self.require(own[number].first, requires);
        }
        Ok(())
    }

    fn end(&mut self, part: &RankPart, begin: usize) -> Result<(), ScheduleError> {
        let end = self.push("end".into(), OpKind::Calc { units: 0 });
        let mut waited = BTreeMap::new();
        let mut requires = Vec::new();
        for trigger in part.finish_conditions() {
            requires.extend(self.causes(part, trigger, None, &mut waited)?);
        }
        self.operations[end].irequires.push(begin);
        self.require(end, requires);
        Ok(())
    }

    fn require(&mut self, operation: usize, mut requires: Vec<usize>) {
        requires.sort_unstable();
        requires.dedup();
        self.operations[operation].requires = requires;
    }

    /// The operations without which a trigger cannot be met, except those that `waited` has waited for before. `at`:
    /// the number and queue of the step that waits; `None` for the end of the start.
    fn causes(
        &self,
        part: &RankPart,
        trigger: &StepTrigger,
        at: Option<(usize, u16)>,
        waited: &mut BTreeMap<(usize, Adder), usize>,
    ) -> Result<Vec<usize>, ScheduleError> {
        let index = trigger.signal.index();
        let what = || match at {
            Some((number, _)) => format!("step {number} of rank {}", self.rank),
            None => format!("the end of rank {}", self.rank),
        };
        let (Some(signal), Some(counter)) = (self.signals.get(index), part.signal_decls().get(index)) else {
            return Err(wrong(format!("{} waits for a signal that does not exist", what())));
        };
        // Additions of earlier starts have arrived; a trigger that looks back needs less of this one.
        let past = counter.per_start.saturating_mul(trigger.lag.into());
        let wanted = trigger.count.saturating_sub(past);
        if wanted == 0 {
            return Ok(Vec::new());
        }
        // Additions of the step itself, and of those behind it in its queue, come later.
        let until = |adder: &Adder, stream: &[SignalAddition]| match at {
            Some((number, queue)) if *adder == (self.rank, Some(queue)) => {
                stream.partition_point(|one| one.number < number)
            }
            _ => stream.len(),
        };
        let sum_of = |stream: &[SignalAddition]| stream.last().map_or(0, |last| last.before + last.amount);
        let own = at.and_then(|(_, queue)| signal.streams.get_key_value(&(self.rank, Some(queue))));
        let late = own.map_or(0, |(adder, stream)| sum_of(stream) - sum_of(&stream[..until(adder, stream)]));
        let all = signal.sum - late;
        if wanted > all {
            return Err(wrong(format!(
                "the schedule is wrong: {} waits until signal {:?} has counted {wanted}, but it counts only {all} \
                 until then",
                what(),
                counter.name
            )));
        }
        let (mut causes, mut known) = (Vec::new(), 0_u64);
        for (adder, stream) in &signal.streams {
            let stream = &stream[..until(adder, stream)];
            // An addition is required if all others, except those behind it in its stream, are too few.
            let others = all - sum_of(stream);
            let needed = stream.partition_point(|one| others + one.before < wanted);
            known += sum_of(&stream[..needed]);
            if needed > 0 {
                let before = waited.entry((index, *adder)).or_default();
                causes.extend(stream.iter().take(needed).skip(*before).map(|one| one.operation));
                *before = needed.max(*before);
            }
        }
        if known < wanted {
            return Err(wrong(format!(
                "{} waits until signal {:?} has counted {wanted} of {all}, whichever steps add first: GOAL cannot \
                 express this, because its operations wait for given messages",
                what(),
                counter.name
            )));
        }
        Ok(causes)
    }
}

/// The next number of messages to or from a rank.
fn next(counts: &mut BTreeMap<usize, u32>, peer: usize) -> Option<u32> {
    let count = counts.entry(peer).or_default();
    let number = *count;
    *count = number.checked_add(1)?;
    Some(number)
}
