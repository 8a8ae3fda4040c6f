//! Validates operations: each message is sent and received once, and there is no cycle.

use super::{Goal, OpKind};
use crate::ScheduleError;
use serde::Serialize;
use std::collections::HashMap;

/// The most operations of a cycle that are named.
const CIRCLE_MAX: usize = 8;

/// The size of a valid text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct GoalStats {
    /// Number of ranks.
    pub ranks: usize,
    /// Operations of all ranks.
    pub operations: usize,
    /// Messages between and within ranks.
    pub messages: usize,
    /// Bytes of all messages.
    pub bytes: u64,
    /// The longest chain of messages, each of which waits for the one before it.
    pub depth: usize,
}

/// Sender, receiver and tag.
type MessageKey = (usize, usize, u32);

/// A message: the numbers of its send and receive in their ranks, and its bytes.
struct Message {
    send: usize,
    recv: Option<usize>,
    bytes: u64,
}

type Messages = HashMap<MessageKey, Message>;

impl Goal {
    /// Validates the operations, and returns their size.
    pub fn measure(&self) -> Result<GoalStats, ScheduleError> {
        self.measured().map_err(ScheduleError::GoalMismatch)
    }

    fn measured(&self) -> Result<GoalStats, String> {
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
                if let OpKind::Recv { from, tag, .. } = operation.does {
                    before.push(starts[from] + sent[&(from, rank, tag)].send);
                }
                waits[starts[rank] + number] = before;
            }
        }
        let all = || self.ranks.iter().flatten();
        let is_recv: Vec<bool> =
            all().map(|operation| matches!(operation.does, OpKind::Recv { .. })).collect();
        let depth = depth(&waits, &is_recv).map_err(|circle| {
            let of_rank = |all: usize| starts.partition_point(|&start| start <= all) - 1;
            let named = |&all: &usize| self.name(of_rank(all), all - starts[of_rank(all)]);
            let names: Vec<String> = circle.iter().take(CIRCLE_MAX).map(named).collect();
            let more = if circle.len() > CIRCLE_MAX { ", .." } else { "" };
            format!("operations wait for each other: {}{more}", names.join(", then "))
        })?;
        let bytes =
            all().map(|operation| if let OpKind::Send { bytes, .. } = operation.does { bytes } else { 0 });
        let bytes = bytes.fold(0, u64::saturating_add);
        Ok(GoalStats { ranks: self.ranks.len(), operations, messages: sent.len(), bytes, depth })
    }

    /// All messages. Errors: one that is not sent and received once.
    fn messages(&self) -> Result<Messages, String> {
        let mut all = Messages::new();
        for (rank, number, does) in self.operations() {
            let OpKind::Send { bytes, to, tag } = does else { continue };
            if let Some(other) = all.insert((rank, to, tag), Message { send: number, recv: None, bytes }) {
                let (one, other) = (self.name(rank, other.send), self.name(rank, number));
                return Err(format!("{one} and {other} both send a message of tag {tag} to rank {to}"));
            }
        }
        for (rank, number, does) in self.operations() {
            let OpKind::Recv { bytes, from, tag } = does else { continue };
            let name = || self.name(rank, number);
            let Some(message) = all.get_mut(&(from, rank, tag)) else {
                return Err(format!(
                    "{} receives a message of tag {tag} that rank {from} does not send",
                    name()
                ));
            };
            if message.bytes != bytes {
                let (sender, sent) = (self.name(from, message.send), message.bytes);
                return Err(format!(
                    "{} receives {bytes} bytes of tag {tag}, but {sender} sends {sent}",
                    name()
                ));
            }
            if let Some(other) = message.recv.replace(number) {
                let other = self.name(rank, other);
                return Err(format!(
                    "{other} and {} both receive a message of tag {tag} from rank {from}, which sends only one",
                    name()
                ));
            }
        }
        let lost = all.iter().filter(|(_, message)| message.recv.is_none());
        match lost.min_by_key(|((from, ..), message)| (*from, message.send)) {
            None => Ok(all),
            Some((&(from, to, tag), message)) => {
                let sender = self.name(from, message.send);
                Err(format!("{sender} sends a message of tag {tag} that rank {to} does not receive"))
            }
        }
    }

    /// All operations with their rank and their number in it.
    fn operations(&self) -> impl Iterator<Item = (usize, usize, OpKind)> {
        self.ranks.iter().enumerate().flat_map(|(rank, own)| {
            own.iter().enumerate().map(move |(number, operation)| (rank, number, operation.does))
        })
    }

    /// Describes an operation.
    pub(super) fn name(&self, rank: usize, number: usize) -> String {
        match self.ranks[rank][number].label.as_str() {
            "" => format!("operation {} of rank {rank}", number + 1),
            label => format!("{label} of rank {rank}"),
        }
    }
}

