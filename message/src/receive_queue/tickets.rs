//! The two counters of a receive queue, as a sender and as the receiver see them.
//!
//! `SYNC queue-consumed`: the receiver adds to `consumed` after it has read a buffer, and a sender reads `consumed`
//! before it writes that buffer again. Both are atomic operations with full ordering.

use tasuki_core::base::planted;

/// Access to the counters.
pub(crate) trait TicketMemory {
    type Error;

    /// Adds to the number of tickets drawn. Returns the old value, the first ticket of as many.
    fn draw(&self, count: u64) -> Result<u64, Self::Error>;

    /// Reads the number of tickets consumed.
    fn consumed(&self) -> Result<u64, Self::Error>;

    /// Adds to the number of tickets consumed.
    fn consume(&self, count: u64) -> Result<(), Self::Error>;
}

/// The counters as a sender knows them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderTickets {
    slots: u64,
    /// A value that the number of tickets consumed had.
    consumed: u64,
}

impl SenderTickets {
    /// The view of a sender that has not read the counters yet. `slots` is a power of two.
    pub(crate) fn new(slots: u64, consumed: u64) -> SenderTickets {
        SenderTickets { slots, consumed }
    }

    /// Returns true if the buffer of that ticket is known to be free. All numbers wrap.
    #[inline(always)]
    pub(crate) fn is_free(&self, ticket: u64) -> bool {
        let ahead = ticket.wrapping_sub(self.consumed);
        ahead < self.slots || planted("receive_queue_one_too_many") && ahead == self.slots
    }

    /// Returns how many messages the receiver takes before the buffer of that ticket is free, as far as is known.
    pub(crate) fn taken_before(&self, ticket: u64) -> u64 {
        ticket.wrapping_sub(self.consumed).wrapping_sub(self.slots).wrapping_add(1)
    }

    /// Returns true if the buffer of that ticket is free. Reads the counter only if that is not known.
    #[inline]
    pub(crate) fn has_room<M: TicketMemory>(&mut self, memory: &M, ticket: u64) -> Result<bool, M::Error> {
        if !self.is_free(ticket) {
            self.consumed = memory.consumed()?;
        }
        Ok(self.is_free(ticket))
    }
}

/// The tickets that the receiver has taken.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverTickets {
    slots: u64,
    /// The first ticket that was not taken.
    head: u64,
    /// Tickets before the head that the counter does not show yet.
    unpublished: u64,
    /// For each buffer a bit: its ticket, from the head on, was taken.
    taken: Box<[u64]>,
}

impl ReceiverTickets {
    /// No ticket was taken yet. `slots` is a power of two.
    pub(crate) fn new(slots: u64, head: u64) -> ReceiverTickets {
        ReceiverTickets { slots, head, unpublished: 0, taken: vec![0; slots.div_ceil(64) as usize].into() }
    }

    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    fn bit(&self, ticket: u64) -> (usize, u64) {
        let buffer = ticket & (self.slots - 1);
        ((buffer / 64) as usize, 1 << (buffer % 64))
    }

    /// Returns true if that ticket, which is less than the number of buffers after the head, was taken.
    #[inline]
    pub(crate) fn is_taken(&self, ticket: u64) -> bool {
        let (word, bit) = self.bit(ticket);
        self.taken[word] & bit != 0
    }

    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns true if that ticket may be there and was not taken.
    #[inline]
    pub(crate) fn is_open(&self, ticket: u64) -> bool {
        ticket.wrapping_sub(self.head) < self.slots && !self.is_taken(ticket)
    }

    /// Returns the tickets that may be there and were not taken.
    pub(crate) fn open(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.slots).map(|ahead| self.head.wrapping_add(ahead)).filter(|&ticket| !self.is_taken(ticket))
    }

    /// Notes that the message of a ticket was taken, so that nothing in its buffer is needed any more.
    #[inline]
    pub(crate) fn take(&mut self, ticket: u64) {
        let (word, bit) = self.bit(ticket);
        self.taken[word] |= bit;
        if planted("receive_queue_counts_only") {
            self.unpublished += 1;
        }
        while self.is_taken(self.head) {
            let (word, bit) = self.bit(self.head);
            self.taken[word] &= !bit;
            self.head = self.head.wrapping_add(1);
            if !planted("receive_queue_counts_only") {
                self.unpublished += 1;
            }
        }
    }

    /// Shows the tickets that were consumed to senders: all of them, or only if they are a fair part of the buffers.
    #[inline]
    pub(crate) fn publish<M: TicketMemory>(&mut self, memory: &M, all: bool) -> Result<(), M::Error> {
        let least = if all { 1 } else { (self.slots / 8).max(1) };
        if self.unpublished >= least {
            memory.consume(self.unpublished)?;
            self.unpublished = 0;
        }
        Ok(())
    }
}

#[cfg(not(loom))] // a model includes this file
#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::convert::Infallible;

    #[derive(Default)]
    struct Counters(Cell<u64>, Cell<u64>);

    impl TicketMemory for Counters {
        type Error = Infallible;

        fn draw(&self, count: u64) -> Result<u64, Infallible> {
            Ok(self.0.replace(self.0.get().wrapping_add(count)))
        }

        fn consumed(&self) -> Result<u64, Infallible> {
            Ok(self.1.get())
        }

        fn consume(&self, count: u64) -> Result<(), Infallible> {
            self.1.set(self.1.get().wrapping_add(count));
            Ok(())
        }
    }

    /// Sends as many messages as there is room for, and takes them in the order that `pick` selects among those there.
    fn run(first: u64, slots: u64, messages: usize, pick: impl Fn(usize) -> usize) {
        let counters = Counters(Cell::new(first), Cell::new(first));
        let (mut sender, mut receiver) =
            (SenderTickets::new(slots, first), ReceiverTickets::new(slots, first));
        let mut buffers = vec![None; slots as usize];
        let (mut ticket, mut got) = (counters.draw(1).expect("infallible"), 0);
        while got < messages {
            while sender.has_room(&counters, ticket).expect("infallible") {
                let buffer = &mut buffers[(ticket % slots) as usize];
                assert_eq!(buffer.replace(ticket), None, "a message was overwritten");
                ticket = counters.draw(1).expect("infallible");
            }
            let there: Vec<u64> =
                receiver.open().filter(|&open| buffers[(open % slots) as usize] == Some(open)).collect();
            assert!(!there.is_empty(), "neither side can go on");
            let taken = there[pick(got) % there.len()];
            buffers[(taken % slots) as usize] = None;
            receiver.take(taken);
            receiver.publish(&counters, there.len() == 1).expect("infallible");
            got += 1;
        }
    }

    #[test]
    fn tickets_are_taken_in_any_order_also_where_the_counters_wrap() {
        for first in [0, 1, u64::MAX - 3, u64::MAX - 100] {
            for slots in [1, 2, 8, 128] {
                run(first, slots, 1000, |_| 0);
                run(first, slots, 1000, |_| usize::MAX);
                run(first, slots, 1000, |got| got.wrapping_mul(0x9e37_79b9) >> 7);
            }
        }
    }
}
