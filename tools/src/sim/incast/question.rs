//! What is simulated, and what comes out.

use std::fmt;
use tasuki_schedule::network::{Network, Time};

/// How a message gets to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IncastProtocol {
    /// Receive tickets.
    Tickets(CounterHome, TicketWaiting),
    /// Sent at once; dropped where the buffer is full, and sent again after a time.
    EagerDropped,
    /// Sent at once; waits in the network while the buffer is full.
    EagerPiled,
    /// Asked for first; the receiver's processor answers.
    Rendezvous,
}

/// Where the counters of receive tickets are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CounterHome {
    Receiver,
    /// On that many ranks, one share each.
    Split(u32),
}

/// When a sender whose slot is not free looks again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum TicketWaiting {
    /// After 2 us, then twice as long each time, up to 1 ms: what the library does
    Growing,
    /// After the time that the receiver takes for the messages before it; from the fourth look on twice as long each time
    Paced,
}

impl CounterHome {
    pub(super) fn shares(self) -> u32 {
        match self {
            CounterHome::Receiver => 1,
            CounterHome::Split(shares) => shares,
        }
    }
}

impl fmt::Display for IncastProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IncastProtocol::Tickets(CounterHome::Receiver, _) => f.pad("tickets, counters at the receiver"),
            IncastProtocol::Tickets(CounterHome::Split(1), _) => f.pad("tickets, counters on another rank"),
            IncastProtocol::Tickets(CounterHome::Split(shares), _) => {
                f.pad(&format!("tickets, split {shares} ways"))
            }
            IncastProtocol::EagerDropped => f.pad("eager, drops and retries"),
            IncastProtocol::EagerPiled => f.pad("eager, piles up in the network"),
            IncastProtocol::Rendezvous => f.pad("rendezvous, answered by the host"),
        }
    }
}

/// The costs besides those of the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct IncastCosts {
    /// The unit for atomics of an interface, for one operation.
    pub(super) atomic: Time,
    /// The receiver's processor, to take a message.
    pub(super) take: Time,
    /// The receiver's processor, to answer a request.
    pub(super) answer: Time,
    /// The first time-out of a message that was dropped.
    pub(super) timeout: Time,
    /// The receiver's processor waits for each addition to counters of another rank.
    pub(super) waits_for_adds: bool,
}

/// A simulation: rank 0 receives, all others send.
pub(super) struct IncastQuestion<'n> {
    pub(super) network: &'n Network,
    pub(super) costs: IncastCosts,
    pub(super) protocol: IncastProtocol,
    pub(super) senders: u32,
    /// Messages of each sender.
    pub(super) messages: u16,
    pub(super) bytes: u64,
    /// Slots of the queue, or buffers of the receiver.
    pub(super) slots: u32,
    /// The simulation ends after so many reads of counters.
    pub(super) polls_max: u64,
}

impl IncastQuestion<'_> {
    /// Slots of each share, as the library rounds them.
    pub(super) fn share_slots(&self, shares: u32) -> u32 {
        self.slots.div_ceil(shares).next_power_of_two()
    }

    pub(super) fn all_messages(&self) -> u64 {
        u64::from(self.senders) * u64::from(self.messages)
    }
}

/// The outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct IncastOutcome {
    /// Messages that the receiver has taken: all, unless senders looked too often.
    pub(super) taken: u64,
    /// When it has taken the last one.
    pub(super) last_taken: Time,
    /// The most bytes of the receiver's memory that are in use.
    pub(super) receiver_bytes: u64,
    /// The most bytes that wait in the network in front of one node.
    pub(super) network_bytes: u64,
    /// Atomic operations of the interface that does most.
    pub(super) atomics: u64,
    /// Reads of the counter of consumed messages.
    pub(super) polls: u64,
    /// Messages that were dropped.
    pub(super) drops: u64,
}
