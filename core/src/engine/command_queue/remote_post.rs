//! Posting to a queue that this process cannot map: positions are reserved by atomics of the fabric, and lines are
//! written by the fabric. The queue's owner or its helper runs the queue.

use super::post::{closed, full};
use super::queue_name::QueueName;
use crate::base::{Cause, Error};
use crate::engine::trace::QueueId;
use crate::engine::worker::Worker;
use crate::fabric::{Atomic, AtomicKind, CommandWrite, Refused, Width};
use crate::queue::encoding::EncodedCommand;
use crate::queue::layout::{QueueInfo, QueueWord, RemoteQueueHeader};
use crate::queue::ring::CLOSED;
use std::sync::PoisonError;

impl Worker {
    /// Posts commands, which were checked and take `lines` lines, to a queue that this process cannot map.
    pub(super) fn post_remotely<'c>(
        &self,
        name: QueueName,
        info: &QueueInfo,
        lines: u64,
        commands: impl Iterator<Item = &'c EncodedCommand> + Clone,
    ) -> Result<u64, Cause> {
        let begin = self.recorder().map(|_| self.platform().observer_now_ns());
        let first = self.reserve_remotely(name, info, lines)?;
        let mut position = first;
        for command in commands.clone() {
            self.write_remotely(name, info, position, command)?;
            position += command.line_count();
        }
        if let (Some(recorder), Some(begin)) = (self.recorder(), begin) {
            let QueueInfo { number, generation, .. } = *info;
            let queue = QueueId { owner: name.address().rank(), number, generation };
            self.record_posts(recorder, begin, queue, first, commands);
        }
        Ok(first)
    }

    /// The information about a queue, which is read from its owner once.
    pub(super) fn remote_info(&self, name: QueueName) -> Result<QueueInfo, Cause> {
        let cached = || self.commands().remote.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(info) = cached().get(&name) {
            return Ok(*info);
        }
        let mut header = RemoteQueueHeader::default();
        let at = name.address();
        self.get(QueueWord::QueueHeader.of(at), header.bytes_mut()).map_err(cause)?;
        let info = header.info().filter(|info| info.generation == name.generation());
        let info = info.ok_or(Cause::Stale { address: at.bits() })?;
        cached().insert(name, info);
        Ok(info)
    }

    fn reserve_remotely(&self, name: QueueName, info: &QueueInfo, count: u64) -> Result<u64, Cause> {
        let word = |place: QueueWord, kind, operand| {
            let atomic = Atomic { kind, operand, width: Width::W8 };
            self.atomic(place.of(name.address()), atomic).map_err(cause)
        };
        let mut first = word(QueueWord::Reserved, AtomicKind::Load, 0)?;
        loop {
            let read = self.read_count_remotely(name)?;
            if first.saturating_add(count) > read + info.capacity {
                if first & CLOSED == 0 {
                    return Err(full(info.number, info.capacity, count));
                }
                let mut cycle = [0; 8];
                self.get(QueueWord::Cycle.of(name.address()), &mut cycle).map_err(cause)?;
                return Err(closed(info.number, name.address().rank(), cycle != [0; 8]));
            }
            let kind = AtomicKind::Cas { expected: first };
            let before = word(QueueWord::Reserved, kind, first + count)?;
            if before == first {
                return Ok(first);
            }
            first = before;
        }
    }

    /// The number of positions of a queue that were read, or less. The reader writes the word by stores of its
    /// processor. So an atomic of the fabric might lose a store, and a copy may be torn. If two consecutive copies are
    /// equal, the value is not ahead of the word: the higher bytes were equal in both, so they did not change between
    /// the two reads of them; in that time the next lower bytes of the second copy were read; and so on downwards.
    fn read_count_remotely(&self, name: QueueName) -> Result<u64, Cause> {
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
        info: &QueueInfo,
        position: u64,
        encoded: &EncodedCommand,
    ) -> Result<(), Cause> {
        let place = |position| QueueWord::RingLine { position, capacity: info.capacity }.of(name.address());
        let places = [place(position), place(position + 1)];
        let write = CommandWrite { places, position, words: encoded.words, lines: encoded.line_count() };
        loop {
            match self.fabric().write_command(&write) {
                Ok(()) => return Ok(()),
                Err(Refused::Never(cause)) => return Err(*cause),
                // The positions are reserved: an unwritten line would block all commands after it.
                Err(Refused::Again | Refused::Relay) => self.relax("post").map_err(cause)?,
            }
        }
    }
}

fn cause(error: Error) -> Cause {
    error.cause().clone()
}
