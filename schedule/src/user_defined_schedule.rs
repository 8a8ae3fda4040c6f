//! Explicit schedules: all parts are given, by a file or by a program.
//!
//! Parts are validated before anything is computed from them: an impossible schedule is an error that names the place.
//! [`Schedule::check`] then proves whether it fulfils its contract and stays within its buffers.

use super::{
    BufferDecl, BufferId, BufferSpan, Contract, EFFECTS_MAX, Location, RankPart, Schedule, SignalDecl,
    StepEffect, StepKind,
};
use super::{BufferKind, Step, StepTrigger};
use std::fmt;

/// The explicit part of one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExplicitPart {
    /// The buffers.
    pub buffers: Vec<BufferDecl>,
    /// The signals; the first one is [`START`](super::START).
    pub signals: Vec<SignalDecl>,
    /// The steps.
    pub steps: Vec<ExplicitStep>,
    /// The completion conditions.
    pub finish: Vec<StepTrigger>,
    /// The inputs and outputs of the rank.
    pub contract: Contract,
}

/// An explicit step. The number of effects is validated later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplicitStep {
    /// The queue of the rank.
    pub queue: u16,
    /// The condition that the step waits for.
    pub trigger: StepTrigger,
    /// The action.
    pub action: StepKind,
    /// The signals that the step raises.
    pub effects: Vec<StepEffect>,
}

/// The largest buffer in bytes: a rank has no more addresses.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::BYTES_MAX;
/// assert_eq!(BYTES_MAX, 1 << 40); // 1 TiB
/// ```
pub const BYTES_MAX: u64 = 1 << 40;
/// The largest count of a signal in a start. Sums over all steps stay below 2^64.
pub const COUNT_MAX: u64 = 1 << 32;
/// The most starts that a trigger may look back.
pub const LAG_MAX: u32 = 16;

/// Why explicit parts form no valid schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidSchedule {
    /// The rank with the invalid part; `None` if the fault concerns all parts.
    pub rank: Option<usize>,
    /// The index of the invalid step, if a step is invalid.
    pub step: Option<usize>,
    /// The reason.
    pub why: String,
}

impl fmt::Display for InvalidSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rank, self.step) {
            (Some(rank), Some(step)) => write!(f, "rank {rank}, step {step}: {}", self.why),
            (Some(rank), None) => write!(f, "rank {rank}: {}", self.why),
            _ => f.write_str(&self.why),
        }
    }
}

impl std::error::Error for InvalidSchedule {}

impl RankPart {
    /// The part in its explicit form, with its contract.
    pub fn to_explicit(&self, contract: Contract) -> ExplicitPart {
        let step = |step: &Step| ExplicitStep {
            queue: step.queue.0,
            trigger: step.trigger,
            action: step.action,
            effects: step.effects().collect(),
        };
        ExplicitPart {
            buffers: self.buffer_decls().to_vec(),
            signals: self.signal_decls().to_vec(),
            steps: self.steps().iter().map(step).collect(),
            finish: self.finish_conditions().to_vec(),
            contract,
        }
    }
}

impl Schedule {
    /// Creates a schedule of explicit parts; `parts[rank]` is the part of that rank.
    ///
    /// Errors: no parts; a rank, buffer or signal that does not exist; more than [`EFFECTS_MAX`] effects; offsets,
    /// counts and lags beyond [`BYTES_MAX`], [`COUNT_MAX`] and [`LAG_MAX`].
    pub fn from_parts(
        name: impl Into<String>,
        parts: Vec<ExplicitPart>,
    ) -> Result<Schedule, InvalidSchedule> {
        if parts.is_empty() {
            return Err(InvalidSchedule { rank: None, step: None, why: "the schedule has no ranks".into() });
        }
        for rank in 0..parts.len() {
            look_at_part(&parts, rank)?;
        }
        let (made, contracts): (Vec<RankPart>, Vec<Contract>) =
            parts.into_iter().enumerate().map(|(rank, explicit)| make(rank, explicit)).unzip();
        let part = move |part: &mut RankPart| part.clone_from(&made[part.rank()]);
        Ok(Schedule::new(name, contracts.len(), part, move |rank| contracts[rank].clone()))
    }
}

