//! The events of many senders and one receiver.
//!
//! An event is a message that reaches the last link of a busy node, one that is in memory there, an atomic operation
//! that is done, or work of the receiver's processor that is done. What a sender does next depends on what it knows
//! alone, so an answer that travels back to it is no event.

use super::busy_node::{BusyNode, WayIn};
use super::parties::{Parties, RECEIVER, Receiver, Sender, Share};
use super::question::{IncastOutcome, IncastProtocol, IncastQuestion, TicketWaiting};
use anyhow::{bail, ensure};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tasuki_schedule::network::{Parameters, Time};

/// Bytes of an atomic operation, of its answer, and of a request or an answer of a rendezvous.
const CONTROL_BYTES: u64 = 32;
/// Bytes of a line of a receive queue; a message of at most `INLINE_MAX` is inside.
const LINE_BYTES: u64 = 64;
const INLINE_MAX: u64 = 32;
/// Bytes of the counters of a share.
const COUNTER_BYTES: u64 = 128;
/// The pauses of the library's senders.
const PAUSE: Time = Time::nanoseconds(2_000);
const PAUSE_DOUBLINGS_MAX: u8 = 9;
const PAUSE_MAX: Time = Time::nanoseconds(1_000_000);
/// A paced sender takes the receiver for slower after so many looks.
const PACED_LOOKS: u8 = 3;
/// A time-out is doubled that often.
const TIMEOUT_DOUBLINGS_MAX: u8 = 6;
/// After so many events, the progress is shown.
const SHOWN_EACH: u64 = 1 << 18;

/// What travels. Its subject is a sender, except where another one is named.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Transit {
    Draw,
    /// The read of a counter of consumed messages.
    Read,
    /// The addition to such a counter; subject: a share.
    Add,
    /// A message; subject: a slot where there are tickets.
    Message,
    Request,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    AtLastLink(Transit),
    Done(Transit),
    /// The receiver knows that an addition is done; subject: a share.
    Added,
    /// The receiver's processor has taken a message; subject: as of the message.
    Taken,
    Answered,
}

/// An event with its time and subject. Events of one time happen in a fixed order.
type Event = Reverse<(Time, Happening, u32)>;

pub(super) struct IncastModel<'q> {
    question: &'q IncastQuestion<'q>,
    costs: &'q Parameters,
    events: BinaryHeap<Event>,
    senders: Vec<Sender>,
    shares: Vec<Share>,
    nodes: Vec<BusyNode>,
    receiver: Receiver,
    taken: u64,
    last_taken: Time,
    polls: u64,
    drops: u64,
}

