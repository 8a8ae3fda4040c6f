//! A node to which many others send: its last links, its interface, and its unit for atomics, each with a queue.
//!
//! Links and engines are those of the network's parameters: a link takes a message for its bytes, an engine for
//! m G + g. The unit for atomics has a short queue of its own. When that is full, the engine keeps the request, and
//! what comes behind it waits in the network. A node takes messages in the order in which they reach its last links.

use std::collections::VecDeque;
use tasuki_schedule::network::{Network, Parameters, Time};

/// How many requests wait at a unit for atomics before the engines do.
const ATOMICS_QUEUED: u64 = 64;
/// The number of the link within a node.
const INSIDE: u8 = u8::MAX;

/// The way from a node to a busy one.
#[derive(Clone, Copy)]
pub(super) struct WayIn {
    hops: u16,
    /// The last link, by its number at the busy node.
    link: u8,
}

impl WayIn {
    /// How long the first byte takes to the last link.
    pub(super) fn to_last_link(self, costs: &Parameters) -> Time {
        costs.latency * u64::from(self.hops.saturating_sub(1))
    }

    /// How long the first byte takes.
    pub(super) fn latency(self, costs: &Parameters) -> Time {
        costs.latency * u64::from(self.hops.max(1))
    }
}

/// The state of a busy node.
pub(super) struct BusyNode {
    node: u64,
    /// The numbers of the last links, and when each is free.
    links: Vec<(u64, Time)>,
    receiving: Vec<Time>,
    sending: Vec<Time>,
    atomics_free: Time,
    /// Atomic operations done.
    pub(super) atomics: u64,
    /// When those that wait get in, and how many bytes they have.
    waiting: VecDeque<(Time, u64)>,
    waiting_bytes: u64,
    /// The most bytes that waited in the network.
    pub(super) waiting_bytes_max: u64,
}

impl BusyNode {
    pub(super) fn new(node: u64, costs: &Parameters) -> BusyNode {
        let engines = vec![Time::ZERO; costs.engines as usize];
        BusyNode {
            node,
            links: Vec::new(),
            receiving: engines.clone(),
            sending: engines,
            atomics_free: Time::ZERO,
            atomics: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            waiting_bytes_max: 0,
        }
    }

    pub(super) fn node(&self) -> u64 {
        self.node
    }

    /// The way from another node.
    pub(super) fn way_from(&mut self, network: &Network, from: u64, route: &mut Vec<u64>) -> WayIn {
        route.clear();
        network.topology.route(from, self.node, route);
        let Some(&last) = route.last() else { return WayIn { hops: 0, link: INSIDE } };
        let known = self.links.iter().position(|(link, _)| *link == last);
        let link = known.unwrap_or_else(|| {
            self.links.push((last, Time::ZERO));
            self.links.len() - 1
        });
        WayIn { hops: route.len() as u16, link: link as u8 }
    }

    /// Takes a message that is at the last link. Returns when it is in memory or, for an atomic that takes the given
    /// time, when that is done.
    pub(super) fn accept(
        &mut self,
        costs: &Parameters,
        now: Time,
        way: WayIn,
        bytes: u64,
        atomic: Option<Time>,
    ) -> Time {
        let mut begins = now;
        if way.link != INSIDE {
            let free = &mut self.links[usize::from(way.link)].1;
            begins = now.max(*free);
            *free = begins + costs.link_byte * bytes;
        }
        let engine = first_free(&mut self.receiving);
        let mut in_memory = (begins + costs.latency).max(*engine) + costs.byte * bytes + costs.gap;
        if let Some(takes) = atomic {
            in_memory = in_memory.max(self.atomics_free - takes * ATOMICS_QUEUED);
        }
        *engine = in_memory;
        self.wait_until(now, in_memory, bytes);
        let Some(takes) = atomic else { return in_memory };
        self.atomics += 1;
        self.atomics_free = in_memory.max(self.atomics_free) + takes;
        self.atomics_free
    }

