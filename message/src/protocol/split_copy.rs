//! Split copy: both ranks copy parts of a long message from job memory to job memory. One processor alone does not
//! use the full memory bandwidth, and a rank that waits for a message has nothing better to do.
//!
//! The sender has claimed the receive. It writes the source's address into the receiver's line. Each side takes the
//! next part by adding one to the last word of the claim's line. The receiver reports how many parts it has copied,
//! as it does for a staged message. When all parts are there, the sender writes the data word of a message in place.
//! If the receiver does something else meanwhile, it takes no part and the sender copies all.

use crate::buffer::MessageBuffer;
use crate::protocol::pipelined::{FillResult, MatchedSlot};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding;
use tasuki_core::base::Cause;
use tasuki_core::engine::{CachePolicy, Worker};
use tasuki_core::fabric::Refused;
use tasuki_core::segment::GlobalAddress;

/// Smallest message for a split copy. A shorter message would be complete before the other rank notices it.
const SPLIT_BYTES_MIN: u64 = 64 << 10;
/// Bytes of the smallest and the largest part. Within these limits, a part is an eighth of the message. At the end of a
/// message one rank may wait while the other copies its last part.
const PART_MIN: u64 = 16 << 10;
const PART_MAX: u64 = 256 << 10;

/// How a message is divided into parts. Both sides compute it from the length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyParts {
    len: u64,
    part: u64,
}

impl CopyParts {
    pub(crate) fn of(len: u64) -> CopyParts {
        CopyParts { len, part: (len / 8).next_power_of_two().clamp(PART_MIN, PART_MAX) }
    }

    fn count(self) -> u32 {
        self.len.div_ceil(self.part) as u32
    }

    /// Returns a part's offset and length.
    fn part(self, part: u32) -> (u64, u64) {
        let start = u64::from(part) * self.part;
        (start, self.part.min(self.len - start))
    }

    /// Copies one part.
    fn copy(self, worker: &Worker, part: u32, from: GlobalAddress, to: GlobalAddress) -> Result<(), Cause> {
        let (start, len) = self.part(part);
        let copied = worker.copy_across(from.add(start), to.add(start), len, CachePolicy::of(self.len));
        // Both buffers were directly accessible when the message began.
        let bug = || Cause::Bug("memory became inaccessible during a split copy".into());
        copied.then_some(()).ok_or_else(bug)
    }
}

/// The sender's progress through a split copy.
#[derive(Debug)]
pub(crate) struct SplitCopy {
    from: GlobalAddress,
    to: GlobalAddress,
    parts: CopyParts,
    /// True if the source's address was written to the receiver.
    announced: bool,
    /// Number of parts that the sender has copied.
    copied: u32,
    /// True if all parts are taken.
    all_parts_taken: bool,
}

impl SplitCopy {
    /// Returns a split copy, if each rank has a processor of its own and both ranks can access both buffers directly.
    pub(crate) fn of(
        worker: &Worker,
        bank: &SlotBank,
        from: &MessageBuffer,
        to: GlobalAddress,
    ) -> Option<SplitCopy> {
        let MessageBuffer::Job(from, len) = *from else { return None };
        let can = len >= SPLIT_BYTES_MIN
            && worker.platform().has_processor()
            && bank.is_directly_readable()
            && bank.peer != worker.rank()
            && worker.can_map(from, len)
            && worker.can_map(to, len);
        can.then(|| SplitCopy {
            from,
            to,
            parts: CopyParts::of(len),
            announced: false,
            copied: 0,
            all_parts_taken: false,
        })
    }

    /// Returns true if a step would make progress.
    pub(crate) fn can_step(&self, bank: &SlotBank, index: SlotIndex, number: u32) -> bool {
        !self.all_parts_taken || self.is_over(bank, index, number)
    }

    fn is_over(&self, bank: &SlotBank, index: SlotIndex, number: u32) -> bool {
        let count = self.parts.count();
        self.copied + bank.taken(index, number, count - self.copied) >= count
    }

    /// Copies parts until none is left. The message is over when the receiver has finished its parts, too.
    pub(crate) fn run(&mut self, worker: &Worker, at: MatchedSlot<'_>) -> Result<FillResult, Cause> {
        let MatchedSlot { bank, index, number, .. } = at;
        if !self.announced {
            bank.begin_split_copy(index);
            // The payload holds length, slot and type where the payload of a message in place holds them.
            let payload = [self.parts.len, at.slot_and_kind(), self.from.bits()];
            match bank.write_data(index, encoding::split_copy_data(number), &payload) {
                Ok(()) => self.announced = true,
                Err(Refused::Never(cause)) => return Err(*cause),
                Err(_) => return Ok(FillResult::Waits { moved: false }),
            }
        }
        let moved = !self.all_parts_taken;
        while !self.all_parts_taken {
            match bank.take_part_as_sender(index) {
                part if part < self.parts.count() => {
                    self.parts.copy(worker, part, self.from, self.to)?;
                    self.copied += 1;
                }
                _ => self.all_parts_taken = true,
            }
        }
        Ok(if self.is_over(bank, index, number) { FillResult::Over } else { FillResult::Waits { moved } })
    }
}

/// Called by the receiver: copies parts that are not taken yet, and reports each to the sender. Returns false if no
/// part was left.
pub(crate) fn copy_parts_as_receiver(
    worker: &Worker,
    bank: &SlotBank,
    index: SlotIndex,
    number: u32,
    into: &MessageBuffer,
) -> Result<bool, Refused> {
    let (from, parts) =
        (GlobalAddress::from_bits(bank.data_word(index, 2)), CopyParts::of(bank.data_word(index, 0)));
    let MessageBuffer::Job(to, room) = *into else { return Ok(false) };
    let in_reach = |at| worker.can_map(at, parts.len);
    if parts.len > room || !in_reach(from) || !in_reach(to) {
        return Ok(false);
    }
    let mut copied = 0;
    loop {
        let part = bank.take_part_as_receiver(index);
        if part >= parts.count() {
            return Ok(copied > 0);
        }
        parts.copy(worker, part, from, to).map_err(|cause| Refused::Never(Box::new(cause)))?;
        copied += 1;
        bank.write_taken(index, number, copied)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_one_part() {
        for len in [SPLIT_BYTES_MIN, SPLIT_BYTES_MIN + 1, (1 << 20) - 1, 1 << 20, (64 << 20) + 5] {
            let (parts, mut next) = (CopyParts::of(len), 0);
            for part in 0..parts.count() {
                let (start, bytes) = parts.part(part);
                assert!(start == next && bytes > 0 && bytes <= PART_MAX, "{len}: {part}");
                next += bytes;
            }
            assert_eq!(next, len);
        }
    }
}
