//! Messages that a receive queue has copied out of its buffers, because receives wanted others first.

use crate::receive_queue::layout::Header;
use std::collections::VecDeque;
use tasuki_core::base::Cause;
use tasuki_core::base::error_hint::SIDE_STORE;

/// Returns true if a ticket is before another one of the same share.
pub(crate) fn precedes(ticket: u64, other: u64) -> bool {
    (ticket.wrapping_sub(other) as i64) < 0
}

/// Bytes that a message takes besides its own.
const ENTRY_BYTES: u64 = size_of::<StoredMessage>() as u64;

/// A message that was copied out.
#[derive(Debug)]
pub(crate) struct StoredMessage {
    pub(crate) ticket: u64,
    pub(crate) header: Header,
    /// Its bytes, unless the header holds them or they stay at their sender.
    pub(crate) bytes: Box<[u8]>,
}

/// The messages, the oldest first.
#[derive(Debug)]
pub(crate) struct SideStore {
    messages: VecDeque<StoredMessage>,
    used: u64,
    capacity: u64,
}

impl SideStore {
    pub(crate) fn new(capacity: u64) -> SideStore {
        SideStore { messages: VecDeque::new(), used: 0, capacity }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Bytes that the messages take.
    pub(crate) fn bytes(&self) -> u64 {
        self.used
    }

    /// Returns an error if there is no room for a message of that many bytes.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<(), Cause> {
        if self.used + bytes + ENTRY_BYTES <= self.capacity {
            return Ok(());
        }
        Err(Cause::Full { what: SIDE_STORE, capacity: self.capacity as usize })
    }

    pub(crate) fn push(&mut self, message: StoredMessage) {
        self.used += message.bytes.len() as u64 + ENTRY_BYTES;
        self.messages.push_back(message);
    }

    /// Adds a message at its place in the order of the tickets, which are all of one share. Takes it also if there is no
    /// room.
    pub(crate) fn insert(&mut self, message: StoredMessage) {
        self.used += message.bytes.len() as u64 + ENTRY_BYTES;
        let place = self.messages.iter().position(|other| precedes(message.ticket, other.ticket));
        self.messages.insert(place.unwrap_or(self.messages.len()), message);
    }

    /// Returns the oldest message that is wanted, and its place.
    pub(crate) fn find(&self, is_wanted: impl Fn(&Header) -> bool) -> Option<(usize, &StoredMessage)> {
        self.messages.iter().enumerate().find(|(_, message)| is_wanted(&message.header))
    }

    /// Returns the message at a place that [`SideStore::find`] has returned.
    pub(crate) fn get(&self, place: usize) -> &StoredMessage {
        &self.messages[place]
    }

    /// Returns what is known of the messages.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &Header> {
        self.messages.iter().map(|message| &message.header)
    }

    pub(crate) fn remove(&mut self, place: usize) {
        if let Some(message) = self.messages.remove(place) {
            self.used -= message.bytes.len() as u64 + ENTRY_BYTES;
        }
    }
}
