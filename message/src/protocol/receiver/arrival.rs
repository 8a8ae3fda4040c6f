//! What a posted receive does with the data that arrive in its slot, until its message is complete.

use super::{RecvNext, RecvProtocol, RecvState};
use crate::protocol::fit::{misfit, reported_misfit, stays};
use crate::protocol::outcome::{Done, Outcome};
use crate::protocol::ring_span::RingSpan;
use crate::protocol::split_copy;
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding::{self, CHUNKS_MAX, Claim, Data, SHORT_MAX};
use tasuki_core::base::sync::Ordering::Relaxed;
use tasuki_core::base::{Cause, ValueKind};
use tasuki_core::engine::{Started, Worker};
use tasuki_core::fabric::Refused;

impl RecvProtocol {
    /// Ends a receive that cannot continue. If no chunk was acknowledged to its sender, the message stays for the
    /// next receive.
    #[cold]
    pub(super) fn fail_midway(&mut self, cause: Cause) -> RecvNext {
        if self.consumer.acknowledged == 0 && !self.all_parts_taken {
            return self.fail(cause);
        }
        self.failed = Some(cause);
        self.go_to(RecvState::Posted)
    }

    /// Acknowledges the whole message, so that the send ends. Until the send has ended, the sender may write to the
    /// receive's buffer.
    #[cold]
    fn give_up(&mut self, bank: &SlotBank, index: SlotIndex, cause: Cause) -> RecvNext {
        let chunks = match encoding::read_data(bank.data(index), self.consumer.number) {
            Data::Staged { .. } => RingSpan::at(bank, index).chunking.chunks(),
            Data::SplitCopy if self.consumer.acknowledged == CHUNKS_MAX => return RecvNext::Waits,
            Data::SplitCopy => CHUNKS_MAX,
            _ => {
                bank.state(index).received.store(self.consumer.number, Relaxed);
                return self.fail(cause);
            }
        };
        self.failed = Some(cause.clone()); // if the fabric has no room, this is done again
        match bank.write_taken(index, self.consumer.number, chunks) {
            Err(Refused::Again | Refused::Relay) => RecvNext::Waits,
            Ok(()) if chunks == CHUNKS_MAX => {
                self.consumer.acknowledged = CHUNKS_MAX;
                RecvNext::Waits
            }
            Ok(()) | Err(Refused::Never(_)) => {
                bank.state(index).received.store(self.consumer.number, Relaxed);
                self.fail(cause)
            }
        }
    }

    /// Acts on the data that have arrived.
    pub(super) fn check_data(&mut self, worker: &Worker, bank: &SlotBank, index: SlotIndex) -> RecvNext {
        let receive = (self.kind, self.into.len());
        if let Some(cause) = self.failed.clone() {
            return self.give_up(bank, index, cause);
        }
        match encoding::read_data(bank.data(index), self.consumer.number) {
            Data::None if self.withdraw_requested && !self.needs_claim => {
                self.withdraw_staged(worker, bank, index)
            }
            Data::None if self.withdraw_requested => {
                let posted = encoding::claim(self.consumer.number, self.consumer.version, Claim::Posted);
                self.withdraw_claim(worker, bank, index, posted)
            }
            Data::None => self.look_for_late_match(worker, bank, index),
            Data::Staged { chunks } => {
                let (kind, len) = RingSpan::message(bank, index);
                match misfit((kind, len), receive) {
                    None => self.fetch(worker, bank, index, chunks),
                    Some(cause) if stays(kind, self.kind) || self.withdraw_requested => self.fail(cause),
                    Some(cause) => self.give_up(bank, index, cause),
                }
            }
            Data::SplitCopy if self.all_parts_taken => RecvNext::Waits,
            Data::SplitCopy => {
                self.all_parts_taken = true;
                match split_copy::copy_parts_as_receiver(
                    worker,
                    bank,
                    index,
                    self.consumer.number,
                    &self.into,
                ) {
                    Ok(true) => RecvNext::Continue,
                    Err(Refused::Never(cause)) => self.fail_midway(*cause),
                    Ok(false) | Err(_) => RecvNext::Waits,
                }
            }
            Data::InPlace => {
                let (len, slot) = (bank.data_word(index, 0), bank.data_word(index, 1) as u32);
                let kind = ValueKind::from_bits((bank.data_word(index, 1) >> 32) as u32);
                self.done(bank, index, Done { len, slot, kind, was_kept: false })
            }
            Data::Short { tag, len } => {
                // The sender of a message to a receive of any slot has compared the types.
                let (slot, kind) = match index {
                    ANY => (tag, self.kind),
                    _ => (bank.slot(index), ValueKind::from_bits(tag)),
                };
                if let Some(cause) = misfit((kind, len as u64), receive) {
                    if !stays(kind, self.kind) && !self.withdraw_requested {
                        bank.state(index).received.store(self.consumer.number, Relaxed);
                    }
                    return self.fail(cause);
                }
                let mut bytes = [0; SHORT_MAX];
                bank.unpack(index, &mut bytes[..len]);
                let done = Done { len: len as u64, slot, kind, was_kept: false };
                let into = self.into.make_for(len as u64).and_then(|()| self.into.enter());
                match into.and_then(|into| into.start_store(worker, &bytes[..len])) {
                    Ok(Started::Done(_)) => self.done(bank, index, done),
                    Ok(Started::InFlight(operation)) => self.go_to(RecvState::Storing { operation, done }),
                    Ok(Started::Later) => RecvNext::Waits,
                    Err(cause) => self.fail(cause),
                }
            }
            Data::Failed => {
                bank.state(index).received.store(self.consumer.number, Relaxed);
                self.fail(Cause::NotSent { peer: bank.peer })
            }
            Data::Unfit { version } if version == self.consumer.version => {
                bank.state(index).received.store(self.consumer.number, Relaxed);
                self.fail(reported_misfit(bank, index, receive))
            }
            // The message did not fit in a receive that was withdrawn since, and its sender has got an error. This
            // receive is for the next message.
            Data::Unfit { .. } => {
                bank.state(index).received.store(self.consumer.number, Relaxed);
                self.consumer.number = self.consumer.number.wrapping_add(1);
                self.consumer.version = bank.next_version(index);
                self.go_to(RecvState::Describing)
            }
        }
    }