/// Builds the part of a rank from validated input.
fn make(rank: usize, explicit: ExplicitPart) -> (RankPart, Contract) {
    let mut part = RankPart::new(rank);
    for decl in explicit.buffers {
        part.declare_buffer(decl);
    }
    for counter in explicit.signals.into_iter().skip(1) {
        part.signal(counter.name, counter.per_start);
    }
    for step in explicit.steps {
        part.in_queue(step.queue);
        let made = part.step(step.trigger, step.action);
        for (slot, effect) in made.effects.iter_mut().zip(step.effects) {
            *slot = Some(effect);
        }
    }
    explicit.finish.into_iter().for_each(|condition| part.finish(condition));
    (part, explicit.contract)
}

fn look_at_part(parts: &[ExplicitPart], rank: usize) -> Result<(), InvalidSchedule> {
    let part = &parts[rank];
    let unfit = |step, why: String| InvalidSchedule { rank: Some(rank), step, why };
    let whole = |why| unfit(None, why);
    look_at_names(part).map_err(whole)?;
    for number in 0..part.buffers.len() {
        look_at_room(parts, rank, number).map_err(whole)?;
    }
    for (number, step) in part.steps.iter().enumerate() {
        look_at_step(parts, rank, step).map_err(|why| unfit(Some(number), why))?;
    }
    for trigger in &part.finish {
        look_at_trigger(part, trigger).map_err(|why| whole(format!("in its finish conditions, {why}")))?;
    }
    look_at_contract(parts, rank).map_err(whole)
}

fn look_at_names(part: &ExplicitPart) -> Result<(), String> {
    let (buffers, signals) = (usize::from(u8::MAX) + 1, usize::from(u16::MAX) + 1);
    if part.buffers.len() > buffers || part.signals.len() > signals {
        return Err(format!("it has more than {buffers} buffers or more than {signals} signals"));
    }
    if part.signals.first().is_none_or(|first| first.name != "start" || first.per_start != 1) {
        return Err("its first signal must be \"start\", which counts 1 in a start".into());
    }
    if let Some(decl) = part.buffers.iter().find(|decl| decl.bytes > BYTES_MAX) {
        return Err(format!("buffer {:?} has more than {BYTES_MAX} bytes, the most of a buffer", decl.name));
    }
    match part.signals.iter().find(|counter| counter.per_start > COUNT_MAX) {
        Some(counter) => Err(format!("signal {:?} counts more than {COUNT_MAX} in a start", counter.name)),
        None => Ok(()),
    }
}

fn look_at_room(parts: &[ExplicitPart], rank: usize, number: usize) -> Result<(), String> {
    let BufferDecl { name, bytes, kind } = &parts[rank].buffers[number];
    match *kind {
        BufferKind::Turns(0) => Err(format!("buffer {name:?} has 0 copies (turns): it needs at least one")),
        BufferKind::User | BufferKind::Turns(_) => Ok(()),
        BufferKind::Swapped(both) => {
            let partner = BufferKind::partner(both, rank as u32) as usize;
            let part = parts.get(partner).ok_or_else(|| no_rank(partner, parts.len()))?;
            let theirs = part.buffers.get(number).filter(|decl| decl.kind == *kind && decl.bytes == *bytes);
            match theirs {
                Some(_) if partner != rank => Ok(()),
                _ => Err(format!(
                    "buffer {name:?} is swapped with rank {partner}, whose buffer number {number} is not swapped \
                     with rank {rank} or has another size"
                )),
            }
        }
    }
}