impl<'q> IncastModel<'q> {
    pub(super) fn new(question: &'q IncastQuestion<'q>) -> IncastModel<'q> {
        let Parties { senders, shares, nodes } = Parties::new(question);
        IncastModel {
            question,
            costs: &question.network.parameters,
            events: BinaryHeap::new(),
            senders,
            shares,
            nodes,
            receiver: Receiver::default(),
            taken: 0,
            last_taken: Time::ZERO,
            polls: 0,
            drops: 0,
        }
    }

    /// Runs until all messages were taken, or senders have looked too often. Calls `watch` with the number of those now and then.
    pub(super) fn run(mut self, watch: &mut dyn FnMut(u64)) -> anyhow::Result<IncastOutcome> {
        for sender in 0..self.senders.len() as u32 {
            self.begin(Time::ZERO, sender);
        }
        let mut count = 0_u64;
        while let Some(Reverse((now, happening, subject))) = self.events.pop() {
            if self.polls > self.question.polls_max {
                return Ok(self.outcome());
            }
            match happening {
                Happening::AtLastLink(what) => self.at_last_link(now, what, subject),
                Happening::Done(what) => self.done(now, what, subject)?,
                Happening::Added => {
                    self.receiver.additions_awaited -= 1;
                    self.work(now);
                }
                Happening::Taken => self.message_taken(now, subject)?,
                Happening::Answered => self.answered(now, subject),
            }
            count += 1;
            if count.is_multiple_of(SHOWN_EACH) {
                watch(self.taken);
            }
        }
        let unequal = self.senders.iter().find(|sender| sender.messages_taken != self.question.messages);
        ensure!(unequal.is_none(), "not every message is received once");
        Ok(self.outcome())
    }

    fn outcome(&self) -> IncastOutcome {
        let IncastQuestion { slots, bytes, protocol, .. } = *self.question;
        let slot_bytes = LINE_BYTES + if bytes > INLINE_MAX { bytes } else { 0 };
        let receiver_bytes = match protocol {
            IncastProtocol::Tickets(home, _) => {
                let counters = self.shares.iter().filter(|share| share.home == RECEIVER).count() as u64;
                let slots = self.question.share_slots(home.shares()) * home.shares();
                u64::from(slots) * slot_bytes + counters * COUNTER_BYTES
            }
            _ => u64::from(slots) * slot_bytes + self.receiver.requests_max * CONTROL_BYTES,
        };
        IncastOutcome {
            taken: self.taken,
            last_taken: self.last_taken,
            receiver_bytes,
            network_bytes: self.nodes.iter().map(|node| node.waiting_bytes_max).max().unwrap_or(0),
            atomics: self.nodes.iter().map(|node| node.atomics).max().unwrap_or(0),
            polls: self.polls,
            drops: self.drops,
        }
    }

    fn push(&mut self, at: Time, happening: Happening, subject: u32) {
        self.events.push(Reverse((at, happening, subject)));
    }

    fn uses_tickets(&self) -> bool {
        !self.shares.is_empty()
    }

    /// Bytes of a message in the network.
    fn message_bytes(&self) -> u64 {
        LINE_BYTES + if self.question.bytes > INLINE_MAX { self.question.bytes } else { 0 }
    }

    fn sender_of_message(&self, subject: u32) -> u32 {
        if !self.uses_tickets() {
            return subject;
        }
        let slots = self.shares[0].slots.count();
        self.shares[(subject / slots) as usize].slots.sender(subject % slots)
    }

    /// The node to which something travels, the way there, and its bytes.
    fn target(&self, what: Transit, subject: u32) -> (usize, WayIn, u64) {
        match what {
            Transit::Draw | Transit::Read => {
                let sender = &self.senders[subject as usize];
                (self.shares[sender.share as usize].home, sender.to_home, CONTROL_BYTES)
            }
            Transit::Add => {
                let share = &self.shares[subject as usize];
                (share.home, share.from_receiver, CONTROL_BYTES)
            }
            Transit::Message => {
                let sender = self.sender_of_message(subject) as usize;
                (RECEIVER, self.senders[sender].to_receiver, self.message_bytes())
            }
            Transit::Request => (RECEIVER, self.senders[subject as usize].to_receiver, CONTROL_BYTES),
        }
    }

    /// Something leaves for its target.
    fn leave(&mut self, at: Time, what: Transit, subject: u32) {
        let (_, way, _) = self.target(what, subject);
        self.push(at + way.to_last_link(self.costs), Happening::AtLastLink(what), subject);
    }

    /// The time when an answer from a busy node is there.
    fn answer(&mut self, now: Time, node: usize, way: WayIn) -> Time {
        self.nodes[node].send(self.costs, now, CONTROL_BYTES) + way.latency(self.costs)
    }

    /// A sender begins its next message.
    fn begin(&mut self, at: Time, sender: u32) {
        let left = &mut self.senders[sender as usize].messages_left;
        if *left == 0 {
            return;
        }
        *left -= 1;
        let first = match self.question.protocol {
            IncastProtocol::Tickets(..) => Transit::Draw,
            IncastProtocol::EagerDropped | IncastProtocol::EagerPiled => Transit::Message,
            IncastProtocol::Rendezvous => Transit::Request,
        };
        self.leave(at, first, sender);
    }

    fn at_last_link(&mut self, now: Time, what: Transit, subject: u32) {
        let (node, way, bytes) = self.target(what, subject);
        let is_atomic = matches!(what, Transit::Draw | Transit::Read | Transit::Add);
        let atomic = is_atomic.then_some(self.question.costs.atomic);
        let done = self.nodes[node].accept(self.costs, now, way, bytes, atomic);
        self.push(done, Happening::Done(what), subject);
    }

    fn done(&mut self, now: Time, what: Transit, subject: u32) -> anyhow::Result<()> {
        match what {
            Transit::Draw => {
                let sender = &mut self.senders[subject as usize];
                let share = &mut self.shares[sender.share as usize];
                (sender.ticket, sender.pauses) = (share.drawn, 0);
                share.drawn += 1;
                self.go_on(now, subject, None)?;
            }
            Transit::Read => {
                self.polls += 1;
                let sender = &mut self.senders[subject as usize];
                sender.consumed = self.shares[sender.share as usize].consumed;
                let pause = self.pause(subject);
                self.go_on(now, subject, Some(pause))?;
            }
            Transit::Add => {
                let share = &mut self.shares[subject as usize];
                share.consumed += share.added.pop_front().unwrap_or(0);
                if self.question.costs.waits_for_adds {
                    let (home, way) = (share.home, share.from_receiver);
                    let back = self.answer(now, home, way);
                    self.push(back, Happening::Added, subject);
                }
            }
            Transit::Message => self.message_here(now, subject)?,
            Transit::Request => {
                self.receiver.requests.push_back(subject);
                self.receiver.requests_max =
                    self.receiver.requests_max.max(self.receiver.requests.len() as u64);
                self.work(now);
            }
        }
        Ok(())
    }

    /// A sender knows its ticket and a number of consumed messages: it writes its message, or reads that number again.
    fn go_on(&mut self, now: Time, subject: u32, pause: Option<Time>) -> anyhow::Result<()> {
        let &Sender { share: number, to_home, ticket, consumed, .. } = &self.senders[subject as usize];
        let back = self.answer(now, self.shares[number as usize].home, to_home);
        let slots = self.shares[number as usize].slots.count();
        if ticket - consumed >= slots {
            if pause.is_some() {
                let pauses = &mut self.senders[subject as usize].pauses;
                *pauses = (*pauses + 1).min(PAUSE_DOUBLINGS_MAX);
            }
            self.leave(back + pause.unwrap_or_default(), Transit::Read, subject);
            return Ok(());
        }
        let slot = self.shares[number as usize].slots.begin(ticket, subject)?;
        self.leave(back, Transit::Message, number * slots + slot);
        let sent = self.costs.occupied(1, self.message_bytes());
        self.begin(back + sent, subject);
        Ok(())
    }

    /// How long a sender waits that has just read the counter, if it has to read it again.
    fn pause(&self, subject: u32) -> Time {
        let sender = &self.senders[subject as usize];
        match self.question.protocol {
            IncastProtocol::Tickets(home, TicketWaiting::Paced) => {
                let slots = self.shares[sender.share as usize].slots.count();
                let before = u64::from((sender.ticket - sender.consumed).saturating_sub(slots) + 1);
                let doublings = sender.pauses.saturating_sub(PACED_LOOKS);
                self.question.costs.take * (before * u64::from(home.shares())) * (1 << doublings)
            }
            _ => (PAUSE * (1 << sender.pauses)).min(PAUSE_MAX),
        }
    }

    fn message_here(&mut self, now: Time, subject: u32) -> anyhow::Result<()> {
        let is_full = self.receiver.buffers_used >= self.question.slots;
        match self.question.protocol {
            IncastProtocol::Tickets(..) => {
                let slots = self.shares[0].slots.count();
                self.shares[(subject / slots) as usize].slots.fill(subject % slots)?;
            }
            IncastProtocol::EagerDropped if is_full => {
                self.drops += 1;
                let sender = &mut self.senders[subject as usize];
                let timeout = self.question.costs.timeout * (1 << sender.pauses);
                sender.pauses = (sender.pauses + 1).min(TIMEOUT_DOUBLINGS_MAX);
                self.leave(now + timeout, Transit::Message, subject);
                return Ok(());
            }
            IncastProtocol::EagerPiled if is_full => {
                self.receiver.piled.push_back(subject);
                let bytes = self.message_bytes();
                self.nodes[RECEIVER].add_waiting(bytes);
                return Ok(());
            }
            IncastProtocol::EagerDropped | IncastProtocol::EagerPiled => self.take_buffer(now, subject),
            IncastProtocol::Rendezvous => {} // its buffer was taken when the request was answered
        }
        self.receiver.messages.push_back(subject);
        self.work(now);
        Ok(())
    }

    /// An eager message gets a buffer, and its sender an acknowledgement.
    fn take_buffer(&mut self, now: Time, subject: u32) {
        self.receiver.buffers_used += 1;
        self.senders[subject as usize].pauses = 0;
        let way = self.senders[subject as usize].to_receiver;
        let back = self.answer(now, RECEIVER, way);
        self.begin(back, subject);
    }

    /// The receiver's processor takes a message, answers a request, or publishes what it has consumed.
    fn work(&mut self, now: Time) {
        let receiver = &mut self.receiver;
        if receiver.works || receiver.additions_awaited > 0 {
            return;
        }
        if let Some(message) = receiver.messages.pop_front() {
            receiver.works = true;
            self.push(now + self.question.costs.take, Happening::Taken, message);
        } else if receiver.buffers_used < self.question.slots
            && let Some(request) = receiver.requests.pop_front()
        {
            (receiver.works, receiver.buffers_used) = (true, receiver.buffers_used + 1);
            self.push(now + self.question.costs.answer, Happening::Answered, request);
        } else {
            (0..self.shares.len()).for_each(|share| self.publish(now, share, true));
        }
    }

    fn answered(&mut self, now: Time, subject: u32) {
        self.receiver.works = false;
        let way = self.senders[subject as usize].to_receiver;
        let there = self.answer(now, RECEIVER, way);
        self.leave(there, Transit::Message, subject);
        self.begin(there + self.costs.occupied(1, self.message_bytes()), subject);
        self.work(now);
    }

    fn message_taken(&mut self, now: Time, subject: u32) -> anyhow::Result<()> {
        self.receiver.works = false;
        (self.taken, self.last_taken) = (self.taken + 1, now);
        let sender = if self.uses_tickets() {
            let slots = self.shares[0].slots.count();
            let share = (subject / slots) as usize;
            let sender = self.shares[share].slots.take(subject % slots)?;
            self.publish(now, share, false);
            sender
        } else {
            self.receiver.buffers_used -= 1;
            subject
        };
        let sender_state = &mut self.senders[sender as usize];
        sender_state.messages_taken += 1;
        if sender_state.messages_taken > self.question.messages {
            bail!("a message of sender {sender} is received twice");
        }
        if let Some(piled) = self.receiver.piled.pop_front() {
            let bytes = self.message_bytes();
            self.nodes[RECEIVER].remove_waiting(bytes);
            self.message_here(now, piled)?;
        }
        self.work(now);
        Ok(())
    }

    /// Adds to the counter of a share, if there is enough to add.
    fn publish(&mut self, now: Time, number: usize, all: bool) {
        let share = &mut self.shares[number];
        let Some(amount) = share.slots.publish(all) else { return };
        share.added.push_back(amount);
        let is_remote = share.home != RECEIVER;
        let leaves = if is_remote { self.nodes[RECEIVER].send(self.costs, now, CONTROL_BYTES) } else { now };
        self.receiver.additions_awaited += u32::from(self.question.costs.waits_for_adds);
        self.leave(leaves, Transit::Add, number as u32);
    }
}