    /// Sends a message. Returns when its last byte has left.
    pub(super) fn send(&mut self, costs: &Parameters, now: Time, bytes: u64) -> Time {
        let engine = first_free(&mut self.sending);
        *engine = now.max(*engine) + costs.byte * bytes + costs.gap;
        *engine
    }

    fn wait_until(&mut self, now: Time, until: Time, bytes: u64) {
        while let Some(&(until, bytes)) = self.waiting.front()
            && until <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= bytes;
        }
        self.waiting.push_back((until, bytes));
        self.add_waiting(bytes);
    }

    /// Counts bytes that wait in the network.
    pub(super) fn add_waiting(&mut self, bytes: u64) {
        self.waiting_bytes += bytes;
        self.waiting_bytes_max = self.waiting_bytes_max.max(self.waiting_bytes);
    }

    /// Counts bytes that wait no longer.
    pub(super) fn remove_waiting(&mut self, bytes: u64) {
        self.waiting_bytes -= bytes;
    }
}

fn first_free(engines: &mut [Time]) -> &mut Time {
    let first = (0..engines.len()).min_by_key(|&engine| engines[engine]).unwrap_or(0);
    &mut engines[first]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::network::Topology;

    fn ns(count: u64) -> Time {
        Time::nanoseconds(count)
    }

    /// A crossbar: L 100 ns, a link's byte 1 ns, an engine's byte 2 ns, g 1 ns, one engine.
    fn node() -> (Network, BusyNode, WayIn) {
        let parameters = Parameters { byte: ns(2), link_byte: ns(1), engines: 1, ..Parameters::default() };
        let network = Network { parameters, ..Network::new(Topology::Crossbar(4), 1) };
        let mut node = BusyNode::new(0, &network.parameters);
        let way = node.way_from(&network, 3, &mut Vec::new());
        (network, node, way)
    }

    #[test]
    fn alone_a_message_takes_its_hops_and_bytes() {
        let (network, mut node, way) = node();
        let costs = &network.parameters;
        assert_eq!((way.to_last_link(costs), way.latency(costs)), (ns(100), ns(200)));
        assert_eq!(node.accept(costs, ns(100), way, 10, None), ns(200 + 20 + 1));
        assert_eq!(node.waiting_bytes_max, 10);
    }

    #[test]
    fn messages_queue_at_links_engines_and_atomics() {
        let (network, mut node, way) = node();
        let costs = &network.parameters;
        // The engine takes 21 ns for each.
        assert_eq!(node.accept(costs, ns(0), way, 10, None), ns(121));
        assert_eq!(node.accept(costs, ns(0), way, 10, None), ns(142));
        assert_eq!(node.waiting_bytes_max, 20);
        assert_eq!(node.accept(costs, ns(500), way, 10, Some(ns(400))), ns(500 + 121 + 400));
        assert_eq!(node.accept(costs, ns(500), way, 10, Some(ns(400))), ns(500 + 121 + 800));
        assert_eq!((node.atomics, node.waiting_bytes_max), (2, 20));
        assert_eq!(node.send(costs, ns(0), 5), ns(11));
        assert_eq!(node.send(costs, ns(0), 5), ns(22));
    }

    #[test]
    fn a_full_queue_of_atomics_holds_up_what_comes_behind_it() {
        let (network, mut node, way) = node();
        let costs = &network.parameters;
        for _ in 0..ATOMICS_QUEUED {
            node.accept(costs, ns(0), way, 0, Some(ns(1000)));
        }
        let data = |node: &mut BusyNode| node.accept(costs, ns(0), way, 0, None);
        assert_eq!(data(&mut node), ns(100 + ATOMICS_QUEUED + 1));
        for _ in 0..10 {
            node.accept(costs, ns(0), way, 0, Some(ns(1000)));
        }
        assert!(data(&mut node) > ns(9000), "behind requests that the engine keeps");
    }
}