    /// Copies chunks out of the sender's ring, or acknowledges the chunks that were copied.
    fn fetch(&mut self, worker: &Worker, bank: &SlotBank, index: SlotIndex, chunks: u32) -> RecvNext {
        let span = RingSpan::at(bank, index);
        if self.consumer.needs_ack(span) {
            let written = bank.write_taken(index, self.consumer.number, self.consumer.taken);
            return match written {
                Ok(()) if self.consumer.taken < span.chunking.chunks() => {
                    self.consumer.acknowledged = self.consumer.taken;
                    RecvNext::Continue
                }
                Ok(()) => {
                    let ((kind, len), slot) =
                        (RingSpan::message(bank, index), bank.data_word(index, 2) as u32);
                    // The sender has an acknowledgement of all chunks.
                    match self.into.unpack_staged(false) {
                        Ok(()) => self.done(bank, index, Done { len, slot, kind, was_kept: false }),
                        Err(cause) => {
                            bank.state(index).received.store(self.consumer.number, Relaxed);
                            self.fail(cause)
                        }
                    }
                }
                Err(_) => self.written_then(written, RecvState::Posted),
            };
        }
        if chunks == self.consumer.taken {
            return match self.into.unpack_staged(false) {
                Ok(()) => RecvNext::Waits,
                Err(cause) => self.fail_midway(cause),
            };
        }
        let into = self.into.make_for(span.chunking.len()).and_then(|()| self.into.enter());
        let taken = into.and_then(|into| {
            let copy = |place, part, caching| into.start_copy_in(worker, place, part, caching);
            self.consumer.take((bank, index), span, chunks, copy)
        });
        match taken {
            Ok(Started::Done(_)) => RecvNext::Continue,
            Ok(Started::InFlight(operation)) => {
                // Chunks that have arrived before are unpacked while this one travels. If that fails, it fails again at
                // the end.
                let _ = self.into.unpack_staged(true);
                self.go_to(RecvState::Fetching { operation })
            }
            Ok(Started::Later) => RecvNext::Waits,
            Err(cause) => self.fail_midway(cause),
        }
    }

    pub(super) fn fetched(&mut self) -> RecvNext {
        self.consumer.taken += 1;
        self.go_to(RecvState::Posted)
    }

    pub(super) fn done(&mut self, bank: &SlotBank, index: SlotIndex, done: Done) -> RecvNext {
        bank.state(index).received.store(self.consumer.number, Relaxed);
        self.ended(Outcome::Done(done))
    }
}
