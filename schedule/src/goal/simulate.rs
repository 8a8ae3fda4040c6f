//! Simulates GOAL operations on a network, in virtual time.
//!
//! **What is modelled**, as in LogGOPS without S (every message is sent at once, whether or not its receive waits).
//! `calc N` takes N ns of its rank's processor. A `send` takes o of the processor, then m G + g of the rank's engine,
//! and is over when its bytes have left. They pass the links and the receiver's engine as those of schedules do
//! (`crate::network`). A `recv` is over when its message has arrived and o of the processor has passed. The processor
//! of a rank runs one operation at a time, the first that is ready first. The engine of a rank is the one with its
//! place on the node, modulo the number of engines. Messages with one tag between two ranks are matched in the order of
//! the text.

use super::{Goal, OpKind};
use crate::ScheduleError;
use crate::SimulationReport;
use crate::network::{Links, Network, Ports, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GoalEventKind {
    /// All its dependencies are met.
    Ready,
    /// The operation begins.
    Begun,
    /// The engine takes a message.
    Leaves,
    /// The message of a receive has arrived.
    Arrived,
    /// The operation is over.
    Over,
}

/// Time, order among events at that time, event, and operation.
type GoalEvent = Reverse<(Time, u64, GoalEventKind, usize)>;

/// The state of an operation.
#[derive(Clone)]
struct State {
    rank: u32,
    /// Number of operations that it still waits for.
    left: u32,
    /// For a receive: true if it waits for its message, and true if that has arrived.
    is_posted: bool,
    has_come: bool,
    is_over: bool,
}

struct Run<'g> {
    network: &'g Network,
    /// The actions of all operations, rank after rank.
    does: Vec<OpKind>,
    states: Vec<State>,
    /// The operations that wait for the end of an operation, and those that wait for its beginning.
    behind: Vec<Vec<u32>>,
    behind_begun: Vec<Vec<u32>>,
    /// For each send, its receive.
    receives: Vec<u32>,
    hosts: Vec<Time>,
    engines: Vec<Time>,
    links: Links,
    ports: Ports,
    events: BinaryHeap<GoalEvent>,
    numbers: u64,
    now: Time,
    ends: Vec<Time>,
    moves_from: Option<Time>,
    bytes: [u64; 2],
}

impl Goal {
    /// Estimates the bytes that [`Goal::simulate`] takes besides the operations themselves.
    pub fn simulation_bytes(&self) -> u64 {
        const OPERATION_BYTES: u64 = 300;
        const RANK_BYTES: u64 = 200;
        let operations: usize = self.ranks.iter().map(Vec::len).sum();
        operations as u64 * OPERATION_BYTES + self.ranks.len() as u64 * RANK_BYTES
    }

    /// Simulates the operations on a network.
    ///
    /// Errors: operations that do not match, or a deadlock.
    pub fn simulate(&self, network: &Network) -> Result<SimulationReport, ScheduleError> {
        let ranks = self.ranks.len() as u64;
        if ranks > network.ranks() {
            let room = network.ranks();
            return Err(ScheduleError::GoalMismatch(format!(
                "{ranks} ranks do not fit into the network, which has room for {room}: choose a larger one"
            )));
        }
        let mut run = Run::of(self, network)?;
        for operation in 0..run.states.len() {
            if run.states[operation].left == 0 {
                run.settle(Time::ZERO, GoalEventKind::Ready, operation);
            }
        }
        while let Some(Reverse((at, _, what, operation))) = run.events.pop() {
            run.now = at;
            run.happen(what, operation);
        }
        if let Some(waiting) = run.states.iter().position(|state| !state.is_over) {
            let (rank, first) = (run.states[waiting].rank as usize, run.starts(self));
            let name = self.name(rank, waiting - first[rank]);
            let count = run.states.iter().filter(|state| !state.is_over).count();
            let since = run.now;
            return Err(ScheduleError::GoalMismatch(format!(
                "deadlock: nothing happens after {since}, and {count} operations are not over; the first is {name}"
            )));
        }
        Ok(run.outcome(self))
    }
}

