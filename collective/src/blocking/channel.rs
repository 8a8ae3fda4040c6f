//! Carries the steps of a collective call as messages of a context that only the communicator's collectives use, so
//! that they never match a message of the program.
//!
//! A message of one cache line goes to a preposted receive. A longer message is announced there first, with its
//! length. So two members that disagree about the length of a step both get an error instead of waiting for ever.

use std::sync::Arc;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{BufferView, RevocableBuffer};
use tasuki_message::{Context, MessageBuffer, PREPOSTED_SLOTS, Received, SHORT_MAX};

/// The slot for messages longer than a cache line. The slots before it have preposted receives.
const LONG: u32 = PREPOSTED_SLOTS as u32;
/// The first word of an announcement; the length of the announced message follows.
const ANNOUNCED: u64 = u64::from_le_bytes(*b"announce");
/// Number of slots of the context.
pub(crate) const SLOTS: u32 = LONG + 1;

/// Sends and receives the steps of one member's collective calls.
#[derive(Debug)]
pub(crate) struct CollectiveChannel {
    context: Arc<Context>,
}

impl CollectiveChannel {
    pub(crate) fn new(context: Arc<Context>) -> CollectiveChannel {
        CollectiveChannel { context }
    }

    /// Sends `bytes` to a member that receives exactly that length.
    #[inline]
    pub(crate) fn send(&self, bytes: &[u8], to: Rank) -> Result<()> {
        if bytes.len() <= SHORT_MAX {
            if announced(bytes).is_some() {
                self.announce(bytes.len(), to)?; // the program's data happen to look like an announcement
            }
            self.context.send_preposted(bytes, to)
        } else {
            // A member that disagrees about the step may be sending to this one: neither must wait for the other's
            // receive.
            self.context.prepost(to)?;
            self.announce(bytes.len(), to)?;
            self.context.send(bytes, to, LONG).map_err(|error| match *error.cause() {
                Cause::Truncated { len, room } => self.disagree(len, room, to),
                _ => error,
            })
        }
    }

    /// Announces a message of `len` bytes: on the slot of long messages, if it is one.
    fn announce(&self, len: usize, to: Rank) -> Result<()> {
        self.context.send_preposted(bytemuck::bytes_of(&[ANNOUNCED.to_le(), (len as u64).to_le()]), to)
    }

    /// Receives either a short message of exactly `wanted` bytes, and returns false, or the announcement of such a
    /// message, and returns true. If a long message of another length is announced, its sender has begun to send it;
    /// `end` receives it, so that the sender gets an error too.
    #[inline]
    fn recv_short(
        &self,
        line: &mut [u8; SHORT_MAX],
        wanted: usize,
        from: Rank,
        end: impl FnOnce() -> Result<Received>,
    ) -> Result<bool> {
        let got = self.context.recv_preposted(line, from)?;
        let announced = announced(&line[..got]);
        let len = announced.unwrap_or(got);
        if len == wanted {
            return Ok(announced.is_some());
        }
        if len > SHORT_MAX {
            let _ = end(); // fails if its buffer is too short, and so does the sender's call
        }
        Err(self.disagree(len as u64, wanted as u64, from))
    }

    /// Receives exactly as many bytes as `into` holds.
    #[inline]
    pub(crate) fn recv(&self, into: &mut [u8], from: Rank) -> Result<()> {
        let mut line = [0; SHORT_MAX];
        if self.recv_short(&mut line, into.len(), from, || self.context.recv(&mut *into, from, LONG))? {
            if into.len() > SHORT_MAX {
                return self.context.recv(into, from, LONG).map(drop);
            }
            self.context.recv_preposted(&mut line, from)?;
        }
        into.copy_from_slice(&line[..into.len()]);
        Ok(())
    }

    /// Returns true if `member` needs this rank's processor to send to it.
    pub(crate) fn shares_processor(&self, member: Rank) -> bool {
        let rank = self.context.rank_of(member);
        rank.is_some_and(|rank| self.context.worker().shares_processor(rank))
    }

    /// Preposts the receives for messages from `from`, so that the first one need not wait.
    #[inline]
    pub(crate) fn expect(&self, from: Rank) -> Result<()> {
        self.context.prepost(from)
    }

    /// Sends to one member and receives from one, in any order. Both may be the same member.
    pub(crate) fn exchange(&self, bytes: &[u8], to: Rank, into: &mut [u8], from: Rank) -> Result<()> {
        self.expect(from)?;
        if into.len() <= SHORT_MAX {
            self.send(bytes, to)?;
            return self.recv(into, from);
        }
        let (len, pause) = (into.len(), || self.context.worker().pause());
        RevocableBuffer::lend(BufferView::of_mut(into), &pause, |buffer| {
            let begun =
                self.context.begin_recv(len, || MessageBuffer::Unregistered(buffer.clone()), from, LONG);
            let mut pending_recv = begun?;
            // If one of these fails, the receive is withdrawn.
            self.send(bytes, to)?;
            self.recv_short(&mut [0; SHORT_MAX], len, from, || pending_recv.take(&mut []))?;
            pending_recv.take(&mut []).map(drop)
        })
    }

    /// Returns the error for a step whose length differs between this member and `member`.
    #[cold]
    fn disagree(&self, one: u64, other: u64, member: Rank) -> Error {
        let cause = Cause::Disagree { what: "bytes", least: one.min(other), most: one.max(other) };
        self.context.worker().fault(cause, || format!("a part with member {member}"))
    }
}

/// Returns the length of the announced message, if `bytes` are an announcement.
#[inline]
fn announced(bytes: &[u8]) -> Option<usize> {
    let words: &[u8; 16] = bytes.try_into().ok()?;
    let (mark, len) = words.split_at(8);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    (word(mark) == ANNOUNCED).then(|| word(len) as usize)
}
