//! Calls of two ranks whose root changes: that those which use the same places follow each other in any order of roots.
//!
//! The proof of a schedule is about starts of that schedule. Here a start is a row of calls, each with a root of its
//! own: the places and the signal by which ranks tell each other are the same in all, data are each call's.

use crate::algorithm::copy_in_copy_out::{BCAST, GATHER, REDUCE, SCATTER};
use crate::shape::{CollectiveKind, Shape};
use crate::{BufferId, Contract, Location, RankPart, START, Schedule, SignalId, Step, StepKind, StepTrigger};

/// Calls in a row: even, so that places are swapped from one row to the next as from call to call.
const CALLS: usize = 6;
/// What a part of a call names, in the order in which it does.
const STAGE: usize = 1;
const TOLD: usize = 3;

/// The calls of a row.
#[derive(Clone)]
struct CallSequence {
    calls: Vec<Schedule>,
    /// For how many starts more than it should somebody who lays something out does not wait.
    hurry: u32,
}

/// What a part of a row has, and the call that is being added.
struct Added<'r> {
    row: &'r CallSequence,
    call: usize,
    data: BufferId,
    places: BufferId,
    /// CombineWith often a rank has laid and taken something in this call.
    own: [SignalId; 2],
    told: SignalId,
    /// CombineWith often a rank is told of something in a call.
    tells: u64,
}

impl CallSequence {
    /// A call by `segments` for each bit, whose root that is.
    fn new(operation: CollectiveKind, roots: u32, bytes: u64, segments: u64) -> CallSequence {
        let algorithm = [BCAST, REDUCE, GATHER, SCATTER].into_iter().find(|one| one.operation == operation);
        let algorithm = algorithm.expect("it has a root");
        let calls = (0..CALLS).map(|call| {
            let shape = Shape::new(operation, 2, (roots >> call & 1) as usize, bytes);
            algorithm.schedule(&Shape { in_order: true, ..shape }, segments)
        });
        CallSequence { calls: calls.collect(), hurry: 0 }
    }

    fn schedule(&self) -> Schedule {
        let (part, contract) = (self.clone(), self.clone());
        let name = format!("a row of {}", self.calls[0].name());
        Schedule::new(name, 2, move |own| part.part(own), move |rank| contract.contract(rank))
    }

    fn part(&self, part: &mut RankPart) {
        let parts: Vec<RankPart> = self.calls.iter().map(|call| call.part(part.rank())).collect();
        let data: Vec<BufferId> = parts.iter().map(|one| part.buffer("data", one.rooms()[0].bytes)).collect();
        let places = part.scratch("places", parts[0].rooms()[STAGE].bytes, 1);
        let own = parts.iter().map(|one| [1, 2].map(|at| part.signal("own", one.counters()[at].per_start)));
        let own: Vec<[SignalId; 2]> = own.collect();
        let tells = parts[0].counters()[TOLD].per_start;
        let told = part.signal("available", tells * CALLS as u64);
        for (call, one) in parts.iter().enumerate() {
            let added = Added { row: self, call, data: data[call], places, own: own[call], told, tells };
            for step in one.steps() {
                added.step(step, part);
            }
            for &trigger in one.finished() {
                part.join(added.trigger(trigger));
            }
        }
        let last =
            Added { row: self, call: CALLS - 1, data: data[0], places, own: own[CALLS - 1], told, tells };
        parts[CALLS - 1].finished().iter().for_each(|&trigger| part.finish(last.trigger(trigger)));
    }

    fn contract(&self, rank: usize) -> Contract {
        let mut all = Contract { in_order: true, ..Contract::default() };
        let mut part = RankPart::new(rank);
        for call in &self.calls {
            let data = part.buffer("data", 0);
            let Contract { gives, gets, .. } = call.contract(rank);
            all.gives.extend(gives.into_iter().map(|mut span| {
                span.buffer = data;
                span
            }));
            all.gets.extend(gets.into_iter().map(|(mut span, mut origin)| {
                (span.buffer, origin.buffer) = (data, data);
                (span, origin)
            }));
        }
        all
    }
}

impl Added<'_> {
    fn step(&self, step: &Step, part: &mut RankPart) {
        let place = |place: Location| match place.buffer.index() {
            STAGE => self.places.on(place.rank as usize ^ self.call & 1, place.offset),
            _ => self.data.on(place.rank as usize, place.offset),
        };
        let action = match step.action {
            StepKind::Nothing => StepKind::Nothing,
            StepKind::Copy { from, to, bytes } => StepKind::Copy { from: place(from), to: place(to), bytes },
            StepKind::Reduce { from, to, bytes, in_front } => {
                StepKind::Reduce { from: place(from), to: place(to), bytes, in_front }
            }
        };
        let added = part.step(self.trigger(step.trigger), action);
        for effect in step.effects() {
            added.then(self.signal(effect.signal).on(effect.rank as usize, effect.amount));
        }
    }

    fn signal(&self, signal: SignalId) -> SignalId {
        match signal.index() {
            TOLD => self.told,
            at => self.own[at - 1],
        }
    }

    /// What is to have been told so many calls before may have been told in the row before.
    fn trigger(&self, trigger: StepTrigger) -> StepTrigger {
        if trigger.signal == START {
            return trigger;
        }
        let StepTrigger { signal, count, lag } = trigger;
        let lag = if lag > 0 { lag + self.row.hurry } else { 0 };
        let calls = self.call as u64 + CALLS as u64 - u64::from(lag);
        let (rows, calls) = (calls / CALLS as u64, calls % CALLS as u64);
        match signal.index() {
            TOLD => self.told.reaches(calls * self.tells + count).lagging(1 - rows as u32),
            _ => self.signal(signal).reaches(count),
        }
    }
}

fn rows(operation: CollectiveKind, hurry: u32) -> impl Iterator<Item = (u32, Schedule)> {
    let segments = if matches!(operation, CollectiveKind::Bcast | CollectiveKind::Reduce) { 2 } else { 1 };
    (0..1 << CALLS).map(move |roots| {
        (roots, CallSequence { hurry, ..CallSequence::new(operation, roots, 10, segments) }.schedule())
    })
}

#[test]
fn calls_with_any_roots_follow_each_other_on_the_same_places() {
    for operation in
        [CollectiveKind::Bcast, CollectiveKind::Reduce, CollectiveKind::Gather, CollectiveKind::Scatter]
    {
        for (roots, row) in rows(operation, 0) {
            if let Err(fault) = row.check() {
                panic!("{} with roots {roots:06b}: {fault}", row.name());
            }
        }
    }
}

/// Who gives twice running has to wait until the first was taken: a call less, and it is overwritten.
#[test]
fn who_does_not_wait_is_found() {
    for operation in
        [CollectiveKind::Bcast, CollectiveKind::Reduce, CollectiveKind::Gather, CollectiveKind::Scatter]
    {
        let refused = rows(operation, 1).filter(|(_, row)| row.check().is_err());
        let refused: Vec<u32> = refused.map(|(roots, _)| roots).collect();
        assert!(refused.contains(&0) && !refused.contains(&0b101_010), "{operation:?}: {refused:?}");
    }
}
