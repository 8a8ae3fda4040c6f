//! A schedule's graph as operations.
//!
//! Each step has a first operation at the rank that prepares it, which waits for what the step waits for. Where other
//! ranks have a part in it, messages lead there.

use super::{Goal, GoalOp, OpKind};
use crate::Error;
use crate::{Dependency, Event, Graph, StepKind};
use std::collections::BTreeMap;

/// Bytes of a message that only tells: the simulator charges for one byte less than there are, so none is too few.
const WORD_BYTES: u64 = 1;

/// An operation: whose, and which of its.
type OpId = (usize, usize);

struct FromSchedule {
    goal: Goal,
    tags: u32,
    /// The first operation of each event, at its own rank.
    first: BTreeMap<Event, usize>,
    /// The operation of its own rank with which a step is over, as far as that rank knows.
    over: BTreeMap<Event, usize>,
    /// What tells of each effect, at the rank whose signal it raises.
    tells: BTreeMap<Dependency, usize>,
}

/// The operations of one start.
pub fn make(graph: &Graph) -> Result<Goal, Error> {
    let goal = Goal { ranks: vec![Vec::new(); graph.parts.len()] };
    let mut making =
        FromSchedule { goal, tags: 0, first: BTreeMap::new(), over: BTreeMap::new(), tells: BTreeMap::new() };
    for node in &graph.nodes {
        let Some(rank) = making.add(graph, node.event) else {
            return Err(Error::NoWords("there are more messages than tags".into()));
        };
        if !node.is_whole {
            let whose = match node.event {
                Event::Step(_, step) => format!("step {step} of rank {rank}"),
                Event::Begin(_) | Event::End(_) => format!("the end of rank {rank}"),
            };
            return Err(Error::NoWords(format!(
                "{whose} waits for some of several effects, whichever come first: GOAL has no words for that"
            )));
        }
        let first = making.first[&node.event];
        let ended = node.ended.map(|ended| making.over[&ended]);
        let mut requires: Vec<usize> =
            node.causes.iter().map(|cause| making.tells[cause]).chain(ended).collect();
        requires.sort_unstable();
        requires.dedup();
        making.goal.ranks[rank][first].requires = requires;
        let behind = node.behind.map(|behind| making.first[&behind]);
        making.goal.ranks[rank][first].irequires = behind.into_iter().collect();
    }
    Ok(making.goal)
}

impl FromSchedule {
    /// Adds the operations of an event: whose it is.
    fn add(&mut self, graph: &Graph, event: Event) -> Option<usize> {
        let (rank, step) = match event {
            Event::Begin(rank) => {
                let begin = self.push(rank, "begin".into(), OpKind::Calc { units: 0 });
                self.first.insert(event, begin.1);
                self.tells.insert(Dependency { event, effect: 0 }, begin.1);
                return Some(rank);
            }
            Event::End(rank) => {
                let end = self.push(rank, "end".into(), OpKind::Calc { units: 0 });
                self.first.insert(event, end.1);
                return Some(rank);
            }
            Event::Step(rank, step) => (rank, step),
        };
        let name = format!("r{rank}s{step}");
        let (first, over, at_source) = match graph.parts[rank].steps()[step].action {
            StepKind::Nothing => {
                let join = self.push(rank, name.clone(), OpKind::Calc { units: 0 });
                (join, join, join)
            }
            action @ (StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. }) => {
                let (source, target) = (from.rank as usize, to.rank as usize);
                let is_sum = matches!(action, StepKind::Reduce { .. });
                self.transfer(rank, &name, (source, target), bytes, is_sum)?
            }
        };
        self.first.insert(event, first.1);
        let own = [over, at_source].into_iter().find(|place| place.0 == rank).unwrap_or(first);
        self.over.insert(event, own.1);
        for (effect, raised) in graph.parts[rank].steps()[step].effects().enumerate() {
            let whose = raised.rank as usize;
            let told = if whose == over.0 {
                over.1
            } else if whose == at_source.0 {
                at_source.1
            } else {
                let words = [format!("{name}_tell{effect}"), format!("{name}_told{effect}")];
                let (send, recv) = self.message(words, (over.0, whose), WORD_BYTES)?;
                self.wait(send, over.1);
                recv.1
            };
            self.tells.insert(Dependency { event, effect }, told);
        }
        Some(rank)
    }

    /// What moves bytes: the first operation, the one with which the bytes are there, and the one with which they have
    /// been read.
    fn transfer(
        &mut self,
        rank: usize,
        name: &str,
        (source, target): (usize, usize),
        bytes: u64,
        is_sum: bool,
    ) -> Option<(OpId, OpId, OpId)> {
        // Who has the source moves the bytes: another rank has to be told to.
        let order = if source == rank {
            None
        } else {
            Some(self.message([name.to_string(), format!("{name}_go")], (rank, source), WORD_BYTES)?)
        };
        let moves = if order.is_some() { format!("{name}_move") } else { name.to_string() };
        let (read, mut over) = if source == target {
            let calc = self.push(source, moves, OpKind::Calc { units: bytes });
            (calc, calc)
        } else {
            self.message([moves, format!("{name}_in")], (source, target), bytes)?
        };
        if is_sum && source != target {
            let sum = self.push(target, format!("{name}_sum"), OpKind::Calc { units: bytes });
            self.wait(sum, over.1);
            over = sum;
        }
        let first = match order {
            Some((told, go)) => {
                self.wait(read, go.1);
                told
            }
            None => read,
        };
        Some((first, over, read))
    }

    fn message(
        &mut self,
        [sent, got]: [String; 2],
        (from, to): (usize, usize),
        bytes: u64,
    ) -> Option<(OpId, OpId)> {
        let tag = self.tags;
        self.tags = tag.checked_add(1)?;
        let send = self.push(from, sent, OpKind::Send { bytes, to, tag });
        let recv = self.push(to, got, OpKind::Recv { bytes, from, tag });
        Some((send, recv))
    }

    fn push(&mut self, rank: usize, label: String, does: OpKind) -> OpId {
        let own = &mut self.goal.ranks[rank];
        own.push(GoalOp { label, does, requires: Vec::new(), irequires: Vec::new() });
        (rank, own.len() - 1)
    }

    fn wait(&mut self, (rank, what): OpId, before: usize) {
        self.goal.ranks[rank][what].requires.push(before);
    }
}
