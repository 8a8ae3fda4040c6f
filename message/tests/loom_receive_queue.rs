//! A model of the tickets of a receive queue: no buffer is written again before its message was read.
#![cfg(loom)]

use loom::cell::Cell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use std::convert::Infallible;
use tasuki_core::fabric::{Atomic, AtomicKind, Width};
use tickets::{ReceiverTickets, SenderTickets, TicketMemory};

#[allow(dead_code)] // the model looks at buffers in an order of its own
#[path = "../src/receive_queue/tickets.rs"]
mod tickets;

const SLOTS: u64 = 2;

/// The counters, and the buffers of a queue.
#[derive(Default)]
struct Memory {
    drawn: AtomicU64,
    consumed: AtomicU64,
    /// For each buffer the ticket + 1 of its message, and the message. Loom reports any two accesses to a message that
    /// are not ordered.
    buffers: [(AtomicU64, Cell<u64>); SLOTS as usize],
}

fn apply(word: &AtomicU64, kind: AtomicKind, operand: u64) -> u64 {
    Atomic { kind, operand, width: Width::W8 }.apply8(word)
}

impl TicketMemory for Memory {
    type Error = Infallible;

    fn draw(&self, count: u64) -> Result<u64, Infallible> {
        Ok(apply(&self.drawn, AtomicKind::Add, count))
    }

    fn consumed(&self) -> Result<u64, Infallible> {
        Ok(apply(&self.consumed, AtomicKind::Load, 0))
    }

    fn consume(&self, count: u64) -> Result<(), Infallible> {
        apply(&self.consumed, AtomicKind::Add, count);
        Ok(())
    }
}

/// Sends messages, each its ticket.
fn send(memory: &Memory, messages: u32) {
    let mut tickets = SenderTickets::new(SLOTS, 0);
    for _ in 0..messages {
        let Ok(ticket) = memory.draw(1);
        while let Ok(false) = tickets.has_room(memory, ticket) {
            thread::yield_now();
        }
        let (word, message) = &memory.buffers[(ticket % SLOTS) as usize];
        message.set(ticket);
        word.store(ticket + 1, Ordering::Release);
    }
}

#[test]
fn a_message_is_read_before_its_buffer_is_used_again() {
    loom::model(|| {
        let memory = Arc::new(Memory::default());
        // One sender: two take minutes.
        let sender = {
            let memory = memory.clone();
            thread::spawn(move || send(&memory, 3))
        };
        let mut tickets = ReceiverTickets::new(SLOTS, 0);
        // The second message is taken first, as by a receive of its slot.
        for ticket in [1, 0, 2] {
            let (word, message) = &memory.buffers[(ticket % SLOTS) as usize];
            while word.load(Ordering::Acquire) != ticket + 1 {
                assert!(word.load(Ordering::Acquire) <= ticket + 1, "the message was overwritten");
                thread::yield_now();
            }
            assert_eq!(message.get(), ticket);
            tickets.take(ticket);
            let Ok(()) = tickets.publish(&*memory, true);
        }
        sender.join().unwrap();
    });
}