impl<'g> Run<'g> {
    fn of(goal: &Goal, network: &'g Network) -> Result<Run<'g>, ScheduleError> {
        let count: usize = goal.ranks.iter().map(Vec::len).sum();
        if u32::try_from(count).is_err() {
            return Err(ScheduleError::GoalMismatch(format!(
                "the simulator cannot run as many as {count} operations"
            )));
        }
        let (mut does, mut states) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut behind, mut behind_begun) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for (rank, own) in goal.ranks.iter().enumerate() {
            let first = states.len();
            for (number, operation) in own.iter().enumerate() {
                does.push(operation.does);
                let left = (operation.requires.len() + operation.irequires.len()) as u32;
                states.push(State {
                    rank: rank as u32,
                    left,
                    is_posted: false,
                    has_come: false,
                    is_over: false,
                });
                let me = (first + number) as u32;
                operation.requires.iter().for_each(|&other| behind[first + other].push(me));
                operation.irequires.iter().for_each(|&other| behind_begun[first + other].push(me));
            }
        }
        let receives = goal.receives(&states)?;
        let ranks = goal.ranks.len();
        let nodes = (ranks as u64).div_ceil(network.per_node);
        let engines = u64::from(network.parameters.engines.max(1));
        Ok(Run {
            network,
            does,
            states,
            behind,
            behind_begun,
            receives,
            hosts: vec![Time::ZERO; ranks],
            engines: vec![Time::ZERO; (nodes * engines) as usize],
            links: Links::new(network),
            ports: Ports::new(nodes, network.parameters.engines),
            events: BinaryHeap::new(),
            numbers: 0,
            now: Time::ZERO,
            ends: vec![Time::ZERO; ranks],
            moves_from: None,
            bytes: [0; 2],
        })
    }

    /// The number of the first operation of each rank.
    fn starts(&self, goal: &Goal) -> Vec<usize> {
        let next = |next: &mut usize, own: &Vec<super::GoalOp>| {
            *next += own.len();
            Some(*next - own.len())
        };
        goal.ranks.iter().scan(0, next).collect()
    }

    fn settle(&mut self, at: Time, what: GoalEventKind, operation: usize) {
        self.numbers += 1;
        self.events.push(Reverse((at, self.numbers, what, operation)));
    }

    /// Takes a rank's processor for a duration, as soon as it is free. Returns the beginning.
    fn compute(&mut self, rank: u32, lasts: Time) -> Time {
        let host = &mut self.hosts[rank as usize];
        let from = self.now.max(*host);
        *host = from + lasts;
        from
    }

    fn happen(&mut self, what: GoalEventKind, operation: usize) {
        let rank = self.states[operation].rank;
        let overhead = self.network.parameters.overhead;
        match (what, self.does[operation]) {
            (GoalEventKind::Ready, OpKind::Calc { units }) => {
                let lasts = Time::nanoseconds(units);
                let from = self.compute(rank, lasts);
                self.settle(from, GoalEventKind::Begun, operation);
                self.settle(from + lasts, GoalEventKind::Over, operation);
            }
            (GoalEventKind::Ready, OpKind::Send { .. }) => {
                let from = self.compute(rank, overhead);
                self.settle(from, GoalEventKind::Begun, operation);
                self.settle(from + overhead, GoalEventKind::Leaves, operation);
            }
            (GoalEventKind::Ready, OpKind::Recv { .. }) => {
                self.states[operation].is_posted = true;
                self.settle(self.now, GoalEventKind::Begun, operation);
                self.receive(operation);
            }
            (GoalEventKind::Leaves, OpKind::Send { bytes, to, .. }) => self.send(operation, bytes, to as u32),
            (GoalEventKind::Arrived, _) => {
                self.states[operation].has_come = true;
                self.receive(operation);
            }
            (GoalEventKind::Begun, _) => self.let_go_on(operation, false),
            (GoalEventKind::Over, _) => {
                self.states[operation].is_over = true;
                let end = &mut self.ends[rank as usize];
                *end = self.now.max(*end);
                self.let_go_on(operation, true);
            }
            (GoalEventKind::Leaves, _) => {}
        }
    }

    /// Ends a receive whose message has arrived.
    fn receive(&mut self, operation: usize) {
        let State { rank, is_posted, has_come, .. } = self.states[operation];
        if is_posted && has_come {
            let overhead = self.network.parameters.overhead;
            let from = self.compute(rank, overhead);
            self.settle(from + overhead, GoalEventKind::Over, operation);
        }
    }

