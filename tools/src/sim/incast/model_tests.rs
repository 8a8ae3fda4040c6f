//! Tests of the model: what the protocols promise, and times that can be told in advance.

use super::model::IncastModel;
use super::question::{
    CounterHome, IncastCosts, IncastOutcome, IncastProtocol, IncastQuestion, TicketWaiting,
};
use tasuki_schedule::network::{Network, Time, Topology};

const COSTS: IncastCosts = IncastCosts {
    atomic: Time::nanoseconds(100),
    take: Time::nanoseconds(50),
    answer: Time::nanoseconds(200),
    timeout: Time::nanoseconds(100_000),
    waits_for_adds: false,
};

/// What is changed from one test to the other.
struct Asked {
    topology: &'static str,
    protocol: IncastProtocol,
    senders: u32,
    messages: u16,
    slots: u32,
    costs: IncastCosts,
}

impl Asked {
    fn outcome(&self) -> IncastOutcome {
        let &Asked { topology, protocol, senders, messages, slots, costs } = self;
        let topology = Topology::parse(topology, u64::from(senders) + 1).expect("a topology");
        let network = &Network::new(topology, 1);
        let question = IncastQuestion {
            network,
            costs,
            protocol,
            senders,
            messages,
            bytes: 64,
            slots,
            polls_max: 1_000_000,
        };
        IncastModel::new(&question).run(&mut |_| ()).expect("the protocol keeps its promises")
    }
}

fn asked(protocol: IncastProtocol, senders: u32) -> Asked {
    Asked { topology: "torus", protocol, senders, messages: 1, slots: 64, costs: COSTS }
}

const HOMES: [CounterHome; 5] = [
    CounterHome::Receiver,
    CounterHome::Split(1),
    CounterHome::Split(4),
    CounterHome::Split(16),
    CounterHome::Split(64),
];

fn protocols() -> Vec<IncastProtocol> {
    let waitings = [TicketWaiting::Growing, TicketWaiting::Paced];
    let tickets =
        HOMES.into_iter().flat_map(|home| waitings.map(|waiting| IncastProtocol::Tickets(home, waiting)));
    tickets
        .chain([IncastProtocol::EagerDropped, IncastProtocol::EagerPiled, IncastProtocol::Rendezvous])
        .collect()
}

/// The model itself checks that no slot is overwritten, that no more tickets are out than there are slots, and that
/// each message is received once.
#[test]
fn all_protocols_deliver_each_message_once() {
    for protocol in protocols() {
        for topology in ["torus", "fat-tree:4"] {
            for (senders, messages, slots) in [(1, 1, 64), (3, 100, 64), (500, 3, 64), (500, 3, 1024)] {
                let asked = Asked { topology, messages, slots, ..asked(protocol, senders) };
                let outcome = asked.outcome();
                let least = COSTS.take * (u64::from(senders) * u64::from(messages));
                assert!(outcome.last_taken > least, "{protocol}, {senders} senders: {outcome:?}");
            }
        }
    }
}

#[test]
fn the_receivers_memory_does_not_grow_with_tickets() {
    for protocol in protocols() {
        let [few, many] = [100, 3000].map(|senders| asked(protocol, senders).outcome().receiver_bytes);
        if protocol == IncastProtocol::Rendezvous {
            assert!(many > few + 2000 * 32, "requests need memory: {few} {many}");
        } else {
            // In a small network the receiver may have the counters of a share.
            assert!(many <= few && few <= 64 * 128 + 128, "{protocol}: {few} {many}");
        }
    }
}

/// On a crossbar, each hop 100 ns: a draw there and back, the read for the first message is not needed, the message.
#[test]
fn one_message_takes_what_the_formula_says() {
    let ns = |outcome: IncastOutcome| outcome.last_taken.as_femtoseconds() / 1_000_000;
    let alone = |protocol| ns(Asked { topology: "crossbar", ..asked(protocol, 1) }.outcome());
    // G 32 B is 3.35 ns, G 128 B is 13.4 ns, g 1 ns.
    let tickets = IncastProtocol::Tickets(CounterHome::Receiver, TicketWaiting::Growing);
    assert_eq!(alone(tickets), (200 + 4 + 100) + (4 + 200) + (200 + 14) + 50 + 1);
    assert_eq!(alone(IncastProtocol::EagerPiled), 200 + 14 + 50);
    assert_eq!(alone(IncastProtocol::Rendezvous), (200 + 4) + 200 + (4 + 200) + (200 + 14) + 50 + 1);
}

#[test]
fn eager_messages_drop_or_pile_up_and_tickets_do_neither() {
    let [dropped, piled] = [IncastProtocol::EagerDropped, IncastProtocol::EagerPiled]
        .map(|protocol| asked(protocol, 3000).outcome());
    assert!(dropped.drops > 1000 && piled.drops == 0, "{dropped:?} {piled:?}");
    assert!(piled.network_bytes > 100 * 1024, "{piled:?}");
    let tickets = asked(IncastProtocol::Tickets(CounterHome::Split(4), TicketWaiting::Paced), 3000).outcome();
    assert_eq!(tickets.drops, 0);
    assert!(tickets.network_bytes < piled.network_bytes, "{tickets:?}");
}

#[test]
fn a_split_takes_atomics_off_the_busiest_interface() {
    let [one, four] = [1, 4].map(|shares| {
        asked(IncastProtocol::Tickets(CounterHome::Split(shares), TicketWaiting::Paced), 4000).outcome()
    });
    assert!(four.atomics * 2 < one.atomics && four.last_taken < one.last_taken, "{one:?} {four:?}");
}

#[test]
fn senders_that_are_paced_look_less_often() {
    let [growing, paced] = [TicketWaiting::Growing, TicketWaiting::Paced]
        .map(|waiting| asked(IncastProtocol::Tickets(CounterHome::Split(4), waiting), 4000).outcome());
    assert!(paced.polls * 2 < growing.polls, "{growing:?} {paced:?}");
}

#[test]
fn a_receiver_that_waits_for_additions_is_slower() {
    let with = |waits_for_adds| {
        let protocol = IncastProtocol::Tickets(CounterHome::Split(16), TicketWaiting::Paced);
        Asked { costs: IncastCosts { waits_for_adds, ..COSTS }, ..asked(protocol, 4000) }.outcome().last_taken
    };
    assert!(with(true) > with(false));
}
