//! Readiness: whether running a queue might make progress. Only reads, without the lease.

use crate::engine::command_queue::command_queues::CommandQueues;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::queue::encoding::EncodedCommand;
use crate::queue::in_flight::InFlightStage;
use crate::queue::lease::LeaseSnapshot;
use crate::queue::ring::{LINE_WORDS, RingLineState};

/// The state of the next line of a queue's ring.
pub(super) enum RingState {
    /// Nothing was posted.
    Nothing,
    /// A position was reserved, and its line was not written when it was read.
    Unwritten,
    /// A command that can be read now.
    Readable,
    /// A command that waits for the queue's credit, for a trigger at the head, or for room.
    Waiting,
}

impl CommandQueues {
    /// Returns true if commands are in flight or ready in the rank's own queues.
    pub(in crate::engine) fn are_busy(&self) -> bool {
        if !self.are_used() {
            return false;
        }
        let snapshots = || self.own_queues().map(|resolved| resolved.queue.lease().snapshot());
        let seen: Vec<LeaseSnapshot> = snapshots().collect();
        let is_busy = |resolved: &ResolvedQueue<'_>| {
            !resolved.queue.in_flight().is_empty() || self.looks_ready(resolved, true, true)
        };
        // A thread that holds a lease, or held it meanwhile, may have taken a command from its list and not run it yet.
        !seen.iter().all(|lease| lease.is_free())
            || self.own_queues().any(|resolved| is_busy(&resolved))
            || !snapshots().eq(seen)
    }

    /// Returns true if running the queue might make progress. Only reads, without the lease. `strict`: also returns
    /// true if a thread holds the lease, because its last check may have been before this, and if positions are
    /// reserved.
    #[inline]
    pub(super) fn looks_ready(&self, resolved: &ResolvedQueue<'_>, with_ring: bool, strict: bool) -> bool {
        if !resolved.queue.lease().snapshot().is_free() {
            return strict; // else its holder runs the queue
        }
        self.is_ready(resolved, with_ring, strict)
    }

    #[inline]
    pub(super) fn is_ready(&self, resolved: &ResolvedQueue<'_>, with_ring: bool, strict: bool) -> bool {
        let queue = &resolved.queue;
        let in_flight = queue.in_flight();
        let mut triggers = queue.triggered().triggers();
        if let Some(list) =
            triggers.position(|trigger| resolved.trigger_outcome(&self.fabric, trigger).is_some())
            && in_flight.has_room()
        {
            self.fetch_source(resolved, list);
            return true;
        }
        with_ring && self.has_posts(resolved, strict)
            || queue.for_owner() > 0
            || !in_flight.is_empty() && has_ended(resolved)
    }

    /// Returns true if a command was posted that can be read now.
    #[inline]
    fn has_posts(&self, resolved: &ResolvedQueue<'_>, strict: bool) -> bool {
        matches!(self.unread(resolved, strict), RingState::Readable | RingState::Unwritten)
    }

    /// The state of the next line of the ring. `strict`: also checks for reserved positions. That reads the cache line
    /// of the posters, which a poster then has to fetch back.
    #[inline(always)]
    pub(super) fn unread(&self, resolved: &ResolvedQueue<'_>, strict: bool) -> RingState {
        let queue = &resolved.queue;
        let read = queue.reader().read();
        let (written, pass) = queue.place_of(read);
        let line = queue.line(written);
        let found = match strict && queue.cycle().is_none() {
            true => queue.writers().state_at(read, line),
            false if line.holds(written) => RingLineState::Written,
            false => RingLineState::Nothing,
        };
        match found {
            RingLineState::Nothing => RingState::Nothing,
            RingLineState::Reserved => RingState::Unwritten,
            RingLineState::Written if self.may_be_read(resolved, written, pass) => RingState::Readable,
            RingLineState::Written => RingState::Waiting,
        }
    }

    /// Returns true if the command in a line may be read now.
    #[inline]
    fn may_be_read(&self, resolved: &ResolvedQueue<'_>, written: u64, pass: u64) -> bool {
        let waits = |pass: u64| {
            let encoded = EncodedCommand { words: [resolved.queue.line(written).read(), [0; LINE_WORDS]] };
            resolved.head_outcome(&self.fabric, &encoded, pass).is_none()
        };
        resolved.credit(&self.fabric).is_some()
            && !(resolved.queue.cycle().is_some() && waits(pass))
            && self.has_room(resolved, written)
    }

    /// Returns true if there is room for the command in a line if it is read now.
    fn has_room(&self, resolved: &ResolvedQueue<'_>, written: u64) -> bool {
        if !resolved.queue.in_flight().has_room() {
            return false;
        }
        if resolved.queue.triggered().has_room() {
            return true;
        }
        let line = |at: u64| resolved.queue.line(at).read();
        let mut encoded = EncodedCommand { words: [line(written), [0; LINE_WORDS]] };
        if encoded.line_count() == 2 {
            encoded.words[1] = line(written + 1);
        }
        encoded
            .triggers()
            .into_iter()
            .flatten()
            .all(|trigger| resolved.trigger_outcome(&self.fabric, trigger).is_some())
    }
}

/// Returns true if the effects of an in-flight command can happen now. Effects that wait for an earlier command do not
/// count as work: the rank that runs the earlier command may be dead, and a waiting thread detects that only if it
/// finds no work.
fn has_ended(resolved: &ResolvedQueue<'_>) -> bool {
    let in_flight = resolved.queue.in_flight();
    let may_happen = |number: u64| {
        matches!(in_flight.stage(number), InFlightStage::Ended(_))
            && in_flight.command(number).is_none_or(|command| !in_flight.must_wait(&command.effects, number))
    };
    in_flight.numbers().any(may_happen)
}
