//! Carries the steps of a collective call as messages. The messages use a context of the communicator's collectives, so
//! they never match a message of the program.
//!
//! Each message begins with a header: the signature of the call, and a hash of all calls before it. The receiver of a
//! message compares the header with its own, and so finds a member that is in another call or has made other calls
//! before. A short message goes to a preposted receive. A longer message is announced by a short one that holds its
//! length. So two members that disagree about the length of a step get an error instead of waiting for each other.

use crate::failure::call_history::CallMark;
use crate::failure::signature::CallSignature;
use crate::message_algorithms::{HEADER, ONE_LINE_MAX, Peers, different_calls, disagree};
use std::future::ready;
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicU32, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{BufferView, RevocableBuffer, StridedView, Worker};
use tasuki_message::{Context, MessageBuffer, PREPOSTED_SLOTS, SHORT_MAX};

/// The slot for messages that do not fit in a line. The slots before it have preposted receives.
const LONG: u32 = PREPOSTED_SLOTS as u32;
/// Number of slots of the context.
pub(crate) const SLOTS: u32 = LONG + 1;
/// Set in a header that announces a longer message; its length follows.
const ANNOUNCES: u64 = 1 << 63;

/// Sends and receives the steps of one member's collective calls.
#[derive(Debug)]
pub(crate) struct CollectiveChannel {
    context: Arc<Context>,
    /// This member's place, and the number of members.
    place: usize,
    size: usize,
    /// The header of the messages of the present call.
    header: AtomicU64,
    /// The tag of its compiled steps.
    tag: AtomicU32,
}

