//! The dependency graph of one start, for drawing and export.

use super::dry_run::DryRun;
use super::happens_before::HappensBefore;
use super::unrolled::{Event, Unrolled};
use crate::RankPart;
use std::collections::BTreeSet;

/// The dependency graph of one start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    /// The part of each rank.
    pub parts: Vec<RankPart>,
    /// The events, in an order in which they can happen.
    pub nodes: Vec<EventNode>,
}

/// An event with its dependencies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventNode {
    /// The event.
    pub event: Event,
    /// The event that must have begun before: the previous step in the queue; for an end, the beginning of the start.
    pub behind: Option<Event>,
    /// Effects that must have arrived before, without those that `behind` has already waited for.
    pub causes: Vec<Dependency>,
    /// The event that must have ended before: for a reduction, the previous reduction in the queue.
    pub ended: Option<Event>,
    /// True if these are all dependencies; false if a trigger counts whichever effects arrive first.
    pub is_whole: bool,
}

impl EventNode {
    /// The events that must be over, not only have begun, before this one, sorted and without duplicates.
    pub fn waits_for(&self) -> BTreeSet<Event> {
        self.causes.iter().map(|cause| cause.event).chain(self.ended).collect()
    }
}

/// An effect of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Dependency {
    /// The event.
    pub event: Event,
    /// The index of the effect.
    pub effect: usize,
}

/// The graph of any start but the first ones, in which steps need not wait for earlier starts.
pub(super) fn find(world: &Unrolled, run: &DryRun, order: &HappensBefore) -> Graph {
    let nodes = run.order.iter().map(|&number| {
        let event = world.event(number);
        let behind = match event {
            Event::Begin(_) => None,
            Event::End(rank) => Some(Event::Begin(rank)),
            Event::Step(..) => match world.before(number) {
                Some((before, false)) => Some(world.event(before)),
                _ => None,
            },
        };
        let (causes, is_whole) = order.causes(world, number);
        let cause = |(event, effect)| Dependency { event: world.event(event), effect };
        let ended = world.reduction_before(number).filter(|&(_, in_last_start)| !in_last_start);
        let ended = ended.map(|(before, _)| world.event(before));
        EventNode { event, ended, behind, causes: causes.into_iter().map(cause).collect(), is_whole }
    });
    Graph { parts: world.parts.clone(), nodes: nodes.collect() }
}
