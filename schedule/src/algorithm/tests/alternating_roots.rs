//! Calls between two ranks with changing roots: calls that use the same staging buffers may follow each other with any
//! roots.
//!
//! The checker proves starts of one schedule. Here one start is a sequence of calls, each with a root of its own: all
//! calls share the staging buffers and the signals between the ranks, and each call has its own data.

use crate::algorithm::copy_in_copy_out::{BCAST, GATHER, REDUCE, SCATTER};
use crate::shape::{CollectiveKind, Shape};
use crate::{BufferId, Contract, Location, RankPart, START, Schedule, SignalId, Step, StepKind, StepTrigger};

/// Number of calls in a sequence: even, so that buffers are swapped between sequences as between calls.
const CALLS: usize = 6;
/// Indices in the declaration order of a call's part.
const STAGE: usize = 1;
const AVAILABLE: usize = 3;

/// A sequence of calls.
#[derive(Clone)]
struct CallSequence {
    calls: Vec<Schedule>,
    /// Number of starts that a writer waits less than it should; 0 in a correct schedule.
    missing_waits: u32,
}

/// The declarations of a sequence's part, and the call that is being added.
struct AddedCall<'r> {
    sequence: &'r CallSequence,
    call: usize,
    data: BufferId,
    staging: BufferId,
    /// Counts the copies in and the reads of a rank in this call.
    own: [SignalId; 2],
    available: SignalId,
    /// How often a rank is signalled in a call.
    signals: u64,
}

impl CallSequence {
    /// One call for each bit of `roots`, which gives its root.
    fn new(collective: CollectiveKind, roots: u32, bytes: u64, segments: u64) -> CallSequence {
        let algorithm = [BCAST, REDUCE, GATHER, SCATTER].into_iter().find(|one| one.collective == collective);
        let algorithm = algorithm.expect("it has a root");
        let calls = (0..CALLS).map(|call| {
            let shape = Shape::new(collective, 2, (roots >> call & 1) as usize, bytes);
            algorithm.schedule(&Shape { in_order: true, ..shape }, segments)
        });
        CallSequence { calls: calls.collect(), missing_waits: 0 }
    }

    fn schedule(&self) -> Schedule {
        let (part, contract) = (self.clone(), self.clone());
        let name = format!("a sequence of {}", self.calls[0].name());
        Schedule::new(name, 2, move |own| part.part(own), move |rank| contract.contract(rank))
    }

    fn part(&self, part: &mut RankPart) {
        let parts: Vec<RankPart> = self.calls.iter().map(|call| call.part(part.rank())).collect();
        let data: Vec<BufferId> =
            parts.iter().map(|one| part.buffer("data", one.buffer_decls()[0].bytes)).collect();
        let staging = part.scratch("incoming", parts[0].buffer_decls()[STAGE].bytes, 1);
        let own =
            parts.iter().map(|one| [1, 2].map(|at| part.signal("own", one.signal_decls()[at].per_start)));
        let own: Vec<[SignalId; 2]> = own.collect();
        let signals = parts[0].signal_decls()[AVAILABLE].per_start;
        let available = part.signal("available", signals * CALLS as u64);
        for (call, one) in parts.iter().enumerate() {
            let call_steps = AddedCall {
                sequence: self,
                call,
                data: data[call],
                staging,
                own: own[call],
                available,
                signals,
            };
            for step in one.steps() {
                call_steps.step(step, part);
            }
            for &trigger in one.finish_conditions() {
                part.join(call_steps.trigger(trigger));
            }
        }
        let last = AddedCall {
            sequence: self,
            call: CALLS - 1,
            data: data[0],
            staging,
            own: own[CALLS - 1],
            available,
            signals,
        };
        parts[CALLS - 1].finish_conditions().iter().for_each(|&trigger| part.finish(last.trigger(trigger)));
    }

    fn contract(&self, rank: usize) -> Contract {
        let mut all = Contract { in_order: true, ..Contract::default() };
        let mut part = RankPart::new(rank);
        for call in &self.calls {
            let data = part.buffer("data", 0);
            let Contract { inputs, outputs, .. } = call.contract(rank);
            all.inputs.extend(inputs.into_iter().map(|mut span| {
                span.buffer = data;
                span
            }));
            all.outputs.extend(outputs.into_iter().map(|(mut span, mut origin)| {
                (span.buffer, origin.buffer) = (data, data);
                (span, origin)
            }));
        }
        all
    }
}

impl AddedCall<'_> {
    fn step(&self, step: &Step, part: &mut RankPart) {
        let place = |place: Location| match place.buffer.index() {
            STAGE => self.staging.on(place.rank as usize ^ self.call & 1, place.offset),
            _ => self.data.on(place.rank as usize, place.offset),
        };
        let action = match step.action {
            StepKind::Nothing => StepKind::Nothing,
            StepKind::Copy { from, to, bytes } => StepKind::Copy { from: place(from), to: place(to), bytes },
            StepKind::Reduce { from, to, bytes, in_front } => {
                StepKind::Reduce { from: place(from), to: place(to), bytes, in_front }
            }
        };
        let call_steps = part.step(self.trigger(step.trigger), action);
        for effect in step.effects() {
            call_steps.then(self.signal(effect.signal).on(effect.rank as usize, effect.amount));
        }
    }

    fn signal(&self, signal: SignalId) -> SignalId {
        match signal.index() {
            AVAILABLE => self.available,
            at => self.own[at - 1],
        }
    }

    /// A signal of an earlier call may have been raised in the sequence before.
    fn trigger(&self, trigger: StepTrigger) -> StepTrigger {
        if trigger.signal == START {
            return trigger;
        }
        let StepTrigger { signal, count, lag } = trigger;
        let lag = if lag > 0 { lag + self.sequence.missing_waits } else { 0 };
        let calls = self.call as u64 + CALLS as u64 - u64::from(lag);
        let (sequences, calls) = (calls / CALLS as u64, calls % CALLS as u64);
        match signal.index() {
            AVAILABLE => self.available.reaches(calls * self.signals + count).lagging(1 - sequences as u32),
            _ => self.signal(signal).reaches(count),
        }
    }
}

fn sequences(collective: CollectiveKind, missing_waits: u32) -> impl Iterator<Item = (u32, Schedule)> {
    let segments = if matches!(collective, CollectiveKind::Bcast | CollectiveKind::Reduce) { 2 } else { 1 };
    (0..1 << CALLS).map(move |roots| {
        (
            roots,
            CallSequence { missing_waits, ..CallSequence::new(collective, roots, 10, segments) }.schedule(),
        )
    })
}

#[test]
fn calls_with_any_roots_may_share_staging_buffers() {
    for collective in
        [CollectiveKind::Bcast, CollectiveKind::Reduce, CollectiveKind::Gather, CollectiveKind::Scatter]
    {
        for (roots, sequence) in sequences(collective, 0) {
            if let Err(fault) = sequence.check() {
                panic!("{} with roots {roots:06b}: {fault}", sequence.name());
            }
        }
    }
}

/// A rank that writes twice in succession must wait until the first data were read. If it waits one call less, the data
/// are overwritten.
#[test]
fn a_missing_wait_is_found() {
    for collective in
        [CollectiveKind::Bcast, CollectiveKind::Reduce, CollectiveKind::Gather, CollectiveKind::Scatter]
    {
        let refused = sequences(collective, 1).filter(|(_, sequence)| sequence.check().is_err());
        let refused: Vec<u32> = refused.map(|(roots, _)| roots).collect();
        assert!(refused.contains(&0) && !refused.contains(&0b101_010), "{collective:?}: {refused:?}");
    }
}
