//! Whether operations fit each other: each message is sent and received once, and nothing waits for itself.

use super::{Does, Goal};
use crate::Error;
use serde::Serialize;
use std::collections::HashMap;

/// What there is in a text that fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Measured {
    /// Ranks.
    pub ranks: usize,
    /// Operations of all ranks.
    pub operations: usize,
    /// Messages between and within them.
    pub messages: usize,
    /// Bytes of all messages.
    pub bytes: u64,
    /// The longest chain of messages, each of which waits for the one before it.
    pub depth: usize,
}

/// By sender, receiver and tag: which operation of the sender's it is, and its bytes.
type Messages = HashMap<(usize, usize, u32), (usize, u64)>;

impl Goal {
    /// Numbers of what there is, or what does not fit.
    pub fn measure(&self) -> Result<Measured, Error> {
        self.measured().map_err(Error::Unfit)
    }

    fn measured(&self) -> Result<Measured, String> {
        let sent = self.messages()?;
        let starts: Vec<usize> = self
            .ranks
            .iter()
            .scan(0, |next, own| {
                *next += own.len();
                Some(*next - own.len())
            })
            .collect();
        let operations = self.ranks.iter().map(Vec::len).sum();
        let mut waits: Vec<Vec<usize>> = vec![Vec::new(); operations];
        for (rank, own) in self.ranks.iter().enumerate() {
            for (number, operation) in own.iter().enumerate() {
                let before = operation.requires.iter().chain(&operation.irequires);
                let mut before: Vec<usize> = before.map(|other| starts[rank] + other).collect();
                if let Does::Recv { from, tag, .. } = operation.does {
                    let (sender, send) = (from, sent[&(from, rank, tag)].0);
                    before.push(starts[sender] + send);
                }
                waits[starts[rank] + number] = before;
            }
        }
        let all = || self.ranks.iter().flatten();
        let is_recv: Vec<bool> = all().map(|operation| matches!(operation.does, Does::Recv { .. })).collect();
        let depth = depth(&waits, &is_recv).ok_or("some operations wait for each other")?;
        let bytes =
            all().map(|operation| if let Does::Send { bytes, .. } = operation.does { bytes } else { 0 });
        let bytes = bytes.fold(0, u64::saturating_add);
        Ok(Measured { ranks: self.ranks.len(), operations, messages: sent.len(), bytes, depth })
    }

    /// All messages, or one that is not sent and received once.
    fn messages(&self) -> Result<Messages, String> {
        let (mut sent, mut got) = (HashMap::new(), 0);
        let operations = || {
            let of_rank = |(rank, own): (usize, &'_ Vec<super::Operation>)| {
                own.iter()
                    .map(|operation| operation.does)
                    .enumerate()
                    .map(move |(at, does)| (rank, at, does))
                    .collect::<Vec<_>>()
            };
            self.ranks.iter().enumerate().flat_map(of_rank)
        };
        for (rank, number, does) in operations() {
            if let Does::Send { bytes, to, tag } = does
                && sent.insert((rank, to, tag), (number, bytes)).is_some()
            {
                return Err(format!("rank {rank} sends two messages of tag {tag} to rank {to}"));
            }
        }
        for (rank, _, does) in operations() {
            let Does::Recv { bytes, from, tag } = does else { continue };
            match sent.get(&(from, rank, tag)) {
                Some(&(_, size)) if size == bytes => got += 1,
                Some((_, size)) => {
                    return Err(format!(
                        "rank {rank} receives {bytes} bytes of tag {tag}, and {size} are sent"
                    ));
                }
                None => return Err(format!("rank {from} sends rank {rank} no message of tag {tag}")),
            }
        }
        if got == sent.len() {
            Ok(sent)
        } else {
            Err(format!("{got} of {} messages are received", sent.len()))
        }
    }
}

