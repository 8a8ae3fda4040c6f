//! Shared copies: a long copy is divided into chunks, which all waiting ranks of the node may copy.

use crate::base::{Cause, Rank};
use crate::engine::command_queue::lookup::{Failure, ResolvedQueue};
use crate::engine::trace::{CommandId, EventKind, QueueId, Recorder};
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::node::shared_copy::{CHUNKS_MAX, CompletedCopy, CopyEnd, SharedChunk};
use crate::queue::command::{Action, Command};
use crate::segment::GlobalAddress;

/// Fewest bytes of a copy that is shared. A shorter copy is finished before another processor notices it.
const SHARED_BYTES_MIN: u64 = 128 << 10;
/// Fewest bytes of a copy for which a helper is woken. Waking takes 5 us, in which one processor copies 200 KiB.
const HELPER_BYTES_MIN: u64 = 512 << 10;
/// Bytes of a chunk, except in the longest copies. A rank that copies a chunk does not check for
/// the end of its own wait meanwhile, which is some microseconds.
const CHUNK: u64 = 64 << 10;

/// Bytes of each chunk of a copy.
fn chunk_of(len: u64) -> u64 {
    len.div_ceil(u64::from(CHUNKS_MAX)).next_multiple_of(CHUNK)
}

/// The description of a shared copy.
#[derive(Clone, Copy)]
struct SharedCopyRequest {
    from: GlobalAddress,
    to: GlobalAddress,
    len: u64,
    place: CommandId,
}

impl SharedCopyRequest {
    fn words(self) -> [u64; 6] {
        let CommandId { queue: QueueId { owner, number, generation }, number: command_number } = self.place;
        let owner = u64::from(owner.to_word()) << 32 | u64::from(number);
        [self.from.bits(), self.to.bits(), self.len, owner, u64::from(generation), command_number]
    }

    fn of(words: [u64; 6]) -> SharedCopyRequest {
        let [from, to, len, owner, generation, command_number] = words;
        let (from, to) = (GlobalAddress::from_bits(from), GlobalAddress::from_bits(to));
        let (owner, number) = (Rank::from_word((owner >> 32) as u32), owner as u32);
        let queue = QueueId { owner, number, generation: generation as u32 };
        SharedCopyRequest { from, to, len, place: CommandId { queue, number: command_number } }
    }
}

impl Worker {
    /// Shares a copy that was taken for this rank, if it is long enough and between job memory, and copies chunks until
    /// none is left to claim. The rank that completes the copy ends the command. Returns true if the copy was shared.
    pub(in crate::engine::command_queue) fn share_copy(
        &self,
        resolved: &ResolvedQueue<'_>,
        command_number: u64,
        command: &Command,
    ) -> bool {
        let Action::Copy { from, to, len } = command.action else { return false };
        let is_apart = from.rank() != to.rank() || from.bits().abs_diff(to.bits()) >= len;
        if len < SHARED_BYTES_MIN || !self.commands().direct || !is_apart {
            return false;
        }
        if !self.can_map(from, len) || !self.can_map(to, len) {
            return false;
        }
        let offer = SharedCopyRequest { from, to, len, place: resolved.place(command_number) };
        let offered =
            self.node_state().shared_copies().open(offer.words(), len.div_ceil(chunk_of(len)) as u32);
        if offered && len >= HELPER_BYTES_MIN {
            self.node_state().notify_helper(Rank(0));
        }
        while offered && self.copy_shared_chunk() {}
        offered
    }

    /// Copies a chunk of a shared copy of the node. Returns false if there is none.
    pub(in crate::engine) fn copy_shared_chunk(&self) -> bool {
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

    /// Returns true if the node may have a shared copy with chunks left.
    #[inline(always)]
    pub(in crate::engine) fn has_shared_copies(&self) -> bool {
        self.node_state().shared_copies().has_any()
    }

    /// Copies a chunk and records it.
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
        let Some(resolved) = self.commands().find_by_id(place.queue) else { return };
        // The memory was mapped when the copy was offered, and was not when a chunk was copied.
        let stale = || Poison::of(&Cause::Stale { address: from.bits() }, self.rank());
        let failure: Failure = (!complete.is_ok).then(stale);
        self.end_in_flight(&resolved, place.number, failure);
        self.run_queue_and_ready(&resolved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_copy_decodes_to_what_was_encoded() {
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
