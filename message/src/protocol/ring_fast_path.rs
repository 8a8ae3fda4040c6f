//! The fast path through a ring, for messages that are not short, in blocking calls and nonblocking sends. It requires
//! that both ranks can access each other's memory and that nothing else uses the slot or the ring. It makes no call of
//! the fabric, so it needs no revocable buffer and no operation, and does not hold a ring. If the fast path cannot
//! continue, the slow path continues from the state that was reached.

use crate::context::{Context, Received};
use crate::protocol::fit::misfit;
use crate::protocol::pipelined::MatchedSlot;
use crate::protocol::ring::FAST_PATH_MAX;
use crate::protocol::ring_consumer::RingConsumer;
use crate::protocol::ring_span::RingSpan;
use crate::protocol::sender::{self, Found};
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data, SHORT_MAX};
use crate::strided::ValueView;
use std::sync::Arc;
use tasuki_core::base::ValueKind;
use tasuki_core::base::sync::Ordering::{Acquire, Relaxed};
use tasuki_core::engine::Started;
use tasuki_core::segment::GlobalAddress;

/// The result of a receive on the fast path.
#[derive(Debug)]
pub(crate) enum FastPath {
    Done(Received),
    /// The receive is posted, and perhaps has taken a part of its message. The slow path continues.
    ContinueSlowly(RingConsumer),
}

impl Context {
    /// Sends a message on an occupied slot, if a staged receive is posted for it and a ring is free. Returns false if
    /// nothing was done.
    pub(crate) fn send_by_ring(
        &self,
        bytes: impl ValueView,
        kind: ValueKind,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
    ) -> bool {
        let (len, state) = (bytes.bytes(), bank.state(index));
        let may = (SHORT_MAX as u64 + 1..=FAST_PATH_MAX).contains(&len)
            && bank.is_mapped()
            && state.buffered.load(Acquire) == 0; // SYNC unbuffered
        if !may || !matches!(sender::find(bank, index, (kind, len)), Found::Staged) {
            return false;
        }
        let number = bank.next_number(index);
        let at = MatchedSlot { bank, index, number, slot: bank.slot(index), kind };
        let sent = self.progress.rings.fill(at, len, |span| self.copy_into_ring(bytes, at, span));
        if sent {
            state.sent.store(number, Relaxed);
        }
        sent
    }

    /// Copies a message into a ring of this rank and announces each chunk. Returns false if nothing was done. If the
    /// first chunk can be copied, all chunks can.
    #[inline]
    fn copy_into_ring(&self, bytes: impl ValueView, at: MatchedSlot<'_>, span: RingSpan) -> bool {
        for chunk in 0..span.chunking.chunks() {
            let is_announced = bytes.copy_out(&self.worker, span.chunking.part(chunk), span.place(chunk))
                && at.announce(span, chunk + 1).is_ok();
            if !is_announced {
                debug_assert_eq!(chunk, 0, "the receiver knows of the message");
                return false;
            }
        }
        true
    }

    /// Posts a receive on an occupied slot, and takes its message if it arrives soon. Returns `None` if nothing was
    /// done.
    pub(crate) fn receive_by_ring(
        &self,
        into: impl ValueView,
        kind: ValueKind,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
    ) -> Option<FastPath> {
        let room = into.bytes();
        let is_staged = room < self.worker.fabric().capabilities().direct_from;
        if index == ANY || room <= SHORT_MAX as u64 || !is_staged || !bank.is_mapped() {
            return None;
        }
        let mut consumer = RingConsumer::next(bank, index);
        let RingConsumer { number, version, .. } = consumer;
        bank.describe(index, (number, version), (GlobalAddress::NULL, room, kind)).ok()?;
        bank.write_posting(index, encoding::staged_posting(number, version, room, kind)).ok()?;
        let attempts = self.worker.spins(Some(bank.peer));
        let mut left = attempts;
        loop {
            match encoding::read_data(bank.data(index), number) {
                Data::None => {}
                Data::Staged { chunks } if misfit(RingSpan::message(bank, index), (kind, room)).is_none() => {
                    let (span, before) = (RingSpan::at(bank, index), consumer.taken);
                    let taken = consumer.take((bank, index), span, chunks, |place, part, caching| {
                        let is_copied = into.copy_in(&self.worker, place, part, caching);
                        Ok(if is_copied { Started::Done(0) } else { Started::Later })
                    });
                    if !matches!(taken, Ok(Started::Done(_))) {
                        break;
                    }
                    if consumer.needs_ack(span) {
                        if bank.write_taken(index, number, consumer.taken).is_err() {
                            break;
                        }
                        consumer.acknowledged = consumer.taken;
                    }
                    if consumer.acknowledged == span.chunking.chunks() {
                        bank.state(index).received.store(number, Relaxed);
                        let (slot, len) = (bank.data_word(index, 2) as u32, span.chunking.len());
                        return Some(FastPath::Done(Received { slot, source: bank.member, len }));
                    }
                    if consumer.taken > before {
                        left = attempts;
                    }
                }
                _ => break,
            }
            let Some(fewer) = left.checked_sub(1) else { break };
            left = fewer;
            std::hint::spin_loop();
        }
        Some(FastPath::ContinueSlowly(consumer))
    }
}
