//! Tickets of senders that have given up: the receiver must learn that no message comes, or it would wait for it, and
//! later senders with it.
//!
//! The ticket of a call that has reached its limit is written as void as soon as its buffer is free: by any waiting call
//! of the rank, at the latest when the rank leaves.

use crate::progress::Continuation;
use crate::progress::FinalizeHook;
use crate::progress::engine::ProgressEngine;
use crate::receive_queue::layout::Header;
use crate::receive_queue::sender::QueueAccess;
use crate::receive_queue::tickets::{SenderTickets, TicketMemory};
use std::sync::{Arc, Weak};
use tasuki_core::base::Result;
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::engine::{Deadline, Worker};

/// How long a rank waits between two looks whether the buffer is free, in ns.
const LOOK_EVERY_NS: u64 = 100_000;

/// A ticket without a message.
#[derive(Debug)]
pub(crate) struct VoidTicket {
    access: Arc<QueueAccess>,
    progress: Weak<ProgressEngine>,
    ticket: u64,
    is_over: AtomicBool,
    look_at_ns: AtomicU64,
}

impl VoidTicket {
    /// Lets the rank write a ticket as void.
    pub(crate) fn add(access: &Arc<QueueAccess>, progress: &Arc<ProgressEngine>, ticket: u64) {
        let void = Arc::new(VoidTicket {
            access: access.clone(),
            progress: Arc::downgrade(progress),
            ticket,
            is_over: AtomicBool::new(false),
            look_at_ns: AtomicU64::new(0),
        });
        void.try_write();
        if void.is_under_way() {
            progress.add_continuation(void.clone());
            // Fails only if another hook does, whose owner learns of it when the rank leaves.
            let _ = progress.add_finalize_hook(&access.worker, void);
        }
    }

    /// Writes the ticket if its buffer is free. There is nothing to write if the queue was dropped or the job is over.
    fn try_write(&self) {
        let access = &self.access;
        let is_over = match access.share.counters(&access.worker).consumed() {
            Ok(consumed) if SenderTickets::new(access.share.slots, consumed).is_free(self.ticket) => {
                access.write_line(self.ticket, &Header::void(access.worker.rank())).is_ok()
            }
            Ok(_) => access.is_closed().unwrap_or(true),
            Err(_) => true,
        };
        self.is_over.store(is_over, Ordering::Relaxed);
    }
}

impl Continuation for VoidTicket {
    fn can_resume(&self) -> bool {
        self.is_under_way() && self.access.worker.now_ns() >= self.look_at_ns.load(Ordering::Relaxed)
    }

    fn again_at_ns(&self) -> u64 {
        if self.is_under_way() { self.look_at_ns.load(Ordering::Relaxed) } else { u64::MAX }
    }

    fn is_under_way(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn resume(&self) {
        self.look_at_ns.store(self.access.worker.now_ns() + LOOK_EVERY_NS, Ordering::Relaxed);
        self.try_write();
        if !self.is_under_way()
            && let Some(progress) = self.progress.upgrade()
        {
            progress.remove_continuation(self);
        }
    }
}

impl FinalizeHook for VoidTicket {
    fn is_finalized(&self, _worker: &Worker) -> bool {
        !self.is_under_way()
    }

    fn finalize(&self, worker: &Worker) -> Result<()> {
        let mut tickets = SenderTickets::new(self.access.share.slots, 0);
        while self.is_under_way() {
            // Ends with an error if the receiver has left or dropped the queue: then nobody waits for the ticket.
            match self.access.wait_for_room(&mut tickets, self.ticket, Deadline::NEVER, &|| ()) {
                Ok(()) => self.try_write(),
                Err(_) => return Ok(()),
            }
            worker.pause();
        }
        Ok(())
    }
}
