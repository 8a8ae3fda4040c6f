//! Assigns rounds to the events of a start, in the model in which textbooks count rounds: each message takes one round,
//! and a rank sends one message with data and receives one at a time.

use super::{Kind, action};
use crate::{Dependency, Event, Graph};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The rounds in which events begin.
pub(super) struct Rounds {
    pub(super) begin: BTreeMap<Event, usize>,
    /// The round in which the last event ends.
    pub(super) end: usize,
}

impl Rounds {
    pub(super) fn of(graph: &Graph) -> Rounds {
        let count = graph.nodes.len();
        let index: BTreeMap<Event, usize> =
            graph.nodes.iter().enumerate().map(|(number, node)| (node.event, number)).collect();
        let (mut left, mut next) = (vec![0; count], vec![Vec::new(); count]);
        for (number, node) in graph.nodes.iter().enumerate() {
            for before in node.waits_for().into_iter().chain(node.behind) {
                next[index[&before]].push(number);
                left[number] += 1;
            }
        }
        let mut sends = vec![0; graph.parts.len()];
        let mut receives = sends.clone();
        let mut rounds = Rounds { begin: BTreeMap::new(), end: 0 };
        let mut ready: BinaryHeap<Reverse<(usize, usize)>> =
            (0..count).filter(|&number| left[number] == 0).map(|number| Reverse((0, number))).collect();
        while let Some(Reverse((round, number))) = ready.pop() {
            let event = graph.nodes[number].event;
            let mut at = round;
            if let Some((Kind::Copy | Kind::Reduce, from, to, _)) = action(graph, event) {
                at = at.max(sends[from]).max(receives[to]);
                if at > round {
                    ready.push(Reverse((at, number))); // another event may come first
                    continue;
                }
                (sends[from], receives[to]) = (at + 1, at + 1);
            }
            rounds.begin.insert(event, at);
            rounds.end = rounds.end.max(at);
            for &other in &next[number] {
                left[other] -= 1;
                if left[other] == 0 {
                    let node = &graph.nodes[other];
                    let behind = node.behind.map_or(0, |behind| rounds.begin[&behind]);
                    let behind = node.ended.map_or(behind, |ended| behind.max(rounds.begin[&ended] + 1));
                    let arrivals = node.causes.iter().map(|cause| rounds.arrival(graph, cause));
                    ready.push(Reverse((arrivals.fold(behind, usize::max), other)));
                }
            }
        }
        rounds
    }

    /// The round in which an effect arrives.
    pub(super) fn arrival(&self, graph: &Graph, cause: &Dependency) -> usize {
        let begin = self.begin[&cause.event];
        let takes = match (action(graph, cause.event), cause.event) {
            (Some((Kind::Join, ..)), Event::Step(rank, step)) => {
                let effect = graph.parts[rank].steps()[step].effects().nth(cause.effect);
                usize::from(effect.is_some_and(|effect| effect.rank as usize != rank))
            }
            (Some(_), _) => 1,
            (None, _) => 0,
        };
        begin + takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::ALGORITHMS;
    use crate::shape::{CollectiveKind, Shape};

    /// Rounds from the first transfer until the last one is over.
    fn transfer_rounds(name: &str, ranks: usize, segments: u64) -> usize {
        let is_it =
            |one: &&crate::algorithm::Algorithm| (one.name, one.collective) == (name, CollectiveKind::Bcast);
        let algorithm = ALGORITHMS.iter().find(is_it).unwrap();
        let graph =
            algorithm.schedule(&Shape::new(CollectiveKind::Bcast, ranks, 0, 64), segments).graph().unwrap();
        let rounds = Rounds::of(&graph);
        let copies =
            graph.nodes.iter().filter(|node| action(&graph, node.event).is_some_and(|it| it.0 == Kind::Copy));
        let begins: Vec<usize> = copies.map(|node| rounds.begin[&node.event]).collect();
        begins.iter().max().unwrap() + 1 - begins.iter().min().unwrap()
    }

    #[test]
    fn rounds_are_those_of_the_textbook() {
        for ranks in [2_usize, 4, 8, 16] {
            assert_eq!(transfer_rounds("binomial", ranks, 1), ranks.ilog2() as usize);
            assert_eq!(transfer_rounds("chain", ranks, 1), ranks - 1);
            assert_eq!(transfer_rounds("chain", ranks, 4), ranks - 1 + 3);
        }
    }
}
