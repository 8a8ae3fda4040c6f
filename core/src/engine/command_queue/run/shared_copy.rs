//! Long copies: offered to all ranks of the node that wait, a chunk at a time.

use crate::base::{Cause, Rank};
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::run::Failure;
use crate::engine::trace::{CommandId, EventKind, QueueId, Recorder};
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::node::shared_copy::{CHUNKS_MAX, CompletedCopy, CopyEnd, SharedChunk};
use crate::queue::command::{Action, Command};
use crate::segment::GlobalAddress;

/// From how many bytes on a copy is shared: below, one processor is through before another has noticed.
const SHARED_FROM: u64 = 128 << 10;
/// From how many bytes on it is worth while to wake a helper for it: that takes 5 us, in which 200 KiB are copied.
const HELPED_FROM: u64 = 512 << 10;
/// Bytes of a chunk, of all but the longest copies: some microseconds, for which a rank that waits is kept from what it
/// waits for.
const CHUNK: u64 = 64 << 10;

/// Bytes of each chunk of a copy.
fn chunk_of(len: u64) -> u64 {
    len.div_ceil(u64::from(CHUNKS_MAX)).next_multiple_of(CHUNK)
}

/// A copy as it is offered.
#[derive(Clone, Copy)]
struct SharedCopyRequest {
    from: GlobalAddress,
    to: GlobalAddress,
    len: u64,
    place: CommandId,
}

impl SharedCopyRequest {
    fn words(self) -> [u64; 6] {
        let CommandId { queue: QueueId { owner, number, generation }, number: flight } = self.place;
        let owner = u64::from(owner.0) << 32 | u64::from(number);
        [self.from.bits(), self.to.bits(), self.len, owner, u64::from(generation), flight]
    }

    fn of(words: [u64; 6]) -> SharedCopyRequest {
        let [from, to, len, owner, generation, flight] = words;
        let (from, to) = (GlobalAddress::from_bits(from), GlobalAddress::from_bits(to));
        let (owner, number) = (Rank((owner >> 32) as u32), owner as u32);
        let queue = QueueId { owner, number, generation: generation as u32 };
        SharedCopyRequest { from, to, len, place: CommandId { queue, number: flight } }
    }
}

impl Worker {
    /// Offers a command that was taken for this rank to all that wait, if it is long enough and job memory, and takes
    /// part until nothing is left to begin. Whoever ends it tells the queue.
    pub(in crate::engine::command_queue) fn share_copy(
        &self,
        named: &ResolvedQueue<'_>,
        flight: u64,
        command: &Command,
    ) -> bool {
        let Action::Copy { from, to, len } = command.deed else { return false };
        let is_apart = from.rank() != to.rank() || from.bits().abs_diff(to.bits()) >= len;
        if len < SHARED_FROM || !self.commands().direct || !is_apart {
            return false;
        }
        if !self.can_map(from, len) || !self.can_map(to, len) {
            return false;
        }
        let offer = SharedCopyRequest { from, to, len, place: named.place(flight) };
        let offered =
            self.node_state().shared_copies().open(offer.words(), len.div_ceil(chunk_of(len)) as u32);
        if offered && len >= HELPED_FROM {
            self.notify_helper(Rank(0));
        }
        while offered && self.share() {}
        offered
    }

    /// Copies a chunk of what the ranks of the node share. False if there is none.
    pub(in crate::engine) fn share(&self) -> bool {
        let end = if self.rank().0.is_multiple_of(2) { CopyEnd::Front } else { CopyEnd::Back };
        let Some(chunk) = self.node_state().shared_copies().claim(end) else { return false };
        let is_ok = match self.recorder() {
            None => self.copy_chunk(&chunk),
            Some(recorder) => self.copy_chunk_and_record(recorder, &chunk),
        };
        if let Some(complete) = self.node_state().shared_copies().done(&chunk, is_ok) {
            self.shared_ended(&complete);
        }
        true
    }

    /// Whether ranks of the node share a copy.
    #[inline(always)]
    pub(in crate::engine) fn has_shares(&self) -> bool {
        self.node_state().shared_copies().has_any()
    }

    /// The same, recorded.
    #[cold]
    fn copy_chunk_and_record(&self, recorder: &Recorder, chunk: &SharedChunk) -> bool {
        let place = SharedCopyRequest::of(chunk.words).place;
        let begin = self.platform().observer_now_ns();
        let is_ok = self.copy_chunk(chunk);
        let what = EventKind::Shared(place, u64::from(chunk.index));
        recorder.record(begin, self.platform().observer_now_ns(), !is_ok, what);
        is_ok
    }

    fn copy_chunk(&self, chunk: &SharedChunk) -> bool {
        let SharedCopyRequest { from, to, len, .. } = SharedCopyRequest::of(chunk.words);
        let at = u64::from(chunk.index) * chunk_of(len);
        let size = chunk_of(len).min(len - at);
        let (from, to) = (from.add(at), to.add(at));
        let caching = self.caching(to, len);
        let copy = || self.copy_across(from, to, size, caching);
        copy() || self.can_map(from, size) && self.can_map(to, size) && copy()
    }

    fn shared_ended(&self, complete: &CompletedCopy) {
        let SharedCopyRequest { from, place, .. } = SharedCopyRequest::of(complete.words);
        let Some(named) = self.find_named(place.queue) else { return };
        // It was there when the copy was offered, and not when a part of it was.
        let stale = || Poison::of(&Cause::Stale { address: from.bits() }, self.rank());
        let failure: Failure = (!complete.is_ok).then(stale);
        self.end_flight(&named, place.number, failure);
        self.run_queue_and_ready(&named);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_as_it_was_written() {
        let at = |rank, offset| GlobalAddress::new(Rank(rank), offset);
        let (from, to) = (at(0xff_fffe, 1 << 39), at(3, 1 << 30));
        let queue = QueueId { owner: Rank(77), number: 4095, generation: 65_535 };
        let place = CommandId { queue, number: 1 << 40 };
        let offer = SharedCopyRequest { from, to, len: 1 << 39, place };
        assert_eq!(SharedCopyRequest::of(offer.words()).words(), offer.words());
        assert_eq!(
            (SharedCopyRequest::of(offer.words()).from, SharedCopyRequest::of(offer.words()).place),
            (from, place)
        );
    }
}
