//! Calls of two ranks whose root changes: that those which use the same places follow each other in any order of roots.
//!
//! The proof of a schedule is about starts of that schedule. Here a start is a row of calls, each with a root of its
//! own: the places and the signal by which ranks tell each other are the same in all, data are each call's.

use super::laid::{BCAST, GATHER, REDUCE, SCATTER};
use crate::shape::{Operation, Shape};
use crate::{Buffer, Contract, Deed, Part, Place, START, Schedule, Signal, Step, Trigger};

/// Calls in a row: even, so that places are swapped from one row to the next as from call to call.
const CALLS: usize = 6;
/// What a part of a call names, in the order in which it does.
const STAGE: usize = 1;
const TOLD: usize = 3;

/// The calls of a row.
#[derive(Clone)]
struct Row {
    calls: Vec<Schedule>,
    /// For how many starts more than it should somebody who lays something out does not wait.
    hurry: u32,
}

/// What a part of a row has, and the call that is being added.
struct Added<'r> {
    row: &'r Row,
    call: usize,
    data: Buffer,
    places: Buffer,
    /// How often a rank has laid and taken something in this call.
    own: [Signal; 2],
    told: Signal,
    /// How often a rank is told of something in a call.
    tells: u64,
}

impl Row {
    /// A call by `segments` for each bit, whose root that is.
    fn new(operation: Operation, roots: u32, bytes: u64, segments: u64) -> Row {
        let algorithm = [BCAST, REDUCE, GATHER, SCATTER].into_iter().find(|one| one.operation == operation);
        let algorithm = algorithm.expect("it has a root");
        let calls = (0..CALLS).map(|call| {
            let shape = Shape::new(operation, 2, (roots >> call & 1) as usize, bytes);
            algorithm.schedule(&Shape { in_order: true, ..shape }, segments)
        });
        Row { calls: calls.collect(), hurry: 0 }
    }

    fn schedule(&self) -> Schedule {
        let (part, contract) = (self.clone(), self.clone());
        let name = format!("a row of {}", self.calls[0].name());
        Schedule::new(name, 2, move |own| part.part(own), move |rank| contract.contract(rank))
    }

    fn part(&self, part: &mut Part) {
        let parts: Vec<Part> = self.calls.iter().map(|call| call.part(part.rank())).collect();
        let data: Vec<Buffer> = parts.iter().map(|one| part.buffer("data", one.rooms()[0].bytes)).collect();
        let places = part.scratch("places", parts[0].rooms()[STAGE].bytes, 1);
        let own = parts.iter().map(|one| [1, 2].map(|at| part.signal("own", one.counters()[at].per_start)));
        let own: Vec<[Signal; 2]> = own.collect();
        let tells = parts[0].counters()[TOLD].per_start;
        let told = part.signal("told", tells * CALLS as u64);
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
        let mut part = Part::new(rank);
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
    fn step(&self, step: &Step, part: &mut Part) {
        let place = |place: Place| match place.buffer.index() {
            STAGE => self.places.on(place.rank as usize ^ self.call & 1, place.offset),
            _ => self.data.on(place.rank as usize, place.offset),
        };
        let deed = match step.deed {
            Deed::Nothing => Deed::Nothing,
            Deed::Copy { from, to, bytes } => Deed::Copy { from: place(from), to: place(to), bytes },
            Deed::Reduce { from, to, bytes, in_front } => {
                Deed::Reduce { from: place(from), to: place(to), bytes, in_front }
            }
        };
        let added = part.step(self.trigger(step.trigger), deed);
        for effect in step.effects() {
            added.then(self.signal(effect.signal).on(effect.rank as usize, effect.amount));
        }
    }

    fn signal(&self, signal: Signal) -> Signal {
        match signal.index() {
            TOLD => self.told,
            at => self.own[at - 1],
        }
    }

    /// What is to have been told so many calls before may have been told in the row before.
    fn trigger(&self, trigger: Trigger) -> Trigger {
        if trigger.signal == START {
            return trigger;
        }
        let Trigger { signal, count, lag } = trigger;
        let lag = if lag > 0 { lag + self.row.hurry } else { 0 };
        let calls = self.call as u64 + CALLS as u64 - u64::from(lag);
        let (rows, calls) = (calls / CALLS as u64, calls % CALLS as u64);
        match signal.index() {
            TOLD => self.told.reaches(calls * self.tells + count).lagging(1 - rows as u32),
            _ => self.signal(signal).reaches(count),
        }
    }
}

fn rows(operation: Operation, hurry: u32) -> impl Iterator<Item = (u32, Schedule)> {
    let segments = if matches!(operation, Operation::Bcast | Operation::Reduce) { 2 } else { 1 };
    (0..1 << CALLS)
        .map(move |roots| (roots, Row { hurry, ..Row::new(operation, roots, 10, segments) }.schedule()))
}

#[test]
fn calls_with_any_roots_follow_each_other_on_the_same_places() {
    for operation in [Operation::Bcast, Operation::Reduce, Operation::Gather, Operation::Scatter] {
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
    for operation in [Operation::Bcast, Operation::Reduce, Operation::Gather, Operation::Scatter] {
        let refused = rows(operation, 1).filter(|(_, row)| row.check().is_err());
        let refused: Vec<u32> = refused.map(|(roots, _)| roots).collect();
        assert!(refused.contains(&0) && !refused.contains(&0b101_010), "{operation:?}: {refused:?}");
    }
}