    /// A message leaves as soon as the rank's engine is free.
    fn send(&mut self, operation: usize, bytes: u64, to: u32) {
        let (network, costs) = (self.network, &self.network.parameters);
        let from = self.states[operation].rank;
        let engines = u64::from(costs.engines.max(1));
        let [(node, engine), (target, port)] = [from, to].map(|rank| {
            let rank = u64::from(rank);
            (network.node_of(rank), rank % network.per_node % engines)
        });
        let number = (node * engines + engine) as usize;
        if self.engines[number] > self.now {
            return self.settle(self.engines[number], GoalEventKind::Leaves, operation);
        }
        let passage = self.links.carry(network, from.into(), to.into(), bytes, self.now);
        self.engines[number] = passage.leaves;
        self.moves_from.get_or_insert(self.now);
        self.bytes[0] += bytes;
        let mut arrives = passage.arrives;
        if node != target {
            self.bytes[1] += bytes;
            let body = costs.byte * bytes;
            let lasts = costs.occupied(1, bytes);
            arrives = self.ports.take(target, port, self.now, arrives - body, lasts) + body;
        }
        self.settle(passage.leaves, GoalEventKind::Over, operation);
        self.settle(arrives, GoalEventKind::Arrived, self.receives[operation] as usize);
    }

    /// Resolves the dependencies of those that waited for its beginning, or its end.
    fn let_go_on(&mut self, operation: usize, is_over: bool) {
        let behind = if is_over { &mut self.behind } else { &mut self.behind_begun };
        for next in std::mem::take(&mut behind[operation]) {
            let left = &mut self.states[next as usize].left;
            *left -= 1;
            if *left == 0 {
                self.settle(self.now, GoalEventKind::Ready, next as usize);
            }
        }
    }

    fn outcome(mut self, goal: &Goal) -> SimulationReport {
        self.ends.sort_unstable();
        let end = |index: usize| self.ends.get(index).copied().unwrap_or_default();
        SimulationReport {
            time: end(self.ends.len().saturating_sub(1)),
            first_end: end(0),
            median_end: end(self.ends.len() / 2),
            moves_from: self.moves_from.unwrap_or_default(),
            steps: self.states.len() as u64,
            steps_max: goal.ranks.iter().map(Vec::len).max().unwrap_or(0) as u64,
            bytes: self.bytes[0],
            bytes_between: self.bytes[1],
            busiest: self.links.busiest(self.network),
            memory_max: 0,
            memory_all: 0,
        }
    }
}

