//! Posting to a queue that this process does not reach: places are reserved by the fabric's atomics, and lines are
//! written by the fabric. The queue's owner looks, or its helper.

use super::post::{QueueName, closed, full};
use crate::base::{Cause, Error};
use crate::engine::trace::QueueId;
use crate::engine::worker::Worker;
use crate::fabric::{Atomic, AtomicKind, CommandWrite, Refused, Width};
use crate::queue::encoding::EncodedCommand;
use crate::queue::layout::{QueueInfo, QueueWord, RemoteQueueHeader};
use crate::queue::ring::CLOSED;
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// EventKind is known of queues that are out of reach.
pub(super) type RemoteQueues = BTreeMap<QueueName, QueueInfo>;

impl Worker {
    /// Posts commands, which were checked and take so many lines, to a queue that is out of reach.
    pub(super) fn post_remotely<'c>(
        &self,
        name: QueueName,
        card: &QueueInfo,
        lines: u64,
        commands: impl Iterator<Item = &'c EncodedCommand> + Clone,
    ) -> Result<u64, Cause> {
        let begin = self.recorder().map(|_| self.platform().observer_now_ns());
        let first = self.reserve_remotely(name, card, lines)?;
        let mut position = first;
        for command in commands.clone() {
            self.write_remotely(name, card, position, command)?;
            position += command.count();
        }
        if let (Some(recorder), Some(begin)) = (self.recorder(), begin) {
            let QueueInfo { number, generation, .. } = *card;
            let queue = QueueId { owner: name.address().rank(), number, generation };
            self.record_posts(recorder, begin, queue, first, commands);
        }
        Ok(first)
    }

    /// The facts of a queue, asked for once.
    pub(super) fn remote_card(&self, name: QueueName) -> Result<QueueInfo, Cause> {
        let known = || self.commands().remote.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(card) = known().get(&name) {
            return Ok(*card);
        }
        let mut facts = RemoteQueueHeader::default();
        let at = name.address();
        self.get(QueueWord::QueueHeader.of(at), facts.bytes_mut()).map_err(cause)?;
        let card = facts.card().filter(|card| card.generation == name.generation());
        let card = card.ok_or(Cause::Stale { address: at.bits() })?;
        known().insert(name, card);
        Ok(card)
    }

    fn reserve_remotely(&self, name: QueueName, card: &QueueInfo, count: u64) -> Result<u64, Cause> {
        let word = |place: QueueWord, kind, operand| {
            let atomic = Atomic { kind, operand, width: Width::W8 };
            self.atomic(place.of(name.address()), atomic).map_err(cause)
        };
        let mut first = word(QueueWord::Reserved, AtomicKind::Load, 0)?;
        loop {
            let read = self.read_remotely(name)?;
            if first.saturating_add(count) > read + card.capacity {
                if first & CLOSED == 0 {
                    return Err(full(card.number, card.capacity, count));
                }
                let mut cycle = [0; 8];
                self.get(QueueWord::Cycle.of(name.address()), &mut cycle).map_err(cause)?;
                return Err(closed(card.number, name.address().rank(), cycle != [0; 8]));
            }
            let kind = AtomicKind::Cas { expected: first };
            let before = word(QueueWord::Reserved, kind, first + count)?;
            if before == first {
                return Ok(first);
            }
            first = before;
        }
    }

    /// As far as a queue was read, or less. The word is its reader's processor's: an atomic of the fabric might change
    /// it, and a copy may be torn. Two copies in a row that are alike are not ahead: where the higher bytes were alike
    /// in both, they did not change in between, in which the lower ones of the second were read, and so on downwards.
    fn read_remotely(&self, name: QueueName) -> Result<u64, Cause> {
        let copy = || {
            let mut word = [0; 8];
            self.get(QueueWord::Read.of(name.address()), &mut word).map_err(cause)?;
            Ok(u64::from_le_bytes(word))
        };
        let mut last = copy()?;
        loop {
            let next = copy()?;
            if std::mem::replace(&mut last, next) == next {
                return Ok(next);
            }
        }
    }

    fn write_remotely(
        &self,
        name: QueueName,
        card: &QueueInfo,
        position: u64,
        lines: &EncodedCommand,
    ) -> Result<(), Cause> {
        let place = |position| QueueWord::RingLine { position, capacity: card.capacity }.of(name.address());
        let places = [place(position), place(position + 1)];
        let write = CommandWrite { places, position, words: lines.words, lines: lines.count() };
        loop {
            match self.fabric().write_command(&write) {
                Ok(()) => return Ok(()),
                Err(Refused::Never(cause)) => return Err(*cause),
                // The places are reserved: what is not written would hold up all that comes after it.
                Err(Refused::Again | Refused::Relay) => self.relax("post").map_err(cause)?,
            }
        }
    }
}

fn cause(error: Error) -> Cause {
    error.cause().clone()
}
