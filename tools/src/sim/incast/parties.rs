//! The senders, the shares of the queue and the receiver, as the simulation begins.

use super::busy_node::{BusyNode, WayIn};
use super::placement::ShareBlocks;
use super::question::{CounterHome, IncastProtocol, IncastQuestion};
use super::share_slots::ShareSlots;
use std::collections::VecDeque;

/// The index of the receiver among the busy nodes.
pub(super) const RECEIVER: usize = 0;

/// A sender.
pub(super) struct Sender {
    pub(super) share: u32,
    pub(super) to_home: WayIn,
    pub(super) to_receiver: WayIn,
    pub(super) messages_left: u16,
    pub(super) messages_taken: u16,
    pub(super) ticket: u32,
    /// The number of consumed messages that it has read last.
    pub(super) consumed: u32,
    pub(super) pauses: u8,
}

/// A share of the slots, with its counters.
pub(super) struct Share {
    /// The index of the busy node with its counters.
    pub(super) home: usize,
    pub(super) from_receiver: WayIn,
    pub(super) drawn: u32,
    pub(super) consumed: u32,
    /// Amounts that are on their way to `consumed`.
    pub(super) added: VecDeque<u32>,
    pub(super) slots: ShareSlots,
}

/// The receiver's processor and the memory that it gives.
#[derive(Default)]
pub(super) struct Receiver {
    pub(super) works: bool,
    pub(super) additions_awaited: u32,
    pub(super) messages: VecDeque<u32>,
    pub(super) requests: VecDeque<u32>,
    pub(super) requests_max: u64,
    pub(super) buffers_used: u32,
    /// Messages that wait in the network because all buffers are used.
    pub(super) piled: VecDeque<u32>,
}

/// All of them, with the nodes to which many send.
pub(super) struct Parties {
    pub(super) senders: Vec<Sender>,
    pub(super) shares: Vec<Share>,
    pub(super) nodes: Vec<BusyNode>,
}

impl Parties {
    pub(super) fn new(question: &IncastQuestion<'_>) -> Parties {
        let network = question.network;
        let costs = &network.parameters;
        let mut nodes = vec![BusyNode::new(0, costs)];
        let (mut shares, mut blocks, mut route) = (Vec::new(), None, Vec::new());
        if let IncastProtocol::Tickets(counters, _) = question.protocol {
            let ranks = u64::from(question.senders) + 1;
            let cut = ShareBlocks::new(&network.topology, ranks, u64::from(counters.shares()));
            for share in 0..counters.shares() {
                let node = if counters == CounterHome::Receiver { 0 } else { cut.home_of(u64::from(share)) };
                let known = nodes.iter().position(|busy| busy.node() == node);
                let home = known.unwrap_or_else(|| {
                    nodes.push(BusyNode::new(node, costs));
                    nodes.len() - 1
                });
                shares.push(Share {
                    home,
                    from_receiver: nodes[home].way_from(network, 0, &mut route),
                    drawn: 0,
                    consumed: 0,
                    added: VecDeque::new(),
                    slots: ShareSlots::new(question.share_slots(counters.shares())),
                });
            }
            blocks = Some(cut);
        }
        let sender = |node: u64| {
            let share = blocks.as_ref().map_or(0, |blocks| blocks.share_of(node)) as usize;
            let home = shares.get(share).map_or(RECEIVER, |share| share.home);
            Sender {
                share: share as u32,
                to_home: nodes[home].way_from(network, node, &mut route),
                to_receiver: nodes[RECEIVER].way_from(network, node, &mut route),
                messages_left: question.messages,
                messages_taken: 0,
                ticket: 0,
                consumed: 0,
                pauses: 0,
            }
        };
        let senders = (1..=u64::from(question.senders)).map(sender).collect();
        Parties { senders, shares, nodes }
    }
}
