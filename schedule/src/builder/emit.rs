//! What was written down becomes parts: signals are named, and steps wait for them and raise them.

use super::rank_set::RankSet;
use super::{Builder, Draft};
use crate::rank_part::{RankPart, started};
use crate::step::{EFFECTS_MAX, SignalId, StepEffect, StepTrigger};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

/// The queue of what steps cannot tell themselves.
const TOLD: u16 = 1;

/// All parts of a schedule that was written down as a whole.
pub(super) struct AllParts {
    pub(super) parts: Vec<RankPart>,
}

/// Who is told of what: a step or a start, and the rank that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Source {
    Start(usize),
    Step(usize),
}

/// Parts that are being made of drafts.
struct Emitter {
    parts: Vec<RankPart>,
    /// The signal of a rank that says that something has happened.
    signals: BTreeMap<(Source, usize), SignalId>,
    /// Who is told of each.
    told: BTreeMap<Source, Vec<usize>>,
}

impl AllParts {
    pub(super) fn make(builder: Builder) -> AllParts {
        let waits = all_waits(&builder);
        let ranks = builder.ranks;
        let mut making = Emitter { parts: Vec::new(), signals: BTreeMap::new(), told: BTreeMap::new() };
        for rank in 0..ranks {
            let mut part = RankPart::new(rank);
            for room in &builder.rooms {
                part.room(room.clone());
            }
            making.parts.push(part);
        }
        for (draft, waits) in builder.drafts.iter().zip(&waits) {
            waits.iter().for_each(|&news| making.tell(news, draft.by));
        }
        for (number, draft) in builder.drafts.iter().enumerate() {
            draft.concerns().for_each(|rank| making.tell(Source::Step(number), rank));
        }
        for rank in 0..ranks {
            making.say(Source::Start(rank), rank, started());
        }
        for (number, (draft, waits)) in builder.drafts.iter().zip(&waits).enumerate() {
            making.step(number, draft, waits);
        }
        for (number, draft) in builder.drafts.iter().enumerate() {
            for rank in draft.concerns() {
                let told = making.signals[&(Source::Step(number), rank)].reaches(1);
                making.parts[rank].finish(told);
            }
        }
        AllParts { parts: making.parts }
    }
}

/// What each step waits for: the steps that it comes after, and starts of ranks whose memory it touches, unless a step
/// before it has waited for these.
fn all_waits(builder: &Builder) -> Vec<BTreeSet<Source>> {
    // What a step knows is handed on to the last one that comes after it: a chain has one set at a time.
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
    /// That rank is to be told of it.
    fn tell(&mut self, news: Source, rank: usize) {
        if self.signals.contains_key(&(news, rank)) {
            return;
        }
        let name = match news {
            Source::Start(of) => format!("rank {of} has started"),
            Source::Step(number) => format!("step {number} is done"),
        };
        let signal = self.parts[rank].signal(name, 1);
        self.signals.insert((news, rank), signal);
        self.told.entry(news).or_default().push(rank);
    }

    /// Who is told of it.
    fn effects(&self, news: Source) -> Vec<StepEffect> {
        let told = self.told.get(&news).map_or(&[][..], Vec::as_slice);
        told.iter().map(|&rank| self.signals[&(news, rank)].on(rank, 1)).collect()
    }

    /// Tells all who are to be told of something, when it has happened as the trigger says.
    fn say(&mut self, news: Source, by: usize, when: StepTrigger) {
        let effects = self.effects(news);
        self.say_so(&effects, by, when);
    }

    fn say_so(&mut self, effects: &[StepEffect], by: usize, when: StepTrigger) {
        for pair in effects.chunks(2) {
            let step = self.parts[by].join(when);
            for &effect in pair {
                step.then(effect);
            }
        }
    }

    /// A step, behind what it waits for, and those that tell of it if they are more than it can tell itself.
    fn step(&mut self, number: usize, draft: &Draft, waits: &BTreeSet<Source>) {
        let mut triggers: Vec<StepTrigger> =
            waits.iter().map(|&news| self.signals[&(news, draft.by)].reaches(1)).collect();
        let last = triggers.pop().unwrap_or(started());
        for trigger in triggers {
            self.parts[draft.by].join(trigger);
        }
        let mut effects = self.effects(Source::Step(number));
        effects.sort_by_key(|effect| effect.rank as usize != draft.by); // it is told itself, first
        let rest = effects.split_off(EFFECTS_MAX.min(effects.len()));
        let step = self.parts[draft.by].step(last, draft.action);
        for effect in effects {
            step.then(effect);
        }
        if !rest.is_empty() {
            // Not in its own queue, where the next step would wait until this one is done. What is told waits for
            // earlier steps alone, which wait for none of what is told after them.
            self.parts[draft.by].in_queue(TOLD);
            let done = self.signals[&(Source::Step(number), draft.by)].reaches(1);
            self.say_so(&rest, draft.by, done);
            self.parts[draft.by].in_queue(0);
        }
    }
}