fn look_at_step(parts: &[ExplicitPart], rank: usize, step: &ExplicitStep) -> Result<(), String> {
    look_at_trigger(&parts[rank], &step.trigger)?;
    if let StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. } = step.action {
        look_at_place(parts, &from, bytes)?;
        look_at_place(parts, &to, bytes)?;
    }
    if step.effects.len() > EFFECTS_MAX {
        return Err(format!(
            "it has {} effects, but a step can have at most {EFFECTS_MAX}",
            step.effects.len()
        ));
    }
    for effect in &step.effects {
        let (whose, signal) = (effect.rank as usize, effect.signal.index());
        let part = parts.get(whose).ok_or_else(|| no_rank(whose, parts.len()))?;
        if signal >= part.signals.len() {
            return Err(format!("it raises signal {signal} of rank {whose}, which does not exist"));
        }
        if effect.amount > COUNT_MAX {
            return Err(format!("it raises a signal by more than {COUNT_MAX}, the most that is possible"));
        }
    }
    Ok(())
}

fn look_at_trigger(part: &ExplicitPart, trigger: &StepTrigger) -> Result<(), String> {
    if trigger.signal.index() >= part.signals.len() {
        return Err(format!("it waits for signal {}, which does not exist", trigger.signal.index()));
    }
    if trigger.count > COUNT_MAX {
        return Err(format!("it waits for a count of more than {COUNT_MAX}, the most that is possible"));
    }
    if trigger.lag > LAG_MAX {
        return Err(format!("it looks back {} starts, but at most {LAG_MAX} are possible", trigger.lag));
    }
    Ok(())
}

fn look_at_place(parts: &[ExplicitPart], place: &Location, bytes: u64) -> Result<(), String> {
    let part = parts.get(place.rank as usize).ok_or_else(|| no_rank(place.rank as usize, parts.len()))?;
    if place.buffer.index() >= part.buffers.len() {
        return Err(format!("buffer {} of rank {} does not exist", place.buffer.index(), place.rank));
    }
    if place.offset.checked_add(bytes).is_none_or(|end| end > BYTES_MAX) {
        return Err(format!("{bytes} bytes from byte {} on end beyond byte {BYTES_MAX}", place.offset));
    }
    Ok(())
}

fn look_at_contract(parts: &[ExplicitPart], rank: usize) -> Result<(), String> {
    let contract = &parts[rank].contract;
    let inside = |span: &BufferSpan, verb: &str| {
        let place = span.buffer.on(rank, span.offset);
        look_at_place(parts, &place, span.bytes).map_err(|why| format!("in what it {verb}, {why}"))?;
        let decl = &parts[rank].buffers[span.buffer.index()];
        if span.offset + span.bytes > decl.bytes {
            return Err(format!("what it {verb} ends beyond the end of buffer {:?}", decl.name));
        }
        if decl.kind != BufferKind::User {
            return Err(format!(
                "what it {verb} is in buffer {:?}, which is no buffer of the program",
                decl.name
            ));
        }
        Ok(())
    };
    for span in &contract.inputs {
        inside(span, "gives")?;
    }
    for (span, origin) in &contract.outputs {
        inside(span, "gets")?;
        for &source in &origin.ranks {
            let place = Location { rank: source, buffer: origin.buffer, offset: origin.offset };
            look_at_place(parts, &place, span.bytes)
                .map_err(|why| format!("in the origin of what it gets, {why}"))?;
        }
    }
    Ok(())
}

fn no_rank(rank: usize, ranks: usize) -> String {
    format!("there is no rank {rank}: the schedule has {ranks}")
}

impl BufferId {
    /// The buffer with that index in the order of declaration.
    pub fn numbered(number: usize) -> Option<BufferId> {
        number.try_into().ok().map(BufferId)
    }
}