impl CollectiveChannel {
    /// Makes the channel of the member at `place`.
    pub(crate) fn new(context: Arc<Context>, place: Rank) -> CollectiveChannel {
        let (place, size) = (place.index(), context.size());
        CollectiveChannel { context, place, size, header: AtomicU64::new(0), tag: AtomicU32::new(0) }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Begins a call: its messages carry its signature and its mark.
    #[inline]
    pub(crate) fn begin_call(&self, call: CallSignature, mark: CallMark) {
        self.header.store(mark.header(call), Ordering::Relaxed);
        self.tag.store(mark.tag(), Ordering::Relaxed);
    }

    /// Returns the tag of the compiled steps of the present call.
    #[inline]
    pub(crate) fn tag(&self) -> u32 {
        self.tag.load(Ordering::Relaxed)
    }

    #[inline]
    fn header(&self) -> u64 {
        self.header.load(Ordering::Relaxed)
    }

    #[inline]
    fn send_now(&self, bytes: &[u8], to: Rank) -> Result<()> {
        if bytes.len() > ONE_LINE_MAX {
            return self.send_long(bytes.len(), to, || self.context.send(bytes, to, LONG.into()));
        }
        let header = self.header().to_le();
        if let Ok(word) = <[u8; 8]>::try_from(bytes) {
            // Built in registers and stored to the cache line at once.
            return self.context.send_preposted(bytemuck::bytes_of(&[header, u64::from_ne_bytes(word)]), to);
        }
        let mut line = [0; SHORT_MAX];
        line[..HEADER].copy_from_slice(&header.to_ne_bytes());
        line[HEADER..][..bytes.len()].copy_from_slice(bytes);
        self.context.send_preposted(&line[..HEADER + bytes.len()], to)
    }

    /// Announces a message of `len` bytes, and sends it by `send`.
    fn send_long(&self, len: usize, to: Rank, send: impl FnOnce() -> Result<()>) -> Result<()> {
        // If the members disagree about the step, the other one may be sending to this one, too. Neither may wait
        // for the other's receive.
        self.context.prepost(to)?;
        let announcement = [(self.header() | ANNOUNCES).to_le(), (len as u64).to_le()];
        self.context.send_preposted(bytemuck::bytes_of(&announcement), to)?;
        send().map_err(|error| match *error.cause() {
            Cause::Truncated { len, room } => self.disagree(len, room, to),
            _ => error,
        })
    }

    /// Receives the first line of a message of `wanted` bytes. Returns true if the line only announces the message.
    #[inline]
    fn recv_line(&self, line: &mut [u8; SHORT_MAX], wanted: usize, from: Rank) -> Result<bool> {
        let got = self.context.recv_preposted(line, from)?;
        let word = |at: usize| u64::from_le_bytes(line[at..][..8].try_into().unwrap_or_default());
        let header = word(0);
        let is_announced = header & ANNOUNCES != 0;
        if header & !ANNOUNCES != self.header() {
            return Err(different_calls(self.context.worker(), header, self.header(), from.index()));
        }
        let len = if is_announced { word(HEADER) } else { (got - HEADER) as u64 };
        if len == wanted as u64 { Ok(is_announced) } else { Err(self.disagree(len, wanted as u64, from)) }
    }

    #[inline]
    fn recv_now(&self, into: &mut [u8], from: Rank) -> Result<()> {
        let mut line = [0; SHORT_MAX];
        if self.recv_line(&mut line, into.len(), from)? {
            self.context.recv(into, from, LONG.into())?;
        } else {
            into.copy_from_slice(&line[HEADER..][..into.len()]);
        }
        Ok(())
    }

    /// Posts the receive first, so that two members that exchange do not wait for each other.
    fn exchange_now(&self, bytes: &[u8], to: Rank, into: &mut [u8], from: Rank) -> Result<()> {
        self.context.prepost(from)?;
        if into.len() <= ONE_LINE_MAX {
            self.send_now(bytes, to)?;
            return self.recv_now(into, from);
        }
        if into.len() <= SHORT_MAX {
            let unused = || MessageBuffer::Unregistered(RevocableBuffer::zeroed(0));
            let mut pending_recv = self.context.begin_recv(into.len(), unused, from, LONG.into())?;
            self.send_now(bytes, to)?;
            self.recv_line(&mut [0; SHORT_MAX], into.len(), from)?;
            return pending_recv.take(into).map(drop);
        }
        let (len, pause) = (into.len(), || self.context.worker().pause());
        let view = BufferView::of_mut(into);
        RevocableBuffer::lend(view, &pause, |buffer| {
            let begun = self.context.begin_recv(
                len,
                || MessageBuffer::Unregistered(buffer.clone()),
                from,
                LONG.into(),
            );
            let mut pending_recv = begun?;
            // If the send fails, the receive is withdrawn.
            self.send_now(bytes, to)?;
            self.recv_line(&mut [0; SHORT_MAX], len, from)?;
            pending_recv.take(&mut []).map(drop)
        })
    }

    /// Sends blocks at equal distances, as one message.
    pub(crate) fn send_blocks(&self, blocks: StridedView<'_>, to: Rank) -> Result<()> {
        match [0; ONE_LINE_MAX].get_mut(..blocks.len()) {
            Some(line) => {
                blocks.read(0, line);
                self.send_now(line, to)
            }
            None => self.send_long(blocks.len(), to, || self.context.send_strided(blocks, to, LONG.into())),
        }
    }

    /// Receives a message into blocks at equal distances.
    pub(crate) fn recv_blocks(&self, into: StridedView<'_>, from: Rank) -> Result<()> {
        let mut line = [0; SHORT_MAX];
        if self.recv_line(&mut line, into.len(), from)? {
            self.context.recv_strided(into, from, LONG.into())?;
        } else {
            into.write(0, &line[HEADER..][..into.len()]);
        }
        Ok(())
    }

    /// Sends and receives blocks at equal distances. Posts the receive first.
    pub(crate) fn exchange_blocks(
        &self,
        blocks: StridedView<'_>,
        to: Rank,
        into: StridedView<'_>,
        from: Rank,
    ) -> Result<()> {
        self.context.prepost(from)?;
        if into.len() <= ONE_LINE_MAX {
            self.send_blocks(blocks, to)?;
            return self.recv_blocks(into, from);
        }
        let pause = || self.context.worker().pause();
        RevocableBuffer::lend(into.span(), &pause, |buffer| {
            let buffer = MessageBuffer::of_blocks(buffer.clone(), into);
            let mut pending_recv = self.context.begin_long_recv(buffer, from, LONG.into())?;
            // If the send fails, the receive is withdrawn.
            self.send_blocks(blocks, to)?;
            self.recv_line(&mut [0; SHORT_MAX], into.len(), from)?;
            pending_recv.take(&mut []).map(drop)
        })
    }

    #[cold]
    fn disagree(&self, one: u64, other: u64, member: Rank) -> Error {
        disagree(self.context.worker(), one, other, member.index())
    }
}

/// Each operation waits until it is complete.
impl Peers for CollectiveChannel {
    #[inline]
    fn place(&self) -> usize {
        self.place
    }

    #[inline]
    fn size(&self) -> usize {
        self.size
    }

    /// Preposts the receives for messages from a member.
    #[inline]
    fn expect(&self, _bytes: usize, from: usize) -> Result<()> {
        self.context.prepost(Rank(from))
    }

    #[inline]
    fn send(&self, bytes: &[u8], to: usize) -> impl Future<Output = Result<()>> + Send {
        ready(self.send_now(bytes, Rank(to)))
    }

    #[inline]
    fn recv(&self, into: &mut [u8], from: usize) -> impl Future<Output = Result<()>> + Send {
        ready(self.recv_now(into, Rank(from)))
    }

    fn exchange(
        &self,
        bytes: &[u8],
        to: usize,
        into: &mut [u8],
        from: usize,
    ) -> impl Future<Output = Result<()>> + Send {
        ready(self.exchange_now(bytes, Rank(to), into, Rank(from)))
    }

    /// Returns true if the member shares this rank's processor.
    fn shares_processor(&self, member: usize) -> bool {
        let rank = self.context.rank_of(Rank(member));
        rank.is_some_and(|rank| self.context.worker().shares_processor(rank))
    }

    fn worker(&self) -> &Worker {
        self.context.worker()
    }
}