/// The longest chain of what counts, if nothing waits for itself.
fn depth(waits: &[Vec<usize>], counts: &[bool]) -> Option<usize> {
    let mut left: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    for (number, before) in waits.iter().enumerate() {
        before.iter().for_each(|&other| behind[other].push(number));
    }
    let mut depths = vec![0; waits.len()];
    let mut ready: Vec<usize> = (0..waits.len()).filter(|&number| left[number] == 0).collect();
    let mut done = 0;
    while let Some(number) = ready.pop() {
        done += 1;
        depths[number] += usize::from(counts[number]);
        for &next in &behind[number] {
            depths[next] = depths[next].max(depths[number]);
            left[next] -= 1;
            if left[next] == 0 {
                ready.push(next);
            }
        }
    }
    (done == waits.len()).then(|| depths.into_iter().max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::{make, parse, write};
    use super::*;
    use std::collections::BTreeSet;
    use tasuki_models::collective::algorithm::ALGORITHMS;
    use tasuki_models::collective::shape::Shape;
    use tasuki_models::schedule::{Event, Graph};

    fn text(goal: &Goal) -> String {
        let mut bytes = Vec::new();
        write(goal, "a test", &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Which event an operation of that rank belongs to.
    fn event(label: &str, rank: usize) -> Event {
        match label {
            "begin" => Event::Begin(rank),
            "end" => Event::End(rank),
            _ => {
                let name = label.split('_').next().unwrap();
                let (rank, step) = name.strip_prefix('r').unwrap().split_once('s').unwrap();
                Event::Step(rank.parse().unwrap(), step.parse().unwrap())
            }
        }
    }

    type Edges = BTreeSet<(Event, Event, bool)>;

    /// What waits for what, and whether until it is over or until it has begun, as the text says.
    fn edges_of_text(goal: &Goal) -> Edges {
        let mut edges = Edges::new();
        for (rank, own) in goal.ranks.iter().enumerate() {
            for operation in own {
                // Operations behind the first of a step wait for others of their own step.
                let to = event(&operation.label, rank);
                for (before, is_over) in [(&operation.requires, true), (&operation.irequires, false)] {
                    let from = before.iter().map(|&other| event(&own[other].label, rank));
                    edges.extend(from.filter(|&from| from != to).map(|from| (from, to, is_over)));
                }
            }
        }
        edges
    }

    fn edges_of_schedule(graph: &Graph) -> Edges {
        let of_node = |node: &tasuki_models::schedule::Node| {
            let to = node.event;
            let causes = node.waits_for().into_iter().map(move |event| (event, to, true));
            causes.chain(node.behind.map(|behind| (behind, to, false))).collect::<Vec<_>>()
        };
        graph.nodes.iter().flat_map(of_node).collect()
    }

    /// Both ends of a message belong to one step.
    fn messages_are_within_steps(goal: &Goal) {
        let sent = goal.messages().unwrap();
        for (rank, own) in goal.ranks.iter().enumerate() {
            for operation in own {
                let Does::Recv { from, tag, .. } = operation.does else { continue };
                let send = &goal.ranks[from][sent[&(from, rank, tag)].0];
                assert_eq!(event(&send.label, from), event(&operation.label, rank));
            }
        }
    }

    #[test]
    fn the_text_gives_the_graph_of_the_schedule_back() {
        for algorithm in ALGORITHMS {
            for ranks in 1..=9 {
                let shape = Shape::new(algorithm.operation, ranks, ranks / 2, 64);
                if !(algorithm.fits)(&shape) {
                    continue;
                }
                let graph = algorithm.schedule(&shape, 4).graph().unwrap();
                let goal = make(&graph).unwrap();
                let again = parse(&text(&goal)).unwrap();
                assert_eq!(again, goal, "{} on {ranks} ranks", algorithm.name);
                assert_eq!(edges_of_text(&again), edges_of_schedule(&graph), "{}", algorithm.name);
                messages_are_within_steps(&again);
                again.measure().unwrap();
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let wrong = [
            ("a: send 8b to 0 tag 1", "0 of 1 messages are received"),
            ("a: recv 8b from 0 tag 1", "no message of tag 1"),
            ("a: send 8b to 0 tag 1\nb: recv 9b from 0 tag 1", "9 bytes of tag 1, and 8 are sent"),
            ("a: send 8b to 0\nb: send 8b to 0", "two messages of tag 0"),
            ("a: calc 1\nb: calc 1\na requires b\nb irequires a", "wait for each other"),
        ];
        for (operations, expected) in wrong {
            let goal = parse(&format!("num_ranks 1\nrank 0 {{\n{operations}\n}}")).unwrap();
            let why = goal.measured().expect_err(operations);
            assert!(why.contains(expected), "{operations}: {why}");
        }
    }
}