impl super::SignalId {
    /// The signal with that index in the order of declaration; 0 is [`START`](super::START).
    pub fn numbered(number: usize) -> Option<super::SignalId> {
        number.try_into().ok().map(super::SignalId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::ALGORITHMS;
    use crate::shape::Shape;
    use crate::{START, SignalId, started};

    fn explicit(schedule: &Schedule) -> Vec<ExplicitPart> {
        (0..schedule.ranks()).map(|rank| schedule.part(rank).to_explicit(schedule.contract(rank))).collect()
    }

    fn three() -> Vec<ExplicitPart> {
        let shape = Shape::new(crate::shape::CollectiveKind::Bcast, 3, 0, 64);
        let chain = ALGORITHMS.iter().find(|algorithm| algorithm.name == "chain").unwrap();
        explicit(&chain.schedule(&shape, 2))
    }

    #[test]
    fn an_explicit_schedule_equals_its_source() {
        for algorithm in ALGORITHMS {
            let shape = Shape::new(algorithm.collective, 8, 0, 64);
            if !(algorithm.fits)(&shape) {
                continue;
            }
            let schedule = algorithm.schedule(&shape, 2);
            let again = Schedule::from_parts(schedule.name(), explicit(&schedule)).unwrap();
            assert_eq!(again.ranks(), 8);
            for rank in 0..8 {
                let (mut part, mut other) = (again.part(rank), schedule.part(rank));
                part.in_queue(0); // where further steps would go is of no importance
                other.in_queue(0);
                assert_eq!(part, other, "{}", algorithm.name);
                assert_eq!(again.contract(rank), schedule.contract(rank));
            }
        }
    }

    #[test]
    fn invalid_parts_are_refused() {
        let refused = |what: &str, change: &dyn Fn(&mut Vec<ExplicitPart>)| {
            let mut parts = three();
            change(&mut parts);
            let unfit = Schedule::from_parts("wrong", parts).expect_err(what).to_string();
            assert!(unfit.contains(what), "{unfit}");
        };
        let copy = |place: Location, bytes| ExplicitStep {
            queue: 0,
            trigger: started(),
            action: StepKind::Copy { from: BufferId(0).on(0, 0), to: place, bytes },
            effects: vec![],
        };
        refused("no ranks", &|parts| parts.clear());
        refused("no rank 2: the schedule has 2", &|parts| drop(parts.pop()));
        refused("buffer 7 of rank 1", &|parts| parts[0].steps.push(copy(BufferId(7).on(1, 0), 8)));
        let stage = |kind, bytes| BufferDecl { name: "stage".into(), bytes, kind };
        refused("has 0 copies", &|parts| parts[1].buffers.push(stage(BufferKind::Turns(0), 8)));
        refused("no rank 9", &|parts| parts[1].buffers.push(stage(BufferKind::swapped(1, 9), 8)));
        refused("not swapped with", &|parts| parts[1].buffers.push(stage(BufferKind::swapped(1, 2), 8)));
        refused("not swapped with", &|parts| parts[1].buffers.push(stage(BufferKind::swapped(1, 1), 8)));
        refused("or has another size", &|parts| {
            parts[1].buffers.push(stage(BufferKind::swapped(1, 2), 8));
            parts[2].buffers.push(stage(BufferKind::swapped(1, 2), 9));
        });
        refused("no rank 9", &|parts| parts[0].steps.push(copy(BufferId(0).on(9, 0), 8)));
        refused("end beyond", &|parts| parts[0].steps.push(copy(BufferId(0).on(1, u64::MAX), 8)));
        refused("rank 1, step 0: it waits for signal 99", &|parts| {
            parts[1].steps[0].trigger = SignalId(99).reaches(1);
        });
        refused("raises signal 99 of rank 2", &|parts| {
            parts[1].steps[0].effects = vec![SignalId(99).on(2, 1)]
        });
        refused("3 effects", &|parts| parts[1].steps[0].effects = vec![START.on(0, 1); 3]);
        refused("more than", &|parts| parts[1].steps[0].effects = vec![START.on(0, u64::MAX)]);
        refused("more than", &|parts| parts[1].signals[1].per_start = u64::MAX);
        refused("looks back 4294967295 starts", &|parts| parts[2].finish.push(started().lagging(u32::MAX)));
        refused("what it gets ends beyond the end of buffer \"data\"", &|parts| {
            parts[2].contract.outputs[0].0.bytes = 65
        });
        refused("\"data\", which is no buffer of the program", &|parts| {
            parts[2].buffers[0].kind = BufferKind::Turns(2);
        });
        refused("there is no rank 3", &|parts| parts[2].contract.outputs[0].1.ranks = vec![3]);
        refused("\"start\"", &|parts| parts[0].signals.clear());
    }
}