impl Goal {
    /// The receive of each send, by their numbers among all operations.
    fn receives(&self, states: &[State]) -> Result<Vec<u32>, ScheduleError> {
        let mut sent: HashMap<(usize, usize, u32), VecDeque<(u32, u64)>> = HashMap::new();
        let mut number = 0;
        for (rank, own) in self.ranks.iter().enumerate() {
            for operation in own {
                if let OpKind::Send { bytes, to, tag } = operation.does {
                    sent.entry((rank, to, tag)).or_default().push_back((number, bytes));
                }
                number += 1;
            }
        }
        let mut receives = vec![0; states.len()];
        let mut number = 0;
        for (rank, own) in self.ranks.iter().enumerate() {
            for (place, operation) in own.iter().enumerate() {
                if let OpKind::Recv { bytes, from, tag } = operation.does {
                    let found = sent.get_mut(&(from, rank, tag)).and_then(VecDeque::pop_front);
                    let name = || self.name(rank, place);
                    let (send, bytes_sent) = found.ok_or_else(|| {
                        ScheduleError::GoalMismatch(format!(
                            "{} receives a message of tag {tag} that rank {from} does not send",
                            name()
                        ))
                    })?;
                    if bytes_sent != bytes {
                        return Err(ScheduleError::GoalMismatch(format!(
                            "{} receives {bytes} bytes of tag {tag}, but rank {from} sends {bytes_sent}",
                            name()
                        )));
                    }
                    receives[send as usize] = number;
                }
                number += 1;
            }
        }
        match sent.iter().find(|(_, left)| !left.is_empty()) {
            None => Ok(receives),
            Some((&(from, to, tag), _)) => Err(ScheduleError::GoalMismatch(format!(
                "rank {to} does not receive all messages of tag {tag} from rank {from}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{from_schedule, parse};
    use super::*;
    use crate::algorithm::ALGORITHMS;
    use crate::network::{Parameters, Topology};
    use crate::shape::{CollectiveKind, Shape};
    use crate::{Step, StepKind};

    /// L 10 ns a hop, of which there are two; o 3 ns, g 5 ns, G 2 ns; links without contention.
    fn network(nodes: u64) -> Network {
        let parameters = Parameters {
            latency: Time::nanoseconds(10),
            byte: Time::nanoseconds(2),
            byte_inside: Time::nanoseconds(2),
            gap: Time::nanoseconds(5),
            overhead: Time::nanoseconds(3),
            link_byte: Time::ZERO,
            engines: 1,
            ..Parameters::default()
        };
        Network { topology: Topology::Crossbar(nodes), parameters, per_node: 1 }
    }

    fn time(text: &str, nodes: u64) -> Time {
        parse(text).unwrap().simulate(&network(nodes)).unwrap().time
    }

    #[test]
    fn a_message_takes_the_time_of_loggops() {
        // o + 2 L + m G + o, with m = 8, and a calc after it.
        let text =
            "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\na: recv 8b from 0\nb: calc 7\nb requires a\n}";
        assert_eq!(time(text, 2), Time::nanoseconds(3 + 20 + 16 + 3 + 7));
        // The second message waits for the engine: g + m G behind the first.
        let two = "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1\nsend 8b to 1 tag 2\n}\n\
                   rank 1 {\nrecv 8b from 0 tag 2\nrecv 8b from 0 tag 1\n}";
        assert_eq!(time(two, 2), Time::nanoseconds(3 + (5 + 16) + 20 + 16 + 3));
    }

    #[test]
    fn many_senders_queue_at_one_receiver() {
        // All first bytes arrive at o + 2 L. The receiver takes g + m G for each, for the last one m G, then o.
        for senders in [1_u64, 2, 7, 32] {
            let mut text = format!("num_ranks {}\nrank 0 {{\n", senders + 1);
            (1..=senders).for_each(|rank| text += &format!("recv 100b from {rank}\n"));
            text += "}\n";
            (1..=senders).for_each(|rank| text += &format!("rank {rank} {{\nsend 100b to 0\n}}\n"));
            let expected = 3 + 20 + (senders - 1) * (5 + 200) + 200 + 3;
            assert_eq!(time(&text, senders + 1), Time::nanoseconds(expected), "{senders}");
        }
    }

    #[test]
    fn irequires_waits_for_the_beginning_only() {
        let text = |word: &str| {
            format!("num_ranks 1\nrank 0 {{\na: recv 8b from 0\nb: send 8b to 0\nb {word} a\n}}")
        };
        let goal = parse(&text("requires")).unwrap();
        let why = goal.simulate(&network(1)).unwrap_err().to_string();
        assert!(why.contains("2 operations are not over; the first is a of rank 0"), "{why}");
        parse(&text("irequires")).unwrap().simulate(&network(1)).unwrap();
    }

    #[test]
    fn mismatched_operations_are_reported() {
        let said =
            |text: &str, nodes| parse(text).unwrap().simulate(&network(nodes)).unwrap_err().to_string();
        let lost = "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}";
        assert!(said(lost, 2).contains("rank 1 does not receive all messages of tag 0 from rank 0"));
        assert!(said(lost, 1).contains("2 ranks do not fit"));
        let more = "num_ranks 1\nrank 0 {\nsend 8b to 0\nrecv 9b from 0\n}";
        assert!(said(more, 1).contains("receives 9 bytes of tag 0, but rank 0 sends 8"));
    }

    #[test]
    fn exported_schedules_take_about_the_time_of_their_source() {
        // Without o, and with all steps of a rank in one engine, the two models differ in the signals, which are
        // messages here, and in calculations.
        let mut network = network(16);
        network.parameters.overhead = Time::ZERO;
        network.parameters.reduce_byte = Time::nanoseconds(1);
        let (mut far, mut compared) = (Vec::new(), 0);
        for algorithm in ALGORITHMS {
            let shape = Shape::new(algorithm.collective, 16, 0, 100_000);
            // A barrier has only signals.
            if !(algorithm.fits)(&shape) || algorithm.collective == CollectiveKind::Barrier {
                continue;
            }
            let schedule = algorithm.schedule(&shape, 4);
            // Bytes read from another rank pass the reader's engine in a schedule, and the owner's in GOAL.
            let is_read = |rank: usize, step: &Step| match step.action {
                StepKind::Nothing => false,
                StepKind::Copy { from, .. } | StepKind::Reduce { from, .. } => from.rank as usize != rank,
            };
            if (0..16).any(|rank| schedule.part(rank).steps().iter().any(|step| is_read(rank, step))) {
                continue;
            }
            let itself = schedule.simulate(&network).unwrap().time.as_seconds();
            let goal = from_schedule::make(&schedule).unwrap().simulate(&network).unwrap();
            let ratio = goal.time.as_seconds() / itself;
            if !(0.4..2.5).contains(&ratio) {
                far.push(format!("{} by {}: {ratio:.2}", algorithm.collective.name(), algorithm.name));
            }
            compared += 1;
        }
        assert!(far.is_empty() && compared > 20, "{compared}: {far:?}");
    }
}
