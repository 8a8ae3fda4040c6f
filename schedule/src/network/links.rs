//! Links in use. A transfer passes the links of its route one after the other. If a link is taken, the transfer waits,
//! and so do later transfers of its engine, because no switch has room to keep it. A transfer that waits for the last
//! link only, behind others to its receiver, has left its engine: it is kept in front of that link. Otherwise a
//! receiver with two senders would also keep a sender from its other receivers, and these would wait in turn.

use super::model::Network;
use super::time::Time;

/// The state of the links used so far, in pages that are allocated when first touched.
#[derive(Debug)]
pub struct Links {
    pages: Vec<Option<Box<[Link; PAGE]>>>,
    route: Vec<u64>,
}

const PAGE: usize = 256;

/// The state of a link.
#[derive(Clone, Copy, Default, Debug)]
struct Link {
    /// The time when the link is free again.
    free: Time,
    bytes: u64,
}

/// The times of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// When the last byte has arrived.
    pub arrives: Time,
    /// When the engine is free for the next step.
    pub leaves: Time,
}

/// The use of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used {
    /// The number of the link.
    pub link: u64,
    /// Bytes carried.
    pub bytes: u64,
    /// Time in use.
    pub busy: Time,
}

impl Links {
    /// Creates the state with all links free.
    pub fn new(network: &Network) -> Links {
        let pages = network.topology.links().div_ceil(PAGE as u64);
        let mut all = Vec::new();
        all.resize_with(pages as usize, || None);
        Links { pages: all, route: Vec::new() }
    }

    /// Carries bytes from one rank to another. The first byte leaves at `from_time` and passes a link each L, once the
    /// link is free; the last byte arrives m G after the first. Transfers must be requested in the order in which they
    /// begin: the first request passes first, at all links.
    pub fn carry(&mut self, network: &Network, from: u64, to: u64, bytes: u64, from_time: Time) -> Passage {
        let costs = &network.parameters;
        let (from, to) = (network.node_of(from), network.node_of(to));
        self.route.clear();
        if bytes > 0 {
            network.topology.route(from, to, &mut self.route);
        }
        let (mut waited, mut held) = (Time::ZERO, Time::ZERO);
        for index in 0..self.route.len() {
            let number = self.route[index];
            let page = &mut self.pages[number as usize / PAGE];
            let link =
                &mut page.get_or_insert_with(|| Box::new([Link::default(); PAGE]))[number as usize % PAGE];
            let head = from_time + waited + costs.latency * index as u64;
            let begins = head.max(link.free);
            waited += begins - head;
            let is_last_of_some = index > 0 && index + 1 == self.route.len();
            held += if is_last_of_some { Time::ZERO } else { begins - head };
            link.free = begins + costs.link_byte * bytes;
            link.bytes += bytes;
        }
        let hops = if bytes > 0 { self.route.len() as u64 } else { network.topology.hops(from, to) };
        let arrives = from_time + waited + costs.transfer_time(hops, bytes);
        Passage { arrives, leaves: from_time + held + costs.occupied(hops, bytes) }
    }

    /// The link that carried the most bytes; of several, the first.
    pub fn busiest(&self, network: &Network) -> Option<Used> {
        let links = self.pages.iter().enumerate().flat_map(|(page, links)| {
            let links = links.iter().flat_map(|links| links.iter().enumerate());
            links.map(move |(index, link)| ((page * PAGE + index) as u64, link.bytes))
        });
        let used = links.filter(|(_, bytes)| *bytes > 0);
        let (link, bytes) = used.max_by_key(|&(link, bytes)| (bytes, std::cmp::Reverse(link)))?;
        Some(Used { link, bytes, busy: network.parameters.link_byte * bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Grid, Parameters, Topology};

    /// A row of five nodes with two ranks each; L 10 ns, G 2 ns, g 1 ns, a link's byte 1 ns.
    fn network() -> Network {
        let parameters = Parameters {
            latency: Time::nanoseconds(10),
            byte: Time::nanoseconds(2),
            byte_inside: Time::nanoseconds(3),
            link_byte: Time::nanoseconds(1),
            ..Parameters::default()
        };
        Network { topology: Topology::Grid(Grid::mesh(&[5])), parameters, per_node: 2 }
    }

    fn passage(arrives: u64, leaves: u64) -> Passage {
        Passage { arrives: Time::nanoseconds(arrives), leaves: Time::nanoseconds(leaves) }
    }

    #[test]
    fn alone_a_transfer_takes_what_the_formula_says() {
        let network = network();
        let mut links = Links::new(&network);
        let at = Time::nanoseconds(5);
        // Three hops and 100 bytes: 5 + 3 * 10 + 200, and the engine for 200 + 1.
        assert_eq!(links.carry(&network, 0, 6, 100, at), passage(235, 206));
        // Inside a node one L, and the time for a byte inside.
        assert_eq!(links.carry(&network, 0, 1, 100, at), passage(5 + 10 + 300, 5 + 301));
        // Without bytes no link is taken.
        assert_eq!(links.carry(&network, 0, 6, 0, at), passage(35, 6));
    }

    #[test]
    fn a_second_transfer_waits_with_its_engine() {
        let network = network();
        let mut links = Links::new(&network);
        let at = Time::nanoseconds;
        // From node 0 to 2: on the first link until 100, on the second from 10 until 110.
        assert_eq!(links.carry(&network, 0, 4, 100, at(0)), passage(220, 201));
        // From node 1 to 2 at 20: the link is free at 110, 90 later.
        assert_eq!(links.carry(&network, 2, 4, 50, at(20)), passage(110 + 10 + 100, 110 + 101));
        // The way back uses another link.
        assert_eq!(links.carry(&network, 4, 2, 50, at(20)), passage(20 + 10 + 100, 20 + 101));
        assert_eq!(links.busiest(&network), Some(Used { link: 2, bytes: 150, busy: at(150) }));
        assert_eq!(network.topology.link_name(2), "node (1) to +X");
    }

    #[test]
    fn a_wait_for_the_last_link_frees_the_engine() {
        let network = network();
        let mut links = Links::new(&network);
        let at = Time::nanoseconds;
        // The link from node 1 to 2 is taken until 100; a transfer from node 0 to 2 would arrive there at 10 and waits
        // 90.
        assert_eq!(links.carry(&network, 2, 4, 100, at(0)), passage(210, 201));
        assert_eq!(links.carry(&network, 0, 4, 50, at(0)), passage(90 + 20 + 100, 101));
        // From node 0 to 3 the second of three links is taken until 150: from 60 on that is a wait of 80, with the
        // engine.
        assert_eq!(links.carry(&network, 0, 6, 50, at(60)), passage(60 + 80 + 30 + 100, 60 + 80 + 101));
    }

    #[test]
    fn among_equally_used_links_the_first_is_reported() {
        let network = network();
        let mut links = Links::new(&network);
        assert_eq!(links.busiest(&network), None);
        links.carry(&network, 2, 9, 7, Time::ZERO);
        assert_eq!(links.busiest(&network).map(|used| used.link), Some(2));
    }
}
