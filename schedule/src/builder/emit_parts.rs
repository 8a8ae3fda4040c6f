//! Turns drafts into parts: declares the signals, and gives each step its triggers and effects.

use super::rank_set::RankSet;
use super::{Builder, Draft};
use crate::rank_part::{RankPart, started};
use crate::step::{EFFECTS_MAX, SignalId, StepEffect, StepTrigger};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

/// The queue of steps that signal more ranks than a step has effects.
const SIGNAL_QUEUE: u16 = 1;

/// All parts of a schedule that a builder described.
pub(super) struct AllParts {
    pub(super) parts: Vec<RankPart>,
}

/// A source of signals: the start of a rank, or the end of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Source {
    Start(usize),
    Step(usize),
}

/// Parts under construction.
struct Emitter {
    parts: Vec<RankPart>,
    /// For each source and rank: the signal of that rank that the source raises.
    signals: BTreeMap<(Source, usize), SignalId>,
    /// For each source: the ranks that it signals.
    signalled: BTreeMap<Source, Vec<usize>>,
}

impl AllParts {
    pub(super) fn emit(builder: Builder) -> AllParts {
        let waits = all_waits(&builder);
        let ranks = builder.ranks;
        let mut emitter = Emitter { parts: Vec::new(), signals: BTreeMap::new(), signalled: BTreeMap::new() };
        for rank in 0..ranks {
            let mut part = RankPart::new(rank);
            for decl in &builder.buffers {
                part.declare_buffer(decl.clone());
            }
            emitter.parts.push(part);
        }
        for (draft, waits) in builder.drafts.iter().zip(&waits) {
            waits.iter().for_each(|&source| emitter.declare_signal(source, draft.by));
        }
        for (number, draft) in builder.drafts.iter().enumerate() {
            draft.concerns().for_each(|rank| emitter.declare_signal(Source::Step(number), rank));
        }
        for rank in 0..ranks {
            emitter.emit_signals(Source::Start(rank), rank, started());
        }
        for (number, (draft, waits)) in builder.drafts.iter().zip(&waits).enumerate() {
            emitter.step(number, draft, waits);
        }
        for (number, draft) in builder.drafts.iter().enumerate() {
            for rank in draft.concerns() {
                let signalled = emitter.signals[&(Source::Step(number), rank)].reaches(1);
                emitter.parts[rank].finish(signalled);
            }
        }
        AllParts { parts: emitter.parts }
    }
}

/// Returns for each step what it waits for: the steps named by `after`, and the starts of the ranks whose memory it
/// touches, unless an earlier step in its chain has waited for these.
fn all_waits(builder: &Builder) -> Vec<BTreeSet<Source>> {
    // The set of a step moves to the last step that comes after it, so a chain has one set at a time.
    let mut followers = vec![0_usize; builder.drafts.len()];
    builder.drafts.iter().flat_map(|draft| &draft.after).for_each(|&before| followers[before] += 1);
    let mut known: Vec<RankSet> = Vec::new();
    let mut all = Vec::new();
    for (number, draft) in builder.drafts.iter().enumerate() {
        let mut starts = RankSet::new(builder.ranks);
        let mut waits = BTreeSet::new();
        for &before in &draft.after {
            followers[before] -= 1;
            let is_last = followers[before] == 0;
            starts.add_all(if is_last { mem::take(&mut known[before]) } else { known[before].clone() });
            waits.insert(Source::Step(before));
        }
        starts.add(draft.by);
        for rank in draft.touches() {
            if starts.add(rank) {
                waits.insert(Source::Start(rank));
            }
        }
        known.push(if followers[number] > 0 { starts } else { RankSet::default() });
        all.push(waits);
    }
    all
}

impl Emitter {
    /// Declares that `source` signals `rank`.
    fn declare_signal(&mut self, source: Source, rank: usize) {
        if self.signals.contains_key(&(source, rank)) {
            return;
        }
        let name = match source {
            Source::Start(of) => format!("rank {of} has started"),
            Source::Step(number) => format!("step {number} is done"),
        };
        let signal = self.parts[rank].signal(name, 1);
        self.signals.insert((source, rank), signal);
        self.signalled.entry(source).or_default().push(rank);
    }

    /// The effects that signal the ranks waiting for `source`.
    fn effects(&self, source: Source) -> Vec<StepEffect> {
        let signalled = self.signalled.get(&source).map_or(&[][..], Vec::as_slice);
        signalled.iter().map(|&rank| self.signals[&(source, rank)].on(rank, 1)).collect()
    }

    /// Signals all ranks that wait for `source`, once `when` is met.
    fn emit_signals(&mut self, source: Source, by: usize, when: StepTrigger) {
        let effects = self.effects(source);
        self.emit_effects(&effects, by, when);
    }

    fn emit_effects(&mut self, effects: &[StepEffect], by: usize, when: StepTrigger) {
        for pair in effects.chunks(2) {
            let step = self.parts[by].join(when);
            for &effect in pair {
                step.then(effect);
            }
        }
    }

    /// Emits a step: first joins for all triggers but the last, then the step, then further joins if it signals more
    /// ranks than a step has effects.
    fn step(&mut self, number: usize, draft: &Draft, waits: &BTreeSet<Source>) {
        let mut triggers: Vec<StepTrigger> =
            waits.iter().map(|&source| self.signals[&(source, draft.by)].reaches(1)).collect();
        let last = triggers.pop().unwrap_or(started());
        for trigger in triggers {
            self.parts[draft.by].join(trigger);
        }
        let mut effects = self.effects(Source::Step(number));
        effects.sort_by_key(|effect| effect.rank as usize != draft.by); // the signal of its own rank comes first
        let rest = effects.split_off(EFFECTS_MAX.min(effects.len()));
        let step = self.parts[draft.by].step(last, draft.action);
        for effect in effects {
            step.then(effect);
        }
        if !rest.is_empty() {
            // A second queue: in the queue of the step, the next step would wait until this step is done. This cannot
            // deadlock: the joins wait only for earlier steps, and these wait for no later join.
            self.parts[draft.by].in_queue(SIGNAL_QUEUE);
            let done = self.signals[&(Source::Step(number), draft.by)].reaches(1);
            self.emit_effects(&rest, draft.by, done);
            self.parts[draft.by].in_queue(0);
        }
    }
}