/// The longest chain of operations that count; or a cycle: each waits for the next one, the last for the first.
fn depth(waits: &[Vec<usize>], counts: &[bool]) -> Result<usize, Vec<usize>> {
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
    if done == waits.len() { Ok(depths.into_iter().max().unwrap_or(0)) } else { Err(circle(waits, &left)) }
}

/// A cycle among the operations that still wait for something.
fn circle(waits: &[Vec<usize>], left: &[usize]) -> Vec<usize> {
    let mut way: Vec<usize> = left.iter().position(|&left| left > 0).into_iter().collect();
    let mut places = vec![None; waits.len()];
    while let Some(&last) = way.last() {
        if let Some(first) = places[last].replace(way.len() - 1) {
            way.pop();
            return way.split_off(first);
        }
        way.extend(waits[last].iter().find(|&&other| left[other] > 0));
    }
    way
}

#[cfg(test)]
mod tests {
    use super::super::from_schedule::{each_rank, make};
    use super::super::{export, parse, write};
    use super::*;
    use crate::algorithm::ALGORITHMS;
    use crate::shape::{CollectiveKind, Shape};
    use crate::{Contract, Event, Graph, RankPart, Schedule, started};
    use std::collections::{BTreeMap, BTreeSet};

    fn text(goal: &Goal) -> String {
        let mut bytes = Vec::new();
        write(goal, "a test", &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The event that an operation of a rank belongs to.
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

    /// The dependencies that the text states, each with true if it waits for the end and false for the beginning.
    fn edges_of_text(goal: &Goal) -> Edges {
        let mut edges = Edges::new();
        for (rank, own) in goal.ranks.iter().enumerate() {
            for operation in own {
                // Operations after the first of a step wait for others of their own step.
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
        let of_node = |node: &crate::EventNode| {
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
                let OpKind::Recv { from, tag, .. } = operation.does else { continue };
                let send = &goal.ranks[from][sent[&(from, rank, tag)].send];
                assert_eq!(event(&send.label, from), event(&operation.label, rank));
            }
        }
    }

    /// The events that must have ended, or only begun, before each event, by the edges between them.
    fn known(edges: &Edges) -> Edges {
        let mut behind: BTreeMap<Event, Vec<(Event, bool)>> = BTreeMap::new();
        edges.iter().for_each(|&(from, to, is_over)| behind.entry(from).or_default().push((to, is_over)));
        let mut known = Edges::new();
        for &from in behind.keys() {
            let mut left = behind[&from].clone();
            while let Some((to, is_over)) = left.pop() {
                if known.insert((from, to, is_over)) {
                    left.extend(behind.get(&to).into_iter().flatten().map(|&(next, _)| (next, is_over)));
                }
            }
        }
        known
    }

    #[test]
    fn operations_are_ordered_as_the_proof_orders_steps() {
        for algorithm in ALGORITHMS {
            for ranks in 1..=9 {
                let shape = Shape::new(algorithm.collective, ranks, ranks / 2, 64);
                if !(algorithm.fits)(&shape) {
                    continue;
                }
                let what = format!("{} by {} on {ranks} ranks", algorithm.collective.name(), algorithm.name);
                let schedule = algorithm.schedule(&shape, 4);
                let goal = make(&schedule).unwrap_or_else(|error| panic!("{what}: {error}"));
                let again = parse(&text(&goal)).unwrap();
                assert_eq!(again, goal, "{what}");
                let (found, wanted) = (edges_of_text(&again), edges_of_schedule(&schedule.graph().unwrap()));
                let lost: Vec<_> = wanted.difference(&found).collect();
                assert!(lost.is_empty(), "{what}: {lost:?}");
                // A single rank does not know what others have waited for.
                let all = known(&wanted);
                let invented: Vec<_> = found.difference(&all).collect();
                assert!(invented.is_empty(), "{what}: {invented:?}");
                messages_are_within_steps(&again);
                again.measure().unwrap_or_else(|why| panic!("{what}: {why}"));
            }
        }
    }

    #[test]
    fn windows_of_any_size_give_one_text() {
        let operations = [
            CollectiveKind::Bcast,
            CollectiveKind::Alltoall,
            CollectiveKind::Gather,
            CollectiveKind::Allreduce,
        ];
        for algorithm in ALGORITHMS.iter().filter(|one| operations.contains(&one.collective)) {
            let shape = Shape::new(algorithm.collective, 16, 3, 64);
            if !(algorithm.fits)(&shape) {
                continue;
            }
            let schedule = algorithm.schedule(&shape, 4);
            let goal = make(&schedule).unwrap();
            for window in [0, 1, 7, 50] {
                let mut ranks = Vec::new();
                let take = |rank: usize, operations| {
                    assert_eq!(rank, ranks.len());
                    ranks.push(operations);
                    Ok(())
                };
                each_rank(&schedule, window, take).unwrap();
                assert_eq!(ranks, goal.ranks, "{}, {window} steps", algorithm.name);
            }
            let mut exported = Vec::new();
            export(&schedule, "a test", &mut exported).unwrap();
            assert_eq!(String::from_utf8(exported).unwrap(), text(&goal));
        }
    }

    #[test]
    fn dependencies_on_arrival_order_are_refused() {
        let schedule = |count: u64, said: u64| {
            let part = move |part: &mut RankPart| {
                let arrived = part.signal("arrived", if part.rank() == 0 { said } else { 0 });
                if part.rank() == 0 {
                    part.join(arrived.reaches(count));
                    part.finish(arrived.reaches(said));
                } else {
                    part.join(started()).then(arrived.on(0, 1));
                    part.join(started()).then(arrived.on(0, 1));
                }
            };
            Schedule::new("signalling", 3, part, |_| Contract::default())
        };
        let said = |count, said| make(&schedule(count, said)).unwrap_err().to_string();
        // Three of four: one of each rank is among them, but which is the third is unknown.
        assert!(said(3, 4).contains("step 0 of rank 0 waits until signal \"arrived\" has counted 3 of 4"));
        assert!(said(1, 4).contains("whichever steps add first"), "{}", said(1, 4));
        assert!(
            said(5, 4).contains("signal \"arrived\" has counted 5, but it counts only 4"),
            "{}",
            said(5, 4)
        );
        assert!(said(4, 5).contains("counts 5 in a start, but the steps add 4"), "{}", said(4, 5));
        make(&schedule(4, 4)).unwrap().measure().unwrap();
        let nowhere = |part: &mut RankPart| {
            let arrived = part.signal("arrived", 1);
            part.join(started()).then(arrived.on(7, 1));
        };
        let nowhere = Schedule::new("nowhere", 2, nowhere, |_| Contract::default());
        assert!(make(&nowhere).unwrap_err().to_string().contains("step 0 of rank 0 names rank 7"));
    }

    #[test]
    fn mismatched_operations_are_reported() {
        let wrong = [
            ("a: send 8b to 0 tag 1", "a of rank 0 sends a message of tag 1 that rank 0 does not receive"),
            ("a: recv 8b from 0 tag 1", "a of rank 0 receives a message of tag 1 that rank 0 does not send"),
            (
                "a: send 8b to 0 tag 1\nrecv 9b from 0 tag 1",
                "operation 2 of rank 0 receives 9 bytes of tag 1, but a of rank 0 sends 8",
            ),
            ("a: send 8b to 0\nb: send 8b to 0", "a of rank 0 and b of rank 0 both send a message of tag 0"),
            (
                "a: send 8b to 0\nb: recv 8b from 0\nc: recv 8b from 0",
                "b of rank 0 and c of rank 0 both receive a message of tag 0",
            ),
            (
                "a: calc 1\nb: calc 1\nc: calc 1\na requires b\nb irequires c\nc requires b",
                "wait for each other: b of rank 0, then c of rank 0",
            ),
        ];
        for (operations, expected) in wrong {
            let goal = parse(&format!("num_ranks 1\nrank 0 {{\n{operations}\n}}")).unwrap();
            let why = goal.measured().expect_err(operations);
            assert!(why.contains(expected), "{operations}: {why}");
        }
    }
}
