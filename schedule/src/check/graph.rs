//! What waits for what within one start, for those who draw it or hand it to others.

use super::dry_run::DryRun;
use super::happens_before::HappensBefore;
use super::unrolled::{Event, Unrolled};
use crate::RankPart;
use std::collections::BTreeSet;

/// One start as a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    /// What each rank contributes.
    pub parts: Vec<RankPart>,
    /// What happens, in an order in which it can.
    pub nodes: Vec<EventNode>,
}

/// Something that happens, and what must have happened before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventNode {
    /// What.
    pub event: Event,
    /// What must have begun before: the step before it in its queue; of an end, its beginning.
    pub behind: Option<Event>,
    /// Effects that must have come before; without those that what it is behind has waited for already.
    pub causes: Vec<Dependency>,
    /// What must have ended before: of a reduction, the one before it in its queue.
    pub ended: Option<Event>,
    /// Whether that is all that it waits for. It is not where a trigger counts whichever effects come first.
    pub is_whole: bool,
}

impl EventNode {
    /// Events that must be over, not only have begun, before this one: in their order, each once.
    pub fn waits_for(&self) -> BTreeSet<Event> {
        self.causes.iter().map(|cause| cause.event).chain(self.ended).collect()
    }
}

/// An effect of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Dependency {
    /// Whose.
    pub event: Event,
    /// Which of its effects, from 0.
    pub effect: usize,
}

/// The graph of any start but the first ones, which wait for nobody who is still busy with an earlier one.
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
